"""One task: units of files -> event tables. Picklable in and out, and free of any state.

A unit, (file, start, end), owns the lines, and the blocks, that begin in it, and reads past its end
to finish them; so any split of a file gives the same tables. The units of a batch share their
tables: lines are parsed by the thousand, from however many files they come.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from hcp_logscan.engine.survivors import Waiting, odd, split
from hcp_logscan.model import events
from hcp_logscan.parsers.base import BlockLine, BlockParser, LineParser, conform
from hcp_logscan.parsers.custom import CustomParser
from hcp_logscan.parsers.error_file import MAX_ERROR_BYTES, parse_error_file
from hcp_logscan.parsers.flight_recorder import (
    MAX_DUMP_BYTES,
    DumpError,
    NoDumpError,
    parse_dump,
)
from hcp_logscan.parsers.registry import needles, owners, parsers
from hcp_logscan.sources import leads, prefixes, reader
from hcp_logscan.sources.place import name_of
from hcp_logscan.sources.scanner import NeedleSets, ScanStats, scan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.engine.plan import Unit
    from hcp_logscan.model.line_format import LineFormat
    from hcp_logscan.parsers.base import Block
    from hcp_logscan.sources.prefixes import Prefix
    from hcp_logscan.sources.scanner import Survivors, Tail

FLUSH_LINES: Final = 20_000
"""Lines held as text before they become typed columns."""

FLUSH_BYTES: Final = 16 << 20
"""Bytes of such lines."""

FOLD_ROWS: Final = 20_000
"""Rows of one table that are kept before they are folded with those from before."""

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

LONG_LINE: Final = MAX_TEXT
"""Bytes of a line that is sorted by itself: it is cut before it waits."""


_NCCL: Final = re.compile(rb":\d{1,10}:\d{1,10} \[\d{1,3}\] NCCL ")
_SAME_EVERY_TIME: Final = re.compile(rb"(?:\[rank\d{1,7}\]: |\[[A-Za-z_-]+\d{1,6}\]:)+")
"""Prefixes that every line of their stream begins with, byte by byte: no time, no padding."""

_TORN: Final = re.compile(
    rb"(?<=[^\s:])(?=\[rank\d{1,7}\]:|\[Rank \d{1,7}\] \(after )"
    rb"|(?<=\|)(?= ?(?:\[\d{4}-[^\]]{10,24}\] )?iteration +\d+/)"
)
"""Where ranks that share a pipe write into each other's lines."""


@dataclass(slots=True)
class UnitStats:
    """What was read of one unit."""

    unit: Unit
    bytes: int = 0
    lines: int = 0
    recognised: int = 0
    cut_off: bool = False
    error: str | None = None
    tail: Tail = b""
    "Its last bytes, as `ScanStats` has them."

    unfinished: bool = False
    "A block was open where the file ended: what is written behind it may belong to it."


