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
from hcp_logscan.rules import parts as expression_parts
from hcp_logscan.rules import sql as sql_words
from hcp_logscan.rules.problem import Mistake, MistakeError, mistake
from hcp_logscan.rules.schema import ROW_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan.rules.parts import Part
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
    table: str | None = None,
) -> Expression:
    """Check one expression against the columns (those of `table`) and parameters that it may name.

    Evaluate it with `evaluate`. Raises `MistakeError` for words that are not on the list, for
    unknown names, and for whatever does not give one Boolean per row.
    """
    return _compiled(
        sql,
        tuple(columns.items()),
        tuple((name, type(value), value) for name, value in params.items()),
        nulls_allowed,
        table,
    )


@functools.lru_cache(maxsize=512)
def _compiled(
    sql: str,
    columns: tuple[tuple[str, pl.DataType], ...],
    typed_params: tuple[tuple[str, type[Param], Param], ...],
    nulls_allowed: bool,
    table: str | None,
) -> Expression:
    """`compile_sql`, once for equal input: the checks cost more than judging a small run.

    The types stand in the key because 1, 1.0 and True are equal.
    """
    names = dict(columns)
    params = {name: value for name, _, value in typed_params}
    if hidden := sorted(sql_words.RESERVED.union(names).intersection(params)):
        raise MistakeError(
            Mistake(f"parameter `{one}` has the name of a column or of an SQL word", "rename it")
            for one in hidden
        )
    checked = sql_words.check(
        sql,
        {*names, *params},
        nulls_allowed=nulls_allowed,
        hint=lambda word: _where_else(word, {*names, *params}, table),
    )
    try:
        found = Expression(
            pl.sql_expr(checked.text), tuple(name for name in checked.names if name not in params)
        )
        reason = _type_error(found, names, params)
    except pl.exceptions.PolarsError as error:
        raise MistakeError(_blamed(sql, names, params, _first_line(error))) from error
    if reason:
        raise MistakeError(_blamed(sql, names, params, "") or [Mistake(reason)])
    return found


def compile_when(rule: Rule) -> Expression:
    """The rule's `when`, checked against the facts of its table. Raises `MistakeError`."""
    found = compile_sql(
        rule.when,
        fact_tables.schema(rule.over),
        rule.params,
        nulls_allowed=rule.null_reason is not None,
        table=rule.over,
    )
    if not found.names:
        raise mistake(
            "it names no fact, so it says the same of every run",
            f"compare a fact; {_listed(rule.over)}",
        )
    return found


def compile_evidence(rule: Rule) -> dict[str, Expression]:
    """The rule's evidence by event table. Raises `MistakeError`.

    It may compare a row with the facts of what is judged, where that is one row. Null tests are
    allowed: evidence is picked, not judged.
    """
    return {
        table: compile_sql(
            sql,
            judged_facts(rule) | evidence_columns(table),
            rule.params,
            nulls_allowed=True,
            table=table,
        )
        for table, sql in rule.evidence.items()
    }


def judged_facts(rule: Rule) -> dict[str, pl.DataType]:
    """The facts that evidence may be compared with: single values of a table of one row each."""
    return {} if rule.over in ROW_TABLES else _single_facts(rule.over)


@functools.cache
def _single_facts(table: str) -> dict[str, pl.DataType]:
    schema = fact_tables.schema(table)
    return {name: dtype for name, dtype in schema.items() if not isinstance(dtype, pl.List)}


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
    columns = [name for name in expression.names if name not in params]
    read = frame.select(columns) if columns else frame
    return (
        read.lazy()
        .with_columns(pl.selectors.float().fill_nan(None), **literals(params))
        .with_columns(expression.expr.cast(pl.Boolean).alias(_OUTCOME))
        .collect()
        .get_column(_OUTCOME)
    )


