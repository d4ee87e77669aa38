"""Who waited in a collective, and who did not come."""

import time

import polars as pl
import pytest

from hcp_logscan.analysis import collectives, waits
from hcp_logscan.analysis.collectives import Witnesses
from hcp_logscan.analysis.run import examine
from hcp_logscan.model import events

DP = ("7", "DATA_PARALLEL_GROUP_WITH_CP")
DEFAULT = ("0", "default_pg")
L0 = ("31", "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0")


def work(rank, number, group=None, operation="ALLREDUCE", numel=8):
    """The line of the work that timed out; the group stands in it only at the watchdog's end."""
    guid, description = group or (None, None)
    own = {"sequence": number, "operation": operation, "numel_in": numel, "numel_out": numel}
    return {"kind": "timeout", "rank": rank, "guid": guid, "description": description, **own}


def status(rank, number, group, enqueued, completed=None):
    guid, description = group
    return {
        "kind": "status",
        "rank": rank,
        "guid": guid,
        "description": description,
        "sequence": number,
        "last_enqueued": enqueued,
        "last_completed": number - 1 if completed is None else completed,
    }


def told(rank, enqueued, by=0):
    own = {"guid": "0", "description": "default_pg", "source_rank": by}
    counts = {"last_enqueued": enqueued, "last_completed": enqueued}
    return {"kind": "notified", "rank": rank, **own, **counts}


def both(rank, number, group, enqueued=None, **more):
    """The two lines that a rank prints first."""
    return [work(rank, number, **more), status(rank, number, group, enqueued or number)]


def tables(rows, **others):
    """Event tables of one attempt; each rank has its own file, lines stand as given."""
    columns = {**events.schema("timeouts"), "attempt": pl.Int64, "event_rank": pl.Int64}
    full = [
        {
            **dict.fromkeys(columns),
            "file": 0 if row.get("rank") is None else row["rank"],
            "line": line,
            "last": line,
            "stream": "",
            "text": row.get("text", "a line"),
            "attempt": 0,
            "event_rank": row.get("rank"),
            **{name: value for name, value in row.items() if name != "rank"},
        }
        for line, row in enumerate(rows, 1)
    ]
    found = {
        name: events.empty(name).with_columns(
            attempt=pl.lit(0, pl.Int64), event_rank=pl.lit(None, pl.Int64)
        )
        for name in events.EVENTS
    }
    found["timeouts"] = pl.DataFrame(full, schema=columns)
    return {**found, **others}


ALL = Witnesses(frozenset(range(2048)))


def examined(rows, world=None, failed=(), witnesses=ALL, **others):
    return collectives.examine(
        tables(rows, **others),
        0,
        failed,
        ended_well=False,
        iteration=4,
        world_size=world,
        witnesses=witnesses,
    )


def test_no_line_no_time_out():
    found = examined([], world=4)

    assert found.facts == {"collective_timeouts": 0, "timeout_suspects": []}
    assert found.rows == ()


def test_the_group_of_a_work_comes_from_the_lines_that_follow_it():
    rows = [
        *both(1, 812, L0, 815, operation="ALLTOALL_BASE"),
        work(1, 812, L0, operation="ALLTOALL_BASE"),
        *both(1, 40, DP),
    ]

    read = waits.read(tables(rows), 0)

    assert [(w.sequence, w.group.description) for w in read.waits] == [(812, L0[1]), (40, DP[1])]
    facts = examined(rows).facts
    assert facts["collective_timeouts"] == 1
    assert facts["timeout_group"] == f"{L0[1]} (level L0 of hierarchical context parallelism)"
    assert (facts["timeout_rank"], facts["timeout_sequence"]) == (1, 812)
    assert facts["timeout_operation"] == "ALLTOALL_BASE"


def test_a_rank_that_enqueued_less_never_entered():
    rows = [line for rank in (0, 1, 3) for line in both(rank, 12, DEFAULT)] + [told(2, 11)]

    found = examined(rows, world=4)

    assert found.suspects == (2,)
    assert "rank 2 never entered number 12" in found.facts["timeout_reason"]
    roles = {(row["kind"], row["rank"]): row["role"] for row in found.rows}
    assert roles == {
        ("timeout", 0): "cascade",
        ("timeout", 1): "cascade",
        ("timeout", 3): "cascade",
        ("suspect", 2): "root",
    }


def test_equal_counters_name_nobody():
    rows = [line for rank in range(4) for line in both(rank, 305, DEFAULT, numel=1)]

    found = examined(rows, world=4)

    assert found.suspects == ()
    assert "stuck outside" in found.facts["timeout_reason"]
    assert found.facts["timeout_rank"] is None  # in four files


