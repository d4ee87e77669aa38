"""Lines that say where a run is: start-up, group creation, training, checkpoints, end.

Written from Megatron-LM ``megatron/training/{initialize,training,checkpointing}.py`` (core 0.5 to
main of 2026-08) and Megatron-Bridge ``training/{setup,pretrain,initialize}.py`` (0.2 to 0.6).
"""

from __future__ import annotations

import polars as pl

from hcp_logscan.parsers.base import LineParser

_TIME = r"(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)"


def _kind(rows: pl.DataFrame) -> pl.DataFrame:
    event = pl.col("event")
    return rows.with_columns(
        pl.when(event.str.starts_with("before the start of training step"))
        .then(pl.lit("training"))
        .when(event.str.starts_with("after training is done"))
        .then(pl.lit("training_done"))
        .when(event.str.contains("exiting program") & event.str.contains("SIG"))
        .then(pl.lit("signal_exit"))
        .when(event.str.contains("exiting program"))
        .then(pl.lit("planned_exit"))
        .otherwise(pl.lit("dated"))
        .alias("kind")
    )


PARSERS = (
    LineParser(
        name="megatron-dated-event",
        table="marks",
        needles=("] datetime: ",),
        pattern=r"^\s*\[(?P<event>[^\]]{3,200})\] datetime: " + _TIME,
        finish=_kind,
        sample="[before the start of training step] datetime: 2026-11-29 16:05:26.061523 ",
        drift=False,
    ),
    LineParser(
        name="megatron-training",
        table="marks",
        needles=("training ...",),
        pattern=r"^training \.\.\.\s*$",
        constants={"kind": "training"},
        sample="training ...",
        drift=False,
    ),
    LineParser(
        name="megatron-skip-training",
        table="marks",
        needles=("skipping training",),
        pattern=r"^skipping training(?: \(--skip-train is on\))? \.\.\.\s*$",
        constants={"kind": "skip_training"},
        sample="skipping training ...",
        drift=False,
    ),
    LineParser(
        name="megatron-checkpoint-saved",
        table="checkpoints",
        needles=("successfully saved checkpoint from iteration",),
        pattern=r"successfully saved checkpoint from iteration\s+(?P<iteration>[0-9]+)",
        constants={"kind": "saved"},
        sample="  successfully saved checkpoint from iteration      50 to /ckpt [ t 1/1, p 1/1 ]",
    ),
    LineParser(
        name="megatron-checkpoint-loaded",
        table="checkpoints",
        needles=("successfully loaded checkpoint from",),
        pattern=r"successfully loaded checkpoint from .* at iteration (?P<iteration>[0-9]+)",
        constants={"kind": "loaded"},
        sample="  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration 50",
    ),
    LineParser(
        name="megatron-checkpoint-saving",
        table="checkpoints",
        needles=("saving checkpoint at iteration",),
        pattern=r"^\s*(?:\[[^\]]{10,40}\] )?saving checkpoint at iteration\s+(?P<iteration>[0-9]+)",
        constants={"kind": "saving"},
        sample="saving checkpoint at iteration      50 to /ckpt in torch_dist format",
        drift=False,
    ),
    LineParser(
        name="megatron-checkpoint-loading",
        table="checkpoints",
        needles=(" loading checkpoint from ",),
        pattern=r"^ ?loading checkpoint from .* at iteration (?P<iteration>[0-9]+)",
        constants={"kind": "loading"},
        sample=" loading checkpoint from /ckpt at iteration 50",
        drift=False,
    ),
    LineParser(
        name="megatron-padded-vocabulary",
        table="marks",
        needles=(" padded vocab (size: ",),
        pattern=r"> padded vocab \(size: [0-9]+\) with [0-9]+ dummy tokens"
        r" \(new size: (?P<value>[0-9]{1,12})\)",
        constants={"kind": "padded_vocabulary"},
        sample=" > padded vocab (size: 128256) with 0 dummy tokens (new size: 128256)",
        drift=False,
    ),
    LineParser(
        name="megatron-model-parallel",
        table="paths",
        needles=(" initialized tensor model parallel with size",),
        pattern=r"^> initialized tensor model parallel with size [0-9]+",
        constants={"kind": "mpu"},
        sample="> initialized tensor model parallel with size 1",
        drift=False,
    ),
    LineParser(
        name="bridge-hyper-comm-grid",
        table="paths",
        needles=(" initialized HyperCommGrid",),
        pattern=r"^> initialized HyperCommGrid\b(?:.*\bcp=(?P<grid_cp>[0-9]+))?",
        constants={"kind": "hyper_comm_grid"},
        sample="> initialized HyperCommGrid with tp=1, pp=1, cp=16, dp=2",
        drift=False,
    ),
    LineParser(
        name="megatron-versions",
        table="versions",
        needles=(
            "> Transformer Engine version ",
            "> Megatron-Core version ",
            "> PyTorch version ",
            # as Docker's json-file driver spells the first sign
            "003e Transformer Engine version ",
            "003e Megatron-Core version ",
            "003e PyTorch version ",
        ),
        pattern=r"^> (?P<package>Transformer Engine|Megatron-Core|PyTorch) version \.* ?"
        r"(?P<version>[0-9][^\s]*)",
        sample="> Transformer Engine version ... 2.8.0+abcdef1",
        drift=False,
    ),
)
