"""The timeline of a run: what its ranks and its job did, in order, like entries of many ranks once.

Ordered by wall-clock where lines carry it, of a node whose clock is off on that of the others; else
by the last dated line above in the same file, else by what an entry is. Bounded, however many ranks
and attempts there are.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.clock import clock
from hcp_logscan.analysis.skew import NO_SKEW
from hcp_logscan.analysis.story import alike, kind_words
from hcp_logscan.model.report import TimelineEntry
from hcp_logscan.model.said import N_, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hcp_logscan.analysis.failures import Failures
    from hcp_logscan.analysis.skew import Skew

MAX_ENTRIES: Final = 300
MAX_PER_ATTEMPT: Final = 60
MAX_SAVES: Final = 12
"""Checkpoints of one attempt that are shown: the first of them and the last."""

_MARKS: Final = {
    "training": N_("training starts"),
    "training_done": N_("training is done"),
    "planned_exit": N_("the trainer leaves on purpose"),
    "signal_exit": N_("the trainer leaves after a signal"),
}
_ORDER: Final = {"progress": 0, "root": 1, "rejection": 1, "cascade": 2, "teardown": 4}

Row = dict[str, Any]


class _Clocks:
    """The wall-clock at a line of a file: its own, else that of the last dated line above."""

    def __init__(self, tables: Mapping[str, pl.DataFrame], skew: Skew) -> None:
        self._by_file: dict[int, tuple[list[int], list[str]]] = {}
        place = ("file", "stream", "line")
        dated = [tables[name].select(*place, "time") for name in ("marks", "iterations", "exits")]
        dated.append(tables["causes"].select(*place, pl.col("text").alias("time")))
        rows = pl.concat(dated).drop_nulls("time").sort("file", "line")
        for file, stream, line, time in rows.iter_rows():
            if said := skew.correct(clock(time), skew.node(file, stream)):
                lines, times = self._by_file.setdefault(file, ([], []))
                lines.append(line)
                times.append(said)

    def at(self, file: int | None, line: int | None) -> str | None:
        """The time of a place; None where no dated line stands above it."""
        if file is None or line is None or file not in self._by_file:
            return None
        lines, times = self._by_file[file]
        place = bisect.bisect_right(lines, line)
        return times[place - 1] if place else None


def timeline(
    tables: Mapping[str, pl.DataFrame],
    series: pl.DataFrame,
    failed: Mapping[int, Failures],
    names: Sequence[str],
    skew: Skew = NO_SKEW,
) -> tuple[TimelineEntry, ...]:
    """Entries of all attempts, oldest first by the clock of the reference node."""
    clocks = _Clocks(tables, skew)
    entries: list[TimelineEntry] = []
    for attempt, found in failed.items():
        rows = [*_progress(tables, series, attempt), *_failures(found)]
        for row in rows:
            said = row["time"]
            row["time"] = skew.correct(said, skew.node(row["file"], row["stream"]))
            row["corrected"] = row["time"] != said
            row["at"] = row.get("time") or clocks.at(row["file"], row["line"])
        _held_back(rows)
        entries += [_entry(row, attempt, names) for row in bounded(_sorted(rows), MAX_PER_ATTEMPT)]
    return tuple(bounded(entries, MAX_ENTRIES))


def _held_back(rows: Sequence[Row]) -> None:
    """Date failures without a time of their own no earlier than what must have come before them.

    The last dated line above one in its file may be hours old: what ended an attempt is later than
    its last iteration, and what follows from a failure is later than that one.
    """
    progress = max(
        (row["at"] for row in rows if row["at"] and row["role"] == "progress"), default=""
    )
    roots = [row["time"] for row in rows if row["role"] == "root" and row.get("time")]
    for row in rows:
        if row["role"] == "progress" or row.get("time"):
            continue
        after = min(roots, default="") if row["role"] in {"cascade", "teardown"} else ""
        row["at"] = max(row["at"] or "", progress, after) or None


def _sorted(rows: list[Row]) -> list[Row]:
    """By time; undated progress first."""
    first = min((row["at"] for row in rows if row["at"] and row["role"] == "progress"), default="")

    def key(row: Row) -> tuple[str, int, int, int]:
        order = _ORDER.get(row["role"], 3)
        return row["at"] or first, order, row["file"] or 0, row["line"] or 0

    return sorted(rows, key=key)


def bounded(found: list[Any], limit: int) -> list[Any]:
    """The first third and the last two: how it began, and how it ended."""
    if len(found) <= limit:
        return found
    return [*found[: limit // 3], *found[len(found) - (limit - limit // 3) :]]


def _progress(
    tables: Mapping[str, pl.DataFrame], series: pl.DataFrame, attempt: int
) -> Iterator[Row]:
    """What the job as a whole says: start, checkpoints, first and last iteration, end."""
    mine = pl.col("attempt") == attempt
    marks = tables["marks"].filter(mine & pl.col("kind").is_in(list(_MARKS)))
    for row in marks.unique("kind", keep="first", maintain_order=True).iter_rows(named=True):
        yield _job(row, "mark", _MARKS[row["kind"]], clock(row["time"]))
    kept = tables["checkpoints"].filter(mine & pl.col("kind").is_in(["saved", "loaded"]))
    kept = kept.unique(["kind", "iteration"], keep="first", maintain_order=True)
    for row in bounded(kept.to_dicts(), MAX_SAVES):
        number = row["iteration"]
        words = (
            say("checkpoint of iteration {number} saved", number=number)
            if row["kind"] == "saved"
            else say("checkpoint of iteration {number} loaded", number=number)
        )
        yield _job(row, f"checkpoint_{row['kind']}", words)
    steps = series.filter(mine & pl.col("finished")).drop_nulls("iteration").sort("iteration")
    ends = [steps.head(1), steps.tail(1)] if steps.height > 1 else [steps]
    for row in pl.concat(ends).iter_rows(named=True):
        words = say("iteration {number} finished", number=row["iteration"])
        yield _job(row, "iteration", words, clock(row["time"]) if "time" in row else None)


def _job(row: Row, kind: str, text: str, time: str | None = None) -> Row:
    return {
        "who": "job",
        "ranks": [],
        "role": "progress",
        "kind": kind,
        "text": text,
        "count": 1,
        "time": time,
        "iteration": row.get("iteration"),
        "file": row["file"],
        "line": row["line"],
        "stream": row.get("stream"),
    }


def _failures(found: Failures) -> list[Row]:
    """Failures, those that say the same in the same role folded into one."""
    folded: dict[tuple[Any, ...], Row] = {}
    for row in found.rows:
        key = alike(row)
        if key in folded:
            folded[key]["count"] += row.get("lines") or 1
            folded[key]["ranks"] += [] if row["rank"] is None else [row["rank"]]
            continue
        folded[key] = {
            "who": row["who"],
            "ranks": [] if row["rank"] is None else [row["rank"]],
            "role": row["role"] or "unknown",
            "kind": row.get("cause") or row["kind"],
            "text": kind_words(row),
            "count": row.get("lines") or 1,
            "time": row.get("time"),
            "iteration": row["iteration"],
            "file": row["file"],
            "line": row["line"],
            "stream": row.get("stream"),
        }
    return list(folded.values())


def _entry(row: Row, attempt: int, names: Sequence[str]) -> TimelineEntry:
    return TimelineEntry(
        attempt=attempt,
        time=row["at"] if row["time"] is None else row["time"],
        estimated=row["time"] is None and row["at"] is not None,
        who=row["who"] if len(set(row["ranks"])) < 2 else "ranks",
        ranks=tuple(sorted(set(row["ranks"]))),
        role=row["role"],
        kind=row["kind"],
        text=row["text"],
        count=row["count"],
        iteration=row["iteration"],
        file=None if row["file"] is None else names[row["file"]],
        line=row["line"],
        corrected=row["corrected"],
    )
