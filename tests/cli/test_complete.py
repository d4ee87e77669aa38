"""Completion: scripts for three shells, and the words that they get."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hcp_logscan.cli import complete
from hcp_logscan.model.finding import STATUSES
from hcp_logscan.rules.load import load_rules

ROOT = Path(__file__).parents[2]
SHELLS = ("bash", "zsh", "fish")
RULES = [rule.id for rule in load_rules()]


@pytest.fixture
def program(tmp_path):
    """A `hcp-logscan` on the path, as an installation has it; its environment."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "hcp-logscan"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hcp_logscan "$@"\n')
    script.chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


def run(command, env, cwd, **more):
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**env, **more}, cwd=cwd
    )
    assert "Traceback" not in done.stderr
    return done.stdout


def asked(env, cwd, *words):
    """What fish is given for these words, the last of them begun: value -> help."""
    said = {"_TYPER_COMPLETE_FISH_ACTION": "get-args", "_TYPER_COMPLETE_ARGS": " ".join(words)}
    out = run(["hcp-logscan"], env, cwd, _HCP_LOGSCAN_COMPLETE="complete_fish", **said)
    return dict(line.split("\t") if "\t" in line else (line, "") for line in out.splitlines())


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("order", ["{}_source", "source_{}"])
def test_each_shell_gets_a_script_in_its_own_language(shell, order, program, tmp_path):
    out = run(["hcp-logscan"], program, tmp_path, _HCP_LOGSCAN_COMPLETE=order.format(shell))
    mark = {
        "bash": "complete -o default -F _hcp_logscan_completion hcp-logscan",
        "zsh": "compdef _hcp_logscan_completion hcp-logscan",
        "fish": "complete --command hcp-logscan",
    }[shell]
    assert mark in out
    assert f"_HCP_LOGSCAN_COMPLETE=complete_{shell}" in out
    found = shutil.which(shell)
    if found and shell != "fish":
        checked = subprocess.run(
            [found, "-n"], input=out, text=True, capture_output=True, check=False
        )
        assert (checked.returncode, checked.stderr) == (0, "")


def test_bash_completes_with_the_line_of_the_readme(program, tmp_path):
    line = re.search(
        r"^eval .*bash_source hcp-logscan\)\"", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert line is not None
    assert line[0] in (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
    for words, wanted in (
        (["--expect", "not"], ["not_requested"]),
        (["run", "--select", "HCP101,HCP90"], [f"HCP101,HCP90{n}" for n in range(1, 7)]),
        (["--explain", "HCP30"], [f"HCP30{n}" for n in range(1, 8)]),
        (["--fail"], ["--fail-on"]),
        (["--engine", ""], ["local", "dask"]),
    ):
        script = (
            f"{line[0]}\nCOMP_WORDS=(hcp-logscan {' '.join(words)} {'' if words[-1] else chr(39) * 2})\n"
            f"COMP_CWORD={len(words)}\n_hcp_logscan_completion hcp-logscan\n"
            'printf "%s\\n" "${COMPREPLY[@]}"\n'
        )
        assert run(["bash", "-c", script], program, tmp_path).split() == wanted


def test_options_have_their_help_on_one_line(program, tmp_path):
    found = asked(program, tmp_path, "hcp-logscan", "--")
    assert {"--no-suppressions", "--baseline", "--fail-on", "--version"} <= set(found)
    assert all(word.startswith("--") and about for word, about in found.items())


def test_every_shipped_rule_is_offered_with_its_name(program, tmp_path):
    assert list(asked(program, tmp_path, "hcp-logscan", "--ignore", "HCP")) == RULES
    assert asked(program, tmp_path, "hcp-logscan", "--explain", "HCP501") == {
        "HCP501": "gpu out of memory"
    }


def test_lists_go_on_behind_a_comma_without_what_they_hold():
    assert [word for word, _ in complete.statuses("active,")] == [
        f"active,{name}" for name in STATUSES if name != "active"
    ]
    assert complete.rules("HCP901,hcp901") == []
    assert [word for word, _ in complete.rules("")] == RULES
    assert complete.rule("hcp502") == [("HCP502", "host out of memory")]
    assert complete.rule("HCP1,") == []


def test_help_has_no_word_of_it(program, tmp_path):
    assert "ompletion" not in run(["hcp-logscan", "--help"], program, tmp_path)


def test_version_loads_nothing_heavy(program, tmp_path):
    code = (
        "import sys; from hcp_logscan.cli.app import main; main(['--version']);"
        "heavy = {'polars', 'numpy', 'pydantic', 'jinja2', 'plotly', 'yaml', 'regex', 'rich',"
        " 'hyperscan', 'asyncio'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run([sys.executable, "-c", code], program, tmp_path).splitlines()[1] == "[]"
