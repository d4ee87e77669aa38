"""Collectives that never ended: who waited, in which one, and who did not come.

A rank that waits is a victim. In this order the evidence names the others:

1. the watchdog of a rank ended by an error of the device;
2. in one group, a rank enqueued fewer collectives than the one in which the others wait, or waits
   in an earlier one: it never entered. Where that is true of more than half, nobody is named;
3. ranks without a word of waiting where others wait, if they are at most a quarter of the world,
   the logs are whole, and these ranks are in them. A rank that was merely told of a time-out has
   said nothing of itself;
4. a rank whose flight-recorder dump is the only one missing.

If all that speak wait in the same place, a rank may be stuck outside, and nobody is named. A rank
that raised, crashed or was killed explains the time-outs of all the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import waits as waiting
from hcp_logscan.analysis.runtime import LEVEL
from hcp_logscan.analysis.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.analysis.waits import Group, Wait

SILENT_SHARE: Final = 4
"""Silent ranks are suspects if they are at most this fraction (a quarter) of the world."""

_SHOWN: Final = 8
"""Ranks that a sentence lists."""


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Whose silence says something."""

    seen: frozenset[int] = frozenset()
    "Ranks that are told apart in the logs."

    one_node: bool = False
    "All local ranks are of one node: its console holds the words of all."

    whole: bool = True
    "No file is cut off or unreadable, no rank lacks its file, nothing was deduplicated."


@dataclass(frozen=True, slots=True)
class Collectives:
    """What became of the collectives of one attempt."""

    facts: Mapping[str, Any]
    "Facts of the table `attempts`."

    rows: tuple[dict[str, Any], ...] = ()
    "Rows of the fact table `failures`: the waits, and the suspects."

    suspects: tuple[int, ...] = ()


@dataclass(slots=True)
class _Named:
    """Suspects, and why in words."""

    ranks: list[int] = field(default_factory=list)
    reason: str | None = None


def listed(ranks: Iterable[int]) -> str:
    """Ranks for a sentence.

    >>> listed([3]), listed([1, 2]), listed(range(20))
    ('rank 3', 'ranks 1, 2', 'ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more')
    """
    known = sorted(ranks)
    words = ", ".join(str(rank) for rank in known[:_SHOWN])
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"rank {words}" if len(known) == 1 else f"ranks {words}{more}"


def group_words(group: Group) -> str | None:
    """The group in words, with the level where it is one of hierarchical context parallelism."""
    if group.description is None:
        return None if group.guid is None else f"process group {group.guid}"
    if match := LEVEL.fullmatch(group.description):
        return f"{group.description} (level L{match[1]} of hierarchical context parallelism)"
    return group.description


def _words(wait: Wait) -> str | None:
    """The collective by what is known of it; null if nothing is."""
    operation = wait.operation
    if operation and wait.sequence is not None:
        operation = f"{operation} #{wait.sequence}"
    group = group_words(wait.group)
    if operation and wait.backend == "gloo":
        operation = f"gloo {operation}"
    return " in ".join(word for word in (operation, group) if word) or None


def _primary(found: Sequence[Wait]) -> list[Wait]:
    """The waits of the group in which most processes waited first.

    The first wait of a process stands first in its own log; later ones are of groups that stand
    still because of it.
    """
    first: dict[str, Wait] = {}
    for wait in found:
        first.setdefault(wait.process, wait)
    counts: dict[Group, int] = {}
    for wait in first.values():
        counts[wait.group] = counts.get(wait.group, 0) + 1
    group = max(counts, key=lambda one: (one != waiting.UNKNOWN, counts[one]))
    return [wait for wait in found if wait.group == group]


def _first_rank(waits: Sequence[Wait]) -> int | None:
    """The rank that waited first, where one file shows all of them."""
    ranks = {wait.rank for wait in waits}
    if None in ranks or len({wait.row["file"] for wait in waits}) > 1:
        return None if len(ranks) > 1 else ranks.pop()
    return min(waits, key=lambda wait: wait.row["line"]).rank


