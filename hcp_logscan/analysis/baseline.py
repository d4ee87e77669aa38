"""A run beside a known good one: the facts that rules judge, and the comparison that is shown.

Every attempt that trained is compared with the baseline's judged attempt, completed by its earlier
attempts of the same shape. Nothing is compared that is known to be different work: a loss of
another model, a speed on another GPU. What one of the two does not say is not held against them,
since the user says that they belong together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.aligned import Alignment, align, in_our_count
from hcp_logscan.analysis.baseline_facts import BASELINE_FACTS, WINDOWS
from hcp_logscan.analysis.differences import MAX_DIFFERENCES, differences
from hcp_logscan.analysis.frames import attempt_frame
from hcp_logscan.analysis.steady import steady
from hcp_logscan.model.comparison import Comparison, Memory
from hcp_logscan.model.said import N_, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hcp_logscan.analysis.attempt import AttemptAnalysis
    from hcp_logscan.analysis.run import Analysis

_MODEL: Final = (
    *("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "query_groups"),
    *("kv_channels", "seq_length"),
)
"""Of another model or sequence length, loss and speed say nothing."""

_TELLING: Final = ("num_layers", "hidden_size", "seq_length")
"""Where these agree, it is one model, unless something else is known to differ."""

_HARDWARE: Final = ("gpu", "precision")
_WORK: Final = ("global_batch_size", "world_size")
"""What an iteration is: with another batch, or other ranks to share it, its time says nothing."""

_LAYOUT: Final = ("cp_size", "cp_comm_type", "hcp_sizes", "tp_size", "pp_size", *_MODEL, *_WORK)
"""What attempts of a baseline must share to be one series."""

_RATES: Final = (
    ("tokens/s/GPU", "tokens_per_s_per_gpu"),
    ("step time", "step_ms"),
    ("TFLOP/s/GPU", "tflops_per_gpu"),
)
_SIZES: Final = (
    (N_("CP size"), "cp_size"),
    (N_("DP size"), "dp_size"),
    (N_("TP size"), "tp_size"),
    (N_("number of microbatches"), "microbatches"),
)


@dataclass(frozen=True, slots=True)
class Reference:
    """What of a baseline run this one is laid beside."""

    attempt: AttemptAnalysis
    rows: pl.DataFrame
    "Finished iterations, one row each."


def compare(ours: Analysis, theirs: Analysis) -> tuple[Analysis, Comparison]:
    """The analysis with the facts of BASELINE_FACTS, and its judged attempt beside the baseline."""
    reference = _reference(theirs)
    series = ours.facts["iterations"]
    attempts: list[AttemptAnalysis] = []
    shown: Alignment | None = None
    for attempt in ours.attempts:
        rows = series.filter(pl.col("attempt") == attempt.attempt)
        found = _aligned(attempt.facts, rows, reference)
        values = _facts(attempt.facts, rows, reference, found)
        values["baseline_run"] = theirs.name
        attempts.append(replace(attempt, facts={**attempt.facts, **values}))
        if attempt.attempt == ours.judged:
            shown = found
    facts = {**ours.facts, "attempts": attempt_frame(attempts)}
    compared = replace(ours, attempts=tuple(attempts), facts=facts)
    judged = next(a for a in attempts if a.attempt == ours.judged)
    assert shown is not None
    all_differences = differences(
        judged.facts, judged.config.blocks, reference.attempt.facts, reference.attempt.config.blocks
    )
    return compared, Comparison(
        name=theirs.name,
        job=theirs.job.name,
        status=reference.attempt.verdict.status,
        aligned_by=shown.by,
        iterations=shown.ours.height,
        windows=_comparable(shown, judged.facts),
        incomparable=tuple(judged.facts["baseline_differences"]),
        differences=all_differences[:MAX_DIFFERENCES],
        differences_total=len(all_differences),
        memory=_memory(judged.facts, reference.attempt.facts),
        out_of_memory=_out_of_memory(ours) and not _out_of_memory(theirs),
        series=in_our_count(shown),
    )


def _reference(theirs: Analysis) -> Reference:
    """The baseline's judged attempt, with earlier ones of its layout where it has no lines."""
    judged = next(a for a in theirs.attempts if a.attempt == theirs.judged)
    alike = [
        a.attempt
        for a in theirs.attempts
        if a.attempt <= judged.attempt and all(a.facts[n] == judged.facts[n] for n in _LAYOUT)
    ]
    rows = theirs.facts["iterations"].filter("finished", pl.col("attempt").is_in(alike))
    if not rows["iteration"].count():
        return Reference(judged, rows.filter(pl.col("attempt") == judged.attempt))
    rows = rows.drop_nulls("iteration").sort("attempt", maintain_order=True)
    rows = rows.unique("iteration", keep="last", maintain_order=True)
    return Reference(judged, rows.sort("iteration", maintain_order=True))


