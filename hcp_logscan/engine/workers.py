"""A dask cluster on this machine: `python -m hcp_logscan.engine.workers N FOLDER`.

It prints the address of its scheduler once N workers are there, and ends, with all of them, when
its standard input does: whatever happened to the process that started it. That process stays free
of dask's processes, and a Ctrl-C in its terminal does not reach them. FOLDER is for what dask keeps
on disk.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIG: Final = {
    "distributed.worker.profile.enabled": False,  # it samples the scan a hundred times a second
    "distributed.diagnostics.nvml": False,
}


def main(arguments: Sequence[str]) -> None:
    """Run the cluster until standard input ends."""
    import dask  # noqa: PLC0415 - an extra
    from distributed import LocalCluster  # noqa: PLC0415

    watch = threading.Thread(target=_end_with_parent, daemon=True)
    watch.start()
    dask.config.set({**CONFIG, "temporary-directory": arguments[1]})
    cluster = LocalCluster(
        n_workers=int(arguments[0]),
        threads_per_worker=1,
        # its HTTP server starts without a dashboard, too: on any port, for 8787 may be taken
        scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        silence_logs=logging.CRITICAL,
        memory_limit=0,
        env={"POLARS_MAX_THREADS": "1"},  # the workers are the parallelism
    )
    sys.stdout.write(f"{cluster.scheduler_address}\n")
    sys.stdout.flush()
    watch.join()


def _end_with_parent() -> None:
    """End at once: what the workers are reading is not wanted any more."""
    os.read(0, 1)
    for process in multiprocessing.active_children():
        process.kill()
        process.join()
    os._exit(0)  # a worker that dask starts in the place of one ends, too, once we are gone


if __name__ == "__main__":
    main(sys.argv[1:])
