"""Printed TFLOP/s against step time and model shape, and what explains a rate that is too high.

A trainer prints `batch x FLOPs of one sequence / step time / ranks`; so the FLOPs that it counted
follow from the line, and are compared with those of the configured model. An explanation is what
else the logs say that makes the number possible; of several the most specific is taken, in the
order of `EXPLANATIONS`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import flops
from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hcp_logscan.analysis.config import Config
    from hcp_logscan.analysis.flops import Shape
    from hcp_logscan.analysis.gpus import Hardware

EXPLANATIONS: Final = ("sequence_length", "formula", "cp_off", "precision")
"""What explains a rate, the most specific first; `nothing` where none does."""

_VERSIONS_DIFFER: Final = ("moe_latent_size", "attention_output_gate", "peft", "lora")
"""Options that some versions of the formula count and some do not."""

_SETTLED: Final = frozenset({"active", "degenerate", "rejected", "not_requested"})
"""Verdicts under which context parallelism was not silently off."""

_OFF: Final = frozenset({"None", "null", "~", "False", "false", "0", "", "[]", "{}"})

_APART: Final = 0.1
"""Share by which a rate differs that rounding and two clocks do not explain."""


def padded_vocabulary(marks: pl.DataFrame) -> int | None:
    """The padded vocabulary that the tokenizer's start-up line prints."""
    sizes = marks.filter(pl.col("kind") == "padded_vocabulary")["value"].drop_nulls()
    return int(sizes[-1]) if sizes.len() else None


def facts(
    known: Config, padded: int | None, rows: pl.DataFrame, *, vary: bool | None
) -> dict[str, Any]:
    """What the rate should be by the formula, and how far the printed one is from it.

    `rows` is the fact table `iterations` of the attempt, `vary` says that sequences are packed or
    of several lengths: newer versions count what they really hold.
    """
    nothing = {"formula_tflops": None, "formula_error": None}
    counted, ranks = flops.shapes(known, padded), known.facts["world_size"]
    if not counted or not ranks or vary or _versions_differ(known):
        return nothing
    batch = pl.coalesce("global_batch_size", pl.lit(known.facts["global_batch_size"], pl.Int64))
    lines = rows.filter(
        pl.col("tflops_per_gpu").is_finite() & (pl.col("tflops_per_gpu") > 0),
        pl.col("step_ms").is_finite() & (pl.col("step_ms") > 0),
        batch > 0,
    )
    # x 1e12 FLOP, / 1e3 ms
    printed = lines.select(pl.col("tflops_per_gpu") * pl.col("step_ms") * 1e9 * ranks / batch)
    middle = printed.to_series().median()
    if not isinstance(middle, float):
        return nothing
    ratio = min((middle / one.flops for one in counted), key=lambda ratio: abs(ratio - 1.0))
    usual = flops.shape(known, padded)
    if usual is not None and abs(ratio - 1.0) > _APART:  # no version fits: that of these logs
        if usual.whole_attention:  # forks of that age have formulas of their own
            return nothing
        ratio = middle / usual.flops
    rate = lines["tflops_per_gpu"].median()
    return {"formula_tflops": float(str(rate)) / ratio, "formula_error": abs(ratio - 1.0)}


def _versions_differ(known: Config) -> bool:
    for block in known.blocks:
        for (section, key), (value, _) in block.values.items():
            named = {section, *key.split(".")}
            if value not in _OFF and not named.isdisjoint(_VERSIONS_DIFFER):
                return True
            # Megatron-Bridge before 0.5 counts three matrices only where the unit is gated by SiLU
            unit = key in {"activation_func", "activation_func._target_"}
            if unit and "silu" not in value and "swiglu" not in value:
                return True
    return False


def explanation(
    known: Mapping[str, Any], found: Shape | None, hardware: Hardware
) -> dict[str, str | None]:
    """What explains the printed rate, as a word and as a sentence that says how well.

    `known` are the facts of the attempt, verdict included. Both are null where no rate is printed
    or nothing is known of the GPU.
    """
    rate, bound = known["tflops_median"], known["peak_bound_tflops"]
    if rate is None or bound is None:
        return {"rate_explained_by": None, "rate_explanation": None}
    for word, done, sentence in _candidates(known, found, hardware):
        if done <= bound or word == "precision":
            share = (
                say(" ({share:.0%} of the peak)", share=done / bound) if word != "precision" else ""
            )
            told = say("{sentence}{share}.", sentence=sentence, share=share)
            return {"rate_explained_by": word, "rate_explanation": told}
    return {
        "rate_explained_by": "nothing",
        "rate_explanation": say("Nothing in these logs explains the number."),
    }


def rate_if_off(known: Mapping[str, Any]) -> float | None:
    """TFLOP/s/GPU that were done if context parallelism was silently off; None if it cannot be.

    `known` are the facts of the attempt, verdict included.
    """
    done, cp_size = known["tflops_if_cp_off"], known["cp_size"]
    asked = "a2a+p2p" in (known["cp_comm_type"] or "")
    if done is None or not asked or cp_size <= 1 or known["verdict_status"] in _SETTLED:
        return None
    return float(done)


def _candidates(
    known: Mapping[str, Any], found: Shape | None, hardware: Hardware
) -> Iterator[tuple[str, float, str]]:
    """(word, TFLOP/s that it leaves, sentence), the most specific first."""
    rate, model, data = known["tflops_median"], known["seq_length"], known["data_seq_length"]
    if data is not None and model is not None and data < model:
        most = data / model if found is None else replace(found, tokens=data).flops / found.flops
        words = say(
            "Explained by the data: FLOPs are counted for {model:,} tokens, the data set has"
            " {data:,}, so {at_most}{done:,.0f} were done",
            model=model,
            data=data,
            at_most=say("at most ") if found is None else "",
            done=rate * most,
        )
        yield "sequence_length", rate * most, words
    error, own = known["formula_error"], known["formula_tflops"]
    if error is not None and error > _APART and own < rate:
        told = say("Explained by its formula (HCP111): Megatron's gives {own:,.0f}", own=own)
        yield "formula", own, told
    if (done := rate_if_off(known)) is not None:
        told = say(
            "Explained by context parallelism that was off: {done:,.0f} were done", done=done
        )
        yield "cp_off", done, told
    faster = [
        (peak, precision)
        for gpu in hardware.gpus
        for precision, peak in gpu.dense.items()
        if peak >= rate > known["peak_bound_tflops"]
    ]
    if faster and hardware.known:
        peak, precision = min(faster)
        told = say(
            "It would be possible in {precision} ({peak:,.0f} TFLOP/s), which these logs do not"
            " say; pass --precision if that is so",
            precision=precision.upper(),
            peak=peak,
        )
        yield "precision", rate, told
