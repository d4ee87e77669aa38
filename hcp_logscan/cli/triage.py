"""Several RUN_DIRs: one report each, and one table and index of them, worst first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import typer

from hcp_logscan.cli import progress
from hcp_logscan.cli.gate import EXIT_USAGE
from hcp_logscan.cli.show import (
    REPORTS,
    Shown,
    complain,
    console,
    print_document,
    printed,
    printing,
)
from hcp_logscan.cli.write import default_path, write_report, write_whole
from hcp_logscan.engine.pool import begun_each, workers_for_all
from hcp_logscan.model.errors import HcpLogscanError, RuleError, UsageError
from hcp_logscan.model.said import N_
from hcp_logscan.sources import reader
from hcp_logscan.sources.discover import discover, run_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hcp_logscan.api import Report
    from hcp_logscan.cli.gate import Gate
    from hcp_logscan.cli.show import Charts
    from hcp_logscan.engine.pool import Begun
    from hcp_logscan.model.report import RedactionLevel, ReportData
    from hcp_logscan.reporting.tongue import Lang
    from hcp_logscan.reporting.triage import Row
    from hcp_logscan.sources.discover import Discovered, Selection

INDEX: Final = "index"
TABLES: Final = ".parquet"
"""Suffix of a report that is a folder itself."""


class ScanRun(Protocol):
    """Scans one run as the options say; `running` is a scan of it that has begun."""

    def __call__(self, run_dir: str, *, running: Begun | None) -> Report:
        """Raise HcpLogscanError where there is no report."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What becomes of the reports."""

    gate: Gate
    shown: Shown
    folders: tuple[Path, ...]
    "Where reports and index go besides standard output."

    charts: Charts
    redact: RedactionLevel
    lang: Lang = "en"


def distinct(run_dirs: Iterable[str]) -> list[str]:
    """Each run once, as it was named first: patterns of a shell overlap.

    >>> distinct(["a", "b", "a/"])
    ['a', 'b']
    """
    found: dict[Path | str, str] = {}
    for run_dir in run_dirs:
        found.setdefault(_real(run_dir), run_dir)
    return list(found.values())


def _real(run_dir: str) -> Path | str:
    try:
        return run_dir if run_dir == reader.STDIN else Path(run_dir).resolve()
    except (OSError, ValueError, RuntimeError):  # no path, or links in a circle: discovery says so
        return run_dir


def _name(run_dir: str) -> str:
    """Name of a run that was not found."""
    real = _real(run_dir)
    return run_name(real) if isinstance(real, Path) else run_dir


def folders(outputs: Sequence[Path] | None, shown: Shown) -> tuple[Path, ...]:
    """Where the reports go. Raises UsageError for what is, or looks like, a single file."""
    for path in outputs or ():
        if path.suffix == TABLES or (not path.is_dir() and (path.suffix or path.exists())):
            raise UsageError(
                f"-o {path}: with several RUN_DIRs name a folder, which gets a report per run and"
                " index.html. -f json and -f md print one document of all runs."
            )
    if outputs:
        return tuple(dict.fromkeys(outputs))
    return (REPORTS,) if shown in {Shown.TEXT, Shown.NONE} else ()


def triage(
    run_dirs: Sequence[str],
    scan_run: ScanRun,
    wanted: Wanted,
    *,
    selection: Selection,
    workers: int | None,
) -> int:
    """Scan every run, print the table, write reports and index; the exit code.

    A run that cannot be read is a row, and the others go on. Raises RuleError, which is about all
    of them, and UsageError where it is the same for each.
    """
    from hcp_logscan.reporting.redact import redact_error

    found, failed = _discovered(run_dirs, selection)
    book = _Book(wanted)
    runs = list(found.values())
    with begun_each(runs, workers_for_all(runs, workers)) as scans, progress.shown(runs) as tell:
        for argument, run_dir in enumerate(run_dirs, start=1):
            if argument in found:
                try:
                    book.enter(argument, scan_run(run_dir, running=replace(next(scans), tell=tell)))
                    continue
                except RuleError:
                    raise
                except HcpLogscanError as error:
                    failed[argument] = error
            failed[argument] = redact_error(failed[argument], wanted.redact)
            name = found[argument].name if argument in found else _name(run_dir)
            book.refuse(argument, name, failed[argument])
    said = {str(error) for error in failed.values() if isinstance(error, UsageError)}
    if len(failed) == len(run_dirs) and len(said) == 1:
        raise UsageError(said.pop())
    return book.close(run_dirs)


