"""Facts and verdict of one attempt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import (
    config,
    evidence,
    flops,
    formula,
    gpus,
    progress,
    runtime,
    sequences,
    steady,
    stragglers,
    topology,
)
from hcp_logscan.analysis.facts import schema
from hcp_logscan.analysis.verdict import measured_against_configured, verdict
from hcp_logscan.model.said import N_, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.analysis.failures import Failures
    from hcp_logscan.analysis.ranks import Coverage
    from hcp_logscan.model.finding import Evidence, Verdict
    from hcp_logscan.model.report import AttemptOutcome, Peak, RankGroups


_TERMINATED: Final = frozenset({"preempted", "requeued", "cancelled", "node_failure", "signal"})


@dataclass(frozen=True, slots=True)
class AttemptAnalysis:
    """One attempt: its facts and its verdict."""

    attempt: int
    facts: Mapping[str, Any]
    config: config.Config
    verdict: Verdict
    outcome: AttemptOutcome
    started: str | None
    ended: str | None
    topology: tuple[RankGroups, ...]
    peak: Peak | None


@dataclass(frozen=True, slots=True)
class Unsure:
    """What may be another attempt's, in a job whose attempts differ in their CP configuration."""

    iterations: bool = False
    dumps: bool = False
    "Flight-recorder dumps do not say which attempt wrote them."

    def weakened(self, piece: Evidence) -> Evidence:
        """The piece at grade C where it rests on what may be another attempt's."""
        shaky = (self.iterations and piece.says == "inactive") or (
            self.dumps and piece.channel == "flight_recorder"
        )
        return replace(piece, grade="C") if shaky else piece


def analyse_attempt(
    number: int,
    events: Mapping[str, pl.DataFrame],
    series: pl.DataFrame,
    *,
    known: config.Config,
    failed: Failures,
    coverage: Coverage,
    names: Sequence[str],
    unsure: Unsure,
    hardware: gpus.Hardware,
    stated: gpus.Stated,
    across: Mapping[str, Any],
) -> AttemptAnalysis:
    """Facts, evidence and verdict of one attempt.

    `events` are all event tables of the job with `attempt` and `event_rank`, `series` is the fact
    table `iterations`, `names` are the file names by index, `across` the facts that compare this
    attempt with earlier ones.
    """
    mine = {
        table: frame.filter(pl.col("attempt") == number) if frame.height else frame
        for table, frame in events.items()
    }
    rows = series.filter(pl.col("attempt") == number)
    facts: dict[str, Any] = dict.fromkeys(schema("attempts"))
    facts.update(known.facts)
    facts.update(
        attempt=number,
        framework=_framework(known, mine),
        config_complete=known.complete,
        config_conflicts=list(known.conflicts),
        decentralized_pg=_decentralized(known, mine),
        saved_config_requests_hcp=known.saved_requests_hcp,
        sequences_vary=sequences.vary(known, mine["attention_lines"]),
        data_seq_length=sequences.length_of_data(known),
        ranks_seen=list(coverage.seen),
        ranks_missing=None if coverage.missing is None else list(coverage.missing),
    )
    facts["te_version"] = facts["te_version"] or _engine_version(mine["attention_lines"])
    facts["te_version_code"] = config.version_code(facts["te_version"])
    facts.update(_progress(mine, rows, known, coverage))
    facts.update(_memory(mine["rank_lines"]))
    facts.update(_broken(mine, failed))
    facts.update(across)
    facts.update(steady.facts(*steady.steady(rows)))
    facts.update(stragglers.facts(mine, facts["world_size"]))
    facts.update(gpus.facts(hardware, facts["precision"], stated, rows))
    outcome = _outcome(facts, mine, failed)
    facts.update(progress.attempt_facts(mine, facts, outcome))
    padded = formula.padded_vocabulary(mine["marks"])
    shape = flops.shape(known, padded)
    rate, peak = facts["tflops_median"], facts["peak_tflops"]
    facts.update(flops.facts(shape, facts["cp_size"], rate, peak))
    facts.update(formula.facts(known, padded, rows, vary=facts["sequences_vary"]))
    view = evidence.AttemptView(number, facts, known, mine, names)
    pieces = evidence.collect(view)
    pieces = tuple(unsure.weakened(piece) for piece in pieces)
    facts.update(runtime.facts(view, pieces))
    pp_before_dp = config.states_true(known, "use_tp_pp_dp_mapping")
    groups = topology.topology(mine, topology.layout_of(facts, pp_before_dp=pp_before_dp))
    decided = verdict(facts, pieces, len(coverage.seen), topology.wrong(groups))
    facts["verdict_status"] = decided.status
    facts.update(formula.explanation(facts, shape, hardware))
    facts.update(runtime.disagreement(decided.status, pieces))
    if measured_against_configured(pieces):
        facts["config_conflicts"] = [*facts["config_conflicts"], N_("configured against measured")]
    times = pl.concat(
        [mine[table].select("time") for table in ("iterations", "marks", "exits")]
    ).drop_nulls()["time"]
    return AttemptAnalysis(
        number,
        facts,
        known,
        decided,
        outcome,
        _iso(times.min()),
        _iso(times.max()),
        groups,
        gpus.peak(hardware, facts["precision"], stated),
    )


