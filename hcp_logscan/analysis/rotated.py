"""Parts that log rotation leaves of one log, put behind each other where lines belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.sources.packed import unpacked_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.sources.discover import LogFile

_STRIDE: Final = 1 << 40
"""Lines that no part has: where the next part's lines begin in the whole log."""


def parts_of(files: Sequence[LogFile], members: Sequence[int]) -> list[list[int]]:
    """The members that are parts of one log, oldest first; logs of one part are left out."""
    names = {unpacked_name(files[i].name): i for i in members}  # the newest may be compressed …
    names |= {files[i].name: i for i in members}  # … beside one that is not
    found: dict[str, list[int]] = {}
    for index in members:
        if base := files[index].hints.part_of:
            found.setdefault(base, [names[base]] if base in names else []).append(index)
    logs = (sorted(parts, key=lambda i: -files[i].hints.age) for parts in found.values())
    return [parts for parts in logs if len(parts) > 1]


def joined(
    tables: Mapping[str, pl.DataFrame], logs: Sequence[Sequence[int]]
) -> dict[str, pl.DataFrame]:
    """The event tables with the lines of all parts of a log in its newest part's file."""
    if not logs:
        return dict(tables)
    places = pl.DataFrame(
        [(part, log[-1], number * _STRIDE) for log in logs for number, part in enumerate(log)],
        schema={"file": pl.Int64, "_log": pl.Int64, "_before": pl.Int64},
        orient="row",
    )
    return {
        name: frame.join(places, on="file", how="left", maintain_order="left")
        .with_columns(
            pl.coalesce("_log", "file").alias("file"),
            pl.col("line") + pl.col("_before").fill_null(0),
        )
        .drop("_log", "_before")
        .sort("file", "line", maintain_order=True)
        for name, frame in tables.items()
    }


def apart(rows: pl.DataFrame, logs: Sequence[Sequence[int]]) -> pl.DataFrame:
    """Rows made of `joined` tables, with file and line as they are on disk."""
    if not logs:
        return rows
    places = pl.DataFrame(
        [(log[-1], number, part) for log in logs for number, part in enumerate(log)],
        schema={"file": pl.Int64, "_number": pl.Int64, "_part": pl.Int64},
        orient="row",
    )
    return (
        rows.with_columns((pl.col("line") // _STRIDE).alias("_number"))
        .join(places, on=["file", "_number"], how="left", maintain_order="left")
        .with_columns(
            pl.coalesce("_part", "file").alias("file"), (pl.col("line") % _STRIDE).alias("line")
        )
        .drop("_number", "_part")
    )


def parted(
    bounds: Sequence[tuple[int, int, int]], logs: Sequence[Sequence[int]]
) -> list[tuple[int, int, int]]:
    """Rows (file, line, attempt) of `joined` tables in the files that hold the lines.

    Each part but the oldest begins in the attempt in which the one before it ends.
    """
    by_log = {log[-1]: log for log in logs}
    rows = [row for row in bounds if row[0] not in by_log]
    for file, log in by_log.items():
        mine = sorted((line, attempt) for own, line, attempt in bounds if own == file)
        for number, part in enumerate(log):
            begin, end = number * _STRIDE, (number + 1) * _STRIDE
            before = [attempt for line, attempt in mine if line <= begin]
            rows.append((part, 0, before[-1] if before else 0))
            rows += [(part, line - begin, n) for line, n in mine if begin < line < end]
    return rows
