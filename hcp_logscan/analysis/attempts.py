"""Which attempt a line belongs to. Attempts are launches of the workers, numbered from 0.

Attempt directories win. Otherwise a new attempt begins at the *same* start-up marker seen again in
one file, or after torchrun's ``failed (exitcode: …)`` where workers go on behind it. Several files
are lined up by the time stamps they share, else by the order of their start-ups; a file without
start-up markers (a rank that prints none) follows the times of the others, else it is cut where its
iteration numbers fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.analysis import restarts, rotated
from hcp_logscan.analysis.by_file import ByFile
from hcp_logscan.analysis.config import START_UP
from hcp_logscan.model.events import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hcp_logscan.sources.discover import LogFile

_DATED: Final = ("marks", "iterations")
_WORKER_TABLES: Final = ("blocks", "marks", "paths", "iterations", "steps", "tracebacks")
LAUNCHER_ERRORS: Final = ("ChildFailedError", "SignalException", "RendezvousConnectionError")


@dataclass(frozen=True, slots=True)
class _Segment:
    """The lines of one file from `start` on, up to the next segment."""

    file: int
    start: int
    ordinal: int


def own_blocks(blocks: pl.DataFrame) -> pl.DataFrame:
    """Configuration blocks that do not lie inside another of the same source, file and stream.

    A printed YAML is found by its head and by its first line; both give the same block.
    """
    kept: list[int] = []
    last: dict[tuple[int, str, str], int] = {}
    columns = blocks.select("file", "stream", "source", "line", "last_line")
    for index, (file, stream, source, line, end) in enumerate(columns.iter_rows()):
        key = (file, stream, source)
        if line <= last.get(key, 0):
            continue
        last[key] = end
        kept.append(index)
    return blocks[kept]


def _launcher_traceback() -> pl.Expr:
    return pl.col("exception").str.contains("|".join(LAUNCHER_ERRORS))


def _worker_lines(tables: ByFile, file: int) -> list[int]:
    lines: list[int] = []
    for table in _WORKER_TABLES:
        frame = tables.rows(table, file)
        if table == "tracebacks":
            frame = frame.filter(~_launcher_traceback().fill_null(value=False))
        lines.extend(frame["line"].to_list())
    return sorted(lines)


def _failed_lines(tables: ByFile, file: int) -> list[int]:
    """Line of the n-th `failed (exitcode` of a file: the last of the agents' n-th ones."""
    exits = tables.rows("exits", file).filter(pl.col("kind") == "failed_line")
    nth: dict[int, int] = {}
    seen: dict[str, int] = {}
    for agent, line in exits.select(pl.col("agent").fill_null(""), "line").iter_rows():
        number = seen.get(agent, 0)
        seen[agent] = number + 1
        nth[number] = max(nth.get(number, 0), line)
    return [nth[number] for number in sorted(nth)]


def _segments(tables: ByFile, file: int) -> list[_Segment]:
    """Cut one file at repeated start-up markers and behind failures that workers survive."""
    cuts: list[int] = []
    failed = _failed_lines(tables, file)
    starts = tables.rows("blocks", file).filter(pl.col("source").is_in(START_UP))
    seen: set[tuple[str, str]] = set()
    previous = 0
    for stream, source, line in starts.select("stream", "source", "line").iter_rows():
        after_failure = [at for at in failed if previous < at < line]
        if (stream, source) in seen or (after_failure and seen):
            seen.clear()
            cuts.append(after_failure[-1] + 1 if after_failure else line)
        seen.add((stream, source))
        previous = line
    workers = _worker_lines(tables, file) if failed else []
    for at in failed:
        following = next((line for line in workers if line > at), None)
        if following is not None and not any(cut > at for cut in cuts):
            cuts.append(at + 1)
    starts_at = [0, *sorted(set(cuts))]
    return [_Segment(file, start, ordinal) for ordinal, start in enumerate(starts_at)]


def _stamps(tables: ByFile, files: Iterable[int]) -> dict[int, pl.DataFrame]:
    """The dated lines of each file: `line` and `time`."""
    found = {}
    for file in files:
        frames = [tables.rows(table, file).select("line", "time") for table in _DATED]
        found[file] = pl.concat(frames).drop_nulls()
    return found


@dataclass(slots=True)
class _Launch:
    """One start of the workers: its segments in several files, and the time stamps they share."""

    times: set[str]
    segments: list[_Segment]

    @property
    def start(self) -> str | None:
        """First time stamp; None where no line carries one."""
        return min(self.times, default=None)


