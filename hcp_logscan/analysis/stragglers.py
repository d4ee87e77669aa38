"""Which rank is slow, by reports that measure it apart from the others.

Step times of ranks behind a common barrier are equal and name nobody: they are not used. Megatron's
report measures the forward pass of each rank; stages of a pipeline differ in it by their layers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import polars as pl

from hcp_logscan.analysis.suspects import listed

if TYPE_CHECKING:
    from collections.abc import Mapping


def facts(tables: Mapping[str, pl.DataFrame], world_size: int | None) -> dict[str, Any]:
    """Facts of the table `attempts`, of the event tables of one attempt; empty without reports."""
    rows = tables["stragglers"]
    if not rows.height:
        return {}
    reports = rows.filter(pl.col("kind") == "report")
    valid = reports.filter(_is_valid(world_size))
    unsynchronised = rows.filter(pl.col("kind") == "unsynchronised").height
    named = Counter(
        rank
        for ranks in rows.filter(pl.col("kind") == "named")["ranks"].drop_nulls().to_list()
        for rank in ranks
    )
    found: dict[str, Any] = {
        "straggler_reports": valid.height,
        "straggler_reports_invalid": reports.height - valid.height + unsynchronised,
        "straggler_named_ranks": sorted(named),
        **_slowest(valid),
    }
    found["straggler_ranks"] = sorted(named) or [found["straggler_rank"]]
    found["straggler_text"] = _words(found, named)
    return found


def _is_valid(world_size: int | None) -> pl.Expr:
    """Whether the numbers of a report are possible: positive, finite, in order, of known ranks."""
    times, rates = ("min_ms", "max_ms"), ("min_tflops", "max_tflops")
    possible = [pl.col(name).is_finite() & (pl.col(name) > 0) for name in (*times, *rates)]
    ordered = [pl.col(low) <= pl.col(high) for low, high in (times, rates)]
    ranks = [pl.col(name) < (world_size or 1 << 62) for name in ("min_rank", "max_rank")]
    return pl.all_horizontal(*possible, *ordered, *ranks).fill_null(value=False)


def _slowest(valid: pl.DataFrame) -> dict[str, Any]:
    """The rank that is slowest most often, and by how much."""
    counts = Counter(valid["max_rank"].to_list())
    rank = min(counts, key=lambda one: (-counts[one], one), default=None)
    if rank is None:
        return {"straggler_rank": None}
    mine = valid.filter(pl.col("max_rank") == rank)
    return {
        "straggler_rank": rank,
        "straggler_share": mine.height / valid.height,
        "straggler_slowdown": (mine["max_ms"] / mine["min_ms"] - 1.0).median(),
    }


def _words(found: Mapping[str, Any], named: Counter[int]) -> str | None:
    if named:
        times = max(named.values())
        return f"NVRx named {listed(named)}, up to {times} time(s) each"
    if found["straggler_rank"] is None:
        return None
    return (
        f"rank {found['straggler_rank']} was the slowest in {found['straggler_share']:.0%} of"
        f" {found['straggler_reports']} reports, by a median of {found['straggler_slowdown']:.0%}"
        " against the fastest"
    )
