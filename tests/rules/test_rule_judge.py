"""Judging: rules x facts -> judgements and findings."""

from __future__ import annotations

import polars as pl
import pytest
from rule_files import rule_data

from hcp_logscan.analysis import facts as fact_tables
from hcp_logscan.model.errors import RuleError
from hcp_logscan.model.finding import Judgement, Location
from hcp_logscan.model.said import remembering
from hcp_logscan.rules import judge as module
from hcp_logscan.rules.judge import judge
from hcp_logscan.rules.schema import Rule


def rule(**changes):
    return Rule.model_validate(rule_data(**changes))


def table(name, rows):
    schema = fact_tables.schema(name)
    if name in {"iterations", "failures"}:
        schema = schema | dict(fact_tables.LOCATION_COLUMNS)
    full = [dict.fromkeys(schema) | row for row in rows]
    return pl.DataFrame(full, schema=schema)


def facts(**rows):
    rows.setdefault("attempts", [{"attempt": 0}])
    return {name: table(name, rows.get(name, [])) for name in fact_tables.FACTS}


def line(number, attempt=0, **own):
    return {"attempt": attempt, "rank": 3, "file": "a.log", "line": number, "text": "x"} | own


def nan_rule(**changes):
    return rule(
        over="iterations",
        when="lm_loss_finite = FALSE",
        params={},
        message="{count} from {iteration} to {last_iteration_concerned}",
        **changes,
    )


def test_every_attempt_is_judged_once():
    found, findings = judge(
        [rule()],
        facts(
            attempts=[
                {"attempt": 0, "cp_size": 16},
                {"attempt": 1, "cp_size": 8},
                {"attempt": 2},
            ]
        ),
        {},
    )
    assert found == (
        Judgement("USR001", 0, "fires"),
        Judgement("USR001", 1, "clean"),
        Judgement("USR001", 2, "inconclusive", ("cp_size",)),
    )
    assert [(one.attempt, one.message) for one in findings] == [(0, "CP size 16 is above 8.")]


def test_missing_names_only_what_is_null_in_the_first_unknown_row():
    one = rule(when="cp_size > limit AND tp_size > 1 AND seq_length > 1")
    found, _ = judge([one], facts(attempts=[{"attempt": 0, "cp_size": 16}]), {})
    assert found[0].missing == ("tp_size", "seq_length")


def test_one_firing_row_is_enough():
    rows = [
        {"attempt": 0, "iteration": 1, "lm_loss_finite": None, "file": "a.log", "line": 1},
        {"attempt": 0, "iteration": 2, "lm_loss_finite": False, "file": "a.log", "line": 2},
        {"attempt": 0, "iteration": 3, "lm_loss_finite": True, "file": "a.log", "line": 3},
        {"attempt": 0, "iteration": 4, "lm_loss_finite": False, "file": "a.log", "line": 4},
    ]
    found, findings = judge([nan_rule()], facts(iterations=rows), {})
    assert found[0].outcome == "fires"
    assert findings[0].message == "2 from 2 to 4"
    assert findings[0].iteration == 2
    assert findings[0].evidence == (Location("a.log", 2), Location("a.log", 4))


def test_an_unknown_row_makes_a_row_rule_inconclusive():
    rows = [{"attempt": 0, "lm_loss_finite": True}, {"attempt": 0}]
    found, _ = judge([nan_rule()], facts(iterations=rows), {})
    assert found[0] == Judgement("USR001", 0, "inconclusive", ("lm_loss_finite",))


def test_no_iteration_is_unknown_but_no_failure_is_clean():
    failing = rule(over="failures", when="kind = 'exit'", params={}, message="{rank}")
    found, _ = judge([nan_rule(), failing], facts(), {})
    assert found == (
        Judgement("USR001", 0, "inconclusive", ("iterations",)),
        Judgement("USR001", 0, "clean"),
    )


def test_rows_of_other_attempts_do_not_count():
    rows = [{"attempt": 1, "lm_loss_finite": False, "file": "a.log", "line": 1}]
    found, _ = judge(
        [nan_rule()],
        facts(attempts=[{"attempt": 0}, {"attempt": 1}], iterations=rows),
        {},
    )
    assert [one.outcome for one in found] == ["inconclusive", "fires"]


def test_ranks_of_failures_are_sorted_and_unique():
    one = rule(over="failures", when="kind = 'exit'", params={}, message="{count} {rank}")
    rows = [
        {"attempt": 0, "kind": "exit", "rank": rank, "file": "a.log", "line": number}
        for number, rank in enumerate([9, 2, None, 9], 1)
    ]
    _, findings = judge([one], facts(failures=rows), {})
    assert findings[0].ranks == (2, 9)
    assert findings[0].message == "4 9"
    assert findings[0].evidence[0].rank == 9


def test_ranks_can_come_from_a_list():
    one = rule(ranks="culprit_ranks", iteration="last_iteration")
    row = {"attempt": 0, "cp_size": 16, "culprit_ranks": [5, 1], "last_iteration": 7}
    _, findings = judge([one], facts(attempts=[row]), {})
    assert findings[0].ranks == (1, 5)
    assert findings[0].iteration == 7


