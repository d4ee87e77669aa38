"""Who waits in which collective, from c10d's and gloo's lines about time-outs.

A line with the work that timed out names no group; the next lines of the same process do, by the
same sequence number. Sequence numbers count per group, and send and receive count on their own.
The fractions of a second in c10d's lines are of no common clock: nothing is put in order by them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

PAIRWISE: Final = frozenset({"SEND", "RECV", "RECVANYSOURCE", "COALESCED", "UNKNOWN"})
"""Operations whose sides differ by nature: ranks cannot be compared by them."""

GOES_ON: Final = ("iterations", "steps", "checkpoints", "validations", "rank_lines")
_MERGED_TAIL: Final = 2
"""Lines of progress that may still arrive behind a fatal line where ranks share one stream."""

_MOST: Final = 256
"""Waits of one process that are kept: it dies of the first few."""

_STRONG: Final = frozenset({"timeout", "gloo", "barrier", "stuck"})
_CRASH: Final = r"CUDA (?:error|driver)|HIP error|device-side assert"


@dataclass(frozen=True, slots=True)
class Group:
    """A process group by the name and the description that its lines carry."""

    guid: str | None = None
    description: str | None = None

    @property
    def is_default(self) -> bool:
        """The group of all ranks: its group ranks are global ones."""
        return self.description == "default_pg" or (self.guid == "0" and self.description is None)


UNKNOWN: Final = Group()


@dataclass(slots=True)
class Wait:
    """One process in one collective that does not end."""

    process: str
    rank: int | None
    group: Group
    said_rank: int | None
    "As the line counts it, inside a group."

    backend: str
    sequence: int | None
    operation: str | None
    numel_in: int | None
    numel_out: int | None
    limit_ms: int | None
    row: Mapping[str, Any]
    "The line: file, line, text."

    group_rank: int | None = None
    "The rank inside the group, from a line that names the group."

    only_failed: bool = False
    "The line says that a collective failed, and not that it timed out."

    @property
    def compares(self) -> bool:
        """Whether its sequence number says the same on all ranks of its group."""
        return self.sequence is not None and (self.operation or "UNKNOWN").upper() not in PAIRWISE


@dataclass(slots=True)
class Waits:
    """What the lines about time-outs of one attempt say."""

    waits: list[Wait] = field(default_factory=list)
    counters: dict[tuple[Group, int], int] = field(default_factory=dict)
    "(group, global rank) -> number of the last collective that it enqueued."

    ambiguous: set[Group] = field(default_factory=set)
    "Names under which several groups go: two of their ranks have the same place."

    notified: set[int] = field(default_factory=set)
    "Ranks that were told of another one's time-out."

    accused: set[int] = field(default_factory=set)
    "Ranks that notified ones name as timed out."

    lagging: set[frozenset[int]] = field(default_factory=set)
    "Ranks inside a group that c10d's desync reports name, report by report."

    errors: list[Mapping[str, Any]] = field(default_factory=list)
    "Lines of watchdogs that ended by an error of the device."

    @property
    def processes(self) -> set[str]:
        """Processes that wait, the accused ones included."""
        return {wait.process for wait in self.waits} | {f"rank {rank}" for rank in self.accused}


def read(tables: Mapping[str, pl.DataFrame], attempt: int) -> Waits:
    """The waits of one attempt; lines after which their process goes on training do not count."""
    rows = tables["timeouts"].filter(pl.col("attempt") == attempt)
    found = Waits()
    if not rows.height:
        return found
    rows = _final(tables, attempt, rows).sort("file", "line")
    pending: dict[str, list[Wait]] = {}
    weak: dict[str, Wait] = {}
    failed: dict[str, Wait] = {}
    places: dict[tuple[Group, int], int] = {}
    for row in rows.iter_rows(named=True):
        group = Group(row["guid"], row["description"])
        rank = row["event_rank"]
        if rank is None and group.is_default:
            rank = row["group_rank"]
        process = f"rank {rank}" if rank is not None else f"{row['file']} {row['stream']}"
        place = row["group_rank"]
        placed = rank is not None and place is not None and group != UNKNOWN
        if placed and places.setdefault((group, place), rank) != rank:
            found.ambiguous.add(group)
        if rank is not None and _counted(row):
            found.counters[group, rank] = row["last_enqueued"]
        kind = row["kind"]
        if kind == "notified":
            found.notified |= {rank} - {None}
            found.accused |= {row["source_rank"]} - {None}
        elif kind == "desync":
            found.lagging.add(_numbers(row["lagging"] or ""))
        elif kind == "error":
            if _crashed(row):
                found.errors.append(row)
        elif kind == "status":
            _name(pending.get(process, []), row, group)
        elif kind in _STRONG:
            wait = _wait(row, process, rank, group if kind == "timeout" else UNKNOWN)
            mine = pending.setdefault(process, [])
            if kind == "timeout":
                _name(mine, row, group)
            if len(mine) < _MOST and not any(_same(wait, other) for other in mine):
                mine.append(wait)
                found.waits.append(wait)
        elif kind == "signal":
            # with counters it is the default group that speaks, whichever timed out
            own = UNKNOWN if row["last_enqueued"] is not None else group
            weak.setdefault(process, _wait(row, process, rank, own))
        elif kind == "failed":
            failed.setdefault(process, _wait(row, process, rank, UNKNOWN))
    if not found.waits and not found.errors:
        words = {**failed, **weak}.values()
        found.waits = sorted(words, key=lambda wait: (wait.row["file"], wait.row["line"]))
    found.waits = _without_echoes(found.waits)
    if found.errors:
        found.accused.clear()  # the signal to dump is sent after an error, too
    return found


def _without_echoes(waits: list[Wait]) -> list[Wait]:
    """Waits of unknown rank do not count beside the same work of a known one.

    What C++ prints when it ends the process (`what():`) has no rank in front.
    """
    known = {(wait.sequence, wait.operation) for wait in waits if wait.rank is not None}
    return [w for w in waits if w.rank is not None or (w.sequence, w.operation) not in known]


def counts_as_all(waits: list[Wait]) -> bool:
    """Whether the first group to time out numbers its ranks as all ranks are, as far as is known.

    The `[Rank r]` of a work is fixed by the first one of its process that times out.
    """
    first: dict[str, Wait] = {}
    for wait in waits:
        first.setdefault(wait.process, wait)
    known = [wait for wait in first.values() if wait.said_rank is not None]
    return bool(known) and all(wait.said_rank == wait.rank for wait in known)


def _final(tables: Mapping[str, pl.DataFrame], attempt: int, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows behind which their process does not go on training."""
    progress = pl.concat(
        [
            frame.filter(pl.col("attempt") == attempt).select(
                "file",
                "event_rank",
                pl.col("last" if "last" in frame.columns else "line").alias("progress"),
            )
            for frame in (tables[name] for name in GOES_ON)
        ]
    )
    if not progress.height:
        return rows
    latest = progress.group_by("file", "event_rank").agg(pl.col("progress").max())
    merged = (
        progress.sort("progress", descending=True)
        .group_by("file")
        .agg(pl.col("progress").head(_MERGED_TAIL + 1).alias("tail"))
        .with_columns(
            pl.when(pl.col("tail").list.len() > _MERGED_TAIL)
            .then(pl.col("tail").list.get(_MERGED_TAIL, null_on_oob=True))
            .alias("tail")
        )
    )
    later = rows.join(latest, on=["file", "event_rank"], how="left", maintain_order="left").join(
        merged, on="file", how="left", maintain_order="left"
    )
    own = pl.when(pl.col("event_rank").is_null()).then("tail").otherwise("progress")
    return later.filter((own <= pl.col("last")).fill_null(value=True)).drop("progress", "tail")


