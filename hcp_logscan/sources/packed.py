"""Compressed streams: recognised by their first bytes, decompressed with bounded memory."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from typing import TYPE_CHECKING, Any, Final, Protocol

import zstandard
from isal import igzip_lib

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_COMPRESSED_CHUNK: Final = 1 << 17

ISAL_ERROR: Final[type[Exception]] = igzip_lib.IsalError  # type: ignore[assignment]
"""Typed as an instance by its stubs."""

MAX_RATIO: Final = 250
"""A compressed file that grows more than this is a bomb: logs shrink 10 to 30 times with gzip, and
up to about 100 times with xz and zstd."""

MIN_CEILING: Final = 1 << 30
"""Bytes that any of them may grow to: a progress bar repeats itself more than logs do, and 1 GiB is
scanned within seconds."""


class CutOffError(Exception):
    """A compressed stream, or an archive, ends too early. What was read until then is good."""


class BrokenStreamError(Exception):
    """A stream holds bytes that do not decompress, or more of them than it may."""


READ_ERRORS: Final = (BrokenStreamError, OSError)
"""What a read may raise, besides CutOffError."""


class ByteStream(Protocol):
    """What the scanner needs of a file: sequential reads into its own buffer."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill `buffer` from its start; the number of bytes read, 0 at the end."""

    def close(self) -> None:
        """Release the file."""


Stored = io.RawIOBase | io.BytesIO
"""Bytes as they are stored."""


class Decompressing(io.RawIOBase):
    """A stream of concatenated compressed members, read through an incremental decompressor.

    The standard file classes raise at a cut-off end *instead* of handing over what they have; a log
    of a killed job is cut off more often than not, so here every byte before the cut is delivered
    and only the next read raises CutOffError.
    """

    def __init__(
        self, raw: Stored, make: Callable[[], Any], errors: tuple[type[Exception], ...]
    ) -> None:
        self._raw, self._make, self._errors = raw, make, errors
        self._member = make()
        self._pending = b""
        self._began = False

    def readable(self) -> bool:
        """Say that this stream can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill `buffer` with text bytes; raises CutOffError or BrokenStreamError."""
        while True:
            if self._member.eof:
                self._pending = self._member.unused_data
                self._member, self._began = self._make(), False
            if not self._pending and getattr(self._member, "needs_input", True):
                self._pending = self._raw.read(_COMPRESSED_CHUNK) or b""
                if not self._pending:
                    if self._began:
                        raise CutOffError
                    return 0
            if not self._began and not self._pending.strip(b"\0"):
                self._pending = b""  # zero padding behind the last member, as tar and dd leave it
                continue
            self._began = True
            try:
                text = self._member.decompress(self._pending, len(buffer))
            except self._errors as error:
                raise BrokenStreamError(str(error)) from error
            self._pending = b""
            if text:
                buffer[: len(text)] = text
                return len(text)

    def close(self) -> None:
        """Release the file below."""
        self._raw.close()
        super().close()


