"""Worker processes that scan batches of units. Nothing heavy is imported before they are started.

A process must not be forked once polars was used (its thread pool does not survive that), so the
command line starts its workers first; from Python, fresh interpreters are started instead.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from hcp_logscan.engine.plan import batches, of_run
from hcp_logscan.model.errors import SourceError
from hcp_logscan.sources import reader
from hcp_logscan.sources.place import Place, Remote, holder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hcp_logscan.engine.plan import Unit
    from hcp_logscan.engine.scan import BatchResult
    from hcp_logscan.sources.discover import Discovered

    Tell = Callable[[Sequence[Unit]], None]

POOL_BYTES: Final = 96 << 20
"""Below this many bytes of logs one process is as fast: starting workers costs what they save."""

MAX_WORKERS: Final = 32
_PARENT_GONE_S: Final = 1.0


def workers_for_all(found: Sequence[Discovered], wanted: int | None) -> int:
    """How many worker processes to start for several runs, as `workers_for` does for one."""
    files = [file for run in found for file in run.files if file.path != reader.STDIN]
    if not files:
        return 1
    if wanted is not None:
        return wanted
    return workers_for_bytes(sum(file.size for file in files))


def workers_for_bytes(total: int) -> int:
    """How many processes so many bytes are worth."""
    return 1 if total < POOL_BYTES else min(available_cpus(), MAX_WORKERS)


def workers_for(found: Discovered, wanted: int | None) -> int:
    """How many worker processes to start; 1 scans in this process.

    `wanted` is what the user says; None decides by the size of the logs.
    """
    if any(file.path == reader.STDIN for file in found.files):
        return 1
    if wanted is not None:
        return wanted
    if any(_of_server(file.path) for file in found.files):
        return 1  # a server may refuse many connections: who wants them says so
    return workers_for_bytes(sum(file.size for file in found.files))


def _of_server(place: Place) -> bool:
    return isinstance(holder(place), Remote)


def available_cpus() -> int:
    """CPUs this process may use: a Slurm step or a container may have fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pending(Protocol):
    """A batch that somebody scans: a future of a process pool, or of a cluster."""

    def result(self) -> BatchResult:
        """Wait for the tables."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A scan of a run that is under way."""

    found: Discovered
    futures: deque[Pending] | None
    """Batches in worker processes; None scans in this process, once the results are asked for. A
    batch leaves once its result is handed on: a future keeps its result alive."""

    work: tuple[Unit, ...] | None = None
    "What is to be scanned; None is all of the run."

    tell: Tell | None = None
    """Is told of the units whose results are handed on. For its sake a scan in this process is cut
    into batches, too."""

    def results(self) -> Iterator[BatchResult]:
        """The results in the order of the units. Raises SourceError if a worker was killed."""
        for result in self._results():
            if self.tell is not None:
                self.tell([stats.unit for stats in result.units])
            yield result

    def _results(self) -> Iterator[BatchResult]:
        if self.futures is None:
            work = of_run(self.found) if self.work is None else self.work
            total = sum(file.size for file in self.found.files)
            for batch in [list(work)] if self.tell is None else batches(work, 1, total):
                yield _scan(batch)
            return
        try:
            while self.futures:
                yield self.futures.popleft().result()
        except BrokenProcessPool as error:
            raise SourceError(
                "a worker process ended while it scanned, most likely for want of memory."
                " Scan again with --workers 1."
            ) from error


@contextlib.contextmanager
def begun(found: Discovered, workers: int, some: Sequence[Unit] | None = None) -> Iterator[Begun]:
    """Scan in `workers` processes; on the way out none of them is left, whatever happened.

    `some` are the units to scan, if not all of the run.
    """
    if workers <= 1:
        yield Begun(found, None, None if some is None else tuple(some))
        return
    total = sum(file.size for file in found.files)
    work = batches(of_run(found) if some is None else some, workers, total)
    executor = ProcessPoolExecutor(
        max(1, min(workers, len(work))), _context(), _begin, (os.getpid(),)
    )
    try:
        yield Begun(found, _queued(work, executor))
    except BaseException:
        _stop(executor)
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def begun_each(found: Sequence[Discovered], workers: int) -> Iterator[Iterator[Begun]]:
    """Scan several runs in one set of workers: iterate for the scan of one run after the other.

    The run after the one that is handed on is under way, too, so that workers have something to do
    while it is analysed; later ones wait, so that no more results than that are held. The first
    scans begin at once, before anything heavy is imported. Should the workers break down, the runs
    that follow are scanned in this process.
    """
    if workers <= 1:
        yield (Begun(run, None) for run in found)
        return
    executor = ProcessPoolExecutor(workers, _context(), _begin, (os.getpid(),))
    ahead = deque(_submitted(run, workers, executor) for run in found[:2])
    try:
        yield _in_turn(ahead, found[2:], workers, executor)
    except BaseException:
        _stop(executor)
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _in_turn(
    ahead: deque[Begun],
    later: Sequence[Discovered],
    workers: int,
    executor: ProcessPoolExecutor,
) -> Iterator[Begun]:
    waiting = deque(later)
    while ahead:
        running = ahead.popleft()
        if waiting:
            ahead.append(_submitted(waiting.popleft(), workers, executor))
        yield Begun(running.found, None) if _broken(running) else running


def _submitted(found: Discovered, workers: int, executor: ProcessPoolExecutor) -> Begun:
    if any(file.path == reader.STDIN for file in found.files):
        return Begun(found, None)
    work = batches(of_run(found), workers, sum(file.size for file in found.files))
    try:
        return Begun(found, _queued(work, executor))
    except BrokenProcessPool:
        return Begun(found, None)


def _queued(work: Iterable[Sequence[Unit]], executor: ProcessPoolExecutor) -> deque[Pending]:
    """Hand batches to the workers, which the first ones start.

    Ctrl-C waits until that is done: an executor that is interrupted at it cannot be shut down. The
    workers inherit the blocked signal, which they ignore.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return deque(executor.submit(_scan, batch) for batch in work)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _broken(running: Begun) -> bool:
    """Whether the workers broke down before this run's turn came: another run is to blame."""
    mine = (future for future in running.futures or () if isinstance(future, Future))
    return any(
        isinstance(future.exception(), BrokenProcessPool) for future in mine if future.done()
    )


def _stop(executor: ProcessPoolExecutor) -> None:
    """End the workers at once: what they are reading is not wanted any more."""
    for process in list((executor._processes or {}).values()):  # noqa: SLF001 - public from 3.14 on
        process.terminate()


def _context() -> multiprocessing.context.BaseContext:
    """Fork while this process is light and alone, else fresh interpreters."""
    light = sys.platform == "linux" and "polars" not in sys.modules
    return multiprocessing.get_context(
        "fork" if light and threading.active_count() == 1 else "spawn"
    )


def _begin(parent: int) -> None:
    """Set up a worker: it leaves Ctrl-C to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # the workers are the parallelism
    os.environ["POLARS_MAX_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_GONE_S)
    os._exit(1)


def _scan(batch: Sequence[Unit]) -> BatchResult:
    from hcp_logscan.engine.scan import scan_batch  # noqa: PLC0415 - polars, once it is needed

    return scan_batch(batch)
