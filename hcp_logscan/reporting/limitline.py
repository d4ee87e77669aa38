"""The line of a limit in a drawing: its height, and where its label covers the least."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LETTER: Final = 6.3
"""Mean width of a letter of the label, in drawing units."""

_TALL: Final = 13.0
_GAP: Final = 5.0
_DENSE: Final = 10
_STEPS: Final = 8
"""Places looked at on each piece of a line: a long piece may cross the label between its ends."""

Place = tuple[float, float]


@dataclass(frozen=True, slots=True)
class LimitLine:
    """A horizontal line with its label, in drawing units."""

    y: float
    label: str
    dash: str
    x: float
    "Where the label is anchored."

    text_y: float
    anchor: Literal["start", "end"]
    above: bool
    "The label stands over the line, not under it."


def limit_line(
    label: str,
    y: float,
    lines: Iterable[Sequence[Place]],
    *,
    dash: str,
    box: tuple[float, float, float, float],
    sides: Sequence[bool] = (True, False),
) -> LimitLine:
    """The line at height `y`; `box` is left, right, top and bottom of the drawing.

    `sides` are those where the label may stand, True for above the line.

    The label stands at the end and on the side where the fewest points of `lines` lie.
    """
    left, right, top, bottom = box
    width = min(len(label) * _LETTER, right - left)
    points = [place for line in lines for place in _along(line)]
    found: list[tuple[int, LimitLine]] = []
    roomy = [above for above in sides if (y - top if above else bottom - y) > _TALL + _GAP]
    for above in roomy or [True]:
        for start in (True, False):
            x = left + 4 if start else right - 2
            text_y = y - _GAP if above else y + _TALL
            first = x if start else x - width
            covered = sum(
                first - 4 <= px <= first + width + 4 and text_y - _TALL <= py <= text_y + 4
                for px, py in points
            )
            line = LimitLine(y, label, dash, x, text_y, "start" if start else "end", above)
            found.append((covered, line))
    return min(found, key=lambda pair: pair[0])[1]


def across(y: float, box: tuple[float, float, float, float]) -> list[Place]:
    """A line from the left to the right of the box, as dense as the labels are wide."""
    left, right, *_ = box
    return [(float(x), y) for x in range(int(left), int(right) + 1, _DENSE)]


def label_area(line: LimitLine) -> list[Place]:
    """Places all over a label, which another one should not cover."""
    width = len(line.label) * _LETTER
    first = line.x if line.anchor == "start" else line.x - width
    steps = [first + step for step in range(0, int(width) + _DENSE, _DENSE)]
    return [(x, line.text_y + shift) for shift in (-10, 2) for x in steps]


def _along(line: Sequence[Place]) -> Iterable[Place]:
    yield from line[:1]
    for (x0, y0), (x1, y1) in pairwise(line):
        for step in range(1, _STEPS + 1):
            share = step / _STEPS
            yield x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
