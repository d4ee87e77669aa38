"""What the copy buttons of the page hand out: summary, findings, and the rerun recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hcp_logscan.model.markdown import code, escaped
from hcp_logscan.reporting import tongue, words
from hcp_logscan.reporting.markdown import MAX_EVIDENCE, fenced, located, prose, render_markdown
from hcp_logscan.reporting.recipe import shell
from hcp_logscan.reporting.safe import cut
from hcp_logscan.reporting.tongue import _
from hcp_logscan.reporting.view.findings import MAX_FINDINGS, anchor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.model.finding import Finding
    from hcp_logscan.model.report import ReportData

_NAME: Final = 200
_MESSAGE: Final = 1_000


def copies(data: ReportData) -> dict[str, str]:
    """Key of a button -> its text: `summary`, `recipe` where there is one, anchors of findings."""
    found = {"summary": render_markdown(data, lang=tongue.lang())}
    if recipe := shell(data.verdict.next_steps):
        found["recipe"] = recipe
    shown = data.findings[:MAX_FINDINGS]
    return found | {anchor(finding): finding_markdown(data, finding) for finding in shown}


def finding_markdown(data: ReportData, finding: Finding) -> str:
    """One finding as Markdown for a ticket: message, first lines of evidence, what to do."""
    return "\n\n".join(_blocks(data, finding)) + "\n"


def _blocks(data: ReportData, finding: Finding) -> Iterator[str]:
    name = escaped(cut(data.run.name, _NAME))
    traits = (
        _("attempt {attempt}", attempt=finding.attempt) if len(data.attempts) > 1 else "",
        ""
        if finding.iteration is None
        else _("from iteration {iteration:,}", iteration=finding.iteration),
        words.ranks(finding.ranks),
        words.CONFIDENCE_WORDS[finding.confidence],
    )
    yield f"### {code(finding.rule)} {escaped(cut(finding.name, _NAME))}"
    yield f"**{words.SEVERITY_WORDS[finding.severity]}** {escaped(cut(finding.message, _MESSAGE))}"
    yield _("{name}: {what}", name=name, what=escaped(_(", ").join(filter(None, traits))))
    if finding.evidence:
        yield fenced(located(place) for place in finding.evidence[:MAX_EVIDENCE])
    total = max(finding.evidence_total, len(finding.evidence))
    if total > MAX_EVIDENCE:
        yield _("{many} of evidence.", many=words.plural(total - MAX_EVIDENCE, "more line"))
    if finding.fix.strip():
        yield _("**What to do**")
        yield from (_paragraph(text) for text in words.paragraphs(finding.fix))


def _paragraph(text: str) -> str:
    """A paragraph, or an item of a list, which stays one."""
    return f"- {prose(text[2:])}" if text.startswith("- ") else prose(text)
