from __future__ import annotations

import dataclasses
import io
import re

import pytest
import samples
from rich.console import Console

from hcp_logscan.reporting.text import print_text, render_text

MAKERS = [*samples.ALL, samples.huge]
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("width", [20, 40, 100, 200])
def test_hostile_log_text_sends_nothing_to_the_terminal(make, width):
    text = render_text(samples.filled(make(), samples.HOSTILE), width=width)
    assert not CONTROLS.search(text)
    assert "[red]" in text.replace("\n", "")


def test_colours_are_ours_alone():
    text = render_text(samples.filled(samples.inactive(), samples.HOSTILE), color=True)
    assert set(re.findall("\x1b.", text)) == {"\x1b["}
    assert not CONTROLS.search(re.sub("\x1b\\[[0-9;]*m", "", text))


def test_markup_stays_literal():
    data = samples.filled(samples.inactive(), "[red]x[/] :smile:")
    assert "[red]x[/] :smile:" in render_text(data)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("width", [40, 100])
def test_lines_fit_and_have_no_trailing_blanks(make, width):
    for line in render_text(make(), width=width).splitlines():
        assert len(line) <= width
        assert line == line.rstrip()


def test_verdict_comes_first_in_words():
    lines = render_text(samples.inactive()).splitlines()
    assert lines[1] == "HCP INACTIVE  (high confidence)"
    assert lines[2].startswith("a2a+p2p was trained without hierarchical sizes")
    assert lines[3] == "Coverage: seen on 30 of 32 ranks"


def test_story_stands_before_the_findings_where_something_broke():
    text = render_text(samples.inactive())
    broke = text.index(
        "What broke  Rank 3 broke first in iteration 7.\n" + " " * 12 + "Then 31 ranks"
    )
    assert broke < text.index("Findings  ")
    assert "What broke" not in render_text(samples.empty())


def test_numbers_carry_units():
    text = render_text(samples.inactive())
    assert "1,914.4 TFLOP/s/GPU median" in text
    assert "4,211 tokens/s/GPU" in text
    assert "13.06 → 3.616" in text


def test_failure_comes_first_where_hcp_was_not_requested():
    lines = render_text(samples.not_requested()).splitlines()
    assert lines[1].startswith("ERROR  HCP501 Rank 3 ran out of GPU memory")
    assert lines[2] == "The run reached iteration 37 (failed)."
    assert lines[3] == "Hierarchical CP: not requested (high confidence). cp_comm_type is p2p."


def test_progress_comes_first_where_nothing_is_known():
    lines = render_text(samples.empty()).splitlines()
    assert lines[1] == "No launch of workers was recognised in these logs."


def test_evidence_has_its_place_and_the_rest_is_counted():
    text = render_text(samples.inactive())
    assert "at logs/rank_00000.log:40" in text
    assert "at logs/rank_00000.log:45" in text  # the last one is kept
    assert "and 37 more lines" in text
    assert "and 119 more lines" in text


def test_long_lists_are_limited_and_counted():
    data = samples.inactive()
    findings = tuple(
        dataclasses.replace(finding, rule=f"HCP{n}{at}")
        for n in range(9)
        for at, finding in enumerate(data.findings)
    )
    data = dataclasses.replace(data, findings=findings, attempts=data.attempts * 20)
    text = render_text(data)
    assert "35 more: 21 errors, 7 warnings, 7 notes (the reports list them)" in text
    assert "40, the first 32 not shown" in text


def test_one_rule_in_several_attempts_is_told_once():
    data = samples.inactive()
    first = data.findings[0]
    again = [dataclasses.replace(first, attempt=number) for number in (1, 2, 4)]
    text = render_text(dataclasses.replace(data, findings=tuple(again)))
    assert text.count("HCP002") == 1
    assert "attempt 1, also attempt 2, 4" in text


def test_advice_goes_on_after_a_colon():
    data = samples.inactive()
    finding = dataclasses.replace(data.findings[0], fix="Run:\n\n    X_Y=1 a\n\nNever shown.")
    text = render_text(dataclasses.replace(data, findings=(finding,)))
    assert "fix: Run: X_Y=1 a\n" in text
    assert "Never shown" not in text


def test_next_steps_and_health_end_the_summary():
    text = render_text(samples.inactive())
    assert "  1. Rerun with NVTE_DEBUG=1" in text
    assert text.index("Next steps") < text.index("Scan health  31 files, 48.1 MB")


def test_a_given_console_is_used():
    console = Console(file=io.StringIO(), width=80)
    print_text(samples.inactive(), console)
    assert console.file.getvalue() == render_text(samples.inactive(), width=80)
