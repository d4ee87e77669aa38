"""How much of the input was read and understood, and what there is of each rank."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from hcp_logscan.model.report import Drift, Health, RankRow, Skipped, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.analysis.jobs import Job
    from hcp_logscan.analysis.ranks import Coverage
    from hcp_logscan.engine.run import Tables
    from hcp_logscan.sources.discover import LogFile


def health_of(
    tables: Tables, events: Mapping[str, pl.DataFrame], job: Job, coverage: Coverage
) -> Health:
    """Scan health of one job; what was skipped or unreadable counts for the whole directory."""
    files = tables.found.files
    mine = [(files[i], tables.stats[i]) for i in job.files]
    unreadable = [*tables.found.unreadable]
    unreadable += [Unreadable(file.name, stats.error) for file, stats in mine if stats.error]
    truncated = [
        f"{file.name}: the file, or the archive that it is in, is cut off"
        if "!/" in file.name
        else f"{file.name}: the compressed stream ends before its end mark"
        for file, stats in mine
        if stats.cut_off
    ]
    cut = events["blocks"].filter(~pl.col("complete"))
    truncated += [
        f"{files[file].name}: line {line}: the {source.replace('_', ' ')} has no end"
        for file, line, source in cut.select("file", "line", "source").iter_rows()
    ]
    records = events["iterations"].filter(pl.col("cut").fill_null(value=False))
    truncated += [
        f"{files[file].name}: line {line}: the iteration record ends in the middle"
        for file, line in records.select("file", "line").iter_rows()
    ]
    drift = (
        events["drift"]
        .group_by("parser", maintain_order=True)
        .agg(pl.col("count").sum(), pl.col("text").first())
    )
    skipped = Counter[tuple[str, str]]()
    for entry in tables.found.skipped:
        skipped[entry.kind, entry.folder] += entry.count
    return Health(
        files=len(mine),
        bytes=sum(stats.bytes for _, stats in mine),
        lines=sum(stats.lines for _, stats in mine),
        recognised_lines=sum(stats.recognised for _, stats in mine),
        unreadable=tuple(unreadable),
        truncated=tuple(dict.fromkeys(truncated)),
        skipped=tuple(Skipped(kind, n, folder) for (kind, folder), n in sorted(skipped.items())),
        drift=tuple(Drift(*row) for row in drift.sort("parser").iter_rows()),
        ranks_missing=coverage.missing or (),
    )


def rank_rows(
    coverage: Coverage, events: Mapping[str, pl.DataFrame], files: Sequence[LogFile]
) -> tuple[RankRow, ...]:
    """What the logs hold of each rank that was told apart."""
    own: dict[int, list[int]] = {}
    for file, rank in coverage.ranks.by_file.items():
        own.setdefault(rank, []).append(file)
    last: dict[int, tuple[int, str]] = {}
    for frame in events.values():
        if "event_rank" not in frame.columns:
            continue
        known = frame.drop_nulls(["event_rank", "text"]).sort("line")
        latest = known.group_by("event_rank").agg(pl.col("line").last(), pl.col("text").last())
        for rank, line, text in latest.iter_rows():
            if line >= last.get(rank, (0, ""))[0]:
                last[rank] = (line, text[:200])
    return tuple(
        RankRow(
            rank=rank,
            files=tuple(files[i].name for i in sorted(own.get(rank, ()))),
            node=next(
                (files[i].hints.node for i in own.get(rank, ()) if files[i].hints.node), None
            ),
            last_line=last.get(rank, (0, ""))[1],
        )
        for rank in coverage.seen
    )
