"""The story of a chart in words: its caption and its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hcp_logscan.reporting import words

if TYPE_CHECKING:
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.charts.kinds import Kind
    from hcp_logscan.reporting.charts.series import Trace


def caption_of(kind: Kind, values: list[float], attempts: int) -> str:
    """First, last, lowest and highest value."""
    if not values:
        return f"No finite {kind.noun} was printed."
    where = f" over {attempts} attempts" if attempts > 1 else ""
    unit = f" {kind.unit}" if kind.unit in {"ms", "TFLOP/s/GPU"} else ""
    first, last = kind.show(values[0]), kind.show(values[-1])
    low, high = kind.show(min(values)), kind.show(max(values))
    return f"First {first}, last {last}, lowest {low}, highest {high}{unit}{where}."


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
            f"{logged:,} logged iterations, reduced to at most {still:,} points per line"
            + (f" ({live:,} where the chart is interactive)" if live > still else "")
            + "; the lowest and highest value of every stretch are kept"
            + (", and a line shows the medians." if any(trace.trend for trace in traces) else ".")
        )
    for name, found in (
        (f"without a printed {kind.noun}", [x for t in traces for x in t.missing]),
        ("with NaN or Inf", [x for t in traces for x in t.not_finite]),
    ):
        if found:
            first = min(found)
            notes.append(
                f"{words.plural(len(found), 'line')} {name}, the first at iteration {first:,}."
            )
    silent = len(set(rows) - {trace.attempt for trace in traces})
    if silent and len(data.attempts) > 1:
        notes.append(f"{words.plural(silent, 'attempt')} printed no {kind.noun} at all.")
    return notes
