"""Loss and gradient norm of each line against the lines before it: what a spike is measured by.

A line is compared with the median of up to `WINDOW` lines before it, and its distance is counted in
robust standard deviations of their logarithms: losses and gradient norms are positive and scatter
by factors, so a loss near 0 scatters as widely as one of 2, and a line far out is one that no
scatter of this run explains. Medians and absolute deviations from them are taken of blocks of eight
lines and then over blocks: neither is moved by a spike shorter than half a window, and a million
lines cost a few passes. The comparison is with the past only, so the decay of a beginning is none.

Scatter tells little of the tail: gradient norms of healthy runs may follow power laws, in which one
line in a thousand is a hundred times the usual one. So a line is also measured by its *surprise*. A
power law is an exponential in logarithms, and there the mean distance of the highest of eight from
the next one is that of the exponential (A. Renyi, *On the theory of order statistics*, 1953). With
the mean m of n such distances, of up to `TAIL_BLOCKS` blocks, a line that stands x above the usual
highest of eight comes with probability (1 + x / (n m))^-n; the surprise is minus its logarithm.
Tails that are lighter, as of lognormal noise, are less surprising than that, never more.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.analysis import growth

BLOCK: Final = 8
"""Lines of a block; also those that a first comparison with scatter needs before it."""

BLOCKS: Final = 12
"""Blocks of a window."""

WINDOW: Final = BLOCK * BLOCKS

DEVIATION_OF_BLOCKS: Final = 1.754
"""Standard deviation of normal noise over the median absolute deviation inside blocks of eight."""

QUIETEST: Final = 0.01
"""Scatter that every series is granted, as a share: printed digits, and runs that stand still."""

SOON: Final = 10
"""Lines within which a NaN or Inf follows soon."""

REINFORCEMENT: Final = ("nemo-rl", "siirl", "slime", "verl")
"""Producers whose lines are of policy updates."""

FIRST_BLOCKS: Final = 4
"""Blocks of the beginning, which gradual growth has to surpass."""


_OF_LOSS: Final = ("usual", "deviations", "deviations_of_two", "before")

TAIL_BLOCKS: Final = 128
"""Blocks that tell how heavy the tail is."""

_COLUMNS: Final = ("usual", "deviations", "before", "recent", "lowest", "first", "surprise")


def columns(rows: pl.DataFrame) -> pl.DataFrame:
    """The facts about spikes and growth, a row for each of `rows`, which are ordered by attempt.

    Reads `attempt`, `iteration`, `lm_loss`, `grad_norm`, `lm_loss_finite`, `grad_norm_finite`,
    `learning_rate`, `producer` and `cut`. Columns are those of `ITERATION_FACTS`, described there.
    """
    parts = [_of_attempt(part) for part in rows.partition_by("attempt", maintain_order=True)]
    return pl.concat(parts) if parts else _of_attempt(rows)


def _of_attempt(rows: pl.DataFrame) -> pl.DataFrame:
    whole = ~pl.col("cut").fill_null(value=False)
    usable = rows.select(
        pl.when(whole & pl.col(name).is_finite() & (pl.col(name) > 0)).then(name).alias(name)
        for name in ("lm_loss", "grad_norm")
    )
    broken = ~pl.col("lm_loss_finite").fill_null(value=True)
    broken |= ~pl.col("grad_norm_finite").fill_null(value=True)
    # from the last line to the first: those that follow have passed
    ahead = broken.cast(pl.Int8).reverse().shift(1, fill_value=0)
    soon = (ahead.rolling_max(SOON, min_samples=1) > 0).reverse()
    loss = _against_the_past(usable["lm_loss"])
    norm = _against_the_past(usable["grad_norm"])
    rate = pl.col("learning_rate")
    warms_up = (pl.int_range(pl.len()) < rate.arg_max()) & rate.is_not_null()
    return pl.concat(
        [
            loss.select(pl.col(*_OF_LOSS).name.prefix("lm_loss_")),
            growth.columns(rows).select(pl.all().name.prefix("lm_loss_")),
            norm.select(pl.all().name.prefix("grad_norm_")),
            rows.select(
                soon.alias("not_finite_soon"),
                warms_up.fill_null(value=False).alias("learning_rate_warms_up"),
                pl.col("producer").is_in(REINFORCEMENT).alias("policy_update"),
            ),
        ],
        how="horizontal",
    )


def _against_the_past(values: pl.Series) -> pl.DataFrame:
    """Facts of one series, null where a line has no usable value."""
    if not values.null_count():
        return _compared(values)
    given = values.is_not_null()
    # line -> its place among the lines with a value
    place = pl.select(pl.when(given).then(given.cum_sum().cast(pl.Int64) - 1)).to_series()
    found = _compared(values.drop_nulls()).select(pl.all().gather(place))
    # a line without a value is compared with no others, unless none of the attempt has one
    return found.with_columns(pl.col("before").fill_null(0)) if given.any() else found


def _compared(values: pl.Series) -> pl.DataFrame:
    """Comparison of each positive value with those before it."""
    logs = values.log()
    many = logs.len() // BLOCK
    block = pl.int_range(logs.len(), eager=True) // BLOCK
    middles = _medians(logs, many)
    inside = (logs.head(many * BLOCK) - middles.gather(block.head(many * BLOCK))).abs()
    usual = middles.rolling_median(BLOCKS, min_samples=1)
    scatter = _medians(inside, many).rolling_median(BLOCKS, min_samples=1) * DEVIATION_OF_BLOCKS
    beginning = pl.int_range(many, eager=True).clip(upper_bound=FIRST_BLOCKS - 1)
    # one row for each block: what the lines of the block behind it are compared with
    past = pl.DataFrame(
        {
            "usual": usual.exp(),
            "_level": usual,
            "_scatter": scatter.clip(lower_bound=QUIETEST),
            "recent": middles.exp(),
            "lowest": usual.cum_min().exp(),
            "first": usual.gather(beginning).exp(),
            **_tail(logs, many),
        }
    )
    rest = block.slice(BLOCK)
    later = (
        past.select(pl.all().gather(rest - 1))
        .with_columns(
            ((logs.slice(BLOCK) - pl.col("_level")) / pl.col("_scatter")).alias("deviations"),
            (rest.clip(upper_bound=BLOCKS) * BLOCK).alias("before"),
            _surprise(logs.slice(BLOCK)).alias("surprise"),
        )
        .select(_COLUMNS)
    )
    found = pl.concat([_head(values.head(BLOCK)), later])
    return found.with_columns(_of_two(name) for name in ("deviations", "surprise"))


def _of_two(name: str) -> pl.Expr:
    """What a line and one beside it are both above."""
    high = pl.col(name)
    beside = pl.max_horizontal(high.shift(1), high.shift(-1))
    return pl.min_horizontal(high, beside).alias(f"{name}_of_two")


def _tail(logs: pl.Series, many: int) -> dict[str, pl.Series]:
    """Of the blocks up to each: the usual highest line, the distance to the next, and how many."""
    if not many:
        return {name: pl.Series(dtype=pl.Float64) for name in ("_highest", "_apart", "_tails")}
    ordered = logs.head(many * BLOCK).reshape((many, BLOCK)).arr.sort(descending=True)
    highest, next_one = ordered.arr.get(0), ordered.arr.get(1)
    apart = (highest - next_one).rolling_mean(TAIL_BLOCKS, min_samples=1)
    return {
        "_highest": highest.rolling_median(BLOCKS, min_samples=1),
        "_apart": apart.clip(lower_bound=QUIETEST),
        "_tails": pl.int_range(1, many + 1, eager=True).clip(upper_bound=TAIL_BLOCKS),
    }


def _surprise(logs: pl.Series) -> pl.Expr:
    """Minus the logarithm of the chance of a line that high; 0 for one that is not."""
    beyond = (logs - pl.col("_highest")).clip(lower_bound=0.0)
    return pl.col("_tails") * (beyond / (pl.col("_tails") * pl.col("_apart"))).log1p()


def _head(values: pl.Series) -> pl.DataFrame:
    """Comparison within the first block: too few lines to know their scatter."""
    earlier = values.rolling_median(BLOCK, min_samples=1).shift(1)
    return pl.DataFrame(
        {
            "usual": earlier,
            "deviations": pl.Series([None] * values.len(), dtype=pl.Float64),
            "before": pl.int_range(values.len(), eager=True),
            "recent": values.rolling_median(BLOCK, min_samples=1),
            "lowest": earlier,
            "first": earlier,
            "surprise": pl.Series([None] * values.len(), dtype=pl.Float64),
        }
    )


def _medians(values: pl.Series, many: int) -> pl.Series:
    """The median of each of the first `many` blocks."""
    if not many:
        return pl.Series(dtype=pl.Float64)
    return values.head(many * BLOCK).reshape((many, BLOCK)).arr.median()
