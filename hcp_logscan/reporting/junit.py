"""JUnit XML, as Jenkins, GitLab and GitHub's reporters read it: what fails the run is a failure.

The first suite is the run: its verdict (`--expect`) and its logs (`--strict`). Then comes a suite
per attempt with a test case per rule: a finding at or above `--fail-on` fails it, a milder one is
its output, a rule that could not be judged is skipped and says what is missing, one that a user
suppressed is skipped with the reason. So tests fail
exactly where the exit code is 1. The elements are those that all three consumers share
(jenkinsci/xunit-plugin, `jenkins-junit.xsd`); text holds only what XML 1.0 can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from hcp_logscan.reporting import words
from hcp_logscan.reporting.safe import cut, one_line, visible
from hcp_logscan.reporting.text import health_line
from hcp_logscan.reporting.wishes import Wishes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.model.finding import Finding, Judgement, Suppressed, Verdict
    from hcp_logscan.model.report import AttemptData, ReportData

_NAME: Final = 200
_LINE: Final = 500
_MESSAGE: Final = 1_000


def render_junit(data: ReportData, wishes: Wishes | None = None) -> str:
    """The report as JUnit XML text."""
    wishes = wishes or Wishes()
    suites = [_run(data, wishes)]
    suites += [_attempt(data, attempt, wishes) for attempt in data.attempts]
    root = Element("testsuites", name=_name(f"{data.tool_name}: {data.run.name}"))
    root.extend(suites)
    _count(root)
    for suite in suites:
        _count(suite)
    indent(root)
    text: str = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _name(text: str) -> str:
    return cut(one_line(text), _NAME)


def _count(element: Element) -> None:
    """Numbers of test cases below; nothing is timed, so that the same logs give the same bytes."""
    element.set("tests", str(sum(1 for _ in element.iter("testcase"))))
    element.set("failures", str(sum(1 for _ in element.iter("failure"))))
    element.set("errors", "0")
    if element.tag == "testsuite":  # Jenkins' xunit plugin (junit-10.xsd) has none on the root
        element.set("skipped", str(sum(1 for _ in element.iter("skipped"))))
    element.set("time", "0")


def _suite(name: str, properties: Mapping[str, object]) -> Element:
    suite = Element("testsuite", name=_name(name))
    listed = SubElement(suite, "properties")
    for key, value in properties.items():
        if value is not None:
            SubElement(listed, "property", name=key, value=_name(str(value)))
    return suite


def _run(data: ReportData, wishes: Wishes) -> Element:
    """The verdict and the state of the logs."""
    run, verdict = data.run, data.verdict
    traits = {
        "version": f"{data.tool_name} {data.tool_version}",
        "job": run.job,
        "world_size": run.world_size,
        "gpu": run.gpu,
        "precision": run.precision,
        "framework": run.framework,
    }
    suite = _suite(f"{run.name}: run", traits | _of(verdict))
    case = _case(suite, data, "run", "verdict")
    said = _verdict(verdict)
    if why := wishes.unmet(data):
        _failure(case, f"expected {' or '.join(wishes.expect)}, but {why}", "expect", said)
    else:
        SubElement(case, "system-out").text = said
    case = _case(suite, data, "run", "scan health")
    said = visible(health_line(data))
    if why := wishes.troubles(data):
        _failure(case, why, "strict", said)
    else:
        SubElement(case, "system-out").text = said
    return suite


def _of(verdict: Verdict) -> dict[str, object]:
    return {"verdict": verdict.status, "confidence": verdict.confidence}


def _verdict(verdict: Verdict) -> str:
    word, meaning, _ = words.STATUS_WORDS[verdict.status]
    lines = [
        f"HCP {word.lower()} ({verdict.confidence} confidence): {verdict.summary or meaning}",
        *(f"- {reason}" for reason in verdict.reasons),
        *(f"next: {step}" for step in verdict.next_steps),
    ]
    return "\n".join(map(visible, lines))


def _attempt(data: ReportData, attempt: AttemptData, wishes: Wishes) -> Element:
    """The rules of one attempt, by id."""
    properties = {"outcome": attempt.outcome, "iterations": attempt.iterations}
    title = f"attempt {attempt.attempt}"
    suite = _suite(f"{data.run.name}: {title}", properties | _of(attempt.verdict))
    if attempt.started is not None:
        suite.set("timestamp", one_line(attempt.started))
    names = {rule.id: rule.name for rule in data.rules}
    mine = {found.rule: found for found in data.findings if found.attempt == attempt.attempt}
    aside = {
        one.finding.rule: one for one in data.suppressed if one.finding.attempt == attempt.attempt
    }
    for judgement in data.judgements:
        if judgement.attempt == attempt.attempt:
            name = f"{judgement.rule} {names.get(judgement.rule, '')}".rstrip()
            case = _case(suite, data, title, name)
            if judgement.rule in aside:
                _set_aside(case, aside[judgement.rule])
            else:
                _judge(case, judgement, mine.get(judgement.rule), wishes)
    return suite


def _case(suite: Element, data: ReportData, group: str, name: str) -> Element:
    """A test case; a dot in its class would be a package to Jenkins."""
    owner = f"{data.tool_name}.{data.run.name.replace('.', '_')} {group}"
    return SubElement(suite, "testcase", name=_name(name), classname=_name(owner), time="0")


def _judge(case: Element, judgement: Judgement, found: Finding | None, wishes: Wishes) -> None:
    if judgement.outcome == "inconclusive":
        missing = ", ".join(judgement.missing) or "facts"
        message = cut(one_line(f"not observed: {missing}"), _MESSAGE)
        SubElement(case, "skipped", message=message)
    elif found is not None and wishes.stops(found):
        _failure(case, found.message, found.severity, _text(found))
    elif found is not None:
        SubElement(case, "system-out").text = f"{found.severity}: {_text(found)}"


def _set_aside(case: Element, one: Suppressed) -> None:
    said = f"suppressed by {one.source}: {one.reason}"
    SubElement(case, "skipped", message=cut(one_line(said), _MESSAGE))
    SubElement(case, "system-out").text = f"{one.finding.severity}: {_text(one.finding)}"


def _failure(case: Element, message: str, kind: str, text: str) -> None:
    failure = SubElement(case, "failure", message=cut(one_line(message), _MESSAGE), type=kind)
    failure.text = text


def _text(found: Finding) -> str:
    """Message, places and fix of a finding."""
    lines = [found.message, f"{found.confidence} confidence"]
    if found.ranks:
        lines.append(words.ranks(found.ranks))
    lines += _places(found)
    lines.append("fix: " + "\n".join(words.paragraphs(found.fix)))
    return "\n".join(map(visible, lines))


def _places(found: Finding) -> Sequence[str]:
    lines = [
        f"{place.file}:{place.line}: {cut(one_line(place.text), _LINE)}".rstrip(": ")
        for place in found.evidence
    ]
    more = found.evidence_total - len(found.evidence)
    return [*lines, f"and {words.plural(more, 'more line')}"] if more > 0 else lines
