"""What is in a tar: a pass over its headers, forwards only.

From POSIX.1-2024 pax (ustar and pax headers) and the GNU tar manual, "Basic Tar Format" (long
names, sparse files, base-256 numbers). The standard library's `tarfile` is not used: it takes
headers of any claimed size into memory, remembers every member, and crafted headers have made it
run for ever in Python versions that we support.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from hcp_logscan.sources.packed import BrokenStreamError, CutOffError

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK: Final = 512
MAX_EXTENSION: Final = 1 << 20
"""Bytes of a header's extension (long name, pax records) that are looked at."""

_MAX_EXTENSIONS: Final = 16
"""Extensions in front of one header; writers need two."""

Kind = Literal["file", "folder", "link", "special", "sparse"]

_KINDS: Final[dict[bytes, Kind]] = {
    **dict.fromkeys((b"0", b"\0", b"7"), "file"),
    **dict.fromkeys((b"1", b"2"), "link"),
    **dict.fromkeys((b"5", b"D"), "folder"),
    b"S": "sparse",
}
_WITHOUT_DATA: Final = (b"1", b"2", b"3", b"4", b"5", b"6")
_RECORD: Final = re.compile(rb"(\d{1,8}) ")


class Readable(Protocol):
    """What a walk needs of an archive."""

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset` on; fewer only at the end."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One member of an archive."""

    name: bytes | None
    "As stored. None for a name that is too long to be one."

    kind: Kind
    offset: int
    "Of its first byte."

    size: int


def is_header(block: bytes) -> bool:
    """Whether an archive may begin with these bytes: the header's checksum is right."""
    if len(block) < BLOCK or not block[0]:
        return False
    try:
        said = _number(block[148:156])
    except BrokenStreamError:
        return False
    return said == sum(block[:148]) + 8 * 32 + sum(block[156:BLOCK])


def _number(field: bytes) -> int:
    """A number of a header: octal digits, or binary (GNU). Raises BrokenStreamError."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0", 1)[0].strip()
    try:
        number = int(digits or b"0", 8)
    except ValueError:
        number = -1
    if number < 0:
        raise BrokenStreamError("damaged: the archive holds a header that is none")
    return number


@dataclass(slots=True)
class _Extended:
    """What extensions say of the header behind them."""

    name: bytes | None = None
    size: int | None = None
    sparse: bool = False
    too_long: bool = False

    def take(self, kind: bytes, data: bytes) -> None:
        if kind == b"L":
            self.name = data.split(b"\0", 1)[0]
        elif kind in (b"x", b"X"):
            for key, value in _records(data):
                if key in (b"path", b"GNU.sparse.name"):
                    self.name = value
                elif key == b"size" and value.isdigit() and len(value) < 20:
                    self.size = int(value)
                self.sparse |= key.startswith(b"GNU.sparse.")


def _records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Pax records, `length key=value`, until one is none."""
    at = 0
    while match := _RECORD.match(data, at):
        end = at + int(match[1])
        key, equals, value = data[match.end() : end - 1].partition(b"=")
        if end <= match.end() or data[end - 1 : end] != b"\n" or not equals:
            return
        yield key, value
        at = end


def entries(archive: Readable) -> Iterator[Entry]:
    """Every member in its order.

    Raises CutOffError at an end without end mark, BrokenStreamError at what is no header. Between
    two members the caller may read of the one it was given.
    """
    at, extended, extensions = 0, _Extended(), 0
    while True:
        block = archive.read(at, BLOCK)
        if len(block) < BLOCK:
            if block.strip(b"\0") or not block or at == 0:
                raise CutOffError
            return
        if not block.strip(b"\0"):
            return
        if not is_header(block):
            raise BrokenStreamError(f"damaged: what stands at byte {at:,} is no header")
        kind, size = block[156:157], _number(block[124:136])
        data = at + BLOCK
        if kind in (b"x", b"X", b"g", b"L", b"K"):
            extensions += 1
            if extensions > _MAX_EXTENSIONS:
                raise BrokenStreamError("damaged: the archive holds headers for no member")
            if size <= MAX_EXTENSION:
                extended.take(kind, archive.read(data, size))
            else:
                extended.too_long = True
            at = data + _padded(size)
            continue
        what = _KINDS.get(kind, "special")
        size = extended.size if extended.size is not None else size
        if kind in _WITHOUT_DATA:
            size = 0
        if kind == b"S":
            data = _behind_map(archive, block, data)
        name = extended.name if extended.name is not None else _ustar_name(block)
        if extended.sparse and what == "file":
            what = "sparse"
        elif what == "file" and name.endswith(b"/"):
            what = "folder"  # older than the kind of its own
        yield Entry(None if extended.too_long else name, what, data, size)
        at, extended, extensions = data + _padded(size), _Extended(), 0


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _ustar_name(block: bytes) -> bytes:
    name = block[:100].split(b"\0", 1)[0]
    prefix = block[345:500].split(b"\0", 1)[0] if block[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _behind_map(archive: Readable, header: bytes, at: int) -> int:
    """Where the data of an old sparse file begins: behind the blocks that go on with its map."""
    more = header[482]
    while more:
        block = archive.read(at, BLOCK)
        if len(block) < BLOCK:
            raise CutOffError
        more, at = block[504], at + BLOCK
    return at
