"""Every log example of the shipped rules, through the whole chain."""

from __future__ import annotations

import pytest

from hcp_logscan.rules import examples, load

CASES = [(rule, example) for rule in load.load_rules() for example in rule.examples if example.log]


@pytest.mark.parametrize(
    ("rule", "example"), CASES, ids=[f"{rule.id}: {example.name}" for rule, example in CASES]
)
def test_log_examples_do_what_they_say(rule, example):
    (result,) = examples.check(rule.model_copy(update={"examples": (example,)}))
    assert result.ok, f"{result.word}: got {result.got}, not observed: {result.missing}"


def test_a_log_in_which_nothing_is_understood_is_inconclusive():
    rule, example = CASES[0]
    nothing = example.model_copy(update={"log": "hello\n"})
    (result,) = examples.check(rule.model_copy(update={"examples": (nothing,)}))
    assert result.got == "inconclusive"
