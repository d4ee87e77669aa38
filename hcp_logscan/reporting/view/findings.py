"""The findings as cards: their words, their evidence, and the charts that show them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting import words
from hcp_logscan.reporting.safe import cut
from hcp_logscan.reporting.tongue import _
from hcp_logscan.reporting.view.excerpts import MAX_LINES, Excerpt, counted, excerpts, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.model.finding import Finding
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.words import Tone

MAX_FINDINGS: Final = 40
"""Findings shown in full; the rest in one table."""

OPEN_LINES: Final = 3

MAX_TOP: Final = 3
"""Findings that the first screen names."""

_TOP_WORDS: Final = 220


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding, ready to show."""

    anchor: str
    rule: str
    name: str
    severity: str
    tone: Tone
    traits: tuple[str, ...]
    message: str
    why: tuple[str, ...]
    fix: tuple[str, ...]
    links: tuple[str, ...]
    other_references: tuple[str, ...]
    excerpts: tuple[Excerpt, ...]
    more_excerpts: tuple[Excerpt, ...]
    more_places: int
    hidden: int
    folded: bool
    "Shown closed: a note, or what another attempt's card has said already."

    chart: str
    "Key of the drawn chart that shows what it speaks of; empty where there is none."


@dataclass(frozen=True, slots=True)
class TopView:
    """One of the worst findings, as the first screen names it."""

    anchor: str
    rule: str
    severity: str
    tone: Tone
    message: str


def top_views(data: ReportData, lead: Finding | None) -> list[TopView]:
    """The worst findings but for the headline, each rule once; notes are none of them."""
    found = (finding for finding, _ in words.alike(data.findings[:MAX_FINDINGS]))
    worst = [one for one in found if one.severity != "note" and one is not lead]
    return [
        TopView(
            anchor(one),
            f"{one.rule} {one.name}",
            words.SEVERITY_WORDS[one.severity],
            words.SEVERITY_TONES[one.severity],
            cut(one.message, _TOP_WORDS),
        )
        for one in worst[:MAX_TOP]
    ]


def anchor(finding: Finding) -> str:
    """The id of its card on the page."""
    return f"{finding.rule}-{finding.attempt}"


def evidence_anchors(data: ReportData) -> dict[tuple[str, int], str]:
    """(file, line) -> the worst finding on the page that the line is evidence of."""
    found: dict[tuple[str, int], str] = {}
    for finding in data.findings[:MAX_FINDINGS]:
        for place in finding.evidence:
            found.setdefault((place.file, place.line), anchor(finding))
    return found


_CHARTS: Final = (
    (re.compile("HCP106"), ("step", "tflops")),
    (re.compile("HCP1"), ("tflops", "step")),
    (re.compile("HCP20[358]"), ("grad", "loss")),
    (re.compile("HCP2"), ("loss", "grad")),
)
"""Which charts show what a rule speaks of, the best one first."""


def chart_of(rule: str, drawn: Sequence[str]) -> str:
    """Key of the chart to look at for a finding of that rule; empty where none is drawn.

    >>> chart_of("HCP101", ["tflops", "loss"]), chart_of("HCP106", []), chart_of("HCP501", ["loss"])
    ('tflops', '', '')
    """
    wanted = next((keys for pattern, keys in _CHARTS if pattern.match(rule)), ())
    return next((key for key in wanted if key in drawn), "")


def on_charts(found: Sequence[FindingView]) -> dict[str, list[tuple[str, str]]]:
    """Key of a chart -> (anchor, words) of the findings that speak of it, each rule once."""
    links: dict[str, dict[str, tuple[str, str]]] = {}
    for finding in found:
        on_chart = links.setdefault(finding.chart, {})
        on_chart.setdefault(finding.rule, (finding.anchor, f"{finding.rule} {finding.name}"))
    return {key: list(rules.values()) for key, rules in links.items() if key}


def finding_views(data: ReportData, drawn: Sequence[str] = ()) -> list[FindingView]:
    """The findings to show in full, notes and repetitions folded."""
    first = [finding for finding, _ in words.alike(data.findings)]
    return [
        finding_view(
            data, f, folded=f.severity == "note" or not any(f is g for g in first), drawn=drawn
        )
        for f in data.findings[:MAX_FINDINGS]
    ]


def finding_view(
    data: ReportData, finding: Finding, *, folded: bool, drawn: Sequence[str] = ()
) -> FindingView:
    """A finding with its words and excerpts; long evidence is folded, then cut."""
    places = finding.evidence[:MAX_LINES]
    found = excerpts(places)
    shown = opened(found, OPEN_LINES)
    total = max(finding.evidence_total, len(finding.evidence))
    traits = [
        _("attempt {attempt}", attempt=finding.attempt) if len(data.attempts) > 1 else "",
        ""
        if finding.iteration is None
        else _("from iteration {iteration:,}", iteration=finding.iteration),
        words.ranks(finding.ranks),
        words.CONFIDENCE_WORDS[finding.confidence],
    ]
    links = tuple(ref for ref in finding.references if words.safe_link(ref))
    return FindingView(
        anchor=anchor(finding),
        rule=finding.rule,
        name=finding.name,
        severity=words.SEVERITY_WORDS[finding.severity],
        tone=words.SEVERITY_TONES[finding.severity],
        traits=tuple(trait for trait in traits if trait),
        message=finding.message,
        why=words.paragraphs(finding.why),
        fix=words.paragraphs(finding.fix),
        links=links,
        other_references=tuple(ref for ref in finding.references if ref not in links),
        excerpts=found[:shown],
        more_excerpts=found[shown:],
        more_places=counted(found[shown:]),
        hidden=total - len(places),
        folded=folded,
        chart=chart_of(finding.rule, drawn),
    )
