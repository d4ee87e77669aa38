"""Which of the files found are logs, and why the others are none."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from hcp_logscan.model.errors import UsageError
from hcp_logscan.model.report import Skipped, Unreadable
from hcp_logscan.sources import dump_names, error_names, kinds, packed, settings, tar
from hcp_logscan.sources.reader import ZIP_MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hcp_logscan.model.line_format import LineFormat
    from hcp_logscan.sources.place import Place

FileKind = Literal["log", "config", "dump", "error"]
"""A log, a saved configuration (YAML), a flight-recorder dump, or an error file of torchelastic;
each is read in its own way."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files belong to the run, as the user says."""

    include: tuple[str, ...] = ()
    "Globs over the relative path or the file name; empty takes all."

    exclude: tuple[str, ...] = ()
    rank_regex: re.Pattern[str] | None = None
    formats: tuple[LineFormat, ...] = ()
    "Line formats of the user's own, to read the files by."

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

    def wants(self, name: str, *, archive: bool = False) -> bool:
        """Whether a relative path passes --include and --exclude.

        An `archive` has to pass --exclude alone: its members are what --include speaks of.
        """

        def hit(globs: Sequence[str]) -> bool:
            base = name.rpartition("/")[2]
            return any(fnmatch.fnmatch(name, g) or fnmatch.fnmatch(base, g) for g in globs)

        return (archive or not self.include or hit(self.include)) and not hit(self.exclude)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that is read."""

    place: Place
    name: str
    "Relative to the run directory, with `/`."

    said: str
    "The path that says something about rank, node and job."

    size: int
    kind: FileKind
    leads: tuple[str, ...] = ()
    "What stands before every line of a log, as `sources.leads` names it."


@dataclass(slots=True)
class Sorter:
    """Sorts files, and counts those that are not read."""

    selection: Selection
    unreadable: list[Unreadable] = field(default_factory=list)
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    settings: dict[str, bytes] = field(default_factory=dict)
    "Name of each settings file -> its bytes, more of them than it may have if it has more."

    def skip(self, kind: str, name: str) -> None:
        """Count a file that is no log."""
        self.skipped[kind, name.rpartition("/")[0] or "."] += 1

    def fail(self, name: str, error: str | Exception) -> None:
        """Note a file that cannot be read."""
        said = error if isinstance(error, str) else why(error)
        self.unreadable.append(Unreadable(name, said))

    def sort(
        self, name: str, size: int, head: Callable[[], bytes]
    ) -> FileKind | Literal["archive"] | None:
        """What a file is; None where it is not read, which is counted.

        `head` reads its first SNIFF_BYTES bytes of text, if its name does not say enough.
        """
        if name.rpartition("/")[2] == settings.FILE_NAME:
            self._keep_settings(name, head)
            return None
        archive = kinds.is_archive_name(name)
        outcast = kinds.SKIPPED_FOLDERS.intersection(name.split("/")[:-1])
        if outcast:
            folder = name[: name.index(min(outcast)) + len(min(outcast))]
            self.skipped["tool folder", folder] += 1
            return None
        if not self.selection.wants(name, archive=archive):
            self.skip("excluded by option", name)
            return None
        if name.lower().endswith(kinds.SAVED_CONFIG_SUFFIXES):
            return self._yaml(name, size, head)
        kind, dump = kinds.by_name(name), dump_names.is_dump_name(name)
        error_name = error_names.is_error_name(name)
        if size and (not kind or dump or archive or error_name):
            try:
                start = head()
            except packed.READ_ERRORS as error:
                self.fail(name, error)
                return None
            if is_archive(start):
                return "archive"
            if archive:
                self.fail(name, "neither a tar nor a zip, whatever its name says")
                return None
            if dump and kinds.dump_content(start):
                return "dump"
            if error_name and error_names.is_error_file(name, start):
                return "error"
            kind = kind or kinds.by_both(packed.unpacked_name(name), start)
        elif error_name and error_names.is_error_file(name, b""):
            return "error"
        if kind:
            self.skip(kind, name)
            return None
        return "log"

    def _yaml(self, name: str, size: int, head: Callable[[], bytes]) -> FileKind | None:
        """A saved configuration, or what Kubernetes says of pods: that is read as a log."""
        try:
            return "log" if size and kinds.kubernetes_status(head()) else "config"
        except packed.READ_ERRORS as error:
            self.fail(name, error)
            return None

    def _keep_settings(self, name: str, head: Callable[[], bytes]) -> None:
        try:
            self.settings[name] = head()
        except packed.READ_ERRORS as error:
            self.fail(name, error)

    def all_skipped(self) -> tuple[Skipped, ...]:
        """What was skipped, by kind and folder."""
        return tuple(Skipped(kind, n, folder) for (kind, folder), n in sorted(self.skipped.items()))


def is_archive(head: bytes) -> bool:
    """Whether a file begins as a tar or a zip does."""
    return head.startswith(ZIP_MAGIC) or tar.is_header(head[: tar.BLOCK])


def why(error: Exception) -> str:
    """What an error says, in words."""
    if isinstance(error, packed.CutOffError):
        return "cut off before its first byte of text"
    return (
        (error.strerror if isinstance(error, OSError) else None)
        or str(error)
        or type(error).__name__
    )


def printable(name: str) -> str:
    r"""The name with bytes that are no UTF-8 spelt out: tables and reports hold text only.

    >>> printable("rank_0\udcff.log")
    'rank_0\\xff.log'
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")