def _engine_version(lines: pl.DataFrame) -> str | None:
    """Transformer Engine's version as its own debug lines say it."""
    versions = lines["te_version"].drop_nulls()
    return str(versions[0]) if versions.len() else None


def _iso(time: object) -> str | None:
    return str(time).replace(" ", "T") if time is not None else None


def _framework(known: config.Config, mine: Mapping[str, pl.DataFrame]) -> str | None:
    """The trainer, by the shape of its step lines, else by its configuration.

    Many trainers print Megatron's own line: a line of another shape beside it says more.
    """
    lines = [mine[table]["producer"].drop_nulls() for table in ("iterations", "steps")]
    producers = pl.concat(lines)
    telling = producers.filter(producers != "megatron")
    if telling.len():
        most = telling.value_counts().sort("count", "producer", descending=[True, False])
        return str(most["producer"][0])
    if config.value_of(known, "context_parallel_algo"):
        return "mindspeed"
    sources = {block.source for block in known.blocks}
    if sources & {"bridge_yaml", "bridge_summary"}:
        return "megatron-bridge"
    if sources & {"args_dump", "world_size_line"}:
        return "megatron-lm"
    return None


def _decentralized(known: config.Config, mine: Mapping[str, pl.DataFrame]) -> bool | None:
    grids = mine["paths"].filter(pl.col("kind") == "hyper_comm_grid")["grid_cp"].to_list()
    cp_size = known.facts["cp_size"]
    if any(cp is None or cp_size is None or cp == cp_size for cp in grids):
        return True  # a grid of another CP size is another module's, such as a vision tower's
    if mine["paths"].filter(pl.col("kind") == "mpu").height:
        return False
    if grids:
        return None
    stated = known.facts["use_decentralized_pg"]
    return bool(stated) if stated is not None else None


def _progress(
    mine: Mapping[str, pl.DataFrame],
    rows: pl.DataFrame,
    known: config.Config,
    coverage: Coverage,
) -> dict[str, Any]:
    marks = set(mine["marks"]["kind"].to_list())
    rows = rows.filter("finished")
    finished = rows.height
    start_up = any(mine[table].height for table in ("paths", "versions", "marks")) or any(
        block.source in config.START_UP for block in known.blocks
    )
    announced = bool(marks & {"training", "step"} or finished) or (False if start_up else None)
    rank0 = "training" in marks or start_up
    world_size = known.facts["world_size"]
    numbered = rows["iteration"].drop_nulls()
    skipped, nans = rows["skipped_iterations"].drop_nulls(), rows["nan_iterations"].drop_nulls()
    loaded = mine["checkpoints"].filter(pl.col("kind") == "loaded")["iteration"]
    planned = rows["train_iters"].drop_nulls()
    return {
        "training_announced": announced,
        "training_done": "training_done" in marks or (False if rank0 else None),
        "planned_exit": bool(marks & {"planned_exit", "signal_exit"}) or (False if rank0 else None),
        "iterations_finished": finished,
        "first_iteration": numbered.min(),
        "last_iteration": numbered.max(),
        "train_iters": planned.max() if planned.len() else known.facts["train_iters"],
        "last_rank_logged": _last_rank_logged(mine, finished, coverage, world_size),
        "resumed_from": loaded.max() if loaded.len() else None,
        "skipped_iterations": skipped.sum() if skipped.len() else None,
        "nan_iterations": nans.sum() if nans.len() else None,
        "loss_scaled": _loss_scaled(rows),
        "late_skipped_share": _late_skipped_share(rows),
    }


