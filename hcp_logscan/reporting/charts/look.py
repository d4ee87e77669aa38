"""What both drawings share: colours, dashes, and which values get a mark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.charts.series import downsample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.reporting.charts.series import Point, Trace
    from hcp_logscan.reporting.peak import Limit

MAX_MARKS: Final = 100
"""Marks for missing values of one attempt and chart; more are counted in the note."""

MAX_ABOVE: Final = 60
"""Marks for values above the peak, of one attempt; the caption counts them all."""

COLOURS: Final = 6

_BASELINE_COLOUR: Final = COLOURS
"""A colour of its own, which no attempt has."""

_BASELINE_DASHES: Final = ("dash", "6 3")

_DASHES: Final = ("solid", "dash", "dot", "dashdot")

_SVG_DASHES: Final = ("", "7 4", "2 4", "7 4 2 4")


def look(number: int, trace: Trace) -> tuple[int, str, str]:
    """Colour, and dashes of the script and of the still drawing."""
    if trace.baseline:
        return (_BASELINE_COLOUR, *_BASELINE_DASHES)
    style = number // COLOURS % len(_DASHES)
    return number % COLOURS, _DASHES[style], _SVG_DASHES[style]


def above_limit(points: Sequence[Point], limit: Limit | None, most: int) -> tuple[Point, ...]:
    """Points beyond the limit, at most so many."""
    if limit is None:
        return ()
    return downsample([p for p in points if p[1] is not None and p[1] > limit.tflops], most)


def starts(xs: tuple[float, ...]) -> list[float]:
    """The first of each run of neighbours."""
    return [x for at, x in enumerate(xs) if at == 0 or x - xs[at - 1] > 1]
