"""What a cause is called, who says it, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from hcp_logscan.parsers.base import LineParser, conform
from hcp_logscan.parsers.registry import parsers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TYPES: Final = {"text": pl.String(), "line": pl.Int64()}


def read(texts: Sequence[str]) -> list[dict[str, Any] | None]:
    """What each text says as a line of the event table `causes`; None where it is none.

    >>> read(["RuntimeError: CUDA error: out of memory", "ValueError: bad batch"])[1] is None
    True
    """
    lines = pl.DataFrame({"text": texts, "line": range(len(texts))}, schema_overrides=_TYPES)
    lines = conform("drift", lines).drop("parser", "count", "last")
    found: dict[int, dict[str, Any]] = {}
    for parser in parsers():
        if isinstance(parser, LineParser) and parser.table == "causes":
            mine = lines.filter(pl.col("text").str.contains_any(list(parser.needles)))
            for row in parser.parse(mine)[0].iter_rows(named=True) if mine.height else ():
                found.setdefault(row["line"], row)
    return [found.get(line) for line in range(len(texts))]


Group = Literal["machine", "scheduler", "own", "start-up", "information", "teardown", "advice"]
"""Who says a cause: the machine, who runs the job, the rank itself, or the start of the workers.
The last three can never be a first cause."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One kind of cause."""

    what: str
    "As words, for sentences: `<what> on rank 3`."

    group: Group
    follows: str = ""
    "Regex over `<exception>: <message>` of the errors that follow from it."

    signals: frozenset[str] = frozenset()
    "Signals that a process ends by because of it."


_NETWORK: Final = (
    r"(?i)socket|store|rendezvous|resolve|gaierror|getaddrinfo|address|Dist(?:Network|Store)Error"
    r"|connect|name or service|name resolution"
)
_ANY: Final = frozenset({"SIGKILL", "SIGTERM", "SIGABRT", "SIGINT"})

CAUSES: Final[Mapping[str, Cause]] = {
    "gpu_oom": Cause("GPU out of memory", "own", r"(?i)\bcuda|\bhip\b|nccl"),
    "host_oom": Cause(
        "host out of memory",
        "machine",
        r"(?i)killed by signal|exited unexpectedly|worker crash|DataLoader worker|running low on",
        frozenset({"SIGKILL"}),
    ),
    "shared_memory": Cause(
        "shared memory full",
        "machine",
        r"(?i)nccl|bus error|DataLoader worker|DistBackendError|No space left",
        frozenset({"SIGBUS"}),
    ),
    "disk_full": Cause(
        "no space left on device",
        "machine",
        r"(?i)No space left|quota|PytorchStreamWriter|inline_container|checkpoint",
    ),
    "gpu_lost": Cause(
        "GPU lost",
        "machine",
        r"(?i)cuda|nccl|nvml|\bgpu\b|DistBackendError|device",
        frozenset({"SIGABRT", "SIGBUS"}),
    ),
    "switch_failed": Cause(
        "fatal error of an NVSwitch",
        "machine",
        r"(?i)cuda|nccl|nvml|\bgpu\b|DistBackendError|device",
        frozenset({"SIGABRT", "SIGBUS"}),
    ),
    "gpu_fault": Cause("GPU fault reported by the driver", "information"),
    "gpu_event": Cause("event reported by the GPU driver", "information"),
    "pcie_corrected": Cause("corrected PCIe errors", "information"),
    "pcie_uncorrected": Cause("uncorrected PCIe error", "information"),
    # the peer may be dead or the link: either shows so
    "network_error": Cause("network error reported by NCCL", "information"),
    "dns": Cause("host name that does not resolve", "machine", _NETWORK),
    "rendezvous": Cause("failed rendezvous", "start-up", _NETWORK),
    "port_in_use": Cause("port already in use", "start-up", _NETWORK),
    "checkpoint_mismatch": Cause("checkpoint that does not fit", "own"),
    "nan": Cause("NaN result", "own", r"."),
    "time_limit": Cause("time limit of the job", "scheduler", r".", _ANY),
    "preempted": Cause("preemption by the scheduler", "scheduler", r".", _ANY),
    "requeued": Cause("requeue by the scheduler", "scheduler", r".", _ANY),
    "cancelled": Cause("cancellation of the job", "scheduler", r".", _ANY),
    "node_failure": Cause("node failure reported by the scheduler", "scheduler", r".", _ANY),
    "signal": Cause("signal from outside", "scheduler", r".", _ANY),
    "signal_seen": Cause("signal seen by a process", "information"),
    "step_aborted": Cause("srun ended the step", "teardown"),
    "teardown": Cause("clean-up", "teardown"),
    "advice": Cause("advice", "advice"),
}
"""Kinds of the fact table `failures`; the events `xid`, `no_space` and `state_dict` become one."""

VAGUE: Final = frozenset({"cancelled", "requeued", "signal"})
"""Ends that a scheduler also makes when something else broke: no first cause beside another."""
