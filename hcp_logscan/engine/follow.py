"""A run that is still being written: read again and again, and each time only what is new.

Units are independent of each other, so the result of one stays right for as long as its bytes do.
A unit is *settled* once it ends with a line end and no block was open there: nothing that is
written behind it changes what it says. Of a file that grew, everything behind its settled units is
scanned again, which is little; a file that was replaced, cut or changed in any other way is scanned
from its beginning. Files are known by device and inode, so that a rotated one keeps its results.

What a poll leaves is one `BatchResult`: memory is bounded by what the run says, as in any scan.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.engine import plan
from hcp_logscan.engine.pool import Begun, begun, workers_for_bytes
from hcp_logscan.engine.scan import BatchResult, UnitStats
from hcp_logscan.sources import reader
from hcp_logscan.sources.place import Member, on_disk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hcp_logscan.engine.plan import Unit
    from hcp_logscan.model.line_format import LineFormat
    from hcp_logscan.sources.discover import Discovered, LogFile
    from hcp_logscan.sources.place import Place

    Key = tuple[int, int] | str
    """Device and inode; the path where a file cannot be looked at."""

SETTLE_BYTES: Final = 1 << 18
"""The end of a file is scanned again until it is this long: else every poll would leave a unit."""

_MARK_BYTES: Final = 512
"""At both ends of the settled bytes, to see whether they are still the same."""

_LINE_BYTES: Final = 1 << 16
"""How far back from its end a file is searched for the last line end."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was when it was scanned."""

    size: int
    mtime_ns: int
    kind: str
    held: bool = False
    "Its last line had no end yet and was left for the next poll."

    failed: bool = False
    leads: tuple[str, ...] = ()
    "What stands before its lines: a file of a few lines does not tell yet."

    settled: int = 0
    "Bytes from its beginning that settled units cover."

    marks: tuple[bytes, bytes] = (b"", b"")
    "The first and the last of them."

    def alike(self, now: _Seen) -> bool:
        """Whether nobody wrote to it since, and it is read in the same way."""
        return (self.size, self.mtime_ns) == (now.size, now.mtime_ns) and self._read_as(now)

    def grew_to(self, now: _Seen) -> bool:
        """Whether it may be the same file with more in it."""
        return now.size > self.size and self._read_as(now)

    def _read_as(self, now: _Seen) -> bool:
        return (self.kind, self.leads) == (now.kind, now.leads)


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be scanned of one file."""

    file: int
    key: Key
    start: int
    units: tuple[Unit, ...]
    seen: _Seen


class Follower:
    """Reads one run again and again."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers
        self._seen: dict[Key, _Seen] = {}
        self._found: Discovered | None = None
        self._kept = BatchResult([], {})
        self._owners: list[tuple[Key, bool]] = []
        "File of every unit of `_kept`, and whether the unit is settled."

    def read(self, found: Discovered, *, whole: bool = False) -> Begun | None:
        """The scan of the run as it is now; None where nothing is new since the last call.

        Lines without an end are left for later unless the `whole` of every file is wanted. Raises
        SourceError if a worker was killed.
        """
        looks = list(_looks(found.files))
        keys = [key for key, _ in looks]
        work = list(self._work(found.files, looks, found.formats, whole=whole))
        if not work and self._found is not None and _same(found, self._found):
            return None
        result = self._scanned(found, work)
        stale = {one.key for one in work}
        present = set(keys)
        grown = {one.key: one.start for one in work if one.start}
        kept = [
            key in present and (key not in stale or (settled and key in grown))
            for key, settled in self._owners
        ]
        self._seen = {key: seen for key, seen in self._seen.items() if key in present - stale}
        fresh: dict[int, list[UnitStats]] = {one.file: [] for one in work}
        for stats in result.units:
            fresh[stats.unit.file].append(stats)
        settled = [flag for one in work for flag in self._settle(one, fresh[one.file])]
        owners = [owner for owner, keep in zip(self._owners, kept, strict=True) if keep]
        self._owners = owners + [
            (keys[stats.unit.file], flag) for stats, flag in zip(result.units, settled, strict=True)
        ]
        index = {key: place for place, key in enumerate(keys)}
        self._kept = _joined(_thinned(self._kept, kept), result)
        self._kept.units = [
            replace(stats, unit=replace(stats.unit, file=index[key]))
            for stats, (key, _) in zip(self._kept.units, self._owners, strict=True)
        ]
        self._found = found
        return Begun(found, deque([_done(self._kept)]))

    def _work(
        self,
        files: Sequence[LogFile],
        looks: Sequence[tuple[Key, _Seen]],
        formats: tuple[LineFormat, ...],
        *,
        whole: bool,
    ) -> Iterator[_Work]:
        for index, (file, (key, now)) in enumerate(zip(files, looks, strict=True)):
            before = self._seen.get(key)
            start = 0
            if before is not None and not before.failed:
                same = before.alike(now)
                if same and not (whole and before.held):
                    continue
                grew = _grows(file.path, file.kind) and before.grew_to(now)
                if same or (grew and _unchanged(on_disk(file.path), before)):
                    start = before.settled
            end = None if whole else _last_line_end(file, now.size)
            held = end is not None and end < now.size
            cut = _units(index, file, start, end, now.size)
            work = tuple(replace(unit, formats=formats) for unit in cut)
            yield _Work(index, key, start, work, replace(now, held=held))

    def _scanned(self, found: Discovered, work: Sequence[_Work]) -> BatchResult:
        """What the units say, as one batch."""
        every = [unit for one in work for unit in one.units]
        workers = workers_for_bytes(sum(unit.size for unit in every))
        if workers > 1 or self._found is None:  # a little more of a file is not worth a process
            workers = self._workers or workers
        result = BatchResult([], {})
        if every:
            with begun(found, workers, every) as running:
                for part in running.results():
                    result = _joined(result, part)
        return result

    def _settle(self, work: _Work, mine: Sequence[UnitStats]) -> Iterator[bool]:
        """Note how the file was seen, and which of its new units are settled."""
        at = settled = work.start
        path = on_disk(work.units[0].path)
        more = _grows(work.units[0].path, work.units[0].kind)
        flags = []
        for number, stats in enumerate(mine):
            at += stats.bytes
            last = number == len(mine) - 1
            enough = not last or at - settled >= SETTLE_BYTES
            more = more and enough and not stats.unfinished and stats.error is None
            more = more and _read(path, at - 1, 1) == b"\n"
            flags.append(more)
            settled = at if more else settled
        failed = any(stats.error for stats in mine)
        marks = _marks(path, settled)
        self._seen[work.key] = replace(work.seen, settled=settled, marks=marks, failed=failed)
        yield from flags


