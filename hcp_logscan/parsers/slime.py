"""slime's training steps and the performance of each rollout, as dict reprs.

Written from slime ``backends/megatron_utils/model.py``, ``backends/fsdp_utils/actor.py``,
``observability/train_metric_utils.py`` and ``utils/data.py`` (2025-06 to main of 2026-08), and
public logs of it and of miles. One rank prints both, under Ray's prefix, until November 2025 bare,
since then behind ``[<time>] model.py:918 - ``:

* ``step <n>: {'train/loss': …, 'train/pg_loss': …, 'train/grad_norm': …, 'train/step': <n>}``
* ``perf <rollout>: {'perf/actor_train_time': …, 'perf/actor_train_tflops': …}`` behind the steps
  of that rollout; some logs lack the ``perf <rollout>: ``. The rollout manager's own ``perf`` line
  and ``rollout <n>: {…}`` say nothing about training.

Steps count from 0. TFLOP/s are per GPU; ``actor_train_tok_per_s`` counts the tokens of the whole
rollout batch, so it is that of all GPUs together. A critic prints ``critic-step <n>``. The loss is
a language model's only where no policy loss is printed beside it (``--loss-type sft_loss``).
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser
from hcp_logscan.parsers.values import item, milliseconds, number

_TIME: Final = r"^\s*\[([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)"


def _step(rows: pl.DataFrame) -> pl.DataFrame:
    policy = pl.col("text").str.contains("'train/pg_loss'", literal=True)
    return rows.with_columns(
        pl.when(~policy).then(number("loss")).alias("lm_loss"),
        pl.when(policy).then(number("loss")).alias("other_loss"),
        pl.when(policy).then(pl.lit("train/loss")).alias("other_loss_name"),
        number("grad_norm"),
        number("learning_rate"),
        ~pl.col("text").str.contains("}", literal=True).alias("cut"),
    )


def _perf(rows: pl.DataFrame) -> pl.DataFrame:
    whole, training = milliseconds("step_s"), milliseconds("train_s")
    return rows.with_columns(
        pl.coalesce(whole, training).alias("step_ms"), number("tflops_per_gpu")
    ).drop_nulls(["step_ms", "tflops_per_gpu"])


PARSERS = (
    LineParser(
        name="slime-step",
        table="iterations",
        needles=("'train/grad_norm': ",),
        pattern=r"(?:^|[\s\]])step (?P<iteration>[0-9]+): \{'train/[^']+': .*'train/grad_norm': ",
        fields={
            "time": _TIME,
            "loss": item("train/loss"),
            "grad_norm": item("train/grad_norm"),
            "learning_rate": item("train/lr-pg_0"),
            "global_batch_size": item("train/global_batch_size"),
        },
        constants={"producer": "slime"},
        finish=_step,
        sample="[2026-03-01 09:14:20] model.py:918 - step 4: {'train/loss': -0.0123,"
        " 'train/pg_loss': -0.0123, 'train/entropy_loss': 0.31, 'train/ppo_kl': 0.0,"
        " 'train/grad_norm': 0.1713, 'train/lr-pg_0': 1e-06, 'train/step': 4}",
        drift=False,
    ),
    LineParser(
        name="slime-perf",
        table="steps",
        needles=("'perf/actor_train_t",),
        pattern=r"(?:^|\s)(?:perf (?P<iteration>[0-9]+): )?\{'[^{}]*'perf/actor_train_t",
        fields={
            "step_s": item("perf/step_time"),
            "train_s": item("perf/actor_train_time"),
            "tflops_per_gpu": item("perf/actor_train_tflops"),
        },
        constants={"producer": "slime"},
        finish=_perf,
        sample="[2026-03-01 09:15:02] train_metric_utils.py:44 - perf 4: {'perf/train_wait_time':"
        " 31.2, 'perf/actor_train_time': 9.8, 'perf/train_time': 12.1,"
        " 'perf/actor_train_tflops': 90.7, 'perf/actor_train_tok_per_s': 4825.5,"
        " 'perf/step_time': 43.3, 'perf/wait_time_ratio': 0.72}",
        drift=False,
    ),
)
