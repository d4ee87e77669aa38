"""Rules for people: list them, explain one, or a table that they are written over."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

import typer

from hcp_logscan.cli import paper
from hcp_logscan.model.errors import UsageError
from hcp_logscan.model.safe import cut, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from hcp_logscan.analysis.fact import Fact
    from hcp_logscan.rules.schema import Example, Rule

MAX_LOG: Final = 8
"""Lines of an example's log that are shown; the page in docs/rules has them all."""

_NEAR: Final = 3


def _rules(extra: Sequence[Path]) -> tuple[Rule, ...]:
    from hcp_logscan.rules.load import load_rules

    return load_rules(list(extra))


def print_rules(extra: Sequence[Path]) -> None:
    """One line per rule."""
    for rule in _rules(extra):
        typer.echo(one_line(f"{rule.id}  {rule.severity:7}  {rule.name}: {rule.summary}"))


def print_rule(wanted: str, extra: Sequence[Path]) -> None:
    """The page of one rule, found by id or name, or of one table. Raises UsageError for neither."""
    from hcp_logscan.analysis.facts import FACTS
    from hcp_logscan.rules.schema import EVIDENCE_TABLES

    rules = _rules(extra)
    word = wanted.strip().lower()
    columns = paper.width()
    for rule in rules:
        if word in {rule.id.lower(), rule.name}:
            paper.print_lines(page(rule, columns))
            return
    if word in FACTS or word in EVIDENCE_TABLES:
        paper.print_lines(table_page(word, columns))
        return
    raise UsageError(_unknown(wanted, rules, [*FACTS, *EVIDENCE_TABLES]))


def _unknown(wanted: str, rules: Sequence[Rule], tables: Iterable[str]) -> str:
    """That there is no such rule, and which are near by id or name, or hold the word."""
    word = wanted.strip().lower()
    titles = {one.id.lower(): f"{one.id} {one.name}" for one in rules}
    titles |= {one.name: f"{one.id} {one.name}" for one in rules}
    titles |= {table: table for table in tables}
    holding = [name for name in titles if len(word) > 2 and word in name]
    near = difflib.get_close_matches(word, titles, n=_NEAR, cutoff=0.5)
    meant = list(dict.fromkeys(titles[name] for name in (*holding, *near)))[:_NEAR]
    guess = f" Did you mean {' or '.join(meant)}?" if meant else ""
    return f"no rule {one_line(cut(wanted, 60))}.{guess} hcp-logscan --list-rules shows all."


def page(rule: Rule, columns: int = paper.DEFAULT_WIDTH) -> Iterator[paper.Line]:
    """The page of a rule as lines of text."""
    yield paper.heading(f"{rule.id} {rule.name}  [{rule.severity}, {rule.confidence} confidence]")
    yield from paper.wrapped(rule.summary, columns)
    yield from _condition(rule, columns)
    for title, text in (("Why", rule.why), ("Fix", rule.fix)):
        yield ""
        yield paper.heading(title)
        yield from _prose(text, columns)
    for title, texts in (
        ("When it is wrong", rule.false_positives),
        ("References", rule.references),
    ):
        if texts:
            yield ""
            yield paper.heading(title)
            for text in texts:
                yield from paper.wrapped(text, columns, "  - ")
    if rule.examples:
        yield ""
        yield paper.heading("Examples")
        for example in rule.examples:
            yield from _example(example, columns)


