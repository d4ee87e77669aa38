"""Who waited in a collective, and who did not come."""

import pickle
import time

import polars as pl
import pytest

from hcp_logscan import scan
from hcp_logscan.analysis import collectives, waits
from hcp_logscan.analysis.run import examine
from hcp_logscan.analysis.suspects import Witnesses
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


def event_rows(table, rows):
    """Rows of an event table of attempt 0, each at line 1 of the file of its rank."""
    schema = {**events.schema(table), "attempt": pl.Int64, "event_rank": pl.Int64}
    common = {**dict.fromkeys(schema), "line": 1, "stream": "", "attempt": 0, "text": "a line"}
    full = [{**common, "file": row.get("event_rank") or 0, **row} for row in rows]
    return pl.DataFrame(full, schema=schema)


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


def examined(rows, world=None, failed=(), witnesses=ALL, config=None, **others):
    return collectives.examine(
        tables(rows, **others),
        0,
        failed,
        ended_well=False,
        iteration=4,
        config={"world_size": world, **(config or {})},
        witnesses=witnesses,
    )


def test_no_line_no_time_out():
    found = examined([], world=4)

    facts = found.facts
    assert (facts["collective_timeouts"], facts["timeout_suspects"]) == (0, [])
    assert facts["size_mismatch_found"] is facts["dump_ranks"] is None
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
    assert "waited in number 101, the others in number 102" in found.facts["timeout_reason"]


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
        (4, Witnesses(frozenset({0, 1, 3}), one_console=True), (2,)),  # the console of the node is
        (4, Witnesses(frozenset(range(4)), whole=False), ()),
    ],
)
def test_silence_counts_where_the_logs_are_whole(world, witnesses, suspects):
    rows = [{"kind": "gloo", "rank": rank, "operation": "send"} for rank in (0, 1, 3)]

    assert examined(rows, world=world, witnesses=witnesses).suspects == suspects


def test_silence_is_looked_for_among_the_members_of_the_group():
    groups = event_rows("dump_groups", [{"guid": "7", "ranks": [0, 2, 4, 6]}])
    rows = [line for rank in (0, 2, 4) for line in both(rank, 12, DP)]

    assert examined(rows, world=8, dump_groups=groups).suspects == (6,)
    assert examined(rows, world=8).suspects == ()


def test_a_rank_that_waits_in_another_group_is_no_culprit_of_the_first():
    pair = ("40", "PIPELINE_MODEL_PARALLEL_GROUP")
    rows = [line for rank in (0, 1, 2) for line in both(rank, 12, DEFAULT)]
    rows += [*both(3, 7, pair, operation="BROADCAST"), told(3, 11)]
    rows.append(status(7, 6, pair, 6, 6))

    found = examined(rows, world=8)

    assert found.suspects == (7,)
    assert found.facts["timeout_group"] == pair[1]


HCP = {"tp_size": 1, "cp_size": 4, "pp_size": 1, "hcp_sizes": [2, 2]}


@pytest.mark.parametrize(
    ("rank", "place", "description", "config", "suspects"),
    [
        (5, 1, L0[1], HCP, (4,)),
        (5, 0, "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1", HCP, (7,)),
        (5, 0, L0[1], HCP, ()),  # not the place that the configuration gives it
        (5, 1, L0[1], {**HCP, "hcp_sizes": None}, ()),
        (5, 1, "TENSOR_MODEL_PARALLEL_GROUP", {**HCP, "cp_size": 1, "tp_size": 2}, (4,)),
        (5, 1, "CONTEXT_PARALLEL_GROUP", {**HCP, "cp_size": 2}, (4,)),
        (5, 1, "DATA_PARALLEL_GROUP", HCP, ()),  # not laid out
        (5, 1, L0[1], {**HCP, "cp_size": 3}, ()),
    ],
)
def test_silence_is_looked_for_where_the_configuration_places_the_group(
    rank, place, description, config, suspects
):
    group = ("31", description)
    rows = [work(rank, 12), {**status(rank, 12, group, 12), "group_rank": place}]

    assert examined(rows, world=8, config=config).suspects == suspects


def test_ranks_that_wait_for_each_other_lead_to_the_one_that_waits_for_nobody():
    inner, outer = ("31", L0[1]), ("33", "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1")
    rows = [
        *(work(5, 12), {**status(5, 12, inner, 12), "group_rank": 1}),
        *(work(4, 3), {**status(4, 3, outer, 3), "group_rank": 0}),
    ]

    found = examined(rows, world=8, config=HCP)

    assert found.suspects == (6,)
    assert "level L1" in found.facts["timeout_group"]


