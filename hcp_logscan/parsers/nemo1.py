"""NeMo 1's progress bar.

Written from NeMo 1.x (``collections/nlp/parts/nlp_overrides.py``, ``utils/exp_manager.py``; 1.8 to
1.23) over PyTorch Lightning's tqdm bar, and public logs. The bar is redrawn behind carriage returns
many times a second, so a step stands there more than once; its rate is a smoothed mean, in `s/it`
or, above one a second, in `it/s`. Metrics are rounded to 3 digits, counters too
(``consumed_samples=1.63e+6``). Some relatives (neuronx) count bar and step apart: the bar's total
is the plan only where both agree.
"""

from __future__ import annotations

import polars as pl

from hcp_logscan.parsers.base import LineParser
from hcp_logscan.parsers.values import milliseconds, number


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    bar, step = number("bar"), number("global_step")
    agree = (bar - step).abs() <= 1
    timed, per_step = milliseconds("timing_s"), milliseconds("per_step_s")
    return rows.with_columns(
        pl.coalesce(step, bar).cast(pl.Int64, strict=False).alias("iteration"),
        pl.when(agree.fill_null(value=True)).then("total").alias("train_iters"),
        pl.coalesce(timed, per_step, 1000.0 / number("per_second")).alias("step_ms"),
        number("consumed_samples").cast(pl.Int64, strict=False),
        number("lm_loss"),
        number("grad_norm"),
        number("learning_rate"),
        ~pl.col("text").str.contains(r"\]\s*$").alias("cut"),
    )


PARSERS = (
    LineParser(
        name="nemo1-progress",
        table="iterations",
        needles=(" reduced_train_loss=",),
        pattern=r"Epoch [0-9]+:.*\|\s*(?P<bar>[0-9]+)/(?P<total>[0-9]+) \[[^,]*,",
        fields={
            "lm_loss": r"\breduced_train_loss=([0-9a-z.+-]+)",
            "global_step": r"\bglobal_step=([0-9.e+]+)",
            "consumed_samples": r"\bconsumed_samples=([0-9.e+]+)",
            "grad_norm": r"\b(?:grad_norm|gradient_norm)=([0-9a-z.+-]+)",
            "learning_rate": r"\blr=([0-9.e+-]+)",
            "timing_s": r"\b(?:train_step_timing(?: in s)?|iteration_time)=([0-9.e+]+)",
            "per_step_s": r", *([0-9.]+)s/it",
            "per_second": r", *([0-9.]+)it/s",
        },
        constants={"producer": "nemo"},
        finish=_finish,
        sample="Epoch 0:   1%|▏         | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1,"
        " v_num=4p2h, reduced_train_loss=3.090, global_step=794.0, consumed_samples=1.63e+6]",
        drift=False,
    ),
)
