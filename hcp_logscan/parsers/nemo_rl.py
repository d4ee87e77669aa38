"""NeMo-RL's results of a step: a record of many lines.

Written from NeMo-RL ``nemo_rl/algorithms/{grpo,grpo_sync,sft,dpo,rm,distillation,utils}.py``
(NeMo-Reinforcer of 2025-04 to main of 2026-08). The driver prints ``===== Step 5/100 =====`` when
a step begins, and when it is done ``📊 Training Results:``, ``⏱️  Timing:`` and, except after SFT
and DPO, ``Throughputs (per GPU):``. Steps count from 1. Between the two lines stands what the step
printed, so the number is joined later (`analysis.iterations`): a step without results has not
finished.

The loss is a language model's only where no reward, accuracy, or distance to a generation or to a
teacher stands beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.parsers.base import BlockLine, BlockParser, LineParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.parsers.base import Row

_MAX_LINES: Final = 160
"""The longest record has about 60 lines; lines of workers come between them."""

_NUMBER: Final = r"(-?\d{1,15}(?:\.\d{1,15})?(?:e[+-]?\d{1,3})?|nan|inf)"
_FIELDS: Final = {
    "loss": re.compile(rf"^[^\w-]*+Loss: {_NUMBER}$"),
    "tflops_per_gpu": re.compile(rf"^\W*+Training FLOPS: .*\({_NUMBER} TFLOPS per rank\)"),
    "mfu": re.compile(rf"^\W*+Training Model Floating Point Utilization: {_NUMBER}%"),
    "step_s": re.compile(rf"^\W*+Total step time: {_NUMBER}s$"),
    "tokens_per_s_per_gpu": re.compile(rf"^\W*+E2E \(Tokens/sec/gpu\): {_NUMBER}$"),
}
_OTHER_LOSS: Final = re.compile(r"^\W*+(?:Generation KL|Avg |Mean Generation|Accuracy|.*Reward)")
_END: Final = re.compile(r"^={20,}+ Step \d|^\W*+Training Results:")


class _Results:
    """The results of one step."""

    def __init__(self, line: BlockLine) -> None:
        self._line = line
        self._values: dict[str, float] = {}
        self._language = True
        self._taken = 0

    def feed(self, line: BlockLine) -> bool:
        """Take a line; True where the next step begins, or the record must be over."""
        self._taken += 1
        text = line.text.strip()
        if _END.search(text):
            return True
        for name, regex in _FIELDS.items():
            if name not in self._values and (match := regex.match(text)):
                self._values[name] = float(match[1])
        self._language &= "step_s" in self._values or not _OTHER_LOSS.match(text)
        return self._taken >= _MAX_LINES

    def rows(self) -> Iterator[Row]:
        """One iteration, without its number, if its loss and its time were printed."""
        found = self._values
        if not {"loss", "step_s"} <= found.keys():
            return
        own = {
            "step_ms": found["step_s"] * 1000.0,
            "tflops_per_gpu": found.get("tflops_per_gpu"),
            "tokens_per_s_per_gpu": found.get("tokens_per_s_per_gpu"),
            "mfu": found["mfu"] / 100.0 if "mfu" in found else None,
            "lm_loss": found["loss"] if self._language else None,
            "other_loss_name": None if self._language else "Loss",
            "other_loss": None if self._language else found["loss"],
            "cut": False,
            "producer": "nemo-rl",
        }
        yield ("iterations", self._line.number, self._line.offset, self._line.text, own)


PARSERS = (
    BlockParser(
        name="nemo-rl-results",
        needles=("Training Results:",),
        tables=("iterations",),
        opens=lambda line: (
            _Results(line) if re.match(r"^\W*+Training Results:$", line.text) else None
        ),
        sample="📊 Training Results:\n  • Loss: 0.4321\n"
        "  • Training FLOPS: 3210.00 TFLOPS (401.25 TFLOPS per rank)\n"
        "  • Training Model Floating Point Utilization: 40.57%\n\n⏱️  Timing:\n"
        "  • Total step time: 12.34s\n  • policy_training: 10.02s (81.2%)\n"
        "    - E2E (Tokens/sec/gpu): 512.00\n",
        max_gap=2_000,
    ),
    LineParser(
        name="nemo-rl-step",
        table="marks",
        needles=("===== Step ",),
        pattern=r"^\s*={20,} Step (?P<value>[0-9]+)/[0-9]+ ={20,}\s*$",
        constants={"kind": "step"},
        sample="========================= Step 5/100 =========================",
        drift=False,
    ),
)