def _behind(primary: Sequence[Wait], found: Waits) -> _Named:
    """Ranks that never entered the collective in which the others of their group wait."""
    group = primary[0].group
    numbers = {
        wait.rank: wait.sequence
        for wait in reversed(primary)
        if wait.rank is not None and wait.sequence is not None and wait.compares
    }
    if group == waiting.UNKNOWN or not numbers:
        return _Named()
    last = max(numbers.values())
    enqueued = {rank: count for (one, rank), count in found.counters.items() if one == group}
    behind = {rank for rank, number in numbers.items() if number < last}
    absent = {rank for rank, count in enqueued.items() if count < last} - behind
    named, known = behind | absent, numbers.keys() | enqueued.keys()
    if not named:
        return _Named()
    if len(named) * 2 > len(known):
        return _Named(
            [],
            f"{listed(known - named)} waited in number {last}, which {listed(named)} had not"
            " reached: one side ran a collective that the other did not, and the logs do not say"
            " which is right",
        )
    if absent:
        count = max(enqueued[rank] for rank in absent)
        why = f"never entered number {last}: the last collective it enqueued is {count}"
    else:
        why = f"waited in number {max(numbers[rank] for rank in behind)}, the others in {last}"
    return _Named(sorted(named), f"{listed(named)} {why}")


def silent(
    spoke: Iterable[int], world_size: int | None, witnesses: Witnesses, among: Iterable[int] = ()
) -> list[int]:
    """Ranks without a word where the others are victims, if they are at most a quarter.

    `among` are the members of the group that waits, empty where they are not known.
    """
    words = set(spoke)
    if world_size is None or len(words) < 2 or not witnesses.whole:
        return []
    members = set(among) or set(range(world_size))
    quiet = members - words
    if not witnesses.one_node and not quiet <= witnesses.seen:
        return []
    return sorted(quiet) if len(quiet) * SILENT_SHARE <= world_size else []


def _silent(
    spoke: set[int],
    notified: set[int],
    members: Iterable[int],
    world_size: int | None,
    witnesses: Witnesses,
) -> _Named:
    ranks = silent(spoke, world_size, witnesses, members)
    if not ranks:
        return _Named()
    verb = "was" if len(ranks) == 1 else "were"
    how = f"{verb} only told of it" if set(ranks) <= notified else "wrote no word of it"
    return _Named(ranks, f"{listed(spoke)} waited in vain, {listed(ranks)} {how}")


def _members(tables: Mapping[str, pl.DataFrame], group: Group) -> set[int]:
    """Members of a group as dumps or the lines of its creation show them; empty if not known."""
    if group.guid is None or group.is_default:
        return set()
    dumps = tables["dump_groups"].filter(pl.col("guid") == group.guid).drop_nulls("ranks")
    for members in dumps["ranks"].to_list():
        if members:
            return set(members)
    created = (
        tables["group_lines"]
        .filter((pl.col("kind") == "created") & (pl.col("guid") == group.guid))
        .drop_nulls(["global_rank", "size"])
    )
    ranks = set(created["global_rank"].to_list())
    return ranks if ranks and created["size"].max() == len(ranks) else set()


def _errors(found: Waits) -> _Named:
    """Ranks whose watchdog ended by an error of the device."""
    rows = [row for row in found.errors if row["event_rank"] is not None]
    ranks = sorted({row["event_rank"] for row in rows})
    if not ranks:
        return _Named()
    said = str(rows[0]["text"]).rpartition("thread terminated with exception: ")[2]
    return _Named(ranks, f"the watchdog of {listed(ranks)} ended by an error: {said[:120]}")


