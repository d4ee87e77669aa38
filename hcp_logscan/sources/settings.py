"""`.hcp-logscan.toml`: what the user says of a run where its logs do not.

It may lie in the run directory, packed or behind a URL as that may be, or in the working directory:

    gpu = "H200"          # a name of the GPU table
    precision = "bf16"    # bf16, fp16, fp8, fp4 or fp32
    peak_tflops = 989.4   # dense peak of one GPU at that precision
    world_size = 32

    [[suppress]]          # a finding that is accepted
    rule = "HCP304"
    reason = "the scheduler preempts this queue on purpose"

The working directory's `pyproject.toml` may hold the same in `[tool.hcp-logscan]`, where its own
`.hcp-logscan.toml` says nothing. Whether a rule exists is known further up.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.model.errors import UsageError
from hcp_logscan.model.finding import Suppression, one_reason
from hcp_logscan.model.report import MAX_WORLD

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME: Final = ".hcp-logscan.toml"
PRECISIONS: Final = ("bf16", "fp16", "fp8", "fp4", "fp32")
"""Of the matrix products, as facts and `--precision` name them."""

MAX_BYTES: Final = 1 << 15
PROJECT_FILE: Final = "pyproject.toml"
_SECTION: Final = "hcp-logscan"
_MAX_PROJECT: Final = 1 << 20
RUN_DIRECTORY: Final = "run directory"
WORKING_DIRECTORY: Final = "working directory"

_SHOWN: Final = 80
"""Characters of a value that a message quotes."""

_MAX_PEAK: Final = 1e7
"""TFLOP/s; a larger number is a slip of units."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user says of the hardware and the size of a run; None is not said."""

    world_size: int | None = None
    gpu: str | None = None
    precision: str | None = None
    peak_tflops: float | None = None
    suppress: tuple[Suppression, ...] = ()
    "What is accepted, in the order of the file."

    def hardware(self) -> dict[str, Any]:
        """All but the suppressions, by name."""
        return {name: getattr(self, name) for name in _TYPES}

    def under(self, stronger: Settings) -> Settings:
        """These, where `stronger` says nothing; suppressions stay those of each."""
        said = {name: value for name, value in stronger.hardware().items() if value is not None}
        return checked(replace(self, **said), "")


def checked(said: Settings, where: str) -> Settings:
    """The same. Raises UsageError for a value that cannot be."""
    prefix = f"{where}: " if where else ""
    size, peak = said.world_size, said.peak_tflops
    if size is not None and not 1 <= size <= MAX_WORLD:
        raise UsageError(f"{prefix}world_size is {size}; a job has 1 to {MAX_WORLD:,} ranks.")
    if said.precision is not None and said.precision not in PRECISIONS:
        raise UsageError(
            f"{prefix}precision is {said.precision!r}; known are {', '.join(PRECISIONS)}."
        )
    if peak is not None and not 0 < peak <= _MAX_PEAK:
        raise UsageError(f"{prefix}peak_tflops is {peak:g}; TFLOP/s of one GPU, such as 989.4.")
    return said


def load(folder: Path) -> Settings:
    """The settings files of the working directory; none is no settings. Raises UsageError.

    Links are not followed: a directory may come from anywhere.
    """
    own = _read(folder / FILE_NAME, MAX_BYTES)
    project = _read(folder / PROJECT_FILE, _MAX_PROJECT)
    said = _of_project(project, folder) if _SECTION.encode() in project else Settings()
    if not own:
        return said
    mine = parse(own, str(folder / FILE_NAME), WORKING_DIRECTORY)
    named = {one.rule for one in mine.suppress}
    others = (one for one in said.suppress if one.rule not in named)
    return replace(said.under(mine), suppress=(*mine.suppress, *others))


def _read(path: Path, limit: int) -> bytes:
    """The bytes of a small file, one more than `limit` if it has more; none if there is none."""
    try:
        if path.is_symlink() or not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def _of_project(data: bytes, folder: Path) -> Settings:
    where = str(folder / PROJECT_FILE)
    tool = _toml(data, where, _MAX_PROJECT).get("tool", {})
    said = tool.get(_SECTION, {}) if isinstance(tool, dict) else {}
    if not isinstance(said, dict):
        raise UsageError(f"{where}: [tool.{_SECTION}] is a table, not {_quoted(said)}.")
    source = f"{PROJECT_FILE} of the {WORKING_DIRECTORY}"
    return checked(_settings(where, said, source, f"tool.{_SECTION}."), where)


def parse(data: bytes, where: str, directory: str = RUN_DIRECTORY) -> Settings:
    """The settings in the bytes of a file. Raises UsageError, which names it as `where`."""
    said = _toml(data, where, MAX_BYTES)
    return checked(_settings(where, said, f"{FILE_NAME} of the {directory}"), where)


def _toml(data: bytes, where: str, limit: int) -> dict[str, Any]:
    if len(data) > limit:
        raise UsageError(f"{where}: larger than {limit:,} bytes; it holds a few settings.")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) or "it nests too deeply"
        raise UsageError(f"{where}: cannot be read: {reason}") from error


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "world_size": (int,),
    "gpu": (str,),
    "precision": (str,),
    "peak_tflops": (int, float),
}


def _settings(where: str, data: dict[str, Any], source: str, section: str = "") -> Settings:
    entries = data.pop("suppress", [])
    for name, value in data.items():
        if name not in _TYPES:
            known = ", ".join((*_TYPES, "suppress"))
            raise UsageError(f"{where}: no setting is called {_quoted(name)}; known are {known}.")
        if isinstance(value, bool) or not isinstance(value, _TYPES[name]):
            kind = "a text" if _TYPES[name] == (str,) else "a number"
            raise UsageError(f"{where}: {name} is {kind}, not {_quoted(value)}.")
    return Settings(**data, suppress=_suppressions(where, entries, source, section))


def _suppressions(
    where: str, entries: object, source: str, section: str
) -> tuple[Suppression, ...]:
    """The entries of `[[suppress]]`, each rule once."""
    shape = f'[[{section}suppress]] with rule = "HCP304" and reason = "why it is accepted"'
    if not isinstance(entries, list):
        raise UsageError(f"{where}: suppress is {_quoted(entries)}; write {shape}.")
    found: dict[str, Suppression] = {}
    for number, entry in enumerate(entries, start=1):
        lead = f"{where}: suppress entry {number}"
        if not isinstance(entry, dict):
            raise UsageError(f"{lead} is {_quoted(entry)}; write {shape}.")
        if unknown := [name for name in entry if name not in {"rule", "reason"}]:
            raise UsageError(f"{lead} has {_quoted(unknown[0])}; write {shape}.")
        for name in ("rule", "reason"):
            value = entry.get(name)
            if not isinstance(value, str) or not value.strip():
                said = "has no" if value is None else f"has {_quoted(value)} as"
                raise UsageError(f"{lead} {said} {name}, which is a text; write {shape}.")
        rule = entry["rule"].strip().upper()
        if rule in found:
            raise UsageError(f"{lead} names {_quoted(rule)} again; keep one entry of each rule.")
        found[rule] = Suppression(rule, one_reason(entry["reason"]), source)
    return tuple(found.values())


def _quoted(value: object) -> str:
    """A value as a message shows it: escaped, and not longer than it helps."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "\u2026"
