"""Whose silence says something in these logs, and which rank a local rank is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hcp_logscan.analysis.suspects import Witnesses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from hcp_logscan.analysis.activity import LastWords
    from hcp_logscan.analysis.jobs import Job
    from hcp_logscan.analysis.ranks import Coverage, RankMap
    from hcp_logscan.engine.run import Tables
    from hcp_logscan.sources.discover import LogFile


def witnesses(
    tables: Tables,
    events: Mapping[str, pl.DataFrame],
    job: Job,
    coverage: Coverage,
    *,
    one_attempt: bool,
    last: tuple[LastWords, ...],
) -> Witnesses:
    """Whose silence says something in these logs."""
    mine = [tables.stats[i] for i in job.files]
    whole = (
        not any(stats.cut_off or stats.error for stats in mine)
        and not tables.found.unreadable
        and not coverage.missing
        and not events["ray_repeats"].height
        and not events["iterations"]["cut"].any()
        and events["blocks"]["complete"].all()
    )
    ranks_of = coverage.ranks
    apart = ranks_of.files_tell or bool(ranks_of.file_locals)
    numbered = (
        set(ranks_of.by_file.values()) == set(coverage.seen) == set(range(len(coverage.seen)))
    )
    return Witnesses(
        frozenset(coverage.seen),
        counted=len(coverage.seen) if numbered else None,
        one_console=ranks_of.one_node and not apart,
        whole=whole,
        one_attempt=one_attempt,
        last=last,
    )


def local_ranks(
    events: Mapping[str, pl.DataFrame],
    rank_map: RankMap,
    files: Sequence[LogFile],
    world_size: int | None,
) -> dict[int, int]:
    """Local -> global rank where a local rank names one global rank only."""
    pairs: dict[int, set[int]] = {}
    for file, rank in rank_map.by_file.items():
        if (local := files[file].hints.local_rank) is not None:
            pairs.setdefault(local, set()).add(rank)
    for frame in events.values():
        known = frame.drop_nulls(["local_rank", "event_rank"])
        for local, rank in known.select("local_rank", "event_rank").unique().iter_rows():
            pairs.setdefault(local, set()).add(rank)
    if not pairs and world_size is not None and world_size == 1:
        return {0: 0}
    return {local: next(iter(found)) for local, found in pairs.items() if len(found) == 1}
