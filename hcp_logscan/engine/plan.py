"""A run cut into units of work, and units put together in batches. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.sources import reader
from hcp_logscan.sources.place import Member, Place, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hcp_logscan.model.line_format import LineFormat
    from hcp_logscan.sources.discover import Discovered, FileKind, LogFile

UNIT_BYTES: Final = 32 << 20
"""A larger plain file is cut: one of 40 GB and 64 small ones keep all workers busy alike."""

_BATCHES_PER_WORKER: Final = 4
_LEAST_BATCH: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work."""

    file: int
    "Index into the list of files."

    path: Place
    start: int = 0
    end: int | None = None
    "None reads to the end of the file."

    kind: FileKind = "log"
    keep_text: bool = False
    "The bytes cannot be read again: every row keeps its line."

    size: int = 0
    "Bytes on disk, to balance the work by; 0 where that is not known."

    leads: tuple[str, ...] = ()
    "What stands before every line of its file."

    formats: tuple[LineFormat, ...] = ()
    "Users' line formats, the same in every unit of a run: whoever scans it has them at hand."

    @property
    def stream(self) -> tuple[str, int] | None:
        """Compressed archive that it lies in, and where; None of what can be read by itself."""
        place = self.path
        if isinstance(place, Member) and place.outer:
            return name_of(place.archive), place.offset
        return None


def units(
    files: Sequence[LogFile],
    unit_bytes: int = UNIT_BYTES,
    formats: tuple[LineFormat, ...] = (),
) -> Iterator[Unit]:
    """Cut files into units; what cannot be read from the middle is one unit.

    Members of a compressed archive come last, in the order in which they are read.
    """
    made = list(_units(files, unit_bytes, formats))
    yield from (unit for unit in made if not unit.stream)
    yield from sorted((unit for unit in made if unit.stream), key=lambda unit: unit.stream or ())


def of_run(found: Discovered) -> Iterator[Unit]:
    """All units of a run."""
    return units(found.files, formats=found.formats)


def _units(
    files: Sequence[LogFile], unit_bytes: int, formats: tuple[LineFormat, ...]
) -> Iterator[Unit]:
    for index, file in enumerate(files):
        again = reader.seekable(file.path)
        if file.kind != "log" or not again or file.size <= unit_bytes:
            kept = not again
            yield Unit(
                index,
                file.path,
                kind=file.kind,
                keep_text=kept,
                size=file.size,
                leads=file.leads,
                formats=formats,
            )
            continue
        starts = list(range(0, file.size, unit_bytes))
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            size = (file.size if end is None else end) - start
            yield Unit(
                index,
                file.path,
                start,
                end,
                size=size,
                leads=file.leads,
                formats=formats,
            )


def batches(
    work: Iterable[Unit], workers: int, total: int, most: int = UNIT_BYTES
) -> list[list[Unit]]:
    """Units in their order, put together so that every worker gets several batches.

    `total` is the size of all of them in bytes, `most` that of a batch, give or take its last unit.
    A compressed archive is one batch, however large: another would have to decompress it again.
    """
    wanted = min(max(total // (workers * _BATCHES_PER_WORKER), _LEAST_BATCH), most)
    made: list[list[Unit]] = []
    size = wanted
    archive: str | None = None
    for unit in work:
        before, archive = archive, unit.stream[0] if unit.stream else None
        if size >= wanted and (archive is None or archive != before):
            made.append([])
            size = 0
        made[-1].append(unit)
        size += unit.size
    return made
