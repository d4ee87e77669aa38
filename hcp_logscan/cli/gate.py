"""Exit codes: what a report means for the job that asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from hcp_logscan.cli.show import complain
from hcp_logscan.model.finding import SEVERITIES
from hcp_logscan.reporting.wishes import Wishes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.api import Report
    from hcp_logscan.model.finding import Finding
    from hcp_logscan.reporting.tongue import Lang

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130


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

    def wishes(
        self, charts: Literal["interactive", "static"] = "interactive", lang: Lang = "en"
    ) -> Wishes:
        """The same, as reports need it."""
        fail_on = next((name for name in SEVERITIES if name == self.fail_on.value), None)
        return Wishes(charts, self.statuses, fail_on, self.strict, lang)

    def stopping(self, report: Report) -> Iterator[Finding]:
        """Findings at or above --fail-on."""
        return filter(self.wishes().stops, report.findings)

    def code(self, report: Report, run: str = "") -> int:
        """The exit code. Standard error says why, unless findings do; `run` goes before it."""
        data, lead, wishes = report.data, f"{run}: " if run else "", self.wishes()
        if why := wishes.unmet(data):
            complain(f"{lead}--expect {','.join(self.statuses)} is not met: {why}.")
        if why := wishes.troubles(data):
            complain(f"{lead}--strict: {why}.")
        return EXIT_FINDINGS if wishes.failed(data) else EXIT_CLEAN
