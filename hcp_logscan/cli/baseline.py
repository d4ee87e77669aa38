"""`--baseline`: a known good run, found at once and read when the first run is compared with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.model.errors import HcpLogscanError, UsageError
from hcp_logscan.sources import reader
from hcp_logscan.sources.discover import Selection, discover

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.analysis.run import Analysis
    from hcp_logscan.engine.start import EngineName
    from hcp_logscan.model.report import RedactionLevel
    from hcp_logscan.sources.discover import Discovered


@dataclass(slots=True)
class KnownGood:
    """The baseline of a call: one for all runs, read once."""

    run_dir: str
    found: Discovered
    engine: EngineName
    workers: int | None
    scheduler: str | None
    redact: RedactionLevel
    _analysis: Analysis | None = None

    def analysis(self) -> Analysis:
        """What its logs say. Raises UsageError where nothing in them is understood."""
        if self._analysis is None:
            from hcp_logscan.api import read_baseline
            from hcp_logscan.cli.progress import watched
            from hcp_logscan.engine.start import started

            scan = started(
                self.found, engine=self.engine, workers=self.workers, scheduler=self.scheduler
            )
            with watched(scan) as begun:
                self._analysis = read_baseline(self.run_dir, redact=self.redact, begun=begun)
        return self._analysis


def known_good(
    run_dir: str | None,
    runs: Sequence[str],
    selection: Selection,
    *,
    engine: EngineName,
    workers: int | None,
    scheduler: str | None,
    redact: RedactionLevel,
) -> KnownGood | None:
    """The baseline that the option names. Raises UsageError where there is none.

    Of `selection`, what says how lines and file names are read holds for it; which files belong is
    a matter of the runs that are compared with it.
    """
    if run_dir is None:
        return None
    if run_dir == reader.STDIN and reader.STDIN in runs:
        raise UsageError("standard input is one run: RUN_DIR or --baseline, not both.")
    wanted = Selection(rank_regex=selection.rank_regex, formats=selection.formats)
    try:
        found = discover(run_dir, wanted)
    except HcpLogscanError as error:
        from hcp_logscan.api import unusable_baseline

        raise unusable_baseline(error, redact) from None
    return KnownGood(run_dir, found, engine, workers, scheduler, redact)
