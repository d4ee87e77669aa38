"""The frame of a still drawing: its box, its axes, and where a value stands in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.charts.axes import linear_ticks, log_ticks, scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.reporting.charts.series import Trace

WIDTH: Final = 480
LEFT: Final = 62.0
RIGHT: Final = 470.0
TOP: Final = 14.0
BOTTOM: Final = 204.0
"""Drawing units."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Ranges of both axes, that of the values in the scaled unit of its axis."""

    first: float
    last: float
    low: float
    high: float
    log_scale: bool
    ticks: tuple[float, ...]

    def x(self, iteration: float) -> float:
        """Where an iteration stands."""
        wide = self.last - self.first
        share = (iteration - self.first) / wide if wide > 0 else 0.5
        return round(LEFT + share * (RIGHT - LEFT), 1)

    def y(self, value: float) -> float:
        """Where a value stands."""
        tall = self.high - self.low
        share = (scaled(value, log=self.log_scale) - self.low) / tall if tall > 0 else 0.5
        return round(BOTTOM - share * (BOTTOM - TOP), 1)

    def clipped(self, value: float) -> float:
        """Where a value stands, or the edge of the box that it is beyond."""
        return min(max(self.y(value), TOP), BOTTOM)


def frame(
    traces: Sequence[Trace], values: Sequence[float], more: Sequence[float], *, log_scale: bool
) -> Frame:
    """The frame that holds all values, and round ticks around them and `more`."""
    xs = [x for trace in traces for x, _ in trace.svg_points]
    held = [*values, *more]
    ticks = log_ticks(held) if log_scale else linear_ticks(held)
    low, high = scaled(ticks[0], log=log_scale), scaled(ticks[-1], log=log_scale)
    if values:
        low = min(low, scaled(min(values), log=log_scale))
        high = max(high, scaled(max(values), log=log_scale))
    return Frame(min(xs), max(xs), low, high, log_scale, tuple(ticks))
