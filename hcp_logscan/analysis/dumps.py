"""What flight-recorder dumps say together: which ranks wrote one, and where their groups stand.

A dump does not say which attempt wrote it, and an older one may lie beside those of the last: where
a job has several attempts, the dumps of different ranks are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

Key = tuple[str, tuple[int, ...]]
"""A group by its name and its members, empty if not listed: names are not unique, as those of
groups that were split from one parent are equal."""


@dataclass(slots=True)
class Dumps:
    """The dumps of one attempt."""

    ranks: frozenset[int] = frozenset()
    "Ranks that wrote one."

    members: frozenset[int] = frozenset()
    "Members of all groups that the dumps list."

    nameless: bool = False
    "A dump whose rank its name does not tell."

    enqueued: dict[Key, dict[int, int]] = field(default_factory=dict)
    "Group -> rank -> number of the last collective that it enqueued."

    unfinished: dict[Key, dict[int, int]] = field(default_factory=dict)
    "Group -> rank -> number of the first collective that did not end."

    states: list[tuple[Key, Mapping[str, Any]]] = field(default_factory=list)
    "Rows of the event table `dump_states` whose rank is known, with their group."

    @property
    def missing(self) -> list[int] | None:
        """Members of the listed groups without a dump; None where that cannot be told."""
        if not self.ranks or not self.members or self.nameless:
            return None
        return sorted(self.members - self.ranks)

    def outside(self) -> dict[int, tuple[str, int, int]]:
        """Ranks that did not enter a collective in which others wait, and wait in none themselves.

        Rank -> (group name, number in which the others wait, number of its own last one).
        """
        waiting = {rank for ranks in self.unfinished.values() for rank in ranks}
        found: dict[int, tuple[str, int, int]] = {}
        for key, ranks in self.unfinished.items():
            number = max(ranks.values())
            for rank, last in self.enqueued[key].items():
                if last < number and rank not in waiting:
                    found.setdefault(rank, (key[0], number, last))
        return found

    def counters(self, guid: str | None, ranks: set[int]) -> dict[int, int]:
        """Rank -> number of its last collective, in the group of this name with these members."""
        for (name, members), counts in self.enqueued.items():
            if name == guid and (not members or ranks <= set(members)):
                return dict(counts)
        return {}

    def facts(self) -> dict[str, Any]:
        """Facts of the table `attempts`."""
        missing = self.missing
        return {
            "dump_ranks": sorted(self.ranks) if self.ranks else None,
            "dump_ranks_missing": missing,
            "dump_ranks_expected": None if missing is None else len(self.members),
        }


def read(tables: Mapping[str, pl.DataFrame], attempt: int) -> Dumps:
    """The dumps of one attempt; empty where there are none."""
    mine = {
        name: tables[name].filter(pl.col("attempt") == attempt)
        for name in ("dump_groups", "dump_entries", "dump_states")
    }
    owners = pl.concat([frame.select("file", "event_rank") for frame in mine.values()]).unique()
    if not owners.height:
        return Dumps()
    found = Dumps(
        frozenset(owners["event_rank"].drop_nulls().to_list()),
        frozenset(mine["dump_groups"]["ranks"].explode().drop_nulls().to_list()),
        bool(owners["event_rank"].has_nulls()),
    )
    groups = mine["dump_groups"].select("event_rank", "guid", "ranks").rows()
    members = {(rank, guid): tuple(ranks or ()) for rank, guid, ranks in groups}
    known = mine["dump_states"].drop_nulls("event_rank").sort("file", "sequence")
    for row in known.iter_rows(named=True):
        rank, guid = row["event_rank"], row["guid"]
        key = (guid, members.get((rank, guid), ()))
        found.states.append((key, row))
        found.enqueued.setdefault(key, {})[rank] = row["last_enqueued"]
        if row["state"] in {"scheduled", "started"}:
            found.unfinished.setdefault(key, {}).setdefault(rank, row["sequence"])
    return found
