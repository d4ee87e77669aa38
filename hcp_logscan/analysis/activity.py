"""When each rank was last heard of: the ends of the files that hold one rank only.

Event tables hold recognised lines; the end of a file shows what was printed last, whatever it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.analysis.clock import clock
from hcp_logscan.sources import prefixes
from hcp_logscan.sources.scanner import TAIL_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.analysis.skew import Skew
    from hcp_logscan.engine.run import FileStats

_MAX_TEXT: Final = 400


@dataclass(frozen=True, slots=True)
class End:
    """The end of one file."""

    file: int
    line: int
    "Number of its last line that is not blank; of its last dated one where there is one."

    text: str
    last: str
    "The very last line that is not blank."

    time: str | None
    "Wall-clock of `line`, as printed; None where no line of the end carries one."

    undated: int
    "Lines behind it that carry no time."


@dataclass(frozen=True, slots=True)
class LastWords:
    """The last line of one rank that carries a time."""

    rank: int
    attempt: int
    time: str
    "On the clock of the reference node, as far as that is known."

    node: str | None
    file: int
    line: int
    text: str
    sure: bool
    "No line of this rank may be younger: its files are whole, and end in lines with a time."


def end_of(file: int, stats: FileStats) -> End | None:
    """The end of a file; None where it has no text."""
    parts = stats.tail.split(b"\n")
    if not parts[-1]:
        parts.pop()  # what stands behind the last newline is no line
    first = stats.lines - len(parts) + 1
    if len(stats.tail) == TAIL_BYTES and len(parts) > 1:
        parts[0] = b""  # cut: whether it carried a time is not known
    last: tuple[int, str] | None = None
    undated = 0
    for place in range(len(parts) - 1, -1, -1):
        text = prefixes.clean(parts[place]).decode("utf-8", "replace").strip()[:_MAX_TEXT]
        if not text:
            continue
        last = last or (first + place, text)
        if time := clock(text):
            return End(file, first + place, text, last[1], time, undated)
        undated += 1
    return None if last is None else End(file, *last, last[1], None, undated)


def ends(stats: Sequence[FileStats], ranks: Mapping[int, int]) -> dict[int, tuple[End | None, ...]]:
    """Rank -> the ends of its own files that have text; None for one that is not whole.

    `ranks` maps the files that hold one rank only to that rank.
    """
    found: dict[int, list[End | None]] = {}
    for file, rank in sorted(ranks.items()):
        whole = not stats[file].cut_off and stats[file].error is None
        end = end_of(file, stats[file])
        if not whole or end is not None:
            found.setdefault(rank, []).append(end if whole else None)
    return {rank: tuple(mine) for rank, mine in found.items()}


def latest(mine: Sequence[End | None]) -> End | None:
    """Of the files of one rank the end that is youngest, by its time; else one without a time."""
    known = [end for end in mine if end is not None]
    return max(known, key=lambda end: (end.time or "", -end.file), default=None)


def last_words(
    found: Mapping[int, Sequence[End | None]], tables: Mapping[str, pl.DataFrame], clocks: Skew
) -> tuple[LastWords, ...]:
    """The last dated line of each rank with files of its own, in the order of the ranks."""
    attempts = _attempts(tables)
    words = []
    for rank, mine in sorted(found.items()):
        end = latest(mine)
        if end is None or end.time is None:
            continue
        node = clocks.node(end.file, "")
        words.append(
            LastWords(
                rank,
                attempts.get(end.file, 0),
                clocks.correct(end.time, node) or end.time,
                node,
                end.file,
                end.line,
                end.text,
                sure=all(one is not None and one.time and not one.undated for one in mine),
            )
        )
    return tuple(words)


def _attempts(tables: Mapping[str, pl.DataFrame]) -> dict[int, int]:
    """The last attempt that a file has lines of."""
    rows = pl.concat([f.select("file", "attempt").unique() for f in tables.values() if f.height])
    return dict(rows.group_by("file").agg(pl.col("attempt").max()).iter_rows())
