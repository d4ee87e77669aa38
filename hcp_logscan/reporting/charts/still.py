"""The still drawing: what the SVG macro loops over, in drawing units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.reporting.charts.axes import tick_label, whole_ticks
from hcp_logscan.reporting.charts.backdrop import Backdrop, backdrop
from hcp_logscan.reporting.charts.frame import BOTTOM, LEFT, RIGHT, TOP, WIDTH, frame
from hcp_logscan.reporting.charts.legend import Key, legend
from hcp_logscan.reporting.charts.look import MAX_ABOVE, MAX_MARKS, above_limit, look, starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.reporting.charts.frame import Frame
    from hcp_logscan.reporting.charts.levels import Levels
    from hcp_logscan.reporting.charts.series import Point, Trace
    from hcp_logscan.reporting.limitline import Place
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
    behind: Backdrop
    above: tuple[Dot, ...]
    "Marks on values above the limit."

    x_range: tuple[float, float]
    y_range: tuple[float, float] | None
    "In the scaled unit of the axis; None where there is no value."


def still(
    traces: tuple[Trace, ...],
    values: list[float],
    *,
    limit: Limit | None,
    levels: Levels,
    log_scale: bool,
) -> Svg:
    """The still drawing; values above `limit` are marked, whether its line is drawn or not."""
    inside = frame(traces, values, levels.held, log_scale=log_scale)
    lines, dots, courses = _courses(traces, inside)
    keys = legend(traces, BOTTOM + 58)
    return Svg(
        width=WIDTH,
        height=int(keys[-1].y if keys else BOTTOM + 38) + 8,
        left=LEFT,
        right=RIGHT,
        top=TOP,
        bottom=BOTTOM,
        middle=(LEFT + RIGHT) / 2,
        x_ticks=tuple(
            Tick(inside.x(x), f"{x:,.0f}") for x in whole_ticks(inside.first, inside.last)
        ),
        y_ticks=tuple(Tick(inside.y(y), tick_label(y)) for y in inside.ticks if values),
        lines=tuple(lines),
        dots=tuple(dots),
        missing=_marks([t.missing for t in traces], inside),
        not_finite=_marks([t.not_finite for t in traces], inside),
        keys=keys,
        behind=backdrop(levels, inside, courses),
        above=_above(traces, limit, inside),
        x_range=(inside.first, inside.last),
        y_range=(inside.low, inside.high) if values else None,
    )


def _courses(
    traces: Sequence[Trace], inside: Frame
) -> tuple[list[Line], list[Dot], list[list[Place]]]:
    """The series as lines and lone dots, and the places of both."""
    lines: list[Line] = []
    dots: list[Dot] = []
    courses: list[list[Place]] = []
    for number, trace in enumerate(traces):
        colour, _, dash = look(number, trace)
        for points, wide in ((trace.svg_points, bool(trace.trend)), (trace.trend, False)):
            for stretch in _stretches(points):
                course = [(inside.x(x), inside.y(y)) for x, y in stretch]
                courses.append(course)
                if len(course) == 1:
                    dots.append(Dot(*course[0], colour))
                else:
                    path = " ".join(f"{x:g},{y:g}" for x, y in course)
                    lines.append(Line(path, colour, dash, wide))
    return lines, dots, courses


def _above(traces: Sequence[Trace], limit: Limit | None, inside: Frame) -> tuple[Dot, ...]:
    return tuple(
        Dot(inside.x(x), inside.y(y), 0)
        for trace in traces
        if not trace.baseline
        for x, y in above_limit(trace.svg_points, limit, MAX_ABOVE)
        if y is not None
    )


def _marks(found: list[tuple[float, ...]], inside: Frame) -> tuple[Dot, ...]:
    places = sorted({inside.x(x) for xs in found for x in starts(xs)})
    return tuple(Dot(x, BOTTOM - 6, 0) for x in places[:MAX_MARKS])


def _stretches(points: tuple[Point, ...]) -> list[list[tuple[float, float]]]:
    found: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None:
            found[-1].append((x, y))
        elif found[-1]:
            found.append([])
    return [stretch for stretch in found if stretch]