@dataclass(slots=True)
class BatchResult:
    """What a batch of units gave."""

    units: list[UnitStats]
    frames: dict[str, pl.DataFrame]
    """Event tables that have rows. `file` is the place of the unit in the batch, and line numbers
    count from the unit's own first line."""


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
    """Odd lines waiting for one line parser, column by column."""

    units: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    prefixes: list[Prefix] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def _frame(batch: _Batch) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "file": batch.units,
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

    def __init__(self, formats: tuple[LineFormat, ...] = ()) -> None:
        self.hungry: bool = False
        self.sets: NeedleSets = NeedleSets(len(needles(formats)))
        self._orders = np.empty(0, np.bool_)
        "By the number of a set: whether its lines must be sorted in their order."

        self.recognised: Counter[int] = Counter()
        "Lines that a parser understood, by the place of their unit in the batch."

        self._place = 0
        self._leads: tuple[str, ...] = ()
        self._keep_text: set[int] = set()
        self._waiting = 0
        self._waiting_bytes = 0
        self._common = Waiting()
        self._batches: dict[str, _Batch] = {}
        self._open: dict[str, list[_Open]] = {}
        self._begins: Counter[bytes] = Counter()
        self._raws: tuple[bytes, ...] = ()
        self._walked = 0
        self._epoch = 0
        self._rows: dict[str, list[dict[str, object]]] = {}
        self._parts: dict[str, list[pl.DataFrame]] = {}
        self._by_name: dict[str, LineParser | BlockParser | CustomParser] = {
            parser.name: parser for parser in parsers()
        }
        self._by_name |= {form.name: CustomParser(form) for form in formats}
        self._owners = owners(formats)
        self._single = _single(formats)

    def begin(self, place: int, unit: Unit) -> None:
        """The lines that follow are this unit's."""
        self._place, self._epoch, self._leads = place, 0, unit.leads
        if unit.keep_text:
            self._keep_text.add(place)

    def led_by(self, names: tuple[str, ...]) -> None:
        """These leads stand before the lines that follow."""
        self._leads = names

    def walk(self, number: int, offset: int, line: bytes) -> None:
        """Give a line to the open blocks of its stream."""
        self._walked += 1
        if self._walked % CHECK_EVERY == 0:
            self._close_silent(number)
        if self._leads:
            line = leads.rewrite(self._leads, line)
        if self._raws and not line.startswith(self._raws):
            return
        cleaned = prefixes.clean(line)
        prefix, rest = prefixes.split(cleaned)
        if b"\r" in cleaned:
            parts = cleaned.split(b"\r")
            # a progress bar shows its last part only; what a collector wrapped was several lines
            for part in parts[:-1] if leads.wrapped(self._leads) else ():
                self._feed(number, offset, *prefixes.split_after(prefix, part))
            prefix, rest = prefixes.split_after(prefix, parts[-1])
        self._feed(number, offset, prefix, rest)

    def _feed(self, number: int, offset: int, prefix: prefixes.Prefix, rest: bytes) -> None:
        """Give a line behind its prefix to the open blocks of its stream."""
        mine = self._open.get(prefix.key)
        if not mine:
            return
        text = rest.decode("utf-8", "replace")[:MAX_TEXT]
        for entry in tuple(mine):
            if entry.silent(number):
                self._close(prefix.key, entry)
            else:
                self._give(entry, prefix.key, BlockLine(number, offset, text))

    def _give(self, entry: _Open, key: str, line: BlockLine) -> None:
        """Let a block have one line of its stream."""
        entry.taken += 1
        entry.last = line.number
        if entry.block.feed(line) or entry.taken >= MAX_BLOCK_LINES:
            self._close(key, entry)

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
            "file": self._place,
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

    def take(self, found: Survivors, first: int, last: int) -> int:
        """Let lines wait for the parsers of their needles; sort those at once whose order matters.

        Those taken end with the first that opens a record.
        """
        if len(self._orders) < len(self.sets.held):
            self._orders = np.array([held & self._single != 0 for held in self.sets.held])
        sets, lengths = found.sets[first:last], found.ends[first:last] - found.starts[first:last]
        for special in (
            first + np.flatnonzero(self._orders[sets] | (lengths > LONG_LINE))
        ).tolist():
            self._wait(found, first, special)
            line = found.line(special)
            if self._leads:
                line = leads.rewrite(self._leads, line)
            offset = found.base + int(found.starts[special])
            self._sort(int(found.numbers[special]), offset, line, int(found.sets[special]))
            first = special + 1
            if self.hungry:
                return first
        self._wait(found, first, last)
        return last

    def _wait(self, found: Survivors, first: int, last: int) -> None:
        if first == last:
            return
        lines = self._common.add(self._place, self._epoch, found, first, last)
        if self._leads:
            lines = [leads.rewrite(self._leads, line) for line in lines]
        self._common.texts += lines
        self._waiting += len(lines)
        self._waiting_bytes += int((found.ends[first:last] - found.starts[first:last]).sum())

    def settle(self) -> None:
        """Turn what waits into frames once it is much."""
        if self._waiting >= FLUSH_LINES or self._waiting_bytes >= FLUSH_BYTES:
            self.flush()

    def _wanted(self, number: int) -> dict[str, None]:
        """Names of the parsers that asked for one of the needles of a set."""
        needles = self.sets.held[number]
        hits = (hit for hit in range(needles.bit_length()) if needles >> hit & 1)
        return {parser.name: None for hit in hits for parser in self._owners[hit]}

    def _sort(self, number: int, offset: int, line: bytes, needle_set: int) -> None:
        """Sort one line to the parsers that asked for its needles."""
        cleaned = prefixes.clean(line)
        segments = self._segments(number, offset, cleaned)
        before = prefixes.split(cleaned)[0] if b"\r" in cleaned else prefixes.Prefix()
        wanted = self._wanted(needle_set)
        begun: list[_Open] = []
        for segment in segments:
            if not segment:
                continue
            prefix, rest = prefixes.split_after(before, segment)
            text = rest.decode("utf-8", "replace")[:MAX_TEXT]
            for entry in begun if leads.wrapped(self._leads) else ():
                if entry in self._open.get(prefix.key, ()):
                    self._give(entry, prefix.key, BlockLine(number, offset, text))
            for name in wanted:
                parser = self._by_name[name]
                if len(segments) > 1 and not any(needle in text for needle in parser.needles):
                    continue
                if not isinstance(parser, BlockParser):
                    self._add(name, number, offset, prefix, text)
                elif block := parser.opens(BlockLine(number, offset, text)):
                    raw = segment[: len(segment) - len(rest)] if segment == line else b""
                    raw = raw if _SAME_EVERY_TIME.fullmatch(raw) else b""
                    begun.append(_Open(parser, block, prefix, raw, number))
                    self._begin(begun[-1])

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
            "file": self._place,
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
        batch.units.append(self._place)
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

    def keep_block(self, parser: BlockParser, block: Block) -> None:
        """Keep what a block says that was read outside the scan."""
        self._collect(_Open(parser, block, prefixes.Prefix(), b"", 0))

    def keep_dump(self, rows: list[tuple[str, dict[str, Any]]]) -> None:
        """Keep the rows of a dump, which has no lines: they stand on line 1."""
        for table, own in rows:
            name = own["description"] or f"group {own['guid']}"
            said = "opened"
            if "entries" in own:
                said = f"{own['operation']} x {own['entries']}"
            elif "state" in own:
                said = (
                    f"{own['operation']} #{own['sequence']} {own['state'] or 'in no known state'}"
                )
            place = {"file": self._place, "line": 1, "offset": 0, "stream": "", "epoch": 0}
            self._rows.setdefault(table, []).append({**place, "text": f"{name}: {said}", **own})

    def keep_error_file(self, own: dict[str, Any]) -> None:
        """Keep the traceback of an error file; `own` are its columns and its `text`."""
        place = {"file": self._place, "line": 1, "offset": 0, "stream": "", "epoch": 0}
        self._rows.setdefault("tracebacks", []).append({**place, **own})
        self._waiting += 1

    def close(self) -> None:
        """The unit ends: so do its blocks."""
        for key in tuple(self._open):
            for entry in tuple(self._open.get(key, ())):
                self._close(key, entry)

    def flush(self) -> None:
        """Turn the waiting lines and rows into folded frames; their texts are dropped."""
        understood: list[pl.DataFrame] = []
        common = self._sort_common()
        for name in sorted({*self._batches, *common}):
            parser = self._by_name[name]
            assert not isinstance(parser, BlockParser)
            lines = [common[name]] if name in common else []
            if name in self._batches:
                lines.append(_frame(self._batches[name]))
            waiting = pl.concat(lines)
            rows, drift = parser.parse(waiting)
            understood.append(rows.select("file", "line"))
            if self._keep_text and not events.EVENTS[parser.table].keep_text:
                rows = _with_text(rows, waiting, self._keep_text)
            self._keep(parser.table, rows)
            if drift.height:
                if "parser" not in drift.columns:
                    drift = drift.with_columns(pl.lit(name).alias("parser"))
                self._keep("drift", conform("drift", drift))
        for table, found in self._rows.items():
            frame = pl.DataFrame(found, schema=events.schema(table), strict=False)
            understood.append(frame.select("file", "line"))
            self._keep(table, frame)
        if understood:
            counted = pl.concat(understood).unique().group_by("file").len()
            self.recognised.update(dict(counted.iter_rows()))
        self._batches.clear()
        self._rows.clear()
        self.sets.forget()
        self._orders = self._orders[: len(self.sets.held)]
        self._waiting = self._waiting_bytes = 0

    def _sort_common(self) -> dict[str, pl.DataFrame]:
        """The waiting lines by parser; the odd ones among them are sorted one by one."""
        waiting, self._common = self._common, Waiting()
        if not waiting.texts:
            return {}
        lines = waiting.frame().with_columns(odd().alias("_odd"))
        place, epoch = self._place, self._epoch
        said = ("row", "file", "epoch", "line", "offset", "set")
        for row, unit, began, number, offset, held in lines.filter("_odd").select(said).iter_rows():
            self._place, self._epoch = unit, began
            self._sort(number, offset, waiting.texts[row], held)
        self._place, self._epoch = place, epoch
        lines = split(lines.filter(~pl.col("_odd")), MAX_TEXT)
        sets: dict[str, list[int]] = {}
        for held in lines["set"].unique().sort().to_list():
            for name in self._wanted(held):
                sets.setdefault(name, []).append(held)
        return {
            name: lines.filter(pl.col("set").is_in(mine)).drop("set") for name, mine in sets.items()
        }

    def _keep(self, table: str, frame: pl.DataFrame) -> None:
        if not frame.height:
            return
        parts = self._parts.setdefault(table, [])
        # a text of its own: a part of a column keeps the memory of all lines that waited with it
        parts.append(events.fold(table, frame).with_columns(pl.col("text") + ""))
        # the first part is folded; only what is as much as that is worth going over it again
        new = sum(part.height for part in parts[1:])
        if events.EVENTS[table].fold and new >= max(FOLD_ROWS, parts[0].height):
            parts[:] = [events.fold(table, pl.concat(parts))]

    def frames(self) -> dict[str, pl.DataFrame]:
        """Every table that has rows."""
        self.flush()
        return {table: events.fold(table, pl.concat(parts)) for table, parts in self._parts.items()}


