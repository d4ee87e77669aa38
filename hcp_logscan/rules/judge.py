"""Rules x facts -> judgements and findings: pure, and the same for the same tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.model.errors import RuleError
from hcp_logscan.model.finding import (
    MAX_TEXT,
    SEVERITIES,
    Confidence,
    Finding,
    Judgement,
    Location,
    Outcome,
)
from hcp_logscan.rules import expression, template
from hcp_logscan.rules.schema import ROW_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hcp_logscan.rules.schema import Rule

MAX_EVIDENCE: Final = 12
"""Lines of evidence that one finding carries; first and last are kept."""

_CONFIDENCES: Final[tuple[Confidence, ...]] = ("low", "medium", "high")


def judge(
    rules: Iterable[Rule],
    facts: Mapping[str, pl.DataFrame],
    events: Mapping[str, pl.DataFrame],
) -> tuple[tuple[Judgement, ...], tuple[Finding, ...]]:
    """Judge every attempt by every rule.

    `facts` holds the tables of `analysis.facts.FACTS`; `iterations` and `failures` have the columns
    of `LOCATION_COLUMNS` besides. `events` holds event tables with `attempt`, `rank`, `file`,
    `line`, `text` and their own columns; a table that is missing or empty gives no evidence.

    Judgements stand in the order of rules, then attempts; findings worst first. Raises `RuleError`
    where a table lacks a column that a rule names.
    """
    judgements: list[Judgement] = []
    findings: list[Finding] = []
    for rule in rules:
        for case in _cases(rule, facts):
            judgements.append(Judgement(rule.id, case.attempt, case.outcome, case.missing))
            if case.outcome == "fires":
                findings.append(_finding(rule, case, events))
    return tuple(judgements), tuple(sorted(findings, key=_badness))


def _badness(finding: Finding) -> tuple[int, int, int, str]:
    return (
        -SEVERITIES.index(finding.severity),
        -_CONFIDENCES.index(finding.confidence),
        finding.attempt,
        finding.rule,
    )


@dataclass(frozen=True, slots=True)
class _Case:
    """One rule for one attempt."""

    attempt: int
    outcome: Outcome
    missing: tuple[str, ...] = ()
    firing: pl.DataFrame = field(default_factory=pl.DataFrame)
    "The rows that fire, in the order of the table: as many as the attempt has iterations."


def _cases(rule: Rule, facts: Mapping[str, pl.DataFrame]) -> Iterator[_Case]:
    table = facts[rule.over]
    try:
        compiled = expression.compile_when(rule)
        outcomes = expression.evaluate(compiled, table, rule.params)
    except (RuleError, pl.exceptions.PolarsError) as error:
        raise RuleError(f"{rule.id}: when: {error}") from error
    judged = table if rule.over == "run" else facts["attempts"]
    firing = _by_attempt(table, outcomes) if outcomes.any() else {}
    unknown = _by_attempt(table, outcomes.is_null()) if outcomes.null_count() else {}
    present = set(table.get_column("attempt")) if rule.over == "iterations" else set()
    for attempt in judged.get_column("attempt").to_list():
        if attempt in firing:
            yield _Case(attempt, "fires", firing=firing[attempt])
        elif attempt in unknown:
            yield _Case(attempt, "inconclusive", _missing(compiled.names, unknown[attempt][:1]))
        elif rule.over == "iterations" and attempt not in present:
            # No row means that nothing was logged, not that all was well.
            yield _Case(attempt, "inconclusive", ("iterations",))
        else:
            yield _Case(attempt, "clean")


def _by_attempt(table: pl.DataFrame, picked: pl.Series) -> dict[int, pl.DataFrame]:
    parts = table.filter(picked).partition_by("attempt", maintain_order=True)
    return {part.get_column("attempt")[0]: part for part in parts}


def _missing(names: Sequence[str], unknown: pl.DataFrame) -> tuple[str, ...]:
    row = expression.observed(unknown.select(names)).row(0, named=True)
    return tuple(name for name in names if row[name] is None)


def _finding(rule: Rule, case: _Case, events: Mapping[str, pl.DataFrame]) -> Finding:
    evidence, total = _evidence(rule, case, events)
    iterations = _numbers(case.firing, rule.iteration_column)
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        confidence=rule.confidence,
        attempt=case.attempt,
        message=template.remembered(rule, _values(rule, case)),
        why=rule.why,
        fix=rule.fix,
        iteration=iterations[0] if len(iterations) else None,
        ranks=tuple(_numbers(case.firing, rule.rank_column).unique().sort().to_list()),
        references=rule.references,
        evidence=evidence,
        evidence_total=total,
    )


def _values(rule: Rule, case: _Case) -> dict[str, Any]:
    """What a message can name: the first firing row, the parameters, how far it goes."""
    values: dict[str, Any] = dict(rule.params) | case.firing.row(0, named=True)
    if rule.over in ROW_TABLES:
        values |= {
            "count": case.firing.height,
            "last_iteration_concerned": _numbers(case.firing, "iteration").max(),
        }
    return values


def _numbers(rows: pl.DataFrame, name: str | None) -> pl.Series:
    """The numbers in one column in order of rows, lists flattened, nulls left out."""
    if name is None:
        return pl.Series(dtype=pl.Int64)
    column = rows.get_column(name)
    if column.dtype == pl.List:
        column = column.explode(empty_as_null=False)
    return column.drop_nulls()


_PLACE: Final[Mapping[str, pl.DataType]] = {
    "file": pl.String(),
    "line": pl.Int64(),
    "text": pl.String(),
    "rank": pl.Int64(),
}


def _evidence(
    rule: Rule, case: _Case, events: Mapping[str, pl.DataFrame]
) -> tuple[tuple[Location, ...], int]:
    """Lines of evidence, first and last kept where there are many, and how many there are.

    Each counts once: the firing rows, then those of the rule's event tables in its order.
    """
    parts = [_placed(case.firing)] if rule.over in ROW_TABLES else []
    for table, compiled in expression.compile_evidence(rule).items():
        frame = events.get(table)
        if frame is not None and frame.height:
            parts.append(_placed(_evidence_rows(rule, case, table, compiled, frame)))
    if not parts:
        return (), 0
    places = pl.concat(parts).drop_nulls(["file", "line"])
    places = places.unique(["file", "line"], keep="first", maintain_order=True)
    shown = places
    if places.height > MAX_EVIDENCE:
        shown = pl.concat([places.head(MAX_EVIDENCE - 1), places.tail(1)])
    return tuple(
        Location(file, line, (text or "")[:MAX_TEXT], rank)
        for file, line, text, rank in shown.iter_rows()
    ), places.height


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """Where the rows stand; a column that their table lacks is null."""
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in _PLACE.items()
    )


def _evidence_rows(
    rule: Rule, case: _Case, table: str, compiled: expression.Expression, frame: pl.DataFrame
) -> pl.DataFrame:
    facts = expression.judged_facts(rule)
    first = case.firing.row(0, named=True)
    judged = [
        pl.lit(first[name], dtype=facts[name]).alias(name)
        for name in compiled.names
        if name in facts and name not in frame.columns
    ]
    try:
        picked = expression.evaluate(compiled, frame.with_columns(judged), rule.params)
    except pl.exceptions.PolarsError as error:
        raise RuleError(f"{rule.id}: evidence.{table}: {error}") from error
    if rule.over != "run":
        picked &= frame.get_column("attempt") == case.attempt
    return frame.filter(picked)
