"""The output formats, by file suffix. A format is a module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hcp_logscan.model.report import ReportData
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.json import render_json
from hcp_logscan.reporting.junit import render_junit
from hcp_logscan.reporting.markdown import render_markdown
from hcp_logscan.reporting.parquet import render_parquet
from hcp_logscan.reporting.sarif import render_sarif
from hcp_logscan.reporting.wishes import Wishes

Rendered = str | Mapping[str, bytes]
"""A text, which UTF-8 can encode, or a folder: file name -> content."""

Renderer = Callable[[ReportData, Wishes], Rendered]
"""A pure function: the same report gives the same bytes."""

RENDERERS: Final[Mapping[str, Renderer]] = {
    ".html": lambda data, wishes: render_html(data, charts=wishes.charts, lang=wishes.lang),
    ".json": lambda data, _: render_json(data),
    ".md": lambda data, wishes: render_markdown(data, lang=wishes.lang),
    ".parquet": render_parquet,
    ".sarif": render_sarif,
    ".xml": render_junit,
}
"""Suffix -> renderer."""

WITH_TABLES: Final = frozenset({".parquet"})
"""Suffixes whose renderer shows `ReportData.tables`, which are filled in for those alone."""
