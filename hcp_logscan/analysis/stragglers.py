"""Which rank is slow, by reports that measure it apart from the others.

Step times of ranks behind a common barrier are equal and name nobody: they are not used. Megatron's
report measures the forward pass of each rank; stages of a pipeline differ in it by their layers.
Its lists show more than the slowest: the ranks of a slow node take turns in being that, and all of
them are at the lower end every time.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.suspects import listed
from hcp_logscan.model.said import say

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
    lists, broken = _lists(rows, world_size)
    found: dict[str, Any] = {
        "straggler_reports": valid.height,
        "straggler_reports_invalid": reports.height - valid.height + unsynchronised + broken,
        "straggler_named_ranks": sorted(named),
        **_slowest(valid),
        **_lowest(lists),
        **_scores(rows),
    }
    found["straggler_ranks"], found["straggler_text"] = _named(found, named)
    return found


_MAJORITY: Final = 0.5
"""A rank that is the slowest more often than all others together is the one to name."""

List = tuple[dict[int, float], float]
"""TFLOP/s of the ranks at the lower end, and the median of those at the upper end."""


def _lists(rows: pl.DataFrame, world_size: int | None) -> tuple[list[List], int]:
    """Pairs of lists of one report that are possible, and how many are not."""
    wanted = rows.filter(pl.col("kind").is_in(["lowest", "highest"])).sort("file", "line")
    found: list[List] = []
    broken, low = 0, None
    for kind, ranks, values in wanted.select("kind", "ranks", "values").iter_rows():
        ends = [rate for rate in values or [] if rate is not None]
        fits = ends and all(math.isfinite(rate) and rate > 0 for rate in ends)
        fits = fits and ends == sorted(ends) and len(ends) == len(set(ranks))
        if not fits or max(ranks) >= (world_size or 1 << 62):
            broken, low = broken + 1, None
        elif kind == "lowest":
            low = dict(zip(ranks, ends, strict=True))
        elif low is not None:
            found.append((low, statistics.median(ends)))
            low = None
    return found, broken


def _lowest(lists: list[List]) -> dict[str, Any]:
    """The ranks that are at the lower end most often, and how far the best of them is below."""
    counts = Counter(rank for low, _ in lists for rank in low)
    most = max(counts.values(), default=0)
    ranks = sorted(rank for rank, count in counts.items() if count == most)
    deficits = [
        statistics.median(1.0 - low[rank] / high for low, high in lists if rank in low)
        for rank in ranks
    ]
    return {
        "straggler_lists": len(lists),
        "straggler_low_ranks": ranks,
        "straggler_low_share": most / len(lists) if lists else None,
        "straggler_low_deficit": min(deficits, default=None),
    }


def _scores(rows: pl.DataFrame) -> dict[str, Any]:
    """The rank with the lowest score of NVRx, over all of its reports."""
    scores: dict[int, list[float]] = {}
    wanted = rows.filter(pl.col("kind") == "score").select("ranks", "values")
    for ranks, values in wanted.iter_rows():
        if ranks[0] is not None and values[0] is not None and math.isfinite(values[0]):
            scores.setdefault(ranks[0], []).append(values[0])
    medians = {rank: statistics.median(mine) for rank, mine in scores.items()}
    rank = min(medians, key=lambda one: (medians[one], one), default=None)
    return {
        "straggler_score_rank": rank,
        "straggler_score": None if rank is None else medians[rank],
        "straggler_scores": 0 if rank is None else len(scores[rank]),
    }


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


def _named(found: Mapping[str, Any], named: Counter[int]) -> tuple[list[int], str | None]:
    """Who is slow, as ranks and in words: by NVRx, as the slowest of most reports, by lists."""
    rank, low = found["straggler_rank"], found["straggler_low_ranks"]
    if named:
        times = max(named.values())
        words = say(
            "NVRx named {ranks}, up to {times} time(s) each", ranks=listed(named), times=times
        )
        return sorted(named), words
    if rank is not None and (found["straggler_share"] > _MAJORITY or not low):
        return [rank], say(
            "rank {rank} was the slowest in {share:.0%} of {reports} reports, by a median of"
            " {slowdown:.0%} against the fastest",
            rank=rank,
            share=found["straggler_share"],
            reports=found["straggler_reports"],
            slowdown=found["straggler_slowdown"],
        )
    if low:
        return low, say(
            "{ranks} stood at the lower end of {share:.0%} of {lists} lists, at least"
            " {deficit:.0%} below the upper end",
            ranks=listed(low),
            share=found["straggler_low_share"],
            lists=found["straggler_lists"],
            deficit=found["straggler_low_deficit"],
        )
    scored = found["straggler_score_rank"]
    if scored is None:
        return [], None
    return [scored], say(
        "rank {rank} has NVRx's lowest score, a median of {score:.2f} in {reports} report(s)",
        rank=scored,
        score=found["straggler_score"],
        reports=found["straggler_scores"],
    )
