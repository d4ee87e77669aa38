"""Jobs of one directory that go on from each other's checkpoints: restarts as jobs of their own.

Job B goes on from job A where all of this is known:

* B is configured to load from, or loaded from, a directory that A is configured to save to, or
  saved to; the paths are absolute and equal. What is only loaded from in common is no link: a sweep
  forks from one checkpoint.
* every dated line of A is older than every one of B
* B resumed from a checkpoint of an iteration above 0 that lies between the one A began behind and
  the last one of A
* their models have as many layers of the same width, where both say it

What is linked that way is one training in slices. Anything else stays a job by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.config import START_UP
from hcp_logscan.analysis.progress import run_facts, start_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hcp_logscan.analysis.jobs import Job

    Told = Sequence[tuple[Mapping[str, Any], str]]
    """The facts and the outcome of each attempt of a job, in order."""

MAX_JOBS: Final = 64
"""Jobs of one chain that are looked at: each is analysed for itself."""

_SHAPE: Final = ("num_layers", "hidden_size")
_SECTIONS: Final = ("", "checkpoint")
_LOADED: Final = re.compile(r"load(?:ed|ing) checkpoint from (\S+)")
_SAVED: Final = re.compile(r"checkpoint (?:from|at) iteration +\d{1,18} to (\S+)")
_ABSOLUTE: Final = re.compile(r"/.|[a-z0-9]{1,12}://.")


@dataclass(frozen=True, slots=True)
class Seen:
    """What tells whether one job goes on from another."""

    saves: frozenset[str]
    loads: frozenset[str]
    first: str | None
    "Oldest time stamp; None where no line carries one."

    last: str | None


def facts(
    tables: Mapping[str, pl.DataFrame],
    found: Sequence[Job],
    job: Job,
    mine: Told,
    told: Callable[[Job], Told],
) -> dict[str, Any]:
    """Facts of the table `run` about the chain that ends with `job`, whose attempts are `mine`.

    `tables` are all event tables of the directory, `found` its jobs, newest last; `told` analyses
    another job. A job by itself is a chain of one: the facts are then those of its own attempts.
    """
    chain, jobs = list(mine), [job]
    later = seen(tables, job)
    older = found[: found.index(job)] if len(found) > 1 and job.name else ()
    for candidate in reversed(older):
        earlier = seen(tables, candidate)
        if len(jobs) >= MAX_JOBS or not _linked(earlier, later):
            continue
        attempts = told(candidate)
        trial = [*attempts, *chain]
        if not _goes_on(attempts, chain) or run_facts(trial)["stuck_attempts"] is None:
            continue
        chain, later = trial, earlier
        jobs.insert(0, candidate)
    names = [one.name or "?" for one in jobs] if len(jobs) > 1 else []
    came = run_facts(chain)
    return {
        "chain_jobs": names,
        "chain_text": f"[{' → '.join(names)}]" if names else "",
        "chain_attempts": len(chain),
        **{f"chain_{name}": came[name] for name in _PROGRESS},
    }


_PROGRESS: Final = ("net_iterations", "lost_iterations", "stuck_attempts", "stuck_iteration")


def seen(tables: Mapping[str, pl.DataFrame], job: Job) -> Seen:
    """What the logs of one job say of directories and times."""
    here = pl.col("file").is_in(list(job.files))
    stated = tables["config"].filter(
        here
        & pl.col("source").is_in(START_UP)
        & pl.col("section").fill_null("").is_in(_SECTIONS)
        & pl.col("key").is_in(["save", "load"])
    )
    values: dict[str, set[str]] = {"save": set(), "load": set()}
    for key, value in stated.select("key", "value").unique().iter_rows():
        values[key].add((value or "").strip("'\" "))
    lines = tables["checkpoints"].filter(here)["text"].drop_nulls().unique().to_list()
    values["load"].update(match[1] for text in lines if (match := _LOADED.search(text)))
    values["save"].update(match[1] for text in lines if (match := _SAVED.search(text)))
    times = pl.concat(
        [tables[name].filter(here).select("time") for name in ("iterations", "marks", "exits")]
    )["time"].drop_nulls()
    first, last = (None, None) if not times.len() else (str(times.min()), str(times.max()))
    return Seen(_paths(values["save"]), _paths(values["load"]), first, last)


def _paths(texts: set[str]) -> frozenset[str]:
    return frozenset(text.rstrip("/") for text in texts if _ABSOLUTE.match(text))


def _linked(earlier: Seen, later: Seen) -> bool:
    """Whether directories and times let one job go on from another."""
    if earlier.last is None or later.first is None or earlier.last >= later.first:
        return False
    return not earlier.saves.isdisjoint(later.loads)


def _goes_on(earlier: Told, later: Told) -> bool:
    """Whether the first attempt of `later` took up a checkpoint of `earlier`."""
    begun = [start for known, _ in earlier if (start := start_of(known)) is not None]
    reached = [
        known[name]
        for known, _ in earlier
        for name in ("last_iteration", "last_saved")
        if known[name] is not None
    ]
    resumed = next((k["resumed_from"] for k, _ in later if k["resumed_from"] is not None), None)
    if not begun or not resumed or not begun[0] <= resumed <= max([*begun, *reached]):
        return False
    shapes = (_shape(earlier), _shape(later))
    return all(a is None or b is None or a == b for a, b in zip(*shapes, strict=True))


def _shape(attempts: Told) -> list[Any]:
    return [attempts[-1][0].get(name) for name in _SHAPE]