@lru_cache(maxsize=8)
def _single(formats: tuple[LineFormat, ...]) -> int:
    """Needles whose lines must be sorted in their order: they open a block or begin an epoch."""
    return sum(
        1 << number
        for number, mine in enumerate(owners(formats))
        if any(isinstance(one, BlockParser) or one.name == FAILED_LINE for one in mine)
    )


def _with_text(rows: pl.DataFrame, lines: pl.DataFrame, places: set[int]) -> pl.DataFrame:
    """The rows with their lines, where these cannot be read again."""
    texts = lines.filter(pl.col("file").is_in(list(places))).select("file", "line", "text")
    columns = rows.columns
    return (
        rows.drop("text")
        .join(
            texts.unique(["file", "line"], keep="first", maintain_order=True),
            on=["file", "line"],
            how="left",
            maintain_order="left",
        )
        .select(columns)
    )


def scan_batch(units: Sequence[Unit]) -> BatchResult:
    """Scan some units. A file that cannot be read is an `error`, never an exception."""
    collector = Collector(units[0].formats if units else ())
    stats = []
    with reader.Opener() as opener:
        for place, unit in enumerate(units):
            collector.begin(place, unit)
            stats.append(_scan_unit(unit, collector, opener))
            stats[-1].unfinished = collector.hungry
            collector.close()
    frames = collector.frames()
    for place, one in enumerate(stats):
        one.recognised = collector.recognised[place]
    return BatchResult(stats, frames)


