"""What the HTML template loops over: every word, number and order of the page, decided here."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.reporting import baseline, peak, words
from hcp_logscan.reporting.charts import charts
from hcp_logscan.reporting.lanes import story_view
from hcp_logscan.reporting.rankmap import RankMap, rank_map
from hcp_logscan.reporting.safe import cut
from hcp_logscan.reporting.text import health_line
from hcp_logscan.reporting.topology import topology_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from hcp_logscan.model.comparison import Comparison
    from hcp_logscan.model.finding import Evidence, Finding, Judgement, Location, Verdict
    from hcp_logscan.model.report import AttemptData, RankRow, ReportData
    from hcp_logscan.reporting.words import Tone

MAX_FINDINGS: Final = 40
"""Findings shown in full; the rest in one table."""

CP_SETTINGS: Final = frozenset({"cp_size", "cp_comm_type", "hcp_sizes", "hcp_sizes_set"})
"""Settings that the table shows even where they are not observed."""

OPEN_LINES: Final = 3
OPEN_PIECES: Final = 2
"""Lines shown of what a channel says on many ranks: one per level of one rank."""

MAX_LINES: Final = 12
MAX_RANKS: Final = 1_024
MAX_ROWS: Final = 2_000
_RANK_LINE: Final = 90
_LONG_LINE: Final = 600


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an excerpt."""

    number: int
    text: str
    hit: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A place in the logs with its lines."""

    where: str
    rank: str
    lines: tuple[Line, ...]


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
    hidden: int
    folded: bool
    "Shown closed: a note, or what another attempt's card has said already."

    chart: str
    "Key of the drawn chart that shows what it speaks of; empty where there is none."


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """What a channel says, once or on many ranks, ready to show."""

    says: str
    tone: Tone
    grade: str
    traits: tuple[str, ...]
    explanation: str
    excerpts: tuple[Excerpt, ...]
    more_excerpts: tuple[Excerpt, ...]
    hidden: int


@dataclass(frozen=True, slots=True)
class ChannelView:
    """One channel: what it is, what it says, and the lines."""

    name: str
    meaning: str
    summary: str
    tone: Tone
    grade: str
    lines: str
    pieces: tuple[EvidenceView, ...]
    hidden: int
    "Lines of pieces that are not shown."


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One row of the attempts table."""

    attempt: int
    judged: bool
    outcome: str
    outcome_tone: Tone
    status: str
    tone: Tone
    summary: str
    iterations: str
    when: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of the judged attempt, with what other attempts had instead."""

    name: str
    meaning: str
    value: str
    observed: bool
    others: str


@dataclass(frozen=True, slots=True)
class RankView:
    """One row of the ranks table."""

    rank: int
    node: str
    confirmed: str
    files: str
    last_line: str


@dataclass(frozen=True, slots=True)
class RuleView:
    """One rule's outcome, attempts of equal outcome joined."""

    rule: str
    outcome: str
    tone: Tone
    attempts: str
    missing: tuple[str, ...]
    observe: tuple[str, ...]


_OUTCOME_ORDER: Final = ("fires", "inconclusive", "clean")
_RULE_TONES: Final[Mapping[str, Tone]] = {"fires": "bad", "inconclusive": "warn", "clean": "good"}
_SAYS_TONES: Final[Mapping[str, Tone]] = {"active": "good", "inactive": "bad", "neutral": "calm"}


