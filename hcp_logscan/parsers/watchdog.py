"""Collectives that time out, as c10d's watchdog, its heartbeat monitor and gloo say it.

Written from PyTorch ``torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp`` of 1.8 to 2.13,
``ProcessGroupGloo.cpp``, ``TraceUtils.h``, gloo ``transport/tcp/unbound_buffer.cc``, and public
logs:

* the work that timed out: ``WorkNCCL(OpType=…, TensorShape=[…], …)`` up to 1.10, with a SeqNum
  since 1.11, without any size in 2.0, with ``NumelIn``/``NumelOut`` since 2.1. Its ``[Rank r]``
  counts inside a group, and is fixed by the first work of the process that times out. Behind
  ``watchdog thread terminated with exception:`` the same text follows the prefix of its group.
* how far the group came: ``[Rank r] Timeout at NCCL work: …`` in 2.2, ``[PG …] Exception (either an
  error or timeout) detected by watchdog at work: …`` to 2.5, ``[PG …]  failure detected by watchdog
  at work sequence id: …`` since 2.6. Counters that were never set hold what was in memory.
* who asked for dumps: ``First PG on this rank to signal dumping``, ``Received a dump signal due to
  a collective timeout from this local rank`` (this rank timed out), ``… from  rank 8`` (it was told
  so, by a rank that timed out). Both are the default group's lines, with its counters.
* which call failed, by a time-out or another error: ``Stack trace of the failed collective`` since
  2.4.
* since 1.12, with desync debugging: ``ranks [3] are the lagging ranks …``, counted inside a group.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser
from hcp_logscan.parsers.c10d import GROUP_PREFIX, named_groups

_PREFIX: Final = rf"(?:{GROUP_PREFIX} *|\[Rank (?P<old_rank>[0-9]+)\] *)?"
_FIELDS: Final = {
    "last_enqueued": r"[Ll]ast enqueued (?:[A-Z]{1,3}CCL )?work: (-?[0-9]+)",
    "last_completed": r"last completed (?:[A-Z]{1,3}CCL )?work: (-?[0-9]+)",
}


def _groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Names of groups; the rank inside the group in one column, wherever it stood."""
    return named_groups(rows).with_columns(
        pl.when(pl.col("guid") != "").then("guid").alias("guid"),
        pl.coalesce("group_rank", "old_rank").alias("group_rank"),
    )


def _work(rows: pl.DataFrame) -> pl.DataFrame:
    """The work that timed out: in old lines its size is a shape."""
    sides = pl.col("shape").str.extract_all(r"[0-9]+").list.eval(pl.element().cast(pl.Float64))
    size = pl.when(sides.list.len() > 0).then(sides.list.eval(pl.element().product()).list.first())
    numel = pl.col("numel_in").cast(pl.Int64, strict=False)
    return _groups(rows).with_columns(
        pl.coalesce(numel, size.cast(pl.Int64, strict=False)).alias("numel_in")
    )


def _signal(rows: pl.DataFrame) -> pl.DataFrame:
    """Whether the rank itself timed out, or was told so by another one."""
    local = pl.col("source").str.starts_with("this local rank")
    return _groups(rows).with_columns(
        pl.when(local).then(pl.lit("signal")).otherwise(pl.lit("notified")).alias("kind"),
        pl.col("source").str.extract(r"^ *rank ([0-9]+)").alias("source_rank"),
    )


def _end(rows: pl.DataFrame) -> pl.DataFrame:
    """Why a watchdog ended; lines that repeat what timed out have a parser of their own."""
    text = pl.col("text")
    rows = rows.filter(~text.str.contains("aught collective operation timeout", literal=True))
    return _groups(rows).with_columns(
        pl.when(text.str.contains("watchdog hang", literal=True))
        .then(pl.lit("stuck"))
        .when(text.str.contains("Terminating the process", literal=True))
        .then(pl.lit("end"))
        .otherwise(pl.lit("error"))
        .alias("kind")
    )


