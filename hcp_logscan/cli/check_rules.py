"""`--check-rules`: what is wrong with rules and line formats, for their author at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hcp_logscan.cli import paper
from hcp_logscan.model.safe import cut, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hcp_logscan.model.finding import Outcome
    from hcp_logscan.rules.check import Failure, FileReport
    from hcp_logscan.rules.examples import ExampleResult, Operand
    from hcp_logscan.rules.problem import Problem
    from hcp_logscan.rules.schema import Rule

MAX_PROBLEMS: Final = 40
"""Problems of one file that are shown."""

MAX_SAMPLE: Final = 50
"""Characters of a sample that are shown."""

_IN: Final = "     "
_TRUTH: Final = {True: "TRUE", False: "FALSE", None: "NULL"}
_MEANS: Final = {True: "fires", False: "is clean", None: "is inconclusive"}


def check(path: Path) -> int:
    """Check files: form, meaning, then every example or sample. Exit code 0 if all is well, else 2.

    Raises RuleFileError where there is no file of a rule or format.
    """
    from hcp_logscan.rules.check import check_paths

    reports = check_paths([path])
    columns = paper.width()
    for report in reports:
        paper.print_lines(_file(report, columns))
    paper.print_lines([_summary(reports)])
    return 0 if all(report.ok for report in reports) else 2


def _summary(reports: Sequence[FileReport]) -> str:
    rules = sum(report.rule is not None for report in reports)
    results = sum(len(report.results) for report in reports)
    problems = sum(len(report.problems) for report in reports)
    failing = sum(len(report.failures) for report in reports)
    counted, failed = [_count(len(reports), "file")], [_count(problems, "problem")]
    formats = [report for report in reports if report.is_format]
    if len(formats) < len(reports) or not reports:
        counted += [_count(rules, "rule"), _count(results, "example")]
        failed += [f"{_count(failing, 'example')} that {'fails' if failing == 1 else 'fail'}"]
    if formats:
        good = [one.format for one in formats if one.format is not None]
        samples = sum(len(one.samples) + len(one.refused) for one in good)
        counted += [_count(len(good), "format"), _count(samples, "sample")]
    return f"{', '.join(counted)}: {', '.join(failed)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _file(report: FileReport, columns: int) -> Iterator[paper.Line]:
    for problem in report.problems[:MAX_PROBLEMS]:
        yield from _problem(problem, columns)
    if (more := len(report.problems) - MAX_PROBLEMS) > 0:
        yield one_line(f"FAIL {report.path}: {_count(more, 'more problem')}")
    if report.format is not None:
        name, lead = report.format.form.format, "ok   "
        for line in report.format.samples:
            yield from paper.wrapped(f"{name} reads: {cut(line, MAX_SAMPLE)}", columns, lead)
        for line in report.format.refused:
            yield from paper.wrapped(f"{name} refuses: {cut(line, MAX_SAMPLE)}", columns, lead)
    failures = iter(report.failures)
    for result in report.results:
        if result.ok:
            yield from paper.wrapped(_line(result), columns, "ok   ")
        else:
            yield from _failure(next(failures), report.rule, columns)


def _line(result: ExampleResult) -> str:
    return f"{result.rule} {result.word}: {result.example}"


def _problem(problem: Problem, columns: int) -> Iterator[paper.Line]:
    # One line that editors and grep understand, however long the path is.
    yield one_line(f"FAIL {problem.where}:")
    yield from paper.wrapped(problem.what, columns, _IN)
    for line in problem.excerpt:
        yield paper.literal(line.replace("\t", " "), columns, _IN + "    ")
    yield from _next(problem.move, columns)


def _next(move: str, columns: int) -> Iterator[paper.Line]:
    if move:
        yield from paper.wrapped(move, columns, f"{_IN}next: ")


def _failure(failure: Failure, rule: Rule | None, columns: int) -> Iterator[paper.Line]:
    from hcp_logscan.analysis.facts import FACTS

    result = failure.result
    yield from paper.wrapped(_line(result), columns, "FAIL ")
    yield one_line(f"{_IN}{failure.where}:")
    yield from paper.wrapped(f"expected {result.expected}, got {result.got}", columns, _IN)
    if result.operands:
        many = f"; of {result.rows} rows, the nearest to firing" if result.rows > 1 else ""
        whole = result.operands[0].value
        says = f"`when` is {_TRUTH[whole]}, so it {_MEANS[whole]}{many}:"
        yield from paper.wrapped(says, columns, _IN)
        for operand in result.operands:
            yield from _operand(operand, columns)
    else:
        yield from paper.wrapped("no row was judged: its log filled no table", columns, _IN)
    yield from _next(_move(result), columns)
    for name in result.missing:
        fact = FACTS[rule.over].get(name) if rule else None
        if fact is not None and fact.observe:
            yield from paper.wrapped(f"{name}: {fact.observe}", columns, f"{_IN}      ")


def _operand(operand: Operand, columns: int) -> Iterator[paper.Line]:
    from hcp_logscan.rules.meaning import shown

    lead = f"{_IN}  {'  ' * operand.depth}{_TRUTH[operand.value]:<6}"
    joined = {"AND": "all of", "OR": "any of", None: operand.source}[operand.join]
    values = ", ".join(
        f"{name} was not observed" if value is None else f"{name} = {shown(value)}"
        for name, value in operand.values
    )
    yield from paper.wrapped(f"{joined}    [{values}]" if values else joined, columns, lead)


def _move(result: ExampleResult) -> str:
    """What its author does about an example that is not as it says."""
    expected: Outcome = result.expected
    if not result.operands:
        return (
            "give it lines that the tool reads: run hcp-logscan on such a file to see what it does"
        )
    if result.got == "inconclusive":
        return f"give it {', '.join(result.missing)}, or a log that shows that:"
    if expected == "fires":
        return "correct what is FALSE above: the condition in `when`, or the example"
    if expected == "inconclusive":
        return "take the facts out of the example that decide it, or correct its outcome"
    return "add to `when` what is FALSE for this example, or correct the example"
