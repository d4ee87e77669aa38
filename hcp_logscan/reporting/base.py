"""The output formats, by file suffix. A format is a module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hcp_logscan.model.report import ReportData
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.json import render_json
from hcp_logscan.reporting.markdown import render_markdown

Renderer = Callable[[ReportData], str]
"""A pure function: the same report gives the same text, which UTF-8 can encode."""

RENDERERS: Final[Mapping[str, Renderer]] = {
    ".html": render_html,
    ".json": render_json,
    ".md": render_markdown,
}
"""Suffix -> renderer."""
