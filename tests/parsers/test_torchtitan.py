"""torchtitan's lines of every age, and what must not be taken for one."""

from __future__ import annotations

import math

import pytest

from hcp_logscan import scan
from hcp_logscan.engine.run import scan_files
from hcp_logscan.sources.discover import discover

HEAD = "2026-03-01 09:14:20,123 - root - INFO - "
RED, GREEN, ORANGE, BLUE, CYAN = (
    f"\x1b[{code}m" for code in ("31", "32", "38;2;180;60;0", "34", "36")
)


def tables(tmp_path, text):
    (tmp_path / "train.log").write_text(text, encoding="utf-8")
    return scan_files(discover(tmp_path))


STEPS = {
    "March 2024, words per second": (
        HEAD + "step: 10  loss:  7.8123  memory: 42.08GiB(30.10%)  wps: 1,466  mfu: 8.58%",
        (10, 7.8123, None, 1466.0, None, 0.0858),
    ),
    "January 2025, without the tag and without tflops": (
        "[rank0]:"
        + HEAD
        + "step:  1  loss: 12.2540  memory: 42.08GiB(30.10%)  tps: 81  mfu: 0.52%",
        (1, 12.254, None, 81.0, None, 0.0052),
    ),
    "February 2025, with tflops": (
        "[rank0]:[titan] " + HEAD + "step: 20  loss:  5.1001  memory: 61.20GiB(77.00%)"
        "  tps: 12,210  tflops: 1,431.70  mfu: 43.65%",
        (20, 5.1001, None, 12210.0, 1431.7, 0.4365),
    ),
    "main, with the gradient norm": (
        "[titan] " + HEAD + "step: 10  loss:  7.81234  grad_norm:  1.2340  memory: 61.20GiB(77.00%)"
        "  tps: 4,210  tflops: 431.70  mfu: 43.65%",
        (10, 7.81234, 1.234, 4210.0, 431.7, 0.4365),
    ),
    "main under FP8": (
        "[titan] "
        + HEAD
        + "step: 10  loss:  7.81234  grad_norm: 512.2340  memory: 61.20GiB(77.00%)"
        "  tps: 4,210  tflops: 431.70  mfu: N/A",
        (10, 7.81234, 512.234, 4210.0, 431.7, None),
    ),
    "coloured": (
        f"[rank0]:[titan] {HEAD}{RED}step: 10  {GREEN}loss:  7.81234  {ORANGE}grad_norm:  1.2340  "
        f"{ORANGE}memory: 61.20GiB(77.00%)  {BLUE}tps: 4,210  {CYAN}tflops: 431.70  "
        f"{RED}mfu: 43.65%\x1b[39m",
        (10, 7.81234, 1.234, 4210.0, 431.7, 0.4365),
    ),
    "coloured, through a log store that drops the escape byte": (
        f"[titan] {HEAD}[31mstep: 10  [32mloss:  7.81234  [38;2;180;60;0mgrad_norm:  1.2340  "
        "[36mmemory: 61.20GiB(77.00%)  [34mtps: 4,210  [36mtflops: 431.70  [35mmfu: 43.65%[39m",
        (10, 7.81234, 1.234, 4210.0, 431.7, 0.4365),
    ),
    "more than the peak it believes in": (
        "[titan] " + HEAD + "step: 40  loss:  6.1120  grad_norm:  0.8123  memory: 120.11GiB(42.00%)"
        "  tps: 9,120  tflops: 474.30  mfu: 152.02%",
        (40, 6.112, 0.8123, 9120.0, 474.3, 1.5202),
    ),
    "run by Primus": (
        "[20260301 09:14:20][rank-0/8][INFO ] step:  1  loss: 11.7765  memory: 42.08GiB(30.10%)"
        "  tps: 4,466  tflops: 301.20  mfu: 23.10%",
        (1, 11.7765, None, 4466.0, 301.2, 0.231),
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_a_step_line_of_every_age_is_read(tmp_path, case):
    line, expected = STEPS[case]

    row = tables(tmp_path, line + "\n")["iterations"].row(0, named=True)

    names = ("iteration", "lm_loss", "grad_norm", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu")
    assert tuple(row[name] for name in names) == pytest.approx(expected)
    assert (row["cut"], row["producer"]) == (False, "torchtitan")


def test_the_time_of_a_step_sorts_with_those_of_other_lines(tmp_path):
    line = "[titan] " + HEAD + "step: 1  loss: 1.0  memory: 1.20GiB(7.00%)  tps: 4  mfu: 4.65%\n"

    assert tables(tmp_path, line)["iterations"]["time"].to_list() == ["2026-03-01 09:14:20.123"]


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_not_finite_is_kept_as_printed(tmp_path, value):
    line = (
        f"step:  3  loss:      {value}  grad_norm:     {value}  memory: 1.20GiB(7.00%)  tps: 4,210"
    )

    row = tables(tmp_path, line + "  tflops: 4.70  mfu: 43.65%\n")["iterations"].row(0, named=True)

    assert [str(row[name]) for name in ("lm_loss", "grad_norm")] == [value, value]


@pytest.mark.parametrize(
    "end",
    ["memory: 61.20GiB(77.00%)  tps: 4,210  tflops: 431", "memory: 61.20GiB(77.00%)  tps: 4,21"],
)
def test_a_step_line_that_ends_early_is_cut(tmp_path, end):
    row = tables(tmp_path, f"step: 10  loss:  7.81234  {end}")["iterations"].row(0, named=True)

    assert (row["cut"], row["tflops_per_gpu"], row["mfu"]) == (True, None, None)


NOT_STEPS = {
    "validation": "validate step: 10  loss:  7.8123  memory: 61.20GiB(77.00%)  tps: 12,030",
    "prose": "we stopped at step: 5  loss: 2.0 was fine",
    "memory of the model": "CUDA memory usage for model: 3.77GiB(2.70%)",
    "memory with a step": "step: 5 took 3.77GiB(2.70%)",
    "another trainer": "{'loss': 1.0, 'step': 5, 'memory': '3.77GiB(2.70%)'}",
}


@pytest.mark.parametrize("case", NOT_STEPS)
def test_what_is_no_step_line_is_no_iteration(tmp_path, case):
    found = tables(tmp_path, NOT_STEPS[case] + "\n")

    assert not found["iterations"].height
    assert not found["drift"].height


def test_a_validation_line_is_a_validation(tmp_path):
    text = HEAD + NOT_STEPS["validation"] + "\n"

    assert tables(tmp_path, text)["validations"].select("iteration", "lm_loss").rows() == [
        (10, 7.8123)
    ]


def step(number, loss, norm, mfu="43.65%"):
    return (
        f"[rank0]:[titan] 2026-03-01 09:14:{number:02},123 - root - INFO - step: {number:2}  loss:"
        f" {loss}  grad_norm: {norm}  memory: 61.20GiB(77.00%)  tps: 4,210  tflops: 431.70  mfu:"
        f" {mfu}\n"
    )


def run(tmp_path, *lines):
    start = "[rank0]:[titan] 2026-03-01 09:14:00,123 - root - INFO - Training starts at step 1\n"
    end = "[rank0]:[titan] 2026-03-01 09:15:00,123 - root - INFO - Training completed\n"
    (tmp_path / "train.log").write_text(start + "".join(lines) + end, encoding="utf-8")
    return scan(tmp_path)


def test_loss_nan_at_step_3_is_found_at_step_3(tmp_path):
    losses = [
        ("2.83100", "104.1000"),
        ("2.83010", "569.0000"),
        ("    nan", "nan"),
        ("    nan", "nan"),
    ]

    report = run(tmp_path, *(step(n, *values) for n, values in enumerate(losses, 1)))

    found = {finding.rule: finding.iteration for finding in report.findings}
    assert found["HCP202"] == 3
    assert not {"HCP201", "HCP212"} & set(found)


def test_a_finished_run_is_completed_and_named(tmp_path):
    report = run(tmp_path, *(step(n, "2.83100", "1.1000", "152.02%") for n in (1, 2, 3)))

    attempt, run_info = report.data.attempts[0], report.data.run
    said = (run_info.framework, attempt.outcome, attempt.iterations)
    assert said == ("torchtitan", "completed", 3)
    assert not [finding for finding in report.findings if finding.severity == "error"]
    assert math.isclose(report.data.series.tflops_per_gpu.median or 0.0, 431.7)


def test_every_rank_prints_and_each_step_counts_once(tmp_path):
    lines = [
        step(n, "2.83100", "1.1000").replace("rank0", f"rank{r}") for n in (1, 2) for r in (0, 1)
    ]

    assert run(tmp_path, *lines).data.series.iterations == 2


def test_a_rank_without_the_last_pipeline_stage_has_no_loss(tmp_path):
    lines = [step(1, "-1.00000", "1.1000"), step(1, "2.83100", "1.1000").replace("rank0", "rank7")]
    lines.append(step(2, "-1.00000", "1.1000"))

    report = run(tmp_path, *lines)

    assert report.data.iterations["lm_loss"].to_list() == [2.831, None]
    assert not [finding for finding in report.findings if finding.severity == "error"]
