"""Steady state: the iteration rows of an attempt that tell how fast it trains.

A row is left out, in this order, if

1. it has no usable time: unfinished, or without a number above zero;
2. its global batch size is not the usual one (batch size ramp-up);
3. it is warm-up: the first row, in which communicators open, kernels compile and memory is
   allocated, also after a restart, since that begins an attempt; and the rows behind it up to the
   first that is not slower than the rest, where these are at most a quarter of all;
4. it is a pause: further from the median of the rows around it than noise goes, as are iterations
   that wait for a checkpoint, an evaluation, a data loader or a restarted process. Where more than
   a quarter of the rows are, none is: steps that are fast and slow by turns are how this run goes.

Noise is measured on the run itself: the median absolute deviation from that running median. Medians
are not moved by what they are to find, as means are. A slow phase longer than half of the window is
no pause and stays: it is part of how fast the run is.

What tells the time of a row is one source for the whole attempt, the best that it has (`pace`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import pace
from hcp_logscan.analysis.pace import PACE

if TYPE_CHECKING:
    from hcp_logscan.analysis.pace import Source

WINDOW_ROWS: Final = 51
"""Rows of the running median, centred: pauses shorter than half of it cannot move it."""

NOISE_DEVIATIONS: Final = 5.0
"""Standard deviations, estimated by the median absolute deviation, that noise may go."""

NOISE_SHARE: Final = 0.05
"""What is within this share of the running median is noise however quiet the run is."""

WARM_UP_SHARE: Final = 0.25
"""Leading slow rows beyond this share of an attempt are no warm-up: the run got faster."""

PAUSES_SHARE: Final = 0.25
"""Rows beyond this share of an attempt are no pauses."""

DEVIATION_OF_NORMAL: Final = 1.4826
"""Standard deviation over median absolute deviation where noise is normally distributed."""

DECILES_OF_NORMAL: Final = 2.563
"""First to ninth decile over the standard deviation where noise is normally distributed."""

MIN_ROWS: Final = 3
"""Rows below which a median says nothing."""

LATE_SHARE: Final = 0.1
LATE_ROWS: Final = (25, 1_000)
"""The end of a run that is compared with its beginning: this share, and at least and at most."""


def steady(iterations: pl.DataFrame) -> tuple[Source | None, pl.DataFrame]:
    """What tells the pace of one attempt, and its steady rows by that; `None` where nothing does.

    `iterations` is that fact table of the attempt.
    """
    for source in pace.SOURCES:
        if (rows := pace.by(source, iterations)) is not None:
            return source, kept(rows)
    return None, iterations.clear()


def kept(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that count as steady, in order, of those that have a `PACE`.

    There may be fewer than `MIN_ROWS`: then the logs do not show a steady state.
    """
    usual = rows["global_batch_size"].drop_nulls().mode().max()
    if usual is not None:
        batch = pl.col("global_batch_size")
        rows = rows.filter(batch.is_null() | (batch == usual))
    time = rows[PACE]
    local = time.rolling_median(WINDOW_ROWS, min_samples=1, center=True)
    beside = time / local - 1.0
    limit = max(NOISE_SHARE, NOISE_DEVIATIONS * DEVIATION_OF_NORMAL * (deviation(beside) or 0.0))
    behind = pl.int_range(rows.height, eager=True) >= _warm_up(time, limit)
    near = (beside.abs() <= limit) & behind
    many = (behind & ~near).sum() > PAUSES_SHARE * rows.height
    return rows.filter(behind if many else near)


def _warm_up(time: pl.Series, limit: float) -> int:
    """Leading rows that are warm-up."""
    rest = time.slice(1)
    if not rest.len():
        return 1
    slow = rest > (1.0 + limit) * float(str(rest.median()))
    leading = slow.arg_min() or 0  # the first row that is not slow
    return 1 + (leading if leading <= WARM_UP_SHARE * time.len() else 0)


def scatter(values: pl.Series) -> float:
    """Standard deviation as a share of the median, by the deciles; 0 without values.

    Steps that are fast and slow by turns scatter by the distance between the two.
    """
    low, middle, high = (values.quantile(at, "linear") for at in (0.1, 0.5, 0.9))
    if low is None or high is None or not middle:
        return 0.0
    return (high - low) / DECILES_OF_NORMAL / middle


def deviation(values: pl.Series) -> float | None:
    """Median absolute deviation from the median; None without values."""
    middle = values.median()
    if not isinstance(middle, (int, float)):
        return None
    return float(str((values - middle).abs().median()))


def facts(source: Source | None, rows: pl.DataFrame) -> dict[str, Any]:
    """Medians and median absolute deviations of the steady rows of one attempt.

    Null is what nothing tells; `steady_iterations`, too, where there is no `source`.
    """
    if source is None:
        return {}
    found: dict[str, Any] = {"steady_iterations": rows.height, "pace_source": source.name}
    times = PACE if source.milliseconds else "step_ms"
    for column, name in (
        (times, "step_ms_steady"),
        ("tflops_per_gpu", "tflops_steady"),
        ("tokens_per_s_per_gpu", "tokens_per_s_steady"),
    ):
        values = rows.filter(pl.col(column).is_finite(), pl.col(column) > 0)[column]
        enough = values.len() >= MIN_ROWS
        found[name] = values.median() if enough else None
        found[f"{name}_mad"] = deviation(values) if enough else None
    return {**found, **_drift(source, rows)}


def _drift(source: Source, rows: pl.DataFrame) -> dict[str, Any]:
    """Pace at the end of the steady rows against that of the fastest stretch of as many before."""
    width = min(max(int(rows.height * LATE_SHARE), LATE_ROWS[0]), LATE_ROWS[1])
    stretches = rows.height // width
    if stretches <= 1:
        return {}
    rows = rows.tail(stretches * width)
    times = [rows[PACE].slice(at, width) for at in range(0, rows.height, width)]
    early = min(times[:-1], key=_median)
    before, late = _median(early), _median(times[-1])
    # quartiles, because medians of steps that are fast and slow by turns jump between the two
    upper, lower = early.quantile(0.75, "linear"), times[-1].quantile(0.25, "linear")
    return {
        "pace_change": late / before,
        "pace_change_apart": float(str(lower)) / float(str(upper)),
        "pace_early": source.words(before),
        "pace_late": source.words(late),
        "step_ms_early": before if source.milliseconds else None,
        "step_ms_late": late if source.milliseconds else None,
        "late_iteration": rows["iteration"][-width],
    }


def _median(values: pl.Series) -> float:
    return float(str(values.median()))