def _looks(files: Sequence[LogFile]) -> Iterator[tuple[Key, _Seen]]:
    """Which file each is. One that was renamed meanwhile may be met twice: it has one key."""
    known: set[Key] = set()
    for file in files:
        key, now = _look(file)
        key = file.name if key in known else key
        known.add(key)
        yield key, now


def _look(file: LogFile) -> tuple[Key, _Seen]:
    """Which file it is, and how it is now. A member of an archive changes as its archive does."""
    path = on_disk(file.path)
    try:
        status = os.stat(path)  # noqa: PTH116 - beside the other calls of `os`
    except OSError:
        return file.name, _Seen(-1, -1, file.kind, leads=file.leads)
    inside = isinstance(file.path, Member)
    key: Key = file.name if inside else (status.st_dev, status.st_ino)
    return key, _Seen(status.st_size, status.st_mtime_ns, file.kind, leads=file.leads)


def _grows(place: Place, kind: str) -> bool:
    """Whether it may be read from the middle once it has grown."""
    return kind == "log" and not isinstance(place, Member) and reader.seekable(place)


def _same(found: Discovered, before: Discovered) -> bool:
    """Whether the same files are there, and the same is said of the others."""

    def names(run: Discovered) -> list[tuple[str, str]]:
        return [(file.name, str(file.path)) for file in run.files]

    return names(found) == names(before) and (found.unreadable, found.skipped) == (
        before.unreadable,
        before.skipped,
    )


def _units(index: int, file: LogFile, start: int, end: int | None, size: int) -> Iterator[Unit]:
    """The bytes from `start` to `end` as units; what cannot be read from the middle is one."""
    if not _grows(file.path, file.kind):
        yield from (replace(unit, file=index) for unit in plan.units([file]))
        return
    stop = size if end is None else end
    starts = list(range(start, max(stop, start + 1), plan.UNIT_BYTES))
    for begin, finish in zip(starts, [*starts[1:], end], strict=True):
        length = max((size if finish is None else finish) - begin, 0)
        yield plan.Unit(index, file.path, begin, finish, size=length, leads=file.leads)


def _last_line_end(file: LogFile, size: int) -> int | None:
    """Where the last line that has an end ends; None reads all there is."""
    if not _grows(file.path, file.kind) or size <= 0:
        return None
    start = max(size - _LINE_BYTES, 0)
    at = _read(on_disk(file.path), start, size - start).rfind(b"\n")
    return start + at + 1 if at >= 0 else (0 if not start else None)


def _marks(path: str, settled: int) -> tuple[bytes, bytes]:
    if not settled:
        return b"", b""
    length = min(_MARK_BYTES, settled)
    return _read(path, 0, length), _read(path, settled - length, length)


def _unchanged(path: str, before: _Seen) -> bool:
    """Whether the settled bytes of a file that grew are still those that were scanned."""
    return before.marks == _marks(path, before.settled)


def _read(path: str, start: int, length: int) -> bytes:
    """Some bytes of a plain file; fewer where it has not so many, or cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a path of `LogFile` is a str
            file.seek(max(start, 0))
            return file.read(length) or b""
    except OSError:
        return b""


def _done(result: BatchResult) -> Future[BatchResult]:
    future: Future[BatchResult] = Future()
    future.set_result(result)
    return future


def _thinned(result: BatchResult, kept: Sequence[bool]) -> BatchResult:
    """The batch without some of its units."""
    if all(kept):
        return result
    places = [place for place, keep in enumerate(kept) if keep]
    renumbered = pl.DataFrame(
        {"file": places, "_place": range(len(places))},
        schema={"file": pl.Int64, "_place": pl.Int64},
    )
    frames = {
        table: frame.join(renumbered, on="file", how="inner", maintain_order="left")
        .with_columns(pl.col("_place").alias("file"))
        .select(frame.columns)
        for table, frame in result.frames.items()
    }
    units = [result.units[place] for place in places]
    return BatchResult(units, {table: frame for table, frame in frames.items() if frame.height})


def _joined(one: BatchResult, other: BatchResult) -> BatchResult:
    """Two batches as one, the units of `other` behind those of `one`."""
    before = len(one.units)
    frames = dict(one.frames)
    for table, frame in other.frames.items():
        moved = frame.with_columns(pl.col("file") + before)
        frames[table] = (
            pl.concat([frames[table], moved], rechunk=True) if table in frames else moved
        )
    return BatchResult([*one.units, *other.units], frames)
