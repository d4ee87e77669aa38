"""The global rank of a line, from everything that hints at it.

In this order: ``[rankN]:`` or Ray's rank on the line; rank in the file name; the only rank named by
memory lines of that process's stream; node directory x ranks per node + local rank, where that
product is the world size; srun label or Slurm task, where there is one task per rank; local rank,
where one node holds the whole world. Anything else is unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.analysis import rotated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.sources.discover import LogFile
    from hcp_logscan.sources.layouts import PathHints

_MASTER: Final = re.compile(r"(?:^|[-_.])(?:master|chief)(?:[-_.]|$)")
"""Kubeflow's PyTorchJob: the master is node 0, and worker 0 is the next."""

_INDEX: Final = re.compile(r"-(\d{1,9})-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""An indexed pod of Kubernetes ends in five characters of its random alphabet."""

_NUMBER: Final = re.compile(r"(\d+)(?!.*\d)")


@dataclass(frozen=True, slots=True)
class RankMap:
    """How ranks are told apart in one job."""

    by_stream: Mapping[tuple[int, str], int]
    "(file, stream) -> global rank, for the streams whose lines do not say it themselves."

    by_file: Mapping[int, int]
    "File -> global rank, for files that hold one rank only."

    files_tell: bool
    "Files tell ranks apart: a rank without a file is missing."

    lines_tell: bool
    "Prefixes tell ranks apart."

    one_node: bool = False
    "All local ranks are of one node: they tell processes apart even where the world is unknown."

    file_locals: Mapping[int, int] = field(default_factory=dict)
    "File -> local rank, by its path."

    def seen(self, tables: Mapping[str, pl.DataFrame]) -> list[int]:
        """Every global rank that was told apart, sorted."""
        ranks = {*self.by_stream.values(), *self.by_file.values()}
        for frame in tables.values():
            ranks.update(frame["line_rank"].drop_nulls().unique().to_list())
        return sorted(ranks)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which ranks of the job the logs hold."""

    ranks: RankMap
    seen: tuple[int, ...]
    "Global ranks that were told apart, sorted."

    missing: tuple[int, ...] | None
    "Ranks of the world without a file; None where files do not tell ranks apart."


def coverage(
    ranks: RankMap, tables: Mapping[str, pl.DataFrame], world_size: int | None
) -> Coverage:
    """Coverage of one job; `world_size` is None where nothing says it."""
    seen = ranks.seen(tables)
    missing = None
    if ranks.files_tell and world_size is not None:
        missing = tuple(sorted(set(range(world_size)) - set(seen)))
    return Coverage(ranks, tuple(seen), missing)


def _number(name: str) -> tuple[bool, int] | None:
    """(whether it is no master, number) in a node's name; None where it has no number.

    >>> [_number(name) for name in ("job-master-0", "job-worker-0", "set-node-3-x7f2k", "n12.hpc2")]
    [(False, 0), (True, 0), (True, 3), (True, 12)]
    """
    short = name.partition(".")[0]
    own = short if _NUMBER.search(short) and not short.isdecimal() else name
    match = _INDEX.search(own) or _NUMBER.search(own)
    return None if match is None else (_MASTER.search(own) is None, int(match[1]))


def _natural_nodes(names: Iterable[str]) -> dict[str, int] | None:
    """Node name -> index in the order of the numbers in the names; None if they carry none."""
    numbers: dict[str, tuple[bool, int]] = {}
    for name in set(names):
        number = _number(name)
        if number is None:
            return None
        numbers[name] = number
    if len(set(numbers.values())) != len(numbers):
        return None
    return {name: index for index, name in enumerate(sorted(numbers, key=lambda n: numbers[n]))}


@dataclass(frozen=True, slots=True)
class _Geometry:
    world_size: int | None
    nodes: Mapping[str, int] | None
    node_count: int
    local_ranks: int
    tasks: int
    labels: int
    elastic: Mapping[int, int]
    last_label: int = -1
    numbered_through: bool = False
    "The nodes' local ranks are none: together they are every rank of the world, once."

    @property
    def one_task_per_rank(self) -> bool:
        """As many tasks as ranks; or more than there could be nodes of two ranks each.

        A task whose lines say nothing that is understood is not counted, so not all need be seen.
        """
        world = self.world_size or 0
        return max(self.tasks, self.labels) == world or world // 2 < self.last_label + 1 <= world

    def rank(self, node: str | None, local: int | None, task: int | None) -> int | None:
        world = self.world_size
        if local is not None:
            one_node = self.node_count <= 1 and world is not None and world == self.local_ranks
            if one_node or self.numbered_through:
                return local
            index = self.nodes.get(node) if self.nodes is not None and node is not None else None
            if index is None and task is not None and self.node_count <= 1:
                index = task if max(self.tasks, self.labels) * self.local_ranks == world else None
            elif index is not None and self.node_count * self.local_ranks != world:
                index = None
            if index is not None:
                return index * self.local_ranks + local
            return self.elastic.get(local)
        if task is not None and world is not None and task < world and self.one_task_per_rank:
            return task
        if task is None and self.nodes is not None and self.node_count == world and node:
            return self.nodes.get(node)  # as many nodes as ranks
        return None


def _streams(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Distinct (file, stream) with the hints of their prefixes, and their node as `host`.

    That is the name in the stream's key, else TorchX's replica.
    """
    columns = ["file", "stream", "label", "local_rank", "replica"]
    streams = pl.concat(
        [frame.select(columns).unique() for frame in tables.values() if frame.height]
        or [next(iter(tables.values())).select(columns)]
    ).unique(["file", "stream"], keep="first", maintain_order=True)
    named = pl.col("stream").str.extract(r"^h([^,]+)")
    return streams.with_columns(
        pl.coalesce(named, pl.col("replica").cast(pl.String)).alias("host")
    ).drop("replica")


def _numbered_through(
    streams: pl.DataFrame, hints: Mapping[int, PathHints], world_size: int | None
) -> bool:
    """Whether what stands where local ranks do are global ones, as torchrun's template may print.

    Then no number comes twice among the nodes, and all together they are the world.
    """
    seen: dict[int, set[str | None]] = {}
    for file, local, host in streams.select("file", "local_rank", "host").iter_rows():
        if local is not None:
            node = host or (hints[file].node if file in hints else None)
            seen.setdefault(local, set()).add(node)
    nodes = {node for found in seen.values() for node in found}
    alone = all(len(found) == 1 for found in seen.values())
    return len(nodes) > 1 and alone and len(seen) == world_size == max(seen) + 1


def _elastic_ranks(exits: pl.DataFrame) -> dict[int, int]:
    """Local -> global rank as torchelastic's failure table says, where one host is all there is."""
    rows = exits.drop_nulls(["rank", "failed_local_rank"])
    if rows["host"].n_unique() != 1:
        return {}
    return dict(rows.select("failed_local_rank", "rank").unique().iter_rows())


def resolve(
    tables: Mapping[str, pl.DataFrame],
    files: Sequence[LogFile],
    members: Sequence[int],
    world_size: int | None,
) -> RankMap:
    """Work out the ranks of one job. `world_size` is None where nothing says it."""
    hints: dict[int, PathHints] = {i: files[i].hints for i in members if files[i].kind != "config"}
    streams = _streams(tables)
    locals_seen = {h.local_rank for h in hints.values()} | set(streams["local_rank"].to_list())
    hosts = set(streams["host"].drop_nulls().to_list())
    inside = set(streams.drop_nulls("local_rank")["file"].to_list())
    by_local = [h for i, h in hints.items() if h.local_rank is not None or i in inside]
    nodes = hosts or {h.node for h in by_local if h.node}
    tasks = {h.task for h in hints.values()} - {None}
    labels = streams["label"].drop_nulls().n_unique()
    if not (by_local or tasks or labels):  # a node may hold one rank and say no more of it
        nodes = nodes or {h.node for h in hints.values() if h.node}
    launches = {h.launch for h in hints.values() if h.launch}
    geometry = _Geometry(
        world_size=world_size,
        nodes=_natural_nodes(nodes) if nodes else None,
        node_count=max(len(nodes), len(launches), 1),
        local_ranks=len(locals_seen - {None}),
        tasks=len(tasks),
        labels=labels,
        elastic=_elastic_ranks(tables["exits"]),
        last_label=max(streams["label"].drop_nulls().to_list(), default=-1),
        numbered_through=_numbered_through(streams, hints, world_size),
    )
    by_file: dict[int, int] = {}
    for index, hint in hints.items():
        rank = hint.rank
        if rank is not None and world_size is not None and rank >= world_size:
            continue  # a number in a name that is no rank of this job
        if rank is None:
            rank = geometry.rank(hint.node, hint.local_rank, hint.task)
        if rank is not None:
            by_file[index] = rank
    whole = {part: log[-1] for log in rotated.parts_of(files, members) for part in log}
    named_lines = _named_lines(tables)
    _from_named_lines(named_lines, hints, by_file)
    _from_other_files(hints, by_file, whole)

    by_stream: dict[tuple[int, str], int] = {}
    if whole:
        named_lines = named_lines.with_columns(pl.col("file").replace(whole))
    named = named_lines.group_by("file", "stream").agg(pl.col("rank").unique())
    only = {(f, s): r[0] for f, s, r in named.iter_rows() if len(r) == 1 and s}
    for file, stream, label, local, host in streams.iter_rows():
        if file in by_file or not stream:
            continue
        rank = only.get((whole.get(file, file), stream))
        if rank is None:
            node = host or (hints[file].node if file in hints else None)
            rank = geometry.rank(node, local, label)
        if rank is not None:
            by_stream[file, stream] = rank
    locals_of = {i: h.local_rank for i, h in hints.items() if h.local_rank is not None}
    one_node = geometry.node_count <= 1 and geometry.labels <= 1
    # only ranks that failed have an error file: what has none is not missing
    files_tell = any(files[index].kind != "error" for index in by_file)
    return RankMap(by_stream, by_file, files_tell, bool(by_stream), one_node, locals_of)


def _named_lines(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Lines that name their global rank in their text: memory lines, c10d creation lines."""
    created = tables["group_lines"].select("file", "stream", pl.col("global_rank").alias("rank"))
    memory = tables["rank_lines"].select("file", "stream", "rank")
    return pl.concat([memory, created]).drop_nulls("rank").unique(maintain_order=True)


def _from_named_lines(
    named: pl.DataFrame, hints: Mapping[int, PathHints], by_file: dict[int, int]
) -> None:
    """The only rank that the lines of a file of one process name is the rank of that file."""
    one = (
        named.filter(pl.col("stream") == "")
        .group_by("file")
        .agg(pl.col("rank").unique().alias("ranks"))
        .filter(pl.col("ranks").list.len() == 1)
    )
    for file, ranks in one.iter_rows():
        hint = hints.get(file)
        if file not in by_file and hint and (hint.local_rank is not None or hint.task is not None):
            by_file[file] = ranks[0]


def _from_other_files(
    hints: Mapping[int, PathHints], by_file: dict[int, int], whole: Mapping[int, int]
) -> None:
    """What one file says of its process holds for its other ones: the other stream, older parts.

    `whole` maps each part of a rotated log to the newest one.
    """

    def process(file: int) -> object:
        hint = hints[file]
        if hint.launch:
            return hint.launch, hint.node, hint.attempt, hint.local_rank
        return whole.get(file, file)

    known: dict[object, set[int]] = {}
    for file, rank in by_file.items():
        known.setdefault(process(file), set()).add(rank)
    for file in hints:
        ranks = known.get(process(file), set())
        if file not in by_file and len(ranks) == 1:
            by_file[file] = next(iter(ranks))


def with_ranks(tables: Mapping[str, pl.DataFrame], ranks: RankMap) -> dict[str, pl.DataFrame]:
    """Every event table with its `event_rank` column (Int64, null where unknown) and `process`.

    `process` (String) names the process that printed a line: its global rank, else its local rank
    where there is one node; null where neither can be told. (The table `rank_lines` has a column
    `rank` of its own: what its line says.)
    """
    streams = pl.DataFrame(
        [(file, stream, rank) for (file, stream), rank in ranks.by_stream.items()],
        schema={"file": pl.Int64, "stream": pl.String, "_stream_rank": pl.Int64},
        orient="row",
    )
    per_file = pl.DataFrame(
        list(ranks.by_file.items()),
        schema={"file": pl.Int64, "_file_rank": pl.Int64},
        orient="row",
    )
    locals_of = pl.DataFrame(
        list(ranks.file_locals.items()) if ranks.one_node else [],
        schema={"file": pl.Int64, "_file_local": pl.Int64},
        orient="row",
    )
    local = pl.coalesce("local_rank" if ranks.one_node else pl.lit(None), "_file_local")
    unknown = (
        pl.lit(None, dtype=pl.Int64).alias("event_rank"),
        pl.lit(None, dtype=pl.String).alias("process"),
    )
    found = {}
    for name, frame in tables.items():
        if not frame.height:
            found[name] = frame.with_columns(*unknown)
            continue
        # only what tells the rank is joined: a series has a million rows, and many columns
        who = (
            frame.select("file", "stream", "line_rank", "local_rank")
            .join(streams, on=["file", "stream"], how="left", maintain_order="left")
            .join(per_file, on="file", how="left", maintain_order="left")
            .join(locals_of, on="file", how="left", maintain_order="left")
            .with_columns(
                pl.coalesce("line_rank", "_file_rank", "_stream_rank").alias("event_rank")
            )
            .select(
                "event_rank",
                pl.coalesce(
                    pl.format("rank {}", "event_rank"), pl.format("local rank {}", local)
                ).alias("process"),
            )
        )
        found[name] = frame.with_columns(who.get_columns())
    return found
