"""Iteration rows of all files -> one row per (attempt, iteration).

Console duplicates count once. Bridge's `Step Time` lines (rank 0, no number) are joined to the
iteration lines (last rank) by order within the attempt, checked against the elapsed time; slime's
`perf` lines to the training steps before them in their file. Where no iteration line was kept at
all, each of those lines stands for an iteration, of unknown number where it prints none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from hcp_logscan.analysis import spikes
from hcp_logscan.analysis.facts import ITERATION_FACTS, LOCATION_COLUMNS
from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Mapping

STEP_TOLERANCE_MS: Final = 6.0
"""`Step Time` has two decimals of a second; the iteration line one decimal of a millisecond."""

TABLES: Final = ("iterations", "steps", "marks", "rejected_results")
"""Event tables that iterations are made of."""

_LONGEST_INTERVAL: Final = 100
"""Iterations that the first line of a run may average over."""

_MEGATRON_LINE: Final = ("megatron", "megatron-deepspeed", "primus", "gpt-neox")
"""Producers that leave a loss out of their line when it is NaN or negative, and whose first other
loss stands in for `lm loss`. Elsewhere a line without a loss says nothing, and other losses are
those of a policy or a preference."""


class Geometry(NamedTuple):
    """What the configuration of an attempt says about its iterations."""

    length: int | None
    "Tokens of every trained sequence; None where they are packed or vary."

    world_size: int | None
    cp_size: int | None
    precision: str | None


def distinct(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per (attempt, iteration) of the event table `iterations`, ordered.

    Of several lines for one iteration the one with a loss wins, then the highest rank's, then the
    last in the file; so a pipeline stage that prints no loss does not hide the one that does.
    """
    main = pl.col("lm_loss").is_not_null().any().over("attempt")
    loss = pl.when(main).then("lm_loss").otherwise("other_loss")
    return (
        rows.with_columns(loss.alias("loss"))
        .with_columns(
            pl.col("loss").is_not_null().alias("_has_loss"),
            pl.col("cut").fill_null(value=False).alias("_cut"),
            pl.col("event_rank").fill_null(-1).alias("_rank"),
            pl.int_range(pl.len()).alias("_order"),
        )
        # a record without a number is an iteration of its own
        .with_columns(pl.coalesce("iteration", -1 - pl.col("_order")).alias("_key"))
        .sort(["attempt", "iteration", "_cut", "_has_loss", "_rank", "_order"], descending=False)
        .sort(
            ["attempt", "iteration", "_has_loss", "_rank", "_order"],
            descending=[False, False, True, True, True],
            maintain_order=True,
        )
        .unique(["attempt", "_key"], keep="first", maintain_order=True)
        .drop("_has_loss", "_cut", "_rank", "_order", "_key")
    )


