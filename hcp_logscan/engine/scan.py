"""One task: (file, start, end) -> event tables. Picklable in and out, and free of any state.

A unit owns the lines, and the blocks, that begin in it, and reads past its end to finish them; so
any split of a file gives the same tables.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.model import events
from hcp_logscan.parsers.base import BlockLine, BlockParser, LineParser, conform
from hcp_logscan.parsers.flight_recorder import (
    MAX_DUMP_BYTES,
    DumpError,
    NoDumpError,
    parse_dump,
)
from hcp_logscan.parsers.registry import needles, owners, parsers
from hcp_logscan.sources import prefixes, reader
from hcp_logscan.sources.scanner import ScanStats, scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan.parsers.base import Block
    from hcp_logscan.sources.discover import FileKind
    from hcp_logscan.sources.prefixes import Prefix

FLUSH_LINES: Final = 20_000
"""Lines held as text before they become typed columns."""

MAX_ALIKE: Final = 16
"""Open blocks of one parser in one stream: each takes every line, so heads must not pile up."""

MAX_RAWS: Final = 16
"""Beginnings that a line is compared with; with more, splitting it is cheaper."""

MAX_BLOCK_LINES: Final = 8_000
"""Lines of its own stream that one block may take."""

CHECK_EVERY: Final = 256
"""Walked lines between two looks for blocks whose stream has fallen silent."""

FAILED_LINE: Final = "elastic-failed"
"""Parser of the line behind which a launcher may start its workers again."""

MAX_CONFIG_BYTES: Final = 4 << 20
MAX_TEXT: Final = 16_384
"""Characters of a line that parsers see. The longest record known (verl) stays below it."""


_NCCL: Final = re.compile(rb":\d{1,10}:\d{1,10} \[\d{1,3}\] NCCL ")
_SAME_EVERY_TIME: Final = re.compile(rb"(?:\[rank\d{1,7}\]: |\[[A-Za-z_-]+\d{1,6}\]:)+")
"""Prefixes that every line of their stream begins with, byte by byte: no time, no padding."""

_TORN: Final = re.compile(
    rb"(?<=[^\s:])(?=\[rank\d{1,7}\]:|\[Rank \d{1,7}\] \(after )"
    rb"|(?<=\|)(?= ?(?:\[\d{4}-[^\]]{10,24}\] )?iteration +\d+/)"
)
"""Where ranks that share a pipe write into each other's lines."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work."""

    file: int
    "Index into the list of files."

    path: str
    start: int = 0
    end: int | None = None
    "None reads to the end of the file."

    kind: FileKind = "log"
    keep_text: bool = False
    "The bytes cannot be read again: every row keeps its line."


@dataclass(slots=True)
class UnitResult:
    """What one unit gave. Line numbers count from the unit's own first line."""

    unit: Unit
    frames: dict[str, pl.DataFrame]
    bytes: int = 0
    lines: int = 0
    recognised: int = 0
    cut_off: bool = False
    error: str | None = None


@dataclass(slots=True)
class _Open:
    parser: BlockParser
    block: Block
    prefix: Prefix
    raw: bytes
    "The prefix as it stands in the line: what does not begin with it is another stream's."

    last: int
    "Number of the last line of its stream."

    taken: int = 0

    def silent(self, number: int) -> bool:
        """Whether its stream has been silent for longer than the block may wait."""
        return number - self.last > self.parser.max_gap


@dataclass(slots=True)
class _Batch:
    """Lines waiting for one line parser, column by column."""

    lines: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    prefixes: list[Prefix] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def _frame(file: int, batch: _Batch) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "file": [file] * len(batch.lines),
            "line": batch.lines,
            "offset": batch.offsets,
            "stream": [prefix.key for prefix in batch.prefixes],
            "line_rank": [prefix.rank for prefix in batch.prefixes],
            "label": [prefix.label for prefix in batch.prefixes],
            "local_rank": [prefix.local_rank for prefix in batch.prefixes],
            "replica": [prefix.replica for prefix in batch.prefixes],
            "epoch": batch.epochs,
            "text": batch.texts,
        },
        schema=dict(events.COMMON),
    )


