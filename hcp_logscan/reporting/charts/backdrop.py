"""Levels as a still drawing shows them: lines and a band whose labels cover the least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.charts.frame import BOTTOM, LEFT, RIGHT, TOP
from hcp_logscan.reporting.limitline import LimitLine, across, label_area, limit_line

if TYPE_CHECKING:
    from hcp_logscan.reporting.charts.frame import Frame
    from hcp_logscan.reporting.charts.levels import Levels
    from hcp_logscan.reporting.limitline import Place

_BOX: Final = (LEFT, RIGHT, TOP, BOTTOM)
_TALL: Final = 20.0
"""A band less tall than that has its label outside."""


@dataclass(frozen=True, slots=True)
class BandBox:
    """The believable band, in drawing units, as far as it is within the axes."""

    top: float
    bottom: float
    edges: tuple[float, ...]
    "Edges that are within the axes."

    label: LimitLine


@dataclass(frozen=True, slots=True)
class Backdrop:
    """What lies behind the series."""

    limit: LimitLine | None = None
    off: LimitLine | None = None
    band: BandBox | None = None


def backdrop(levels: Levels, inside: Frame, courses: list[list[Place]]) -> Backdrop:
    """Lines, band and labels; `courses` are the lines that labels should not cover."""
    limit = off = None
    labels: list[list[Place]] = []

    def line(label: str, value: float, dash: str) -> LimitLine:
        others = [across(y, _BOX) for y in _heights(levels, inside) if y != inside.y(value)]
        busy = [*courses, *others, *labels]
        found = limit_line(label, inside.y(value), busy, dash=dash, box=_BOX)
        labels.append(label_area(found))
        return found

    if levels.limit is not None:
        dash = "" if levels.limit.exact else "8 5"
        limit = line(levels.limit.label, levels.limit.tflops, dash)
    band = _band(levels, inside, [*courses, *labels])  # it has the fewest places to choose from
    if band is not None:
        labels.append(label_area(band.label))
    if levels.off is not None:
        off = line(levels.off.label, levels.off.tflops, "2 4")
    return Backdrop(limit, off, band)


def _heights(levels: Levels, inside: Frame) -> list[float]:
    values = [level.tflops for level in (levels.limit, levels.off) if level is not None]
    if levels.band is not None:
        values += [levels.band.low, levels.band.high]
    return [inside.y(value) for value in values]


def _band(levels: Levels, inside: Frame, busy: list[list[Place]]) -> BandBox | None:
    if levels.band is None:
        return None
    top, bottom = inside.clipped(levels.band.high), inside.clipped(levels.band.low)
    heights = _heights(levels, inside)
    others = [across(y, _BOX) for y in heights if y not in (top, bottom)]
    sides = (False,) if bottom - top >= _TALL else (True, False)
    label = limit_line(levels.band.label, top, [*busy, *others], dash="1 3", box=_BOX, sides=sides)
    edges = [inside.y(value) for value in (levels.band.high, levels.band.low)]
    return BandBox(top, bottom, tuple(y for y in edges if TOP <= y <= BOTTOM), label)
