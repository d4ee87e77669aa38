"""docs/triage.md shows what the program prints, and names what exists."""

import re
from pathlib import Path

import pytest

from hcp_logscan import scan
from hcp_logscan.reporting.lanes import ROLE_WORDS
from hcp_logscan.reporting.text import render_text
from hcp_logscan.rules.load import load_rules

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "triage.md").read_text()
SHOWN = re.findall(r"<!-- output: (\S+) -->\n```text\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize(("fixture", "shown"), SHOWN)
def test_stories_are_those_of_the_fixtures(fixture, shown):
    report = scan(ROOT / "tests" / "fixtures" / fixture / "run")

    assert shown in render_text(report.data)


def test_two_stories_are_shown():
    assert len(SHOWN) == 2


def test_roles_and_rules_exist():
    roles = re.findall(r"^\| ([a-z]+) \|", TEXT, re.MULTILINE)
    assert set(roles) - {"role"} == set(ROLE_WORDS) - {"progress", "unknown"}
    assert set(re.findall(r"HCP\d{3}", TEXT)) <= {rule.id for rule in load_rules()}
