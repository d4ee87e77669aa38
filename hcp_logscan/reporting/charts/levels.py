"""What printed throughput is read against: the peak, what is believable, and CP that was off.

All are of the judged attempt. Each is drawn only where the axis can hold it without flattening
the series, and said in words wherever it is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.reporting import peak, words
from hcp_logscan.reporting.tongue import _

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
    label = _(
        "if CP was off (attention \u00f7 {cp_size:,}): {done}", cp_size=known.cp_size, done=done
    )
    return Off(known.if_cp_off, label)


def _band(known: RateLevels | None) -> Band | None:
    if known is None or known.believable is None:
        return None
    low, high = known.believable
    if not (peak.positive(low) and peak.positive(high)) or low >= high:
        return None
    return Band(low, high, _("believable: {both}", both=_both(low, high)))


def _both(low: float, high: float) -> str:
    return _("{low} to {high}", low=words.fixed(low, 0), high=words.fixed(high, 0))


def _meets(band: Band, held: Sequence[float]) -> bool:
    """Whether some of the band lies within the axis."""
    return bool(held) and band.low < max(held) and band.high > min(held)


def described(levels: Levels) -> str:
    """What is drawn behind the series, for those who do not see it; empty where nothing is."""
    found = [
        _("a line at the {label}", label=levels.limit.label) if levels.limit else "",
        _("a shaded band, {label}", label=levels.band.label) if levels.band else "",
        _("a dotted line, {label}", label=levels.off.label) if levels.off else "",
    ]
    shown = _("; ").join(part for part in found if part)
    return _("Behind it {shown}.", shown=shown) if shown else ""


def notes(data: ReportData, drawn: Levels) -> list[str]:
    """The caption's sentences on the band and on CP that was off."""
    known = of_judged(data)
    band, off = _band(known), _off(known)
    whose = (
        _(" in attempt {attempt}", attempt=data.judged_attempt) if len(data.attempts) > 1 else ""
    )
    found = []
    if band is not None:
        where = _("shaded") if drawn.band else _("not on this axis")
        found.append(
            _(
                "Believable{whose}: {both} TFLOP/s/GPU{shares} ({where}).",
                whose=whose,
                both=_both(band.low, band.high),
                shares=_shares(data, band),
                where=where,
            )
        )
    if off is not None and known is not None:
        where = _("dotted line") if drawn.off else _("too far off to be drawn")
        found.append(
            _(
                "If context parallelism was off{whose}, {done} TFLOP/s/GPU were done: the median"
                " with its attention divided by the CP size, {cp_size:,} ({where}).",
                whose=whose,
                done=words.fixed(off.tflops, 0),
                cp_size=known.cp_size,
                where=where,
            )
        )
    return found


def _shares(data: ReportData, band: Band) -> str:
    whole = data.peak.tflops if data.peak else None
    if not peak.positive(whole):
        return ""
    return _(
        ", {low} to {high} of the peak",
        low=words.percent(band.low / whole),
        high=words.percent(band.high / whole),
    )
