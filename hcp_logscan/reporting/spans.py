"""Spans of a text that several detectors found, put in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hcp_logscan.reporting.secret_shapes import Span


def merged(spans: Iterable[Span], hidden: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """Spans that overlap become one, the kind is that of the first detector.

    A placeholder that a span cuts is taken whole.
    """
    ranked = [(start, end, order, kind) for order, (start, end, kind) in enumerate(spans)]
    most = len(ranked)
    ranked += [(start, end, most, "") for start, end in hidden]
    ranked.sort()
    current: tuple[int, int, int, str] | None = None
    for start, end, order, kind in ranked:
        if current is not None and start < current[1]:
            best = min(current[2:], (order, kind))
            current = (current[0], max(current[1], end), *best)
            continue
        if current is not None and current[3]:
            yield current[0], current[1], current[3]
        current = (start, end, order, kind)
    if current is not None and current[3]:
        yield current[0], current[1], current[3]


def apart(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order, without those that overlap an earlier one."""
    position = 0
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if span[0] >= position:
            yield span
            position = span[1]
