"""Runtime channels: what each of them proves, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from channels import (
    CREATED,
    L0,
    L1,
    NEGATIVE,
    ONLY_FLAT,
    Runtime,
    Said,
    allowed,
    communicators,
    deduplicated,
    files_of,
    groups,
    with_channels,
    write,
)
from compose import Job, Line
from runs import OFF_RULES, equivalence, scan_or_nothing, shipped

if TYPE_CHECKING:
    from pathlib import Path

    from hcp_logscan import Report

JOB = Job(iterations=3)
P2P = replace(JOB, comm_type="p2p", sizes=None)
OWN = replace(JOB, stack="own-core-0.16")
"""A trainer of one's own on Megatron-Core: nothing checks the configuration."""

NO_SIZES = replace(OWN, sizes=None)
C10D = Runtime(c10d="nccl")
TE = Runtime(te="2.8")
ALL_RANKS = frozenset(range(8))
RANK_FILES = ("torchrun_tee", "redirects")
EVERYWHERE = ("torchrun_tee", "redirects", "srun_label", "merged")
RUNTIME_RULES = frozenset({"HCP001", "HCP009", "HCP011", "HCP014"})


@dataclass(frozen=True)
class Case:
    """One run and what must be said of it."""

    name: str
    job: Job
    runtime: Runtime
    status: str
    confidence: str = ""
    fires: frozenset[str] = frozenset()
    healthy: bool = False
    "Nothing above a note."

    layouts: tuple[str, ...] = ("torchrun_tee", "srun_label")
    culprits: tuple[int, ...] = ()
    "What HCP011 must name, where ranks can be told apart."


def active() -> list[Case]:
    every = EVERYWHERE
    cases = [
        Case(
            f"c10d-torch-{torch}",
            JOB,
            Runtime(c10d="nccl", torch=torch),
            "active",
            "high",
            layouts=every,
        )
        for torch in ("2.4", "2.5", "2.6", "2.7", "2.8", "main")
    ]
    cases += [
        Case(
            "c10d-glog",
            JOB,
            Runtime(c10d="nccl", torch="2.4", glog="plain"),
            "active",
            layouts=every,
        ),
        Case("c10d-glog-year", JOB, Runtime(c10d="nccl", glog="year"), "active", layouts=every),
        Case(
            "c10d-bridge", replace(JOB, stack="bridge-main"), C10D, "active", "high", layouts=every
        ),
        Case("c10d-two-cp-groups", replace(JOB, cp=4, sizes=(2, 2)), C10D, "active", "high"),
        Case("c10d-hybrid-groups-too", JOB, replace(C10D, hybrid=True), "active", "high"),
        Case(
            "c10d-nodes",
            replace(JOB, stack="bridge-0.3"),
            C10D,
            "active",
            "high",
            layouts=("nodes", "slurm_tasks"),
        ),
        Case(
            "c10d-configuration-cut",
            replace(JOB, cut_after="cp_comm_type"),
            C10D,
            "active",
            layouts=every,
        ),
    ]
    # The rank of these lines stands in the layout alone; a merged file has none.
    cases += [
        Case(f"te-{te}", JOB, Runtime(te=te), "active", "high", layouts=(*RANK_FILES, "srun_label"))
        for te in ("2.8", "2.15")
    ]
    cases += [Case("te-2.8-merged", JOB, TE, "active", layouts=("merged",))]
    cases += [
        Case(f"te-{te}", JOB, Runtime(te=te), "active", "medium", layouts=every)
        for te in ("1.13", "2.4")
    ]
    cases += [
        Case("te-own-head", replace(JOB, stack="bridge-0.3"), TE, "active", "high"),
        Case("te-bridge", replace(JOB, stack="bridge-0.4"), TE, "active", "high"),
        Case("te-repeats", JOB, replace(TE, repeats=4), "active", "high"),
        Case("te-evaluation-off", JOB, replace(TE, evaluation=True, repeats=2), "active", "high"),
        Case("te-vision-off", JOB, replace(TE, vision=True), "active", "high"),
        Case(
            "te-2.4-vision-and-evaluation-off",
            JOB,
            Runtime(te="2.4", vision=True, evaluation=True),
            "active",
            "medium",
        ),
        Case(
            "everything-on",
            JOB,
            Runtime(c10d="nccl", te="2.15", nccl="2.27", evaluation=True),
            "active",
            "high",
            layouts=every,
        ),
        Case("eager-and-te", JOB, Runtime(c10d="nccl", eager=True, te="2.8"), "active", "high"),
        Case("watchdog-names-the-inner-level", JOB, Runtime(watchdog="L0"), "active", "medium"),
        Case(
            "watchdog-names-the-outer-level",
            JOB,
            Runtime(watchdog="L1", torch="2.5"),
            "active",
            "medium",
            layouts=("merged", "redirects"),
        ),
    ]
    cases = [
        replace(case, healthy=not case.runtime.watchdog and not case.job.cut_after)
        for case in cases
    ]
    cases += [
        Case(f"printed-{name}", JOB, Runtime(prints=texts), "active", "medium", healthy=True)
        for name, texts in CREATED.items()
    ]
    big = replace(JOB, world_size=32, cp=8, iterations=2)
    partial = frozenset({7, 20})
    return cases + [
        Case(
            f"{name}-on-30-of-32-ranks",
            big,
            replace(runtime, quiet=partial),
            "active",
            "medium",
            healthy=True,
            layouts=("redirects", "srun_label"),
        )
        for name, runtime in (("te", TE), ("c10d", C10D))
    ]


