"""Rows of the fact table `failures` from single lines: each cause once, wherever it stands.

A line inside a traceback is that traceback's: it says what the exception was, and no more. A line
behind which its ranks go on ended nobody. The log of a kernel or a scheduler may span many runs: by
their times its lines go to the attempt they belong to, or to none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.attempts import LAUNCHER_ERRORS
from hcp_logscan.analysis.causes import CAUSES
from hcp_logscan.analysis.clock import apart, clock
from hcp_logscan.analysis.xids import meaning_of
from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_BEHIND: Final = 12
"""Lines of an exception's text that may follow its first."""

_FOLLOWING: Final = frozenset({"checkpoint_mismatch", "advice"})
"""Causes that stand in the further lines of an exception's text."""

_START_UP: Final = frozenset({"dns", "rendezvous", "port_in_use"})
_ELSEWHERE: Final = frozenset({"xid", "gpu_lost", "switch_failed"})
"""Lines of the driver: ranks of other nodes print on for a while."""

_OUTLIVED: Final = 900.0
"""Seconds of training behind a line of the driver: longer than a step, or a time-out, takes."""

_TO_THE_HOUR: Final = len("MM-DD hh")
_WORKERS: Final = ("blocks", "marks", "paths", "iterations", "steps", "checkpoints")
_MET: Final = ("marks", "paths", "group_lines")
"""What ranks print once they have met."""

_OURS: Final = r"(?i)python|^pt_|torch|ray|megatron|train|nemo|conda"
"""Names of processes of a training, as the kernel shows them."""

Row = dict[str, Any]


def spread(
    causes: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
    numbers: Sequence[int],
    nodes: Mapping[int, str],
) -> pl.DataFrame:
    """Causes with the attempt that their time says, where their file holds no worker's lines.

    What is older than the run is dropped; what has no time belongs to the last attempt. `nodes`
    names the node of the files that are one node's.
    """
    if not causes.height:
        return causes
    node = pl.col("file").replace_strict(nodes, default=None, return_dtype=pl.String)
    causes = causes.with_columns(pl.coalesce("node", node).alias("node"))
    files = {file for name in _WORKERS for file in tables[name]["file"].unique().to_list()}
    starts = _starts(tables, numbers)
    placed = [
        attempt if file in files else _placed(clock(text), starts, numbers)
        for file, attempt, text in causes.select("file", "attempt", "text").iter_rows()
    ]
    return causes.with_columns(pl.Series("attempt", placed, dtype=pl.Int64)).drop_nulls("attempt")


def of_job(causes: pl.DataFrame, job: str | None) -> pl.DataFrame:
    """Causes without the rows of accounting that are another job's, or may be.

    Where no path names the job, a listing of several jobs tells nothing of this one.
    """
    listed = pl.col("field") == "job"
    ids = causes.filter(listed)["given"].unique().to_list()
    mine = job if job is not None and job.isdecimal() else ids[0] if len(ids) == 1 else None
    return causes.filter(~(listed & pl.col("given").ne_missing(mine)).fill_null(value=False))


def _starts(tables: Mapping[str, pl.DataFrame], numbers: Sequence[int]) -> dict[int, str]:
    """First wall-clock time of each attempt that has one."""
    times = pl.concat([tables[name].select("attempt", "time") for name in ("marks", "iterations")])
    first = times.drop_nulls().group_by("attempt").agg(pl.col("time").min())
    found = {attempt: clock(time) for attempt, time in first.iter_rows()}
    return {n: time for n in numbers if (time := found.get(n)) is not None}


def _placed(time: str | None, starts: Mapping[int, str], numbers: Sequence[int]) -> int | None:
    if time is None or not starts:
        return numbers[-1]
    begun = [n for n, start in starts.items() if start <= time]
    if begun:
        return begun[-1]
    if starts[min(starts)][:_TO_THE_HOUR] <= time[:_TO_THE_HOUR]:
        return min(starts)  # lines of one hour are folded: a later one may be meant
    return None if numbers[0] in starts and len(starts) == len(numbers) else numbers[0]


