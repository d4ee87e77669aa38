"""Places in the logs as the page shows them: a line with its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.safe import cut
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hcp_logscan.model.finding import Location

MAX_LINES: Final = 12

MAX_HITS: Final = 3
"""Places that one excerpt joins."""

_LONG_LINE: Final = 600


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an excerpt."""

    number: int
    text: str
    hit: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A place in the logs, or a few that are neighbours, with its lines."""

    where: str
    rank: str
    lines: tuple[Line, ...]


def excerpts(places: Iterable[Location]) -> tuple[Excerpt, ...]:
    """Places with their neighbours where they were read, in their order.

    Neighbouring places of one file and rank, whose lines overlap or touch, are one excerpt.
    """
    joined: list[list[Location]] = []
    for place in places:
        if joined and len(joined[-1]) < MAX_HITS and _touches(joined[-1], place):
            joined[-1].append(place)
        else:
            joined.append([place])
    return tuple(_excerpt(together) for together in joined)


def counted(shown: Iterable[Excerpt]) -> int:
    """Places in the excerpts."""
    return sum(line.hit for found in shown for line in found.lines)


def opened(found: Sequence[Excerpt], most: int) -> int:
    """How many excerpts to show before the rest is folded: those of the first `most` places."""
    return next((n for n in range(len(found)) if counted(found[:n]) >= most), len(found))


def _context(place: Location) -> tuple[tuple[int, str], ...]:
    return place.context or ((place.line, place.text),)


def _touches(together: Sequence[Location], place: Location) -> bool:
    first = together[0]
    if (first.file, first.rank) != (place.file, place.rank):
        return False
    last = max(number for other in together for number, _ in _context(other))
    return together[-1].line < place.line and _context(place)[0][0] <= last + 1


def _excerpt(together: Sequence[Location]) -> Excerpt:
    first = together[0]
    read = [(place, number, text) for place in together for number, text in _context(place)]
    hits = {number: text for place, number, text in read if number == place.line}
    lines = {number: cut(text, _LONG_LINE) for _, number, text in read} | hits
    return Excerpt(
        where=f"{first.file}:{', '.join(str(place.line) for place in together)}",
        rank="" if first.rank is None else _("rank {rank}", rank=first.rank),
        lines=tuple(Line(number, lines[number], number in hits) for number in sorted(lines)),
    )