def inactive() -> list[Case]:
    off = frozenset({"HCP009"})
    no_group = frozenset({"HCP001"})
    return [
        Case(
            "te-2.8-off",
            OWN,
            replace(TE, off=ALL_RANKS),
            "inactive",
            "high",
            off,
            layouts=(*RANK_FILES, "srun_label"),
        ),
        Case(
            "te-2.8-off-merged",
            OWN,
            replace(TE, off=ALL_RANKS),
            "inactive",
            "",
            off,
            layouts=("merged",),
        ),
        Case(
            "te-2.15-off-without-sizes",
            NO_SIZES,
            Runtime(te="2.15"),
            "inactive",
            "high",
            off | {"HCP002"},
            layouts=EVERYWHERE,
        ),
        Case(
            "te-2.4-off",
            OWN,
            Runtime(te="2.4", off=ALL_RANKS),
            "inactive",
            "medium",
            off,
            layouts=EVERYWHERE,
        ),
        Case(
            "te-2.4-off-with-vision",
            OWN,
            Runtime(te="2.4", off=ALL_RANKS, vision=True),
            "inactive",
            "medium",
            off,
        ),
        Case(
            "te-off-decentralized",
            replace(JOB, stack="bridge-0.3", decentralized=True),
            TE,
            "inactive",
            "high",
            off | {"HCP003"},
        ),
        Case(
            "te-off-on-some-ranks-of-few",
            OWN,
            replace(TE, off=ALL_RANKS, quiet=frozenset({1, 2})),
            "inactive",
            "medium",
            off,
        ),
        Case(
            "te-off-configuration-cut",
            replace(OWN, cut_after="cp_comm_type"),
            replace(TE, off=ALL_RANKS),
            "inactive",
            "",
            off,
        ),
        Case(
            "c10d-no-level",
            OWN,
            replace(C10D, off=ALL_RANKS),
            "inactive",
            "medium",
            no_group,
            layouts=EVERYWHERE,
        ),
        Case(
            "c10d-no-level-glog",
            OWN,
            replace(C10D, off=ALL_RANKS, glog="plain", torch="2.4"),
            "inactive",
            "medium",
            no_group,
            layouts=EVERYWHERE,
        ),
        Case(
            "c10d-no-level-core-0.12",
            replace(JOB, stack="megatron-0.12"),
            replace(C10D, off=ALL_RANKS),
            "inactive",
            "medium",
            no_group,
        ),
        Case(
            "c10d-no-level-but-hybrid",
            OWN,
            replace(C10D, off=ALL_RANKS, hybrid=True),
            "inactive",
            "medium",
            no_group,
        ),
        Case("c10d-without-sizes", NO_SIZES, C10D, "inactive", "high", frozenset({"HCP002"})),
        Case(
            "both-off", OWN, Runtime(c10d="nccl", te="2.8", off=ALL_RANKS), "inactive", "high", off
        ),
        Case(
            "printed-created-but-te-off",
            OWN,
            replace(TE, off=ALL_RANKS, prints=CREATED["plural"]),
            "inactive",
            "medium",
            off,
        ),
        Case("printed-only-flat", OWN, Runtime(prints=ONLY_FLAT), "inactive", "medium", no_group),
        Case(
            "sizes-but-p2p-eager",
            replace(OWN, comm_type="p2p"),
            replace(C10D, eager=True),
            "inactive",
            "",
            frozenset({"HCP006"}),
        ),
        Case(
            "sizes-but-p2p-te",
            replace(OWN, comm_type="p2p"),
            TE,
            "inactive",
            "",
            frozenset({"HCP006"}),
        ),
        Case(
            "packed-off",
            NO_SIZES,
            Runtime(te="2.14", layout="thd"),
            "inactive",
            "high",
            off | {"HCP002", "HCP014"},
        ),
        Case(
            "packed-off-te-2.4",
            NO_SIZES,
            Runtime(te="2.4", layout="thd"),
            "inactive",
            "",
            off | {"HCP002", "HCP014"},
        ),
        # The dump says no sizes, Transformer Engine says on: grade B against A.
        Case(
            "no-sizes-but-te-on",
            NO_SIZES,
            replace(TE, on=True),
            "inactive",
            "",
            frozenset({"HCP002"}),
        ),
    ]


