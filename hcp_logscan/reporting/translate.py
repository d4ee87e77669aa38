"""A report whose texts are in another language, made before a renderer sees it.

Texts are looked up in `ReportData.said` and put together again by the translated templates; what
was not said there is a constant of the catalogue, or log text, which stays. Places, excerpts and
identifiers are never looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.model.said import N_
from hcp_logscan.reporting.tongue import catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan.model.finding import Finding, Verdict
    from hcp_logscan.model.report import AttemptData, ReportData
    from hcp_logscan.model.said import Said
    from hcp_logscan.reporting.tongue import Lang

KINDS: Final = (
    N_("source code"),
    N_("document"),
    N_("dataset"),
    N_("checkpoint"),
    N_("pickle"),
    N_("image"),
    N_("trace or profile"),
    N_("archive"),
    N_("program"),
    N_("tokenizer"),
    N_("UTF-16 text"),
    N_("own report"),
    N_("binary"),
    N_("link"),
    N_("device or pipe"),
    N_("unsafe name"),
    N_("excluded by option"),
    N_("replaced later in the archive"),
    N_("archive inside an archive"),
    N_("copy of a file beside the archive"),
)
"""Kinds of skipped files, which `sources` name and do not translate."""

_SOURCES: Final = (
    N_(".hcp-logscan.toml of the run directory"),
    N_(".hcp-logscan.toml of the working directory"),
    N_("pyproject.toml of the working directory"),
)
"""Who suppresses, as `sources` say it."""

_DEEPEST: Final = 12
"""Texts within texts; a text that holds itself ends there."""


def translate(data: ReportData, lang: Lang) -> ReportData:
    """The same report in this language. English is what it is made in."""
    if lang == "en":
        return data
    words, cut = _Words(data.said, lang), data.health.truncated
    return replace(
        data,
        said={},
        verdict=_verdict(data.verdict, words),
        attempts=tuple(_attempt(one, words) for one in data.attempts),
        findings=tuple(_finding(one, words, cut) for one in data.findings),
        suppressed=tuple(
            replace(
                one,
                finding=_finding(one.finding, words, cut),
                source=words(one.source),
            )
            for one in data.suppressed
        ),
        rules=tuple(
            replace(
                one,
                summary=words(one.summary),
                why=words(one.why),
                fix=words(one.fix),
                false_positives=words.all(one.false_positives),
            )
            for one in data.rules
        ),
        stories=tuple(replace(one, sentences=words.all(one.sentences)) for one in data.stories),
        ranks=tuple(
            replace(one, last_phase=words(one.last_phase)) if one.last_phase else one
            for one in data.ranks
        ),
        timeline=tuple(
            replace(one, who=words(one.who), text=words(one.text)) for one in data.timeline
        ),
        clock_notes=words.all(data.clock_notes),
        peak=data.peak
        and replace(
            data.peak, source=words(data.peak.source), explanation=words(data.peak.explanation)
        ),
        comparison=data.comparison
        and replace(data.comparison, incomparable=words.all(data.comparison.incomparable)),
        health=replace(
            data.health,
            unreadable=tuple(replace(one, why=words(one.why)) for one in data.health.unreadable),
            truncated=words.all(data.health.truncated),
            skipped=tuple(replace(one, kind=words.kind(one.kind)) for one in data.health.skipped),
        ),
        jobs=tuple(replace(one, job=words(one.job)) for one in data.jobs),
    )


def _verdict(verdict: Verdict, words: _Words) -> Verdict:
    return replace(
        verdict,
        summary=words(verdict.summary),
        reasons=words.all(verdict.reasons),
        next_steps=words.all(verdict.next_steps),
        not_seen=words.all(verdict.not_seen),
        evidence=tuple(replace(e, explanation=words(e.explanation)) for e in verdict.evidence),
    )


def _attempt(attempt: AttemptData, words: _Words) -> AttemptData:
    return replace(
        attempt,
        verdict=_verdict(attempt.verdict, words),
        facts={
            name: words(value) if isinstance(value, str) else value
            for name, value in attempt.facts.items()
        },
    )


def _finding(finding: Finding, words: _Words, cut: tuple[str, ...]) -> Finding:
    return replace(
        finding,
        evidence=tuple(
            # the one kind of place whose text is ours: what of a file is cut off
            replace(place, text=words(place.text)) if place.text in cut else place
            for place in finding.evidence
        ),
        message=words(finding.message),
        why=words(finding.why),
        fix=words(finding.fix),
    )


class _Words:
    """Texts in one language."""

    def __init__(self, said: Mapping[str, Said], lang: Lang) -> None:
        self._said = said
        self._lang = lang
        self._catalogue = catalogue(lang)

    def __call__(self, text: str, depth: int = 0) -> str:
        """The text in this language; as it is where nothing is known of it."""
        said = self._said.get(text)
        if said is None or depth > _DEEPEST:
            return self._constant(text)
        own = dict(said.texts).get(self._lang)
        if said.texts and own is None:
            return text
        if said.parts is not None:
            return self._catalogue.gettext(said.template).join(
                self(part, depth + 1) for part in said.parts
            )
        values = {name: self._value(value, text, depth) for name, value in said.values}
        if own is not None:
            return said.filled(own, values)
        if said.one:
            count = int(values["count"])
            return said.filled(self._catalogue.ngettext(said.one, said.template, count), values)
        return said.filled(self._catalogue.gettext(said.template), values)

    def kind(self, name: str) -> str:
        """A kind of file, which may be one word."""
        return self._catalogue.gettext(name) if name in KINDS else self(name)

    def all(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """Each of them."""
        return tuple(self(text) for text in texts)

    def _value(self, value: Any, text: str, depth: int) -> Any:
        if isinstance(value, str) and value != text:
            return self(value, depth + 1)
        return value

    def _constant(self, text: str) -> str:
        """A constant of several words; a single word may be an identifier or a word of a log."""
        return self._catalogue.gettext(text) if " " in text else text
