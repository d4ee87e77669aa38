"""Axes: their ticks, their labels, and when they are logarithmic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOG_FLOOR: Final = 1e-300
"""Below it a tick under the least value would be zero."""


def wants_log(values: list[float]) -> bool:
    """One slow first iteration or one spike must not flatten the rest of the line."""
    if len(values) < 3 or min(values) < _LOG_FLOOR:
        return False
    return max(values) > 10 * sorted(values)[len(values) // 2]


def scaled(value: float, *, log: bool) -> float:
    """A value in the unit of its axis."""
    return math.log10(value) if log else value


def linear_ticks(values: Sequence[float]) -> list[float]:
    """Four to seven round numbers around the values.

    >>> linear_ticks([3.0, 11.0])
    [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    """
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, high + margin
    step = _round_step((high - low) / 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def log_ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten around the values.

    >>> log_ticks([0.5, 300.0])
    [0.1, 1.0, 10.0, 100.0, 1000.0]
    """
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    stride = max(1, (high - low) // 5)
    return [10.0**power for power in range(low, high + stride, stride)]


def whole_ticks(low: float, high: float) -> list[float]:
    """Round whole numbers within the range, and its begin where there is room for it.

    >>> whole_ticks(1, 120)
    [1, 50.0, 100.0]
    """
    if low == high:
        return [low]
    step = max(_round_step((high - low) / 4), 1.0)
    first, last = math.ceil(low / step), math.floor(high / step)
    ticks = [number * step for number in range(first, last + 1)]
    return [low, *ticks] if ticks[0] - low > 0.4 * step else ticks


def _round_step(wanted: float) -> float:
    power = 10.0 ** math.floor(math.log10(max(wanted, 1e-100)))
    return next(power * factor for factor in (1, 2, 5, 10) if wanted <= power * factor * 1.0000001)


def tick_label(value: float) -> str:
    """A tick in few letters."""
    size = abs(value)
    if size and (size >= 1e6 or size < 1e-3):
        return f"{value:.0e}"
    return f"{value:,.6g}"
