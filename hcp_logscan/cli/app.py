"""The command line: one command, no sub-commands to learn."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hcp_logscan._version import __version__
from hcp_logscan.model.errors import HcpLogscanError, OutputError, UsageError
from hcp_logscan.model.finding import SEVERITIES, STATUSES
from hcp_logscan.model.report import MAX_WORLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hcp_logscan.api import Report
    from hcp_logscan.model.report import RedactionLevel
    from hcp_logscan.sources.discover import Selection
    from hcp_logscan.sources.settings import Settings

EXIT_CLEAN: Final = 0
EXIT_FINDINGS: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

_NEEDS_PROGRESS: Final = frozenset({"active", "unconfirmed", "degenerate", "not_requested"})
"""Statuses that `--expect` accepts only with a finished iteration and without an error finding."""


class Shown(StrEnum):
    """What standard output shows."""

    TEXT = "text"
    JSON = "json"
    MD = "md"
    NONE = "none"


class FailOn(StrEnum):
    """From which severity on findings make the exit code 1."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"
    NEVER = "never"


class Precision(StrEnum):
    """Precision of the matrix products."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    FP4 = "fp4"
    FP32 = "fp32"


class Charts(StrEnum):
    """Charts of the HTML report."""

    INTERACTIVE = "interactive"
    STATIC = "static"


class Redact(StrEnum):
    """What all outputs hide."""

    SECRETS = "secrets"
    NONE = "none"


app = typer.Typer(
    add_completion=False,
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


def _print_needles(value: bool) -> None:
    if value:
        from hcp_logscan.parsers.registry import needles

        for needle in needles():
            typer.echo(needle.decode())
        raise typer.Exit


@app.command()
def run(
    run_dir: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_DIR",
            help="Directory of one job's logs, a single log file, or - for standard input."
            " Files may be compressed (.gz, .zst, .xz, .bz2).",
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
            " picks the format: .html, .md or .json. Repeatable.",
        ),
    ] = None,
    shown: Annotated[
        Shown,
        typer.Option(
            "-f",
            "--format",
            help="What standard output shows. json and md print only that and write no default"
            " report.",
        ),
    ] = Shown.TEXT,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATUS[,STATUS]",
            help="Gate: exit 1 unless the verdict is one of these. active, unconfirmed, degenerate"
            " and not_requested also need a finished iteration and no error finding.",
        ),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="Findings of at least this severity make the exit code 1.")
    ] = FailOn.ERROR,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE[,RULE]", help="Run only these rules (ids or beginnings)."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="RULE[,RULE]", help="Never run these rules.")
    ] = None,
    rules: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Further rule file or directory. Repeatable."),
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
    redact: Annotated[
        Redact,
        typer.Option(
            help="What all outputs hide, file names included: tokens, keys and passwords, or"
            " nothing."
        ),
    ] = Redact.SECRETS,
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
    charts: Annotated[
        Charts,
        typer.Option(help="Charts of the HTML report; static keeps the file small."),
    ] = Charts.INTERACTIVE,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit 1 on format drift, unreadable files or truncated inputs."
        ),
    ] = False,
    list_rules: Annotated[
        bool, typer.Option("--list-rules", help="Print every rule and exit.")
    ] = False,
    _needles: Annotated[
        bool,
        typer.Option(
            "--list-needles",
            help="Print the literal texts that are searched for and exit.",
            callback=_print_needles,
            is_eager=True,
        ),
    ] = False,
    explain: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Print a rule: what fires it, why, the fix; and exit."),
    ] = None,
    check_rules: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Check a rule file or directory, examples too; and exit."
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
    --strict; 2 usage error; 3 nothing understood; 130 interrupted.
    """  # noqa: D205 - this is the help text
    with _interruptible():
        extra = tuple(rules or ())
        if list_rules:
            from hcp_logscan.cli.explain import print_rules

            print_rules(extra)
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
                failed = _emit(_scan(str(path), redact=redact.value), shown, outputs, charts)
            raise typer.Exit(EXIT_USAGE if failed else EXIT_CLEAN)
        elif run_dir is None:
            raise UsageError("no RUN_DIR given. Try: hcp-logscan --demo, or hcp-logscan --help.")
        else:
            from hcp_logscan.sources.discover import Selection
            from hcp_logscan.sources.settings import Settings

            statuses = _statuses(expect)
            outputs = _outputs(output)
            report = _scan(
                run_dir,
                rules=extra,
                select=_words(select or ()),
                ignore=_words(ignore or ()),
                settings=tuple(settings or ()),
                said=Settings(world_size, gpu, precision, peak_tflops),
                job=job,
                selection=Selection.of(include or (), exclude or (), rank_regex),
                workers=workers,
                redact=redact.value,
            )
            failed = _emit(report, shown, outputs, charts)
            code = _exit_code(report, statuses, fail_on, strict=strict)
            raise typer.Exit(EXIT_USAGE if failed else code)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends with the exit code of the contract; reports are written whole or not at all."""
    try:
        yield
    except KeyboardInterrupt:
        _complain("interrupted; no report was written.")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _statuses(expect: Sequence[str] | None) -> tuple[str, ...]:
    words = _words(expect or ())
    for word in words:
        if word not in STATUSES:
            raise UsageError(f"--expect {word}: no such status. Known: {', '.join(STATUSES)}.")
    return words


def _outputs(paths: Sequence[Path] | None) -> list[Path]:
    from hcp_logscan.reporting.base import RENDERERS

    for path in paths or ():
        if path.suffix not in RENDERERS:
            known = ", ".join(sorted(RENDERERS))
            raise UsageError(f"-o {path}: the suffix picks the format; known are {known}.")
    return list(paths or ())


def _scan(
    run_dir: str,
    *,
    settings: Sequence[str] = (),
    said: Settings | None = None,
    workers: int | None = None,
    selection: Selection | None = None,
    redact: RedactionLevel = "secrets",
    **options: object,
) -> Report:
    """Scan with what the options say, then the run's own settings file, then the directory's.

    Workers are started before polars is imported, and scan while it is.
    """
    from hcp_logscan.engine.pool import begun, workers_for
    from hcp_logscan.sources.discover import Selection, discover
    from hcp_logscan.sources.settings import Settings, load, of_run

    told = Settings() if said is None else load(Path.cwd()).under(of_run(run_dir)).under(said)
    try:
        found = discover(run_dir, selection or Selection())
    except HcpLogscanError as error:
        from hcp_logscan.reporting.redact import redact_text

        raise type(error)(redact_text(str(error), redact)) from None  # it quotes names of files
    with begun(found, workers_for(found, workers)) as running:
        from hcp_logscan.api import scan
        from hcp_logscan.rules.choose import parse_settings

        return scan(
            run_dir,
            params=parse_settings(settings),
            begun=running,
            redact=redact,
            **asdict(told),
            **options,  # type: ignore[arg-type]
        )


def _emit(report: Report, shown: Shown, outputs: Sequence[Path], charts: Charts) -> bool:
    """Print, then write; True if a report could not be written."""
    from hcp_logscan.cli.write import default_path, write_report

    if shown is Shown.JSON:
        _print(report.to_json())
    elif shown is Shown.MD:
        _print(report.to_markdown())
    elif shown is Shown.TEXT:
        _print_summary(report)
    failed = False
    written: list[Path] = []
    for path in outputs:
        try:
            write_report(report.data, path, charts=charts.value)
            written.append(path)
        except HcpLogscanError as error:
            _complain(str(error))
            failed = True
    if not outputs and shown in {Shown.TEXT, Shown.NONE}:
        try:
            path = default_path(Path("reports"), report.data.run.name)
            write_report(report.data, path, charts=charts.value)
            written.append(path)
        except HcpLogscanError as error:
            _complain(str(error))
            failed = True
    if shown is Shown.TEXT:
        for path in written:
            typer.echo(f"Report: {path}")
    return failed


def _print(text: str) -> None:
    """Print a whole document. Raises OutputError where standard output takes no more."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - the exit would flush it again
        raise OutputError(f"cannot write standard output: {error.strerror}.") from error


