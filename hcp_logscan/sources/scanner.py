"""Needles -> survivor lines: all needles are searched at once, in blocks of bytes, with SIMD.

A *survivor* is a line that holds at least one needle. Lines without one are never looked at, except
while a multi-line block is open: then every line is handed on until the block is closed.

The scanner is hyperscan (vectorscan), one block-mode database per process. Where it has no wheel, a
search with `bytearray.find` gives the same lines, about twenty times slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from hcp_logscan.sources.packed import CutOffError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hcp_logscan.sources.packed import ByteStream

    Search = Callable[[bytearray, int], list[tuple[int, int]]]

BLOCK_BYTES: Final = 1 << 20
MAX_LINE_BYTES: Final = 8 << 20
"""A longer line is handled in pieces of at most this size, cut at a carriage return where it has
one: progress bars write their whole life as one line."""


class Sink(Protocol):
    """Receives survivors, and every line while it is hungry."""

    hungry: bool

    def walk(self, number: int, offset: int, line: bytes) -> None:
        """A line inside an open block (survivors included)."""

    def survivor(self, number: int, offset: int, line: bytes, needles: int) -> None:
        """A line with needles in it: bit n stands for needle n."""


@dataclass(slots=True)
class ScanStats:
    """What was read for one unit."""

    bytes: int = 0
    lines: int = 0
    "Newlines among the unit's own bytes, plus one for a last line without newline."

    cut_off: bool = False
    "The compressed stream ended before its end mark."


def _hyperscan_search(needles: tuple[bytes, ...]) -> Search:
    import hyperscan  # noqa: PLC0415 - optional: there may be no wheel

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=list(needles),
        ids=list(range(len(needles))),
        elements=len(needles),
        flags=[0] * len(needles),
        literal=True,
    )

    def search(buffer: bytearray, end: int) -> list[tuple[int, int]]:
        hits: list[tuple[int, int]] = []
        add = hits.append

        def on_match(needle: int, _start: int, stop: int, _flags: int, _context: object) -> None:
            add((stop, needle))

        with memoryview(buffer)[:end] as view:
            database.scan(view, match_event_handler=on_match)  # type: ignore[type-var]
        return hits

    return search


def find_search(needles: tuple[bytes, ...]) -> Search:
    """The fall-back search: same hits, no dependency."""

    def search(buffer: bytearray, end: int) -> list[tuple[int, int]]:
        hits = []
        for number, needle in enumerate(needles):
            at = buffer.find(needle, 0, end)
            while at >= 0:
                hits.append((at + len(needle), number))
                at = buffer.find(needle, at + 1, end)
        return sorted(hits)

    return search


@lru_cache(maxsize=8)
def make_search(needles: tuple[bytes, ...]) -> Search:
    """The fastest search this installation has for `needles`; built once per process."""
    try:
        return _hyperscan_search(needles)
    except ImportError:
        return find_search(needles)


class _Region:
    """Hands the lines of one buffer to the sink, counting line numbers as it goes."""

    __slots__ = ("counted", "number", "search", "sink")

    def __init__(self, search: Search, sink: Sink) -> None:
        self.search, self.sink = search, sink
        self.number, self.counted = 1, 0

    def _number_at(self, buffer: bytearray, at: int) -> int:
        self.number += buffer.count(b"\n", self.counted, at)
        self.counted = at
        return self.number

    def _walk(self, buffer: bytearray, base: int, start: int, stop: int) -> int:
        """Feed whole lines from `start` while the sink is hungry; where it stopped."""
        while start < stop and self.sink.hungry:
            newline = buffer.find(b"\n", start, stop)
            end = newline if newline >= 0 else stop
            self.sink.walk(self._number_at(buffer, start), base + start, bytes(buffer[start:end]))
            start = end + 1
        return start

    def own(self, buffer: bytearray, base: int, first: int, end: int) -> None:
        """Lines of this unit: survivors, and what open blocks need between them."""
        self.counted = first
        sink, walked, at = self.sink, first, 0
        hits = self.search(buffer, end)
        count = len(hits)
        while at < count and hits[at][0] <= first:
            at += 1
        while at < count:
            stop = hits[at][0]
            newline = buffer.rfind(b"\n", 0, stop)
            if newline == stop - 1:  # a needle may end with the line
                newline = buffer.rfind(b"\n", 0, stop - 1)
            start = newline + 1
            finish = buffer.find(b"\n", start, end)
            if finish < 0:
                finish = end
            found = 0
            while at < count and hits[at][0] <= finish + 1:
                found |= 1 << hits[at][1]
                at += 1
            if sink.hungry:
                self._walk(buffer, base, walked, start)
            number = self._number_at(buffer, start)
            line = bytes(buffer[start:finish])
            if sink.hungry:
                sink.walk(number, base + start, line)
            sink.survivor(number, base + start, line, found)
            walked = finish + 1
        if sink.hungry:
            self._walk(buffer, base, walked, end)

    def beyond(self, buffer: bytearray, base: int, start: int, end: int) -> None:
        """Lines behind the unit's end: only open blocks read them."""
        self._walk(buffer, base, start, end)

    def advance(self, buffer: bytearray, end: int) -> None:
        """The buffer is done up to `end`: its newlines count, its positions do not any more."""
        self._number_at(buffer, end)
        self.counted = 0


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole lines in the buffer's first `stop` bytes; the buffer is reused for the next block."""

    buffer: bytearray
    base: int
    "Offset of the buffer's first byte in the file."

    stop: int
    piece: bool
    "The lines are only the first part of a line that is too long to be held."


