"""Which GPU a run had, and the dense peak that its printed throughput is measured by.

Peaks come from `rules/gpus.toml`. What is not known is never guessed: an unknown precision leaves
`peak_tflops` unknown, and an architecture alone gives a bound, the highest peak of its fastest GPU.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.model.bundled import bundled_dir
from hcp_logscan.model.errors import UsageError
from hcp_logscan.model.report import Peak
from hcp_logscan.model.said import joined, say
from hcp_logscan.sources.settings import PRECISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HALF: Final = ("bf16", "fp16")
_WORDS: Final = {name: name.upper() for name in PRECISIONS}
_OPTION: Final = "--peak-tflops"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One entry of the GPU table."""

    name: str
    match: tuple[re.Pattern[str], ...]
    architecture: str | None
    "Where the table holds the fastest GPU of that architecture."

    dense: Mapping[str, float]
    "Precision -> TFLOP/s without sparsity."

    datasheet: str
    also: tuple[float, ...] = ()
    "Other figures that published formulas divide by, TFLOP/s."


@lru_cache(maxsize=1)
def table() -> tuple[Gpu, ...]:
    """The GPU table, in the order of its file."""
    with (bundled_dir() / "gpus.toml").open("rb") as file:
        entries = tomllib.load(file)["gpu"]
    return tuple(
        Gpu(
            name=entry["name"],
            match=tuple(re.compile(pattern) for pattern in entry["match"]),
            architecture=entry.get("architecture"),
            dense={name: float(entry[name]) for name in PRECISIONS if name in entry},
            datasheet=entry["datasheet"],
            also=tuple(float(value) for value in entry.get("also", ())),
        )
        for entry in entries
    )


def find(name: str) -> Gpu | None:
    """The entry for a name as a log or a user says it; None if the table has none.

    >>> [find(name).name for name in ("NVIDIA H100 80GB HBM3", "h200", "AMD Instinct MI350X")]
    ['H100 SXM', 'H200', 'MI350X']
    >>> find("NVIDIA GeForce RTX 3090") is None
    True
    """
    text = name.lower()
    for gpu in table():
        if text == gpu.name.lower():
            return gpu
    return next((gpu for gpu in table() if any(one.search(text) for one in gpu.match)), None)


def required(name: str) -> Gpu:
    """The entry that a user names. Raises UsageError with near names."""
    gpu = find(name)
    if gpu is None:
        names = [entry.name for entry in table()]
        near = difflib.get_close_matches(name.upper(), names, n=3) or names
        raise UsageError(
            f"--gpu {name}: no such GPU in the table. Known: {', '.join(near)}. For another one"
            " pass its dense peak with --peak-tflops."
        )
    return gpu


@dataclass(frozen=True, slots=True)
class Stated:
    """What the user says of the hardware, where the logs do not."""

    gpu: str | None = None
    precision: str | None = None
    peak_tflops: float | None = None
    "Dense peak of the GPUs at the precision of the run; it wins over the table."


@dataclass(frozen=True, slots=True)
class Hardware:
    """The GPUs a job may have run on."""

    gpus: tuple[Gpu, ...] = ()
    "One where it is known; several where lines name several, or only an architecture is known."

    known: bool = False
    "The GPU itself is known, not just its architecture or a set it belongs to."

    name: str | None = None
    "For the reader: the entry, else what the lines call it."

    source: str = ""


def hardware(rows: pl.DataFrame, stated: Stated) -> Hardware:
    """The GPUs of a job from its event table `gpus`; the logs' word goes before the user's."""
    named = rows.filter(pl.col("kind") == "name")["name"].unique(maintain_order=True).to_list()
    entries = {gpu.name: gpu for name in named if (gpu := find(name))}
    if len(entries) == 1:
        gpu = next(iter(entries.values()))
        return Hardware((gpu,), known=True, name=gpu.name, source=say("the logs"))
    if entries:  # a cluster of several kinds, or a login node's own
        return Hardware(
            tuple(entries.values()), name=joined(" or ", entries), source=say("the logs")
        )
    if stated.gpu is not None:
        gpu = required(stated.gpu)
        return Hardware(
            (gpu,), known=True, name=gpu.name, source=say("the user, not from the logs")
        )
    if named:
        return Hardware(name=str(named[0]).strip(), source=say("the logs"))
    said = rows.filter(pl.col("kind") == "architecture")["name"].unique(maintain_order=True)
    kinds = said.to_list()
    family = tuple(gpu for gpu in table() if gpu.architecture in kinds)
    if len(kinds) == 1 and family:
        return Hardware(family, source=say("Transformer Engine, which says {kind}", kind=kinds[0]))
    return Hardware()


def peak(found: Hardware, precision: str | None, stated: Stated) -> Peak | None:
    """What a printed throughput is measured by; None where nothing is known of the GPU.

    `precision` is that of the logs; None leaves it to the user, and then unknown.
    """
    known = precision or stated.precision
    shown = known or "bf16"
    if stated.peak_tflops is not None:
        return Peak(
            precision=shown,
            gpu=found.name,
            tflops=stated.peak_tflops,
            bound_tflops=stated.peak_tflops,
            source=_OPTION,
            explanation=say(
                "{peak:,g} TFLOP/s, as {option} says.", peak=stated.peak_tflops, option=_OPTION
            ),
        )
    if not found.gpus:
        return None
    single = found.gpus[0] if found.known else None
    tflops = single.dense.get(shown) if single else None
    bound = _bound(found.gpus, known)
    return Peak(
        precision=shown,
        assumed=known is None,
        gpu=found.name if found.known else None,
        tflops=tflops,
        bound_tflops=bound,
        source=found.source,
        datasheet=single.datasheet if single else "",
        explanation=_explained(found, shown, tflops, bound, assumed=known is None),
    )


