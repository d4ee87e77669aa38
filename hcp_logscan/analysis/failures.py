"""What broke, rank by rank, and which of it can be the first cause.

Roles: an exception that only echoes another rank's end (connection closed, time-out, aborted
communicator) is *cascade*; a process the launcher stopped is *teardown*; a start-up check is a
*rejection*; a process that a named cause ended is its *confirmation*; what a library suggests is
*advice*; what is left is a *root* candidate. `cause_rows` adds the causes that single lines state,
`roles` weighs all of them. Where every rank that speaks is a victim, `suspects` names the ranks
that the others waited for.

Handled tracebacks do not count: one that Python itself introduces as ignored or as a thread's, one
after which its rank goes on training, and any in an attempt that came to its own end without a
process that failed.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import causes, collectives, oldest, waits
from hcp_logscan.analysis.attempts import LAUNCHER_ERRORS
from hcp_logscan.analysis.cause_rows import attach, cause_rows, misfit, who
from hcp_logscan.analysis.clock import clock, clock_at, zone_of
from hcp_logscan.analysis.facts import FAILURE_FACTS
from hcp_logscan.analysis.handled import handled
from hcp_logscan.analysis.phase import Reached, phase
from hcp_logscan.analysis.progress import saved_after
from hcp_logscan.analysis.roles import (
    dismiss,
    first_root,
    matches,
    moment,
    of_scheduler,
    outlast,
    rivals,
    settle,
)
from hcp_logscan.analysis.skew import NO_SKEW
from hcp_logscan.model.said import say
from hcp_logscan.parsers.tracebacks import BARE_CHECKS, CHECKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.analysis.handled import Handled
    from hcp_logscan.analysis.skew import Skew
    from hcp_logscan.analysis.suspects import Witnesses

_CASCADE: Final = (
    r"(?i)connection (?:closed|reset|was likely closed|refused)|broken pipe|timed? ?out"
    r"|communicator was aborted|remote process (?:exited|closed)|ncclRemoteError|recvValue failed"
    r"|watchdog|socketStartConnect|peer is dead|failed to recv|TCPStore"
    r"|process group.*(?:abort|shut ?down|destroyed)|DistNetworkError|SIGTERM|worker crash"
    r"|Detected mismatch between collectives|monitored ?barrier"
)
_CASCADE_EXCEPTIONS: Final = (
    r"DistNetworkError|DistStoreError|SignalException|ProcessExitedException|ActorDiedError"
    r"|ConnectionResetError|BrokenPipeError"
)
_TOLERATED: Final = r"No space left on device|quota exceeded"
"""Where nothing else says that anybody ended: caches and metrics that cannot be written."""

_USER_STOP: Final = ("KeyboardInterrupt", "SystemExit")
_CRASHES: Final = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL"})


_FILLED: Final = frozenset({"host_oom", "shared_memory"})
"""Causes that dataloader workers have a part in: each holds memory of its own, and passes batches
through /dev/shm."""


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of one attempt."""

    rows: tuple[Mapping[str, Any], ...]
    "Rows of the fact table `failures`, with file, line, text."

    culprits: tuple[int, ...] = ()
    elastic_root_rank: int | None = None
    elastic_root_role: str | None = None
    first: Mapping[str, Any] | None = None
    "The first root exception."

    facts: Mapping[str, Any] = field(default_factory=dict)
    "Facts about collectives, of the table `attempts`."

    cause: Mapping[str, Any] | None = None
    "The first root of any kind."

    rivals: tuple[Mapping[str, Any], ...] = ()
    "Other roots of which nothing tells whether they came before it."


def workers_hint(workers: int | None, local_to_rank: Mapping[int, int]) -> str:
    """The dataloader workers of a node in words: what is configured, and no claim.

    `local_to_rank` holds the ranks of the node where there is one.

    >>> workers_hint(128, dict.fromkeys(range(8), 0)), workers_hint(2, {}), workers_hint(0, {})
    ('(num_workers 128, x 8 ranks on the node: 1024)', '(num_workers 2 per rank)', '')
    """
    if not workers or workers < 0:
        return ""
    ranks = len(local_to_rank)
    if ranks < 2 or max(local_to_rank) != ranks - 1:
        return say("(num_workers {workers} per rank)", workers=workers)
    return say(
        "(num_workers {workers}, x {ranks} ranks on the node: {all})",
        workers=workers,
        ranks=ranks,
        all=workers * ranks,
    )


