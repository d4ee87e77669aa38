"""A run beside its baseline in words: what is compared, how far it is from it, what was configured.

Every ratio is this run's value over the baseline's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting import words
from hcp_logscan.reporting.safe import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from hcp_logscan.model.comparison import Comparison, ConfigDifference, Window, WindowName

NOT_STATED: Final = "not stated"
WINDOWS: Final[tuple[WindowName, ...]] = ("early", "middle", "late")
ORDER_ALONE: Final = "order of lines"

_DOUBTED: Final = frozenset({"inactive", "mixed", "degenerate", "rejected"})
"""Verdicts of a baseline that say that it is no good one."""

_MEMORY: Final = frozenset({"context parallelism", "sequence", "recompute"})
"""Groups of settings that decide what activations take."""

_NAME: Final = 60
_VALUE: Final = 60
_LONG: Final = 400


def _whole(value: float | None) -> str:
    return words.fixed(value, 0)


METRICS: Final[tuple[tuple[str, str, Callable[[float | None], str]], ...]] = (
    ("tokens_per_s_per_gpu", "tokens/s/GPU", _whole),
    ("tflops_per_gpu", "TFLOP/s/GPU", words.fixed),
    ("step_ms", "step time", words.milliseconds),
    ("lm_loss", "loss", words.loss),
    ("grad_norm", "gradient norm", words.loss),
)
"""Column of the iterations -> how it is called, and how its values are shown."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One third of one series."""

    ratio: str
    spread: str
    "Quartiles of the ratios; empty where they are the same."

    values: str
    "Medians of both runs."


