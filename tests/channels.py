"""Runtime channels, printed on top of composed logs, and the status that they allow.

`compose.Job` says what was configured; `Runtime` says what was switched on, in which versions, and
what attention really did. `with_channels` puts the lines of PyTorch's c10d, Transformer Engine, NCCL
and of forks where their producers print them; `allowed` derives the status from the lines that are
left over after cuts, crashes and Ray, by the combining table of docs/verdict.md and by nothing that
the program computes.

Line shapes: PyTorch 2.2 to main of 2026, Transformer Engine 1.8 to 2.15, NCCL 2.18 to 2.29, RCCL
2.20. Hosts, addresses, process ids and times are made up.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from compose import A2A_P2P, LAUNCHER, LAYOUTS, Line, cut, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from compose import Files, Job

L0: Final = "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0"
L1: Final = "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1"
FLAT: Final = "CONTEXT_PARALLEL_GROUP"

Attention: TypeAlias = Literal["hierarchical", "flat", "off", "alone"]
"""What attention of one rank did: over both levels, over one group, over no group although CP > 1,
or without context parallelism because nobody asked for it."""


@dataclass(frozen=True, slots=True)
class Said(Line):
    """A line of a runtime channel, with what it says in machine-readable words."""

    kind: Literal["created", "opened", "eager", "failed", "te", "unfused", "printed", "other"] = (
        "other"
    )
    group: str = ""
    "Description of the group, empty where the line carries none."

    context_parallel: bool = False
    comm_type: str | None = None
    training: bool = True
    layer: str = ""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What was switched on, and what attention really did."""

    c10d: Literal["", "nccl", "gloo"] = ""
    "TORCH_CPP_LOG_LEVEL=INFO, with this backend."

    torch: str = "2.8"
    "2.2, 2.3, 2.4, 2.5, 2.6, 2.7, 2.8 or main."

    glog: Literal["", "plain", "year"] = ""
    eager: bool = False
    "`init_process_group(device_id=…)`: every group opens when it is created."

    described: bool | None = None
    "Megatron-Core passes descriptions (0.11 and later); None: as the stack does."

    hybrid: bool = False
    "HYBRID_DP_CP_GROUP_n exist: another feature."

    te: str = ""
    "Version of Transformer Engine whose debug lines are on."

    te_level: Literal[1, 2] = 2
    te_head: Literal["", "root", "own"] = ""
    "Root handler's head or Transformer Engine's own; empty: as the stack has it."

    layout: Literal["sbhd", "thd"] = "sbhd"
    evaluation: bool = False
    "Evaluation runs without CP and prints entries of its own."

    vision: bool = False
    "A vision tower runs without CP."

    repeats: int = 1
    "Transformer Engine has one cache slot: the same entry may be printed again and again."

    nccl: str = ""
    "NCCL_DEBUG=INFO with this version: 2.18, 2.21, 2.23, 2.27, 2.29 or rccl."

    prints: tuple[str, ...] = ()
    "Lines that a fork or a wrapper prints by hand on rank 0, behind the set-up."

    watchdog: Literal["", "L0", "L1", "flat"] = ""
    "The group on which a collective timed out at the end, on rank 1."

    off: frozenset[int] | None = None
    "Ranks whose attention gets no group; None: what the stack makes of the job."

    on: bool = False
    "Attention runs over hierarchical groups whatever the configuration says."

    one_level: frozenset[int] = frozenset()
    "Ranks that never open the outer level."

    quiet: frozenset[int] = frozenset()
    "Ranks on which nothing was switched on."

    dies: bool = False
    "The job stops inside the first attention: the inner level is open, no iteration finished."

    late: bool = False
    "Only the last attempt had the channels switched on."


# Truth -------------------------------------------------------------------------------------------


def attention(job: Job, runtime: Runtime, rank: int) -> Attention:
    if runtime.on:
        return "hierarchical"
    off = runtime.off
    if job.cp > 1 and (job.cp_off if off is None else rank in off):
        return "off"
    if job.cp == 1:
        return "alone"
    return "hierarchical" if job.hierarchical and not (job.sizes and 1 in job.sizes) else "flat"


def described(job: Job, runtime: Runtime) -> bool:
    """Megatron-Core hands its group names to PyTorch."""
    if runtime.described is not None:
        return runtime.described
    return job.stack != "megatron-0.10"


@dataclass(frozen=True, slots=True)
class Group:
    """A process group; `guid` is torch's running number of groups."""

    name: str
    guid: int
    ranks: tuple[int, ...]


