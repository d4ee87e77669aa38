"""The story of a chart in words: its caption and its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hcp_logscan.reporting import words
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.charts.kinds import Kind
    from hcp_logscan.reporting.charts.series import Trace


def caption_of(kind: Kind, values: list[float], attempts: int) -> str:
    """First, last, lowest and highest value."""
    if not values:
        return _("No finite {noun} was printed.", noun=_(kind.noun))
    where = _(" over {attempts} attempts", attempts=attempts) if attempts > 1 else ""
    unit = f" {kind.unit}" if kind.unit in {"ms", "TFLOP/s/GPU"} else ""
    first, last = kind.show(values[0]), kind.show(values[-1])
    low, high = kind.show(min(values)), kind.show(max(values))
    return _(
        "First {first}, last {last}, lowest {low}, highest {high}{unit}{where}.",
        first=first,
        last=last,
        low=low,
        high=high,
        unit=unit,
        where=where,
    )


def notes_of(
    kind: Kind,
    data: ReportData,
    rows: dict[int, dict[str, list[Any]]],
    traces: tuple[Trace, ...],
) -> list[str]:
    """What was reduced, what is missing, and what is no number."""
    notes: list[str] = []
    if any(trace.logged > len(trace.svg_points) for trace in traces):
        logged = sum(trace.logged for trace in traces)
        still = max(len(trace.svg_points) for trace in traces)
        live = max(len(trace.points) for trace in traces)
        notes.append(
            _(
                "{logged:,} logged iterations, reduced to at most {still:,} points per line{more};"
                " the lowest and highest value of every stretch are kept{medians}.",
                logged=logged,
                still=still,
                more=_(" ({live:,} where the chart is interactive)", live=live)
                if live > still
                else "",
                medians=_(", and a line shows the medians")
                if any(trace.trend for trace in traces)
                else "",
            )
        )
    for name, found in (
        (_("without a printed {noun}", noun=_(kind.noun)), [x for t in traces for x in t.missing]),
        (_("with NaN or Inf"), [x for t in traces for x in t.not_finite]),
    ):
        if found:
            first = min(found)
            notes.append(
                _(
                    "{many} {what}, the first at iteration {first:,}.",
                    many=words.plural(len(found), "line"),
                    what=name,
                    first=first,
                )
            )
    silent = len(set(rows) - {trace.attempt for trace in traces})
    if silent and len(data.attempts) > 1:
        notes.append(
            _(
                "{many} printed no {noun} at all.",
                many=words.plural(silent, "attempt"),
                noun=_(kind.noun),
            )
        )
    return notes