@pytest.mark.parametrize(
    ("said", "lagging", "suspects"),
    [((0, 1), "2", (2,)), ((0, 0), "2", ()), ((0, 1), "16", ()), ((0, 1), "1", ())],
)
def test_a_desync_report_names_ranks_where_the_group_counts_as_all_do(said, lagging, suspects):
    rows = [plain(rank, 12, said=own) for rank, own in zip((0, 1), said, strict=True)]
    rows.append({"kind": "desync", "lagging": lagging})

    assert examined(rows, world=16).suspects == suspects


def test_a_rank_that_others_name_as_timed_out_is_not_silent():
    rows = [{"kind": "gloo", "rank": rank, "operation": "send"} for rank in (0, 1)]
    rows.append(told(2, 11, by=3))

    assert examined(rows, world=4).suspects == (2,)


def test_counters_of_send_and_receive_are_left_out():
    group = ("9", "PIPELINE_MODEL_PARALLEL_GROUP")
    rows = [line for r in (0, 1) for line in (work(r, 40), status(r, 40, group, 3, 2))]
    rows.append(status(2, 2, group, 3, 2))

    assert examined(rows, world=16).suspects == ()


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

    assert time.process_time() - begin < 10
    assert found.facts["collective_timeouts"] == 1023
    assert found.facts["timeout_explained"] is True
    assert found.suspects == ()
    assert {row["role"] for row in found.rows} == {"cascade"}


def test_the_rank_that_raised_wrote_no_dump(tmp_path):
    entry = {
        "process_group": ("0", "default_pg"),
        "collective_seq_id": 12,
        "profiling_name": "nccl:all_reduce",
        "input_sizes": [[8]],
        "output_sizes": [[8]],
        "state": "started",
    }
    group = {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}
    dump = pickle.dumps({"version": "2.10", "pg_config": {"0": group}, "entries": [entry]}, 2)
    text = ""
    for rank in range(7):
        (tmp_path / f"nccl_trace_rank_node07_{rank}").write_bytes(dump)
        text += (
            f"[rank{rank}]:[E301 10:01:02.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught"
            " collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=8,"
            " NumelOut=8, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
        )
    text += (
        "[rank7]: Traceback (most recent call last):\n"
        '[rank7]:   File "/opt/app/train.py", line 7, in train\n'
        "[rank7]:     step()\n[rank7]: ValueError: bad batch\n"
    )
    (tmp_path / "console.log").write_text(text)

    report = scan(tmp_path)

    named = {finding.rule: finding.ranks for finding in report.findings}
    assert named == {"HCP508": (7,), "HCP404": (7,)}