def _condition(rule: Rule, columns: int) -> Iterator[paper.Line]:
    from hcp_logscan.rules import meaning

    yield ""
    yield paper.heading(f"Fires (over {rule.over}) when")
    for line in meaning.sql_lines(rule.when):
        yield from paper.wrapped(line, columns, "  ", "      ")
    yield from paper.wrapped(
        f"Judges {meaning.OVER_WORDS[rule.over]}. Where it is FALSE the outcome is clean; where a"
        " fact that was not observed leaves it open, inconclusive.",
        columns,
        "  ",
    )
    if rule.null_reason:
        yield from paper.wrapped(
            f"An unobserved fact counts, because {rule.null_reason}", columns, "  "
        )
    yield ""
    yield paper.heading("Facts it reads")
    yield from _facts(meaning.facts_of(rule), columns)
    if rule.params:
        yield ""
        yield paper.heading("Parameters")
        for name, value in rule.params.items():
            yield from paper.wrapped(f"{name} = {meaning.shown(value)}", columns, "  ")
            set_it = f"--set {rule.id}.{name}=VALUE"
            yield from paper.wrapped(f"change it with {set_it}", columns, "      ")


def _facts(facts: Mapping[str, Fact], columns: int) -> Iterator[paper.Line]:
    from hcp_logscan.rules.expression import kind

    for name, fact in facts.items():
        text = f"{name}, {kind(fact.dtype)}: {fact.meaning}"
        yield from paper.wrapped(text, columns, "  ", "      ")
    ways: dict[str, list[str]] = {}
    for name, fact in facts.items():
        ways.setdefault(fact.observe, []).append(name)
    for way, names in ways.items():
        if way:
            yield ""
            text = f"to observe {', '.join(names)}: {way}"
            yield from paper.wrapped(text, columns, "  ", "      ")


def _prose(text: str, columns: int) -> Iterator[paper.Line]:
    """Paragraphs, list items and code of a rule's text, as `prose.reflow` leaves them."""
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ""
        for line in paragraph.split("\n"):
            if line.startswith("- "):
                yield from paper.wrapped(line[2:], columns, "  - ")
            elif line.startswith(" "):
                yield f"  {one_line(line)}"
            else:
                yield from paper.wrapped(line, columns, "  ")


def _example(example: Example, columns: int) -> Iterator[paper.Line]:
    from hcp_logscan.rules import meaning

    yield from paper.wrapped(f"{example.outcome}: {example.name}", columns, "  ", "      ")
    if example.facts is not None:
        yield from paper.wrapped(meaning.facts_line(example.facts), columns, "      ")
        return
    lines = (example.log or "").splitlines()
    hidden = max(0, len(lines) - MAX_LOG)
    head = lines[: MAX_LOG // 2] if hidden else lines
    tail = lines[-(MAX_LOG - len(head)) :] if hidden else []
    for line in head:
        yield from paper.folded(line, columns, "      | ")
    if hidden:
        yield f"      ({hidden} more lines)"
    for line in tail:
        yield from paper.folded(line, columns, "      | ")


def table_page(table: str, columns: int = paper.DEFAULT_WIDTH) -> Iterator[paper.Line]:
    """The columns of one fact or event table: what rules can be written over, or show."""
    from hcp_logscan.analysis.facts import FACTS
    from hcp_logscan.model.events import EVENTS
    from hcp_logscan.rules.expression import evidence_columns
    from hcp_logscan.rules.meaning import OVER_WORDS
    from hcp_logscan.rules.schema import EVIDENCE_TABLES

    if table in FACTS:
        yield paper.heading(f"Fact table {table}: a rule over it judges {OVER_WORDS[table]}")
        yield from _facts(FACTS[table], columns)
    if table in FACTS and table in EVIDENCE_TABLES:
        yield ""
    if table in EVIDENCE_TABLES:
        about = (
            EVENTS[table].meaning if table in EVENTS else "what the analysis found, line by line"
        )
        yield paper.heading(f"Event table {table}, for `evidence`")
        yield from paper.wrapped(about, columns, "  ")
        yield from _columns(evidence_columns(table), columns)


def _columns(found: Mapping[str, pl.DataType], columns: int) -> Iterator[paper.Line]:
    from hcp_logscan.rules.expression import kind

    for name, dtype in found.items():
        yield from paper.wrapped(f"{name}: {kind(dtype)}", columns, "  ", "      ")