def page(data: ReportData) -> dict[str, Any]:
    """Everything the template needs, by name."""
    word, meaning, tone = words.STATUS_WORDS[data.verdict.status]
    said = data.verdict.summary
    aside = words.leads_with_progress(data)
    lead = words.worst(data) if aside else None
    judged = judged_attempt(data)
    observed, unobserved = _parted(settings(data, judged))
    drawn = charts(data)
    found = finding_views(data, [chart.key for chart in drawn])
    judged_rules, apart = _without_baseline(data)
    return {
        "data": data,
        "traits": words.run_traits(data),
        "status_word": word,
        "status_meaning": meaning,
        "sentence": "" if said.rstrip(".") == meaning else said,
        "tone": words.SEVERITY_TONES[lead.severity] if lead else tone,
        "aside": aside,
        "lead": lead,
        "lead_anchor": _anchor(lead) if lead else "",
        "progress": words.progress(data),
        "coverage": words.coverage(data.verdict, data.run.world_size),
        "coverage_share": _share(data),
        "story": story_view(data, _evidence_anchors(data)),
        "numbers": numbers(data),
        "counted": words.counted(data.findings),
        "findings": found,
        "more_findings": data.findings[MAX_FINDINGS:],
        "channels": channels(data.verdict),
        "silent": [name for name in words.CHANNEL_WORDS if name not in _spoken(data.verdict)],
        "charts": drawn,
        "chart_names": {chart.key: chart.title for chart in drawn},
        "chart_findings": _on_charts(found),
        "plots": [chart.plot for chart in drawn],
        "beside": baseline_view(data.comparison),
        "attempts": [attempt_view(data, attempt) for attempt in data.attempts],
        "judged": judged,
        "settings": observed,
        "unobserved": unobserved,
        "others_differ": any(setting.others for setting in observed),
        "full_config": judged.full_config[:MAX_ROWS] if judged else (),
        "hidden_config": max(len(judged.full_config) - MAX_ROWS, 0) if judged else 0,
        "facts": facts(judged, compared=data.comparison is not None),
        "topology": topology_view(data.topology),
        "rank_map": _rank_map(data),
        "ranks": [rank_view(row) for row in data.ranks[:MAX_RANKS]],
        "hidden_ranks": max(len(data.ranks) - MAX_RANKS, 0),
        "rules": rules(judged_rules),
        "rule_counts": _rule_counts(judged_rules),
        "rules_apart": apart,
        "health_line": health_line(data),
        "health_tone": _health_tone(data),
        "missing_ranks": words.ranges(data.health.ranks_missing),
        "size": words.size(data.health.bytes),
    }


@dataclass(frozen=True, slots=True)
class BaselineView:
    """The run beside its baseline, ready to show."""

    title: str
    headline: str
    rows: tuple[baseline.Row, ...]
    spans: tuple[tuple[str, str], ...]
    "Name of a third, and its iterations."

    held: str
    "GPU memory of both."

    notes: tuple[str, ...]
    memory: str
    "What a run that ran out of it has that the baseline had not."

    counted: str
    differences: tuple[baseline.Difference, ...]
    hidden: int


def baseline_view(found: Comparison | None) -> BaselineView | None:
    """Everything that the page says of a baseline; None where none was given."""
    if found is None:
        return None
    shown = baseline.differences(found)
    return BaselineView(
        title=baseline.title(found),
        headline=baseline.headline(found),
        rows=tuple(baseline.rows(found)),
        spans=tuple(baseline.spans(found).items()),
        held=baseline.memory(found),
        notes=tuple(baseline.notes(found)),
        memory=baseline.out_of_memory(found),
        counted=baseline.counted(found),
        differences=tuple(shown),
        hidden=found.differences_total - len(shown),
    )


def _evidence_anchors(data: ReportData) -> dict[tuple[str, int], str]:
    """(file, line) -> the worst finding on the page that the line is evidence of."""
    found: dict[tuple[str, int], str] = {}
    for finding in data.findings[:MAX_FINDINGS]:
        for place in finding.evidence:
            found.setdefault((place.file, place.line), _anchor(finding))
    return found


def judged_attempt(data: ReportData) -> AttemptData | None:
    """The attempt the verdict speaks of."""
    found = [attempt for attempt in data.attempts if attempt.attempt == data.judged_attempt]
    return found[0] if found else None


def numbers(data: ReportData) -> list[tuple[str, str, str]]:
    """The key numbers: (name, value, further words)."""
    return [(name, _tight(value), _tight(more)) for name, value, more in _numbers(data)]


def _tight(text: str) -> str:
    """The same with units that stay on the line of their number."""
    return re.sub(r"(?<=\d) (?=m?s\b)", "\u00a0", text)


