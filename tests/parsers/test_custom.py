"""Users' line formats at work: values and units, rows like any parser's, and time limits."""

import math
import multiprocessing
import pickle
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcp_logscan import scan
from hcp_logscan.analysis import iterations
from hcp_logscan.engine.plan import units
from hcp_logscan.engine.run import scan_files
from hcp_logscan.engine.scan import scan_batch
from hcp_logscan.model import events
from hcp_logscan.model.line_format import COLUMNS, KINDS, NEEDED, RESERVED, LineFormat, convert
from hcp_logscan.parsers import custom
from hcp_logscan.parsers.base import conform
from hcp_logscan.parsers.registry import needles, owners, parsers
from hcp_logscan.sources.discover import Selection, discover

STEP = LineFormat(
    "acme-step",
    "iterations",
    "acme step ",
    r"acme step (?P<iteration>[0-9]+) loss (?P<lm_loss>[^ ]+) in (?P<step_s>[0-9.]+) s",
)
SAVE = LineFormat(
    "acme-save", "checkpoints", "acme kept ", r"acme kept (?P<iteration>\d+)", kind="saved"
)
DONE = LineFormat("acme-done", "marks", "acme is done", "^acme is done", kind="training_done")
SLOW = LineFormat(
    "acme-slow", "iterations", "acme slow", r"acme slow (?P<iteration>[0-9]+)(?=(?:b*)*c)"
)
LEFT_OUT = {
    "other_loss_name": "said by the parser",
    "other_loss": "policies' losses: no figure to judge",
    "cut": "said by the parser",
    "producer": "said by the parser: the name of the format",
    "value": "belongs to marks of known trainers",
    "kind": "said by the format",
}


def lines_of(*texts):
    frame = pl.DataFrame({"text": texts, "line": range(1, len(texts) + 1)})
    return conform("drift", frame).drop("parser", "count", "last")


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_of_the_table_can_be_filled_or_is_left_out_for_a_reason(table):
    own = events.EVENTS[table].columns
    filled = {column.of or name: column for name, column in COLUMNS[table].items()}
    kinds = {"whole": pl.Int64(), "number": pl.Float64(), "clock": pl.String()}

    assert set(own) - set(filled) <= set(LEFT_OUT)
    assert {name: kinds[column.kind] for name, column in filled.items()} == {
        name: own[name] for name in filled
    }
    assert (NEEDED[table] or next(iter(filled))) in filled
    assert ("kind" in own) == (table in KINDS)


def test_frameworks_that_are_treated_in_their_own_way_cannot_be_taken():
    assert set(iterations._MEGATRON_LINE) <= set(RESERVED)
    assert not any(" " in parser.name for parser in parsers()), "a format's name has a blank"


@pytest.mark.parametrize(
    ("said", "table", "column", "words", "value"),
    [
        ("5.1204", "iterations", "step_ms", ("s",), 5120.4),
        ("2", "iterations", "step_ms", ("min",), 120_000.0),
        ("1.5", "iterations", "elapsed_s", ("h",), 5400.0),
        ("250", "iterations", "elapsed_s", ("ms",), 0.25),
        ("412,300.5", "iterations", "tflops_per_gpu", ("GFLOP/s", "commas"), 412.3005),
        ("0.41", "iterations", "tflops_per_gpu", ("PFLOP/s",), 410.0),
        ("41.7", "iterations", "mfu", ("percent",), 0.417),
        ("1.234,5", "iterations", "lm_loss", ("points",), 1234.5),
        ("22.8 K", "iterations", "tokens_per_s_per_gpu", ("suffix",), 22_800.0),
        ("1.5M", "iterations", "consumed_samples", ("suffix",), 1_500_000),
        ("1,234", "iterations", "consumed_samples", ("commas",), 1234),
        ("1,234", "iterations", "consumed_samples", (), None),
        ("1.5", "iterations", "iteration", (), None),
        ("9" * 30, "iterations", "iteration", (), None),
        ("1e9999", "iterations", "iteration", (), None),
        ("nan", "iterations", "iteration", (), None),
        ("-Inf", "iterations", "lm_loss", (), -math.inf),
        ("none", "iterations", "lm_loss", (), None),
        ("", "iterations", "lm_loss", (), None),
        ("20310301 09:14:20", "marks", "time", (), "2031-03-01 09:14:20"),
        ("2031/03/01T09:14:20,5", "marks", "time", (), "2031-03-01 09:14:20.5"),
        ("1930122860.25", "marks", "time", ("epoch",), "2031-03-01 09:14:20.25"),
        ("1e40", "marks", "time", ("epoch",), None),
    ],
)
def test_values_are_read_in_the_unit_of_their_column(said, table, column, words, value):
    assert convert(said, table, column, words) == value


@settings(max_examples=50, deadline=None)
@given(
    st.text("0123456789.,:/ eE+-KTnaif", max_size=40),
    st.sampled_from(sorted(COLUMNS["iterations"])),
)
def test_no_text_breaks_the_reading_of_a_value(said, name):
    column = COLUMNS["iterations"][name]
    for words in ((), *((unit,) for unit in column.units), ("commas",), ("points", "suffix")):
        value = convert(said, "iterations", name, words)
        assert value is None or isinstance(value, int | float | str)