def check_of(exception: str | None, message: str | None, source: str | None) -> str | None:
    """Which start-up check of the CP configuration an exception is, None if it is none."""
    if message:
        return _match(CHECKS, message)
    if exception == "AssertionError" and source:
        return _match(BARE_CHECKS, source)
    return None


def _match(checks: Mapping[str, str], text: str) -> str | None:
    frame = pl.Series([text])
    return next((name for name, regex in checks.items() if frame.str.contains(regex)[0]), None)


def signal_name(exit_code: int | None) -> str | None:
    """SIGKILL for -9; None for codes that are no signal.

    >>> signal_name(-9), signal_name(1), signal_name(137)
    ('SIGKILL', None, 'SIGKILL')
    """
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - 128 if 128 < exit_code < 160 else 0
    try:
        return signal.Signals(number).name
    except ValueError:
        return None


def _ended_well(tables: Mapping[str, pl.DataFrame], attempt: int) -> bool:
    """Whether the trainer came to its own end and no process is known to have failed."""
    here = pl.col("attempt") == attempt
    marks = set(tables["marks"].filter(here)["kind"].to_list())
    codes = tables["exits"].filter(here)["exit_code"].drop_nulls()
    done = marks & {"training_done", "planned_exit", "signal_exit"}
    return bool(done) and not (codes != 0).any()


def _exceptions(
    tables: Mapping[str, pl.DataFrame], attempt: int, lived: Handled
) -> list[dict[str, Any]]:
    """Uncaught exceptions of workers, one per rank where ranks can be told apart."""
    launcher = pl.col("exception").str.contains("|".join((*LAUNCHER_ERRORS, *_USER_STOP)))
    rows = tables["tracebacks"].filter(
        (pl.col("attempt") == attempt)
        & pl.col("exception").is_not_null()
        & ~pl.col("chained").fill_null(value=False)
        & ~launcher.fill_null(value=False)
    )
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    # the log shows more than the error file, which knows when
    for row in rows.sort("recorded", nulls_last=False, maintain_order=True).iter_rows(named=True):
        if lived.introduced(row) or lived.goes_on(row):
            continue
        who = row["process"] or (row["file"], row["line"])
        kept = found.setdefault((who, row["exception"], row["message"]), row)
        kept["recorded"] = kept["recorded"] or row["recorded"]
    return _without_copies(list(found.values()))


