"""How processes ended, as torchrun says it.

Written from PyTorch ``torch/distributed/elastic/multiprocessing/{api.py,errors/__init__.py}`` (2.0
to 2.13). The agent logs ``failed (exitcode: …)`` for the first failed worker of its node, stops
the others, restarts or gives up; the final failure table belongs to the last attempt. Its root
cause is the failure it *noticed* first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.parsers.base import BlockLine, BlockParser, LineParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.parsers.base import Row

_ENTRY: Final = re.compile(r"^\[\d+\]:\s*$")
_FIELD: Final = re.compile(
    r"^  (?P<key>time|host|rank|exitcode|error_file|traceback) *: ?(?P<value>.*)$"
)
_RULE: Final = re.compile(r"^[-=]{10,}\s*$")
_RANK: Final = re.compile(r"^(\d{1,9}) \(local_rank: (\d{1,9})\)")
_EXIT: Final = re.compile(r"^(-?\d{1,10}) +\(pid: (\d{1,18})\)")


class _FailureTable:
    """Entries `[n]:` with indented fields, up to the next rule of dashes or equal signs."""

    def __init__(self, kind: str, line: BlockLine) -> None:
        self._kind, self._head = kind, line
        self._entries: list[tuple[BlockLine, dict[str, str]]] = []

    def feed(self, line: BlockLine) -> bool:
        if _RULE.match(line.text):
            return True
        if _ENTRY.match(line.text):
            self._entries.append((line, {}))
        elif self._entries and (match := _FIELD.match(line.text)):
            self._entries[-1][1].setdefault(match["key"], match["value"].strip())
        return False

    def rows(self) -> Iterator[Row]:
        for line, fields in self._entries:
            rank = _RANK.match(fields.get("rank", ""))
            code = _EXIT.match(fields.get("exitcode", ""))
            own: dict[str, Any] = {
                "kind": self._kind,
                "rank": int(rank[1]) if rank else None,
                "failed_local_rank": int(rank[2]) if rank else None,
                "exit_code": int(code[1]) if code else None,
                "pid": int(code[2]) if code else None,
                "host": fields.get("host"),
                "time": fields.get("time", "").replace("_", " ") or None,
                "message": fields.get("traceback"),
            }
            text = f"rank {fields.get('rank', '?')}: exitcode {fields.get('exitcode', '?')}"
            yield ("exits", line.number, line.offset, text, own)


def _agent(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        pl.col("text").str.extract(r"^[EWIF][0-9]{4} [0-9:.]+ ([0-9]+) ").alias("agent")
    )


PARSERS = (
    BlockParser(
        name="elastic-failures",
        needles=("Failures:",),
        tables=("exits",),
        max_gap=3_000,
        opens=lambda line: (
            _FailureTable("table_row", line) if line.text.rstrip() == "Failures:" else None
        ),
        sample="Failures:\n[1]:\n  time      : 2026-11-29_16:00:28\n  host      : node0\n"
        "  rank      : 0 (local_rank: 0)\n  exitcode  : -15 (pid: 29617)  (SIGTERM)\n"
        "------------------------------------------------------------\n",
    ),
    BlockParser(
        name="elastic-root-cause",
        needles=("Root Cause (first observed failure):",),
        tables=("exits",),
        max_gap=3_000,
        opens=lambda line: (
            _FailureTable("table_root", line) if line.text.startswith("Root Cause (first") else None
        ),
        sample="Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-29_16:00:27\n"
        "  host      : node0\n  rank      : 2 (local_rank: 2)\n"
        "  exitcode  : -9 (pid: 29619)  (SIGKILL)\n"
        "============================================================\n",
    ),
    LineParser(
        name="elastic-failed",
        table="exits",
        needles=("failed (exitcode:",),
        pattern=r"failed \(exitcode: *(?P<exit_code>-?[0-9]+)\) local_rank: *"
        r"(?P<failed_local_rank>[0-9]+) \(pid: *(?P<pid>[0-9]+)\)",
        constants={"kind": "failed_line"},
        finish=_agent,
        sample="E1129 16:00:28.026000 29612 torch/distributed/elastic/multiprocessing/api.py:1002]"
        " failed (exitcode: -9) local_rank: 2 (pid: 29619) of binary: /opt/venv/bin/python3",
    ),
    LineParser(
        name="elastic-stopped",
        table="exits",
        needles=("closing signal SIG",),
        pattern=r"Sending process (?P<pid>[0-9]+) closing signal SIG[A-Z]+",
        constants={"kind": "stopped"},
        finish=_agent,
        sample="W1129 16:00:27.433000 29612 torch/distributed/elastic/multiprocessing/api.py:1028]"
        " Sending process 29617 closing signal SIGTERM",
    ),
)