def _numbers(text: str) -> frozenset[int]:
    """The ranks of `1, 3`; numbers that no rank has are left out."""
    words = (word.strip() for word in text.split(","))
    return frozenset(int(word) for word in words if word.isdecimal() and len(word) <= 7)


def _counted(row: Mapping[str, Any]) -> bool:
    """Whether the counters of a line can be true: those never set hold what was in memory."""
    enqueued, completed = row["last_enqueued"], row["last_completed"]
    return enqueued is not None and completed is not None and -1 <= completed <= enqueued


def _crashed(row: Mapping[str, Any]) -> bool:
    return bool(pl.Series([row["text"] or ""]).str.contains(_CRASH)[0])


def crashed(tables: Mapping[str, pl.DataFrame], attempt: int) -> set[int]:
    """Ranks whose watchdog ended by an error of the device: their abort is no echo."""
    rows = tables["timeouts"].filter(
        (pl.col("attempt") == attempt)
        & (pl.col("kind") == "error")
        & pl.col("text").str.contains(_CRASH)
    )
    return set(rows["event_rank"].drop_nulls().to_list())


def _wait(row: Mapping[str, Any], process: str, rank: int | None, group: Group) -> Wait:
    kind = row["kind"]
    return Wait(
        process=process,
        rank=rank,
        group=group,
        said_rank=row["group_rank"],
        backend="gloo" if kind in {"gloo", "barrier"} else "nccl",
        sequence=row["sequence"] if kind == "timeout" else None,
        operation=row["operation"],
        numel_in=row["numel_in"],
        numel_out=row["numel_out"],
        limit_ms=row["milliseconds"],
        row=row,
        group_rank=None if group == UNKNOWN else row["group_rank"],
        only_failed=kind == "failed",
    )


def _name(waits: list[Wait], row: Mapping[str, Any], group: Group) -> None:
    """The first wait of a process with the number of this line and no group gets its group."""
    if group == UNKNOWN:
        return
    for wait in waits:
        named = wait.group in {UNKNOWN, group}
        if named and wait.sequence is not None and wait.sequence == row["sequence"]:
            wait.group, wait.group_rank = group, row["group_rank"]
            return


def _same(one: Wait, other: Wait) -> bool:
    """The same work said twice: by the watchdog and at its end, in a file and in the console."""
    if one.rank is None and one.row["line"] != other.row["line"] and one.group == UNKNOWN:
        return False  # several ranks may share one stream
    work = (one.backend, one.sequence, one.operation)
    known = one.group in {UNKNOWN, other.group} or other.group == UNKNOWN
    return known and work == (other.backend, other.sequence, other.operation)
