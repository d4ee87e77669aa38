"""The ranks that others waited for.

A rank that waits is a victim. In this order the evidence names the others:

1. the watchdog of a rank ended by an error of the device;
2. ranks called different collectives, or the same with different sizes: those that a majority
   contradicts;
3. in one group, a rank enqueued fewer collectives than the one in which the others wait, or waits
   in an earlier one: it never entered. Where that is true of more than half, nobody is named. If it
   waits itself, in another group, the question moves on to that group;
4. c10d's desync report names it;
5. by the flight-recorder dumps, a rank did not enter what others wait in and waits in nothing
   itself; else its dump is missing where nearly all others wrote one;
6. ranks without a word of waiting where others wait, if they are at most a quarter of the world,
   the logs are whole, and these ranks are in them. A rank that was merely told of a time-out has
   said nothing of itself;
7. the rank whose own file ends long before those of all others (`oldest`).

If all that speak wait in the same place, a rank may be stuck outside, and nobody is named.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.analysis.members import members
from hcp_logscan.analysis.waits import UNKNOWN, counts_as_all
from hcp_logscan.model.said import say, say_n

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from hcp_logscan.analysis.activity import LastWords
    from hcp_logscan.analysis.disagreements import Disagreements
    from hcp_logscan.analysis.dumps import Dumps
    from hcp_logscan.analysis.waits import Group, Wait, Waits

SILENT_SHARE: Final = 4
"""Silent ranks are suspects if they are at most this fraction (a quarter) of the world."""

_SHOWN: Final = 8
"""Ranks that a sentence lists."""

_MOST_GROUPS: Final = 64
"""Groups that are looked at; the ranks of a large job wait in many."""


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Whose silence says something."""

    seen: frozenset[int] = frozenset()
    "Ranks that are told apart in the logs."

    counted: int | None = None
    "Ranks 0 to one less than this have files of their own, and no other rank is seen."

    one_console: bool = False
    "One node without files of single ranks: its console holds the words of all."

    whole: bool = True
    "No file is cut off or unreadable, no rank lacks its file, nothing was deduplicated."

    one_attempt: bool = True
    "There was one attempt: flight-recorder dumps are all of it."

    last: tuple[LastWords, ...] = ()
    "Of ranks with files of their own, the last line with a time."


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one attempt whose ranks waited in vain."""

    waits: Waits
    dumps: Dumps
    disagreements: Disagreements
    spoke: frozenset[int | None]
    "Ranks that raised an exception, which is an echo; None for one of unknown rank."

    config: Mapping[str, Any]
    "Facts of the configuration."

    witnesses: Witnesses


@dataclass(slots=True)
class Named:
    """Suspects, and why in words."""

    ranks: list[int] = field(default_factory=list)
    reason: str | None = None
    place: Mapping[str, Any] | None = None
    "File, line, text and time of the line that says so, where it is not one of a waiting rank."


def listed(ranks: Iterable[int]) -> str:
    """Ranks for a sentence.

    >>> listed([3]), listed([1, 2]), listed(range(20))
    ('rank 3', 'ranks 1, 2', 'ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more')
    """
    known = sorted(ranks)
    words = ", ".join(str(rank) for rank in known[:_SHOWN])
    if len(known) > _SHOWN:
        words = say("{shown} and {count} more", shown=words, count=len(known) - _SHOWN)
    return say_n("rank {ranks}", "ranks {ranks}", count=len(known), ranks=words)


def by_group(waits: Sequence[Wait]) -> list[list[Wait]]:
    """The waits of each group in which a process waited first: where most did so comes first.

    The first wait of a process stands first in its own log; later ones are of groups that stand
    still because of it. Waits whose group no line names stand behind.
    """
    first: dict[str, Wait] = {}
    groups: dict[Group, list[Wait]] = {}
    for wait in waits:
        first.setdefault(wait.process, wait)
        groups.setdefault(wait.group, []).append(wait)
    counts = Counter(wait.group for wait in first.values())
    ordered = sorted(counts, key=lambda group: (group == UNKNOWN, -counts[group]))
    return [groups[group] for group in ordered]


def blame(tables: Mapping[str, pl.DataFrame], known: Evidence) -> tuple[Named, list[Wait]]:
    """The suspects by the strongest evidence there is, and the waits that it is about."""
    groups = by_group(known.waits.waits)
    primary = groups[0] if groups else []
    if (named := _errors(known.waits)).reason:
        return named, primary
    if worst := known.disagreements.worst:
        return Named(worst.ranks, say("ranks disagree, {text}", text=worst.text)), primary
    named, primary = _never_entered(primary, known)
    if named.reason:
        return named, primary
    if (named := _by_report(known)).reason:
        return named, primary
    if (named := _by_dumps(known)).reason:
        return named, primary
    words = known.spoke | {wait.rank for wait in known.waits.waits} | known.waits.accused
    ranks = {rank for rank in words if rank is not None}
    if None in words:
        return Named(), primary
    for waits in [primary, *groups[:_MOST_GROUPS]]:
        if (named := _silent(ranks, known, members(tables, waits, known.config))).reason:
            return named, waits
    return Named(), primary


def unnamed(primary: Sequence[Wait]) -> str:
    """Why nobody is named."""
    ranks = {wait.rank for wait in primary}
    if None in ranks:
        return say("the lines do not say which ranks these are")
    places = {(wait.sequence, wait.operation) for wait in primary}
    if len(ranks) > 1 and len(places) == 1 and places != {(None, None)}:
        return say(
            "all {count} ranks that speak waited in the same place: a rank may be stuck outside of"
            " any collective, or the network; nothing names it",
            count=len(ranks),
        )
    return say("nothing in these logs says who did not come")


def _errors(waits: Waits) -> Named:
    """Ranks whose watchdog ended by an error of the device."""
    rows = [row for row in waits.errors if row["event_rank"] is not None]
    ranks = sorted({row["event_rank"] for row in rows})
    if not ranks:
        return Named()
    said = str(rows[0]["text"]).rpartition("thread terminated with exception: ")[2]
    why = say(
        "the watchdog of {ranks} ended by an error: {said}", ranks=listed(ranks), said=said[:120]
    )
    return Named(ranks, why)


def _never_entered(primary: list[Wait], known: Evidence) -> tuple[Named, list[Wait]]:
    """Who is behind in the first group, or in the group in which that rank waits itself."""
    first: dict[int | None, Wait] = {}
    for wait in known.waits.waits:
        first.setdefault(wait.rank, wait)
    visited: set[Group] = set()
    named = Named()
    while primary and primary[0].group not in visited and len(visited) < _MOST_GROUPS:
        visited.add(primary[0].group)
        named = _behind(primary, known)
        elsewhere = {
            rank: first[rank].group
            for rank in named.ranks
            if rank in first and first[rank].group not in visited
        }
        if len(elsewhere) < len(named.ranks) or not elsewhere:
            named.ranks = [rank for rank in named.ranks if rank not in elsewhere]
            break
        group = next(iter(elsewhere.values()))
        primary, named = [wait for wait in known.waits.waits if wait.group == group], Named()
    return named, primary


def _behind(primary: Sequence[Wait], known: Evidence) -> Named:
    """Ranks that never entered the collective in which the others of their group wait."""
    group = primary[0].group
    numbers = {
        wait.rank: wait.sequence
        for wait in reversed(primary)
        if wait.rank is not None and wait.sequence is not None and wait.compares
    }
    if group == UNKNOWN or group in known.waits.ambiguous or not numbers:
        return Named()
    last = max(numbers.values())
    enqueued = known.dumps.counters(group.guid, set(numbers))
    said = {rank: n for (one, rank), n in known.waits.counters.items() if one == group}
    if not any(said.get(rank, last) < number for rank, number in numbers.items()):
        enqueued |= said  # else the counters are those of send and receive
    behind = {rank for rank, number in numbers.items() if number < last}
    absent = {rank for rank, count in enqueued.items() if count < last} - behind
    named, everybody = behind | absent, numbers.keys() | enqueued.keys()
    if not named:
        return Named()
    if len(named) * 2 > len(everybody):
        return Named(
            [],
            say(
                "{waiting} waited in number {last}, which {behind} had not reached: one side ran a"
                " collective that the other did not, and the logs do not say which is right",
                waiting=listed(everybody - named),
                last=last,
                behind=listed(named),
            ),
        )
    if absent:
        count = max(enqueued[rank] for rank in absent)
        return Named(
            sorted(named),
            say(
                "{ranks} never entered number {last}, the last one enqueued there is {number}",
                ranks=listed(named),
                last=last,
                number=count,
            ),
        )
    mine = max(numbers[rank] for rank in behind)
    why = say(
        "{ranks} waited in number {mine}, the others in number {last}",
        ranks=listed(named),
        mine=mine,
        last=last,
    )
    return Named(sorted(named), why)


def _by_report(known: Evidence) -> Named:
    """Ranks that c10d's own reports name, where they count ranks as all are counted."""
    waits, world_size = known.waits, known.config.get("world_size")
    if len(waits.lagging) != 1 or not counts_as_all(waits.waits):
        return Named()
    ranks = sorted(next(iter(waits.lagging)))
    waiting = {wait.rank for wait in waits.waits}
    if not ranks or len(ranks) > len(waiting) or waiting & set(ranks):
        return Named()
    if world_size is not None and ranks[-1] >= world_size:
        return Named()
    why = say("c10d's desync report says that {ranks} did not join", ranks=listed(ranks))
    return Named(ranks, why)