def _kind(row: Row, trace: Mapping[str, Any] | None) -> tuple[str, str | None]:
    """Kind of the table `failures`, and what an Xid means."""
    kind = row["kind"]
    if kind == "xid":
        kind, meaning = meaning_of(row["code"], row["text"] or "")
        return kind, say("Xid {code}: {meaning}", code=row["code"], meaning=meaning)
    if kind == "no_space":
        frame, stage = (trace or {}).get("last_frame") or "", (trace or {}).get("stage") or ""
        saves = "save" in stage or "save" in frame or "serialization" in frame
        return ("disk_full" if saves else "shared_memory"), None
    return ("checkpoint_mismatch" if kind == "state_dict" else kind), None


def attach(exception: Row, said: Row | None, trace: Mapping[str, Any]) -> None:
    """Say in the row of an exception which cause its text, or a line of its traceback, states."""
    if said is None:
        return
    kind, _ = _kind(said, trace)
    if exception.get("cause") is None and CAUSES[kind].group not in {"teardown", "advice"}:
        exception["cause"], exception["what"] = kind, CAUSES[kind].what
    if exception.get("cause") == kind:
        for name in ("node", "device", "detail", "field", "stored", "given"):
            exception[name] = exception.get(name) or said[name]
        if said["iteration"] is not None:
            exception["at_iteration"] = said["iteration"]
        if exception.get("rank") is None:
            exception["rank"] = said.get("event_rank", said["line_rank"])


class _Traces:
    """Tracebacks of one attempt, to find the one that a line stands in."""

    def __init__(self, traces: pl.DataFrame) -> None:
        self._by_stream: dict[tuple[int, str], list[Row]] = {}
        for row in traces.sort("file", "first_line").iter_rows(named=True):
            self._by_stream.setdefault((row["file"], row["stream"]), []).append(row)

    def holding(self, row: Row) -> Row | None:
        """The last traceback of the chain that the line stands in, or just behind."""
        mine = self._by_stream.get((row["file"], row["stream"]), [])
        behind = _BEHIND if row["kind"] in _FOLLOWING else 0
        for place, trace in enumerate(mine):
            if trace["first_line"] <= row["line"] <= trace["last_line"] + behind:
                chain = iter(mine[place:])
                return next((one for one in chain if not one["chained"]), trace)
        return None


def cause_rows(
    tables: Mapping[str, pl.DataFrame],
    attempt: int,
    exceptions: Sequence[Row],
    goes_on: Callable[[Row], bool],
    *,
    iteration: int | None,
) -> list[Row]:
    """Rows of one attempt, one per rank (or file) and kind; lines inside `exceptions` go to those.

    `goes_on` says whether the ranks of a line train on behind it.
    """
    found = tables["causes"].filter(pl.col("attempt") == attempt).sort("file", "line")
    traces = _Traces(tables["tracebacks"].filter(pl.col("attempt") == attempt))
    by_place = {(row["file"], row["line"]): row for row in exceptions}
    rows: dict[tuple[Any, ...], Row] = {}
    for said in found.iter_rows(named=True):
        trace = traces.holding(said)
        if trace is not None and not _of_launcher(trace):
            if own := by_place.get((trace["file"], trace["line"])):
                attach(own, said, trace)
            continue
        kind, meaning = _kind(said, None)
        if _harmless(said, kind, tables, goes_on, iteration):
            continue
        rank = said["event_rank"] if CAUSES[kind].group == "own" else None
        who = rank if rank is not None else said["file"]
        key = (kind, who, said["code"] if said["kind"] == "xid" else None, said["node"])
        row = _row(said, kind, meaning, rank, attempt, iteration)
        if known := rows.get(key):
            better = known["detail"] is None and said["detail"] is not None
            (row if better else known)["lines"] += (known if better else row)["lines"]
            row = row if better else known
        rows[key] = row
    return list(rows.values())


def _of_launcher(trace: Row) -> bool:
    return any(name in (trace["exception"] or "") for name in LAUNCHER_ERRORS)


