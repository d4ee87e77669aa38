"""Composes default-level logs as the producers print them, in the layouts launchers leave.

A `Job` says what was configured and on which stack; the composer knows what that stack does with
it: whether a start-up check refuses it, whether attention really runs over the CP group, and what
number the throughput formula then prints. So the truth (`Job.status`) follows from the job.

Nothing here proves that HCP was on: at the default level no producer prints such a line. The shapes
of lines are those of Megatron-LM core_v0.10 to main of 2026-08, Megatron-Bridge v0.2 to main of
2026-08. One long module, because job, stack, line and layout are one model of how a log is made.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

A2A_P2P: Final = "a2a+p2p"
LAUNCHER: Final = -1
"""Rank of a line that torchrun or srun itself prints."""

Files: TypeAlias = dict[str, list[str]]
"""Path in the run directory -> lines."""

TWO_NODES: Final = frozenset(
    {"nodes", "pods", "pod_files", "stern", "pdsh", "docker_compose", "torchx", "role", "deepspeed"}
    | {"skypilot"}
)
"""Layouts of two nodes with half of the ranks each."""

RUN_ID: Final = "5ab2eb28-29e0-4a47-90a4-543e21ea78b3"


@dataclass(frozen=True, slots=True)
class Stack:
    """One trainer in one version, by what it prints and what it checks."""

    framework: Literal["megatron", "bridge"]
    start_line: Literal["", "glued_twice", "glued", "separated"] = ""
    "How `using world size` is spelt: 0.10, 0.12, 0.13 and later; Bridge prints none."

    blocks: tuple[Literal["args", "task_yaml", "yaml", "summary"], ...] = ("args",)
    fraction: bool = False
    "Time stamps carry microseconds (core 0.16 and later)."

    versions: bool = False
    "Rank 0 prints the versions of PyTorch, Megatron-Core and Transformer Engine first (2026)."

    guarded: bool = True
    "A start-up check refuses a2a+p2p without sizes, and sizes on decentralized groups."

    decentralized: bool = False
    "The stack has `dist.use_decentralized_pg`."


STACKS: Final = {
    "megatron-0.10": Stack("megatron", "glued_twice"),
    "megatron-0.12": Stack("megatron", "glued"),
    "megatron-0.13": Stack("megatron", "separated"),
    "megatron-main": Stack("megatron", "separated", fraction=True, versions=True),
    # A trainer of one's own on Megatron-Core, with Megatron's start-up lines: core checks nothing.
    "own-core-0.16": Stack("megatron", "separated", fraction=True, guarded=False),
    "bridge-0.2": Stack("bridge", blocks=("task_yaml",), guarded=False),
    "bridge-0.3": Stack("bridge", blocks=("task_yaml",), guarded=False, decentralized=True),
    "bridge-0.4": Stack("bridge", blocks=("summary",), decentralized=True),
    "bridge-main": Stack("bridge", blocks=("yaml", "summary"), decentralized=True),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Model shape and batch; FLOPs as Megatron counts them, per sequence, forward and backward."""

    layers: int = 32
    hidden: int = 4096
    ffn: int = 14336
    heads: int = 32
    groups: int = 8
    channels: int = 128
    vocab: int = 128256
    seq: int = 32768
    batch: int = 16

    @property
    def linear(self) -> float:
        return 6.0 * self.seq * (self.layers * self.layer_parameters + self.hidden * self.vocab)

    @property
    def layer_parameters(self) -> int:
        query, kv = self.channels * self.heads, self.channels * self.groups
        return self.hidden * (query + 2 * kv + query + 3 * self.ffn)

    @property
    def parameters(self) -> int:
        return self.layers * self.layer_parameters + 2 * self.hidden * self.vocab

    @property
    def attention(self) -> float:
        return 6.0 * self.layers * self.seq**2 * self.channels * self.heads