def _aligned(facts: Mapping[str, Any], rows: pl.DataFrame, reference: Reference) -> Alignment:
    same_batch = "global_batch_size" not in _differing(facts, reference.attempt.facts)
    return align(rows, reference.rows, same_batch=same_batch)


def _differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Facts that are known in both and differ."""
    return [
        name
        for name in (*_MODEL, *_HARDWARE, *_WORK)
        if None not in (ours[name], theirs[name]) and ours[name] != theirs[name]
    ]


def _same_model(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], differing: list[str]
) -> bool | None:
    """Whether both are known to train one model; None where one of them does not say enough."""
    if any(name in differing for name in _MODEL):
        return False
    known = all(facts[name] is not None for facts in (ours, theirs) for name in _TELLING)
    return True if known else None


def _barred(metric: str, differing: list[str]) -> bool:
    """Whether a series of different work."""
    bars = {
        "lm_loss": _MODEL,
        "grad_norm": _MODEL,
        "tokens_per_s_per_gpu": (*_MODEL, *_HARDWARE),
        "tflops_per_gpu": (*_MODEL, *_HARDWARE),
        "step_ms": (*_MODEL, *_HARDWARE, *_WORK),
    }
    return any(name in bars[metric] for name in differing)


def _comparable(found: Alignment, facts: Mapping[str, Any]) -> tuple[Any, ...]:
    differing = list(facts["baseline_differences"])
    return tuple(w for w in found.windows if not _barred(w.metric, differing))


def _facts(
    facts: Mapping[str, Any], rows: pl.DataFrame, reference: Reference, found: Alignment
) -> dict[str, Any]:
    """The values of BASELINE_FACTS for one attempt."""
    theirs = reference.attempt.facts
    differing = _differing(facts, theirs)
    values: dict[str, Any] = dict.fromkeys(BASELINE_FACTS)
    values["baseline_differences"] = differing
    values["baseline_same_model"] = _same_model(facts, theirs, differing)
    values["baseline_memory_ratio"] = _memory_ratio(facts, theirs)
    if found.by is None:
        return values
    third = found.ours.height // 3
    values |= {
        "baseline_aligned_by": found.by,
        "baseline_iterations": found.ours.height,
        "baseline_late_from": found.ours["iteration"][found.ours.height - third],
        "baseline_flops_ratio": None
        if _barred("lm_loss", differing)
        else _flops_ratio(facts, rows, reference),
    }
    values |= _rate(facts, theirs, found, differing)
    for name, metric in (("step", "step_ms"), ("loss", "lm_loss"), ("grad_norm", "grad_norm")):
        if _barred(metric, differing):
            continue
        ratios = _ratios(found, metric)
        values |= {f"baseline_{name}_ratio_{w}": ratio for w, ratio in ratios.items()}
        if metric != "step_ms":
            values |= _nearest(name, list(ratios.values()), facts, theirs)
    late = found.window("lm_loss", "late")
    if late is not None and values["baseline_loss_ratio_late"] is not None:
        values["baseline_loss_error_late"] = late.error
    return values


def _ratios(found: Alignment, metric: str) -> dict[str, float | None]:
    windows = {name: found.window(metric, name) for name in WINDOWS}
    return {name: window.ratio if window else None for name, window in windows.items()}


def _rate(
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    found: Alignment,
    differing: list[str],
) -> dict[str, Any]:
    """Speed by the first series that both runs have and that is the same work in both."""
    for by, metric in _RATES:
        late = found.window(metric, "late")
        if late is None or _barred(metric, differing):
            continue
        if metric == "step_ms" and not _same_work(ours, theirs, found):
            continue
        ratios = _ratios(found, metric)
        if metric == "step_ms":
            ratios = {name: 1.0 / ratio if ratio else None for name, ratio in ratios.items()}
        return {
            "baseline_rate_by": by,
            **{f"baseline_rate_ratio_{name}": ratio for name, ratio in ratios.items()},
            # of an inverse the error is as large a share of it
            "baseline_rate_error_late": None
            if late.error is None or ratios["late"] is None
            else late.error / late.ratio * ratios["late"],
        }
    return {}


def _same_work(ours: Mapping[str, Any], theirs: Mapping[str, Any], found: Alignment) -> bool:
    """Whether an iteration is known to be the same share of work for a GPU; unless known to differ.

    Without the batch or the number of ranks it may be any amount.
    """
    batch = "global_batch_size"
    sides = ((ours, found.ours), (theirs, found.theirs))
    return all(
        facts["world_size"] is not None and (facts[batch] is not None or rows[batch].count() > 0)
        for facts, rows in sides
    )


def _memory(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Memory | None:
    """What both runs held at most; None unless both say it in one unit."""
    if ours["baseline_memory_ratio"] is None:
        return None
    name = "memory_max_allocated"
    return Memory(ours[name], theirs[name], ours["memory_unit"])


def _memory_ratio(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> float | None:
    here, there = (facts["memory_max_allocated"] for facts in (ours, theirs))
    if ours["memory_unit"] != theirs["memory_unit"] or here is None or not there:
        return None
    return float(here / there)


def _flops_ratio(ours: Mapping[str, Any], rows: pl.DataFrame, reference: Reference) -> float | None:
    here = _counted(ours, rows)
    there = _counted(reference.attempt.facts, reference.rows)
    return here / there if here is not None and there else None


def _counted(facts: Mapping[str, Any], rows: pl.DataFrame) -> float | None:
    """FLOPs that the trainer counts for one sequence, up to a constant."""
    if facts["world_size"] is None:
        return None
    batch = pl.coalesce("global_batch_size", pl.lit(facts["global_batch_size"], pl.Int64))
    counted = pl.col("tflops_per_gpu") * pl.col("step_ms") * facts["world_size"] / batch
    values = steady(rows)[1].select(counted.alias("counted"))["counted"].drop_nulls()
    middle = values.filter(values.is_finite() & (values > 0)).median()
    return float(str(middle)) if middle is not None else None


def _nearest(
    name: str,
    ratios: list[float | None],
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
) -> dict[str, Any]:
    """The size that all ratios, or their inverses, are nearest to."""
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) < len(ratios):
        return {}
    off = [
        (max(abs(value / size - 1.0) for value in way), words)
        for size, words in _sizes(ours, theirs)
        for way in (known, [1.0 / value for value in known])
    ]
    if not off:
        return {}
    error, words = min(off, key=lambda found: found[0])
    return {f"baseline_{name}_size": words, f"baseline_{name}_size_error": error}


def _sizes(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Sizes above 1 that a wrong normalisation may multiply by, with their words."""
    for words, fact in _SIZES:
        here, there = _size(ours, fact), _size(theirs, fact)
        if here is not None and here > 1:
            yield here, say("the {words} {size}", words=words, size=here)
        if there is not None and there > 1 and there != here:
            yield there, say("the {words} {size} of the baseline", words=words, size=there)


def _size(facts: Mapping[str, Any], fact: str) -> int | None:
    if fact == "microbatches":
        per_step = _quotient(facts["global_batch_size"], facts["micro_batch_size"])
        return _quotient(per_step, _size(facts, "dp_size"))
    size: int | None = facts[fact]
    if fact == "dp_size" and size is None:
        size = facts["world_size"]
        for name in ("tp_size", "pp_size", "cp_size"):
            size = _quotient(size, facts[name])
    return size


def _quotient(whole: int | None, part: int | None) -> int | None:
    return whole // part if whole is not None and part else None


def _out_of_memory(found: Analysis) -> bool:
    """Whether a process of the run ended for want of GPU memory."""
    failed = found.facts["failures"]
    text = r"(?:CUDA|HIP|XPU) (?:error: )?out of memory"
    return bool(
        failed.select(
            (
                pl.col("exception_type").str.ends_with("OutOfMemoryError")
                | pl.col("message").str.contains(text)
            ).any()
        ).item()
    )
