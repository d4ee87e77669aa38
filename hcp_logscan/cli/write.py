"""Reports on disk: written whole or not at all, and never over somebody else's file."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from hcp_logscan.api import Report
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


def write_report(report: Report, path: Path, wishes: Wishes) -> None:
    """Render and write one report; the suffix picks the format. Raises OutputError."""
    from hcp_logscan.reporting.base import RENDERERS, WITH_TABLES

    data = report.data_with_tables() if path.suffix in WITH_TABLES else report.data
    rendered = RENDERERS[path.suffix](data, wishes)
    if isinstance(rendered, str):
        write_whole(path, rendered)
    else:
        write_folder(path, rendered)


def write_whole(path: Path, text: str) -> None:
    """Write a file through a temporary one beside it. Raises OutputError."""
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o666 & ~_mask())
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder through a temporary one beside it, over an own earlier one alone.

    Raises OutputError, also where anything stands there that is not an own folder or that somebody
    has added a file to.
    """
    if not _is_free(path):
        raise OutputError(
            f"cannot write {path}: what stands there is not a folder of hcp-logscan's tables and"
            " nothing else. Choose another place with -o."
        )
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        new, old = temporary / "new", temporary / "old"
        new.mkdir()
        for name, content in files.items():
            (new / name).write_bytes(content)
        if path.exists():
            path.rename(old)
        try:
            new.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _is_free(path: Path) -> bool:
    """Whether nothing is lost by writing a folder there."""
    from hcp_logscan.reporting.parquet import CONTENTS, TABLES_SCHEMA

    if not path.exists() and not path.is_symlink():
        return True
    try:
        if path.is_symlink() or not path.is_dir():
            return False
        contents = json.loads((path / CONTENTS).read_bytes())
        known = {CONTENTS, *(f"{table}.parquet" for table in contents["tables"])}
        found = {entry.name for entry in path.iterdir()}
        return contents["schema"] == TABLES_SCHEMA and found <= known
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _refused(path: Path, error: OSError) -> OutputError:
    return OutputError(f"cannot write {path}: {error.strerror}. Choose another place with -o.")
