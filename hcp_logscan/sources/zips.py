"""What is in a zip: its directory, or a walk over its members where the directory is missing.

From PKWARE's APPNOTE.TXT 6.3.10: local headers 4.3.7, data descriptors 4.3.9, zip64 4.5.3. The
directory is read by the standard library; the members are not, because it hands over nothing of one
that is cut off.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from isal import igzip_lib

from hcp_logscan.sources.packed import ISAL_ERROR, BrokenStreamError, ceiling_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.sources.tar import Readable

MAX_DIRECTORY: Final = 16 << 20
"""Bytes of a directory that are taken into memory: about 100,000 members."""

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_MARK: Final = b"PK\x03\x04"
_ENDS: Final = (b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06")
_ENCRYPTED, _DESCRIBED_LATER, _UTF8 = 0x1, 0x8, 0x800
_FULL: Final = 0xFFFFFFFF
_CHUNK: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Entry:
    """One member of an archive."""

    name: str
    kind: Literal["file", "folder", "link", "special"]
    offset: int
    "Of its first stored byte."

    size: int
    "Bytes stored."

    expanded: int | None
    "Bytes that it unpacks to, as the archive says."

    method: int
    crc: int | None
    encrypted: bool
    "Or packed with a key of its own: in both cases nothing can be read."


class _Seekable(io.RawIOBase):
    """An archive as the file object that `zipfile` asks for; it refuses to read much at once."""

    def __init__(self, archive: Readable, size: int) -> None:
        self._archive, self._size, self._at = archive, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0, /) -> int:
        at = offset + (0, self._at, self._size)[whence]
        if at < 0:
            raise OSError("seek before the beginning")
        self._at = at
        return at

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self._size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted > MAX_DIRECTORY:
            raise BrokenStreamError(f"its directory is larger than {MAX_DIRECTORY:,} bytes")
        data = self._archive.read(self._at, wanted)
        self._at += len(data)
        return data


_DIRECTORY_ERRORS: Final[tuple[type[Exception], ...]] = (
    zipfile.BadZipFile,
    NotImplementedError,
    struct.error,
    ValueError,
    OverflowError,
    RuntimeError,
)


def directory(archive: Readable, size: int) -> list[Entry] | None:
    """The members as the directory lists them, in the order of their bytes.

    None where it is missing or damaged. Raises BrokenStreamError for one that is too large, and
    OSError.
    """
    try:
        with zipfile.ZipFile(_Seekable(archive, size)) as found:
            listed = sorted(found.infolist(), key=lambda info: info.header_offset)
    except _DIRECTORY_ERRORS:
        return None
    return [_entry(archive, info) for info in listed]


def _entry(archive: Readable, info: zipfile.ZipInfo) -> Entry:
    mode = info.external_attr >> 16 if info.create_system == 3 else 0
    kind: Literal["file", "folder", "link", "special"] = "file"
    if info.orig_filename.endswith("/"):
        kind = "folder"
    elif stat.S_ISLNK(mode):
        kind = "link"
    elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        kind = "special"
    head = archive.read(info.header_offset, _LOCAL.size) if info.header_offset >= 0 else b""
    lies = len(head) < _LOCAL.size or not head.startswith(_MARK)
    lengths = (0, 0) if lies else _LOCAL.unpack(head)[-2:]
    return Entry(
        info.orig_filename,
        kind,
        -1 if lies else info.header_offset + _LOCAL.size + sum(lengths),
        info.compress_size,
        info.file_size,
        info.compress_type,
        info.CRC,
        bool(info.flag_bits & _ENCRYPTED),
    )


def walk(archive: Readable, size: int) -> Iterator[Entry]:
    """The members in the order of their bytes, from their own headers: of an archive cut off."""
    at = 0
    while len(head := archive.read(at, _LOCAL.size)) == _LOCAL.size and head.startswith(_MARK):
        _, _, flags, method, _, _, crc, stored, expanded, names, extras = _LOCAL.unpack(head)
        tail = archive.read(at + _LOCAL.size, names + extras)
        name = tail[:names].decode("utf-8" if flags & _UTF8 else "cp437", "backslashreplace")
        expanded, stored = _zip64(tail[names:], expanded, stored)
        at += _LOCAL.size + names + extras
        later = bool(flags & _DESCRIBED_LATER) and not stored
        behind = at + stored
        if later:
            behind = _end_of_deflated(archive, at, size) if method == 8 else size
            stored = behind - at
            behind = _behind_descriptor(archive, behind)
        yield Entry(
            name,
            "folder" if name.endswith("/") else "file",
            at,
            stored,
            None if later else expanded,
            method,
            None if later else crc,
            bool(flags & _ENCRYPTED),
        )
        at = behind


def _zip64(extra: bytes, expanded: int, stored: int) -> tuple[int, int]:
    """Both sizes, from the extra field where they do not fit their own."""
    while len(extra) >= 4:
        kind, length = struct.unpack("<2H", extra[:4])
        numbers = extra[4 : 4 + length]
        if kind == 1:
            if expanded == _FULL and len(numbers) >= 8:
                expanded, numbers = int.from_bytes(numbers[:8], "little"), numbers[8:]
            if stored == _FULL and len(numbers) >= 8:
                stored = int.from_bytes(numbers[:8], "little")
            break
        extra = extra[4 + length :]
    return expanded, stored


def _end_of_deflated(archive: Readable, at: int, size: int) -> int:
    """Where a deflated member ends whose length is told behind it; the end where it is cut off."""
    member: Any = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
    left = ceiling_of(size)
    try:
        while left >= 0 and (data := archive.read(at, _CHUNK)):
            at += len(data)
            left -= len(member.decompress(data, _CHUNK))
            while left >= 0 and not member.eof and not member.needs_input:
                left -= len(member.decompress(b"", _CHUNK))
            if member.eof:
                return at - len(member.unused_data)
    except ISAL_ERROR:
        pass
    return size


def _behind_descriptor(archive: Readable, at: int) -> int:
    """Where the next header begins: a descriptor has 12 to 24 bytes."""
    near = archive.read(at, 28)
    hits = [near.find(mark, 12) for mark in (_MARK, *_ENDS)]
    return at + min((hit for hit in hits if hit >= 0), default=len(near))