def _row(
    said: Row, kind: str, meaning: str | None, rank: int | None, attempt: int, iteration: int | None
) -> Row:
    cause = CAUSES[kind]
    role = {"teardown": "teardown", "advice": "advice", "information": "confirmation"}
    killed = kind == "host_oom" and said["detail"] is not None
    stranger = killed and not bool(pl.Series([said["detail"]]).str.contains(_OURS)[0])
    return {
        "attempt": attempt,
        "kind": "cause",
        "role": "confirmation" if stranger else role.get(cause.group, "root"),
        "cause": kind,
        "what": cause.what,
        "rank": rank,
        "lines": said["count"],
        "message": meaning or (said["text"] or "").strip(),
        "xid": said["code"] if said["kind"] == "xid" else None,
        "pid": said["code"] if kind == "host_oom" else None,
        **{name: said[name] for name in ("node", "device", "detail", "field", "stored", "given")},
        "at_iteration": said["iteration"],
        "iteration": iteration,
        "time": clock(said["text"]),
        "file": said["file"],
        "line": said["line"],
        "stream": said["stream"],
        "last": said["last"],
        "text": said["text"],
    }


def misfit(row: Mapping[str, Any]) -> str | None:
    """What of a checkpoint does not fit, in words."""
    if row["field"] and row["stored"]:
        return say(
            "{field} is {stored} in it and {given} in this run",
            field=row["field"],
            stored=row["stored"],
            given=row["given"] or "?",
        )
    message: str | None = row["message"]
    return message


def _harmless(
    said: Row,
    kind: str,
    tables: Mapping[str, pl.DataFrame],
    goes_on: Callable[[Row], bool],
    iteration: int | None,
) -> bool:
    """Whether the run went on behind a line: then it ended nobody."""
    group = CAUSES[kind].group
    if kind in _START_UP:
        return iteration is not None or _started(said, tables)
    if group in {"teardown", "advice", "information"}:
        return False
    if kind == "checkpoint_mismatch" and iteration is not None:
        return True  # a warning: what was loaded trains
    if said["iteration"] is not None and iteration is not None and iteration > said["iteration"]:
        return True
    if group == "machine" and _outlived(clock(said["text"]), tables, said["attempt"]):
        return True
    return said["kind"] not in _ELSEWHERE and goes_on({**said, "last_line": said["last"]})


def _started(said: Row, tables: Mapping[str, pl.DataFrame]) -> bool:
    """Whether the workers met: one printed what it does behind the rendezvous, or went on here."""
    here = pl.col("attempt") == said["attempt"]
    if any(tables[name].filter(here).height for name in _MET):
        return True
    mine = (pl.col("file") == said["file"]) & (pl.col("line") > said["last"])
    return any(tables[name].filter(mine).height for name in _WORKERS)


def _outlived(time: str | None, tables: Mapping[str, pl.DataFrame], attempt: int) -> bool:
    """Whether iterations finished long after a line of the driver: no rank waits for that GPU."""
    times = tables["iterations"].filter(pl.col("attempt") == attempt)["time"].drop_nulls()
    last = clock(str(times.max())) if times.len() else None
    return time is not None and last is not None and apart(time, last) > _OUTLIVED


def who(row: Mapping[str, Any]) -> str:
    """Whom a failure met, in words.

    >>> who({"rank": 3, "node": "gpu-node07"}), who({"rank": None, "node": None})
    ('rank 3 on gpu-node07', 'a rank that is not named')
    >>> who({"rank": None, "process": "local rank 1"})
    'local rank 1'
    """
    rank, node, device = row["rank"], row.get("node"), row.get("device")
    cause = row.get("cause")
    group = CAUSES[cause].group if cause else "own"
    name = row.get("process") if rank is None else say("rank {rank}", rank=rank)
    if name is None and cause == "gpu_lost" and device:
        name = say("GPU {device}", device=device.removeprefix("GPU "))
    if name is None and cause == "switch_failed":
        name = say("an NVSwitch")
    if name is None and node and group in {"machine", "scheduler"}:
        return say("node {node}", node=node)
    name = name or (say("the job") if group == "scheduler" else say("a rank that is not named"))
    if node and group in {"machine", "own"}:
        return say("{name} on {node}", name=name, node=node)
    return name
