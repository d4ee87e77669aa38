"""The launches of the workers, and which of them the verdict speaks of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.reporting import words
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from hcp_logscan.model.report import AttemptData, ReportData
    from hcp_logscan.reporting.words import Tone


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One row of the attempts table."""

    attempt: int
    judged: bool
    outcome: str
    outcome_tone: Tone
    status: str
    tone: Tone
    summary: str
    iterations: str
    when: str


def judged_attempt(data: ReportData) -> AttemptData | None:
    """The attempt the verdict speaks of."""
    found = [attempt for attempt in data.attempts if attempt.attempt == data.judged_attempt]
    return found[0] if found else None


def attempt_view(data: ReportData, attempt: AttemptData) -> AttemptView:
    """One row of the attempts table."""
    outcome, outcome_tone = words.OUTCOME_WORDS[attempt.outcome]
    status, _meaning, tone = words.STATUS_WORDS[attempt.verdict.status]
    return AttemptView(
        attempt=attempt.attempt,
        judged=attempt.attempt == data.judged_attempt,
        outcome=outcome,
        outcome_tone=outcome_tone,
        status=status,
        tone=tone,
        summary=attempt.verdict.summary,
        iterations=words.iteration_span(attempt),
        when=times(attempt.started, attempt.ended),
    )


def times(started: str | None, ended: str | None) -> str:
    """Begin and end to the second, the date once where it is the same.

    >>> times("2026-03-01T10:00:00.428", "2026-03-01T10:01:10")
    '2026-03-01 10:00:00 – 10:01:10'
    >>> times("2026-03-01T10:00:00", None), times(None, None)
    ('2026-03-01 10:00:00', 'no time stamps')
    """
    begin, end = (re.sub(r"\.\d+$", "", (t or "").replace("T", " ")) for t in (started, ended))
    if end and end.partition(" ")[0] == begin.partition(" ")[0]:
        end = end.partition(" ")[2]
    return " \u2013 ".join(time for time in (begin, end) if time) or _("no time stamps")
