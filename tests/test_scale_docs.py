"""docs/scale.md: its options exist, its recipes are what the tools understand."""

import re
from pathlib import Path

import pytest
import typer
import yaml

from hcp_logscan.cli.app import app

TEXT = (Path(__file__).parents[1] / "docs" / "scale.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def known(command):
    return {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


def commands():
    """Every command line of the document, as words."""
    joined = "\n".join([*blocks(""), *blocks("bash")]).replace("\\\n", " ")
    lines = [re.sub(r"^srun --overlap ", "", line).split() for line in joined.splitlines()]
    for manifest in blocks("yaml"):
        for part in yaml.safe_load_all(manifest):
            template = part["spec"].get("template", {"spec": {"containers": []}})
            lines += [one["command"] for one in template["spec"]["containers"]]
    return [words for words in lines if words and words[0] in {"dask", "hcp-logscan"}]


def options(words):
    return {word for word in words if word.startswith("--")}


def test_options_of_the_program_exist():
    ours = [words for words in commands() if words[0] == "hcp-logscan"]
    assert len(ours) == 5
    for words in ours:
        assert options(words) <= known(typer.main.get_command(app))
    named = {option for option in re.findall(r"`(--[a-z-]+)", TEXT) if option != "--nthreads"}
    assert named <= known(typer.main.get_command(app))


def test_options_of_dask_exist():
    scheduler = pytest.importorskip("distributed.cli.dask_scheduler", reason="no extra [dask]")
    worker = pytest.importorskip("distributed.cli.dask_worker")
    theirs = {"scheduler": known(scheduler.main), "worker": known(worker.main)}
    lines = [words for words in commands() if words[0] == "dask"]
    assert len(lines) == 4
    for words in lines:
        assert options(words) <= theirs[words[1]]


def test_snippets_of_python_compile():
    for snippet in blocks("python"):
        compile(snippet, "scale.md", "exec")
