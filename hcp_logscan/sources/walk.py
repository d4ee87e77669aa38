"""The files below a directory. Nothing outside it is ever opened."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def walk(root: Path) -> Iterator[tuple[Path, os.stat_result | OSError]]:
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
