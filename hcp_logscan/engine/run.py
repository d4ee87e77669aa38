"""All files of a run -> one set of event tables, whoever scans their units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from hcp_logscan.engine.plan import of_run
from hcp_logscan.engine.scan import LINE_COLUMNS, BatchResult, scan_batch
from hcp_logscan.model import events
from hcp_logscan.sources.scanner import joined_tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.sources.discover import Discovered
    from hcp_logscan.sources.scanner import Tail


@dataclass(frozen=True, slots=True)
class FileStats:
    """What was read of one file."""

    bytes: int
    lines: int
    recognised: int
    cut_off: bool
    error: str | None
    tail: Tail = b""
    "The last bytes of its text, at most `TAIL_BYTES`; empty of saved configurations and dumps."


@dataclass(frozen=True, slots=True)
class Tables:
    """The event tables of a run, and the files they come from."""

    found: Discovered
    stats: tuple[FileStats, ...]
    "One per file of `found.files`."

    frames: Mapping[str, pl.DataFrame]
    "Every table of EVENTS, sorted by (file, line); `file` is an index into `found.files`."

    def __getitem__(self, table: str) -> pl.DataFrame:
        """The rows of one event table."""
        return self.frames[table]


def _starts(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Lines where an attempt may begin, as rows (`file`, `line`, `epoch`): epochs count from 1."""
    failed = frames["exits"].filter(pl.col("kind") == "failed_line")
    lines = pl.concat([frames["blocks"].select("file", "line"), failed.select("file", "line")])
    return (
        lines.unique()
        .sort("file", "line")
        .with_columns(pl.int_range(1, pl.len() + 1).over("file").alias("epoch"))
    )


def _with_epoch(frame: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """The rows, sorted, with their epoch in the whole file, in place of that in their unit."""
    if not starts.height:
        return frame.with_columns(pl.lit(0, pl.Int64).alias("epoch"))
    epochs = frame.select("file", "line").join_asof(
        starts, on="line", by="file", strategy="backward", check_sortedness=False
    )
    return frame.with_columns(epochs["epoch"].fill_null(0))


def _placed(
    table: str, frame: pl.DataFrame, places: Sequence[tuple[int, int, int]]
) -> pl.DataFrame:
    """Rows of a batch in their files: `places` are (unit's place, file, lines before the unit)."""
    schema = {"file": pl.Int64, "_index": pl.Int64, "_before": pl.Int64}
    where = pl.DataFrame(list(places), schema=schema, orient="row")
    return (
        frame.join(where, on="file", how="left", maintain_order="left")
        .with_columns(
            pl.col("_index").alias("file"), pl.col(LINE_COLUMNS[table]) + pl.col("_before")
        )
        .select(frame.columns)
    )


def merge(found: Discovered, results: Iterable[BatchResult]) -> Tables:
    """Put the results of all units, in the order of `units`, into one set of tables."""
    parts: dict[str, list[pl.DataFrame]] = {table: [] for table in events.EVENTS}
    totals = [[0, 0, 0] for _ in found.files]
    cut_off = [False] * len(found.files)
    errors: list[str | None] = [None] * len(found.files)
    tails = [b""] * len(found.files)
    for result in results:
        places: list[tuple[int, int, int]] = []
        for place, stats in enumerate(result.units):
            index = stats.unit.file
            total = totals[index]
            places.append((place, index, total[1]))
            total[0] += stats.bytes
            total[1] += stats.lines
            total[2] += stats.recognised
            cut_off[index] |= stats.cut_off
            errors[index] = errors[index] or stats.error
            tails[index] = joined_tail(tails[index], stats.tail)
        for table, frame in result.frames.items():
            parts[table].append(_placed(table, frame, places))
    frames = {}
    for table, given in parts.items():
        frames[table] = events.in_order(pl.concat(given)) if given else events.empty(table)
        given.clear()
    starts = _starts(frames)
    for table, frame in frames.items():
        if frame.height:
            frames[table] = events.fold(table, _with_epoch(frame, starts))
    read = tuple(
        FileStats(total[0], total[1], total[2], cut, error, tail)
        for total, cut, error, tail in zip(totals, cut_off, errors, tails, strict=True)
    )
    return Tables(found, read, frames)


def scan_files(found: Discovered) -> Tables:
    """Scan every file of a run in this process."""
    return merge(found, [scan_batch(list(of_run(found)))])
