"""The series of two runs laid beside each other: pairs of values, and thirds of them.

A line averages over the iterations since the line before, so it stands in the middle of them. Both
runs are placed by that middle, in iterations or in consumed samples, and a value of the baseline
between two of its lines is taken from the straight line between them. So different log intervals
and batch sizes meet at the same place of training. Where runs share no place (one was resumed where
the other never came) or print no number, the order of lines is left: it says how fast, not how far.

The iterations that have a counterpart are cut into an early, a middle and a late third. Each has
the median of the ratios pair by pair, their quartiles, and the standard error of that median:
1.2533 standard deviations over the root of their number. The deviation is that of all pairs from
the medians of their thirds, since a few pairs may agree by chance; of many pairs it is estimated by
the median absolute deviation, which outliers do not move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.analysis.steady import DEVIATION_OF_NORMAL, deviation, steady
from hcp_logscan.model.comparison import AlignedBy, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.model.comparison import WindowName

SPEEDS: Final = ("tokens_per_s_per_gpu", "step_ms", "tflops_per_gpu")
"""Series that are compared in the steady state."""

COURSES: Final = ("lm_loss", "grad_norm")
"""Series that depend on how far training has come."""

MIN_ROWS: Final = 6
"""Iterations with a counterpart: two in each third."""

_MANY_PAIRS: Final = 20
"""Pairs from which on outliers are told from scatter."""

_WIDEST_GAP: Final = 4
"""Times the usual distance of lines; over a wider gap no straight line is drawn."""

_LEAST, _MOST = 1e-100, 1e100
"""What is beyond is a damaged number, and no ratio of it can be computed with."""

_MEDIAN_ERROR: Final = 1.2533
_PLACE: Final = "_place"


@dataclass(frozen=True, slots=True)
class Alignment:
    """Two series on one scale."""

    by: AlignedBy | None
    ours: pl.DataFrame
    "Rows of the fact table `iterations` with a counterpart, in order, with their place."

    theirs: pl.DataFrame
    "All placed rows of the baseline."

    windows: tuple[Window, ...] = ()

    def window(self, metric: str, name: WindowName) -> Window | None:
        """One third of one series; None where it has no pair."""
        found = (w for w in self.windows if w.metric == metric and w.window == name)
        return next(found, None)


def align(ours: pl.DataFrame, theirs: pl.DataFrame, *, same_batch: bool) -> Alignment:
    """Lay one attempt beside the baseline; both are rows of the fact table `iterations`.

    `same_batch` says whether the configured batch sizes are the same, as far as lines do not print
    theirs.
    """
    ours, theirs = ours.filter("finished"), theirs.filter("finished")
    by = _in_common(ours, theirs, same_batch=same_batch)
    for way in (by, "order of lines"):
        if way is None:
            continue
        here, there = _placed(ours, way), _placed(theirs, way)
        shared = _shared(here, there)
        if shared.height >= MIN_ROWS:
            return Alignment(way, shared, there, tuple(_windows(shared, there, here, way)))
    return Alignment(None, ours.clear(), theirs.clear())


def _in_common(ours: pl.DataFrame, theirs: pl.DataFrame, *, same_batch: bool) -> AlignedBy | None:
    """What both runs count: iterations, or samples where an iteration takes another number."""
    if not ours["iteration"].count() or not theirs["iteration"].count():
        return None
    if _same_batch(ours, theirs, same_batch):
        return "iteration"
    counted = all(rows["consumed_samples"].count() for rows in (ours, theirs))
    return "consumed samples" if counted else None


def _same_batch(ours: pl.DataFrame, theirs: pl.DataFrame, configured: bool) -> bool:
    """Whether iterations of the same number take the same batch; the usual one where none meet."""
    batch = "global_batch_size"
    met = ours.select("iteration", batch).join(
        theirs.select("iteration", pl.col(batch).alias("_theirs")), on="iteration"
    )
    met = met.drop_nulls()
    if met.height:
        return bool((met[batch] == met["_theirs"]).all())
    usual = [rows[batch].drop_nulls().mode().max() for rows in (ours, theirs)]
    return configured if None in usual else usual[0] == usual[1]


def _placed(rows: pl.DataFrame, by: AlignedBy) -> pl.DataFrame:
    """The rows with the middle of what they average over, in order."""
    if by == "order of lines":
        return rows.with_columns(pl.int_range(pl.len()).cast(pl.Float64).alias(_PLACE))
    back = (pl.col("interval_iterations").fill_null(1) + 1) / 2
    if by == "iteration":
        place = pl.col("iteration") - back
    else:
        place = pl.col("consumed_samples") - back * pl.col("global_batch_size")
    placed = rows.with_columns(place.cast(pl.Float64).alias(_PLACE)).drop_nulls(_PLACE)
    return placed.sort(_PLACE, maintain_order=True).unique(_PLACE, keep="last", maintain_order=True)


def _spacing(rows: pl.DataFrame) -> float:
    """Usual distance of two lines."""
    middle = rows[_PLACE].diff().median()
    return float(str(middle)) if middle is not None else 0.0


def _shared(ours: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Our rows within the range of the baseline."""
    if not theirs.height:
        return ours.clear()
    low, high = theirs[_PLACE].min(), theirs[_PLACE].max()
    return ours.filter(pl.col(_PLACE).is_between(low, high))