def test_rows_are_those_of_any_parser_and_what_does_not_fit_is_drift():
    rows, drift = custom.CustomParser(STEP).parse(
        lines_of("acme step 7 loss nan in 5.12 s", "acme step x", "acme step 8 loss 2.5 in 5 s")
    )

    assert rows.schema == pl.Schema(events.schema("iterations"))
    wanted = ["line", "iteration", "lm_loss", "step_ms", "producer", "cut", "mfu"]
    assert rows.select(wanted).rows(named=True)[1] == dict(
        zip(wanted, (3, 8, 2.5, 5000.0, "acme-step", False, None), strict=True)
    )
    assert math.isnan(rows["lm_loss"][0])
    assert drift.select("line", "parser").rows() == [(2, "format acme-step")]


def test_lines_that_hold_the_needle_by_chance_are_no_drift_where_the_format_says_so():
    quiet = LineFormat(STEP.format, STEP.table, STEP.needle, STEP.pattern, drift=False)
    rows, drift = custom.CustomParser(quiet).parse(lines_of("acme step x"))

    assert (rows.height, drift.height) == (0, 0)


def test_a_pattern_that_gives_no_answer_in_time_is_switched_off_and_both_are_told():
    line = "acme slow 1" + "b" * 9000
    parser = custom.CustomParser(SLOW)
    rows, drift = parser.parse(lines_of(*[line] * 9))

    assert rows.height == 0
    assert drift["parser"].to_list() == (
        ["format acme-slow (no answer within 50 ms)"] * custom.MAX_TIMEOUTS
        + ["format acme-slow (switched off: its pattern is too slow)"] * 4
    )
    assert custom.CustomParser(SLOW).off is False


def test_many_lines_that_are_each_just_in_time_are_too_slow_together(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(custom, "thread_time", lambda: next(clock) * 0.04)
    _, drift = custom.CustomParser(STEP).parse(lines_of(*["acme step 1 loss 2 in 5 s"] * 40))

    assert set(drift["parser"]) == {"format acme-step (switched off: its pattern is too slow)"}
    assert 10 <= drift.height <= 20


def test_formats_come_beside_the_parsers_and_stay_with_their_scan():
    assert b"acme step " in needles((STEP,))
    assert b"acme step " not in needles()
    assert STEP in owners((STEP,))[needles((STEP,)).index(b"acme step ")]
    assert pickle.loads(pickle.dumps(STEP)) == STEP


RUN = {
    "rank0.log": "".join(
        f"[default0]:\x1b[32m[rank0]: acme step {n} loss {3 - n / 10} in 5.0 s\x1b[0m\n"
        for n in range(1, 7)
    )
    + "acme kept 6\nacme step ? loss\nacme is done\n",
    "rank1.log": "".join(
        f"bar 10%\racme step {n} loss {3 - n / 10} in 5.0 s\n" for n in range(1, 7)
    ),
}


@pytest.fixture
def run_dir(tmp_path):
    for name, text in RUN.items():
        (tmp_path / "run" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "run" / name).write_text(text)
    return tmp_path / "run"


def test_lines_of_formats_go_the_whole_way(run_dir):
    tables = scan_files(discover(run_dir, Selection(formats=(STEP, SAVE, DONE))))

    assert tables["iterations"]["line_rank"].drop_nulls().unique().to_list() == [0]
    assert tables["checkpoints"].select("kind", "iteration").rows() == [("saved", 6)]
    assert tables["marks"]["kind"].to_list() == ["training_done"]
    assert tables["drift"].select("parser", "count").rows() == [("format acme-step", 1)]
    assert [stats.recognised for stats in tables.stats] == [8, 6]
    assert scan_files(discover(run_dir))["iterations"].height == 0


def test_any_split_gives_the_same_rows(run_dir):
    found = discover(run_dir)
    whole = scan_batch(list(units(found.files, formats=(STEP,))))
    parts = [scan_batch([one]) for one in units(found.files, unit_bytes=100, formats=(STEP,))]

    assert sum(
        part.frames["iterations"].height for part in parts if "iterations" in part.frames
    ) == (whole.frames["iterations"].height)


YAML = """\
format: acme-step
table: iterations
needle: "acme step "
pattern: 'acme step (?P<iteration>[0-9]+) loss (?P<lm_loss>[^ ]+) in (?P<step_s>[0-9.]+) s'
samples:
  - {line: acme step 7 loss 2.5 in 5.12 s, gives: {iteration: 7, lm_loss: 2.5, step_ms: 5120}}
refuses: [acme stepped]
"""


def test_any_number_of_workers_gives_the_same_bytes(run_dir, tmp_path):
    (tmp_path / "acme.yaml").write_text(YAML)
    report = scan(run_dir, formats=[tmp_path / "acme.yaml"])

    assert report.data.run.framework == "acme-step"
    assert report.data.series.iterations == 6
    assert [(one.parser, one.count) for one in report.data.health.drift] == [
        ("format acme-step", 1)
    ]
    command = [sys.executable, "-m", "hcp_logscan", str(run_dir), "--formats", "acme.yaml"]
    done = subprocess.run(
        [*command, "-f", "json", "--workers", "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout == report.to_json()
    assert multiprocessing.active_children() == []


def test_formats_reach_standard_input(run_dir, tmp_path):
    (tmp_path / "acme.yaml").write_text(YAML)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "hcp_logscan",
            "-",
            "--formats",
            str(tmp_path),
            "-f",
            "json",
            "--strict",
        ],
        input=RUN["rank0.log"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert '"framework": "acme-step"' in done.stdout
    assert done.returncode == 1
    assert "--strict: 1 lines of unknown format" in done.stderr
