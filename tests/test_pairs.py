"""Every launcher with every trainer that it is met with: the whole chain, on composed runs."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from channels import write
from compose import Job
from trainers import LAUNCHERS, PAIRS, RANKS, TRAINERS, UNTELLING, WHY_NOT, crashed

from hcp_logscan.analysis.run import Options, examine
from hcp_logscan.rules.judge import judge
from hcp_logscan.rules.load import load_rules

if TYPE_CHECKING:
    from pathlib import Path

    from hcp_logscan.rules.load import Rule

CASES = [(trainer, launcher) for trainer, mine in PAIRS.items() for launcher in mine]
JUDGED = frozenset(CASES[::6]) | {(trainer, mine[0]) for trainer, mine in PAIRS.items()}
"""Rules look at facts, which are the same whatever the launcher: some of the runs do for them."""


@functools.cache
def rules() -> tuple[Rule, ...]:
    return tuple(load_rules())


@pytest.mark.parametrize(("trainer", "launcher"), CASES)
def test_a_trainer_is_read_through_its_launcher(
    trainer: str, launcher: str, tmp_path: Path
) -> None:
    truth = TRAINERS[trainer]
    job = Job(layout=launcher)
    files = LAUNCHERS[launcher](job, crashed(truth.lines(job)))
    run = write(files, tmp_path / "run")
    found = examine(run, Options(world_size=RANKS if truth.untold else None))

    assert len(found.attempts) == 1
    facts, series = found.attempts[0].facts, found.facts["iterations"]
    assert facts["framework"] == truth.framework
    assert (facts["iterations_finished"], found.attempts[0].outcome) == (3, "failed")
    assert truth.agrees(series["lm_loss"].to_list()[-1], facts["tflops_median"])
    assert found.verdict.status == truth.verdict
    told = launcher not in UNTELLING
    raised = set(found.events["tracebacks"]["rank"].to_list())
    assert raised == (set(range(RANKS)) if told else {None})
    stepped = set(series["rank"].to_list())
    assert stepped == {truth.step_rank if told or trainer == "primus" else None}
    if (trainer, launcher) in JUDGED:
        fired = judge(rules(), found.facts, found.events)[1]
        assert [one.rule for one in fired if one.severity != "note"] == ["HCP508"]


def test_every_pair_that_does_not_occur_has_a_reason() -> None:
    assert set(PAIRS) == set(TRAINERS)
    met = {launcher for mine in PAIRS.values() for launcher in mine}
    assert met == set(LAUNCHERS) == set(WHY_NOT)


AGAIN = (
    ("torchtitan", "srun_label"),
    ("torchtitan", "slurm_tasks"),
    ("torchtitan", "role"),
    ("verl", "ray_bare"),
    ("nemo-rl", "sbatch"),
    ("nemo-1", "slurm_tasks"),
    ("nanotron", "console"),
    ("megatron-0.9", "slurm_tasks"),
    ("megatron-main", "sbatch"),
    ("bridge-main", "slurm_nodes"),
    ("megatron-deepspeed", "deepspeed"),
)
"""What marks a second start differs: a configuration, torchrun's or srun's words, step numbers."""


@pytest.mark.parametrize(("trainer", "launcher"), AGAIN)
def test_a_second_start_in_the_same_files_is_a_second_attempt(
    trainer: str, launcher: str, tmp_path: Path
) -> None:
    truth, job = TRAINERS[trainer], Job(layout=launcher, attempts=2)
    lines = [line for line in truth.lines(Job(layout=launcher)) if line.attempt == 0]
    later = [
        replace(line, attempt=1, text=line.text.replace("2026-03-01 09:", "2026-03-01 11:"))
        for line in crashed(lines)
    ]
    run = write(LAUNCHERS[launcher](job, lines + later), tmp_path / "run")
    found = examine(run, Options(world_size=RANKS if truth.untold else None))

    assert [one.facts["iterations_finished"] for one in found.attempts] == [3, 3]
    assert [one.outcome == "failed" for one in found.attempts] == [False, True]
    assert {one.verdict.status for one in found.attempts} == {truth.verdict}
    assert set(found.events["tracebacks"]["attempt"].to_list()) == {1}


@pytest.mark.parametrize(
    ("trainer", "launcher"),
    [
        ("megatron-main", "slurm_tasks"),
        ("nemo-1", "srun_label"),
        ("nemo-2", "nemo_run"),
        ("nemo-rl", "sbatch"),
        ("torchtitan", "slurm_tasks"),
        ("slime", "sbatch"),
    ],
)
def test_jobs_of_two_slurm_ids_in_one_directory_are_two(
    trainer: str, launcher: str, tmp_path: Path
) -> None:
    truth = TRAINERS[trainer]
    for number in (4711, 4720):
        job = Job(layout=launcher, job_id=number)
        lines = truth.lines(job) if number == 4711 else crashed(truth.lines(job))
        write(LAUNCHERS[launcher](job, lines), tmp_path / "run")
    options = Options(world_size=RANKS if truth.untold else None)
    found = examine(tmp_path / "run", options)
    other = examine(tmp_path / "run", replace(options, job="4711"))

    assert [job.name for job in found.jobs] == ["4711", "4720"]
    assert [(a.facts["iterations_finished"], a.outcome) for a in found.attempts] == [(3, "failed")]
    assert [a.facts["iterations_finished"] for a in other.attempts] == [3]
    assert other.attempts[0].outcome != "failed"