def mixed() -> list[Case]:
    disagree = frozenset({"HCP011"})
    five = frozenset({5})
    named = (5,)
    return [
        Case(
            "te-rank-5-off",
            OWN,
            replace(TE, off=five),
            "mixed",
            "high",
            disagree,
            layouts=("torchrun_tee", "redirects", "srun_label", "console"),
            culprits=named,
        ),
        Case(
            "te-rank-5-off-merged",
            OWN,
            replace(TE, off=five),
            "mixed",
            "low",
            disagree,
            layouts=("merged",),
        ),
        Case(
            "te-rank-5-off-bridge",
            replace(JOB, stack="bridge-0.2"),
            replace(TE, off=five),
            "mixed",
            "high",
            disagree,
            culprits=named,
        ),
        Case(
            "te-2.4-rank-5-off",
            OWN,
            Runtime(te="2.4", off=five),
            "mixed",
            "medium",
            disagree,
            culprits=named,
        ),
        Case(
            "c10d-rank-5-off",
            OWN,
            replace(C10D, off=five),
            "mixed",
            "medium",
            disagree,
            layouts=EVERYWHERE,
            culprits=named,
        ),
        Case(
            "both-rank-5-off",
            OWN,
            Runtime(c10d="nccl", te="2.8", off=five),
            "mixed",
            "",
            disagree,
            culprits=named,
        ),
        Case(
            "c10d-one-level-everywhere",
            OWN,
            replace(C10D, one_level=ALL_RANKS),
            "mixed",
            "",
            disagree,
            layouts=EVERYWHERE,
        ),
        Case(
            "c10d-one-level-on-rank-5",
            OWN,
            replace(C10D, one_level=five),
            "mixed",
            "",
            disagree,
            culprits=named,
        ),
    ]


