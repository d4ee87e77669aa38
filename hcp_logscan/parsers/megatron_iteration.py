"""Megatron's training iteration line, and that of its relatives.

Written from Megatron-LM ``megatron/training/training.py`` (core 0.5 to 0.19 and main of 2026-08),
``megatron/training.py`` of 2021 to 2023 (2.x, 3.0, 23.04), Megatron-Bridge
``training/utils/train_utils.py`` (0.1 to 0.6), and public logs (2021 to 2026) of BigScience/JSC,
argonne-lcf and microsoft Megatron-DeepSpeed, MindSpeed, FlagScale and epfLLM. Printed by the last
rank.

Relatives that the line itself tells apart: Megatron-DeepSpeed ends with ``samples per second:``;
ms-swift 3.x (``swift/megatron/trainers/base.py``) has ``memory(GiB):`` and a loss called ``loss``;
Primus (``backends/megatron/patches/training_log``, 2025-06 to main of 2026-08) prints pairs of this
step and the running mean, ``<ms>/<mean ms>``, ``compute per GPU (TFLOP/s/GPU): <x> (avg <mean>)``,
``tokens/s/GPU inst/harmonic mean: <x>/<mean>``, of which the first counts, and, around
Megatron-Bridge, ``tokens per GPU (tokens/s/GPU): <x> | seq_length: <n>``. Its time has no
dashes. GPT-NeoX writes ``lm_loss:`` and ``approx flops per GPU: 150.3TFLOPS``.

Segments ``key: value |`` appear, vanish and are renamed between versions, so each is looked up by
key, never by position. A loss that is NaN or negative is left out of the line (Megatron prints a
loss only ``if avg >= 0.0``), so an absent field is a null here and never a shift of its neighbours.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser

_PRODUCERS: Final = {
    "primus": r"iteration \(ms\): [0-9.]+/[0-9]|tokens/s/GPU inst/|hip mem usage"
    r"|\(tokens/s/GPU\): [0-9.]+ \| seq_length: ",
    "megatron-deepspeed": r"\| samples per second: ",
    "gpt-neox": r"\| approx flops per GPU: ",
    "ms-swift": r"\| memory\(GiB\): ",
}
"""Whose line it is -> what only its lines hold."""


def _producer() -> pl.Expr:
    named = [
        pl.when(pl.col("text").str.contains(regex)).then(pl.lit(name))
        for name, regex in _PRODUCERS.items()
    ]
    return pl.coalesce(*named, pl.lit("megatron")).alias("producer")


def _only_loss() -> pl.Expr:
    """ms-swift calls a language model's loss just so, but that of a preference, too."""
    preference = pl.col("text").str.contains(r"\| (?:rewards?|logps|kl)\b")
    return (pl.col("producer") == "ms-swift") & (pl.col("other_loss_name") == "loss") & ~preference


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    compact = pl.col("compact_time").str.replace(r"^(....)(..)(..) ", "$1-$2-$3 ")
    seconds = pl.col("step_s").cast(pl.Float64, strict=False) * 1000.0
    return rows.with_columns(
        pl.col("step_ms").cast(pl.Float64, strict=False).fill_null(seconds),
        pl.coalesce("tflops_per_gpu", "tflops_old").alias("tflops_per_gpu"),
        # the line always ends with the counter of skipped iterations and what follows it
        pl.col("skipped_iterations").is_null().alias("cut"),
        pl.col("other_loss_name").str.strip_chars(),
        pl.coalesce("time", compact).alias("time"),
        _producer(),
    ).with_columns(
        pl.coalesce("lm_loss", pl.when(_only_loss()).then("other_loss")).alias("lm_loss")
    )


_QUICK: Final = (
    r" ?(?:\[(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)\] )?"
    r"iteration +(?P<iteration>[0-9]+)/ *(?P<train_iters>[0-9]+) \|"
    r" consumed samples: +(?P<consumed_samples>[0-9]+) \|"
    r" elapsed time per iteration \(ms\): (?P<step_ms>[0-9.]+) \|"
    r" (?:throughput per GPU \(TFLOP/s/GPU\): (?P<tflops_per_gpu>[0-9.]+) \| )?"
    r"learning rate: (?P<learning_rate>[0-9.E+-]+) \|"
    r" global batch size: +(?P<global_batch_size>[0-9]+) \|"
    r" l(?:m loss: (?P<lm_loss>[^ |]+) \| l)?oss scale: (?P<loss_scale>[0-9.E+-]+) \|"
    r" (?:grad norm: (?P<grad_norm>[^ |]+) \| )?"
    r"number of skipped iterations: +(?P<skipped_iterations>[0-9]+) \|"
    r" number of nan iterations: +(?P<nan_iterations>[0-9]+) \|"
)
"""Megatron-LM's and Megatron-Bridge's line with no further segments, core 0.5 to main of 2026. What
may be left out differs in its first letter from what follows: so one pass over the line does."""