class Collector:
    """The sink of a scan: collects lines for line parsers and feeds open blocks."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.hungry = False
        self.recognised = 0
        self._waiting = 0
        self._batches: dict[str, _Batch] = {}
        self._open: dict[str, list[_Open]] = {}
        self._begins: Counter[bytes] = Counter()
        self._raws: tuple[bytes, ...] = ()
        self._walked = 0
        self._epoch = 0
        self._rows: dict[str, list[dict[str, object]]] = {}
        self._parts: dict[str, list[pl.DataFrame]] = {}
        self._by_name = {parser.name: parser for parser in parsers()}
        self._owners = owners()

    def walk(self, number: int, offset: int, line: bytes) -> None:
        """Give a line to the open blocks of its stream."""
        self._walked += 1
        if self._walked % CHECK_EVERY == 0:
            self._close_silent(number)
        if self._raws and not line.startswith(self._raws):
            return
        cleaned = prefixes.clean(line)
        prefix, rest = prefixes.split(cleaned)
        if b"\r" in cleaned:
            prefix, rest = prefixes.split_after(prefix, cleaned.rpartition(b"\r")[2])
        mine = self._open.get(prefix.key)
        if not mine:
            return
        text = rest.decode("utf-8", "replace")[:MAX_TEXT]
        for entry in tuple(mine):
            if entry.silent(number):
                self._close(prefix.key, entry)
                continue
            entry.taken += 1
            entry.last = number
            if entry.block.feed(BlockLine(number, offset, text)) or entry.taken >= MAX_BLOCK_LINES:
                self._close(prefix.key, entry)

    def _close_silent(self, number: int) -> None:
        """Close blocks that wait in vain: a later line of their stream would come too late."""
        for key in tuple(self._open):
            for entry in tuple(self._open.get(key, ())):
                if entry.silent(number):
                    self._close(key, entry)

    def _note_open(self) -> None:
        """Remember what a line must begin with to be of interest; nothing if any line may be."""
        self.hungry = bool(self._open)
        few = b"" not in self._begins and len(self._begins) <= MAX_RAWS
        self._raws = tuple(self._begins) if few else ()

    def _close(self, key: str, entry: _Open) -> None:
        mine = self._open[key]
        mine.remove(entry)
        self._begins[entry.raw] -= 1
        if not self._begins[entry.raw]:
            del self._begins[entry.raw]
        if not mine:
            del self._open[key]
        self._note_open()
        self._collect(entry)

    def _collect(self, entry: _Open) -> None:
        common = {
            "file": self.unit.file,
            "stream": entry.prefix.key,
            "line_rank": entry.prefix.rank,
            "label": entry.prefix.label,
            "local_rank": entry.prefix.local_rank,
            "replica": entry.prefix.replica,
            "epoch": self._epoch,
        }
        for table, line, offset, text, own in entry.block.rows():
            place = {"line": line, "offset": offset, "text": text}
            self._rows.setdefault(table, []).append({**common, **place, **own})
            self._waiting += 1

    def survivor(self, number: int, offset: int, line: bytes, ids: set[int]) -> None:
        """Sort a line with needles in it to the parsers that asked for them."""
        cleaned = prefixes.clean(line)
        segments = self._segments(number, offset, cleaned)
        before = prefixes.split(cleaned)[0] if b"\r" in cleaned else prefixes.Prefix()
        wanted = {parser.name for hit in ids for parser in self._owners[hit]}
        for segment in segments:
            if not segment:
                continue
            prefix, rest = prefixes.split_after(before, segment)
            text = rest.decode("utf-8", "replace")[:MAX_TEXT]
            for name in wanted:
                parser = self._by_name[name]
                if len(segments) > 1 and not any(needle in text for needle in parser.needles):
                    continue
                if isinstance(parser, LineParser):
                    self._add(name, number, offset, prefix, text)
                elif block := parser.opens(BlockLine(number, offset, text)):
                    raw = segment[: len(segment) - len(rest)] if segment == line else b""
                    raw = raw if _SAME_EVERY_TIME.fullmatch(raw) else b""
                    self._begin(_Open(parser, block, prefix, raw, number))
        if self._waiting >= FLUSH_LINES:
            self.flush()

    def _segments(self, number: int, offset: int, line: bytes) -> list[bytes]:
        """A line cut at carriage returns, and where another rank's line begins in it."""
        records = len(_NCCL.findall(line))
        if records > 1 or (not records and line.endswith(b"- Init COMPLETE")):
            self._note_torn(number, offset, line)  # NCCL's parser finds whole records by itself
        torn = b"[rank" in line or b"[Rank" in line or line.count(b" iteration ") > 1
        if b"\r" not in line and not torn:
            return [line]
        segments = [part for piece in line.split(b"\r") for part in _TORN.split(piece) if part]
        if len(segments) > line.count(b"\r") + 1:
            self._note_torn(number, offset, line)
        return segments

    def _note_torn(self, number: int, offset: int, line: bytes) -> None:
        """Count a line that another rank's line begins in."""
        own = {
            "file": self.unit.file,
            "line": number,
            "offset": offset,
            "stream": "",
            "epoch": self._epoch,
            "text": line.decode("utf-8", "replace")[:MAX_TEXT],
            "kind": "rank",
            "count": 1,
            "last": number,
        }
        self._rows.setdefault("interleaved", []).append(own)
        self._waiting += 1

    def _add(self, name: str, number: int, offset: int, prefix: Prefix, text: str) -> None:
        self._epoch += name == FAILED_LINE
        batch = self._batches.setdefault(name, _Batch())
        batch.lines.append(number)
        batch.offsets.append(offset)
        batch.prefixes.append(prefix)
        batch.epochs.append(self._epoch)
        batch.texts.append(text)
        self._waiting += 1

    def _begin(self, entry: _Open) -> None:
        self._epoch += "blocks" in entry.parser.tables
        mine = self._open.get(entry.prefix.key, ())
        alike = [other for other in mine if other.parser is entry.parser]
        if len(alike) >= MAX_ALIKE:
            self._close(entry.prefix.key, alike[0])
        self._open.setdefault(entry.prefix.key, []).append(entry)
        self._begins[entry.raw] += 1
        self._note_open()

    def take(self, parser: BlockParser, block: Block) -> None:
        """Keep what a block says that was read outside the scan."""
        self._collect(_Open(parser, block, prefixes.Prefix(), b"", 0))

    def keep_dump(self, rows: list[tuple[str, dict[str, Any]]]) -> None:
        """Keep the rows of a dump, which has no lines: they stand on line 1."""
        for table, own in rows:
            name = own["description"] or f"group {own['guid']}"
            said = f"{own['operation']} x {own['entries']}" if "operation" in own else "opened"
            place = {"file": self.unit.file, "line": 1, "offset": 0, "stream": "", "epoch": 0}
            self._rows.setdefault(table, []).append({**place, "text": f"{name}: {said}", **own})

    def close(self) -> None:
        """The file ends: so do the blocks."""
        for key in tuple(self._open):
            for entry in tuple(self._open.get(key, ())):
                self._close(key, entry)

    def flush(self) -> None:
        """Turn the waiting lines and rows into folded frames; their texts are dropped."""
        understood: set[int] = set()
        for name, batch in self._batches.items():
            parser = self._by_name[name]
            assert isinstance(parser, LineParser)
            rows, drift = parser.parse(_frame(self.unit.file, batch))
            understood.update(rows["line"].to_list())
            if self.unit.keep_text and not events.EVENTS[parser.table].keep_text:
                rows = _with_text(rows, batch)
            self._keep(parser.table, rows)
            if drift.height:
                sample = drift.with_columns(pl.lit(name).alias("parser"))
                self._keep("drift", conform("drift", sample))
        for table, found in self._rows.items():
            understood.update(int(str(row["line"])) for row in found)
            schema = events.schema(table)
            self._keep(table, pl.DataFrame(found, schema=schema, strict=False))
        self.recognised += len(understood)
        self._batches.clear()
        self._rows.clear()
        self._waiting = 0

    def _keep(self, table: str, frame: pl.DataFrame) -> None:
        if frame.height:
            self._parts.setdefault(table, []).append(events.fold(table, frame))

    def frames(self) -> dict[str, pl.DataFrame]:
        """Every table that has rows."""
        self.flush()
        return {table: events.fold(table, pl.concat(parts)) for table, parts in self._parts.items()}


