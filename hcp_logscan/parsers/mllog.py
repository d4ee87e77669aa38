"""MLPerf's structured log lines, ``:::MLLOG {json}``.

Written from the MLPerf logging package ``mlperf_logging/mllog`` (1.0 to 5.1), its use by NVIDIA's
and Primus' submissions (2023 to 2026), and public logs. Rank 0 prints them, often without any other
step line. They state parallel sizes and batch sizes at start-up, when training runs and how it
ended, and evaluations (``eval_accuracy`` of a language model is its loss).

A ``step`` in their metadata counts samples or tokens as often as iterations, and ``samples_count``
is no iteration either; only ``step_num`` beside a loss is one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.parsers.base import BlockLine, BlockParser, LineParser, Setting, config_rows
from hcp_logscan.parsers.values import item, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.parsers.base import Row

_KEYS: Final = {
    "context_parallelism": "context_parallel_size",
    "tensor_parallelism": "tensor_model_parallel_size",
    "pipeline_parallelism": "pipeline_model_parallel_size",
    "expert_parallelism": "expert_model_parallel_size",
    "micro_batch_size": "micro_batch_size",
    "global_batch_size": "global_batch_size",
    "max_sequence_length": "seq_length",
}
"""MLPerf's name -> Megatron's."""

_STATED: Final = re.compile(
    rf'\{{.*"key": "(?P<key>{"|".join(_KEYS)})", "value": (?P<value>\d{{1,9}})[,}}]'
)
_STARTED: Final = re.compile(r'\{.*"key": "(?:init_stop|run_start)"')
_NEEDLE: Final = ":::MLLOG "
_MAX_LINES: Final = 400


class _Sizes:
    """The sizes that are stated until training starts."""

    def __init__(self, line: BlockLine, first: Setting) -> None:
        self._head = line
        self._last = line.number
        self._settings = [first]
        self._taken = 0

    def feed(self, line: BlockLine) -> bool:
        """Take a line; True where the start-up is over."""
        self._taken += 1
        if _STARTED.match(_record(line)):
            return True
        if setting := _setting(line):
            self._settings.append(setting)
            self._last = line.number
        return self._taken >= _MAX_LINES

    def rows(self) -> Iterator[Row]:
        """What was stated; never everything there is."""
        return config_rows(
            "mllog", self._head, self._settings, last_line=self._last, complete=None, ended=True
        )


def _record(line: BlockLine) -> str:
    """The JSON object of a line."""
    return line.text.partition(_NEEDLE)[2]


def _setting(line: BlockLine) -> Setting | None:
    match = _STATED.match(_record(line))
    return Setting(line, "", _KEYS[match["key"]], match["value"]) if match else None


def _open(line: BlockLine) -> _Sizes | None:
    first = _setting(line)
    return _Sizes(line, first) if first else None


def _mark(rows: pl.DataFrame) -> pl.DataFrame:
    started = pl.col("key") == "run_start"
    done = pl.col("text").str.contains('"status": "success"', literal=True)
    return rows.with_columns(
        pl.when(started)
        .then(pl.lit("training"))
        .when(done)
        .then(pl.lit("training_done"))
        .alias("kind"),
        _time(),
    ).drop_nulls("kind")


def _time() -> pl.Expr:
    milliseconds = pl.col("time_ms").cast(pl.Int64, strict=False)
    stamp = pl.from_epoch(milliseconds, time_unit="ms")
    return stamp.dt.strftime("%Y-%m-%d %H:%M:%S%.3f").alias("time")


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(_time(), number("lm_loss"), number("learning_rate"))


_HEAD: Final = r':::MLLOG \{.*"time_ms": (?P<time_ms>[0-9]{10,14}),.*"key": '

PARSERS = (
    BlockParser(
        name="mllog-sizes",
        needles=(_NEEDLE,),
        tables=("config", "blocks"),
        opens=_open,
        sample=':::MLLOG {"namespace": "", "time_ms": 1771651800896, "event_type": "POINT_IN_TIME",'
        ' "key": "context_parallelism", "value": 2, "metadata": {"file": "/app/train.py", "lineno":'
        " 66}}",
        max_gap=2_000,
    ),
    LineParser(
        name="mllog-run",
        table="marks",
        needles=(_NEEDLE,),
        pattern=_HEAD + r'"(?P<key>run_start|run_stop)"',
        finish=_mark,
        sample=':::MLLOG {"namespace": "", "time_ms": 1771657049089, "event_type": "INTERVAL_END",'
        ' "key": "run_stop", "value": null, "metadata": {"file": "/app/train.py", "lineno": 224,'
        ' "samples_count": 172032, "status": "success"}}',
        drift=False,
    ),
    LineParser(
        name="mllog-step",
        table="iterations",
        needles=(_NEEDLE,),
        pattern=_HEAD + r'"tracked_stats", "value": \{.*"loss": .*"step_num": '
        r"(?P<iteration>[0-9]+)",
        fields={
            "lm_loss": item("loss"),
            "learning_rate": item("lr"),
        },
        constants={"producer": "mlperf", "cut": False},
        finish=_finish,
        sample=':::MLLOG {"namespace": "", "time_ms": 1771651970949, "event_type": "POINT_IN_TIME",'
        ' "key": "tracked_stats", "value": {"throughput": 33.2, "loss": 3.41, "lr": 0.0004},'
        ' "metadata": {"file": "/app/callbacks.py", "lineno": 219, "step_num": 32}}',
        drift=False,
    ),
)
