"""Rules for people: list them, explain one, check those of an author."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import typer

from hcp_logscan.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hcp_logscan.rules.schema import Rule


def _rules(extra: Sequence[Path]) -> tuple[Rule, ...]:
    from hcp_logscan.rules.load import load_rules

    return load_rules(list(extra))


def print_rules(extra: Sequence[Path]) -> None:
    """One line per rule."""
    for rule in _rules(extra):
        typer.echo(f"{rule.id}  {rule.severity:7}  {rule.name}: {rule.summary}")


def print_rule(wanted: str, extra: Sequence[Path]) -> None:
    """The whole page of one rule, found by id or name. Raises UsageError if there is none."""
    for rule in _rules(extra):
        if wanted.upper() == rule.id or wanted == rule.name:
            typer.echo("\n".join(page(rule)))
            return
    raise UsageError(f"no rule {wanted}. hcp-logscan --list-rules shows all.")


def page(rule: Rule) -> Iterator[str]:
    """The page of a rule as lines of text, 96 columns wide."""
    yield f"{rule.id} {rule.name}  [{rule.severity}, {rule.confidence} confidence]"
    yield from _paragraphs(rule.summary)
    yield ""
    yield f"Fires (over {rule.over}) when"
    yield from _paragraphs(rule.when, indent="  ")
    for name, value in rule.params.items():
        yield f"  {name} = {value}    (--set {rule.id}.{name}=VALUE)"
    for title, text in (("Why", rule.why), ("Fix", rule.fix)):
        yield ""
        yield title
        yield from _paragraphs(text, indent="  ")
    for title, texts in (
        ("When it is wrong", rule.false_positives),
        ("References", rule.references),
        ("Examples", [f"{example.outcome}: {example.name}" for example in rule.examples]),
    ):
        if texts:
            yield ""
            yield title
            for text in texts:
                yield from _paragraphs(text, indent="  - ")


def _paragraphs(text: str, indent: str = "") -> Iterator[str]:
    for paragraph in text.strip().split("\n\n"):
        yield textwrap.fill(
            " ".join(paragraph.split()),
            width=96,
            initial_indent=indent,
            subsequent_indent=" " * len(indent),
            break_long_words=False,
            break_on_hyphens=False,
        )


def check(path: Path) -> int:
    """Check rule files: their form, then every example. Exit code 0 if all is well, else 2."""
    from hcp_logscan.rules.examples import check as check_examples
    from hcp_logscan.rules.load import load_paths

    rules = load_paths([path])
    bad = 0
    for rule in rules:
        for result in check_examples(rule):
            bad += not result.ok
            mark = "ok  " if result.ok else "FAIL"
            detail = "" if result.ok else f" (expected {result.expected}, got {result.got})"
            typer.echo(f"{mark} {rule.id} {result.word}: {result.example}{detail}")
    typer.echo(f"{len(rules)} rules, {bad} examples that fail")
    return 2 if bad else 0
