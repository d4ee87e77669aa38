"""One run, from its event tables to facts and verdicts: the order of the steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import (
    activity,
    attempts,
    cause_rows,
    chain,
    config,
    failures,
    frames,
    gpus,
    iterations,
    jobs,
    phase,
    progress,
    ranks,
    resumed,
    rotated,
    sequences,
    skew,
    story,
    timeline,
    world,
)
from hcp_logscan.analysis.attempt import AttemptAnalysis, Unsure, analyse_attempt
from hcp_logscan.analysis.health import health_of
from hcp_logscan.analysis.hosts import hosts
from hcp_logscan.analysis.rank_rows import rank_rows
from hcp_logscan.analysis.witnesses import local_ranks, witnesses
from hcp_logscan.engine.run import Tables, merge
from hcp_logscan.engine.start import started
from hcp_logscan.model.errors import NothingUnderstoodError, UsageError
from hcp_logscan.model.report import Health, RankRow, Unreadable
from hcp_logscan.model.said import N_
from hcp_logscan.sources.discover import Selection, discover
from hcp_logscan.sources.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from hcp_logscan.analysis.jobs import Job
    from hcp_logscan.analysis.ranks import RankMap
    from hcp_logscan.engine.pool import Begun
    from hcp_logscan.model.finding import Suppression, Verdict
    from hcp_logscan.model.report import Story, TimelineEntry
    from hcp_logscan.sources.discover import LogFile
    from hcp_logscan.sources.place import Place

_NO_RUN: Final = frozenset({"gpus", "drift"})
"""Event tables that job scripts and strangers fill, too: they make no training log."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says where the logs do not."""

    selection: Selection = field(default_factory=Selection)
    world_size: int | None = None
    job: str | None = None
    stated: gpus.Stated = field(default_factory=gpus.Stated)


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything the rules and the report are made from."""

    name: str
    names: Sequence[str]
    "File names by index: location columns of `facts` and `events` already hold the names."

    paths: Sequence[Place]
    "Where to open them again."

    jobs: tuple[Job, ...]
    "Newest last."

    job: Job
    "The judged one."

    attempts: tuple[AttemptAnalysis, ...]
    judged: int
    "Number of the attempt whose verdict is the run's."

    facts: Mapping[str, pl.DataFrame]
    "The fact tables, by name."

    events: Mapping[str, pl.DataFrame]
    "The event tables with `attempt`, `rank`, `file` (a name), `line`, `text` first, by name."

    health: Health
    ranks: tuple[RankRow, ...]
    hosts: tuple[str, ...]
    "Names of hosts and pods, as far as the structure of the logs gives them away."

    stories: tuple[Story, ...] = ()
    "That of the run first, then one per attempt."

    timeline: tuple[TimelineEntry, ...] = ()
    suppress: tuple[Suppression, ...] = ()
    "Which findings the run's own settings file accepts; whether they are is not decided here."
    clocks: skew.Skew = skew.NO_SKEW

    @property
    def verdict(self) -> Verdict:
        """That of the judged attempt."""
        return next(a.verdict for a in self.attempts if a.attempt == self.judged)


def examine(
    run_dir: str | PathLike[str],
    options: Options | None = None,
    *,
    workers: int | None = 1,
    engine: str = "local",
    scheduler: str | None = None,
    scan: Begun | None = None,
) -> Analysis:
    """Discover, scan and analyse one run directory, file or stream.

    `scan` is a scan of it that has begun. Raises SourceError, EngineError, NothingUnderstoodError,
    or UsageError for a job that is not there.
    """
    options = options or Options()
    if scan is not None:
        return analyse(merge(scan.found, scan.results()), options)
    found = discover(run_dir, options.selection)
    with started(found, engine=engine, workers=workers, scheduler=scheduler) as begun:
        return analyse(merge(found, begun.results()), options)


def _pick(found: Sequence[Job], wanted: str | None) -> Job:
    if wanted is None:
        return found[-1]
    for job in found:
        if job.name == wanted:
            return job
    known = ", ".join(job.name or "(no id)" for job in found)
    raise UsageError(f"no job {wanted} in these logs. Jobs found: {known}.")


def analyse(tables: Tables, options: Options | None = None, *, chained: bool = True) -> Analysis:
    """Event tables -> facts and verdicts. Raises as `examine` does.

    `chained` looks for the jobs that the judged one goes on from.
    """
    options = _with_settings(options or Options(), tables.found.settings)
    if not _understood(tables):
        raise NothingUnderstoodError(_not_understood(tables))
    found = jobs.split(tables)
    job = _pick(found, options.job)
    files = tables.found.files
    events = jobs.restrict(tables, job)
    events = {**events, "blocks": attempts.own_blocks(events["blocks"])}
    cut = attempts.boundaries(events, files, job.files)
    bounds = cut.frame
    events = attempts.assign(events, bounds)
    numbers = sorted(set(bounds["attempt"].to_list()) - _saved_only(bounds, tables, job)) or [0]
    configs = {n: _config(events, n) for n in numbers}
    told = {n: world.said_by(known) for n, known in configs.items()}
    world_size, elsewhere, rank_map, events = _ranked(events, files, job, configs, options)
    coverage = ranks.coverage(rank_map, events, world_size)
    for known in configs.values():
        if world_size is not None:
            _override(known, world_size)
    logs = rotated.parts_of(files, job.files)
    series = iterations.facts(
        rotated.joined({name: events[name] for name in iterations.TABLES}, logs),
        {n: _geometry(c, _of(events, "attention_lines", n)) for n, c in configs.items()},
    )
    series = rotated.apart(series, logs)
    nodes = {i: node for i in job.files if (node := files[i].hints.node)}
    mine = cause_rows.of_job(events["causes"], job.name)
    events["causes"] = cause_rows.spread(mine, events, numbers, nodes)
    local_to_rank = local_ranks(events, rank_map, files, world_size)
    clocks = skew.skew(events, files, job.files)
    ends = activity.ends(tables.stats, rank_map.by_file)
    heard = witnesses(
        tables,
        events,
        job,
        coverage,
        one_attempt=len(numbers) == 1,
        last=activity.last_words(ends, events, clocks),
    )
    failed = {
        n: failures.failures(
            events,
            n,
            now=phase.reached(events, n, *_last(series, n)),
            config=configs[n].facts,
            local_to_rank=local_to_rank,
            witnesses=heard,
            clocks=clocks,
        )
        for n in numbers
    }
    events["assertions"] = frames.assertions(events, failed)
    names = [file.name for file in files]
    differ = len({_cp_of(known) for known in configs.values()}) > 1
    unsure = Unsure(iterations=differ and cut.guessed, dumps=differ)
    hardware = gpus.hardware(events["gpus"], options.stated)
    across = resumed.facts(series, {n: known.facts for n, known in configs.items()})
    for n, known in configs.items():
        if known.facts["world_size"] is not None:
            across[n]["world_size_source"] = told[n] or elsewhere
    analysed = tuple(
        analyse_attempt(
            n,
            events,
            series,
            known=configs[n],
            failed=failed[n],
            coverage=coverage,
            names=names,
            unsure=unsure,
            hardware=hardware,
            stated=options.stated,
            across=across[n],
        )
        for n in numbers
    )
    health = health_of(tables, events, job, coverage)
    judged = _judged(analysed)
    came = progress.run_facts([(a.facts, a.outcome) for a in analysed])
    if chained:
        came |= _chain(tables, found, job, analysed, options)
    run_facts = frames.run_frame(judged, events, health, coverage, analysed, came)
    return Analysis(
        name=tables.found.name,
        names=names,
        paths=[file.path for file in files],
        jobs=found,
        job=job,
        attempts=analysed,
        judged=judged,
        facts={
            "attempts": frames.attempt_frame(analysed),
            "iterations": frames.located(series, names),
            "failures": frames.located(failures.frame([failed[n] for n in numbers]), names),
            "run": run_facts,
        },
        events=frames.public(events, health, names),
        health=health,
        ranks=rank_rows(coverage, events, files, ends, failed[numbers[-1]].rows),
        hosts=hosts(events, files),
        stories=_stories(
            analysed,
            failed,
            run_facts.row(0, named=True),
            names,
            {n: progress.milestones(events, series, n) for n in numbers},
        ),
        suppress=tables.found.settings.suppress,
        timeline=timeline.timeline(events, series, failed, names, clocks),
        clocks=clocks,
    )


def _ranked(
    events: Mapping[str, pl.DataFrame],
    files: Sequence[LogFile],
    job: Job,
    configs: Mapping[int, config.Config],
    options: Options,
) -> tuple[int | None, str, RankMap, dict[str, pl.DataFrame]]:
    """The number of ranks and who says it, whose file each is, and the events with their ranks."""
    world_size = options.world_size or _world_size(configs)
    source = N_("the user, not from the logs") if options.world_size else N_("another attempt")
    rank_map = ranks.resolve(events, files, job.files, world_size)
    events = ranks.with_ranks(events, rank_map)
    if world_size is None and (proven := _proven_world(events, rank_map, configs)):
        world_size, source = proven
        rank_map = ranks.resolve(events, files, job.files, world_size)
        events = ranks.with_ranks(events, rank_map)
    return world_size, source, rank_map, events


def _chain(
    tables: Tables,
    found: Sequence[Job],
    job: Job,
    analysed: Sequence[AttemptAnalysis],
    options: Options,
) -> dict[str, Any]:
    """Facts about the jobs that the judged one goes on from."""

    def told(other: Job) -> list[tuple[Mapping[str, Any], str]]:
        each = analyse(tables, replace(options, job=other.name), chained=False).attempts
        return [(a.facts, a.outcome) for a in each]

    mine = [(a.facts, a.outcome) for a in analysed]
    return chain.facts(tables.frames, found, job, mine, told)


def _with_settings(options: Options, own: Settings) -> Options:
    """The options, and where they say nothing the run's own settings. Raises UsageError."""
    given = options.stated
    stronger = Settings(options.world_size, given.gpu, given.precision, given.peak_tflops)
    said = own.under(stronger)
    if said.gpu is not None:
        gpus.required(said.gpu)
    stated = gpus.Stated(said.gpu, said.precision, said.peak_tflops)
    return replace(options, world_size=said.world_size, stated=stated)