def test_a_rank_in_an_earlier_collective_is_behind_and_no_mismatch():
    rows = [line for rank in (0, 1, 2) for line in both(rank, 102, DP)] + both(3, 101, DP)

    found = examined(rows, world=8)

    assert found.suspects == (3,)
    assert "waited in number 101, the others in 102" in found.facts["timeout_reason"]


def test_nobody_is_named_where_one_rank_is_ahead_of_all_others():
    rows = [*both(0, 11, DEFAULT), *(told(rank, 10) for rank in (1, 2, 3))]

    found = examined(rows, world=4)

    assert found.suspects == ()
    assert "do not say which is right" in found.facts["timeout_reason"]


def test_numbers_of_different_groups_and_of_send_and_receive_are_not_compared():
    other = ("8", DP[1])
    groups = [
        line for rank in range(4) for line in both(rank, 12 + rank % 2, (DP, other)[rank % 2])
    ]
    pairs = [both(rank, 5 + rank, DP, operation="RECV") for rank in range(4)]

    assert examined(groups, world=4).suspects == ()
    assert examined([line for pair in pairs for line in pair], world=4).suspects == ()


def test_counters_that_were_never_set_say_nothing():
    rows = [*both(0, 12, DEFAULT), *both(1, 12, DEFAULT)]
    rows.append({**told(2, 3), "last_completed": 76280750235782912})

    assert examined(rows, world=16).suspects == ()


@pytest.mark.parametrize(
    ("world", "witnesses", "suspects"),
    [
        (4, ALL, (2,)),
        (None, ALL, ()),
        (5, ALL, ()),  # 2 of 5 are more than a quarter
        (4, Witnesses(frozenset({0, 1, 3})), ()),  # its log is not there
        (4, Witnesses(frozenset({0, 1, 3}), one_node=True), (2,)),  # the console of the node is
        (4, Witnesses(frozenset(range(4)), whole=False), ()),
    ],
)
def test_silence_counts_where_the_logs_are_whole(world, witnesses, suspects):
    rows = [{"kind": "gloo", "rank": rank, "operation": "send"} for rank in (0, 1, 3)]

    assert examined(rows, world=world, witnesses=witnesses).suspects == suspects


def test_silence_is_looked_for_among_the_members_of_the_group():
    groups = pl.DataFrame(
        [{**dict.fromkeys(events.schema("dump_groups")), "guid": "7", "ranks": [0, 2, 4, 6]}],
        schema={**events.schema("dump_groups"), "attempt": pl.Int64},
    )
    rows = [line for rank in (0, 2, 4) for line in both(rank, 12, DP)]

    assert examined(rows, world=8, dump_groups=groups).suspects == (6,)
    assert examined(rows, world=8).suspects == ()


def test_an_error_of_the_device_is_no_echo():
    text = "[PG 0 Rank 3] Process group watchdog thread terminated with exception: CUDA error: ECC"
    rows = [
        *both(0, 12, DEFAULT),
        {"kind": "error", "rank": 3, "text": text},
        told(1, 12, by=3),
    ]

    found = examined(rows, world=4)

    assert found.suspects == (3,)
    assert "CUDA error: ECC" in found.facts["timeout_reason"]
    assert found.facts["collective_timeouts"] == 1
    assert waits.crashed(tables(rows), 0) == {3}


def test_one_rank_raises_and_1023_time_out_in_seconds():
    failed = [{"kind": "exception", "role": "root", "rank": 11}]
    rows = [
        line
        for rank in range(1024)
        if rank != 11
        for line in (*both(rank, 12, DEFAULT), work(rank, 12, DEFAULT), told(rank, 12, by=0))
    ]
    begin = time.process_time()

    found = examined(rows, world=1024, failed=failed)

    assert time.process_time() - begin < 2
    assert found.facts["collective_timeouts"] == 1023
    assert found.facts["timeout_explained"] is True
    assert found.suspects == ()
    assert {row["role"] for row in found.rows} == {"cascade"}


def test_a_time_out_behind_which_the_rank_trains_on_killed_nobody(tmp_path):
    line = (
        "[rank3]:[E301 10:01:02.1 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective"
        " operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,"
        " Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    )
    memory = "[rank3]:[Rank 3] (after 5 iterations) memory (MB) | allocated: 0.00\n"
    (tmp_path / "console.log").write_text(line + memory)
    goes_on = examine(tmp_path).attempts[-1].facts
    (tmp_path / "console.log").write_text(memory + line)
    dies = examine(tmp_path).attempts[-1].facts

    assert goes_on["collective_timeouts"] == 0
    assert dies["collective_timeouts"] == 1
    assert dies["failures"] == 1
