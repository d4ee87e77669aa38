"""torchelastic's error file: the uncaught exception of one rank, as it recorded it itself.

Written from PyTorch ``torch/distributed/elastic/multiprocessing/errors/error_handler.py``
(``ErrorHandler.record_exception`` of a function under ``@record``; torch 1.9 to main of 2026-08)::

    {"message": {"message": "<type>: <text>",
                 "extraInfo": {"py_callstack": "<traceback>", "timestamp": "<seconds>"},
                 "errorCode": <exit code>}}

``errorCode`` stands in the copy that a launcher makes of its first failed worker's file for its own
parent (``dump_error_file``). ``ProcessFailure`` (``errors/__init__.py``) reads a second shape,
``{"message": "<type>: <text>", "timestamp": <seconds>}``, of handlers that are not written in
Python. The call stack is a traceback as ``Lib/traceback.py`` prints it, and is read as one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.parsers.base import BlockLine
from hcp_logscan.parsers.flight_recorder import DumpError, load_json
from hcp_logscan.parsers.tracebacks import BEGIN, Traceback, exception_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ERROR_BYTES: Final = 4 << 20
"""Size of the largest error file that is read; a call stack has a few thousand characters."""

_MAX_LINES: Final = 20_000
_MAX_TEXT: Final = 16_384
_SECONDS: Final = re.compile(r"[0-9]{1,10}", re.ASCII)


def parse_error_file(data: bytes) -> dict[str, Any]:
    """The columns of one row of the table `tracebacks`, and its `text`.

    What the file does not say is None; so is the exception of a message that begins with no type.

    Raises:
        DumpError: it is damaged, too large, or no such record.
    """
    if len(data) > MAX_ERROR_BYTES:
        raise DumpError(f"cannot be read safely: it is larger than {MAX_ERROR_BYTES >> 20} MiB")
    if not data.strip():
        raise DumpError("is an error file that holds nothing: its process ended while it wrote")
    record = load_json(data)
    said = record.get("message") if isinstance(record, dict) else None
    if isinstance(said, str):
        said = {"message": said, "extraInfo": {"timestamp": record.get("timestamp")}}
    if not isinstance(said, dict):
        raise DumpError("is no error file of torchelastic: it has no message")
    extra = said.get("extraInfo")
    extra = extra if isinstance(extra, dict) else {}
    head, _, _ = _text(said.get("message")).partition("\n")
    recorded = {"recorded": _seconds(extra.get("timestamp")), "first_line": 1, "last_line": 1}
    return {**_raised(head, _text(extra.get("py_callstack"))), **recorded}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: Any) -> int | None:
    """Seconds since 1970; 0 is what torchelastic takes where there is no time."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    match = _SECONDS.match(str(value).strip())
    return int(match[0]) or None if match else None


def _raised(head: str, stack: str) -> dict[str, Any]:
    """What was raised: as the call stack says it, else as the message does."""
    name, message = exception_of(head[:_MAX_TEXT]) or (None, head[:_MAX_TEXT] or None)
    fallback: dict[str, Any] = {
        "exception": name,
        "message": message,
        "frames": 0,
        "complete": True,
        "chained": False,
        "text": head[:_MAX_TEXT],
    }
    found = list(_tracebacks(stack))
    # an exception may quote the traceback of another process: its own is of the type in the message
    same = [one for one in found if one["exception"].rpartition(".")[2] == name]
    return (same or found or [fallback])[-1]


def _tracebacks(stack: str) -> Iterator[dict[str, Any]]:
    """The complete tracebacks of a call stack, in its order; the last was not handled."""
    blocks: list[Traceback] = []
    for text in stack.splitlines()[:_MAX_LINES]:
        line = BlockLine(1, 0, text[:_MAX_TEXT])
        if text.startswith(BEGIN):
            blocks.append(Traceback(line))
        elif blocks:
            blocks[-1].feed(line)
    for block in blocks:
        for _, _, _, shown, own in block.rows():
            if own["complete"]:
                yield {**own, "chained": False, "text": shown}
