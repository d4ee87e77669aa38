"""`.hcp-logscan.toml`: what the user says of a run where its logs do not.

It may lie in the run directory or in the working directory:

    gpu = "H200"          # a name of the GPU table
    precision = "bf16"    # bf16, fp16, fp8, fp4 or fp32
    peak_tflops = 989.4   # dense peak of one GPU at that precision
    world_size = 32
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.model.errors import UsageError
from hcp_logscan.model.report import MAX_WORLD

if TYPE_CHECKING:
    from os import PathLike

FILE_NAME: Final = ".hcp-logscan.toml"
PRECISIONS: Final = ("bf16", "fp16", "fp8", "fp4", "fp32")
"""Of the matrix products, as facts and `--precision` name them."""

_MAX_BYTES: Final = 1 << 16
_MAX_PEAK: Final = 1e7
"""TFLOP/s; a larger number is a slip of units."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user says of the hardware and the size of a run; None is not said."""

    world_size: int | None = None
    gpu: str | None = None
    precision: str | None = None
    peak_tflops: float | None = None

    def under(self, stronger: Settings) -> Settings:
        """These, where `stronger` says nothing."""
        fields = ("world_size", "gpu", "precision", "peak_tflops")
        said = {name: value for name in fields if (value := getattr(stronger, name)) is not None}
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
    """The settings file of a directory; none is no settings. Raises UsageError.

    Links are not followed: a run directory may come from anywhere.
    """
    path = folder / FILE_NAME
    try:
        if path.is_symlink() or not path.is_file():
            return Settings()
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path}: larger than {_MAX_BYTES:,} bytes; it holds a few settings.")
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "it nests too deeply"
        raise UsageError(f"{path}: cannot be read: {reason}") from error
    return checked(_settings(path, data), str(path))


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "world_size": (int,),
    "gpu": (str,),
    "precision": (str,),
    "peak_tflops": (int, float),
}


def _settings(path: Path, data: dict[str, Any]) -> Settings:
    for name, value in data.items():
        if name not in _TYPES:
            known = ", ".join(_TYPES)
            raise UsageError(f"{path}: no setting is called {name!r}; known are {known}.")
        if isinstance(value, bool) or not isinstance(value, _TYPES[name]):
            kind = "a text" if _TYPES[name] == (str,) else "a number"
            raise UsageError(f"{path}: {name} is {kind}, not {value!r}.")
    return Settings(**data)


def of_run(run_dir: str | PathLike[str]) -> Settings:
    """The settings that lie in a run directory; none for a file or a stream."""
    path = Path(run_dir)
    return load(path) if path.is_dir() else Settings()
