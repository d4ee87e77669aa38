"""The command line: one command, no sub-commands to learn."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hcp_logscan._version import __version__
from hcp_logscan.cli import complete
from hcp_logscan.cli.gate import EXIT_CLEAN, EXIT_INTERRUPTED, EXIT_USAGE, FailOn, Gate
from hcp_logscan.cli.show import Charts, Language, Shown, complain, emit, printing
from hcp_logscan.model.errors import HcpLogscanError, UsageError
from hcp_logscan.model.finding import STATUSES
from hcp_logscan.model.report import MAX_WORLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from hcp_logscan.api import Report
    from hcp_logscan.cli.baseline import KnownGood
    from hcp_logscan.engine.pool import Begun
    from hcp_logscan.model.report import RedactionLevel
    from hcp_logscan.sources.discover import Discovered, Selection
    from hcp_logscan.sources.settings import Settings


class Precision(StrEnum):
    """Precision of the matrix products."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    FP4 = "fp4"
    FP32 = "fp32"


class Engine(StrEnum):
    """Where files are scanned."""

    LOCAL = "local"
    DASK = "dask"


class Redact(StrEnum):
    """What all outputs hide."""

    SECRETS = "secrets"
    ALL = "all"
    NONE = "none"


app: Final = typer.Typer(
    add_completion=False,  # no option for it; `cli.complete` has it all the same
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _words(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"hcp-logscan {__version__}")
        raise typer.Exit


def _print_needles(formats: Sequence[Path]) -> None:
    from hcp_logscan.parsers.registry import needles
    from hcp_logscan.rules.formats import load_formats

    for needle in needles(load_formats(formats)):
        typer.echo(needle.decode())


@app.command()
def run(
    run_dirs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN_DIR",
            help="Directory of one job's logs, a single log file, an archive (.tar, .tar.gz,"
            " .tar.zst, .zip), a URL of any of these (sftp://, s3:// …: extra remote), or - for"
            " standard input. Files may be compressed (.gz, .zst, .xz, .bz2). Several give a report"
            " each, and a table and reports/index.html of them, worst first.",
            show_default=False,
        ),
    ] = None,
    *,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="Write this report instead of the default reports/<run name>.html; the suffix"
            " picks the format: .html, .md, .json, .sarif, .xml (JUnit) or .parquet (a folder with"
            " a file per event table). With several RUN_DIRs a folder, which gets their reports"
            " and index.html instead of reports/. Repeatable.",
        ),
    ] = None,
    shown: Annotated[
        Shown,
        typer.Option(
            "-f",
            "--format",
            help="What standard output shows. json and md print only that, one document for all"
            " runs, and write no default report.",
        ),
    ] = Shown.TEXT,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN_DIR",
            help="Compare with this known good run (anything that RUN_DIR may be): speed, loss,"
            " gradient norm and configuration. One for all RUN_DIRs.",
        ),
    ] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATUS[,STATUS]",
            autocompletion=complete.statuses,
            help="Gate: exit 1 unless the verdict is one of these. active, unconfirmed, degenerate"
            " and not_requested also need a finished iteration and no error finding.",
        ),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="Findings of at least this severity make the exit code 1.")
    ] = FailOn.ERROR,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE[,RULE]",
            autocompletion=complete.rules,
            help="Run only these rules (ids or beginnings).",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE[,RULE]", autocompletion=complete.rules, help="Never run these rules."
        ),
    ] = None,
    rules: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Further rule file or directory. Repeatable."),
    ] = None,
    formats: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Further line formats: a file or directory (docs/formats.md). Repeatable.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="RULE.PARAM=VALUE", help="Override a rule's parameter."),
    ] = None,
    world_size: Annotated[
        int | None,
        typer.Option(
            min=1, max=MAX_WORLD, metavar="N", help="Number of ranks, where the logs do not say it."
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            envvar="HCP_LOGSCAN_GPU",
            metavar="NAME",
            help="The GPU, where the logs do not say it: H100, H200, B200, MI300X, ...",
        ),
    ] = None,
    precision: Annotated[
        Precision | None,
        typer.Option(help="Of the matrix products, where the logs do not say it."),
    ] = None,
    peak_tflops: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Dense peak of one GPU at the precision of the run, in TFLOP/s, for a GPU that"
            " is not in the table.",
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Judge this job of a directory that holds several."),
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Read only matching files.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Leave matching files out.")
    ] = None,
    rank_regex: Annotated[
        str | None,
        typer.Option(
            metavar="RE",
            help="How file names carry the global rank: the group 'rank', else the first group.",
        ),
    ] = None,
    no_suppressions: Annotated[
        bool,
        typer.Option(
            "--no-suppressions",
            help="Suppress no finding, whatever .hcp-logscan.toml of the run directory or the"
            " working directory and pyproject.toml say (docs/suppression.md).",
        ),
    ] = False,
    redact: Annotated[
        Redact,
        typer.Option(
            help="What all outputs hide, file names included: tokens, keys and passwords; besides"
            " them hosts, users, IP and e-mail addresses and home paths; or nothing."
        ),
    ] = Redact.SECRETS,
    engine: Annotated[
        Engine,
        typer.Option(help="Where files are scanned: on this machine, or by the workers of dask."),
    ] = Engine.LOCAL,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            metavar="N",
            help="Processes that scan; 1 scans in this one. Without it, small logs are scanned"
            " here and large ones by one process per CPU.",
            show_default=False,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDR",
            help="Scan on the dask cluster whose scheduler is at tcp://host:port; without it,"
            " --engine dask starts --workers processes.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Keep reading a live run and refresh the summary; stop at a finding that --fail-on"
            " names (those about how the log ends wait). Ctrl-C writes the report and ends.",
        ),
    ] = False,
    charts: Annotated[
        Charts,
        typer.Option(help="Charts of the HTML report; static keeps the file small."),
    ] = Charts.INTERACTIVE,
    lang: Annotated[
        Language,
        typer.Option(
            help="Language of the summary, of HTML, Markdown and the triage table. Log text, error"
            " messages and what other programs read (json, sarif, xml, parquet) are as they are."
        ),
    ] = Language.EN,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit 1 on format drift, unreadable files or truncated inputs."
        ),
    ] = False,
    list_rules: Annotated[
        bool, typer.Option("--list-rules", help="Print every rule and exit.")
    ] = False,
    list_needles: Annotated[
        bool,
        typer.Option(
            "--list-needles", help="Print the literal texts that are searched for and exit."
        ),
    ] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            autocompletion=complete.rule,
            help="Print a rule: what fires it, why, the fix; and exit.",
        ),
    ] = None,
    check_rules: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Check a file or directory of rules and formats, examples too; and exit.",
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Scan the bundled run, write its report and exit.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Tell from the logs of one LLM training job whether hierarchical context parallelism was on,
    whether its numbers and its loss are believable, and what broke first.

    Exit codes: 0 nothing at or above --fail-on; 1 findings at or above it, --expect not met, or
    --strict; 2 usage error; 3 nothing understood; 130 interrupted. Several runs: 2 if any is 2,
    else 1 if any is 1, else 3 if any is 3.
    """  # noqa: D205 - this is the help text
    with _interruptible():
        extra = tuple(rules or ())
        if list_rules:
            from hcp_logscan.cli.explain import print_rules

            print_rules(extra)
        elif list_needles:
            _print_needles(tuple(formats or ()))
        elif explain is not None:
            from hcp_logscan.cli.explain import print_rule

            print_rule(explain, extra)
        elif check_rules is not None:
            from hcp_logscan.cli.check_rules import check

            raise typer.Exit(check(check_rules))
        elif demo:
            from hcp_logscan.api import demo_run

            outputs = _outputs(output)
            with demo_run() as path:
                report = _scan(str(path), redact=redact.value)
            failed = emit(report, shown, outputs, Gate().wishes(charts.value, lang.value))
            raise typer.Exit(EXIT_USAGE if failed else EXIT_CLEAN)
        elif not run_dirs:
            raise UsageError("no RUN_DIR given. Try: hcp-logscan --demo, or hcp-logscan --help.")
        else:
            from hcp_logscan.cli.baseline import known_good
            from hcp_logscan.cli.triage import Wanted, distinct, folders, triage
            from hcp_logscan.sources.settings import Settings

            gate = Gate(_statuses(expect), fail_on, strict)
            selection = _selection(include or (), exclude or (), rank_regex, formats or ())
            runs = distinct(run_dirs)
            if engine is not Engine.LOCAL and (follow or len(runs) > 1):
                raise UsageError("--engine dask scans one RUN_DIR, once: without --follow.")
            scan_run = partial(
                _scan,
                baseline=known_good(
                    baseline,
                    runs,
                    selection,
                    engine=engine.value,
                    workers=workers,
                    scheduler=scheduler,
                    redact=redact.value,
                ),
                rules=extra,
                select=_words(select or ()),
                ignore=_words(ignore or ()),
                settings=tuple(settings or ()),
                said=Settings(world_size, gpu, precision, peak_tflops),
                job=job,
                selection=selection,
                suppressions=not no_suppressions,
                engine=engine.value,
                workers=workers,
                scheduler=scheduler,
                redact=redact.value,
            )
            if follow:
                from hcp_logscan.cli.follow import checked
                from hcp_logscan.cli.follow import follow as follow_run

                code = follow_run(
                    checked(runs),
                    scan_run,
                    gate,
                    shown,
                    _outputs(output),
                    charts,
                    selection=selection,
                    workers=workers,
                    redact=redact.value,
                    lang=lang.value,
                )
                raise typer.Exit(code)
            if len(runs) > 1:
                into = folders(output, shown)
                wanted = Wanted(gate, shown, into, charts, redact.value, lang.value)
                code = triage(runs, scan_run, wanted, selection=selection, workers=workers)
                raise typer.Exit(code)
            outputs = _outputs(output)
            report = scan_run(runs[0])
            failed = emit(report, shown, outputs, gate.wishes(charts.value, lang.value))
            code = gate.code(report)
            raise typer.Exit(EXIT_USAGE if failed else code)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends with the exit code of the contract; reports are written whole or not at all."""
    try:
        yield
    except KeyboardInterrupt:
        complain("interrupted; no partial report is left.")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _statuses(expect: Sequence[str] | None) -> tuple[str, ...]:
    words = _words(expect or ())
    for word in words:
        if word not in STATUSES:
            raise UsageError(f"--expect {word}: no such status. Known: {', '.join(STATUSES)}.")
    return words


