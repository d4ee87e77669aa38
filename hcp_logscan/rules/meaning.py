"""What a rule's parts mean, in words: for authors, for the terminal and for the rules' pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hcp_logscan.analysis import facts as fact_tables
from hcp_logscan.rules import expression, parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan.analysis.fact import Fact
    from hcp_logscan.rules.schema import Rule

OVER_WORDS: Final[Mapping[str, str]] = {
    "attempts": "each attempt",
    "iterations": "each logged iteration of an attempt; one that fires is enough",
    "failures": "each process of an attempt that failed; one that fires is enough",
    "run": "the run as a whole: what its logs are like",
}
"""Fact table -> what a rule over it judges."""


def facts_of(rule: Rule) -> dict[str, Fact]:
    """The facts that `when` reads, in order of appearance."""
    known = fact_tables.FACTS[rule.over]
    return {name: known[name] for name in expression.compile_when(rule).names}


def sql_lines(sql: str) -> tuple[str, ...]:
    """A condition with each operand of its outermost AND or OR on a line of its own.

    >>> sql_lines("a > 1 AND b BETWEEN 1 AND 2  AND (c OR d)")
    ('a > 1', 'AND b BETWEEN 1 AND 2', 'AND (c OR d)')
    """
    whole = parts.split(sql)
    if not whole.parts:
        return (whole.source,)
    first, *others = whole.parts
    return (first.source, *(f"{whole.join} {one.source}" for one in others))


def shown(value: object) -> str:
    """A value as SQL writes it; what was not observed is NULL.

    >>> shown(True), shown("a'b"), shown([8, 2]), shown(None), shown(0.5)
    ('TRUE', "'a''b'", '[8, 2]', 'NULL', '0.5')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, list | tuple):
        return f"[{', '.join(shown(one) for one in value)}]"
    return str(value)


def facts_line(facts: Mapping[str, object]) -> str:
    """The facts of an example on one line."""
    given = ", ".join(f"{name} = {shown(value)}" for name, value in facts.items())
    return given or "no fact was observed"
