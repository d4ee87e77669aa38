"""What a caller wishes of a report: how charts are drawn, and when the run counts as failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from hcp_logscan.model.finding import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.model.finding import Finding, Severity
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.tongue import Lang

NEEDS_PROGRESS: Final = frozenset({"active", "unconfirmed", "degenerate", "not_requested"})
"""Statuses that are accepted only with a finished iteration and without an error finding."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """As the options `--charts`, `--expect`, `--fail-on` and `--strict` say."""

    charts: Literal["interactive", "static"] = "interactive"
    expect: tuple[str, ...] = ()
    "Statuses of the verdict that are accepted; empty accepts all."

    fail_on: Severity | None = "error"
    "Findings of at least this severity fail the run; None: no finding does."

    strict: bool = False
    "Lines of unknown format, unreadable files and truncated inputs fail it."

    lang: Lang = "en"
    "Of HTML and Markdown; what other programs read is English."

    def stops(self, found: Finding) -> bool:
        """Whether a finding fails the run."""
        if self.fail_on is None:
            return False
        return SEVERITIES.index(found.severity) >= SEVERITIES.index(self.fail_on)

    def unmet(self, data: ReportData) -> str:
        """Why the verdict is not what was expected; empty where it is."""
        if not self.expect or _meets(data, self.expect):
            return ""
        return (
            f"the verdict is {data.verdict.status} with {data.series.iterations} finished"
            f" iterations and {_errors(data)} error findings"
        )

    def troubles(self, data: ReportData) -> str:
        """What of the logs `--strict` does not accept; empty without it."""
        return "; ".join(troubles(data)) if self.strict else ""

    def failed(self, data: ReportData) -> bool:
        """Whether the run counts as failed."""
        stopped = any(map(self.stops, data.findings))
        return stopped or bool(self.unmet(data)) or bool(self.troubles(data))


def troubles(data: ReportData) -> Iterator[str]:
    """What of the logs was not read or not understood, counted."""
    health = data.health
    for name, entries in (
        ("lines of unknown format", health.drift),
        ("unreadable files", health.unreadable),
        ("truncated inputs", health.truncated),
    ):
        if entries:
            yield f"{len(entries)} {name}"


def _errors(data: ReportData) -> int:
    return sum(found.severity == "error" for found in data.findings)


def _meets(data: ReportData, statuses: tuple[str, ...]) -> bool:
    status = data.verdict.status
    if status not in statuses:
        return False
    if status not in NEEDS_PROGRESS:
        return True
    return bool(data.series.iterations) and not _errors(data)
