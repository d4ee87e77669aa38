"""Line prefixes that launchers and collectors put before what the trainer printed.

They stack freely (`srun` label, then torchrun's `[default0]:`, then `[rank3]:`), so they are
stripped repeatedly. Each says something about the rank; `analysis.ranks` weighs what they say.

* ``[rank3]:`` torch c10d and Python tracebacks of an initialised job: the **global** rank
* ``[default3]:`` torchrun ``--tee`` (role, then LOCAL rank; no space behind the colon)
* `` 3: `` srun ``--label``: the task number, padded to a common width
* ``[1,3]<stdout>:`` mpirun ``--tag-output``: job and number of the process, as srun's task;
  ``[1,mpirank:3,algo-1]<stdout>:`` of SageMaker
* ``[pod/pretrain-worker-1/pytorch] `` kubectl ``--prefix``: a node; `leads` makes the same of
  ``node01: `` and its like
* ``ain_fp8_mx/0 `` TorchX and NeMo-Run consoles: end of the role name, replica (a node)
* ``(worker1, rank=1, pid=2769, ip=10.0.0.2) `` SkyPilot: the number of the node; one node has the
  task's name alone, ``(pretrain, pid=2769) ``
* ``(Actor[rank=9] pid=77, ip=10.0.0.5) `` Ray: global rank of the actor where it has one
* ``[20260301 09:14:20][rank-7/8][INFO ] `` Primus: the global rank; it stays, as it holds the time
* ``2026-05-18 12:51:27.1246 `` and ``[2026-05-18T12:51:27+08:00] `` collectors; ``1078:`` grep -n
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

ANSI: Final = r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
"""Colours and titles. Patterns in capitals are read by Rust's regex, too."""

_ANSI: Final = re.compile(ANSI.encode())
_STAMP: Final = (
    r"\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?\]? +"
)
_BEFORE: Final = r"[\[0-9 ]|[A-Za-z0-9_.-]+/[0-9]"
"""What follows a collector's time, where it is one: another prefix or a record."""

_GREP: Final = r"[0-9]{1,9}:"
_LABEL: Final = r" {0,6}(?P<label>[0-9]{1,6}):(?: |$)"
TAG: Final = (
    r"\[(?:[A-Za-z0-9_.-]{1,80}@)?[0-9]{1,10},(?:mpirank:)?(?P<tag>[0-9]{1,7})"
    r"(?:,[A-Za-z0-9_.-]{1,80})?\]<std(?:out|err|diag)>:"
)
_POD: Final = r"\[pod/(?P<host>[A-Za-z0-9_.-]{1,253})/[A-Za-z0-9_.-]{1,63}\](?: |$)"
_REPLICA: Final = r"[A-Za-z_][A-Za-z0-9_.-]{0,80}/(?P<replica>[0-9]{1,6}) "
_SKY: Final = (
    r"\([A-Za-z0-9_.-]{1,80}(?:, rank=(?P<sky>[0-9]{1,6}))?, pid=[0-9]{1,10}"
    r"(?:, ip=[0-9a-fA-F.:]{2,45})?\) "
)
_STACK: Final = (
    r"(?:\[rank[0-9]{1,7}\]: ?"
    r"|\[[A-Za-z][A-Za-z_-]{0,40}[0-9]{1,6}\]:"
    r"|\([A-Za-z0-9_.]{1,80}(?:\[[^\]\n]{0,80}\])? pid=[0-9]{1,10}"
    r"(?:, ip=[0-9a-fA-F.:]{2,45})?\) )*"
)
_PRIMUS: Final = (
    # also where a log store dropped the escape bytes of its colours
    r"\[(?:\[[0-9]{1,3}m)?[0-9]{8} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\[0m)?\]"
)