def _unnamed(primary: Sequence[Wait]) -> str:
    """Why nobody is named."""
    ranks = {wait.rank for wait in primary}
    if None in ranks:
        return "the lines do not say which ranks these are"
    if len(ranks) > 1 and len({(wait.sequence, wait.operation) for wait in primary}) == 1:
        return (
            f"all {len(ranks)} ranks that speak waited in the same place: a rank may be stuck"
            " outside of any collective, or the network; nothing names it"
        )
    return "nothing in these logs says who did not come"


def _rows(
    attempt: int,
    iteration: int | None,
    found: Waits,
    named: _Named,
    shown: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """One row per process that waits, and one per suspect."""
    rows: dict[str, dict[str, Any]] = {}
    for wait in found.waits:
        rows.setdefault(
            wait.process,
            {
                "attempt": attempt,
                "kind": "timeout",
                "role": "root" if wait.rank in named.ranks else "cascade",
                "rank": wait.rank,
                "message": _words(wait),
                "iteration": iteration,
                **{name: wait.row[name] for name in ("file", "line", "text")},
            },
        )
    place = {name: shown[name] if shown else None for name in ("file", "line", "text")}
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


def examine(
    tables: Mapping[str, pl.DataFrame],
    attempt: int,
    failed: Sequence[Mapping[str, Any]],
    *,
    ended_well: bool,
    iteration: int | None,
    world_size: int | None,
    witnesses: Witnesses,
) -> Collectives:
    """What became of the collectives of one attempt.

    `failed` are the failures known so far, with their roles; `ended_well` says that the trainer
    came to its own end, so that time-outs are of no account.
    """
    found = Waits() if ended_well else waiting.read(tables, attempt)
    facts: dict[str, Any] = {"collective_timeouts": len(found.processes), "timeout_suspects": []}
    explained = any(row["role"] in {"root", "rejection"} for row in failed)
    spoke = {row["rank"] for row in failed if row["kind"] == "exception"}
    primary = _primary(found.waits) if found.waits else []
    named = _Named()
    if not explained:
        named = _blame(tables, found, primary, spoke, world_size, witnesses)
    if not found.processes:
        shown = next((row for row in failed if row["role"] == "cascade"), None)
        rows = _rows(attempt, iteration, found, named, shown)
        return Collectives(facts, tuple(rows), tuple(named.ranks))
    facts.update(timeout_explained=explained, timeout_suspects=named.ranks)
    facts.update(_described(primary, found))
    if not explained:
        facts["timeout_reason"] = named.reason or _unnamed(primary)
    shown = primary[0].row if primary else None
    rows = _rows(attempt, iteration, found, named, shown)
    return Collectives(facts, tuple(rows), tuple(named.ranks))


def _blame(
    tables: Mapping[str, pl.DataFrame],
    found: Waits,
    primary: Sequence[Wait],
    spoke: set[int | None],
    world_size: int | None,
    witnesses: Witnesses,
) -> _Named:
    """The suspects by the strongest evidence there is."""
    named = _errors(found)
    if not named.reason and primary:
        named = _behind(primary, found)
    if named.reason:
        return named
    words = spoke | {wait.rank for wait in found.waits}
    ranks = {rank for rank in words if rank is not None}
    if None in words:
        return _Named()
    members = _members(tables, primary[0].group) if primary else set()
    return _silent(ranks, found.notified, members, world_size, witnesses)


def _described(primary: Sequence[Wait], found: Waits) -> dict[str, Any]:
    """The collective that timed out first, as far as the lines say it."""
    if not primary:
        return {"timeout_rank": min(found.accused) if len(found.accused) == 1 else None}
    first = primary[0]
    limits = {wait.limit_ms for wait in primary} - {None}
    return {
        "timeout_rank": _first_rank(primary),
        "timeout_collective": _words(first),
        "timeout_backend": first.backend,
        "timeout_group": group_words(first.group),
        "timeout_operation": first.operation,
        "timeout_sequence": first.sequence,
        "timeout_limit_ms": limits.pop() if len(limits) == 1 else None,
    }
