"""Tracebacks and causes that ended nobody: their rank trains on, or a line above says so.

Grouped once per attempt, for a large job raises thousands of tracebacks: what is kept is how far
each rank and each file got on, and where introductions stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.waits import GOES_ON

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEPS: Final = ("iterations", "steps")
_INTRODUCTION: Final = 8
"""Lines between an introduction and its traceback, of all streams that share the file."""

_MERGED_TAIL: Final = 2
"""Lines of progress that may still arrive behind a fatal traceback where ranks share one stream."""


@dataclass(frozen=True, slots=True)
class Handled:
    """How far the ranks of one attempt got on."""

    of_rank: Mapping[tuple[int, int], int]
    "(file, rank) -> its last line of progress."

    of_file: Mapping[int, int]
    "File -> its last line of progress but `_MERGED_TAIL`, whoever printed it."

    steps: Mapping[int, int]
    "The same of iterations alone."

    introductions: frozenset[tuple[int, str, int]]
    "(file, stream, line) of what says that the traceback below ends nobody."

    def goes_on(self, row: Mapping[str, Any]) -> bool:
        """Whether the rank of a traceback trains on behind its `last_line`."""
        file, rank, line = row["file"], row["event_rank"], row["last_line"]
        if rank is None:
            return bool(self.of_file.get(file, 0) > line)
        # an iteration is finished by all ranks together, whoever prints it
        return bool(self.of_rank.get((file, rank), 0) > line or self.steps.get(file, 0) > line)

    def introduced(self, row: Mapping[str, Any]) -> bool:
        """Whether a line just above, in the same stream, says that a traceback ends nobody."""
        file, stream, first = row["file"], row["stream"], row["first_line"]
        above = range(max(first - _INTRODUCTION, 1), first)
        return any((file, stream, line) in self.introductions for line in above)


def handled(tables: Mapping[str, pl.DataFrame], attempt: int) -> Handled:
    """What there is to tell handled tracebacks of one attempt by; each table is read once."""
    here = pl.col("attempt") == attempt
    progress = {name: _lines(tables[name].filter(here)) for name in GOES_ON}
    every = pl.concat([progress[name] for name in GOES_ON])
    ranks = every.drop_nulls("event_rank").group_by("file", "event_rank")
    known = tables["handled"].select("file", "stream", "line")
    return Handled(
        of_rank={
            (file, rank): last for file, rank, last in ranks.agg(pl.col("last").max()).iter_rows()
        },
        of_file=_merged(every),
        steps=_merged(pl.concat([progress[name] for name in _STEPS])),
        introductions=frozenset(known.iter_rows()),
    )


def _lines(frame: pl.DataFrame) -> pl.DataFrame:
    """File, rank, line, and the last line that a row is folded of."""
    last = pl.col("last" if "last" in frame.columns else "line").alias("last")
    return frame.select("file", "event_rank", "line", last)


def _merged(rows: pl.DataFrame) -> dict[int, int]:
    """File -> its last line but `_MERGED_TAIL`; files with fewer lines are left out."""
    tail = pl.col("line").top_k(_MERGED_TAIL + 1)
    found = rows.group_by("file").agg(tail.min().alias("line"), pl.len().alias("lines"))
    enough = found.filter(pl.col("lines") > _MERGED_TAIL)
    return dict(enough.select("file", "line").iter_rows())
