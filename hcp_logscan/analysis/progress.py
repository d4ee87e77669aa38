"""What attempts gained: iterations, checkpoints, and what was lost between them.

A checkpoint is *saved* where the trainer said so; that none was is known only where rank 0 speaks,
who prints these lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping


def _here(tables: Mapping[str, pl.DataFrame], attempt: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    mine = pl.col("attempt") == attempt
    return tables["checkpoints"].filter(mine), tables["marks"].filter(mine)


def _rank0_speaks(checkpoints: pl.DataFrame, marks: pl.DataFrame) -> bool:
    """Whether lines of the kind that says a checkpoint was saved would be in these logs."""
    return bool(checkpoints.height or set(marks["kind"]) & {"training", "training_done"})


def saved_after(tables: Mapping[str, pl.DataFrame], row: Mapping[str, Any]) -> bool | None:
    """Whether a checkpoint was saved behind the line of a failure; None where nothing tells.

    Where the lines stand in different files, the numbers tell: what ends at an iteration that was
    saved lost nothing, and what ends behind the last saved one was not saved after the warning.
    """
    checkpoints, marks = _here(tables, row["attempt"])
    saved = checkpoints.filter(pl.col("kind") == "saved")
    if not saved.height:
        return False if _rank0_speaks(checkpoints, marks) else None
    last = saved["iteration"].max()
    if last is not None and row["iteration"] is not None and int(str(last)) >= row["iteration"]:
        return True
    same = saved.filter(pl.col("file") == row["file"])
    if same.height:
        return bool((same["line"] > row["line"]).any())
    return None if row["iteration"] is None else False
