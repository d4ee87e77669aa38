"""Where the bytes of a log are: a path, a file of a server, or a member of an archive."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

STDIN: Final = "-"
"""The path that stands for standard input."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file of a server."""

    url: str = field(repr=False)
    "How to connect to the server: the RUN_DIR, with its credentials."

    path: str
    "On the server."

    packed: str = ""
    "How the file is compressed, once it is known."


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside an archive: a stretch of its bytes, and how they are packed.

    Its name is for people: it is never opened.
    """

    archive: str | Remote
    "Where to open the archive."

    name: str
    "Of the member, as the archive says it."

    offset: int
    "Of its first byte: in the archive, or in what the archive decompresses to."

    size: int
    "Bytes stored there."

    outer: str = ""
    "How the archive as a whole is compressed: such a one is read forwards only."

    ceiling: int = 0
    "Bytes that a compressed archive, or what a zip packs, may expand to."

    method: int = 0
    "How a zip packs the member; 0 stores it as it is."

    expanded: int | None = None
    "Bytes that the zip says it unpacks to."

    crc: int | None = None
    "CRC-32 that the zip says of them."

    inner: str = ""
    "How the member's own file is compressed, as `rank0.log.gz` is."

    limit: int = 0
    "Bytes that it may expand to then."

    @property
    def plain(self) -> bool:
        """Whether its text stands in the archive as it is."""
        return not (self.outer or self.method or self.inner)


File = str | Remote
"""What is opened by itself."""

Place = str | Remote | Member
"""A path, `-`, a file of a server, or a member of an archive."""


def name_of(place: Place) -> str:
    """The name that a place goes by, to look at its end."""
    if isinstance(place, Member):
        return place.name
    return place.path if isinstance(place, Remote) else place


def holder(place: Place) -> str | Remote:
    """The file that holds it: itself, or its archive."""
    return place.archive if isinstance(place, Member) else place


def on_disk(place: Place) -> str:
    """The path of the file that holds it; of a remote one, its path on the server."""
    found = holder(place)
    return found.path if isinstance(found, Remote) else found


def absolute(place: Place) -> Place:
    """The same place for a process that stands in another directory."""
    found = holder(place)
    if isinstance(found, Remote):
        return place
    path = str(Path(found).absolute())
    return replace(place, archive=path) if isinstance(place, Member) else path