def _numbers(data: ReportData) -> list[tuple[str, str, str]]:
    series = data.series
    flops, tokens, step = series.tflops_per_gpu, series.tokens_per_s_per_gpu, series.step_ms
    lm = series.lm_loss
    course = f"{words.loss(lm.first)} \u2192 {words.loss(lm.last)}"
    last = words.OUTCOME_WORDS[data.attempts[-1].outcome][0] if data.attempts else ""
    reached = _range(flops.min, flops.max, words.fixed)
    return [
        ("Iterations logged", f"{series.iterations:,}", _span(data)),
        ("TFLOP/s/GPU", words.fixed(flops.median), _joined(reached, peak.share(data))),
        ("Tokens/s/GPU", _whole(tokens.median), _range(tokens.min, tokens.max, _whole)),
        (
            "Step time",
            words.milliseconds(step.median),
            _range(step.min, step.max, words.milliseconds),
        ),
        (
            "Loss, first to last",
            words.NOT_LOGGED if lm.first is None and lm.last is None else course,
            "" if lm.min is None else f"lowest {words.loss(lm.min)}",
        ),
        ("Attempts", f"{len(data.attempts):,}", f"last one: {last}" if last else ""),
        *_measures(data),
    ]


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _measures(data: ReportData) -> Iterator[tuple[str, str, str]]:
    """What printed throughput is measured by, and what the trainer claims: only where known."""
    found = peak.limit(data.peak)
    if data.peak is not None and found is not None:
        name = "Dense peak of the GPU" if found.exact else "Bound of the GPU"
        yield name, peak.figure(found.tflops), peak.traits(data.peak)
    claimed = peak.claimed_mfu(data)
    if claimed is not None:
        yield "MFU as printed", words.percent(claimed), "median; the trainer's claim"


def _whole(value: float | None) -> str:
    return words.fixed(value, 0)


def _span(data: ReportData) -> str:
    firsts = [a.first_iteration for a in data.attempts if a.first_iteration is not None]
    lasts = [a.last_iteration for a in data.attempts if a.last_iteration is not None]
    return f"from {min(firsts):,} to {max(lasts):,}" if firsts and lasts else ""


def _range(low: float | None, high: float | None, show: Callable[[float | None], str]) -> str:
    if low is None or high is None:
        return ""
    return "median" if low == high else f"median; {show(low)} to {show(high)}"


def _share(data: ReportData) -> int | None:
    """Confirmed ranks in percent of all, for the meter; None where no rank had to confirm."""
    if words.configured(data.verdict):
        return None
    whole = max(data.verdict.ranks_seen, data.run.world_size or 0)
    return data.verdict.ranks_confirmed * 100 // whole if data.verdict.ranks_seen else None


def _anchor(finding: Finding) -> str:
    return f"{finding.rule}-{finding.attempt}"


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


def _on_charts(found: Sequence[FindingView]) -> dict[str, list[tuple[str, str]]]:
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
    excerpts = tuple(excerpt(place) for place in finding.evidence[:MAX_LINES])
    total = max(finding.evidence_total, len(finding.evidence))
    traits = [
        f"attempt {finding.attempt}" if len(data.attempts) > 1 else "",
        "" if finding.iteration is None else f"from iteration {finding.iteration:,}",
        words.ranks(finding.ranks),
        f"{finding.confidence} confidence",
    ]
    links = tuple(ref for ref in finding.references if words.safe_link(ref))
    return FindingView(
        anchor=_anchor(finding),
        rule=finding.rule,
        name=finding.name,
        severity=finding.severity,
        tone=words.SEVERITY_TONES[finding.severity],
        traits=tuple(trait for trait in traits if trait),
        message=finding.message,
        why=words.paragraphs(finding.why),
        fix=words.paragraphs(finding.fix),
        links=links,
        other_references=tuple(ref for ref in finding.references if ref not in links),
        excerpts=excerpts[:OPEN_LINES],
        more_excerpts=excerpts[OPEN_LINES:],
        hidden=total - len(excerpts),
        folded=folded,
        chart=chart_of(finding.rule, drawn),
    )


def excerpt(place: Location) -> Excerpt:
    """A place with its neighbours where they were read, else with its own line."""
    context = place.context or ((place.line, place.text),)
    return Excerpt(
        where=f"{place.file}:{place.line}",
        rank="" if place.rank is None else f"rank {place.rank}",
        lines=tuple(
            Line(n, text if n == place.line else cut(text, _LONG_LINE), n == place.line)
            for n, text in context
        ),
    )


def _spoken(verdict: Verdict) -> set[str]:
    return {piece.channel for piece in verdict.evidence}


def channels(verdict: Verdict) -> list[ChannelView]:
    """The channels that say something, strongest first."""
    found = []
    for name, meaning in words.CHANNEL_WORDS.items():
        pieces = [piece for piece in verdict.evidence if piece.channel == name]
        if pieces:
            found.append(_channel(name, meaning, pieces))
    return found


