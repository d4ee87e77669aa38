"""How many ranks waited in a collective until it timed out, as exactly as the lines say it.

Three things that look alike are not one: a rank that prints a time-out of its own, or is named as
timed out by those who were told; a rank that prints only the stack of a collective that failed,
by whatever error; and lines without a rank, whose labels count inside groups, so that one process
may print several and several processes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.analysis.waits import Wait, Waits

_SHOWN: Final = 8


def counted(found: Waits) -> dict[str, Any]:
    """The facts `collective_timeouts`, `collective_failures` and `timeout_counted`."""
    only_failed = failed_only(found.waits)
    unnamed = [wait for wait in found.waits if wait.rank is None]
    nameless = {wait.process for wait in unnamed}
    own = found.processes - only_failed - nameless
    parts = [_of_ranks(len(own), "waited in a collective until it timed out", more=False)]
    words = "a collective of theirs failed" if len(only_failed) > 1 else "its collective failed"
    parts.append(
        _of_ranks(
            len(only_failed), f"say{'s' * (len(only_failed) == 1)} that {words}", more=bool(own)
        )
    )
    parts.append(_of_lines(unnamed))
    text = ", ".join(part for part in parts if part)
    return {
        "collective_timeouts": len(own | nameless),
        "collective_failures": len(only_failed),
        "timeout_counted": f"{text[:1].upper()}{text[1:]}" or None,
    }


def failed_only(waits: Sequence[Wait]) -> set[str]:
    """Processes of known rank that print the stack of a collective that failed, and no more."""
    stacks = {wait.process for wait in waits if wait.only_failed and wait.rank is not None}
    return stacks - {wait.process for wait in waits if not wait.only_failed}


def _of_ranks(count: int, words: str, *, more: bool) -> str:
    if not count:
        return ""
    if more:
        return f"{count:,} more {words}"
    return f"{count:,} rank{'s' * (count != 1)} {words}"


def _of_lines(waits: Sequence[Wait]) -> str:
    """What lines without a rank say; the same work, said twice, counts once."""
    if not waits:
        return ""
    works = {(w.said_rank, w.sequence, w.operation, w.numel_in) for w in waits}
    places = sorted({wait.said_rank for wait in waits if wait.said_rank is not None})
    shown = ", ".join(map(str, places[:_SHOWN])) + (" and more" if len(places) > _SHOWN else "")
    members = f", on member{'s' * (len(places) > 1)} {shown} of groups that are not named"
    many = f"{len(works):,} collectives" if len(works) > 1 else "a collective"
    return f"lines without a rank say that {many} timed out{members if places else ''}"
