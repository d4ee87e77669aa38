"""LineParser and BlockParser: a parser is data (needle, pattern, columns) and knows one line shape.

Memory and judgement live later: a parser never remembers another line and never concludes anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import polars as pl

from hcp_logscan.model import events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_WHOLE: Final = "_whole"


class ParserError(ValueError):
    """A parser that does not parse its own sample: a mistake in this package."""


@dataclass(frozen=True, slots=True)
class LineParser:
    """One line shape that fills one row of an event table."""

    name: str
    table: str
    needles: tuple[str, ...]
    "Literal texts; a line with one of them is handed to this parser. Rare and specific."

    pattern: str
    "Rust regex searched in the line; its named groups are columns. ASCII classes only."

    sample: str
    "A faithful line; it is parsed when the registry loads."

    fields: Mapping[str, str] = field(default_factory=dict)
    "Column -> regex with one group, searched anywhere in the line: fields that come and go."

    constants: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    "Last touches on the extracted strings (units, alternatives) before they are cast."

    drift: bool = True
    "Whether a line with the needle that misses the pattern is drift, or merely something else."

    quick: str | None = None
    """Rust regex of the whole of a common line, with a group per column, for a table that fills up:
    one search in place of one per field. It gives what `pattern`, `fields` and `finish` give."""

    quick_finish: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    "Last touches on the columns of `quick`."

    def parse(self, lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rows of the event table, and the lines that are drift.

        `lines` has the common columns of every event table. Values that do not fit their column's
        type become null.
        """
        if self.quick is None:
            return self._parse(lines)
        common, rest = _searched(lines, f"^(?P<{_WHOLE}>{self.quick})$")
        if not common.height:
            return self._parse(lines)
        if self.quick_finish:
            common = self.quick_finish(common)
        rows, drift = self._parse(rest)
        return pl.concat([conform(self.table, common), rows]), drift

    def _parse(self, lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """`parse`, field by field."""
        rows, drift = _searched(lines, f"(?P<{_WHOLE}>{self.pattern})")
        rows = rows.with_columns(
            *(pl.col("text").str.extract(regex).alias(name) for name, regex in self.fields.items()),
            *(pl.lit(value).alias(name) for name, value in self.constants.items()),
        )
        if self.finish:
            rows = self.finish(rows)
        return conform(self.table, rows), drift if self.drift else drift.clear()


def _searched(lines: pl.DataFrame, regex: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The lines that match, with a column per group, and the others as they are."""
    matched = lines.with_columns(pl.col("text").str.extract_groups(regex).alias("_groups"))
    matched = matched.unnest("_groups")
    others = matched.filter(pl.col(_WHOLE).is_null()).select(lines.columns)
    return matched.filter(pl.col(_WHOLE).is_not_null()), others


def conform(table: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in the columns and types of their event table; what is missing is null."""
    wanted = events.schema(table)
    if "count" in wanted and "count" not in rows.columns:
        rows = rows.with_columns(pl.lit(1).alias("count"), pl.col("line").alias("last"))
    keep_text = events.EVENTS[table].keep_text
    return rows.select(
        (
            pl.col(name).cast(dtype, strict=False)
            if name in rows.columns and (name != "text" or keep_text)
            else pl.lit(None, dtype=dtype)
        ).alias(name)
        for name, dtype in wanted.items()
    )


@dataclass(frozen=True, slots=True)
class BlockLine:
    """One line of an open block, without its prefixes."""

    number: int
    offset: int
    text: str


Row = tuple[str, int, int, str, "dict[str, Any]"]
"""(event table, line number, offset, text, own columns) of one row that a block gives."""


class Block(Protocol):
    """A multi-line record that is being read."""

    def feed(self, line: BlockLine) -> bool:
        """Take the next line of the same stream; True when the block is done."""

    def rows(self) -> Iterator[Row]:
        """What the block says, also when it ended early."""


@dataclass(frozen=True, slots=True)
class BlockParser:
    """A multi-line record: where it begins, and what reads it."""

    name: str
    needles: tuple[str, ...]
    tables: tuple[str, ...]
    opens: Callable[[BlockLine], Block | None]
    "The block that begins with this line; None if the needle is here by chance."

    sample: str
    "A faithful record; it is parsed when the registry loads."

    max_gap: int = 20_000
    """Lines of other streams that may pass between two lines of the record. Ranks that share a pipe
    interleave, but a record that its rank never finishes must not keep the whole file open."""

    whole_file: bool = False
    "Reads saved configuration files, not logs."


CP_KEYS: Final = (
    "hierarchical_context_parallel_sizes",
    "context_parallel_size",
    "cp_comm_type",
)
"""Configured names that decide about context parallelism."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One configured value, and the line that states it."""

    line: BlockLine
    section: str
    key: str
    value: str
    "As printed; empty where the line is there but cannot be read."


def spoiled(line: BlockLine, section: str) -> Setting | None:
    """A line of an open block that names a CP key but is not one of its lines.

    Ranks share pipes: such a line holds the value somewhere; the key is neither known nor absent.
    """
    key = next((key for key in CP_KEYS if key in line.text), None)
    return Setting(line, section, key, "") if key else None


def config_rows(
    source: str,
    head: BlockLine,
    settings: Sequence[Setting],
    *,
    last_line: int,
    complete: bool | None,
    ended: bool = False,
) -> Iterator[Row]:
    """The rows of one configuration block: its values, then the block itself.

    `complete` is None for what never states everything. Of a block without its end mark the last
    value is dropped, as the line may have been cut inside it, unless it `ended` all the same.
    """
    kept = settings if complete or ended else settings[:-1]
    for setting in kept:
        line = setting.line
        own = {
            "source": source,
            "block": head.number,
            "section": setting.section,
            "key": setting.key,
            "value": setting.value,
        }
        yield ("config", line.number, line.offset, line.text, own)
    block = {"source": source, "last_line": last_line, "complete": complete, "entries": len(kept)}
    yield ("blocks", head.number, head.offset, head.text, block)


Parser = LineParser | BlockParser


def verify(parser: Parser) -> None:
    """Run a parser on its own sample; ParserError if it does not parse."""
    lines = parser.sample.splitlines()
    if isinstance(parser, LineParser):
        frame = conform("drift", pl.DataFrame({"text": lines, "line": range(1, len(lines) + 1)}))
        rows, drift = parser.parse(frame.drop("parser", "count", "last"))
        if not rows.height or drift.height:
            raise ParserError(f"parser {parser.name} misses its own sample")
        needed = re.compile("|".join(re.escape(needle) for needle in parser.needles))
        if not all(needed.search(line) for line in lines):
            raise ParserError(f"parser {parser.name}: its sample lacks its needle")
        return
    block = parser.opens(BlockLine(1, 0, lines[0]))
    if block is None:
        raise ParserError(f"parser {parser.name} does not open on its own sample")
    for number, line in enumerate(lines[1:], 2):
        if block.feed(BlockLine(number, 0, line)):
            break
    if not any(True for _ in block.rows()):
        raise ParserError(f"parser {parser.name} reads nothing from its own sample")
