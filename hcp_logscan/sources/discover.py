"""A run directory, a file, an archive or standard input -> the log files in it.

Nothing outside the run directory is ever opened: links that lead out of it are not followed, and
neither FIFOs nor devices are touched.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.errors import NothingUnderstoodError, SourceError
from hcp_logscan.sources import archive, dump_names, kinds, layouts, packed, reader
from hcp_logscan.sources.place import STDIN, Place
from hcp_logscan.sources.sorting import (
    Candidate,
    FileKind,
    Selection,
    Sorter,
    is_archive,
    printable,
    why,
)
from hcp_logscan.sources.walk import walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.model.report import Skipped, Unreadable

__all__ = ["Discovered", "FileKind", "LogFile", "Selection", "discover", "run_name"]

_PATH_PARTS_FOR_HINTS: Final = 3
_GENERIC_NAMES: Final = frozenset({"run", "logs", "output", "outputs", "log", ".", ""})


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file and what its path says."""

    path: Place
    "Where to open it; `-` for standard input."

    name: str
    "Relative to the run directory, with `/`; of a member: `logs.tar.gz!/a/b.log`."

    size: int
    "Bytes stored; 0 where that is not known."

    hints: layouts.PathHints
    kind: FileKind = "log"


@dataclass(frozen=True, slots=True)
class Discovered:
    """Everything found under one RUN_DIR."""

    name: str
    "Name of the run, for the report's file name."

    files: tuple[LogFile, ...]
    unreadable: tuple[Unreadable, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def run_name(path: Path) -> str:
    """The name a report of this run gets: generic directory names take their parent's.

    >>> run_name(Path("/data/job-7/run"))
    'job-7'
    """
    parts = [part for part in path.parts if part not in {"/", ""}]
    while len(parts) > 1 and (
        parts[-1] in _GENERIC_NAMES or parts[-1].removeprefix("attempt_").isdecimal()
    ):
        parts.pop()
    return parts[-1] if parts else "run"


def _head(path: str) -> bytes:
    """The first SNIFF_BYTES text bytes of a file; what there is of a file that is damaged later."""
    stream = reader.open_bytes(path)
    try:
        return reader.read_up_to(stream, kinds.SNIFF_BYTES)
    except packed.CutOffError:
        return b""
    finally:
        stream.close()


def _single(path: Path, selection: Selection) -> Discovered:
    """One file the user pointed at: it is read whatever its name is, but not if it is no text."""
    size = path.stat().st_size
    try:
        head = _head(str(path)) if size else b""
    except reader.READ_ERRORS as error:
        raise SourceError(f"cannot read {path}: {why(error)}. Check its permissions.") from error
    if is_archive(head):
        return _archive(path, size, selection)
    if kind := kinds.by_content(head):
        raise NothingUnderstoodError(f"{path} is no log: it looks like {kind}.")
    hint = layouts.hints(path.name, selection.rank_regex, _above(path.parent))
    log = LogFile(str(path), printable(path.name), size, layouts.settle_tasks([hint])[0])
    stem = path.name.split(".")[0]
    return Discovered(stem if stem not in _GENERIC_NAMES else run_name(path.parent), (log,))


def _archive(path: Path, size: int, selection: Selection) -> Discovered:
    """An archive the user pointed at: as the directory that was packed."""
    sorter, name = Sorter(selection), printable(path.name)
    found = archive.look_into(str(path), name, size, sorter)
    stem = kinds.without_archive_suffix(name)
    return _discovered(
        stem if stem not in _GENERIC_NAMES else run_name(path.parent),
        str(path),
        [replace(one, said=one.said.removeprefix(f"{stem}/")) for one in found],
        sorter,
        [*_above(path.parent), stem],
    )


def _above(root: Path) -> list[str]:
    return [part for part in root.parts if part != "/"][-_PATH_PARTS_FOR_HINTS:]


def discover(run_dir: str | os.PathLike[str], selection: Selection | None = None) -> Discovered:
    """Find the log files of one run.

    Raises SourceError if the path does not exist or cannot be read, NothingUnderstoodError if
    nothing in it can be a log.
    """
    selection = selection or Selection()
    if os.fspath(run_dir) == STDIN:
        return Discovered("stdin", (LogFile(STDIN, "-", 0, layouts.PathHints()),))
    given = Path(run_dir)
    try:
        mode = given.stat().st_mode
    except OSError as error:
        raise SourceError(f"cannot read {given}: {error.strerror}. Check the path.") from error
    except ValueError as error:  # a NUL byte
        raise SourceError(f"cannot read {str(given)!r}: this is no path.") from error
    root = given.resolve()
    if not stat.S_ISDIR(mode):
        if not stat.S_ISREG(mode):
            raise SourceError(f"{given} is neither a file nor a directory.")
        return _single(root, selection)
    sorter = Sorter(selection)
    found: list[Candidate] = []
    archives: list[tuple[str, str, int]] = []
    for path, status in walk(root):
        name = printable(path.relative_to(root).as_posix())
        if isinstance(status, OSError):
            sorter.fail(name, status)
            continue
        kind = sorter.sort(name, status.st_size, partial(_head, str(path)))
        if kind == "archive":
            archives.append((str(path), name, status.st_size))
        elif kind:
            found.append(Candidate(str(path), name, name, status.st_size, kind))
    beside = {one.name: one for one in found}
    for place, name, size in archives:
        found += archive.look_into(place, name, size, sorter, partial(_copied, beside, name))
    return _discovered(run_name(root), str(given), found, sorter, _above(root))


def _copied(
    beside: Mapping[str, Candidate], archive_name: str, name: str, size: int, head: bytes
) -> bool:
    """Whether a member of an archive lies beside it, too: many archive their logs and keep them."""
    folder = archive_name.rpartition("/")[0]
    for stem in (folder, kinds.without_archive_suffix(archive_name)):
        same = beside.get(f"{stem}/{name}" if stem else name)
        if same and same.size >= size:
            try:
                start = _head(str(same.place))
            except reader.READ_ERRORS:
                continue
            if start.startswith(head):
                return True
    return False


def _discovered(
    name: str, given: str, found: Sequence[Candidate], sorter: Sorter, above: Sequence[str]
) -> Discovered:
    """What was found, with what the paths say. Raises NothingUnderstoodError if it is nothing."""
    if not any(one.kind != "config" for one in found) and not sorter.unreadable:
        raise NothingUnderstoodError(_nothing(given, sorter.skipped))
    rank_regex = sorter.selection.rank_regex
    every = layouts.settle_tasks([layouts.hints(one.said, rank_regex, above) for one in found])
    files = (
        LogFile(one.place, one.name, one.size, _hints_of(one.said, hint, one.kind), one.kind)
        for one, hint in zip(found, every, strict=True)
    )
    return Discovered(name, tuple(files), tuple(sorter.unreadable), sorter.all_skipped())


def _hints_of(name: str, hint: layouts.PathHints, kind: FileKind) -> layouts.PathHints:
    """A dump's name ends with the global rank, whatever digits its host name has."""
    return layouts.PathHints(rank=dump_names.rank_of_name(name)) if kind == "dump" else hint


def _nothing(given: str, skipped: Mapping[tuple[str, str], int]) -> str:
    if not skipped:
        return f"no log file in {given}: it is empty."
    kinds_found = Counter[str]()
    for (kind, _), count in skipped.items():
        kinds_found[kind] += count
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds_found.items()))
    return f"no log file in {given}: it holds only {listed}."