def _windows(
    shared: pl.DataFrame, theirs: pl.DataFrame, ours: pl.DataFrame, by: AlignedBy
) -> list[Window]:
    """Thirds of every series that can be compared so."""
    third = shared.height // 3
    places = shared[_PLACE]
    middle, late = places[third], places[shared.height - third]
    bounds: tuple[tuple[WindowName, float, float], ...] = (
        ("early", -math.inf, middle),
        ("middle", middle, late),
        ("late", late, math.inf),
    )
    gap = _WIDEST_GAP * max(_spacing(ours), _spacing(theirs))
    (_, steady_here), (_, steady_there) = steady(ours), steady(theirs)
    found: list[Window] = []
    for metric in (*SPEEDS, *COURSES):
        speed = metric in SPEEDS
        if not speed and by == "order of lines":
            continue
        mine = steady_here if speed else shared
        pairs = _pairs(mine, steady_there if speed else theirs, metric, gap)
        parts = [
            (name, pairs.filter(pl.col(_PLACE).is_between(low, high, "left")))
            for name, low, high in bounds
        ]
        parts = [(name, part) for name, part in parts if part.height]
        scatter = _scatter([part["ours"] / part["theirs"] for _, part in parts])
        found += [_window(metric, name, part, scatter) for name, part in parts]
    return found


def _scatter(thirds: Sequence[pl.Series]) -> float | None:
    """Standard deviation of a pair from the median of its third; None where pairs are too few."""
    left = [ratios - _number(ratios.median()) for ratios in thirds]
    if not left:
        return None
    residuals = pl.concat(left)
    free = residuals.len() - len(thirds)
    if free <= 0:
        return None
    if residuals.len() < _MANY_PAIRS:
        return math.sqrt(_number((residuals**2).sum()) / free)
    return DEVIATION_OF_NORMAL * (deviation(residuals) or 0.0)


def _pairs(ours: pl.DataFrame, theirs: pl.DataFrame, metric: str, gap: float) -> pl.DataFrame:
    """Rows (place, iteration, ours, theirs) where both have a sane number above zero."""
    usable = pl.col(metric).is_between(_LEAST, _MOST)
    here = ours.filter(usable).select(_PLACE, "iteration", pl.col(metric).alias("ours"))
    there = theirs.filter(usable).sort(_PLACE)
    before = there.select(_PLACE, pl.col(_PLACE).alias("p0"), pl.col(metric).alias("v0"))
    after = there.select(_PLACE, pl.col(_PLACE).alias("p1"), pl.col(metric).alias("v1"))
    distance = pl.col("p1") - pl.col("p0")
    slope = (pl.col("v1") - pl.col("v0")) / distance
    between = pl.col("v0") + slope * (pl.col(_PLACE) - pl.col("p0"))
    return (
        here.sort(_PLACE)
        .join_asof(before, on=_PLACE)
        .join_asof(after, on=_PLACE, strategy="forward")
        .drop_nulls(["v0", "v1"])
        .filter(distance <= gap)
        .select(
            _PLACE,
            "iteration",
            "ours",
            pl.when(distance > 0).then(between).otherwise("v0").alias("theirs"),
        )
    )


def _window(metric: str, name: WindowName, pairs: pl.DataFrame, scatter: float | None) -> Window:
    ratios = pairs["ours"] / pairs["theirs"]
    return Window(
        metric=metric,
        window=name,
        first_iteration=pairs["iteration"].min(),  # type: ignore[arg-type]
        last_iteration=pairs["iteration"].max(),  # type: ignore[arg-type]
        pairs=pairs.height,
        median=_number(pairs["ours"].median()),
        baseline_median=_number(pairs["theirs"].median()),
        ratio=_number(ratios.median()),
        low=_number(ratios.quantile(0.25, "linear")),
        high=_number(ratios.quantile(0.75, "linear")),
        error=None if scatter is None else _MEDIAN_ERROR * scatter / math.sqrt(pairs.height),
    )


def _number(value: object) -> float:
    return float(str(value))


def in_our_count(found: Alignment) -> pl.DataFrame:
    """The baseline's rows with `iteration` as our run counts: at the same place, our number."""
    theirs = found.theirs
    if found.by == "order of lines":
        ours = found.ours.select(_PLACE, pl.col("iteration").alias("_ours"))
        met = theirs.join(ours, on=_PLACE, how="inner", maintain_order="left")
        return met.with_columns(iteration="_ours").drop(_PLACE, "_ours")
    if found.by != "consumed samples":
        return theirs.drop(_PLACE, strict=False)
    batch = found.ours["global_batch_size"].drop_nulls().mode().max()
    scaled = (pl.col("consumed_samples") / batch).round().cast(pl.Int64, strict=False)
    return theirs.with_columns(iteration=scaled).drop(_PLACE)
