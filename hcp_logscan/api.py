"""scan() and Report: the whole thing from Python, in process."""

from __future__ import annotations

import html
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from hcp_logscan._version import __version__
from hcp_logscan.analysis.baseline import compare
from hcp_logscan.analysis.config import SOURCES
from hcp_logscan.analysis.facts import CONFIG_FACTS
from hcp_logscan.analysis.gpus import Stated, required
from hcp_logscan.analysis.run import Analysis, Options, examine
from hcp_logscan.analysis.skew import notes
from hcp_logscan.model.errors import HcpLogscanError, UsageError
from hcp_logscan.model.finding import MAX_TEXT, SEVERITIES, Location
from hcp_logscan.model.report import (
    REDACTION_LEVELS,
    AttemptData,
    ConfigEntry,
    JobRow,
    LossSpread,
    ReportData,
    RuleText,
    RunInfo,
    SeriesSummary,
    Spread,
)
from hcp_logscan.model.safe import one_line
from hcp_logscan.model.said import N_, Said, enter, remembering
from hcp_logscan.rules import suppress as suppressing
from hcp_logscan.rules.choose import select as select_rules
from hcp_logscan.rules.choose import with_params
from hcp_logscan.rules.formats import load_formats
from hcp_logscan.rules.judge import judge
from hcp_logscan.rules.levels import levels
from hcp_logscan.rules.load import load_rules
from hcp_logscan.sources import excerpt, settings
from hcp_logscan.sources.discover import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from hcp_logscan.analysis.attempt import AttemptAnalysis
    from hcp_logscan.engine.pool import Begun
    from hcp_logscan.engine.start import EngineName
    from hcp_logscan.model.comparison import Comparison
    from hcp_logscan.model.finding import (
        Evidence,
        Finding,
        Judgement,
        Suppressed,
        Suppression,
        Verdict,
    )
    from hcp_logscan.model.report import RedactionLevel
    from hcp_logscan.reporting.tongue import Lang
    from hcp_logscan.reporting.wishes import Wishes
    from hcp_logscan.rules.schema import Rule

_CP_KEYS: Final = (
    "context_parallel_size",
    "cp_comm_type",
    "hierarchical_context_parallel_sizes",
    "use_decentralized_pg",
    "seq_length",
)
"""Keys that stand first in a configuration table."""