def _quick_finish(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        pl.col("lm_loss").alias("other_loss"),
        pl.when(pl.col("lm_loss").is_not_null()).then(pl.lit("lm loss")).alias("other_loss_name"),
        pl.lit(value=False).alias("cut"),
        pl.lit("megatron").alias("producer"),
    )


PARSERS = (
    LineParser(
        name="megatron-iteration",
        table="iterations",
        needles=("elapsed time per iteration",),
        pattern=r"iteration\s+(?P<iteration>[0-9]+)\s*/\s*(?P<train_iters>[0-9]+)\s*\|",
        fields={
            "time": r"\[([0-9]{4}-[0-9]{2}-[0-9]{2}["
            r" T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)\]\s+iteration",
            "compact_time": r"^\[(?:\[[0-9;]*m)?([0-9]{8} [0-9]{2}:[0-9]{2}:[0-9]{2})",
            "consumed_samples": r"consumed samples:\s*([0-9]+)",
            "step_ms": r"elapsed time per iteration \(ms\):\s*([0-9.]+)",
            "step_s": r"elapsed time per iteration \(s\):\s*([0-9.]+)",
            "tflops_per_gpu": r"(?:throughput|compute) per GPU \(TFLOP/s/GPU\):\s*([0-9.]+)",
            "tflops_old": r"\|\s*(?:TFLOPs|approx flops per GPU):\s*([0-9.]+)",
            "tokens_per_s_per_gpu": r"(?i)(?:tokens per (?:gpu|gpu per second|second per gpu) ?"
            r"\((?:tokens/s/gpu|tgs|tok/s/gpu)\)|tokens/s/gpu inst/harmonic mean):\s*([0-9.]+)",
            "learning_rate": r"learning rate:?\s*([0-9.E+-]+)",
            "global_batch_size": r"global batch size:\s*([0-9]+)",
            "lm_loss": r"\|\s*lm[ _]loss:\s*([^\s|]+)",
            "other_loss_name": r"\|\s*((?:[A-Za-z][A-Za-z ]*\b)?loss):\s*[^\s|]+",
            "other_loss": r"\|\s*(?:[A-Za-z][A-Za-z ]*\b)?loss:\s*([^\s|]+)",
            "loss_scale": r"loss scale:\s*([0-9.E+-]+)",
            "grad_norm": r"grad norm:\s*([^\s|]+)",
            "skipped_iterations": r"number of skipped iterations:\s*([0-9]+)",
            "nan_iterations": r"number of nan iterations:\s*([0-9]+)",
        },
        finish=_finish,
        quick=_QUICK,
        quick_finish=_quick_finish,
        sample=" [2026-03-01 09:14:20.123456] iteration       10/     200 | consumed samples:   "
        "       160"
        " | elapsed time per iteration (ms): 5120.4 | throughput per GPU (TFLOP/s/GPU): 431.7"
        " | learning rate: 2.997000E-04 | global batch size:    16 | lm loss: 7.812345E+00"
        " | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0"
        " | number of nan iterations:   0 |",
    ),
    LineParser(
        name="megatron-validation",
        table="validations",
        needles=("lm loss value:",),
        pattern=r"validation loss at (?:iteration (?P<iteration>[0-9]+))?",
        fields={"lm_loss": r"lm loss value:\s*([^\s|]+)"},
        sample=" validation loss at iteration 20 on validation set | lm loss value: 3.881081E+00"
        " | lm loss PPL: 4.847657E+01 | ",
        drift=False,
    ),
    LineParser(
        name="megatron-memory",
        table="rank_lines",
        needles=("iterations) memory (",),
        pattern=r"\[Rank (?P<rank>[0-9]+)\] \(after (?P<iterations>[0-9]+) iterations\) memory",
        fields={
            "memory_unit": r"iterations\) memory \((MB|GB)\)",
            # Megatron-LM's name, and Megatron-Bridge's of 2025 and later
            "max_allocated": r"(?:\| max allocated|mem-max-allocated-gigabytes):\s*"
            r"([0-9]{1,12}(?:\.[0-9]{1,6})?)",
        },
        sample="[Rank 3] (after 5 iterations) memory (MB) | allocated: 0.00 | max allocated: 0.00",
    ),
)
