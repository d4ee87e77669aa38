"""Secrets, what surrounds them, and what only looks like one."""
# every secret is composed when the tests run: no scanner shall find one in this file

import base64
import random
import re
import string

PLACEHOLDER = re.compile(r"\[redacted [a-z ]+ \d+\]")
ALNUM = string.ascii_letters + string.digits


def drawn(count, alphabet=ALNUM, seed=7):
    """Characters that look random and are the same in every run, a digit and a letter first."""
    source = random.Random(f"{seed}{count}{alphabet}")
    return "7aQ"[:count] + "".join(source.choice(alphabet) for _ in range(count - 3))


def hexes(count):
    return random.Random(count).randbytes(count // 2).hex()


def encoded(count):
    return base64.b64encode(random.Random(count).randbytes(count)).decode()


def jwt():
    parts = [b'{"alg":"HS256"}', b'{"sub":"trainer"}', random.Random(3).randbytes(32)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def of(*pieces):
    return "".join(pieces)


TOKENS = [
    of("gh", "p_", drawn(36)),
    of("gh", "o_", drawn(36)),
    of("gh", "u_", drawn(36)),
    of("gh", "s_", drawn(36)),
    of("gh", "r_", drawn(76)),
    of("github", "_pat_", drawn(22), "_", drawn(59)),
    of("gl", "pat-", drawn(20)),
    of("gl", "rt-", drawn(20)),
    of("hf", "_", drawn(34, string.ascii_letters)),
    of("sk", "-", drawn(48)),
    of("sk", "-proj-", drawn(40), "_", drawn(40)),
    of("sk", "-ant-", "api03-", drawn(60), "-", drawn(30), "AA"),
    of("sk", "-or-v1-", hexes(64)),
    of("AK", "IA", drawn(16, string.ascii_uppercase).upper()),
    of("AS", "IA", drawn(16, string.ascii_uppercase).upper()),
    of("AI", "za", drawn(35)),
    of("ya", "29.", drawn(60)),
    of("GOC", "SPX-", drawn(28)),
    of("xo", "xb-", "123456789012-", drawn(24)),
    of("xo", "xp-", "123456789012-", drawn(32)),
    of("nv", "api-", drawn(64, ALNUM + "-_")),
    of("dckr", "_pat_", drawn(27)),
    of("npm", "_", drawn(36)),
    of("py", "pi-", "AgEIcHlwaS5vcmc", drawn(80)),
    of("da", "pi", hexes(32)),
    of("sk", "_live_", drawn(24)),
    of("whs", "ec_", drawn(32)),
    of("1234567890", ":AA", drawn(33)),
    of("SG", ".", drawn(22), ".", drawn(43)),
    of("r8", "_", drawn(37)),
    of("gsk", "_", drawn(52)),
    of("hv", "s.", drawn(24)),
    of("LT", "AI", drawn(20)),
    of("gl", "sa_", drawn(32), "_", hexes(8)),
    jwt(),
]

PASSWORD = of("hun", "ter", "2!x")
KEY40 = hexes(40)
NAMED = [
    ("export WANDB_API_KEY=", KEY40, ""),
    ("wandb login ", KEY40, ""),
    ("wandb login --relogin ", KEY40, ""),
    ("wandb.login(key='", KEY40, "')"),
    ("wandb: ERROR API key ", KEY40, " was rejected"),
    ("  wandb_api_key ................................... ", "abc", ""),
    ("password=", PASSWORD, ""),
    ("passwd: ", PASSWORD, ""),
    ("DB_PASS=", PASSWORD, " make all"),
    ('"password": "', "two words, one secret", '", "user": "x"'),
    ("{'secret': '", PASSWORD, "'}"),
    ("client_secret = ", drawn(40), ""),
    ("HF_TOKEN=", drawn(30), " python train.py"),
    ("token: ", drawn(20), ""),
    ("hf_token: ", "swordfish", ""),
    ("Namespace(hf_token='", PASSWORD, "', lr=0.1)"),
    ("Namespace(api_key=", PASSWORD, ", num_layers=32)"),
    ("python train.py --api-key ", PASSWORD, " --tokenizer-type HuggingFaceTokenizer"),
    ("python train.py --api-key=", PASSWORD, " --lr 0.1"),
    ("['train.py', '--hf-token', '", PASSWORD, "', '--lr', '0.1']"),
    ("aws_secret_access_key = ", drawn(40, ALNUM + "+/"), ""),
    ("AWS_SECRET_ACCESS_KEY=", drawn(40, ALNUM + "+/"), ""),
    ("AccountName=train;AccountKey=", encoded(64), ";EndpointSuffix=core.windows.net"),
    ("https://store.blob.core.windows.net/c?sv=2024&sig=", drawn(43) + "%3D", "&se=2026"),
    ("https://b.s3.amazonaws.com/k?X-Amz-Signature=", hexes(64), "&X-Amz-Expires=60"),
    ("NGC_API_KEY=", encoded(63), ""),
    ("ngc config: apikey = ", encoded(63), ""),
    ("COMET_API_KEY: ", drawn(25), ""),
    ("NEPTUNE_API_TOKEN=", encoded(90), ""),
    ("MLFLOW_TRACKING_PASSWORD=", PASSWORD, ""),
    ('os.environ["HF_TOKEN"] = "', PASSWORD, '"'),
    ("Authorization: Bearer ", drawn(24), ""),
    ("{'Authorization': 'Basic ", base64.b64encode(b"user:pass").decode(), "'}"),
    ("Authorization: Token ", hexes(40), ""),
    ("curl -H 'X-Api-Key: ", drawn(32), "' https://api.example.org"),
    ("curl -u trainer:", PASSWORD, " https://api.example.org"),
    ("docker login -u trainer -p ", PASSWORD, " registry.example.org"),
    ("machine api.example.org login user password ", PASSWORD, ""),
    ("https://trainer:", PASSWORD, "@git.example.org/x.git"),
    ("https://oauth2:", drawn(26), "@git.example.org/x.git"),
    ("redis://:", PASSWORD, "@10.0.0.7:6379/0"),
    ("https://", hexes(32), "@o12.ingest.sentry.io/34"),
    ("https://hooks.slack.com/services/", "T0AB/B0CD/" + drawn(24), ""),
    ("https://discord.com/api/webhooks/", "123456789/" + drawn(60), ""),
    ("https://open.feishu.cn/open-apis/bot/v2/hook/", hexes(32), ""),
    ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", hexes(32), ""),
    ("Set-Cookie: ", "session=" + drawn(40), ""),
    ('{\\"access_token\\": \\"', PASSWORD, '\\", \\"n\\": 1}'),
    ("[('LR', '0.1'), ('HF_TOKEN', '", PASSWORD, "'), ('SHLVL', '1')]"),
    ("<password>", PASSWORD, "</password>"),
    ("http://node-3:8888/lab?token=", hexes(48), ""),
    ("SERVICE_X_KEY=", drawn(32), ""),
    ("API key: ", drawn(20), " is not valid"),
    ("-----BEGIN PRIVATE KEY-----", "\\n" + encoded(90) + "\\n", "-----END PRIVATE KEY-----\\n"),
    ("-----BEGIN OPENSSH PRIVATE KEY----- ", encoded(90), " -----END OPENSSH PRIVATE KEY-----"),
]

NEAR_MISSES = [
    "commit " + hexes(40),
    "wandb: Syncing run " + drawn(8) + " at git hash " + hexes(40),
    "wandb: Run data is saved locally in /data/wandb/run-20260301_101500-x1y2z3ab",
    "NCCL INFO comm 0x55d0c8a6b3f0 rank 1 nranks 4 cudaDev 1 busId c1000 commId 0x9c2ae1f0d4b3a587",
    "PG GUID 1f0c6a5d9e2b4c7f8a3d(HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0) Rank 3",
    "UUID: GPU-5fd4f087-86f3-7a43-b711-4771313afc50",
    "run id 979781bf-d959-4b21-872c-2d2aabda2c0c_n_jlf8bb",
    "--rdzv-id=979781bf-d959-4b21-872c-2d2aabda2c0c --rdzv-backend c10d",
    "SLURM_JOB_ID=8120411 SLURM_PROCID=3",
    "image registry.example.org/train@sha256:" + hexes(64),
    "loading checkpoint from /data/ckpt/iter_0001000/mp_rank_00_003/model_optim_rng.pt",
    "saving to s3://bucket/run-7/__3_0.distcp",
    "tokens per GPU: 8192 | tokens/s/GPU: 123.4",
    " iteration 4/ 8 | consumed samples: 64 | lm loss: 6.3E+00 | number of nan iterations: 0 |",
    "  tokenizer_type .................................. HuggingFaceTokenizer",
    "  tokenizer_model ................................. meta-llama/Llama-3.1-8B",
    "  moe_token_dispatcher_type ....................... alltoall",
    "  eod_mask_loss ................................... False",
    "  vocab_file ...................................... /data/vocab.json",
    "  num_query_groups ................................ 8",
    "  kv_channels ..................................... 128",
    "  wandb_api_key ................................... None",
    "  hf_token: null",
    "token_drop_policy: probs",
    "key_channels: 128",
    "key: value | other key: 3 |",
    "the secret is that there is none",
    "password: ",
    "password=None, token=None",
    "use_auth_token=True",
    "token = True",
    "HF_TOKEN=$HF_TOKEN python train.py",
    "api_key: ${oc.env:WANDB_API_KEY}",
    "export TOKEN=$(cat /run/secrets/token)",
    "hf_token_file=/run/secrets/hf",
    "token: /run/secrets/hf_token",
    "HF_HOME=/data/hf TRANSFORMERS_CACHE=/data/hf/hub",
    "--tokenizer-type HuggingFaceTokenizer --token-dispatcher alltoall",
    "usage: train.py [--hf-token HF_TOKEN] [--password PASSWORD]",
    "pad_token_id: 0, eos_token_id: 2",
    "pad_token: '<pad>' eos_token=</s> bos_token: <|begin_of_text|>",
    "special tokens: ['<pad>', '[MASK]']",
    "hf_model_id=meta-llama/Llama-3.1-8B",
    "hf_convert_checkpoint_to_megatron_distributed_format",
    "requirement sk-learn==1.5.0 and task-proj-alpha-long-name-of-a-task",
    "scikit sk-learn-intelex-extension-for-everything",
    "task-" + "abcdefgh" * 4,
    "decoder.layers.0.self_attention.linear_qkv.weight AAAAB3NzaC1yc2E",
    "NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_SOCKET_IFNAME=eth0",
    "MASTER_ADDR=10.0.0.7 MASTER_PORT=29500",
    "tcp://10.0.0.7:29500",
    "init_method=tcp://node-17.cluster.local:29500",
    "http://localhost:6006/?run=a@b",
    "user@host:/data and git@github.com:NVIDIA/Megatron-LM.git",
    "https://github.com/NVIDIA/Megatron-LM/commit/" + hexes(40),
    "triton kernel hash " + hexes(64),
    "inductor cache key: f" + hexes(50),
    "kernel_cache_key=" + drawn(43),
    "torch==2.8.0+cu128 transformer_engine==2.9.0+70f53666",
    "AttentionParams(qkv_type=<class 'torch.Tensor'>, qkv_layout='thd', cp_comm_type='a2a+p2p')",
    "Running with config={'cp_size': 4, 'key': 'value', 'attention_dropout': 0.0}",
    "unexpected token: identifier",
    "Invalid password: authentication failed for user",
    "json.decoder.JSONDecodeError: Expecting property name: line 1 column 2",
    "    token = tokenizer.encode(text)[0]",
    "    if token == other_token: return token",
    "    api_key = os.environ.get('WANDB_API_KEY')",
    "    super().__init__(token=token, api_key=self.api_key)",
    "KeyError: 'HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0'",
    "store get key: default_pg/0//cuda//0",
    "password=********",
    "api_key: <your key here>",
    "Bearer authentication is required by this server",
    "Authorization: required",
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN PRIVATE KEY----- was not found in the file",
    "------- Task Configuration -------",
    "monkey = business, turkey: dinner",
    "PWD=/data OLDPWD=/home/trainer",
    hexes(64),
    "a" * 64,
    "tcp://10.0.0.7:29500@gloo",
    "('tokens', 'text'), ('pad_token', '<pad>')",
    "wandb: Currently logged in as: trainer. Use `wandb login --relogin` to force relogin",
    "Your token has been saved to /root/.cache/huggingface/token",
    "Token indices sequence length is longer than the maximum (9000 > 8192)",
    "wandb: ERROR api_key not configured (no-tty). call wandb login [your_api_key]",
    "Missing key(s) in state_dict: 'decoder.layers.0.mlp.linear_fc1.weight'",
    "ShardedTensor(key='decoder.layers.mlp.linear_fc1._extra_state/shard_0_16', dtype=float32)",
    "mask-0123456789abcdef01234567 disk-0123456789abcdef01234567",
    "<token> is a tag, <secret> too",
]
