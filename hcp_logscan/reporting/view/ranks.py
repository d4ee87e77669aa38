"""The ranks: which of them confirmed, and where each stopped writing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.said import N_
from hcp_logscan.reporting.rankmap import RankMap, rank_map
from hcp_logscan.reporting.safe import cut
from hcp_logscan.reporting.tongue import Spoken, _

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan.model.report import RankRow, ReportData

MAX_RANKS: Final = 1_024

_RANK_LINE: Final = 90


_PHASES: Final[Mapping[str, str]] = Spoken(
    {
        "start-up": N_("start-up"),
        "rendezvous": N_("rendezvous"),
        "group creation": N_("group creation"),
        "load": N_("load"),
        "save": N_("save"),
        "evaluation": N_("evaluation"),
        "exit": N_("exit"),
        "first iteration": N_("first iteration"),
    }
)
"""Phases as the fact table `failures` names them; those with a number come as they are shown."""


@dataclass(frozen=True, slots=True)
class RankView:
    """One row of the ranks table."""

    rank: int
    node: str
    confirmed: str
    files: str
    activity: str
    "When it last said something, the last iteration that it printed, and where it failed."

    last_line: str


def map_of_ranks(data: ReportData) -> RankMap | None:
    """All ranks as cells; None where none can be told apart."""
    return rank_map(
        confirmed={row.rank for row in data.ranks if row.confirmed},
        seen={row.rank for row in data.ranks},
        missing=set(data.health.ranks_missing),
        named={rank for f in data.findings if f.severity != "note" for rank in f.ranks},
    )


def rank_view(row: RankRow) -> RankView:
    """One row of the ranks table, kept short: there may be a thousand."""
    more = len(row.files) - 1
    first = row.files[0] if row.files else "\u2013"
    return RankView(
        rank=row.rank,
        node=row.node or "\u2013",
        confirmed=_("yes") if row.confirmed else _("no"),
        files=first if more <= 0 else _("{first} and {more} more", first=first, more=more),
        activity=_activity(row) or "\u2013",
        last_line=cut(row.last_line.strip(), _RANK_LINE) or "\u2013",
    )


def _activity(row: RankRow) -> str:
    last = (
        "" if row.last_iteration is None else _("iteration {number:,}", number=row.last_iteration)
    )
    failed = (
        _("failed: {phase}", phase=_PHASES.get(row.last_phase, row.last_phase))
        if row.last_phase
        else ""
    )
    return _("; ").join(part for part in (row.last_time, last, failed) if part)
