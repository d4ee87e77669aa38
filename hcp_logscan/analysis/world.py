"""How many ranks a job has where neither its configuration nor a launcher says it.

Proof is what could not be there in a job of another size:

* c10d's first process group, or the group `default_pg` of a flight-recorder dump: the whole world
* the rank that prints the iteration lines. Megatron's is the last one (``print_rank_last`` in
  ``megatron/training/utils.py``, core 0.1 to main of 2026-08, and Megatron-Bridge): the world is
  one more, where every rank below it was seen, too, and none above it

Proofs that differ, or that tensor, pipeline and context parallel sizes do not divide, are none.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from hcp_logscan.model.report import MAX_WORLD
from hcp_logscan.model.said import N_

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hcp_logscan.analysis.config import Config

_DEFAULT: Final = "default_pg"
_LAST_RANK_PRINTS: Final = frozenset({"megatron"})

SAID_BY: Final = {
    "args_dump": N_("the argument dump"),
    "world_size_line": N_("its start-up line"),
    "device_mesh": N_("its device mesh"),
    "launcher": N_("the launcher"),
    "mllog": N_("MLPerf's log lines"),
    "progress": "progress.txt",
}
"""Source of a configured value -> who says it."""


class World(NamedTuple):
    """A number of ranks, and what proves it, in words."""

    size: int
    source: str


def said_by(known: Config) -> str | None:
    """Who says the number of ranks in a configuration; None where it does not say it."""
    if known.facts["world_size"] is None:
        return None
    place = known.places.get("world_size")
    if place is None:
        return N_("the product of the parallel sizes")
    return SAID_BY.get(place.source, N_("the configuration"))


def proven(
    events: Mapping[str, pl.DataFrame], seen: Sequence[int], configs: Sequence[Mapping[str, Any]]
) -> World | None:
    """What the events of a job prove; None where nothing does, or proofs disagree.

    `events` have `event_rank`, `seen` are the ranks that were told apart, `configs` the facts of
    the configuration of each attempt.
    """
    found = [*_groups(events), *_last_rank(events["iterations"], seen)]
    sizes = {world.size for world in found}
    if len(sizes) != 1 or not 0 < found[0].size <= MAX_WORLD:
        return None
    size = found[0].size
    if seen and seen[-1] >= size:
        return None
    return found[0] if all(_divides(known, size) for known in configs) else None


def _groups(events: Mapping[str, pl.DataFrame]) -> Iterator[World]:
    created = events["group_lines"].filter(
        (pl.col("kind") == "created")
        & (pl.col("guid") == "0")
        & (pl.col("description").is_null() | pl.col("description").is_in([_DEFAULT, "undefined"]))
    )
    for size in created["size"].drop_nulls().unique().sort():
        yield World(int(size), N_("c10d's first process group"))
    dumped = events["dump_groups"].filter(pl.col("description") == _DEFAULT)
    for size in dumped["ranks"].list.len().drop_nulls().unique().sort():
        if size:
            yield World(int(size), N_("flight-recorder dumps"))


def _last_rank(lines: pl.DataFrame, seen: Sequence[int]) -> Iterator[World]:
    printed = lines.filter(pl.col("producer").is_in(_LAST_RANK_PRINTS))
    ranks = printed["event_rank"].unique().to_list()
    if len(ranks) != 1 or ranks[0] is None or ranks[0] < 1:
        return
    if list(seen) == list(range(ranks[0] + 1)):
        yield World(ranks[0] + 1, N_("the rank that prints the iterations, which is the last one"))


def _divides(known: Mapping[str, Any], size: int) -> bool:
    sizes = [known[name] or 1 for name in ("tp_size", "pp_size", "cp_size")]
    return size % prod(sizes) == 0
