"""How far a scan is: a bar on standard error, where that is a terminal and the scan takes a while.

The bar moves when a batch of units is done, so that nothing is counted line by line. rich is
imported once there is something to show.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from rich.progress import Progress, TaskID

    from hcp_logscan.engine.plan import Unit
    from hcp_logscan.engine.pool import Begun, Tell
    from hcp_logscan.sources.discover import Discovered

PATIENCE_S: Final = 0.5
"""A scan that is done by then shows no bar: it would only flash."""


@contextmanager
def watched(started: AbstractContextManager[Begun]) -> Iterator[Begun]:
    """A scan of one run that shows how far it is."""
    with started as running, shown((running.found,)) as tell:
        yield replace(running, tell=tell)


@contextmanager
def shown(found: Sequence[Discovered]) -> Iterator[Tell | None]:
    """What to tell of finished units of these runs; None where nobody would see a bar."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = _Bar(found)
    try:
        yield bar.tell
    finally:
        bar.close()


class _Bar:
    def __init__(self, found: Iterable[Discovered]) -> None:
        files = [file for run in found for file in run.files]
        self._bytes, self._files = sum(file.size for file in files), len(files)
        self._done_bytes = self._done_files = 0
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def tell(self, units: Sequence[Unit]) -> None:
        """These units are done."""
        self._done_bytes += sum(unit.size for unit in units)
        self._done_files += sum(unit.end is None for unit in units)
        if self._done_files >= self._files:
            self.close()
        elif self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._done_bytes, files=self._said())
        elif time.monotonic() - self._began >= PATIENCE_S:
            self._open()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        colours = True if os.environ.get("NO_COLOR") else None
        self._progress = Progress(
            BarColumn(bar_width=20),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("{task.fields[files]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True, no_color=colours, highlight=False),
            transient=True,
            redirect_stdout=False,  # it may be a pipe, and is nobody's terminal to tidy
        )
        self._task = self._progress.add_task(
            "", total=self._bytes or None, completed=self._done_bytes, files=self._said()
        )
        self._progress.start()

    def _said(self) -> str:
        return f"{self._done_files:,} of {self._files:,} files"

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._task = None
            self._files = 0
