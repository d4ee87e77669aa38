"""A run directory, a file, an archive, a URL or standard input -> the log files in it.

Nothing outside the run directory is ever opened: links that lead out of it are not followed, and
neither FIFOs nor devices are touched.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.errors import NothingUnderstoodError, SourceError
from hcp_logscan.sources import (
    archive,
    dump_names,
    kinds,
    layouts,
    leads,
    packed,
    reader,
    remote,
    settings,
)
from hcp_logscan.sources.place import STDIN, File, Member, Place, Remote
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
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.model.line_format import LineFormat
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
    leads: tuple[str, ...] = ()
    "What stands before every line, as `sources.leads` names it."


@dataclass(frozen=True, slots=True)
class Discovered:
    """Everything found under one RUN_DIR."""

    name: str
    "Name of the run, for the report's file name."

    files: tuple[LogFile, ...]
    unreadable: tuple[Unreadable, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    formats: tuple[LineFormat, ...] = ()
    "Line formats of the user's own: whoever scans the files has them at hand."

    settings: settings.Settings = field(default_factory=settings.Settings)
    "What the run's own settings file says."


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


class _Look:
    """Reads the head of one file, and remembers how it is compressed and what it begins with."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.packed = ""
        self._head = b""

    def __call__(self) -> bytes:
        self.packed, self._head = reader.look(self._file)
        return self._head

    def place(self) -> File:
        """The place of the file as far as it is known."""
        file = self._file
        return replace(file, packed=self.packed) if isinstance(file, Remote) else file

    def leads(self) -> tuple[str, ...]:
        """What leads the lines of a log; nothing of a file whose head was not read."""
        return leads.detect(self._head)


def _single(file: File, size: int, selection: Selection, given: str, path: Path) -> Discovered:
    """One file the user pointed at: it is read whatever its name is, but not if it is no text.

    An archive is read as the directory that was packed. `path` is how its name and folders read.
    """
    look = _Look(file)
    try:
        head = look() if size else b""
    except reader.READ_ERRORS as error:
        raise SourceError(f"cannot read {given}: {why(error)}. Check its permissions.") from error
    name = printable(path.name)
    if is_archive(head):
        sorter = Sorter(selection)
        stem = kinds.without_archive_suffix(name)
        found = archive.look_into(file, name, size, sorter)
        inside = [replace(one, said=one.said.removeprefix(f"{stem}/")) for one in found]
        above = [*_above(path.parent), stem]
        made = _discovered(_stem_name(stem, path), given, inside, sorter, above)
        return replace(made, settings=_packed_settings(sorter, f"{name}!/"))
    if kind := kinds.by_content(head):
        raise NothingUnderstoodError(f"{given} is no log: it looks like {kind}.")
    hint = layouts.hints(path.name, selection.rank_regex, _above(path.parent))
    settled = layouts.settle_tasks([hint])[0]
    log = LogFile(look.place(), name, size, settled, leads=look.leads())
    return Discovered(_stem_name(path.name.split(".")[0], path), (log,))


def _stem_name(stem: str, path: Path) -> str:
    return stem if stem not in _GENERIC_NAMES else run_name(path.parent)


def _above(root: Path) -> list[str]:
    return [part for part in root.parts if part != "/"][-_PATH_PARTS_FOR_HINTS:]


def discover(run_dir: str | os.PathLike[str], selection: Selection | None = None) -> Discovered:
    """Find the log files of one run.

    Raises SourceError if the path does not exist or cannot be read, NothingUnderstoodError if
    nothing in it can be a log, UsageError for a settings file that is none.
    """
    selection = selection or Selection()
    return replace(_discover(run_dir, selection), formats=selection.formats)


def _discover(run_dir: str | os.PathLike[str], selection: Selection) -> Discovered:
    text = os.fspath(run_dir)
    if remote.is_url(text):
        return _remote(text, selection)
    if text == STDIN:
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
        return _single(str(root), given.stat().st_size, selection, str(given), root)
    files = (
        (str(path), path.relative_to(root).as_posix(), _size_or_error(status))
        for path, status in walk(root)
    )
    return _directory(files, selection, run_name(root), str(given), _above(root))


