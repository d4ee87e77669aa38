"""One Markdown page per rule, and their index: `python -m hcp_logscan.rules.pages docs/rules`.

Pure but for `main`: rules -> pages. Texts of rules are shown as they are, whatever they hold; logs
stand in fences.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.errors import HcpLogscanError, OutputError
from hcp_logscan.model.markdown import cell, cell_code, code, escaped, fence, prose_line
from hcp_logscan.model.safe import one_line
from hcp_logscan.rules import load, meaning
from hcp_logscan.rules.expression import kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hcp_logscan.rules.schema import Example, Rule

FAMILIES: Final = {
    "0": "Activation: was hierarchical context parallelism on",
    "1": "Throughput",
    "2": "Loss and gradients",
    "3": "Progress",
    "4": "Collectives",
    "5": "Failures",
    "9": "The log itself",
}
"""First digit of a shipped rule's number -> what its family is about."""

OTHERS: Final = "Further rules"
INDEX: Final = "README.md"
MARK: Final = "<!-- Made from the rule's YAML file by `make docs`: edit that, not this page. -->"
"""First line of every page; only files that begin with it are ever replaced or removed."""

_INTRODUCTION: Final = (
    "Each rule is one YAML file in `rules/`, examples included. `hcp-logscan --explain RULE` prints"
    " a page in the terminal; `--select`, `--ignore` and `--set RULE.param=VALUE` choose and tune."
    " [How to write one](../../rules/README.md)."
)
_SHIPPED: Final = re.compile(r"HCP(\d)\d\d")
_PLAIN_URL: Final = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]+")


def pages(rules: Iterable[Rule]) -> dict[str, str]:
    """File name -> text, the index included."""
    known = sorted(rules, key=lambda rule: rule.id)
    return {INDEX: index(known)} | {f"{rule.id}.md": page(rule) for rule in known}


def index(rules: Sequence[Rule]) -> str:
    """All rules by family."""
    blocks = [
        MARK,
        "# Rules",
        _INTRODUCTION,
    ]
    families = list(dict.fromkeys(family(rule) for rule in rules))
    for title in families:
        members = [rule for rule in rules if family(rule) == title]
        rows = [
            f"| [{rule.id}]({rule.id}.md) | {rule.severity} | {cell(rule.summary)} |"
            for rule in members
        ]
        blocks += [
            f"## {title}",
            "\n".join(("| rule | severity | fires when |", "|---|---|---|", *rows)),
        ]
    return "\n\n".join(blocks) + "\n"


def family(rule: Rule) -> str:
    """The title of its family."""
    match = _SHIPPED.fullmatch(rule.id)
    return FAMILIES.get(match[1], OTHERS) if match else OTHERS


def page(rule: Rule) -> str:
    """The page of one rule."""
    blocks = [
        MARK,
        f"# {rule.id}: {rule.name}",
        f"{prose_line(_capital(rule.summary))}.",
        "\n".join(
            (
                "| severity | confidence | judges |",
                "|---|---|---|",
                f"| {rule.severity} | {rule.confidence} | {meaning.OVER_WORDS[rule.over]} |",
            )
        ),
        *_when(rule),
        *_parameters(rule),
        *_says(rule),
        "## Why",
        *_prose(rule.why),
        "## Fix",
        *_prose(rule.fix),
        *_list("When it may be wrong", map(prose_line, rule.false_positives)),
        *_examples(rule),
        *_list("References", map(_link, rule.references)),
        f"[All rules]({INDEX})",
    ]
    return "\n\n".join(blocks) + "\n"


def _capital(text: str) -> str:
    """With a capital, unless it begins with a name such as a2a+p2p."""
    return text[:1].upper() + text[1:] if text.split(maxsplit=1)[0].isalpha() else text


def _sentence(text: str) -> str:
    shown = prose_line(text)
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def _when(rule: Rule) -> Iterator[str]:
    yield "## When it fires"
    first, *others = meaning.sql_lines(rule.when)
    yield fence([first, *(f"  {line}" for line in others)], "sql")
    yield (
        f"Judged over the fact table `{rule.over}`. FALSE is clean; where a fact that was not"
        " observed leaves it open, the outcome is inconclusive."
    )
    if rule.null_reason:
        yield f"An unobserved fact counts here, because {_sentence(rule.null_reason)}"
    rows = [
        f"| {code(name)} | {kind(fact.dtype)} | {cell(fact.meaning)} | {cell(fact.observe)} |"
        for name, fact in meaning.facts_of(rule).items()
    ]
    yield "\n".join(("| fact | kind | meaning | to observe it |", "|---|---|---|---|", *rows))
    if rule.never_reason:
        never = " or ".join(rule.never)
        yield f"It is never {never}: {_sentence(rule.never_reason)}"


