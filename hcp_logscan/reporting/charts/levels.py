"""What printed throughput is read against: the peak, what is believable, and CP that was off.

All are of the judged attempt. Each is drawn only where the axis can hold it without flattening
the series, and said in words wherever it is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.reporting import peak, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.model.report import RateLevels, ReportData
    from hcp_logscan.reporting.peak import Limit


@dataclass(frozen=True, slots=True)
class Band:
    """Between which rates training is believable, TFLOP/s/GPU."""

    low: float
    high: float
    label: str


@dataclass(frozen=True, slots=True)
class Off:
    """The rate that was done if context parallelism was off, TFLOP/s/GPU."""

    tflops: float
    label: str


@dataclass(frozen=True, slots=True)
class Levels:
    """What is drawn behind a series; nothing for most charts."""

    limit: Limit | None = None
    band: Band | None = None
    off: Off | None = None
    held: tuple[float, ...] = ()
    "What the axis is stretched for."


def of_judged(data: ReportData) -> RateLevels | None:
    """The levels of the attempt that the verdict speaks of."""
    return next((found for found in data.levels if found.attempt == data.judged_attempt), None)


def drawn_levels(data: ReportData, values: Sequence[float], *, log_scale: bool) -> Levels:
    """What to draw behind printed rates; `values` are the drawn ones."""

    def near(tflops: float) -> bool:
        return peak.near(tflops, values, log_scale=log_scale)

    def fits(tflops: float) -> bool:
        # a linear axis that reaches down to zero is hardly longer than one that holds a quarter
        return near(tflops) or (bool(values) and not log_scale and tflops < min(values))

    limit, known = peak.limit(data.peak), of_judged(data)
    if limit is not None and not near(limit.tflops):
        limit = None
    held = [limit.tflops] if limit else []
    off = _off(known)
    if off is not None and fits(off.tflops):
        held.append(off.tflops)
    else:
        off = None
    band = _band(known)
    if band is not None:
        held += [band.low] if near(band.low) else []
        held += [band.high] if fits(band.high) else []
        if not _meets(band, [*values, *held]):
            band = None
    return Levels(limit, band, off, tuple(held))


def _off(known: RateLevels | None) -> Off | None:
    if known is None or not peak.positive(known.if_cp_off) or known.cp_size is None:
        return None
    done = words.fixed(known.if_cp_off, 0)
    return Off(known.if_cp_off, f"if CP was off (attention \u00f7 {known.cp_size:,}): {done}")


def _band(known: RateLevels | None) -> Band | None:
    if known is None or known.believable is None:
        return None
    low, high = known.believable
    if not (peak.positive(low) and peak.positive(high)) or low >= high:
        return None
    return Band(low, high, f"believable: {_both(low, high)}")


def _both(low: float, high: float) -> str:
    return f"{words.fixed(low, 0)} to {words.fixed(high, 0)}"


def _meets(band: Band, held: Sequence[float]) -> bool:
    """Whether some of the band lies within the axis."""
    return bool(held) and band.low < max(held) and band.high > min(held)


def described(levels: Levels) -> str:
    """What is drawn behind the series, for those who do not see it; empty where nothing is."""
    found = [
        f"a line at the {levels.limit.label}" if levels.limit else "",
        f"a shaded band, {levels.band.label}" if levels.band else "",
        f"a dotted line, {levels.off.label}" if levels.off else "",
    ]
    shown = "; ".join(part for part in found if part)
    return f"Behind it {shown}." if shown else ""


def notes(data: ReportData, drawn: Levels) -> list[str]:
    """The caption's sentences on the band and on CP that was off."""
    known = of_judged(data)
    band, off = _band(known), _off(known)
    whose = f" in attempt {data.judged_attempt}" if len(data.attempts) > 1 else ""
    found = []
    if band is not None:
        where = "shaded" if drawn.band else "not on this axis"
        found.append(
            f"Believable{whose}: {_both(band.low, band.high)} TFLOP/s/GPU{_shares(data, band)}"
            f" ({where})."
        )
    if off is not None and known is not None:
        where = "dotted line" if drawn.off else "too far off to be drawn"
        found.append(
            f"If context parallelism was off{whose}, {words.fixed(off.tflops, 0)} TFLOP/s/GPU were"
            f" done: the median with its attention divided by the CP size, {known.cp_size:,}"
            f" ({where})."
        )
    return found


def _shares(data: ReportData, band: Band) -> str:
    whole = data.peak.tflops if data.peak else None
    if not peak.positive(whole):
        return ""
    return f", {words.percent(band.low / whole)} to {words.percent(band.high / whole)} of the peak"
