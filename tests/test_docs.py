"""Documents say what the program does: help, sample output, sample report, rule ids."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hcp_logscan.rules.load import load_rules
from hcp_logscan.sources import archive, packed

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def program(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "hcp_logscan", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
    ).stdout


def test_readme_shows_the_help_of_the_program(tmp_path):
    assert program("--help", cwd=tmp_path).rstrip() in README


def test_readme_shows_what_the_demo_prints(tmp_path):
    assert program("--demo", cwd=tmp_path).rstrip() in README


def blocks(text):
    return re.findall(r"^```.*?^```", text, re.DOTALL | re.MULTILINE)


def links(text):
    return set(re.findall(r"\]\(([^)]+)\)", text))


def test_chinese_readme_shows_what_the_demo_prints_in_chinese(tmp_path):
    assert program("--demo", "--lang", "zh", cwd=tmp_path).rstrip() in CHINESE


def test_both_readmes_have_the_same_blocks_but_for_the_output_in_chinese():
    english, chinese = blocks(README), blocks(CHINESE)
    output = [n for n, block in enumerate(english) if "$ hcp-logscan --demo\n" in block]
    assert len(output) == 1
    assert "$ hcp-logscan --demo --lang zh\n" in chinese[output[0]]
    del english[output[0]], chinese[output[0]]
    assert chinese == english


def test_both_readmes_lead_to_the_same_places_and_to_each_other():
    assert links(README) - {"README.zh-CN.md"} == links(CHINESE) - {"README.md"}
    assert "README.zh-CN.md" in links(README)
    assert "README.md" in links(CHINESE)


def test_both_readmes_have_as_many_headings_and_rows():
    for mark in (r"^#+ ", r"^\|"):
        counts = [len(re.findall(mark, text, re.MULTILINE)) for text in (README, CHINESE)]
        assert counts[0] == counts[1]


def test_readme_snippet_of_python_runs(tmp_path, monkeypatch):
    snippet = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run_dir").symlink_to(ROOT / "hcp_logscan" / "demo")
    exec(compile(snippet, "README.md", "exec"), {})

    assert (tmp_path / "report.html").exists()


def test_sample_report_is_current(tmp_path):
    program("--demo", "-f", "none", "-o", "sample.html", "--charts", "static", cwd=tmp_path)

    fresh = (tmp_path / "sample.html").read_text()
    assert fresh == (ROOT / "reports" / "sample.html").read_text(), "make reports"


def test_the_limits_of_archives_are_those_of_the_program():
    said = " ".join((ROOT / "docs" / "inputs.md").read_text().split())

    assert f"{packed.MAX_RATIO} times its size, and to {packed.MIN_CEILING >> 30} GiB" in said
    assert f"more than {archive.MAX_MEMBERS:,} members" in said
    for suffix in (*packed.OPENERS, ".zip", ".tar", *(f".tar{one}" for one in packed.OPENERS)):
        assert f"`{suffix}" in said


@pytest.mark.parametrize("document", ["CHANGELOG.md", "docs/verdict.md", "docs/evidence.md"])
def test_rules_named_in_documents_exist(document):
    known = {rule.id for rule in load_rules()}

    assert set(re.findall(r"HCP\d{3}", (ROOT / document).read_text())) <= known


def test_no_file_speaks_of_where_it_was_written():
    words = re.compile(r"/wor[k]/|\bissue #?\d+\b", re.IGNORECASE)
    for path in [*ROOT.glob("hcp_logscan/**/*.py"), *ROOT.glob("rules/*.yaml"), *ROOT.glob("*.md")]:
        assert not words.search(path.read_text()), path
