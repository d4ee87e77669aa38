"""Which failure of an attempt can be the first cause, once all of them are known.

What the machine or the scheduler says outranks the errors that follow from it: an exception about a
lost GPU is an echo of the driver's line. What is known to have come first, by its place in the same
file or by the wall-clock, is not taken for an echo of what came later. Where one vague line (a job
was cancelled, a signal came) stands beside a failure, it is how the attempt ended and not why.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.causes import CAUSES, VAGUE
from hcp_logscan.analysis.clock import CLOSE, apart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.analysis.skew import Skew

_LATE: Final = frozenset({"host_oom", "gpu_lost", "switch_failed", "shared_memory", "disk_full"})
"""Lines that may stand behind the errors that follow from them, such as slurmstepd's at the end."""

_WEAK: Final = r"(?i)\bnccl|gloo|c10d|DistBackendError"
"""Collective errors: an echo where a process was killed by a signal or another exception stands."""

Row = dict[str, Any]


@functools.lru_cache(maxsize=512)
def matches(regex: str, text: str | None) -> bool:
    """Whether a regex of polars' dialect is found in a text."""
    return bool(regex) and bool(text) and bool(pl.Series([text]).str.contains(regex)[0])


def said_by(row: Row) -> str:
    """What an exception says, with its type."""
    return f"{row.get('exception_type')}: {row.get('message')}"


def before(one: Row, other: Row) -> bool | None:
    """Whether one row came before another; None where neither place nor clock tells."""
    if one["file"] == other["file"]:
        return bool(one["line"] < other["line"])
    times = moment(one), moment(other)
    if times[0] and times[1] and abs(seconds := apart(times[0], times[1])) > CLOSE:
        return seconds > 0
    return None


def moment(row: Mapping[str, Any]) -> str | None:
    """The wall-clock of a row, on the clock of the reference node as far as that is known."""
    time: str | None = row.get("clock") or row.get("time")
    return time


def settle(rows: Sequence[Row]) -> None:
    """Change the roles of the rows of one attempt, in place, until each stands for itself."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("cause") and row["role"] == "root":
            kinds.setdefault(row["cause"], []).append(row)
    for group in ("scheduler", "machine", "own", "start-up"):
        for kind, alike in kinds.items():
            if CAUSES[kind].group != group:
                continue
            if group == "own":
                _weigh_own(alike, rows)
            else:  # the first speaks for all of its kind: thousands of ranks may say the same
                _weigh(alike[0], _candidates(kind, rows), group)
                for row in alike[1:]:
                    row["role"] = alike[0]["role"]
    _soften(rows)
    for row in rows:
        if row["kind"] == "exit" and row.get("signal") == "SIGKILL":
            row["kill_explained"] = bool(row.get("kill_explained")) or row["role"] != "root"


def _candidates(kind: str, rows: Sequence[Row]) -> list[Row]:
    """Rows of other kinds that may be the first cause, too."""
    wanted = {"root", "rejection", None}
    return [row for row in rows if row.get("cause") != kind and row["role"] in wanted]


def _weigh_own(alike: Sequence[Row], rows: Sequence[Row]) -> None:
    """What a rank raises behind its own cause follows from it."""
    by_rank: dict[int, list[Row]] = {}
    for row in _candidates(alike[0]["cause"], rows):
        if row["rank"] is not None and row["kind"] == "exception":
            by_rank.setdefault(row["rank"], []).append(row)
    for cause in alike:
        for row in by_rank.get(cause["rank"], ()):
            follows = CAUSES[cause["cause"]].follows
            if before(cause, row) is True and matches(follows, said_by(row)):
                row["role"] = "cascade"


def _weigh(cause: Row, others: Sequence[Row], group: str) -> None:
    """Weigh one cause of the machine, the scheduler or the start against everything else."""
    if group == "scheduler":
        _weigh_scheduler(cause, others)
        return
    victims: list[Row] = []
    for row in others:
        if of_scheduler(row):
            continue
        if group == "start-up":
            if not _follows(cause, row):
                cause["role"] = "cascade" if row["role"] is not None else cause["role"]
            elif row["kind"] == "exception":
                row["role"] = "cascade"
        elif _follows(cause, row) and (cause["cause"] in _LATE or before(row, cause) is not True):
            row["role"] = "confirmation" if row["kind"] == "exit" else "cascade"
            victims.append(row)
    if cause["cause"] == "host_oom" and cause["rank"] is None:
        pids = [row for row in victims if row.get("pid") and row.get("pid") == cause["pid"]]
        killed = pids or [row for row in victims if row.get("signal") == "SIGKILL"]
        cause["rank"] = killed[0]["rank"] if len(killed) == 1 else None


def of_scheduler(row: Mapping[str, Any]) -> bool:
    """Whether a row is the scheduler's word that it ended the attempt."""
    return bool(row.get("cause")) and CAUSES[row["cause"]].group == "scheduler"


