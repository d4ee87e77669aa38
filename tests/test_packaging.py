"""What others run or read of the repository: the action, the pre-commit hook, citation, security."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hcp_logscan import __version__

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "hcp_logscan" / "demo"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALL, SCAN = ACTION["runs"]["steps"]
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


# The action ---------------------------------------------------------------------------------------


def test_inputs_reach_the_scripts_as_environment_alone() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
    given = {
        re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1] for value in SCAN["env"].values()
    }
    assert given == set(ACTION["inputs"])
    assert all(f"${name}" in SCAN["run"] for name in SCAN["env"])
    outputs = {value["value"] for value in ACTION["outputs"].values()}
    assert outputs == {f"${{{{ steps.scan.outputs.{name} }}}}" for name in ACTION["outputs"]}


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The environment of a step behind the installation."""
    program = tmp_path / "temp" / "hcp-logscan" / "bin" / "hcp-logscan"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hcp_logscan "$@"\n')
    program.chmod(0o755)
    names = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
    files = {name: str(tmp_path / name.lower()) for name in names}
    return {**os.environ, **files, "RUNNER_TEMP": str(tmp_path / "temp"), "PYTHONPATH": str(ROOT)}


def step(runner: dict[str, str], cwd: Path, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Exit code, outputs and what was printed by the scanning step, run as a runner runs it."""
    values = {name: str(said.get("default", "")) for name, said in ACTION["inputs"].items()}
    values |= {name.replace("_", "-"): value for name, value in inputs.items()}
    env = {
        key: values[re.search(r"inputs\.([\w-]+)", text)[1]] for key, text in SCAN["env"].items()
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", SCAN["run"]],
        check=False, capture_output=True, text=True, cwd=cwd, env={**runner, **env},
    )  # fmt: skip
    said = Path(runner["GITHUB_OUTPUT"]).read_text().splitlines()
    return done.returncode, dict(line.split("=", 1) for line in said), done.stdout + done.stderr


def test_the_demo_fails_the_step_and_its_reports_are_outputs(
    runner: dict[str, str], tmp_path: Path
) -> None:
    code, outputs, shown = step(runner, tmp_path, run_dir=str(DEMO), expect="active,unconfirmed")
    assert code == 1
    assert (outputs["exit-code"], outputs["verdict"]) == ("1", "inactive")
    assert "HCP INACTIVE" in shown
    assert "--expect active,unconfirmed is not met" in shown
    assert json.loads(Path(outputs["sarif"]).read_text())["version"] == "2.1.0"
    assert Path(outputs["report"]).read_text().startswith("<!DOCTYPE html>")
    assert Path(outputs["junit"]).read_text().startswith("<?xml")
    assert "HCP inactive" in Path(runner["GITHUB_STEP_SUMMARY"]).read_text()
    assert set(outputs) == set(ACTION["outputs"])


def test_a_run_that_meets_the_gate_passes_the_step(runner: dict[str, str], tmp_path: Path) -> None:
    code, outputs, _ = step(runner, tmp_path, run_dir=str(DEMO), expect="inactive", fail_on="never")
    assert (code, outputs["exit-code"]) == (0, "0")


def test_suppressions_of_the_run_are_ignored_unless_asked_for(
    runner: dict[str, str], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(DEMO, tmp_path / "job"))
    rules = ("HCP002", "HCP101", "HCP103")
    text = "".join(f'[[suppress]]\nrule = "{rule}"\nreason = "x"\n' for rule in rules)
    (run / ".hcp-logscan.toml").write_text(text)
    assert step(runner, tmp_path, run_dir="job")[0] == 1
    assert step(runner, tmp_path, run_dir="job", suppressions="true")[0] == 0


@pytest.mark.parametrize(
    "evil",
    ['"; touch pwned; "', "$(touch pwned)", "`touch pwned`", "--output=pwned", "x\ntouch pwned"],
)
def test_no_input_becomes_code_or_an_option(
    evil: str, runner: dict[str, str], tmp_path: Path
) -> None:
    code, outputs, _ = step(runner, tmp_path, run_dir=evil)
    assert (code, outputs) == (2, {"exit-code": "2"})
    assert not (tmp_path / "pwned").exists()


def test_the_installation_asks_for_what_it_needs(tmp_path: Path) -> None:
    """Its commands, with a python that tells what it was asked for."""
    log = tmp_path / "log"
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(
        f'#!/bin/sh\necho "$@" >> "{log}"\n[ "$1" = -c ] && exec "{sys.executable}" "$@"\nexit 0\n'
    )
    python.chmod(0o755)
    (tmp_path / "temp" / "hcp-logscan" / "bin").mkdir(parents=True)
    shutil.copy(python, tmp_path / "temp" / "hcp-logscan" / "bin" / "python")
    env = {
        **os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_ACTION_PATH": str(ROOT),
    }  # fmt: skip
    subprocess.run(["bash", "-eo", "pipefail", "-c", INSTALL["run"]], check=True, env=env)
    _, venv, pip = log.read_text().splitlines()
    assert venv == f"-m venv {tmp_path}/temp/hcp-logscan"
    assert pip.startswith("-m pip install ")
    assert pip.endswith(str(ROOT))


# pre-commit ---------------------------------------------------------------------------------------


def hook(cwd: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    program, *entry = HOOK["entry"].split()
    assert program == "hcp-logscan"
    command = [sys.executable, "-m", "hcp_logscan", *entry, *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd, env=env)


def test_the_hook_passes_sound_rules_and_names_the_line_of_a_mistake(tmp_path: Path) -> None:
    assert HOOK["language"] == "python"
    assert HOOK["pass_filenames"] is False
    rules = tmp_path / "rules"
    rules.mkdir()
    own = (
        next((ROOT / "rules").glob("HCP101-*.yaml")).read_text().replace("id: HCP101", "id: OWN101")
    )
    (rules / "OWN101-above-dense-peak.yaml").write_text(own)
    done = hook(tmp_path, HOOK["args"])
    assert done.returncode == 0, done.stdout + done.stderr
    (rules / "OWN101-above-dense-peak.yaml").write_text(
        own.replace("severity: error", "severity: bad")
    )
    done = hook(tmp_path, HOOK["args"])
    assert done.returncode != 0
    assert "OWN101-above-dense-peak.yaml:" in done.stdout + done.stderr
    assert hook(tmp_path, ["elsewhere"]).returncode == 2


# Documents ----------------------------------------------------------------------------------------


def test_the_citation_has_what_its_format_asks_for_and_this_version() -> None:
    cited: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(cited)
    assert all(set(author) & {"name", "family-names"} for author in cited["authors"])
    assert cited["version"] == __version__
    assert cited["license"] == "Apache-2.0"
    assert cited["type"] in {"software", "dataset"}


def test_the_tests_that_hold_each_promise_are_there() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/.]+)`", text))
    assert len(named) > 8
    assert [name for name in named if not (ROOT / name).exists()] == []
    rows = text.partition("## What is promised")[2].partition("The program opens")[0].splitlines()
    assert all(
        "`tests/" in row for row in rows if row.startswith("| ") and "| held by |" not in row
    )


def test_the_workflow_of_the_documents_names_inputs_and_outputs_that_exist() -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    workflow, hooks = (
        yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    )
    (used,) = [one for one in workflow if one.get("id") == "logs"]
    assert set(used["with"]) <= set(ACTION["inputs"])
    assert set(re.findall(r"steps\.logs\.outputs\.([\w-]+)", text)) <= set(ACTION["outputs"])
    assert hooks[0]["hooks"][0]["id"] == HOOK["id"]
