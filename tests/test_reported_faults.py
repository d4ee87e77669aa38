"""Faults of throughput and loss that users reported, with twins in which nothing is wrong.

Where the tests are: `here`, in another module, or as a fixture that `test_runs` judges.

| reported | found by | quiet twins | tests |
|---|---|---|---|
| CP 16 without sizes, 1937 TFLOP/s on an H200 | HCP002, 101, 103 | sizes; a2a; fixed | `case01-*` |
| CP 4 and padding: NaN from iteration 1 | HCP201 and a hint | finite; NaN later | here, `loss_runs` |
| NVFP4, CP 2: norm NaN, loss finite | HCP203 and a hint | finite norms | here, `loss_runs` |
| the same beside a good run | CP, precision listed first | - | here |
| a policy's norm in the hundreds under CP | HCP205; ratio to CP 1 | norm below 1 | here, `verl-*` |
| labels misaligned by CP: lower norm | its ratio to a good run | the run alone | here, `verl-*` |
| MFU above 100 %, by another GPU's peak | HCP104 alone | right peak; no GPU | `case13-*` |
| 420 TFLOP/s on an H200 | nothing | MFU of the sparse peak: HCP104 | `case15-*` |
| loss left out of the line, norm NaN | HCP201 | negative; cut; no loss | `case17-*` |
| FP8 and TP: fivefold norm, then NaN | HCP205 before 202 | no NaN | here, `torchtitan-*` |
| slower than a good run in its late part | HCP109 | equal runs | `baseline` |
"""

import re

import pytest
from runs import FIXTURES
from test_loss_runs import line
from test_loss_runs import report as megatron

from hcp_logscan import scan
from hcp_logscan.rules.load import load_rules

LOSSES = {rule.id for rule in load_rules() if rule.id.startswith("HCP2")}


def edited(tmp_path, fixture, pattern, new, *, name="edited"):
    """The logs of a fixture with every match replaced."""
    folder = tmp_path / name
    folder.mkdir()
    for log in (FIXTURES / fixture / "run").iterdir():
        text = log.read_text(encoding="utf-8")
        (folder / log.name).write_text(re.sub(pattern, new, text), encoding="utf-8")
    return folder


def fired(report):
    return {
        finding.rule: finding.iteration for finding in report.findings if finding.rule in LOSSES
    }


def norm_ratio(report):
    """Median of the ratios of the gradient norm in each third."""
    windows = report.data.comparison.windows
    return [window.ratio for window in windows if window.metric == "grad_norm"]


def test_padded_data_under_cp_with_a_finite_beginning_is_quiet(tmp_path):
    found = megatron(tmp_path, *(line(i) for i in range(1, 41)))
    assert fired(found) == {}


def test_low_precision_under_cp_with_finite_norms_is_quiet(tmp_path):
    found = megatron(tmp_path, *(line(i, loss="11.2") for i in range(1, 41)), cp=2, fp4="nvfp4")
    assert fired(found) == {}


def test_cp_and_precision_stand_first_among_what_a_good_run_has_otherwise(tmp_path):
    for folder in ("good", "bad"):
        (tmp_path / folder).mkdir()
    megatron(tmp_path / "good", *(line(i, loss="11.2") for i in range(1, 41)), cp=1)
    lines = [line(i, loss="11.2", norm="nan") for i in range(1, 41)]
    megatron(tmp_path / "bad", *lines, cp=2, fp4="nvfp4")
    found = scan(tmp_path / "bad", baseline=tmp_path / "good")
    assert [one.key for one in found.data.comparison.differences[:2]] == [
        "context_parallel_size",
        "fp4",
    ]
    assert fired(found) == {"HCP203": 1}


def test_a_policy_whose_norm_is_below_one_is_quiet(tmp_path):
    run = edited(
        tmp_path, "verl-gradient-norm-explodes", r"grad_norm:4(\d\d\.\d)", r"grad_norm:0.4\1"
    )
    assert fired(scan(run)) == {}


def test_a_policys_norm_beside_that_of_a_good_run_is_told_as_a_ratio(tmp_path):
    fixture = "verl-gradient-norm-explodes"
    good = edited(tmp_path, fixture, r"grad_norm:(\d+)\.", r"grad_norm:0.\1")
    found = scan(FIXTURES / fixture / "run", baseline=good)
    assert "HCP205" in fired(found)
    assert norm_ratio(found) == pytest.approx([1_000.0] * 3, rel=0.01)


def test_misaligned_labels_show_beside_a_good_run_only(tmp_path):
    fixture = "verl-labels-misaligned-looks-healthy"
    good = edited(tmp_path, fixture, r"grad_norm:0\.", "grad_norm:1.")
    assert fired(scan(FIXTURES / fixture / "run")) == {}
    found = scan(FIXTURES / fixture / "run", baseline=good)
    assert all(ratio < 0.3 for ratio in norm_ratio(found))


def test_the_spike_before_a_nan_stands_before_it():
    assert fired(scan(FIXTURES / "torchtitan-nan-at-step-3" / "run")) == {"HCP205": 2, "HCP202": 3}


def test_the_same_growth_without_a_nan_is_quiet(tmp_path):
    run = edited(tmp_path, "torchtitan-nan-at-step-3", r"(loss|grad_norm):( +)nan", r"\1:  2.8290")
    assert fired(scan(run)) == {}
