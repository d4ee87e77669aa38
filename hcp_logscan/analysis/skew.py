"""How far the clocks of nodes are apart, by what happened on several nodes at the same time.

Common events are: a process group of c10d that was created or opened (a barrier stands behind each
creation), an NCCL communicator (its initialisation is collective), an iteration or a phase that
ranks of several nodes print, a time-out of the same work, and the moment at which ranks were told
of one. How agents end is none of them: one may notice minutes before another.

The offset of a node is the median of the differences to the reference, which is the node whose own
clock is the median of all; their spread is the median of the absolute deviations. An offset counts
with at least `MIN_EVENTS` events, and is corrected if it is larger than it is uncertain and than
`NOTABLE`: one second is the resolution, and ranks are seconds late for their first barrier.
"""

from __future__ import annotations

import datetime as dt
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.analysis.clock import CLOSE, clock, moved, seconds_of
from hcp_logscan.analysis.hosts import is_host
from hcp_logscan.model.report import ClockOffset
from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hcp_logscan.sources.discover import LogFile

MIN_EVENTS: Final = 3
NOTABLE: Final = 5.0
"""Seconds up to which clocks are taken for equal."""

MAX_UNCERTAIN: Final = CLOSE
_RESOLUTION: Final = 1.0
_DEVIATIONS: Final = 3.0
_MOST: Final = 512
"""Common events of one kind that are compared."""

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Skew:
    """The clocks of the nodes of one job."""

    offsets: Mapping[str, ClockOffset] = field(default_factory=dict)
    "Node -> its offset, the reference included."

    streams: Mapping[tuple[int, str], str] = field(default_factory=dict)
    "(file, stream) -> node."

    files: Mapping[int, str] = field(default_factory=dict)
    "File -> node, where it is one node's."

    def node(self, file: int | None, stream: str | None) -> str | None:
        """The node that printed a line; None if unknown."""
        if file is None:
            return None
        return self.streams.get((file, stream or "")) or self.files.get(file)

    def correct(self, time: str | None, node: str | None) -> str | None:
        """A time of `clock` on the clock of the reference; as it is where that is not known."""
        offset = self.offsets.get(node or "")
        if time is None or offset is None or not offset.corrected or offset.seconds is None:
            return time
        return moved(time, -offset.seconds)

    def slack(self, one: str | None, other: str | None) -> float:
        """Seconds within which the (corrected) times of two nodes tell no order."""
        if one is not None and one == other:
            return _RESOLUTION
        found = [self.offsets.get(node or "") for node in (one, other)]
        spreads = [offset.spread_s for offset in found if offset is not None]
        if len(spreads) < 2 or None in spreads:
            return CLOSE
        return max(NOTABLE, _RESOLUTION + _DEVIATIONS * sum(s for s in spreads if s is not None))


NO_SKEW: Final = Skew()


def skew(
    tables: Mapping[str, pl.DataFrame], files: Sequence[LogFile], members: Sequence[int]
) -> Skew:
    """The clocks of one job; `members` are its files. Without two nodes there is nothing to say."""
    streams, of_file = _nodes(tables, files, members)
    if len({*streams.values(), *of_file.values()}) < 2:
        return Skew(streams=streams, files=of_file)
    known = Skew(streams=streams, files=of_file)
    times: dict[str, dict[_Key, float]] = {
        node: {} for node in sorted({*streams.values(), *of_file.values()})
    }
    for node, key, time in _common(tables, known):
        times[node].setdefault(key, time)
    return Skew(_offsets(times), streams, of_file)


def _nodes(
    tables: Mapping[str, pl.DataFrame], files: Sequence[LogFile], members: Sequence[int]
) -> tuple[dict[tuple[int, str], str], dict[int, str]]:
    """(file, stream) -> node by its prefix, and file -> node by its path, else by NCCL's lines."""
    columns = ["file", "stream", "replica"]
    rows = pl.concat([f.select(columns).unique() for f in tables.values()]).unique(
        ["file", "stream"], keep="first", maintain_order=True
    )
    host = pl.col("stream").str.extract(r"^h([^,]+)")
    named = rows.with_columns(pl.coalesce(host, pl.format("node {}", "replica")).alias("node"))
    streams = {
        (file, stream): node
        for file, stream, node in named.drop_nulls("node")
        .select("file", "stream", "node")
        .iter_rows()
    }
    of_file = {i: node for i in members if (node := files[i].hints.node) and is_host(node)}
    if not streams and not of_file:
        of_file = _hosts(tables["communicator_lines"])
    return streams, of_file


def _hosts(lines: pl.DataFrame) -> dict[int, str]:
    """The only host that NCCL names in a file."""
    only = lines.drop_nulls("host").group_by("file").agg(pl.col("host").unique())
    return {file: hosts[0] for file, hosts in only.iter_rows() if len(hosts) == 1}


