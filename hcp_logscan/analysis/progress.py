"""What attempts gained: iterations, checkpoints, and what was lost between them.

A checkpoint is *saved* where the trainer said so; that none was is known only where rank 0 speaks,
who prints these lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENDED: Final = frozenset({"failed", "killed", "terminated", "time_limit"})
"""Outcomes of attempts that did not come to their own end."""


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


def milestones(
    tables: Mapping[str, pl.DataFrame], series: pl.DataFrame, attempt: int
) -> dict[str, Mapping[str, Any]]:
    """Lines of one attempt, as rows with file and line: the last checkpoint `saved` and `loaded`.

    And the last finished `iteration`. What was not logged is left out. `series` is the fact table
    `iterations`.
    """
    mine = pl.col("attempt") == attempt
    kept = tables["checkpoints"].filter(mine)
    found = {kind: kept.filter(pl.col("kind") == kind) for kind in ("saved", "loaded")}
    found["iteration"] = series.filter(mine & pl.col("finished"))
    last = {
        name: rows.select("iteration", "file", "line")
        .drop_nulls("iteration")
        .sort("iteration", descending=True, maintain_order=True)
        for name, rows in found.items()
    }
    return {name: rows.row(0, named=True) for name, rows in last.items() if rows.height}


def start_of(facts: Mapping[str, Any]) -> int | None:
    """The iteration an attempt began behind: that of its checkpoint, or 0 where it began anew."""
    if facts["resumed_from"] is not None:
        return int(facts["resumed_from"])
    first = facts["first_iteration"]
    return 0 if first is not None and first <= (facts["log_interval"] or 1) else None


def attempt_facts(
    mine: Mapping[str, pl.DataFrame], facts: Mapping[str, Any], outcome: str
) -> dict[str, Any]:
    """What one attempt gained and lost; `mine` are its own event tables, `facts` what is known."""
    saved = mine["checkpoints"].filter(pl.col("kind") == "saved")["iteration"].max()
    last, start = facts["last_iteration"], start_of(facts)
    kept = None if saved is None else int(str(saved))
    if kept is None and _rank0_speaks(mine["checkpoints"], mine["marks"]):
        kept = start  # rank 0 speaks and says of no checkpoint: what it began with is all there is
    lost = None
    if outcome in ENDED and last is not None and kept is not None:
        lost = max(last - kept, 0)
    step = facts["step_ms_median"]
    return {
        "last_saved": None if saved is None else int(str(saved)),
        "iterations_gained": None if last is None or start is None else max(last - start, 0),
        "iterations_lost": lost,
        "lost_s": None if lost is None or step is None else round(lost * step / 1000, 3),
    }


def run_facts(attempts: Sequence[tuple[Mapping[str, Any], str]]) -> dict[str, Any]:
    """What all attempts came to, from the facts and the outcome of each, in order."""
    starts = [start for facts, _ in attempts if (start := start_of(facts)) is not None]
    reached = [facts["last_saved"] for facts, _ in attempts if facts["last_saved"] is not None]
    last, outcome = attempts[-1]
    if outcome == "completed" and last["last_iteration"] is not None:
        reached.append(last["last_iteration"])
    lost = [facts["iterations_lost"] for facts, _ in attempts]
    seconds = [facts["lost_s"] for facts, _ in attempts]
    stuck, at = _stuck(attempts)
    return {
        "attempts": len(attempts),
        "net_iterations": max([*reached, *starts]) - starts[0] if starts else None,
        "lost_iterations": sum(n for n in lost if n is not None) if any_known(lost) else None,
        "lost_s": round(sum(n for n in seconds if n is not None), 3)
        if any_known(seconds)
        else None,
        "stuck_attempts": stuck,
        "stuck_iteration": at,
    }


def any_known(values: Sequence[Any]) -> bool:
    """Whether at least one of them was observed."""
    return any(value is not None for value in values)


def _stuck(attempts: Sequence[tuple[Mapping[str, Any], str]]) -> tuple[int | None, int | None]:
    """How many of the last attempts ended where they had begun, and at which iteration.

    None where an attempt's beginning is unknown. An attempt that may still run counts only against
    it: once it is past what the others reached, the run gets on.
    """
    count, at, furthest = 0, None, -1
    for place, (facts, outcome) in enumerate(attempts):
        if outcome in {"rejected", "no_training"}:
            continue
        start, last, saved = start_of(facts), facts["last_iteration"], facts["last_saved"]
        running = outcome not in ENDED and place == len(attempts) - 1
        gained = saved is not None and saved > (start if start is not None else -1)
        if outcome == "completed" or gained or (running and last is not None and last > furthest):
            count, at, furthest = 0, None, -1
            continue
        if running:
            continue
        if start is None and last is not None:
            return None, None
        if start is not None and at is not None and start > at:
            count = 0
        at = at if start is None else start
        count += 1
        furthest = max(furthest, last if last is not None else -1)
    return count, at