def _with_text(rows: pl.DataFrame, batch: _Batch) -> pl.DataFrame:
    texts = pl.DataFrame({"line": batch.lines, "text": batch.texts}).unique("line", keep="first")
    columns = rows.columns
    return (
        rows.drop("text").join(texts, on="line", how="left", maintain_order="left").select(columns)
    )


def scan_unit(unit: Unit) -> UnitResult:
    """Scan one unit. A file that cannot be read is an `error` in the result, never an exception."""
    collector = Collector(unit)
    stats, error = ScanStats(), None
    try:
        stream = reader.open_bytes(unit.path, max(unit.start - 1, 0))
        try:
            if unit.kind == "config":
                _scan_config(stream, collector, stats)
            elif unit.kind == "dump":
                _scan_dump(stream, collector, stats)
            else:
                stats = scan(stream, needles(), collector, unit.start, unit.end)
        finally:
            stream.close()
    except NoDumpError:
        pass  # named like a dump: somebody else's file, and no trouble
    except DumpError as failure:
        error = str(failure)
    except reader.READ_ERRORS as failure:
        error = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
    collector.close()
    frames = collector.frames()
    return UnitResult(
        unit, frames, stats.bytes, stats.lines, collector.recognised, stats.cut_off, error
    )


def _read_whole(stream: reader.ByteStream, limit: int) -> bytes:
    """Up to `limit` bytes of a file that is read as a whole."""
    parts: list[bytes] = []
    total, chunk = 0, bytearray(1 << 20)
    while total < limit and (count := stream.readinto(memoryview(chunk))):
        parts.append(bytes(chunk[:count]))
        total += count
    return b"".join(parts)[:limit]