def _parameters(rule: Rule) -> Iterator[str]:
    if rule.params:
        yield "## Parameters"
        rows = [
            f"| {code(name)} | {cell_code(meaning.shown(value))} |"
            f" {code(f'--set {rule.id}.{name}=VALUE')} |"
            for name, value in rule.params.items()
        ]
        yield "\n".join(("| parameter | default | to change it |", "|---|---|---|", *rows))


def _says(rule: Rule) -> Iterator[str]:
    yield "## What it says"
    yield re.sub("^", "> ", "\n\n".join(_prose(rule.message)), flags=re.MULTILINE)
    if rule.evidence:
        yield "It shows the lines of these events:"
        rows = [f"- `{table}`, where {code(sql)}" for table, sql in rule.evidence.items()]
        yield "\n".join(rows)


def _prose(text: str) -> Iterator[str]:
    """Paragraphs, lists and code of a rule's text, as `prose.reflow` leaves them."""
    for paragraph in text.strip("\n").split("\n\n"):
        lines = paragraph.split("\n")
        if all(line.startswith(" ") for line in lines):
            yield fence(line.strip() for line in lines)
            continue
        block: list[str] = []
        for line in lines:
            item = line.startswith("- ")
            if block and item != block[-1].startswith("- "):
                yield "\n".join(block)
                block = []
            shown = prose_line(line.removeprefix("- ")) if item else prose_line(line)
            block.append(f"- {shown}" if item else shown)
        yield "\n".join(block)


def _list(title: str, texts: Iterable[str]) -> Iterator[str]:
    if items := "\n".join(f"- {text}" for text in texts):
        yield f"## {title}"
        yield items


def _examples(rule: Rule) -> Iterator[str]:
    if rule.examples:
        yield "## Examples"
        for example in rule.examples:
            # An HTML block: Markdown is not read on this line, so its escapes would show.
            name = html.escape(one_line(example.name).strip())
            yield f"<details><summary>{example.outcome}: {name}</summary>"
            yield _made_of(example)
            yield "</details>"


def _made_of(example: Example) -> str:
    if example.facts is None:
        return fence((example.log or "").splitlines())
    if not example.facts:
        return "No fact was observed."
    rows = [
        f"| {code(name)} | {cell_code(meaning.shown(value))} |"
        for name, value in example.facts.items()
    ]
    return "\n".join(("| fact | value |", "|---|---|", *rows))


def _link(url: str) -> str:
    return f"<{url}>" if _PLAIN_URL.fullmatch(url) else escaped(url)


def write(directory: Path, rules: Iterable[Rule]) -> list[Path]:
    """Write the pages that differ and remove those of rules that are gone; return both.

    Raises OutputError, and writes nothing, where a file of ours would replace one that is not.
    """
    wanted = pages(rules)
    for name in wanted:
        path = directory / name
        if path.exists() and not path.read_text(encoding="utf-8").startswith(MARK):
            raise OutputError(f"{path} was not made from a rule; choose another directory")
    directory.mkdir(parents=True, exist_ok=True)
    changed: list[Path] = []
    for path in sorted(directory.glob("*.md")):
        if path.name not in wanted and path.read_text(encoding="utf-8").startswith(MARK):
            path.unlink()
            changed.append(path)
    for name, text in wanted.items():
        path = directory / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")
            changed.append(path)
    return changed


def main(arguments: Sequence[str]) -> int:
    """Write the pages of the shipped rules, or of the rule files named after the directory."""
    if not arguments:
        sys.stderr.write("usage: python -m hcp_logscan.rules.pages DIRECTORY [RULES ...]\n")
        return 2
    directory, *paths = map(Path, arguments)
    try:
        changed = write(directory, load.load_paths(paths) if paths else load.load_rules())
    except HcpLogscanError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.writelines(f"{path}\n" for path in changed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