class Counted(io.RawIOBase):
    """Stored bytes, and how many of them were read: of a pipe, nothing else says how long it is."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self.count: int = 0

    def readable(self) -> bool:
        """Say that this stream can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill `buffer`."""
        count = self._raw.readinto(buffer) or 0
        self.count += count
        return count

    def close(self) -> None:
        """Release the stream below."""
        self._raw.close()
        super().close()


class Limited(io.RawIOBase):
    """A stream that may not grow beyond a ceiling; the last bytes below it are handed over.

    The ceiling is a number of bytes, or follows from the `stored` bytes that were read until then.
    """

    def __init__(self, raw: io.RawIOBase, ceiling: int | Counted) -> None:
        self._raw, self._ceiling, self._given = raw, ceiling, 0

    def readable(self) -> bool:
        """Say that this stream can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill `buffer`; raises BrokenStreamError once there is more than may be."""
        with memoryview(buffer)[: max(self._most() - self._given, 1)] as view:
            count = self._raw.readinto(view) or 0
        self._given += count
        if self._given > (most := self._most()):
            raise BrokenStreamError(bomb(most))
        return count

    def _most(self) -> int:
        known = self._ceiling
        return ceiling_of(known.count) if isinstance(known, Counted) else known

    def close(self) -> None:
        """Release the stream below."""
        self._raw.close()
        super().close()


def bomb(ceiling: int) -> str:
    """What to say of a stream that grows beyond `ceiling` bytes."""
    return (
        f"expands to more than {ceiling:,} bytes, far more than logs do: what lies behind them is"
        " not read"
    )


def ceiling_of(size: int) -> int:
    """How many bytes a compressed file of `size` bytes may expand to."""
    return max(MIN_CEILING, MAX_RATIO * size)


class Checked(io.RawIOBase):
    """What a zip unpacks a member to: as many bytes as it says, with the checksum that it says."""

    def __init__(self, raw: io.RawIOBase, expanded: int | None, crc: int | None) -> None:
        self._raw, self._left, self._crc = raw, expanded, crc
        self._found = 0

    def readable(self) -> bool:
        """Say that this stream can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill `buffer`; raises BrokenStreamError where the bytes are not those of the zip."""
        count = self._raw.readinto(buffer) or 0
        if self._left is not None:
            self._left -= count
            if self._left < 0 or (not count and self._left):
                raise BrokenStreamError("damaged: it unpacks to another size than the archive says")
        self._found = zlib.crc32(memoryview(buffer)[:count], self._found)
        if not count and self._crc not in (None, self._found):
            raise BrokenStreamError("damaged: its checksum is not the one that the archive says")
        return count

    def close(self) -> None:
        """Release the stream below."""
        self._raw.close()
        super().close()


_XZ_MEMORY: Final = 256 << 20
"""Bytes that one .xz may make its decompressor take; `xz -9` asks for 65 MiB."""

_ZSTD_STEP: Final = 1024
"""Bytes of a .zst that are decompressed at once: at most about 32 MiB of text."""


class _ZstdFrame:
    """One frame, with the methods of `bz2.BZ2Decompressor`.

    zstandard's own stream reader takes the end of a cut-off file for the end of the text.
    """

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._input = self._text = b""

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof) and not self._text

    @property
    def needs_input(self) -> bool:
        return not self._text and not self._input

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data) + self._input

    def decompress(self, data: bytes, max_length: int) -> bytes:
        self._input += data
        while self._input and not self._text and not self._frame.eof:
            step, self._input = self._input[:_ZSTD_STEP], self._input[_ZSTD_STEP:]
            self._text = self._frame.decompress(step)
        text, self._text = self._text[:max_length], self._text[max_length:]
        return text


def _igzip(flag: int) -> Callable[[Stored], Decompressing]:
    def opened(raw: Stored) -> Decompressing:
        errors = (ISAL_ERROR, ValueError)
        return Decompressing(raw, lambda: igzip_lib.IgzipDecompressor(flag=flag), errors)

    return opened


def _xz(raw: Stored) -> Decompressing:
    errors = (lzma.LZMAError, MemoryError)
    return Decompressing(raw, lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY), errors)


OPENERS: Final[Mapping[str, Callable[[Stored], Decompressing]]] = {
    ".gz": _igzip(igzip_lib.DECOMP_GZIP),
    ".zst": lambda raw: Decompressing(raw, _ZstdFrame, (zstandard.ZstdError,)),
    ".xz": _xz,
    ".bz2": lambda raw: Decompressing(raw, bz2.BZ2Decompressor, (OSError, ValueError)),
}
"""By suffix. Each takes the compressed bytes and gives the text."""

ZIP_METHODS: Final[Mapping[int, Callable[[Stored], Decompressing]]] = {
    8: _igzip(igzip_lib.DECOMP_DEFLATE),
    12: OPENERS[".bz2"],
    93: OPENERS[".zst"],
    95: OPENERS[".xz"],
}
"""By the number that a zip gives them (APPNOTE.TXT 4.4.5); 0 is stored."""

MAGIC_BYTES: Final = 10
"""How many of a file's first bytes say how it is compressed."""

_MAGICS: Final = (
    (".gz", b"\x1f\x8b\x08"),
    (".zst", b"\x28\xb5\x2f\xfd"),
    (".xz", b"\xfd7zXZ\0"),
    *((".bz2", b"BZh%d1AY&SY" % level) for level in range(1, 10)),
    *((".bz2", b"BZh%d\x17\x72\x45\x38\x50\x90" % level) for level in range(1, 10)),
)
_TEXT: Final = bytes({7, 8, 9, 10, 12, 13, 27} | set(range(32, 127)) | set(range(128, 256)))


def suffix_of(name: str) -> str:
    """The suffix that says how a file is compressed, in any case; empty for none.

    >>> suffix_of("rank0.log.gz"), suffix_of("RANK0.LOG.GZ"), suffix_of("rank0.log")
    ('.gz', '.gz', '')
    """
    lower = name.lower()
    if lower.endswith(".tgz"):
        return ".gz"
    return next((suffix for suffix in OPENERS if lower.endswith(suffix)), "")


def unpacked_name(name: str) -> str:
    """The name of what a compressed file holds.

    >>> unpacked_name("a/rank0.log.gz"), unpacked_name("a/rank0.log")
    ('a/rank0.log', 'a/rank0.log')
    """
    suffix = next((suffix for suffix in OPENERS if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)]


def compression(name: str, head: bytes) -> str:
    r"""How a file is compressed, empty for not at all: its first bytes say it, not its name.

    `head` is at least MAGIC_BYTES long where the file is. A name is believed where the bytes are
    cut off, or are neither text nor any known magic.

    >>> compression("rank0.log", b"\x1f\x8b\x08 and so on"), compression("rank0.gz", b"iteration 1")
    ('.gz', '')
    """
    for suffix, magic in _MAGICS:
        if head.startswith(magic):
            return suffix
    said = suffix_of(name)
    cut = any(suffix == said and magic.startswith(head) for suffix, magic in _MAGICS)
    return said if cut or head.translate(None, _TEXT) else ""