def _selection(
    include: Sequence[str],
    exclude: Sequence[str],
    rank_regex: str | None,
    formats: Sequence[Path],
) -> Selection:
    from hcp_logscan.sources.discover import Selection

    selection = Selection.of(include, exclude, rank_regex)
    if not formats:
        return selection
    from hcp_logscan.rules.formats import load_formats

    return replace(selection, formats=load_formats(formats))


def _outputs(paths: Sequence[Path] | None) -> list[Path]:
    if not paths:
        return []
    from hcp_logscan.reporting.base import RENDERERS

    for path in paths:
        if path.suffix not in RENDERERS:
            known = ", ".join(sorted(RENDERERS))
            raise UsageError(f"-o {path}: the suffix picks the format; known are {known}.")
    return list(paths)


def _discovered(run_dir: str, selection: Selection, redact: RedactionLevel) -> Discovered:
    """The files of a run. Messages of errors quote names of files: they are redacted."""
    from hcp_logscan.sources.discover import discover

    try:
        return discover(run_dir, selection)
    except HcpLogscanError as error:
        from hcp_logscan.reporting.redact import redact_error

        raise redact_error(error, redact) from None


def _scan(
    run_dir: str,
    *,
    baseline: KnownGood | None = None,
    settings: Sequence[str] = (),
    said: Settings | None = None,
    suppressions: bool = True,
    engine: str = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    selection: Selection | None = None,
    redact: RedactionLevel = "secrets",
    running: Begun | None = None,
    **options: object,
) -> Report:
    """Scan with what the options say, then the run's own settings file, then the directory's.

    Workers are started before polars is imported, and scan while it is; `running` is a scan of the
    run that has begun already.
    """
    from hcp_logscan.cli.progress import watched
    from hcp_logscan.engine.start import started as begun
    from hcp_logscan.sources.discover import Selection
    from hcp_logscan.sources.settings import Settings, load

    if running is None:
        found = _discovered(run_dir, selection or Selection(), redact)
        started: AbstractContextManager[Begun] = watched(
            begun(found, engine=engine, workers=workers, scheduler=scheduler)
        )
    else:
        found, started = running.found, nullcontext(running)
    here = Settings() if said is None else load(Path.cwd())
    told = here.under(found.settings).under(said or Settings())
    with started as scanning:
        from hcp_logscan.api import scan
        from hcp_logscan.rules.choose import parse_settings

        return scan(
            run_dir,
            baseline=None if baseline is None else baseline.analysis(),
            params=parse_settings(settings),
            begun=scanning,
            redact=redact,
            suppress=here.suppress if suppressions else (),
            suppressions=suppressions,
            **told.hardware(),
            **options,  # type: ignore[arg-type]
        )


_LIBRARIES: Final = {
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:50,muzzy_decay_ms:0",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Environment of the libraries that are loaded later: polars' allocator gives memory back ten times
sooner than by default, which costs no time and saves a quarter; numpy does no linear algebra."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is returned, and the process ends with it."""
    code = EXIT_CLEAN
    for name, value in _LIBRARIES.items():
        os.environ.setdefault(name, value)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us: say it to nobody
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - until the end
    if isinstance(sys.stdout, io.TextIOWrapper):  # an ASCII terminal gets escapes, no traceback
        sys.stdout.reconfigure(errors="backslashreplace")
    complete.ready()
    try:
        with printing():
            app(args=list(arguments) if arguments is not None else None, prog_name="hcp-logscan")
    except HcpLogscanError as error:
        complain(str(error))
        code = error.exit_code
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else EXIT_CLEAN
    if arguments is None:
        sys.exit(code)
    return code
