"""The examples inside a rule file, run: by `--check-rules` for authors, by pytest for us."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from hcp_logscan.analysis import facts as fact_tables
from hcp_logscan.model.errors import NothingUnderstoodError, RuleError
from hcp_logscan.rules import expression, parts
from hcp_logscan.rules.judge import judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hcp_logscan.model.finding import Finding, Judgement, Outcome
    from hcp_logscan.rules.parts import Part
    from hcp_logscan.rules.schema import Example, Rule

Word = Literal["fires", "quiet", "missed", "noisy", "wrong"]

_ORDER: Final[tuple[Outcome, ...]] = ("fires", "inconclusive", "clean")
_TRUTH: Final[Mapping[Outcome, bool | None]] = {"fires": True, "inconclusive": None, "clean": False}


@dataclass(frozen=True, slots=True)
class Operand:
    """What one part of `when` came to, on the row that an example was judged on."""

    depth: int
    "0 for the whole expression, 1 for what its AND or OR joins, and so on."

    source: str
    value: bool | None
    join: Literal["AND", "OR"] | None
    "What joins the deeper operands that follow; None for a comparison."

    values: tuple[tuple[str, object], ...] = ()
    "Facts and parameters that it reads, with their values; None was not observed."


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """What came of one example."""

    rule: str
    example: str
    expected: Outcome
    got: Outcome
    missing: tuple[str, ...] = ()
    "Facts that were not observed, where the outcome is inconclusive."

    message: str = ""
    "The finding's message, where it fired."

    rows: int = 0
    "Rows of the rule's fact table that were judged."

    operands: tuple[Operand, ...] = ()
    "For an example that is not as it says: `when`, part by part, on the row that decided it."

    @property
    def word(self) -> Word:
        """`fires` and `quiet` are right; `missed`, `noisy` and `wrong` are not.

        missed: should have fired. noisy: should not have. wrong: clean and inconclusive mixed up.
        """
        if self.got == self.expected:
            return "fires" if self.got == "fires" else "quiet"
        if self.expected == "fires":
            return "missed"
        return "noisy" if self.got == "fires" else "wrong"

    @property
    def ok(self) -> bool:
        """The rule does what its example says."""
        return self.got == self.expected


def check(rule: Rule) -> tuple[ExampleResult, ...]:
    """Run every example of a rule. Raises `RuleError` for facts that do not fit their columns."""
    return tuple(_run(rule, example) for example in rule.examples)


def _run(rule: Rule, example: Example) -> ExampleResult:
    judgements, findings, facts = (
        _judge_facts(rule, example) if example.facts is not None else _judge_log(rule, example)
    )
    # A log can hold several attempts: what fires in one of them is what the example is about.
    worst = min(judgements, key=lambda one: _ORDER.index(one.outcome), default=None)
    got: Outcome = worst.outcome if worst else "inconclusive"
    table = facts.get(rule.over, fact_tables.empty(rule.over))
    return ExampleResult(
        rule.id,
        example.name,
        example.outcome,
        got,
        worst.missing if worst else (),
        findings[0].message if findings else "",
        table.height,
        () if got == example.outcome else tuple(_operands(rule, table, got)),
    )


def _operands(rule: Rule, table: pl.DataFrame, got: Outcome) -> Iterator[Operand]:
    """`when` taken apart on the row that decided; of several such rows, the nearest to firing."""
    whole = parts.split(rule.when)
    outcomes = _value(rule, whole, table).to_list()
    deciding = [row for row, value in enumerate(outcomes) if value is _TRUTH[got]]
    if not deciding:
        return
    leaves = [_value(rule, leaf, table).to_list() for leaf in whole.leaves()]
    row = max(deciding, key=lambda row: (sum(leaf[row] is True for leaf in leaves), -row))
    yield from _taken_apart(rule, whole, table[[row]], 0)


def _taken_apart(rule: Rule, part: Part, row: pl.DataFrame, depth: int) -> Iterator[Operand]:
    values = {} if part.parts else dict(rule.params) | expression.observed(row).row(0, named=True)
    shown = tuple((name, values[name]) for name in part.names if name in values)
    yield Operand(depth, part.source, _value(rule, part, row).item(), part.join, shown)
    for one in part.parts:
        yield from _taken_apart(rule, one, row, depth + 1)


def _value(rule: Rule, part: Part, table: pl.DataFrame) -> pl.Series:
    """Its truth value in every row."""
    compiled = expression.Expression(pl.sql_expr(part.sql), part.names)
    return expression.evaluate(compiled, table, rule.params)


Judged = tuple[tuple["Judgement", ...], tuple["Finding", ...], "Mapping[str, pl.DataFrame]"]


def _judge_facts(rule: Rule, example: Example) -> Judged:
    facts = {table: fact_tables.empty(table) for table in fact_tables.FACTS}
    facts["attempts"] = _one_row("attempts", {}, rule, example)
    facts[rule.over] = _one_row(rule.over, dict(example.facts or {}), rule, example).with_columns(
        file=pl.lit("example.log"), line=pl.lit(1), text=pl.lit(None, dtype=pl.String)
    )
    return (*judge([rule], facts, {}), facts)


def _one_row(table: str, values: dict[str, object], rule: Rule, example: Example) -> pl.DataFrame:
    schema = fact_tables.schema(table)
    row = {name: _plain(values.get(name, 0 if name == "attempt" else None)) for name in schema}
    try:
        return pl.DataFrame({name: [value] for name, value in row.items()}, schema=schema)
    except (TypeError, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        raise RuleError(f"{rule.id}: example `{example.name}`: {reason}") from error


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _judge_log(rule: Rule, example: Example) -> Judged:
    # The analysis pulls in scanner and engine, which nobody who runs facts examples needs.
    from hcp_logscan.analysis.run import examine  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "run" / "train.log"
        log.parent.mkdir()
        log.write_text(example.log or "", encoding="utf-8")
        try:
            analysis = examine(log.parent)
        except NothingUnderstoodError:
            return (), (), {}
        return (*judge([rule], analysis.facts, analysis.events), analysis.facts)
