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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hcp_logscan.rules.schema import Rule

# Numbers of tickets mean nothing to a reader of a report; links stand under `references`.
_TICKET: Final = re.compile(r"#\d+|\b(?:issues?|tickets?|PR|pull requests?)\s+#?\d+", re.IGNORECASE)
_SHIPPED: Final = re.compile(r"HCP\d{3}")


def lint(paths: Sequence[Path]) -> list[str]:
    """Complaints about these rule files or directories, file first; empty if all is well."""
    complaints: list[str] = []
    names: dict[str, Path] = {}
    ids: dict[str, Path] = {}
    for path in load.rule_files(paths, complaints):
        try:
            rule = load.load_file(path)
        except RuleError as error:
            complaints += str(error).splitlines()
            continue
        complaints += [f"{path}: {text}" for text in _complaints(rule, path)]
        for what, value, seen in (("id", rule.id, ids), ("name", rule.name, names)):
            if value in seen:
                complaints.append(f"{path}: {what} {value} is also that of {seen[value]}")
            seen.setdefault(value, path)
    return complaints


def _complaints(rule: Rule, path: Path) -> Iterator[str]:
    if path.stem != f"{rule.id}-{rule.name}":
        yield f"the file is called {path.name}; call it {rule.id}-{rule.name}.yaml"
    if rule.summary.rstrip().endswith((".", "。")) or "\n" in rule.summary.strip():
        yield "summary: one line without a full stop"
    for url in rule.references:
        if not url.startswith("https://"):
            yield f"references: {url} is not an https URL"
    yield from _text_complaints(rule)
    yield from _example_complaints(rule)


def _text_complaints(rule: Rule) -> Iterator[str]:
    if rule.zh is None and _SHIPPED.fullmatch(rule.id):
        yield "zh: shipped rules carry the Chinese texts too"
    zh = rule.texts("zh")
    if template.fields(rule.message) != template.fields(zh.message):
        yield "zh.message: its fields differ from those of `message`"
    english = (rule.summary, rule.message, rule.why, rule.fix, *rule.false_positives)
    for text in (*english, zh.summary, zh.message, zh.why, zh.fix):
        if ticket := _TICKET.search(text):
            yield f"`{ticket[0]}` in a text: say what it is about and link it under `references`"


def _example_complaints(rule: Rule) -> Iterator[str]:
    given = {example.outcome for example in rule.examples}
    for outcome in get_args(Outcome):
        if outcome not in given and outcome not in rule.never:
            yield f"examples: none has the outcome `{outcome}`"
        if outcome in given and outcome in rule.never:
            yield f"never: `{outcome}` is reached by an example"
    titles = [example.name for example in rule.examples]
    yield from (f"examples: two are called `{one}`" for one in {*titles} if titles.count(one) > 1)
    if "clean" in given and not _has_boundary(rule):
        yield (
            "examples: no `clean` one is a boundary: take the facts of one that fires and change "
            "the one fact that makes it clean"
        )
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