def _size_or_error(status: os.stat_result | OSError) -> int | OSError:
    return status if isinstance(status, OSError) else status.st_size


def _remote(url: str, selection: Selection) -> Discovered:
    """A run behind a URL. Raises UsageError where its protocol cannot be spoken."""
    top, is_folder, size = remote.root(url)
    path, given = Path("/") / top.path.rstrip("/"), remote.shown(url)
    if not is_folder:
        return _single(top, size, selection, given, path)
    return _directory(remote.walk(top), selection, run_name(path), given, _above(path))


def _packed_settings(sorter: Sorter, archive_name: str) -> settings.Settings:
    """Those at the top of an archive, or in the one folder that holds everything."""
    inside = {name.removeprefix(archive_name): data for name, data in sorter.settings.items()}
    tops = [name for name in inside if name.count("/") <= 1]
    name = settings.FILE_NAME if settings.FILE_NAME in inside else "".join(tops[:1])
    if not name or (len(tops) > 1 and "/" in name):
        return settings.Settings()
    return settings.parse(inside[name], archive_name + name)


def _directory(
    files: Iterable[tuple[File, str, int | OSError]],
    selection: Selection,
    name: str,
    given: str,
    above: Sequence[str],
) -> Discovered:
    """The logs among the files of a directory (place, relative name, size or why not)."""
    sorter = Sorter(selection)
    found: list[Candidate] = []
    archives: list[tuple[File, str, int]] = []
    for file, raw_name, size in files:
        called, look = printable(raw_name), _Look(file)
        if isinstance(size, OSError):
            sorter.fail(called, size)
        elif (kind := sorter.sort(called, size, look)) == "archive":
            archives.append((file, called, size))
        elif kind:
            before = look.leads() if kind == "log" else ()
            found.append(Candidate(look.place(), called, called, size, kind, before))
    beside = {one.name: one for one in found}
    for file, called, size in archives:
        found += archive.look_into(file, called, size, sorter, partial(_copied, beside, called))
    made = _discovered(name, given, found, sorter, above)
    own = sorter.settings.get(settings.FILE_NAME)
    if own is None:
        return made
    return replace(made, settings=settings.parse(own, f"{given}/{settings.FILE_NAME}"))


def _copied(
    beside: Mapping[str, Candidate], archive_name: str, name: str, size: int, head: bytes
) -> bool:
    """Whether a member of an archive lies beside it, too: many archive their logs and keep them."""
    folder = archive_name.rpartition("/")[0]
    for stem in (folder, kinds.without_archive_suffix(archive_name)):
        same = beside.get(f"{stem}/{name}" if stem else name)
        if same and same.size >= size and not isinstance(same.place, Member):
            try:
                _, start = reader.look(same.place)
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
    led = {_log_of(one.name): one.leads for one in found if one.leads}
    files = (
        LogFile(
            one.place,
            one.name,
            one.size,
            _hints_of(one, hint),
            one.kind,
            # a part of a few lines does not tell by itself what leads them
            one.leads or led.get(_log_of(one.name), ()),
        )
        for one, hint in zip(found, every, strict=True)
    )
    return Discovered(name, tuple(files), tuple(sorter.unreadable), sorter.all_skipped())


def _log_of(name: str) -> str:
    """The log that a file is a part of, whatever packs the part."""
    return packed.unpacked_name(layouts.rotated(name)[0])


def _hints_of(one: Candidate, hint: layouts.PathHints) -> layouts.PathHints:
    """A dump's name ends with the global rank, whatever digits its host name has.

    A part of a rotated log is one of the log that lies beside it, in the same archive if in any.
    """
    if one.kind == "dump":
        return layouts.PathHints(rank=dump_names.rank_of_name(one.said))
    return replace(hint, part_of=layouts.rotated(one.name)[0]) if hint.part_of else hint


def _nothing(given: str, skipped: Mapping[tuple[str, str], int]) -> str:
    if not skipped:
        return f"no log file in {given}: it is empty."
    kinds_found = Counter[str]()
    for (kind, _), count in skipped.items():
        kinds_found[kind] += count
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds_found.items()))
    return f"no log file in {given}: it holds only {listed}."
