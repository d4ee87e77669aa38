"""Rules x facts -> judgements and findings: pure, and the same for the same tables."""

from __future__ import annotations

from dataclasses import dataclass
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

Row = dict[str, Any]


def judge(
    rules: Iterable[Rule],
    facts: Mapping[str, pl.DataFrame],
    events: Mapping[str, pl.DataFrame],
    *,
    lang: str = "en",
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
                findings.append(_finding(rule, case, events, lang))
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
    firing: tuple[Row, ...] = ()
    "The rows that fire, in the order of the table."


def _cases(rule: Rule, facts: Mapping[str, pl.DataFrame]) -> Iterator[_Case]:
    table = facts[rule.over]
    try:
        compiled = expression.compile_when(rule)
        outcomes = expression.evaluate(compiled, table, rule.params)
    except (RuleError, pl.exceptions.PolarsError) as error:
        raise RuleError(f"{rule.id}: when: {error}") from error
    judged = table if rule.over == "run" else facts["attempts"]
    firing, unknown = _rows_by_attempt(table, outcomes)
    present = set(table.get_column("attempt").unique())
    for attempt in judged.get_column("attempt").to_list():
        if attempt in firing:
            yield _Case(attempt, "fires", firing=tuple(table[firing[attempt]].to_dicts()))
        elif attempt in unknown:
            row = table[unknown[attempt][:1]]
            yield _Case(attempt, "inconclusive", _missing(compiled.names, row))
        elif rule.over == "iterations" and attempt not in present:
            # No row means that nothing was logged, not that all was well.
            yield _Case(attempt, "inconclusive", ("iterations",))
        else:
            yield _Case(attempt, "clean")


def _rows_by_attempt(
    table: pl.DataFrame, outcomes: pl.Series
) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Attempt -> its rows that fire, and its rows that cannot be judged; in one pass for all."""
    firing: dict[int, list[int]] = {}
    unknown: dict[int, list[int]] = {}
    flagged = (
        pl.DataFrame([table.get_column("attempt"), outcomes.alias("outcome")])
        .with_row_index("row")
        .filter(pl.col("outcome").fill_null(value=True))
    )
    for row, attempt, outcome in flagged.iter_rows():
        (unknown if outcome is None else firing).setdefault(attempt, []).append(row)
    return firing, unknown


def _missing(names: Sequence[str], unknown: pl.DataFrame) -> tuple[str, ...]:
    row = expression.observed(unknown.select(names)).row(0, named=True)
    return tuple(name for name in names if row[name] is None)


def _finding(rule: Rule, case: _Case, events: Mapping[str, pl.DataFrame], lang: str) -> Finding:
    texts = rule.texts(lang)
    places = list(_places(rule, case, events))
    iterations = _column(case.firing, rule.iteration_column)
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        confidence=rule.confidence,
        attempt=case.attempt,
        message=template.render(texts.message, _values(rule, case)),
        why=texts.why,
        fix=texts.fix,
        iteration=iterations[0] if iterations else None,
        ranks=tuple(sorted(set(_column(case.firing, rule.rank_column)))),
        references=rule.references,
        evidence=_capped(places),
        evidence_total=len(places),
    )


def _values(rule: Rule, case: _Case) -> dict[str, Any]:
    """What a message can name: the first firing row, the parameters, how far it goes."""
    values: dict[str, Any] = dict(rule.params) | case.firing[0]
    if rule.over in ROW_TABLES:
        iterations = _column(case.firing, "iteration")
        values |= {
            "count": len(case.firing),
            "last_iteration_concerned": max(iterations, default=None),
        }
    return values


def _column(rows: Sequence[Row], name: str | None) -> list[int]:
    """The numbers in one column in order of rows, lists flattened, nulls left out."""
    found: list[int] = []
    for row in rows:
        value = row[name] if name else None
        found += [one for one in (value if isinstance(value, list) else [value]) if one is not None]
    return found


def _places(rule: Rule, case: _Case, events: Mapping[str, pl.DataFrame]) -> Iterator[Location]:
    """Every line of evidence once: the firing rows, then the rule's event tables in its order."""
    seen: set[tuple[str, int]] = set()
    rows: list[Row] = list(case.firing) if rule.over in ROW_TABLES else []
    for table, compiled in expression.compile_evidence(rule).items():
        frame = events.get(table)
        if frame is not None and frame.height:
            rows += _evidence_rows(rule, case, table, compiled, frame)
    for row in rows:
        file, line = row["file"], row["line"]
        if file is None or line is None or (file, line) in seen:
            continue
        seen.add((file, line))
        yield Location(file, line, (row.get("text") or "")[:MAX_TEXT], row.get("rank"))


def _evidence_rows(
    rule: Rule, case: _Case, table: str, compiled: expression.Expression, frame: pl.DataFrame
) -> list[Row]:
    facts = expression.judged_facts(rule)
    judged = [
        pl.lit(case.firing[0][name], dtype=facts[name]).alias(name)
        for name in compiled.names
        if name in facts and name not in frame.columns
    ]
    try:
        picked = expression.evaluate(compiled, frame.with_columns(judged), rule.params)
    except pl.exceptions.PolarsError as error:
        raise RuleError(f"{rule.id}: evidence.{table}: {error}") from error
    if rule.over != "run":
        picked &= frame.get_column("attempt") == case.attempt
    wanted = ("rank", "file", "line", "text")
    return frame.filter(picked).select(pl.selectors.by_name(*wanted, require_all=False)).to_dicts()


def _capped(places: Sequence[Location]) -> tuple[Location, ...]:
    if len(places) <= MAX_EVIDENCE:
        return tuple(places)
    return (*places[: MAX_EVIDENCE - 1], places[-1])
