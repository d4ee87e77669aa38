"""The tables of a Report, written into docs/python.md: `python -m hcp_logscan.cli.guide FILE`.

Names and types come from a scan of the bundled run, so they are those that a user sees; meanings
come from FACTS and EVENTS.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hcp_logscan.analysis.facts import FACTS
from hcp_logscan.model.errors import HcpLogscanError, OutputError
from hcp_logscan.model.events import EVENTS
from hcp_logscan.model.markdown import cell, code, prose_line
from hcp_logscan.rules.meaning import OVER_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from hcp_logscan.api import Report

BEGIN: Final = "<!-- Made by `make docs` from here on: edit the program, not this part. -->"
END: Final = "<!-- Made by `make docs` up to here. -->"

PLACE: Final[Mapping[str, str]] = {
    "attempt": "number of the attempt, from 0",
    "rank": "global rank that printed the line; null if unknown",
    "file": "path relative to the run directory",
    "line": "line number, from 1",
    "text": "the line without prefixes; null in series, whose lines are read again when shown",
    "offset": "byte at which the line begins; in the text of a compressed file",
    "label": "srun task, where the line has one",
    "local_rank": "local rank, where the line or its file has one",
    "replica": "TorchX replica, where the line has one",
    "epoch": "start-ups and failures seen before it in its file",
    "process": "which process printed it, where that is known and its rank is not",
    "said_rank": "the rank that the line speaks of",
    "count": "equal lines that this row stands for",
    "last": "line number of the last of them",
}
"""Columns that many event tables have."""

_FOUND: Final[Mapping[str, str]] = {
    "iterations": "one row per logged iteration; columns as in the fact table",
    "truncated": "a file or block that is cut off",
    "unreadable": "a file that could not be read",
}
_PRINTED: Final[Mapping[str, str]] = {
    "train_iters": "planned iterations as printed",
    "time": "time stamp as printed",
}


def section(report: Report) -> str:
    """The part of docs/python.md that is made: every table of a report."""
    blocks = [
        BEGIN,
        "### Facts: `report.facts`",
        *_facts(report.facts),
        "### Events: `report.tables`",
        "Event tables may have these columns besides their own:",
        _table(("column", "meaning"), ((code(name), cell(text)) for name, text in PLACE.items())),
        _table(("table", "a row is", "its own columns"), _events(report.tables)),
        END,
    ]
    return "\n\n".join(blocks)


def _facts(frames: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    for table, frame in frames.items():
        yield f"`{table}` has one row for {prose_line(OVER_WORDS[table]).partition(';')[0]}."
        known = {name: fact.meaning for name, fact in FACTS[table].items()}
        meanings = {**PLACE, **_PRINTED, **known}
        yield _table(
            ("column", "kind", "meaning"),
            (
                (code(name), str(dtype), cell(meanings.get(name, "")))
                for name, dtype in frame.schema.items()
            ),
        )


def _events(frames: Mapping[str, pl.DataFrame]) -> Iterator[tuple[str, str, str]]:
    for table, frame in sorted(frames.items()):
        event = EVENTS.get(table)
        about = _FOUND.get(table) or (event.meaning if event else "")
        own = [
            f"{code(name)} ({dtype})"
            for name, dtype in frame.schema.items()
            if name not in PLACE and table != "iterations"
        ]
        yield code(table), cell(about), ", ".join(own)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def renewed(text: str, made: str) -> str:
    """The document with its made part replaced. Raises OutputError where it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise OutputError(f"the document lacks the lines\n{BEGIN}\n{END}")
    return before + made + after


def main(arguments: Sequence[str]) -> int:
    """Renew the made part of the document named."""
    from hcp_logscan.api import demo_run, scan

    if len(arguments) != 1:
        sys.stderr.write("usage: python -m hcp_logscan.cli.guide FILE\n")
        return 2
    path = Path(arguments[0])
    try:
        with demo_run() as run_dir:
            made = section(scan(run_dir))
        path.write_text(renewed(path.read_text(encoding="utf-8"), made), encoding="utf-8")
    except (OSError, HcpLogscanError) as error:
        sys.stderr.write(f"{path}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
