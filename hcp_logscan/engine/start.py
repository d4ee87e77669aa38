"""Where the files of a run are scanned: here, in worker processes, or on a dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from hcp_logscan.engine import cluster, pool
from hcp_logscan.model.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hcp_logscan.engine.pool import Begun
    from hcp_logscan.sources.discover import Discovered

EngineName = Literal["local", "dask"]
ENGINES: Final = ("local", "dask")


def started(
    found: Discovered,
    *,
    engine: str = "local",
    workers: int | None = None,
    scheduler: str | None = None,
) -> AbstractContextManager[Begun]:
    """Begin a scan, as the options say; the results are the same bytes, whatever they are.

    `workers` None leaves their number to the engine. Raises UsageError for options that do not go
    together.
    """
    if engine not in ENGINES:
        raise UsageError(f"engine is {engine!r}; known are {', '.join(ENGINES)}.")
    if engine == "local":
        if scheduler is not None:
            raise UsageError("a scheduler needs the dask engine: add --engine dask.")
        return pool.begun(found, pool.workers_for(found, workers))
    if scheduler is not None and workers is not None:
        raise UsageError(
            "a running cluster has its own workers: give --scheduler or --workers, not both."
        )
    return cluster.begun(found, workers, scheduler)
