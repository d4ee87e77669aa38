"""Any split of a file into units gives the same tables."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from hcp_logscan.engine.plan import Unit, units
from hcp_logscan.engine.run import merge, scan_files
from hcp_logscan.engine.scan import scan_batch
from hcp_logscan.sources.discover import discover
from hcp_logscan.sources.scanner import TAIL_BYTES

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = [
    FIXTURES / run / "run" / "console.log"
    for run in (
        "exception-rank1",
        "restart-after-sigkill",
        "bridge-setup-only",
        "degenerate-41",
        "nemo-rl-policy",
    )
]


def split_tables(path, cuts):
    found = discover(path)
    size = path.stat().st_size
    starts = [0, *sorted({cut % size for cut in cuts} - {0})]
    pieces = [
        Unit(0, str(path), start, end)
        for start, end in zip(starts, [*starts[1:], None], strict=True)
    ]
    return merge(found, [scan_batch([piece]) for piece in pieces])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parts[-3])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cuts=st.lists(st.integers(1, 1 << 40), min_size=1, max_size=5))
def test_any_split_gives_the_same_tables(path, cuts):
    whole = scan_files(discover(path))
    split = split_tables(path, cuts)

    assert split.stats[0].lines == whole.stats[0].lines
    assert split.stats[0].bytes == whole.stats[0].bytes == path.stat().st_size
    assert split.stats[0].tail == whole.stats[0].tail == path.read_bytes()[-TAIL_BYTES:]
    for table, frame in whole.frames.items():
        order = [
            name for name in ("file", "line", "source", "key", "kind") if name in frame.columns
        ]
        assert_frame_equal(split[table].sort(order), frame.sort(order), check_row_order=True)


def test_plain_files_are_cut_into_units_and_compressed_ones_are_not(tmp_path):
    (tmp_path / "a.log").write_bytes(b"using world size: 1\n" * 100)
    (tmp_path / "b.log.gz").write_bytes(b"")
    found = discover(tmp_path)

    cut = list(units(found.files, unit_bytes=500))

    assert [(unit.file, unit.start, unit.end) for unit in cut] == [
        (0, 0, 500),
        (0, 500, 1000),
        (0, 1000, 1500),
        (0, 1500, None),
        (1, 0, None),
    ]


def test_folded_rows_count_their_repeats(tmp_path):
    line = "[Rank 3] (after 5 iterations) memory (MB) | allocated: 0.00 | max allocated: 0.00\n"
    (tmp_path / "a.log").write_text(line * 50)

    rows = scan_files(discover(tmp_path))["rank_lines"]

    assert rows.select("rank", "line", "count", "last").rows() == [(3, 1, 50, 50)]


def test_needle_without_pattern_is_drift(tmp_path):
    (tmp_path / "a.log").write_text("iter 5 of 10, elapsed time per iteration: 3 s\n" * 3)

    drift = scan_files(discover(tmp_path))["drift"]

    assert drift.select("parser", "count").rows() == [("megatron-iteration", 3)]
    assert drift.schema["count"] == pl.Int64


def test_unreadable_file_is_an_entry_and_no_exception(tmp_path):
    path = tmp_path / "gone.log"
    result = scan_batch([Unit(0, str(path))])

    assert result.units[0].error == "No such file or directory"


def test_lines_behind_a_progress_bar_stay_in_their_stream(tmp_path):
    bar = "Loading:  33%|\u2588\u2588\r"
    traceback = (
        "Traceback (most recent call last):",
        '  File "/opt/train.py", line 3, in <module>',
        "    main()",
        "ValueError: x",
    )
    lines = [f"{label}: {bar}{said}\n" for said in traceback for label in (0, 1)]
    path = tmp_path / "slurm-1.out"
    path.write_text("".join(lines), encoding="utf-8")
    found = scan_files(discover(path)).frames["tracebacks"]
    assert found.select("label", "exception", "last_frame").rows() == [
        (0, "ValueError", "train.py:<module>"),
        (1, "ValueError", "train.py:<module>"),
    ]


@pytest.mark.parametrize(
    "run", sorted(path.parent for path in FIXTURES.glob("*/run"))[::6], ids=lambda run: run.name
)
def test_lines_sorted_together_give_what_lines_sorted_alone_give(run, monkeypatch):
    found = discover(run / "run")
    together = scan_files(found)
    monkeypatch.setattr("hcp_logscan.engine.scan.odd", lambda: pl.lit(value=True))
    alone = scan_files(found)

    assert together.stats == alone.stats
    for table, frame in alone.frames.items():
        assert_frame_equal(together[table], frame)
