"""`--follow`: a live run read again and again, its summary kept up to date.

Each look reads what is new (`engine.follow`) and judges the whole; between two looks most of the
time is slept. The report is written once, at the end.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import typer

from hcp_logscan.cli.gate import EXIT_USAGE
from hcp_logscan.cli.show import Shown, complain, console, show, write
from hcp_logscan.model.errors import NothingUnderstoodError, SourceError, UsageError
from hcp_logscan.model.said import N_
from hcp_logscan.sources import reader
from hcp_logscan.sources.discover import discover

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.live import Live

    from hcp_logscan.api import Report
    from hcp_logscan.cli.gate import Gate
    from hcp_logscan.cli.show import Charts
    from hcp_logscan.cli.triage import ScanRun
    from hcp_logscan.engine.follow import Follower
    from hcp_logscan.model.report import RedactionLevel
    from hcp_logscan.reporting.tongue import Lang
    from hcp_logscan.sources.discover import Selection

INTERVAL_S: Final = 2.0
"""Between two looks."""

IDLE_PER_BUSY: Final = 4
"""Many times as long as a look took, where that is more: one fifth of the time it is busy."""

LONGEST_S: Final = 30.0
"""But no longer than that: the first look, which reads all there is, may have taken minutes."""

_NAP_S: Final = 0.1
"""How soon a Ctrl-C is noticed."""

ENDINGS: Final = frozenset(
    {"HCP012", "HCP017", "HCP305", "HCP306", "HCP307", "HCP404", "HCP902", "HCP904"}
)
"""Rules about what is missing at the end of the log. While a run is live it may still come, so they
do not stop `--follow`; they count once the run is followed no more."""


def checked(run_dirs: Sequence[str]) -> str:
    """The run to follow. Raises UsageError for several, standard input, and URLs."""
    if len(run_dirs) > 1:
        raise UsageError("--follow reads one RUN_DIR.")
    if run_dirs[0] == reader.STDIN:
        raise UsageError("--follow reads files; standard input is read to its end without it.")
    if "://" in run_dirs[0]:
        raise UsageError("--follow reads files of this machine, not those behind a URL.")
    return run_dirs[0]


def follow(
    run_dir: str,
    scan_run: ScanRun,
    gate: Gate,
    shown: Shown,
    outputs: Sequence[Path],
    charts: Charts,
    *,
    selection: Selection,
    workers: int | None,
    redact: RedactionLevel,
    lang: Lang = "en",
) -> int:
    """Follow a run until a finding stops it or Ctrl-C; write the report; the exit code.

    Raises what scanning raises where there is nothing to report at the end, and KeyboardInterrupt
    at a second Ctrl-C.
    """
    look = _Look(run_dir, scan_run, selection, workers, redact)
    with _stoppable() as stop, _screen(shown, lang) as screen:
        last = False
        while True:
            began = time.monotonic()
            look.again(whole=last)
            screen.update(look)
            if last or _stopped(look.report, gate):
                break
            stop.wait(_pause(time.monotonic() - began))
            last = stop.asked
    if look.report is None:
        assert look.trouble is not None
        raise look.trouble
    if shown is not Shown.TEXT or screen.printed is not look.report:
        show(look.report, shown, lang)
    failed = write(look.report, shown, outputs, gate.wishes(charts.value, lang))
    code = gate.code(look.report)
    return EXIT_USAGE if failed else code


def _pause(took: float) -> float:
    """Seconds until the next look, after one that took so many.

    >>> _pause(0.1), _pause(2), _pause(60)
    (2.0, 8, 30.0)
    """
    return max(INTERVAL_S, min(IDLE_PER_BUSY * took, LONGEST_S))


def _stopped(report: Report | None, gate: Gate) -> bool:
    return report is not None and any(found.rule not in ENDINGS for found in gate.stopping(report))


class _Look:
    """What is known of the run: its last report, or why there is none yet."""

    def __init__(
        self,
        run_dir: str,
        scan_run: ScanRun,
        selection: Selection,
        workers: int | None,
        redact: RedactionLevel,
    ) -> None:
        self._run_dir, self._scan_run, self._selection = run_dir, scan_run, selection
        self._workers, self._redact = workers, redact
        self._follower: Follower | None = None
        self._first = True
        self.report: Report | None = None
        self.trouble: NothingUnderstoodError | SourceError | None = None

    def again(self, *, whole: bool) -> None:
        """Read what is new. Raises SourceError if the run is not there at the first look."""
        try:
            self._read(whole=whole)
            self.trouble = None if self.report is not None else self.trouble
        except (NothingUnderstoodError, SourceError) as error:  # gone for a while, or for good
            from hcp_logscan.reporting.redact import redact_error

            self.trouble = redact_error(error, self._redact)
            if self._first and isinstance(error, SourceError):
                raise self.trouble from None
        self._first = False

    def _read(self, *, whole: bool) -> None:
        found = discover(self._run_dir, self._selection)
        if self._follower is None:
            from hcp_logscan.engine.follow import Follower

            self._follower = Follower(self._workers)
        running = self._follower.read(found, whole=whole)
        if running is not None:
            self.report = self._scan_run(self._run_dir, running=running)


@dataclass(slots=True)
class _Stop:
    """Whether Ctrl-C was pressed. An event has a lock, which may be held when the signal comes."""

    asked: bool = False

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until then."""
        end = time.monotonic() + seconds
        while not self.asked and (rest := end - time.monotonic()) > 0:
            time.sleep(min(rest, _NAP_S))


