"""The rank that fell silent long before all others, where a job hung and nothing better tells.

A suspect only by what stands in files of single ranks, on one clock, and only where nothing else
explains its silence:

* every rank of the world has a last line with a time, and behind that of the suspect stands none
  without, for it could be younger;
* it is older than any other by more than a minute, by more than `FACTOR` times the time between
  the oldest and the youngest of the others, and by more than the clocks of their nodes are unsure:
  where several ranks fell silent early, that is no longer true;
* no iteration was finished behind it, but for the one under way. All ranks take part in every
  iteration: one that says nothing of those that it took part in has the habit of saying nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.analysis.clock import apart, clock
from hcp_logscan.analysis.skew import NOTABLE, words
from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from hcp_logscan.analysis.activity import LastWords
    from hcp_logscan.analysis.skew import Skew

MIN_RANKS: Final = 4
MIN_GAP: Final = 60.0
FACTOR: Final = 3.0
HUNG: Final = 600.0
"""Seconds without an iteration, at the least, before a scheduler ended a run that had hung."""


@dataclass(frozen=True, slots=True)
class Progress:
    """When the iterations of one attempt were finished."""

    finished: bool
    "An iteration was."

    last: str | None
    "When the last one was, on the clock of the reference node; None if unknown."

    pause: float
    "The longest time between two of them, seconds."


def progress(tables: Mapping[str, pl.DataFrame], attempt: int, clocks: Skew) -> Progress:
    """The iterations of one attempt by their times."""
    rows = tables["iterations"]
    mine = rows.filter(rows["attempt"] == attempt)
    steps = tables["steps"]
    finished = bool(mine.height or steps.filter(steps["attempt"] == attempt).height)
    times = sorted(
        {
            time
            for file, stream, said in mine.select("file", "stream", "time").unique().iter_rows()
            if (time := clocks.correct(clock(said), clocks.node(file, stream)))
        }
    )
    pauses = [apart(one, other) for one, other in pairwise(times)]
    return Progress(finished, times[-1] if times else None, max(pauses, default=0.0))


def hung(done: Progress, ended: Sequence[str]) -> bool:
    """Whether no iteration was finished for long before a scheduler ended the run.

    `ended` are the times at which it did. A save or an evaluation is a pause, too: it must have
    been much longer than any before.
    """
    if done.last is None or not ended:
        return False
    return apart(done.last, min(ended)) > max(HUNG, FACTOR * done.pause)


def oldest(
    said: Sequence[LastWords], world_size: int | None, done: Progress, clocks: Skew
) -> tuple[LastWords, str] | None:
    """The rank that fell silent first, and why it is a suspect; None where nothing tells."""
    if world_size is None or world_size < MIN_RANKS or len(said) != world_size:
        return None
    first, *others = sorted(said, key=lambda one: one.time)
    if not first.sure or (done.finished and done.last is None):
        return None
    gap = apart(first.time, others[0].time)
    spread = apart(others[0].time, others[-1].time)
    since = 0.0 if done.last is None else max(apart(first.time, done.last), 0.0)
    slack = max(clocks.slack(first.node, other.node) for other in others)
    if first.node is None and all(other.node is None for other in others):
        slack = 0.0  # nothing speaks of several nodes
    if since > max(done.pause, NOTABLE):
        return None
    if gap <= max(MIN_GAP, FACTOR * max(spread, since), slack):
        return None
    return first, say(
        "its last line is of {time}, {gap} before those of all other ranks, which lie within"
        " {spread} of each other",
        time=first.time,
        gap=words(gap),
        spread=words(spread),
    )


def place(said: LastWords) -> dict[str, Any]:
    """The line, for the row of a suspect."""
    return {"file": said.file, "line": said.line, "text": said.text, "time": clock(said.text)}
