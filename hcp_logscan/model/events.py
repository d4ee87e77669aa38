"""EVENTS: the tables that parsers fill. An event is what a line says; nothing is concluded here.

Every table has the columns of `COMMON` first. `fold` names the columns whose equal rows become one
row: the first of them, with `count` and the line number of the last. Folding is associative, so the
worker, the parent and any cluster fold alike, and memory is bounded by what is distinct. It stops
where an attempt may begin: a restart prints the same lines again.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

_INT, _STR, _BOOL, _FLOAT = pl.Int64(), pl.String(), pl.Boolean(), pl.Float64()

COMMON: Final[Mapping[str, pl.DataType]] = {
    "file": _INT,  # index into the list of files
    "line": _INT,  # counts from 1
    "offset": _INT,  # of the line's first byte; in the text of a compressed file
    "stream": _STR,  # key of the line's prefixes: tells the streams of one merged file apart
    "line_rank": _INT,  # global rank, as the prefix says it
    "label": _INT,  # srun task
    "local_rank": _INT,  # torchrun --tee
    "replica": _INT,  # TorchX replica
    "epoch": _INT,  # start-ups and failures seen before it in its file: repeats do not fold across
    "text": _STR,  # the line without prefixes; null in tables that drop it
}


@dataclass(frozen=True, slots=True)
class EventTable:
    """One event table."""

    meaning: str
    columns: Mapping[str, pl.DataType]
    keep_text: bool = True
    "Whether rows keep their line. Series drop it; it is read again for the lines that are shown."

    fold: tuple[str, ...] = ()
    "Columns whose equal rows fold into one; empty keeps every row."


EVENTS: Final[Mapping[str, EventTable]] = {
    "iterations": EventTable(
        "one printed training iteration (or log interval)",
        {
            "time": _STR,
            "iteration": _INT,
            "train_iters": _INT,
            "consumed_samples": _INT,
            "step_ms": _FLOAT,
            "elapsed_s": _FLOAT,  # since training began; `step_ms` is then the mean since
            "tflops_per_gpu": _FLOAT,
            "tokens_per_s_per_gpu": _FLOAT,
            "mfu": _FLOAT,  # as a share, 0 to 1; what the trainer claims
            "learning_rate": _FLOAT,
            "global_batch_size": _INT,
            "lm_loss": _FLOAT,  # NaN and Inf as printed; null where the line has no such field
            "other_loss_name": _STR,  # the first field that ends in "loss", lm loss included
            "other_loss": _FLOAT,
            "loss_scale": _FLOAT,
            "grad_norm": _FLOAT,
            "skipped_iterations": _INT,
            "nan_iterations": _INT,
            "cut": _BOOL,  # the record ends inside a field
            "producer": _STR,  # whose line it is, as far as its shape tells
        },
        keep_text=False,
    ),
    "steps": EventTable(
        "a line with the speed of steps beside their iteration lines: Megatron-Bridge's `Step Time`"
        " (rank 0, one per iteration, without its number), slime's `perf` (behind the steps of a"
        " rollout)",
        {"iteration": _INT, "step_ms": _FLOAT, "tflops_per_gpu": _FLOAT, "producer": _STR},
        keep_text=False,
    ),
    "rejected_results": EventTable(
        "Megatron refused a result of a training step, which then does not finish",
        {"iteration": _INT, "kind": _STR},  # loss | gradient
    ),
    "config": EventTable(
        "one configured value",
        {"source": _STR, "block": _INT, "section": _STR, "key": _STR, "value": _STR},
    ),
    "blocks": EventTable(
        "one configuration block",
        {"source": _STR, "last_line": _INT, "complete": _BOOL, "entries": _INT},
    ),
    "marks": EventTable(
        "start-up markers and phases of a run",
        {"kind": _STR, "time": _STR, "value": _INT},
    ),
    "checkpoints": EventTable("a checkpoint saved or loaded", {"kind": _STR, "iteration": _INT}),
    "paths": EventTable(
        "how process groups were built",
        {"kind": _STR, "grid_cp": _INT},  # mpu | hyper_comm_grid; the grid's CP size
    ),
    "handled": EventTable("a line that introduces a traceback which ends nobody", {"kind": _STR}),
    "versions": EventTable(
        "version of a package", {"package": _STR, "version": _STR}, fold=("package", "version")
    ),
    "gpus": EventTable(
        "a GPU, or an architecture, that a line names",
        {"kind": _STR, "name": _STR},  # name | architecture
        fold=("kind", "name"),
    ),
    "rank_lines": EventTable(
        "memory lines: `[Rank <global rank>] (after <n> iterations)`",
        {"rank": _INT, "iterations": _INT, "max_allocated": _FLOAT, "memory_unit": _STR},
        keep_text=False,
        fold=("rank",),
    ),
    "assertions": EventTable(
        "a start-up check of the CP configuration that failed", {"check": _STR, "message": _STR}
    ),
    "tracebacks": EventTable(
        "one Python traceback",
        {
            "exception": _STR,
            "message": _STR,
            "frames": _INT,
            "last_frame": _STR,  # file name and function of the innermost frame
            "last_source": _STR,  # the source line shown for it
            "innermost": _STR,  # "<file>:<line>" of that frame, the file without its folders
            "stage": _STR,  # the innermost function that says what was being done
            "first_line": _INT,
            "last_line": _INT,
            "complete": _BOOL,
            "chained": _BOOL,  # a further traceback handles or follows it
            "recorded": _INT,  # seconds since 1970 that the rank's error file says; null in logs
        },
    ),
    "exits": EventTable(
        "how processes ended, as a launcher says it",
        {
            # failed_line | table_row | table_root | stopped | process_exit | srun_exit
            "kind": _STR,
            "agent": _STR,  # process id of the launcher's agent
            "rank": _INT,
            "failed_local_rank": _INT,
            "pid": _INT,
            "exit_code": _INT,
            "host": _STR,
            "time": _STR,
            "message": _STR,
        },
    ),
    "causes": EventTable(
        "a line that says by itself why something ended",
        {
            "kind": _STR,  # gpu_oom | host_oom | time_limit | xid | ...
            "code": _INT,  # Xid, the process id that the kernel killed, or a listed job's id
            "device": _STR,  # GPU number or PCI address
            "node": _STR,
            "detail": _STR,  # bytes asked for, path, reason, signal
            "field": _STR,  # what of a checkpoint does not fit
            "stored": _STR,  # its value in the checkpoint; capacity of a GPU
            "given": _STR,  # its value in this run
            "iteration": _INT,
            "time": _STR,
            "hour": _STR,  # of the kernel's lines, as printed: its log spans many runs
        },
        fold=("kind", "code", "device", "hour"),
    ),
    "timeouts": EventTable(
        "what c10d's watchdog, its heartbeat monitor and gloo say of collectives that do not end",
        {
            # timeout | status (how far the group is) | signal (this rank timed out) | notified (it
            # was told that another did) | stuck | end | error | gloo | barrier | desync | failed (a
            # collective of this rank did, by a time-out or another error)
            "kind": _STR,
            "guid": _STR,  # group name; null where the line names no group
            "description": _STR,
            "group_rank": _INT,  # counts inside the group
            "sequence": _INT,
            "operation": _STR,
            "numel_in": _INT,
            "numel_out": _INT,
            "milliseconds": _INT,  # the limit
            "elapsed_ms": _INT,
            "last_enqueued": _INT,
            "last_completed": _INT,
            "source_rank": _INT,  # the rank that a notified one names: one that timed out
            "lagging": _STR,  # ranks inside the group, as printed
        },
        fold=(
            "kind",
            "guid",
            "description",
            "group_rank",
            "sequence",
            "operation",
            "numel_in",
            "numel_out",
            "milliseconds",
            "last_enqueued",
            "last_completed",
            "source_rank",
            "lagging",
        ),
    ),
    "group_lines": EventTable(
        "a process group of c10d, created or with an opened communicator",
        {
            "kind": _STR,  # created | opened | failed | eager
            "guid": _STR,  # group name: a counter or a hash; empty in some builds
            "description": _STR,  # whole text between the parentheses; null where there is none
            "size": _INT,
            "global_rank": _INT,  # of creation lines
            "thread": _STR,  # glog's thread id: joins lines of one process in a merged file
        },
        fold=("kind", "guid", "description", "global_rank", "thread"),
    ),
    "attention_lines": EventTable(
        "Transformer Engine's debug lines about one kind of attention layer",
        {
            "kind": _STR,  # config | backend | cp_on
            "context_parallel": _BOOL,
            "cp_comm_type": _STR,
            "cp_size": _INT,
            "is_training": _BOOL,
            "num_heads": _INT,
            "num_gqa_groups": _INT,
            "head_dim": _INT,
            "qkv_layout": _STR,
            "te_version": _STR,
            "backend": _STR,
            "max_seqlen_q": _INT,
        },
        fold=(
            "kind",
            "context_parallel",
            "cp_comm_type",
            "cp_size",
            "is_training",
            "num_heads",
            "num_gqa_groups",
            "head_dim",
            "qkv_layout",
            "te_version",
            "backend",
        ),
    ),
    "communicator_lines": EventTable(
        "an NCCL communicator that was opened",
        {
            "host": _STR,
            "pid": _INT,
            "comm": _STR,
            "comm_rank": _INT,
            "nranks": _INT,
            "device": _INT,
            "comm_id": _STR,
            "parent": _STR,
            "color": _STR,
        },
        fold=("host", "pid", "comm", "comm_rank", "nranks", "comm_id", "parent", "color"),
    ),
    "printed_groups": EventTable(
        "a hand-printed line that says a context parallel group was created",
        {"kind": _STR},  # hierarchical | flat
        fold=("kind",),
    ),
    "dump_groups": EventTable(
        "a process group in a flight-recorder dump",
        {"guid": _STR, "description": _STR, "ranks": pl.List(pl.Int64())},
    ),
    "dump_entries": EventTable(
        "collectives of one kind on one group in a flight-recorder dump",
        {
            "guid": _STR,
            "description": _STR,
            "operation": _STR,  # all_to_all | send | recv | coalesced | all_reduce | ...
            "entries": _INT,
            "cp_frames": _BOOL,  # a frame names a context parallel function of TE
        },
    ),
    "dump_states": EventTable(
        "where a process group stands in a flight-recorder dump: the last collective that ended,"
        " and those that did not; send and receive left out",
        {
            "guid": _STR,
            "description": _STR,
            "sequence": _INT,
            "operation": _STR,  # `coalesced` where several calls share the number
            "numel_in": _INT,
            "numel_out": _INT,
            "state": _STR,  # scheduled | started | completed
            "last_enqueued": _INT,
            "last_completed": _INT,  # -1 where none did
        },
    ),
    "call_sites": EventTable(
        "where the program called a collective that failed",
        {
            "operation": _STR,  # of torch.distributed
            "site": _STR,  # file name, line and function of the first frame outside of PyTorch
            "first_line": _INT,  # of the stack; the line above it names the rank
        },
    ),
    "mismatches": EventTable(
        "two ranks whose collectives differ, as TORCH_DISTRIBUTED_DEBUG=DETAIL finds it",
        {
            "own_rank": _INT,  # both ranks count inside the group
            "own_sequence": _INT,
            "own_operation": _STR,
            "own_shape": _STR,  # of the first tensor, as printed; null without tensors
            "own_dtypes": _STR,
            "other_rank": _INT,
            "other_sequence": _INT,
            "other_operation": _STR,
            "other_shape": _STR,
            "other_dtypes": _STR,
        },
        fold=(
            "own_rank",
            "own_sequence",
            "own_operation",
            "own_shape",
            "own_dtypes",
            "other_rank",
            "other_sequence",
            "other_operation",
            "other_shape",
            "other_dtypes",
        ),
    ),
    "stragglers": EventTable(
        "a report about slow ranks: of Megatron's detector, or of NVRx",
        {
            # report | lowest | highest | unsynchronised (all Megatron), named | score | checked
            "kind": _STR,
            "min_ms": _FLOAT,  # of the fastest rank, per iteration
            "min_rank": _INT,
            "max_ms": _FLOAT,
            "max_rank": _INT,
            "min_tflops": _FLOAT,  # estimated, per GPU
            "max_tflops": _FLOAT,
            "ranks": pl.List(
                pl.Int64()
            ),  # that NVRx names or scores, or a list of Megatron's shows
            "values": pl.List(pl.Float64()),  # their TFLOP/s or scores
        },
        keep_text=False,
    ),
    "ray_repeats": EventTable(
        "a line that Ray printed once for many", {"times": _INT}, fold=("times",)
    ),
    "interleaved": EventTable(
        "a line in which another rank's line begins", {"kind": _STR}, fold=("kind",)
    ),
    "validations": EventTable(
        "a validation or test loss", {"iteration": _INT, "lm_loss": _FLOAT}, keep_text=False
    ),
    "drift": EventTable(
        "a line with a parser's needle that its pattern does not match",
        {"parser": _STR},
        fold=("parser",),
    ),
}
"""Every event table by name."""


def schema(table: str) -> dict[str, pl.DataType]:
    """Column types of an event table, common columns first, `count` and `last` where it folds."""
    event = EVENTS[table]
    folded = {"count": _INT, "last": _INT} if event.fold else {}
    return {**COMMON, **event.columns, **folded}


@functools.cache
def empty(table: str) -> pl.DataFrame:
    """The table without rows."""
    return pl.DataFrame(schema=schema(table))


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows sorted by (file, line); as they are where they stand so, which takes no memory."""
    if frame.height < 2:
        return frame
    file, line = pl.col("file"), pl.col("line")
    out = (file.diff() < 0) | ((file.diff() == 0) & (line.diff() < 0))
    if frame.select(out.any()).item():
        return frame.sort("file", "line", maintain_order=True)
    return frame


def fold(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Fold equal rows of one table: keys are `file`, `stream`, `epoch` and the table's own.

    The first row (by line) stays, `count` adds up, `last` is the last line number.
    """
    keys = EVENTS[table].fold
    if not keys or frame.height < 2:
        return frame
    by = ["file", "stream", "epoch", *keys]
    others = [name for name in frame.columns if name not in by and name not in {"count", "last"}]
    return (
        in_order(frame)
        .group_by(by, maintain_order=True)
        .agg(pl.col(others).first(), pl.col("count").sum(), pl.col("last").max())
        .select(frame.columns)
    )
