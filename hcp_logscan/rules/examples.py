"""The examples inside a rule file, run: by `--check-rules` for authors, by pytest for us."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from hcp_logscan.analysis import facts as fact_tables
from hcp_logscan.model.errors import NothingUnderstoodError, RuleError
from hcp_logscan.rules.judge import judge

if TYPE_CHECKING:
    from hcp_logscan.model.finding import Finding, Judgement, Outcome
    from hcp_logscan.rules.schema import Example, Rule

Word = Literal["fires", "quiet", "missed", "noisy", "wrong"]


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
    judgements, findings = (
        _judge_facts(rule, example) if example.facts is not None else _judge_log(rule, example)
    )
    # A log can hold several attempts: what fires in one of them is what the example is about.
    order: tuple[Outcome, ...] = ("fires", "inconclusive", "clean")
    worst = min(judgements, key=lambda one: order.index(one.outcome), default=None)
    return ExampleResult(
        rule.id,
        example.name,
        example.outcome,
        worst.outcome if worst else "inconclusive",
        worst.missing if worst else (),
        findings[0].message if findings else "",
    )


def _judge_facts(rule: Rule, example: Example) -> tuple[tuple[Judgement, ...], tuple[Finding, ...]]:
    facts = {table: fact_tables.empty(table) for table in fact_tables.FACTS}
    facts["attempts"] = _one_row("attempts", {}, rule, example)
    facts[rule.over] = _one_row(rule.over, dict(example.facts or {}), rule, example).with_columns(
        file=pl.lit("example.log"), line=pl.lit(1), text=pl.lit(None, dtype=pl.String)
    )
    return judge([rule], facts, {})


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


def _judge_log(rule: Rule, example: Example) -> tuple[tuple[Judgement, ...], tuple[Finding, ...]]:
    # The analysis pulls in scanner and engine, which nobody who runs facts examples needs.
    from hcp_logscan.analysis.run import examine  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "run" / "train.log"
        log.parent.mkdir()
        log.write_text(example.log or "", encoding="utf-8")
        try:
            analysis = examine(log.parent)
        except NothingUnderstoodError:
            return (), ()
        return judge([rule], analysis.facts, analysis.events)
