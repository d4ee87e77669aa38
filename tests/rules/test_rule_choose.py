"""Which rules run, and with which parameters."""

from __future__ import annotations

import pytest
from rule_files import rule_data

from hcp_logscan.model.errors import RuleError
from hcp_logscan.rules import choose
from hcp_logscan.rules.schema import Rule

PARAMS = {"limit": 8, "share": 0.05, "word": "a", "on": True}
RULES = tuple(
    Rule.model_validate(rule_data(id=name, params=PARAMS))
    for name in ("HCP201", "HCP211", "USR001")
)


def ids(rules):
    return [rule.id for rule in rules]


def test_everything_runs_by_default():
    assert choose.select(RULES) == RULES


def test_ids_and_their_beginnings_select():
    assert ids(choose.select(RULES, select=["hcp2"])) == ["HCP201", "HCP211"]
    assert ids(choose.select(RULES, select=["HCP211", "USR"])) == ["HCP211", "USR001"]


def test_ignore_wins_over_select():
    assert ids(choose.select(RULES, select=["HCP2"], ignore=["HCP201"])) == ["HCP211"]


@pytest.mark.parametrize("word", ["HCP3", "HCP2011", "", "NOPE"])
def test_a_word_that_no_rule_begins_with_is_an_error(word):
    with pytest.raises(RuleError, match="no rule"):
        choose.select(RULES, select=[word])
    with pytest.raises(RuleError, match="no rule"):
        choose.select(RULES, ignore=[word])


def test_parameters_change_without_touching_the_given_rules():
    changed = choose.with_params(RULES, {"HCP211": {"limit": 9, "share": 1, "word": "b"}})
    assert changed[1].params == {"limit": 9, "share": 1.0, "word": "b", "on": True}
    assert RULES[1].params == PARAMS


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"HCP999": {"limit": 1}}, "no rule HCP999"),
        ({"HCP211": {"limits": 1}}, "no parameter `limits`; it has limit"),
        ({"HCP211": {"limit": 1.5}}, "a whole number"),
        ({"HCP211": {"limit": True}}, "a whole number"),
        ({"HCP211": {"share": "a"}}, "is a number"),
        ({"HCP211": {"word": 1}}, "a text"),
        ({"HCP211": {"on": 1}}, "true or false"),
        ({"HCP211": {"share": float("nan")}}, "share"),
    ],
)
def test_a_setting_that_does_not_fit_is_an_error(values, match):
    with pytest.raises(RuleError, match=match):
        choose.with_params(RULES, values)


def test_settings_are_read_from_text():
    texts = ["hcp211.share=0.1", "HCP211.limit=3", "USR001.word=x", "USR001.on=false"]
    assert choose.parse_settings(texts) == {
        "HCP211": {"share": 0.1, "limit": 3},
        "USR001": {"word": "x", "on": False},
    }


@pytest.mark.parametrize(
    "text", ["HCP211", "HCP211.share", "HCP211=1", ".a=1", "A.b=[1]", "A.b=", "A.b=[1"]
)
def test_text_that_is_no_setting_is_an_error(text):
    with pytest.raises(RuleError, match=r"is not RULE\.param=VALUE"):
        choose.parse_settings([text])
