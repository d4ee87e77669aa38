"""The still drawing: what the SVG macro loops over, in drawing units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.reporting.charts.axes import (
    linear_ticks,
    log_ticks,
    scaled,
    tick_label,
    whole_ticks,
)
from hcp_logscan.reporting.charts.legend import Key, legend
from hcp_logscan.reporting.charts.look import MAX_ABOVE, MAX_MARKS, above_limit, look, starts
from hcp_logscan.reporting.limitline import LimitLine, limit_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from hcp_logscan.reporting.charts.series import Point, Trace
    from hcp_logscan.reporting.peak import Limit


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick with its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """One unbroken stretch of a line."""

    points: str
    colour: int
    dash: str
    wide: bool
    "A line of extremes, drawn thin behind the line of medians."


@dataclass(frozen=True, slots=True)
class Dot:
    """A lone value, or a mark for a missing one."""

    x: float
    y: float
    colour: int


@dataclass(frozen=True, slots=True)
class Svg:
    """Everything the SVG macro loops over, in drawing units."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    middle: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    dots: tuple[Dot, ...]
    missing: tuple[Dot, ...]
    not_finite: tuple[Dot, ...]
    keys: tuple[Key, ...]
    limit: LimitLine | None
    above: tuple[Dot, ...]
    "Marks on values above the limit."

    x_range: tuple[float, float]
    y_range: tuple[float, float] | None
    "In the scaled unit of the axis; None where there is no value."


_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 480, 62.0, 470.0, 14.0, 204.0


def still(
    traces: tuple[Trace, ...],
    values: list[float],
    *,
    limit: Limit | None,
    drawn: Limit | None,
    log_scale: bool,
) -> Svg:
    """The still drawing; the axis holds the limit only where it is `drawn`."""
    xs = [x for trace in traces for x, _ in trace.svg_points]
    x_low, x_high = min(xs), max(xs)
    held = [*values, drawn.tflops] if drawn else values
    y_ticks = log_ticks(held) if log_scale else linear_ticks(held)
    low, high = scaled(y_ticks[0], log=log_scale), scaled(y_ticks[-1], log=log_scale)
    if values:
        low = min(low, scaled(min(values), log=log_scale))
        high = max(high, scaled(max(values), log=log_scale))

    def place(x: float) -> float:
        share = (x - x_low) / (x_high - x_low) if x_high > x_low else 0.5
        return round(_LEFT + share * (_RIGHT - _LEFT), 1)

    def height(y: float) -> float:
        share = (scaled(y, log=log_scale) - low) / (high - low) if high > low else 0.5
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    lines: list[Line] = []
    dots: list[Dot] = []
    courses: list[list[tuple[float, float]]] = []
    for number, trace in enumerate(traces):
        colour, _, dash = look(number, trace)
        for points, wide in ((trace.svg_points, bool(trace.trend)), (trace.trend, False)):
            for stretch in _stretches(points):
                course = [(place(x), height(y)) for x, y in stretch]
                courses.append(course)
                if len(course) == 1:
                    dots.append(Dot(*course[0], colour))
                else:
                    path = " ".join(f"{x:g},{y:g}" for x, y in course)
                    lines.append(Line(path, colour, dash, wide))
    keys = legend(traces, _BOTTOM + 58)
    return Svg(
        width=_WIDTH,
        height=int(keys[-1].y if keys else _BOTTOM + 38) + 8,
        left=_LEFT,
        right=_RIGHT,
        top=_TOP,
        bottom=_BOTTOM,
        middle=(_LEFT + _RIGHT) / 2,
        x_ticks=tuple(Tick(place(x), f"{x:,.0f}") for x in whole_ticks(x_low, x_high)),
        y_ticks=tuple(Tick(height(y), tick_label(y)) for y in y_ticks if values),
        lines=tuple(lines),
        dots=tuple(dots),
        missing=_marks([t.missing for t in traces], place),
        not_finite=_marks([t.not_finite for t in traces], place),
        keys=keys,
        limit=limit_line(
            drawn.label,
            height(drawn.tflops),
            courses,
            dash="" if drawn.exact else "8 5",
            box=(_LEFT, _RIGHT, _TOP, _BOTTOM),
        )
        if drawn
        else None,
        above=tuple(
            Dot(place(x), height(y), 0)
            for trace in traces
            if not trace.baseline
            for x, y in above_limit(trace.svg_points, limit, MAX_ABOVE)
            if y is not None
        ),
        x_range=(x_low, x_high),
        y_range=(low, high) if values else None,
    )


def _marks(found: list[tuple[float, ...]], place: Callable[[float], float]) -> tuple[Dot, ...]:
    places = sorted({place(x) for xs in found for x in starts(xs)})
    return tuple(Dot(x, _BOTTOM - 6, 0) for x in places[:MAX_MARKS])


def _stretches(points: tuple[Point, ...]) -> list[list[tuple[float, float]]]:
    found: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None:
            found[-1].append((x, y))
        elif found[-1]:
            found.append([])
    return [stretch for stretch in found if stretch]
