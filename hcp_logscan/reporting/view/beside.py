"""The run beside its baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.reporting import baseline

if TYPE_CHECKING:
    from hcp_logscan.model.comparison import Comparison


@dataclass(frozen=True, slots=True)
class BaselineView:
    """The run beside its baseline, ready to show."""

    title: str
    headline: str
    rows: tuple[baseline.Row, ...]
    spans: tuple[tuple[str, str], ...]
    "Name of a third, and its iterations."

    held: str
    "GPU memory of both."

    notes: tuple[str, ...]
    memory: str
    "What a run that ran out of it has that the baseline had not."

    counted: str
    differences: tuple[baseline.Difference, ...]
    hidden: int


def baseline_view(found: Comparison | None) -> BaselineView | None:
    """Everything that the page says of a baseline; None where none was given."""
    if found is None:
        return None
    shown = baseline.differences(found)
    return BaselineView(
        title=baseline.title(found),
        headline=baseline.headline(found),
        rows=tuple(baseline.rows(found)),
        spans=tuple(
            (baseline.WINDOW_WORDS[third], span) for third, span in baseline.spans(found).items()
        ),
        held=baseline.memory(found),
        notes=tuple(baseline.notes(found)),
        memory=baseline.out_of_memory(found),
        counted=baseline.counted(found),
        differences=tuple(shown),
        hidden=found.differences_total - len(shown),
    )
