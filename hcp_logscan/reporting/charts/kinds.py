"""Which charts there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
    Kind("tflops", "tflops_per_gpu", "Throughput", "TFLOP/s/GPU", "throughput", words.fixed),
    Kind("loss", "lm_loss", "Loss", "lm loss", "loss", words.loss),
    Kind("step", "step_ms", "Step time", "ms", "step time", words.fixed),
    Kind("grad", "grad_norm", "Gradient norm", "norm", "gradient norm", words.loss),
)
