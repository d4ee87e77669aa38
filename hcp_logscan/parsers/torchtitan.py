"""torchtitan's step line, its validation line, and the lines around its training loop.

Written from torchtitan ``components/metrics.py``, ``train.py``, ``trainer.py`` and
``tools/logging.py`` (March 2024 to main of 2026-08), and public logs. What changed, in order:

* March 2024: ``step: 10  loss:  7.8123  memory: 42.08GiB(30.10%)  wps: 1,466  mfu: 8.58%``
* November 2024: ``wps`` became ``tps``; both are tokens per second and device
* February 2025: ``tflops:`` before ``mfu:``, and ``[titan] `` before the time
* June 2025: ``grad_norm:`` behind the loss; July 2025: ``validate step: …``, of the same shape
* January 2026: the loss with 5 decimals; February 2026: ``mfu: N/A`` under FP8 and MX

Every label is coloured by default, and log stores leave rests of the codes behind (``[31mstep:``,
``mmemory:``). Steps count from 1. By default every rank prints; the loss is the global mean, and
-1 on a rank that holds no last pipeline stage: it has none. The
MFU is a share of the peak that torchtitan believes in: an unknown GPU gets the peak of an A100, so
it may exceed 100 %.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser

_CODE: Final = r"\[[0-9;]*m"
"A colour code whose escape byte was lost."

_GAP: Final = rf"(?:\s|{_CODE})+"
_TIME: Final = r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:,[0-9]+)?) - root"
_LOSS: Final = rf"step:\s*(?P<iteration>[0-9]+){_GAP}loss:\s*(?P<lm_loss>[0-9a-z.+-]+)"
_SPEED: Final = rf"[0-9]GiB\([0-9.]+%\){_GAP}[wt]ps:\s*(?P<tokens_per_s_per_gpu>[0-9,]+)"


def _number(name: str) -> pl.Expr:
    return pl.col(name).str.replace_all(",", "", literal=True).cast(pl.Float64, strict=False)


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    loss = _number("lm_loss")
    return rows.with_columns(
        _time(),
        pl.when((loss >= 0) | ~loss.is_finite()).then(loss).alias("lm_loss"),
        _number("tokens_per_s_per_gpu"),
        _number("tflops_per_gpu"),
        (_number("mfu") / 100.0).alias("mfu"),
        pl.col("ending").is_null().alias("cut"),
    )


def _time() -> pl.Expr:
    return pl.col("time").str.replace(",", ".", literal=True)


def _dated(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(_time())


PARSERS = (
    LineParser(
        name="torchtitan-step",
        table="iterations",
        needles=("GiB(",),
        # "validate step:" is the validation's
        pattern=rf"(?:^|[^\sA-Za-z]|{_CODE})\s*{_LOSS}.*{_SPEED}",
        fields={
            "time": _TIME,
            "grad_norm": r"grad_norm:\s*([0-9a-z.+-]+)",
            "tflops_per_gpu": r"tflops:\s*([0-9.,]+[0-9])\s",
            "mfu": r"mfu:\s*([0-9.,]+)%",
            "ending": r"(mfu:\s*(?:[0-9.,]+%|N/A|nan%|inf%))",
        },
        constants={"producer": "torchtitan"},
        finish=_finish,
        sample="[titan] 2026-03-01 09:14:20,123 - root - INFO - step: 10  loss:  7.81234"
        "  grad_norm:  1.2340  memory: 61.20GiB(77.00%)  tps: 4,210  tflops: 431.70  mfu: 43.65%",
        drift=False,
    ),
    LineParser(
        name="torchtitan-validation",
        table="validations",
        needles=("GiB(",),
        pattern=rf"validate {_LOSS}.*{_SPEED}",
        sample="[titan] 2026-03-01 09:14:20,123 - root - INFO - validate step: 10  loss:  7.8123"
        "  memory: 61.20GiB(77.00%)  tps: 12,030",
        drift=False,
    ),
    LineParser(
        name="torchtitan-training",
        table="marks",
        needles=("Training starts at step ",),
        pattern=_TIME.replace("(", "(?P<time>", 1) + r" - INFO - Training starts at step [0-9]+",
        constants={"kind": "training"},
        finish=_dated,
        sample="[titan] 2026-03-01 09:14:20,123 - root - INFO - Training starts at step 1",
        drift=False,
    ),
    LineParser(
        name="torchtitan-completed",
        table="marks",
        needles=("- Training completed",),
        pattern=_TIME.replace("(", "(?P<time>", 1) + r" - INFO - Training completed\s*$",
        constants={"kind": "training_done"},
        finish=_dated,
        sample="[titan] 2026-03-01 09:14:20,123 - root - INFO - Training completed",
        drift=False,
    ),
)
