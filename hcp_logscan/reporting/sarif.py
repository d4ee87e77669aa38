"""SARIF 2.1.0 (OASIS standard, errata 01): findings for code scanning, editors and dashboards.

A result is a finding, its locations are lines of the logs relative to the run directory, for which
`RUN_DIR` stands. Consumers that show one location get the first line of evidence; the others are
related locations, and a code flow has a thread per log. Its threads stand in the order of the
evidence, which is that of the failures where a rule is about those; only within a log is it an
order in time.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from hcp_logscan.model.markdown import prose_line
from hcp_logscan.reporting import words
from hcp_logscan.reporting.json import dumps, plain_value
from hcp_logscan.reporting.safe import encodable
from hcp_logscan.reporting.wishes import Wishes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hcp_logscan.model.finding import Finding, Location, Severity, Suppressed
    from hcp_logscan.model.report import ReportData, RuleText

SCHEMA_URI: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
PROJECT: Final = "https://github.com/hcp-logscan/hcp-logscan"
RUN_DIR: Final = "RUN_DIR"
"""`uriBaseId` of every file; the producer's directory is of no use elsewhere, so it has no URI."""

FINGERPRINT: Final = "runJobRuleAttempt/v1"
"""One rule judges an attempt once, so this tells findings of a run apart, however its logs grow."""

_NO_BYTE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Lone surrogates that stand for no byte of a file name."""

_PROBLEM: Final[Mapping[Severity, str]] = {
    "note": "recommendation",
    "warning": "warning",
    "error": "error",
}
"""GitHub's words, in `problem.severity`."""


def render_sarif(data: ReportData, wishes: Wishes | None = None) -> str:
    """The report as SARIF text."""
    return dumps(plain_value(_log(data, wishes or Wishes())))


def _log(data: ReportData, wishes: Wishes) -> dict[str, Any]:
    index = {rule.id: number for number, rule in enumerate(data.rules)}
    failed = wishes.failed(data)
    verdict = data.verdict
    run = {
        "tool": {
            "driver": {
                "name": data.tool_name,
                "version": data.tool_version,
                "informationUri": PROJECT,
                "rules": [_rule(rule) for rule in data.rules],
            }
        },
        "automationDetails": {"id": f"{data.tool_name}/{quote(encodable(_identity(data)))}/"},
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": int(failed),
                "exitCodeDescription": "findings, or a gate that is not met"
                if failed
                else "nothing at or above the gate",
                "toolExecutionNotifications": list(_notifications(data)),
            }
        ],
        "language": "en",
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            RUN_DIR: {"description": {"text": "The run directory, or archive, that was scanned."}}
        },
        "results": [
            *(_result(data, found, index) for found in data.findings),
            *(_accepted(data, one, index) for one in data.suppressed),
        ],
        "properties": {
            "run": data.run.name,
            "job": data.run.job,
            "verdict": verdict.status,
            "confidence": verdict.confidence,
            "summary": verdict.summary,
            "attempts": [
                {
                    "attempt": attempt.attempt,
                    "outcome": attempt.outcome,
                    "verdict": attempt.verdict.status,
                    "confidence": attempt.verdict.confidence,
                }
                for attempt in data.attempts
            ],
            "inconclusive": sorted(
                {each.rule for each in data.judgements if each.outcome == "inconclusive"}
            ),
            "redaction": data.redaction.level,
        },
    }
    return {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}


def _identity(data: ReportData) -> str:
    return f"{data.run.name}/{data.run.job}" if data.run.job else data.run.name


def _rule(rule: RuleText) -> dict[str, Any]:
    uri = rule.page or next(iter(rule.references), None)
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": f"{rule.summary[:1].upper()}{rule.summary[1:]}."},
        "fullDescription": {"text": rule.why},
        "help": {"text": _help(rule, markdown=False), "markdown": _help(rule, markdown=True)},
        **({"helpUri": uri} if uri else {}),
        "defaultConfiguration": {"level": rule.severity},
        "properties": {
            "precision": rule.confidence,
            "problem.severity": _PROBLEM[rule.severity],
        },
    }


def _help(rule: RuleText, *, markdown: bool) -> str:
    def shown(text: str) -> str:
        return prose_line(text) if markdown else text

    blocks: list[str] = []
    for title, paragraphs in (
        ("Why", words.paragraphs(rule.why)),
        ("Fix", words.paragraphs(rule.fix)),
    ):
        blocks += [f"## {title}" if markdown else f"{title}:", *map(shown, paragraphs)]
    for title, points in (
        ("When it is wrong", tuple(map(shown, rule.false_positives))),
        ("References", tuple(f"<{url}>" if markdown else url for url in rule.references)),
    ):
        if points:
            blocks.append(f"## {title}" if markdown else f"{title}:")
            blocks.append("\n".join(f"- {point}" for point in points))
    return "\n\n".join(blocks)


