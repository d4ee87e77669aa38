"""Results that Megatron's rerun state machine refuses: a loss or gradient that is NaN or Inf.

Written from Megatron-LM ``megatron/core/rerun_state_machine.py`` (core 0.10 to main of 2026-08),
and public logs. The rank that sees it prints, in the order of the versions:

* ``Unexpected result nan at <file> line <n>, invokation #2 at iteration #3 (message='…')``
* with reruns off, as the text of a RuntimeError: ``Rank 3, node host01, device 3, iteration 3:
  Unexpected result nan (message='found NaN in local forward loss calculation')``
* ``Unexpected result nan on rank 3 at iteration #3 invocation #2 (message='…')``

The number is the one that this step's iteration line would have had, one more than the last one's.
The loss is checked in the forward pass, and gradients only after it, by the same option.
Results that are merely large or irreproducible (spikes) pass through the same texts; they are not
read here.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser

_RESULT: Final = r"Unexpected result (?:tensor\()?-?(?:nan|inf)\b"


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    stated = pl.coalesce("on_rank", "of_rank").cast(pl.Int64, strict=False)
    return rows.with_columns(
        pl.coalesce("iteration", "before").alias("iteration"),
        pl.coalesce(stated, "line_rank").alias("line_rank"),
        pl.when(pl.col("message").str.contains("(?i)grad"))
        .then(pl.lit("gradient"))
        .when(pl.col("message").str.contains("(?i)loss"))
        .then(pl.lit("loss"))
        .alias("kind"),
    ).drop_nulls(["iteration", "kind"])


PARSERS = (
    LineParser(
        name="megatron-rejected-result",
        table="rejected_results",
        needles=("Unexpected result ",),
        pattern=_RESULT + r".*\(message=['\"](?P<message>[^)]*)",
        fields={
            "iteration": _RESULT + r".*?\bat iteration #([0-9]+)",
            "before": r"\biteration #?([0-9]+): Unexpected result",
            "on_rank": _RESULT + r" on rank ([0-9]+)",
            "of_rank": r"\bRank ([0-9]+), node .*: Unexpected result",
        },
        finish=_finish,
        sample="ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at"
        " iteration #3 invocation #2 (message='found NaN in local grad norm for bucket #0 in"
        " backward pass before data-parallel communication collective')",
        drift=False,
    ),
)