_PREFIX: Final = re.compile(
    (
        rf"(?:{_GREP}(?=[\[(]))?(?:{_STAMP}(?={_BEFORE}))?(?:{_SKY})?(?:{_POD})?"
        rf"(?:{_LABEL}|{TAG})?(?:{_REPLICA})?(?P<stack>{_STACK})"
        rf"(?={_PRIMUS}(?:\[[^\]\n]{{1,60}}\]){{0,4}}?"
        r"\[(?:\[[0-9]{1,3}m)?rank-(?P<logged>[0-9]{1,7})/[0-9]|)"
    ).encode()
)

HEAD: Final = re.sub(
    r"\?P<\w+>", "", rf"(?:{_SKY})?(?:{_POD})?(?:{_LABEL}|{TAG})?(?:{_REPLICA})?{_STACK}"
)
"""The prefixes of a line that `ODD_HEAD` does not match, without look-ahead and groups."""

ODD_HEAD: Final = rf"^(?:{_GREP}[\[(]|{_STAMP}(?:{_BEFORE}))|{_PRIMUS}"
"""Lines whose prefixes only `split` can tell."""

_RANK: Final = re.compile(rb"\[rank(\d{1,7})\]:|\[rank=(\d{1,7})\]")
_LOCAL: Final = re.compile(rb"\[(?!rank)[A-Za-z][A-Za-z_-]*?(\d{1,6})\]:")


@dataclass(frozen=True, slots=True)
class Prefix:
    """What the prefixes of one line say. `key` tells the streams of one merged file apart."""

    key: str = ""
    rank: int | None = None
    "Global rank."

    local_rank: int | None = None
    label: int | None = None
    "Task number of srun --label, or of mpirun --tag-output."

    replica: int | None = None
    "Replica number of TorchX, node number of SkyPilot: a node."

    host: str | None = None
    "Name of a host or pod: a node. In `key` it stands behind an `h`."


_NONE: Final = Prefix()


@lru_cache(maxsize=65_536)
def _parse(
    stack: bytes,
    label: bytes | None,
    replica: bytes | None,
    logged: bytes | None,
    host: bytes | None,
) -> Prefix:
    found = _RANK.search(stack)
    rank = found[1] or found[2] if found else logged
    local = _LOCAL.search(stack)
    said = {
        "r": int(rank) if rank else None,
        "l": int(local[1]) if local else None,
        "t": int(label) if label else None,
        "n": int(replica) if replica else None,
    }
    named = host.decode() if host else None
    parts = [f"{name}{value}" for name, value in said.items() if value is not None]
    key = ",".join([f"h{named}", *parts] if named else parts)
    return Prefix(key, said["r"], said["l"], said["t"], said["n"], named)


def clean(line: bytes) -> bytes:
    """The line without colours, and without the carriage return of a CRLF line end."""
    if b"\x1b" in line:
        line = _ANSI.sub(b"", line)
    return line.rstrip(b"\r")


def split(line: bytes) -> tuple[Prefix, bytes]:
    r"""What the prefixes of a cleaned line say, and the line behind them.

    >>> prefix, rest = split(b" 3: [default1]:[rank25]: Traceback (most recent call last):")
    >>> prefix.rank, prefix.local_rank, prefix.label, rest
    (25, 1, 3, b'Traceback (most recent call last):')
    >>> split(b" [2026-03-01 09:14:20] iteration 1/ 2 |")[1]
    b' [2026-03-01 09:14:20] iteration 1/ 2 |'
    """
    match = _PREFIX.match(line)
    if match is None or (match.end() == 0 and match["logged"] is None):
        return _NONE, line
    label = match["label"] or match["tag"]
    replica = match["replica"] or match["sky"]
    said = _parse(match["stack"], label, replica, match["logged"], match["host"])
    return said, line[match.end() :]


def split_after(before: Prefix, part: bytes) -> tuple[Prefix, bytes]:
    """`split` for a part of a line behind a carriage return.

    The launcher wrote its prefix once, where the line begins: it holds for what a progress bar or a
    step line then wrote over it, unless the part has a prefix of its own.
    """
    prefix, rest = split(part)
    return (prefix if prefix.key else before), rest
