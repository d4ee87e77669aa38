"""What tells the time of a step: printed step times, printed rates, or the stamps of the lines.

A comparison rests on one source: sources differ by more than noise (a printed rate may leave the
data loader out, stamps include every pause), so their numbers are never laid beside each other.

Stamps of one second are too coarse for short steps: lines are taken together until a window is
`RESOLUTIONS` times as long as what a stamp can tell apart, which leaves an error of a twentieth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import polars as pl

from hcp_logscan.model.said import N_

PACE: Final = "pace"
"""Column with the time of a step: milliseconds, or where a rate tells it, one over the rate."""

RESOLUTIONS: Final = 20
"""How many times the resolution of the stamps a window spans."""

_WHOLE_MS: Final = 1_000.0
_PART_MS: Final = 1.0
_USUAL_LINES: Final = 16
_SECOND: Final = 19
"""Characters of a stamp to the second; a fraction follows."""


@dataclass(frozen=True, slots=True)
class Source:
    """One way to tell the time of a step."""

    name: str
    "For readers, behind `by`."

    column: str | None
    "Of the fact table `iterations`; None for the stamps."

    unit: str
    rate: bool = False
    "It tells steps per time: the higher, the faster."

    @property
    def milliseconds(self) -> bool:
        """Whether the pace is in milliseconds."""
        return not self.rate

    def words(self, pace: float) -> str:
        """A pace in its unit: `5,120 ms`, `4,210 tokens/s/GPU`."""
        return f"{1.0 / pace if self.rate else pace:,.0f} {self.unit}"


SOURCES: Final = (
    Source(N_("the printed step times"), "step_ms", "ms"),
    Source(N_("the printed tokens/s"), "tokens_per_s_per_gpu", "tokens/s/GPU", rate=True),
    Source(N_("the printed TFLOP/s"), "tflops_per_gpu", "TFLOP/s/GPU", rate=True),
    Source(N_("the time stamps of the lines"), None, "ms"),
)
"""In the order in which they are believed."""


def by(source: Source, rows: pl.DataFrame) -> pl.DataFrame | None:
    """The rows of one attempt that have a pace by this source; None where most have none.

    `rows` is the fact table `iterations` of that attempt; its columns are kept, with `PACE`
    besides. Rates count as printed only where most lines have no step time: where one has, tokens/s
    may have been computed from it.
    """
    if source.column is None:
        return _by_stamps(rows.filter("finished"))
    printed = _most_have(rows, source.column)
    if not printed or (source.rate and _most_have(rows, "step_ms")):
        return None
    value = pl.col(source.column)
    pace = 1.0 / value if source.rate else value
    return rows.filter("finished", value.is_finite(), value > 0).with_columns(pace.alias(PACE))


def _most_have(rows: pl.DataFrame, column: str) -> bool:
    return rows[column].is_not_null().sum() * 2 > rows.height


def _by_stamps(rows: pl.DataFrame) -> pl.DataFrame | None:
    """The last row of each window between two stamps; None where lines carry too few of them."""
    dated = rows.filter(pl.col("time").is_not_null(), pl.col("iteration").is_not_null())
    if dated.height * 2 <= rows.height or dated.height < 2:
        return None
    text = dated["time"].str.replace("T", " ").str.replace(",", ".", literal=True)
    stamps = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="ms", strict=False)
    # of several lines: stamps of one second round a short step to none or one
    several = min(_USUAL_LINES, dated.height - 1)
    usual = (stamps.diff(several).dt.total_milliseconds() / several).median()
    if not isinstance(usual, float) or usual <= 0.0:
        return None
    parts = (text.str.len_bytes() > _SECOND).all()
    lines = math.ceil(RESOLUTIONS * (_PART_MS if parts else _WHOLE_MS) / usual)
    ends = dated.with_columns(stamps.alias("_at")).gather_every(lines)
    passed = pl.col("_at").diff().dt.total_milliseconds().cast(pl.Float64)
    steps = pl.col("iteration").diff()
    return ends.with_columns((passed / steps).alias(PACE)).filter(passed > 0, steps > 0).drop("_at")
