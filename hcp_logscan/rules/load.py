"""YAML files -> rules. Whatever can be wrong with a rule is found here, before a log is read."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import polars as pl
from pydantic import ValidationError

from hcp_logscan.analysis import facts as fact_tables
from hcp_logscan.model.bundled import bundled_dir
from hcp_logscan.model.errors import RuleError
from hcp_logscan.rules import expression, files, shape, template, yamlfile
from hcp_logscan.rules.problem import Mistake, Problem, RuleFileError, mistake, mistakes_of
from hcp_logscan.rules.schema import EVIDENCE_TABLES, Rule
from hcp_logscan.rules.sql import near_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from hcp_logscan.rules.yamlfile import YamlFile

MAX_PROBLEMS: Final = 50
"""Facts of examples that are complained about in one file."""


def load_rules(extra: Sequence[Path] = ()) -> tuple[Rule, ...]:
    """The shipped rules and those of `extra` (files or directories), sorted by id.

    Raises one `RuleError` that lists what is wrong, file and line first.
    """
    return load_paths([bundled_dir(), *extra]) if extra else _shipped()


@lru_cache(maxsize=1)
def _shipped() -> tuple[Rule, ...]:
    """The shipped rules: read once in a process, however many runs it scans.

    That they mean what they say is the matter of `rules.lint`: checking it takes as long as to scan
    a small run.
    """
    return _load([bundled_dir()], lambda path: _parsed(yamlfile.read(path)))


def load_paths(paths: Sequence[Path]) -> tuple[Rule, ...]:
    """The rules of these files and directories alone, sorted by id. Raises like `load_rules`."""
    return _load(paths, load_file)


def _load(paths: Sequence[Path], load_one: Callable[[Path], Rule]) -> tuple[Rule, ...]:
    problems: list[Problem] = []
    found = rule_files(paths, problems)
    twice = "{name} is also the id of {other}"
    return files.read_all(found, problems, load_one, lambda rule: rule.id, twice)


def rule_files(paths: Sequence[Path], problems: list[Problem]) -> Iterator[Path]:
    """The rule files at these paths; see `files.yaml_files`."""
    return files.yaml_files(paths, problems, "rule", files.is_rule)


def load_file(path: Path) -> Rule:
    """One rule. Raises a `RuleFileError` with every mistake in it."""
    return read_file(path)[0]


def read_file(path: Path) -> tuple[Rule, YamlFile]:
    """One rule, and its file to find places in. Raises like `load_file`."""
    file = yamlfile.read(path)
    rule = _parsed(file)
    if problems := list(_meaning_problems(rule, file)):
        raise RuleFileError(problems)
    return rule, file


def _parsed(file: YamlFile) -> Rule:
    """The rule in a file, of which each field is right by itself. Raises like `load_file`."""
    if files.is_format(file.path):
        what, move = "this is a line format, and no rule", "give it with --formats"
        raise RuleFileError([file.problem(Mistake(what, move))])
    if not isinstance(file.data, dict):
        what, move = "a rule is a mapping that begins with `id:`", "write `id: USR001` first"
        raise RuleFileError([file.problem(Mistake(what, move))])
    try:
        return Rule.model_validate(file.data)
    except ValidationError as error:
        wrong = shape.problems(error, file)
        raise RuleFileError([*wrong.values(), *_despite(file, list(wrong))]) from error


def _despite(file: YamlFile, wrong: Sequence[shape.Location]) -> Iterator[Problem]:
    """What is wrong with the rest of a rule of which some values are no rule's."""
    fields = {place[0] for place in wrong if place}
    if "over" in fields:  # nothing can be said about facts of a table that is not known
        return
    try:
        rule = Rule.model_validate(shape.without(file.data, wrong))
    except ValidationError:
        return
    # Without its parameters every expression would name something unknown.
    unsure = {"when", "message", "zh", "evidence"} if "params" in fields else set()
    yield from _meaning_problems(rule, file, leave_out={*fields, *unsure} - {"examples"})


def _meaning_problems(
    rule: Rule, file: YamlFile, leave_out: Collection[object] = ()
) -> Iterator[Problem]:
    checks: tuple[tuple[tuple[str, ...], Callable[[], object]], ...] = (
        (("when",), lambda: expression.compile_when(rule)),
        (("message",), lambda: template.check(rule, rule.message)),
        (("zh", "message"), lambda: template.check(rule, rule.texts("zh").message)),
        (("ranks",), lambda: _check_column(rule, rule.ranks, lists=True)),
        (("iteration",), lambda: _check_column(rule, rule.iteration, lists=False)),
        *((("evidence", one), partial(_check_evidence, rule, one)) for one in rule.evidence),
    )
    for location, check in checks:
        if location[0] in leave_out:
            continue
        try:
            check()
        except RuleError as error:
            name = ".".join(location)
            if name == "zh.message" and rule.zh is None:
                continue  # it is the English one then, which has been checked
            for one in mistakes_of(error):
                yield file.problem(Mistake(f"{name}: {one.what}", one.move, one.span), location)
    yield from islice(_example_problems(rule, file), MAX_PROBLEMS)


def _example_problems(rule: Rule, file: YamlFile) -> Iterator[Problem]:
    schema = fact_tables.schema(rule.over)
    for index, example in enumerate(rule.examples):
        for name, value in (example.facts or {}).items():
            location = ("examples", index, "facts", name)
            title = f"example `{example.name}`"
            if name not in schema:
                listed = f"`hcp-logscan --explain {rule.over}` lists what there is"
                move = f"{near_name(name, schema)} {listed}".strip()
                what = f"{title}: `{name}` is no fact of `{rule.over}`"
                yield file.problem(Mistake(what, move), location)
            elif not _fits(value, schema[name]):
                kind = expression.kind(schema[name])
                what = f"{title}: `{name}` is {kind}, so {_plain(value)!r} cannot stand there"
                move = "write a value of that kind, or leave it out: it was not observed then"
                yield file.problem(Mistake(what, move), location)


def _fits(value: object, dtype: pl.DataType) -> bool:
    if value is None:
        return True
    if isinstance(dtype, pl.List):
        inner = str if dtype.inner == pl.String else int
        return isinstance(value, tuple) and all(type(one) is inner for one in value)
    if dtype.is_float():
        return type(value) in {int, float}
    return type(value) is {pl.String(): str, pl.Boolean(): bool}.get(dtype, int)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _check_column(rule: Rule, name: str | None, *, lists: bool) -> None:
    if name is None:
        return
    schema = fact_tables.schema(rule.over)
    dtype = schema.get(name)
    inner = getattr(dtype, "inner", None) if lists else None
    if dtype is None or not (dtype.is_integer() or (inner is not None and inner.is_integer())):
        kind = "a column of whole numbers" + (" or lists of them" if lists else "")
        raise mistake(
            f"`{name}` is not {kind} of `{rule.over}`",
            f"{near_name(name, schema)} `hcp-logscan --explain {rule.over}` lists what there is",
        )


def _check_evidence(rule: Rule, table: str) -> None:
    if table not in EVIDENCE_TABLES:
        near = near_name(table, EVIDENCE_TABLES)
        raise mistake(
            f"no event table `{table}`", f"{near} There are {', '.join(EVIDENCE_TABLES)}".strip()
        )
    expression.compile_evidence(rule.model_copy(update={"evidence": {table: rule.evidence[table]}}))