def neither() -> list[Case]:
    """Degenerate, rejected, and every channel that proves nothing."""
    inner_one, outer_one = replace(JOB, sizes=(1, 8)), replace(JOB, sizes=(8, 1))
    one = frozenset({"HCP005"})
    every = EVERYWHERE
    core_010 = replace(JOB, stack="megatron-0.10")
    note = {"status": "unconfirmed", "fires": frozenset({"HCP012"}), "healthy": True}
    return [
        Case("inner-level-one-c10d", inner_one, C10D, "degenerate", "", one, layouts=every),
        Case("outer-level-one-c10d", outer_one, C10D, "degenerate", "", one),
        Case("inner-level-one-te", inner_one, TE, "degenerate", "", one, layouts=every),
        Case("outer-level-one-te-2.4", outer_one, Runtime(te="2.4"), "degenerate", "", one),
        Case(
            "inner-level-one-printed",
            inner_one,
            Runtime(prints=CREATED["plural"]),
            "degenerate",
            "",
            one,
        ),
        Case("inner-level-one-watchdog", inner_one, Runtime(watchdog="L1"), "degenerate", "", one),
        Case(
            "outer-level-one-te-off",
            replace(OWN, sizes=(8, 1)),
            replace(TE, off=ALL_RANKS),
            "inactive",
            "high",
            frozenset({"HCP009"}),
        ),
        Case(
            "refused",
            replace(JOB, sizes=None),
            replace(C10D, prints=CREATED["plural"]),
            "rejected",
            "",
            frozenset({"HCP010"}),
        ),
        Case(
            "refused-decentralized",
            replace(JOB, stack="bridge-0.4", decentralized=True),
            TE,
            "rejected",
            "",
            frozenset({"HCP010"}),
        ),
        Case("gloo", JOB, Runtime(c10d="gloo"), **note, layouts=every),
        Case("torch-2.3", JOB, replace(C10D, torch="2.3"), **note, layouts=every),
        Case("torch-2.2", JOB, replace(C10D, torch="2.2"), **note),
        Case("torch-2.3-off", OWN, replace(C10D, torch="2.3", off=ALL_RANKS), **note),
        Case("core-0.10", core_010, C10D, **note, layouts=every),
        Case("core-0.10-off", core_010, replace(C10D, off=ALL_RANKS), **note),
        Case("eager", JOB, replace(C10D, eager=True), **note, layouts=every),
        Case("eager-groups-made-but-unused", OWN, replace(C10D, eager=True, off=ALL_RANKS), **note),
        Case("te-level-1", JOB, replace(TE, te_level=1), **note, layouts=every),
        *(
            Case(f"nccl-{version}", JOB, Runtime(nccl=version), **note)
            for version in ("2.18", "2.21", "2.23", "2.27", "2.29", "rccl")
        ),
        Case(
            "nccl-pairs",
            replace(JOB, world_size=4, cp=4, sizes=(2, 2)),
            Runtime(nccl="2.27"),
            **note,
            layouts=every,
        ),
        Case("hybrid-only-core-0.10", core_010, replace(C10D, hybrid=True), **note),
        Case("watchdog-flat", JOB, Runtime(watchdog="flat"), "unconfirmed"),
        *(
            Case(
                f"words-{n}",
                JOB,
                Runtime(prints=(text,)),
                "unconfirmed",
                layouts=("torchrun_tee", "merged"),
            )
            for n, text in enumerate(NEGATIVE)
        ),
        Case("flat-p2p-c10d", P2P, C10D, "not_requested", healthy=True, layouts=every),
        Case("flat-p2p-hybrid", P2P, replace(C10D, hybrid=True), "not_requested", healthy=True),
        Case("flat-p2p-te", P2P, TE, "not_requested", healthy=True, layouts=every),
        Case("flat-p2p-te-1.8", P2P, Runtime(te="1.8"), "not_requested", healthy=True),
        Case(
            "flat-p2p-te-1.9", P2P, Runtime(te="1.9", te_head="own"), "not_requested", healthy=True
        ),
        Case(
            "flat-p2p-nccl-ring",
            replace(P2P, world_size=4, cp=4),
            Runtime(nccl="2.27"),
            "not_requested",
            healthy=True,
        ),
        Case(
            "flat-p2p-packed", P2P, Runtime(te="2.14", layout="thd"), "not_requested", healthy=True
        ),
        Case(
            "flat-p2p-printed-flat", P2P, Runtime(prints=ONLY_FLAT), "not_requested", healthy=True
        ),
        Case(
            "flat-p2p-printed-created",
            P2P,
            Runtime(prints=CREATED["plural"]),
            "not_requested",
            healthy=True,
        ),
        Case("flat-a2a-te", replace(P2P, comm_type="a2a"), TE, "not_requested", healthy=True),
        Case("no-cp-te", replace(P2P, cp=1), TE, "not_requested", healthy=True),
        Case(
            "died-in-the-first-attention",
            OWN,
            replace(C10D, dies=True),
            "inconclusive",
            layouts=every,
        ),
        Case(
            "c10d-no-level-configuration-cut",
            replace(JOB, cut_after="bf16"),
            replace(C10D, off=ALL_RANKS),
            "inconclusive",
        ),
        Case(
            "te-2.4-configuration-cut",
            replace(JOB, cut_after="bf16"),
            Runtime(te="2.4"),
            "inconclusive",
        ),
        Case(
            "te-2.8-sizes-unknown",
            replace(JOB, stack="bridge-0.4", cut_after="cp_comm_type"),
            TE,
            "inconclusive",
        ),
    ]


