"""Waiting survivor lines, as columns: prefixes are split off all of them at once.

A line is *odd* where columns do not do: other ranks' lines torn into it, carriage returns, a
collector's time before its prefix. Odd lines are few, and are sorted one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from hcp_logscan.model import events
from hcp_logscan.sources import prefixes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hcp_logscan.sources.scanner import Survivors

_NCCL: Final = r":[0-9]{1,10}:[0-9]{1,10} \[[0-9]{1,3}\] NCCL "
_TORN: Final = (
    r"[^ \t\f\v:](?:\[rank[0-9]{1,7}\]:|\[Rank [0-9]{1,7}\] \(after )"
    r"|\| ?(?:\[[0-9]{4}-[^\]]{10,24}\] )?iteration +[0-9]+/"
)
"""Where ranks that share a pipe write into each other's lines, and a little more."""

_NCCL_END: Final = "- Init COMPLETE"


@dataclass(slots=True)
class Waiting:
    """Survivor lines that wait to be sorted: columns in parts, a part per run of lines."""

    units: list[tuple[int, int, int]] = field(default_factory=list)
    "Per part its unit, its epoch, and how many lines it has."

    numbers: list[NDArray[np.int64]] = field(default_factory=list)
    offsets: list[NDArray[np.int64]] = field(default_factory=list)
    sets: list[NDArray[np.int64]] = field(default_factory=list)
    "Which needles a line holds, as the number of their set."

    texts: list[bytes] = field(default_factory=list)

    def add(self, unit: int, epoch: int, found: Survivors, first: int, last: int) -> list[bytes]:
        """Let survivors `first` to `last` - 1 of a unit wait; their bytes are still to be added."""
        self.units.append((unit, epoch, last - first))
        self.numbers.append(found.numbers[first:last])
        self.offsets.append(found.starts[first:last] + found.base)
        self.sets.append(found.sets[first:last])
        return found.lines(first, last)

    def frame(self) -> pl.DataFrame:
        """The lines without colours: `COMMON` as far as it is known, `set`, and `row`."""
        text = _decoded(self.texts)
        if text.str.contains("\x1b", literal=True).any():
            text = text.str.replace_all(prefixes.ANSI, "")
        if text.str.ends_with("\r").any():
            text = text.str.strip_chars_end("\r")
        units, epochs, lengths = np.array(self.units, np.int64).T
        return pl.DataFrame(
            {
                "file": np.repeat(units, lengths),
                "line": np.concatenate(self.numbers),
                "offset": np.concatenate(self.offsets),
                "epoch": np.repeat(epochs, lengths),
                "set": np.concatenate(self.sets),
                "text": text,
            }
        ).with_row_index("row")


def _decoded(lines: list[bytes]) -> pl.Series:
    """Lines as text; bytes that are none are replaced."""
    try:
        return pl.Series("text", lines, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError:  # not UTF-8: ten times slower, and rare
        return pl.Series("text", [line.decode("utf-8", "replace") for line in lines])


def odd() -> pl.Expr:
    """Whether a line has to be sorted by itself."""
    text = pl.col("text")
    odd_one = text.str.contains(f"{_TORN}|{prefixes.ODD_HEAD}|{_NCCL}.*{_NCCL}")
    torn_end = text.str.ends_with(_NCCL_END) & ~text.str.contains(_NCCL)
    return odd_one | text.str.contains("\r", literal=True) | torn_end


def split(frame: pl.DataFrame, max_text: int) -> pl.DataFrame:
    """The lines with what their prefixes say in the columns of `COMMON`, and without them."""
    headed = frame.with_columns(pl.col("text").str.extract(f"^({prefixes.HEAD})").alias("_head"))
    heads = headed["_head"].unique().to_list()
    said = [prefixes.split(head.encode())[0] for head in heads]
    known = pl.DataFrame(
        {
            "_head": heads,
            "stream": [prefix.key for prefix in said],
            "line_rank": [prefix.rank for prefix in said],
            "label": [prefix.label for prefix in said],
            "local_rank": [prefix.local_rank for prefix in said],
            "replica": [prefix.replica for prefix in said],
        },
        schema={"_head": pl.String(), **{name: events.COMMON[name] for name in _SAID}},
    )
    return headed.join(known, on="_head", how="left", maintain_order="left").select(
        *(pl.col(name) for name in events.COMMON if name != "text"),
        pl.col("text").str.strip_prefix(pl.col("_head")).str.slice(0, max_text).alias("text"),
        "set",
    )


_SAID: Final = ("stream", "line_rank", "label", "local_rank", "replica")
