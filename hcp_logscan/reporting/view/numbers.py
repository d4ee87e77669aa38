"""The key numbers at the top of the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting import peak, words
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hcp_logscan.model.report import ReportData


def numbers(data: ReportData) -> list[tuple[str, str, str]]:
    """The key numbers: (name, value, further words)."""
    return [(name, _tight(value), _tight(more)) for name, value, more in _numbers(data)]


_SHOWN_BY: Final = ("attempts", "chart-tflops", "", "chart-step", "chart-loss", "attempts")
"""Where on the page each number comes from, in their order; the measures behind them are lines of
the throughput chart."""


def places(data: ReportData, drawn: Sequence[str]) -> list[str]:
    """Anchors that `numbers` lead to, empty where the page has none; `drawn` are keys of charts."""
    known = {"attempts", *(f"chart-{key}" for key in drawn)}
    further = len(numbers(data)) - len(_SHOWN_BY)
    wanted = (*_SHOWN_BY, *["chart-tflops"] * further)
    return [place if place in known else "" for place in wanted]


def _tight(text: str) -> str:
    """The same with units that stay on the line of their number."""
    return re.sub(r"(?<=\d) (?=m?s\b)", "\u00a0", text)


def _numbers(data: ReportData) -> list[tuple[str, str, str]]:
    series = data.series
    flops, tokens, step = series.tflops_per_gpu, series.tokens_per_s_per_gpu, series.step_ms
    lm = series.lm_loss
    course = f"{words.loss(lm.first)} \u2192 {words.loss(lm.last)}"
    last = words.OUTCOME_WORDS[data.attempts[-1].outcome][0] if data.attempts else ""
    reached = _range(flops.min, flops.max, words.fixed)
    return [
        (_("Iterations logged"), f"{series.iterations:,}", _span(data)),
        ("TFLOP/s/GPU", words.fixed(flops.median), _joined(reached, peak.share(data))),
        ("Tokens/s/GPU", _whole(tokens.median), _range(tokens.min, tokens.max, _whole)),
        (
            _("Step time"),
            words.milliseconds(step.median),
            _range(step.min, step.max, words.milliseconds),
        ),
        (
            _("Loss, first to last"),
            words.not_logged() if lm.first is None and lm.last is None else course,
            "" if lm.min is None else _("lowest {low}", low=words.loss(lm.min)),
        ),
        (
            _("Attempts"),
            f"{len(data.attempts):,}",
            _("last one: {last}", last=last) if last else "",
        ),
        *_measures(data),
    ]


def _joined(*parts: str) -> str:
    return _("; ").join(part for part in parts if part)


def _measures(data: ReportData) -> Iterator[tuple[str, str, str]]:
    """What printed throughput is measured by, and what the trainer claims: only where known."""
    found = peak.limit(data.peak)
    if data.peak is not None and found is not None:
        name = _("Dense peak of the GPU") if found.exact else _("Bound of the GPU")
        yield name, peak.figure(found.tflops), peak.traits(data.peak)
    claimed = peak.claimed_mfu(data)
    if claimed is not None:
        yield _("MFU as printed"), words.percent(claimed), _("median; the trainer's claim")


def _whole(value: float | None) -> str:
    return words.fixed(value, 0)


def _span(data: ReportData) -> str:
    firsts = [a.first_iteration for a in data.attempts if a.first_iteration is not None]
    lasts = [a.last_iteration for a in data.attempts if a.last_iteration is not None]
    return (
        _("from {first:,} to {last:,}", first=min(firsts), last=max(lasts))
        if firsts and lasts
        else ""
    )


def _range(low: float | None, high: float | None, show: Callable[[float | None], str]) -> str:
    if low is None or high is None:
        return ""
    if low == high:
        return _("median")
    return _("median; {low} to {high}", low=show(low), high=show(high))
