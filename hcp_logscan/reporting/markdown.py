"""The Markdown report: short enough to paste into a ticket, the evidence folded away.

Log text stands in fences longer than any run of backticks it holds, or is escaped, so that no
line of a log becomes a heading, a table cell, a tag or a mention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hcp_logscan.model.markdown import code, escaped, fence, prose_line
from hcp_logscan.reporting import baseline, peak, suppressed, topology, words
from hcp_logscan.reporting.lanes import story_view
from hcp_logscan.reporting.safe import cut, one_line
from hcp_logscan.reporting.text import health_line
from hcp_logscan.reporting.tongue import _, gap, speaking
from hcp_logscan.reporting.translate import translate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hcp_logscan.model.comparison import Comparison
    from hcp_logscan.model.finding import Evidence, Finding, Location
    from hcp_logscan.model.report import Place, ReportData
    from hcp_logscan.reporting.tongue import Lang

MAX_FINDINGS: Final = 5
MAX_SUPPRESSED: Final = 10
MAX_EVIDENCE: Final = 3
MAX_PIECES: Final = 10
MAX_LINES: Final = 2
MAX_POINTS: Final = 12
"""Reasons, steps and channels not seen."""

MAX_DIFFERENCES: Final = 20
"""Settings that differ from the baseline's."""

MAX_BYTES: Final = 60_000
"""A comment of GitHub holds 65,536 characters."""

_NAME: Final = 200
_PROSE: Final = 1_000
_LOG: Final = 300


def render_markdown(data: ReportData, *, lang: Lang = "en") -> str:
    """The report as GitHub-flavoured Markdown."""
    with speaking(lang):
        return _rendered(translate(data, lang))


def _rendered(data: ReportData) -> str:
    top = [*_head(data), *_story(data), *_findings(data), *_suppressed(data), *_steps(data)]
    end = [_("Scan health: {text}.", text=_short(health_line(data))), _short(_tool(data))]
    text = _document((*top, *_details(data), *end))
    if len(text.encode()) <= MAX_BYTES:
        return text
    # escaped text may be ten times as long as what it shows
    note = _("The rest is too long for a ticket: the HTML and JSON reports have it.")
    while top and len(_document((*top, note, *end)).encode()) > MAX_BYTES:
        top.pop()
    return _document((*top, note, *end))


def _document(blocks: Iterable[str]) -> str:
    return "\n\n".join(blocks) + "\n"


def _tool(data: ReportData) -> str:
    return f"{data.tool_name} {data.tool_version}"


def _short(text: str) -> str:
    """Escaped, cut before that: no construct is cut in its middle."""
    return escaped(cut(text, _NAME))


def fenced(lines: Iterable[str]) -> str:
    """Lines as a fenced block, each cut at a sensible length."""
    return fence(cut(one_line(line), _LOG) for line in lines)


def prose(text: str) -> str:
    """Text of a rule: code in backticks stays code, all else is escaped."""
    return prose_line(cut(" ".join(words.paragraphs(text)), _PROSE))


def _head(data: ReportData) -> Iterator[str]:
    verdict = data.verdict
    word, meaning, _tone = words.STATUS_WORDS[verdict.status]
    name = _short(data.run.name)
    traits = _short(" · ".join(words.run_traits(data)))
    if words.leads_with_progress(data):
        yield _("## {name}: {what}", name=name, what=escaped(words.progress(data)))
        finding = words.worst(data)
        if finding is not None:
            yield f"**{words.SEVERITY_WORDS[finding.severity]}** {_about(finding)}"
        yield _(
            "Hierarchical CP: **{word}** ({confidence}). {meaning}.",
            word=word.lower(),
            confidence=words.CONFIDENCE_WORDS[verdict.confidence],
            meaning=meaning,
        )
    else:
        yield _("## {name}: HCP {word}", name=name, word=word.lower())
        said = (
            escaped(cut(verdict.summary, _PROSE))
            if verdict.summary
            else _("{meaning}.", meaning=meaning)
        )
        yield _(
            "**{said}** Confidence: {confidence}.",
            said=said,
            confidence=words.LEVEL_WORDS[verdict.confidence],
        )
        yield _("Coverage: {text}.", text=escaped(words.coverage(verdict, data.run.world_size)))
    if groups := topology.line(data.topology):
        yield _("Groups: {text}.", text=_short(groups))
    if traits:
        yield traits
    yield "\n".join(_numbers(data))
    if data.comparison is not None:
        yield from _beside(data.comparison)


def _story(data: ReportData) -> Iterator[str]:
    """What broke first, of the whole run."""
    if data.stories and data.stories[0].sentences:
        pairs = data.stories[0].pairs
        told = cut(gap().join(_with_place(text, places) for text, places in pairs), _PROSE)
        yield _("**What broke first:** {text}", text=escaped(told))


