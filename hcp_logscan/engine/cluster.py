"""Units scanned by the workers of a dask cluster: a running one, or one made for this scan.

Workers read the files and parse them; only folded tables travel. dask gives the batches of a lost
worker to another one, until as many workers died of a batch as its scheduler allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections import deque
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from hcp_logscan.engine import remote, versions
from hcp_logscan.engine.plan import batches, of_run
from hcp_logscan.engine.pool import MAX_WORKERS, Begun, available_cpus
from hcp_logscan.model.errors import EngineError, UsageError
from hcp_logscan.sources import reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distributed import Client, Future

    from hcp_logscan.engine.scan import BatchResult
    from hcp_logscan.sources.discover import Discovered

BATCH_BYTES: Final = 128 << 20
"""Most of a batch: some seconds of work, so that sending it does not count."""

CONNECT_S: Final = 5.0
"""For the connection to a running scheduler."""

WORKERS_S: Final = 60.0
"""For its first worker, or for all workers of a cluster of our own, to be there."""

END_S: Final = 5.0
"""For our own cluster to end."""

_ADDRESS: Final = re.compile(
    r"(?:(?:tcp|tls|ws|wss)://)?(?:[\w.-]+|\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]):\d{1,5}"
)
_QUIET: Final = ("distributed", "tornado", "asyncio", "bokeh")


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch on its way."""

    task: remote.Task
    future: Future[remote.Answer]

    def result(self) -> BatchResult:
        """Wait for the tables; the cluster may forget them. Raises EngineError."""
        from distributed import KilledWorker  # noqa: PLC0415 - an extra

        try:
            return remote.accepted(self.task, self.future.result())
        except KilledWorker as error:
            raise EngineError(
                f"{error.allowed_failures + 1} workers died one after the other while they scanned"
                f" the batch that begins with {self.task.units[0].path}, most likely for want of"
                " memory. Give each worker more, or scan with --engine local."
            ) from error
        except CancelledError as error:
            raise EngineError("the scheduler was lost during the scan. Scan again.") from error
        finally:
            self.future.release()


@contextlib.contextmanager
def begun(found: Discovered, workers: int | None, scheduler: str | None) -> Iterator[Begun]:
    """Scan on the cluster of `scheduler`, else in `workers` processes, else in one per CPU.

    On the way out nothing of the scan is left on the cluster, and no process of our own, whatever
    happened. Raises UsageError where dask is not installed, EngineError where the cluster cannot be
    used.
    """
    if importlib.util.find_spec("distributed") is None:
        raise UsageError("--engine dask needs an extra: pip install 'hcp-logscan[dask]'")
    if scheduler is not None and not _ADDRESS.fullmatch(scheduler):
        raise UsageError(f"{scheduler!r} is no address of a scheduler, like tcp://host:8786.")
    if any(file.path == reader.STDIN for file in found.files):
        raise UsageError("standard input is read in this process: scan it with --engine local.")
    with contextlib.ExitStack() as stack:
        wanted = workers or min(available_cpus(), MAX_WORKERS)
        address = scheduler or stack.enter_context(_own_cluster(wanted))
        stack.enter_context(_quiet())
        client = stack.enter_context(_connected(address, 1 if scheduler else wanted))
        total = sum(file.size for file in found.files)
        made = batches(of_run(found), len(client.nthreads()), total, BATCH_BYTES)
        tasks = [remote.task_of(batch, found.files) for batch in made]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a large graph: there are many small tasks
            futures = client.map(remote.scan, tasks, key="hcp-logscan", pure=False)
        yield Begun(found, deque(map(_Batch, tasks, futures)))


@contextlib.contextmanager
def _connected(address: str, least: int) -> Iterator[Client]:
    """A client of a cluster whose workers can run our code. Raises EngineError."""
    _reach(address)
    client = _client(address)
    try:
        try:
            client.wait_for_workers(least, timeout=WORKERS_S)
        except TimeoutError as error:
            raise EngineError(
                f"the scheduler {address} has fewer than {least} workers after {WORKERS_S:.0f} s."
                " Start workers first."
            ) from error
        versions.check(cast("Mapping[str, Any]", client.get_versions(packages=versions.PACKAGES)))
        yield client
    finally:
        client.close()


def _client(address: str) -> Client:
    """A new client. Raises EngineError."""
    from distributed import Client  # noqa: PLC0415 - an extra

    with warnings.catch_warnings(), ThreadPoolExecutor(1) as thread:
        warnings.simplefilter("ignore")  # of other versions: these are an error of our own
        making = thread.submit(
            Client, address, timeout=CONNECT_S, set_as_default=False, name="hcp-logscan"
        )
        try:
            return making.result()
        except OSError as error:
            raise EngineError(f"no connection to the scheduler {address}: {error}.") from error
        except KeyboardInterrupt:
            with contextlib.suppress(OSError):
                making.result().close()  # half made, it would wait for itself, and complain
            raise


def _reach(address: str) -> None:
    """Raise EngineError where no scheduler answers: a client would go on trying for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        with ThreadPoolExecutor(1) as thread:  # a notebook has a running event loop in this one
            kind = thread.submit(asyncio.run, _kind(address)).result()
        why = "" if kind == "Scheduler" else f"a {kind.lower()} of a cluster is there"
    except MemoryError:  # dask takes the first bytes that come for a length
        why = "something else answers there"
    except (OSError, OverflowError, TypeError) as error:  # TypeError: TLS that is not set up
        why = str(error) or "no answer"
    if why:
        raise EngineError(
            f"no dask scheduler answers at {address} ({why}). Is it running, and is that the"
            " address which it prints?"
        )


async def _kind(address: str) -> str:
    """What dask process listens there: Scheduler, Worker or Nanny. Raises OSError, TypeError."""
    from distributed import Security, rpc  # noqa: PLC0415 - an extra

    with_keys = Security().get_connection_args("client")
    async with rpc(address, connection_args=with_keys) as server:
        said = await asyncio.wait_for(server.identity(), CONNECT_S)
    return str(said["type"])


@contextlib.contextmanager
def _own_cluster(workers: int) -> Iterator[str]:
    """The scheduler's address of a cluster on this machine that ends with the scan."""
    program = [sys.executable, "-P", "-m", "hcp_logscan.engine.workers", str(workers)]
    seen = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, seen))}
    with (
        tempfile.TemporaryDirectory(prefix="hcp-logscan-", ignore_cleanup_errors=True) as scratch,
        subprocess.Popen(  # noqa: S603 - this interpreter, and a number
            [*program, scratch],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            ready = select.select([process.stdout], [], [], WORKERS_S)[0]
            address = process.stdout.readline().decode().strip() if ready else ""
            if not address:
                command = " ".join(program)
                raise EngineError(f"the workers did not start. To see why, run: {command} /tmp")
            yield address
        finally:
            process.stdin.close()  # it ends, with its workers
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep dask's log off standard error: what the user must know is raised."""
    importlib.import_module("distributed")  # makes its loggers

    loggers = [
        logger
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and name.partition(".")[0] in _QUIET
    ]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