CASES = [*active(), *inactive(), *mixed(), *neither()]


def report_of(case: Case, layout: str, folder: Path) -> Report:
    job = replace(case.job, layout=layout)
    lines = with_channels(job, case.runtime)
    assert allowed(job, case.runtime, lines) == {case.status}, (
        "the table of cases and the oracle disagree"
    )
    report = scan_or_nothing(write(files_of(job, lines), folder / "run"))
    assert report is not None
    return report


@pytest.mark.parametrize(
    ("case", "layout"),
    [
        pytest.param(case, layout, id=f"{case.name}-{layout}")
        for case in CASES
        for layout in case.layouts
    ],
)
def test_a_channel_says_what_it_proves_and_no_more(case: Case, layout: str, tmp_path: Path) -> None:
    report = report_of(case, layout, tmp_path)
    verdict = report.verdict
    assert verdict.status == case.status
    assert not case.confidence or verdict.confidence == case.confidence
    assert equivalence(report) == []
    findings = {finding.rule: finding for finding in report.findings}
    fired = frozenset(findings)
    assert case.fires & shipped() <= fired
    if case.status not in {"inactive", "mixed"}:
        assert not fired & (OFF_RULES | {"HCP011"})
    if case.status != "mixed":
        assert "HCP011" not in fired
    if case.runtime.layout != "thd":
        assert "HCP014" not in fired
    if case.culprits and "HCP011" in fired:
        assert findings["HCP011"].ranks == case.culprits
    assert report.data.series.iterations == (0 if case.runtime.dies else case.job.logged)
    if case.healthy:
        assert [f.rule for f in report.findings if f.severity != "note"] == []


def test_the_cases_cover_every_status() -> None:
    statuses = {case.status for case in CASES}
    assert statuses == {
        *("active", "inactive", "mixed", "degenerate"),
        *("rejected", "unconfirmed", "not_requested", "inconclusive"),
    }


def test_coverage_is_part_of_the_verdict(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "te-on-30-of-32-ranks")
    verdict = report_of(case, "redirects", tmp_path).verdict
    assert (verdict.ranks_confirmed, verdict.ranks_seen) == (30, 32)


@pytest.mark.parametrize("layout", ["torchrun_tee", "srun_label"])
def test_each_attempt_has_a_verdict_of_its_own(layout: str, tmp_path: Path) -> None:
    job = replace(JOB, layout=layout, attempts=2, iterations=4)
    runtime = Runtime(c10d="nccl", te="2.8", late=True)
    report = scan_or_nothing(write(files_of(job, with_channels(job, runtime)), tmp_path / "run"))
    assert report is not None
    assert [x.verdict.status for x in report.data.attempts] == ["unconfirmed", "active"]
    assert report.verdict.status == "active"
    assert equivalence(report) == []


@pytest.mark.parametrize("layout", ["torchrun_tee", "console", "srun_label", "merged"])
@pytest.mark.parametrize("runtime", [TE, C10D], ids=["te", "c10d"])
def test_a_second_attempt_that_prints_the_same_is_active_too(
    runtime: Runtime, layout: str, tmp_path: Path
) -> None:
    job = replace(JOB, layout=layout, attempts=2, iterations=4)
    report = scan_or_nothing(write(files_of(job, with_channels(job, runtime)), tmp_path / "run"))
    assert report is not None
    assert [x.verdict.status for x in report.data.attempts] == ["active", "active"]
    assert equivalence(report) == []


