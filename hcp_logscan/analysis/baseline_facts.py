"""BASELINE_FACTS: what an attempt amounts to beside a known good run.

All of them are null where no baseline was given. Ratios are this run's value over the baseline's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.analysis.fact import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WINDOWS: Final = ("early", "middle", "late")
"""Thirds of the iterations that both runs logged."""

_OBSERVE: Final = "give a known good run of the same model with --baseline RUN_DIR"
_SIZES: Final = "CP, DP or TP size, or number of microbatches, of this run or of the baseline"
_INT, _STR, _FLOAT = pl.Int64(), pl.String(), pl.Float64()


def _ratios(name: str, what: str) -> Iterator[tuple[str, Fact]]:
    for window in WINDOWS:
        yield (
            f"baseline_{name}_ratio_{window}",
            Fact(_FLOAT, f"{window} third: {what}", _OBSERVE),
        )


def _nearest(name: str, what: str) -> Iterator[tuple[str, Fact]]:
    yield (
        f"baseline_{name}_size",
        Fact(
            _STR,
            f"the size, in words, that the ratio of the {what} (or its inverse) is nearest to in"
            f" all thirds: {_SIZES}",
            _OBSERVE,
        ),
    )
    yield (
        f"baseline_{name}_size_error",
        Fact(
            _FLOAT,
            f"how far from it that ratio is at most in a third, as a share; null where no size"
            f" above 1 is known, or a third has no ratio of the {what}",
            _OBSERVE,
        ),
    )


BASELINE_FACTS: Final[Mapping[str, Fact]] = {
    "baseline_run": Fact(_STR, "name of the run that this one is compared with", _OBSERVE),
    "baseline_aligned_by": Fact(
        _STR,
        "`iteration`, `consumed samples` where batch sizes differ, or `order of lines` where"
        " neither works, which tells of speed only; null where nothing can be compared",
        _OBSERVE,
    ),
    "baseline_iterations": Fact(_INT, "logged iterations that have a counterpart", _OBSERVE),
    "baseline_late_from": Fact(_INT, "first iteration of the late third, as printed", _OBSERVE),
    "baseline_differences": Fact(
        pl.List(pl.String()),
        "facts of model shape, batch and hardware that are known in both runs and differ; what is"
        " not known is not in it",
        _OBSERVE,
    ),
    "baseline_same_model": Fact(
        pl.Boolean(),
        "layers, hidden size and sequence length are known in both runs, and nothing that is known"
        " of model shape differs; FALSE where something does",
        "keep rank 0's start-up output of both runs",
    ),
    "baseline_rate_by": Fact(
        _STR,
        "what speed is compared by: `tokens/s/GPU`, `step time` (where batch and world size are"
        " known in both) or `TFLOP/s/GPU`, the first that both runs have",
        _OBSERVE,
    ),
    **dict(
        _ratios(
            "rate",
            "speed per GPU in the steady state over the baseline's, median of all pairs; null where"
            " model shape, sequence length, GPU or precision differ",
        )
    ),
    "baseline_rate_error_late": Fact(
        _FLOAT, "standard error of baseline_rate_ratio_late", _OBSERVE
    ),
    **dict(
        _ratios(
            "step",
            "milliseconds per iteration in the steady state over the baseline's; null where batch"
            " size or world size differ, too",
        )
    ),
    "baseline_flops_ratio": Fact(
        _FLOAT,
        "FLOPs counted per sequence (printed TFLOP/s/GPU x step time x ranks / batch) over the"
        " baseline's; null where one of these is unknown or the model shape differs",
        _OBSERVE,
    ),
    **dict(
        _ratios(
            "loss",
            "loss over the baseline's; null where model shape or sequence length differ, or where"
            " it is not above 0",
        )
    ),
    "baseline_loss_error_late": Fact(
        _FLOAT, "standard error of baseline_loss_ratio_late", _OBSERVE
    ),
    **dict(_nearest("loss", "loss")),
    "baseline_memory_ratio": Fact(
        _FLOAT, "memory_max_allocated over the baseline's; null where units differ", _OBSERVE
    ),
    **dict(_ratios("grad_norm", "gradient norm over the baseline's; null as for the loss")),
    **dict(_nearest("grad_norm", "gradient norm")),
}
