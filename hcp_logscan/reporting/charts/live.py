"""The interactive drawing: what the script hands to plotly, plain JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from hcp_logscan.reporting.charts.look import MAX_MARKS, look, starts
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.reporting.charts.kinds import Kind
    from hcp_logscan.reporting.charts.levels import Levels
    from hcp_logscan.reporting.charts.series import Point, Trace
    from hcp_logscan.reporting.charts.still import Svg
    from hcp_logscan.reporting.limitline import LimitLine

_MANY_MARKERS: Final = 120
_DASHES: Final = {"": "solid", "8 5": "dash", "2 4": "dot"}
"""Of the still drawing -> of plotly."""


def _six(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def plot_of(kind: Kind, traces: tuple[Trace, ...], unit: str, *, log_scale: bool) -> dict[str, Any]:
    """Series and marks of a chart."""
    series = [
        {
            "name": name,
            "x": [x for x, _ in points],
            "y": [_six(y) for _, y in points],
            "mode": "lines" if trace.baseline else _mode(points),
            "colour": look(number, trace)[0],
            "dash": look(number, trace)[1],
            "wide": wide,
        }
        for number, trace in enumerate(traces)
        for name, points, wide in (
            (
                _("{name}, extremes", name=trace.name) if trace.trend else trace.name,
                trace.points,
                bool(trace.trend),
            ),
            (_("{name}, medians", name=trace.name), trace.trend, False),
        )
        if points
    ]
    marks = [
        {"name": name, "symbol": symbol, "x": xs[:MAX_MARKS]}
        for name, symbol, xs in (
            (
                _("no {noun} printed", noun=_(kind.noun)),
                "triangle-up",
                [x for t in traces for x in starts(t.missing)],
            ),
            (_("NaN or Inf"), "x", [x for t in traces for x in starts(t.not_finite)]),
        )
        if xs
    ]
    named = {"iteration": _("iteration"), "above": _("above the limit")}
    return {
        "key": kind.key,
        "unit": unit,
        "words": named,
        "log": log_scale,
        "series": series,
        "marks": marks,
    }


def axes_of(svg: Svg, levels: Levels, above: Sequence[Sequence[Point]]) -> dict[str, Any]:
    """Axes and levels as the script draws them: those of the still drawing."""
    limit, off = levels.limit, levels.off
    marked = [point for points in above for point in points]
    return {
        "xs": svg.x_range,
        "ys": svg.y_range,
        "limit": _line(limit.tflops, svg.behind.limit) if limit else None,
        "off": _line(off.tflops, svg.behind.off) if off else None,
        "band": _band(levels, svg),
        "above": {"x": [x for x, _ in marked], "y": [_six(y) for _, y in marked]},
    }


def _line(tflops: float, line: LimitLine | None) -> dict[str, Any] | None:
    if line is None:
        return None
    return {
        "y": _six(tflops),
        "label": line.label,
        "dash": _DASHES[line.dash],
        "at": line.anchor,
        "over": line.above,
    }


def _band(levels: Levels, svg: Svg) -> dict[str, Any] | None:
    """The band with the edges that are drawn; its label stands as in the still drawing."""
    box, band = svg.behind.band, levels.band
    if box is None or band is None:
        return None
    return {
        "low": _six(band.low),
        "high": _six(band.high),
        "label": band.label,
        "at": box.label.anchor,
        "over": box.label.above,
    }


def _mode(points: Sequence[Point]) -> Literal["lines", "markers", "lines+markers"]:
    gaps = sum(y is None for _, y in points)
    if len(points) <= _MANY_MARKERS:
        return "lines+markers"
    return "markers" if gaps * 5 > len(points) else "lines"
