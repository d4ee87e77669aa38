"""CONTRIBUTING.md: each recipe, followed to the letter in a copy of the checkout, does what it shows."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_snippets import blocks, commands, matches

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
TEXT = PAGE.read_text(encoding="utf-8")
MARK = "tested by: tests/test_recipes.py"
LAYERS = ["-c", "from importlinter.cli import lint_imports_command as run; run()"]
RECIPES = re.findall(r"^### (.*)$", TEXT[TEXT.index("## Recipes") :], re.MULTILINE)


@pytest.fixture
def checkout(tmp_path):
    """What a fresh checkout needs for the program to run."""
    for name in ("hcp_logscan", "rules"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    return tmp_path


def steps(recipe):
    """(path named last before the block, how, block) in the order of the page."""
    lines = TEXT.splitlines()
    first = lines.index(f"### {recipe}")
    last = next(
        (
            i
            for i in range(first + 1, len(lines))
            if lines[i].startswith("#" * 2 + " ") or lines[i].startswith("### ")
        ),
        len(lines),
    )
    for block in blocks(PAGE):
        if first < block.line <= last and block.mark == MARK:
            before = "\n".join(lines[first : block.line])
            named = re.findall(r"(?:^|(In|At the end of) )`([\w./-]+)`:$", before, re.MULTILINE)
            yield named[-1] if named else ("", ""), block


def changed(text, diff):
    """A file with a change without line numbers, whose lines must stand in it once."""
    lines = diff.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
    new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
    assert text.count(old) == 1, f"stands {text.count(old)} times in the file:\n{old}"
    return text.replace(old, new)


def call(words, folder):
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def follow(block, place, folder):
    how, name = place
    path = folder / name
    if block.language == "console":
        for command, shown in commands(block.text):
            program, *arguments = shlex.split(command)
            start = ["-m", "hcp_logscan"] if program == "hcp-logscan" else []
            done = call([*start, *arguments], folder)
            assert done.returncode in {0, 1}, done.stderr
            if shown or program == "python":
                assert matches(shown, done.stdout), done.stdout
    elif block.text.startswith(">>> "):
        (folder / "shown.txt").write_text(block.text, encoding="utf-8")
        done = call(["-m", "doctest", "shown.txt"], folder)
        assert done.returncode == 0, done.stdout
    elif block.language == "diff":
        assert how == "In"
        path.write_text(changed(path.read_text(encoding="utf-8"), block.text), encoding="utf-8")
    elif how == "At the end of":
        path.write_text(path.read_text(encoding="utf-8") + "\n" + block.text, encoding="utf-8")
    else:
        assert not path.exists(), f"{name} is there already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_does_what_it_shows(recipe, checkout):
    made = list(steps(recipe))
    assert any(block.language == "console" or ">>> " in block.text for _, block in made)
    for place, block in made:
        follow(block, place, checkout)


def test_the_code_of_all_recipes_has_the_style_and_the_layers_of_the_house(checkout):
    for recipe in RECIPES:
        for place, block in steps(recipe):
            if block.language in {"python", "diff"} and not block.text.startswith(">>> "):
                follow(block, place, checkout)
    shutil.copy(ROOT / "pyproject.toml", checkout)
    for words in (["-m", "ruff", "format", "--diff", "."], ["-m", "ruff", "check", "."], LAYERS):
        done = call(words, checkout)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_row_of_the_table_that_is_common_has_a_recipe():
    assert RECIPES == [
        "A rule",
        "A line format",
        "A log layout",
        "A GPU",
        "A fact",
        "An output format",
    ]
