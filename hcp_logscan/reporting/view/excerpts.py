"""Places in the logs as the page shows them: a line with its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.safe import cut

if TYPE_CHECKING:
    from hcp_logscan.model.finding import Location

MAX_LINES: Final = 12

_LONG_LINE: Final = 600


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an excerpt."""

    number: int
    text: str
    hit: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A place in the logs with its lines."""

    where: str
    rank: str
    lines: tuple[Line, ...]


def excerpt(place: Location) -> Excerpt:
    """A place with its neighbours where they were read, else with its own line."""
    context = place.context or ((place.line, place.text),)
    return Excerpt(
        where=f"{place.file}:{place.line}",
        rank="" if place.rank is None else f"rank {place.rank}",
        lines=tuple(
            Line(n, text if n == place.line else cut(text, _LONG_LINE), n == place.line)
            for n, text in context
        ),
    )