def _print_summary(report: Report) -> None:
    from rich.console import Console

    from hcp_logscan.reporting.text import print_text

    console = Console(
        highlight=False,
        soft_wrap=False,
        width=None if sys.stdout.isatty() else 100,
        no_color=True if os.environ.get("NO_COLOR") else None,
    )
    print_text(report.data, console)


def _complain(message: str) -> None:
    typer.echo(f"hcp-logscan: {message}", err=True)


def _exit_code(report: Report, statuses: Sequence[str], fail_on: FailOn, *, strict: bool) -> int:
    data = report.data
    reasons: list[str] = []
    if fail_on is not FailOn.NEVER:
        least = SEVERITIES.index(fail_on.value)
        if any(SEVERITIES.index(found.severity) >= least for found in data.findings):
            reasons.append("findings")
    if statuses and not _met(report, statuses):
        reasons.append("expect")
        _complain(
            f"--expect {','.join(statuses)} is not met: the verdict is {data.verdict.status}"
            f" with {data.series.iterations} finished iterations and"
            f" {sum(found.severity == 'error' for found in data.findings)} error findings."
        )
    health = data.health
    if strict and (health.drift or health.unreadable or health.truncated):
        reasons.append("strict")
        _complain("--strict: " + "; ".join(_troubles(report)) + ".")
    return EXIT_FINDINGS if reasons else EXIT_CLEAN


def _troubles(report: Report) -> Iterator[str]:
    health = report.data.health
    for name, entries in (
        ("lines of unknown format", health.drift),
        ("unreadable files", health.unreadable),
        ("truncated inputs", health.truncated),
    ):
        if entries:
            yield f"{len(entries)} {name}"


def _met(report: Report, statuses: Sequence[str]) -> bool:
    status = report.verdict.status
    if status not in statuses:
        return False
    if status not in _NEEDS_PROGRESS:
        return True
    errors = any(found.severity == "error" for found in report.findings)
    return bool(report.data.series.iterations) and not errors


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is returned, and the process ends with it."""
    code = EXIT_CLEAN
    if isinstance(sys.stdout, io.TextIOWrapper):  # an ASCII terminal gets escapes, no traceback
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(args=list(arguments) if arguments is not None else None, prog_name="hcp-logscan")
    except HcpLogscanError as error:
        _complain(str(error))
        code = error.exit_code
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else EXIT_CLEAN
    if arguments is None:
        sys.exit(code)
    return code
