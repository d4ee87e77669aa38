"""Needles -> survivor lines: all needles are searched at once, in blocks of bytes, with SIMD.

A *survivor* is a line that holds at least one needle. Survivors of a block are handed on together,
as columns. Lines without a needle are never looked at, except while a multi-line record is open:
then every line is handed on until the record is closed.

The scanner is hyperscan (vectorscan), one block-mode database per process. Where it has no wheel, a
search with `bytearray.find` gives the same lines, about twenty times slower.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np

from hcp_logscan.sources.packed import CutOffError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from hcp_logscan.sources.packed import ByteStream

    Search = Callable[[bytearray, int], "array[int]"]
    """Hits in the first bytes of a buffer, in their order: where the needle ends, shifted by
    ID_BITS, and the number of the needle."""

BLOCK_BYTES: Final = 1 << 20
MAX_LINE_BYTES: Final = 8 << 20
"""A longer line is handled in pieces of at most this size, cut at a carriage return where it has
one: progress bars write their whole life as one line."""

TAIL_BYTES: Final = 4096
"""Bytes at the end of a file that are kept: when it fell silent."""

Tail: TypeAlias = bytes
"""Those bytes."""

ID_BITS: Final = 16
_ID: Final = (1 << ID_BITS) - 1
_NEWLINE: Final = 10


class NeedleSets:
    """Numbers for the sets of needles that lines hold; needle n alone is set n.

    A set is an integer with bit n for needle n.
    """

    def __init__(self, needles: int) -> None:
        self._needles = needles
        self._numbers: dict[int, int] = {}
        self.held: list[int] = [1 << needle for needle in range(needles)]
        "The sets by number."

    def number(self, held: int) -> int:
        """The number of a set of two needles or more."""
        known = self._numbers.get(held)
        if known is None:
            known = self._numbers[held] = len(self.held)
            self.held.append(held)
        return known

    def forget(self) -> None:
        """Drop the numbers of all sets of two needles or more: no line waits by them any more."""
        self._numbers.clear()
        del self.held[self._needles :]


@dataclass(frozen=True, slots=True)
class Survivors:
    """The survivors of one block of bytes, as columns of int64."""

    buffer: bytearray
    base: int
    "Offset of the buffer's first byte in the file."

    numbers: NDArray[np.int64]
    "Line numbers, from 1 within the unit."

    starts: NDArray[np.int64]
    "Positions in the buffer."

    ends: NDArray[np.int64]
    sets: NDArray[np.int64]
    "Which needles a line holds, as the number of their set."

    def __len__(self) -> int:
        return len(self.numbers)

    def line(self, at: int) -> bytes:
        """The bytes of one line."""
        return bytes(self.buffer[self.starts[at] : self.ends[at]])

    def lines(self, first: int, last: int) -> list[bytes]:
        """The bytes of some lines."""
        with memoryview(self.buffer) as view:
            spans = zip(
                self.starts[first:last].tolist(), self.ends[first:last].tolist(), strict=True
            )
            return [bytes(view[start:end]) for start, end in spans]


class Sink(Protocol):
    """Receives survivors, and every line while it is hungry."""

    hungry: bool
    sets: NeedleSets

    def walk(self, number: int, offset: int, line: bytes) -> None:
        """A line inside an open record (survivors included)."""

    def take(self, found: Survivors, first: int, last: int) -> int:
        """Take survivors `first` to `last` - 1, or fewer: up to the first that leaves it hungry.

        Returns the place behind those taken.
        """

    def settle(self) -> None:
        """A block of bytes is done: its survivors are handed on, and no other is under way."""


@dataclass(slots=True)
class ScanStats:
    """What was read for one unit."""

    bytes: int = 0
    lines: int = 0
    "Newlines among the unit's own bytes, plus one for a last line without newline."

    cut_off: bool = False
    "The compressed stream ended before its end mark."

    tail: Tail = b""
    "The unit's own last bytes, at most `TAIL_BYTES`: whole lines, but for the first."


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

    def search(buffer: bytearray, end: int) -> array[int]:
        hits = array("q")
        add = hits.append

        def on_match(needle: int, _start: int, stop: int, _flags: int, _context: object) -> None:
            add(stop << ID_BITS | needle)

        with memoryview(buffer)[:end] as view:
            database.scan(view, match_event_handler=on_match)  # type: ignore[type-var]
        return hits

    return search


def find_search(needles: tuple[bytes, ...]) -> Search:
    """The fall-back search: same hits, no dependency."""

    def search(buffer: bytearray, end: int) -> array[int]:
        hits = []
        for number, needle in enumerate(needles):
            at = buffer.find(needle, 0, end)
            while at >= 0:
                hits.append(at + len(needle) << ID_BITS | number)
                at = buffer.find(needle, at + 1, end)
        return array("q", sorted(hits))

    return search


@lru_cache(maxsize=8)
def make_search(needles: tuple[bytes, ...]) -> Search:
    """The fastest search this installation has for `needles`; built once per process."""
    assert len(needles) <= _ID
    try:
        return _hyperscan_search(needles)
    except ImportError:
        return find_search(needles)


class _Lines:
    """Where the lines of a block lie, from 0: the last one may lack its newline."""

    __slots__ = ("buffer", "ends", "newlines", "starts")

    def __init__(self, buffer: bytearray, stop: int) -> None:
        self.buffer = buffer
        self.newlines = np.flatnonzero(np.frombuffer(buffer, np.uint8, stop) == _NEWLINE)
        ended = not stop or buffer[stop - 1] == _NEWLINE
        self.ends = self.newlines if ended else np.append(self.newlines, stop)
        self.starts = np.concatenate(([0], self.ends[:-1] + 1))

    def before(self, position: int) -> int:
        """How many newlines stand before a position."""
        return int(np.searchsorted(self.newlines, position))


class _Region:
    """Hands the lines of one block after the other to the sink, counting them as it goes."""

    __slots__ = ("number", "search", "sink")

    def __init__(self, search: Search, sink: Sink) -> None:
        self.search, self.sink = search, sink
        self.number = 1
        "Of the block's first line that is counted."

    def hand_on(self, block: _Block, lines: _Lines, first: int, own: int) -> None:
        """Hand on what begins in [first, own): survivors, and what open records need between them.

        Lines behind `own` are the next unit's: of them, open records take what they need.
        """
        counted = lines.before(first)
        until = len(lines.ends) if own == block.stop else lines.before(own)
        if own > first:
            self._own(block, lines, counted, until, self._survivors(block, lines, first, own))
        self._walk(block, lines, counted, until, len(lines.ends))
        self.sink.settle()
        self.number += len(lines.newlines) - counted

    def _survivors(
        self, block: _Block, lines: _Lines, first: int, own: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which lines of the block hold needles, and the numbers of their sets."""
        hits = np.frombuffer(self.search(block.buffer, own), np.int64)
        hits = hits[np.searchsorted(hits, (first + 1) << ID_BITS) :]
        needles = hits & _ID
        # a needle may end with the newline of its line
        line = np.searchsorted(lines.newlines, (hits >> ID_BITS) - 1)
        begins = np.flatnonzero(np.diff(line, prepend=-1))
        counts = np.diff(begins, append=len(line))
        sets = needles[begins]
        for at in np.flatnonzero(counts > 1).tolist():
            held = 0
            for needle in needles[begins[at] : begins[at] + counts[at]].tolist():
                held |= 1 << needle
            if held & (held - 1):
                sets[at] = self.sink.sets.number(held)
        return line[begins], sets

    def _own(
        self,
        block: _Block,
        lines: _Lines,
        counted: int,
        until: int,
        survivors: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> None:
        which, sets = survivors
        sink, walked, at = self.sink, counted, 0
        found = Survivors(
            block.buffer,
            block.base,
            which + (self.number - counted),
            lines.starts[which],
            lines.ends[which],
            sets,
        )
        while at < len(found):
            last = len(found)
            if sink.hungry:
                last = at + 1
                line = int(which[at])
                self._walk(block, lines, counted, walked, line)
                if sink.hungry:
                    sink.walk(
                        int(found.numbers[at]), block.base + int(found.starts[at]), found.line(at)
                    )
            at = sink.take(found, at, last)
            walked = int(which[at - 1]) + 1
        self._walk(block, lines, counted, walked, until)

    def _walk(self, block: _Block, lines: _Lines, counted: int, first: int, last: int) -> None:
        """Hand on lines `first` to `last` - 1 of the block while the sink is hungry."""
        sink, buffer = self.sink, block.buffer
        at = first
        while at < last and sink.hungry:
            start, end = int(lines.starts[at]), int(lines.ends[at])
            number = self.number + at - counted
            sink.walk(number, block.base + start, bytes(buffer[start:end]))
            at += 1


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
    skip_partial, mid_line, last_byte = start > 0, False, _NEWLINE
    for block in _blocks(stream, max(start - 1, 0), stats):
        buffer, base, stop = block.buffer, block.base, block.stop
        lines = _Lines(buffer, stop)
        first = 0
        if skip_partial:  # the tail of a line that belongs to the unit before
            skip_partial = not len(lines.newlines)
            first = stop if skip_partial else int(lines.newlines[0]) + 1
        own = stop
        if end is not None and base + stop > end:
            own = max(_own_part(buffer, stop, end - base, mid_line=mid_line), first)
        region.hand_on(block, lines, first, own)
        if own > first:
            stats.bytes += own - first
            stats.lines += lines.before(own) - lines.before(first)
            stats.tail = joined_tail(stats.tail, bytes(buffer[max(first, own - TAIL_BYTES) : own]))
            last_byte = buffer[own - 1]
        mid_line = block.piece
        if end is not None and base + stop >= end and not mid_line and not sink.hungry:
            break
    stats.lines += last_byte != _NEWLINE
    return stats


def joined_tail(before: bytes, behind: bytes) -> bytes:
    """The last `TAIL_BYTES` of two parts that follow each other, however the whole is split.

    >>> joined_tail(b"one", b"two"), len(joined_tail(b"", bytes(9_999)))
    (b'onetwo', 4096)
    """
    return (before + behind)[-TAIL_BYTES:]


def _own_part(buffer: bytearray, stop: int, end: int, *, mid_line: bool) -> int:
    """How much of buffer[:stop] are lines that begin before position `end` of the buffer.

    `mid_line` says that the buffer begins with the rest of a line that began in an earlier piece.
    """
    if end <= 0 and not mid_line:
        return 0
    newline = buffer.find(b"\n", max(end - 1, 0), stop)
    return newline + 1 if newline >= 0 else stop
