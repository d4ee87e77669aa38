"""What collectors put before every line of a file, and what is ordinary text where it stands once.

``node01: line`` and ``svc-1  | line`` begin like many a message, so they count only where nearly
all lines of a file's beginning have them, few names take turns, and the names look like those of
nodes. Such a file's lines are rewritten to a prefix that cannot be anything else, the one of
``kubectl logs --prefix``, before they are sorted. Lines in JSON are `json_lines`, times in a shape
of their own `habit`. Written from the manuals of the tools:

* pdsh, clush, DeepSpeed's launcher: ``<host>: line``
* stern: ``<pod> <container> line``, in colours
* docker compose: ``<service>-<number>  | line``
* container runtimes and ``kubectl logs --timestamps``: ``2026-03-01T09:14:20.123456789Z line``,
  also behind a pod's name; ``2026-03-01T09:14:20.123456789Z stdout F line`` in files of a kubelet
* journald and syslog: ``Mar 01 09:14:20 <host> train.sh[4711]: line``, also with ISO times
* mpirun of Open MPI 5: ``[1,3]<stdout>: line`` with a blank that Open MPI 4 does not print
* torchrun ``--role rank --tee 3`` (torchtitan's ``run_train.sh``): ``[rank3]:line`` with the LOCAL
  rank, where torch itself prints the global one (``[rank3]: Traceback``, ``[rank3]:[E423 …``,
  ``[rank3]:W0301 …`` of its loggers). What torch never prints behind it tells a launcher's own
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.sources import habit, json_lines, prefixes

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_LINES: Final = 5
"""Fewer lines do not tell a habit from an accident."""

MAX_LINES: Final = 400
LINE_BYTES: Final = 400
SHARE: Final = 0.9
"""Of the lines that have it; a collector's own messages stand between them."""

_POD: Final = rb"(?P<pod>\[pod/[^\]\s]{1,320}\] )?"


_PROCESS: Final = (
    _POD + rb"(?: {0,6}\d{1,6}: |" + prefixes.TAG.encode().replace(b"?P<tag>", b"") + rb" ?)?"
)
"""What may stand before torchrun's own prefix: a node, a task."""


@dataclass(frozen=True, slots=True)
class _Lead:
    """One way to begin every line."""

    pattern: re.Pattern[bytes]
    becomes: bytes
    named: bool = False
    "It names a node: few names take turns."

    among: re.Pattern[bytes] | None = None
    "All lines of this kind must have it; None means nearly all lines of the file."

    proof: re.Pattern[bytes] | None = None
    "Some lines must be so, whatever the others are."


_LEADS: Final = {
    "host": _Lead(
        re.compile(
            rb"(?!(?:rank|step|epoch|iter|iteration|gpu|stage|layer|loss|top)[-_]?\d)"
            rb"(?P<name>[A-Za-z][A-Za-z0-9-]{0,60}\d[A-Za-z0-9-]{0,60}(?:\.[A-Za-z0-9-]{1,60}){0,6}"
            rb"|\d{1,3}(?:\.\d{1,3}){3}|localhost):(?: |$)"
        ),
        rb"[pod/\g<name>/-] ",
        named=True,
    ),
    "stern": _Lead(
        re.compile(
            rb"(?P<name>[a-z][a-z0-9.-]{0,200}-\d{1,6}(?:-[a-z0-9]{5})?)"
            rb" (?P<container>[a-z][a-z0-9-]{0,62})(?: |$)"
        ),
        rb"[pod/\g<name>/\g<container>] ",
        named=True,
    ),
    "compose": _Lead(
        re.compile(rb"(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,100}[-_]\d{1,4}) {1,80}\|(?: |$)"),
        rb"[pod/\g<name>/-] ",
        named=True,
    ),
    "syslog": _Lead(
        re.compile(
            rb"(?:[A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2}|\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}"
            rb"(?:\.\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})) (?P<name>[A-Za-z0-9][A-Za-z0-9.-]{0,252})"
            # what these say of the machine is read with their names
            rb" (?!kernel|systemd|slurm|sshd|CRON|containerd|kubelet|dockerd)"
            rb"[A-Za-z_][\w.@/-]{0,80}\[\d{1,10}\]:(?: |$)"
        ),
        rb"[pod/\g<name>/-] ",
        named=True,
    ),
    "time": _Lead(
        re.compile(
            _POD + rb"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6,9}(?:Z|[+-]\d{2}:\d{2})"
            rb"(?: std(?:out|err) [FP])?(?: |$)"
        ),
        rb"\g<pod>",
    ),
    "tag": _Lead(
        re.compile(rb"(?P<whole>" + _POD + prefixes.TAG.encode() + rb")(?: |$)"),
        rb"\g<whole>",
        among=re.compile(_POD + prefixes.TAG.encode()),
    ),
    "role": _Lead(
        re.compile(rb"(?P<whole>" + _PROCESS + rb")\[rank(?P<local>\d{1,7})\]:"),
        rb"\g<whole>[local\g<local>]:",
        proof=re.compile(_PROCESS + rb"\[rank\d{1,7}\]:(?! |$|\[[A-Z] ?\d{3}|[A-Z]\d{4} )"),
    ),
}


