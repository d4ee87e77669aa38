"""The SQL of rules: what it may say, and that its three truth values hold."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcp_logscan.model.errors import RuleError
from hcp_logscan.rules import expression

COLUMNS = {
    "i": pl.Int64(),
    "j": pl.Int64(),
    "x": pl.Float64(),
    "s": pl.String(),
    "b": pl.Boolean(),
    "l": pl.List(pl.Int64()),
}


def outcome(sql, params=None, *, nulls_allowed=False, **row):
    compiled = expression.compile_sql(sql, COLUMNS, params or {}, nulls_allowed=nulls_allowed)
    frame = pl.DataFrame({name: [row.get(name)] for name in COLUMNS}, schema=COLUMNS)
    return expression.evaluate(compiled, frame, params or {}).item()


@pytest.mark.parametrize(
    ("sql", "row", "expected"),
    [
        ("i > 1", {"i": 2}, True),
        ("i > 1", {"i": 1}, False),
        ("i > 1", {}, None),
        ("i > 1 AND b", {"i": 1}, False),
        ("i > 1 AND b", {"i": 2}, None),
        ("i > 1 OR b", {"i": 2}, True),
        ("i > 1 OR b", {"i": 1}, None),
        ("NOT b", {}, None),
        ("NOT b", {"b": False}, True),
        ("b = FALSE", {"b": False}, True),
        ("b <> TRUE", {}, None),
        ("s LIKE '%a2a+p2p%'", {"s": "p2p,a2a+p2p"}, True),
        ("s LIKE '%a2a+p2p%'", {"s": "a2a"}, False),
        ("s LIKE '%a2a+p2p%'", {}, None),
        ("s NOT LIKE '%a2a%'", {}, None),
        ("NOT s LIKE '%a2a%'", {"s": "p2p"}, True),
        ("s ILIKE 'A2A'", {"s": "a2a"}, True),
        ("s IN ('a', 'b')", {"s": "b"}, True),
        ("s IN ('a', 'b')", {}, None),
        ("s NOT IN ('a', 'b')", {}, None),
        ("i IN (1, NULL)", {"i": 2}, None),
        ("i BETWEEN 1 AND 3", {"i": 3}, True),
        ("i NOT BETWEEN 1 AND 3", {}, None),
        ("ARRAY_LENGTH(l) > 0", {"l": [1]}, True),
        ("ARRAY_LENGTH(l) > 0", {"l": []}, False),
        ("ARRAY_LENGTH(l) > 0", {}, None),
        ("ARRAY_CONTAINS(l, 2)", {"l": [1, 2]}, True),
        ("NOT ARRAY_CONTAINS(l, 2)", {}, None),
        ("i % (2 * j) <> 0", {"i": 9, "j": 2}, True),
        ("i % (2 * j) <> 0", {"i": 9, "j": 0}, None),
        ("ABS(i) = 3", {"i": -3}, True),
        ("LOWER(s) = 'x' AND UPPER(s) = 'X'", {"s": "x"}, True),
        ("STARTS_WITH(s, 'a') AND ENDS_WITH(s, 'c')", {"s": "abc"}, True),
        ("LENGTH(s) = 3", {"s": "abc"}, True),
        ("ROUND(x, 1) = 1.5 AND FLOOR(x) = 1 AND CEIL(x) = 2", {"x": 1.52}, True),
        ("s = 'it''s'", {"s": "it's"}, True),
    ],
)
def test_three_truth_values(sql, row, expected):
    assert outcome(sql, **row) is expected


def test_lengths_do_not_wrap_around_below_zero():
    assert outcome("ARRAY_LENGTH(l) - 5 < 0", l=[1]) is True
    assert outcome("LENGTH(LOWER(s)) - 5 < 0", s="abc") is True


def test_division_by_zero_is_unknown():
    assert outcome("i / NULLIF(j, 0) > 1", i=5, j=0) is None
    assert outcome("i / NULLIF(j, 0) > 1", i=5, j=2) is True


def test_nan_counts_as_not_observed():
    assert outcome("x > 100", x=float("nan")) is None
    assert outcome("x > 100", x=float("inf")) is True


def test_parameters_stand_in_for_thresholds():
    assert outcome("x > limit", {"limit": 0.05}, x=0.05) is False
    assert (
        outcome("s = wanted AND i IN (level, 3)", {"wanted": "a", "level": 2}, s="a", i=2) is True
    )


def test_null_tests_need_a_reason():
    with pytest.raises(RuleError, match="null_reason"):
        outcome("COALESCE(i, 0) = 0")
    with pytest.raises(RuleError, match="null_reason"):
        outcome("CASE WHEN b THEN TRUE ELSE FALSE END")
    with pytest.raises(RuleError, match="null_reason"):
        outcome("i IS NULL")
    assert outcome("COALESCE(i, 0) = 0", nulls_allowed=True) is True
    assert outcome("i IS NOT NULL", nulls_allowed=True) is False
    assert outcome("CASE WHEN b THEN TRUE ELSE FALSE END", nulls_allowed=True) is False


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SUM(i) > 1", "function SUM"),
        ("i > (SELECT MAX(i) FROM x)", "neither|operator"),
        ("ROW_NUMBER() OVER (ORDER BY i) > 1", "function ROW_NUMBER"),
        ("i > LAG(i)", "function LAG"),
        ("s = READ_CSV('/etc/passwd')", "function READ_CSV"),
        ("i = 1 -- b", "understood"),
        ("i = 1 /* b */", "understood"),
        ("i <=> 1", "evaluated"),
        ("i::text = '1'", "understood"),
        ('"i" = 1', "understood"),
        ("`i` = 1", "understood"),
        ("i = 1; DROP TABLE x", "understood"),
        ("i > 1 j", "operator is missing"),
        ("i j", "operator is missing"),
        ("(i > 1) j", "operator is missing"),
        ("i > 1 AS j", "neither"),
        ("i / j > 1", "NULLIF"),
        ("i / 2 > 1", "NULLIF"),
        ("iterations > 1", "neither"),
        ("i", "it gives a whole number"),
        ("NULL", "it gives NULL"),
        ("s > 1", "cannot be evaluated"),
        ("i >", "cannot be evaluated"),
        ("i = 1x", "understood"),
        ("i NOT NULL", "IS NOT NULL"),
        ("NOT s", "cannot be evaluated"),
        ("l <> s", "cannot be evaluated"),
        ("b AND CONCAT(s) = 'x'", "function CONCAT"),
        ("b IS TRUE", "null_reason"),
        ("('" * 40, "understood|deeper|missing"),
        ("(" * 40 + "b" + ")" * 40, "deeper"),
        ("s = 'open", "understood"),
    ],
)
def test_what_is_not_on_the_list_is_refused(sql, reason):
    with pytest.raises(RuleError, match=reason):
        outcome(sql)


def test_is_true_and_is_distinct_are_refused_even_with_a_reason():
    for sql in ("b IS TRUE", "i IS DISTINCT FROM 1", "b IS NOT TRUE"):
        with pytest.raises(RuleError):
            outcome(sql, nulls_allowed=True)


def test_a_misspelt_fact_is_met_with_a_suggestion():
    with pytest.raises(RuleError, match="did you mean `cp_size`"):
        expression.compile_sql("cp_sise > 1", {"cp_size": pl.Int64()}, {})


def test_a_parameter_cannot_hide_a_fact_or_an_sql_word():
    for name in ("i", "and", "abs"):
        with pytest.raises(RuleError, match="name of a column"):
            expression.compile_sql("i > 1", COLUMNS, {name: 1})


def test_a_parameter_may_have_the_name_of_another_sql_word():
    assert outcome("limit > i AND i < window", {"limit": 8, "window": 3}, i=2) is True


def test_names_are_the_columns_in_order_without_parameters():
    compiled = expression.compile_sql("j > i AND i > limit", COLUMNS, {"limit": 1})
    assert compiled.names == ("j", "i")


LEAVES = {
    "i > 1": lambda row: None if row["i"] is None else row["i"] > 1,
    "b": lambda row: row["b"],
    "s LIKE '%p2p'": lambda row: None if row["s"] is None else row["s"].endswith("p2p"),
    "TRUE": lambda _: True,
}


def kleene_and(left, right):
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def kleene_not(value):
    return None if value is None else not value


TREES = st.recursive(
    st.sampled_from(sorted(LEAVES)).map(lambda sql: (sql, LEAVES[sql])),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(
            lambda two: (
                f"({two[0][0]}) AND ({two[1][0]})",
                lambda row: kleene_and(two[0][1](row), two[1][1](row)),
            )
        ),
        st.tuples(inner, inner).map(
            lambda two: (
                f"({two[0][0]}) OR ({two[1][0]})",
                lambda row: kleene_not(
                    kleene_and(kleene_not(two[0][1](row)), kleene_not(two[1][1](row)))
                ),
            )
        ),
        inner.map(lambda one: (f"NOT ({one[0]})", lambda row: kleene_not(one[1](row)))),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(
    tree=TREES,
    i=st.sampled_from([None, 0, 2]),
    b=st.sampled_from([None, True, False]),
    s=st.sampled_from([None, "a2a", "a2a+p2p"]),
)
def test_any_combination_follows_three_valued_logic(tree, i, b, s):
    sql, meaning = tree
    row = {"i": i, "b": b, "s": s}
    assert outcome(f"({sql}) AND (i = i OR TRUE)", **row) is meaning(row)
