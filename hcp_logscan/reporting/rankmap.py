"""The map of ranks: one cell per rank, neighbours of equal state joined into one shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from hcp_logscan.model.said import N_
from hcp_logscan.reporting import words
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

MAX_CELLS: Final = 4_096
"""Ranks up to which a map is drawn; the lists below it always name all states."""

State = Literal["missing", "named", "confirmed", "seen"]
STATE_WORDS: Final[Mapping[State, str]] = {
    "missing": N_("no logs"),
    "named": N_("named by a finding"),
    "confirmed": N_("confirmed by runtime evidence"),
    "seen": N_("logs, but no runtime evidence"),
}
"""First match wins: a culprit stays visible whether confirmed or not."""

_CELL: Final = 14
_LABELS: Final = 40


@dataclass(frozen=True, slots=True)
class Cell:
    """A run of neighbouring ranks in one row of the map."""

    x: int
    y: int
    width: int
    state: State


@dataclass(frozen=True, slots=True)
class RankMap:
    """Shapes of the map in drawing units, and the same in words."""

    width: int
    height: int
    cell: int
    columns: tuple[int, ...]
    "Vertical lines between cells."

    rows: tuple[tuple[int, str], ...]
    "Top of each row, and its label: the number of its first rank."

    cells: tuple[Cell, ...]
    legend: tuple[tuple[State, str, str], ...]
    "State, its meaning, and the ranks in it."


def rank_map(
    *,
    confirmed: AbstractSet[int],
    seen: AbstractSet[int],
    missing: AbstractSet[int],
    named: AbstractSet[int],
) -> RankMap | None:
    """The map of all ranks that are known of; None if there is none."""
    known = confirmed | seen | missing | named
    if not known:
        return None
    sets: dict[State, AbstractSet[int]] = {
        "missing": missing,
        "named": named,
        "confirmed": confirmed,
        "seen": seen,
    }
    states = {rank: next(s for s, members in sets.items() if rank in members) for rank in known}
    last = max(known)
    across = 8 if last < 32 else (16 if last < 128 else 32)
    rows = range(last // across + 1) if last < MAX_CELLS else range(0)
    return RankMap(
        width=across * _CELL + _LABELS,
        height=len(rows) * _CELL,
        cell=_CELL,
        columns=tuple(_LABELS + number * _CELL for number in range(1, across)),
        rows=tuple((row * _CELL, str(row * across)) for row in rows),
        cells=tuple(_cells(states, across)) if rows else (),
        legend=tuple(_legend(states)),
    )


def _cells(states: dict[int, State], across: int) -> Iterator[Cell]:
    for state in STATE_WORDS:
        for first, last in words.runs(rank for rank, found in states.items() if found == state):
            start = first
            while start <= last:
                end = min(last, start - start % across + across - 1)
                yield Cell(
                    x=_LABELS + start % across * _CELL,
                    y=start // across * _CELL,
                    width=(end - start + 1) * _CELL,
                    state=state,
                )
                start = end + 1


def _legend(states: dict[int, State]) -> Iterator[tuple[State, str, str]]:
    for state, meaning in STATE_WORDS.items():
        members = [rank for rank, found in states.items() if found == state]
        if members:
            many = words.plural(len(members), "rank")
            yield state, _(meaning), _("{name}: {what}", name=many, what=words.ranges(members))
