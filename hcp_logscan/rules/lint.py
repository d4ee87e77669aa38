"""What a rule file must have beyond being loadable; run as `python -m hcp_logscan.rules.lint`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from hcp_logscan.model.bundled import bundled_dir
from hcp_logscan.model.errors import RuleError
from hcp_logscan.model.finding import Outcome
from hcp_logscan.rules import examples, load, template
from hcp_logscan.rules.problem import Mistake, Problem, RuleFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hcp_logscan.rules.schema import Rule
    from hcp_logscan.rules.yamlfile import YamlFile

# Numbers of tickets mean nothing to a reader of a report; links stand under `references`.
_TICKET: Final = re.compile(r"#\d+|\b(?:issues?|tickets?|PR|pull requests?)\s+#?\d+", re.IGNORECASE)
_SHIPPED: Final = re.compile(r"HCP\d{3}")
_OUTCOMES: Final[Mapping[Outcome, str]] = {
    "fires": "one that the rule is for",
    "clean": "one just below the threshold, or a healthy twin",
    "inconclusive": "one that lacks a fact, such as `facts: {}`",
}

Complaint = tuple[tuple[str | int, ...], Mistake]
"""Where in the file, and what."""


def lint(paths: Sequence[Path]) -> list[str]:
    """Complaints about these rule files or directories, file first; empty if all is well."""
    unusable: list[Problem] = []
    complaints: list[str] = []
    names: dict[str, Path] = {}
    ids: dict[str, Path] = {}
    for path in load.rule_files(paths, unusable):
        try:
            rule, file = load.read_file(path)
        except RuleFileError as error:
            complaints += [str(one) for one in error.problems]
            continue
        complaints += [str(one) for one in problems(rule, file, style=True)]
        complaints += [f"{path}: {text}" for text in _failing(rule)]
        for what, value, seen in (("id", rule.id, ids), ("name", rule.name, names)):
            if value in seen:
                complaints.append(f"{path}: {what} {value} is also that of {seen[value]}")
            seen.setdefault(value, path)
    return [*(str(one) for one in unusable), *complaints]


def problems(rule: Rule, file: YamlFile, *, style: bool) -> list[Problem]:
    """What a rule must have beyond being loadable; `style` adds what shipped rules look like."""
    found = [*_texts(rule), *_examples(rule), *_parameters(rule)]
    found += _style(rule, file.path) if style else ()
    return [file.problem(one, location) for location, one in found]


def is_shipped(rule: Rule) -> bool:
    """Its id is one that shipped rules have."""
    return _SHIPPED.fullmatch(rule.id) is not None


def _style(rule: Rule, path: Path) -> Iterator[Complaint]:
    wanted = f"{rule.id}-{rule.name}"
    if path.stem != wanted:
        yield (), Mistake(f"the file is called {path.name}", f"call it {wanted}.yaml")
    if rule.summary.rstrip().endswith((".", "。")) or "\n" in rule.summary.strip():
        yield ("summary",), Mistake("summary: one line without a full stop")
    for index, url in enumerate(rule.references):
        if not url.startswith("https://"):
            yield ("references", index), Mistake(f"references: {url} is not an https URL")
    if rule.zh is None and is_shipped(rule):
        yield (), Mistake("zh: shipped rules carry the Chinese texts too")
    zh = rule.texts("zh")
    english = (rule.summary, rule.message, rule.why, rule.fix, *rule.false_positives)
    for text in (*english, zh.summary, zh.message, zh.why, zh.fix):
        if ticket := _TICKET.search(text):
            move = "say what it is about and link it under `references`"
            yield (), Mistake(f"`{ticket[0]}` in a text", move)


def _texts(rule: Rule) -> Iterator[Complaint]:
    zh = rule.texts("zh")
    if template.fields(rule.message) != template.fields(zh.message):
        move = "name the same facts, with the same formats, in both"
        yield (
            ("zh", "message"),
            Mistake("zh.message: its fields differ from those of `message`", move),
        )


def _parameters(rule: Rule) -> Iterator[Complaint]:
    texts = (rule.when, *rule.evidence.values(), *template.fields(rule.message))
    for name in rule.params:
        if not any(re.search(rf"\b{name}\b", text) for text in texts):
            move = "compare a fact with it in `when`, or take it out"
            yield ("params", name), Mistake(f"params.{name}: nothing reads it", move)


def _examples(rule: Rule) -> Iterator[Complaint]:
    given = {example.outcome for example in rule.examples}
    for outcome in get_args(Outcome):
        if outcome not in given and outcome not in rule.never:
            move = (
                f"add {_OUTCOMES[outcome]}; or, where the rule cannot reach it, list it under"
                " `never` with a `never_reason`"
            )
            yield ("examples",), Mistake(f"examples: none has the outcome `{outcome}`", move)
        if outcome in given and outcome in rule.never:
            move = "take it out of `never`, or correct the example"
            yield ("never",), Mistake(f"never: `{outcome}` is reached by an example", move)
    titles = [example.name for example in rule.examples]
    for index, title in enumerate(titles):
        if title in titles[:index]:
            yield (
                ("examples", index),
                Mistake(f"examples: two are called `{title}`", "say what each of them is about"),
            )
    if "clean" in given and "fires" in given and not _has_boundary(rule):
        yield (
            ("examples",),
            Mistake(
                "examples: no `clean` one is a boundary",
                "take the facts of one that fires and change the one fact that makes it clean",
            ),
        )


def _failing(rule: Rule) -> Iterator[str]:
    """Facts examples that are not as they say. Logs cost a scan each: pytest runs those."""
    facts_only = rule.model_copy(
        update={"examples": tuple(one for one in rule.examples if one.facts is not None)}
    )
    try:
        results = examples.check(facts_only)
    except RuleError as error:
        yield str(error)
        return
    yield from (f"example `{one.example}`: {one.word}" for one in results if not one.ok)


def _has_boundary(rule: Rule) -> bool:
    firing = [
        one.facts for one in rule.examples if one.outcome == "fires" and one.facts is not None
    ]
    clean = [one.facts for one in rule.examples if one.outcome == "clean" and one.facts is not None]
    return any(len(_differing(one, other)) == 1 for one in firing for other in clean)


def _differing(one: Mapping[str, object], other: Mapping[str, object]) -> set[str]:
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


def main(arguments: Sequence[str]) -> int:
    """Lint the paths given, or the shipped rules. 1 if there is a complaint, else 0."""
    complaints = lint([Path(one) for one in arguments] or [bundled_dir()])
    sys.stdout.writelines(f"{one}\n" for one in complaints)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
