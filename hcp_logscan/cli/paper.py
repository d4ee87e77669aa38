"""Text for a person at a terminal: wrapped to its width, headings bold where that can be shown."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Final

import typer

from hcp_logscan.model.safe import cut, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MIN_WIDTH: Final = 24
DEFAULT_WIDTH: Final = 80

Line = str
HEADING: Final = "\0"
"""First character of a heading; no text has it, because `one_line` spells it out."""


def width() -> int:
    """Columns of the terminal (or of COLUMNS); 80 where standard output is none."""
    return max(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, MIN_WIDTH)


def print_lines(lines: Iterable[Line]) -> None:
    """Print them; headings are bold on a terminal that wants it (NO_COLOR, TERM=dumb)."""
    environment = os.environ
    plain = bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"
    bold = sys.stdout.isatty() and not plain
    for line in lines:
        text = line.removeprefix(HEADING)
        typer.echo(typer.style(text, bold=True) if bold and text != line else text)


def heading(text: str) -> Line:
    """A line that stands out."""
    return HEADING + one_line(text)


def wrapped(text: str, columns: int, first: str = "", rest: str | None = None) -> Iterator[Line]:
    """Text wrapped after `first`; further lines after `rest`, or as many blanks as `first` has.

    A word that is too long stays whole, so that addresses and commands can be copied; text without
    blanks between its words (Chinese) breaks anywhere.
    """
    from rich.cells import cell_len, chop_cells

    rest = " " * cell_len(first) if rest is None else rest
    line, lead = "", first
    for word in one_line(text).split(" "):
        longest = max(columns - cell_len(rest), 12)
        pieces = [word] if word.isascii() else chop_cells(word, longest) or [""]
        for number, piece in enumerate(pieces):
            joined = f"{line}{' ' if number == 0 and line else ''}{piece}"
            if line and cell_len(joined) > max(columns - cell_len(lead), 12):
                yield (lead + line).rstrip()
                line, lead = piece, rest
            else:
                line = joined
    yield (lead + line).rstrip()


def folded(text: str, columns: int, lead: str, rows: int = 3) -> Iterator[Line]:
    """Log text folded at the edge, `lead` before each row, cut after some rows."""
    from rich.cells import cell_len, chop_cells

    room = max(columns - cell_len(lead) - 1, 12)
    pieces = chop_cells(one_line(cut(text.rstrip(), 4 * rows * columns)), room) or [""]
    for number, piece in enumerate(pieces[:rows]):
        more = "\u2026" if number == rows - 1 and len(pieces) > rows else ""
        yield (lead + piece + more).rstrip()


def literal(text: str, columns: int, first: str = "") -> Line:
    """Log text on one line, cut at the edge."""
    from rich.cells import cell_len, set_cell_size

    room = max(columns - cell_len(first), 12)
    safe = one_line(cut(text.rstrip(), 4 * columns))
    return first + (safe if cell_len(safe) <= room else set_cell_size(safe, room - 1) + "\u2026")
