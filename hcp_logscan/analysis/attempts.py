"""Which attempt a line belongs to. Attempts are launches of the workers, numbered from 0.

Attempt directories win. Otherwise a new attempt begins at the *same* start-up marker seen again in
one file, or after torchrun's ``failed (exitcode: …)`` where workers go on behind it. Several files
are lined up by the time stamps they share, else by the order of their start-ups; a file without
start-up markers (a rank that prints none) follows the times of the others, else it is cut where its
iteration numbers fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.analysis.config import START_UP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hcp_logscan.sources.discover import LogFile

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


def _worker_lines(tables: Mapping[str, pl.DataFrame], file: int) -> list[int]:
    lines: list[int] = []
    for table in _WORKER_TABLES:
        frame = tables[table].filter(pl.col("file") == file)
        if table == "tracebacks":
            frame = frame.filter(~_launcher_traceback().fill_null(value=False))
        lines.extend(frame["line"].to_list())
    return sorted(lines)


def _failed_lines(tables: Mapping[str, pl.DataFrame], file: int) -> list[int]:
    """Line of the n-th `failed (exitcode` of a file: the last of the agents' n-th ones."""
    exits = tables["exits"].filter((pl.col("file") == file) & (pl.col("kind") == "failed_line"))
    nth: dict[int, int] = {}
    seen: dict[str, int] = {}
    for agent, line in exits.select(pl.col("agent").fill_null(""), "line").iter_rows():
        number = seen.get(agent, 0)
        seen[agent] = number + 1
        nth[number] = max(nth.get(number, 0), line)
    return [nth[number] for number in sorted(nth)]


def _segments(tables: Mapping[str, pl.DataFrame], file: int) -> list[_Segment]:
    """Cut one file at repeated start-up markers and behind failures that workers survive."""
    cuts: list[int] = []
    failed = _failed_lines(tables, file)
    starts = tables["blocks"].filter((pl.col("file") == file) & (pl.col("source").is_in(START_UP)))
    seen: set[tuple[str, str]] = set()
    previous = 0
    for stream, source, line in starts.select("stream", "source", "line").iter_rows():
        after_failure = [at for at in failed if previous < at < line]
        if (stream, source) in seen or (after_failure and seen):
            seen.clear()
            cuts.append(after_failure[-1] + 1 if after_failure else line)
        seen.add((stream, source))
        previous = line
    workers = _worker_lines(tables, file)
    for at in failed:
        following = next((line for line in workers if line > at), None)
        if following is not None and not any(cut > at for cut in cuts):
            cuts.append(at + 1)
    starts_at = [0, *sorted(set(cuts))]
    return [_Segment(file, start, ordinal) for ordinal, start in enumerate(starts_at)]


def _stamps(tables: Mapping[str, pl.DataFrame], file: int) -> list[tuple[int, str]]:
    """(line, time stamp) of the dated lines of a file, in line order."""
    frames = [
        tables[table].filter(pl.col("file") == file).select("line", "time")
        for table in ("marks", "iterations")
    ]
    return sorted(pl.concat(frames).drop_nulls().iter_rows())


def _launches(
    segments: Sequence[Sequence[_Segment]], stamps: Mapping[int, Sequence[tuple[int, str]]]
) -> list[tuple[str | None, list[_Segment]]]:
    """Segments of several files -> launches (first time stamp, segments), in order.

    Two segments are one launch if they share a time stamp; a segment without any joins the launch
    of the same ordinal.
    """
    launches: list[tuple[set[str], list[_Segment]]] = []
    undated: list[_Segment] = []
    for mine in segments:
        bounds = [*(segment.start for segment in mine[1:]), None]
        for segment, end in zip(mine, bounds, strict=True):
            times = {
                time
                for line, time in stamps[segment.file]
                if line >= segment.start and (end is None or line < end)
            }
            if not times:
                undated.append(segment)
                continue
            same = [launch for launch in launches if not launch[0].isdisjoint(times)]
            merged = (times.union(*(launch[0] for launch in same)), [segment])
            for launch in same:
                merged[1].extend(launch[1])
                launches.remove(launch)
            launches.append(merged)
    launches.sort(key=lambda launch: min(launch[0]))
    result: list[tuple[str | None, list[_Segment]]] = [
        (min(times), members) for times, members in launches
    ]
    for segment in undated:
        while len(result) <= segment.ordinal:
            result.append((None, []))
        result[segment.ordinal][1].append(segment)
    return result


def _follow(
    tables: Mapping[str, pl.DataFrame], file: int, starts: Sequence[str | None]
) -> Iterator[tuple[int, int]]:
    """(first line, attempt) of a file without start-up markers."""
    yield 0, 0
    attempt = 0
    rows = tables["iterations"].filter(pl.col("file") == file)
    previous: int | None = None
    for line, time, iteration in rows.select("line", "time", "iteration").iter_rows():
        wanted = attempt
        if time is not None and all(start is not None for start in starts):
            wanted = max(k for k, start in enumerate(starts) if k == 0 or str(start) <= time)
        elif previous is not None and iteration is not None and iteration <= previous:
            wanted = min(attempt + 1, len(starts) - 1)
        previous = iteration
        if wanted != attempt:
            attempt = wanted
            yield line, attempt


def boundaries(
    tables: Mapping[str, pl.DataFrame], files: Sequence[LogFile], members: Sequence[int]
) -> pl.DataFrame:
    """Where attempts begin: rows (`file`, `line`, `attempt`), all Int64, sorted.

    A line belongs to the last row of its file at or before it.
    """
    rows: list[tuple[int, int, int]] = []
    numbered = sorted({n for i in members if (n := files[i].hints.attempt) is not None})
    free = [i for i in members if files[i].hints.attempt is None]
    rows.extend((i, 0, n) for i in members if (n := files[i].hints.attempt) is not None)
    segments = {file: _segments(tables, file) for file in free}
    if numbered:
        for file in free:
            mine = segments[file]
            if len(mine) < len(numbered):
                failed = _failed_lines(tables, file)[: len(numbered) - 1]
                if len(failed) + 1 > len(mine):
                    mine = [
                        _Segment(file, at, k) for k, at in enumerate([0, *(f + 1 for f in failed)])
                    ]
            rows.extend(
                (file, segment.start, numbered[min(segment.ordinal, len(numbered) - 1)])
                for segment in mine
            )
    else:
        with_start = set(
            tables["blocks"].filter(pl.col("source").is_in(START_UP))["file"].to_list()
        )
        leading = [file for file in free if file in with_start or len(segments[file]) > 1]
        stamps = {file: _stamps(tables, file) for file in leading}
        launches = _launches([segments[file] for file in leading], stamps)
        for attempt, (_, launch) in enumerate(launches):
            rows.extend((segment.file, segment.start, attempt) for segment in launch)
        starts = [start for start, _ in launches] or [None]
        for file in free:
            if file not in leading:
                rows.extend(
                    (file, line, attempt) for line, attempt in _follow(tables, file, starts)
                )
    schema = {"file": pl.Int64, "line": pl.Int64, "attempt": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("file", "line")


def assign(tables: Mapping[str, pl.DataFrame], bounds: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Every event table with its `attempt` column (Int64)."""
    assigned = {
        name: frame.sort("file", "line", maintain_order=True)
        .join_asof(bounds, on="line", by="file", strategy="backward", check_sortedness=False)
        .with_columns(pl.col("attempt").fill_null(0))
        for name, frame in tables.items()
    }
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
