"""The terminal summary: what matters first, every list limited, log text shown literally."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting import baseline, peak, suppressed, topology, words
from hcp_logscan.reporting.safe import cut, one_line
from hcp_logscan.reporting.tongue import _, speaking
from hcp_logscan.reporting.translate import translate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from hcp_logscan.model.finding import Finding, Location
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.tongue import Lang
    from hcp_logscan.reporting.words import Tone

MAX_FINDINGS: Final = 10
MAX_EVIDENCE: Final = 3
MAX_ATTEMPTS: Final = 8
MAX_STEPS: Final = 8
MAX_SUPPRESSED: Final = 10
MAX_DIFFERENCES: Final = 5
"Settings that differ from the baseline's."

_MESSAGE: Final = 600
"Characters of one message or fix; the reports have all of it."

_STYLES: Final[dict[Tone, str]] = {
    "good": "bold green",
    "bad": "bold red",
    "warn": "bold yellow",
    "calm": "bold cyan",
}


def render_text(
    data: ReportData, *, width: int = 100, color: bool = False, lang: Lang = "en"
) -> str:
    """The summary as text, `width` columns wide; `color` adds ANSI colours."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,
        legacy_windows=False,
        _environ={},  # the text depends on nothing but the report
    )
    with console.capture() as capture:
        print_text(data, console, lang=lang)
    return capture.get()


def print_text(data: ReportData, console: Console, *, lang: Lang = "en") -> None:
    """Print the summary on a console, which knows its width and whether it has colours."""
    with speaking(lang):
        _print(translate(data, lang), console)


def _print(data: ReportData, console: Console) -> None:
    paper = _Paper(console)
    _head(data, paper)
    for section in (_numbers, _story, _beside, _findings, _suppressed, _next_steps):
        section(data, paper)
    paper.line()
    paper.hang(_("Scan health  "), health_line(data), lead="bold")


