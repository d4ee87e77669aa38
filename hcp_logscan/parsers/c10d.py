"""PyTorch's process groups, as c10d's C++ log says it.

Written from ``torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp`` of about 2.0, 2.2, 2.4, 2.5, 2.7,
2.8 and main of 2026, and public logs. The prefix of a line was ``[Rank r]`` up to 2.2, ``[PG <uid>
Rank r]`` in 2.3, ``[PG <uid> (<description>) Rank r]`` in 2.4, and ``[PG ID i PG GUID
g(<description>) Rank r]`` since 2.5; its rank counts inside the group and is never the global one.
The description is known from the first collective on (``initNCCLComm``) and so is absent in
creation lines: its presence in an INFO line says that a communicator of this group was opened.
Descriptions are compared as a whole: ``HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0`` contains
``CONTEXT_PARALLEL_GROUP``.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser

GROUP_PREFIX: Final = (
    r"\[PG (?:ID [0-9]+ PG GUID )?(?P<guid>[0-9A-Za-z_:.-]*)"
    r" ?(?:\((?P<description>[^)\]]{1,200})\))?"
    r" ?Rank (?P<group_rank>[0-9]+)\]"
)
_THREAD: Final = r"^[FEWIV][0-9]{4,8} [0-9:.]+ ([0-9]+) [A-Za-z]"


def named_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with their `description`, null where it says nothing."""
    named = pl.col("description").str.strip_chars()
    return rows.with_columns(
        pl.when(named.is_in(["", "undefined"])).then(None).otherwise(named).alias("description")
    )


def _opened(rows: pl.DataFrame) -> pl.DataFrame:
    """Only lines with a description say anything: 2.3 and older open groups namelessly."""
    return named_groups(rows).with_columns(pl.col("text").str.extract(_THREAD).alias("thread"))


def _created(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        pl.coalesce("name", "guid").alias("guid"),
        pl.col("text").str.extract(_THREAD).alias("thread"),
        pl.lit(None, dtype=pl.String).alias("description"),
    )


def _quick_created(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col("name").alias("guid"), pl.lit("created").alias("kind"))


def _quick_opened(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.lit("opened").alias("kind"))


_QUICK_HEAD: Final = (
    r"\[[FEWIV][0-9]{3,8} [0-9:.]+ ProcessGroupNCCL\.cpp:[0-9]+\]"
    r" \[PG ID [0-9]+ PG GUID (?P<guid>[0-9A-Za-z_:.-]*)"
)
"""Of lines since 2.5, as c10 writes them by default: these name no thread."""

_QUICK_CREATED: Final = (
    _QUICK_HEAD + r" Rank [0-9]+\] ProcessGroupNCCL initialization options: size: (?P<size>[0-9]+),"
    r" global rank: (?P<global_rank>[0-9]+), TIMEOUT\(ms\): [0-9]+,"
    r" USE_HIGH_PRIORITY_STREAM: [0-9], SPLIT_FROM: [0-9]+, SPLIT_COLOR: -?[0-9]+,"
    r" PG Name: (?P<name>[0-9A-Za-z_:.-]+)"
)
_QUICK_OPENED: Final = (
    _QUICK_HEAD + r"\((?P<description>[A-Z0-9_]{1,128})\) Rank [0-9]+\]"
    r" ProcessGroupNCCL broadcast unique ID through store took [0-9.]+ ms"
)


PARSERS = (
    LineParser(
        name="c10d-created",
        table="group_lines",
        needles=("ProcessGroupNCCL initialization options:",),
        pattern=GROUP_PREFIX + r" ?ProcessGroupNCCL initialization options:",
        fields={
            "size": r"\bsize: ([0-9]+)",
            "global_rank": r"global rank: ([0-9]+)",
            "name": r"PG Name: ([0-9A-Za-z_:.-]+)",
        },
        constants={"kind": "created"},
        finish=_created,
        quick=_QUICK_CREATED,
        quick_finish=_quick_created,
        sample="[I301 09:12:44.100200300 ProcessGroupNCCL.cpp:979] [PG ID 9 PG GUID 31 Rank 0]"
        " ProcessGroupNCCL initialization options: size: 2, global rank: 0, TIMEOUT(ms): 600000,"
        " USE_HIGH_PRIORITY_STREAM: 0, SPLIT_FROM: 0, SPLIT_COLOR: 0, PG Name: 31",
        drift=False,
    ),
    LineParser(
        name="c10d-created-old",
        table="group_lines",
        needles=("ProcessGroupNCCL initialized with following options",),
        pattern=r"\[Rank [0-9]+\] ProcessGroupNCCL initialized with following options",
        constants={"kind": "created"},
        sample="[I ProcessGroupNCCL.cpp:672] [Rank 1] ProcessGroupNCCL initialized with following"
        " options:",
    ),
    LineParser(
        name="c10d-opened",
        table="group_lines",
        needles=(
            "ProcessGroupNCCL broadcast unique ID through store",
            "all-gather unique IDs through store took",
            "ProcessGroupNCCL created ncclComm_",
            "] NCCL_DEBUG: ",
        ),
        pattern=GROUP_PREFIX
        + r" ?(?:ProcessGroupNCCL (?:broadcast unique ID|all-gather unique IDs) through"
        r" store|ProcessGroupNCCL created ncclComm_|NCCL_DEBUG: )",
        constants={"kind": "opened"},
        finish=_opened,
        quick=_QUICK_OPENED,
        quick_finish=_quick_opened,
        sample="[I301 09:13:51.400500600 ProcessGroupNCCL.cpp:2774] [PG ID 9 PG GUID"
        " 31(HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0) Rank 0] ProcessGroupNCCL broadcast unique ID"
        " through store took 0.093 ms",
        drift=False,
    ),
    LineParser(
        name="c10d-eager",
        table="group_lines",
        needles=("Eagerly connecting nccl backend",),
        pattern=r"Eagerly connecting nccl backend with device",
        constants={"kind": "eager"},
        sample="[I301 09:12:44.1 ProcessGroupNCCL.cpp:1121] [PG ID 0 PG GUID 0(default_pg) Rank 0]"
        " Eagerly connecting nccl backend with device cuda:0",
    ),
    LineParser(
        name="c10d-failed",
        table="group_lines",
        needles=(
            "failure detected by watchdog at work",
            "detected by watchdog at work:",
            "atchdog thread terminated with exception",
            "Timeout at NCCL work:",
        ),
        pattern=GROUP_PREFIX + r" *(?: failure detected by watchdog|.*detected by watchdog at work"
        r"|.*atchdog thread terminated with exception|Timeout at NCCL work)",
        constants={"kind": "failed"},
        finish=_opened,
        sample="[E301 10:01:02.111222333 ProcessGroupNCCL.cpp:2241] [PG ID 9 PG GUID"
        " 32(HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0) Rank 0]  failure detected by watchdog at work"
        " sequence id: 812 PG status: last enqueued work: 815, last completed work: 811",
        drift=False,
    ),
)
