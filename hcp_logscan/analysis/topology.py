"""Which ranks should form the hierarchical groups, and which did.

The rule is Megatron-Core's (``parallel_state.RankGenerator`` and ``create_hierarchical_groups``,
core 0.10 to main of 2026-08): ranks are numbered in the order tp, cp, dp, pp (or tp, cp, pp, dp
with ``use_tp_pp_dp_mapping``; expert parallelism divides dp and moves nothing); within the ranks
of one context parallel group, L0 are consecutive blocks of the first size, L1 the ranks at that
stride.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.runtime import LEVEL
from hcp_logscan.model.report import RankGroups
from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_LAID_OUT: Final = 65_536
"""A larger world is not laid out: its numbers are more likely wrong than real."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Parallel sizes and rank order."""

    world_size: int
    tp_size: int
    cp_size: int
    pp_size: int
    sizes: tuple[int, int]
    pp_before_dp: bool = False


def layout_of(facts: Mapping[str, Any], *, pp_before_dp: bool) -> Layout | None:
    """The layout, None where a size is unknown or they do not fit together."""
    world, tp_size, cp_size, pp_size = (
        facts[name] for name in ("world_size", "tp_size", "cp_size", "pp_size")
    )
    sizes = facts["hcp_sizes"]
    if not (world and tp_size and cp_size and pp_size and sizes) or world > MAX_LAID_OUT:
        return None
    if len(sizes) != 2 or sizes[0] * sizes[1] != cp_size or world % (tp_size * cp_size * pp_size):
        return None
    return Layout(world, tp_size, cp_size, pp_size, (sizes[0], sizes[1]), pp_before_dp)


def cp_groups(layout: Layout) -> list[list[int]]:
    """Every context parallel group as its global ranks, in order.

    >>> cp_groups(Layout(8, 1, 4, 1, (2, 2)))
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    >>> cp_groups(Layout(8, 2, 2, 2, (2, 1)))[1]
    [1, 3]
    """
    dp_size = layout.world_size // (layout.tp_size * layout.cp_size * layout.pp_size)
    outer = dp_size * layout.pp_size  # the two outer axes only number the blocks
    block = layout.tp_size * layout.cp_size
    return [
        [start * block + cp * layout.tp_size + tp for cp in range(layout.cp_size)]
        for start in range(outer)
        for tp in range(layout.tp_size)
    ]


def levels(ranks: Sequence[int], sizes: tuple[int, int]) -> tuple[list[list[int]], list[list[int]]]:
    """The groups of L0 and of L1 within one context parallel group.

    >>> levels([0, 1, 2, 3], (2, 2))
    ([[0, 1], [2, 3]], [[0, 2], [1, 3]])
    """
    inner = sizes[0]
    return (
        [list(ranks[k : k + inner]) for k in range(0, len(ranks), inner)],
        [list(ranks[k::inner]) for k in range(inner)],
    )


def _seen(tables: Mapping[str, pl.DataFrame]) -> dict[tuple[int, int], tuple[int, ...]]:
    """(rank, level) -> members, from dumps and from creation lines joined to opened groups."""
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    dumps = tables["dump_groups"].drop_nulls(["event_rank", "description", "ranks"])
    for rank, description, members in dumps.select(
        "event_rank", "description", "ranks"
    ).iter_rows():
        if (match := LEVEL.fullmatch(description)) and members:
            found[rank, int(match[1])] = tuple(members)
    return found | _from_creation(tables["group_lines"], found)


def _from_creation(
    rows: pl.DataFrame, known: Mapping[tuple[int, int], tuple[int, ...]]
) -> dict[tuple[int, int], tuple[int, ...]]:
    """Members by group name, where as many ranks created the group as it has members."""
    opened = rows.filter((pl.col("kind") == "opened") & pl.col("description").is_not_null())
    described = dict(opened.select("guid", "description").unique("guid").iter_rows())
    created = rows.filter(pl.col("kind") == "created").drop_nulls(["guid", "global_rank", "size"])
    members = created.group_by("guid").agg(
        pl.col("global_rank").unique().sort(), pl.col("size").max()
    )
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for guid, ranks, size in members.iter_rows():
        match = LEVEL.fullmatch(described.get(guid, ""))
        if match and len(ranks) == size:
            found.update({(rank, int(match[1])): tuple(ranks) for rank in ranks})
    return {key: value for key, value in found.items() if key not in known}


def topology(tables: Mapping[str, pl.DataFrame], layout: Layout | None) -> tuple[RankGroups, ...]:
    """Expected and seen hierarchical groups, one row per rank; empty where no layout is known."""
    if layout is None:
        return ()
    seen = _seen(tables)
    rows = [
        RankGroups(
            rank=rank,
            cp_group=tuple(ranks),
            l0=next(tuple(group) for group in inner if rank in group),
            l1=next(tuple(group) for group in outer if rank in group),
            seen_l0=seen.get((rank, 0)),
            seen_l1=seen.get((rank, 1)),
        )
        for ranks in cp_groups(layout)
        for inner, outer in [levels(ranks, layout.sizes)]
        for rank in ranks
    ]
    return tuple(sorted(rows, key=lambda row: row.rank))


def wrong(rows: Sequence[RankGroups]) -> list[str]:
    """What is wrong with the groups that were seen, in words; empty if nothing is."""
    found = []
    for row in rows:
        for level, members, expected in ((0, row.seen_l0, row.l0), (1, row.seen_l1, row.l1)):
            if members is not None and members != expected:
                found.append(
                    say(
                        "rank {rank} had the L{level} group {members}; its place asks for"
                        " {expected}",
                        rank=row.rank,
                        level=level,
                        members=list(members),
                        expected=list(expected),
                    )
                )
    return found