class _Paper:
    """Lines with a hanging indent, wrapped to the console, no trailing blanks, no markup."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def line(self, text: str = "", style: str = "") -> None:
        """One line, wrapped only if the console is narrower."""
        self.hang("", text, style=style)

    def hang(self, prefix: str, text: str, *, lead: str = "", style: str = "") -> None:
        """Text wrapped beside its prefix."""
        from rich.cells import cell_len
        from rich.text import Text

        indent = cell_len(prefix)
        room = max(self.console.width - indent, 12)
        body = Text(one_line(text), style=style)
        for number, part in enumerate(body.wrap(self.console, room) or [Text("")]):
            part.rstrip()
            head = Text(one_line(prefix), style=lead) if number == 0 else Text(" " * indent)
            self._out(Text.assemble(head, part) if part.plain else head)

    def literal(self, prefix: str, text: str, style: str = "") -> None:
        """Log text on one line, cut at the edge of the console."""
        from rich.text import Text

        body = Text(prefix + one_line(text).strip(), style=style)
        body.truncate(max(self.console.width, 12), overflow="ellipsis")
        self._out(body)

    def _out(self, text: object) -> None:
        self.console.print(text, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _head(data: ReportData, paper: _Paper) -> None:
    verdict = data.verdict
    title = "  \u00b7  ".join((data.run.name, *words.run_traits(data)))
    paper.line(title, "dim")
    word, meaning, tone = words.STATUS_WORDS[verdict.status]
    if words.leads_with_progress(data):
        finding = words.worst(data)
        if finding is not None:
            style = _STYLES[words.SEVERITY_TONES[finding.severity]]
            paper.hang(
                f"{words.SEVERITY_WORDS[finding.severity].upper()}  ",
                _about(finding),
                lead=style,
                style="bold",
            )
        paper.line(words.progress(data), "" if finding else "bold")
        known = _(
            "{word} ({confidence})",
            word=word.lower(),
            confidence=words.CONFIDENCE_WORDS[verdict.confidence],
        )
        paper.line(
            _(
                "Hierarchical CP: {known}. {summary}",
                known=known,
                summary=verdict.summary or meaning,
            ).rstrip()
        )
        _groups(data, paper)
        return
    paper.line(
        _(
            "HCP {word}  ({confidence})",
            word=word.upper(),
            confidence=words.CONFIDENCE_WORDS[verdict.confidence],
        ),
        _STYLES[tone],
    )
    paper.line(verdict.summary or _("{meaning}.", meaning=meaning), "bold")
    paper.hang(_("Coverage: "), words.coverage(verdict, data.run.world_size))
    _groups(data, paper)


def _groups(data: ReportData, paper: _Paper) -> None:
    if text := topology.line(data.topology):
        paper.hang(_("Groups: "), text)


def _about(finding: Finding) -> str:
    return cut(f"{finding.rule} {finding.message}", _MESSAGE)


def _numbers(data: ReportData, paper: _Paper) -> None:
    series = data.series
    rows = [
        (
            _("iterations"),
            _("{iterations:,} logged", iterations=series.iterations)
            if series.iterations
            else _("none logged"),
        ),
        (_("throughput"), words.spread(series.tflops_per_gpu, "TFLOP/s/GPU")),
        (_("peak"), peak.brief(data)),
        (_("printed MFU"), peak.claimed(data)),
        (_("tokens"), words.spread(series.tokens_per_s_per_gpu, "tokens/s/GPU", 0)),
        (_("step time"), words.step_time(series.step_ms)),
        (_("loss"), words.loss_course(series.lm_loss)),
    ]
    if not series.iterations:
        rows = rows[:1]
    paper.line()
    for name, value in rows:
        if value:
            paper.hang(f"  {words.padded(name, 12)}", value)
    hidden = len(data.attempts) - MAX_ATTEMPTS
    if hidden > 0:
        many = _("{count}, the first {hidden} not shown", count=len(data.attempts), hidden=hidden)
        paper.hang(f"  {words.padded(_('attempts'), 12)}", many)
    for attempt in data.attempts[-MAX_ATTEMPTS:]:
        outcome = words.OUTCOME_WORDS[attempt.outcome][0]
        status = words.STATUS_WORDS[attempt.verdict.status][0].lower()
        judged = _(", judged here") if _marked(data, attempt.attempt) else ""
        span = words.iteration_span(attempt)
        text = _(
            "{outcome}; {span}; HCP {status}{judged}",
            outcome=outcome,
            span=span,
            status=status,
            judged=judged,
        )
        name = _("attempt {attempt}", attempt=attempt.attempt)
        paper.hang(f"  {words.padded(name, 12)}", text)


def _beside(data: ReportData, paper: _Paper) -> None:
    """The run over its baseline."""
    found = data.comparison
    if found is None:
        return
    paper.line()
    paper.hang(
        _("Baseline  "),
        _("{name}: {what}", name=baseline.title(found), what=baseline.headline(found)),
        lead="bold",
    )
    for row in baseline.rows(found):
        paper.hang(f"  {words.padded(row.name, 13)} ", baseline.line(row))
    if memory := baseline.memory(found):
        paper.hang(f"  {words.padded(_('memory'), 13)} ", memory)
    settings = baseline.counted(found)
    if found.differences:
        settings = _(
            "{name}: {what}", name=settings, what=baseline.first_differences(found, MAX_DIFFERENCES)
        )
    paper.hang(f"  {words.padded(_('configuration'), 13)} ", settings)
    for note in (baseline.out_of_memory(found), *baseline.notes(found)):
        if note:
            paper.hang("  ", note)


def _marked(data: ReportData, attempt: int) -> bool:
    return len(data.attempts) > 1 and attempt == data.judged_attempt


def _story(data: ReportData, paper: _Paper) -> None:
    """What broke first, of the whole run; the reports have it per attempt, with a timeline."""
    sentences = data.stories[0].sentences if data.stories else ()
    if not sentences:
        return
    paper.line()
    for number, sentence in enumerate(sentences):
        lead = words.padded(_("What broke  ") if number == 0 else "", 12)
        paper.hang(lead, cut(sentence, _MESSAGE), lead="bold")
    for note in data.clock_notes:
        paper.hang(" " * 12, note)


def _findings(data: ReportData, paper: _Paper) -> None:
    paper.line()
    paper.hang(_("Findings  "), words.counted(data.findings), lead="bold")
    found = words.alike(data.findings)
    for finding, others in found[:MAX_FINDINGS]:
        _finding(data, finding, others, paper)
    hidden = [finding for finding, _ in found[MAX_FINDINGS:]]
    if hidden:
        paper.line(
            _(
                "  {count} more: {counted} (the reports list them)",
                count=len(hidden),
                counted=words.counted(hidden),
            )
        )


def _finding(data: ReportData, finding: Finding, others: tuple[int, ...], paper: _Paper) -> None:
    style = _STYLES[words.SEVERITY_TONES[finding.severity]]
    paper.hang(
        f"  {words.padded(words.SEVERITY_WORDS[finding.severity], 8)} ",
        f"{finding.rule} {finding.name}",
        lead=style,
    )
    paper.hang("    ", cut(finding.message, _MESSAGE), style="bold")
    where = _("; ").join(_where(data, finding, others))
    if where:
        paper.hang("    ", where)
    ends = finding.evidence[:1] if finding.severity == "note" else _ends(finding.evidence)
    for place in ends:
        paper.hang(_("    at "), f"{place.file}:{place.line}", style="cyan")
        paper.literal("       | ", place.text, "dim")
    hidden = max(finding.evidence_total, len(finding.evidence)) - len(ends)
    if hidden > 0:
        paper.line(_("    and {many}", many=words.plural(hidden, "more line")))
    if fix := words.first_advice(finding.fix):  # the reports have all of it
        paper.hang(_("    fix: "), cut(fix, _MESSAGE), lead="bold")


def _suppressed(data: ReportData, paper: _Paper) -> None:
    """What a user accepts: one line each, and which file says so in any case."""
    found = list(suppressed.entries(data))
    if not found:
        return
    paper.line()
    paper.hang(_("Suppressed  "), suppressed.counted(data), lead="bold")
    for one in found[:MAX_SUPPRESSED]:
        where = _(" ({attempts})", attempts=one.attempts) if one.attempts else ""
        said = _(
            "{name}: {what}", name=f"{one.rule} {one.name}{where}", what=cut(one.reason, _MESSAGE)
        )
        paper.literal(f"  {words.padded(words.SEVERITY_WORDS[one.severity], 8)} ", said)
    if len(found) > MAX_SUPPRESSED:
        paper.line(
            _("  {count} more rules (the reports list them)", count=len(found) - MAX_SUPPRESSED)
        )


def _where(data: ReportData, finding: Finding, others: tuple[int, ...]) -> Iterator[str]:
    if len(data.attempts) > 1:
        also = _(", also attempt {ranges}", ranges=words.ranges(others)) if others else ""
        yield _("attempt {attempt}{also}", attempt=finding.attempt, also=also)
    if finding.iteration is not None:
        yield _("from iteration {iteration:,}", iteration=finding.iteration)
    if finding.ranks:
        yield words.ranks(finding.ranks)
    if finding.confidence != "high":
        yield words.CONFIDENCE_WORDS[finding.confidence]


def _ends(evidence: tuple[Location, ...]) -> tuple[Location, ...]:
    """The first lines and the last: what came first and how it ended."""
    if len(evidence) <= MAX_EVIDENCE:
        return evidence
    return (*evidence[: MAX_EVIDENCE - 1], evidence[-1])


def _next_steps(data: ReportData, paper: _Paper) -> None:
    steps = data.verdict.next_steps
    if not steps:
        return
    paper.line()
    paper.line(_("Next steps"), "bold")
    for number, step in enumerate(steps[:MAX_STEPS], start=1):
        paper.hang(f"  {number}. ", step)
    if len(steps) > MAX_STEPS:
        paper.line(_("  {count} more in the reports", count=len(steps) - MAX_STEPS))


def where_line(template: str, lang: Lang, /, **values: object) -> str:
    """What the command line says of its files, in the language of the summary."""
    with speaking(lang):
        return _(template, **values)


def health_line(data: ReportData) -> str:
    """Scan health in one line: what was read, and what was not."""
    health = data.health
    lines = "" if health.lines is None else _(" of {lines:,}", lines=health.lines)
    parts = [
        _(", ").join((words.plural(health.files, "file"), words.size(health.bytes))),
        _(
            "{recognised_lines:,}{lines} lines recognised",
            recognised_lines=health.recognised_lines,
            lines=lines,
        ),
    ]
    if health.unreadable:
        parts.append(_("{count} unreadable", count=len(health.unreadable)))
    if health.truncated:
        parts.append(_("{count} cut off", count=len(health.truncated)))
    if health.drift:
        parts.append(
            _("format drift in {count:,} lines", count=sum(drift.count for drift in health.drift))
        )
    if health.skipped:
        count = sum(skipped.count for skipped in health.skipped)
        parts.append(_("{many} skipped", many=words.plural(count, "other file")))
    if health.ranks_missing:
        parts.append(_("missing {ranks}", ranks=words.ranks(health.ranks_missing)))
    if data.redaction.hidden:
        parts.append(_("{many} hidden", many=words.plural(data.redaction.hidden, "secret")))
    if data.redaction.pseudonyms:
        parts.append(_("{many} replaced", many=words.plural(data.redaction.pseudonyms, "name")))
    return _("; ").join(parts)
