"""docs/architecture.md: its snippets run, what it names exists, and every module stands in it."""

import doctest
import importlib
import re
import tomllib
from pathlib import Path

import pytest
from scripts import script

from hcp_logscan.cli.guide import BEGIN, END

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")
MODULES = {
    path.relative_to(ROOT / "hcp_logscan").with_suffix("").as_posix().replace("/", ".")
    for path in (ROOT / "hcp_logscan").rglob("*.py")
    if not path.stem.startswith("__")
}
PROSE = TEXT[: TEXT.index(BEGIN)]
NAMED = sorted(set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", PROSE)))
TREE = re.search(r"## Where things live\n.*?```text\n(.*?)```", TEXT, re.DOTALL)[1]


def tool():
    return script("tools/docs_modules.py")


def test_the_list_of_modules_is_current():
    made = TEXT[TEXT.index(BEGIN) : TEXT.index(END) + len(END)]
    assert made == tool().made(), "make docs"


def test_every_module_of_a_layer_is_listed_under_it():
    listed = set()
    for part in re.split(r"^### ", TEXT[TEXT.index(BEGIN) :], flags=re.MULTILINE)[1:]:
        layer = re.match(r"`(\w+)`", part)[1]
        names = re.findall(r"^- `([\w/]+)\.py`", part, re.MULTILINE)
        listed |= {f"{layer}.{name}".replace("/", ".") for name in names}
    assert listed == {name for name in MODULES if "." in name}


def test_the_layers_are_those_of_the_import_linter():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = project["tool"]["importlinter"]["contracts"]
    layers = [name.removeprefix("hcp_logscan.") for name in contract["layers"]]

    shown = re.search(r"```text\n( cli .*?)```", TEXT, re.DOTALL)[1]
    assert re.findall(r"^ (\w+) ", shown, re.MULTILINE) == layers
    short = re.search(r"```\n(cli -> .*)\n```", (ROOT / "CONTRIBUTING.md").read_text())[1]
    assert short.split(" -> ") == layers
    assert list(tool().LAYERS) == [name for name in layers if name != "api"]


@pytest.mark.parametrize("name", NAMED)
def test_functions_that_are_named_exist(name):
    words = name.split(".")
    depth = max(n for n in range(1, len(words) + 1) if ".".join(words[:n]) in {*MODULES, words[0]})
    found = importlib.import_module("hcp_logscan." + ".".join(words[:depth]))
    for word in words[depth:]:
        found = getattr(found, word)


def places():
    """The patterns of the tree, relative to the repository."""
    parents = []
    for line in TREE.splitlines():
        names = re.match(r" *((?:[\w*]+/?(?:, )?)+)", line)
        if names is None or line.startswith(" " * 20):
            continue  # the words of the line above
        depth = (len(line) - len(line.lstrip())) // 2
        for name in names[1].split(", "):
            parents = [*parents[:depth], name]
            yield "".join(parents) if name.endswith("/") else "".join(parents) + ".py"


def test_the_tree_names_what_there_is():
    found = list(places())
    assert len(found) > 100
    for place in found:
        assert list(ROOT.glob(place.rstrip("/"))), place


def test_its_snippets_run():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried >= 6) == (0, True)
