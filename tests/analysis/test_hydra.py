"""Hydra leaves `.hydra/` beside the logs: what was set, never what was left at its default."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hcp_logscan import scan

if TYPE_CHECKING:
    from hcp_logscan import Report

CONSOLE = Path(__file__).parents[1] / "fixtures/hcp22-console-without-prefixes/run/console.log"
ITERATION = (
    " [2026-03-01 09:14:20] iteration        1/      10 | consumed samples:           16 | elapsed"
    " time per iteration (ms): 5120.4 | learning rate: 2.9E-04 | global batch size:    16 | lm loss:"
    " 7.812345E+00 | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number"
    " of nan iterations:   0 |\n"
)
COMPOSED = """\
model:
  context_parallel_size: 4
  cp_comm_type: a2a+p2p
  hierarchical_context_parallel_sizes:
  - 2
  - 2
trainer:
  max_steps: 10
"""
OVERRIDES = """\
- model.context_parallel_size=4
- ++model.cp_comm_type=a2a+p2p
- 'model.hierarchical_context_parallel_sizes=[2,2]'
"""
OWN = "hydra:\n  overrides:\n    task:\n    - model.context_parallel_size=4\n  job:\n    name: x\n"


def run_of(tmp_path: Path, log: str, **files: str) -> Report:
    (tmp_path / "run" / ".hydra").mkdir(parents=True)
    (tmp_path / "run" / "train.log").write_text(log, encoding="utf-8")
    for name, text in files.items():
        (tmp_path / "run" / ".hydra" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return scan(tmp_path / "run")


@pytest.mark.parametrize(
    "files", [{"config": COMPOSED}, {"overrides": OVERRIDES, "hydra": OWN}], ids=["config", "list"]
)
def test_what_was_set_is_known_and_what_was_not_is_unknown(tmp_path, files):
    report = run_of(tmp_path, ITERATION, **files)
    facts = report.facts["attempts"].row(0, named=True)
    assert (facts["cp_size"], facts["cp_comm_type"]) == (4, "a2a+p2p")
    assert facts["hcp_sizes_set"] is True
    assert facts["use_decentralized_pg"] is None
    assert report.verdict.status == "inconclusive"
    assert report.data.health.truncated == ()


def test_a_comm_type_alone_does_not_say_that_sizes_are_missing(tmp_path):
    text = "- model.context_parallel_size=4\n- model.cp_comm_type=a2a+p2p\n"
    report = run_of(tmp_path, ITERATION, overrides=text)
    assert report.facts["attempts"]["hcp_sizes_set"].to_list() == [None]
    assert report.verdict.status == "inconclusive"
    assert "HCP002" not in {finding.rule for finding in report.findings}


def test_what_the_trainer_printed_is_in_effect(tmp_path):
    log = CONSOLE.read_text(encoding="utf-8")
    report = run_of(tmp_path, log, overrides=OVERRIDES.replace("[2,2]", "[4,1]"))
    assert report.facts["attempts"]["hcp_sizes"].to_list() == [[2, 2]]
    assert report.verdict.status == "unconfirmed"


@pytest.mark.parametrize(
    "text", ["- a\n- b=1\n", OWN, f"{OVERRIDES}other: 1\n", "", "- lr=0.1\n- seed=3\n"]
)
def test_other_yaml_says_nothing(tmp_path, text):
    report = run_of(tmp_path, ITERATION, overrides=text)
    assert report.facts["attempts"]["cp_size"].to_list() == [None]
    assert report.data.health.truncated == ()