@contextmanager
def _stoppable() -> Iterator[_Stop]:
    """The first Ctrl-C asks to stop; the second interrupts at once."""
    stop = _Stop()

    def ask(_signal: int, _frame: object) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


class _Screen:
    """Where the summary is shown while the run is followed: nowhere, where a document is wanted."""

    printed: Report | None = None
    "The report whose summary stands there for good."

    def update(self, look: _Look) -> None:
        """Show how it is now."""


@contextmanager
def _screen(shown: Shown, lang: Lang) -> Iterator[_Screen]:
    """In place on a terminal, else printed anew; nothing where a document is asked for."""
    if shown is not Shown.TEXT:
        yield _Screen()
    elif not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        yield _Paper(lang)
    else:
        from rich.live import Live

        live = Live(
            console=console(),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with live:
            yield _InPlace(live, lang)


class _Paper(_Screen):
    """Prints the summary when the verdict, the findings or the state of an attempt changed."""

    def __init__(self, lang: Lang) -> None:
        self._lang = lang
        self._status: object = None
        self._trouble = ""

    def update(self, look: _Look) -> None:
        said = "" if look.trouble is None else str(look.trouble)
        if said and said != self._trouble:
            complain(f"waiting: {said}")
        self._trouble = said
        report = look.report
        if report is None or (status := _status(report)) == self._status:
            return
        if self.printed is not None:
            typer.echo()
        show(report, Shown.TEXT, self._lang)
        sys.stdout.flush()
        self._status, self.printed = status, report


def _status(report: Report) -> object:
    """What a summary is printed anew for; not every iteration."""
    data = report.data
    return (
        data.verdict.status,
        data.verdict.confidence,
        [(found.rule, found.severity, found.attempt) for found in data.findings],
        [(attempt.attempt, attempt.outcome) for attempt in data.attempts],
    )


class _InPlace(_Screen):
    """Keeps the summary up to date; what the terminal has no room for is cut."""

    def __init__(self, live: Live, lang: Lang) -> None:
        self._lang = lang
        self._live = live
        self._report: Report | None = None
        self._drawn: object = None

    def update(self, look: _Look) -> None:
        from rich.console import Group
        from rich.text import Text

        from hcp_logscan.reporting.safe import one_line
        from hcp_logscan.reporting.text import render_text, where_line

        screen = self._live.console
        said = "" if look.trouble is None else one_line(str(look.trouble))
        if look.report is self._report and (said, screen.size) == self._drawn:
            return
        self._report, self._drawn = look.report, (said, screen.size)
        lang = self._lang
        follows = where_line(N_("following; Ctrl-C writes the report and ends"), lang)
        head = [Text(follows, style="dim")]
        if said:
            head.append(Text(where_line(N_("waiting: {said}"), lang, said=said)))
        if look.report is not None:
            colours = screen.color_system is not None and not screen.no_color
            text = render_text(look.report.data, width=screen.width, color=colours, lang=self._lang)
            head.append(Text.from_ansi(text))
        self._live.update(Group(*head), refresh=True)
