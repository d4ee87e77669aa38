"""Reports about slow ranks, of Megatron's own detector and of NVRx.

Written from Megatron-Core ``core/utils.py`` (``StragglerDetector``, ``--log-straggler``; core 0.6
to main of 2026-08; rank 0 prints it every log interval, through a logger) and
``nvidia_resiliency_ext`` ``ptl_resiliency/straggler_det_callback.py`` and Megatron-Bridge
``training/nvrx_straggler.py`` (ranks as a list, or as a set of ``StragglerId(rank=…, node='…')``;
scores of the worst and best ranks, or of all, one a line). MosaicML Composer prints the two lists,
too (``composer/callbacks/global_straggler_detector.py``).

Megatron always names a fastest and a slowest rank, and with ``--straggler-minmax-count`` above 1
lists as many of both ends: that is a measurement, not yet a straggler. NVRx names ranks below a
threshold.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser

_NUMBER: Final = r"-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|nan|inf)"


def _value(name: str, unit: str) -> str:
    return rf"\b{name}/Rnk: ({_NUMBER}){unit}/"


def _rank(name: str, unit: str) -> str:
    return rf"\b{name}/Rnk: {_NUMBER}{unit}/([0-9]+)"


def _ranks(rows: pl.DataFrame) -> pl.DataFrame:
    """Ranks of a list, or of a set of ids whose node names carry digits too."""
    said = pl.col("said")
    ids = said.str.extract_all(r"rank=[0-9]+").list.eval(pl.element().str.slice(5))
    numbers = said.str.extract_all(r"[0-9]+")
    ranks = pl.when(said.str.contains("rank=", literal=True)).then(ids).otherwise(numbers)
    return rows.with_columns(ranks.cast(pl.List(pl.Int64), strict=False).alias("ranks"))


def _pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """The ranks of a list `<TFLOP/s>/<rank>, …`, and what each reached."""
    pairs = pl.col("said").str.extract_all(rf"{_NUMBER}/[0-9]+")
    value, rank = (pl.element().str.split("/").list.get(place) for place in (0, 1))
    return rows.with_columns(
        pairs.list.eval(rank).cast(pl.List(pl.Int64), strict=False).alias("ranks"),
        pairs.list.eval(value).cast(pl.List(pl.Float64), strict=False).alias("values"),
        pl.when(pl.col("end") == "Bottom")
        .then(pl.lit("lowest"))
        .otherwise(pl.lit("highest"))
        .alias("kind"),
    )


def _score(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        pl.concat_list(pl.col("rank").cast(pl.Int64, strict=False)).alias("ranks"),
        pl.concat_list(pl.col("score").cast(pl.Float64, strict=False)).alias("values"),
    )


PARSERS = (
    LineParser(
        name="megatron-straggler",
        table="stragglers",
        needles=("| MnRtt/Rnk: ",),
        pattern=r"\| MnRtt/Rnk: .*\| MxRtt/Rnk: ",
        fields={
            "min_ms": _value("MnRtt", "ms"),
            "min_rank": _rank("MnRtt", "ms"),
            "max_ms": _value("MxRtt", "ms"),
            "max_rank": _rank("MxRtt", "ms"),
            "min_tflops": _value("MnEtpt", "TF"),
            "max_tflops": _value("MxEtpt", "TF"),
        },
        constants={"kind": "report"},
        sample="INFO:megatron.core.utils:[2026-03-01 10:07:56] | MnRtt/Rnk: 3453.08ms/8"
        " | MxRtt/Rnk: 3468.20ms/0 | MnPwr/Rnk: 601796.00W/8 | MxPwr/Rnk: 683801.00W/18"
        " | MnTmp/Rnk: 52.00C/0 | MxTmp/Rnk: 65.00C/21 | MnUtl/Rnk: 97.00%/8 | MxUtl/Rnk: 100.00%/6"
        " | MnClk/Rnk: 1950.00MHz/28 | MxClk/Rnk: 1980.00MHz/0 | MnDRtt/Rnk: 14.27ms/23"
        " | MxDRtt/Rnk: 34.65ms/3 | MnEtpt/Rnk: 296.02TF/0 | MxEtpt/Rnk: 297.32TF/8",
    ),
    LineParser(
        name="megatron-straggler-list",
        table="stragglers",
        needles=("^^^^ Bottom ", "^^^^ Top "),
        pattern=r"\^\^\^\^ (?P<end>Bottom|Top) +[0-9]+ Ranks with (?:lowest|highest) +Etpt\(TF\):"
        r" (?P<said>.*)$",
        finish=_pairs,
        sample="INFO:megatron.core.utils:^^^^ Bottom 4 Ranks with lowest  Etpt(TF): 296.02/0,"
        " 296.17/2, 296.23/1, 296.23/4,",
        drift=False,
    ),
    LineParser(
        name="megatron-straggler-unsynchronised",
        table="stragglers",
        needles=(" Start/Stop out of sync ",),
        pattern=r"(?:Event|get_batch) Start/Stop out of sync [0-9]+/[0-9]+",
        constants={"kind": "unsynchronised"},
        sample="WARNING:megatron.core.utils:Event Start/Stop out of sync 81/80",
        drift=False,
    ),
    LineParser(
        name="nvrx-straggler",
        table="stragglers",
        needles=("STRAGGLER DETECTION WARNING: ",),
        pattern=r"STRAGGLER DETECTION WARNING: Some GPUs .*\. Affected ranks: (?P<said>.*)$",
        constants={"kind": "named"},
        finish=_ranks,
        sample="STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected"
        " ranks: {StragglerId(rank=76, node='node12')}",
    ),
    LineParser(
        name="nvrx-score",
        table="stragglers",
        needles=(" Score=",),
        pattern=r"^ *Rank=(?P<rank>[0-9]{1,9}) Node=\S+ Score=(?P<score>[0-9]+\.[0-9]+|nan)$",
        constants={"kind": "score"},
        finish=_score,
        sample="  Rank=76 Node=h100-001-253-012 Score=0.94",
        drift=False,
    ),
    LineParser(
        name="nvrx-report",
        table="stragglers",
        needles=("Straggler report processing time: ",),
        pattern=r"Straggler report processing time: [0-9.]+ sec",
        constants={"kind": "checked"},
        sample="Straggler report processing time: 0.042 sec.",
    ),
)