def _common(tables: Mapping[str, pl.DataFrame], known: Skew) -> Iterator[tuple[str, _Key, float]]:
    """(node, event, seconds) of what several nodes printed, the first line of each node."""
    timeouts, groups = tables["timeouts"], tables["group_lines"]
    status = timeouts.filter((pl.col("kind") == "status") & pl.col("guid").is_not_null())
    told = timeouts.filter((pl.col("kind") == "notified") & pl.col("source_rank").is_not_null())
    for frame, keys in (
        (groups.filter(pl.col("guid") != ""), ["kind", "guid", "description"]),
        (tables["communicator_lines"].drop_nulls("comm_id"), ["comm_id"]),
        (status, ["kind", "guid", "description", "sequence"]),
        (told, ["kind", "source_rank"]),
        (tables["marks"].drop_nulls("time"), ["kind"]),
        (tables["iterations"].drop_nulls(["time", "iteration"]), ["iteration"]),
    ):
        yield from _of_table(frame, keys, known)


def _of_table(
    frame: pl.DataFrame, keys: Sequence[str], known: Skew
) -> Iterator[tuple[str, _Key, float]]:
    text = "time" if "time" in frame.columns else "text"
    places = frame.select("file", "stream").unique()
    where = {place: known.node(*place) for place in places.iter_rows()}
    nodes = pl.DataFrame(
        [(*place, node) for place, node in where.items() if node],
        schema={"file": pl.Int64, "stream": pl.String, "_node": pl.String},
        orient="row",
    )
    if nodes["_node"].n_unique() < 2:
        return
    by = ["attempt", *keys]
    rows = (
        frame.select("file", "stream", "line", *by, pl.col(text).alias("_said"))
        .join(nodes, on=["file", "stream"], how="inner", maintain_order="left")
        .group_by(*by, "_node", maintain_order=True)
        .agg(pl.col("_said").first())
        .filter(pl.len().over(by) > 1)
    )
    kept = pl.concat([rows.head(_MOST * 8), rows.slice(_MOST * 8).tail(_MOST * 8)])
    name = keys[0]
    for *key, node, said in kept.select(*by, "_node", "_said").iter_rows():
        if time := clock(said):
            yield node, (name, *key), seconds_of(time)


def _differences(of: Mapping[_Key, float], to: Mapping[_Key, float]) -> list[float]:
    return [of[key] - time for key, time in to.items() if key in of]


def _offsets(times: Mapping[str, Mapping[_Key, float]]) -> dict[str, ClockOffset]:
    """The offset of every node to the reference."""
    first = max(times, key=lambda node: len(times[node]))
    rough = {
        node: statistics.median(found)
        for node, mine in times.items()
        if len(found := _differences(mine, times[first])) >= MIN_EVENTS
    }
    middle = statistics.median_low(rough.values()) if rough else 0.0
    reference = min(rough, key=lambda node: (abs(rough[node] - middle), node)) if rough else first
    if len(rough) == 2:
        reference = min(rough)  # nothing tells which of two is right
    return {node: _offset(node, mine, reference, times[reference]) for node, mine in times.items()}


def _offset(
    node: str, mine: Mapping[_Key, float], reference: str, to: Mapping[_Key, float]
) -> ClockOffset:
    found = _differences(mine, to)
    if node == reference:
        return ClockOffset(node, reference, 0.0, len(found), 0.0)
    if len(found) < MIN_EVENTS:
        return ClockOffset(node, reference, None, len(found), None)
    middle = statistics.median(found)
    spread = statistics.median(abs(one - middle) for one in found)
    uncertain = _RESOLUTION + _DEVIATIONS * spread
    if uncertain > MAX_UNCERTAIN:
        return ClockOffset(node, reference, None, len(found), spread)
    corrected = abs(middle) > max(NOTABLE, uncertain)
    return ClockOffset(node, reference, middle, len(found), spread, corrected=corrected)


def notes(found: Skew) -> tuple[str, ...]:
    """What is said of clocks that were corrected; nothing where none was."""
    apart = [offset for offset in found.offsets.values() if offset.corrected]
    apart.sort(key=lambda offset: (-abs(offset.seconds or 0), offset.node))
    said = [_note(offset) for offset in apart[:_SHOWN]]
    more = len(apart) - len(said)
    if more:
        said.append(say("The clocks of {more:,} more nodes are corrected, too.", more=more))
    return tuple(said)


_SHOWN: Final = 4


def _note(offset: ClockOffset) -> str:
    seconds = offset.seconds or 0.0
    way = (
        say("{apart} behind that of {other}", apart=words(abs(seconds)), other=offset.reference)
        if seconds < 0
        else say("{apart} ahead of that of {other}", apart=words(seconds), other=offset.reference)
    )
    return say(
        "The clock of {node} is {way} (median of {events:,} events that both logged, spread"
        " {spread:.0f} s): its times are corrected by that.",
        node=offset.node,
        way=way,
        events=offset.events,
        spread=offset.spread_s or 0,
    )


def words(seconds: float) -> str:
    """Seconds in words.

    >>> words(90), words(7200), words(12.5)
    ('90 s', '2:00:00', '12 s')
    """
    return f"{seconds:.0f} s" if seconds < 600 else str(dt.timedelta(seconds=round(seconds)))
