"""Examples and lint: for authors of rules, and proof of the shipped ones."""

from __future__ import annotations

import runpy
import sys

import pytest
from rule_files import RULE, rule_data, write

from hcp_logscan.model.errors import RuleError
from hcp_logscan.rules import examples, lint, load
from hcp_logscan.rules.schema import Rule

SHIPPED = load.load_rules()
ZH = {"summary": "一", "message": "{cp_size} {limit}", "why": "二", "fix": "三"}


def rule(**changes):
    return Rule.model_validate(rule_data(**changes))


def example(outcome, **facts):
    return {"name": outcome, "outcome": outcome, "facts": facts}


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.id)
def test_shipped_rules_do_what_their_facts_examples_say(one):
    facts_only = one.model_copy(
        update={"examples": tuple(e for e in one.examples if e.facts is not None)}
    )
    results = examples.check(facts_only)
    assert [(r.example, r.word) for r in results if not r.ok] == []
    assert results


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.id)
def test_shipped_messages_show_no_unknown_field_in_either_language(one):
    for text in (one.message, one.texts("zh").message):
        assert "{" in text


@pytest.mark.parametrize(
    ("expected", "facts", "word"),
    [
        ("fires", {"cp_size": 9}, "fires"),
        ("clean", {"cp_size": 8}, "quiet"),
        ("inconclusive", {}, "quiet"),
        ("fires", {"cp_size": 8}, "missed"),
        ("fires", {}, "missed"),
        ("clean", {"cp_size": 9}, "noisy"),
        ("inconclusive", {"cp_size": 9}, "noisy"),
        ("clean", {}, "wrong"),
        ("inconclusive", {"cp_size": 8}, "wrong"),
    ],
)
def test_the_words_of_an_example(expected, facts, word):
    (result,) = examples.check(rule(examples=[example(expected, **facts)]))
    assert result.word == word
    assert result.ok == (word in {"fires", "quiet"})


def test_facts_that_do_not_fit_their_column_are_an_error():
    with pytest.raises(RuleError, match="USR001: example `fires`"):
        examples.check(rule(examples=[example("fires", cp_size="nine")]))


@pytest.mark.parametrize("over", ["attempts", "iterations", "failures", "run"])
def test_examples_run_over_every_fact_table(over):
    when = {"attempts": "tp_size = 1", "iterations": "iteration = 1", "failures": "rank = 1"}
    column = {"attempts": "tp_size", "iterations": "iteration", "failures": "rank"}
    one = rule(
        over=over,
        when=when.get(over, "files = 1"),
        params={},
        message="{attempt}",
        examples=[example("fires", **{column.get(over, "files"): 1})],
    )
    assert examples.check(one)[0].word == "fires"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"summary": "Too big."}, "without a full stop"),
        ({"references": ["http://example.org"]}, "not an https URL"),
        ({"id": "HCP999"}, "Chinese"),
        ({"zh": ZH | {"message": "{cp_size}"}}, "fields differ"),
        ({"why": "See issue 2667."}, "`issue 2667` in a text"),
        ({"zh": ZH | {"fix": "见 #2667"}}, "`#2667` in a text"),
        ({"examples": RULE["examples"][1:]}, "none has the outcome `fires`"),
        ({"examples": RULE["examples"][:2]}, "none has the outcome `inconclusive`"),
        ({"never": ["inconclusive"], "never_reason": "x"}, "reached by an example"),
        (
            {"examples": [*RULE["examples"], example("fires", cp_size=9) | {"name": "above"}]},
            "two are called `above`",
        ),
        (
            {"examples": [example("fires", cp_size=9), example("clean", cp_size=1, tp_size=1)]},
            "is a boundary",
        ),
        ({"when": "cp_size >= limit"}, "example `at the limit`: noisy"),
        ({"examples": [example("fires", cp_size="nine")]}, "example `fires`"),
        ({"when": "nothing > 1"}, "`nothing` is neither"),
    ],
)
def test_lint_complains(tmp_path, changes, complaint):
    path = write(tmp_path, **changes)
    complaints = lint.lint([path])
    assert any(complaint in one for one in complaints), complaints
    assert all(str(path) in one for one in complaints)


def test_lint_is_quiet_about_a_good_rule(tmp_path):
    assert lint.lint([write(tmp_path)]) == []


def test_never_needs_no_example(tmp_path):
    path = write(
        tmp_path,
        examples=RULE["examples"][:2],
        never=["inconclusive"],
        never_reason="the CP size is always known",
    )
    assert lint.lint([path]) == []


def test_ids_and_names_are_unique_and_files_are_called_after_them(tmp_path):
    write(tmp_path)
    write(tmp_path, file="other.yaml")
    complaints = lint.lint([tmp_path])
    assert sum("is also that of" in one for one in complaints) == 2
    assert any("call it USR001-cp-too-big.yaml" in one for one in complaints)


def test_lint_runs_as_a_program(tmp_path, monkeypatch, capsys):
    path = write(tmp_path, summary="Too big.")
    monkeypatch.setattr(sys, "argv", ["lint", str(path)])
    monkeypatch.delitem(sys.modules, "hcp_logscan.rules.lint")
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("hcp_logscan.rules.lint", run_name="__main__")
    assert caught.value.code == 1
    assert "full stop" in capsys.readouterr().out


def test_lint_returns_0_for_the_shipped_rules():
    assert lint.main([]) == 0
