"""How much of the input was read and understood."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from hcp_logscan.model.report import Drift, Health, Skipped, Unreadable
from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan.analysis.jobs import Job
    from hcp_logscan.analysis.ranks import Coverage
    from hcp_logscan.engine.run import Tables


def health_of(
    tables: Tables, events: Mapping[str, pl.DataFrame], job: Job, coverage: Coverage
) -> Health:
    """Scan health of one job; what was skipped or unreadable counts for the whole directory."""
    files = tables.found.files
    mine = [(files[i], tables.stats[i]) for i in job.files]
    unreadable = [*tables.found.unreadable]
    unreadable += [Unreadable(file.name, stats.error) for file, stats in mine if stats.error]
    truncated = [
        say("{file}: the file, or the archive that it is in, is cut off", file=file.name)
        if "!/" in file.name
        else say("{file}: the compressed stream ends before its end mark", file=file.name)
        for file, stats in mine
        if stats.cut_off
    ]
    cut = events["blocks"].filter(~pl.col("complete"))
    truncated += [
        say(
            "{file}: line {line}: the {source} has no end",
            file=files[file].name,
            line=line,
            source=source.replace("_", " "),
        )
        for file, line, source in cut.select("file", "line", "source").iter_rows()
    ]
    records = events["iterations"].filter(pl.col("cut").fill_null(value=False))
    truncated += [
        say(
            "{file}: line {line}: the iteration record ends in the middle",
            file=files[file].name,
            line=line,
        )
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
