"""The evidence for the verdict: channels, what they say, and the lines that say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting import words
from hcp_logscan.reporting.tongue import _
from hcp_logscan.reporting.view.excerpts import MAX_LINES, Excerpt, counted, excerpts, opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.model.finding import Channel, Evidence, Status, Verdict
    from hcp_logscan.reporting.words import Tone

OPEN_PIECES: Final = 2
"""Lines shown of what a channel says on many ranks: one per level of one rank."""


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """What a channel says, once or on many ranks, ready to show."""

    says: str
    tone: Tone
    grade: str
    traits: tuple[str, ...]
    explanation: str
    excerpts: tuple[Excerpt, ...]
    more_excerpts: tuple[Excerpt, ...]
    more_places: int
    hidden: int


@dataclass(frozen=True, slots=True)
class ChannelView:
    """One channel: what it is, what it says, and the lines."""

    name: str
    meaning: str
    summary: str
    tone: Tone
    grade: str
    lines: str
    pieces: tuple[EvidenceView, ...]
    hidden: int
    "Lines of pieces that are not shown."


_DECIDED_BY: Final[Mapping[Status, Channel]] = {
    "rejected": "assertion",
    "degenerate": "config",
    "not_requested": "config",
    "unconfirmed": "config",
}
"""Channel whose first line the first reason rests on, where no evidence of its own decided."""


@dataclass(frozen=True, slots=True)
class ReasonView:
    """Why the verdict is what it is, and the line that says so."""

    text: str
    channel: str
    "Of the line; empty where the reason rests on no single one."

    where: str


_SAYS_TONES: Final[Mapping[str, Tone]] = {"active": "good", "inactive": "bad", "neutral": "calm"}


def reasons(verdict: Verdict) -> list[ReasonView]:
    """The reasons, each with the first line it rests on.

    A reason that is no piece's own stands first where the configuration decided.
    """
    first: dict[str, Evidence] = {}
    for piece in verdict.evidence:
        first.setdefault(piece.explanation, piece)
    decided = _DECIDED_BY.get(verdict.status)
    found = [first.get(text) for text in verdict.reasons]
    if found[:1] == [None]:
        found[0] = next((p for p in verdict.evidence if p.channel == decided), None)
    return [_reason(text, piece) for text, piece in zip(verdict.reasons, found, strict=True)]


def _reason(text: str, piece: Evidence | None) -> ReasonView:
    if piece is None:
        return ReasonView(text, "", "")
    return ReasonView(text, piece.channel, f"{piece.location.file}:{piece.location.line}")


def spoken(verdict: Verdict) -> set[str]:
    """The channels that say something."""
    return {piece.channel for piece in verdict.evidence}


def channels(verdict: Verdict) -> list[ChannelView]:
    """The channels that say something, strongest first."""
    found = []
    for name, meaning in words.CHANNEL_WORDS.items():
        pieces = [piece for piece in verdict.evidence if piece.channel == name]
        if pieces:
            found.append(_channel(name, meaning, pieces))
    return found


def _channel(name: str, meaning: str, pieces: Sequence[Evidence]) -> ChannelView:
    says = {piece.says for piece in pieces}
    loud = [word for word in ("active", "inactive") if word in says]
    joined = words.same_pieces(pieces)
    tone: Tone = _SAYS_TONES[loud[0]] if len(loud) == 1 else ("bad" if loud else "calm")
    return ChannelView(
        name=name,
        meaning=meaning,
        summary=_(" and ").join(loud) or "neutral",
        tone=tone,
        grade=min(piece.grade for piece in pieces),
        lines=words.lines_on_ranks(pieces),
        pieces=tuple(_piece(same) for same in joined[:MAX_LINES]),
        hidden=sum(len(same) for same in joined[MAX_LINES:]),
    )


def _piece(pieces: Sequence[Evidence]) -> EvidenceView:
    first = pieces[0]
    found = excerpts(piece.location for piece in pieces[:MAX_LINES])
    shown = opened(found, OPEN_PIECES)
    layers = _("{kind} layers", kind=first.layer_kind) if first.layer_kind else ""
    many = words.lines_on_ranks(pieces) if len(pieces) > 1 else ""
    return EvidenceView(
        says=first.says,
        tone=_SAYS_TONES[first.says],
        grade=first.grade,
        traits=tuple(trait for trait in (layers, many) if trait),
        explanation=first.explanation,
        excerpts=found[:shown],
        more_excerpts=found[shown:],
        more_places=counted(found[shown:]),
        hidden=max(len(pieces) - MAX_LINES, 0),
    )
