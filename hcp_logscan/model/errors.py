"""Errors that speak to the user. Each knows its exit code; the command line has the one `try`."""

from __future__ import annotations


class HcpLogscanError(Exception):
    """Base of every error this package raises on purpose.

    `exit_code` is what the command line returns for it (see the table in README.md).
    """

    exit_code = 2


class UsageError(HcpLogscanError):
    """An option or a path that cannot be used as given."""


class SourceError(HcpLogscanError):
    """The run directory cannot be read at all."""


class EngineError(HcpLogscanError):
    """Workers that cannot be used, or that were lost."""


class RuleError(HcpLogscanError):
    """A rule file that cannot be loaded or that fails its own examples."""


class OutputError(HcpLogscanError):
    """A report that cannot be written. The summary is printed all the same."""


class NothingUnderstoodError(HcpLogscanError):
    """No log file was found, or not one line of the logs was recognised."""

    exit_code = 3
