"""Results that Megatron's rerun state machine refuses: a loss or gradient that is NaN or Inf.

Written from Megatron-LM ``megatron/core/rerun_state_machine.py`` (core 0.10 to main of 2026-08),
and public logs. The rank that sees it prints, in the order of the versions:

* ``Unexpected result nan at <file> line <n>, invokation #2 at iteration #3 (message='…')``
* with reruns off, as the text of a RuntimeError: ``Rank 3, node host01, device 3, iteration 3:
  Unexpected result nan (message='found NaN in local forward loss calculation')``
* ``Unexpected result nan on rank 3 at iteration #3 invocation #2 (message='…')``

Before the state machine (core 0.5 to 0.9) and beside it (gradients) it is an AssertionError:

* ``Rank 114: found NaN in local forward loss calculation. Device: 2, node: gpu-node07``
* ``Rank 3, node gpu-node07, device 3, iteration 7: Unexpected result nan (message='…')``

The number is the one that this step's iteration line would have had, one more than the last one's.
The loss is checked in the forward pass, and gradients only after it, by the same option.
Results that are merely large or irreproducible (spikes) pass through the same texts; they are not
read here.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser
from hcp_logscan.parsers.causes import joined

_RESULT: Final = r"Unexpected result (?:tensor\()?-?(?:nan|inf)\b"
_PLACE: Final = r"\bRank [0-9]{1,9}, node [^ ,]+, device [0-9]{1,4}, iteration #?[0-9]{1,18}: "


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


def _found(rows: pl.DataFrame) -> pl.DataFrame:
    """A result that is NaN, with the rank that found it; the state machine's loss or gradient."""
    rows = joined(rows)
    what = pl.coalesce("message", "text")
    return rows.with_columns(
        pl.coalesce(pl.col("stated").cast(pl.Int64, strict=False), "line_rank").alias("line_rank"),
        pl.when(what.str.contains("(?i)grad"))
        .then(pl.lit("gradient"))
        .when(what.str.contains("(?i)loss"))
        .then(pl.lit("loss"))
        .alias("field"),
    ).drop_nulls("field")


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
    LineParser(
        name="cause-nan",
        table="causes",
        needles=("Unexpected result ", "found NaN in local", "found Inf in local"),
        pattern=_RESULT + r"|\bRank [0-9]{1,9}: found (?:NaN|Inf) in local|" + _PLACE + "found NaN",
        fields={
            "message": r"\(message=['\"]([^)]*?)['\"]?\)",
            "stated_a": _RESULT + r" on rank ([0-9]{1,9})",
            "stated_b": r"\bRank ([0-9]{1,9})(?:, node|: found)",
            "device_a": r"\bdevice ([0-9]{1,4}), iteration",
            "device_b": r"\bDevice: ([0-9]{1,4})",
            "node_a": r"\bRank [0-9]{1,9}, node ([^ ,]+), device",
            "node_b": r", node: ([^ ,]+)",
            "iteration_a": r"\bat iteration #([0-9]{1,18})",
            "iteration_b": r"\biteration #?([0-9]{1,18}): ",
        },
        constants={"kind": "nan"},
        finish=_found,
        sample="AssertionError: Rank 114: found NaN in local forward loss calculation. Device: 2,"
        " node: gpu-node07",
        drift=False,
    ),
)