def _last_rank_logged(
    mine: Mapping[str, pl.DataFrame],
    finished: int,
    coverage: Coverage,
    world_size: int | None,
) -> bool | None:
    """Whether the rank that prints iteration lines was logged.

    A console in which the last rank is named holds it; one file of unknown rank may be anybody's.
    """
    if finished:
        return True
    if world_size == 1:
        return True
    ranks = coverage.ranks
    if (ranks.files_tell or ranks.lines_tell) and world_size is not None:
        return world_size - 1 in coverage.seen
    named = {*mine["rank_lines"]["rank"].to_list(), *mine["exits"]["rank"].to_list()} - {None}
    if world_size is not None:
        return True if world_size - 1 in named else None
    return True if mine["exits"].height or len(named) > 1 else None


def _memory(lines: pl.DataFrame) -> dict[str, Any]:
    """The most memory that a rank printed; nothing where ranks print other units."""
    printed = lines.drop_nulls(["max_allocated", "memory_unit"])
    most = printed["max_allocated"].max() if printed["memory_unit"].n_unique() == 1 else None
    if most is None:
        return {}
    return {"memory_max_allocated": most, "memory_unit": printed["memory_unit"][0]}


def _loss_scaled(rows: pl.DataFrame) -> bool | None:
    scales = rows["loss_scale"].drop_nulls()
    return bool((scales != 1.0).any()) if scales.len() else None


def _late_skipped_share(rows: pl.DataFrame) -> float | None:
    """Share of skipped iterations behind the loss scale search of the start.

    Dynamic loss scaling starts high and halves at every overflow: the leading rows with skipped
    iterations are that search, not a failure.
    """
    counted = rows.drop_nulls(["skipped_iterations", "interval_iterations"])
    if not counted.height:
        return None
    late = counted.filter((pl.col("skipped_iterations") == 0).cum_max())
    total = float(late["interval_iterations"].sum())
    return float(late["skipped_iterations"].sum()) / total if total else 0.0


def _broken(mine: Mapping[str, pl.DataFrame], failed: Failures) -> dict[str, Any]:
    refused = mine["assertions"]
    roots = [r for r in failed.rows if r["kind"] == "exception" and r["role"] == "root"]
    ended = [
        r
        for r in failed.rows
        if r["kind"] not in {"cause", "suspect"}
        and (r["role"] in {"root", "cascade"} or (r["kind"] == "exit" and r["role"] is None))
    ]
    first = failed.first or {}
    return {
        "rejections": _rejections(refused),
        "rejection_check": refused["check"][0] if refused.height else None,
        "rejection_text": _refusal(refused) if refused.height else None,
        "root_exceptions": len(roots),
        "exception_type": first.get("exception_type"),
        "exception_message": first.get("message"),
        "exception_rank": first.get("rank"),
        "failures": len(
            {r["rank"] if r["rank"] is not None else (r["file"], r["line"]) for r in ended}
        ),
        "culprit_ranks": list(failed.culprits),
        "elastic_root_rank": failed.elastic_root_rank,
        "elastic_root_role": failed.elastic_root_role,
        **failed.facts,
    }


def _rejections(rows: pl.DataFrame) -> int:
    """Ranks that were refused: told apart by rank, else the most that one file shows."""
    if not rows.height:
        return 0
    known = rows["rank"].drop_nulls().n_unique()
    per_file = rows.group_by("file").len()["len"].max()
    return max(known, int(str(per_file or 0)))


def _refusal(refused: pl.DataFrame) -> str:
    message = refused["message"][0]
    return str(message) if message else say("a bare assertion ({check})", check=refused["check"][0])


def _outcome(
    facts: Mapping[str, Any], mine: Mapping[str, pl.DataFrame], failed: Failures
) -> AttemptOutcome:
    finished, marks = facts["iterations_finished"], set(mine["marks"]["kind"].to_list())
    roots = [r for r in failed.rows if r["role"] == "root"]
    signals, causes = {r.get("signal") for r in roots}, {r.get("cause") for r in roots}
    if facts["rejections"] and not finished:
        return "rejected"
    if "time_limit" in causes:
        return "time_limit"
    if causes & _TERMINATED or "signal_exit" in marks:
        return "terminated"
    if "SIGKILL" in signals or "host_oom" in causes:
        return "killed"
    if facts["failures"] or roots:
        return "failed"
    if facts["training_done"] or "planned_exit" in marks:
        return "completed"
    if finished and facts["train_iters"] and facts["last_iteration"] == facts["train_iters"]:
        return "completed"
    if not finished and facts["training_announced"] is False:
        return "no_training"
    return "unknown"
