"""Where attempts begin in files that hold no start-up marker: told by what ends an attempt.

Three signs, each of one kind of file:

* trainers that print no configuration (torchtitan, verl, NeMo …): their iterations begin anew
* a file of stderr alone (sbatch ``-e``): srun and slurmstepd say there that a step failed or was
  cancelled, and workers go on behind it
* the file of a rank that prints nothing but its exception: the same one stands in a file whose
  attempts are known
"""

from __future__ import annotations

import math
import re
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.analysis.by_file import ByFile

GOES_ON: Final = (
    "torchtitan",
    "nemo",
    "verl",
    "siirl",
    "slime",
    "ms-swift",
    "nanotron",
)
"""Producers whose step numbers go on through epochs and phases, and that print no configuration."""

_ENDS: Final = ("time_limit", "preempted", "node_failure", "requeued", "cancelled")
"""Causes behind which the same job may start again, in the same files."""

_NO_WORKERS: Final = frozenset({"causes", "exits"})
"""Tables of lines that launchers and schedulers print."""


def anew(tables: ByFile, file: int) -> list[int]:
    """Lines of one file where its iterations begin anew, in line order.

    They do where a number is lower than the last two: ranks that share a file are never two steps
    apart. A step that was printed earlier than the one before it is out of order instead. What was
    configured between two iterations is the beginning, where it stands there.
    """
    steps = _steps(tables, file)
    by_stream: dict[str, list[int]] = {}
    states: dict[str, tuple[int, int, str]] = {}
    for line, stream, time, number in steps:
        second, highest, newest = states.get(stream, (-1, -1, ""))
        if number < second and (not time or time > newest):
            by_stream.setdefault(stream, []).append(line)
            second, highest = -1, -1
        if number > highest:
            second, highest = highest, number
        states[stream] = (second, highest, max(newest, time))
    nth_falls = zip_longest(*by_stream.values())
    falls = [min(line for line in nth if line is not None) for nth in nth_falls]
    if not falls:
        return []
    blocks = sorted(tables.rows("blocks", file)["line"].to_list())
    return [_start_before(fall, [line for line, *_ in steps], blocks) for fall in falls]


def _steps(tables: ByFile, file: int) -> list[tuple[int, str, str, int]]:
    """(line, stream, time, number) of the steps of a file whose numbers go on."""
    names = ("line", "stream", "time")
    lines = tables.rows("iterations", file).select(*names, "iteration", "producer").iter_rows()
    begun = tables.rows("marks", file).select(*names, "value", "kind").iter_rows()
    found = [row for row in lines if row[4] in GOES_ON] + [row for row in begun if row[4] == "step"]
    return sorted(
        (line, stream, time or "", number)
        for line, stream, time, number, _ in found
        if number is not None
    )


def _start_before(fall: int, steps: Sequence[int], blocks: Sequence[int]) -> int:
    """The first configuration block behind the steps before a line, else that line."""
    before = max(line for line in steps if line < fall)
    return next((line for line in blocks if before < line < fall), fall)


def raised(tables: ByFile, rows: Sequence[tuple[int, int, int]]) -> dict[tuple[str, str], set[int]]:
    """What was raised -> its attempts, from the rows (file, line, attempt) of files cut so far."""
    starts: dict[int, list[tuple[int, int]]] = {}
    for file, line, attempt in rows:
        starts.setdefault(file, []).append((line, attempt))
    found: dict[tuple[str, str], set[int]] = {}
    for file, begun in starts.items():
        for line, what in _exceptions(tables, file):
            attempt = max((start for start in begun if start[0] <= line), default=(0, 0))[1]
            found.setdefault(what, set()).add(attempt)
    return found


def silent(
    tables: ByFile, file: int, launches: int, known: Mapping[tuple[str, str], set[int]]
) -> list[tuple[int, int]]:
    """(first line, attempt) of a file without start-up markers and without iterations.

    `known` is what `raised` gave. What nothing tells stays in the first attempt.
    """
    cuts = _behind_ends(tables.all_rows(file))
    if len(cuts) + 1 == launches:
        return [(start, attempt) for attempt, start in enumerate([0, *cuts])]
    rows = [(0, 0)]
    for line, what in _exceptions(tables, file):
        attempts = known.get(what, set())
        if len(attempts) == 1 and (attempt := next(iter(attempts))) > rows[-1][1]:
            rows.append((line, attempt))
    return rows


def _exceptions(tables: ByFile, file: int) -> list[tuple[int, tuple[str, str]]]:
    """(line, what was raised) of a file's tracebacks; numbers of a message do not count."""
    rows = tables.rows("tracebacks", file).select("first_line", "exception", "message")
    return sorted(
        (line, (exception, re.sub(r"\d+", "0", message or "")))
        for line, exception, message in rows.drop_nulls("exception").iter_rows()
    )


def _behind_ends(tables: Mapping[str, pl.DataFrame]) -> list[int]:
    """First lines behind those that say in a file that a step has ended, where workers go on."""
    killed = tables["causes"].filter(pl.col("kind").is_in(_ENDS))["line"]
    failed = tables["exits"].filter(pl.col("kind") == "srun_exit")["line"]
    ends = sorted({*killed.to_list(), *failed.to_list()})
    workers = sorted(
        line
        for name, frame in tables.items()
        if ends and frame.height and name not in _NO_WORKERS
        for line in frame["line"].to_list()
    )
    cuts: list[int] = []
    for end, behind in pairwise([*ends, math.inf]):
        if any(end < line < behind for line in workers):
            cuts.append(int(end) + 1)
    return cuts
