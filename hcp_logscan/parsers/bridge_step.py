"""Megatron-Bridge's `Step Time` line.

Written from Megatron-Bridge ``training/utils/train_utils.py`` (0.1.0rc3 to 0.6). Rank 0 prints it
at each log interval, without an iteration number; the iteration line of the same interval is the
last rank's and may stand in another file. The unit was ``TFLOP/s/GPU`` until late 2025 and
``MODEL_TFLOP/s/GPU`` since; a fork prints ``tok/s/gpu`` between the two.
"""

from __future__ import annotations

import polars as pl

from hcp_logscan.parsers.base import LineParser


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        (pl.col("step_s").cast(pl.Float64, strict=False) * 1000.0).alias("step_ms")
    )


PARSERS = (
    LineParser(
        name="bridge-step-time",
        table="steps",
        needles=("GPU utilization:",),
        pattern=r"Step Time ?: (?P<step_s>[0-9.]+)s\b.*GPU utilization: (?P<tflops_per_gpu>[0-9.]+)"
        r" ?(?:MODEL_)?TFLOP/s/GPU",
        constants={"producer": "megatron-bridge"},
        finish=_finish,
        sample="Step Time : 9.31s GPU utilization: 647.6MODEL_TFLOP/s/GPU",
        drift=False,
    ),
)
