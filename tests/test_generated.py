"""Whole runs that hypothesis draws: stack, versions, layout, channels, truth and noise.

What each run must be judged as is derived from its printed lines by `channels.allowed`.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from channels import (
    CREATED,
    NEGATIVE,
    ONLY_FLAT,
    Runtime,
    Said,
    allowed,
    deduplicated,
    files_of,
    with_channels,
    write,
)
from compose import GROUPS, STACKS, Job, Line
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from runs import OFF_RULES, equivalence, scan_or_nothing

if TYPE_CHECKING:
    from collections.abc import Callable

    from compose import Files

EXAMPLES = 8
"""Runs of each of the 24 tests."""

FAMILIES = ("c10d", "te", "several")
WHERE = (*GROUPS, "ray")
NOISE = ("blank", "ansi", "crlf", "bars", "dropped", "copy")
MEGATRON = tuple(name for name, stack in STACKS.items() if stack.framework == "megatron")
UNGUARDED = tuple(name for name, stack in STACKS.items() if not stack.guarded)
RESTARTED = ("megatron-0.12", "megatron-main", "bridge-0.3", "bridge-main")
BY_P2P = (*MEGATRON, "bridge-0.2", "bridge-0.3")
TORCH = ("2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "main")
OLD_TE, NEW_TE = ("1.13", "2.4"), ("2.8", "2.15")
NCCL = ("2.18", "2.21", "2.23", "2.27", "2.29", "rccl")
SHAPES = ((4, 4, (2, 2)), (4, 4, (2, 2)), (8, 4, (2, 2)), (8, 8, (4, 2)), (8, 8, (2, 4)))
"""World size, CP size, hierarchical sizes."""

TRUTHS = (
    *("on", "on", "on", "off", "off-though-configured", "one-rank-off", "one-level", "degenerate"),
    *("p2p", "p2p-with-sizes", "no-cp", "refused", "cut", "dies"),
)


@dataclass(frozen=True)
class Run:
    """One drawn run."""

    job: Job
    runtime: Runtime
    layout: str
    deduplicated: bool
    noise: frozenset[str]
    salt: int

    def lines(self) -> list[Line]:
        made = with_channels(self.job, self.runtime)
        return deduplicated(made) if self.deduplicated else made


@st.composite
def jobs(draw: st.DrawFn, truth: str, layout: str) -> Job:
    world, cp, sizes = draw(st.sampled_from(SHAPES))
    job = Job(world_size=world, cp=cp, sizes=sizes, iterations=draw(st.integers(1, 3)))
    job = replace(job, layout="merged" if layout == "ray" else layout)

    def stack(*names: str) -> Job:
        return replace(job, stack=draw(st.sampled_from(names)))

    if truth == "off":
        if draw(st.booleans()):
            return replace(job, sizes=None, stack=draw(st.sampled_from(UNGUARDED)))
        return replace(job, decentralized=True, stack="bridge-0.3")
    if truth in {"off-though-configured", "one-rank-off", "one-level", "dies"}:
        return stack("own-core-0.16", "megatron-0.12", "bridge-0.2", "bridge-0.3")
    if truth == "degenerate":
        return replace(stack(*STACKS), sizes=draw(st.sampled_from([(1, cp), (cp, 1)])))
    if truth == "p2p":
        return replace(stack(*STACKS), comm_type=draw(st.sampled_from(["p2p", "a2a"])), sizes=None)
    if truth == "p2p-with-sizes":
        return replace(stack(*BY_P2P), comm_type="p2p")
    if truth == "no-cp":
        return replace(stack(*STACKS), cp=1, comm_type=None, sizes=None)
    if truth == "refused":
        guarded = [name for name in STACKS if name not in UNGUARDED]
        return replace(job, sizes=None, stack=draw(st.sampled_from(guarded)))
    if truth == "cut":
        key = draw(st.sampled_from(["cp_comm_type", "bf16"]))
        return replace(stack(*MEGATRON, "bridge-0.4"), cut_after=key)
    again = layout not in {"ray", "slurm_tasks"} and draw(st.integers(0, 3)) == 0
    if again:
        return replace(stack(*RESTARTED), attempts=2, iterations=2)
    return stack(*STACKS)


@st.composite
def runtimes(draw: st.DrawFn, truth: str, family: str, job: Job) -> Runtime:
    ranks = range(job.world_size)
    several = family == "several"
    made = Runtime(
        torch=draw(st.sampled_from(TORCH)),
        hybrid=draw(st.integers(0, 4)) == 0,
        repeats=draw(st.integers(1, 2)),
        evaluation=draw(st.booleans()),
        vision=draw(st.booleans()),
        late=job.attempts > 1 and draw(st.booleans()),
    )
    if family == "c10d" or (several and draw(st.booleans())) or truth in {"one-level", "dies"}:
        backend = draw(st.sampled_from(["nccl", "nccl", "nccl", "nccl", "gloo"]))
        glog = draw(st.sampled_from(["", "", "plain", "year"])) if made.torch > "2.3" else ""
        eager = truth not in {"one-level", "dies"} and draw(st.integers(0, 4)) == 0
        made = replace(made, c10d=backend, glog=glog, eager=eager)
    if (family == "te" or (several and draw(st.booleans()))) and truth not in {"one-level", "dies"}:
        known = NEW_TE if truth == "one-rank-off" else OLD_TE + NEW_TE
        made = replace(
            made, te=draw(st.sampled_from(known)), te_level=draw(st.sampled_from([2, 2, 2, 1]))
        )
        made = replace(made, te_head=draw(st.sampled_from(["", "root", "own"])))
    if several:
        made = replace(made, nccl=draw(st.sampled_from(("", *NCCL))))
        words: list[tuple[str, ...]] = [(), (draw(st.sampled_from(NEGATIVE)),)]
        if truth in {"on", "degenerate", "p2p"}:
            words += CREATED.values()
        if truth in {"off", "p2p"}:
            words.append(ONLY_FLAT)
        made = replace(made, prints=draw(st.sampled_from(words)))
    if truth == "off-though-configured":
        made = replace(made, off=frozenset(ranks))
    elif truth == "one-rank-off":
        made = replace(made, off=frozenset({draw(st.sampled_from(ranks))}))
    elif truth == "one-level":
        some = draw(st.sampled_from([frozenset(ranks), frozenset({1})]))
        made = replace(made, one_level=some)
    elif truth == "dies":
        made = replace(made, dies=True)
    elif truth == "on":
        made = replace(made, watchdog=draw(st.sampled_from(["", "", "", "L0", "L1", "flat"])))
        made = replace(made, quiet=draw(st.sampled_from([frozenset(), frozenset({ranks[-1]})])))
    return made


@st.composite
def runs(draw: st.DrawFn, layout: str, family: str) -> Run:
    truths = [x for x in TRUTHS if layout != "ray" or x not in {"refused", "cut", "dies"}]
    truth = draw(st.sampled_from(truths))
    job = draw(jobs(truth, layout))
    if layout != "ray":
        layout = draw(st.sampled_from(GROUPS[layout]))
        job = replace(job, layout=layout)
    noise = draw(st.frozensets(st.sampled_from(NOISE), max_size=3))
    dedup = layout == "ray" and draw(st.booleans())
    runtime = draw(runtimes(truth, family, job))
    return Run(job, runtime, layout, dedup, noise, draw(st.integers(0, 1 << 16)))


# Noise -------------------------------------------------------------------------------------------

DULL = ("> compiling dataset", ">>> done with dataset", "> finished creating", "Theoretical memory")


def noisy(run: Run, lines: list[Line]) -> list[Line]:
    """The lines with the noise between and around those that are printed once training is built;
    what stands before is left alone, for blocks of configuration end at foreign lines."""
    chance = random.Random(run.salt)
    bar = (
        "Loading:  33%|███▎      | 1/3 [00:01<00:02]\rLoading: 100%|██████████| 3/3 [00:03<00:00]\r"
    )
    out: list[Line] = []
    built = False
    for line in lines:
        text = line.text
        built = built or text.startswith("> building train")
        if "dropped" in run.noise and (text.startswith(DULL) or "FutureWarning" in text):
            continue
        own = isinstance(line, Said) or "iteration " in text
        if built and own and "ansi" in run.noise and chance.random() < 0.5:
            text = f"\x1b[36m{text}\x1b[0m"
        if built and isinstance(line, Said) and "bars" in run.noise and chance.random() < 0.3:
            text = bar + text
        out.append(replace(line, text=text))
        if built and "blank" in run.noise and chance.random() < 0.3:
            out.append(Line(line.rank, "", line.stream, line.attempt, line.when))
    return out


def written(run: Run, lines: list[Line], folder: Path) -> Path:
    files: Files = files_of(run.job, noisy(run, lines), layout=run.layout)
    if "copy" in run.noise and run.layout == "console":
        files = {**files, f"slurm-{run.job.job_id}.out": files["console.log"]}
    return write(files, folder / "run", end="\r\n" if "crlf" in run.noise else "\n")


# The test ----------------------------------------------------------------------------------------


def judged(run: Run) -> None:
    lines = run.lines()
    statuses = allowed(run.job, run.runtime, lines, dedup=run.deduplicated)
    with tempfile.TemporaryDirectory() as folder:
        report = scan_or_nothing(written(run, lines, Path(folder)))
    assert report is not None
    assert report.verdict.status in statuses
    assert equivalence(report) == []
    fired = {finding.rule for finding in report.findings}
    if report.verdict.status != "mixed":
        assert "HCP011" not in fired
    if report.verdict.status not in {"inactive", "mixed"}:
        assert not fired & OFF_RULES
    if run.runtime.layout != "thd":
        assert "HCP014" not in fired
    assert ("HCP906" in fired) == any("x across cluster]" in line.text for line in lines)
    assert report.data.series.iterations == (0 if run.runtime.dies else run.job.logged)
    assert len(report.data.attempts) == run.job.attempts


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", WHERE)
def test_a_drawn_run_is_judged_by_what_it_printed(layout: str, family: str) -> None:
    number = 3 * WHERE.index(layout) + FAMILIES.index(family)
    check: Callable[[], None] = given(runs(layout, family))(judged)
    limits = settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        print_blob=False,
        phases=[Phase.generate],  # shrinking scans hundreds of runs more
        suppress_health_check=list(HealthCheck),
    )
    seed(number)(limits(check))()