def _number(rows: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Rows without a number get that of the last line before them that begins a step."""
    begins = marks.filter(pl.col("kind") == "step").select(
        "attempt", "file", "line", pl.col("value").alias("_begun")
    )
    if not begins.height:
        return rows
    return (
        rows.sort("line", maintain_order=True)
        .join_asof(begins.sort("line"), on="line", by=["attempt", "file"], check_sortedness=False)
        .with_columns(pl.coalesce("iteration", "_begun").alias("iteration"))
        .drop("_begun")
        .sort("file", "line", maintain_order=True)
    )


def _steps_of_one_source(steps: pl.DataFrame) -> pl.DataFrame:
    """Step lines of each attempt from the file that holds most of them: copies count once."""
    best = (
        steps.group_by("attempt", "file", maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
        .unique("attempt", keep="first", maintain_order=True)
        .select("attempt", "file")
    )
    return steps.join(best, on=["attempt", "file"], how="semi", maintain_order="left")


def _join_steps(rows: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Fill TFLOP/s of iteration rows from the step lines of the same attempt, in order."""
    numbered = _steps_of_one_source(steps).with_columns(
        pl.int_range(pl.len()).over("attempt").alias("_k"),
        pl.len().over("attempt").alias("_steps"),
    )
    ours = rows.with_columns(
        pl.int_range(pl.len()).over("attempt").alias("_k"),
        pl.len().over("attempt").alias("_iterations"),
    )
    joined = ours.join(
        numbered.select(
            "attempt",
            "_k",
            "_steps",
            pl.col("step_ms").alias("_step_ms"),
            pl.col("tflops_per_gpu").alias("_tflops"),
        ),
        on=["attempt", "_k"],
        how="left",
        maintain_order="left",
    )
    difference = (pl.col("step_ms") - pl.col("_step_ms")).abs()
    agrees = (difference <= STEP_TOLERANCE_MS).fill_null(value=True)
    return joined.with_columns(
        pl.coalesce("tflops_per_gpu", pl.when(agrees).then("_tflops").otherwise(None)).alias(
            "tflops_per_gpu"
        )
    ).drop("_k", "_iterations", "_steps", "_step_ms", "_tflops")


def _join_rollouts(rows: pl.DataFrame, rollouts: pl.DataFrame) -> pl.DataFrame:
    """Fill speed from slime's `perf` lines: each covers the steps since the one before it."""
    speeds = rollouts.select(
        "attempt",
        "file",
        "line",
        pl.col("line").alias("_at"),
        pl.col("step_ms").alias("_step_ms"),
        pl.col("tflops_per_gpu").alias("_tflops"),
    )
    covered = pl.len().over("attempt", "file", "_at")
    return (
        rows.sort("line", maintain_order=True)
        .join_asof(
            speeds.sort("line"),
            on="line",
            by=["attempt", "file"],
            strategy="forward",
            check_sortedness=False,
        )
        .with_columns(
            pl.coalesce("step_ms", pl.col("_step_ms") / covered).alias("step_ms"),
            pl.coalesce("tflops_per_gpu", "_tflops").alias("tflops_per_gpu"),
        )
        .drop("_at", "_step_ms", "_tflops")
        .sort("attempt", "iteration", maintain_order=True)
    )


def _since_start(rows: pl.DataFrame) -> pl.DataFrame:
    """Step times from the time since the start, where lines print that and a mean."""
    passed = pl.col("elapsed_s") - pl.col("elapsed_s").shift(1).over("attempt")
    steps = pl.col("iteration") - pl.col("iteration").shift(1).over("attempt")
    own = pl.when((passed > 0) & (steps > 0)).then(passed / steps * 1000.0)
    return rows.with_columns(pl.coalesce(own, "step_ms").alias("step_ms"))


def _refused(results: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Steps whose result was refused and that no iteration line follows: they did not finish.

    The loss is checked first, so where a gradient was refused, the loss was a finite number.
    """
    gradient = pl.col("kind") == "gradient"
    return (
        results.sort(["attempt", "iteration", "kind"], descending=[False, False, True])
        .unique(["attempt", "iteration"], keep="first", maintain_order=True)
        .join(rows, on=["attempt", "iteration"], how="anti")
        .with_columns(
            gradient.alias("lm_loss_finite"),
            pl.when(gradient).then(statement=False).alias("grad_norm_finite"),
            pl.lit(value=False).alias("finished"),
        )
    )


def _unnumbered(rows: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Step lines of attempts without any iteration line, as rows of their own."""
    alone = steps.join(rows.select("attempt").unique(), on="attempt", how="anti")
    return _steps_of_one_source(alone)


def facts(tables: Mapping[str, pl.DataFrame], shape: Mapping[int, Geometry]) -> pl.DataFrame:
    """The fact table `iterations` with its location columns, `event_rank` and `finished`.

    `shape` says of each attempt what tokens/s/GPU are computed from where no line prints them
    (batch x sequence length / step time / ranks).
    """
    rows = _since_start(distinct(_number(tables["iterations"], tables["marks"])))
    steps = tables["steps"]
    rollouts = pl.col("producer") == "slime"
    if steps.height:
        rows = _join_steps(rows, steps.filter(~rollouts))
        rows = _join_rollouts(rows, steps.filter(rollouts))
        rows = pl.concat([rows, _unnumbered(rows, steps)], how="diagonal")
    geometry = pl.DataFrame(
        [(attempt, one.length, one.world_size) for attempt, one in shape.items()],
        schema={"attempt": pl.Int64, "_seq": pl.Int64, "_world": pl.Int64},
        orient="row",
    )
    rows = rows.join(geometry, on="attempt", how="left", maintain_order="left")
    tokens = (
        pl.col("global_batch_size").cast(pl.Float64)
        * pl.col("_seq")
        / (pl.col("step_ms") / 1000.0)
        / pl.col("_world")
    )
    previous = pl.col("iteration").shift(1).over("attempt")
    cut = pl.col("cut").fill_null(value=False)
    leaves_out = pl.col("producer").is_in(_MEGATRON_LINE)
    has_loss = pl.col("loss").is_not_null()
    rows = rows.with_columns(
        pl.coalesce("tokens_per_s_per_gpu", pl.when(pl.col("step_ms") > 0).then(tokens)).alias(
            "tokens_per_s_per_gpu"
        ),
        (pl.col("iteration") - previous).alias("_since"),
        # a line that is cut off, or of a kind that has no loss, says nothing about its loss
        pl.when(has_loss)
        .then(statement=True)
        .when(leaves_out & ~cut)
        .then(statement=False)
        .otherwise(None)
        .alias("lm_loss_present"),
        pl.col("loss").is_finite().alias("lm_loss_finite"),
        has_loss.cast(pl.Int64).cum_sum().over("attempt").alias("_losses"),
        pl.col("grad_norm").is_finite().alias("grad_norm_finite"),
        pl.when(leaves_out).then("loss").otherwise("lm_loss").alias("lm_loss"),
        pl.lit(value=True).alias("finished"),
    )
    rows = rows.with_columns(
        ((pl.col("_losses") - has_loss.cast(pl.Int64)) > 0).alias("loss_seen_before"),
        _interval().alias("interval_iterations"),
    )
    wanted = {
        **{name: fact.dtype for name, fact in ITERATION_FACTS.items()},
        "file": pl.Int64(),
        "line": LOCATION_COLUMNS["line"],
        "offset": pl.Int64(),
        "text": LOCATION_COLUMNS["text"],
        "event_rank": pl.Int64(),
        "train_iters": pl.Int64(),
        "time": pl.String(),
    }
    if (refused := _refused(tables["rejected_results"], rows)).height:
        rows = pl.concat([rows, refused], how="diagonal").sort(
            "attempt", "iteration", maintain_order=True
        )
    rows = rows.sort("attempt", maintain_order=True)
    rows = pl.concat([rows, spikes.columns(rows)], how="horizontal").with_columns(
        _cp_hint(shape).alias("cp_hint")
    )
    return rows.select(pl.col(name).cast(dtype, strict=False) for name, dtype in wanted.items())


def _cp_hint(shape: Mapping[int, Geometry]) -> pl.Expr:
    """What context parallelism may have to do with a NaN of the first iteration, in words.

    Empty where the first iteration was sound, or CP is off or not known: a NaN that comes later, as
    behind a spike, has other causes.
    """
    bad = ~pl.col("lm_loss_finite").fill_null(value=True)
    bad |= ~pl.col("grad_norm_finite").fill_null(value=True)
    # one line alone may be the first behind a resume: its interval is then not known
    begins = pl.col("iteration") <= pl.min_horizontal("interval_iterations", _LONGEST_INTERVAL)
    from_first = (bad & begins).first().over("attempt").fill_null(value=False)
    hint = pl.lit("")
    for attempt, one in shape.items():
        if one.cp_size is None or one.cp_size == 1:
            continue
        words = say(
            "It is so from the first iteration, with CP size {cp_size}: look for padded data,"
            " samples so short that a CP rank holds only padding (0/0).",
            cp_size=one.cp_size,
        )
        if one.precision in {"fp8", "fp4"}:
            words = say(
                "{hint} {precision} tensors split wrongly over CP ranks do it, too.",
                hint=words,
                precision=one.precision.upper(),
            )
        hint = (
            pl.when(from_first & (pl.col("attempt") == attempt)).then(pl.lit(words)).otherwise(hint)
        )
    return hint


def _interval() -> pl.Expr:
    """Iterations that a line averages over: the distance to the line before.

    The first line of an attempt has none before it: the usual distance, or its own number where
    that is smaller (Megatron prints iteration 1 whatever the log interval is).
    """
    usual = pl.col("_since").filter(pl.col("_since") > 0).mode().min().over("attempt")
    first = pl.min_horizontal(pl.col("iteration"), usual.fill_null(pl.col("iteration"))).clip(1)
    return pl.when(pl.col("_since") > 0).then("_since").otherwise(first)