def _with_place(sentence: str, places: Sequence[Place]) -> str:
    """A sentence with the first line that it rests on, where it does not name one itself."""
    named = [f"[{place.file}:{place.line}]" for place in places]
    if not named or any(name in sentence for name in named):
        return sentence
    bare = sentence.removesuffix(".").removesuffix("。")
    return _("{sentence} {place}.", sentence=bare, place=named[0])


def _timeline(data: ReportData) -> Iterator[str]:
    """The entries of the timeline that matter, folded."""
    told = story_view(data, {})
    if told is not None and told.rows:
        lines = [
            " ".join(filter(None, (row.time, _("{who}:", who=row.who), row.what)))
            for row in told.rows
        ]
        yield _("<details><summary>Timeline</summary>")
        yield from map(escaped, told.notes)
        yield fenced(lines)
        yield "</details>"


def _beside(found: Comparison) -> Iterator[str]:
    """The run over its baseline in one line, and what ran out of memory."""
    table = baseline.rows(found)
    late = [f"{row.name} {row.cells[-1].ratio}" for row in table if row.cells[-1] is not None]
    said = _("; late third: {late}", late=_(", ").join(late)) if late else ""
    yield _(
        "Beside the baseline {text}: {counted}{said}.",
        text=_short(baseline.title(found)),
        counted=baseline.counted(found),
        said=said,
    )
    if memory := baseline.out_of_memory(found):
        yield escaped(cut(memory, _PROSE))


def _comparison(found: Comparison) -> Iterator[str]:
    """What that rests on, folded."""
    table = baseline.rows(found)
    yield _("<details><summary>Comparison with the baseline</summary>")
    yield _("{headline}; this run over the baseline.", headline=baseline.headline(found))
    if table:
        lines = [_("| series | early | middle | late |"), "|---|---|---|---|"]
        lines += [
            f"| {row.name} | {' | '.join(_third(cell) for cell in row.cells)} |" for row in table
        ]
        yield "\n".join(lines)
    memory = baseline.memory(found)
    notes = ([_("Memory: {memory}.", memory=memory)] if memory else []) + baseline.notes(found)
    yield from _bullets(escaped(cut(note, _PROSE)) for note in notes)
    if found.differences:
        yield "\n".join(_differences(found))
    if rest := found.differences_total - min(len(found.differences), MAX_DIFFERENCES):
        yield _("{rest:,} more settings differ.", rest=rest)
    yield "</details>"


def _third(cell: baseline.Cell | None) -> str:
    if cell is None:
        return ""
    return f"{cell.ratio} ({cell.spread})" if cell.spread else cell.ratio


def _differences(found: Comparison) -> Iterator[str]:
    yield _("| setting | this run | baseline | group |")
    yield "|---|---|---|---|"
    for one in baseline.differences(found)[:MAX_DIFFERENCES]:
        cells = (cut(text, _NAME) for text in (one.key, one.value, one.baseline, one.group))
        yield f"| {' | '.join(escaped(cell) for cell in cells)} |"


def _about(finding: Finding) -> str:
    return f"{code(finding.rule)} {escaped(cut(finding.message, _PROSE))}"


def _numbers(data: ReportData) -> Iterator[str]:
    """A table of what was logged."""
    series = data.series
    outcomes = _(", ").join(words.OUTCOME_WORDS[a.outcome][0] for a in data.attempts[-4:])
    more = "…" + _(", ") if len(data.attempts) > 4 else ""
    found = {
        _("iterations"): f"{series.iterations:,}",
        _("throughput"): _throughput(data),
        _("tokens"): words.spread(series.tokens_per_s_per_gpu, "tokens/s/GPU", 0),
        _("step time"): words.step_time(series.step_ms),
        _("loss"): words.loss_course(series.lm_loss),
        _("attempts"): _("{count} ({outcomes})", count=len(data.attempts), outcomes=more + outcomes)
        if outcomes
        else "0",
    }
    cells = {name: cell for name, cell in found.items() if cell != words.not_logged()}
    yield f"| {' | '.join(cells)} |"
    yield f"|{'---|' * len(cells)}"
    yield f"| {' | '.join(escaped(cut(cell, _LOG)) for cell in cells.values())} |"


def _throughput(data: ReportData) -> str:
    said = words.spread(data.series.tflops_per_gpu, "TFLOP/s/GPU")
    claimed = peak.claimed(data)
    mfu = _("printed MFU {claimed}", claimed=claimed) if claimed else ""
    if mfu and said == words.not_logged():
        return mfu
    return _(", ").join(part for part in (said, peak.brief(data), mfu) if part)


def _findings(data: ReportData) -> Iterator[str]:
    yield _("### Findings: {counted}", counted=words.counted(data.findings))
    found = words.alike(data.findings)
    for finding, others in found[:MAX_FINDINGS]:
        yield "\n".join(_finding(data, finding, others))
    hidden = [finding for finding, _ in found[MAX_FINDINGS:]]
    if hidden:
        yield _("{count} more: {counted}.", count=len(hidden), counted=words.counted(hidden))


