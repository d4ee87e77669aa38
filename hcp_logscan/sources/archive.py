"""An archive of logs -> its members: one pass over a compressed tar, the directory of a zip.

Members are stretches of bytes; their names are never paths, and nothing is unpacked to disk. Links,
devices and unsafe names are counted and left alone, and so are archives inside archives.
"""

from __future__ import annotations

import io
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hcp_logscan.sources import kinds, leads, packed, tar, zips
from hcp_logscan.sources.place import Member
from hcp_logscan.sources.reader import (
    ZIP_MAGIC,
    Cursor,
    Region,
    compression_of,
    read_up_to,
    unpacked,
)
from hcp_logscan.sources.sorting import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hcp_logscan.sources.place import File
    from hcp_logscan.sources.sorting import Sorter

    Copied = Callable[[str, int, bytes], bool]
    "Whether a member (name, size, first bytes) lies beside its archive, too."

MAX_MEMBERS: Final = 200_000
"""Members of one archive: 16,384 ranks leave two files each, some attempts over."""

MAX_NAME: Final = 4096
"""Bytes of a member's name: no file system takes longer paths."""

_BZ2_BLOCK: Final = 1 << 20
"""Bytes of a .bz2 from which its first text is sure to come: its blocks are large."""


@dataclass(frozen=True, slots=True)
class _Listed:
    name: str | None
    "None for one too long."

    kind: str
    member: Member
    trouble: str = ""
    "Why it cannot be read."


def look_into(
    path: File, name: str, size: int, sorter: Sorter, copied: Copied = lambda *_: False
) -> list[Candidate]:
    """The logs in an archive, in the order in which a directory would have them.

    What cannot be read is noted in `sorter`; what was read until then counts.
    """
    found: dict[str, Candidate] = {}
    try:
        with closing(Cursor(path, compression_of(path), packed.ceiling_of(size))) as cursor:
            for one in _listed(cursor, path, size, name, sorter):
                if kept := _kept(cursor, one, name, sorter, copied):
                    if kept.name in found:
                        sorter.skip("replaced later in the archive", kept.name)
                    found[kept.name] = kept
    except packed.CutOffError:
        sorter.fail(name, "the archive is cut off: what stood behind the cut is missing")
    except packed.READ_ERRORS as error:
        sorter.fail(name, error)
    return sorted(_with_limits(list(found.values())), key=lambda one: _walk_order(one.name))


def _walk_order(name: str) -> list[tuple[int, str]]:
    """Sorts files as a walk finds them: those of a folder before its folders."""
    *folders, base = name.split("/")
    return [*((1, folder) for folder in folders), (0, base)]


def _with_limits(found: list[Candidate]) -> Iterator[Candidate]:
    """Members that are compressed by themselves share what the archive may expand to."""
    growing = sum(1 for one in found if isinstance(one.place, Member) and one.place.inner)
    for one in found:
        place = one.place
        if isinstance(place, Member) and place.inner:
            stored = place.size if place.expanded is None else place.expanded
            limit = packed.MAX_RATIO * stored + packed.MIN_CEILING // growing
            yield replace(one, place=replace(place, limit=limit))
        else:
            yield one


def _listed(cursor: Cursor, path: File, size: int, name: str, sorter: Sorter) -> Iterator[_Listed]:
    if not cursor.outer and cursor.read(0, tar.BLOCK).startswith(ZIP_MAGIC):
        listing = _of_zip(cursor, path, size, name, sorter)
    else:
        listing = _of_tar(cursor, path, size)
    for count, one in enumerate(listing):
        if count >= MAX_MEMBERS:
            raise packed.BrokenStreamError(
                f"holds more than {MAX_MEMBERS:,} members: those behind them are not read"
            )
        yield one if cursor.outer else replace(one, member=_clamped(one.member, size))


def _clamped(member: Member, archive_size: int) -> Member:
    """A member with at most one byte more than there is: to read that one says that it is cut."""
    there = max(archive_size - member.offset, 0)
    return replace(member, size=min(member.size, there + 1))


def _of_tar(cursor: Cursor, path: File, size: int) -> Iterator[_Listed]:
    outer, ceiling = cursor.outer, packed.ceiling_of(size) if cursor.outer else 0
    for entry in tar.entries(cursor):
        name = None if entry.name is None else entry.name.decode("utf-8", "backslashreplace")
        member = Member(path, name or "", entry.offset, entry.size, outer, ceiling)
        sparse = entry.kind == "sparse"
        trouble = "a sparse file: its holes are not read; pack it without --sparse"
        yield _Listed(name, "file" if sparse else entry.kind, member, trouble if sparse else "")


