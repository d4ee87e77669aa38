"""Growth of the loss that is no jump: slow divergence, told by levels, not by lines.

The *level* is the running median of the medians of blocks of eight lines, in logarithms: spikes and
noise hardly move it, and a step stays a step. What counts is the rise that the loss *kept*: from
the lowest level to the lowest one behind, so a rise that the loss came back from is none. The
lowest level is that since the learning rate last rose: warm-up and restarts raise the loss rightly.

The *climb* is where the level left the lowest fifth of that rise for good, up to where it stayed in
the highest fifth. Divided into `PARTS` parts, a divergence rises in nearly all of them and by about
as much; a change of the data mixture or of the sequence length is a step or a staircase: it rises
in few parts, and in each by a large share of the whole.

A series with values at or below zero, or in which many lines leave the loss out as Megatron does
with a negative one, is an objective and no loss: it has no climb.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BLOCK: Final = 8
"""Lines of a block."""

BLOCKS: Final = 12
"""Blocks of the running median; and `LEAST` before there is one."""

LEAST: Final = 4

PARTS: Final = 16
"""Parts of a climb, each of a block at least: a step moves the level for `BLOCKS` blocks only."""

OUTER: Final = 0.2
"""Share of the kept rise that is left out at either end of a climb."""

OBJECTIVE: Final = 0.1
"""Share of lines with a gradient norm and without a loss from which on that is no loss."""

_RISES: Final = 1.0 + 1e-6
"""Factor by which a learning rate rises: more than the digits of a printed one."""

_NONE: Final[Mapping[str, int | float | str]] = {
    "climb_lines": 0,
    "climb_rising": 0.0,
    "climb_largest": 1.0,
    "returned": 0.0,
    "growth": "",
}
"""What is said where there is no climb."""


def columns(rows: pl.DataFrame) -> pl.DataFrame:
    """The facts about growth, a row for each of the rows of one attempt.

    Reads `iteration`, `lm_loss`, `grad_norm`, `learning_rate` and `cut`. Columns are those of
    `ITERATION_FACTS`, described there.
    """
    loss, whole = pl.col("lm_loss"), ~pl.col("cut").fill_null(value=False)
    given = rows.select((whole & loss.is_finite() & (loss > 0)).fill_null(value=False)).to_series()
    used = rows.filter(given)
    many = used.height // BLOCK
    blocks = _blocks(used.head(many * BLOCK), many)
    if _is_objective(rows):
        blocks = blocks.with_columns(**_literals())
    # a line is told by the block before its own
    behind = (given.cum_sum().cast(pl.Int64) - 1) // BLOCK - 1
    place = pl.select(pl.when(given & (behind >= 0)).then(behind)).to_series()
    told = blocks.select(pl.all().gather(place))
    # without any loss nothing is known of its growth
    known = _NONE if given.any() else {"growth": ""}
    return told.with_columns(pl.col(name).fill_null(value) for name, value in known.items())


def _literals() -> dict[str, pl.Expr]:
    return {name: pl.lit(value) for name, value in _NONE.items()}


def _is_objective(rows: pl.DataFrame) -> bool:
    loss, norm = pl.col("lm_loss"), pl.col("grad_norm")
    left_out = rows.filter(loss.is_null(), norm.is_finite()).height
    return rows.filter(loss <= 0).height > 0 or left_out > OBJECTIVE * rows.height


def _blocks(used: pl.DataFrame, many: int) -> pl.DataFrame:
    """Facts of each block; `used` holds the lines of whole blocks."""
    shape = (many, BLOCK)
    rate = used["learning_rate"].reshape(shape).arr.max() if many else used["learning_rate"]
    frame = pl.DataFrame(
        {
            "middle": used["lm_loss"].log().reshape(shape).arr.median() if many else [],
            "rate": rate.forward_fill(),
            "iteration": used["iteration"].gather_every(BLOCK),
        },
        schema_overrides={"middle": pl.Float64},
    )
    rises = (pl.col("rate") > pl.col("rate").shift(1) * _RISES).fill_null(value=False)
    level = pl.col("middle").rolling_median(BLOCKS, min_samples=LEAST)
    frame = frame.with_columns(rises.cum_sum().alias("since"))
    frame = frame.with_columns(level.over("since").alias("level"))
    frame = frame.with_columns(
        pl.col("level").cum_min().over("since").alias("lowest"),
        pl.col("level").cum_min(reverse=True).alias("kept"),
    )
    climbs = [_with_climb(part) for part in _segments(frame)]
    return pl.concat(climbs).select(pl.col("lowest", "kept").exp(), *_NONE)


def _segments(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Blocks between two rises of the learning rate; those too short for a climb in one piece."""
    at = short = 0
    for length in frame["since"].rle().struct.field("len").to_list():
        if length < LEAST + PARTS:
            short += length
            continue
        yield frame.slice(at, short)
        yield frame.slice(at + short, length)
        at, short = at + short + length, 0
    yield frame.slice(at)


def _with_climb(blocks: pl.DataFrame) -> pl.DataFrame:
    """The blocks of one segment with the facts of its climb on those from its beginning on."""
    known = blocks.drop_nulls("level")
    alike = known["since"].n_unique() == 1
    ends = _ends(known) if alike and known.height >= PARTS else None
    if ends is None:
        return blocks.with_columns(**_literals())
    inside = pl.int_range(pl.len()) >= blocks.height - known.height + ends[0]
    return blocks.with_columns(
        pl.when(inside).then(pl.lit(value)).otherwise(pl.lit(_NONE[name])).alias(name)
        for name, value in _climb(known, *ends).items()
    )


def _ends(blocks: pl.DataFrame) -> tuple[int, int] | None:
    """First and last block of the climb; None where nothing was kept, or it is a step."""
    lowest = float(blocks["lowest"][-1])
    rise = float(blocks["kept"][-1]) - lowest
    if rise <= 0.0:
        return None
    first = (blocks["level"] <= lowest + OUTER * rise).arg_true().max()
    last = (blocks["kept"] >= lowest + (1.0 - OUTER) * rise).arg_max()
    ends = int(str(first)), int(str(last))
    return ends if ends[1] - ends[0] + 1 >= PARTS else None


def _climb(blocks: pl.DataFrame, first: int, last: int) -> dict[str, int | float | str]:
    level = blocks["level"]
    climb = level.slice(first, last - first + 1)
    cuts = [part * climb.len() // PARTS for part in range(PARTS + 1)]
    middles = pl.Series([climb.slice(a, b - a).median() for a, b in pairwise(cuts)])
    steps, whole = middles.diff().drop_nulls(), middles[-1] - middles[0]
    before = level.head((level.arg_min() or 0) + 1).exp()
    return {
        "climb_lines": climb.len() * BLOCK,
        "climb_rising": float(str((steps > 0).mean())),
        "climb_largest": min(float(str(steps.max())) / whole, 1.0) if whole > 0 else 1.0,
        "returned": float(str((before - before.cum_min()).max())),
        "growth": _words(blocks, first, last),
    }


def _words(blocks: pl.DataFrame, first: int, last: int) -> str:
    """Where the climb began and where it stays."""
    points = []
    for at in (first, last):
        iteration = blocks["iteration"][at]
        level = f"{math.exp(blocks['level'][at]):.4g}"
        points.append(
            level
            if iteration is None
            else say("{level} (iteration {iteration:,})", level=level, iteration=iteration)
        )
    return say(
        "Its level rose from {first} to {last} and did not come back.",
        first=points[0],
        last=points[1],
    )
