"""Which ranks a process group has: as dumps or creation lines show it, else as configured.

What is configured is trusted only where every rank that is known of the group stands at its place:
the number that c10d prints counts inside the group. The order of ranks is Megatron-Core's, as in
`topology`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.runtime import LEVEL
from hcp_logscan.analysis.topology import MAX_LAID_OUT, Layout, cp_groups, levels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.analysis.waits import Group, Wait

_TENSOR: Final = "TENSOR_MODEL_PARALLEL_GROUP"
_CONTEXT: Final = "CONTEXT_PARALLEL_GROUP"


def members(
    tables: Mapping[str, pl.DataFrame], waits: Sequence[Wait], config: Mapping[str, Any]
) -> list[int]:
    """Global ranks of the group of these waits, in the order of the group; empty if not known.

    `config` holds the facts of the configuration.
    """
    if not waits:
        return []
    group = waits[0].group
    if group.is_default:
        return list(range(config.get("world_size") or 0))
    shown = _shown(tables, group, {wait.rank for wait in waits})
    return shown or _configured(waits, group, config)


def _shown(tables: Mapping[str, pl.DataFrame], group: Group, waiting: set[int | None]) -> list[int]:
    """Members by dumps or creation lines; several groups may have one name."""
    if group.guid is None:
        return []
    dumps = tables["dump_groups"].filter(pl.col("guid") == group.guid).drop_nulls("ranks")
    for ranks in dumps["ranks"].to_list():
        if waiting <= set(ranks):
            return list(ranks)
    created = (
        tables["group_lines"]
        .filter((pl.col("kind") == "created") & (pl.col("guid") == group.guid))
        .drop_nulls(["global_rank", "size"])
    )
    ranks = sorted(set(created["global_rank"].to_list()))
    whole = waiting <= set(ranks) and created["size"].max() == len(ranks)
    return ranks if whole else []


def _configured(waits: Sequence[Wait], group: Group, config: Mapping[str, Any]) -> list[int]:
    placed = [(wait.rank, wait.group_rank) for wait in waits if wait.group_rank is not None]
    if not placed or any(wait.rank is None for wait in waits):
        return []
    for ranks in _laid_out(group.description, config):
        if placed[0][0] in ranks:
            pairs = {(rank, place) for place, rank in enumerate(ranks)}
            fits = all((rank, place) in pairs for rank, place in placed)
            return ranks if fits and all(wait.rank in ranks for wait in waits) else []
    return []


def _laid_out(description: str | None, config: Mapping[str, Any]) -> list[list[int]]:
    """Every group of one kind, by the configured sizes; none for a kind that is not laid out."""
    world, tp_size, cp_size, pp_size = (
        config.get(name) for name in ("world_size", "tp_size", "cp_size", "pp_size")
    )
    if not (world and tp_size and cp_size and pp_size) or world > MAX_LAID_OUT:
        return []
    if world % (tp_size * cp_size * pp_size):
        return []
    if description == _TENSOR:
        return [list(range(start, start + tp_size)) for start in range(0, world, tp_size)]
    level = LEVEL.fullmatch(description or "")
    if description != _CONTEXT and not level:
        return []
    flat = cp_groups(Layout(world, tp_size, cp_size, pp_size, (cp_size, 1)))
    sizes = config.get("hcp_sizes")
    if not level:
        return flat
    if not sizes or len(sizes) != 2 or sizes[0] * sizes[1] != cp_size or int(level[1]) > 1:
        return []
    return [ranks for group in flat for ranks in levels(group, (sizes[0], sizes[1]))[int(level[1])]]