def _without_copies(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop rows of unknown processes that repeat the text of rows of known ones: console copies.

    Of several files that tell no process the one with most rows speaks for all of them.
    """
    known = [row for row in rows if row["process"] is not None]
    said = {(row["exception"], row["message"], row["last_source"]) for row in known}
    unknown = [
        row
        for row in rows
        if row["process"] is None
        and (row["exception"], row["message"], row["last_source"]) not in said
    ]
    per_file: dict[int, list[dict[str, Any]]] = {}
    for row in unknown:
        per_file.setdefault(row["file"], []).append(row)
    fullest = max(per_file.values(), key=len, default=[])
    texts = {(row["exception"], row["message"]) for row in fullest}
    rest = [
        row
        for rows_of_file in per_file.values()
        if rows_of_file is not fullest
        for row in rows_of_file
        if (row["exception"], row["message"]) not in texts
    ]
    return [*known, *fullest, *rest]


def _console_order(
    tables: Mapping[str, pl.DataFrame], attempt: int, rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Rows in the order of the file that shows the tracebacks of most ranks; the others behind."""
    raised = tables["tracebacks"].filter(pl.col("attempt") == attempt)
    counts = raised.group_by("file", maintain_order=True).agg(pl.col("event_rank").n_unique())
    if not counts.height:
        return list(rows)
    console = counts.sort("event_rank", descending=True, maintain_order=True)["file"][0]
    order = {
        (rank, exception): line
        for rank, exception, line in raised.filter(pl.col("file") == console)
        .sort("line", descending=True)
        .select("event_rank", "exception", "line")
        .iter_rows()
    }
    far = 1 << 60
    for row in rows:
        row["console"] = order.get((row["event_rank"], row["exception"]))

    def key(row: dict[str, Any]) -> tuple[int, int, int]:
        at, rank = row["console"], row["event_rank"]
        return (far if at is None else at, far if rank is None else rank, row["line"])

    return sorted(rows, key=key)


def _zone(
    tables: Mapping[str, pl.DataFrame], attempt: int, traces: Sequence[Mapping[str, Any]]
) -> int | None:
    """Seconds by which the clock of these logs is ahead of UTC; None where nothing tells.

    torchelastic's table shows in its own zone the very second that an error file holds.
    """
    exits = tables["exits"].filter(pl.col("attempt") == attempt).drop_nulls(["rank", "time"])
    shown = dict(exits.select("rank", "time").iter_rows())
    recorded = {trace["event_rank"]: trace["recorded"] for trace in traces if trace["recorded"]}
    zones = {zone_of(shown[rank], at) for rank, at in recorded.items() if rank in shown}
    return zones.pop() if len(zones) == 1 else None


def _exception_rows(
    tables: Mapping[str, pl.DataFrame], attempt: int, iteration: int | None, lived: Handled
) -> list[dict[str, Any]]:
    traces = _console_order(tables, attempt, _exceptions(tables, attempt, lived))
    if all(trace["recorded"] for trace in traces):
        traces.sort(key=lambda trace: int(trace["recorded"]))
    zone = _zone(tables, attempt, traces)
    said = causes.read([trace["text"] or "" for trace in traces])
    rows = []
    for trace, cause in zip(traces, said, strict=True):
        row = {
            "attempt": attempt,
            "kind": "exception",
            "rank": trace["event_rank"],
            "process": trace["process"],
            "exception_type": trace["exception"],
            "message": trace["message"],
            "check": check_of(
                trace["exception"].rpartition(".")[2], trace["message"], trace["last_source"]
            ),
            "where": trace["innermost"],
            "stage": trace["stage"],
            "stream": trace["stream"],
            "console": trace["console"],
            "iteration": iteration,
            "time": clock_at(trace["recorded"], zone),
            "file": trace["file"],
            "line": trace["line"],
            "text": trace["text"],
        }
        attach(row, cause, trace)
        rows.append(row)
    return rows


def _first_role(row: Mapping[str, Any]) -> str:
    """The role of an exception as it stands, before the others are weighed against it."""
    group = causes.CAUSES[row["cause"]].group if row.get("cause") else None
    if row["check"] and not row["iteration"]:
        return "rejection"
    if group == "information":
        return "confirmation"
    if group == "start-up" and row["iteration"] is None:
        return "root"
    if group in {"own", "machine"}:
        return "root"
    echo = matches(_CASCADE_EXCEPTIONS, row["exception_type"]) or matches(_CASCADE, row["message"])
    return "cascade" if echo else "root"


def _exit_rows(
    tables: Mapping[str, pl.DataFrame],
    attempt: int,
    iteration: int | None,
    local_to_rank: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Ends of processes, one per process id: the table's row goes before the agent's line."""
    exits = tables["exits"].filter(pl.col("attempt") == attempt)
    stopped = set(exits.filter(pl.col("kind") == "stopped")["pid"].to_list())
    aborted = _aborted(tables, attempt)
    timed_out = tables["timeouts"].filter(pl.col("attempt") == attempt).height > 0
    crashed = waits.crashed(tables, attempt)
    order = {"table_root": 0, "table_row": 1, "failed_line": 2, "process_exit": 3, "srun_exit": 4}
    ended = [row for row in exits.iter_rows(named=True) if row["kind"] in order]
    found: dict[Any, dict[str, Any]] = {}
    for row in sorted(ended, key=lambda row: order[row["kind"]]):
        found.setdefault(row["pid"] or (row["file"], row["line"]), row)
    rows = []
    for row in found.values():
        name = signal_name(row["exit_code"])
        rank = row["rank"]
        if rank is None and row["failed_local_rank"] is not None:
            rank = local_to_rank.get(row["failed_local_rank"])
        late = row["kind"] == "srun_exit" and row["line"] > aborted.get(row["file"], row["line"])
        if name == "SIGABRT" and timed_out and rank not in crashed:
            role = "cascade"  # the watchdog aborts its own process after a time-out
        elif late or (row["pid"] is not None and row["pid"] in stopped) or name == "SIGTERM":
            role = "teardown"
        elif name in _CRASHES:
            role = "root"
        else:
            role = None  # an exit code says that something failed, not what
        rows.append(
            {
                "attempt": attempt,
                "kind": "exit",
                "role": role,
                "rank": rank,
                "message": row["message"],
                "exit_code": row["exit_code"],
                "signal": name,
                "pid": row["pid"],
                "node": row["host"],
                "time": clock(row["time"] or row["text"]),
                "iteration": iteration,
                "file": row["file"],
                "line": row["line"],
                "stream": row["stream"],
                "text": row["text"],
                "elastic": row["kind"],
            }
        )
    return rows


def _aborted(tables: Mapping[str, pl.DataFrame], attempt: int) -> dict[int, int]:
    """Line of each file at which srun began to end the step: what ends behind it is its doing."""
    here = (pl.col("attempt") == attempt) & (pl.col("kind") == "step_aborted")
    return dict(tables["causes"].filter(here).select("file", "line").iter_rows())


def failures(
    tables: Mapping[str, pl.DataFrame],
    attempt: int,
    *,
    now: Reached,
    config: Mapping[str, Any],
    local_to_rank: Mapping[int, int],
    witnesses: Witnesses,
    clocks: Skew = NO_SKEW,
) -> Failures:
    """The failures of one attempt that had reached `now`, the first root exception first.

    `config` holds the facts of the configuration.
    """
    rows: list[dict[str, Any]] = []
    ended_well = _ended_well(tables, attempt)
    if not ended_well:
        lived = handled(tables, attempt)
        rows = _exception_rows(tables, attempt, now.iteration, lived)
        rows += cause_rows(tables, attempt, rows, lived.goes_on, iteration=now.iteration)
    for row in rows:
        row["role"] = row.get("role") or _first_role(row)
    rows += _exit_rows(tables, attempt, now.iteration, local_to_rank)
    if all(row["kind"] == "cause" for row in rows):
        for row in rows:
            if matches(_TOLERATED, row["text"]):
                row["role"] = "confirmation"
    _set_clocks(rows, clocks)
    settle(rows)
    if now.state == "exit":
        dismiss(rows)
    stuck = collectives.examine(
        tables,
        attempt,
        [row for row in rows if not of_scheduler(row)],  # it ends what hangs
        ended_well=ended_well,
        iteration=now.iteration,
        config=config,
        witnesses=witnesses,
        clocks=clocks,
        hung=now.state == "training" and _hung(tables, attempt, rows, clocks),
    )
    _set_clocks(stuck.rows, clocks)
    outlast(rows, stuck.rows)
    rows += stuck.rows
    for row in rows:
        row["phase"], row["during"] = phase(row, now)
        if row.get("cause") == "checkpoint_mismatch":
            row["detail"] = misfit(row)
        row["culprit"], row["who"] = _culprit(row), who(row)
        if row.get("cause") in _FILLED:
            row["workers_hint"] = workers_hint(config.get("num_workers"), local_to_rank)
        if of_scheduler(row):
            row["saved_after"] = saved_after(tables, row)
    cause = first_root(rows)
    rows.sort(key=lambda row: row is not cause)  # rules name the first row, as the story does
    culprits = sorted({row["culprit"] for row in rows} - {None})
    root = next((row for row in rows if row.get("elastic") == "table_root"), None) or next(
        (row for row in rows if row.get("elastic") == "failed_line"), None
    )
    root_rank = root["rank"] if root else None
    role = None
    if root_rank is not None and culprits:
        role = "root" if root_rank in culprits else "victim"
    first = next(
        (row for row in rows if row["role"] == "root" and row["kind"] == "exception"), None
    )
    return Failures(
        tuple(rows),
        tuple(culprits),
        root_rank,
        role,
        first,
        stuck.facts,
        cause,
        tuple(rivals(cause, rows, clocks)) if cause else (),
    )


def _hung(
    tables: Mapping[str, pl.DataFrame], attempt: int, rows: Sequence[dict[str, Any]], clocks: Skew
) -> bool:
    """Whether a scheduler ended a run that had stood still for long."""
    ended = [time for row in rows if of_scheduler(row) and (time := moment(row))]
    return bool(ended) and oldest.hung(oldest.progress(tables, attempt, clocks), ended)


def _set_clocks(rows: Iterable[dict[str, Any]], clocks: Skew) -> None:
    """Say in rows whose clock their time is of, and what that time is on the common clock."""
    for row in rows:
        row["at_node"] = clocks.node(row["file"], row.get("stream"))
        row["clock"] = clocks.correct(row.get("time"), row["at_node"])


def _culprit(row: Mapping[str, Any]) -> int | None:
    """The rank that a row accuses: none where it only speaks of what it met, such as no master."""
    if row["role"] != "root":
        return None
    met = row.get("cause") and causes.CAUSES[row["cause"]].group in {"start-up", "scheduler"}
    return None if met or row.get("cause") == "dns" else row["rank"]


def frame(found: Sequence[Failures]) -> pl.DataFrame:
    """The fact table `failures` of all attempts, with file, line and text."""
    schema = {
        **{name: fact.dtype for name, fact in FAILURE_FACTS.items()},
        "file": pl.Int64(),
        "line": pl.Int64(),
        "text": pl.String(),
    }
    rows = [{name: row.get(name) for name in schema} for failed in found for row in failed.rows]
    return pl.DataFrame(rows, schema=schema)
