"""How many ranks waited in a collective until it timed out, as exactly as the lines say it.

Three things that look alike are not one: a rank that prints a time-out of its own, or is named as
timed out by those who were told; a rank that prints only the stack of a collective that failed,
by whatever error; and lines without a rank, whose labels count inside groups, so that one process
may print several and several processes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.model.said import capital, joined, say, say_n

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
    parts = [_waited(len(own)), _failed(len(only_failed), more=bool(own)), _of_lines(unnamed)]
    text = joined(", ", (part for part in parts if part))
    return {
        "collective_timeouts": len(own | nameless),
        "collective_failures": len(only_failed),
        "timeout_counted": capital(text) if text else None,
    }


def failed_only(waits: Sequence[Wait]) -> set[str]:
    """Processes of known rank that print the stack of a collective that failed, and no more."""
    stacks = {wait.process for wait in waits if wait.only_failed and wait.rank is not None}
    return stacks - {wait.process for wait in waits if not wait.only_failed}


def _waited(count: int) -> str:
    if not count:
        return ""
    return say_n(
        "{count:,} rank waited in a collective until it timed out",
        "{count:,} ranks waited in a collective until it timed out",
        count=count,
    )


def _failed(count: int, *, more: bool) -> str:
    if not count:
        return ""
    if more:
        return say_n(
            "{count:,} more says that its collective failed",
            "{count:,} more say that a collective of theirs failed",
            count=count,
        )
    return say_n(
        "{count:,} rank says that its collective failed",
        "{count:,} ranks say that a collective of theirs failed",
        count=count,
    )


def _of_lines(waits: Sequence[Wait]) -> str:
    """What lines without a rank say; the same work, said twice, counts once."""
    if not waits:
        return ""
    works = {(w.said_rank, w.sequence, w.operation, w.numel_in) for w in waits}
    places = sorted({wait.said_rank for wait in waits if wait.said_rank is not None})
    shown = ", ".join(map(str, places[:_SHOWN]))
    if len(places) > _SHOWN:
        shown = say("{shown} and more", shown=shown)
    members = say_n(
        ", on member {shown} of groups that are not named",
        ", on members {shown} of groups that are not named",
        count=len(places),
        shown=shown,
    )
    many = say_n("a collective", "{count:,} collectives", count=len(works))
    return say(
        "lines without a rank say that {many} timed out{members}",
        many=many,
        members=members if places else "",
    )
