"""The step line of verl and its kin: `step:<n> - <key>:<value> - …`, one very long line per step.

Written from verl ``utils/logger``, ``trainer/ppo/{ray_trainer,metric_utils}.py``,
``trainer/*sft_trainer*.py`` and ``workers/*`` (0.1 of 2024-11 to main of 2026-01) and siiRL
``dag_worker/{dag_utils,metrics_collector}.py`` (2025). Printed by the driver, under Ray's prefix.
Early versions and siiRL round to 3 decimals. The MFU is a share of 1: ``mfu/actor`` until March
2025, ``perf/mfu/actor`` since, ``train/mfu`` of the SFT trainer.

verl's ``perf/throughput`` is per GPU; siiRL's, which also prints ``perf/delta_time/…``, is that of
all GPUs together, and how many they are is not in the line. Policy and value losses are no language
model's loss, and may be negative. Steps before the first (``val_before_train``) and validations of
their own print no gradient norm: they are no training steps.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser
from hcp_logscan.parsers.values import NUMBER, milliseconds, number

_RL_LOSSES: Final = "actor/pg_loss|actor/loss|critic/vf_loss"


def _key(keys: str) -> str:
    return rf" - (?:{keys}):{NUMBER}"


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    total = pl.col("text").str.contains(" - perf/delta_time/", literal=True)
    return rows.with_columns(
        pl.when(total).then(pl.lit("siirl")).otherwise(pl.lit("verl")).alias("producer"),
        pl.when(~total).then(number("tokens_per_s_per_gpu")).alias("tokens_per_s_per_gpu"),
        milliseconds("step_s").alias("step_ms"),
        *(number(name) for name in ("mfu", "learning_rate", "lm_loss", "other_loss", "grad_norm")),
    )


PARSERS = (
    LineParser(
        name="verl-step",
        table="iterations",
        needles=("/grad_norm:", " - train/loss:"),
        pattern=r"(?:^|\s)step:(?P<iteration>[0-9]+)(?: - [A-Za-z_][^\s:]*:[^\s]+){2}",
        fields={
            "step_s": _key("perf/time_per_step|timing_s/step|perf/delta_time/step"),
            "tokens_per_s_per_gpu": _key("perf/throughput"),
            "mfu": _key("perf/mfu/actor|mfu/actor|train/mfu"),
            "learning_rate": _key("actor/lr|train/lr"),
            "lm_loss": _key("train/loss"),
            "other_loss_name": rf" - ({_RL_LOSSES}):",
            "other_loss": _key(_RL_LOSSES),
            "grad_norm": _key("actor/grad_norm|train/grad_norm|critic/grad_norm"),
        },
        constants={"cut": False},
        finish=_finish,
        sample="step:12 - global_seqlen/mean:61021.5 - actor/entropy:0.31 - actor/pg_loss:-0.013 -"
        " actor/grad_norm:0.4177 - perf/mfu/actor:0.31 - actor/lr:1e-06 - timing_s/step:61.2 -"
        " perf/total_num_tokens:976344 - perf/time_per_step:61.2 - perf/throughput:1994.17",
        drift=False,
    ),
)
