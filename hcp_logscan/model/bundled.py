"""Where the shipped data lies: rules and the GPU table."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from hcp_logscan.model.errors import HcpLogscanError


def bundled_dir() -> Path:
    """Directory of the shipped rules: in the wheel beside their package, else the checkout's.

    Raises `HcpLogscanError` if there is neither.
    """
    package = Path(str(resources.files("hcp_logscan")))
    for directory in (package / "rules" / "bundled", package.parent / "rules"):
        if directory.is_dir():
            return directory
    raise HcpLogscanError("the shipped rules are missing; reinstall hcp-logscan")
