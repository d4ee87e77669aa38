"""A chart: a title with its unit, the story in words, and two ways to draw it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hcp_logscan.reporting import baseline, peak
from hcp_logscan.reporting.charts.axes import wants_log
from hcp_logscan.reporting.charts.captions import caption_of, notes_of
from hcp_logscan.reporting.charts.kinds import KINDS
from hcp_logscan.reporting.charts.levels import Levels, described, drawn_levels
from hcp_logscan.reporting.charts.levels import notes as level_notes
from hcp_logscan.reporting.charts.live import axes_of, plot_of
from hcp_logscan.reporting.charts.look import MAX_ABOVE, above_limit
from hcp_logscan.reporting.charts.series import (
    attempt_rows,
    attempt_trace,
    baseline_trace,
    drawable,
)
from hcp_logscan.reporting.charts.still import still
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.charts.kinds import Kind
    from hcp_logscan.reporting.charts.series import Trace
    from hcp_logscan.reporting.charts.still import Svg


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: a title with its unit, the story in words, and two ways to draw it."""

    key: str
    title: str
    unit: str
    log_scale: bool
    traces: tuple[Trace, ...]
    caption: str
    notes: tuple[str, ...]
    behind: str
    "The levels that are drawn behind the series, in words."

    svg: Svg
    plot: dict[str, Any]
    "What the script hands to plotly, plain JSON values."


def charts(data: ReportData) -> tuple[Chart, ...]:
    """The charts that have something to show, in reading order."""
    rows = attempt_rows(data.iterations)
    found = (_chart(kind, data, rows) for kind in KINDS)
    return tuple(chart for chart in found if chart is not None)


def _chart(kind: Kind, data: ReportData, rows: dict[int, dict[str, list[Any]]]) -> Chart | None:
    logged = {
        attempt: (columns["x"], columns[kind.column])
        for attempt, columns in rows.items()
        if any(value is not None for value in columns.get(kind.column, ()))
    }
    if not logged:
        return None
    beside = baseline.points(
        data.comparison, kind.column, [x for xs, _ in logged.values() for x in xs]
    )
    shares = len(logged) + (beside is not None)
    traces = tuple(attempt_trace(n, xs, ys, shares) for n, (xs, ys) in logged.items())
    values = [y for trace in traces for _, y in trace.points if y is not None]
    over = () if beside is None else (baseline_trace(*beside, shares),)
    if over and len(traces) == 1:
        traces = (replace(traces[0], name=_("this run")),)
    held = [*values, *(y for trace in over for _, y in trace.points if y is not None)]
    log_scale = wants_log(held)
    unit = _("{unit}, log scale", unit=_(kind.unit)) if log_scale else _(kind.unit)
    limit = peak.limit(data.peak) if kind.key == "tflops" else None
    levels = Levels()
    if kind.key == "tflops":
        levels = drawn_levels(data, values, log_scale=log_scale)
    notes = notes_of(kind, data, rows, traces)
    if kind.key == "tflops":
        whole = [y for _, ys in logged.values() for y in ys if drawable(y)]
        notes = [*peak.notes(data, whole, levels.limit), *level_notes(data, levels), *notes]
    if over and data.comparison is not None:
        notes.append(baseline.caption(data.comparison, kind.column))
    above = [above_limit(trace.points, limit, MAX_ABOVE) for trace in traces]
    svg = still((*traces, *over), held, limit=limit, levels=levels, log_scale=log_scale)
    return Chart(
        key=kind.key,
        title=_(kind.title),
        unit=unit,
        log_scale=log_scale,
        traces=traces,
        caption=caption_of(kind, values, len(traces)),
        notes=tuple(notes),
        behind=described(levels),
        svg=svg,
        plot=plot_of(kind, (*traces, *over), unit, log_scale=log_scale)
        | axes_of(svg, levels, above),
    )