def _by_dumps(known: Evidence) -> Named:
    dumps = known.dumps
    outside = dumps.outside()
    if outside and len(outside) * 2 <= len(dumps.ranks):
        guid, number, last = next(iter(outside.values()))
        return Named(
            sorted(outside),
            say(
                "the dumps show that {ranks} never entered number {number} of process group"
                " {guid}, its last one is {last}, and it waits in no other",
                ranks=listed(outside),
                number=number,
                guid=guid,
                last=last,
            ),
        )
    missing = dumps.missing
    if missing and len(missing) * SILENT_SHARE <= len(dumps.members):
        return Named(
            missing,
            say(
                "{ranks} wrote no flight-recorder dump, {others} others did",
                ranks=listed(missing),
                others=len(dumps.ranks),
            ),
        )
    return Named()


def silent(
    spoke: Iterable[int], world_size: int | None, witnesses: Witnesses, among: Iterable[int] = ()
) -> list[int]:
    """Ranks without a word where the others are victims, if they are at most a quarter.

    `among` are the members of the group that waits, empty where they are not known. Where nothing
    says how many ranks there are, those with files of their own count: there may be more, but the
    silence of one whose file is there is heard all the same.
    """
    words, members_known = set(spoke), set(among)
    world_size = world_size or witnesses.counted
    fewest = 1 if members_known else 2
    if world_size is None or len(words) < fewest or not witnesses.whole:
        return []
    quiet = (members_known or set(range(world_size))) - words
    if not witnesses.one_console and not quiet <= witnesses.seen:
        return []
    return sorted(quiet) if len(quiet) * SILENT_SHARE <= world_size else []


def _silent(spoke: set[int], known: Evidence, among: Iterable[int]) -> Named:
    ranks = silent(spoke, known.config.get("world_size"), known.witnesses, among)
    if not ranks:
        return Named()
    told = set(ranks) <= known.waits.notified
    how = (
        say_n(
            "{ranks} was only told of it",
            "{ranks} were only told of it",
            count=len(ranks),
            ranks=listed(ranks),
        )
        if told
        else say("{ranks} wrote no word of it", ranks=listed(ranks))
    )
    return Named(ranks, say("{ranks} waited in vain, and {how}", ranks=listed(spoke), how=how))