def _scan_dump(stream: reader.ByteStream, collector: Collector, stats: ScanStats) -> None:
    """A flight-recorder dump: tables of groups and operations. Raises DumpError."""
    data = _read_whole(stream, MAX_DUMP_BYTES + 1)
    stats.bytes = len(data)
    collector.keep_dump(parse_dump(data, collector.unit.path))


def _scan_config(stream: reader.ByteStream, collector: Collector, stats: ScanStats) -> None:
    """A saved configuration: the whole file is one block."""
    data = _read_whole(stream, MAX_CONFIG_BYTES)
    stats.bytes = len(data)
    lines = data.decode("utf-8", "replace").splitlines()
    stats.lines = len(lines)
    if not lines:
        return
    for parser in parsers():
        if isinstance(parser, BlockParser) and parser.whole_file:
            block = parser.opens(BlockLine(1, 0, lines[0]))
            if block is None:
                continue
            offset = len(lines[0]) + 1
            for number, text in enumerate(lines[1:], 2):
                if block.feed(BlockLine(number, offset, text)):
                    break
                offset += len(text.encode()) + 1
            collector.take(parser, block)


LINE_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    table: tuple(
        name
        for name in events.schema(table)
        if name in {"line", "last", "block", "first_line", "last_line"}
    )
    for table in events.EVENTS
}
"""Columns that hold line numbers, and move when a unit takes its place in its file."""
