"""Who fell silent long before all others is a suspect, where a job hung and nothing better tells."""

import pytest

from hcp_logscan import scan

WORLD = (
    "using world size: 4, data-parallel size: 4, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)
LIMIT = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T{} DUE TO TIME LIMIT ***\n"


def step(iteration, time):
    return (
        f" [2026-03-01 {time}.123456] iteration {iteration:8d}/     200 | consumed samples: 4 |"
        " elapsed time per iteration (ms): 5000.0 | learning rate: 1.0E-05 | global batch size:    "
        " 4 | lm loss: 8.3E+00 | loss scale: 1.0 | grad norm: 2.1 | number of skipped iterations:"
        "   0 | number of nan iterations:   0 |\n"
    )


def says(time, text="batch is ready"):
    return f"2026-03-01 {time},123 INFO data.py:12 {text}\n"


def timeout(rank, time="10:12:00"):
    return (
        f"[rank{rank}]:[E301 {time}.111222333 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog"
        " caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1,"
        " NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    )


def steps(*, spoken=True):
    times = [f"10:01:{second:02d}" for second in range(10, 60, 5)]
    lines = (step(n, time) if spoken else says(time) for n, time in enumerate(times, start=1))
    return "".join(lines)


@pytest.fixture
def told(tmp_path):
    def run(ends, begin=None, console=""):
        """Four ranks train until 10:01:55; `ends` is what each prints behind that."""
        for rank, end in enumerate(ends):
            text = (begin or {}).get(rank, steps(spoken=rank == 2))
            (tmp_path / f"rank_{rank}.log").write_text((WORLD if rank == 0 else "") + text + end)
        if console:
            (tmp_path / "slurm-7.out").write_text(console)
        # a stranger's file that cannot be read: no longer is every silence that of a rank
        (tmp_path / "other.log.gz").write_bytes(b"\x1f\x8b\x08broken")
        return scan(tmp_path)

    return run


def suspects(report):
    return report.data.attempts[-1].facts["culprit_ranks"]


WAITING = [timeout(0), timeout(1), timeout(2)]


def test_the_rank_whose_file_ends_ten_minutes_before_the_others_is_suspected(told):
    report = told([*WAITING, ""])

    assert suspects(report) == [3]
    assert report.data.stories[0].sentences[0] == (
        "Rank 3 is the prime suspect: rank 3 fell silent first: its last line is of 03-01 10:01:55,"
        " 0:10:05 before those of all other ranks, which lie within 0 s of each other"
        " [rank_3.log:10]."
    )


def test_a_rank_that_logs_only_its_start_has_that_habit(told):
    assert suspects(told([*WAITING, ""], begin={3: says("10:00:50", "loaded")})) == []
    assert suspects(told([*WAITING, ""], begin={3: says("10:01:49")})) == []
    assert suspects(told([*WAITING, ""], begin={3: says("10:01:50")})) == [3]


def test_two_ranks_that_fell_silent_are_none(told):
    assert suspects(told([timeout(0), timeout(1), "", ""])) == []


def test_a_line_without_a_time_may_be_younger_than_all(told):
    assert suspects(told([*WAITING, "still reading shard 17\n"])) == []


def test_a_rank_whose_end_carries_no_time_may_be_older(told):
    silent = {1: "reading shard 3\n"}
    assert suspects(told([timeout(0), "", timeout(2), ""], begin=silent)) == []


def test_less_than_a_minute_is_no_silence(told):
    waits = [timeout(rank, "10:02:55") for rank in (0, 1, 2)]
    assert suspects(told([*waits, ""])) == []
    waits = [timeout(rank, "10:02:56") for rank in (0, 1, 2)]
    assert suspects(told([*waits, ""])) == [3]


def test_others_that_lie_far_apart_themselves_show_nothing(told):
    waits = [timeout(0, "10:12:00"), timeout(1, "10:12:00"), timeout(2, "10:08:00")]
    assert suspects(told([*waits, ""])) == []


def test_a_run_that_stood_still_until_its_time_limit_hung(told):
    talk = [says("10:03:20", "no batch for 60 s")] * 3
    report = told([*talk, ""], console=LIMIT.format("11:00:00"))

    assert suspects(report) == [3]
    assert [f.rule for f in report.findings if f.rule == "HCP303"] == ["HCP303"]
    first, last = report.data.stories[0].sentences
    assert "Rank 3 is the prime suspect: rank 3 fell silent first" in first
    assert last.startswith("It ended by time limit of the job")


def test_a_run_that_trained_until_its_time_limit_did_not_hang(told):
    talk = [says("10:03:20", "no batch for 60 s")] * 3
    report = told([*talk, ""], console=LIMIT.format("10:11:55"))

    assert suspects(report) == []
    assert report.data.attempts[-1].outcome == "time_limit"


def test_a_healthy_run_with_a_silent_rank_has_no_story(told):
    done = "[after training is done] datetime: 2026-03-01 10:20:00 \n"
    report = told([says("10:20:00"), says("10:20:00"), done, ""])

    assert suspects(report) == []
    assert report.data.stories[0].sentences == ()


@pytest.mark.parametrize("speaker", [0, 3])
def test_where_one_rank_logs_the_steps_the_others_are_silent_by_habit(told, speaker):
    start = {rank: says(f"10:00:{50 - rank * 15}", "loaded") for rank in range(4)}
    start[speaker] = steps()
    report = told(["", "", "", ""], begin=start, console=LIMIT.format("11:00:00"))

    assert suspects(report) == []
    assert report.data.attempts[-1].outcome == "time_limit"
