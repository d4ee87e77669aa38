"""Which YAML files stand at the paths a user gives, and of which kind: rules or line formats."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, TypeVar

from hcp_logscan.rules.problem import Problem, RuleFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

Thing = TypeVar("Thing")
"""A rule, or a line format."""

_FIRST_KEY: Final = re.compile(
    rb"\A(?:\xef\xbb\xbf)?(?:[ \t]*(?:#.*)?\r?\n|---[ \t]*\r?\n)*"
    rb"\{?[ \t]*[\"']?format[\"']?[ \t]*:"
)
_HEAD_BYTES: Final = 16 << 10


def is_format(path: Path) -> bool:
    """Whether the file's first key says that it is a line format."""
    try:
        if not path.is_file():  # a pipe would wait for its writer
            return False
        with path.open("rb") as stream:
            return _FIRST_KEY.match(stream.read(_HEAD_BYTES)) is not None
    except OSError:
        return False


def is_rule(path: Path) -> bool:
    """Whether the file is one, as far as its first key says: what is no format should be one."""
    return not is_format(path)


def yaml_files(
    paths: Sequence[Path],
    problems: list[Problem],
    noun: str,
    wanted: Callable[[Path], bool] = lambda _: True,
) -> Iterator[Path]:
    """The YAML files at these paths, each once, in order of name within a directory.

    A directory may hold rules and formats side by side: of its files only the `wanted` are taken.
    A file that is named is taken as it is. What cannot be used is appended to `problems`.
    """
    seen: set[str] = set()
    for path in paths:
        try:
            files = _files_at(path, wanted)
        except OSError as error:
            what = f"cannot be read: {error.strerror}"
            problems.append(Problem(str(path), what, "check the path and its permissions"))
            continue
        if not files:
            what = f"no {noun} in this directory"
            problems.append(Problem(str(path), what, f"{noun}s are *.yaml files right in it"))
        for file in files:
            if (real := os.path.realpath(file)) not in seen:
                seen.add(real)
                yield file


def read_all(
    found: Iterable[Path],
    problems: list[Problem],
    read: Callable[[Path], Thing],
    name_of: Callable[[Thing], str],
    twice: str,
) -> tuple[Thing, ...]:
    """What stands in these files, sorted by name; two of one name are a problem: `twice` says it.

    Raises one `RuleFileError` that lists what is wrong in all of them, file and line first.
    """
    things: dict[str, tuple[Thing, Path]] = {}
    for path in found:
        try:
            thing = read(path)
        except RuleFileError as error:
            problems += error.problems
            continue
        name = name_of(thing)
        if name in things:
            what = twice.format(name=name, other=things[name][1])
            problems.append(Problem(str(path), what, "choose another"))
        things.setdefault(name, (thing, path))
    if problems:
        raise RuleFileError(problems)
    return tuple(things[name][0] for name in sorted(things))


def _files_at(path: Path, wanted: Callable[[Path], bool]) -> list[Path]:
    if path.is_dir():
        names = (one for one in path.iterdir() if one.suffix in {".yaml", ".yml"})
        return sorted(one for one in names if wanted(one))
    if not path.exists():
        raise FileNotFoundError(0, "no such file or directory")
    return [path]