def _scan_unit(unit: Unit, collector: Collector, opener: reader.Opener) -> UnitStats:
    stats, error = ScanStats(), None
    try:
        stream = opener.open(unit.path, max(unit.start - 1, 0))
        if unit.path == reader.STDIN:  # nobody could look at its beginning before
            head, stream = reader.peek(stream)
            collector.led_by(leads.detect(head))
        try:
            if unit.kind == "config":
                _scan_config(stream, collector, stats)
            elif unit.kind == "dump":
                _scan_dump(stream, collector, stats, name_of(unit.path))
            elif unit.kind == "error":
                _scan_error_file(stream, collector, stats)
            else:
                scan(stream, needles(unit.formats), collector, unit.start, unit.end, stats)
        finally:
            stream.close()
    except NoDumpError:
        pass  # named like a dump: somebody else's file, and no trouble
    except DumpError as failure:
        error = str(failure)
    except reader.READ_ERRORS as failure:
        error = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
    if stats.cut_off and not stats.bytes:
        error = "cut off before its first byte of text"
    return UnitStats(
        unit, stats.bytes, stats.lines, cut_off=stats.cut_off, error=error, tail=stats.tail
    )


def _read_whole(stream: reader.ByteStream, limit: int, stats: ScanStats) -> bytes:
    """Up to `limit` bytes of a file that is read as a whole."""
    parts: list[bytes] = []
    total, chunk = 0, bytearray(1 << 20)
    try:
        while total < limit and (count := stream.readinto(memoryview(chunk))):
            parts.append(bytes(chunk[:count]))
            total += count
    except reader.CutOffError:
        stats.cut_off = True
    data = b"".join(parts)[:limit]
    stats.bytes = len(data)
    return data


def _scan_dump(
    stream: reader.ByteStream, collector: Collector, stats: ScanStats, path: str
) -> None:
    """A flight-recorder dump: tables of groups and operations. Raises DumpError."""
    data = _read_whole(stream, MAX_DUMP_BYTES + 1, stats)
    collector.keep_dump(parse_dump(data, path))


def _scan_error_file(stream: reader.ByteStream, collector: Collector, stats: ScanStats) -> None:
    """The record of one exception: a traceback on its one line. Raises DumpError."""
    data = _read_whole(stream, MAX_ERROR_BYTES + 1, stats)
    stats.lines = data.count(b"\n") + (not data.endswith(b"\n"))
    collector.keep_error_file(parse_error_file(data))


def _scan_config(stream: reader.ByteStream, collector: Collector, stats: ScanStats) -> None:
    """A saved configuration: the whole file is one block."""
    data = _read_whole(stream, MAX_CONFIG_BYTES, stats)
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
            collector.keep_block(parser, block)


LINE_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    table: tuple(
        name
        for name in events.schema(table)
        if name in {"line", "last", "block", "first_line", "last_line"}
    )
    for table in events.EVENTS
}
"""Columns that hold line numbers, and move when a unit takes its place in its file."""
