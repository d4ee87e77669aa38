"""Printed throughput beside the peak of its GPUs: what is said of it, and when it is drawn.

Where GPU and precision are known the measure is a dense peak. Where only the architecture is
known it is a bound that no GPU of it exceeds, so that a share of it is a least share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting import words
from hcp_logscan.reporting.safe import cut

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeGuard

    from hcp_logscan.model.report import Peak, ReportData

NEAR: Final = 4.0
"""Factor between series and peak up to which one linear axis holds both: the series keeps at least
the height of a quarter of it."""

NEAR_LOG: Final = 100.0
"""The same on a logarithmic axis: two powers of ten."""

_NAME_IT: Final = "Give the dense peak with `--peak-tflops`."
_UNKNOWN: Final = (
    "these logs do not say which GPU it is. Name it with `--gpu`, or give its dense peak with "
    "`--peak-tflops`."
)
_NO_GPU: Final = "no GPU of this kind does more than"
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
        return Limit(peak.tflops, exact=True, label=f"{_name(peak)}, {figure(peak.tflops)}")
    if positive(peak.bound_tflops):
        who = f"{cut(peak.gpu, _NAME)} does at most" if peak.gpu else _NO_GPU
        return Limit(peak.bound_tflops, exact=False, label=f"{who} {figure(peak.bound_tflops)}")
    return None


def positive(value: float | None) -> TypeGuard[float]:
    """Whether it is a number that can be a rate."""
    return value is not None and math.isfinite(value) and value > 0


def figure(tflops: float) -> str:
    """TFLOP/s as the datasheets give them: `989.4`, `2,250`."""
    return f"{tflops:,g}"


def _name(peak: Peak) -> str:
    assumed = "assumed " if peak.assumed else ""
    gpu = f" of {cut(peak.gpu, _NAME)}" if peak.gpu else ""
    return f"{assumed}dense {peak.precision.upper()} peak{gpu}"


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
    return f"{part} of the {_name(data.peak)}" if found.exact else f"at least {part} of the peak"


def measure(data: ReportData) -> str:
    """The limit and who says so: `989.4 according to the logs`; empty where unknown."""
    found = limit(data.peak)
    if data.peak is None or found is None:
        return ""
    said = figure(found.tflops) if found.exact else found.label
    return _commas(said, origin(data.peak))


def traits(peak: Peak) -> str:
    """What the figure is of, and who says so, for its place among the key numbers."""
    precision = f"{peak.precision.upper()}{' (assumed)' if peak.assumed else ''}"
    who = cut(peak.gpu, _NAME) if peak.gpu else ""
    if not positive(peak.tflops):
        who = f"{who} does no more" if who else "no GPU of this kind does more"
    return _commas(precision, who, origin(peak))


def origin(peak: Peak) -> str:
    """Who says which GPU it is."""
    return f"according to {cut(peak.source, _SOURCE)}" if peak.source else ""


def _commas(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def brief(data: ReportData) -> str:
    """Share, limit and source in one phrase, for a terminal or a table cell."""
    said = share(data)
    return f"{said} ({measure(data)})" if said else ""


def notes(data: ReportData, values: Sequence[float], drawn: Limit | None) -> list[str]:
    """The caption's sentences: the share of the median, the peak, whence, and what is above it.

    `values` are all finite printed ones; `drawn` is the limit where the axis holds it.
    """
    found = limit(data.peak)
    if data.peak is None:
        return [f"No peak to measure this by: {_UNKNOWN}"]
    if found is None:
        return [f"No peak to measure this by. {data.peak.explanation} {_NAME_IT}"]
    said = share(data)
    whence = data.peak.explanation or f"{_sentence(measure(data))}"
    lines = [f"{whence} {_median(said, found, data.peak)}".strip()]
    if above := [value for value in values if value > found.tflops]:
        lines.append(_above(above, len(values), found, data.peak))
    if drawn is None and values:
        where = "above" if max(values) < found.tflops else "below"
        lines.append(
            f"The line of {figure(found.tflops)} lies far {where} the series and is not drawn: "
            "one axis for both would flatten the series."
        )
    return lines


def _median(said: str, found: Limit, peak: Peak) -> str:
    """The share of the median; which peak, only where the explanation does not say it."""
    if found.exact and peak.explanation:
        said = said.partition(" of the ")[0] + " of it" if said else ""
    return f"The median is {said}." if said else ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _above(above: Sequence[float], count: int, found: Limit, peak: Peak) -> str:
    if len(above) == count > 1:
        who = f"All {count:,} values are"
    else:
        verb = "is" if len(above) == 1 else "are"
        who = f"{words.plural(len(above), 'value')} of {count:,} {verb}"
    line = "peak" if found.exact else "bound"
    faster = peak.bound_tflops or found.tflops
    doubt = (
        "the precision is not the assumed one, or the numbers are wrong"
        if found.exact and peak.assumed and max(above) <= faster
        else "no such GPU can do that, the numbers are wrong"
    )
    return f"{who} above this {line} (diamonds): {doubt}."


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
    return "" if found is None else f"{words.percent(found)} median, the trainer's claim"