def _channel(name: str, meaning: str, pieces: Sequence[Evidence]) -> ChannelView:
    says = {piece.says for piece in pieces}
    loud = [word for word in ("active", "inactive") if word in says]
    joined = words.same_pieces(pieces)
    tone: Tone = _SAYS_TONES[loud[0]] if len(loud) == 1 else ("bad" if loud else "calm")
    return ChannelView(
        name=name,
        meaning=meaning,
        summary=" and ".join(loud) or "neutral",
        tone=tone,
        grade=min(piece.grade for piece in pieces),
        lines=words.lines_on_ranks(pieces),
        pieces=tuple(_piece(same) for same in joined[:MAX_LINES]),
        hidden=sum(len(same) for same in joined[MAX_LINES:]),
    )


def _piece(pieces: Sequence[Evidence]) -> EvidenceView:
    first = pieces[0]
    excerpts = tuple(excerpt(piece.location) for piece in pieces[:MAX_LINES])
    layers = f"{first.layer_kind} layers" if first.layer_kind else ""
    many = words.lines_on_ranks(pieces) if len(pieces) > 1 else ""
    return EvidenceView(
        says=first.says,
        tone=_SAYS_TONES[first.says],
        grade=first.grade,
        traits=tuple(trait for trait in (layers, many) if trait),
        explanation=first.explanation,
        excerpts=excerpts[:OPEN_PIECES],
        more_excerpts=excerpts[OPEN_PIECES:],
        hidden=max(len(pieces) - MAX_LINES, 0),
    )


def attempt_view(data: ReportData, attempt: AttemptData) -> AttemptView:
    """One row of the attempts table."""
    outcome, outcome_tone = words.OUTCOME_WORDS[attempt.outcome]
    status, _, tone = words.STATUS_WORDS[attempt.verdict.status]
    return AttemptView(
        attempt=attempt.attempt,
        judged=attempt.attempt == data.judged_attempt,
        outcome=outcome,
        outcome_tone=outcome_tone,
        status=status,
        tone=tone,
        summary=attempt.verdict.summary,
        iterations=words.iteration_span(attempt),
        when=times(attempt.started, attempt.ended),
    )


def times(started: str | None, ended: str | None) -> str:
    """Begin and end to the second, the date once where it is the same.

    >>> times("2026-03-01T10:00:00.428", "2026-03-01T10:01:10")
    '2026-03-01 10:00:00 – 10:01:10'
    >>> times("2026-03-01T10:00:00", None), times(None, None)
    ('2026-03-01 10:00:00', 'no time stamps')
    """
    begin, end = (re.sub(r"\.\d+$", "", (t or "").replace("T", " ")) for t in (started, ended))
    if end and end.partition(" ")[0] == begin.partition(" ")[0]:
        end = end.partition(" ")[2]
    return " \u2013 ".join(time for time in (begin, end) if time) or "no time stamps"


def settings(data: ReportData, judged: AttemptData | None) -> list[Setting]:
    """The CP/HCP keys and the model shape of the judged attempt, in the order given."""
    from hcp_logscan.analysis.facts import CONFIG_FACTS

    if judged is None:
        return []
    others = [attempt for attempt in data.attempts if attempt.attempt != judged.attempt]
    return [
        Setting(
            name=name,
            meaning=CONFIG_FACTS[name].meaning if name in CONFIG_FACTS else "",
            value=shown(value),
            observed=value is not None,
            others=_others(name, value, others),
        )
        for name, value in judged.config.items()
    ]


def _parted(found: list[Setting]) -> tuple[list[Setting], list[Setting]]:
    """Settings to show and those to fold: what is not observed, but for the CP and HCP keys."""
    shown_ones = [
        setting
        for setting in found
        if setting.observed or setting.others or setting.name in CP_SETTINGS
    ]
    return shown_ones, [setting for setting in found if setting not in shown_ones]


def _others(name: str, value: Any, others: Iterable[AttemptData]) -> str:
    """What other attempts had instead: `attempt 0-2: p2p`."""
    values: dict[str, list[int]] = {}
    for attempt in others:
        other = attempt.config.get(name)
        if other is not None and shown(other) != shown(value):
            values.setdefault(shown(other), []).append(attempt.attempt)
    return "; ".join(f"attempt {words.ranges(found)}: {other}" for other, found in values.items())


