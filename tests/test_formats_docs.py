"""docs/formats.md teaches with one format: what it shows is what the program does."""

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml

from hcp_logscan.cli.app import main
from hcp_logscan.model import line_format
from hcp_logscan.rules.formats import load_formats

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
NAME = "acme-step.yaml"
FORMAT = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[1]
LOG = re.search(r"```text\n(.*?)```", TEXT, re.DOTALL)[1]
CONSOLES = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def column_tables():
    for name, columns in line_format.COLUMNS.items():
        rows = [
            (f"`{group}`", one.meaning, ", ".join(f"`{unit}`" for unit in one.units))
            for group, one in columns.items()
        ]
        yield table([f"`{name}`", "what it is", "units, its own first"], rows)


def kind_table():
    rows = [
        (f"`{name}`", f"`{kind}`", meaning)
        for name, kinds in line_format.KINDS.items()
        for kind, meaning in kinds.items()
    ]
    return table(["table", "kind", "a line says"], rows)


def notation_table():
    rows = [(f"`{name}`", meaning) for name, meaning in line_format.NOTATIONS.items()]
    return table(["notation", "how a number is written"], rows)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the format, and with a run of the lines that are shown."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / NAME).write_text(FORMAT)
    (tmp_path / "RUN_DIR").mkdir()
    (tmp_path / "RUN_DIR" / "train.log").write_text(LOG)
    return tmp_path


def run(command, capsys):
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "hcp-logscan"
    code = main(arguments)
    return code, capsys.readouterr().out


@pytest.mark.parametrize("shown", [*column_tables(), kind_table(), notation_table()])
def test_the_tables_are_those_of_the_program(shown):
    assert shown in TEXT, shown


def test_the_log_is_where_the_samples_come_from():
    data = yaml.safe_load(FORMAT)
    lines = LOG.splitlines()

    assert f"`{NAME}`:\n\n```yaml" in TEXT
    assert [one["line"] for one in data["samples"]] == [lines[0], lines[1].split(": ", 1)[1]]
    assert data["refuses"] == lines[2:]


@pytest.mark.parametrize(("number", "code"), [(0, 0), (1, 2)])
def test_the_check_prints_what_is_shown(number, code, folder, capsys):
    if number:
        (folder / NAME).write_text(FORMAT.replace("P<tflops_per_gpu>", "P<tflops>"))
    command, shown = CONSOLES[number].split("\n", 1)

    assert run(command, capsys) == (code, shown)


@pytest.mark.parametrize(
    ("number", "code", "shows"), [(0, 1, "acme-step"), (1, 1, "HCP202"), (2, 0, "acme.train step ")]
)
def test_the_commands_run(number, code, shows, folder, capsys):
    got, shown = run(CONSOLES[2].splitlines()[number], capsys)

    assert got == code
    assert shows in shown
    assert "HCP901" not in shown


def test_the_python_example_runs(folder):
    snippet = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1]
    with redirect_stdout(io.StringIO()) as output:
        exec(compile(snippet, "formats.md", "exec"), {})

    assert output.getvalue() == "acme-step [2.4711, nan]\n"


def test_limits_that_are_named_are_those_of_the_program(folder):
    (form,) = load_formats([folder / NAME])
    from hcp_logscan.parsers import custom

    assert f"`{form.name}{custom.TIMED_OUT}`" in TEXT
    assert f"`{form.name}{custom.SWITCHED_OFF}`" in TEXT
    assert custom.MAX_TIMEOUTS == 5
    assert "After five such lines" in TEXT
