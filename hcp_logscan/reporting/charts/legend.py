"""The legend below the still drawing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.charts.look import look
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from hcp_logscan.reporting.charts.series import Trace

_LEGEND: Final = 9
_ROW: Final = 18.0


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the legend."""

    label: str
    colour: int
    dash: str
    x: float
    y: float


def legend(traces: tuple[Trace, ...], top: float) -> tuple[Key, ...]:
    """Entries in three columns from `top` on; none for a single line."""
    if len(traces) == 1:
        return ()
    attempts = [trace for trace in traces if not trace.baseline]
    keys = [
        _key(number, trace, number % 3, top + _ROW * (number // 3))
        for number, trace in enumerate(attempts[:_LEGEND])
    ]
    if len(attempts) > _LEGEND:
        keys[-1] = replace(
            keys[-1], label=_("and {count} more", count=len(attempts) - _LEGEND + 1), colour=-1
        )
    # its name takes more room than one column
    column, row = (1, 0) if len(attempts) == 1 else (0, (len(keys) + 2) // 3)
    keys += [_key(0, trace, column, top + _ROW * row) for trace in traces if trace.baseline]
    return tuple(keys)


def _key(number: int, trace: Trace, column: int, y: float) -> Key:
    colour, _, dash = look(number, trace)
    return Key(trace.name, colour, dash, x=12 + 156.0 * column, y=y)