def levels(job: Job) -> tuple[int, ...]:
    """Sizes of the hierarchical levels; a job that runs without any gets two."""
    return job.sizes or (job.cp // 2, 2)


def groups(job: Job, runtime: Runtime) -> list[Group]:
    """Every process group of the job, in the order in which parallel_state makes them."""
    world = range(job.world_size)
    blocks = [tuple(range(first, first + job.cp)) for first in range(0, job.world_size, job.cp)]
    flat = [("default_pg", tuple(world))]
    flat += [
        ("DATA_PARALLEL_GROUP", tuple(range(first, job.world_size, job.cp)))
        for first in range(job.cp)
    ]
    flat.append(("DATA_PARALLEL_GROUP_WITH_CP", tuple(world)))
    if runtime.hybrid:
        flat += [
            ("HYBRID_DP_CP_GROUP_4", tuple(world)[n : n + 4]) for n in range(0, job.world_size, 4)
        ]
    flat += [(FLAT, block) for block in blocks]
    if (job.sizes and not job.decentralized) or runtime.on:
        inner, outer = levels(job)[:2]
        flat += [
            (L0, block[first : first + inner])
            for block in blocks
            for first in range(0, job.cp, inner)
        ]
        flat += [
            (L1, block[first : first + inner * outer : inner])
            for block in blocks
            for first in range(inner)
        ]
    flat += [("TENSOR_MODEL_PARALLEL_GROUP", (rank,)) for rank in world]
    flat += [("TENSOR_AND_CONTEXT_PARALLEL_GROUP", block) for block in blocks]
    # Every second number is a gloo twin or a group of size one that nobody logs.
    return [Group(name, 2 * n if n else 0, ranks) for n, (name, ranks) in enumerate(flat)]


def opened(job: Job, runtime: Runtime, rank: int) -> set[str]:
    """Names of the groups whose communicators a rank opens until its first step ends."""
    does = attention(job, runtime, rank)
    names = {"default_pg", "DATA_PARALLEL_GROUP_WITH_CP", "TENSOR_MODEL_PARALLEL_GROUP"}
    if job.cp > 1:
        names.add("TENSOR_AND_CONTEXT_PARALLEL_GROUP")
    if runtime.hybrid:
        names.add("HYBRID_DP_CP_GROUP_4")
    if does == "hierarchical":
        names |= {L0} if runtime.dies or rank in runtime.one_level else {L0, L1}
        names.add(FLAT)  # rope, packing and the loss use the flat group too
    elif does == "flat":
        if job.hierarchical and job.sizes and 1 in job.sizes:
            names.add(L1 if job.sizes[0] == 1 else L0)
        else:
            names.add(FLAT)
    return names


# c10d --------------------------------------------------------------------------------------------

C10D_LINES: Final = {"options": 979, "opened": 2774, "comm": 2856, "debug": 2863, "eager": 3361}


def c10d_head(job: Job, runtime: Runtime, rank: int, where: int, level: str = "I") -> str:
    """What libc10 puts in front; the nine digits are no wall clock."""
    when = job.start
    digits = zlib.crc32(f"{rank}/{where}".encode()) % 10**9
    if runtime.glog:
        day = f"{when:%Y%m%d}" if runtime.glog == "year" else f"{when:%m%d}"
        clock = f"{when:%H:%M:%S}.{digits // 1000:06d}"
        return f"{level}{day} {clock} {58620 + rank} ProcessGroupNCCL.cpp:{where}] "
    if runtime.torch == "2.2":
        return f"[{level} ProcessGroupNCCL.cpp:{where}] "
    day = f"{when.month * 100 + when.day}"
    return f"[rank{rank}]:[{level}{day} {when:%H:%M:%S}.{digits:09d} ProcessGroupNCCL.cpp:{where}] "


def c10d_group(runtime: Runtime, group: Group, number: int, rank: int, name: str = "") -> str:
    """The log prefix of a process group; `name` once it is known."""
    local = group.ranks.index(rank)
    if runtime.torch == "2.2":
        return f"[Rank {local}] "
    if runtime.torch == "2.3":
        return f"[PG {group.guid} Rank {local}] "
    if runtime.torch == "2.4":
        return (
            f"[PG {group.guid} ({name}) Rank {local}] "
            if name
            else f"[PG {group.guid} Rank {local}] "
        )
    tail = f"({name})" if name else ""
    return f"[PG ID {number} PG GUID {group.guid}{tail} Rank {local}] "


def printed_name(job: Job, runtime: Runtime, group: Group) -> str:
    """The description that a line can carry: torch names the default group by itself."""
    if runtime.torch in {"2.2", "2.3"}:
        return ""
    known = described(job, runtime) and not job.decentralized
    return group.name if known or group.name == "default_pg" else ""


def created_line(job: Job, runtime: Runtime, group: Group, number: int, rank: int) -> str:
    head = c10d_head(job, runtime, rank, C10D_LINES["options"])
    text = c10d_group(runtime, group, number, rank) + "ProcessGroupNCCL initialization options: "
    options = f"size: {len(group.ranks)}, global rank: {rank}, TIMEOUT(ms): 600000, USE_HIGH_PRIORITY_STREAM: 0"
    if runtime.torch in {"2.2", "2.3"}:
        return f"{head}{text}NCCL version: 2.19.3, {options}, TORCH_DISTRIBUTED_DEBUG: OFF, ID={94216 + number}"
    return f"{head}{text}{options}, SPLIT_FROM: 0, SPLIT_COLOR: {-1 if group.guid else 0}, PG Name: {group.guid}"


def environment_line(job: Job, runtime: Runtime, group: Group, number: int, rank: int) -> str:
    head = c10d_head(job, runtime, rank, C10D_LINES["options"] + 9)
    values = (
        "NCCL version: 2.27.5, TORCH_NCCL_ASYNC_ERROR_HANDLING: 3, TORCH_NCCL_ENABLE_TIMING: 0,"
        " TORCH_NCCL_BLOCKING_WAIT: 0, TORCH_DISTRIBUTED_DEBUG: OFF, TORCH_NCCL_NAN_CHECK: 0"
    )
    place = c10d_group(runtime, group, number, rank)
    return f"{head}{place}ProcessGroupNCCL environments: {values}"


def opened_lines(
    job: Job, runtime: Runtime, group: Group, number: int, rank: int, *, raw: bool = False
) -> list[str]:
    """The lines of a communicator that opens; `raw` writes the device as a control byte."""
    place = c10d_group(runtime, group, number, rank, printed_name(job, runtime, group))

    def line(where: str, text: str) -> str:
        return c10d_head(job, runtime, rank, C10D_LINES[where]) + place + text

    took = "all-gather unique IDs" if len(group.ranks) > 128 else "broadcast unique ID"
    out = [line("opened", f"ProcessGroupNCCL {took} through store took 0.0{93 + number} ms")]
    if runtime.torch in {"2.2", "2.3", "2.4", "2.5", "2.6"}:
        device = chr(rank) if raw else str(rank)
        address = f"0x{comm_address(group, rank):x}"
        out.append(
            line("comm", f"ProcessGroupNCCL created ncclComm_ {address} on CUDA device: {device}")
        )
    if runtime.torch not in {"2.2", "2.3"}:
        out.append(line("debug", "NCCL_DEBUG: N/A" if not runtime.nccl else "NCCL_DEBUG: INFO"))
    if runtime.torch in {"2.6", "2.7", "2.8", "main"}:
        out.append(line("debug", "Using non-blocking mode: 0"))
    return out


def comm_address(group: Group, rank: int) -> int:
    return 0x55D0C0000000 + 0x10000 * group.guid + 0x40 * rank


def watchdog_lines(job: Job, runtime: Runtime, group: Group, number: int, rank: int) -> list[str]:
    """A collective that timed out, at the default level, with the description of its group."""
    place = c10d_group(runtime, group, number, rank, printed_name(job, runtime, group))
    local = group.ranks.index(rank)
    operation = "ALLTOALL_BASE" if group.name == L0 else "COALESCED"
    caught = (
        f"[Rank {local}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812,"
        f" OpType={operation}, NumelIn=33554432, NumelOut=33554432, Timeout(ms)=600000) ran for"
        " 600012 milliseconds before timing out."
    )
    state = (
        " failure detected by watchdog at work sequence id: 812 PG status: last enqueued work: 815,"
        " last completed work: 811"
    )
    if runtime.torch in {"2.4", "2.5"}:
        state = (
            "Exception (either an error or timeout) detected by watchdog at work: 812, last enqueued"
            " NCCL work: 815, last completed NCCL work: 811."
        )
    return [
        c10d_head(job, runtime, rank, 683, "E") + caught,
        c10d_head(job, runtime, rank, 2241, "E") + place + state,
        c10d_head(job, runtime, rank, 1984, "E")
        + place
        + f"Process group watchdog thread terminated with exception: {caught}",
    ]


def gloo_lines(rank: int) -> list[str]:
    """INFO with gloo: sockets and the store, and no word of groups."""
    head = f"[I301 09:12:4{rank % 10}.200300400"
    return [
        f"{head} TCPStore.cpp:298] [c10d - debug] The server has started on port = 29500.",
        f"{head} socket.cpp:778] [c10d] The client socket has connected to [localhost]:29500 on"
        f" [localhost]:4{rank:04d}.",
    ]


def c10d(job: Job, runtime: Runtime, rank: int) -> tuple[list[Said], list[Said]]:
    """What one rank prints at set-up and in its first step."""
    first: list[Said] = []
    then: list[Said] = []
    if runtime.c10d == "gloo":
        return [Said(rank, text, "stderr") for text in gloo_lines(rank)], []
    names = opened(job, runtime, rank)
    mine = [group for group in groups(job, runtime) if rank in group.ranks]
    for number, group in enumerate(mine):
        text = created_line(job, runtime, group, number, rank)
        first.append(Said(rank, text, "stderr", kind="created"))
        if runtime.torch not in {"2.2", "2.3"} and (not number or runtime.torch != "main"):
            text = environment_line(job, runtime, group, number, rank)
            first.append(Said(rank, text, "stderr"))
        name = printed_name(job, runtime, group)
        if runtime.eager and runtime.torch not in {"2.2", "2.3"}:
            head = c10d_head(job, runtime, rank, C10D_LINES["eager"])
            text = f"Eagerly connecting nccl backend with device cuda:{rank}"
            place = c10d_group(runtime, group, number, rank)
            first.append(Said(rank, head + place + text, "stderr", kind="eager"))
        elif group.name not in names:
            continue
        raw = runtime.torch == "2.4" and bool(runtime.glog)
        texts = opened_lines(job, runtime, group, number, rank, raw=raw)
        early = runtime.eager or group.name == "default_pg"
        (first if early else then).extend(
            Said(rank, text, "stderr", kind="opened", group=name) for text in texts
        )
    return first, then


# Transformer Engine ------------------------------------------------------------------------------

TE_FULL: Final = {"1.8": "1.8.0", "1.9": "1.9.0", "1.13": "1.13.0+e5edd6c"}


def te_number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def te_config(
    version: str,
    *,
    context_parallel: bool,
    comm_type: str,
    cp_size: int,
    seq: int,
    training: bool = True,
    heads: int = 32,
    kv_heads: int = 8,
    head_dim: int = 128,
    layout: str = "sbhd",
) -> str:
    """`Running with config={…}`: a Python dict, printed; keys as the version has them."""
    number = te_number(version)
    tensor = layout == "thd" and number >= (2, 14)
    length = f"tensor({min(seq, 5743)}, dtype=torch.int32)" if tensor else f"{seq}"
    pairs = [
        ("transformer_engine_version", repr(TE_FULL.get(version, f"{version}.0+abcdef1"))),
        ("compute_capability", "'sm90'"),
        ("flash_attn_version", "'2.8.1'" if number >= (2, 0) else "'2.6.3'"),
        ("flash_attn_3_version", "'not installed'"),
        ("cudnn_version", "'9.13.0'"),
        ("qkv_type", "<class 'torch.Tensor'>"),
        ("qkv_dtype", "torch.bfloat16"),
        ("qkv_layout", repr("_".join([layout] * 3))),
        ("batch_size", "1"),
        ("num_heads", f"{heads}"),
        ("num_gqa_groups", f"{kv_heads}"),
        ("max_seqlen_q", length),
        ("max_seqlen_kv", length),
    ]
    if number >= (1, 13):
        pairs += [("head_dim_qk", f"{head_dim}"), ("head_dim_v", f"{head_dim}")]
    else:
        pairs += [("head_dim", f"{head_dim}")]
    pairs += [
        ("attn_mask_type", "'padding_causal'" if layout == "thd" else "'causal'"),
        ("window_size", "(-1, 0)"),
    ]
    if number >= (2, 14):
        pairs.append(("bottom_right_diagonal", "False"))
    pairs += [
        ("alibi_slopes_shape", "None"),
        ("core_attention_bias_type", "'no_bias'"),
        ("core_attention_bias_shape", "None"),
        ("core_attention_bias_requires_grad", "False"),
        ("pad_between_seqs", "False"),
        ("attention_dropout", "0.0"),
        ("context_parallel", f"{context_parallel}"),
    ]
    if number >= (2, 8):
        pairs.append(("cp_comm_type", repr(comm_type)))
    if number >= (2, 15):
        pairs.append(("cp_size", f"{cp_size}"))
    pairs += [
        ("deterministic", "False"),
        ("is_training", f"{training}"),
        ("fp8", "False"),
        ("fp8_meta", "{'fp8_checkpoint': False, 'fp8_group': None}"),
    ]
    if number >= (2, 8):
        pairs += [("inference_params", "None"), ("softmax_type", "'vanilla'")]
    if number >= (2, 9):
        pairs.append(("return_max_logit", "False"))
    return "Running with config={" + ", ".join(f"{key!r}: {value}" for key, value in pairs) + "}"


def te_head(job: Job, runtime: Runtime) -> Callable[[str, str], str]:
    """How a record of a level looks: root's handler, or Transformer Engine's own."""
    own = runtime.te_head == "own" or (
        not runtime.te_head and job.stack in {"bridge-0.2", "bridge-0.3"}
    )
    if own:
        return lambda level, text: f"[{level:<8} | {'DotProductAttention':<19}]: {text}"
    return lambda level, text: f"{level}:DotProductAttention:{text}"


def te_lines(job: Job, runtime: Runtime, rank: int) -> list[Said]:
    """What Transformer Engine prints in the first step of one rank."""
    head = te_head(job, runtime)
    stream: Literal["stdout", "stderr"] = (
        "stderr" if head("DEBUG", "").startswith("[") else "stdout"
    )
    running = Said(
        rank, head("INFO", "Running with FusedAttention backend (sub-backend 1)"), stream
    )
    if runtime.te_level == 1:
        return [running] * runtime.repeats
    does = attention(job, runtime, rank)
    cp_on = does in {"hierarchical", "flat"}
    comm = job.comm_type or "p2p"

    def entry(
        *, on: bool, comm_type: str, training: bool = True, heads: int = 32, kv_heads: int = 8
    ) -> list[Said]:
        seq = job.shape.seq if on or job.cp == 1 else job.shape.seq // job.cp
        text = te_config(
            runtime.te,
            context_parallel=on,
            comm_type=comm_type,
            cp_size=job.cp if on else 1,
            seq=seq,
            training=training,
            heads=heads,
            kv_heads=kv_heads,
            layout=runtime.layout,
        )
        printed = comm_type if te_number(runtime.te) >= (2, 8) else None
        first = Said(
            rank,
            head("DEBUG", text),
            stream,
            kind="te",
            context_parallel=on,
            comm_type=printed,
            training=training,
            layer=f"{heads}",
        )
        texts = ["Disabling FlashAttention as FusedAttention is preferred"]
        if on:
            texts.append(
                "Disabling UnfusedDotProductAttention as it does not support context parallelism"
            )
        texts += [
            "Available backends = {FlashAttention=False, FusedAttention=True (sub-backend 1),"
            f" UnfusedDotProductAttention={not on}}}",
            "Selected backend = FusedAttention (sub-backend 1)",
        ]
        return [first, *(Said(rank, head("DEBUG", text), stream) for text in texts), running]

    out: list[Said] = []
    for turn in range(runtime.repeats):
        if runtime.vision:
            out += entry(on=False, comm_type="p2p", heads=16, kv_heads=16)
        out += entry(on=cp_on, comm_type=comm)
        if runtime.evaluation and turn == runtime.repeats - 1:
            out += entry(on=False, comm_type=comm, training=False)
    return out


# NCCL --------------------------------------------------------------------------------------------


def pairs_of_a_ring(ranks: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The pair communicators that plain send and receive open around a ring."""
    return [tuple(sorted((a, b))) for a, b in zip(ranks, (*ranks[1:], ranks[0]), strict=True)]


def communicators(job: Job, runtime: Runtime) -> list[tuple[int, ...]]:
    """Members of each communicator, each once, in the order of opening."""
    out: list[tuple[int, ...]] = [tuple(range(job.world_size))]
    blocks = [tuple(range(first, first + job.cp)) for first in range(0, job.world_size, job.cp)]
    for block in blocks:
        does = attention(job, runtime, block[0])
        if does == "flat":
            out += pairs_of_a_ring(block)
        elif does == "hierarchical":
            inner = levels(job)[0]
            out += [block[first : first + inner] for first in range(0, job.cp, inner)]
            for first in range(inner):
                out += pairs_of_a_ring(block[first::inner])
    return list(dict.fromkeys(out))


def nccl_lines(job: Job, runtime: Runtime, rank: int) -> list[Said]:
    version = runtime.nccl
    pid, bus = 41020 + rank, f"{0x1B + 0x10 * rank:x}000"
    head = f"node07:{pid}:{pid + 888} [{rank}] NCCL INFO "
    name = (
        "RCCL version 2.20.5+hip6.2 Unknown"
        if version == "rccl"
        else f"NCCL version {version}.3+cuda12.9"
    )
    texts = [f"node07:{pid}:{pid} [{rank}] NCCL INFO {name}"]
    function = "" if version in {"2.18", "rccl"} else "ncclCommInitRankConfig "
    for number, members in enumerate(communicators(job, runtime)):
        if rank not in members:
            continue
        local, size = members.index(rank), len(members)
        comm = (
            f"comm 0x{0x55D0C1000000 + 0x1000 * number + 0x40 * rank:x} rank {local} nranks {size}"
        )
        device = f"cudaDev {rank}" + ("" if version == "rccl" else f" nvmlDev {rank}")
        ident = f"0x{zlib.crc32(repr(members).encode()):08x}1188aa0b"
        split = number == 0 or version not in {"2.23", "2.27", "2.29"} or size != 2
        if split:
            body = f"{function}{comm} {device} busId {bus} commId {ident} - Init "
            start, end = f"{body}START", f"{body}COMPLETE"
        else:
            count = (
                ""
                if version == "2.23"
                else f" {'childCount' if version == '2.29' else 'splitCount'} 1"
            )
            body = f"ncclCommSplit {comm} {device} busId {bus} parent 0x55d0c1000000{count} color {members[0] + 7} key {local}"
            start, end = f"{body}- Init START", f"{body} - Init COMPLETE"
        texts.append(head + (f"[Rank {local}] {start}" if version == "2.29" else start))
        if version != "2.18":
            texts.append(
                f"{head}{comm.replace('nranks', 'nRanks')} nNodes 1 localRanks {size} localRank {local} MNNVL 0"
            )
        texts.append(head + end)
    return [Said(rank, text) for text in texts]


# What forks and wrappers print -------------------------------------------------------------------

PLURAL: Final = "HIERARCHICAL_CONTEXT_PARALLEL_GROUPS"
CREATED: Final[dict[str, tuple[str, ...]]] = {
    "plural": (f"> {PLURAL} created",),
    "plural-with-sizes": (f"> {FLAT} created", f"> {PLURAL} created: sizes [4, 2]"),
    "levels": (
        f"{L0} was created with ranks [0, 1]",
        f"{L1} was created with ranks [0, 2]",
    ),
    "logger": (f"INFO:fork.parallel_state:{PLURAL} were created",),
}
"""Lines that say that the groups were made."""

ONLY_FLAT: Final = (
    "> DATA_PARALLEL_GROUP created",
    "> TENSOR_MODEL_PARALLEL_GROUP created",
    f"> {FLAT} created",
)
NEGATIVE: Final = (
    f"WARNING: {PLURAL} not created",
    f"{PLURAL} was not created",
    f"{PLURAL} have never been created",
    f"To verify, look for {PLURAL} being created in the rank logs",
    f"You should see {PLURAL} created when HCP is on",
    f"{PLURAL} missing: nothing was created",
    f"if {PLURAL} were created, the job would be slower",
    f"prompt: explain when {PLURAL} are created",
    f'{{"role": "user", "content": "my log says {PLURAL} created, is HCP on?"}}',
    f"+ grep -c '{PLURAL} created' train.log",
    f"  expected_log_line ............................... {PLURAL} created",
    (
        "['Traceback (most recent call last):\\n', '  File \"/opt/fork/groups.py\", line 9, in make\\n',"
        f" 'RuntimeError: {PLURAL} created twice\\n']"
    ),
)
"""Lines that hold the words and say nothing."""

LAUNCH: Final = (
    "+ export NVTE_DEBUG=1",
    "+ NVTE_DEBUG=1",
    "+ export TORCH_CPP_LOG_LEVEL=INFO",
)


def launch_lines(job: Job) -> list[str]:
    """What `set -x` leaves of the job script: exports and the whole command line."""
    words = [f"+ torchrun --nproc-per-node {job.ranks_per_node} --tee 3"]
    if job.facts.framework == "megatron":
        words.append(f"pretrain_gpt.py --num-layers 32 --context-parallel-size {job.cp}")
        if job.comm_type:
            words.append(f"--cp-comm-type {job.comm_type}")
        if job.sizes:
            sizes = " ".join(map(str, job.sizes))
            words.append(f"--hierarchical-context-parallel-sizes {sizes}")
        words.append(f"--train-iters {job.planned or job.iterations}")
    else:
        words.append(f"run_recipe.py model.context_parallel_size={job.cp}")
        if job.comm_type:
            words.append(f"model.cp_comm_type={job.comm_type}")
        if job.sizes:
            sizes = ",".join(map(str, job.sizes))
            words.append(f"'model.hierarchical_context_parallel_sizes=[{sizes}]'")
        words.append(f"train.train_iters={job.planned or job.iterations}")
    return [*LAUNCH, " ".join(words)]


# A whole run -------------------------------------------------------------------------------------

SET_UP: Final = "> setting random seeds to 1234 ..."
TRAINING: Final = "[before the start of training step]"


def with_channels(job: Job, runtime: Runtime, *, launch: bool = False) -> list[Line]:
    """The lines of the job with those of its channels between them, cut where the job says so."""
    made: list[Line] = []
    for line in lines_of(replace(job, cut_after=None)):
        if line.text == SET_UP:
            made += _at(line, _set_up(job, runtime, line.attempt))
        made.append(line)
        if line.text.startswith(TRAINING):
            made += _at(line, _first_step(job, runtime, line.attempt))
            if runtime.dies:
                break
    if runtime.watchdog and not job.rejected:
        name = {"L0": L0, "L1": L1, "flat": FLAT}[runtime.watchdog]
        mine = [group for group in groups(job, runtime) if 1 in group.ranks]
        number, group = next((n, x) for n, x in enumerate(mine) if x.name == name)
        texts = watchdog_lines(job, runtime, group, number, 1)
        known = printed_name(job, runtime, group)
        made = [x for x in made if not x.text.startswith("[after training is done]")]
        said = [
            Said(1, text, "stderr", kind="failed", group=known if n else "")
            for n, text in enumerate(texts)
        ]
        made += _at(made[-1], said)
    made = cut(job, made)
    if launch:
        made = [Line(LAUNCHER, text, "stderr") for text in launch_lines(job)] + made
    return made


def _at(anchor: Line, lines: Iterable[Said]) -> list[Said]:
    return [replace(line, attempt=anchor.attempt, when=anchor.when) for line in lines]


def _on(job: Job, runtime: Runtime, attempt: int) -> list[int]:
    if runtime.late and attempt != job.attempts - 1:
        return []
    return [rank for rank in range(job.world_size) if rank not in runtime.quiet]


def _set_up(job: Job, runtime: Runtime, attempt: int) -> list[Said]:
    out: list[Said] = []
    if runtime.c10d:
        for rank in _on(job, runtime, attempt):
            out += c10d(job, runtime, rank)[0]
    return out + [_hand_printed(text) for text in runtime.prints]


def _hand_printed(text: str) -> Said:
    if any(text in texts for texts in CREATED.values()) and "HIERARCHICAL" in text:
        return Said(0, text, kind="printed", group=PLURAL)
    return Said(0, text, kind="printed" if text in ONLY_FLAT else "other", group=FLAT)


def _first_step(job: Job, runtime: Runtime, attempt: int) -> list[Said]:
    out: list[Said] = []
    for rank in _on(job, runtime, attempt):
        if runtime.nccl:
            out += nccl_lines(job, runtime, rank)
        if runtime.te:
            out += te_lines(job, runtime, rank)
        if runtime.c10d:
            out += c10d(job, runtime, rank)[1]
    return out


# Ray ---------------------------------------------------------------------------------------------

RAY_HINT: Final = (
    " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see"
    " https://docs.ray.io/en/master/ray-observability/user-guides/configure-logging.html"
    "#log-deduplication for more options.)"
)


def deduplicated(lines: list[Line]) -> list[Line]:
    """What Ray's driver shows: a line that several workers print within one window comes once.

    Ray compares lines without the words that hold a digit, so lines of different groups count as
    one too. A worker that repeats its own line is not silenced.
    """
    out: list[Line] = []
    sources: dict[str, set[int]] = defaultdict(set)
    held: dict[str, tuple[int, Line]] = {}
    window = None
    hinted = False

    def flush() -> Iterator[Line]:
        nonlocal hinted
        for count, line in held.values():
            if count == 1:
                yield line
                continue
            tail = f" [repeated {count}x across cluster]" + ("" if hinted else RAY_HINT)
            hinted = True
            yield replace(line, text=line.text + tail)
        held.clear()
        sources.clear()

    for line in lines:
        if line.rank == LAUNCHER:
            out.append(line)
            continue
        if line.when != window:
            out += flush()
            window = line.when
        key = " ".join(word for word in line.text.split() if not any(map(str.isdigit, word)))
        sources[key].add(line.rank)
        if len(sources[key]) > 1:
            held[key] = (held.get(key, (0, line))[0] + 1, line)
        else:
            out.append(line)
    return out + list(flush())


def ray(job: Job, lines: list[Line]) -> Files:
    """The driver's log: every worker's lines behind its name and rank."""

    def head(rank: int) -> str:
        actor = f"(MegatronTrainRayActor[rank={rank}] pid={3098840 + rank}, ip=10.0.0.5)"
        return f"\x1b[36m{actor}\x1b[0m "

    own = [line.text if line.rank == LAUNCHER else head(line.rank) + line.text for line in lines]
    return {"ray-driver.log": own}


# The status that the printed lines allow -----------------------------------------------------------


MEASURED: Final = frozenset({"te_debug", "c10d"})
"""Channels that beat the configuration where grades are equal."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence, as docs/verdict.md grades it; rank None counts as any."""

    says: Literal["active", "inactive"]
    grade: Literal["A", "B"]
    rank: int | None
    channel: str
    layer: str = ""


@dataclass(frozen=True, slots=True)
class Visible:
    """What the configuration lines that are left tell."""

    complete: bool
    comm_type: bool
    sizes: bool
    cp: bool


def visible(job: Job, lines: Iterable[Line]) -> Visible:
    texts = [line.text for line in lines if line.rank == 0 and not isinstance(line, Said)]
    start = any(text.startswith("using world size") for text in texts)
    ends = {
        "args": "end of arguments",
        "task_yaml": "-" * 34,
        "yaml": "  train_iters:",
        "summary": "[rng]:",
    }
    complete = any(ends[block] in text for block in job.facts.blocks for text in texts)
    return Visible(
        complete,
        complete or any(text.strip().startswith("cp_comm_type") for text in texts),
        complete or start or any("hierarchical_context_parallel_sizes" in text for text in texts),
        complete
        or start
        or any(text.strip().startswith(f"context_parallel_size: {job.cp}") for text in texts),
    )


def allowed(
    job: Job, runtime: Runtime, lines: list[Line], *, dedup: bool = False
) -> frozenset[str]:
    """Statuses that docs/verdict.md allows for the last attempt; more than one only where the
    configuration is cut off so that it depends on how much is read into what is left."""
    if job.rejected:
        return frozenset({"rejected"})
    last = [line for line in lines if line.attempt == job.attempts - 1]
    seen = visible(job, last)
    finished = not runtime.dies
    asks = seen.comm_type and job.hierarchical
    if seen.complete and not job.hierarchical:
        off = bool(job.sizes) and finished and job.cp > 1
        return frozenset({"inactive" if off else "not_requested"})
    pieces = _evidence(job, runtime, [x for x in last if isinstance(x, Said)], seen, dedup=dedup)
    pieces += _configured_off(job, seen, finished=finished)
    status = _combine(pieces)
    one = bool(job.sizes) and 1 in (job.sizes or ())
    if asks and one and (seen.sizes or seen.complete) and status in {"", "active"}:
        return frozenset({"degenerate"} if seen.complete else {"degenerate", "inconclusive"})
    leaning = {(piece.channel, piece.grade) for piece in pieces} == {("te_debug", "B")}
    if status == "active" and leaning and not seen.complete:
        # Transformer Engine before 2.8 leans on a configuration that is cut off.
        return frozenset({"active", "inconclusive"})
    if status:
        return frozenset({status})
    if seen.complete and asks and finished:
        return frozenset({"unconfirmed"})
    return frozenset({"inconclusive"})


def _configured_off(job: Job, seen: Visible, *, finished: bool) -> list[Piece]:
    if not finished or not job.hierarchical or not (seen.comm_type and seen.cp):
        return []
    if job.decentralized:
        return [Piece("inactive", "A", None, "path")]
    return [Piece("inactive", "A", None, "config")] if seen.complete and not job.sizes else []


def _evidence(
    job: Job, runtime: Runtime, said: list[Said], seen: Visible, *, dedup: bool
) -> list[Piece]:
    finished = not runtime.dies
    asks = seen.comm_type and job.hierarchical
    size_one = bool(job.sizes) and 1 in (job.sizes or ())
    opened_on: dict[int, set[str]] = defaultdict(set)
    unnamed: set[int] = set()
    created: set[int] = set()
    eager = any(line.kind == "eager" for line in said)
    for line in said:
        if line.kind == "opened" and line.group:
            opened_on[line.rank].add(line.group)
        elif line.kind == "opened":
            unnamed.add(line.rank)
        elif line.kind == "created":
            created.add(line.rank)
    both_open = not eager and any({L0, L1} <= names for names in opened_on.values())
    sizes_known = (seen.sizes and bool(job.sizes)) or both_open
    pieces: list[Piece] = []
    for rank, names in opened_on.items():
        hierarchical = names & {L0, L1}
        if eager and hierarchical:
            continue
        if hierarchical == {L0, L1}:
            pieces.append(Piece("active", "A", rank, "c10d"))
        elif dedup or not finished:
            continue
        elif hierarchical:
            if sizes_known and not size_one:
                pieces += [
                    Piece("active", "B", rank, "c10d", "inner"),
                    Piece("inactive", "B", rank, "c10d", "outer"),
                ]
        elif asks and rank not in unnamed and names - {"default_pg"}:
            pieces.append(Piece("inactive", "B", rank, "c10d"))
    pieces += _te_evidence(job, said, seen, sizes_known=sizes_known)
    for line in said:
        if line.kind == "failed" and line.group in {L0, L1} and finished:
            pieces.append(Piece("active", "B", line.rank, "c10d"))
        if line.kind == "printed" and asks and finished:
            if line.group == PLURAL and sizes_known and not size_one:
                pieces.append(Piece("active", "B", None, "print"))
            elif line.group == FLAT and not any(
                x.kind == "printed" and x.group == PLURAL for x in said
            ):
                pieces.append(Piece("inactive", "B", None, "print"))
    return pieces


def _te_evidence(job: Job, said: list[Said], seen: Visible, *, sizes_known: bool) -> list[Piece]:
    size_one = bool(job.sizes) and 1 in (job.sizes or ())
    old: dict[int, list[Said]] = defaultdict(list)
    pieces: list[Piece] = []
    for line in said:
        if line.kind != "te" or not line.training:
            continue
        if line.comm_type is None:
            old[line.rank].append(line)
        elif line.comm_type == A2A_P2P and not line.context_parallel and seen.cp and job.cp > 1:
            pieces.append(Piece("inactive", "A", line.rank, "te_debug", line.layer))
        elif line.comm_type == A2A_P2P and line.context_parallel and not size_one:
            if sizes_known:
                pieces.append(Piece("active", "A", line.rank, "te_debug", line.layer))
            elif seen.complete:
                pieces.append(Piece("active", "B", line.rank, "te_debug", line.layer))
    asks = seen.comm_type and job.hierarchical and job.cp > 1
    for rank, entries in old.items():
        on = any(line.context_parallel for line in entries)
        if asks and on and not size_one and (sizes_known or seen.complete):
            pieces.append(Piece("active", "B", rank, "te_debug"))
        elif asks and not on and seen.cp:
            pieces.append(Piece("inactive", "B", rank, "te_debug"))
    return pieces


def _combine(pieces: list[Piece]) -> str:
    """The combining table per rank, then across ranks; an empty text leaves it to the
    configuration. Evidence without a rank speaks of all ranks."""
    shared = [piece for piece in pieces if piece.rank is None]
    ranks = {piece.rank for piece in pieces if piece.rank is not None}
    words = {_one_rank([x for x in pieces if x.rank == rank] + shared) for rank in ranks}
    words |= {_one_rank(shared)} if not ranks else set()
    words.discard("")
    return next(iter(words), "") if len(words) < 2 else "mixed"


def _one_rank(pieces: list[Piece]) -> str:
    sides = {says: [x for x in pieces if x.says == says] for says in ("active", "inactive")}
    if not all(sides.values()):
        return next((says for says, side in sides.items() if side), "")
    layers = [{piece.layer for piece in side} for side in sides.values()]
    if "" not in layers[0] | layers[1] and not layers[0] & layers[1]:
        return "mixed"
    best = {says: min(piece.grade for piece in side) for says, side in sides.items()}
    if best["active"] != best["inactive"]:
        return min(best, key=lambda says: best[says])
    measured = {x.says for x in pieces if x.grade == best["active"] and x.channel in MEASURED}
    return next(iter(measured)) if len(measured) == 1 else "mixed"


def files_of(job: Job, lines: list[Line], *, layout: str | None = None) -> Files:
    """The run's files in the job's layout, or in Ray's."""
    return ray(job, lines) if layout == "ray" else LAYOUTS[job.layout](job, lines)


def write(files: Files, folder: Path, *, end: str = "\n") -> Path:
    for name, texts in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("".join(f"{text}{end}" for text in texts).encode())
    return folder
