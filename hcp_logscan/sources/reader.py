"""Byte streams of log files: plain, compressed, standard input, remote, members of archives.

Nothing is held but one buffer.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, Final, Self

from hcp_logscan.sources import kinds, packed, remote, tar
from hcp_logscan.sources.packed import (
    READ_ERRORS,
    BrokenStreamError,
    ByteStream,
    CutOffError,
    Decompressing,
    Limited,
)
from hcp_logscan.sources.place import STDIN, File, Member, Place, Remote, name_of

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "READ_ERRORS",
    "STDIN",
    "BrokenStreamError",
    "ByteStream",
    "Cursor",
    "CutOffError",
    "Decompressing",
    "Opener",
    "Region",
    "compression_of",
    "look",
    "open_bytes",
    "peek",
    "seekable",
]

_SKIP_BYTES: Final = 1 << 20
_MAX_OFFSET: Final = (1 << 63) - 1
ZIP_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
"""A zip begins with a member, with its end where it has none, or with the mark of a split one."""


class _Peeked(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, raw: ByteStream) -> None:
        self._head, self._raw = head, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if not self._head:
            return self._raw.readinto(buffer) or 0
        part, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._raw.close()
        super().close()


def read_up_to(stream: ByteStream, wanted: int) -> bytes:
    """The next bytes of a stream: fewer than `wanted` only at its end, or where it breaks.

    Raises what a read raises where there is not one byte.
    """
    buffer = bytearray(wanted)
    view, filled = memoryview(buffer), 0
    try:
        while filled < wanted and (count := stream.readinto(view[filled:])):
            filled += count
    except (CutOffError, *READ_ERRORS):
        if not filled:
            raise
    return bytes(view[:filled])


def open_raw(file: File) -> io.RawIOBase:
    """The bytes of a file as they are stored. Raises OSError as the system reports it."""
    return remote.open_raw(file) if isinstance(file, Remote) else io.FileIO(file, opener=_regular)


def _regular(path: str, flags: int) -> int:
    """Open a regular file: one that became a pipe since it was found would be waited for."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "it is no regular file any more")


def peek(stream: ByteStream) -> tuple[bytes, ByteStream]:
    """The first SNIFF_BYTES of what is read only once, and the whole of it. Raises READ_ERRORS."""
    try:
        head = read_up_to(stream, kinds.SNIFF_BYTES)
    except CutOffError:
        head = b""
    return head, _Peeked(head, stream)


def compression_of(file: File) -> str:
    """How a file is compressed, empty for not at all. Raises OSError."""
    with open_raw(file) as raw:
        return packed.compression(name_of(file), read_up_to(raw, packed.MAGIC_BYTES))


def look(file: File) -> tuple[str, bytes]:
    """How a file is compressed, and its first SNIFF_BYTES text bytes: what there is of them.

    Raises READ_ERRORS where there is not one.
    """
    with open_raw(file) as raw:
        head = read_up_to(raw, packed.MAGIC_BYTES)
        said = packed.compression(name_of(file), head)
        stream: io.RawIOBase = _Peeked(head, raw)
        if opener := packed.OPENERS.get(said):
            stream = opener(stream)
        try:
            return said, read_up_to(stream, kinds.SNIFF_BYTES)
        except CutOffError:
            return said, b""


def seekable(place: Place) -> bool:
    """Whether the bytes at an offset can be read again: plain files, and members stored plainly."""
    if isinstance(place, Member):
        return place.plain
    if isinstance(place, Remote):
        return not place.packed
    if place == STDIN or packed.suffix_of(place):
        return False
    try:
        return not compression_of(place)
    except OSError:
        return True


