"""A log file as one process sees it: does a worker elsewhere read the file that is meant?

On every node of a job the same path may name another file (torchrun's log directory below /tmp), so
a worker that can open a path has not proven anything yet. Logs only grow: what stood at their
beginning and before the end that was found stays the same, however stale a network file system is.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Final

EDGE_BYTES: Final = 4 << 10
"""Compared at the beginning and before the end."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A file that can be opened."""

    changed: tuple[int, int]
    "Its size in bytes, and the time of its last change in nanoseconds."

    edges: str
    "Digest of its first and last bytes, as far as they were there when the run was discovered."


def sight(path: str, size: int) -> Sight | str:
    """The file at `path`, or why it cannot be opened. `size` is what it had when discovered."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as sources.reader opens it
            status = os.fstat(file.fileno())
            digest = hashlib.sha256(file.read(min(EDGE_BYTES, size)))
            file.seek(max(size - EDGE_BYTES, 0))
            digest.update(file.read(min(EDGE_BYTES, size)))
    except OSError as error:
        return error.strerror or str(error)
    return Sight((status.st_size, status.st_mtime_ns), digest.hexdigest())


def disagreement(path: str, size: int, there: Sight | str) -> str | None:
    """What another process sees at `path` and this one does not; None where they see the same.

    A file that this process cannot open either is no disagreement.
    """
    here = sight(path, size)
    if isinstance(here, str):
        return None
    if isinstance(there, str):
        return f"cannot open it ({there})"
    grown = not size and there.changed[0] > here.changed[0]  # nothing to compare, and we look last
    if here.changed != there.changed and (here.edges != there.edges or grown):
        return "finds another file there"
    return None
