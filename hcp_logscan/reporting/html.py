"""The HTML report: one file that opens offline, reads without scripts and loads nothing.

Every value that reaches the page passes `_shown` (unsafe characters spelt out) and jinja2's
autoescape. A content security policy in the page itself forbids all requests, and every script
that is not ours: ours are named by their hash.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal

from hcp_logscan.reporting import view, words
from hcp_logscan.reporting.safe import visible

if TYPE_CHECKING:
    from jinja2 import Environment

    from hcp_logscan.model.report import ReportData

Charts = Literal["interactive", "static"]

_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; script-src {scripts}"
)


def render_html(data: ReportData, *, charts: Charts = "interactive") -> str:
    """The report as one HTML document.

    `interactive` embeds plotly once (about 5 MB) over the same static drawings; `static` leaves
    it, and every script, out.
    """
    from markupsafe import Markup

    page = view.page(data)
    scripts = _scripts() if charts == "interactive" and page["charts"] else ()
    text = (
        _environment()
        .get_template("report.html.j2")
        .render(
            page,
            css=Markup(_asset("report.css")),  # noqa: S704  # our own file
            scripts=[Markup(script) for script in scripts],  # noqa: S704  # plotly's and our own
            policy=_policy(scripts),
        )
    )
    return text.strip() + "\n"


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hcp_logscan.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["segments"] = words.segments
    return environment


def _shown(value: Any) -> Any:
    """What an expression of the template yields: text made visible, markup left alone."""
    from markupsafe import Markup

    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> str:
    return files("hcp_logscan.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _scripts() -> tuple[str, ...]:
    from plotly.offline import get_plotlyjs

    return (str(get_plotlyjs()).replace("</script", "<\\/script"), _asset("report.js"))


def _policy(scripts: tuple[str, ...]) -> str:
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts)
    sources = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    return _POLICY.format(scripts=sources or "'none'")