def detect(head: bytes) -> tuple[str, ...]:
    r"""The leads of a file that begins so, outermost first; empty where it cannot be told.

    >>> detect(b"node01: a\nnode02: b\n" * 5), detect(b"node01: a\nb\n" * 5)
    (('host',), ())
    >>> detect(b"[rank0]:[titan] a\n" * 5), detect(b"[rank0]: a\n[rank0]:[I301 09:12:44] b\n" * 5)
    (('role',), ())
    """
    lines = _lines(head)
    found: list[str] = []
    if inside := _unwrapped(lines):
        found.append(json_lines.NAME)
        lines = inside
    lines = [prefixes.clean(line)[:LINE_BYTES] for line in lines]
    lines = [line for line in lines if line.strip()][:MAX_LINES]
    if (learnt := _learnt(lines)) is not None:
        found.append(learnt)
        lines = [habit.strip(learnt, line) for line in lines]
    named = False
    for name, lead in _LEADS.items():
        if (lead.named and named) or not _has(lead, lines):
            continue
        found.append(name)
        named |= lead.named
        lines = [lead.pattern.sub(lead.becomes, line, count=1) for line in lines]
    return tuple(found)


def _lines(head: bytes) -> list[bytes]:
    """The whole lines of a file's beginning."""
    whole, newline, _ = head.rpartition(b"\n")
    return (whole if newline else head).split(b"\n")


def _learnt(lines: Sequence[bytes]) -> str | None:
    """A time in a shape of its own before all lines, behind which any line may stand."""
    if any(_has(_LEADS[name], lines) for name in ("syslog", "time")):
        return None
    for name, rests in habit.candidates(lines):
        behind = [prefixes.split(rest)[1] for rest in rests]
        nodes = (lead for lead in _LEADS.values() if lead.named)
        if habit.passed_on(behind) or any(_has(lead, rests) for lead in nodes):
            return name
    return None


def _unwrapped(lines: Sequence[bytes]) -> list[bytes]:
    """The lines inside, where nearly all are objects of a collector; else nothing."""
    told = [line for line in lines if line.strip()][:MAX_LINES]
    inside = [text for line in told if (text := json_lines.unwrap(line)) is not None]
    return inside if len(inside) >= max(MIN_LINES, SHARE * len(told)) else []


def _has(lead: _Lead, lines: Sequence[bytes]) -> bool:
    if lead.proof is not None:
        return sum(1 for line in lines if lead.proof.match(line)) >= MIN_LINES
    if lead.among is not None:
        lines = [line for line in lines if lead.among.match(line)]
    matches = [match for line in lines if (match := lead.pattern.match(line))]
    if len(matches) < MIN_LINES or len(matches) < (SHARE if lead.among is None else 1) * len(lines):
        return False
    return not lead.named or 2 * len({match["name"] for match in matches}) <= len(matches)


def rewrite(leads: Sequence[str], line: bytes) -> bytes:
    """A line of such a file, with a prefix that `prefixes` knows, and without colours.

    >>> rewrite(("compose",), b"svc-1  | [rank0]: x")
    b'[pod/svc-1/-] [rank0]: x'
    """
    line = prefixes.clean(line)
    for name in leads:
        if name == json_lines.NAME:
            inside = json_lines.unwrap(line)
            line = line if inside is None else prefixes.clean(inside)
        elif name.startswith(habit.NAME):
            line = habit.strip(name, line)
        elif match := _LEADS[name].pattern.match(line):
            line = match.expand(_LEADS[name].becomes) + line[match.end() :]
    return line


def wrapped(leads: Sequence[str]) -> bool:
    """Whether one line of the file may hold several lines of the log."""
    return json_lines.NAME in leads


def in_json(head: bytes) -> bool:
    """Whether a file that begins so is a log whose lines a collector wrapped in JSON."""
    return bool(_unwrapped(_lines(head)))