def _finding(data: ReportData, finding: Finding, others: tuple[int, ...]) -> Iterator[str]:
    """One item of the list: a note in one line, with all else in the other reports."""
    also = _(", also {ranges}", ranges=words.ranges(others)) if others else ""
    traits = [
        _("attempt {attempt}{also}", attempt=finding.attempt, also=also)
        if len(data.attempts) > 1
        else "",
        ""
        if finding.iteration is None
        else _("from iteration {iteration:,}", iteration=finding.iteration),
        words.ranks(finding.ranks),
    ]
    where = _(", ").join(trait for trait in traits if trait)
    severity = words.SEVERITY_WORDS[finding.severity]
    yield f"- **{severity}** {_about(finding)}{f' ({where})' if where else ''}"
    if finding.severity == "note":
        return
    if finding.evidence:
        first = finding.evidence[0]
        hidden = max(finding.evidence_total, len(finding.evidence)) - 1
        more = _(" and {many}", many=words.plural(hidden, "more line")) if hidden > 0 else ""
        yield _(
            "  Seen at {code}{more}.", code=code(f"{cut(first.file, _LOG)}:{first.line}"), more=more
        )
    if finding.fix.strip():
        yield _("  **Fix:** {text}", text=prose(words.first_advice(finding.fix)))


def _suppressed(data: ReportData) -> Iterator[str]:
    """What a user accepts, and which file says so."""
    found = list(suppressed.entries(data))
    if not found:
        return
    yield _("### Suppressed: {text}", text=_short(suppressed.counted(data)))
    lines = []
    for one in found[:MAX_SUPPRESSED]:
        where = f" ({one.attempts})" if one.attempts else ""
        about = f"{code(one.rule)} {_short(one.name)}{where}"
        reason = escaped(cut(one_line(one.reason), _LOG))
        lines.append(
            f"- {words.SEVERITY_WORDS[one.severity]} {about}: {reason} ({escaped(one.source)})"
        )
    if len(found) > MAX_SUPPRESSED:
        lines.append(_("- {count} more rules", count=len(found) - MAX_SUPPRESSED))
    yield "\n".join(lines)


def _steps(data: ReportData) -> Iterator[str]:
    if data.verdict.next_steps:
        yield _("### Next steps")
        steps = enumerate(data.verdict.next_steps[:MAX_POINTS], start=1)
        yield "\n".join(f"{number}. {prose(step)}" for number, step in steps)


def _details(data: ReportData) -> Iterator[str]:
    yield from _timeline(data)
    if data.comparison is not None:
        yield from _comparison(data.comparison)
    verdict = data.verdict
    if verdict.reasons or verdict.evidence or verdict.not_seen:
        yield _("<details><summary>Evidence for the verdict</summary>")
        reasons = verdict.reasons[:MAX_POINTS]
        yield from _bullets(escaped(cut(text, _PROSE)) for text in reasons)  # may quote the log
        joined = words.same_pieces(verdict.evidence)
        for pieces in joined[:MAX_PIECES]:
            yield from _pieces(pieces)
        if hidden := sum(len(pieces) for pieces in joined[MAX_PIECES:]):
            yield _("{hidden:,} more pieces of evidence.", hidden=hidden)
        if verdict.not_seen:
            yield _("Not seen (silence is not evidence):")
            yield from _bullets(prose(text) for text in verdict.not_seen[:MAX_POINTS])
        yield "</details>"
    shown = [finding for finding, _ in words.alike(data.findings)[:MAX_FINDINGS]]
    with_lines = [f for f in shown if f.evidence and f.severity != "note"]
    if with_lines:
        yield _("<details><summary>Log lines behind the findings</summary>")
        for finding in with_lines:
            yield f"{code(finding.rule)} {_short(finding.name)}"
            yield fenced(located(place) for place in finding.evidence[:MAX_EVIDENCE])
        yield "</details>"


def _bullets(texts: Iterable[str]) -> Iterator[str]:
    bullets = "\n".join(f"- {text}" for text in texts)
    if bullets:
        yield bullets


def _pieces(pieces: Sequence[Evidence]) -> Iterator[str]:
    """What one channel says once or on many ranks, with the first lines that say so."""
    first = pieces[0]
    many = _(" ({many})", many=words.lines_on_ranks(pieces)) if len(pieces) > 1 else ""
    layers = _(" of {text} layers", text=_short(first.layer_kind)) if first.layer_kind else ""
    explanation = (
        _(": {text}", text=escaped(cut(first.explanation, _PROSE))) if first.explanation else ""
    )
    yield _(
        "**{channel}** says {says}{layers}, grade {grade}{many}{explanation}",
        channel=first.channel,
        says=first.says,
        layers=layers,
        grade=first.grade,
        many=many,
        explanation=explanation,
    )
    yield fenced(located(piece.location) for piece in pieces[:MAX_LINES])


def located(place: Location) -> str:
    """A line with its place and rank."""
    rank = "" if place.rank is None else _(" [rank {rank}]", rank=place.rank)
    return f"{place.file}:{place.line}{rank}  {place.text}"