@dataclass(frozen=True, slots=True)
class Job:
    """What was launched."""

    stack: str = "megatron-main"
    layout: str = "torchrun_tee"
    world_size: int = 8
    cp: int = 8
    comm_type: str | None = A2A_P2P
    "None leaves it at the stack's default."

    sizes: tuple[int, ...] | None = (4, 2)
    decentralized: bool = False
    iterations: int = 6
    planned: int | None = None
    "`train_iters`; None plans what was run."

    attempts: int = 1
    "All but the last are killed half-way; `iterations` counts the last one's."

    cut_after: str | None = None
    "Rank 0's stdout ends behind the first line that holds this key."

    tflops: float = 380.0
    "TFLOP/s/GPU that the GPUs really do; what is printed follows from it."

    shape: Shape = field(default_factory=Shape)
    start: dt.datetime = dt.datetime(2026, 3, 1, 9, 12, 0, 123456)  # noqa: DTZ001 - logs have no zone
    te_version: str = "2.8.0+abcdef1"
    job_id: int = 4711
    log_throughput: bool | None = None
    "None: Megatron-LM does, Bridge has its own `Step Time` line."

    fp16: bool = False

    @property
    def facts(self) -> Stack:
        return STACKS[self.stack]

    @property
    def dp(self) -> int:
        return self.world_size // self.cp

    @property
    def ranks_per_node(self) -> int:
        return self.world_size // 2 if self.layout in TWO_NODES else self.world_size

    @property
    def hierarchical(self) -> bool:
        return self.cp > 1 and self.comm_type == A2A_P2P

    @property
    def rejected(self) -> str:
        """The check that refuses the job: `sizes`, `product`, `decentralized`, or empty."""
        if self.hierarchical and self.sizes is None and self.facts.guarded:
            return "sizes"
        if self.sizes and math.prod(self.sizes) != self.cp:
            return "product"
        if self.sizes and self.decentralized and self.facts.guarded:
            return "decentralized"
        return ""

    @property
    def cp_off(self) -> bool:
        """Transformer Engine gets no group: each rank attends inside its own chunk only."""
        return self.hierarchical and (self.sizes is None or self.decentralized)

    @property
    def status(self) -> str:
        """The verdict that its logs allow."""
        if self.rejected:
            return "rejected"
        if self.cut_after:
            return "inconclusive"
        if self.hierarchical and self.sizes and 1 in self.sizes:
            return "degenerate"
        if self.cp_off:
            return "inactive"
        if self.hierarchical:
            return "unconfirmed"
        return "inactive" if self.sizes else "not_requested"

    @property
    def logged(self) -> int:
        """Distinct (attempt, iteration) pairs in its logs."""
        if self.rejected:
            return 0
        return self.iterations + (self.attempts - 1) * self.killed_after

    @property
    def killed_after(self) -> int:
        return max(1, self.iterations // 2)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one stream of one rank, in the order in which the job printed them."""

    rank: int
    text: str
    stream: Literal["stdout", "stderr"] = "stdout"
    attempt: int = 0
    when: dt.datetime | None = None
    "When it was printed."


# What one iteration prints -----------------------------------------------------------------------


def step_seconds(job: Job, iteration: int) -> float:
    """Time of one iteration: the first one warms up, the others wave by a percent."""
    shape = job.shape
    done = shape.linear + shape.attention / (job.cp if job.cp_off else 1)
    rate = job.tflops * (1 + 0.005 * (iteration * 7 % 5 - 2)) / (3 if iteration == 1 else 1)
    return shape.batch * done / (rate * 1e12 * job.world_size)


def printed_tflops(job: Job, seconds: float) -> float:
    """The formula counts the whole sequence, whether it was attended to or not."""
    whole = job.shape.batch * (job.shape.linear + job.shape.attention)
    return whole / (seconds * job.world_size * 1e12)


def loss_at(iteration: int) -> float:
    return 2.0 + 9.5 / (1 + 0.15 * iteration) + 0.01 * (iteration * 3 % 4)


def iteration_line(
    job: Job,
    iteration: int,
    when: dt.datetime,
    *,
    loss: float | Literal["default"] | None = "default",
    grad_norm: str | None = "default",
    skipped: int = 0,
    scale: float = 1.0,
) -> str:
    """The last rank's line; a loss or a gradient norm of None is left out, as the producer does."""
    seconds = step_seconds(job, iteration)
    planned = job.planned or job.iterations
    fields = [
        f" [{stamp(job, when)}] iteration {iteration:8d}/{planned:8d}",
        f"consumed samples: {iteration * job.shape.batch:12d}",
        f"elapsed time per iteration (ms): {seconds * 1000:.1f}",
    ]
    megatron = job.facts.framework == "megatron"
    if megatron if job.log_throughput is None else job.log_throughput:
        fields.append(f"throughput per GPU (TFLOP/s/GPU): {printed_tflops(job, seconds):.1f}")
    fields.append(f"learning rate: {3e-4 * min(1.0, iteration / 4):.6E}")
    fields.append(f"global batch size: {job.shape.batch:5d}")
    if loss is not None:
        value = loss_at(iteration) if loss == "default" else loss
        fields.append(f"lm loss: {value:.6E}")
    fields.append(f"loss scale: {scale:.1f}")
    if grad_norm is not None:
        norm = f"{3.0 / (1 + 0.2 * iteration):.3f}" if grad_norm == "default" else grad_norm
        fields.append(f"grad norm: {norm}")
    fields.append(f"number of skipped iterations: {skipped:3d}")
    fields.append(f"number of nan iterations: {0:3d}")
    return " | ".join(fields) + " |"


def step_line(job: Job, iteration: int) -> str:
    """Bridge, rank 0: no iteration number, hundredths of a second."""
    seconds = step_seconds(job, iteration)
    rate = printed_tflops(job, seconds)
    return f"Step Time : {seconds:.2f}s GPU utilization: {rate:.1f}MODEL_TFLOP/s/GPU"


def stamp(job: Job, when: dt.datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S.%f" if job.facts.fraction else "%Y-%m-%d %H:%M:%S")


# What the configuration looks like ---------------------------------------------------------------


def start_line(job: Job) -> str:
    sizes = list(job.sizes) if job.sizes else None
    head = (
        f"using world size: {job.world_size}, data-parallel size: {job.dp}, "
        f"context-parallel size: {job.cp}, hierarchical context-parallel sizes: {sizes}"
    )
    if job.facts.start_line == "separated":
        return f"{head}, tensor-model-parallel size: 1, pipeline-model-parallel size: 1"
    tail = "tensor-model-parallel size: 1, encoder-tensor-model-parallel size: 0, "
    if job.facts.start_line == "glued_twice":
        tail += (
            "pipeline-model-parallel size: 1, encoder-pipeline-model-parallel size: 0, "
            "pipeline-model-parallel size: 1 "
        )
    else:
        tail += "pipeline-model-parallel size: 1, encoder-pipeline-model-parallel size: 0"
    return head + tail


def arguments(job: Job) -> list[str]:
    """The argument dump, with the keys that anyone reads and some that nobody does."""
    shape, planned = job.shape, job.planned or job.iterations
    values: dict[str, object] = {
        "accumulate_allreduce_grads_in_fp32": True,
        "adam_beta1": 0.9,
        "attention_backend": "AttnBackend.auto",
        "attention_dropout": 0.0,
        "bf16": not job.fp16,
        "check_for_nan_in_loss_and_grad": True,
        "consumed_train_samples": 0,
        "context_parallel_size": job.cp,
        "cp_comm_type": [job.comm_type or "p2p"],
        "data_parallel_size": job.dp,
        "distributed_backend": "nccl",
        "distributed_timeout_minutes": 10,
        "eval_interval": 1000,
        "eval_iters": 0,
        "exit_duration_in_mins": None,
        "exit_interval": None,
        "expert_model_parallel_size": 1,
        "ffn_hidden_size": shape.ffn,
        "fp16": job.fp16,
        "fp8": None,
        "fp8_recipe": "delayed",
        "global_batch_size": shape.batch,
        "group_query_attention": shape.groups != shape.heads,
        "hidden_size": shape.hidden,
        "hierarchical_context_parallel_sizes": list(job.sizes) if job.sizes else None,
        "inference_dynamic_batching_unified_memory_level": 0,
        "kv_channels": shape.channels,
        "log_interval": 1,
        "log_throughput": True,
        "make_vocab_size_divisible_by": 128,
        "max_position_embeddings": shape.seq,
        "micro_batch_size": 1,
        "moe_ffn_hidden_size": None,
        "moe_router_topk": 2,
        "mtp_num_layers": None,
        "multi_latent_attention": False,
        "normalization": "RMSNorm",
        "num_attention_heads": shape.heads,
        "num_experts": None,
        "num_layers": shape.layers,
        "num_query_groups": shape.groups,
        "params_dtype": "torch.float16" if job.fp16 else "torch.bfloat16",
        "pipeline_model_parallel_size": 1,
        "position_embedding_type": "rope",
        "rank": 0,
        "save": None,
        "seq_length": shape.seq,
        "sequence_parallel": False,
        "skip_train": False,
        "swiglu": True,
        "tensor_model_parallel_size": 1,
        "tokenizer_sentencepiece_ignore_extra_whitespaces": True,
        "train_iters": planned,
        "train_samples": None,
        "transformer_impl": "transformer_engine",
        "use_distributed_optimizer": True,
        "vocab_size": shape.vocab,
        "world_size": job.world_size,
        "yaml_cfg": None,
    }
    if job.facts.versions:
        values |= {"fp4": None, "hybrid_context_parallel": False, "padded_vocab_size": None}
    rows = [f"  {name} {'.' * (48 - len(name))} {values[name]}" for name in sorted(values)]
    return [
        "------------------------ arguments ------------------------",
        *rows,
        "-------------------- end of arguments ---------------------",
    ]


def yaml_lines(job: Job) -> list[str]:
    """Bridge's ConfigContainer, shortened to some keys of each section."""
    shape, planned = job.shape, job.planned or job.iterations
    sizes = ["  hierarchical_context_parallel_sizes: null"]
    if job.sizes:
        sizes = ["  hierarchical_context_parallel_sizes:", *(f"  - {n}" for n in job.sizes)]
    dist = ["  distributed_backend: nccl", "  distributed_timeout_minutes: 10"]
    if job.facts.decentralized:
        dist.append(f"  use_decentralized_pg: {str(job.decentralized).lower()}")
    newer = ["  hybrid_context_parallel: false"] if job.facts.guarded else []
    config = "megatron.bridge.training.config"
    return [
        f"_target_: {config}.ConfigContainer",
        "checkpoint:",
        f"  _target_: {config}.CheckpointConfig",
        "  finetune: false",
        "  load: null",
        "  save: null",
        "comm_overlap: null",
        "dataset:",
        f"  _target_: {config}.MockGPTDatasetConfig",
        "  context_parallel_size: null",
        *newer,
        f"  sequence_length: {shape.seq}",
        "ddp:",
        f"  _target_: {config}.DistributedDataParallelConfig",
        "  use_distributed_optimizer: true",
        "dist:",
        f"  _target_: {config}.DistributedInitConfig",
        *dist,
        "logger:",
        f"  _target_: {config}.LoggerConfig",
        "  log_interval: 1",
        "  log_throughput: false",
        "mixed_precision: bf16_mixed",
        "model:",
        "  _target_: megatron.bridge.models.gpt_provider.GPTModelProvider",
        "  activation_func:",
        "    _call_: false",
        "    _target_: torch.nn.functional.silu",
        "  bf16: true",
        f"  context_parallel_size: {job.cp}",
        f"  cp_comm_type: {job.comm_type or 'null'}",
        "  expert_model_parallel_size: 1",
        f"  ffn_hidden_size: {shape.ffn}",
        "  fp16: false",
        "  fp8: null",
        "  gated_linear_unit: true",
        f"  hidden_size: {shape.hidden}",
        *sizes,
        *newer,
        f"  kv_channels: {shape.channels}",
        "  make_vocab_size_divisible_by: 128",
        "  multi_latent_attention: false",
        f"  num_attention_heads: {shape.heads}",
        f"  num_layers: {shape.layers}",
        "  num_moe_experts: null",
        f"  num_query_groups: {shape.groups}",
        "  pipeline_model_parallel_size: 1",
        f"  seq_length: {shape.seq}",
        "  sequence_parallel: false",
        "  tensor_model_parallel_size: 1",
        "  transformer_impl: transformer_engine",
        f"  vocab_size: {shape.vocab}",
        "optimizer:",
        f"  _target_: {config}.OptimizerConfig",
        "  bf16: true",
        "  lr: 0.0003",
        "  use_distributed_optimizer: true",
        "train:",
        f"  _target_: {config}.TrainingConfig",
        f"  global_batch_size: {shape.batch}",
        "  micro_batch_size: 1",
        f"  train_iters: {planned}",
    ]


def summary_lines(job: Job) -> list[str]:
    """Bridge's summary: what differs from Megatron-Core's default, and nothing else."""
    shape, planned = job.shape, job.planned or job.iterations
    bar, rule = "=" * 70, "-" * 70
    model: list[tuple[str, object, object]] = [
        ("bf16", True, False),
        ("context_parallel_size", job.cp, 1),
        ("cp_comm_type", repr(job.comm_type), "None"),
        ("ffn_hidden_size", shape.ffn, None),
        ("gated_linear_unit", True, False),
        ("hidden_size", shape.hidden, 0),
        ("hierarchical_context_parallel_sizes", list(job.sizes) if job.sizes else None, None),
        ("kv_channels", shape.channels, None),
        ("num_attention_heads", shape.heads, 0),
        ("num_layers", shape.layers, 0),
        ("num_query_groups", shape.groups, None),
        ("pipeline_dtype", "torch.bfloat16", None),
    ]
    return [
        "",
        bar,
        "Configuration Summary (Non-Default Values vs Megatron Core)",
        bar,
        "",
        "[optimizer] Non-default values (vs Mcore OptimizerConfig):",
        "  bf16: True  (Mcore default: False)",
        "  lr: 0.0003  (Mcore default: None)",
        "  use_distributed_optimizer: True  (Mcore default: False)",
        "",
        "[ddp] Non-default values (vs Mcore DistributedDataParallelConfig):",
        "  use_distributed_optimizer: True  (Mcore default: False)",
        "",
        "[model] Non-default values (vs Mcore TransformerConfig):",
        *(f"  {k}: {v}  (Mcore default: {d})" for k, v, d in model if str(v) != str(d)),
        "",
        rule,
        "Other Configuration Values:",
        rule,
        "",
        "[train]:",
        f"  global_batch_size: {shape.batch}",
        "  micro_batch_size: 1",
        f"  train_iters: {planned}",
        "",
        "[validation]:",
        "  eval_iters: 0",
        "",
        "[dataset]:",
        *(["  hybrid_context_parallel: False"] if job.facts.guarded else []),
        f"  seq_length: {shape.seq}",
        f"  sequence_length: {shape.seq}",
        "",
        "[logger]:",
        "  log_interval: 1",
        "  log_throughput: False",
        "",
        "[tokenizer]:",
        "  tensor_model_parallel_size: 1",
        f"  vocab_size: {shape.vocab}",
        "",
        "[rng]:",
        "  seed: 1234",
        "",
        bar,
    ]


def configuration(job: Job) -> list[str]:
    out: list[str] = []
    for block in job.facts.blocks:
        if block == "args":
            out += arguments(job)
        elif block == "task_yaml":
            out += ["------- Task Configuration -------", *yaml_lines(job), "-" * 34]
        elif block == "yaml":
            out += [*yaml_lines(job), ""]
        else:
            out += summary_lines(job)
    return out


# What a start-up check prints --------------------------------------------------------------------

LM: Final = "/opt/Megatron-LM"
BRIDGE: Final = "/opt/Megatron-Bridge/src/megatron/bridge/training"


DECENTRALIZED: Final = (
    "Decentralized process groups (use_decentralized_pg=True) do not support"
    " hierarchical_context_parallel_sizes. Use cp_comm_type='a2a' or 'p2p' instead, or set"
    " use_decentralized_pg=False to use the MPU path which supports 'a2a+p2p'."
)
TO_ENABLE: Final = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
API: Final = "/opt/venv/lib/python3.12/site-packages/torch/distributed/launcher/api.py"


def traceback_of(job: Job) -> list[str]:
    """The uncaught exception of a refused job, the same on every rank."""
    if job.facts.framework == "megatron":
        statement = "    assert args.hierarchical_context_parallel_sizes is not None, \\"
        message = (
            "AssertionError: --hierarchical-context-parallel-sizes must be set when a2a+p2p is used"
            " in cp comm"
        )
        if job.rejected == "product":
            statement = (
                "    assert args.context_parallel_size"
                " == prod(args.hierarchical_context_parallel_sizes)"
            )
            message = "AssertionError"
        return [
            "Traceback (most recent call last):",
            f'  File "{LM}/pretrain_gpt.py", line 525, in <module>',
            "    args = parse_and_validate_args(",
            f'  File "{LM}/megatron/training/arguments.py", line 108, in parse_and_validate_args',
            "    validate_args(args, args_defaults)",
            f'  File "{LM}/megatron/training/arguments.py", line 584, in validate_args',
            statement,
            message,
        ]
    if job.rejected == "decentralized":
        return [
            "Traceback (most recent call last):",
            '  File "/opt/train/run_recipe.py", line 97, in <module>',
            "    pretrain(config=cfg, forward_step_func=forward_step)",
            f'  File "{BRIDGE}/initialize.py", line 774, in _initialize_distributed',
            "    pg_collection = _create_pg_collection(",
            f'  File "{BRIDGE}/initialize.py", line 411, in _create_pg_collection',
            "    raise NotImplementedError(",
            f"NotImplementedError: {DECENTRALIZED}",
        ]
    message = (
        "hierarchical_context_parallel_sizes must be set when cp_comm_type contains 'a2a+p2p'."
        " Without it, CP communication is silently disabled and each rank attends only to its local"
        " chunk, producing artificially high throughput but broken training. Example: for cp=16"
        " across 4 nodes of 8 GPUs, set hierarchical_context_parallel_sizes=[8, 2]."
    )
    statement = "    assert hcp_sizes is not None, ("
    if job.rejected == "product":
        statement = "    assert prod(hcp_sizes) == cp_size, ("
        message = (
            f"Product of hierarchical_context_parallel_sizes {list(job.sizes or ())}"
            f" (={math.prod(job.sizes or ())}) must equal context_parallel_size (={job.cp})."
        )
    return [
        "Traceback (most recent call last):",
        '  File "/opt/train/run_recipe.py", line 97, in <module>',
        "    pretrain(config=cfg, forward_step_func=forward_step)",
        f'  File "{BRIDGE}/config.py", line 1598, in validate',
        "    self._validate_cp_comm_type()",
        f'  File "{BRIDGE}/config.py", line 1683, in _validate_cp_comm_type',
        statement,
        f"AssertionError: {message}",
    ]


# One attempt, line by line -----------------------------------------------------------------------


def lines_of(job: Job) -> list[Line]:
    """Every line that the ranks print, in order."""
    out: list[Line] = []
    when = job.start
    for attempt in range(job.attempts):
        last = attempt == job.attempts - 1
        count = job.iterations if last else job.killed_after
        made, when = _attempt(job, attempt, count, when, finishes=last)
        out += made
        when += dt.timedelta(seconds=45)
    return cut(job, out)


def cut(job: Job, lines: list[Line]) -> list[Line]:
    """Without what rank 0's stdout holds behind `cut_after`."""
    if job.cut_after is None:
        return lines
    end = next(i for i, x in enumerate(lines) if x.rank == 0 and job.cut_after in x.text)
    return [x for i, x in enumerate(lines) if i <= end or x.rank != 0 or x.stream == "stderr"]


@dataclass(slots=True)
class _Attempt:
    """One attempt while it is written: what was printed so far, and the time it is."""

    job: Job
    number: int
    when: dt.datetime
    out: list[Line] = field(default_factory=list)

    def say(self, rank: int, *texts: str) -> None:
        self.out.extend(Line(rank, text, "stdout", self.number, self.when) for text in texts)

    def err(self, rank: int, *texts: str) -> None:
        self.out.extend(Line(rank, text, "stderr", self.number, self.when) for text in texts)

    def at(self, event: str, seconds: float) -> None:
        self.when += dt.timedelta(seconds=seconds)
        self.say(0, f"[{event}] datetime: {stamp(self.job, self.when)} ")


def _attempt(
    job: Job, number: int, count: int, when: dt.datetime, *, finishes: bool
) -> tuple[list[Line], dt.datetime]:
    log = _Attempt(job, number, when)
    if _set_up(log):
        _build(log)
        for iteration in range(1, count + 1):
            _train(log, iteration)
        if finishes:
            log.at("after training is done", 0.1)
    return log.out, log.when


def _set_up(log: _Attempt) -> bool:
    """Configuration and process groups; False if a check refused the job."""
    job = log.job
    if job.facts.versions:
        log.say(0, "> PyTorch version ................ 2.11.0")
        log.say(0, "> Megatron-Core version .......... 0.20.0")
        log.say(0, f"> Transformer Engine version ... {job.te_version}")
    if job.rejected and job.rejected != "decentralized":
        _refuse(log)
        return False
    if job.facts.framework == "megatron":
        dtype = "torch.float16" if job.fp16 else "torch.bfloat16"
        log.say(0, start_line(job), "Number of virtual stages per pipeline stage: None")
        log.say(0, f"using {dtype} for parameters ...", *configuration(job))
    where, micro = "INFO:megatron.core.num_microbatches_calculator", job.shape.batch // job.dp
    log.say(0, f"{where}:setting number of microbatches to constant {micro}")
    log.say(0, "> initializing torch distributed ...")
    if job.rejected:
        _refuse(log)
        return False
    if job.decentralized:
        log.say(0, f"> initialized HyperCommGrid with tp=1, pp=1, cp={job.cp}, dp={job.dp}")
    else:
        log.say(0, "> initialized tensor model parallel with size 1")
        if job.facts.versions:
            log.say(0, "> initialized gtp weight remat with size 1")
        log.say(0, "> initialized pipeline model parallel with size 1")
    log.say(0, "> setting random seeds to 1234 ...", "> compiling dataset index builder ...")
    log.say(0, ">>> done with dataset index builder. Compilation time: 0.061 seconds")
    for rank in range(job.world_size):
        log.err(rank, WARNING, "  return func(*args, **kwargs)")
    log.say(0, "time to initialize megatron (seconds): 7.687")
    log.at("after megatron is initialized", 8.5)
    if job.facts.framework == "bridge":
        log.say(0, *configuration(job))
    return True


WARNING: Final = (
    "/opt/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py:81: FutureWarning:"
    " `torch.distributed.all_gather_into_tensor` is deprecated."
)


def _build(log: _Attempt) -> None:
    job, last = log.job, log.job.world_size - 1
    where = "(tensor, pipeline) model parallel rank (0, 0)"
    log.say(0, f" > number of parameters on {where}: {job.shape.parameters}")
    log.at("after model, optimizer, and learning rate scheduler are built", 2.75)
    log.say(0, "> building train, validation, and test datasets ...")
    log.say(0, "> finished creating GPT datasets ...")
    log.at("after dataloaders are built", 2.25)
    head = "INFO:megatron.core.timers:" if job.facts.fraction else ""
    log.say(last, f"{head}(min, max) time across ranks (ms):")
    log.say(last, "    model-and-optimizer-setup ......................: (2410.82, 2634.93)")
    log.say(0, "done with setup ...", "training ...")
    log.at("before the start of training step", 0.5)


def _train(log: _Attempt, iteration: int) -> None:
    job, last = log.job, log.job.world_size - 1
    log.when += dt.timedelta(seconds=step_seconds(job, iteration))
    if job.facts.framework == "bridge":
        log.say(0, step_line(job, iteration))
    log.say(last, iteration_line(job, iteration, log.when))
    if iteration > 1:
        return
    layers = job.shape.layers * job.shape.layer_parameters
    log.say(0, f"Number of parameters in transformer block in billions: {layers / 1e9:5.2f}")
    log.say(0, f"Total number of parameters in billions: {job.shape.parameters / 1e9:.2f}")
    log.say(0, "Theoretical memory footprints: weight and optimizer=57438.81 MB")
    for rank in range(job.cp):
        memory = f"allocated: {20511.5 + rank:.2f} | max allocated: 61240.25"
        tail = "reserved: 66012.00 | max reserved: 66012.00"
        log.say(rank, f"[Rank {rank}] (after 1 iterations) memory (MB) | {memory} | {tail}")


def _refuse(log: _Attempt) -> None:
    """All ranks raise; rank 0's stdout is flushed behind its stderr."""
    job = log.job
    log.when += dt.timedelta(seconds=21)
    for rank in range(job.world_size):
        head = f"[rank{rank}]: " if job.rejected == "decentralized" else ""
        log.err(rank, *(head + text for text in traceback_of(job)))
    if job.facts.framework == "megatron":
        log.say(0, start_line(job))


# Launchers ---------------------------------------------------------------------------------------


def omp_warning(job: Job) -> list[str]:
    head = f"W{job.start:%m%d %H:%M:%S}.480000 5220 torch/distributed/run.py:874] "
    stars = "*****************************************"
    text = (
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid"
        " your system being overloaded, please further tune the variable for optimal performance in"
        " your application as needed. "
    )
    return [head, head + stars, head + text, head + stars]


def elastic_failure(
    job: Job, node: int, code: int, local: int, at: dt.datetime | None
) -> list[str]:
    """torchrun's own words when the workers of one node fail."""
    api = "torch/distributed/elastic/multiprocessing/api.py"
    when = f"{(at or job.start) + dt.timedelta(seconds=2):%m%d %H:%M:%S}"
    pid = 17690 + 100 * node
    others = [n for n in range(job.ranks_per_node) if n != local]
    terms = [
        f"W{when}.515000 5220 {api}:1028] Sending process {pid + n} closing signal SIGTERM"
        for n in others
    ]
    failed = f"failed (exitcode: {code}) local_rank: {local} (pid: {pid + local})"
    return [*terms, f"E{when}.927000 5220 {api}:1002] {failed} of binary: /opt/venv/bin/python3"]


def elastic_table(job: Job, node: int, local: int, at: dt.datetime | None) -> list[str]:
    """The final failure table: every rank of the node left by itself, with exit code 1."""
    first = node * job.ranks_per_node
    pid, bar, rule = 17690 + 100 * node, "=" * 60, "-" * 60
    when = f"{(at or job.start) + dt.timedelta(seconds=2):%Y-%m-%d_%H:%M:%S}"

    def row(number: int, n: int) -> list[str]:
        return [
            f"[{number}]:",
            f"  time      : {when}",
            f"  host      : node{node}",
            f"  rank      : {first + n} (local_rank: {n})",
            f"  exitcode  : 1 (pid: {pid + n}) ",
            "  error_file: <N/A>",
            f"  traceback : {TO_ENABLE}",
        ]

    others = [n for n in range(job.ranks_per_node) if n != local]
    return [
        "Traceback (most recent call last):",
        '  File "/opt/venv/bin/torchrun", line 8, in <module>',
        "    sys.exit(main())",
        f'  File "{API}", line 383, in launch_agent',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        bar,
        "/opt/train/pretrain.py FAILED",
        rule,
        "Failures:",
        *(text for number, n in enumerate(others, 1) for text in row(number, n)),
        rule,
        "Root Cause (first observed failure):",
        *row(0, local),
        bar,
    ]


def _torchrun(job: Job, lines: Iterable[Line], node: int = 0) -> Iterator[Line]:
    """The ranks' lines of one node with torchrun's own lines between them."""
    yield from (Line(LAUNCHER, text, "stderr") for text in omp_warning(job))
    last = Line(LAUNCHER, "", when=job.start)
    for line in lines:
        if line.attempt != last.attempt:
            for text in elastic_failure(job, node, -9, 1, last.when):
                yield Line(LAUNCHER, text, "stderr", last.attempt)
        last = line
        yield line
    if job.rejected:
        local = min(2, job.ranks_per_node - 1)
        words = elastic_failure(job, node, 1, local, last.when)
        for text in words + elastic_table(job, node, local, last.when):
            yield Line(LAUNCHER, text, "stderr", last.attempt)


def _srun(job: Job, lines: Iterable[Line]) -> Iterator[Line]:
    attempt = 0
    for line in lines:
        if line.attempt != attempt:
            yield Line(LAUNCHER, "srun: error: node01: task 1: Killed", "stderr", attempt)
            attempt = line.attempt
        yield line
    if job.rejected:
        tasks = f"tasks 0-{job.world_size - 1}"
        yield Line(LAUNCHER, f"srun: error: node01: {tasks}: Exited with exit code 1", "stderr")


def _local(job: Job, line: Line) -> int:
    return line.rank % job.ranks_per_node


def _rank_files(job: Job, lines: Iterable[Line], top: str = "", salt: str = "9lrvz60f") -> Files:
    files: Files = {}
    ranks = {line.rank for line in lines if line.rank != LAUNCHER}
    for attempt in range(job.attempts):
        for rank in sorted(ranks):
            for stream in ("stdout", "stderr"):
                local = rank % job.ranks_per_node
                path = f"{top}logs/{RUN_ID}_{salt}/attempt_{attempt}/{local}/{stream}.log"
                files[path] = [
                    x.text
                    for x in lines
                    if (x.rank, x.stream, x.attempt) == (rank, stream, attempt)
                ]
    return files


def torchrun_tee(job: Job, lines: list[Line]) -> Files:
    """torchrun --log-dir logs --tee 3 2>&1 | tee console.log."""
    return _rank_files(job, lines) | {"console.log": _prefixed(job, _torchrun(job, lines))}


def console(job: Job, lines: list[Line]) -> Files:
    """Only the console of torchrun --tee 3: prefixes carry the local rank."""
    return {"console.log": _prefixed(job, _torchrun(job, lines))}


def redirects(job: Job, lines: list[Line]) -> Files:
    """torchrun --log-dir logs --redirects 3: the console holds torchrun's own lines only."""
    own = [line.text for line in _torchrun(job, lines) if line.rank == LAUNCHER]
    return _rank_files(job, lines) | {"console.log": own}


def nodes(job: Job, lines: list[Line]) -> Files:
    """Two nodes, each with its own torchrun: directories carry the local rank."""
    files: Files = {}
    for node, salt in enumerate(("k2xw_1pd", "u7ra0m3c")):
        mine = [x for x in lines if x.rank // job.ranks_per_node == node]
        files |= _rank_files(job, mine, f"node{node}/", salt)
        files[f"node{node}/console.log"] = _prefixed(job, _torchrun(job, mine, node))
    return files


def srun_label(job: Job, lines: list[Line]) -> Files:
    """srun --label, one task per GPU: the label is padded to the width of the last task."""
    width = len(str(job.world_size - 1))
    texts = [
        line.text if line.rank == LAUNCHER else f"{line.rank:>{width}}: {line.text}"
        for line in _srun(job, lines)
    ]
    return {f"slurm-{job.job_id}.out": texts}


def slurm_tasks(job: Job, lines: list[Line]) -> Files:
    """srun -o logs/job_%j_%t.log: one file per task, stdout and stderr together."""
    files: Files = {f"logs/job_{job.job_id}_{rank}.log": [] for rank in range(job.world_size)}
    for line in lines:
        files[f"logs/job_{job.job_id}_{line.rank}.log"].append(line.text)
    own = [line.text for line in _srun(job, lines) if line.rank == LAUNCHER]
    return files | ({f"slurm-{job.job_id}.out": own} if own else {})


def merged(job: Job, lines: list[Line]) -> Files:
    """torchrun without prefixes, everything in one file."""
    return {"train.log": [line.text for line in _torchrun(job, lines)]}


def _one_console(job: Job, lines: list[Line], heads: tuple[str, str]) -> list[str]:
    """The consoles of two nodes in one file, each line behind the name of its node."""
    return [
        heads[0 if line.rank == LAUNCHER else line.rank // job.ranks_per_node] + text
        for line, text in ((line, _prefixed(job, [line])[0]) for line in _torchrun(job, lines))
    ]


PODS: Final = ("pretrain-master-0", "pretrain-worker-0")


def pods(job: Job, lines: list[Line]) -> Files:
    """kubectl logs --prefix -l <labels of a PyTorchJob> > pods.log."""
    heads = (f"[pod/{PODS[0]}/pytorch] ", f"[pod/{PODS[1]}/pytorch] ")
    return {"pods.log": _one_console(job, lines, heads)}


def pod_files(job: Job, lines: list[Line]) -> Files:
    """kubectl logs <pod> > <pod>.log, for each pod of a PyTorchJob."""
    files: Files = {}
    for node, pod in enumerate(PODS):
        mine = [x for x in lines if x.rank // job.ranks_per_node == node]
        files[f"{pod}.log"] = _prefixed(job, _torchrun(job, mine, node))
    return files


def stern(job: Job, lines: list[Line]) -> Files:
    """stern --color always pretrain > stern.log: what follows the coloured names is as printed."""
    heads = tuple(
        f"\x1b[3{n + 2}m{pod}\x1b[0m \x1b[3{n + 2}mpytorch\x1b[0m " for n, pod in enumerate(PODS)
    )
    return {"stern.log": _one_console(job, lines, (heads[0], heads[1]))}


def role(job: Job, lines: list[Line]) -> Files:
    """torchrun --role rank --tee 3 on two nodes, as torchtitan's script calls it: local ranks."""
    files: Files = {}
    for node in (0, 1):
        mine = [x for x in lines if x.rank // job.ranks_per_node == node]
        files[f"node{node}/console.log"] = [
            line.text if line.rank == LAUNCHER else f"[rank{_local(job, line)}]:{line.text}"
            for line in _torchrun(job, mine, node)
        ]
    return files


def deepspeed(job: Job, lines: list[Line]) -> Files:
    """DeepSpeed --hostfile hosts pretrain.py: pdsh names the hosts, nothing names the ranks."""
    said = f"[{job.start:%Y-%m-%d %H:%M:%S},480] [INFO] [runner.py:568:main] cmd = /usr/bin/python3"
    words = "[INFO] [launch.py:315:sigkill_handler] Killing subprocess 17690"
    texts, attempt = [f"{said} -u -m deepspeed.launcher.launch --world_info=eyJ3b3JrZXItM"], 0
    for line in lines:
        if line.attempt != attempt:
            texts.append(f"worker-0: [{job.start:%Y-%m-%d %H:%M:%S},977] {words}")
            attempt = line.attempt
        texts.append(f"worker-{max(line.rank, 0) // job.ranks_per_node}: {line.text}")
    return {"train.log": texts}


def sbatch(job: Job, lines: list[Line]) -> Files:
    """Sbatch -o %x_%j.out -e %x_%j.err around srun: one file per stream."""
    made = list(_srun(job, lines))
    return {
        f"pretrain_{job.job_id}.{end}": [x.text for x in made if x.stream == stream]
        for end, stream in (("out", "stdout"), ("err", "stderr"))
    }


def pdsh(job: Job, lines: list[Line]) -> Files:
    """Pdsh -w gpu-node[01-02] torchrun ... > train.log."""
    return {"train.log": _one_console(job, lines, ("gpu-node01: ", "gpu-node02: "))}


def docker_compose(job: Job, lines: list[Line]) -> Files:
    """Docker compose logs > compose.log."""
    return {"compose.log": _one_console(job, lines, ("trainer-1  | ", "trainer-2  | "))}


def torchx(job: Job, lines: list[Line]) -> Files:
    """torchx log, or NeMo-Run's console: the end of the role's name, and the replica, in green."""
    heads = ("\x1b[32mhcp_ablate/0\x1b[0m ", "\x1b[32mhcp_ablate/1\x1b[0m ")
    return {"console.log": _one_console(job, lines, heads)}


def skypilot(job: Job, lines: list[Line]) -> Files:
    """Sky logs: two nodes, each line behind the name, the number and the address of its own."""
    heads = ("(head, rank=0, pid=3808)", "(worker1, rank=1, pid=2769, ip=10.0.0.12)")
    coloured = (f"\x1b[36m{heads[0]}\x1b[0m ", f"\x1b[36m{heads[1]}\x1b[0m ")
    return {"run.log": _one_console(job, lines, coloured)}


def mpirun(job: Job, lines: list[Line]) -> Files:
    """mpirun --tag-output, one process per GPU."""
    texts: list[str] = []
    attempt = 0
    for line in lines:
        if line.attempt != attempt:
            said = "mpirun noticed that process rank 1 with PID 5221 on node node01 exited on"
            texts.append(f"{said} signal 9 (Killed).")
            attempt = line.attempt
        texts.append(f"[1,{line.rank}]<{line.stream}>:{line.text}")
    return {"train.log": texts}


def slurm_nodes(job: Job, lines: list[Line]) -> Files:
    """srun -o logs/%x_%j_%n_%t.out: one file per task, its name says the node, too."""
    half = job.world_size // 2
    return {
        f"logs/pretrain_{job.job_id}_{rank // half}_{rank}.out": [
            line.text for line in lines if line.rank == rank
        ]
        for rank in range(job.world_size)
    }


def nemo_files(job: Job, lines: list[Line]) -> Files:
    """NeMo's experiment manager: one file per rank in the directory of its version."""
    return {
        f"exp/nemo_log_globalrank-{rank}_localrank-{rank % job.ranks_per_node}.txt": [
            line.text for line in lines if line.rank == rank
        ]
        for rank in range(job.world_size)
    }


def nemo_run(job: Job, lines: list[Line]) -> Files:
    """NeMo-Run on Slurm: a file per start of the job, and sbatch's own."""
    made = list(_torchrun(job, lines))
    files = {
        f"log-pretrain_{job.job_id}_{attempt}.out": _prefixed(
            job, [line for line in made if line.attempt == attempt]
        )
        for attempt in range(job.attempts)
    }
    return files | {f"sbatch_pretrain_{job.job_id}.out": ["srun: job 4711 queued", "srun: started"]}


def _prefixed(job: Job, lines: Iterable[Line]) -> list[str]:
    return [
        line.text if line.rank == LAUNCHER else f"[default{_local(job, line)}]:{line.text}"
        for line in lines
    ]


LAYOUTS: Final[dict[str, Callable[[Job, list[Line]], Files]]] = {
    "torchrun_tee": torchrun_tee,
    "console": console,
    "redirects": redirects,
    "nodes": nodes,
    "srun_label": srun_label,
    "slurm_tasks": slurm_tasks,
    "merged": merged,
    "torchx": torchx,
    "pods": pods,
    "stern": stern,
    "pdsh": pdsh,
    "docker_compose": docker_compose,
    "pod_files": pod_files,
    "mpirun": mpirun,
    "slurm_nodes": slurm_nodes,
    "nemo_files": nemo_files,
    "nemo_run": nemo_run,
    "role": role,
    "deepspeed": deepspeed,
    "sbatch": sbatch,
    "skypilot": skypilot,
}

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "torchrun_tee": ("torchrun_tee",),
    "console": ("console", "torchx", "pods", "stern", "pdsh", "docker_compose", "skypilot"),
    "redirects": ("redirects",),
    "nodes": ("nodes", "pod_files", "role"),
    "srun_label": ("srun_label", "mpirun"),
    "slurm_tasks": ("slurm_tasks", "slurm_nodes", "nemo_files"),
    "merged": ("merged", "nemo_run", "sbatch", "deepspeed"),
}
"""Every layout, with those that leave the same to be told: tests that cross layouts with other
things draw one of each group."""


def compose(job: Job, folder: Path, lines: list[Line] | None = None) -> Path:
    """Write the run directory of a job, or of its lines after someone changed them."""
    made = lines_of(job) if lines is None else lines
    for name, texts in LAYOUTS[job.layout](job, made).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return folder
