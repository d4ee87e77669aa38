"""Findings that a user accepts, as every report shows them: what, why, and which file says so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.reporting import words
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.model.finding import Severity
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.words import Tone


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule that was suppressed, attempts joined."""

    rule: str
    name: str
    severity: Severity
    tone: Tone
    attempts: str
    "Empty where the run has one."

    message: str
    reason: str
    source: str


def entries(data: ReportData) -> Iterator[Entry]:
    """What was suppressed, worst first."""
    said = {one.finding.rule: one for one in data.suppressed}
    for found, others in words.alike(one.finding for one in data.suppressed):
        why = said[found.rule]
        attempts = words.ranges((found.attempt, *others))
        yield Entry(
            found.rule,
            found.name,
            found.severity,
            words.SEVERITY_TONES[found.severity],
            _("attempt {attempt}", attempt=attempts) if len(data.attempts) > 1 else "",
            found.message,
            why.reason,
            why.source,
        )


def counted(data: ReportData) -> str:
    """`2 findings by pyproject.toml of the working directory`; empty where there is none."""
    many = Counter(one.source for one in data.suppressed)
    return _(", ").join(
        _("{many} by {source}", many=words.plural(n, "finding"), source=source)
        for source, n in many.items()
    )
