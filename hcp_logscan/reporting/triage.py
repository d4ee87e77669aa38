"""Several runs on one page: a row each, worst first, as text, Markdown, JSON and HTML.

A run that could not be judged is a row, too: what is missing from a table is not looked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from hcp_logscan._version import __version__
from hcp_logscan.model.finding import SEVERITIES
from hcp_logscan.model.markdown import code, escaped
from hcp_logscan.model.said import N_
from hcp_logscan.reporting import suppressed, words
from hcp_logscan.reporting.html import render_plain
from hcp_logscan.reporting.json import document, dumps
from hcp_logscan.reporting.safe import cut, one_line
from hcp_logscan.reporting.tongue import _, speaking
from hcp_logscan.reporting.translate import translate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from hcp_logscan.model.finding import Finding, Status
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.tongue import Lang
    from hcp_logscan.reporting.words import Tone

TRIAGE_SCHEMA: Final = "hcp-logscan/triage/v1"

NOT_JUDGED: Final = N_("no report")
"""Stands where a run has no verdict."""

_CODES: Final = (1, 2, 3, 0)
"""Exit codes, worst first: findings, a run that cannot be read, nothing understood, fine."""

_STATUSES: Final[tuple[Status, ...]] = (
    "inactive",
    "mixed",
    "rejected",
    "degenerate",
    "inconclusive",
    "unconfirmed",
    "not_requested",
    "active",
)
"""Worst first, to order runs that are alike in everything else."""

_RANKS: Final = 3
"""Ranges of culprit ranks in a cell."""

_MESSAGE: Final = 300
"Characters of a message; the report has all of it."

_STYLES: Final[Mapping[Tone, str]] = {
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "calm": "cyan",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the table."""

    name: str
    "Unique in the table."

    argument: int
    "Which RUN_DIR of the command line it is, from 1."

    exit_code: int
    status: Status | None = None
    "None where there is no report."

    confidence: str = ""
    finding: Finding | None = None
    "The worst."

    errors: int = 0
    counted: str = ""
    "Findings by severity, in words."

    iterations: int | None = None
    tflops: float | None = None
    "Median TFLOP/s/GPU; None where it was not logged."

    ranks: tuple[int, ...] = ()
    "Culprits that the worst finding with culprits names."

    error: str = ""
    "Why there is no report."

    suppressed: str = ""
    "How many findings were suppressed, and by which file; empty where none was."

    link: str = ""
    "File name of the report, beside the index; empty where none was written."


def judged(
    data: ReportData,
    name: str,
    argument: int,
    exit_code: int,
    link: str = "",
    lang: Lang = "en",
) -> Row:
    """The row of a run with a report."""
    with speaking(lang):
        return _judged(translate(data, lang), name, argument, exit_code, link)


def _judged(data: ReportData, name: str, argument: int, exit_code: int, link: str) -> Row:
    findings = data.findings
    return Row(
        name=name,
        argument=argument,
        exit_code=exit_code,
        status=data.verdict.status,
        confidence=data.verdict.confidence,
        finding=findings[0] if findings else None,
        errors=sum(found.severity == "error" for found in findings),
        counted=words.counted(findings),
        iterations=data.series.iterations,
        tflops=data.series.tflops_per_gpu.median,
        ranks=next((found.ranks for found in findings if found.ranks), ()),
        suppressed=suppressed.counted(data),
        link=link,
    )


def exit_code(codes: Iterable[int]) -> int:
    """That of a call with several runs.

    >>> exit_code([0, 3, 1]), exit_code([0, 3]), exit_code([0, 0]), exit_code([1, 2])
    (1, 3, 0, 2)
    """
    found = set(codes)
    return next((one for one in (2, 1, 3) if one in found), 0)


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """By exit code, worst finding, verdict and number of errors; else as they were given."""

    def order(row: Row) -> tuple[int, int, int, int, int]:
        severity = -1 if row.finding is None else SEVERITIES.index(row.finding.severity)
        status = -1 if row.status is None else _STATUSES.index(row.status)
        return _CODES.index(row.exit_code), -severity, status, -row.errors, row.argument

    return sorted(rows, key=order)


def triage_document(rows: Sequence[tuple[Row, ReportData | None]]) -> str:
    """All reports as one JSON document (`schema` hcp-logscan/triage/v1)."""
    return dumps(
        {
            "schema": TRIAGE_SCHEMA,
            "tool": {"name": "hcp-logscan", "version": __version__},
            "exit_code": exit_code(row.exit_code for row, _ in rows),
            "runs": [
                {
                    "name": row.name,
                    "argument": row.argument,
                    "exit_code": row.exit_code,
                    "error": row.error or None,
                    "report": None if data is None else document(data),
                }
                for row, data in rows
            ],
        }
    )


def summary(rows: Sequence[Row]) -> str:
    """`3 runs: 1 failed the gate, 1 not understood, 1 passed`."""
    return _(
        "{name}: {what}", name=words.plural(len(rows), "run"), what=_(", ").join(_counts(rows))
    )


def _counts(rows: Sequence[Row]) -> list[str]:
    codes = Counter(row.exit_code for row in rows)
    named = (
        (1, _("failed the gate")),
        (2, _("cannot be read")),
        (3, _("not understood")),
        (0, _("passed")),
    )
    return [_("{count} {what}", count=codes[one], what=what) for one, what in named if codes[one]]


