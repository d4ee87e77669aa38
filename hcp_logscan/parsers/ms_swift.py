"""ms-swift's metrics of a step: a dict on the console, a JSON object in ``logging.jsonl``.

Written from ms-swift ``swift/trainers/{callback,patcher}.py`` and
``swift/megatron/{callbacks/print,trainers/base}.py`` (2.2 of 2024-08 to 4.2 of 2026-08), and
public logs:

* since 4.0, Megatron: ``{'loss': …, 'grad_norm': …, 'iteration': '10/200', 'elapsed_time': '17m
  30s', 'memory(GiB)': 61.2, 'train_speed(s/it)': 5.12}``, by the last rank
* other trainers, and Megatron of 3.x in ``logging.jsonl`` alone (its console has Megatron's own
  line): ``'global_step/max_steps': '10/200'``; ``train_speed(iter/s)`` until 3.12
* a summary at the end (``'train_runtime'``) and evaluations (``'eval_loss'``) of the same shape,
  which are no training steps

``train_speed`` is the mean since training began, not the speed of this step. What passed since the
beginning is that mean times the steps, or ``elapsed_time``, rounded to seconds, where the run was
resumed; `analysis.iterations` takes the differences. Preference and policy losses (logged with
rewards, log probabilities or KL) are no language model's loss.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser
from hcp_logscan.parsers.values import item, milliseconds, number

_NEEDLES: Final = ("train_speed(", "global_step/max_steps")
_COUNTER: Final = (
    r"\{[^{}]*['\"](?:iteration|global_step/max_steps)['\"]: "
    r"['\"](?P<iteration>[0-9]+)/(?P<train_iters>[0-9]+)['\"]"
)
_REWARDED: Final = r"['\"](?:rewards?(?:/[^'\"]*)?|logps/[^'\"]*|kl)['\"]: "
_ROUNDING_S: Final = 1.0
"Half a second of rounding, and what the clock moved between two readings."

_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}


def _elapsed() -> pl.Expr:
    """Seconds of `1d 2h 3m 4s`."""
    parts = [
        pl.col("elapsed").str.extract(rf"([0-9]+){unit}").cast(pl.Float64).fill_null(0.0) * seconds
        for unit, seconds in _UNITS.items()
    ]
    return pl.when(pl.col("elapsed").is_not_null()).then(pl.sum_horizontal(parts))


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    rewarded = pl.col("text").str.contains(_REWARDED)
    rows = rows.with_columns(
        pl.coalesce(number("mean_s"), 1.0 / number("mean_rate")).alias("_mean_s"),
        _elapsed().alias("_elapsed_s"),
    )
    through = pl.col("_mean_s") * pl.col("iteration").cast(pl.Float64)
    exact = (through - pl.col("_elapsed_s")).abs() <= _ROUNDING_S
    own = milliseconds("own_s")
    return rows.with_columns(
        pl.coalesce(own, pl.col("_mean_s") * 1000.0).alias("step_ms"),
        pl.when(own.is_null())
        .then(pl.when(exact).then(through).otherwise("_elapsed_s"))
        .alias("elapsed_s"),
        pl.when(~rewarded).then(number("loss")).alias("lm_loss"),
        pl.when(rewarded).then(number("loss")).alias("other_loss"),
        pl.when(rewarded).then(pl.lit("loss")).alias("other_loss_name"),
        number("grad_norm"),
        number("learning_rate"),
        number("tflops_per_gpu"),
        number("loss_scale"),
        pl.col("end").is_null().alias("cut"),
    ).drop_nulls("loss")


PARSERS = (
    LineParser(
        name="ms-swift-step",
        table="iterations",
        needles=_NEEDLES,
        pattern=_COUNTER + r"(?:, ['\"][^{}]*)?(?P<end>\})?",
        fields={
            "loss": item("loss"),
            "grad_norm": item("grad_norm"),
            "learning_rate": item("learning_rate"),
            "loss_scale": item("loss_scale"),
            "consumed_samples": item("consumed_samples"),
            "tflops_per_gpu": item("throughput"),
            "own_s": item("elapsed_time_per_iteration"),
            "mean_s": item("train_speed(s/it)"),
            "mean_rate": item("train_speed(iter/s)"),
            "elapsed": r"['\"]elapsed_time['\"]: ['\"]([0-9dhms ]+)['\"]",
        },
        constants={"producer": "ms-swift"},
        finish=_finish,
        sample="{'loss': 0.431, 'grad_norm': 1.1722, 'learning_rate': 1.9e-07, 'iteration':"
        " '10/200', 'elapsed_time': '17m 30s', 'remaining_time': '12d 22h 10m 44s',"
        " 'memory(GiB)': 61.2, 'train_speed(s/it)': 105.0129}",
        drift=False,
    ),
    LineParser(
        name="ms-swift-evaluation",
        table="validations",
        needles=_NEEDLES,
        pattern=_COUNTER,
        fields={"lm_loss": item("eval_loss")},
        finish=lambda rows: rows.drop_nulls("lm_loss"),
        sample="{'eval_loss': 0.431, 'eval_runtime': 1.2, 'epoch': 0.5, 'global_step/max_steps':"
        " '10/200', 'elapsed_time': '17m 30s', 'train_speed(s/it)': 105.0129}",
        drift=False,
    ),
)
