"""A run beside its baseline in words: what is compared, how far it is from it, what was configured.

Every ratio is this run's value over the baseline's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.said import N_
from hcp_logscan.reporting import words
from hcp_logscan.reporting.safe import cut
from hcp_logscan.reporting.tongue import Spoken, _, n_

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from hcp_logscan.model.comparison import Comparison, ConfigDifference, Window, WindowName

NOT_STATED: Final = N_("not stated")
WINDOWS: Final[tuple[WindowName, ...]] = ("early", "middle", "late")
WINDOW_WORDS: Final[Mapping[str, str]] = Spoken(
    {"early": N_("early"), "middle": N_("middle"), "late": N_("late")}
)
ORDER_ALONE: Final = N_("order of lines")
_WORDS: Final = (
    N_("iteration"),
    N_("consumed samples"),
    N_("context parallelism"),
    N_("parallelism"),
    N_("precision"),
    N_("sequence"),
    N_("model shape"),
    N_("batch"),
    N_("recompute"),
    N_("versions and hardware"),
    N_("other"),
)
"""How runs are aligned, and why a setting matters: words of the analysis, shown translated."""

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
    ("step_ms", N_("step time"), words.milliseconds),
    ("lm_loss", N_("loss"), words.loss),
    ("grad_norm", N_("gradient norm"), words.loss),
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
    return _("{name} (job {job})", name=name, job=cut(found.job, _NAME)) if found.job else name


def headline(found: Comparison) -> str:
    """What was laid beside each other, and how."""
    if found.aligned_by is None:
        return _("no iterations that both logged can be laid beside each other")
    many = words.plural(found.iterations, "iteration")
    if found.aligned_by == ORDER_ALONE:
        return _(
            "{many} laid beside each other in the order of their lines, for speed only", many=many
        )
    return _(
        "{many} laid beside each other by {aligned_by}", many=many, aligned_by=_(found.aligned_by)
    )


def rows(found: Comparison) -> list[Row]:
    """The series that could be compared."""
    table: list[Row] = []
    for metric, name, show in METRICS:
        by_window = {w.window: w for w in found.windows if w.metric == metric}
        if by_window:
            thirds = (by_window.get(window) for window in WINDOWS)
            table.append(Row(_(name), tuple(_cell(third, show) for third in thirds)))
    return table


def _cell(window: Window | None, show: Callable[[float | None], str]) -> Cell | None:
    if window is None:
        return None
    low, high = times(window.low), times(window.high)
    spread = _("{low} to {high}", low=low, high=high) if low != high else ""
    both = _(
        "{value} against {other}", value=show(window.median), other=show(window.baseline_median)
    )
    return Cell(times(window.ratio), spread, both)


def line(row: Row) -> str:
    """`0.98× early, 0.92× middle, 0.85× late`."""
    pairs = zip(row.cells, WINDOWS, strict=True)
    return _(", ").join(
        _("{ratio} {third}", ratio=cell.ratio, third=WINDOW_WORDS[window])
        for cell, window in pairs
        if cell
    )


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
            named[window] = (
                f"{first:,}"
                if first == last
                else _("{first:,} to {last:,}", first=first, last=last)
            )
    return named


def notes(found: Comparison) -> list[str]:
    """What a reader must know before trusting the comparison."""
    lines: list[str] = []
    if found.status in _DOUBTED:
        word = words.STATUS_WORDS[found.status][0].lower()
        lines.append(
            _("The baseline is in doubt itself: its own verdict on HCP is {word}.", word=word)
        )
    if found.incomparable:
        lines.append(
            _(
                "Not compared, or only in part, because both runs are known to differ in "
                "{incomparable}.",
                incomparable=_(", ").join(found.incomparable),
            )
        )
    if found.aligned_by == "consumed samples":
        lines.append(
            _(
                "Batch sizes differ, so loss and gradient norm meet where as many samples "
                "were consumed; a larger batch takes fewer steps for them."
            )
        )
    return lines


def memory(found: Comparison) -> str:
    """`1.200×, 61,240 MB against 51,033 MB at most`; empty where it is not known."""
    held = found.memory
    if held is None or not held.baseline_value:
        return ""
    both = _(
        "{value:,g} {unit} against {baseline_value:,g} {unit}",
        value=held.value,
        unit=held.unit,
        baseline_value=held.baseline_value,
    )
    return _(
        "{times}, {both} allocated at most",
        times=times(held.value / held.baseline_value),
        both=both,
    )


def out_of_memory(found: Comparison) -> str:
    """What a run that ran out of GPU memory has that its baseline had not; no cause is claimed."""
    if not found.out_of_memory:
        return ""
    changed = [_difference(one) for one in found.differences if one.group in _MEMORY]
    said = _("This run ran out of GPU memory and the baseline did not.")
    if not changed:
        return _(
            "{said} No setting of context parallelism, sequence or recompute is known to differ.",
            said=said,
        )
    listed = _("; ").join(
        _("{key} {value} (baseline: {baseline})", key=d.key, value=d.value, baseline=d.baseline)
        for d in changed[:8]
    )
    return _(
        "{said} What differs of context parallelism, sequence and recompute: {listed}.",
        said=said,
        listed=listed,
    )


def differences(found: Comparison) -> list[Difference]:
    """Every setting that differs and is carried, the most relevant first."""
    return [_difference(one) for one in found.differences]


def _difference(one: ConfigDifference) -> Difference:
    value, baseline = (_(NOT_STATED) if text is None else cut(text, _LONG) for text in one.value)
    return Difference(one.key, value, baseline, _(one.group))


def counted(found: Comparison) -> str:
    """How many settings differ."""
    if not found.differences_total:
        return _("no setting that both runs state differs")
    return n_(
        "{count:,} setting differs", "{count:,} settings differ", count=found.differences_total
    )


def first_differences(found: Comparison, most: int) -> str:
    """The first few in one line: `lr 0.1 (baseline: 0.2); ... and 3 more`."""
    shown = [
        _(
            "{key} {value} (baseline: {baseline})",
            key=cut(d.key, _NAME),
            value=cut(d.value, _VALUE),
            baseline=cut(d.baseline, _VALUE),
        )
        for d in differences(found)[:most]
    ]
    rest = found.differences_total - len(shown)
    return _("; ").join(shown) + (_("; and {rest:,} more", rest=rest) if rest else "")


def caption(found: Comparison, column: str) -> str:
    """What the dashed line of a chart is, and how far this run is from it."""
    ratios = (
        _("{ratio} {third}", ratio=times(w.ratio), third=WINDOW_WORDS[w.window])
        for w in found.windows
        if w.metric == column
    )
    return _(
        "Dashed: the baseline {name}. This run over it: {ratios}.",
        name=cut(found.name, _NAME),
        ratios=_(", ").join(ratios),
    )


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
    return (
        _("baseline {name}", name=cut(found.name, 32)),
        [x for x, _ in inside],
        [y for _, y in inside],
    )
