"""Every shipped pattern ends soon on text that is made against it.

A backtracking pattern may take quadratic or exponential time. For each pattern that Python's `re`
runs, texts are made from its own structure: what comes before one of its repetitions, then that
repetition as often as a line is long, then something that fits nothing. They are given to the
functions that lead to the patterns, as lines of logs and names of files are. The patterns of line
parsers run in Rust, and needles in hyperscan: in linear time by construction.
"""

from __future__ import annotations

import ast
import importlib
import io
import itertools
import pkgutil
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import hcp_logscan
from hcp_logscan.engine.scan import MAX_TEXT, Collector
from hcp_logscan.model.line_format import LineFormat
from hcp_logscan.model.markdown import escaped, prose_line
from hcp_logscan.parsers import custom
from hcp_logscan.parsers.base import BlockParser, LineParser, conform
from hcp_logscan.parsers.registry import needles, parsers
from hcp_logscan.reporting import words
from hcp_logscan.reporting.redact import redact_text
from hcp_logscan.sources import dump_names, kinds, layouts, leads, prefixes
from hcp_logscan.sources.scanner import scan

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from re import _constants as sre  # type: ignore[attr-defined]
    from re import _parser as sre_parser  # type: ignore[attr-defined]

PACKAGE = Path(hcp_logscan.__file__).parent
MAX_PATH = 4_096

EACH = 10
"""Redaction is asked about each so many-th text: all of them take minutes."""

SECONDS = 1.0
"""CPU time for one text of MAX_TEXT characters, which is all that parsers see of a line. What is linear takes
a hundredth of it; what goes back and forth over the whole line takes seconds or weeks."""


# All patterns -------------------------------------------------------------------------------------


def modules() -> list[Any]:
    found = pkgutil.walk_packages([str(PACKAGE)], "hcp_logscan.")
    names = sorted(info.name for info in found if not info.name.endswith("__main__"))
    return [importlib.import_module(name) for name in names]


def compiled(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """Compiled patterns in a value, within containers and dataclasses."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth > 5 or isinstance(value, (str, bytes, pl.DataFrame)):
        return
    elif isinstance(value, Mapping):
        for one in itertools.chain(value.keys(), value.values()):
            yield from compiled(one, depth + 1)
    elif isinstance(value, (tuple, list, set, frozenset)):
        for one in value:
            yield from compiled(one, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from compiled(getattr(value, field.name, None), depth + 1)


def written(path: Path) -> Iterator[re.Pattern[Any]]:
    """Patterns that stand as constants in calls of `re` inside of functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        function, first = node.func, node.args[0]
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id == "re"
            and isinstance(first, ast.Constant)
            and isinstance(first.value, (str, bytes))
        ):
            yield re.compile(first.value)


def patterns_of(package: str) -> list[re.Pattern[Any]]:
    """All patterns of the modules of one package, each once."""
    mine = [module for module in modules() if module.__name__.startswith(f"hcp_logscan.{package}")]
    found = [one for module in mine for value in vars(module).values() for one in compiled(value)]
    for module in mine:
        found += written(Path(module.__file__))
    return list({(one.pattern, one.flags): one for one in found}.values())


# Texts made against a pattern ---------------------------------------------------------------------

KINDS = {
    sre.CATEGORY_DIGIT: "0", sre.CATEGORY_SPACE: " ", sre.CATEGORY_WORD: "a", sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_SPACE: "a", sre.CATEGORY_NOT_WORD: " ",
}  # fmt: skip
LETTERS = "a0 -_./:=A,\"'[({<\\x\t%@"
REPEATS = {sre.MAX_REPEAT, sre.MIN_REPEAT, getattr(sre, "POSSESSIVE_REPEAT", None)}
MANY_TIMES = 8
"""A repetition that may go on at least so often is pumped."""