def _verdict(row: Row) -> str:
    return _(NOT_JUDGED) if row.status is None else words.STATUS_WORDS[row.status][0].lower()


def _tone(row: Row) -> Tone:
    return "warn" if row.status is None else words.STATUS_WORDS[row.status][2]


def _iterations(row: Row) -> str:
    return "" if row.iterations is None else f"{row.iterations:,}"


def _tflops(row: Row) -> str:
    return "" if row.tflops is None else words.fixed(row.tflops)


def _ranks(row: Row) -> str:
    return words.ranges(row.ranks, _RANKS) if row.ranks else ""


def _unread(rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if row.error)


def print_triage(rows: Sequence[Row], console: Console, *, lang: Lang = "en") -> None:
    """The table for a terminal; names and findings wrap, so that 80 columns do."""
    with speaking(lang):
        _print(rows, console)


def _print(rows: Sequence[Row], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(_("run"), overflow="fold")
    table.add_column("HCP", no_wrap=True)
    table.add_column(_("worst finding"), overflow="fold")
    table.add_column(_("iter."), justify="right", no_wrap=True)
    table.add_column("TFLOP/s", justify="right", no_wrap=True)
    table.add_column("rank", overflow="fold", max_width=12)
    table.add_column(_("exit"), justify="right", no_wrap=True)
    for row in rows:
        found = row.finding
        worst = Text("" if row.status is None else _("none"))
        if found is not None:
            tone = words.SEVERITY_TONES[found.severity]
            worst = Text.assemble(
                (words.SEVERITY_WORDS[found.severity], _STYLES[tone]), f" {found.rule}"
            )
        table.add_row(
            Text(one_line(row.name)),
            Text(_verdict(row), style=_STYLES[_tone(row)]),
            worst,
            _iterations(row),
            _tflops(row),
            _ranks(row),
            str(row.exit_code),
        )
    console.print(Text(summary(rows), style="bold"))
    console.print(table, highlight=False, markup=False, emoji=False)
    for row in rows:
        if row.suppressed:
            body = Text(
                _(
                    "{name}: suppressed {what}",
                    name=one_line(row.name),
                    what=one_line(row.suppressed),
                )
            )
            console.print(body, highlight=False, markup=False, emoji=False)
    for row in _unread(rows):
        body = Text(f"{one_line(row.name)}: {one_line(row.error)}")
        console.print(body, highlight=False, markup=False, emoji=False)


def triage_markdown(rows: Sequence[Row], *, lang: Lang = "en") -> str:
    """The table as Markdown."""
    with speaking(lang):
        return _markdown(rows)


def _markdown(rows: Sequence[Row]) -> str:
    head = (
        _("run"),
        "HCP",
        _("worst finding"),
        _("iterations"),
        "TFLOP/s/GPU",
        "rank",
        _("exit code"),
    )
    lines = [
        f"## {summary(rows)}",
        "",
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
    ]
    unread = [
        f"- {escaped(row.name)}: {escaped(cut(row.error, _MESSAGE))}" for row in _unread(rows)
    ]
    aside = [
        _(
            "- {name}: suppressed {what}",
            name=escaped(row.name),
            what=escaped(cut(row.suppressed, _MESSAGE)),
        )
        for row in rows
        if row.suppressed
    ]
    notes = [*aside, *unread]
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def _cells(row: Row) -> Iterator[str]:
    yield escaped(row.name)
    yield f"**{_verdict(row)}**"
    found = row.finding
    yield (
        ""
        if found is None
        else f"**{words.SEVERITY_WORDS[found.severity]}** {code(found.rule)} {escaped(found.name)}"
    )
    yield _iterations(row)
    yield _tflops(row)
    yield _ranks(row)
    yield str(row.exit_code)


def triage_index(rows: Sequence[Row], *, lang: Lang = "en") -> str:
    """The table as a page that links to the reports beside it."""
    with speaking(lang):
        return _index(rows)


def _index(rows: Sequence[Row]) -> str:
    return render_plain(
        "triage.html.j2",
        {
            "title": summary(rows),
            "runs": words.plural(len(rows), "run"),
            "counts": _counts(rows),
            "rows": [_view(row) for row in rows],
            "tool": f"hcp-logscan {__version__}",
        },
    )


def _view(row: Row) -> dict[str, Any]:
    found = row.finding
    return {
        "name": row.name,
        "link": quote(row.link),
        "verdict": _verdict(row),
        "tone": _tone(row),
        "confidence": row.confidence and words.LEVEL_WORDS[row.confidence],
        "severity": "" if found is None else words.SEVERITY_WORDS[found.severity],
        "severity_tone": "" if found is None else words.SEVERITY_TONES[found.severity],
        "finding": "" if found is None else f"{found.rule} {found.name}",
        "message": cut(row.error if found is None else found.message, _MESSAGE),
        "counted": row.counted,
        "suppressed": row.suppressed,
        "iterations": _iterations(row),
        "tflops": _tflops(row),
        "ranks": _ranks(row),
        "exit_code": row.exit_code,
    }
