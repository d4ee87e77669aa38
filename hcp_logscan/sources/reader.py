"""Byte streams of log files: plain, compressed, standard input. Nothing is held but one buffer."""

from __future__ import annotations

import bz2
import errno
import io
import lzma
import os
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

import zstandard
from isal import igzip_lib

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STDIN: Final = "-"
_COMPRESSED_CHUNK: Final = 1 << 17


ISAL_ERROR: Final[type[Exception]] = igzip_lib.IsalError  # type: ignore[assignment]
"""Typed as an instance by its stubs."""


class CutOffError(Exception):
    """A compressed stream ends before its end mark. What was read until then is good."""


class BrokenStreamError(Exception):
    """A compressed stream holds bytes that do not decompress."""


class ByteStream(Protocol):
    """What the scanner needs of a file: sequential reads into its own buffer."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill `buffer` from its start; the number of bytes read, 0 at the end."""

    def close(self) -> None:
        """Release the file."""


class Decompressing(io.RawIOBase):
    """A stream of concatenated compressed members, read through an incremental decompressor.

    The standard file classes raise at a cut-off end *instead* of handing over what they have; a log
    of a killed job is cut off more often than not, so here every byte before the cut is delivered
    and only the next read raises CutOffError.
    """

    def __init__(
        self, raw: io.RawIOBase, make: Callable[[], Any], errors: tuple[type[Exception], ...]
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


def _gzip(raw: io.RawIOBase) -> Decompressing:
    return Decompressing(
        raw,
        lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
        (ISAL_ERROR, ValueError),
    )


_OPENERS: Final[Mapping[str, Callable[[io.RawIOBase], ByteStream]]] = {
    ".gz": _gzip,
    ".zst": lambda raw: Decompressing(raw, _ZstdFrame, (zstandard.ZstdError,)),
    ".xz": lambda raw: Decompressing(
        raw, lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY), (lzma.LZMAError, MemoryError)
    ),
    ".bz2": lambda raw: Decompressing(raw, bz2.BZ2Decompressor, (OSError, ValueError)),
}

READ_ERRORS: Final = (BrokenStreamError, OSError)
"""What a read may raise, besides CutOffError."""


def compression(name: str) -> str:
    """The suffix that says how a file is compressed, empty for none.

    >>> compression("rank0.log.gz"), compression("rank0.log")
    ('.gz', '')
    """
    return next((suffix for suffix in _OPENERS if name.endswith(suffix)), "")


def seekable(path: str) -> bool:
    """Whether the bytes at an offset can be read again: plain files only."""
    return path != STDIN and not compression(path)


def open_bytes(path: str, start: int = 0) -> ByteStream:
    """The bytes of a file from `start` on (plain files only); `-` is standard input.

    Raises OSError as the system reports it.
    """
    if path == STDIN:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        os.set_blocking(sys.stdin.fileno(), True)  # else a slow writer looks like the end
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    raw = io.FileIO(path)
    if opener := _OPENERS.get(compression(path)):
        return opener(raw)
    if start:
        raw.seek(start)
    return raw