def members(items: Any) -> str:
    """Characters that a class takes: one of each kind that it names, so that they are pumped in turn."""
    negated = items and items[0][0] is sre.NEGATE
    named = ""
    for kind, value in items:
        if kind is sre.LITERAL:
            named += chr(value)
        elif kind is sre.RANGE:
            named += chr(value[0])
        elif kind is sre.CATEGORY:
            named += KINDS[value]
    if not negated:
        return named[:6] or "a"
    return "".join(letter for letter in LETTERS if letter not in named)[:6] or "~"


def shortest(tree: Any) -> str:
    """A text that the tree takes, or nearly."""
    made = ""
    for kind, value in tree:
        if kind is sre.LITERAL:
            made += chr(value)
        elif kind is sre.NOT_LITERAL:
            made += "a" if value != ord("a") else "b"
        elif kind is sre.ANY:
            made += "a"
        elif kind is sre.IN:
            made += members(value)[0]
        elif kind is sre.BRANCH:
            made += shortest(value[1][0])
        elif kind is sre.SUBPATTERN:
            made += shortest(value[-1])
        elif kind is getattr(sre, "ATOMIC_GROUP", None):
            made += shortest(value)
        elif kind in REPEATS:
            made += shortest(value[2]) * min(value[0], 40)
    return made