def test_run_rules_judge_the_one_attempt_of_the_run_row():
    one = rule(
        over="run",
        when="drift_lines > limit",
        message="{drift_parsers}",
        evidence={"drift": "TRUE"},
    )
    run = [{"attempt": 1, "drift_lines": 9, "drift_parsers": ["a", "b"]}]
    drift = pl.DataFrame([line(4, attempt=0, parser="a"), line(5, attempt=1, parser="b")])
    found, findings = judge(
        [one], facts(attempts=[{"attempt": 0}, {"attempt": 1}], run=run), {"drift": drift}
    )
    assert found == (Judgement("USR001", 1, "fires"),)
    assert findings[0].message == "[a, b]"
    assert [place.line for place in findings[0].evidence] == [4, 5]


def test_evidence_is_of_the_same_attempt_and_each_line_once():
    one = rule(evidence={"config": "key = 'cp_size'", "marks": "kind = 'training'"})
    config = pl.DataFrame(
        [
            line(1, key="cp_size"),
            line(2, key="other"),
            line(1, key="cp_size"),
            line(3, attempt=1, key="cp_size"),
        ]
    ).with_columns(text=pl.lit(None, dtype=pl.String))
    _, findings = judge([one], facts(attempts=[{"attempt": 0, "cp_size": 16}]), {"config": config})
    assert findings[0].evidence == (Location("a.log", 1, "", 3),)
    assert findings[0].evidence_total == 1


def test_evidence_is_capped_and_keeps_first_and_last():
    rows = [
        {"attempt": 0, "iteration": n, "lm_loss_finite": False, "file": "a.log", "line": n}
        for n in range(1, 101)
    ]
    _, findings = judge([nan_rule()], facts(iterations=rows), {})
    lines = [place.line for place in findings[0].evidence]
    assert len(lines) == module.MAX_EVIDENCE
    assert (lines[0], lines[-1]) == (1, 100)
    assert findings[0].evidence_total == 100


def test_an_empty_event_table_gives_no_evidence():
    one = rule(evidence={"config": "key = 'cp_size'"})
    _, findings = judge(
        [one],
        facts(attempts=[{"attempt": 0, "cp_size": 16}]),
        {"config": pl.DataFrame({"attempt": []})},
    )
    assert findings[0].evidence == ()


def test_evidence_over_a_missing_column_names_rule_and_table():
    one = rule(evidence={"config": "key = 'cp_size'"})
    with pytest.raises(RuleError, match=r"USR001: evidence\.config"):
        judge(
            [one],
            facts(attempts=[{"attempt": 0, "cp_size": 16}]),
            {"config": pl.DataFrame([line(1)])},
        )


def test_a_fact_table_without_a_column_names_the_rule():
    broken = facts() | {"attempts": pl.DataFrame({"attempt": [0]})}
    with pytest.raises(RuleError, match="USR001: when"):
        judge([rule()], broken, {})


def test_the_same_tables_give_the_same_findings():
    tables = facts(attempts=[{"attempt": 0, "cp_size": 16}])
    assert judge([rule()], tables, {}) == judge([rule()], tables, {})


def test_findings_stand_worst_first():
    rules = [
        rule(id="USR001", severity="note"),
        rule(id="USR002", severity="error", confidence="low"),
        rule(id="USR004", severity="error", confidence="high"),
        rule(id="USR003", severity="error", confidence="high"),
    ]
    attempts = [{"attempt": 0, "cp_size": 16}, {"attempt": 1, "cp_size": 16}]
    _, findings = judge(rules, facts(attempts=attempts), {})
    assert [(one.rule, one.attempt) for one in findings] == [
        ("USR003", 0),
        ("USR004", 0),
        ("USR003", 1),
        ("USR004", 1),
        ("USR002", 0),
        ("USR002", 1),
        ("USR001", 0),
        ("USR001", 1),
    ]


def test_a_message_remembers_its_chinese_template_and_what_that_shows():
    zh = {"summary": "一", "message": "大小 {cp_size:.1f}", "why": "二", "fix": "三"}
    table_of_facts = facts(attempts=[{"attempt": 0, "cp_size": 16}])
    with remembering() as book:
        _, findings = judge([rule(zh=zh), rule(id="USR002")], table_of_facts, {})
    said = book[findings[0].message]
    assert said.english() == findings[0].message == findings[1].message
    assert said.filled(dict(said.texts)["zh"]) == "大小 16.0"


@pytest.mark.parametrize(
    ("message", "row", "expected"),
    [
        ("{tp_size}", {}, "?"),
        ("{hcp_sizes}", {"hcp_sizes": [2, 2]}, "[2, 2]"),
        ("{hcp_sizes_set}", {"hcp_sizes_set": False}, "false"),
        ("{late_skipped_share}", {"late_skipped_share": 0.25}, "0.25"),
        ("{late_skipped_share:.1f}", {"late_skipped_share": 0.26}, "0.3"),
        ("{late_skipped_share:.1f}", {}, "?"),
        ("{seq_length:,}", {"seq_length": 131072}, "131,072"),
        ("{{{limit}}}", {}, "{8}"),
        ("{exception_message}", {"exception_message": "a\n  b\t{cp_size}"}, "a b {cp_size}"),
    ],
)
def test_messages_render_facts(message, row, expected):
    _, findings = judge(
        [rule(message=message)], facts(attempts=[{"attempt": 0, "cp_size": 16, **row}]), {}
    )
    assert findings[0].message == expected


def test_long_values_are_cut():
    row = {"attempt": 0, "cp_size": 16, "exception_message": "y" * 1000}
    _, findings = judge([rule(message="{exception_message}")], facts(attempts=[row]), {})
    assert len(findings[0].message) == 300
    assert findings[0].message.endswith("…")