def shown(value: Any) -> str:
    """A fact in words."""
    if value is None:
        return "not observed"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if hasattr(value, "to_list"):  # a polars Series: the value of a list fact
        value = value.to_list()
    if isinstance(value, (list, tuple)):
        if len(value) > 8 and all(isinstance(item, int) for item in value):
            return f"[{words.ranges(value)}]"
        more = f" and {len(value) - 40:,} more" if len(value) > 40 else ""
        return f"[{', '.join(shown(item) for item in value[:40])}{more}]"
    return cut(str(value), _LONG_LINE)


def facts(judged: AttemptData | None, *, compared: bool) -> list[Setting]:
    """Every fact of the judged attempt that is no setting; of a comparison only if there is one."""
    from hcp_logscan.analysis.baseline_facts import BASELINE_FACTS
    from hcp_logscan.analysis.facts import ATTEMPT_FACTS

    if judged is None:
        return []
    return [
        Setting(
            name=name,
            meaning=ATTEMPT_FACTS[name].meaning if name in ATTEMPT_FACTS else "",
            value=shown(value),
            observed=value is not None,
            others="",
        )
        for name, value in judged.facts.items()
        if name not in judged.config and (compared or name not in BASELINE_FACTS)
    ]


def _rank_map(data: ReportData) -> RankMap | None:
    return rank_map(
        confirmed={row.rank for row in data.ranks if row.confirmed},
        seen={row.rank for row in data.ranks},
        missing=set(data.health.ranks_missing),
        named={rank for f in data.findings if f.severity != "note" for rank in f.ranks},
    )


def rank_view(row: RankRow) -> RankView:
    """One row of the ranks table, kept short: there may be a thousand."""
    more = len(row.files) - 1
    first = row.files[0] if row.files else "\u2013"
    return RankView(
        rank=row.rank,
        node=row.node or "\u2013",
        confirmed="yes" if row.confirmed else "no",
        files=first if more <= 0 else f"{first} and {more} more",
        last_line=cut(row.last_line.strip(), _RANK_LINE) or "\u2013",
    )


def _without_baseline(data: ReportData) -> tuple[list[Judgement], str]:
    """The judgements to list, and what is said of the rules that only a baseline could judge."""
    from hcp_logscan.analysis.baseline_facts import BASELINE_FACTS

    if data.comparison is not None:
        return list(data.judgements), ""
    listed = [one for one in data.judgements if BASELINE_FACTS.keys().isdisjoint(one.missing)]
    left = dict.fromkeys(one.rule for one in data.judgements if one not in listed)
    if not left:
        return listed, ""
    return listed, (
        f"{words.plural(len(left), 'rule')} compare with a known good run ({', '.join(left)}): give"
        " one with `--baseline RUN_DIR`."
    )


def rules(judgements: Sequence[Judgement]) -> list[RuleView]:
    """All rules with their outcomes: what fired, what could not be judged, what is clean."""
    joined: dict[tuple[int, str, tuple[str, ...]], list[int]] = {}
    for judgement in judgements:
        key = (_OUTCOME_ORDER.index(judgement.outcome), judgement.rule, judgement.missing)
        joined.setdefault(key, []).append(judgement.attempt)
    return [
        RuleView(
            rule=rule,
            outcome=_OUTCOME_ORDER[order],
            tone=_RULE_TONES[_OUTCOME_ORDER[order]],
            attempts=words.ranges(attempts),
            missing=missing,
            observe=_observe(missing),
        )
        for (order, rule, missing), attempts in sorted(joined.items())
    ]


def _observe(missing: Iterable[str]) -> tuple[str, ...]:
    """How to make missing facts observable, each way once."""
    from hcp_logscan.analysis.facts import FACTS

    ways = {
        table[name].observe: None for name in missing for table in FACTS.values() if name in table
    }
    return tuple(way for way in ways if way)


def _rule_counts(judgements: Iterable[Judgement]) -> str:
    count = Counter(judgement.outcome for judgement in judgements)
    return f"{count['fires']} fired, {count['inconclusive']} inconclusive, {count['clean']} clean"


def _health_tone(data: ReportData) -> Tone:
    health = data.health
    lacks = health.unreadable or health.truncated or health.drift or health.ranks_missing
    return "warn" if lacks else "good"
