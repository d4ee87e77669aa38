"""Runs whose truth is known: their `expected.json`, and how a report is compared with it.

A run is a directory with `run/` (the logs as found) and `expected.json`:

- `truth`: in words. `status`: allowed verdicts, null sets no bound; `"nothing"` among them also
  allows that nothing was understood (exit code 3).
- `fires`, `silent`: rules that must and must not fire; `fires_any`: at least one of them must.
  Rules that the program does not ship are passed over.
- `iterations`: distinct (attempt, iteration) pairs; `attempts`; `last_loss`; `tflops_median`, where
  null says that no rate was printed.
- `culprit_rank`: the rank that rules of `CULPRIT_RULES` must name, if they name any.
  `first_bad_iteration`: where the loss and gradient rules of `fires` must begin.
- `errors`: `[]` where any finding of severity error is a false alarm; else the first cause, with
  the `rank` that its rules must name, if they name any.
"""

from __future__ import annotations

import functools
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scripts import script

from hcp_logscan import HcpLogscanError, scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan import Report

FIXTURES: Final = Path(__file__).parent / "fixtures"

OFF_RULES: Final = frozenset({"HCP001", "HCP002", "HCP003", "HCP006", "HCP009", "HCP014"})
"""They say that HCP was off: one truth with the statuses `inactive` and `mixed`."""

CULPRIT_RULES: Final = frozenset(
    {"HCP210", "HCP302", "HCP501", "HCP502", "HCP503", "HCP504", "HCP505", "HCP508", "HCP509"}
    | {"HCP401", "HCP402", "HCP403", "HCP404", "HCP510", "HCP511"}
)
CAUSES: Final[Mapping[str, frozenset[str]]] = script("benchmarks/score.py").CAUSES
"""Kind of a first cause in `errors` -> the rules of severity error, one of which must say so."""


def corpus() -> Path | None:
    """The corpus of whole runs, if it is on this machine: `HCP_LOGSCAN_CORPUS`, else beside us."""
    named = os.environ.get("HCP_LOGSCAN_CORPUS")
    path = Path(named) if named else Path(__file__).parents[2] / "shared" / "corpus"
    return path if path.is_dir() else None


def runs_in(folder: Path) -> list[Path]:
    """Run directories of a folder, in name order."""
    return sorted(path.parent for path in folder.glob("*/expected.json"))


def expected_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "expected.json").read_text(encoding="utf-8"))


def scan_or_nothing(path: Path) -> Report | None:
    """The report, or None where nothing was understood."""
    try:
        return scan(path)
    except HcpLogscanError as error:
        if error.exit_code == 3:
            return None
        raise


@functools.cache
def shipped() -> frozenset[str]:
    """Ids of the rules that the program ships."""
    from hcp_logscan.rules.load import load_rules

    return frozenset(rule.id for rule in load_rules())


def check(report: Report | None, expected: Mapping[str, Any]) -> list[str]:
    """Every disagreement of a report with the truth, in words."""
    allowed = expected.get("status")
    if report is None:
        if allowed is None or "nothing" in allowed:
            return []
        return [f"nothing was understood, expected {allowed}"]
    wrong = []
    if allowed is not None and report.verdict.status not in allowed:
        wrong.append(f"status is {report.verdict.status}, expected {allowed}")
    return wrong + _rules(report, expected) + _numbers(report, expected)


def _rules(report: Report, expected: Mapping[str, Any]) -> list[str]:
    fired = {finding.rule for finding in report.findings}
    must = set(expected.get("fires", ())) & shipped()
    wrong = [f"{rule} does not fire" for rule in sorted(must - fired)]
    wrong += [f"{rule} fires" for rule in sorted(fired & set(expected.get("silent", ())))]
    some = set(expected.get("fires_any", ())) & shipped()
    if some and not some & fired:
        wrong.append(f"none of {sorted(some)} fires")
    culprit, first_bad = expected.get("culprit_rank"), expected.get("first_bad_iteration")
    for finding in report.findings:
        rule, ranks = finding.rule, tuple(finding.ranks)
        names = culprit is not None and rule in must & CULPRIT_RULES and ranks
        if names and ranks != (culprit,):
            wrong.append(f"{rule} names ranks {ranks}, expected {culprit}")
        begins = first_bad is not None and rule in must and rule.startswith("HCP2")
        if begins and finding.iteration != first_bad:
            wrong.append(f"{rule} at iteration {finding.iteration}, expected {first_bad}")
    return wrong + _causes(report, expected)


def _causes(report: Report, expected: Mapping[str, Any]) -> list[str]:
    if "errors" not in expected:
        return []
    errors = {finding.rule for finding in report.findings if finding.severity == "error"}
    if not expected["errors"]:
        return [f"{rule} is a false alarm" for rule in sorted(errors)]
    kind, rank = expected["errors"][0]["kind"], expected["errors"][0].get("rank")
    causes = CAUSES.get(kind, frozenset()) & shipped()
    wrong = [f"no finding of {sorted(causes)} for {kind}"] if causes and not causes & errors else []
    for finding in report.findings:
        if finding.rule in causes & CULPRIT_RULES and rank is not None:
            ranks = tuple(finding.ranks)
            if ranks and ranks != (rank,):
                wrong.append(f"{finding.rule} names ranks {ranks} for {kind}, expected {rank}")
    return wrong


def _numbers(report: Report, expected: Mapping[str, Any]) -> list[str]:
    series = report.data.series
    pairs: list[tuple[str, float | None, float]] = [
        ("iterations", series.iterations, 0.0),
        ("attempts", len(report.data.attempts), 0.0),
        ("tflops_median", series.tflops_per_gpu.median, 5e-3),
        ("last_loss", series.lm_loss.last, 1e-4),
    ]
    wrong = []
    for name, seen, tolerance in pairs:
        if name not in expected or (name != "tflops_median" and expected[name] is None):
            continue
        truth = expected[name]
        if seen is None or truth is None:
            close = seen is truth
        else:
            close = math.isclose(seen, truth, rel_tol=tolerance, abs_tol=1e-12)
        if not close:
            wrong.append(f"{name} is {seen}, expected {truth}")
    return wrong


def equivalence(report: Report | None) -> list[str]:
    """Where rules and verdict disagree: per attempt, and for the run as a whole."""
    if report is None:
        return []
    wrong = []
    for attempt in report.data.attempts:
        status = attempt.verdict.status
        off = {f.rule for f in report.findings if f.attempt == attempt.attempt} & OFF_RULES
        if off and status not in {"inactive", "mixed"}:
            wrong.append(f"attempt {attempt.attempt} is {status}, but {sorted(off)} fire")
        if status == "inactive" and not off:
            wrong.append(f"attempt {attempt.attempt} is inactive, but no rule says so")
    attempts = report.data.attempts
    trained = [attempt for attempt in attempts if attempt.iterations]
    for judged in (trained or list(attempts))[-1:]:
        if judged.verdict.status != report.verdict.status:
            words = f"attempt {judged.attempt} is {judged.verdict.status}"
            wrong.append(f"the run is {report.verdict.status}, but its {words}")
    return wrong