def _bound(gpus: Sequence[Gpu], precision: str | None) -> float | None:
    """The most that one of these GPUs does at this precision, or at any if it is unknown.

    None where the precision is known and one of them has no figure for it.
    """
    if precision is None:
        return max(max(gpu.dense.values()) for gpu in gpus)
    figures = [gpu.dense.get(precision) for gpu in gpus]
    return None if None in figures else max(figure for figure in figures if figure is not None)


def _explained(
    found: Hardware, precision: str, tflops: float | None, bound: float | None, *, assumed: bool
) -> str:
    word = _WORDS[precision]
    guess = say(" (the precision is assumed, these logs do not say it)") if assumed else ""
    if found.known and tflops is not None:
        return say(
            "Dense {word} peak of {gpu}: {tflops:,g} TFLOP/s{guess}; the GPU is known from"
            " {source}.",
            word=word,
            gpu=found.name,
            tflops=tflops,
            guess=guess,
            source=found.source,
        )
    if found.known:
        return say("The GPU table has no dense {word} figure for {gpu}.", word=word, gpu=found.name)
    if bound is None:
        return say(
            "No dense {word} figure for the GPUs that {source} allows.",
            word=word,
            source=found.source,
        )
    return say(
        "No {who} does more than {bound:,g} TFLOP/s at {at}; known from {source}.",
        who=found.name or say("GPU of this architecture"),
        bound=bound,
        at=say("any precision") if assumed else word,
        source=found.source,
    )


def denominators(found: Hardware, precision: str | None, stated: Stated) -> tuple[float, ...]:
    """Figures that an MFU of this run may rightly be divided by, TFLOP/s; empty if unknown."""
    if stated.peak_tflops is not None:
        return (stated.peak_tflops,)
    if not found.known:
        return ()
    gpu = found.gpus[0]
    if precision is None:
        right = list(gpu.dense.values())
    else:
        right = [gpu.dense[precision]] if precision in gpu.dense else []
    # many trainers divide by the 16-bit peak whatever the precision of the products
    return (*right, *(gpu.dense[name] for name in _HALF if name in gpu.dense), *gpu.also)


def facts(
    found: Hardware, precision: str | None, stated: Stated, rows: pl.DataFrame
) -> dict[str, Any]:
    """The facts about hardware and throughput of one attempt.

    `rows` is the fact table `iterations` of that attempt.
    """
    measured = peak(found, precision, stated)
    known = precision or stated.precision
    printed = rows.filter(_counts("tflops_per_gpu"))
    rate = printed["tflops_per_gpu"].median()
    claimed = rows.filter(_counts("mfu"))
    both = printed.filter(_counts("mfu"))
    implied = (both["tflops_per_gpu"] / both["mfu"]).median()
    return {
        "gpu": found.name,
        "peak_tflops": None if measured is None or measured.assumed else measured.tflops,
        "peak_bound_tflops": measured.bound_tflops if measured else None,
        "peak_bound_of": _bound_of(found, known, measured),
        "tflops_median": rate,
        "mfu_median": claimed["mfu"].median(),
        "mfu_denominator_tflops": implied,
        "mfu_denominator_error": _off(implied, denominators(found, known, stated)),
        "step_ms_median": rows.filter(_counts("step_ms"))["step_ms"].median(),
        "clock_step_ms": clock_step_ms(rows),
    }


def _counts(column: str) -> pl.Expr:
    """Rows with a number above zero: NaN sorts above every number in polars."""
    return (pl.col(column) > 0) & pl.col(column).is_finite()


def _bound_of(found: Hardware, precision: str | None, measured: Peak | None) -> str | None:
    """What the bound is the peak of, in words that follow `the`."""
    if measured is None or measured.bound_tflops is None:
        return None
    if measured.source == _OPTION:
        return say("peak given by {option}", option=_OPTION)
    word = (
        say("highest dense peak")
        if precision is None
        else say("dense {precision} peak", precision=_WORDS[precision])
    )
    if found.known:
        return say("{peak} of the {gpu}", peak=word, gpu=found.name)
    kinds = joined(" or ", dict.fromkeys(str(gpu.architecture) for gpu in found.gpus))
    return say("{peak} of any {gpu}", peak=word, gpu=found.name or say("{kinds} GPU", kinds=kinds))


def _off(implied: object, right: Sequence[float]) -> float | None:
    """How far the implied denominator is from the nearest right one, as a share of that."""
    if not isinstance(implied, (int, float)) or not right:
        return None
    return min(abs(implied - value) / value for value in right)


_MIN_STEPS: Final = 3
_RESOLUTION_MS: Final = 1_000.0


def clock_step_ms(rows: pl.DataFrame) -> float | None:
    """Milliseconds per iteration by the clock: the median between two lines of one attempt.

    `rows` holds `time` (text), `iteration` and `interval_iterations`. None where fewer than
    `_MIN_STEPS` pairs of lines carry both, or the pairs are too close for stamps of one second.
    """
    seconds = rows["time"].str.replace("T", " ").str.slice(0, 19)
    apart = seconds.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False).diff()
    pairs = pl.DataFrame(
        {"apart": apart.dt.total_milliseconds(), "steps": rows["interval_iterations"]}
    ).filter(pl.col("apart").is_not_null() & (pl.col("steps") > 0))
    usual = pairs["apart"].median()
    # of all pairs: a few long pauses (evaluation, saving) say nothing of steps too short to time
    if pairs.height < _MIN_STEPS or float(str(usual)) <= 2 * _RESOLUTION_MS:
        return None
    return float(str((pairs["apart"] / pairs["steps"]).median()))
