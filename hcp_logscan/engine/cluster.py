"""Units scanned by the workers of a dask cluster: a running one, or one made for this scan.

Workers read the files and parse them; only folded tables travel. dask gives the batches of a lost
worker to another one, until as many workers died of a batch as its scheduler allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import socket
import tempfile
import warnings
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from hcp_logscan.engine import remote, versions
from hcp_logscan.engine.plan import batches, units
from hcp_logscan.engine.pool import MAX_WORKERS, Begun, available_cpus
from hcp_logscan.model.errors import EngineError, UsageError
from hcp_logscan.sources import reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distributed import Client, Future, LocalCluster

    from hcp_logscan.engine.scan import BatchResult
    from hcp_logscan.sources.discover import Discovered

BATCH_BYTES: Final = 128 << 20
"""Most of a batch: some seconds of work, so that sending it does not count."""

CONNECT_S: Final = 5.0
"""For the connection to a running scheduler."""

WORKERS_S: Final = 60.0
"""For its first worker, or for all workers of a cluster of our own, to be there."""

_ADDRESS: Final = re.compile(
    r"(?:(?:tcp|tls|ws|wss)://)?(?:[\w.-]+|\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]):\d{1,5}"
)
_QUIET: Final = ("distributed", "tornado", "asyncio", "bokeh")
_CONFIG: Final = {
    "distributed.worker.profile.enabled": False,  # it samples the scan a hundred times a second
    "distributed.diagnostics.nvml": False,
    "distributed.admin.large-graph-warning-threshold": "1GiB",  # many small tasks, no large one
}


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
    try:
        import dask  # noqa: PLC0415 - an extra, and slow
        import distributed  # noqa: F401, PLC0415
    except ImportError as error:
        raise UsageError("--engine dask needs an extra: pip install 'hcp-logscan[dask]'") from error
    if scheduler is not None and not _ADDRESS.fullmatch(scheduler):
        raise UsageError(f"{scheduler!r} is no address of a scheduler, like tcp://host:8786.")
    if any(file.path == reader.STDIN for file in found.files):
        raise UsageError("standard input is read in this process: scan it with --engine local.")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        stack.enter_context(dask.config.set(_CONFIG))
        wanted = workers or min(available_cpus(), MAX_WORKERS)
        where = scheduler or stack.enter_context(_own_cluster(wanted))
        client = stack.enter_context(_connected(where, 1 if scheduler else wanted))
        total = sum(file.size for file in found.files)
        made = batches(units(found.files), len(client.nthreads()), total, BATCH_BYTES)
        tasks = [remote.task_of(batch, found.files) for batch in made]
        futures = client.map(remote.scan, tasks, key="hcp-logscan", pure=False)
        yield Begun(found, tuple(map(_Batch, tasks, futures)))


@contextlib.contextmanager
def _connected(where: str | LocalCluster, least: int) -> Iterator[Client]:
    """A client of a cluster whose workers can run our code. Raises EngineError."""
    from distributed import Client  # noqa: PLC0415 - an extra

    name = where if isinstance(where, str) else "of this process"
    if isinstance(where, str):
        _reach(where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions: these are an error below
            client = Client(where, timeout=CONNECT_S, set_as_default=False, name="hcp-logscan")
    except OSError as error:
        raise EngineError(f"no connection to the dask scheduler {name}: {error}.") from error
    try:
        try:
            client.wait_for_workers(least, timeout=WORKERS_S)
        except TimeoutError as error:
            raise EngineError(
                f"the scheduler {name} has fewer than {least} workers after {WORKERS_S:.0f} s."
                " Start workers first."
            ) from error
        versions.check(cast("Mapping[str, Any]", client.get_versions(packages=versions.PACKAGES)))
        yield client
    finally:
        client.close()


def _reach(address: str) -> None:
    """Raise EngineError where no scheduler answers: a client would go on trying for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        with ThreadPoolExecutor(1) as thread:  # a notebook has a running event loop in this one
            kind = thread.submit(asyncio.run, _kind(address)).result()
        why = "" if kind == "Scheduler" else f"a {kind.lower()} of a cluster is there"
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
def _own_cluster(workers: int) -> Iterator[LocalCluster]:
    """A cluster of processes on this machine that ends with the scan."""
    import dask  # noqa: PLC0415 - an extra
    from distributed import LocalCluster  # noqa: PLC0415

    with (
        tempfile.TemporaryDirectory(prefix="hcp-logscan-", ignore_cleanup_errors=True) as scratch,
        dask.config.set({"temporary-directory": scratch}),
    ):
        cluster = LocalCluster(
            n_workers=0,  # they are started where an interrupt ends them, too
            threads_per_worker=1,
            # its HTTP server starts without a dashboard, too: on any port, or 8787 may be taken
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL + 1,
            memory_limit=0,
            env={"POLARS_MAX_THREADS": "1"},  # the workers are the parallelism
        )
        try:
            cluster.scale(workers)
            yield cluster
        finally:
            _stop(cluster)
            cluster.close()


def _stop(cluster: LocalCluster) -> None:
    """End the workers at once: what they are reading is not wanted any more."""
    for nanny in cluster.workers.values():
        nanny.close_gracefully()  # so that it starts no other worker
        if nanny.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep dask's log off standard error: what the user must know is raised."""
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
