"""YAML files -> rules. Whatever can be wrong with a rule is found here, before a log is read."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from hcp_logscan.analysis import facts as fact_tables
from hcp_logscan.model.bundled import bundled_dir
from hcp_logscan.model.errors import RuleError
from hcp_logscan.rules import expression, template, yamlfile
from hcp_logscan.rules.schema import EVIDENCE_TABLES, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_MAX_MISTAKES: Final = 20


def load_rules(extra: Sequence[Path] = ()) -> tuple[Rule, ...]:
    """The shipped rules and those of `extra` (files or directories), sorted by id.

    Raises one `RuleError` that lists what is wrong, file and line first.
    """
    return load_paths([bundled_dir(), *extra]) if extra else _shipped()


@lru_cache(maxsize=1)
def _shipped() -> tuple[Rule, ...]:
    """The shipped rules: read once in a process, however many runs it scans."""
    return load_paths([bundled_dir()])


def load_paths(paths: Sequence[Path]) -> tuple[Rule, ...]:
    """The rules of these files and directories alone, sorted by id. Raises like `load_rules`."""
    errors: list[str] = []
    found: dict[str, tuple[Rule, Path]] = {}
    for path in rule_files(paths, errors):
        try:
            rule = load_file(path)
        except RuleError as error:
            errors.append(str(error))
            continue
        if rule.id in found:
            errors.append(
                f"{path}: {rule.id} is also the id of {found[rule.id][1]}; choose another"
            )
        found.setdefault(rule.id, (rule, path))
    if errors:
        raise RuleError("\n".join(errors))
    return tuple(found[name][0] for name in sorted(found))


def rule_files(paths: Sequence[Path], errors: list[str]) -> Iterator[Path]:
    """The YAML files at these paths, each once, in order of name within a directory.

    What cannot be used is appended to `errors`.
    """
    seen: set[Path] = set()
    for path in paths:
        files = [path]
        if path.is_dir():
            files = sorted(one for one in path.iterdir() if one.suffix in {".yaml", ".yml"})
            if not files:
                errors.append(f"{path}: no rule in this directory; rules are *.yaml files")
        elif not path.exists():
            errors.append(f"{path}: no such file or directory")
            files = []
        for file in files:
            if (real := file.resolve()) not in seen:
                seen.add(real)
                yield file


def load_file(path: Path) -> Rule:
    """One rule. Raises a `RuleError` with one line per mistake."""
    file = yamlfile.read(path)
    if not isinstance(file.data, dict):
        raise file.error("a rule is a mapping that begins with `id:`")
    try:
        rule = Rule.model_validate(file.data)
    except ValidationError as error:
        mistakes = error.errors(include_url=False)[:_MAX_MISTAKES]
        lines = [_shape_error(file, one) for one in mistakes]
        raise RuleError("\n".join(dict.fromkeys(lines))) from error
    if errors := list(_meaning_errors(rule, file)):
        raise RuleError("\n".join(errors))
    return rule


def _shape_error(file: yamlfile.YamlFile, error: Any) -> str:
    location = tuple(error["loc"])
    field = ".".join(str(step) for step in location) or "rule"
    reason = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        reason = f"no such field; a rule has {', '.join(Rule.model_fields)}"
        if len(location) > 1:
            reason = "no such field here"
    return str(file.error(f"{field}: {reason}", location))


def _meaning_errors(rule: Rule, file: yamlfile.YamlFile) -> Iterator[str]:
    for location, check in (
        (("when",), lambda: expression.compile_when(rule)),
        (("message",), lambda: template.check(rule, rule.message)),
        (("zh", "message"), lambda: template.check(rule, rule.texts("zh").message)),
        (("ranks",), lambda: _check_column(rule, rule.ranks, lists=True)),
        (("iteration",), lambda: _check_column(rule, rule.iteration, lists=False)),
        (("evidence",), lambda: _check_evidence(rule)),
    ):
        try:
            check()
        except RuleError as error:
            yield str(file.error(f"{'.'.join(location)}: {error}", location))
    for index, example in enumerate(rule.examples):
        for name in example.facts or ():
            if name not in fact_tables.FACTS[rule.over]:
                yield str(
                    file.error(
                        f"`{name}` is no fact of `{rule.over}`", ("examples", index, "facts", name)
                    )
                )


def _check_column(rule: Rule, name: str | None, *, lists: bool) -> None:
    if name is None:
        return
    dtype = fact_tables.schema(rule.over).get(name)
    inner = getattr(dtype, "inner", None) if lists else None
    if dtype is None or not (dtype.is_integer() or (inner is not None and inner.is_integer())):
        kind = "a column of whole numbers" + (" or lists of them" if lists else "")
        raise RuleError(f"`{name}` is not {kind} of `{rule.over}`")


def _check_evidence(rule: Rule) -> None:
    for table in rule.evidence:
        if table not in EVIDENCE_TABLES:
            raise RuleError(f"no event table `{table}`; use one of {', '.join(EVIDENCE_TABLES)}")
    expression.compile_evidence(rule)