def pumps(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """(what comes before, what is repeated) for each repetition of a tree."""
    for kind, value in tree:
        inner: list[Any] = []
        if kind in REPEATS:
            inner = [value[2]]
            if value[1] >= MANY_TIMES:
                yield before, shortest(value[2])
                for part in value[2]:
                    if part[0] is sre.IN:
                        yield from ((before, one) for one in members(part[1]))
                        yield before, members(part[1])
        elif kind is sre.BRANCH:
            inner = list(value[1])
        elif kind is sre.SUBPATTERN:
            inner = [value[-1]]
        elif kind in {sre.ASSERT, sre.ASSERT_NOT}:
            inner = [value[1]]
        for one in inner:
            yield from pumps(one, before)
        before += shortest([(kind, value)])


def attacks(pattern: re.Pattern[Any], size: int) -> Iterator[str | bytes]:
    """Texts of `size` characters against a pattern."""
    text = pattern.pattern
    found = sre_parser.parse(text, pattern.flags & ~re.DEBUG)
    made: dict[str, None] = {}
    for before, pump in itertools.islice(dict.fromkeys(pumps(found)), 24):
        if pump:
            long = pump * (size // len(pump))
            for lead in dict.fromkeys((before, "")):
                made[f"{lead}{long}\x00"] = None
            made[f"{before}{pump}" * (size // len(before + pump))] = None
    for one in made:
        yield one.encode("latin-1", "replace") if isinstance(text, bytes) else one


def texts_against(package: str, size: int) -> list[str]:
    """Texts against all patterns of a package, each once; bytes as the text that they are."""
    made = (text for pattern in patterns_of(package) for text in attacks(pattern, size))
    return list(dict.fromkeys(t if isinstance(t, str) else t.decode("latin-1") for t in made))


def _taken(run: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    run(text)
    return time.process_time() - began


def slow(
    run: Callable[[str], object], texts: Iterable[str], seconds: float = SECONDS
) -> dict[str, float]:
    """The texts, shortened, on which a function takes too long."""
    found = {}
    for text in texts:
        took = _taken(run, text)
        if took > seconds:  # not by the garbage collector?
            took = min(took, _taken(run, text))
        if took > seconds:
            found[f"{text[:60]!r} ... {text[-20:]!r}"] = round(took, 2)
    return found


def test_the_texts_expose_patterns_that_go_back_and_forth() -> None:
    for bad in (r"(?:a+)+$", r"(?:a|a)*b", r"^(\w+\s?)*$", r"x(?:\s*)*y"):
        pattern = re.compile(bad)
        sizes = [10, 14, 18, 20, 22, 24, 26]
        took = []
        for size in sizes:
            began = time.process_time()
            for text in attacks(pattern, size):
                pattern.match(text)
            took.append(time.process_time() - began)
            if took[-1] > 20 * took[0]:
                break
        assert took[-1] > 20 * took[0], bad


def test_patterns_are_found_in_every_layer_that_reads_text() -> None:
    assert {
        package: len(patterns_of(package)) > least
        for package, least in {
            "sources": 20,
            "parsers": 30,
            "reporting": 40,
            "rules": 5,
            "model": 5,
        }.items()
    } == dict.fromkeys(("sources", "parsers", "reporting", "rules", "model"), True)


@pytest.mark.parametrize("level", ["secrets", "all"])
def test_redaction_ends_soon(level: Any) -> None:
    texts = texts_against("reporting", MAX_TEXT)[level == "all" :: EACH]
    assert len(texts) > 25
    assert slow(lambda text: redact_text(text, level), texts) == {}


def test_what_is_read_of_lines_heads_and_names_ends_soon() -> None:
    texts = texts_against("sources", MAX_TEXT)
    assert len(texts) > 100

    def line(text: str) -> None:
        raw = text.encode("utf-8", "surrogateescape")
        prefixes.split(prefixes.clean(raw))
        for lead in leads.detect(raw):
            leads.rewrite((lead,), raw)
        kinds.by_content(raw[: kinds.SNIFF_BYTES])
        kinds.dump_content(raw)

    def name(text: str) -> None:
        path = text[:MAX_PATH]
        layouts.hints(path, None, [])
        kinds.by_name(path)
        layouts.rotated(path)
        dump_names.rank_of_name(path)

    assert slow(line, texts) == {}
    assert slow(name, texts) == {}


def test_prose_and_markdown_end_soon() -> None:
    texts = [*texts_against("model", MAX_TEXT), *texts_against("reporting.words", MAX_TEXT)]
    for run in (escaped, prose_line, words.paragraphs, words.first_advice):
        assert slow(run, texts) == {}


def test_every_parser_ends_soon() -> None:
    """Each line against a pattern stands behind the head of every block, and alone."""
    texts = [text.replace("\n", " ") for text in texts_against("parsers", MAX_TEXT)]
    assert len(texts) > 100
    heads = [parser.sample for parser in parsers() if isinstance(parser, BlockParser)]
    sample = [text for number, text in enumerate(texts) if number % 3 == 0]

    def scanned(head: str) -> None:
        collector = Collector()
        log = "\n".join([head, *sample, head.splitlines()[0], *sample[:5], ""]).encode()
        scan(io.BytesIO(log), needles(), collector, 0, None)
        collector.close()
        collector.frames()

    assert slow(scanned, heads, seconds=SECONDS * 10) == {}


def test_line_parsers_take_a_long_line_in_a_moment() -> None:
    """Their patterns run in Rust, in linear time."""
    for parser in parsers():
        if not isinstance(parser, LineParser):
            continue
        for text in (
            parser.sample * (MAX_TEXT // len(parser.sample)),
            parser.needles[0] + "9" * MAX_TEXT,
        ):
            frame = conform("drift", pl.DataFrame({"text": [text[:MAX_TEXT]], "line": [1]}))
            assert (
                slow(
                    lambda _, one=parser, lines=frame: one.parse(
                        lines.drop("parser", "count", "last")
                    ),
                    [text],
                )
                == {}
            )


def test_a_pattern_of_a_user_that_takes_hours_is_stopped() -> None:
    """`regex` runs it under a time limit, and tells that it was switched off."""
    form = LineFormat("acme", "iterations", "acme", r"acme (?P<iteration>[0-9]+)(?=(?:b*)*c)")
    lines = [f"acme {number} {'b' * 5_000}" for number in range(1, 4)]
    frame = conform("drift", pl.DataFrame({"text": lines, "line": [1, 2, 3]}))
    began = time.process_time()
    rows, drift = custom.CustomParser(form).parse(frame.drop("parser", "count", "last"))
    assert time.process_time() - began < 5
    assert rows.height == 0
    assert drift.height > 0
