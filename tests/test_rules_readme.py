"""rules/README.md teaches with one rule: what it shows is what the program does."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from hcp_logscan.cli.app import main
from hcp_logscan.rules import load, sql

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "rules" / "README.md").read_text(encoding="utf-8")
NAME = "OPS001-iteration-lines-too-rare.yaml"
RULE = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[1]
CONSOLES = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the rule and with a run that is its log example."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / NAME).write_text(RULE)
    log = next(one["log"] for one in yaml.safe_load(RULE)["examples"] if "log" in one)
    (tmp_path / "RUN_DIR").mkdir()
    (tmp_path / "RUN_DIR" / "train.log").write_text(log)
    return tmp_path


def run(command, capsys):
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "hcp-logscan"
    code = main(arguments)
    return code, capsys.readouterr().out


def test_the_rule_loads_and_is_named_as_it_says():
    data = yaml.safe_load(RULE)

    assert f"`{NAME}`:\n\n```yaml" in TEXT
    assert f"{data['id']}-{data['name']}.yaml" == NAME


@pytest.mark.parametrize(
    ("number", "right", "wrong", "code"),
    [
        (0, "", "", 0),
        (1, "log_interval > longest", "log_intervall > longest", 2),
        (2, "log_interval > longest", "log_interval >= longest", 2),
    ],
)
def test_the_check_prints_what_is_shown(number, right, wrong, code, folder, capsys):
    assert wrong in TEXT
    (folder / NAME).write_text(RULE.replace(right, wrong))
    command, shown = CONSOLES[number].split("\n", 1)

    assert run(command, capsys) == (code, shown)


@pytest.mark.parametrize(
    ("number", "code", "finds"), [(0, 0, True), (1, 1, True), (2, 0, False), (3, 0, True)]
)
def test_the_commands_run(number, code, finds, folder, capsys):
    command = CONSOLES[3].splitlines()[number]
    got, shown = run(command, capsys)

    assert got == code
    assert ("OPS001" in shown) == finds


def test_functions_that_are_listed_are_those_that_are_allowed():
    section = TEXT[TEXT.index("## What `when` may say") : TEXT.index("Strings stand in")]
    named = set(re.findall(r"`([A-Z_]+)`", section))

    assert named - {"AND", "OR", "NOT", "LIKE", "ILIKE", "IN", "BETWEEN"} == (
        sql.FUNCTIONS - {"COALESCE"}
    )


def test_links_lead_somewhere_and_the_page_is_no_rule():
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (ROOT / "rules" / target).exists(), target
    assert {rule.id for rule in load.load_rules()} >= {"HCP001", "HCP906"}
