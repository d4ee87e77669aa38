"""Printed throughput beside the peak of its GPUs: what is said of it, and when it is drawn.

Where GPU and precision are known the measure is a dense peak. Where only the architecture is
known it is a bound that no GPU of it exceeds, so that a share of it is a least share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.said import N_
from hcp_logscan.reporting import words
from hcp_logscan.reporting.safe import cut
from hcp_logscan.reporting.tongue import _, gap, n_

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeGuard

    from hcp_logscan.model.report import Peak, ReportData

NEAR: Final = 4.0
"""Factor between series and peak up to which one linear axis holds both: the series keeps at least
the height of a quarter of it."""

NEAR_LOG: Final = 100.0
"""The same on a logarithmic axis: two powers of ten."""

_NAME_IT: Final = N_("Give the dense peak with `--peak-tflops`.")
_UNKNOWN: Final = N_(
    "these logs do not say which GPU it is. Name it with `--gpu`, or give its "
    "dense peak with `--peak-tflops`."
)
_NO_GPU: Final = N_("no GPU of this kind does more than")
_NAME: Final = 40
_SOURCE: Final = 80


@dataclass(frozen=True, slots=True)
class Limit:
    """What no printed throughput can exceed."""

    tflops: float
    exact: bool
    "The peak of this GPU at this precision; else a bound of all that it may be."

    label: str


def limit(peak: Peak | None) -> Limit | None:
    """The line to draw; None where nothing is known."""
    if peak is None:
        return None
    if positive(peak.tflops):
        return Limit(
            peak.tflops,
            exact=True,
            label=_("{name}, {peak}", name=_name(peak), peak=figure(peak.tflops)),
        )
    if positive(peak.bound_tflops):
        who = _("{gpu} does at most", gpu=cut(peak.gpu, _NAME)) if peak.gpu else _(_NO_GPU)
        return Limit(
            peak.bound_tflops,
            exact=False,
            label=_("{who} {peak}", who=who, peak=figure(peak.bound_tflops)),
        )
    return None


def positive(value: float | None) -> TypeGuard[float]:
    """Whether it is a number that can be a rate."""
    return value is not None and math.isfinite(value) and value > 0


def figure(tflops: float) -> str:
    """TFLOP/s as the datasheets give them: `989.4`, `2,250`."""
    return f"{tflops:,g}"


def _name(peak: Peak) -> str:
    assumed = _("assumed ") if peak.assumed else ""
    gpu = _(" of {gpu}", gpu=cut(peak.gpu, _NAME)) if peak.gpu else ""
    return _(
        "{assumed}dense {precision} peak{gpu}",
        assumed=assumed,
        precision=peak.precision.upper(),
        gpu=gpu,
    )


def near(tflops: float, values: Sequence[float], *, log_scale: bool) -> bool:
    """Whether the axis can hold a level without flattening the series.

    >>> near(1000.0, [400.0, 420.0], log_scale=False), near(1000.0, [20.0], log_scale=False)
    (True, False)
    """
    factor = NEAR_LOG if log_scale else NEAR
    return bool(values) and min(values) / factor <= tflops <= max(values) * factor


def share(data: ReportData) -> str:
    """`42 % of the dense BF16 peak of H100 SXM`; empty where either is unknown."""
    found, middle = limit(data.peak), data.series.tflops_per_gpu.median
    if data.peak is None or found is None or middle is None or not math.isfinite(middle):
        return ""
    part = words.percent(middle / found.tflops)
    return (
        _("{part} of the {name}", part=part, name=_name(data.peak))
        if found.exact
        else _("at least {part} of the peak", part=part)
    )


def measure(data: ReportData) -> str:
    """The limit and who says so: `989.4 according to the logs`; empty where unknown."""
    found = limit(data.peak)
    if data.peak is None or found is None:
        return ""
    said = figure(found.tflops) if found.exact else found.label
    return _commas(said, origin(data.peak))


def traits(peak: Peak) -> str:
    """What the figure is of, and who says so, for its place among the key numbers."""
    precision = peak.precision.upper()
    if peak.assumed:
        precision = _("{precision} (assumed)", precision=precision)
    who = cut(peak.gpu, _NAME) if peak.gpu else ""
    if not positive(peak.tflops):
        who = _("{who} does no more", who=who) if who else _("no GPU of this kind does more")
    return _commas(precision, who, origin(peak))


def origin(peak: Peak) -> str:
    """Who says which GPU it is."""
    return _("according to {source}", source=cut(peak.source, _SOURCE)) if peak.source else ""


def _commas(*parts: str) -> str:
    return _(", ").join(part for part in parts if part)


def brief(data: ReportData) -> str:
    """Share, limit and source in one phrase, for a terminal or a table cell."""
    said = share(data)
    return _("{said} ({what})", said=said, what=measure(data)) if said else ""


def notes(data: ReportData, values: Sequence[float], drawn: Limit | None) -> list[str]:
    """The caption's sentences: the share of the median, the peak, whence, and what is above it.

    `values` are all finite printed ones; `drawn` is the limit where the axis holds it.
    """
    found = limit(data.peak)
    if data.peak is None:
        return [_("No peak to measure this by: {unknown}", unknown=_(_UNKNOWN))]
    if found is None:
        return [
            _(
                "No peak to measure this by. {explanation} {name_it}",
                explanation=data.peak.explanation,
                name_it=_(_NAME_IT),
            )
        ]
    whence = data.peak.explanation or f"{_sentence(measure(data))}"
    lines = [gap().join(filter(None, (whence, _median(data, found, data.peak))))]
    if above := [value for value in values if value > found.tflops]:
        lines.append(_above(above, len(values), found, data.peak))
    if drawn is None and values:
        where = _("above") if max(values) < found.tflops else _("below")
        lines.append(
            _(
                "The line of {peak} lies far {where} the series and is not drawn: one axis "
                "for both would flatten the series.",
                peak=figure(found.tflops),
                where=where,
            )
        )
    return lines


def _median(data: ReportData, found: Limit, peak: Peak) -> str:
    """The share of the median; which peak, only where the explanation does not say it."""
    said, middle = share(data), data.series.tflops_per_gpu.median
    if said and found.exact and peak.explanation and middle is not None:
        said = _("{part} of it", part=words.percent(middle / found.tflops))
    return _("The median is {said}.", said=said) if said else ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _above(above: Sequence[float], count: int, found: Limit, peak: Peak) -> str:
    if len(above) == count > 1:
        who = _("All {count:,} values are", count=count)
    else:
        who = n_(
            "{count:,} value of {all:,} is",
            "{count:,} values of {all:,} are",
            count=len(above),
            all=count,
        )
    line = _("peak") if found.exact else _("bound")
    faster = peak.bound_tflops or found.tflops
    doubt = (
        _("the precision is not the assumed one, or the numbers are wrong")
        if found.exact and peak.assumed and max(above) <= faster
        else _("no such GPU can do that, the numbers are wrong")
    )
    return _("{who} above this {line} (diamonds): {doubt}.", who=who, line=line, doubt=doubt)


def claimed_mfu(data: ReportData) -> float | None:
    """Median of the MFU that the trainer printed, 0 to 1; None where it printed none."""
    if "mfu" not in data.iterations.columns:
        return None
    printed = [value for value in data.iterations["mfu"].to_list() if value is not None]
    finite = [value for value in printed if math.isfinite(value)]
    return median(finite) if finite else None


def claimed(data: ReportData) -> str:
    """The same in words; empty where the trainer printed none."""
    found = claimed_mfu(data)
    return (
        ""
        if found is None
        else _("{share} median, the trainer's claim", share=words.percent(found))
    )
