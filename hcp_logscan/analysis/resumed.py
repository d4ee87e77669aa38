"""An attempt against the attempts before it: its speed, and its loss behind a resume.

Nothing is compared that differs for a stated reason: speed only between attempts with one model,
batch, precision and parallel configuration; loss only where this attempt goes on from an iteration
that an earlier one reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import pace, steady
from hcp_logscan.analysis.facts import CONFIG_FACTS
from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMPARED_LINES: Final = 20
"""Lines of loss compared behind a resume."""

SCATTER_LINES: Final = 96
"""Lines before it whose scatter says how far a loss jumps by chance."""

MEDIAN_OF_NORMAL: Final = 1.2533
"""Standard error of a median over that of a mean where noise is normally distributed."""

_NO_SHAPE: Final = frozenset(
    {"train_iters", "log_interval", "num_workers", "te_version", "mcore_version", "torch_version"}
)
"""What may differ between attempts of one shape."""

_NAMES: Final = (
    *("speed_change", "speed_change_noise", "speed_before_attempt", "speed_before_lines"),
    *("speed_lines", "speed_source", "speed_now"),
    *("loss_resume_change", "loss_resume_before", "loss_resume_noise"),
    *("loss_resume_lines", "loss_resume_basis"),
)


def facts(
    series: pl.DataFrame, configs: Mapping[int, Mapping[str, Any]]
) -> dict[int, dict[str, Any]]:
    """The facts of each attempt that compare it with earlier ones; null where nothing compares.

    `series` is the fact table `iterations`, `configs` maps an attempt to its facts of
    `CONFIG_FACTS`.
    """
    found: dict[int, dict[str, Any]] = {n: dict.fromkeys(_NAMES) for n in configs}
    earlier: list[_Attempt] = []
    for number in sorted(configs):
        rows = series.filter(pl.col("attempt") == number, pl.col("finished"))
        if not rows.height:
            continue
        this = _Attempt(number, _losses(rows), rows, _shape(configs[number], rows))
        found[number] |= _loss(this, earlier)
        alike = (one for one in reversed(earlier) if one.shape == this.shape is not None)
        if (before := next(alike, None)) is not None:
            found[number] |= _speed(this, before)
        earlier.append(this)
    return found


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    losses: pl.DataFrame
    "`iteration`, `lm_loss`: the lines that have both."

    rows: pl.DataFrame
    "Its finished iterations."

    shape: tuple[str, ...] | None


def _shape(config: Mapping[str, Any], rows: pl.DataFrame) -> tuple[str, ...] | None:
    """What decides how long a step takes; None where it is not known."""
    batch = rows["global_batch_size"].drop_nulls().mode().max()
    if config["world_size"] is None or config["seq_length"] is None or batch is None:
        return None
    return (str(batch), *(repr(config[name]) for name in CONFIG_FACTS if name not in _NO_SHAPE))


def _speed(this: _Attempt, before: _Attempt) -> dict[str, Any]:
    """Both by one source: the best that tells the pace of enough lines of either."""
    for source in pace.SOURCES:
        now, then = (_paces(source, one.rows) for one in (this, before))
        if min(now.len(), then.len()) >= steady.MIN_ROWS:
            middle = float(str(now.median()))
            return {
                "speed_change": float(str(then.median())) / middle,
                "speed_change_noise": max(steady.scatter(now), steady.scatter(then)),
                "speed_before_attempt": before.number,
                "speed_before_lines": then.len(),
                "speed_lines": now.len(),
                "speed_source": source.name,
                "speed_now": source.words(middle),
            }
    return {}


def _paces(source: pace.Source, rows: pl.DataFrame) -> pl.Series:
    """The paces of the steady rows by one source; none where it does not tell them."""
    paced = pace.by(source, rows)
    return pl.Series(dtype=pl.Float64) if paced is None else steady.kept(paced)[pace.PACE]


def _loss(this: _Attempt, earlier: Sequence[_Attempt]) -> dict[str, Any]:
    """Loss behind the resume against that of the attempt that it goes on from."""
    losses = this.losses
    first = losses["iteration"].min()
    if not isinstance(first, int) or first <= 1:
        return {}  # nothing was resumed
    for one in reversed(earlier):
        before = one.losses
        if not before.height or int(str(before["iteration"].min())) >= first:
            continue
        same = losses.join(before, on="iteration", suffix="_before", maintain_order="left")
        same = same.head(COMPARED_LINES)
        start = losses["lm_loss"].head(COMPARED_LINES)
        if same.height >= steady.MIN_ROWS:
            basis, lines, then = say("the same iterations"), same.height, same["lm_loss_before"]
            change = (same["lm_loss"] - then).median()
        else:
            then = before.filter(pl.col("iteration") < first).tail(COMPARED_LINES)["lm_loss"]
            basis, lines = say("the last lines before it"), min(then.len(), start.len())
            change = float(str(start.median())) - float(str(then.median()))
        return {
            "loss_resume_change": change,
            "loss_resume_before": then.median(),
            "loss_resume_noise": _error(before["lm_loss"].tail(SCATTER_LINES), start, lines),
            "loss_resume_lines": lines,
            "loss_resume_basis": basis,
        }
    return {}


def _error(before: pl.Series, behind: pl.Series, lines: int) -> float:
    """Standard error of the difference of two medians over that many lines each."""
    spread = max(steady.deviation(one) or 0.0 for one in (before, behind))
    return MEDIAN_OF_NORMAL * steady.DEVIATION_OF_NORMAL * spread * math.sqrt(2 / lines)


def _losses(rows: pl.DataFrame) -> pl.DataFrame:
    finite = pl.col("lm_loss").is_finite() & pl.col("iteration").is_not_null()
    return rows.filter(finite).select("iteration", "lm_loss")
