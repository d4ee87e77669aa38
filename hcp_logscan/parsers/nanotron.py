"""nanotron's iteration line.

Written from nanotron ``trainer.py`` and ``logging/base.py`` (2024 to main of 2026-04) and a public
log. Numbers are rounded to 3 digits with a letter for the magnitude (``11.5K``); the label of the
step time lost its ``elapsed_`` in 2025. Its global batch size counts tokens, not sequences.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser
from hcp_logscan.parsers.values import number

_HUMAN: Final = r"([0-9.eE+-]+|nan|inf)([KMBT]?)\b"
_NAMES: Final = {
    "step_ms": r"(?:elapsed_)?time_per_iteration_ms",
    "tokens_per_s_per_gpu": r"tokens_per_sec_per_gpu",
    "tflops_per_gpu": r"model_tflops_per_gpu",
    "lm_loss": r"lm_loss",
    "learning_rate": r"lr",
    "grad_norm": r"grad_norm",
}


def _human(column: str) -> pl.Expr:
    """`11.5K` as 11500."""
    scale = pl.col("text").str.extract(rf"\| {_NAMES[column]}: {_HUMAN}", 2)
    return number(column) * scale.replace_strict(
        ["", "K", "M", "B", "T"], [1.0, 1e3, 1e6, 1e9, 1e12], default=1.0
    )


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        # one of the last segments: gradient norms are printed only with clipping
        *(_human(name) for name in _NAMES),
        pl.col("tflops_per_gpu").is_null().alias("cut"),
    )


PARSERS = (
    LineParser(
        name="nanotron-iteration",
        table="iterations",
        needles=("time_per_iteration_ms: ",),
        pattern=r"iteration: (?P<iteration>[0-9]+) / (?P<train_iters>[0-9]+) \| .*\| lm_loss: ",
        fields={name: rf"\| {label}: {_HUMAN}" for name, label in _NAMES.items()},
        constants={"producer": "nanotron"},
        finish=_finish,
        sample="03/01/2026 09:14:20 [INFO|DP=0|PP=0|TP=0|host01]: iteration: 327281 / 378950 |"
        " consumed_tokens: 687B | elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 182K |"
        " tokens_per_sec_per_gpu: 22.8K | global_batch_size: 2.1M | lm_loss: 2.38 | lr: 3e-05 |"
        " grad_norm: 0.191 | model_tflops_per_gpu: 384 | hardware_tflops_per_gpu: 384",
    ),
)
