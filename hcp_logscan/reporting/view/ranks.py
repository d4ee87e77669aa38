"""The ranks: which of them confirmed, and where each stopped writing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.rankmap import RankMap, rank_map
from hcp_logscan.reporting.safe import cut

if TYPE_CHECKING:
    from hcp_logscan.model.report import RankRow, ReportData

MAX_RANKS: Final = 1_024

_RANK_LINE: Final = 90


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
        confirmed="yes" if row.confirmed else "no",
        files=first if more <= 0 else f"{first} and {more} more",
        activity=_activity(row) or "\u2013",
        last_line=cut(row.last_line.strip(), _RANK_LINE) or "\u2013",
    )


def _activity(row: RankRow) -> str:
    last = "" if row.last_iteration is None else f"iteration {row.last_iteration:,}"
    failed = f"failed: {row.last_phase}" if row.last_phase else ""
    return "; ".join(part for part in (row.last_time, last, failed) if part)
