r"""Lines that a log collector wrapped in JSON, one object each: the line inside is what counts.

Written from the documents of the collectors:

* Docker's ``json-file`` driver: ``{"log":"line\n","stream":"stdout","time":"…"}``
* fluent-bit, Filebeat, Loki's and CloudWatch's exports: ``log``, ``message`` or ``line`` beside
  ``@timestamp`` or ``timestamp``; the pod in ``kubernetes`` or ``labels``
* Google Cloud Logging as JSON lines: ``textPayload``, or ``message`` in ``jsonPayload``; the pod in
  ``resource.labels``
* loggers that print JSON themselves (python-json-logger): ``message`` beside ``asctime``

An object without a time is a dataset's. A line that was cut inside its JSON stays as it is.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

NAME: Final = "json"
"""The name of this lead."""

_TEXTS: Final = ("log", "message", "msg", "textPayload", "@message", "line")
_TIMES: Final = frozenset(
    {"time", "timestamp", "@timestamp", "ts", "asctime", "date", "receiveTimestamp"}
)
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_PODS: Final = (
    ("kubernetes", "pod_name"),
    ("kubernetes", "pod", "name"),
    ("resource", "labels", "pod_name"),
    ("labels", "pod"),
    ("pod_name",),
    ("pod",),
)


def unwrap(line: bytes) -> bytes | None:
    r"""The line inside, behind its pod where one is named; None where this is no such object.

    A message of several lines comes as parts behind carriage returns, as `prefixes` splits them.

    >>> unwrap(b'{"log":"[rank0]: a\\u003eb\\n","stream":"stdout","time":"2026-03-01T09:14:20Z"}')
    b'[rank0]: a>b'
    >>> unwrap(b'{"time":1,"message":"a\\nb","kubernetes":{"pod_name":"w-1"}}')
    b'[pod/w-1/-] a\r[pod/w-1/-] b'
    >>> unwrap(b'{"message":"no time"}'), unwrap(b'{"log":"cut'), unwrap(b"step 1")
    (None, None, None)
    """
    if not line.startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):  # text that is no UTF-8 is a ValueError, too
        return None
    if not isinstance(found, dict) or _TIMES.isdisjoint(found):
        return None
    inner = found.get("jsonPayload")
    text = _text(found) or (_text(inner) if isinstance(inner, dict) else None)
    if text is None:
        return None
    pod = _pod(found)
    lead = f"[pod/{pod}/-] " if pod else ""
    told = text.rstrip("\r\n").replace("\r\n", "\n").split("\n")
    return "\r".join(lead + part for part in told).encode("utf-8", "replace")


def _text(found: dict[str, Any]) -> str | None:
    return next((found[key] for key in _TEXTS if isinstance(found.get(key), str)), None)


def _pod(found: dict[str, Any]) -> str | None:
    for path in _PODS:
        value: Any = found
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and _HOST.fullmatch(value):
            return value
    return None
