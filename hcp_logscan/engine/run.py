"""All files of a run -> one set of event tables, in one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.engine.scan import LINE_COLUMNS, Unit, UnitResult, scan_unit
from hcp_logscan.model import events
from hcp_logscan.sources import reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hcp_logscan.sources.discover import Discovered, LogFile

UNIT_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class FileStats:
    """What was read of one file."""

    bytes: int
    lines: int
    recognised: int
    cut_off: bool
    error: str | None


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


def units(files: Sequence[LogFile], unit_bytes: int = UNIT_BYTES) -> Iterator[Unit]:
    """Cut files into units; what cannot be read from the middle is one unit."""
    for index, file in enumerate(files):
        again = reader.seekable(file.path)
        if file.kind != "log" or not again or file.size <= unit_bytes:
            yield Unit(index, file.path, kind=file.kind, keep_text=not again)
            continue
        starts = list(range(0, file.size, unit_bytes))
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            yield Unit(index, file.path, start, end)


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
    """The rows with their epoch in the whole file, in place of that in their unit."""
    columns = frame.columns
    return (
        frame.drop("epoch")
        .sort("file", "line", maintain_order=True)
        .join_asof(starts, on="line", by="file", strategy="backward", check_sortedness=False)
        .with_columns(pl.col("epoch").fill_null(0))
        .select(columns)
    )


def merge(found: Discovered, results: Iterable[UnitResult]) -> Tables:
    """Put the results of all units, in the order of `units`, into one set of tables."""
    parts: dict[str, list[pl.DataFrame]] = {table: [] for table in events.EVENTS}
    totals = [[0, 0, 0] for _ in found.files]
    cut_off = [False] * len(found.files)
    errors: list[str | None] = [None] * len(found.files)
    for result in results:
        index = result.unit.file
        total = totals[index]
        for table, frame in result.frames.items():
            shifted = frame.with_columns(pl.col(LINE_COLUMNS[table]) + total[1])
            parts[table].append(shifted)
        total[0] += result.bytes
        total[1] += result.lines
        total[2] += result.recognised
        cut_off[index] |= result.cut_off
        errors[index] = errors[index] or result.error
    frames = {
        table: pl.concat([events.empty(table), *frames]).sort("file", "line", maintain_order=True)
        for table, frames in parts.items()
    }
    starts = _starts(frames)
    frames = {
        table: events.fold(table, _with_epoch(frame, starts)) for table, frame in frames.items()
    }
    stats = tuple(
        FileStats(total[0], total[1], total[2], cut, error)
        for total, cut, error in zip(totals, cut_off, errors, strict=True)
    )
    return Tables(found, stats, frames)


def scan_files(found: Discovered) -> Tables:
    """Scan every file of a run in this process."""
    return merge(found, map(scan_unit, units(found.files)))