class Cursor:
    """The bytes of one archive: at any offset of a plain one, only forwards in a compressed one.

    Going back in a compressed one begins it anew.
    """

    def __init__(self, file: File, outer: str = "", ceiling: int = 0) -> None:
        self.file: File = file
        self.outer: str = outer
        self._ceiling = ceiling
        self._failure: Exception | None = None
        self._stream: io.RawIOBase | None = None
        self._at = 0

    def _begin(self) -> io.RawIOBase:
        raw = open_raw(self.file)
        if opener := packed.OPENERS.get(self.outer):
            raw = Limited(opener(raw), self._ceiling)
        self._stream, self._at = raw, 0
        return raw

    def readinto(self, offset: int, buffer: memoryview) -> int:
        """Fill `buffer` with bytes from `offset` on; 0 at the end. Raises what a read raises."""
        if self._failure:
            raise self._failure
        stream = self._stream or self._begin()
        if not self.outer:
            if offset > _MAX_OFFSET:  # as crafted headers say it
                return 0
            stream.seek(offset)
            return stream.readinto(buffer) or 0
        try:
            if offset < self._at:
                stream.close()
                stream = self._begin()
            while self._at < offset:
                scratch = bytearray(min(offset - self._at, _SKIP_BYTES))
                if not (count := stream.readinto(scratch) or 0):
                    return 0
                self._at += count
            count = stream.readinto(buffer) or 0
        except (CutOffError, *READ_ERRORS) as error:
            self._failure = error  # what lies behind is lost: it is not looked for again
            raise
        self._at += count
        return count

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset` on; fewer only at the end, or where it breaks."""
        return read_up_to(Region(self, offset, size, whole=False), size)

    def close(self) -> None:
        """Release the archive."""
        if self._stream:
            self._stream.close()


class Region(io.RawIOBase):
    """A stretch of an archive, as a stream. Closing it leaves the archive open."""

    def __init__(self, cursor: Cursor, offset: int, size: int, *, whole: bool = True) -> None:
        self._cursor, self._offset, self._left, self._whole = cursor, offset, size, whole

    def readable(self) -> bool:
        """Say that this stream can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill `buffer`; raises CutOffError where the archive ends before the stretch does."""
        if self._left <= 0:
            return 0
        with memoryview(buffer)[: self._left] as view:
            count = self._cursor.readinto(self._offset, view)
        if not count and self._whole:
            raise CutOffError
        self._offset, self._left = self._offset + count, self._left - count
        return count


def unpacked(region: io.RawIOBase, member: Member) -> io.RawIOBase:
    """The file that a stretch of an archive holds, compressed as it may be by itself."""
    if opener := packed.ZIP_METHODS.get(member.method):
        region = Limited(opener(region), member.ceiling)
    if member.crc is not None or member.expanded is not None:
        region = packed.Checked(region, member.expanded, member.crc)
    return region


class Opener:
    """Opens one place after the other, and keeps an archive open from one member to the next.

    Members of a compressed archive are read in one pass where they are opened in their order.
    """

    def __init__(self) -> None:
        self._key: tuple[File, str] | None = None
        self._cursor: Cursor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Release the archive."""
        self.close()

    def close(self) -> None:
        """Release the archive."""
        if self._cursor:
            self._cursor.close()

    def open(self, place: Place, start: int = 0) -> ByteStream:
        """The bytes of a place from `start` on, which must be 0 where it is not seekable.

        A member must be done with before the next is opened. Raises READ_ERRORS.
        """
        if not isinstance(place, Member):
            return _standard_input() if place == STDIN else _open_file(place, start)
        key = (place.archive, place.outer)
        if self._cursor is None or key != self._key:
            self.close()
            self._key = key
            self._cursor = Cursor(place.archive, place.outer, place.ceiling)
        region = Region(self._cursor, place.offset + start, place.size - start)
        stream = region if start else unpacked(region, place)
        if opener := packed.OPENERS.get(place.inner):
            stream = Limited(opener(stream), place.limit)
        return stream


class _Owning(io.RawIOBase):
    """A member's stream that closes its archive."""

    def __init__(self, opener: Opener, stream: ByteStream) -> None:
        self._opener, self._stream = opener, stream

    def readinto(self, buffer: Any, /) -> int:
        return self._stream.readinto(buffer) or 0

    def close(self) -> None:
        self._stream.close()
        self._opener.close()
        super().close()


def open_bytes(place: Place, start: int = 0) -> ByteStream:
    """The bytes of one place from `start` on (seekable ones only); `-` is standard input.

    Compressed ones are decompressed; their first bytes decide, not their name. Raises OSError as
    the system reports it, and BrokenStreamError.
    """
    opener = Opener()
    stream = opener.open(place, start)
    return _Owning(opener, stream) if isinstance(place, Member) else stream


def _open_file(file: File, start: int) -> ByteStream:
    raw = open_raw(file)
    try:
        if isinstance(file, Remote):
            said = file.packed
        else:
            head = b"" if start else read_up_to(raw, packed.MAGIC_BYTES)
            said = packed.compression(file, head) if head else ""
        opener = packed.OPENERS.get(said)
        size = raw.seek(0, os.SEEK_END) if opener else 0
        raw.seek(start)
    except BaseException:
        raw.close()
        raise
    return Limited(opener(raw), packed.ceiling_of(size)) if opener else raw


def _standard_input() -> ByteStream:
    """Standard input, decompressed where it is compressed.

    Archives are refused: they are read twice, first for what is in them.
    """
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    os.set_blocking(sys.stdin.fileno(), True)  # else a slow writer looks like the end
    raw: io.RawIOBase = io.FileIO(sys.stdin.fileno(), closefd=False)
    head = read_up_to(raw, packed.MAGIC_BYTES)
    raw = _Peeked(head, raw)
    if opener := packed.OPENERS.get(packed.compression("", head)):
        stored = packed.Counted(raw)
        raw, head = Limited(opener(stored), stored), b""
    if not head.startswith(ZIP_MAGIC):
        head = _first(raw)
        raw = _Peeked(head, raw)
    if head.startswith(ZIP_MAGIC) or tar.is_header(head):
        raise BrokenStreamError(
            "standard input is an archive, which cannot be read from a pipe: store it in a file,"
            " and give the file"
        )
    return raw


def _first(stream: io.RawIOBase) -> bytes:
    """Bytes for one tar header; none of a compressed stream that is cut off before them."""
    try:
        return read_up_to(stream, tar.BLOCK)
    except CutOffError:
        return b""