def _notifications(data: ReportData) -> Iterator[dict[str, Any]]:
    """What was not read or not understood."""
    for unreadable in data.health.unreadable:
        yield {
            "level": "warning",
            "message": _message(f"{unreadable.file} could not be read: {unreadable.why}"),
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(unreadable.file)}}],
        }
    for entry in data.health.truncated:
        yield {"level": "warning", "message": _message(f"cut off: {entry}")}
    for drift in data.health.drift:
        said = f"{drift.count} lines have a format that {drift.parser} does not know: "
        yield {"level": "note", "message": _message(said + drift.sample)}


def _result(data: ReportData, found: Finding, index: Mapping[str, int]) -> dict[str, Any]:
    first, *others = found.evidence or (None,)
    result: dict[str, Any] = {
        "ruleId": found.rule,
        **({"ruleIndex": index[found.rule]} if found.rule in index else {}),
        "kind": "fail",
        "level": found.severity,
        "message": _message(found.message),
        "locations": [_location(first, found)],
        "partialFingerprints": {FINGERPRINT: _fingerprint(data, found)},
    }
    if others:
        result["relatedLocations"] = [
            {"id": number, **_location(place, found)}
            for number, place in enumerate(others, start=1)
            if place is not None
        ]
        result["codeFlows"] = [_flow(found)]
    result["properties"] = {
        "confidence": found.confidence,
        "attempt": found.attempt,
        "iteration": found.iteration,
        "ranks": found.ranks,
        "evidenceTotal": max(found.evidence_total, len(found.evidence)),
        "fix": found.fix,
    }
    return result


def _accepted(data: ReportData, one: Suppressed, index: Mapping[str, int]) -> dict[str, Any]:
    """A result that a file outside the logs' own lines suppresses (3.35)."""
    why = {
        "kind": "external",
        "status": "accepted",
        "justification": one.reason,
        "properties": {"source": one.source},
    }
    return {**_result(data, one.finding, index), "suppressions": [why]}


def _fingerprint(data: ReportData, found: Finding) -> str:
    """Of what is left after redaction, so that it tells nothing that is hidden."""
    known = (data.run.name, data.run.job or "", found.rule, str(found.attempt))
    return hashlib.sha256(encodable("\0".join(known)).encode()).hexdigest()[:32]


def _message(text: str) -> dict[str, str]:
    """Plain text, in which no brace begins a placeholder and no bracket a link (3.11.5, 3.11.6)."""
    shown = text.replace("{", "{{").replace("}", "}}").replace("](", "] (")
    return {"text": shown or "(no message)"}


def _artifact(file: str) -> dict[str, str]:
    name = _NO_BYTE.sub("\ufffd", file).encode("utf-8", "surrogateescape")
    return {"uri": quote(name, safe="/!") or ".", "uriBaseId": RUN_DIR}


def _location(place: Location | None, found: Finding) -> dict[str, Any]:
    """A line; the run directory as a whole where a finding is about no line."""
    if place is None:
        physical: dict[str, Any] = {"artifactLocation": _artifact("")}
    else:
        line = max(place.line, 1)
        region: dict[str, Any] = {"startLine": line}
        if place.text:
            region["snippet"] = {"text": place.text}
        physical = {"artifactLocation": _artifact(place.file), "region": region}
        numbers = [number for number, _ in place.context]
        if len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1)):
            physical["contextRegion"] = {
                "startLine": numbers[0],
                "endLine": numbers[-1],
                "snippet": {"text": "\n".join(text for _, text in place.context)},
            }
    ranks = found.ranks if place is None else () if place.rank is None else (place.rank,)
    logical = [_logical(rank, found.attempt) for rank in ranks]
    return {"physicalLocation": physical, **({"logicalLocations": logical} if logical else {})}


def _logical(rank: int, attempt: int) -> dict[str, str]:
    return {
        "name": f"rank {rank}",
        "fullyQualifiedName": f"attempt {attempt}/rank {rank}",
        "kind": "process",
    }


def _flow(found: Finding) -> dict[str, Any]:
    """The evidence as threads, one per log."""
    threads: dict[tuple[str, int | None], list[Location]] = {}
    for place in found.evidence:
        threads.setdefault((place.file, place.rank), []).append(place)
    return {
        "threadFlows": [
            {
                "id": file if rank is None else f"rank {rank} in {file}",
                "locations": list(_steps(places, found)),
            }
            for (file, rank), places in threads.items()
        ]
    }


def _steps(places: Iterable[Location], found: Finding) -> Iterator[dict[str, Any]]:
    for place in sorted(places, key=lambda place: place.line):
        first = place is found.evidence[0]
        yield {
            "location": _location(place, found),
            "importance": "essential" if first else "important",
        }
