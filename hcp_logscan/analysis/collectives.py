"""Collectives that never ended or did not fit: facts and failures of one attempt.

A rank that raised, crashed or was killed explains the time-outs of all the others. Where none did,
`suspects` says for whom they waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import dumps as recorder
from hcp_logscan.analysis import oldest
from hcp_logscan.analysis import waits as waiting
from hcp_logscan.analysis.clock import clock
from hcp_logscan.analysis.counted import counted, failed_only
from hcp_logscan.analysis.disagreements import Disagreements, compare
from hcp_logscan.analysis.dumps import Dumps
from hcp_logscan.analysis.runtime import LEVEL
from hcp_logscan.analysis.skew import NO_SKEW
from hcp_logscan.analysis.suspects import (
    Evidence,
    Named,
    Witnesses,
    blame,
    by_group,
    listed,
    unnamed,
)
from hcp_logscan.analysis.waits import Waits
from hcp_logscan.model.said import joined, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.analysis.skew import Skew
    from hcp_logscan.analysis.waits import Group, Wait

_SHOWN: Final = 3
"""Call sites that a sentence lists."""


@dataclass(frozen=True, slots=True)
class Collectives:
    """What became of the collectives of one attempt."""

    facts: Mapping[str, Any]
    "Facts of the table `attempts`."

    rows: tuple[dict[str, Any], ...] = ()
    "Rows of the fact table `failures`: the waits, and the suspects."

    suspects: tuple[int, ...] = ()


def examine(
    tables: Mapping[str, pl.DataFrame],
    attempt: int,
    failed: Sequence[Mapping[str, Any]],
    *,
    ended_well: bool,
    iteration: int | None,
    config: Mapping[str, Any],
    witnesses: Witnesses,
    clocks: Skew = NO_SKEW,
    hung: bool = False,
) -> Collectives:
    """What became of the collectives of one attempt.

    `failed` are the failures known so far, with their roles; `ended_well` says that the trainer
    came to its own end, so that time-outs are of no account; `config` holds the facts of the
    configuration; `hung` says that a scheduler ended a run that had stood still.
    """
    written = recorder.read(tables, attempt)
    usable = written if witnesses.one_attempt else Dumps()
    found, unlike = Waits(), Disagreements()
    if not ended_well:
        found = waiting.read(tables, attempt)
        unlike = compare(tables, attempt, found, usable)
    facts: dict[str, Any] = {
        **counted(found),
        "timeout_suspects": [],
        **unlike.facts(),
        **(usable if witnesses.one_attempt else Dumps(written.ranks)).facts(),
    }
    explained = any(row["role"] in {"root", "rejection"} for row in failed)
    echo = next((row for row in failed if row["role"] == "cascade"), None)
    named, primary = Named(), next(iter(by_group(found.waits)), [])
    if not explained and (found.processes or echo):
        spoke = frozenset(row["rank"] for row in failed if row["kind"] == "exception")
        known = Evidence(found, usable, unlike, spoke, config, witnesses)
        named, primary = blame(tables, known)
    if not explained and not named.reason and (found.processes or echo or hung):
        named = _oldest(tables, attempt, config, witnesses, clocks)
    if found.processes:
        facts.update(timeout_explained=explained, timeout_suspects=named.ranks)
        facts.update(described := _described(primary, found))
        facts["timeout_summary"] = _summary(described)
        if not explained:
            facts["timeout_call_sites"] = sites = _call_sites(tables, attempt)
            reason = named.reason or unnamed(primary)
            facts["timeout_reason"] = _with_sites(reason, sites)
    shown = primary[0].row if primary else echo
    rows = _rows(attempt, iteration, found, named, shown)
    return Collectives(facts, tuple(rows), tuple(named.ranks))


def _oldest(
    tables: Mapping[str, pl.DataFrame],
    attempt: int,
    config: Mapping[str, Any],
    witnesses: Witnesses,
    clocks: Skew,
) -> Named:
    """The rank that fell silent long before the others."""
    said = [one for one in witnesses.last if one.attempt == attempt]
    done = oldest.progress(tables, attempt, clocks)
    found = oldest.oldest(said, config.get("world_size"), done, clocks)
    if found is None:
        return Named()
    first, reason = found
    why = say("rank {rank} fell silent first: {reason}", rank=first.rank, reason=reason)
    return Named([first.rank], why, oldest.place(first))


def _with_sites(reason: str, sites: str | None) -> str:
    if sites is None:
        return reason
    return say("{reason}; the calls are {sites}", reason=reason, sites=sites)


def group_words(group: Group) -> str | None:
    """The group in words, with the level where it is one of hierarchical context parallelism."""
    if group.description is None:
        return None if group.guid is None else say("process group {guid}", guid=group.guid)
    if match := LEVEL.fullmatch(group.description):
        return say(
            "{group} (level L{level} of hierarchical context parallelism)",
            group=group.description,
            level=match[1],
        )
    return group.description


def _words(wait: Wait) -> str | None:
    """The collective by what is known of it; None if nothing is."""
    operation = wait.operation
    if operation and wait.sequence is not None:
        operation = f"{operation} #{wait.sequence}"
    if operation and wait.backend == "gloo":
        operation = f"gloo {operation}"
    group = group_words(wait.group)
    if operation and group:
        return say("{operation} in {group}", operation=operation, group=group)
    return operation or group


def _first_rank(waits: Sequence[Wait]) -> int | None:
    """The rank that waited first, where one file shows all of them."""
    waits = [wait for wait in waits if not wait.only_failed]
    ranks = {wait.rank for wait in waits}
    if None in ranks or len({wait.row["file"] for wait in waits}) > 1:
        return None if len(ranks) > 1 else ranks.pop()
    return min(waits, key=lambda wait: wait.row["line"]).rank if waits else None


def _call_sites(tables: Mapping[str, pl.DataFrame], attempt: int) -> str | None:
    """Where the program waits, rank by rank, in words; the first stack of each rank counts.

    The frames carry no prefix: the rank is that of their file, else of the line above them.
    """
    rows = tables["call_sites"].filter(pl.col("attempt") == attempt).sort("file", "line")
    if not rows.height:
        return None
    heads = {
        (file, line): rank
        for file, line, rank in tables["timeouts"]
        .drop_nulls("event_rank")
        .select("file", "line", "event_rank")
        .iter_rows()
    }
    sites: dict[int, str] = {}
    for file, first, rank, site in rows.select(
        "file", "first_line", "event_rank", "site"
    ).iter_rows():
        known = rank if rank is not None else heads.get((file, first - 1))
        if known is not None:
            sites.setdefault(known, site)
    places: dict[str, list[int]] = {}
    for rank, site in sites.items():
        places.setdefault(site, []).append(rank)
    ordered = sorted(places.items(), key=lambda one: (len(one[1]), one[1]))
    parts = (
        say("{ranks} at {site}", ranks=listed(ranks), site=site) for site, ranks in ordered[:_SHOWN]
    )
    return joined("; ", parts) or None


def _described(primary: Sequence[Wait], found: Waits) -> dict[str, Any]:
    """The collective that timed out first, as far as the lines say it."""
    if not primary:
        return {"timeout_rank": min(found.accused) if len(found.accused) == 1 else None}
    first = primary[0]
    limits = {wait.limit_ms for wait in primary} - {None}
    return {
        "timeout_ranks": sorted({w.rank for w in found.waits if w.rank is not None}),
        "timeout_told_ranks": sorted(found.notified - {wait.rank for wait in found.waits}),
        "timeout_rank": _first_rank(primary),
        "timeout_collective": _words(first),
        "timeout_backend": first.backend,
        "timeout_group": group_words(first.group),
        "timeout_operation": first.operation,
        "timeout_sequence": first.sequence,
        "timeout_limit_ms": limits.pop() if len(limits) == 1 else None,
    }


def _summary(described: Mapping[str, Any]) -> str:
    """What timed out, on which rank first and at which limit, as far as the lines say it."""
    rank, limit = described.get("timeout_rank"), described.get("timeout_limit_ms")
    words = [described.get("timeout_collective") or say("a collective that no line names")]
    words += [] if rank is None else [say("first on rank {rank}", rank=rank)]
    words += [] if limit is None else [say("limit {limit:,} ms", limit=limit)]
    return joined(", ", words)


def _rows(
    attempt: int,
    iteration: int | None,
    found: Waits,
    named: Named,
    shown: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """One row per process that waits, and one per suspect that does not."""
    rows: dict[str, dict[str, Any]] = {}
    only_failed = failed_only(found.waits)
    for wait in found.waits:
        role = "root" if wait.rank is not None and wait.rank in named.ranks else "cascade"
        own = {"kind": "timeout", "role": role, "rank": wait.rank, "message": _words(wait)}
        place = {name: wait.row[name] for name in ("file", "line", "text")}
        place |= {"time": clock(wait.row["text"]), "stream": wait.row["stream"]}
        failed = wait.process in only_failed
        common = {"attempt": attempt, "iteration": iteration, "only_failed": failed}
        rows.setdefault(wait.process, {**common, **own, **place})
    shown = named.place or shown
    place = {name: shown[name] if shown else None for name in ("file", "line", "text")}
    place["time"] = named.place["time"] if named.place else None
    suspects = [
        {
            "attempt": attempt,
            "kind": "suspect",
            "role": "root",
            "rank": rank,
            "message": named.reason,
            "iteration": iteration,
            **place,
        }
        for rank in named.ranks
        if f"rank {rank}" not in rows
    ]
    return [*rows.values(), *suspects]
