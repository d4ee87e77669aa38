"""Everything `--check-rules` finds out about files of rules and formats: all of it in one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.model.errors import HcpLogscanError
from hcp_logscan.rules import examples, files, formats, lint, load
from hcp_logscan.rules.problem import Mistake, Problem, RuleFileError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hcp_logscan.rules.examples import ExampleResult
    from hcp_logscan.rules.formats import CheckedFormat
    from hcp_logscan.rules.schema import Rule


@dataclass(frozen=True, slots=True)
class Failure:
    """An example that is not as it says, and where it stands."""

    where: str
    result: ExampleResult


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file of a rule, or of a line format."""

    path: Path
    rule: Rule | None
    "None where it could not be loaded."

    problems: tuple[Problem, ...]
    results: tuple[ExampleResult, ...] = ()
    failures: tuple[Failure, ...] = ()
    "Those of the results that are not ok."

    format: CheckedFormat | None = None
    "The line format, where it is one and nothing is wrong with it."

    is_format: bool = False

    @property
    def ok(self) -> bool:
        """Nothing is wrong with it."""
        return not self.problems and not self.failures


def check_paths(paths: Sequence[Path]) -> tuple[FileReport, ...]:
    """Check these files and directories: form, meaning, completeness, then every example.

    Raises `RuleFileError` for paths at which there is neither a rule nor a line format.
    """
    unusable: list[Problem] = []
    found = list(files.yaml_files(paths, unusable, "rule"))
    if unusable:
        raise RuleFileError(unusable)
    shipped = {rule.id: rule for rule in load.load_rules()}
    taken: dict[str, Path] = {}
    names: dict[str, Path] = {}
    return tuple(
        _check_format(path, names) if files.is_format(path) else _check(path, taken, shipped)
        for path in found
    )


def _check_format(path: Path, taken: dict[str, Path]) -> FileReport:
    try:
        checked = formats.read_file(path)
    except RuleFileError as error:
        return FileReport(path, None, _sorted(error.problems), is_format=True)
    problems = []
    if (other := taken.setdefault(checked.form.format, path)) is not path:
        what = f"format: {checked.form.format} is also the name of {other}"
        problems.append(Problem(f"{path}", what, "choose another"))
    return FileReport(path, None, tuple(problems), format=checked, is_format=True)


def _check(path: Path, taken: dict[str, Path], shipped: Mapping[str, Rule]) -> FileReport:
    try:
        rule, file = load.read_file(path)
    except RuleFileError as error:
        return FileReport(path, None, _sorted(error.problems))
    problems = lint.problems(rule, file, style=lint.is_shipped(rule))
    other = taken.get(rule.id)
    # A changed copy of a shipped rule keeps its name; only a stranger takes its id.
    if other is None and rule.id in shipped and shipped[rule.id].name != rule.name:
        what = f"id: {rule.id} is the id of a shipped rule, {shipped[rule.id].name}"
        problems.append(file.problem(Mistake(what, "choose capitals of your own"), ("id",)))
    if other is not None:
        what = f"id: {rule.id} is also the id of {other}"
        problems.append(file.problem(Mistake(what, "choose another"), ("id",)))
    taken.setdefault(rule.id, path)
    try:
        results = examples.check(rule)
    except HcpLogscanError as error:  # the example's log, read as any other
        problems.append(file.problem(Mistake(str(error)), ("examples",)))
        return FileReport(path, rule, _sorted(problems))
    failures = tuple(
        Failure(f"{path}:{file.line(('examples', index))}", result)
        for index, result in enumerate(results)
        if not result.ok
    )
    return FileReport(path, rule, _sorted(problems), results, failures)


def _sorted(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda one: one.line))
