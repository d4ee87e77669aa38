"""Was hierarchical context parallelism really on? Read the logs of one training job and say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hcp_logscan._version import __version__
from hcp_logscan.model.errors import HcpLogscanError

if TYPE_CHECKING:
    from hcp_logscan.api import Report, demo_run, scan

__all__ = ["HcpLogscanError", "Report", "__version__", "demo_run", "scan"]


def __getattr__(name: str) -> Any:
    """Load the API when it is first used: polars is heavy, and `--version` does not need it."""
    if name in {"Report", "demo_run", "scan"}:
        from hcp_logscan import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
