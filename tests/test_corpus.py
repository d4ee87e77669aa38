"""Whole runs of the corpus beside the checkout: skipped where it is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs import check, corpus, equivalence, expected_of, runs_in, scan_or_nothing

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = corpus()
ABSENT = "no corpus beside the checkout, and HCP_LOGSCAN_CORPUS names none"
NOT_READ_YET: set[str] = set()
"""Excerpts of trainers whose step lines have no parser so far: their iterations would be missed."""

REAL = runs_in(CORPUS / "real") if CORPUS else []
PUBLIC = runs_in(CORPUS / "public") if CORPUS else []


@pytest.mark.skipif(CORPUS is None, reason=ABSENT)
@pytest.mark.parametrize("run", REAL, ids=lambda run: run.name)
def test_a_real_run_is_judged_by_its_truth(run: Path) -> None:
    report = scan_or_nothing(run / "run")
    assert check(report, expected_of(run)) + equivalence(report) == []


@pytest.mark.skipif(CORPUS is None, reason=ABSENT)
@pytest.mark.parametrize(
    "run", [run for run in PUBLIC if run.name[:2] not in NOT_READ_YET], ids=lambda run: run.name
)
def test_an_excerpt_of_a_public_log_is_read_right(run: Path) -> None:
    report = scan_or_nothing(run / "run")
    assert check(report, expected_of(run)) + equivalence(report) == []