def _stories(
    analysed: Sequence[AttemptAnalysis],
    failed: Mapping[int, failures.Failures],
    run: Mapping[str, Any],
    names: Sequence[str],
    marks: Mapping[int, Mapping[str, Mapping[str, Any]]],
) -> tuple[Story, ...]:
    each = [
        story.of_attempt(a.attempt, failed[a.attempt], a.facts, a.outcome, names, marks[a.attempt])
        for a in analysed
    ]
    told = [(a.attempt, a.facts, a.outcome) for a in analysed]
    return (story.of_run(each, told, run), *each)


def _understood(tables: Tables) -> bool:
    """Whether a line of a trainer or launcher was recognised."""
    if not any(stats.recognised for stats in tables.stats):
        return False
    told = (frame.height for name, frame in tables.frames.items() if name not in _NO_RUN)
    return any(told)


def _not_understood(tables: Tables) -> str:
    unreadable = [*tables.found.unreadable]
    unreadable += [
        Unreadable(file.name, stats.error)
        for file, stats in zip(tables.found.files, tables.stats, strict=True)
        if stats.error
    ]
    read = len(tables.found.files)
    if unreadable:
        first = unreadable[0]
        return (
            f"nothing understood: {len(unreadable)} file(s) could not be read, for example"
            f" {first.file} ({first.why})."
        )
    return (
        f"nothing understood: not one line of {read} file(s) was recognised as a trainer's or"
        " launcher's. Is this the run's log directory?"
    )


