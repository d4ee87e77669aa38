"""Composed default-level logs: every truth on every stack that can have it, in every layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from compose import GROUPS, LAYOUTS, STACKS, Job, compose
from runs import OFF_RULES, equivalence, scan_or_nothing, shipped

if TYPE_CHECKING:
    from pathlib import Path

MEGATRON = tuple(name for name, stack in STACKS.items() if stack.framework == "megatron")
BRIDGE = tuple(name for name, stack in STACKS.items() if stack.framework == "bridge")
GUARDED = tuple(name for name, stack in STACKS.items() if stack.guarded)
UNGUARDED = tuple(name for name, stack in STACKS.items() if not stack.guarded)
ALL = tuple(STACKS)


@dataclass(frozen=True)
class Truth:
    """One way to be launched, the stacks that can be launched so, and what must be said of it."""

    name: str
    job: Job
    stacks: tuple[str, ...]
    status: str
    fires: frozenset[str] = frozenset()
    healthy: bool = False


TRUTHS = (
    Truth("refused-without-sizes", Job(sizes=None), GUARDED, "rejected", frozenset({"HCP010"})),
    Truth("refused-product", Job(sizes=(2, 3)), GUARDED, "rejected", frozenset({"HCP010"})),
    Truth(
        "refused-decentralized",
        Job(decentralized=True),
        ("bridge-0.4", "bridge-main"),
        "rejected",
        frozenset({"HCP010"}),
    ),
    Truth("outer-level-of-one", Job(sizes=(8, 1)), ALL, "degenerate", frozenset({"HCP005"})),
    Truth("inner-level-of-one", Job(sizes=(1, 8)), ALL, "degenerate", frozenset({"HCP005"})),
    Truth("off-without-sizes", Job(sizes=None), UNGUARDED, "inactive", frozenset({"HCP002"})),
    Truth(
        "off-on-decentralized-groups",
        Job(decentralized=True),
        ("bridge-0.3",),
        "inactive",
        frozenset({"HCP003"}),
    ),
    Truth(
        "off-because-p2p",
        Job(comm_type="p2p"),
        (*MEGATRON, "bridge-0.2", "bridge-0.3"),
        "inactive",
        frozenset({"HCP006"}),
    ),
    Truth("configured", Job(), ALL, "unconfirmed", frozenset({"HCP012"}), healthy=True),
    Truth("flat-p2p", Job(comm_type="p2p", sizes=None), ALL, "not_requested", healthy=True),
    Truth("default", Job(comm_type=None, sizes=None), ALL, "not_requested", healthy=True),
    Truth("no-cp", Job(comm_type=None, sizes=None, cp=1), ALL, "not_requested", healthy=True),
    Truth("dump-cut", Job(cut_after="cp_comm_type"), MEGATRON, "inconclusive"),
    Truth("block-cut", Job(sizes=None, cut_after="cp_comm_type"), UNGUARDED[1:], "inconclusive"),
    Truth("summary-cut", Job(cut_after="cp_comm_type"), ("bridge-0.4",), "inconclusive"),
    Truth("cut-before-it-matters", Job(cut_after="bf16"), ALL, "inconclusive"),
)


def spread(stacks: tuple[str, ...], turn: int) -> list[tuple[str, str]]:
    """Pairs of layout and stack: each group of layouts with up to two stacks, all in turn."""
    return [
        (group[(turn + step) % len(group)], stacks[(place + turn + 3 * step) % len(stacks)])
        for place, group in enumerate(GROUPS.values())
        for step in range(min(2, len(stacks)))
    ]


CASES = [
    pytest.param(truth, layout, stack, id=f"{truth.name}-{layout}-{stack}")
    for turn, truth in enumerate(TRUTHS)
    for layout, stack in dict.fromkeys(spread(truth.stacks, turn))
]


@pytest.mark.parametrize(("truth", "layout", "stack"), CASES)
def test_a_composed_run_is_judged_by_its_truth(
    truth: Truth, layout: str, stack: str, tmp_path: Path
) -> None:
    job = replace(truth.job, layout=layout, stack=stack)
    assert job.status == truth.status, "the composer and the table disagree"
    report = scan_or_nothing(compose(job, tmp_path / "run"))
    assert report is not None
    assert report.verdict.status == truth.status
    assert equivalence(report) == []
    fired = {finding.rule for finding in report.findings}
    assert truth.fires & shipped() <= fired
    if truth.status not in {"inactive", "mixed"}:
        assert not fired & OFF_RULES
    assert report.data.series.iterations == job.logged
    assert len(report.data.attempts) == 1
    if truth.healthy:
        assert [f.rule for f in report.findings if f.severity != "note"] == []


@pytest.mark.parametrize("stack", ["megatron-0.12", "megatron-main", "bridge-0.3", "bridge-main"])
@pytest.mark.parametrize(
    "layout",
    ["torchrun_tee", "console", "redirects", "nodes", "srun_label", "merged", "pod_files", "stern"],
)
def test_a_second_start_is_a_second_attempt(layout: str, stack: str, tmp_path: Path) -> None:
    job = Job(stack=stack, layout=layout, attempts=2)
    report = scan_or_nothing(compose(job, tmp_path / "run"))
    assert report is not None
    assert [attempt.iterations for attempt in report.data.attempts] == [3, 6]
    assert report.data.series.iterations == job.logged == 9
    assert {attempt.verdict.status for attempt in report.data.attempts} == {"unconfirmed"}
    assert equivalence(report) == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_printed_rate_is_read_whatever_the_layout(layout: str, tmp_path: Path) -> None:
    for stack in ("megatron-main", "bridge-0.4"):
        report = scan_or_nothing(compose(Job(stack=stack, layout=layout), tmp_path / stack / "run"))
        assert report is not None
        assert report.data.series.tflops_per_gpu.median == pytest.approx(380, rel=0.01)


@pytest.mark.parametrize("stack", UNGUARDED)
def test_silent_off_prints_a_rate_that_was_not_done(stack: str, tmp_path: Path) -> None:
    rates = {}
    for sizes in ((4, 2), None):
        folder = compose(Job(stack=stack, sizes=sizes), tmp_path / str(sizes is None) / "run")
        report = scan_or_nothing(folder)
        assert report is not None
        rates[report.verdict.status] = report.data.series.tflops_per_gpu.median
    shape = Job().shape
    whole, done = shape.linear + shape.attention, shape.linear + shape.attention / 8
    assert rates["inactive"] / rates["unconfirmed"] == pytest.approx(whole / done, rel=0.01)
