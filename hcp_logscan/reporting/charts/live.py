"""The interactive drawing: what the script hands to plotly, plain JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from hcp_logscan.reporting.charts.look import MAX_MARKS, look, starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.reporting.charts.kinds import Kind
    from hcp_logscan.reporting.charts.series import Point, Trace
    from hcp_logscan.reporting.charts.still import Svg
    from hcp_logscan.reporting.peak import Limit

_MANY_MARKERS: Final = 120


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
                f"{trace.name}, extremes" if trace.trend else trace.name,
                trace.points,
                bool(trace.trend),
            ),
            (f"{trace.name}, medians", trace.trend, False),
        )
        if points
    ]
    marks = [
        {"name": name, "symbol": symbol, "x": xs[:MAX_MARKS]}
        for name, symbol, xs in (
            (
                f"no {kind.noun} printed",
                "triangle-up",
                [x for t in traces for x in starts(t.missing)],
            ),
            ("NaN or Inf", "x", [x for t in traces for x in starts(t.not_finite)]),
        )
        if xs
    ]
    return {"key": kind.key, "unit": unit, "log": log_scale, "series": series, "marks": marks}


def axes_of(svg: Svg, drawn: Limit | None, above: Sequence[Sequence[Point]]) -> dict[str, Any]:
    """Axes and limit as the script draws them: those of the still drawing."""
    line = svg.limit
    marked = [point for points in above for point in points]
    return {
        "xs": svg.x_range,
        "ys": svg.y_range,
        "limit": None
        if line is None or drawn is None
        else {
            "y": _six(drawn.tflops),
            "label": line.label,
            "dash": "dash" if line.dash else "solid",
            "at": line.anchor,
            "over": line.above,
        },
        "above": {"x": [x for x, _ in marked], "y": [_six(y) for _, y in marked]},
    }


def _mode(points: Sequence[Point]) -> Literal["lines", "markers", "lines+markers"]:
    gaps = sum(y is None for _, y in points)
    if len(points) <= _MANY_MARKERS:
        return "lines+markers"
    return "markers" if gaps * 5 > len(points) else "lines"
