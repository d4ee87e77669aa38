"""Printed throughput against what the GPUs can do: whole runs, from the log to the finding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from compose import Job, compose
from runs import equivalence

from hcp_logscan import HcpLogscanError, Report, scan

if TYPE_CHECKING:
    from pathlib import Path

H200 = "GPU 0: NVIDIA H200 (UUID: GPU-0d0f1c2a-77aa-4c1e-9b1f-0c5a7e2b4d60)"
SM90 = (
    "DEBUG:DotProductAttention:Running with config={'transformer_engine_version': '2.8.0', "
    "'compute_capability': 'sm90', 'qkv_layout': 'sbhd_sbhd_sbhd', 'context_parallel': False, "
    "'cp_comm_type': 'p2p', 'is_training': True}"
)
FLAT = Job(cp=1, comm_type="p2p", sizes=None, layout="merged")


def run(folder: Path, job: Job, *first_lines: str, **options: Any) -> Report:
    """The report on a composed job whose job script printed these lines first."""
    compose(job, folder)
    if first_lines:
        (folder / "gpus.log").write_text("\n".join(first_lines) + "\n", encoding="utf-8")
    return scan(folder, **options)


def fired(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings if finding.rule.startswith("HCP1")}


def outcome(report: Report, rule: str) -> str:
    return next(one.outcome for one in report.data.judgements if one.rule == rule)


def test_a_rate_above_the_peak_of_the_gpu_in_the_log_fires(tmp_path):
    report = run(tmp_path, Job(stack="bridge-0.3", sizes=None, cp=8, tflops=700), H200)
    assert report.verdict.status == "inactive"
    assert fired(report) == {"HCP101", "HCP103"}
    assert outcome(report, "HCP102") == "clean"
    assert report.data.run.gpu == "H200"
    symptom = [piece for piece in report.verdict.evidence if piece.channel == "throughput"]
    assert [(piece.says, piece.grade) for piece in symptom] == [("inactive", "C")]
    assert equivalence(report) == []


def test_evidence_of_an_impossible_rate_shows_only_lines_above_the_peak(tmp_path):
    job = Job(stack="bridge-0.3", layout="merged", sizes=None, cp=8, tflops=700)
    report = run(tmp_path, job, H200)
    found = next(one for one in report.findings if one.rule == "HCP101")
    shown = report.tables["steps"].filter(line=found.evidence[0].line)
    assert shown["tflops_per_gpu"][0] > 989.4
    assert found.evidence_total == 5  # the first iteration warms up


@pytest.mark.parametrize("tflops", [420, 700])
def test_a_healthy_rate_is_silent(tmp_path, tflops):
    report = run(tmp_path, Job(tflops=tflops), H200)
    assert fired(report) == set()
    assert {outcome(report, rule) for rule in ("HCP101", "HCP102", "HCP105")} == {"clean"}
    assert report.data.peak is not None
    assert report.data.peak.explanation == (
        "Dense BF16 peak of H200: 989.4 TFLOP/s; the GPU is known from the logs."
    )


def test_the_dense_peak_is_the_measure_not_the_sparse_one(tmp_path):
    report = run(tmp_path, Job(tflops=420), H200)
    assert report.data.peak is not None
    assert report.data.peak.tflops == 989.4


def test_more_than_three_quarters_of_the_peak_is_implausible(tmp_path):
    report = run(tmp_path, Job(tflops=780), H200)
    assert fired(report) == {"HCP102"}


def test_an_unknown_gpu_leaves_the_rate_unjudged_and_the_next_steps_say_so(tmp_path):
    report = run(tmp_path, Job(tflops=1937))
    assert fired(report) == set()
    assert {outcome(report, rule) for rule in ("HCP101", "HCP102", "HCP104")} == {"inconclusive"}
    assert report.data.peak is None
    assert "--gpu NAME" in report.verdict.next_steps[-1]


def test_a_known_gpu_needs_no_such_step(tmp_path):
    report = run(tmp_path, Job(tflops=380), gpu="H200")
    assert not any("--gpu" in step for step in report.verdict.next_steps)


def test_the_user_names_the_gpu_where_the_log_does_not(tmp_path):
    report = run(tmp_path, Job(tflops=1937), gpu="h200")
    assert fired(report) == {"HCP101"}
    assert report.data.peak is not None
    assert "the user, not from the logs" in report.data.peak.explanation


def test_the_log_goes_before_the_user(tmp_path):
    report = run(tmp_path, Job(tflops=700), H200, gpu="A100")
    assert report.data.run.gpu == "H200"
    assert fired(report) == set()


def test_an_architecture_bounds_by_its_fastest_gpu(tmp_path):
    report = run(tmp_path, Job(cp=1, comm_type="p2p", sizes=None, tflops=1100), SM90)
    assert fired(report) == {"HCP101"}
    assert outcome(report, "HCP102") == outcome(report, "HCP104") == "inconclusive"
    report = run(tmp_path, Job(cp=1, comm_type="p2p", sizes=None, tflops=800), SM90)
    assert fired(report) == set()
    assert outcome(report, "HCP101") == "clean"
    assert outcome(report, "HCP102") == "inconclusive"


def test_fp8_is_judged_by_its_own_peak(tmp_path):
    job = Job(tflops=1200)
    compose(job, tmp_path)
    for log in tmp_path.rglob("*.log"):
        text = log.read_text().replace(
            "fp8 ............................................. None",
            "fp8 ............................................. hybrid",
        )
        log.write_text(text)
    (tmp_path / "gpus.log").write_text(H200 + "\n")
    report = scan(tmp_path)
    assert report.data.run.precision == "fp8"
    assert fired(report) == set()
    assert report.data.peak is not None
    assert report.data.peak.tflops == 1979


def test_an_unknown_precision_is_bounded_by_the_fastest_one(tmp_path):
    job = Job(cut_after="cp_comm_type", tflops=1200)
    report = run(tmp_path, job, H200)
    assert report.data.run.precision is None
    assert outcome(report, "HCP101") == "clean"
    assert outcome(report, "HCP102") == "inconclusive"
    assert report.data.peak is not None
    assert report.data.peak.assumed
    report = scan(tmp_path, precision="bf16")
    assert fired(report) == {"HCP101"}


def test_two_kinds_of_gpus_bound_by_the_faster(tmp_path):
    slow = H200.replace("H200", "A100-SXM4-80GB")
    assert fired(run(tmp_path, Job(tflops=700), slow, H200)) == set()
    report = run(tmp_path, Job(tflops=1100), slow, H200)
    assert fired(report) == {"HCP101"}
    assert report.data.run.gpu == "A100 or H200"


def test_a_gpu_that_the_table_lacks_needs_its_peak(tmp_path):
    other = H200.replace("NVIDIA H200", "NVIDIA GeForce RTX 3090")
    report = run(tmp_path, Job(tflops=90), other)
    assert report.data.run.gpu == "NVIDIA GeForce RTX 3090"
    assert outcome(report, "HCP101") == "inconclusive"
    assert "--peak-tflops" in report.verdict.next_steps[-1]
    report = scan(tmp_path, peak_tflops=71.0)
    assert fired(report) == {"HCP101"}


def test_gigaflops_printed_as_teraflops_are_a_slip_not_an_impossible_rate(tmp_path):
    report = run(tmp_path, Job(tflops=420_000, iterations=2), H200)
    assert fired(report) == {"HCP105"}


@pytest.mark.parametrize(("name", "value"), [("gpu", "H9000"), ("precision", "fp7")])
def test_what_the_user_names_must_be_known(tmp_path, name, value):
    with pytest.raises(HcpLogscanError, match=value) as caught:
        run(tmp_path, FLAT, **{name: value})
    assert caught.value.exit_code == 2


def test_a_list_of_gpus_alone_is_no_run(tmp_path):
    (tmp_path / "smi.log").write_text(H200 + "\n")
    with pytest.raises(HcpLogscanError) as caught:
        scan(tmp_path)
    assert caught.value.exit_code == 3


def test_a_number_that_only_cp_off_explains_is_said_to_be_so(tmp_path):
    job = Job(stack="bridge-0.3", sizes=None, cp=8, tflops=700)
    report = run(tmp_path, job, H200)
    known = report.data.attempts[0].facts
    whole = job.shape.linear + job.shape.attention
    inflation = whole / (job.shape.linear + job.shape.attention / 8)
    assert known["cp_off_inflation"] == pytest.approx(inflation, rel=1e-3)
    assert known["tflops_if_cp_off"] == pytest.approx(700, rel=0.02)


def changed(folder: Path, *edits: tuple[str, str]) -> Report:
    """The report on the logs of a folder after these replacements."""
    for log in folder.rglob("*.log"):
        text = log.read_text(encoding="utf-8")
        for old, new in edits:
            text = re.sub(old, new, text)
        log.write_text(text, encoding="utf-8")
    return scan(folder)


def message(report: Report, rule: str) -> str:
    return next(one.message for one in report.findings if one.rule == rule)


@pytest.mark.parametrize("stack", ["megatron-0.12", "megatron-main", "bridge-0.3"])
def test_the_printed_rate_follows_from_step_time_and_shape(tmp_path, stack):
    report = run(tmp_path, Job(stack=stack), H200, world_size=8)
    assert report.data.attempts[0].facts["formula_error"] < 0.001
    assert outcome(report, "HCP111") == "clean"


def test_an_impossible_number_points_at_the_explanation(tmp_path):
    report = run(tmp_path, Job(stack="bridge-0.3", sizes=None, cp=8, tflops=700), H200)
    said = "Explained by context parallelism that was off: 698 were done (71% of the peak). Hier"
    assert said in message(report, "HCP101")


def test_a_shorter_sequence_of_the_data_explains_before_cp_off(tmp_path):
    compose(Job(stack="bridge-0.3", layout="merged", sizes=None, cp=8, tflops=700), tmp_path)
    (tmp_path / "gpus.log").write_text(H200 + "\n", encoding="utf-8")
    report = changed(tmp_path, ("sequence_length: 32768", "sequence_length: 4096"))
    assert fired(report) == {"HCP101"}
    assert "counted for 32,768 tokens, the data set has 4,096" in message(report, "HCP101")
    assert report.tables["iterations"]["tokens_per_s_per_gpu"].null_count() == 6


def test_a_formula_of_its_own_explains_before_cp_off(tmp_path):
    compose(Job(layout="merged", tflops=350), tmp_path)
    (tmp_path / "gpus.log").write_text(H200 + "\n", encoding="utf-8")
    edit = (r"\(TFLOP/s/GPU\): ([0-9])", r"(TFLOP/s/GPU): 1\1")
    report = changed(tmp_path, edit)
    assert fired(report) == {"HCP101", "HCP111"}
    assert "by its formula (HCP111): Megatron's gives 349 (35% of the peak)." in message(
        report, "HCP101"
    )
    assert "give 349 by Megatron's formula, 286% off" in message(report, "HCP111")


def test_a_rate_of_another_precision_says_so(tmp_path):
    report = run(tmp_path, Job(comm_type="p2p", sizes=None, tflops=1100), H200)
    assert "It would be possible in FP8 (1,979 TFLOP/s)" in message(report, "HCP101")


def test_a_gpu_that_the_job_outruns_has_no_explanation(tmp_path):
    report = run(tmp_path, Job(comm_type="p2p", sizes=None, tflops=2100), H200)
    assert "Nothing in these logs explains the number." in message(report, "HCP101")


def test_nothing_is_explained_where_hierarchical_cp_was_not_asked_for(tmp_path):
    report = run(tmp_path, Job(comm_type="p2p", sizes=None, tflops=1100), H200)
    assert fired(report) == {"HCP101"}
    assert outcome(report, "HCP103") == "clean"


def test_levels_of_a_run_that_may_have_been_off_say_what_was_done_then(tmp_path):
    report = run(tmp_path, Job(stack="bridge-0.3", sizes=None, cp=8, tflops=700), H200)
    (found,) = report.data.levels
    assert found.believable == pytest.approx((0.1 * 989.4, 0.75 * 989.4))
    assert found.if_cp_off == report.data.attempts[0].facts["tflops_if_cp_off"]
    assert found.cp_size == 8


def test_levels_follow_the_parameters_of_rules_that_are_left_out_too(tmp_path):
    params = {"HCP102": {"max_share": 0.6}}
    report = run(tmp_path, Job(tflops=420), H200, params=params, ignore=["HCP1"])
    assert report.data.levels[0].believable == pytest.approx((0.1 * 989.4, 0.6 * 989.4))


def test_nothing_unknown_or_settled_has_a_level(tmp_path):
    (found,) = run(tmp_path, FLAT, H200).data.levels
    assert found.believable is not None
    assert (found.if_cp_off, found.cp_size) == (None, None)
    (found,) = run(tmp_path / "unknown", Job(tflops=420)).data.levels
    assert found.believable is None


def test_a_formula_is_checked_where_only_the_ranks_prove_the_world_size(tmp_path):
    report = run(tmp_path, Job(stack="bridge-main", layout="redirects"), H200)
    assert report.data.run.world_size == 8
    assert report.data.attempts[0].facts["formula_error"] < 0.001
    assert outcome(report, "HCP111") == "clean"


def test_a_formula_of_its_own_says_how_the_world_size_is_known(tmp_path):
    compose(Job(stack="bridge-main", layout="merged", tflops=350), tmp_path)
    (tmp_path / "launcher.log").write_text("  global_world_sizes=[8, 8, 8, 8, 8, 8, 8, 8]\n")
    report = changed(tmp_path, (r"utilization: ([0-9])", r"utilization: 9\1"))
    said = message(report, "HCP111")
    assert "8 ranks (known from the launcher)" in said


def test_a_formula_is_not_checked_where_nothing_proves_the_world_size(tmp_path):
    report = run(tmp_path, Job(stack="bridge-main", layout="merged", tflops=350), H200)
    assert report.data.run.world_size is None
    assert outcome(report, "HCP111") == "inconclusive"
