"""Exit codes: what a report means for the job that asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from hcp_logscan.cli.show import complain
from hcp_logscan.model.finding import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.api import Report
    from hcp_logscan.model.finding import Finding

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

_NEEDS_PROGRESS: Final = frozenset({"active", "unconfirmed", "degenerate", "not_requested"})
"""Statuses that `--expect` accepts only with a finished iteration and without an error finding."""


class FailOn(StrEnum):
    """From which severity on findings make the exit code 1."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Gate:
    """What makes the exit code 1."""

    statuses: tuple[str, ...] = ()
    "Those that --expect accepts; empty accepts all."

    fail_on: FailOn = FailOn.ERROR
    strict: bool = False

    def stopping(self, report: Report) -> Iterator[Finding]:
        """Findings at or above --fail-on."""
        if self.fail_on is not FailOn.NEVER:
            least = SEVERITIES.index(self.fail_on.value)
            yield from (
                found for found in report.findings if SEVERITIES.index(found.severity) >= least
            )

    def code(self, report: Report, run: str = "") -> int:
        """The exit code. Standard error says why, unless findings do; `run` goes before it."""
        data, lead = report.data, f"{run}: " if run else ""
        failed = any(self.stopping(report))
        if self.statuses and not _met(report, self.statuses):
            failed = True
            complain(
                f"{lead}--expect {','.join(self.statuses)} is not met: the verdict is"
                f" {data.verdict.status} with {data.series.iterations} finished iterations and"
                f" {sum(found.severity == 'error' for found in data.findings)} error findings."
            )
        if self.strict and (troubles := "; ".join(_troubles(report))):
            failed = True
            complain(f"{lead}--strict: {troubles}.")
        return EXIT_FINDINGS if failed else EXIT_CLEAN


def _troubles(report: Report) -> Iterator[str]:
    health = report.data.health
    for name, entries in (
        ("lines of unknown format", health.drift),
        ("unreadable files", health.unreadable),
        ("truncated inputs", health.truncated),
    ):
        if entries:
            yield f"{len(entries)} {name}"


def _met(report: Report, statuses: tuple[str, ...]) -> bool:
    status = report.verdict.status
    if status not in statuses:
        return False
    if status not in _NEEDS_PROGRESS:
        return True
    errors = any(found.severity == "error" for found in report.findings)
    return bool(report.data.series.iterations) and not errors