def _saved_only(bounds: pl.DataFrame, tables: Tables, job: Job) -> set[int]:
    """Attempts that hold saved configurations and nothing else: no attempt at all."""
    logs = {i for i in job.files if tables.found.files[i].kind == "log"}
    with_logs = set(bounds.filter(pl.col("file").is_in(list(logs)))["attempt"].to_list())
    return set(bounds["attempt"].to_list()) - with_logs if with_logs else set()


def _of(events: Mapping[str, pl.DataFrame], table: str, attempt: int) -> pl.DataFrame:
    return events[table].filter(pl.col("attempt") == attempt)


def _config(events: Mapping[str, pl.DataFrame], attempt: int) -> config.Config:
    """The configuration of one attempt. Saved configurations belong to every attempt."""
    mine = (pl.col("attempt") == attempt) | (pl.col("source") == "saved_yaml")
    blocks = config.blocks_of(events["config"].filter(mine), events["blocks"].filter(mine))
    versions = dict(
        _of(events, "versions", attempt).select("package", "version").reverse().iter_rows()
    )
    trained = any(_of(events, table, attempt).height for table in ("iterations", "steps"))
    return config.effective(blocks, versions, trained=trained)


def _geometry(known: config.Config, attention_lines: pl.DataFrame) -> iterations.Geometry:
    return iterations.Geometry(
        length=sequences.trained_length(known, attention_lines),
        world_size=known.facts["world_size"],
        cp_size=known.facts["cp_size"],
        precision=known.facts["precision"],
    )


def _cp_of(known: config.Config) -> str:
    """What decides about context parallelism, to compare the attempts by."""
    return repr([known.facts[name] for name in ("cp_size", "cp_comm_type", "hcp_sizes_set")])


def _override(known: config.Config, world_size: int) -> None:
    facts = known.facts
    if isinstance(facts, dict) and facts["world_size"] is None:
        facts["world_size"] = world_size


def _world_size(configs: Mapping[int, config.Config]) -> int | None:
    """The world of the last attempt that says it."""
    sizes = [known.facts["world_size"] for known in configs.values()]
    return next((size for size in reversed(sizes) if size), None)


def _proven_world(
    events: Mapping[str, pl.DataFrame], rank_map: RankMap, configs: Mapping[int, config.Config]
) -> world.World | None:
    """The world that no configuration says, as far as the events prove it."""
    return world.proven(events, rank_map.seen(events), [known.facts for known in configs.values()])


def _last(series: pl.DataFrame, attempt: int) -> tuple[int | None, int | None, int | None]:
    """The last finished iteration, how many its line covers, and how many are planned."""
    rows = series.filter((pl.col("attempt") == attempt) & pl.col("finished")).drop_nulls(
        "iteration"
    )
    if not rows.height:
        return None, None, None
    last = rows.row(rows["iteration"].arg_max() or 0, named=True)
    return last["iteration"], last["interval_iterations"], last["train_iters"]


def _judged(analysed: Sequence[AttemptAnalysis]) -> int:
    """The last attempt with a finished iteration, else the last."""
    trained = [a.attempt for a in analysed if a.facts["iterations_finished"]]
    return trained[-1] if trained else analysed[-1].attempt
