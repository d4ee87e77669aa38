"""Where renderers find `model.safe`, which pages of rules and the command line need, too."""

from __future__ import annotations

from hcp_logscan.model.safe import cut, encodable, one_line, visible

__all__ = ["cut", "encodable", "one_line", "visible"]