def _timed(
    mine: Sequence[_Segment], stamps: pl.DataFrame, *, alone: bool
) -> Iterator[tuple[_Segment, set[str]]]:
    """Each segment of one file with the time stamps of its lines.

    The first one is enough where the file is `alone` in having any: there is nothing to share.
    """
    line = pl.col("line")
    bounds = [*(segment.start for segment in mine[1:]), None]
    for segment, end in zip(mine, bounds, strict=True):
        inside = line >= segment.start if end is None else line.is_between(segment.start, end - 1)
        times = stamps.filter(inside)["time"].unique()
        yield segment, set((times.bottom_k(1) if alone else times).to_list())


def _launches(
    segments: Sequence[Sequence[_Segment]], stamps: Mapping[int, pl.DataFrame]
) -> list[_Launch]:
    """Segments of several files -> launches, in order.

    The file with most segments leads, and its own order stands, dated or not. A segment of another
    file joins the launch that shares a time stamp with it; a dated one that shares none is a launch
    of its own, at its place in time; an undated one joins the launch of the same ordinal.
    """
    ordered = sorted(segments, key=len, reverse=True)
    if not ordered:
        return []
    leader = ordered[0]
    alone = sum(frame.height > 0 for frame in stamps.values()) < 2
    launches = [
        _Launch(times, [segment])
        for segment, times in _timed(leader, stamps[leader[0].file], alone=alone)
    ]
    for mine in ordered[1:]:
        for segment, times in _timed(mine, stamps[mine[0].file], alone=alone):
            same = next((each for each in launches if not each.times.isdisjoint(times)), None)
            if same is None and times and all(each.times for each in launches):
                later = (k for k, each in enumerate(launches) if (each.start or "") > min(times))
                launches.insert(next(later, len(launches)), _Launch(times, [segment]))
                continue
            if same is None:
                same = launches[min(segment.ordinal, len(launches) - 1)]
            same.segments.append(segment)
            same.times |= times
    return launches


