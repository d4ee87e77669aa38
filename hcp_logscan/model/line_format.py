"""LineFormat: a line shape that a user describes; its columns, its units, and what a line gives.

Imports nothing heavy: the command line checks formats before it starts its worker processes, and
sends them along with the work.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

import regex

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["whole", "number", "clock"]
Value = int | float | str
"""What a line gives for one column."""

LINE_TIMEOUT_S: Final = 0.05
"""A pattern may search one line for so long; a usual one needs some microseconds."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a named group of a pattern can be called."""

    meaning: str
    kind: Kind = "number"
    units: tuple[str, ...] = ()
    "Units that it may be printed in, its own first."

    of: str | None = None
    "The column that it fills, where its name is that of another unit."

    in_unit: str = ""
    "The unit of that column it is printed in."


_MS: Final = ("ms", "us", "s", "min")
_S: Final = ("s", "ms", "min", "h")

COLUMNS: Final[Mapping[str, Mapping[str, Column]]] = {
    "iterations": {
        "iteration": Column("number of the step or log interval; needed", "whole"),
        "train_iters": Column("the planned last iteration", "whole"),
        "time": Column("date and time, year first", "clock", ("date", "epoch")),
        "consumed_samples": Column("samples since the very beginning", "whole"),
        "step_ms": Column("time of one iteration", units=_MS),
        "step_s": Column("the same, printed in seconds", of="step_ms", in_unit="s"),
        "elapsed_s": Column(
            "time since training began, where a line prints that; `step_ms` is then the mean since",
            units=_S,
        ),
        "tflops_per_gpu": Column(
            "model FLOP/s of one GPU", units=("TFLOP/s", "GFLOP/s", "PFLOP/s")
        ),
        "tokens_per_s_per_gpu": Column("tokens of one GPU in a second"),
        "mfu": Column("model FLOP/s as a share of the peak", units=("share", "percent")),
        "learning_rate": Column("learning rate"),
        "global_batch_size": Column("sequences of one iteration, over all ranks", "whole"),
        "lm_loss": Column("loss of the language model; NaN and Inf count as printed"),
        "loss_scale": Column("factor of fp16 loss scaling"),
        "grad_norm": Column("norm of the gradient"),
        "skipped_iterations": Column("iterations of the interval that were skipped", "whole"),
        "nan_iterations": Column("iterations of the interval that were NaN", "whole"),
    },
    "validations": {
        "iteration": Column("number of the iteration before it", "whole"),
        "lm_loss": Column("loss on the validation set; needed"),
    },
    "checkpoints": {"iteration": Column("number of the iteration that is kept; needed", "whole")},
    "marks": {"time": Column("date and time, year first", "clock", ("date", "epoch"))},
}
"""Table -> the groups that a pattern may have."""

NEEDED: Final[Mapping[str, str | None]] = {
    "iterations": "iteration",
    "validations": "lm_loss",
    "checkpoints": "iteration",
    "marks": None,
}
"""Table -> the group without whose value a line is none of its rows."""

KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "checkpoints": {"saved": "one was written", "loaded": "the run resumed from one"},
    "marks": {
        "training": "training begins",
        "training_done": "training ended as planned",
        "planned_exit": "the trainer stops by itself, before the last iteration",
        "signal_exit": "the trainer stops because of a signal",
    },
}
"""Table -> what its lines can say, where that is not in their columns."""

NOTATIONS: Final[Mapping[str, str]] = {
    "commas": "`1,234.5`: commas stand between thousands",
    "points": "`1.234,5`: points stand between thousands, and a comma before the fraction",
    "suffix": "`22.8K`: K, M, G or B, or T behind the number multiply it by 1,000 and so on",
}
"""How a number may be written, next to its unit."""

FACTORS: Final[Mapping[str, str]] = {
    "us": "0.001",
    "ms": "1",
    "s": "1000",
    "min": "60000",
    "h": "3600000",
    "GFLOP/s": "0.001",
    "TFLOP/s": "1",
    "PFLOP/s": "1000",
    "share": "1",
    "percent": "0.01",
}
"""Unit -> how many of the smallest or usual one of its kind it is."""

RESERVED: Final = (
    "gpt-neox",
    "megatron",
    "megatron-bridge",
    "megatron-deepspeed",
    "megatron-lm",
    "primus",
    "slime",
)
"""Frameworks of which more is known than what a line says."""

