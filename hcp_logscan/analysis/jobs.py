"""Which job a file belongs to. A directory that holds several jobs is split; the newest is judged.

Ids come from paths (`sources.layouts`). Equal torchrun run ids under different directories are the
nodes of one job unless two of them hold their own start-up block: `none` is everybody's default id.
Different Slurm ids are jobs of their own where two of them hold one, or steps of a trainer that
prints none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from hcp_logscan.analysis.config import START_UP
from hcp_logscan.analysis.restarts import GOES_ON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.engine.run import Tables
    from hcp_logscan.sources.discover import LogFile


@dataclass(frozen=True, slots=True)
class Job:
    """One job and its files."""

    name: str | None
    "None where no path carries an id."

    files: tuple[int, ...]
    "Indices into the list of files."

    newest: str | None
    "Newest time stamp in its logs; None where no line carries one."


def newest_times(tables: Tables) -> Mapping[int, str]:
    """File index -> newest time stamp of its lines, as printed (they sort as text)."""
    stamps = [tables[table].select("file", "time") for table in ("iterations", "marks", "exits")]
    frame = pl.concat(stamps).drop_nulls().group_by("file").agg(pl.col("time").max())
    return dict(frame.iter_rows())


def _with_start_up(tables: Tables) -> set[int]:
    return set(tables["blocks"].filter(pl.col("source").is_in(START_UP))["file"].to_list())


def _with_steps(tables: Tables) -> set[int]:
    """Files with steps of trainers that print no start-up block."""
    steps = tables["iterations"].filter(pl.col("producer").is_in(GOES_ON))["file"].to_list()
    begun = tables["marks"].filter(pl.col("kind") == "step")["file"].to_list()
    return {*steps, *begun}


def _torchrun_names(files: Sequence[LogFile], starts: set[int]) -> dict[int, str]:
    """Names of torchrun jobs, one per launch directory where a run id was used twice."""
    launches: dict[str, dict[str, list[int]]] = {}
    for index, file in enumerate(files):
        hints = file.hints
        if hints.job_kind == "torchrun" and hints.job and hints.launch:
            launches.setdefault(hints.job, {}).setdefault(hints.launch, []).append(index)
    names: dict[int, str] = {}
    for job, places in launches.items():
        own = [launch for launch, members in places.items() if starts.intersection(members)]
        for launch, members in places.items():
            twice = len(own) > 1 and launch in own
            name = launch.rpartition("/")[2] if twice else job
            names.update(dict.fromkeys(members, name))
    return names


def _deepest_shared(name: str, others: Mapping[str, list[str]]) -> str | None:
    """The job whose files share the longest directory with `name`, if that is one job alone."""
    folder = name.split("/")[:-1]

    def depth(path: str) -> int:
        parts = path.split("/")[:-1]
        same = 0
        while same < min(len(parts), len(folder)) and parts[same] == folder[same]:
            same += 1
        return same

    best = {job: max(depth(path) for path in paths) for job, paths in others.items()}
    top = max(best.values())
    winners = [job for job, value in best.items() if value == top]
    return winners[0] if len(winners) == 1 and top > 0 else None


def split(tables: Tables) -> tuple[Job, ...]:
    """The jobs of a run directory, newest last."""
    files = tables.found.files
    starts = _with_start_up(tables)
    names: dict[int, str] = _torchrun_names(files, starts)
    slurm = {
        index: file.hints.job
        for index, file in enumerate(files)
        if file.hints.job_kind == "slurm" and file.hints.job
    }
    own = starts | _with_steps(tables)
    if len({job for index, job in slurm.items() if index in own}) < 2:
        slurm = dict.fromkeys(slurm, max(slurm.values(), key=_natural)) if slurm else {}
    if len(set(slurm.values())) > 1 or not names:
        names = slurm if len(set(names.values())) <= 1 else {**names, **slurm}
    elif len(set(names.values())) == 1 and len(set(slurm.values())) == 1:
        names = {**dict.fromkeys(names, next(iter(slurm.values()))), **slurm}
    times = newest_times(tables)
    if len(set(names.values())) <= 1:
        name = next(iter(names.values()), None)
        every = tuple(range(len(files)))
        return (Job(name, every, max(times.values(), default=None)),)

    by_job: dict[str, list[str]] = {}
    for index, job in names.items():
        by_job.setdefault(job, []).append(files[index].name)
    members: dict[str, list[int]] = {}
    for index, file in enumerate(files):
        job = names.get(index) or _deepest_shared(file.name, by_job) or f"({file.name})"
        members.setdefault(job, []).append(index)
    jobs = [
        Job(job, tuple(indices), max((times[i] for i in indices if i in times), default=None))
        for job, indices in members.items()
    ]
    return tuple(sorted(jobs, key=lambda job: (job.newest or "", _natural(job.name or ""))))


def _natural(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdecimal() else (-1, name)


def restrict(tables: Tables, job: Job) -> dict[str, pl.DataFrame]:
    """The event tables of one job."""
    if len(job.files) == len(tables.found.files):
        return dict(tables.frames)
    return {
        name: frame.filter(pl.col("file").is_in(list(job.files)))
        for name, frame in tables.frames.items()
    }
