"""A report on standard output and on disk, as the options say."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from hcp_logscan.model.errors import HcpLogscanError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from hcp_logscan.api import Report
    from hcp_logscan.reporting.tongue import Lang
    from hcp_logscan.reporting.wishes import Wishes

REPORTS: Final = Path("reports")
"""Where default reports go."""


class Shown(StrEnum):
    """What standard output shows."""

    TEXT = "text"
    JSON = "json"
    MD = "md"
    NONE = "none"


class Language(StrEnum):
    """Language of what people read."""

    EN = "en"
    ZH = "zh"


class Charts(StrEnum):
    """Charts of the HTML report."""

    INTERACTIVE = "interactive"
    STATIC = "static"


def emit(report: Report, shown: Shown, outputs: Sequence[Path], wishes: Wishes) -> bool:
    """Print, then write; True if one of both failed. Neither waits for the other.

    A reader that has seen enough (`| head`) does not keep the reports from being written.
    """
    unprinted = not printed(lambda: show(report, shown, wishes.lang))
    return write(report, shown, outputs, wishes) or unprinted


def printed(show_all: Callable[[], None]) -> bool:
    """Show it; False where standard output takes no more, which is said.

    A reader that left is no failure: what comes behind it is to be done all the same.
    """
    try:
        show_all()
    except BrokenPipeError:
        _to_nobody()
    except OutputError as error:
        complain(str(error))
        return False
    return True


def show(report: Report, shown: Shown, lang: Lang) -> None:
    """Print what standard output shows. Raises OutputError where it takes no more."""
    if shown is Shown.JSON:
        print_document(report.to_json())
    elif shown is Shown.MD:
        print_document(report.to_markdown(lang=lang))
    elif shown is Shown.TEXT:
        from hcp_logscan.reporting.text import print_text

        with printing():
            print_text(report.data, console(), lang=lang)


def write(report: Report, shown: Shown, outputs: Sequence[Path], wishes: Wishes) -> bool:
    """Write the reports asked for, else the default one; True if one could not be written."""
    from hcp_logscan.cli.write import default_path, write_report
    from hcp_logscan.model.said import N_
    from hcp_logscan.reporting.text import where_line

    failed = False
    written: list[Path] = []
    paths = list(outputs)
    if not outputs and shown in {Shown.TEXT, Shown.NONE}:
        paths = [default_path(REPORTS, report.data.run.name)]
    for path in paths:
        try:
            write_report(report, path, wishes)
            written.append(path)
        except HcpLogscanError as error:
            complain(str(error))
            failed = True
    if shown is Shown.TEXT:
        for path in written:
            typer.echo(where_line(N_("Report: {path}"), wishes.lang, path=path))
    return failed


def print_document(text: str) -> None:
    """Print a whole document. Raises OutputError where standard output takes no more."""
    with printing():
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


@contextmanager
def printing() -> Iterator[None]:
    """Print within. Raises OutputError where standard output takes no more: a full disk, say.

    A reader that has read enough and left is no error: typer ends the program without a word.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.filename is not None:
            raise
        _to_nobody()
        raise OutputError(f"cannot write standard output: {error.strerror}.") from error


def _to_nobody() -> None:
    """What else is printed goes nowhere: the exit would flush what standard output still holds."""
    nobody = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):  # no file behind it
        os.dup2(nobody, sys.stdout.fileno())
    os.close(nobody)


def console() -> Console:
    """Standard output, 100 columns wide where it is no terminal, without colours if so wished."""
    from rich.console import Console

    class Paper(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            # rich would end the program here; typer does, where nobody else cares
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return Paper(
        highlight=False,
        soft_wrap=False,
        width=None if sys.stdout.isatty() else 100,
        no_color=True if os.environ.get("NO_COLOR") else None,
    )


def complain(message: str) -> None:
    """Say what is wrong on standard error; where nobody can be told, the exit code still tells."""
    with suppress(OSError):
        typer.echo(f"hcp-logscan: {message}", err=True)
