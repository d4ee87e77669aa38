"""Makefile, pre-commit and CI run the same checks, in the versions of pyproject.toml."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def targets():
    """Target -> what it needs and its commands."""
    rules = re.findall(r"^([a-z-]+):([^#\n]*).*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
    return {name: (needs.split(), commands) for name, needs, commands in rules}


def test_pre_commit_runs_make_targets_that_make_test_runs():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"].split() for repo in config["repos"] for hook in repo["hooks"]]

    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    assert all(entry[0] == "make" and len(entry) == 2 for entry in entries)
    assert {entry[1] for entry in entries} <= set(targets()["test"][0])
    assert ["make", "lint"] in entries


def test_lint_runs_formatter_style_and_layers():
    commands = targets()["lint"][1]

    for command in ("ruff format --check .", "ruff check .", "lint-imports"):
        assert f"$(BIN)/{command}\n" in commands


def test_tools_that_may_turn_a_build_red_are_pinned():
    extras = PROJECT["project"]["optional-dependencies"]
    pinned = {one.partition("==")[0] for one in (*extras["dev"], *extras["docs"]) if "==" in one}
    assert {"ruff", "mypy", "zensical", "basedpyright"} <= pinned


def test_every_target_says_what_it_does_and_is_phony():
    described = set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE))
    phony = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())

    assert described == phony == set(targets())


def test_ci_runs_tests_demo_and_site():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make (.*)$", script, re.MULTILINE) == ["test", "demo", "site"]


def test_extras_that_users_install_are_named_in_the_documentation():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    words = "".join(page.read_text(encoding="utf-8") for page in pages)
    for extra in ("dask", "remote"):
        assert extra in PROJECT["project"]["optional-dependencies"]
        assert re.search(rf"hcp-logscan\[{extra}\]|extra `{extra}`", words), extra
