"""What the logs hold of each rank: its files, its last line, and how far it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.activity import latest
from hcp_logscan.analysis.clock import clock
from hcp_logscan.model.report import RankRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.analysis.activity import End
    from hcp_logscan.analysis.ranks import Coverage
    from hcp_logscan.sources.discover import LogFile

_MAX_TEXT: Final = 200
_ITERATIONS: Final = (
    ("iterations", "iteration"),
    ("steps", "iteration"),
    ("rank_lines", "iterations"),
)


def rank_rows(
    coverage: Coverage,
    events: Mapping[str, pl.DataFrame],
    files: Sequence[LogFile],
    ends: Mapping[int, Sequence[End | None]],
    failed: Iterable[Mapping[str, Any]],
) -> tuple[RankRow, ...]:
    """What the logs hold of each rank that was told apart.

    `ends` are those of the files of single ranks, `failed` the rows of the fact table `failures`
    of the last attempt, which say in which phase a rank failed.
    """
    own: dict[int, list[int]] = {}
    for file, rank in coverage.ranks.by_file.items():
        own.setdefault(rank, []).append(file)
    texts, reached = _last_texts(events), _iterations(events)
    phases: dict[int | None, str | None] = {}
    for row in failed:
        if row["kind"] != "suspect":  # which is shown at the line of another rank
            phases.setdefault(row["rank"], row["phase"])
    found = []
    for rank in coverage.seen:
        end = latest(ends.get(rank, ()))
        text = texts.get(rank, (0, ""))[1] if end is None else end.last
        nodes = (files[i].hints.node for i in own.get(rank, ()))
        found.append(
            RankRow(
                rank=rank,
                files=tuple(files[i].name for i in sorted(own.get(rank, ()))),
                node=next((node for node in nodes if node), None),
                last_line=text[:_MAX_TEXT],
                last_time=clock(text) if end is None else end.time,
                last_iteration=reached.get(rank),
                last_phase=phases.get(rank),
            )
        )
    return tuple(found)


def _last_texts(events: Mapping[str, pl.DataFrame]) -> dict[int, tuple[int, str]]:
    """Rank -> number and text of its last recognised line."""
    last: dict[int, tuple[int, str]] = {}
    for frame in events.values():
        if "event_rank" not in frame.columns:
            continue
        known = frame.drop_nulls(["event_rank", "text"]).sort("line")
        rows = known.group_by("event_rank").agg(pl.col("line").last(), pl.col("text").last())
        for rank, line, text in rows.iter_rows():
            if line >= last.get(rank, (0, ""))[0]:
                last[rank] = (line, text)
    return last


def _iterations(events: Mapping[str, pl.DataFrame]) -> dict[int, int]:
    """Rank -> the last iteration that it printed itself, in its last attempt that has any."""
    rows = pl.concat(
        [
            events[table].select("event_rank", "attempt", pl.col(column).alias("iteration"))
            for table, column in _ITERATIONS
        ]
    ).drop_nulls()
    last = (
        rows.group_by("event_rank", "attempt")
        .agg(pl.col("iteration").max())
        .sort("attempt")
        .group_by("event_rank", maintain_order=True)
        .agg(pl.col("iteration").last())
    )
    return dict(last.iter_rows())
