"""Ranks that call different collectives, or the same one with different sizes.

Compared are calls of the same number in the same group: of watchdog lines, of flight-recorder dumps
and of the fingerprints of ``TORCH_DISTRIBUTED_DEBUG=DETAIL``. Different numbers alone are a rank
that is behind. Sizes are compared where all ranks must pass the same: all-to-all, gather, scatter
and lists of tensors may differ rightly. The odd ones are those that a majority contradicts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.waits import UNKNOWN, counts_as_all
from hcp_logscan.model.said import joined, say, say_n

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hcp_logscan.analysis.dumps import Dumps, Key
    from hcp_logscan.analysis.waits import Wait, Waits

_EQUAL_SIZES: Final = frozenset(
    {"allreduce", "broadcast", "reduce", "allgatherbase", "reducescatterbase"}
)
"""Operations that need the same size on all ranks, in letters only."""

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class _Call:
    rank: int | None
    operation: str
    size: str | None
    "What must be equal, as printed; None where it is not known."


@dataclass(slots=True)
class Disagreement:
    """One kind of disagreement: None where nothing could be compared."""

    found: bool | None = None
    ranks: list[int] = field(default_factory=list)
    "The odd ones; empty where no majority contradicts them."

    text: str | None = None


@dataclass(slots=True)
class Disagreements:
    """What ranks disagree about."""

    sizes: Disagreement = field(default_factory=Disagreement)
    operations: Disagreement = field(default_factory=Disagreement)

    def facts(self) -> dict[str, Any]:
        """Facts of the table `attempts`."""
        return {
            f"{name}_{what}": value
            for name, one in (
                ("size_mismatch", self.sizes),
                ("operation_mismatch", self.operations),
            )
            for what, value in (("found", one.found), ("ranks", one.ranks), ("text", one.text))
        }

    @property
    def worst(self) -> Disagreement | None:
        """The one that explains a time-out, if there is one."""
        return next((one for one in (self.operations, self.sizes) if one.found), None)


def _plain(operation: str) -> str:
    """`_ALLGATHER_BASE` and `_all_gather_base` alike."""
    return "".join(letter for letter in operation.lower() if letter.isalnum())


def compare(
    tables: Mapping[str, pl.DataFrame], attempt: int, waits: Waits, dumps: Dumps
) -> Disagreements:
    """Everything that can be compared in one attempt."""
    found = Disagreements()
    prints = tables["mismatches"].filter(pl.col("attempt") == attempt)
    if prints.height:
        _fingerprints(found, prints)
    sure = [wait for wait in waits.waits if wait.group not in waits.ambiguous]
    for label, calls in (*_from_waits(sure), *_from_dumps(dumps)):
        _judge(found, label, calls)
    return found


def _judge(found: Disagreements, label: str, calls: Sequence[_Call]) -> None:
    """Compare the calls of one number in one group."""
    if len({call.rank for call in calls}) < 2:
        return
    if len({_plain(call.operation) for call in calls}) > 1:
        _note(found.operations, label, [(call.rank, call.operation) for call in calls])
        return
    found.operations.found = found.operations.found or False
    sized = [(call.rank, call.size) for call in calls if call.size is not None]
    if len(sized) < 2 or _plain(calls[0].operation) not in _EQUAL_SIZES:
        return
    if len({size for _, size in sized}) > 1:
        _note(
            found.sizes,
            say("{operation} {label}", operation=calls[0].operation, label=label),
            sized,
        )
    else:
        found.sizes.found = found.sizes.found or False


def _note(kind: Disagreement, label: str, values: Sequence[tuple[int | None, str | None]]) -> None:
    """Keep the first disagreement of a kind."""
    if kind.found:
        return
    counts = Counter(value for _, value in values)
    common, number = counts.most_common(1)[0]
    odd = [rank for rank, value in values if value != common and rank is not None]
    sure = number * 2 > len(values) and all(rank is not None for rank, _ in values)
    kind.found = True
    kind.ranks = sorted(odd) if sure else []
    kind.text = say("{label}: {sides}", label=label, sides=joined("; ", _sides(values, counts)))


def _sides(
    values: Sequence[tuple[int | None, str | None]], counts: Counter[str | None]
) -> Iterator[str]:
    for value, number in sorted(counts.items(), key=lambda one: (one[1], str(one[0])))[:_SHOWN]:
        ranks = sorted(rank for rank, one in values if one == value and rank is not None)
        who = ", ".join(map(str, ranks[:8])) if ranks else say("{number} unknown", number=number)
        more = say(" and {count} more", count=len(ranks) - 8) if len(ranks) > 8 else ""
        yield say_n(
            "rank {who}{more} has {what}",
            "ranks {who}{more} have {what}",
            count=number,
            who=who,
            more=more,
            what=value,
        )


def _from_waits(waits: Sequence[Wait]) -> Iterator[tuple[str, list[_Call]]]:
    """Watchdog lines: by group and number, or, where no group is named, of the group of all ranks.

    A line without a group is of a group whose ranks are numbered as all ranks are if its own number
    in the group is the global one, on every rank. The number is that of the process's first work.
    """
    calls: dict[tuple[object, int], list[_Call]] = {}
    first: dict[int, Wait] = {}
    for wait in waits:
        if wait.rank is not None:
            first.setdefault(wait.rank, wait)
    whole = counts_as_all([wait for wait in first.values() if wait.group == UNKNOWN])
    for wait in waits:
        if wait.rank is None or wait.sequence is None or not wait.compares:
            continue
        if wait.group != UNKNOWN:
            calls.setdefault((wait.group.guid, wait.sequence), []).append(_call(wait))
        elif whole and first[wait.rank] is wait:
            calls.setdefault((None, wait.sequence), []).append(_call(wait))
    yield from ((f"#{number}", mine) for (_, number), mine in calls.items())


def _call(wait: Wait) -> _Call:
    return _Call(wait.rank, wait.operation or "?", _elements(wait.numel_in, wait.numel_out))


def _elements(numel_in: int | None, numel_out: int | None) -> str | None:
    if numel_in is None:
        return None
    if numel_out is None or numel_out == numel_in:
        return say("{count:,} elements", count=numel_in)
    return say("{given:,} elements in, {got:,} out", given=numel_in, got=numel_out)


def _from_dumps(dumps: Dumps) -> Iterator[tuple[str, list[_Call]]]:
    """Dumps: by group and number; numbers that several calls share are left out."""
    calls: dict[tuple[Key, int], dict[int, _Call]] = {}
    for key, row in dumps.states:
        if row["operation"] != "coalesced":
            size = _elements(row["numel_in"], row["numel_out"])
            call = _Call(row["event_rank"], row["operation"], size)
            calls.setdefault((key, row["sequence"]), {})[row["event_rank"]] = call
    for ((guid, _), number), mine in calls.items():
        yield say("#{number} of group {guid}", number=number, guid=guid), list(mine.values())


def _fingerprints(found: Disagreements, rows: pl.DataFrame) -> None:
    """Fingerprints of pairs of ranks; ranks are global ones where each line's own rank is."""
    said = rows.select("own_rank", "event_rank").rows()
    known = all(own == rank for own, rank in said)
    prints: dict[int, tuple[int | None, str, str]] = {}
    for side in ("own", "other"):
        for row in rows.iter_rows(named=True):
            shape, dtypes = row[f"{side}_shape"], row[f"{side}_dtypes"]
            size = say("no tensor") if shape is None else f"[{shape}] {dtypes or ''}".strip()
            call = (row[f"{side}_sequence"], row[f"{side}_operation"] or "?", size)
            prints.setdefault(row[f"{side}_rank"], call)
    numbers = {number for number, _, _ in prints.values()}
    operations = {operation for _, operation, _ in prints.values()}
    label = f"#{next(iter(numbers))}" if len(numbers) == 1 and None not in numbers else ""
    if len(numbers) == len(operations) == 1:
        sizes = [(rank if known else None, size) for rank, (_, _, size) in prints.items()]
        _note(found.sizes, f"{next(iter(operations))} {label}".strip(), sizes)
        return
    calls = [
        (rank if known else None, operation if number is None else f"{operation} #{number}")
        for rank, (number, operation, _) in prints.items()
    ]
    _note(found.operations, say("the next collective"), calls)
