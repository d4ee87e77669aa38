"""The pages of the rules: current, complete, and safe whatever a rule holds."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rule_files import rule_data, write

from hcp_logscan.model.errors import OutputError
from hcp_logscan.rules import load, pages
from hcp_logscan.rules.schema import Rule

DOCS = Path(__file__).parents[2] / "docs" / "rules"
SHIPPED = load.load_rules()
RENDER = MarkdownIt("commonmark").enable("table").render
OWN_TAGS = re.compile(r"</?(?:details|summary)>|<!-- .*? -->")


def rule(**changes):
    return Rule.model_validate(rule_data(**changes))


def test_committed_pages_are_current_and_none_is_orphaned():
    committed = {path.name: path.read_text(encoding="utf-8") for path in DOCS.iterdir()}

    assert committed == pages.pages(SHIPPED), "make docs"


def test_links_of_the_index_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", (DOCS / pages.INDEX).read_text(encoding="utf-8")):
        assert (DOCS / target).exists(), target


def test_the_index_has_every_rule_once_in_its_family():
    text = pages.index([*SHIPPED, rule()])

    assert all(text.count(f"]({one.id}.md)") == 1 for one in SHIPPED)
    assert "## Loss and gradients" in text
    assert text.index(f"## {pages.OTHERS}") < text.index("](USR001.md)")


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.id)
def test_a_page_has_all_of_its_rule(one):
    text = pages.page(one)

    for title in ("## When it fires", "## What it says", "## Why", "## Fix", "## Examples"):
        assert f"\n{title}\n" in text
    assert text.count("<details>") == len(one.examples) == text.count("</details>")
    assert all(f"`{name}`" in text for name in one.params)
    assert all(f"<{url}>" in text for url in one.references)
    for example in one.examples:
        assert all(line in text for line in (example.log or "").splitlines() if line.isprintable())


EVIL = "<img src=x onerror=a()> | `b|c` ``` </details> **x** [y](javascript:z) @team \x1b[31m # h"


def evil_rule():
    return rule(
        summary=EVIL,
        when="cp_comm_type = '`|<b>```' AND cp_size > limit",
        params={"limit": 8, "text": EVIL},
        message=EVIL.replace("{", "").replace("}", "") + " {cp_size}",
        why=f"- {EVIL}\n- two\n\n1. {EVIL}\n\n    {EVIL}\n\n{EVIL}\n- item",
        fix=f"# {EVIL}\n\n---\n\n=== {EVIL}",
        false_positives=[EVIL],
        references=["https://example.org/)<script>`|"],
        evidence={"config": "value = '`|<b>'"},
        null_reason=EVIL,
        never=["inconclusive"],
        never_reason=EVIL,
        examples=[
            {"name": EVIL, "outcome": "fires", "log": f"```\n{EVIL}\n````\n</details>\n"},
            {"name": "x", "outcome": "clean", "facts": {"cp_comm_type": EVIL}},
            {"name": "y", "outcome": "inconclusive", "facts": {}},
        ],
    )


def test_nothing_in_a_rule_becomes_markup():
    text = pages.page(evil_rule())
    shown = OWN_TAGS.sub("", RENDER(text))

    assert not re.search(r"<(?:img|script|b)\b", shown)
    assert "javascript:" not in re.findall(r'href="([^"]*)"', shown)
    assert "<strong>" not in shown
    assert "\x1b" not in text
    assert shown.count("<h1>") == 1
    assert RENDER(text).count("<details>") == RENDER(text).count("</details>") == 3


def test_tables_keep_their_columns_whatever_a_cell_holds():
    html = RENDER(pages.page(evil_rule()) + "\n" + pages.index([evil_rule()]))

    assert html.count("<table>") == 5
    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        rows = [row.count("<td") + row.count("<th>") for row in table.split("<tr>")[1:]]
        assert len(set(rows)) == 1
    assert "onerror=a()&gt; | " in html


def test_a_log_survives_its_own_backticks():
    log = "````text\nout\n```\n    indented\n\n> quote"
    one = rule(examples=[{"name": "x", "outcome": "fires", "log": log}])
    html = RENDER(pages.page(one))

    assert "````text\nout\n```\n    indented\n\n&gt; quote\n</code></pre>" in html


def test_prose_keeps_its_paragraphs_lists_and_code():
    one = rule(why="one\ntwo\n\nthen:\n- a\n- b\n\n    run `this`\n    now\n")

    assert (
        "## Why\n\none two\n\nthen:\n\n- a\n- b\n\n```text\nrun `this`\nnow\n```\n\n## Fix"
        in pages.page(one)
    )


def test_a_name_at_the_beginning_keeps_its_case():
    assert "\n\na2a+p2p is off.\n" in pages.page(rule(summary="a2a+p2p is off"))
    assert "\n\nThe rest.\n" in pages.page(rule(summary="the rest"))


def test_writing_again_changes_nothing_and_drops_what_is_gone(tmp_path):
    assert len(pages.write(tmp_path, [rule(), rule(id="USR002", name="b")])) == 3
    assert pages.write(tmp_path, [rule(), rule(id="USR002", name="b")]) == []
    (tmp_path / "notes.md").write_text("mine")
    gone = pages.write(tmp_path, [rule()])

    assert [path.name for path in gone] == ["USR002.md", "README.md"]
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "USR001.md", "notes.md"}


def test_a_page_that_is_not_ours_is_not_replaced(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(OutputError, match="was not made from a rule"):
        pages.write(tmp_path, [rule()])
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["pages", *map(str, arguments)])
    monkeypatch.delitem(sys.modules, "hcp_logscan.rules.pages")
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("hcp_logscan.rules.pages", run_name="__main__")
    return caught.value.code


def test_pages_of_ones_own_rules_are_a_command(tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, tmp_path / "docs", write(tmp_path)) == 0
    assert {path.name for path in (tmp_path / "docs").iterdir()} == {"README.md", "USR001.md"}
    assert "USR001.md" in capsys.readouterr().out


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    assert pages.main([]) == 2
    assert "usage" in capsys.readouterr().err
    assert pages.main([str(tmp_path), str(tmp_path / "absent.yaml")]) == 2
    assert "no such file" in capsys.readouterr().err
