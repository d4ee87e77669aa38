"""docs/python.md: its snippets run, its tables are those of a report."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from hcp_logscan import demo_run, scan
from hcp_logscan.analysis.facts import FACTS
from hcp_logscan.cli import guide

DOCUMENT = Path(__file__).parents[1] / "docs" / "python.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report():
    with demo_run() as run_dir:
        return scan(run_dir)


def test_the_tables_are_current(report):
    assert guide.renewed(TEXT, guide.section(report)) == TEXT, "make docs"


def test_every_column_of_every_table_is_there_with_a_meaning(report):
    made, _, events = TEXT[TEXT.index(guide.BEGIN) :].partition("### Events")

    for table, frame in report.facts.items():
        assert f"\n`{table}` has one row for" in made
        assert all(f"| `{name}` | {dtype} | " in made for name, dtype in frame.schema.items())
        assert set(FACTS[table]) <= set(frame.columns)
    for table, frame in report.tables.items():
        row = next(line for line in events.splitlines() if line.startswith(f"| `{table}` |"))
        own = set(frame.columns) - set(guide.PLACE) if table != "iterations" else set()
        assert all(f"`{name}` (" in row for name in own)
    assert not re.search(r"^\| `\w+` \| [A-Z]\w+(?:\(\w+\))? \| +\|$", made, re.MULTILINE)


def test_the_snippets_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(snippet, DOCUMENT.name, "exec"), names)
    shown = capsys.readouterr().out

    assert "<Report demo: HCP inactive (high confidence)" in shown
    assert "error HCP002" in shown
    assert "slurm-4711.out:97" in shown
    assert "TORCH_CPP_LOG_LEVEL=INFO" in shown
    assert (tmp_path / "report.html").exists()


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["guide", *map(str, arguments)])
    monkeypatch.delitem(sys.modules, "hcp_logscan.cli.guide")
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("hcp_logscan.cli.guide", run_name="__main__")
    return caught.value.code


def test_the_command_renews_the_made_part_only(tmp_path, monkeypatch):
    path = tmp_path / "python.md"
    path.write_text(f"mine\n{guide.BEGIN}\nOUTDATED\n{guide.END}\nmine, too\n", encoding="utf-8")

    assert run(monkeypatch, path) == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith("mine\n")
    assert text.endswith("mine, too\n")
    assert "OUTDATED" not in text
    assert TEXT[TEXT.index(guide.BEGIN) : TEXT.index(guide.END)] in text


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    assert guide.main([]) == 2
    assert guide.main([str(tmp_path / "absent.md")]) == 2
    (tmp_path / "a.md").write_text("nothing made here")
    assert guide.main([str(tmp_path / "a.md")]) == 2
    assert "lacks the lines" in capsys.readouterr().err
