r"""The JSON report: exactly the members of the published schema, in its order, stable bytes.

Numbers carry six significant digits; NaN and infinities become null. Lone surrogates are spelt
out, and control characters are written as `\u` escapes, so that the text is valid UTF-8 and can
be printed anywhere. Members of `config` and `facts` are sorted by name.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.model.report import SCHEMA
from hcp_logscan.reporting.safe import encodable
from hcp_logscan.reporting.topology import groups

if TYPE_CHECKING:
    from hcp_logscan.model.comparison import Comparison
    from hcp_logscan.model.finding import Finding, Judgement, Location, Verdict
    from hcp_logscan.model.report import AttemptData, Health, ReportData

_DIGITS: Final = 6
MAX_CLOCKS: Final = 256
"""Nodes whose clocks are listed."""

_INVISIBLE: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def render_json(data: ReportData) -> str:
    """The report as JSON text with two spaces of indent and one line end at its end."""
    return dumps(document(data))


def dumps(plain: Mapping[str, Any]) -> str:
    """Plain JSON values as text that can be printed anywhere."""
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=2)
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def document(data: ReportData) -> dict[str, Any]:
    """The report as plain JSON values."""
    plain = {
        "schema": SCHEMA,
        "tool": {"name": data.tool_name, "version": data.tool_version},
        "run": asdict(data.run),
        "verdict": _verdict(data.verdict),
        "attempts": [_attempt(attempt) for attempt in data.attempts],
        "findings": [_finding(finding) for finding in data.findings],
        "suppressed": [
            {**_finding(one.finding), "reason": one.reason, "source": one.source}
            for one in data.suppressed
        ],
        "judgements": [_judgement(judgement) for judgement in data.judgements],
        "series": asdict(data.series),
        "health": _health(data.health),
        "redaction": asdict(data.redaction),
        "jobs": [asdict(job) for job in data.jobs],
        "stories": [asdict(story) for story in data.stories],
        "timeline": [asdict(entry) for entry in data.timeline],
        "clocks": [asdict(offset) for offset in data.clocks[:MAX_CLOCKS]],
        "topology": _topology(data),
        "comparison": None if data.comparison is None else _comparison(data.comparison),
    }
    return {key: plain_value(value) for key, value in plain.items()}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "status": verdict.status,
        "confidence": verdict.confidence,
        "summary": verdict.summary,
        "reasons": verdict.reasons,
        "next_steps": verdict.next_steps,
        "ranks_confirmed": verdict.ranks_confirmed,
        "ranks_seen": verdict.ranks_seen,
        "evidence": [
            {
                "channel": piece.channel,
                "says": piece.says,
                "grade": piece.grade,
                **_location(piece.location),
                "explanation": piece.explanation,
            }
            for piece in verdict.evidence
        ],
        "not_seen": verdict.not_seen,
    }


def _location(place: Location) -> dict[str, Any]:
    return {"rank": place.rank, "file": place.file, "line": place.line, "text": place.text}


def _attempt(attempt: AttemptData) -> dict[str, Any]:
    return {
        "attempt": attempt.attempt,
        "started": attempt.started,
        "ended": attempt.ended,
        "first_iteration": attempt.first_iteration,
        "last_iteration": attempt.last_iteration,
        "outcome": attempt.outcome,
        "verdict": _verdict(attempt.verdict),
        "config": dict(sorted(attempt.config.items())),
        "facts": dict(sorted(attempt.facts.items())),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "attempt": finding.attempt,
        "iteration": finding.iteration,
        "ranks": finding.ranks,
        "message": finding.message,
        "why": finding.why,
        "fix": finding.fix,
        "references": finding.references,
        "evidence": [_location(place) for place in finding.evidence],
        "evidence_total": max(finding.evidence_total, len(finding.evidence)),
    }


def _judgement(judgement: Judgement) -> dict[str, Any]:
    return {
        "rule": judgement.rule,
        "attempt": judgement.attempt,
        "outcome": judgement.outcome,
        "missing": judgement.missing,
    }


def _health(health: Health) -> dict[str, Any]:
    return asdict(health)


def _topology(data: ReportData) -> dict[str, Any] | None:
    found = groups(data.topology)
    if found is None:
        return None
    return {
        "cp_size": found.cp_size,
        "sizes": found.sizes,
        "ranks_seen": found.ranks_seen,
        "wrong": [asdict(difference) for difference in found.wrong],
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "baseline": found.name,
        "job": found.job,
        "status": found.status,
        "aligned_by": found.aligned_by,
        "iterations": found.iterations,
        "incomparable": found.incomparable,
        "windows": [asdict(window) for window in found.windows],
        "differences": [
            {"group": d.group, "key": d.key, "value": d.value[0], "baseline_value": d.value[1]}
            for d in found.differences
        ],
        "differences_total": found.differences_total,
        "memory": None if found.memory is None else asdict(found.memory),
        "out_of_memory": found.out_of_memory,
    }


def plain_value(value: Any) -> Any:
    """A JSON value: mappings and sequences of any kind, floats rounded, all else as text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, Mapping):
        return {encodable(str(key)): plain_value(item) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        return [plain_value(item) for item in sorted(value, key=str)]
    if isinstance(value, Sequence):
        return [plain_value(item) for item in value]
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if hasattr(value, "to_list"):  # a polars Series: the value of a list fact
        return [plain_value(item) for item in value.to_list()]
    return encodable(str(value))
