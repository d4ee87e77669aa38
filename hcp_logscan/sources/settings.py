"""`.hcp-logscan.toml`: what the user says of a run where its logs do not.

It may lie in the run directory, packed or behind a URL as that may be, or in the working directory:

    gpu = "H200"          # a name of the GPU table
    precision = "bf16"    # bf16, fp16, fp8, fp4 or fp32
    peak_tflops = 989.4   # dense peak of one GPU at that precision
    world_size = 32
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.model.errors import UsageError
from hcp_logscan.model.report import MAX_WORLD

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME: Final = ".hcp-logscan.toml"
PRECISIONS: Final = ("bf16", "fp16", "fp8", "fp4", "fp32")
"""Of the matrix products, as facts and `--precision` name them."""

MAX_BYTES: Final = 1 << 15
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
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    return parse(data, str(path))


def parse(data: bytes, where: str) -> Settings:
    """The settings in the bytes of a file. Raises UsageError, which names it as `where`."""
    if len(data) > MAX_BYTES:
        raise UsageError(f"{where}: larger than {MAX_BYTES:,} bytes; it holds a few settings.")
    try:
        said = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) or "it nests too deeply"
        raise UsageError(f"{where}: cannot be read: {reason}") from error
    return checked(_settings(where, said), where)


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "world_size": (int,),
    "gpu": (str,),
    "precision": (str,),
    "peak_tflops": (int, float),
}


def _settings(where: str, data: dict[str, Any]) -> Settings:
    for name, value in data.items():
        if name not in _TYPES:
            known = ", ".join(_TYPES)
            raise UsageError(f"{where}: no setting is called {name!r}; known are {known}.")
        if isinstance(value, bool) or not isinstance(value, _TYPES[name]):
            kind = "a text" if _TYPES[name] == (str,) else "a number"
            raise UsageError(f"{where}: {name} is {kind}, not {value!r}.")
    return Settings(**data)