def layer_off(line: Line) -> list[Line]:
    """A second kind of layer on the same rank, that asks for a2a+p2p and runs without CP."""
    if not isinstance(line, Said) or line.kind != "te":
        return [line]
    text = line.text.replace("'context_parallel': True", "'context_parallel': False")
    other = replace(
        line,
        text=text.replace("'num_heads': 32", "'num_heads': 16"),
        context_parallel=False,
        layer="16",
    )
    return [line, other]


@pytest.mark.parametrize("layout", RANK_FILES)
def test_layer_kinds_that_disagree_are_mixed(layout: str, tmp_path: Path) -> None:
    job = replace(OWN, layout=layout)
    lines = [x for line in with_channels(job, TE) for x in layer_off(line)]
    assert allowed(job, TE, lines) == {"mixed"}
    report = scan_or_nothing(write(files_of(job, lines), tmp_path / "run"))
    assert report is not None
    assert report.verdict.status == "mixed"
    assert equivalence(report) == []


@pytest.mark.parametrize("layout", ["torchrun_tee", "merged"])
@pytest.mark.parametrize("stack", ["megatron-main", "bridge-main"])
def test_a_launch_command_changes_no_verdict(stack: str, layout: str, tmp_path: Path) -> None:
    for job in (
        replace(JOB, stack=stack, layout=layout),
        replace(P2P, stack=stack, layout=layout),
    ):
        lines = with_channels(job, Runtime(), launch=True)
        report = scan_or_nothing(write(files_of(job, lines), tmp_path / str(job.sizes) / "run"))
        assert report is not None
        assert report.verdict.status == job.status
        assert not {"HCP018"} & {finding.rule for finding in report.findings}
        assert equivalence(report) == []


def test_a_launch_command_alone_is_no_complete_configuration(tmp_path: Path) -> None:
    job = replace(NO_SIZES, layout="torchrun_tee")
    lines = [
        line
        for line in with_channels(job, Runtime(), launch=True)
        if " ....." not in line.text
        and "arguments ---" not in line.text
        and not line.text.startswith("using world")
    ]
    report = scan_or_nothing(write(files_of(job, lines), tmp_path / "run"))
    assert report is not None
    assert report.verdict.status == "inconclusive"
    assert equivalence(report) == []


# Ray ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "runtime", "statuses"),
    [
        (JOB, TE, {"active"}),
        (JOB, Runtime(c10d="nccl", te="2.8"), {"active"}),
        (JOB, C10D, {"active", "unconfirmed"}),
        (OWN, replace(C10D, off=ALL_RANKS), {"unconfirmed"}),
        (OWN, replace(TE, off=ALL_RANKS), {"inactive"}),
        (P2P, C10D, {"not_requested"}),
    ],
    ids=["te", "both", "c10d", "c10d-off", "te-off", "p2p"],
)
def test_what_ray_leaves_out_is_no_evidence(
    job: Job, runtime: Runtime, statuses: set[str], tmp_path: Path
) -> None:
    shown = deduplicated(with_channels(job, runtime))
    assert allowed(job, runtime, shown, dedup=True) <= statuses
    report = scan_or_nothing(write(files_of(job, shown, layout="ray"), tmp_path / "run"))
    assert report is not None
    assert {report.verdict.status} == allowed(job, runtime, shown, dedup=True)
    fired = {finding.rule for finding in report.findings}
    assert {"HCP906"} & shipped() <= fired
    assert "HCP904" not in fired
    assert equivalence(report) == []
    assert report.data.series.iterations == job.logged


def test_ray_without_deduplication_is_a_complete_log(tmp_path: Path) -> None:
    for job, runtime, status in (
        (JOB, C10D, "active"),
        (OWN, replace(C10D, off=ALL_RANKS), "inactive"),
        (OWN, replace(TE, off=frozenset({5})), "mixed"),
    ):
        lines = with_channels(job, runtime)
        assert allowed(job, runtime, lines) == {status}
        report = scan_or_nothing(
            write(files_of(job, lines, layout="ray"), tmp_path / status / "run")
        )
        assert report is not None
        assert report.verdict.status == status
        fired = {finding.rule: finding for finding in report.findings}
        assert "HCP906" not in fired
        if "HCP011" in fired:
            assert fired["HCP011"].ranks == (5,)