def _blocks(stream: ByteStream, base: int, stats: ScanStats) -> Iterator[_Block]:
    """Read a stream block by block; what is left of a block's last line begins the next."""
    buffer, filled, at_end = bytearray(BLOCK_BYTES), 0, False
    while not at_end:
        try:
            with memoryview(buffer)[filled:] as view:
                count = stream.readinto(view) or 0
        except CutOffError:
            count, stats.cut_off = 0, True
        at_end = count == 0
        filled += count
        stop, piece = filled if at_end else buffer.rfind(b"\n", 0, filled) + 1, False
        if not stop and filled == len(buffer):
            if filled < MAX_LINE_BYTES:
                buffer.extend(bytes(filled))
                continue
            stop, piece = buffer.rfind(b"\r", 0, filled) + 1 or filled, True
        if stop:
            yield _Block(buffer, base, stop, piece)
            buffer[: filled - stop] = buffer[stop:filled]
            base, filled = base + stop, filled - stop


def scan(
    stream: ByteStream,
    needles: tuple[bytes, ...],
    sink: Sink,
    start: int,
    end: int | None,
    stats: ScanStats | None = None,
) -> ScanStats:
    """Scan the lines that begin in [start, end) of a file and hand what matters to `sink`.

    `stream` stands at `start - 1` (at 0 for the first unit), so that a line that begins exactly at
    `start` is recognised; it is read past `end` only to finish the last line and open blocks. Line
    numbers count from 1 within the unit. Memory is one buffer, whatever the size of the file.
    Raises what the stream raises, except CutOffError, which ends the scan; `stats` has what was
    read until then.
    """
    stats = ScanStats() if stats is None else stats
    region = _Region(make_search(needles), sink)
    skip_partial, mid_line, last_byte = start > 0, False, 10
    for block in _blocks(stream, max(start - 1, 0), stats):
        buffer, base, stop = block.buffer, block.base, block.stop
        first = 0
        if skip_partial:  # the tail of a line that belongs to the unit before
            newline = buffer.find(b"\n", 0, stop)
            first = newline + 1 if newline >= 0 else stop
            skip_partial = newline < 0
        own = stop
        if end is not None and base + stop > end:
            own = max(_own_part(buffer, stop, end - base, mid_line=mid_line), first)
        region.own(buffer, base, first, own)
        if own > first:
            stats.bytes += own - first
            stats.lines += buffer.count(b"\n", first, own)
            last_byte = buffer[own - 1]
        region.beyond(buffer, base, own, stop)
        region.advance(buffer, stop)
        mid_line = block.piece
        if end is not None and base + stop >= end and not mid_line and not sink.hungry:
            break
    stats.lines += last_byte != 10
    return stats


def _own_part(buffer: bytearray, stop: int, end: int, *, mid_line: bool) -> int:
    """How much of buffer[:stop] are lines that begin before position `end` of the buffer.

    `mid_line` says that the buffer begins with the rest of a line that began in an earlier piece.
    """
    if end <= 0 and not mid_line:
        return 0
    newline = buffer.find(b"\n", max(end - 1, 0), stop)
    return newline + 1 if newline >= 0 else stop
