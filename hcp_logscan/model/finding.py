"""Evidence, verdicts, judgements and findings: the conclusions of a scan, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

Status = Literal[
    "active",
    "inactive",
    "degenerate",
    "mixed",
    "rejected",
    "unconfirmed",
    "not_requested",
    "inconclusive",
]
STATUSES: Final[tuple[Status, ...]] = (
    "active",
    "inactive",
    "degenerate",
    "mixed",
    "rejected",
    "unconfirmed",
    "not_requested",
    "inconclusive",
)

Channel = Literal[
    "c10d",
    "flight_recorder",
    "te_debug",
    "nccl",
    "config",
    "path",
    "assertion",
    "throughput",
    "print",
]
CHANNELS: Final[tuple[Channel, ...]] = (
    "c10d",
    "flight_recorder",
    "te_debug",
    "nccl",
    "config",
    "path",
    "assertion",
    "throughput",
    "print",
)

Severity = Literal["note", "warning", "error"]
SEVERITIES: Final[tuple[Severity, ...]] = ("note", "warning", "error")
"""Mildest first: `SEVERITIES.index` compares two of them."""

Confidence = Literal["low", "medium", "high"]
Says = Literal["active", "inactive", "neutral"]
Grade = Literal["A", "B", "C"]
Outcome = Literal["fires", "clean", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the logs, and the line that stands there."""

    file: str
    "Path relative to the run directory, with `/`; archive members as `logs.tar.gz!/a/b.log`."

    line: int
    "Counts from 1."

    text: str = ""
    "The line itself, decoded, without its line end; cut at `MAX_TEXT` characters."

    rank: int | None = None
    "Global rank that printed it, None where it cannot be told."

    context: tuple[tuple[int, str], ...] = ()
    "Neighbouring lines as (line number, text), the line itself among them; empty where they"
    " were not read."


MAX_TEXT: Final = 2_000
"""Characters of one log line that a report carries."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of evidence for or against hierarchical context parallelism."""

    channel: Channel
    says: Says
    grade: Grade
    location: Location
    explanation: str = ""
    "What the line proves, in one sentence."

    layer_kind: str | None = None
    "Which attention layers it speaks of, where the channel tells; None speaks of all."

    process: str | None = None
    "Which process printed it, where that can be told though its global rank cannot; None if not."


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether hierarchical context parallelism was on in one attempt, and how that is known."""

    status: Status
    confidence: Confidence
    summary: str
    "One sentence for a headline."

    reasons: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    "The rerun recipe: empty for a verdict of high confidence."

    ranks_confirmed: int = 0
    "Ranks with runtime evidence for the status; 0 where only the configuration speaks."

    ranks_seen: int = 0
    evidence: tuple[Evidence, ...] = ()
    not_seen: tuple[str, ...] = ()
    "Channels that are silent, each with the reason why that silence proves nothing."


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule thinks of one attempt."""

    rule: str
    name: str
    severity: Severity
    confidence: Confidence
    attempt: int
    message: str
    why: str
    fix: str
    iteration: int | None = None
    "First iteration concerned; None where the finding is not about iterations."

    ranks: tuple[int, ...] = ()
    "Culprits; empty if unknown."

    references: tuple[str, ...] = ()
    evidence: tuple[Location, ...] = ()
    evidence_total: int = 0
    "Lines that count as evidence before the list was capped; first and last are kept."


MAX_REASON: Final = 500
"""Characters of a reason that are kept: it stands in every report."""


def one_reason(text: str) -> str:
    """A reason as reports carry it: one line of sensible length."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON else f"{line[: MAX_REASON - 1]}\u2026"


@dataclass(frozen=True, slots=True)
class Suppression:
    """That a user accepts what a rule finds, and why."""

    rule: str
    reason: str
    source: str
    "Who says so, as words: `.hcp-logscan.toml of the run directory`, ..."


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that was set aside: it counts for no gate, and it is shown."""

    finding: Finding
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of one rule for one attempt, fired or not."""

    rule: str
    attempt: int
    outcome: Outcome
    missing: tuple[str, ...] = field(default=())
    "For `inconclusive`: the facts that were not observed."