PARSERS = (
    LineParser(
        name="c10d-watchdog-timeout",
        table="timeouts",
        needles=("aught collective operation timeout",),
        pattern=rf"(?:{GROUP_PREFIX} *[A-Za-z ]{{1,40}}thread terminated with exception: )?"
        r"(?:\[Rank (?P<old_rank>[0-9]+)\] )?(?:Watchdog c|C|c)aught collective operation timeout:"
        r" Work[A-Z]{1,3}CCL\((?:SeqNum=(?P<sequence>[0-9]+), )?"
        r"OpType=(?P<operation>[A-Za-z_0-9]+)",
        fields={
            "numel_in": r"NumelIn=([0-9]+)",
            "numel_out": r"NumelOut=([0-9]+)",
            "shape": r"TensorShape=\[([0-9, ]{0,200})\]",
            "milliseconds": r"Timeout\(ms\)=([0-9]+)",
            "elapsed_ms": r"\) ran for ([0-9]+) milliseconds",
        },
        constants={"kind": "timeout"},
        finish=_work,
        sample="[E301 10:01:02.111222333 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught"
        " collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1,"
        " NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.",
    ),
    LineParser(
        name="c10d-watchdog-status",
        table="timeouts",
        needles=(
            "failure detected by watchdog at work",
            "detected by watchdog at work:",
            "Timeout at NCCL work:",
        ),
        pattern=_PREFIX + r"(?:failure detected by watchdog at work sequence id"
        r"|Exception (?:\(either an error or timeout\) )?detected by watchdog at work"
        r"|Timeout at NCCL work): (?P<sequence>[0-9]+)",
        fields=_FIELDS,
        constants={"kind": "status"},
        finish=_groups,
        sample="[E301 10:01:02.111222333 ProcessGroupNCCL.cpp:2241] [PG ID 9 PG GUID"
        " 32(HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0) Rank 0]  failure detected by watchdog at work"
        " sequence id: 812 PG status: last enqueued work: 815, last completed work: 811",
    ),
    LineParser(
        name="c10d-dump-signal",
        table="timeouts",
        needles=(
            "Received a dump signal due to a collective timeout",
            "will start to dump the debug info",
        ),
        pattern=_PREFIX
        + r"Received a (?:global )?(?:dump signal|timeout)(?: signal| due to a collective timeout)?"
        r" from (?P<source> *(?:this local rank|rank -?[0-9]+|another rank))",
        fields=_FIELDS,
        finish=_signal,
        sample="[E301 10:01:03.1 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank 8]"
        " Received a dump signal due to a collective timeout from  rank 9 and we will try our best"
        " to dump the debug info. Last enqueued NCCL work: 71, last completed NCCL work: 71.",
        drift=False,
    ),
    LineParser(
        name="c10d-dump-observed",
        table="timeouts",
        needles=("Observed flight recorder dump signal from another rank",),
        pattern=_PREFIX + r"Observed flight recorder dump signal from another rank",
        constants={"kind": "notified"},
        finish=_groups,
        sample="[E301 10:01:03.1 ProcessGroupNCCL.cpp:1794] [PG ID 0 PG GUID 0(default_pg) Rank 0]"
        " Observed flight recorder dump signal from another rank via TCPStore.",
    ),
    LineParser(
        name="c10d-first-signal",
        table="timeouts",
        needles=("First PG on this rank to signal dumping",),
        pattern=_PREFIX + r"First PG on this rank to signal dumping",
        constants={"kind": "signal"},
        finish=_groups,
        sample="[E301 10:01:02.2 ProcessGroupNCCL.cpp:2573] [PG ID 5 PG GUID"
        " 37(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] First PG on this rank to signal dumping.",
    ),
    LineParser(
        name="c10d-failed-stack",
        table="timeouts",
        needles=("Stack trace of the failed collective",),
        pattern=r"Stack trace of the failed collective(?:: *$| not found,)",
        constants={"kind": "failed"},
        sample="[E301 10:01:02.2 ProcessGroupNCCL.cpp:733] Stack trace of the failed collective: ",
        drift=False,
    ),
    LineParser(
        name="c10d-heartbeat",
        table="timeouts",
        needles=("watchdog got stuck for", "Heartbeat monitor timed out!"),
        pattern=_PREFIX
        + r"(?:ProcessGroup[A-Z]{1,3}CCL's watchdog got stuck for (?P<seconds>[0-9]{1,9}) seconds"
        r"|Heartbeat monitor timed out!)",
        constants={"kind": "stuck"},
        finish=lambda rows: _groups(rows).with_columns(
            (pl.col("seconds").cast(pl.Int64, strict=False) * 1000).alias("milliseconds")
        ),
        sample="[F301 10:09:02.1 ProcessGroupNCCL.cpp:1250] [PG ID 0 PG GUID 0(default_pg) Rank 3]"
        " ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in"
        " monitoring enqueued collectives.",
    ),
    LineParser(
        name="c10d-watchdog-end",
        table="timeouts",
        needles=(
            "due to collective timeout or exception",
            "due to ProcessGroupNCCL watchdog hang",
            "atchdog thread terminated with exception",
        ),
        pattern=_PREFIX
        + r"(?:Terminating the process .*due to (?:collective timeout|ProcessGroupNCCL watchdog)"
        r"|(?:Process group|NCCL) watchdog thread terminated with exception)",
        finish=_end,
        sample="[F301 10:06:02.1 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 1]"
        " Terminating the process after attempting to dump debug info, due to collective timeout"
        " or exception.",
        drift=False,
    ),
    LineParser(
        name="gloo-timeout",
        table="timeouts",
        needles=("ms for send operation to complete", "ms for recv operation to complete"),
        pattern=r"Timed out waiting (?P<milliseconds>[0-9]+)ms for (?P<operation>send|recv)"
        r" operation to complete",
        constants={"kind": "gloo"},
        sample="RuntimeError: [/opt/gloo/gloo/transport/tcp/unbound_buffer.cc:129] Timed out"
        " waiting 60000ms for send operation to complete",
        drift=False,
    ),
    LineParser(
        name="gloo-barrier",
        table="timeouts",
        needles=("failed to pass monitoredBarrier in",),
        pattern=r"Ranks? (?P<lagging>[0-9][0-9, ]{0,4000})failed to pass monitoredBarrier in"
        r" (?P<milliseconds>[0-9]+) ms",
        constants={"kind": "barrier"},
        sample="[E ProcessGroupGloo.cpp:138] [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier"
        " in 1800000 ms",
        drift=False,
    ),
    LineParser(
        name="c10d-desync-never-joined",
        table="timeouts",
        needles=("] are the lagging ranks that caused this timeout",),
        pattern=r"ranks \[(?P<lagging>[0-9][0-9, ]{0,4000})\] are the lagging ranks",
        constants={"kind": "desync"},
        sample="\t - To our best knowledge, ranks [3] are the lagging ranks that caused this"
        " timeout. They never joined any collectives",
        drift=False,
    ),
    LineParser(
        name="c10d-desync-not-joined",
        table="timeouts",
        needles=(", but didn't join collective #",),
        pattern=r"\[(?P<lagging>[0-9][0-9, ]{0,4000})\] finished collective #[0-9]+, but didn't"
        r" join collective #(?P<sequence>[0-9]+)",
        constants={"kind": "desync"},
        sample="\t     [3] finished collective #811, but didn't join collective #812 (count from"
        " 1)",
        drift=False,
    ),
)
