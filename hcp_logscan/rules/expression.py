"""SQL expressions of rules: a listed set of words, one Boolean per row, three truth values.

TRUE fires, FALSE is clean, NULL is inconclusive. Only what keeps that true is let through: no
aggregate or window (one row judges itself), no sub-query or reading function, no bare division (x/0
is infinity, which is greater than every limit), no IS NULL, COALESCE or CASE without a reason (they
turn "not observed" into an answer). Which words those are stands in `sql`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.analysis import facts as fact_tables
from hcp_logscan.model import events as event_tables
from hcp_logscan.model.errors import RuleError
from hcp_logscan.rules import sql as sql_words
from hcp_logscan.rules.schema import ROW_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan.rules.schema import Param, Rule

_OUTCOME: Final = "_outcome"


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression, ready to be evaluated."""

    expr: pl.Expr
    names: tuple[str, ...]
    "Columns it reads, parameters left out, in order of appearance."


def compile_sql(
    sql: str,
    columns: Mapping[str, pl.DataType],
    params: Mapping[str, Param],
    *,
    nulls_allowed: bool = False,
) -> Expression:
    """Check one expression against the columns and parameters that it may name.

    Evaluate it with `evaluate`. Raises `RuleError` (without file name) for a word that is not on
    the list, for an unknown name, and for whatever does not give one Boolean per row.
    """
    return _compiled(
        sql,
        tuple(columns.items()),
        tuple((name, type(value), value) for name, value in params.items()),
        nulls_allowed,
    )


@functools.lru_cache(maxsize=512)
def _compiled(
    sql: str,
    columns: tuple[tuple[str, pl.DataType], ...],
    typed_params: tuple[tuple[str, type[Param], Param], ...],
    nulls_allowed: bool,
) -> Expression:
    """`compile_sql`, once for equal input: the checks cost more than judging a small run.

    The types stand in the key because 1, 1.0 and True are equal.
    """
    names = dict(columns)
    params = {name: value for name, _, value in typed_params}
    if hidden := sorted(sql_words.RESERVED.union(names).intersection(params)):
        raise RuleError(f"parameter `{hidden[0]}` has the name of a column or of an SQL word")
    checked = sql_words.check(sql, {*names, *params}, nulls_allowed=nulls_allowed)
    try:
        found = Expression(
            pl.sql_expr(checked.text), tuple(name for name in checked.names if name not in params)
        )
        _check_type(found, names, params)
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise RuleError(f"`{sql_words.short(sql)}` cannot be evaluated: {reason}") from error
    return found


def compile_when(rule: Rule) -> Expression:
    """The rule's `when`, checked against the facts of its table. Raises `RuleError`."""
    found = compile_sql(
        rule.when,
        fact_tables.schema(rule.over),
        rule.params,
        nulls_allowed=rule.null_reason is not None,
    )
    if not found.names:
        raise RuleError("it names no fact, so it says the same of every run")
    return found


def compile_evidence(rule: Rule) -> dict[str, Expression]:
    """The rule's evidence by event table. Raises `RuleError`.

    It may compare a row with the facts of what is judged, where that is one row. Null tests are
    allowed: evidence is picked, not judged.
    """
    return {
        table: compile_sql(
            sql, judged_facts(rule) | evidence_columns(table), rule.params, nulls_allowed=True
        )
        for table, sql in rule.evidence.items()
    }


def judged_facts(rule: Rule) -> dict[str, pl.DataType]:
    """The facts that evidence may be compared with: single values of a table of one row each."""
    if rule.over in ROW_TABLES:
        return {}
    return {
        name: dtype
        for name, dtype in fact_tables.schema(rule.over).items()
        if not isinstance(dtype, pl.List)
    }


def evidence_columns(table: str) -> dict[str, pl.DataType]:
    """Columns that evidence may be picked by: where the row stands, and the table's own."""
    place: dict[str, pl.DataType] = {"attempt": pl.Int64(), "rank": pl.Int64()}
    location = dict(fact_tables.LOCATION_COLUMNS)
    if table in fact_tables.FACTS:
        return place | location | fact_tables.schema(table)
    own = event_tables.EVENTS[table].columns if table in event_tables.EVENTS else {}
    return place | location | dict(own)


def evaluate(expression: Expression, frame: pl.DataFrame, params: Mapping[str, Param]) -> pl.Series:
    """One Boolean per row of `frame`: TRUE, FALSE or null.

    NaN is read as "not observed": polars orders it above every number, so it would pass any limit.
    """
    return (
        observed(frame)
        .with_columns(**_literals(params))
        .with_columns(expression.expr.alias(_OUTCOME))
        .get_column(_OUTCOME)
        .cast(pl.Boolean)
    )


def observed(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with NaN as null."""
    return frame.with_columns(pl.selectors.float().fill_nan(None))


def _literals(params: Mapping[str, Param]) -> dict[str, pl.Expr]:
    return {
        name: pl.lit(value, dtype=pl.Int64 if type(value) is int else None)
        for name, value in params.items()
    }


def _check_type(
    expression: Expression, columns: Mapping[str, pl.DataType], params: Mapping[str, Param]
) -> None:
    # only what it reads: frames of all facts, for every expression, take longer than a small scan
    schema = {name: columns[name] for name in expression.names} or {_OUTCOME: pl.Int64()}
    unobserved = pl.DataFrame({name: [None] for name in schema}, schema=schema)
    # Some casts fail only on a value, so one row has values.
    values = pl.DataFrame({name: [_value(dtype)] for name, dtype in schema.items()}, schema=schema)
    for frame in (pl.DataFrame(schema=schema), unobserved, values):
        # `select`, unlike `evaluate`, does not stretch one value over all rows: an expression that
        # does not look at its row shows here.
        result = (
            frame.with_columns(**_literals(params)).select(expression.expr.alias(_OUTCOME))
        ).to_series()
        if result.dtype != pl.Boolean:
            raise RuleError(f"it gives {result.dtype} where TRUE or FALSE is needed")
        if expression.names and result.len() != frame.height:
            raise RuleError(f"it gives {result.len()} values for {frame.height} rows")


def _value(dtype: pl.DataType) -> object:
    """Some value of a fact's type."""
    if isinstance(dtype, pl.List):
        return ["x" if dtype.inner == pl.String else 1]
    if dtype == pl.String:
        return "x"
    return True if dtype == pl.Boolean else 1