_RULE_PAGES: Final = "https://github.com/hcp-logscan/hcp-logscan/blob/main/docs/rules/"
_FRAME_BASE: Final = '<head><base href="about:srcdoc">'


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a scan: data, tables, and the documents made from it.

    `verdict` and `findings` are the answers. `tables` and `facts` hold polars frames to look
    further; docs/python.md lists every column. `to_html()`, `to_markdown()`, `to_json()`,
    `to_sarif()` and `to_junit()` give each document as text. A notebook shows the HTML report.

    `data`, and with it every document, is redacted as `scan` was told. `facts` and `tables` stay
    what the logs say, secrets included: share documents and `data_with_tables()`, not tables.
    """

    data: ReportData
    "Everything that the documents show; `data.judgements` has what each rule came to."

    facts: Mapping[str, pl.DataFrame]
    """Fact tables by name, `attempts`, `iterations`, `failures` and `run`: what rules are written
    over. Null is what the logs do not show."""

    tables: Mapping[str, pl.DataFrame]
    """Event tables by name, each with the columns attempt, rank, file, line and text first; and
    `iterations` as the fact table: one row per logged iteration."""

    _whole: ReportData
    "With tables, and as the logs say it."

    _hosts: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether hierarchical context parallelism was on."""
        return self.data.verdict

    @property
    def suppressed(self) -> tuple[Suppressed, ...]:
        """Findings that are accepted, each with the reason: none of them is in `findings`."""
        return self.data.suppressed

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the rules found, worst first."""
        return self.data.findings

    def data_with_tables(self) -> ReportData:
        """`data` with `tables` in it, which are redacted alike: what `-o x.parquet` writes."""
        from hcp_logscan.reporting.redact import redact

        return redact(self._whole, self.data.redaction.level, self._hosts)

    def to_json(self) -> str:
        """The report as JSON (`schema` hcp-logscan/report/v1)."""
        from hcp_logscan.reporting.json import render_json

        return render_json(self.data)

    def to_html(self, *, charts: str = "interactive", lang: Lang = "en") -> str:
        """The report as one self-contained page; `charts="static"` leaves plotly.js out.

        `lang` is "en" or "zh". Raises UsageError for another one.
        """
        from hcp_logscan.reporting.html import render_html

        _known_language(lang)
        drawn: Literal["interactive", "static"] = "static" if charts == "static" else "interactive"
        return render_html(self.data, charts=drawn, lang=lang)

    def to_markdown(self, *, lang: Lang = "en") -> str:
        """The report as Markdown, short enough for a ticket; `lang` as in `to_html`."""
        from hcp_logscan.reporting.markdown import render_markdown

        _known_language(lang)
        return render_markdown(self.data, lang=lang)

    def to_sarif(self, wishes: Wishes | None = None) -> str:
        """The report as SARIF 2.1.0, for code scanning; `wishes` say when its exit code is 1."""
        from hcp_logscan.reporting.sarif import render_sarif

        return render_sarif(self.data, wishes)

    def to_junit(self, wishes: Wishes | None = None) -> str:
        """The report as JUnit XML, for CI; `wishes` say what fails, error findings by default."""
        from hcp_logscan.reporting.junit import render_junit

        return render_junit(self.data, wishes)

    def __repr__(self) -> str:
        """Run, verdict and number of findings on one line."""
        counts: dict[str, int] = dict.fromkeys(reversed(SEVERITIES), 0)
        for found in self.findings:
            counts[found.severity] += 1
        many = ", ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in counts.items())
        verdict = f"HCP {self.verdict.status} ({self.verdict.confidence} confidence)"
        return f"<Report {one_line(self.data.run.name)}: {verdict}; {many}>"

    def _repr_html_(self) -> str:
        """The report in a frame, for notebooks: static charts, no scripts, nothing loaded."""
        # Links within the page would otherwise lead to the notebook: a frame's text has its base.
        page = self.to_html(charts="static").replace("<head>", _FRAME_BASE, 1)
        return f'<iframe srcdoc="{html.escape(page)}" width="100%" height="720" sandbox></iframe>'


def _known_language(lang: str) -> None:
    from hcp_logscan.reporting.tongue import LANGS

    if lang not in LANGS:
        raise UsageError(f"lang is {lang!r}; known are {', '.join(LANGS)}.")


@contextmanager
def demo_run() -> Iterator[Path]:
    """The bundled run as a directory on disk, from a checkout as from a wheel.

    >>> with demo_run() as run_dir:
    ...     scan(run_dir).verdict.status
    'inactive'
    """
    with as_file(files("hcp_logscan") / "demo") as path:
        yield path


def scan(
    run_dir: str | PathLike[str],
    *,
    baseline: str | PathLike[str] | Analysis | None = None,
    rules: Sequence[str | PathLike[str]] = (),
    formats: Sequence[str | PathLike[str]] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    params: Mapping[str, Mapping[str, Any]] | None = None,
    world_size: int | None = None,
    gpu: str | None = None,
    precision: str | None = None,
    peak_tflops: float | None = None,
    job: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    rank_regex: str | None = None,
    suppress: Mapping[str, str] | Sequence[Suppression] = (),
    suppressions: bool = True,
    redact: RedactionLevel = "secrets",
    engine: EngineName = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    begun: Begun | None = None,
) -> Report:
    """Scan the logs of one run, in this process unless more `workers` are asked for.

    `run_dir` is a directory, a log file, an archive of logs, a URL of any of these, or `-` for
    standard input. `baseline` is a known good run to compare with, any of these, too, or what
    `read_baseline` made of one (docs/baseline.md). `rules` and `formats` are files or directories
    of further rules and line formats (docs/formats.md); `params` maps a rule id to the parameters
    it overrides; the other options are those of the command line. What the logs say goes before
    `world_size`, `gpu` and `precision`, those before `.hcp-logscan.toml` in the run directory.
    `peak_tflops` is the dense peak of one GPU at the precision of the run. `suppress` maps rules to
    reasons why their findings are accepted: these stand in `Report.suppressed`, as do those that
    `.hcp-logscan.toml` in the run directory suppresses, unless `suppressions` is False
    (docs/suppression.md). `redact` ("secrets",
    "all" or "none") says what `Report.data`, every document and every error message hide;
    `Report.tables` and `Report.facts` are never redacted. `workers` above 1 starts fresh
    interpreters, so a script needs the usual `if __name__ == "__main__":`. The engine "dask" has
    the workers of the cluster at `scheduler`, else as many processes as `workers` says, else one
    per CPU. `begun` is a scan that the command line began, with its formats.

    Raises HcpLogscanError: with `exit_code` 2 for a path, rule or option that cannot be used, with
    3 where nothing was understood.
    """
    from hcp_logscan.reporting.redact import redact as redacted
    from hcp_logscan.reporting.redact import redact_error

    if redact not in REDACTION_LEVELS:
        raise UsageError(f"redact is {redact!r}; known are {', '.join(REDACTION_LEVELS)}.")
    said = settings.checked(settings.Settings(world_size, gpu, precision, peak_tflops), "")
    every = load_rules([Path(path) for path in rules])
    known = with_params(every, dict(params or {}))
    chosen = select_rules(known, select=select, ignore=ignore)
    try:
        accepted = suppressing.stated(suppress, every)
    except UsageError as error:
        raise redact_error(error, redact) from None
    selection = Selection.of(include, exclude, rank_regex)
    if said.gpu is not None:
        required(said.gpu)
    stated = Stated(said.gpu, said.precision, said.peak_tflops)
    forms = load_formats([Path(path) for path in formats])
    options = Options(replace(selection, formats=forms), said.world_size, job, stated)
    if engine == "local":
        workers = workers or 1
    if baseline is not None and not isinstance(baseline, Analysis):
        baseline = read_baseline(
            baseline,
            formats=formats,
            rank_regex=rank_regex,
            redact=redact,
            engine=engine,
            workers=workers,
            scheduler=scheduler,
        )
    with remembering() as book:
        try:
            analysis = examine(
                run_dir, options, engine=engine, workers=workers, scheduler=scheduler, scan=begun
            )
            own = suppressing.known(analysis.suppress if suppressions else (), every)
        except HcpLogscanError as error:
            shown = redact_error(error, redact)
            if shown is error:
                raise
            raise shown from None
        comparison = None
        if baseline is not None:
            analysis, comparison = compare(analysis, baseline)
        judgements, findings = judge(chosen, analysis.facts, analysis.events)
        data = _report_data(analysis, comparison, judgements, findings)
        texts = _rule_texts(chosen)
        steps = levels(known, [found.facts for found in analysis.attempts])
    stay, aside = suppressing.apart(data.findings, accepted, own)
    data = replace(
        data,
        findings=stay,
        suppressed=aside,
        rules=texts,
        levels=steps,
        said=book,
    )
    tables = {**analysis.events, "iterations": analysis.facts["iterations"]}
    whole = replace(data, tables=tables)
    seen = redacted(data, redact, analysis.hosts)
    return Report(seen, analysis.facts, tables, whole, analysis.hosts)


def read_baseline(
    run_dir: str | PathLike[str],
    *,
    formats: Sequence[str | PathLike[str]] = (),
    rank_regex: str | None = None,
    redact: RedactionLevel = "secrets",
    engine: EngineName = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    begun: Begun | None = None,
) -> Analysis:
    """A known good run, read once to compare several runs with: for `scan(baseline=...)`.

    Its newest job counts. What its logs do not say is taken from `.hcp-logscan.toml` in its own
    directory, never from options about the run that is compared with it. Raises UsageError where
    it cannot be read or nothing in it is understood.
    """
    forms = load_formats([Path(path) for path in formats])
    selection = replace(Selection.of((), (), rank_regex), formats=forms)
    try:
        return examine(
            run_dir,
            Options(selection),
            engine=engine,
            workers=(workers or 1) if engine == "local" else workers,
            scheduler=scheduler,
            scan=begun,
        )
    except HcpLogscanError as error:
        raise unusable_baseline(error, redact) from None


def unusable_baseline(error: HcpLogscanError, redact: RedactionLevel) -> UsageError:
    """What is said of a baseline that cannot be read: it is the user who names it."""
    from hcp_logscan.reporting.redact import redact_text

    return UsageError(redact_text(f"the baseline cannot be used: {error}", redact))


def _rule_texts(chosen: Sequence[Rule]) -> tuple[RuleText, ...]:
    shipped = {rule.id for rule in load_rules()}
    for rule in chosen:
        if rule.zh is not None:
            for name in ("summary", "why", "fix"):
                text = getattr(rule, name)
                enter(text, Said(text, texts=(("zh", getattr(rule.zh, name)),)))
    return tuple(
        RuleText(
            rule.id,
            rule.name,
            rule.severity,
            rule.confidence,
            rule.summary,
            rule.why,
            rule.fix,
            rule.false_positives,
            rule.references,
            page=f"{_RULE_PAGES}{rule.id}.md" if rule.id in shipped else None,
        )
        for rule in chosen
    )


class _Excerpts:
    """Texts and neighbours of the lines that are shown, read again from the files."""

    def __init__(self, analysis: Analysis) -> None:
        self._paths = dict(zip(analysis.names, analysis.paths, strict=True))
        self._tables = [
            frame
            for frame in (*analysis.events.values(), analysis.facts["iterations"])
            if "offset" in frame.columns and frame.height
        ]

    def _offset(self, place: Location) -> int | None:
        for frame in self._tables:
            hit = frame.filter((pl.col("file") == place.file) & (pl.col("line") == place.line))
            if hit.height:
                return int(hit["offset"][0])
        return None

    def complete(self, place: Location) -> Location:
        """The place with its text and its neighbours, as far as they can be read."""
        path, offset = self._paths.get(place.file), self._offset(place)
        if path is None or offset is None:
            return replace(place, text=place.text[:MAX_TEXT])
        lines = excerpt.around(path, offset, place.line)
        own = next((text for number, text in lines if number == place.line), "")
        return replace(
            place,
            text=(place.text or own)[:MAX_TEXT],
            context=tuple((number, text[:MAX_TEXT]) for number, text in lines),
        )


def _completed(found: Finding, excerpts: _Excerpts) -> Finding:
    return replace(found, evidence=tuple(excerpts.complete(place) for place in found.evidence))


def _proven(verdict: Verdict, excerpts: _Excerpts) -> Verdict:
    def complete(piece: Evidence) -> Evidence:
        return replace(piece, location=excerpts.complete(piece.location))

    return replace(verdict, evidence=tuple(complete(piece) for piece in verdict.evidence))


def _report_data(
    analysis: Analysis,
    comparison: Comparison | None,
    judgements: tuple[Judgement, ...],
    findings: tuple[Finding, ...],
) -> ReportData:
    excerpts = _Excerpts(analysis)
    attempts = tuple(_attempt(a, excerpts, analysis.names) for a in analysis.attempts)
    judged = next(a for a in attempts if a.attempt == analysis.judged)
    facts = judged.facts
    series = analysis.facts["iterations"]
    return ReportData(
        tool_name="hcp-logscan",
        tool_version=__version__,
        run=RunInfo(
            name=analysis.name,
            job=analysis.job.name,
            world_size=facts["world_size"],
            gpu=facts["gpu"],
            precision=facts["precision"],
            framework=facts["framework"],
            baseline=comparison.name if comparison else None,
        ),
        verdict=judged.verdict,
        judged_attempt=judged.attempt,
        attempts=attempts,
        findings=tuple(_completed(found, excerpts) for found in findings),
        judgements=judgements,
        series=_summary(series),
        health=analysis.health,
        iterations=series,
        ranks=analysis.ranks,
        topology=next(a.topology for a in analysis.attempts if a.attempt == analysis.judged),
        jobs=_jobs(analysis),
        stories=analysis.stories,
        timeline=analysis.timeline,
        clocks=tuple(analysis.clocks.offsets.values()),
        clock_notes=notes(analysis.clocks),
        peak=next(a.peak for a in analysis.attempts if a.attempt == analysis.judged),
        comparison=comparison,
    )


def _jobs(analysis: Analysis) -> tuple[JobRow, ...]:
    if len(analysis.jobs) < 2:
        return ()
    return tuple(
        JobRow(job.name or N_("(no id)"), len(job.files), job.newest, judged=job is analysis.job)
        for job in reversed(analysis.jobs)
    )


def _attempt(found: AttemptAnalysis, excerpts: _Excerpts, names: Sequence[str]) -> AttemptData:
    facts = found.facts
    return AttemptData(
        attempt=found.attempt,
        verdict=_proven(found.verdict, excerpts),
        outcome=found.outcome,
        started=found.started,
        ended=found.ended,
        first_iteration=facts["first_iteration"],
        last_iteration=facts["last_iteration"],
        iterations=facts["iterations_finished"],
        config={name: facts[name] for name in CONFIG_FACTS},
        facts=facts,
        full_config=_full_config(found, names),
    )


def _full_config(found: AttemptAnalysis, names: Sequence[str]) -> tuple[ConfigEntry, ...]:
    entries = [
        ConfigEntry(block.source, section, key, value, names[place.file], place.line)
        for block in found.config.blocks
        for (section, key), (value, place) in block.values.items()
    ]

    def order(entry: ConfigEntry) -> tuple[int, int]:
        base = entry.key.rpartition(".")[2]
        first = _CP_KEYS.index(base) if base in _CP_KEYS else len(_CP_KEYS)
        return first, SOURCES.index(entry.source)

    return tuple(sorted(entries, key=order))


def _spread(column: pl.Series) -> Spread:
    numbers = column.drop_nulls().drop_nans()
    numbers = numbers.filter(numbers.is_finite())
    if not numbers.len():
        return Spread()
    low, high, middle = numbers.min(), numbers.max(), numbers.median()
    return Spread(*(float(str(number)) for number in (middle, low, high)))


def _summary(series: pl.DataFrame) -> SeriesSummary:
    losses = series["lm_loss"].drop_nulls()
    losses = losses.filter(losses.is_finite())
    return SeriesSummary(
        iterations=series.filter("finished").height,
        tflops_per_gpu=_spread(series["tflops_per_gpu"]),
        tokens_per_s_per_gpu=_spread(series["tokens_per_s_per_gpu"]),
        lm_loss=LossSpread(
            first=float(losses[0]) if losses.len() else None,
            last=float(losses[-1]) if losses.len() else None,
            min=float(str(losses.min())) if losses.len() else None,
        ),
        step_ms=_spread(series["step_ms"]),
    )
