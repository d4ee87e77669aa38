"""Reports on disk: written whole or not at all, and never over somebody else's file."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Container

    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.wishes import Wishes

OWN_MARK: Final = b"hcp-logscan"
_MARK_WITHIN: Final = 4_096
_UNSAFE: Final = re.compile(r"[^\w.+-]+")

_LONGEST_STEM: Final = 200
"""Bytes; file systems take 255 for a name, and the temporary file beside it needs some."""


def default_path(folder: Path, name: str, taken: Container[str] = ()) -> Path:
    """Where the default report goes: an own earlier report is replaced, any other file never.

    `taken` are paths of this call in `casefold`, which are nobody's any more.

    >>> default_path(Path("/nonexistent"), "job 7").name
    'job_7.html'
    """
    stem = _UNSAFE.sub("_", name).strip("._") or "run"
    stem = stem.encode()[:_LONGEST_STEM].decode(errors="ignore")
    path = folder / f"{stem}.html"
    number = 2
    while str(path).casefold() in taken or (path.exists() and not _is_own(path)):
        path = folder / f"{stem}-{number}.html"
        number += 1
    return path


def _is_own(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return path.is_file() and OWN_MARK in file.read(_MARK_WITHIN)
    except OSError:
        return False


def write_report(data: ReportData, path: Path, wishes: Wishes) -> None:
    """Render and write one report; the suffix picks the format. Raises OutputError."""
    from hcp_logscan.reporting.base import RENDERERS

    write_whole(path, RENDERERS[path.suffix](data, wishes))


def write_whole(path: Path, text: str) -> None:
    """Write a file through a temporary one beside it. Raises OutputError."""
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror}. Choose another place with -o."
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