def _follow(
    tables: ByFile, file: int, launches: Sequence[_Launch]
) -> tuple[list[tuple[int, int]], bool]:
    """(first line, attempt) of a file without start-up markers, and whether that is guessed.

    Iterations follow the starts of the launches where both are dated. Otherwise the file is cut
    where its iteration numbers fall, and its last part belongs to the last launch.
    """
    rows = tables.rows("iterations", file)
    lines = rows.select("line", "time", "iteration").rows()
    if len(launches) < 2 or not lines:
        return [(0, 0)], False
    starts = [launch.start for launch in launches]
    if all(time is not None for _, time, _ in lines) and None not in starts[1:]:
        found, attempt = [(0, 0)], 0
        for line, time, _ in lines:
            wanted = max(k for k, start in enumerate(starts) if k == 0 or str(start) <= time)
            if wanted != attempt:
                attempt = wanted
                found.append((line, attempt))
        return found, False
    cuts = [0]
    for (_, _, before), (line, _, now) in pairwise(lines):
        if before is not None and now is not None and now <= before:
            cuts.append(line)
    first = max(len(launches) - len(cuts), 0)
    guessed = len(cuts) != len(launches)
    return [(line, min(first + k, len(launches) - 1)) for k, line in enumerate(cuts)], guessed


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Where attempts begin."""

    frame: pl.DataFrame
    "Rows (`file`, `line`, `attempt`), Int64, sorted: a line belongs to the last one before it."

    guessed: bool = False
    "Iterations of one file could not be attributed to one of several launches for certain."


def boundaries(
    tables: Mapping[str, pl.DataFrame], files: Sequence[LogFile], members: Sequence[int]
) -> Boundaries:
    """Where the attempts of one job begin in its files; parts of a rotated log count as one."""
    if logs := rotated.parts_of(files, members):
        older = {part for log in logs for part in log[:-1]}
        kept = [i for i in members if i not in older]
        rows, guessed = _boundaries(rotated.joined(tables, logs), files, kept)
        rows = rotated.parted(rows, logs)
    else:
        rows, guessed = _boundaries(tables, files, members)
    schema = {"file": pl.Int64, "line": pl.Int64, "attempt": pl.Int64}
    return Boundaries(pl.DataFrame(rows, schema=schema, orient="row").sort("file", "line"), guessed)


def _boundaries(
    tables: Mapping[str, pl.DataFrame], files: Sequence[LogFile], members: Sequence[int]
) -> tuple[list[tuple[int, int, int]], bool]:
    """Rows (file, line, attempt), and whether one is guessed."""
    split = ByFile(tables)
    rows: list[tuple[int, int, int]] = []
    guessed = False
    numbered = sorted({n for i in members if (n := files[i].hints.attempt) is not None})
    free = [i for i in members if files[i].hints.attempt is None]
    rows.extend((i, 0, n) for i in members if (n := files[i].hints.attempt) is not None)
    segments = {file: _segments(split, file) for file in free}
    if numbered:
        for file in free:
            mine = _as_many(split, file, segments[file], len(numbered))
            rows.extend(
                (file, segment.start, numbered[min(segment.ordinal, len(numbered) - 1)])
                for segment in mine
            )
    else:
        started = tables["blocks"].filter(pl.col("source").is_in(START_UP))
        with_start = set(started["file"].to_list())
        if not with_start.intersection(free):
            segments = {file: _anew(split, file, mine) for file, mine in segments.items()}
        # a file without start-ups, cut by as many failures, is another node's or the launcher's
        most = max((len(segments[file]) for file in free if file in with_start), default=0)
        alike = {f for f in free if f not in with_start and len(segments[f]) == most > 1}
        leading = [
            file
            for file in free
            if file in with_start or (len(segments[file]) > 1 and file not in alike)
        ]
        dated = _stamps(split, leading)
        launches = _launches([segments[file] for file in leading], dated)
        for attempt, launch in enumerate(launches):
            rows.extend((segment.file, segment.start, attempt) for segment in launch.segments)
        raised = restarts.raised(split, rows) if len(launches) > 1 else {}
        for file in sorted(set(free) - set(leading)):
            if files[file].kind in {"dump", "error"}:  # written over by each attempt: the last's
                rows.append((file, 0, max(len(launches) - 1, 0)))
                continue
            if file in alike:
                rows.extend(
                    (file, s.start, min(s.ordinal, len(launches) - 1)) for s in segments[file]
                )
                continue
            mine_rows, unsure = _follow(split, file, launches)
            guessed |= unsure
            if len(launches) > 1 and not split.rows("iterations", file).height:
                mine_rows = restarts.silent(split, file, len(launches), raised)
            rows.extend((file, line, attempt) for line, attempt in mine_rows)
    return rows, guessed


def _anew(tables: ByFile, file: int, mine: list[_Segment]) -> list[_Segment]:
    """Segments of a file of a trainer that prints no start-up marker."""
    if len(mine) > 1:
        return mine
    cuts = restarts.anew(tables, file)
    return [_Segment(file, start, ordinal) for ordinal, start in enumerate([0, *cuts])]


def _as_many(tables: ByFile, file: int, mine: list[_Segment], attempts: int) -> list[_Segment]:
    """Segments of a console beside attempt directories, by failures where starts are missing."""
    failed = _failed_lines(tables, file)[: attempts - 1]
    if len(mine) >= attempts or len(failed) + 1 <= len(mine):
        return mine
    return [_Segment(file, at, k) for k, at in enumerate([0, *(line + 1 for line in failed)])]


def _assigned(frame: pl.DataFrame, bounds: pl.DataFrame) -> pl.DataFrame:
    """Rows in order with their `attempt`; what is looked up is that column alone."""
    if not frame.height:
        return frame.with_columns(pl.lit(0, dtype=pl.Int64).alias("attempt"))
    found = frame.select("file", "line").join_asof(
        bounds, on="line", by="file", strategy="backward", check_sortedness=False
    )
    return frame.with_columns(found["attempt"].fill_null(0))


def assign(tables: Mapping[str, pl.DataFrame], bounds: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Every event table with its `attempt` column (Int64)."""
    assigned = {name: _assigned(in_order(frame), bounds) for name, frame in tables.items()}
    assigned["exits"] = _assign_exits(assigned["exits"], bounds)
    launcher = _launcher_traceback().fill_null(value=False)
    last = _last(bounds)
    assigned["tracebacks"] = assigned["tracebacks"].with_columns(
        pl.when(launcher).then(pl.lit(last)).otherwise("attempt").alias("attempt")
    )
    return assigned


def _last(bounds: pl.DataFrame) -> int:
    return int(str(bounds["attempt"].max())) if bounds.height else 0


def _assign_exits(exits: pl.DataFrame, bounds: pl.DataFrame) -> pl.DataFrame:
    """The n-th `failed (exitcode` of an agent belongs to attempt n, the final table to the last."""
    known = sorted(set(bounds["attempt"].to_list())) or [0]
    attempts: list[int] = []
    failed: dict[tuple[int, str], int] = {}
    columns = exits.select("file", pl.col("agent").fill_null(""), "kind", "attempt")
    for file, agent, kind, positioned in columns.iter_rows():
        number = failed.get((file, agent), 0)
        if kind == "failed_line":
            failed[file, agent] = number + 1
        if kind in {"table_row", "table_root"}:
            attempts.append(known[-1])
        elif agent:
            attempts.append(known[min(number, len(known) - 1)])
        else:
            attempts.append(positioned)
    return exits.with_columns(pl.Series("attempt", attempts, dtype=pl.Int64))