def _discovered(
    run_dirs: Sequence[str], selection: Selection
) -> tuple[dict[int, Discovered], dict[int, HcpLogscanError]]:
    """The files of every run, and why there are none, by the number of the argument."""
    found: dict[int, Discovered] = {}
    failed: dict[int, HcpLogscanError] = {}
    for argument, run_dir in enumerate(run_dirs, start=1):
        try:
            found[argument] = discover(run_dir, selection)
        except HcpLogscanError as error:
            failed[argument] = error
    return found, failed


class _Book:
    """The rows so far. Reports are written as they come, and kept only for `-f json`."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._rows: list[tuple[Row, ReportData | None]] = []
        self._names: set[str] = set()
        self._clashed: dict[str, int] = {}
        self._indexes = [default_path(folder, INDEX) for folder in wanted.folders]
        self._taken = {str(path).casefold() for path in self._indexes}
        self._failed = False

    def enter(self, argument: int, report: Report) -> None:
        """A run with a report."""
        from hcp_logscan.reporting.triage import judged

        name = self._named(report.data.run.name, argument)
        code = self._wanted.gate.code(report, name)
        links = [self._written(report, folder, name) for folder in self._wanted.folders]
        row = judged(
            report.data, name, argument, code, next(filter(None, links), ""), self._wanted.lang
        )
        self._rows.append((row, report.data if self._wanted.shown is Shown.JSON else None))

    def refuse(self, argument: int, name: str, error: HcpLogscanError) -> None:
        """A run without one; the error tells no secret."""
        from hcp_logscan.reporting.redact import redact_text
        from hcp_logscan.reporting.triage import Row

        name = self._named(redact_text(name, self._wanted.redact), argument)
        self._rows.append((Row(name, argument, error.exit_code, error=str(error)), None))

    def _named(self, name: str, argument: int) -> str:
        """The name, with a number where an earlier run has it."""
        unique, number = name, 2
        while unique.casefold() in self._names:
            unique, number = f"{name}-{number}", number + 1
        self._names.add(unique.casefold())
        if unique != name:
            self._clashed[unique] = argument
        return unique

    def _written(self, report: Report, folder: Path, name: str) -> str:
        """File name of the report in this folder; empty if it could not be written."""
        path = default_path(folder, name, self._taken)
        self._taken.add(str(path).casefold())
        try:
            write_report(
                report, path, self._wanted.gate.wishes(self._wanted.charts.value, self._wanted.lang)
            )
        except HcpLogscanError as error:
            complain(str(error))
            self._failed = True
            return ""
        return path.name

    def close(self, run_dirs: Sequence[str]) -> int:
        """Print the table and write the index; the exit code."""
        from hcp_logscan.reporting import triage as table
        from hcp_logscan.reporting.text import where_line

        rows = table.worst_first(row for row, _ in self._rows)
        self._failed |= not printed(lambda: self._print(rows, run_dirs))
        for path in self._indexed(rows):
            if self._wanted.shown is Shown.TEXT:
                typer.echo(where_line(N_("Reports: {path}"), self._wanted.lang, path=path))
        code = table.exit_code(row.exit_code for row in rows)
        return EXIT_USAGE if self._failed else code

    def _print(self, rows: Sequence[Row], run_dirs: Sequence[str]) -> None:
        """What standard output shows. Raises OutputError."""
        from hcp_logscan.reporting import triage as table

        kept = {row.argument: data for row, data in self._rows}
        shown = self._wanted.shown
        if shown is Shown.JSON:
            print_document(table.triage_document([(row, kept[row.argument]) for row in rows]))
        elif shown is Shown.MD:
            print_document(table.triage_markdown(rows, lang=self._wanted.lang))
        elif shown is Shown.TEXT:
            with printing():
                table.print_triage(rows, console(), lang=self._wanted.lang)
                self._tell_apart(run_dirs)

    def _tell_apart(self, run_dirs: Sequence[str]) -> None:
        from hcp_logscan.model.safe import one_line
        from hcp_logscan.reporting.redact import redact_text
        from hcp_logscan.reporting.text import where_line

        for name, argument in self._clashed.items():
            path = redact_text(run_dirs[argument - 1], self._wanted.redact)
            said = where_line(
                N_("{name} is {path}"),
                self._wanted.lang,
                name=one_line(name),
                path=one_line(path),
            )
            typer.echo(said)

    def _indexed(self, rows: Sequence[Row]) -> Iterator[Path]:
        """Write an index into every folder; those that could be written."""
        from hcp_logscan.reporting.triage import triage_index

        for path in self._indexes:
            try:
                write_whole(path, triage_index(rows, lang=self._wanted.lang))
            except HcpLogscanError as error:
                complain(str(error))
                self._failed = True
            else:
                yield path
