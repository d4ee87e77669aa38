"""Where each process group of a flight-recorder dump stands: what ended, what did not.

Fields of an entry as PyTorch ``FlightRecorder.cpp`` writes them (dump versions 2.0 to 2.10):
``collective_seq_id`` counts per group and leaves send and receive out, which count on their own
(``is_p2p``); ``state`` is ``scheduled``, ``started`` or ``completed``; ``retired`` entries have
ended, though gloo leaves their state at ``scheduled``. Calls that were coalesced share a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_UNFINISHED: Final = 8
"""Entries of one group that have not ended and are kept, first to last."""

_PAIRWISE: Final = frozenset({"send", "recv", "coalesced"})
_MAX_TENSORS: Final = 64
_MAX_SIDES: Final = 16
_MAX_NUMEL: Final = 1 << 60
_MAX_SEQUENCE: Final = 1 << 60

COALESCED: Final = "coalesced"
"""Operation of a number that several calls share: it compares with nothing."""


@dataclass(slots=True)
class _Standing:
    """One group, as far as its entries were read."""

    enqueued: int = -1
    completed: int = -1
    last: dict[str, Any] | None = None
    "The last entry that ended."

    unfinished: list[dict[str, Any]] = field(default_factory=list)
    previous: dict[str, Any] | None = None


def states(
    entries: Iterable[tuple[dict[str, Any], str | None, str | None, str]],
) -> Iterator[dict[str, Any]]:
    """Rows of the event table `dump_states`: per group the last entry that ended, then the others.

    `entries` are (entry, group name, description, operation), in the order of the dump.
    """
    groups: dict[tuple[str, str | None], _Standing] = {}
    for entry, guid, description, operation in entries:
        sequence = entry.get("collective_seq_id", entry.get("seq_id"))
        if guid is None or type(sequence) is not int or not 0 <= sequence < _MAX_SEQUENCE:
            continue
        if operation in _PAIRWISE or entry.get("is_p2p") is True:
            continue
        _take(groups.setdefault((guid, description), _Standing()), entry, sequence, operation)
    for (guid, description), group in groups.items():
        kept = [group.last] if group.last else []
        for one in kept + group.unfinished:
            yield {
                "guid": guid,
                "description": description,
                **one,
                "last_enqueued": group.enqueued,
                "last_completed": group.completed,
            }


def _take(group: _Standing, entry: dict[str, Any], sequence: int, operation: str) -> None:
    done = entry.get("retired") is True or entry.get("state") == "completed"
    group.enqueued = max(group.enqueued, sequence)
    if group.previous is not None and group.previous["sequence"] == sequence:
        group.previous.update(operation=COALESCED, numel_in=None, numel_out=None)
        return
    if done:
        group.completed = max(group.completed, sequence)
    elif len(group.unfinished) >= MAX_UNFINISHED:
        return
    row = group.previous = {
        "sequence": sequence,
        "operation": operation,
        "numel_in": _numel(entry.get("input_sizes")),
        "numel_out": _numel(entry.get("output_sizes")),
        "state": "completed" if done else _state(entry.get("state")),
    }
    if done:
        group.last = row
    else:
        group.unfinished.append(row)


def _state(value: Any) -> str | None:
    return value if value in {"scheduled", "started"} else None


def _numel(sizes: Any) -> int | None:
    """Elements of all tensors together; None where the sizes are not of the usual shape."""
    if not isinstance(sizes, (list, tuple)) or not 0 < len(sizes) <= _MAX_TENSORS:
        return None
    total = 0
    for sides in sizes:
        if not isinstance(sides, (list, tuple)) or len(sides) > _MAX_SIDES:
            return None
        numel = 1
        for side in sides:
            if type(side) is not int or not 0 <= side < _MAX_NUMEL or numel >= _MAX_NUMEL:
                return None
            numel *= side
        total += numel
    return total if total < _MAX_NUMEL else None
