"""Series of the iterations table, reduced to what a chart can show.

Long series are reduced so that the lowest and the highest value of every stretch survive: a
spike of one iteration stays visible in a run of a million.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median_low
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.reporting.charts.kinds import KINDS
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

MAX_POINTS: Final = 2_000
"""Points of one interactive trace."""

SVG_POINTS: Final = 480
"""Points of one static line: the drawing is about as many units wide."""

TREND_POINTS: Final = 160
"""Points of the line of medians that long series get."""

_ALL_TRACES: Final = 40_000

_ALL_SVG: Final = 3_000

Point = tuple[float, float | None]
"""Iteration and value; None is a gap."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One series of one attempt."""

    attempt: int
    name: str
    points: tuple[Point, ...]
    svg_points: tuple[Point, ...]
    trend: tuple[Point, ...]
    "Medians of stretches; empty where every point is drawn."

    missing: tuple[float, ...]
    "Iterations whose line lacks the field although others have it."

    not_finite: tuple[float, ...]
    "Iterations that printed NaN or Inf."

    logged: int
    baseline: bool = False
    "The baseline's series, laid over those of the attempts."


def downsample(points: Sequence[Point], limit: int) -> tuple[Point, ...]:
    """At most `limit` points: first, last, and the extremes of equal stretches between them.

    A stretch without any value becomes one gap.
    """
    if len(points) <= limit:
        return tuple(points)
    inner = points[1:-1]
    stretches = max((limit - 2) // 2, 1)
    kept: list[Point] = [points[0]]
    for number in range(stretches):
        start = number * len(inner) // stretches
        stretch = inner[start : (number + 1) * len(inner) // stretches]
        valued = [(y, at) for at, (_, y) in enumerate(stretch) if y is not None]
        if valued:
            kept.extend(stretch[at] for at in sorted({min(valued)[1], max(valued)[1]}))
        elif stretch:
            kept.append(stretch[0])
    return (*kept, points[-1])


def trend(points: Sequence[Point]) -> tuple[Point, ...]:
    """Medians of equal stretches, each at the middle of its stretch; gaps stay gaps."""
    stretches = min(TREND_POINTS, len(points))
    found: list[Point] = []
    for number in range(stretches):
        start = number * len(points) // stretches
        stretch = points[start : (number + 1) * len(points) // stretches]
        values = [y for _, y in stretch if y is not None]
        middle = stretch[len(stretch) // 2][0]
        found.append((middle, median_low(values) if values else None))
    return tuple(found)


def attempt_rows(frame: pl.DataFrame) -> dict[int, dict[str, list[Any]]]:
    """Columns per attempt, in iteration order; step lines without a number keep line order."""
    if frame.is_empty() or "attempt" not in frame.columns:
        return {}
    wanted = [kind.column for kind in KINDS if kind.column in frame.columns]
    rows: dict[int, dict[str, list[Any]]] = {}
    for (attempt,), part in sorted(frame.partition_by("attempt", as_dict=True).items()):
        numbered = part
        if "iteration" in part.columns and part["iteration"].null_count() < part.height:
            numbered = part.drop_nulls("iteration").sort("iteration", maintain_order=True)
            xs = numbered["iteration"].to_list()
        else:
            xs = list(range(1, part.height + 1))
        rows[int(str(attempt))] = {"x": xs, **{c: numbered[c].to_list() for c in wanted}}
    return rows


def attempt_trace(attempt: int, xs: list[Any], ys: list[Any], shares: int) -> Trace:
    """The series of one attempt; `shares` is the number of lines that share the points."""
    points = [(x, y if drawable(y) else None) for x, y in zip(xs, ys, strict=True)]
    small = min(SVG_POINTS, max(_ALL_SVG // shares, 12))
    return Trace(
        attempt=attempt,
        name=_("attempt {attempt}", attempt=attempt),
        points=downsample(points, min(MAX_POINTS, max(_ALL_TRACES // shares, 20))),
        svg_points=downsample(points, small),
        trend=trend(points) if len(points) > SVG_POINTS <= small else (),
        missing=tuple(x for x, y in zip(xs, ys, strict=True) if y is None),
        not_finite=tuple(
            x for x, y in zip(xs, ys, strict=True) if y is not None and not drawable(y)
        ),
        logged=len(points),
    )


def baseline_trace(name: str, xs: list[Any], ys: list[Any], shares: int) -> Trace:
    """The baseline as one line: its medians where they are enough."""
    found = attempt_trace(-1, xs, ys, shares)
    course = found.trend or found.points
    return replace(
        found,
        name=_("{name}, medians", name=name) if found.trend else name,
        points=course,
        svg_points=found.trend or found.svg_points,
        trend=(),
        missing=(),
        not_finite=(),
        baseline=True,
    )


def drawable(value: float | None) -> bool:
    """Finite, and small enough that differences do not overflow."""
    return value is not None and math.isfinite(value) and abs(value) < 1e100
