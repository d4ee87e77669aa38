"""What each rank did last."""

from hcp_logscan import scan

WORLD = (
    "using world size: 2, data-parallel size: 2, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)
STEP = (
    " [2026-03-01 09:50:00.123456] iteration        3/     200 | consumed samples: 4 |"
    " elapsed time per iteration (ms): 500.0 | learning rate: 1.0E-05 | global batch size:     4"
    " | lm loss: 8.3E+00 | loss scale: 1.0 | grad norm: 2.1 | number of skipped iterations:   0"
    " | number of nan iterations:   0 |\n"
)
TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/opt/app/train.py", line 7, in train\n    step()\nValueError: bad batch\n'
)


def activity(report):
    return [(r.rank, r.last_time, r.last_iteration, r.last_phase) for r in report.data.ranks]


def test_ranks_with_files_of_their_own_end_where_their_files_end(tmp_path):
    (tmp_path / "rank_0.log").write_text(
        f"{WORLD}2026-03-01 09:50:07,001 INFO app: reading shard 3\nqueue is empty\n\n"
    )
    (tmp_path / "rank_1.log").write_text(STEP + TRACE)
    report = scan(tmp_path)

    assert activity(report) == [
        (0, "03-01 09:50:07", None, None),
        (1, "03-01 09:50:00", 3, "iteration 4 or later"),
    ]
    assert [row.last_line for row in report.data.ranks] == [
        "queue is empty",
        "ValueError: bad batch",
    ]
    page = report.to_html()
    assert "<td>03-01 09:50:00; iteration 3; failed: iteration 4 or later</td>" in page


def test_ranks_of_one_console_end_with_their_last_recognised_line(tmp_path):
    memory = "[rank{0}]:[Rank {0}] (after {1} iterations) memory (MB) | allocated: 0.00\n"
    stop = "[rank1]:[I301 10:01:02.1 ProcessGroupNCCL.cpp:885] [PG ID 0 PG GUID 0 Rank 1]"
    (tmp_path / "train.log").write_text(
        f"{WORLD}{memory.format(0, 1)}{memory.format(1, 2)}{stop} ProcessGroupNCCL initialization"
        " options: size: 2, global rank: 1, TIMEOUT(ms): 600000, USE_HIGH_PRIORITY_STREAM: 0\n"
    )

    assert activity(scan(tmp_path)) == [(0, None, 1, None), (1, "03-01 10:01:02", 2, None)]


def test_a_file_that_ends_in_a_long_line_shows_its_end_without_a_time(tmp_path):
    (tmp_path / "rank_0.log").write_text(WORLD + "2026-03-01 09:50:07 " + "x" * 9_000)
    (tmp_path / "rank_1.log").write_text(STEP)

    first, _ = scan(tmp_path).data.ranks
    assert first.last_time is None
    assert first.last_line == "x" * 200