CAUGHT = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1,"
    " NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
)
WORLD = (
    "using world size: 4, data-parallel size: 4, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)


def test_a_rank_whose_log_is_missing_or_cut_is_no_suspect(tmp_path):
    texts = {
        rank: f"[rank{rank}]:[E301 10:01:02.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] {CAUGHT}"
        f"  what():  [PG ID 3 PG GUID 7(DATA_PARALLEL_GROUP) Rank {rank}] Process group watchdog"
        f" thread terminated with exception: [Rank {rank}] {CAUGHT}"
        for rank in (0, 1, 3)
    }
    texts[0] = WORLD + texts[0]
    (tmp_path / "merged").mkdir()
    (tmp_path / "merged" / "train.log").write_text("".join(texts.values()))
    for rank, text in texts.items():
        place = tmp_path / "apart" / "logs" / "run_x1" / "attempt_0" / str(rank)
        place.mkdir(parents=True)
        (place / "stderr.log").write_text(text)

    (tmp_path / "cut").mkdir()
    cut = " iteration 1/ 10 | consumed samples: 4 | elapsed time per iteration (ms): 5.0 | lear"
    (tmp_path / "cut" / "train.log").write_text("".join(texts.values()) + cut)

    found = {
        name: examine(tmp_path / name).attempts[-1].facts for name in ("apart", "merged", "cut")
    }

    assert {facts["collective_timeouts"] for facts in found.values()} == {3}
    suspects = {name: facts["timeout_suspects"] for name, facts in found.items()}
    assert suspects == {"apart": [], "merged": [2], "cut": []}


def test_calls_that_wait_are_told_by_the_line_above_their_stack(tmp_path):
    def stack(rank, line):
        return (
            f"[rank{rank}]:[E618 01:39:41.2 ProcessGroupNCCL.cpp:733] Stack trace of the failed"
            " collective: \n"
            "#0 all_reduce from /opt/venv/site-packages/torch/distributed/distributed_c10d.py:3068\n"
            "#1 wrapper from /opt/venv/site-packages/torch/distributed/c10d_logger.py:83\n"
            f"#2 reduce from /opt/app/train.py:{line}\n#3 main from /opt/app/train.py:900\n\n"
        )

    (tmp_path / "train.log").write_text(stack(3, 31) + stack(1, 246) + stack(2, 246))

    facts = examine(tmp_path).attempts[-1].facts

    sites = "rank 3 at train.py:31 (reduce); ranks 1, 2 at train.py:246 (reduce)"
    assert facts["timeout_call_sites"] == sites
    assert facts["timeout_reason"].endswith(f"; the calls are {sites}")
    assert facts["timeout_ranks"] == [1, 2, 3]
    assert facts["timeout_suspects"] == []
    assert (facts["collective_timeouts"], facts["collective_failures"]) == (0, 3)
    assert facts["timeout_counted"] == "3 ranks say that a collective of theirs failed"
    assert facts["timeout_rank"] is None


def test_a_stack_of_a_failed_collective_is_no_time_out_of_that_rank(tmp_path):
    signal = (
        "[rank0]:[E618 01:39:41.2 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 0]"
        " Received a dump signal due to a collective timeout from this local rank and we will try"
        " our best to dump the debug info. Last enqueued NCCL work: 9, last completed NCCL work: 8."
    )
    stacks = "".join(
        f"[rank{rank}]:[E618 01:39:41.3 ProcessGroupNCCL.cpp:733] Stack trace of the failed"
        " collective: \n"
        for rank in (1, 2, 0)
    )
    (tmp_path / "train.log").write_text(f"{WORLD}{signal}\n{stacks}")

    found = examine(tmp_path)

    facts = found.attempts[-1].facts
    assert (facts["collective_timeouts"], facts["collective_failures"]) == (1, 2)
    assert facts["timeout_counted"] == (
        "1 rank waited in a collective until it timed out, 2 more say that a collective of theirs"
        " failed"
    )
    assert facts["timeout_rank"] == 0
    assert found.stories[0].sentences[1] == "Then 1 rank timed out, 2 ranks failed in a collective."


def test_lines_that_name_no_rank_are_not_counted_as_ranks(tmp_path):
    old = (
        "[E ProcessGroupNCCL.cpp:828] [Rank {}] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum={}, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 606120 milliseconds"
        " before timing out.\n"
    )
    works = [(3, 33), (0, 251), (0, 1019), (3, 33)]
    (tmp_path / "out.log").write_text(WORLD + "".join(old.format(*work) for work in works))

    found = examine(tmp_path)

    facts = found.attempts[-1].facts
    assert facts["collective_timeouts"] == 1
    assert facts["timeout_counted"] == (
        "Lines without a rank say that 3 collectives timed out, on members 0, 3 of groups that are"
        " not named"
    )
    assert found.stories[0].sentences[1] == "Then ranks that no line names timed out."


def test_ranks_that_reached_a_monitored_barrier_are_no_culprits(tmp_path):
    reached = (
        "successfully reached monitoredBarrier, but received errors while waiting for send/recv from"
        " rank 0. Please check rank 0 logs for faulty rank."
    )
    errors = {
        0: "[Rank 0]: Ranks 2 failed to pass monitoredBarrier in 1800000 ms",
        1: f"Rank 1 {reached}",
        3: f"Rank 3 {reached}",
    }
    text = WORLD + "".join(
        f"[rank{rank}]: Traceback (most recent call last):\n"
        f'[rank{rank}]:   File "/opt/app/train.py", line 7, in train\n[rank{rank}]:     step()\n'
        f"[rank{rank}]: RuntimeError: {error}\n"
        for rank, error in errors.items()
    )
    (tmp_path / "console.log").write_text(text)

    facts = examine(tmp_path).attempts[-1].facts

    assert facts["culprit_ranks"] == [2]
    assert (facts["collective_timeouts"], facts["timeout_limit_ms"]) == (1, 1800000)


def test_groups_of_one_name_are_not_taken_for_one():
    twice = [
        line
        for rank in range(4)
        for line in (
            work(rank, 12 + rank // 2, numel=8 + rank // 2),
            {**status(rank, 12 + rank // 2, DP, 13), "group_rank": rank % 2},
        )
    ]
    dumps = dumped({0: WAITING, 1: WAITING}, members=(0, 1))
    other = dumped(dict.fromkeys((2, 3), (11, "broadcast", 9, "completed", 11)), members=(2, 3))
    both_dumps = {name: pl.concat([dumps[name], other[name]]) for name in dumps}

    by_lines, by_dumps = examined(twice, world=4), examined(GLOO, world=16, **both_dumps)

    assert by_lines.suspects == by_dumps.suspects == ()
    assert mismatch(by_lines.facts, "size") == (None, [])
    assert mismatch(by_dumps.facts, "operation") == (False, [])


def test_hostile_numbers_of_works_groups_and_ranks_cost_seconds_at_most():
    works = [work(0, number) for number in range(20_000)]
    groups = [line for r in range(2_000) for line in both(r, 5, (str(r), DP[1]))]
    report = {"kind": "desync", "lagging": "9" * 4_000 + ", 3"}
    begin = time.process_time()

    found = examined([*works, *groups, plain(1, 2), report], world=4_000)

    assert time.process_time() - begin < 20
    assert len(waits.read(tables(works), 0).waits) == 256
    assert found.facts["collective_timeouts"] == 2_000


def test_a_time_out_behind_which_the_rank_trains_on_killed_nobody(tmp_path):
    line = f"[rank3]:[E301 10:01:02.1 ProcessGroupNCCL.cpp:632] [Rank 3] {CAUGHT}"
    memory = "[rank3]:[Rank 3] (after 5 iterations) memory (MB) | allocated: 0.00\n"
    (tmp_path / "console.log").write_text(line + memory)
    goes_on = examine(tmp_path).attempts[-1].facts
    (tmp_path / "console.log").write_text(memory + line)
    dies = examine(tmp_path).attempts[-1].facts

    assert goes_on["collective_timeouts"] == 0
    assert dies["collective_timeouts"] == 1
    assert dies["failures"] == 1


def plain(rank, number, operation="ALLREDUCE", numel=8, said=None):
    """A work whose group no line names; it counts ranks as all ranks are counted."""
    said = rank if said is None else said
    return {**work(rank, number, operation=operation, numel=numel), "group_rank": said}


def mismatch(facts, kind="size"):
    return facts[f"{kind}_mismatch_found"], facts[f"{kind}_mismatch_ranks"]


def test_one_rank_reduces_twice_as_many_elements():
    sizes = (209715200, 104857600, 104857600, 104857600)
    found = examined([plain(rank, 1, numel=size) for rank, size in enumerate(sizes)], world=4)

    assert mismatch(found.facts) == (True, [0])
    assert "rank 0 has 209,715,200 elements" in found.facts["size_mismatch_text"]
    assert mismatch(found.facts, "operation") == (False, [])
    assert found.suspects == (0,)
    assert {(row["rank"], row["role"]) for row in found.rows if row["role"] == "root"} == {
        (0, "root")
    }


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([plain(0, 1, numel=4), plain(1, 1, numel=8)], (True, [])),  # no majority
        ([plain(0, 1, numel=4), plain(1, 2, numel=4), plain(2, 2, numel=4)], (False, [])),
        ([plain(0, 1, numel=4), plain(1, 2, numel=8)], (None, [])),  # different numbers
        ([plain(0, 1, numel=4), plain(1, 1, numel=8, said=0)], (None, [])),  # other groups
        ([plain(0, 1, numel=None), plain(1, 1, numel=8)], (None, [])),
        ([plain(r, 1, "ALLTOALL_BASE", 4 + r) for r in range(4)], (None, [])),
        ([plain(r, 1, "RECV", 4 + r) for r in range(4)], (None, [])),
        ([both(r, 5, (str(r), DP[1]), numel=4 + r)[0] for r in range(4)], (None, [])),
        ([line for r in range(3) for line in both(r, 5, DP, numel=4 + r // 2)], (True, [2])),
    ],
    ids=[
        "two ranks",
        "a straggler",
        "nothing in common",
        "another group",
        "no sizes",
        "all-to-all",
        "receive",
        "groups not known",
        "in one group",
    ],
)
def test_sizes_are_compared_in_one_group_at_one_number(rows, expected):
    assert mismatch(examined(rows, world=8).facts) == expected


def test_different_operations_at_one_number():
    rows = [
        line
        for rank in range(4)
        for line in both(rank, 9, DP, operation="ALLREDUCE" if rank < 3 else "_ALLGATHER_BASE")
    ]

    found = examined(rows, world=4)

    assert mismatch(found.facts, "operation") == (True, [3])
    assert mismatch(found.facts) == (None, [])
    assert found.suspects == (3,)


def prints(own, other, event_rank="own"):
    """A row of `mismatches`: (rank, number, operation, shape) twice."""
    names = ("rank", "sequence", "operation", "shape")
    row = {f"own_{name}": value for name, value in zip(names, own, strict=True)}
    row |= {f"other_{name}": value for name, value in zip(names, other, strict=True)}
    return {**row, "event_rank": own[0] if event_rank == "own" else event_rank}


SMALL, LARGE = (3104, "ALLREDUCE", "51123000"), (3104, "ALLREDUCE", "195812000")


@pytest.mark.parametrize(
    ("rows", "sizes", "operations"),
    [
        (
            [
                prints((0, *SMALL), (2, *LARGE)),
                prints((1, *SMALL), (2, *LARGE)),
                prints((2, *LARGE), (0, *SMALL)),
            ],
            (True, [2]),
            (None, []),
        ),
        ([prints((1, *SMALL), (0, *LARGE), None)], (True, []), (None, [])),
        ([prints((r, *SMALL), (2, *LARGE), r + 8) for r in (0, 1)], (True, []), (None, [])),
        (
            [prints((r, 1649, "BARRIER", None), (3, 0, "GATHER", None)) for r in (0, 1, 2)],
            (None, []),
            (True, [3]),
        ),
        (
            [prints((r, 30, "BROADCAST", "2"), (0, 18, "BROADCAST", "2")) for r in (1, 2)],
            (None, []),
            (True, [0]),
        ),
        (
            [prints((r, None, "ALLGATHER", "4"), (2, None, "ALLGATHER", None)) for r in (0, 1)],
            (True, [2]),
            (None, []),
        ),
    ],
    ids=["shapes", "ranks unknown", "ranks of a group", "operations", "numbers", "no tensor"],
)
def test_fingerprints(rows, sizes, operations):
    echo = [{"kind": "exception", "role": "cascade", "rank": 0, "file": 0, "line": 1, "text": ""}]
    found = examined([], world=4, failed=echo, mismatches=event_rows("mismatches", rows))

    assert mismatch(found.facts) == sizes
    assert mismatch(found.facts, "operation") == operations
    assert list(found.suspects) == sizes[1] + operations[1]


def dumped(standing, members=range(4), guid="7"):
    """Tables of dumps: rank -> (number, operation, elements, state, last enqueued) of a group."""
    states = [
        {
            "event_rank": rank,
            "guid": guid,
            "sequence": number,
            "operation": operation,
            "numel_in": numel,
            "numel_out": numel,
            "state": state,
            "last_enqueued": enqueued,
            "last_completed": number - 1,
        }
        for rank, (number, operation, numel, state, enqueued) in standing.items()
    ]
    groups = [{"event_rank": r, "guid": guid, "ranks": list(members)} for r in standing]
    return {
        "dump_states": event_rows("dump_states", states),
        "dump_groups": event_rows("dump_groups", groups),
    }


WAITING = (12, "all_reduce", 8, "started", 12)
GLOO = [{"kind": "gloo", "rank": 0, "operation": "recv"}]


def test_the_rank_without_a_dump():
    found = examined(GLOO, world=4, **dumped(dict.fromkeys((0, 1, 2), WAITING)))

    facts = found.facts
    assert facts["dump_ranks"] == [0, 1, 2]
    assert (facts["dump_ranks_missing"], facts["dump_ranks_expected"]) == ([3], 4)
    assert found.suspects == (3,)


def test_a_rank_that_by_its_dump_waits_nowhere():
    standing = {**dict.fromkeys((0, 1, 3), WAITING), 2: (11, "all_reduce", 8, "completed", 11)}

    found = examined(GLOO, world=4, **dumped(standing))

    assert found.suspects == (2,)
    assert "rank 2 never entered number 12" in found.facts["timeout_reason"]
    assert mismatch(found.facts) == (False, [])


@pytest.mark.parametrize(
    ("standing", "kind", "expected"),
    [
        (
            {**dict.fromkeys(range(3), WAITING), 3: (12, "all_reduce", 9, "started", 12)},
            "size",
            [3],
        ),
        (
            {**dict.fromkeys(range(3), WAITING), 3: (12, "broadcast", 8, "scheduled", 12)},
            "operation",
            [3],
        ),
    ],
)
def test_mismatches_in_dumps(standing, kind, expected):
    found = examined(GLOO, world=4, **dumped(standing))

    assert mismatch(found.facts, kind) == (True, expected)
    assert found.suspects == (3,)


def test_dumps_of_several_attempts_are_not_compared():
    standing = {**dict.fromkeys(range(3), WAITING), 3: (12, "broadcast", 8, "scheduled", 12)}
    several = Witnesses(frozenset(range(4)), one_attempt=False)

    facts = examined(GLOO, world=4, witnesses=several, **dumped(standing)).facts

    assert facts["operation_mismatch_found"] is None
    assert facts["dump_ranks"] == [0, 1, 2, 3]
    assert facts["dump_ranks_missing"] is None
