"""What a worker of a cluster does: a batch of units in, its tables and what it saw out."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hcp_logscan._version import __version__
from hcp_logscan.engine.sight import Sight, disagreement, sight
from hcp_logscan.model.errors import EngineError
from hcp_logscan.sources.place import absolute, on_disk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.engine.plan import Unit
    from hcp_logscan.engine.scan import BatchResult
    from hcp_logscan.sources.discover import LogFile

_ALONE: Final = threading.Lock()
"""A worker may have several threads; the scanner's database has one scratch space."""


@dataclass(frozen=True, slots=True)
class Task:
    """A batch, as it is sent."""

    units: tuple[Unit, ...]
    "With absolute paths: a worker stands in another directory."

    sizes: tuple[int, ...]
    "What the file of each unit had when it was discovered, in bytes."

    version: str = __version__
    "Of the process that sends it."


@dataclass(frozen=True, slots=True)
class Answer:
    """A batch, as it comes back."""

    result: BatchResult
    host: str
    sights: tuple[Sight | str, ...]
    "The file of each unit as the worker saw it, or why it could not open it."


def task_of(batch: Sequence[Unit], files: Sequence[LogFile]) -> Task:
    """The batch of a run with these files, for a process that stands anywhere."""
    units = tuple(replace(unit, path=absolute(unit.path)) for unit in batch)
    return Task(units, tuple(files[unit.file].size for unit in batch))


def scan(task: Task) -> Answer:
    """Scan a batch, here. Raises EngineError where the client runs another version."""
    if task.version != __version__:  # a worker that joined after the versions were compared
        raise EngineError(
            f"worker {socket.gethostname()} runs hcp-logscan {__version__}, and this process"
            f" {task.version}. Start the workers from the environment that it runs in."
        )
    from hcp_logscan.engine.scan import scan_batch  # noqa: PLC0415 - polars, once it is needed

    with _ALONE:
        seen = tuple(
            sight(on_disk(unit.path), size)
            for unit, size in zip(task.units, task.sizes, strict=True)
        )
        return Answer(scan_batch(task.units), socket.gethostname(), seen)


def accepted(task: Task, answer: Answer) -> BatchResult:
    """The tables of an answer. Raises EngineError where the worker read other files than ours."""
    for unit, size, there in zip(task.units, task.sizes, answer.sights, strict=True):
        path = on_disk(unit.path)
        if trouble := disagreement(path, size, there):
            raise EngineError(
                f"{path} is readable here, but worker {answer.host} {trouble}. The logs must"
                " lie on a file system that all workers see under the same path; else scan with"
                " --engine local."
            )
    return answer.result
