"""Lines about collectives that time out, of every version."""

import polars as pl
import pytest

from hcp_logscan.model import events
from hcp_logscan.parsers.base import conform
from hcp_logscan.parsers.watchdog import PARSERS

RAN = " ran for 600010 milliseconds before timing out."
CAUGHT = "Watchdog caught collective operation timeout: "


def parsed(*lines):
    """Rows of the event table, in the order of the lines; every line with a needle must parse."""
    texts = pl.DataFrame({"text": lines, "line": range(1, len(lines) + 1)})
    frames = []
    for parser in PARSERS:
        mine = texts.filter(pl.col("text").str.contains_any(list(parser.needles)))
        rows, drift = parser.parse(conform("drift", mine).drop("parser", "count", "last"))
        assert not drift.height
        frames.append(rows)
    return pl.concat(frames).sort("line").to_dicts()


def said(line):
    """What the one row of a line says, nulls left out."""
    (row,) = parsed(line)
    own = events.EVENTS["timeouts"].columns
    return {name: row[name] for name in own if row[name] is not None}


WORK = {"kind": "timeout", "operation": "ALLREDUCE", "milliseconds": 600000, "elapsed_ms": 600010}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (  # 1.8
            "[E ProcessGroupNCCL.cpp:566] [Rank 3] "
            + CAUGHT
            + "WorkNCCL(OpType=ALLREDUCE, TensorShape=[12, 3], Timeout(ms)=600000)"
            + RAN,
            {**WORK, "group_rank": 3, "numel_in": 36},
        ),
        (  # 2.0
            "[E ProcessGroupNCCL.cpp:828] [Rank 3] "
            + CAUGHT
            + "WorkNCCL(SeqNum=33, OpType=ALLREDUCE, Timeout(ms)=600000)"
            + RAN,
            {**WORK, "group_rank": 3, "sequence": 33},
        ),
        (  # 2.1 and later; a coalesced work has no size
            "[E301 10:01:02.1 ProcessGroupNCCL.cpp:632] [Rank 1] "
            + CAUGHT
            + "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=18446744073709551615, NumelOut=8,"
            " Timeout(ms)=600000)" + RAN,
            {**WORK, "group_rank": 1, "sequence": 1, "numel_out": 8},
        ),
        (  # the end of the watchdog repeats it behind the group
            "  what():  [PG ID 6 PG GUID 90(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] Process group"
            " watchdog thread terminated with exception: [Rank 1] "
            + CAUGHT
            + "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=7, NumelOut=7, Timeout(ms)=600000)"
            + RAN,
            {
                **WORK,
                "guid": "90",
                "description": "TENSOR_MODEL_PARALLEL_GROUP",
                "group_rank": 1,
                "sequence": 1,
                "numel_in": 7,
                "numel_out": 7,
            },
        ),
        (  # blocking wait
            "RuntimeError: [Rank 2] Caught collective operation timeout: WorkNCCL(SeqNum=4,"
            " OpType=ALLREDUCE, Timeout(ms)=600000)" + RAN,
            {**WORK, "group_rank": 2, "sequence": 4},
        ),
    ],
    ids=["1.8", "2.0", "2.1", "end", "blocking"],
)
def test_work_that_timed_out(line, expected):
    assert said(line) == expected


STATUS = {"kind": "status", "sequence": 12, "last_enqueued": 15, "last_completed": 11}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[E ProcessGroupNCCL.cpp:1537] [Rank 2] Timeout at NCCL work: 12, last enqueued NCCL"
            " work: 15, last completed NCCL work: 11.",
            {**STATUS, "group_rank": 2},
        ),
        (
            "[E101 1:2:3.4 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank 2] Exception (either"
            " an error or timeout) detected by watchdog at work: 12, last enqueued NCCL work: 15,"
            " last completed NCCL work: 11.",
            {**STATUS, "guid": "0", "description": "default_pg", "group_rank": 2},
        ),
        (
            "[E101 1:2:3.4 ProcessGroupNCCL.cpp:2241] [PG ID 9 PG GUID  Rank 0]  failure detected"
            " by watchdog at work sequence id: 12 PG status: last enqueued work: 15, last completed"
            " work: 11",
            {**STATUS, "group_rank": 0},
        ),
    ],
    ids=["2.2", "2.4", "2.6 without a name"],
)
def test_how_far_a_group_came(line, expected):
    assert said(line) == expected


def test_who_timed_out_and_who_was_told_so():
    own, told, old, observed, first = parsed(
        "[PG ID 0 PG GUID 0(default_pg) Rank 8] Received a dump signal due to a collective timeout"
        " from this local rank and we will try our best to dump the debug info. Last enqueued NCCL"
        " work: 71, last completed NCCL work: 70.This is most likely caused by",
        "[PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout"
        " from  rank 8 and we will try our best to dump the debug info. Last enqueued NCCL work:"
        " 70, last completed NCCL work: 70.This",
        "[PG 0 Rank 3] Received a global timeout from another rank and will start to dump the debug"
        " info. Last enqueued NCCL work: 11, last completed NCCL work: -1.",
        "[PG ID 0 PG GUID 0(default_pg) Rank 1] Observed flight recorder dump signal from another"
        " rank via TCPStore.",
        "[PG ID 5 PG GUID 37(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] First PG on this rank to signal"
        " dumping.",
    )

    assert (own["kind"], own["last_enqueued"], own["last_completed"]) == ("signal", 71, 70)
    assert (told["kind"], told["source_rank"], told["last_enqueued"]) == ("notified", 8, 70)
    assert (old["kind"], old["source_rank"], old["last_completed"]) == ("notified", None, -1)
    assert (observed["kind"], observed["group_rank"]) == ("notified", 1)
    assert (first["kind"], first["description"]) == ("signal", "TENSOR_MODEL_PARALLEL_GROUP")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[PG 0 Rank 25] Heartbeat monitor timed out! Process will be terminated", "stuck"),
        ("[PG 0 Rank 2] ProcessGroupNCCL's watchdog got stuck for 600 seconds without", "stuck"),
        (
            "[PG ID 0 PG GUID 0(default_pg) Rank 1] [PG ID 0 PG GUID 0(default_pg) Rank 1]"
            " Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL"
            " watchdog hang.",
            "stuck",
        ),
        (
            "[PG ID 0 PG GUID 0(default_pg) Rank 1] Terminating the process after attempting to"
            " dump debug info, due to collective timeout or exception.",
            "end",
        ),
        (
            "[Rank 4] NCCL watchdog thread terminated with exception: CUDA error: an illegal memory"
            " access was encountered",
            "error",
        ),
        ("Timed out waiting 60000ms for recv operation to complete", "gloo"),
        ("[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms", "barrier"),
        ("\t - ... ranks [3] are the lagging ranks that caused this timeout. They", "desync"),
        ("\t [1, 2] finished collective #811, but didn't join collective #812 (count", "desync"),
    ],
)
def test_kinds_of_other_lines(line, kind):
    assert said(line)["kind"] == kind