def observed(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with NaN as null."""
    return frame.with_columns(pl.selectors.float().fill_nan(None))


def literals(params: Mapping[str, Param]) -> dict[str, pl.Expr]:
    """Parameters as columns, so that no value is ever pasted into SQL."""
    return {
        name: pl.lit(value, dtype=pl.Int64 if type(value) is int else None)
        for name, value in params.items()
    }


def kind(dtype: pl.DataType) -> str:
    """A column type in words.

    >>> kind(pl.Int64()), kind(pl.List(pl.String()))
    ('a whole number', 'a list of texts')
    """
    if isinstance(dtype, pl.List):
        return "a list of texts" if dtype.inner == pl.String else "a list of whole numbers"
    if dtype == pl.Boolean:
        return "TRUE or FALSE"
    if dtype == pl.String:
        return "a text"
    if dtype == pl.Null:
        return "NULL"
    return "a whole number" if dtype.is_integer() else "a number"


def _type_error(
    expression: Expression, columns: Mapping[str, pl.DataType], params: Mapping[str, Param]
) -> str:
    """Why the expression does not give one Boolean per row; empty if it does."""
    # only what it reads: frames of all facts, for every expression, take longer than a small scan
    schema = {name: columns[name] for name in expression.names} or {_OUTCOME: pl.Int64()}
    unobserved = pl.DataFrame({name: [None] for name in schema}, schema=schema)
    # Some casts fail only on a value, so one row has values.
    values = pl.DataFrame({name: [_value(dtype)] for name, dtype in schema.items()}, schema=schema)
    for frame in (pl.DataFrame(schema=schema), unobserved, values):
        # `select`, unlike `evaluate`, does not stretch one value over all rows: an expression that
        # does not look at its row shows here.
        result = (
            frame.with_columns(**literals(params)).select(expression.expr.alias(_OUTCOME))
        ).to_series()
        if result.dtype != pl.Boolean:
            return f"it gives {kind(result.dtype)} where TRUE or FALSE is needed"
        if expression.names and result.len() != frame.height:
            return f"it gives {result.len()} values for {frame.height} rows"
    return ""


def _blamed(
    sql: str, columns: Mapping[str, pl.DataType], params: Mapping[str, Param], reason: str
) -> list[Mistake]:
    """The operands that do not work by themselves; all of it where each of them does."""
    found = [
        found
        for part in expression_parts.split(sql).leaves()
        if (found := _part_mistake(part, columns, params)) is not None
    ]
    if found or not reason:
        return found
    move = "complete it: an operand is missing, or a parenthesis"
    return [Mistake(f"`{sql_words.short(sql)}` cannot be evaluated: {reason}", move)]


def _part_mistake(
    part: Part, columns: Mapping[str, pl.DataType], params: Mapping[str, Param]
) -> Mistake | None:
    shown = f"`{sql_words.short(part.source)}`"
    names = tuple(name for name in part.names if name not in params)
    try:
        expr = pl.sql_expr(part.sql)
    except pl.exceptions.PolarsError:
        what = f"{shown} cannot be evaluated: it is not complete"
        return Mistake(what, "an operand is missing, or a parenthesis", part.span)
    try:
        reason = _type_error(Expression(expr, names), columns, params)
    except pl.exceptions.PolarsError as error:
        what = f"{shown} cannot be evaluated: {_first_line(error)}"
        return Mistake(what, _types(part, columns, params), part.span)
    if not reason or part.sql == "NULL":
        return None
    return Mistake(f"{shown}: {reason}", "compare it with something, as in `x > 1`", part.span)


def _types(part: Part, columns: Mapping[str, pl.DataType], params: Mapping[str, Param]) -> str:
    """What an author compares with what."""
    shown = [
        f"`{name}` is {kind(columns[name]) if name in columns else repr(params[name])}"
        for name in part.names
        if name in columns or name in params
    ]
    return f"compare like with like: {', '.join(shown)}" if shown else "complete it"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _where_else(word: str, known: set[str], table: str | None) -> str:
    """What to do about a name that is not here: near names, other tables, where they are listed."""
    if table is None:
        return sql_words.near_name(word, known)
    others = [name for name, facts in fact_tables.FACTS.items() if word in facts]
    if others and table in fact_tables.FACTS:
        return f"it is a fact of `{'` and `'.join(others)}`, and the rule is over `{table}`"
    near = sql_words.near_name(word, known)
    return f"{near} {_listed(table)}".strip()


def _listed(table: str) -> str:
    return f"`hcp-logscan --explain {table}` lists what there is"


def _value(dtype: pl.DataType) -> object:
    """Some value of a fact's type."""
    if isinstance(dtype, pl.List):
        return ["x" if dtype.inner == pl.String else 1]
    if dtype == pl.String:
        return "x"
    return True if dtype == pl.Boolean else 1
