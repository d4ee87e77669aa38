"""A run directory, a file or standard input -> the log files in it, and what lies beside them.

Nothing outside the run directory is ever opened: links that lead out of it are not followed, and
neither FIFOs nor devices are touched.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from hcp_logscan.model.errors import NothingUnderstoodError, SourceError, UsageError
from hcp_logscan.model.report import Skipped, Unreadable
from hcp_logscan.sources import dump_names, kinds, layouts, reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FileKind = Literal["log", "config", "dump"]
"""A log, a saved configuration (YAML), or a flight-recorder dump: each is read in its own way."""

_PATH_PARTS_FOR_HINTS: Final = 3
_GENERIC_NAMES: Final = frozenset({"run", "logs", "output", "outputs", "log", ".", ""})


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file and what its path says."""

    path: str
    "Where to open it; `-` for standard input."

    name: str
    "Relative to the run directory, with `/`."

    size: int
    "Bytes on disk; 0 where that is not known."

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


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files belong to the run, as the user says."""

    include: tuple[str, ...] = ()
    "Globs over the relative path or the file name; empty takes all."

    exclude: tuple[str, ...] = ()
    rank_regex: re.Pattern[str] | None = None

    @classmethod
    def of(
        cls, include: Sequence[str] = (), exclude: Sequence[str] = (), rank_regex: str | None = None
    ) -> Selection:
        """A selection from options. Raises UsageError for what is no regular expression."""
        try:
            pattern = None if rank_regex is None else re.compile(rank_regex)
        except re.error as error:
            said = f"--rank-regex {rank_regex!r} is no regular expression: {error}."
            raise UsageError(said) from error
        return cls(tuple(include), tuple(exclude), pattern)

    def wants(self, name: str) -> bool:
        """Whether a relative path passes --include and --exclude."""

        def hit(globs: Sequence[str]) -> bool:
            base = name.rpartition("/")[2]
            return any(fnmatch.fnmatch(name, g) or fnmatch.fnmatch(base, g) for g in globs)

        return (not self.include or hit(self.include)) and not hit(self.exclude)


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


def _walk(root: Path) -> Iterator[tuple[Path, os.stat_result | OSError]]:
    """Regular files below `root` in name order, each real file once; folders that say no, too."""
    inside = os.path.realpath(root)
    seen_folders: set[tuple[int, int]] = set()
    seen_files: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            status = folder.stat()
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield folder, error
            continue
        if (status.st_dev, status.st_ino) in seen_folders:
            continue
        seen_folders.add((status.st_dev, status.st_ino))
        folders = []
        for entry in entries:
            path = Path(entry.path)
            try:
                if entry.is_symlink():
                    real = os.path.realpath(path)
                    if os.path.commonpath([inside, real]) != inside:
                        continue
                status = entry.stat()
            except OSError as error:
                yield path, error
                continue
            identity = (status.st_dev, status.st_ino)
            if stat.S_ISDIR(status.st_mode):
                folders.append(path)
            elif stat.S_ISREG(status.st_mode) and identity not in seen_files:
                seen_files.add(identity)
                yield path, status
        waiting.extend(reversed(folders))


def _head(path: str) -> bytes:
    """The first SNIFF_BYTES text bytes of a file; what there is of a file that is damaged later."""
    buffer = bytearray(kinds.SNIFF_BYTES)
    view, filled = memoryview(buffer), 0
    stream = reader.open_bytes(path)
    try:
        while filled < len(buffer) and (count := stream.readinto(view[filled:])):
            filled += count
    except reader.CutOffError:
        pass
    except reader.BrokenStreamError:
        if not filled:
            raise
    finally:
        stream.close()
    return bytes(view[:filled])


def _classify(path: Path, name: str, size: int) -> tuple[str | None, bool]:
    """Why a file is no log (None if it may be one), and whether it is a flight-recorder dump.

    Raises what reading its head raises.
    """
    kind = kinds.by_name(name)
    dump = dump_names.is_dump_name(name)
    if not size or (kind and not dump):
        return kind, False
    head = _head(str(path))
    if dump and kinds.dump_content(head):
        return kind, True
    return kind or kinds.by_content(head), False


def _single(path: Path, selection: Selection) -> Discovered:
    """One file the user pointed at: it is read whatever its name is, but not if it is no text."""
    size = path.stat().st_size
    try:
        kind = kinds.by_content(_head(str(path))) if size else None
    except reader.READ_ERRORS as error:
        raise SourceError(f"cannot read {path}: {error}. Check its permissions.") from error
    if kind:
        raise NothingUnderstoodError(f"{path} is no log: it looks like {kind}.")
    hint = layouts.hints(path.name, selection.rank_regex, _above(path.parent))
    log = LogFile(str(path), _printable(path.name), size, layouts.settle_tasks([hint])[0])
    stem = path.name.split(".")[0]
    return Discovered(stem if stem not in _GENERIC_NAMES else run_name(path.parent), (log,))


def _above(root: Path) -> list[str]:
    return [part for part in root.parts if part != "/"][-_PATH_PARTS_FOR_HINTS:]


def discover(run_dir: str | os.PathLike[str], selection: Selection = Selection()) -> Discovered:
    """Find the log files of one run.

    Raises SourceError if the path does not exist or cannot be read, NothingUnderstoodError if
    nothing in it can be a log.
    """
    if os.fspath(run_dir) == reader.STDIN:
        return Discovered("stdin", (LogFile(reader.STDIN, "-", 0, layouts.PathHints()),))
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

    names: list[tuple[Path, str, int, FileKind]] = []
    unreadable: list[Unreadable] = []
    skipped: Counter[tuple[str, str]] = Counter()
    for path, status in _walk(root):
        name = _printable(path.relative_to(root).as_posix())
        folder = name.rpartition("/")[0] or "."
        if isinstance(status, OSError):
            unreadable.append(Unreadable(name, status.strerror or str(status)))
            continue
        outcast = kinds.SKIPPED_FOLDERS.intersection(name.split("/")[:-1])
        if outcast:
            skipped["tool folder", name[: name.index(min(outcast)) + len(min(outcast))]] += 1
        elif not selection.wants(name):
            skipped["excluded by option", folder] += 1
        elif name.lower().endswith(kinds.SAVED_CONFIG_SUFFIXES):
            names.append((path, name, status.st_size, "config"))
        else:
            try:
                kind, is_dump = _classify(path, name, status.st_size)
            except reader.READ_ERRORS as error:
                unreadable.append(Unreadable(name, _why(error)))
                continue
            if is_dump:
                names.append((path, name, status.st_size, "dump"))
            elif kind:
                skipped[kind, folder] += 1
            else:
                names.append((path, name, status.st_size, "log"))
    if not any(kind != "config" for *_, kind in names) and not unreadable:
        raise NothingUnderstoodError(_nothing(given, skipped))
    every = layouts.settle_tasks(
        [layouts.hints(name, selection.rank_regex, _above(root)) for _, name, _, _ in names]
    )
    return Discovered(
        run_name(root),
        tuple(
            LogFile(str(path), name, size, _hints_of(name, hint, kind), kind)
            for (path, name, size, kind), hint in zip(names, every, strict=True)
        ),
        tuple(unreadable),
        tuple(Skipped(kind, n, folder) for (kind, folder), n in sorted(skipped.items())),
    )


def _printable(name: str) -> str:
    r"""The name with bytes that are no UTF-8 spelt out: tables and reports hold text only.

    >>> _printable("rank_0\udcff.log")
    'rank_0\\xff.log'
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _hints_of(name: str, hint: layouts.PathHints, kind: FileKind) -> layouts.PathHints:
    """A dump's name ends with the global rank, whatever digits its host name has."""
    return layouts.PathHints(rank=dump_names.rank_of_name(name)) if kind == "dump" else hint


def _why(error: Exception) -> str:
    return (
        (error.strerror if isinstance(error, OSError) else None)
        or str(error)
        or type(error).__name__
    )


def _nothing(path: Path, skipped: Counter[tuple[str, str]]) -> str:
    if not skipped:
        return f"no log file in {path}: the directory is empty."
    kinds_found = Counter[str]()
    for (kind, _), count in skipped.items():
        kinds_found[kind] += count
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds_found.items()))
    return f"no log file in {path}: it holds only {listed}."
