"""Every fixture run, scanned whole, against its `expected.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs import FIXTURES, check, equivalence, expected_of, runs_in, scan_or_nothing

if TYPE_CHECKING:
    from pathlib import Path

RUNS = runs_in(FIXTURES)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_report_tells_the_truth(run: Path) -> None:
    report = scan_or_nothing(run / "run")
    assert check(report, expected_of(run)) + equivalence(report) == []


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_fixture_says_where_it_comes_from(run: Path) -> None:
    assert (run / "ORIGIN.md").read_text(encoding="utf-8").strip()
    assert any(path.is_file() for path in (run / "run").rglob("*"))


def test_every_kind_of_verdict_that_a_default_log_can_have_is_among_the_fixtures() -> None:
    seen = {status for run in RUNS for status in expected_of(run)["status"] or ()}
    assert seen >= {
        "rejected",
        "degenerate",
        "inactive",
        "unconfirmed",
        "not_requested",
        "inconclusive",
        "nothing",
    }
