"""The output formats, by file suffix. A format is a module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hcp_logscan.model.report import ReportData
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.json import render_json
from hcp_logscan.reporting.junit import render_junit
from hcp_logscan.reporting.markdown import render_markdown
from hcp_logscan.reporting.sarif import render_sarif
from hcp_logscan.reporting.wishes import Wishes

Renderer = Callable[[ReportData, Wishes], str]
"""A pure function: the same report gives the same text, which UTF-8 can encode."""

RENDERERS: Final[Mapping[str, Renderer]] = {
    ".html": lambda data, wishes: render_html(data, charts=wishes.charts),
    ".json": lambda data, _: render_json(data),
    ".md": lambda data, _: render_markdown(data),
    ".sarif": render_sarif,
    ".xml": render_junit,
}
"""Suffix -> renderer."""