@dataclass(frozen=True, slots=True)
class Row:
    """One series in its thirds; None where a third has no pair."""

    name: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that differs, ready to show."""

    key: str
    value: str
    baseline: str
    group: str


def times(ratio: float) -> str:
    """A ratio with three significant digits, near 1 with three decimals.

    >>> times(1.00412), times(3.431), times(0.0213), times(1912.3)
    ('1.004×', '3.43×', '0.0213×', '1,912×')
    """
    if 0.8 <= ratio < 1.25:
        return f"{ratio:.3f}×"
    return f"{ratio:,.0f}×" if ratio >= 1000 else f"{ratio:#.3g}×"


def title(found: Comparison) -> str:
    """`good (job 12)`."""
    name = cut(found.name, _NAME)
    return f"{name} (job {cut(found.job, _NAME)})" if found.job else name


def headline(found: Comparison) -> str:
    """What was laid beside each other, and how."""
    if found.aligned_by is None:
        return "no iterations that both logged can be laid beside each other"
    many = words.plural(found.iterations, "iteration")
    if found.aligned_by == ORDER_ALONE:
        return f"{many} laid beside each other in the order of their lines, for speed only"
    return f"{many} laid beside each other by {found.aligned_by}"


def rows(found: Comparison) -> list[Row]:
    """The series that could be compared."""
    table: list[Row] = []
    for metric, name, show in METRICS:
        by_window = {w.window: w for w in found.windows if w.metric == metric}
        if by_window:
            thirds = (by_window.get(window) for window in WINDOWS)
            table.append(Row(name, tuple(_cell(third, show) for third in thirds)))
    return table


def _cell(window: Window | None, show: Callable[[float | None], str]) -> Cell | None:
    if window is None:
        return None
    low, high = times(window.low), times(window.high)
    spread = f"{low} to {high}" if low != high else ""
    both = f"{show(window.median)} against {show(window.baseline_median)}"
    return Cell(times(window.ratio), spread, both)


def line(row: Row) -> str:
    """`0.98× early, 0.92× middle, 0.85× late`."""
    pairs = zip(row.cells, WINDOWS, strict=True)
    return ", ".join(f"{cell.ratio} {window}" for cell, window in pairs if cell)


def spans(found: Comparison) -> dict[WindowName, str]:
    """Iterations of each third as this run counts them; empty where its lines have no numbers."""
    named: dict[WindowName, str] = {}
    for window in WINDOWS:
        mine = [w for w in found.windows if w.window == window]
        first = min(
            (w.first_iteration for w in mine if w.first_iteration is not None), default=None
        )
        last = max((w.last_iteration for w in mine if w.last_iteration is not None), default=None)
        if first is None or last is None:
            named[window] = ""
        else:
            named[window] = f"{first:,}" if first == last else f"{first:,} to {last:,}"
    return named


def notes(found: Comparison) -> list[str]:
    """What a reader must know before trusting the comparison."""
    lines: list[str] = []
    if found.status in _DOUBTED:
        word = words.STATUS_WORDS[found.status][0].lower()
        lines.append(f"The baseline is in doubt itself: its own verdict on HCP is {word}.")
    if found.incomparable:
        lines.append(
            "Not compared, or only in part, because both runs are known to differ in "
            f"{', '.join(found.incomparable)}."
        )
    if found.aligned_by == "consumed samples":
        lines.append(
            "Batch sizes differ, so loss and gradient norm meet where as many samples were"
            " consumed; a larger batch takes fewer steps for them."
        )
    return lines


def memory(found: Comparison) -> str:
    """`1.200×, 61,240 MB against 51,033 MB at most`; empty where it is not known."""
    held = found.memory
    if held is None or not held.baseline_value:
        return ""
    both = f"{held.value:,g} {held.unit} against {held.baseline_value:,g} {held.unit}"
    return f"{times(held.value / held.baseline_value)}, {both} allocated at most"


def out_of_memory(found: Comparison) -> str:
    """What a run that ran out of GPU memory has that its baseline had not; no cause is claimed."""
    if not found.out_of_memory:
        return ""
    changed = [d for d in differences(found) if d.group in _MEMORY]
    said = "This run ran out of GPU memory and the baseline did not."
    if not changed:
        return (
            f"{said} No setting of context parallelism, sequence or recompute is known to differ."
        )
    listed = "; ".join(f"{d.key} {d.value} (baseline: {d.baseline})" for d in changed[:8])
    return f"{said} What differs of context parallelism, sequence and recompute: {listed}."


def differences(found: Comparison) -> list[Difference]:
    """Every setting that differs and is carried, the most relevant first."""
    return [_difference(one) for one in found.differences]


def _difference(one: ConfigDifference) -> Difference:
    value, baseline = (NOT_STATED if text is None else cut(text, _LONG) for text in one.value)
    return Difference(one.key, value, baseline, one.group)


def counted(found: Comparison) -> str:
    """How many settings differ."""
    if not found.differences_total:
        return "no setting that both runs state differs"
    verb = "differs" if found.differences_total == 1 else "differ"
    return f"{words.plural(found.differences_total, 'setting')} {verb}"


def first_differences(found: Comparison, most: int) -> str:
    """The first few in one line: `lr 0.1 (baseline: 0.2); ... and 3 more`."""
    shown = [
        f"{cut(d.key, _NAME)} {cut(d.value, _VALUE)} (baseline: {cut(d.baseline, _VALUE)})"
        for d in differences(found)[:most]
    ]
    rest = found.differences_total - len(shown)
    return "; ".join(shown) + (f"; and {rest:,} more" if rest else "")


def caption(found: Comparison, column: str) -> str:
    """What the dashed line of a chart is, and how far this run is from it."""
    ratios = (f"{times(w.ratio)} {w.window}" for w in found.windows if w.metric == column)
    return f"Dashed: the baseline {cut(found.name, _NAME)}. This run over it: {', '.join(ratios)}."


def points(
    found: Comparison | None, column: str, xs: Sequence[float]
) -> tuple[str, list[Any], list[Any]] | None:
    """Name, iterations and values of the baseline to draw over a series with these iterations.

    None where that series was not compared. What lies beyond the range of this run is left out.
    """
    if found is None or not any(window.metric == column for window in found.windows):
        return None
    drawn = found.series
    if drawn["iteration"].count():
        drawn = drawn.drop_nulls("iteration").sort("iteration", maintain_order=True)
        places: Sequence[float] = drawn["iteration"].to_list()
    else:
        places = range(1, drawn.height + 1)
    low, high = min(xs), max(xs)
    inside = [(x, y) for x, y in zip(places, drawn[column], strict=True) if low <= x <= high]
    if not any(y is not None for _, y in inside):
        return None
    return f"baseline {cut(found.name, 32)}", [x for x, _ in inside], [y for _, y in inside]
