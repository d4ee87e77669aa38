"""What broke, rank by rank, and which of it can be the first cause.

Roles: an exception that only echoes another rank's end (connection closed, time-out, aborted
communicator) is *cascade*; a process the launcher stopped is *teardown*; a start-up check is a
*rejection*; what is left is a *root* candidate. Where every rank that speaks is a victim,
`suspects` names the ranks that the others waited for.

Handled tracebacks do not count: one that Python itself introduces as ignored or as a thread's, one
after which its rank goes on training, and any in an attempt that came to its own end without a
process that failed.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import collectives, waits
from hcp_logscan.analysis.attempts import LAUNCHER_ERRORS
from hcp_logscan.analysis.facts import FAILURE_FACTS
from hcp_logscan.parsers.tracebacks import BARE_CHECKS, CHECKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
_WEAK: Final = r"(?i)\bnccl|gloo|c10d|DistBackendError"
"""Collective errors: an echo where a process was killed by a signal or another exception stands."""

_USER_STOP: Final = ("KeyboardInterrupt", "SystemExit")
_INTRODUCTION: Final = 8
"""Lines between an introduction and its traceback, of all streams that share the file."""

_MERGED_TAIL: Final = 2
"""Lines of progress that may still arrive behind a fatal traceback where ranks share one stream."""

_CRASHES: Final = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL"})


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


def _goes_on(tables: Mapping[str, pl.DataFrame], attempt: int, row: Mapping[str, Any]) -> bool:
    """Whether the rank of a traceback trains on behind it."""
    here = (pl.col("attempt") == attempt) & (pl.col("file") == row["file"])
    rank = row["event_rank"]
    mine = here if rank is None else here & (pl.col("event_rank") == rank)
    later = 0
    for table in waits.GOES_ON:
        frame = tables[table].filter(mine)
        later += frame.filter(pl.col("line") > row["last_line"]).height
        if "last" in frame.columns and rank is not None:
            # rows are folded: the last of them may stand behind, though the first does not
            spans = (pl.col("line") <= row["last_line"]) & (pl.col("last") > row["last_line"])
            later += frame.filter(spans).height
    return later > (0 if rank is not None else _MERGED_TAIL)


def _introduced(tables: Mapping[str, pl.DataFrame], row: Mapping[str, Any]) -> bool:
    """Whether a line just above, in the same stream, says that this traceback ends nobody."""
    first = row["first_line"]
    above = tables["handled"].filter(
        (pl.col("file") == row["file"])
        & (pl.col("stream") == row["stream"])
        & (pl.col("line") < first)
        & (pl.col("line") >= first - _INTRODUCTION)
    )
    return above.height > 0


def _ended_well(tables: Mapping[str, pl.DataFrame], attempt: int) -> bool:
    """Whether the trainer came to its own end and no process is known to have failed."""
    here = pl.col("attempt") == attempt
    marks = set(tables["marks"].filter(here)["kind"].to_list())
    codes = tables["exits"].filter(here)["exit_code"].drop_nulls()
    done = marks & {"training_done", "planned_exit", "signal_exit"}
    return bool(done) and not (codes != 0).any()


def _exceptions(tables: Mapping[str, pl.DataFrame], attempt: int) -> list[dict[str, Any]]:
    """Uncaught exceptions of workers, one per rank where ranks can be told apart."""
    if _ended_well(tables, attempt):
        return []
    launcher = pl.col("exception").str.contains("|".join((*LAUNCHER_ERRORS, *_USER_STOP)))
    rows = tables["tracebacks"].filter(
        (pl.col("attempt") == attempt)
        & pl.col("exception").is_not_null()
        & ~pl.col("chained").fill_null(value=False)
        & ~launcher.fill_null(value=False)
    )
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        if _introduced(tables, row) or _goes_on(tables, attempt, row):
            continue
        who = row["event_rank"] if row["event_rank"] is not None else (row["file"], row["line"])
        found.setdefault((who, row["exception"], row["message"]), row)
    return _without_copies(list(found.values()))


def _without_copies(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop rows of unknown rank that repeat the text of rows of known rank: console copies.

    Of several files without ranks the one with most rows speaks for all of them.
    """
    known = [row for row in rows if row["event_rank"] is not None]
    said = {(row["exception"], row["message"], row["last_source"]) for row in known}
    unknown = [
        row
        for row in rows
        if row["event_rank"] is None
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

    def key(row: dict[str, Any]) -> tuple[int, int, int]:
        at = order.get((row["event_rank"], row["exception"]), far)
        rank = row["event_rank"]
        return (at, far if rank is None else rank, row["line"])

    return sorted(rows, key=key)


def _is(regex: str, text: str | None) -> bool:
    return bool(text) and bool(pl.Series([text]).str.contains(regex)[0])


def _exception_rows(
    tables: Mapping[str, pl.DataFrame], attempt: int, iteration: int | None
) -> list[dict[str, Any]]:
    rows = []
    for row in _console_order(tables, attempt, _exceptions(tables, attempt)):
        name, message = row["exception"], row["message"]
        check = check_of(name.rpartition(".")[2], message, row["last_source"])
        if check and not iteration:
            role = "rejection"
        elif _is(_CASCADE_EXCEPTIONS, name) or _is(_CASCADE, message):
            role = "cascade"
        else:
            role = "root"
        rows.append(
            {
                "attempt": attempt,
                "kind": "exception",
                "role": role,
                "rank": row["event_rank"],
                "exception_type": name,
                "message": message,
                "check": check,
                "iteration": iteration,
                "file": row["file"],
                "line": row["line"],
                "text": row["text"],
            }
        )
    return rows


def _exit_rows(
    tables: Mapping[str, pl.DataFrame],
    attempt: int,
    iteration: int | None,
    local_to_rank: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Ends of processes, one per process id: the table's row goes before the agent's line."""
    exits = tables["exits"].filter(pl.col("attempt") == attempt)
    stopped = set(exits.filter(pl.col("kind") == "stopped")["pid"].to_list())
    killers = tables["killers"].filter(pl.col("attempt") == attempt)
    timed_out = tables["timeouts"].filter(pl.col("attempt") == attempt).height > 0
    crashed = waits.crashed(tables, attempt)
    order = {"table_root": 0, "table_row": 1, "failed_line": 2}
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
        if row["pid"] in stopped or name == "SIGTERM":
            role = "teardown"
        elif name == "SIGABRT" and timed_out and rank not in crashed:
            role = "cascade"  # the watchdog aborts its own process after a time-out
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
                "kill_explained": killers.height > 0,
                "iteration": iteration,
                "file": row["file"],
                "line": row["line"],
                "text": row["text"],
                "elastic": row["kind"],
            }
        )
    return rows


def _soften(rows: list[dict[str, Any]]) -> None:
    """A collective's error is an echo where another rank was killed or failed by itself."""
    strong = [
        row
        for row in rows
        if row["role"] == "root"
        and (row["kind"] == "exit" or not _is(_WEAK, f"{row['exception_type']}: {row['message']}"))
    ]
    if not strong:
        return
    for row in rows:
        text = f"{row.get('exception_type')}: {row['message']}"
        if row["role"] == "root" and row["kind"] == "exception" and _is(_WEAK, text):
            row["role"] = "cascade"


def failures(
    tables: Mapping[str, pl.DataFrame],
    attempt: int,
    *,
    last_iteration: int | None,
    config: Mapping[str, Any],
    local_to_rank: Mapping[int, int],
    witnesses: Witnesses,
) -> Failures:
    """The failures of one attempt, the first root exception first.

    `config` holds the facts of the configuration.
    """
    rows = _exception_rows(tables, attempt, last_iteration)
    rows += _exit_rows(tables, attempt, last_iteration, local_to_rank)
    _soften(rows)
    stuck = collectives.examine(
        tables,
        attempt,
        rows,
        ended_well=_ended_well(tables, attempt),
        iteration=last_iteration,
        config=config,
        witnesses=witnesses,
    )
    rows += stuck.rows
    culprits = sorted({row["rank"] for row in rows if row["role"] == "root"} - {None})
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
    return Failures(tuple(rows), tuple(culprits), root_rank, role, first, stuck.facts)


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
