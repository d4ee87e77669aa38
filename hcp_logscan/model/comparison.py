"""Comparison: what a run looks like beside a known good one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

    from hcp_logscan.model.finding import Status

AlignedBy = Literal["iteration", "consumed samples", "order of lines"]
"""By what two series are laid beside each other. The order of lines tells of speed only."""

WindowName = Literal["early", "middle", "late"]


@dataclass(frozen=True, slots=True)
class Window:
    """One series over one third of the iterations that both runs logged."""

    metric: str
    "Column of the fact table `iterations`."

    window: WindowName
    first_iteration: int | None
    "As this run numbers them; None where its lines have no numbers."

    last_iteration: int | None
    pairs: int
    "Iterations of this run with a value beside one of the baseline."

    median: float
    "Of this run's values."

    baseline_median: float
    ratio: float
    "Median of this run's values over the baseline's, pair by pair."

    low: float
    "Lower quartile of those ratios."

    high: float
    "Upper quartile."

    error: float | None
    "Standard error of `ratio`; None where there are too few pairs to tell."


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """One setting or version that the two runs do not share."""

    group: str
    "Why it matters: `context parallelism`, `parallelism`, `precision`, ... `other`."

    key: str
    value: tuple[str | None, str | None]
    "This run's and the baseline's, as printed; None is not stated."


@dataclass(frozen=True, slots=True)
class Memory:
    """Most GPU memory that a rank's allocator had held after the first iterations."""

    value: float
    baseline_value: float
    unit: str
    "As printed: `MB` or `GB`."


@dataclass(frozen=True, slots=True)
class Comparison:
    """The judged attempt beside the judged attempt of the baseline."""

    name: str
    "Name of the baseline run."

    job: str | None
    status: Status
    "The baseline's own verdict: a run that is known to be good may not be."

    aligned_by: AlignedBy | None
    "None where no series of the two can be laid beside each other."

    iterations: int
    "Iterations of this run that have a counterpart."

    windows: tuple[Window, ...]
    incomparable: tuple[str, ...]
    "Settings known to differ, for which loss or speed, or both, are not compared."

    differences: tuple[ConfigDifference, ...]
    "Most relevant first, as many as a report shows."

    differences_total: int
    memory: Memory | None
    "None unless both runs printed it in one unit."

    out_of_memory: bool
    "This run ran out of GPU memory, and the baseline did not."

    series: pl.DataFrame
    """The baseline's rows of the fact table `iterations`. `iteration` is where they stand in this
    run's count: another number than they print where runs are aligned by consumed samples."""
