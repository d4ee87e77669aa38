"""How processes ended, as launchers beside torchrun say it: one line per process.

Written from DeepSpeed ``launcher/launch.py`` (0.9 to 0.17), Open MPI's ``mpirun`` and ``prterun``
(4 and 5), Slurm's ``srun`` (20.02 to 25.05), and public logs. The number of srun's task is the
global rank where there is one task per GPU, and a node's else: it is not taken for a rank here.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser

_SRUN_WORDS: Final = {
    "Killed": -9,
    "Terminated": -15,
    "Aborted": -6,
    "Segmentation fault": -11,
    "Bus error": -7,
}


def _srun(rows: pl.DataFrame) -> pl.DataFrame:
    word = pl.col("word").str.replace(r" \(core dumped\)$", "")
    by_word = word.replace_strict(_SRUN_WORDS, default=None, return_dtype=pl.Int64)
    code = pl.coalesce(by_word, pl.col("code").cast(pl.Int64, strict=False))
    return rows.with_columns(code.alias("exit_code")).drop_nulls("exit_code")


PARSERS = (
    LineParser(
        name="deepspeed-exit",
        table="exits",
        needles=("exits with return code = ",),
        pattern=r"\] exits with return code = (?P<exit_code>-?[0-9]{1,9})",
        fields={"failed_local_rank": r"--local_rank=([0-9]{1,6})\b"},
        constants={"kind": "process_exit"},
        sample="[2031-04-07 13:09:33,220] [ERROR] [launch.py:324:sigkill_handler]"
        " ['/usr/bin/python3', '-u', 'train.py', '--local_rank=3'] exits with return code = -9",
        drift=False,
    ),
    LineParser(
        name="mpirun-exit",
        table="exits",
        needles=(" noticed that process rank ",),
        pattern=r"(?:mpirun|prterun|mpiexec|orterun)\S* noticed that process rank"
        r" (?P<rank>[0-9]{1,9}) with PID (?P<pid>[0-9]{1,18}) on node (?P<host>\S+) exited on"
        r" signal (?P<number>[0-9]{1,3})",
        constants={"kind": "process_exit"},
        finish=lambda rows: rows.with_columns(
            (-pl.col("number").cast(pl.Int64, strict=False)).alias("exit_code")
        ),
        sample="mpirun noticed that process rank 1 with PID 5221 on node gpu-node01 exited on"
        " signal 9 (Killed).",
        drift=False,
    ),
    LineParser(
        name="srun-exit",
        table="exits",
        needles=("srun: error: ",),
        pattern=r"srun: error: (?P<host>\S+): tasks? [0-9,\[\]-]+:"
        r" (?P<word>Killed|Terminated|Aborted|Segmentation fault|Bus error|Exited with exit code"
        r" (?P<code>[0-9]{1,3}))",
        constants={"kind": "srun_exit"},
        finish=_srun,
        sample="srun: error: gpu-node07: task 3: Killed",
        drift=False,
    ),
)