def _weigh_scheduler(cause: Row, others: Sequence[Row]) -> None:
    """A scheduler's line ended the attempt; it is why only if nothing had broken before."""
    broken = [row for row in others if row["role"] is not None and not of_scheduler(row)]
    if any(before(row, cause) is True for row in broken):
        cause["role"] = "teardown"
        return
    vague = cause["cause"] in VAGUE
    stronger = any(of_scheduler(row) and row["cause"] not in VAGUE for row in others)
    if vague and (stronger or any(before(cause, row) is not True for row in broken)):
        cause["role"] = "teardown"
        return
    for row in broken:
        if before(cause, row) is True or (row["kind"] == "exit" and row.get("signal")):
            row["role"] = "teardown" if row["kind"] == "exit" else "cascade"


def outlast(rows: Sequence[Row], waits: Sequence[Row]) -> None:
    """A scheduler that ends what has hung says how the attempt ended, and not why."""
    for row in rows:
        if row["role"] == "root" and of_scheduler(row):
            hung = any(before(wait, row) is True for wait in waits if wait["file"] is not None)
            row["role"] = "teardown" if hung else "root"


def dismiss(rows: Sequence[Row]) -> None:
    """Whoever ends a run that had done all it had planned is how it ended, and broke nothing.

    But for a time limit: a run that is done and does not leave until then has hung.
    """
    for row in rows:
        if of_scheduler(row) and row["cause"] != "time_limit":
            row["role"] = "teardown"


def _follows(cause: Row, row: Row) -> bool:
    """Whether a row reads like what follows from a cause."""
    known = CAUSES[cause["cause"]]
    if row["kind"] == "exit":
        return row.get("signal") in known.signals
    if row["kind"] == "cause":
        group = CAUSES[row["cause"]].group
        return group == "start-up" and matches(known.follows, CAUSES[row["cause"]].what)
    return matches(known.follows, said_by(row))


def _soften(rows: Sequence[Row]) -> None:
    """A collective's error is an echo where another rank was killed or failed by itself."""
    roots = [row for row in rows if row["role"] == "root"]
    weak = [
        row
        for row in roots
        if row["kind"] == "exception" and row.get("cause") is None and matches(_WEAK, said_by(row))
    ]
    if len(weak) < len(roots):
        for row in weak:
            row["role"] = "cascade"


_PRECEDENCE: Final = ("machine", "own", "scheduler", "start-up")


def first_root(rows: Sequence[Row]) -> Row | None:
    """The first of the root candidates: by clock or place where those tell, else by who speaks."""
    roots = [row for row in rows if row["role"] == "root" and row["file"] is not None]
    if not roots:
        return next((row for row in rows if row["role"] == "root"), None)
    if len({row["file"] for row in roots}) == 1:
        return min(roots, key=lambda row: int(row["line"]))
    if roots and all(row.get("time") for row in roots):
        return min(roots, key=lambda row: (str(moment(row)), int(row["line"])))

    def rank(row: Row) -> int:
        group = CAUSES[row["cause"]].group if row.get("cause") else "own"
        return _PRECEDENCE.index(group)

    return min(roots, key=rank, default=None)


def rivals(first: Row, rows: Sequence[Row], clocks: Skew) -> list[Row]:
    """Other root candidates that may have been before the first one, for all that is known.

    Only what breaks by itself is compared: suspects and waits are judged together.
    """
    if first["kind"] not in _RIVALS or of_scheduler(first):
        return []
    return [
        row
        for row in rows
        if row["role"] == "root"
        and row["kind"] in _RIVALS
        and row is not first
        and not of_scheduler(row)
        and (row["rank"] is None or row["rank"] != first["rank"])
        and not _same_trouble(first, row)
        and not _surely_before(first, row, clocks)
    ]


_RIVALS: Final = frozenset({"exception", "exit", "cause"})


def _same_trouble(one: Row, other: Row) -> bool:
    """Whether two lines speak of one cause on one node, such as two tools of one lost GPU."""
    if not one.get("cause") or one["cause"] != other.get("cause"):
        return False
    nodes = {row.get("node") or row.get("at_node") for row in (one, other)} - {None}
    return len(nodes) < 2 and one["kind"] == other["kind"] == "cause"


def _surely_before(one: Row, other: Row, clocks: Skew) -> bool:
    """Whether one row came before another, by place or by clocks that can be compared."""
    if one["file"] == other["file"]:
        return bool(one["line"] < other["line"])
    orders = one.get("console"), other.get("console")
    if orders[0] is not None and orders[1] is not None:
        return bool(orders[0] < orders[1])
    times = moment(one), moment(other)
    if not times[0] or not times[1]:
        return False
    return apart(times[0], times[1]) > clocks.slack(one.get("at_node"), other.get("at_node"))