# Lines that ranks tear ---------------------------------------------------------------------------


def torn(texts: list[str]) -> list[str]:
    """Ranks that share a pipe: another rank's record begins inside one of NCCL, the tail follows."""
    out = [text for text in texts if "NCCL version" not in text]
    places = [
        n
        for n, (text, after) in enumerate(pairwise(out))
        if "Init COMPLETE" in text and "NCCL INFO" in after and text.split()[0] != after.split()[0]
    ]
    assert places
    for n in places[::2]:
        head, tail = out[n].split(" commId ")
        out[n] = f"{head[:-2]}{out[n + 1]}"
        out[n + 1] = f"{head[-2:]} commId {tail}"
    return out


def test_torn_lines_are_noted_and_decide_nothing(tmp_path: Path) -> None:
    job = replace(JOB, layout="merged")
    files = files_of(job, with_channels(job, Runtime(nccl="2.21")))
    glued = {name: torn(texts) for name, texts in files.items()}
    for name, shape, noted in (("whole", files, False), ("torn", glued, True)):
        report = scan_or_nothing(write(shape, tmp_path / name / "run"))
        assert report is not None
        assert report.verdict.status == "unconfirmed"
        fired = {finding.rule for finding in report.findings}
        assert ("HCP905" in fired) == (noted and "HCP905" in shipped())
        assert [f.rule for f in report.findings if f.severity != "note"] == []


def test_memory_lines_that_share_a_line_are_noted(tmp_path: Path) -> None:
    job = replace(JOB, layout="merged")
    texts = files_of(job, with_channels(job, C10D))["train.log"]
    glued = "\n".join(texts).replace("66012.00\n[Rank 6]", "66012.00[Rank 6]").split("\n")
    assert len(glued) == len(texts) - 1
    report = scan_or_nothing(write({"train.log": glued}, tmp_path / "run"))
    assert report is not None
    assert report.verdict.status == "active"
    assert {"HCP905"} & shipped() <= {finding.rule for finding in report.findings}
    assert [f.rule for f in report.findings if f.severity != "note"] == []


def test_c10d_lines_behind_a_bar_without_line_end_count(tmp_path: Path) -> None:
    job = replace(JOB, layout="merged")
    bar = "Loading:  67%|██████▋   | 2/3 [00:02<00:01,  1.47s/it, loss=5.46]"
    lines = [
        replace(line, text=bar + line.text)
        if isinstance(line, Said) and line.kind == "opened" and line.rank == 3
        else line
        for line in with_channels(job, C10D)
    ]
    report = scan_or_nothing(write(files_of(job, lines), tmp_path / "run"))
    assert report is not None
    assert (report.verdict.status, report.verdict.confidence) == ("active", "high")


# The composer itself -----------------------------------------------------------------------------


def test_the_levels_are_blocks_and_strides() -> None:
    job = Job(world_size=4, cp=4, sizes=(2, 2))
    named = {name: [x.ranks for x in groups(job, Runtime()) if x.name == name] for name in (L0, L1)}
    assert named == {L0: [(0, 1), (2, 3)], L1: [(0, 2), (1, 3)]}


def test_pair_communicators_of_a_flat_ring_and_of_two_levels() -> None:
    job = Job(world_size=4, cp=4, sizes=(2, 2))
    flat = replace(job, comm_type="p2p", sizes=None)
    assert communicators(flat, Runtime())[1:] == [(0, 1), (1, 2), (2, 3), (0, 3)]
    assert communicators(job, Runtime())[1:] == [(0, 1), (2, 3), (0, 2), (1, 3)]


def test_ray_shows_the_first_line_and_counts_the_rest() -> None:
    lines = [Line(rank, f"loss of rank {rank}") for rank in range(4)]
    shown = [line.text for line in deduplicated(lines)]
    assert shown[0] == "loss of rank 0"
    assert shown[1].startswith("loss of rank 3 [repeated 3x across cluster] (Ray dedup")