def _of_zip(cursor: Cursor, path: File, size: int, name: str, sorter: Sorter) -> Iterator[_Listed]:
    entries = zips.directory(cursor, size)
    if entries is None:
        sorter.fail(
            name, "cut off or damaged: it has no directory, members were looked for one by one"
        )
    left = packed.ceiling_of(size)
    for entry in zips.walk(cursor, size) if entries is None else entries:
        trouble = ""
        if entry.encrypted:
            trouble = "encrypted"
        elif entry.offset < 0:
            trouble = "damaged: no member stands where the archive's directory says"
        elif entry.method and entry.method not in packed.ZIP_METHODS:
            trouble = f"packed with method {entry.method}, which is not supported"
        before = left
        if entry.kind == "file" and not trouble:
            left -= entry.size if entry.expanded is None else entry.expanded
        called = entry.name if "/" in entry.name else entry.name.replace("\\", "/")
        member = Member(
            path,
            called,
            entry.offset,
            entry.size,
            ceiling=min(packed.ceiling_of(entry.size), before),
            method=entry.method,
            expanded=entry.expanded,
            crc=entry.crc,
        )
        yield _Listed(called, entry.kind, member, trouble)
        if left < 0:
            raise packed.BrokenStreamError(packed.bomb(packed.ceiling_of(size)))


def _kept(
    cursor: Cursor, one: _Listed, archive: str, sorter: Sorter, copied: Copied
) -> Candidate | None:
    """A member that is a log. None for one that is not read, which is counted."""
    if one.kind == "folder":
        return None
    inside = f"{archive}!/"
    if one.kind != "file":
        sorter.skip("link" if one.kind == "link" else "device or pipe", inside)
        return None
    name = _safe(one.name)
    if name is None:
        sorter.skip("unsafe name", inside)
        return None
    member, full = one.member, inside + name
    size = member.size if member.expanded is None else member.expanded
    if one.trouble:
        if sorter.selection.wants(full):
            sorter.fail(full, one.trouble)
        return None
    seen: list[tuple[str, bytes]] = []

    def head() -> bytes:
        seen[:] = [_head(cursor, member)]
        return seen[0][1]

    kind = sorter.sort(full, size, head)
    if kind == "archive":
        sorter.skip("archive inside an archive", full)
    if kind is None or kind == "archive":
        return None
    try:
        inner, start = seen[0] if seen else _head(cursor, member)
    except packed.READ_ERRORS as error:
        sorter.fail(full, error)
        return None
    if copied(name, size, start):
        sorter.skip("copy of a file beside the archive", full)
        return None
    stem = kinds.without_archive_suffix(archive)
    top = stem.rpartition("/")[2] + "/"
    said, before = f"{stem}/{name.removeprefix(top)}", leads.detect(start) if kind == "log" else ()
    return Candidate(replace(member, inner=inner), full, said, member.size, kind, before)


def _safe(name: str | None) -> str | None:
    """A member's name without `./`; None where it leads out of the archive, or is none.

    >>> _safe("./a/b.log"), _safe("../b.log"), _safe("/b.log")
    ('a/b.log', None, None)
    """
    if name is None or len(name) > MAX_NAME or name.startswith("/"):
        return None
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return "/".join(parts) if parts and ".." not in parts else None


def _head(cursor: Cursor, member: Member) -> tuple[str, bytes]:
    """How a member is compressed by itself, and its first bytes of text. Raises READ_ERRORS."""
    stream = unpacked(Region(cursor, member.offset, member.size), member)
    stored = _read(stream, kinds.SNIFF_BYTES)
    inner = packed.compression(member.name, stored[: packed.MAGIC_BYTES]) if stored else ""
    if inner == ".bz2" and len(stored) == kinds.SNIFF_BYTES:
        stored += _read(stream, _BZ2_BLOCK)
    if opener := packed.OPENERS.get(inner):
        return inner, _read(opener(io.BytesIO(stored)), kinds.SNIFF_BYTES)
    return inner, stored


def _read(stream: io.RawIOBase, size: int) -> bytes:
    try:
        return read_up_to(stream, size)
    except packed.CutOffError:
        return b""
