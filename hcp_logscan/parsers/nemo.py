"""NeMo 2's progress line.

Written from NeMo ``lightning/pytorch/callbacks/progress_printer.py`` (2.0 to 2.5) and public
BioNeMo and NeMo performance logs. The order of the metrics varies, values have 3 or 4 significant
digits and may be in scientific notation. The iteration counts from 0 to the printed last number,
and anew in each epoch; ``global_step`` goes on.
"""

from __future__ import annotations

import polars as pl

from hcp_logscan.parsers.base import LineParser


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        (pl.col("step_s").cast(pl.Float64, strict=False) * 1000.0).alias("step_ms"),
        pl.coalesce("global_step", "iteration").alias("iteration"),
        pl.lit(value=False).alias("cut"),
    )


PARSERS = (
    LineParser(
        name="nemo2-progress",
        table="iterations",
        needles=("| train_step_timing in s:", "| reduced_train_loss:"),
        pattern=r"Training epoch [0-9]+, iteration (?P<iteration>[0-9]+)/(?P<train_iters>[0-9]+)",
        fields={
            "global_step": r"\| global_step: ([0-9]+)(?: \||$)",
            "consumed_samples": r"consumed_samples: ([0-9]+)",
            "step_s": r"train_step_timing in s: ([0-9.e+-]+)",
            "tflops_per_gpu": r"TFLOPS_per_GPU: ([0-9.e+-]+)",
            "tokens_per_s_per_gpu": r"tokens_per_sec_per_gpu: ([0-9.e+-]+)",
            "learning_rate": r"\| lr: ([0-9.e+-]+)",
            "global_batch_size": r"global_batch_size: ([0-9]+)",
            "lm_loss": r"reduced_train_loss: ([^\s|]+)",
            "grad_norm": r"grad_norm: ([^\s|]+)",
        },
        constants={"producer": "nemo"},
        finish=_finish,
        sample="Training epoch 0, iteration 40/119 | lr: 8e-06 | global_batch_size: 32 |"
        " global_step: 40"
        " | reduced_train_loss: 2.801 | train_step_timing in s: 0.196 | consumed_samples: 1312"
        " | val_loss: 2.884 | val_ppl: 17.93",
    ),
)