_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?\d{1,4})?"
)
_NOT_FINITE: Final = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_SUFFIX: Final[Mapping[str, str]] = {"K": "1E3", "M": "1E6", "G": "1E9", "B": "1E9", "T": "1E12"}
_DATE: Final = re.compile(
    r"(\d{4})([-/.]?)(\d{2})\2(\d{2})[T _]+(\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9}))?", re.ASCII
)
_MAX_EPOCH_S: Final = 253_402_300_799  # the year 9999


@dataclass(frozen=True, slots=True)
class LineFormat:
    """One line shape of a user's own, checked; picklable and hashable."""

    format: str
    "Its name: the framework of the lines that it reads."

    table: str
    needle: str
    "A literal text; a line with it is handed to this format."

    pattern: str
    "In the syntax of `regex`; its named groups are columns."

    units: tuple[tuple[str, tuple[str, ...]], ...] = ()
    "Group -> the unit and notations that it is printed in, where these are not the usual ones."

    kind: str | None = None
    drift: bool = True
    "Whether a line with the needle that misses the pattern is drift, or merely something else."

    @property
    def name(self) -> str:
        """Its name among all parsers: none of the others has a blank in it."""
        return f"format {self.format}"

    @property
    def needles(self) -> tuple[str, ...]:
        """Its one needle, as parsers have several."""
        return (self.needle,)

    def values(self, text: str) -> dict[str, Value] | None:
        """What a line gives, by column of the event table; None where it is none of these lines.

        `text` is the line without its prefixes. What cannot be read as a value is left out. Raises
        TimeoutError.
        """
        match = compiled(self.pattern).search(text, timeout=LINE_TIMEOUT_S)
        if match is None:
            return None
        units, found = dict(self.units), dict[str, Value]()
        for group, said in match.groupdict().items():
            column = COLUMNS[self.table][group]
            words = (*units.get(group, ()), *([column.in_unit] if column.in_unit else ()))
            target = column.of or group
            value = None if said is None else convert(said.strip(), self.table, target, words)
            if value is not None:
                found.setdefault(target, value)
        needed = NEEDED[self.table]
        return found if needed is None or needed in found else None


@lru_cache(maxsize=256)
def compiled(pattern: str) -> regex.Pattern[str]:
    """The pattern, ready to search. Raises what `regex` raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of notations that a later version may read otherwise
        return regex.compile(pattern)


def convert(said: str, table: str, name: str, words: tuple[str, ...] = ()) -> Value | None:
    """A printed value in the unit of its column; None where it is no such value.

    >>> convert("5.1204", "iterations", "step_ms", ("s",))
    5120.4
    >>> convert("1,234", "iterations", "consumed_samples", ("commas",))
    1234
    >>> convert("2026/03/01 09:14:20,5", "iterations", "time")
    '2026-03-01 09:14:20.5'
    """
    column = COLUMNS[table][name]
    if column.kind == "clock":
        return _clock(said, words)
    if "commas" in words:
        said = said.replace(",", "")
    elif "points" in words:
        said = said.replace(".", "").replace(",", ".")
    factor = Decimal(1)
    if "suffix" in words and said[-1:].upper() in _SUFFIX:
        factor, said = Decimal(_SUFFIX[said[-1].upper()]), said[:-1].rstrip()
    unit = next((word for word in words if word in column.units), None)
    if unit is not None:
        factor *= Decimal(FACTORS[unit]) / Decimal(FACTORS[column.units[0]])
    if column.kind == "number" and _NOT_FINITE.fullmatch(said):
        return float(said)
    if not _NUMBER.fullmatch(said):
        return None
    number = Decimal(said) * factor
    if column.kind == "number":
        return float(number)
    whole = number.to_integral_value() if abs(number) < 2**63 else None
    return int(whole) if whole is not None and whole == number else None


def _clock(said: str, words: tuple[str, ...]) -> str | None:
    """Date and time as `2026-03-01 09:14:20.5`; seconds since 1970 in UTC."""
    if "epoch" in words:
        if not _NUMBER.fullmatch(said) or not 0 <= Decimal(said) <= _MAX_EPOCH_S:
            return None
        whole, _, fraction = format(Decimal(said), "f").partition(".")
        base = datetime.fromtimestamp(int(whole), UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"{base}.{fraction[:9]}" if fraction else base
    match = _DATE.match(said)
    if match is None:
        return None
    year, _, month, day, clock, fraction = match.groups()
    return f"{year}-{month}-{day} {clock}" + (f".{fraction}" if fraction else "")
