"""Which charts there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.said import N_
from hcp_logscan.reporting import words

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Kind:
    """One chart: its column, its unit, and how a value of it is shown."""

    key: str
    column: str
    title: str
    unit: str
    noun: str
    show: Callable[[float | None], str]


KINDS: Final = (
    Kind(
        "tflops", "tflops_per_gpu", N_("Throughput"), "TFLOP/s/GPU", N_("throughput"), words.fixed
    ),
    Kind(N_("loss"), "lm_loss", N_("Loss"), N_("lm loss"), N_("loss"), words.loss),
    Kind("step", "step_ms", N_("Step time"), "ms", N_("step time"), words.fixed),
    Kind("grad", "grad_norm", N_("Gradient norm"), N_("norm"), N_("gradient norm"), words.loss),
)
