"""The HTML report: one file that opens offline, reads without scripts and loads nothing.

Every value that reaches the page passes `_shown` (unsafe characters spelt out) and jinja2's
autoescape. A content security policy in the page itself forbids all requests, and every script
that is not ours: ours are named by their hash. plotly.js travels compressed, and the policy names
the hash of the unpacked text: the page's script hands that very text to the browser as an inline
script, which the policy allows without `eval`, `blob:` or a request.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal

from hcp_logscan.model.markdown import segments
from hcp_logscan.reporting import tongue
from hcp_logscan.reporting.copies import copies
from hcp_logscan.reporting.safe import visible
from hcp_logscan.reporting.tongue import HTML_LANGS, speaking
from hcp_logscan.reporting.translate import translate
from hcp_logscan.reporting.view.page import page as page_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment

    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.tongue import Lang

Charts = Literal["interactive", "static"]

_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; script-src {scripts}"
)


def render_html(data: ReportData, *, charts: Charts = "interactive", lang: Lang = "en") -> str:
    """The report as one HTML document.

    `interactive` embeds plotly once (about 2 MB) over the same static drawings, and buttons that
    copy; `static` leaves them, and every script, out.
    """
    with speaking(lang):
        return _rendered(translate(data, lang), charts)


def _rendered(data: ReportData, charts: Charts) -> str:
    from markupsafe import Markup

    page = page_view(data)
    scripted = charts == "interactive"
    live = scripted and page["charts"]
    copy = _asset("copy.js") if scripted else ""
    script = _asset("report.js") if live else ""
    library, digest = _plotly() if live else ("", "")
    running = [_digest(text) for text in (copy, script) if text] + ([digest] if live else [])
    text = (
        _environment()
        .get_template("report.html.j2")
        .render(
            page,
            lang=HTML_LANGS[tongue.lang()],
            css=Markup(_asset("report.css")),  # noqa: S704  # our own file
            copy=Markup(copy),  # noqa: S704  # our own file
            copies=copies(data) if scripted else {},
            script=Markup(script),  # noqa: S704  # our own file
            library=library,
            policy=_policy(running),
        )
    )
    return text.strip() + "\n"


def render_plain(template: str, context: Mapping[str, Any]) -> str:
    """A page of the same look and policy, without scripts and drawings."""
    from markupsafe import Markup

    css = Markup(_asset("report.css"))  # noqa: S704  # our own file
    page = _environment().get_template(template)
    language = HTML_LANGS[tongue.lang()]
    return page.render(context, lang=language, css=css, policy=_policy([])).strip() + "\n"


@cache  # compiling the templates costs more than filling them
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
    said = {"_": _text, "n_": _text_n, "plain": tongue.plain, "gap": tongue.gap}
    environment.globals.update(said)  # `plain` is for filters, which take markup for escaped
    environment.filters["segments"] = segments
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


def _shown(value: Any) -> Any:
    """What an expression of the template yields: text made visible, markup left alone."""
    from markupsafe import Markup

    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _text(text: str, /, **values: Any) -> Any:
    """A text of a template in the language of the page: ours, and markup but for its values."""
    return _filled(tongue.plain(text), values)


def _text_n(one: str, many: str, /, *, count: int, **values: Any) -> Any:
    """The same with a text of its own for a count of 1."""
    return _filled(tongue.plain_n(one, many, count), {"count": count, **values})


def _filled(text: str, values: Mapping[str, Any]) -> Any:
    from markupsafe import Markup

    shown = {name: _shown(value) for name, value in values.items()}
    return Markup(text).format(**shown)  # noqa: S704  # the text is ours, the values are escaped


def _asset(name: str) -> str:
    return files("hcp_logscan.reporting").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _plotly() -> tuple[str, str]:
    """plotly.js as the page carries it, gzip in base64, and the digest of the unpacked text."""
    from plotly.offline import get_plotlyjs

    text = str(get_plotlyjs())
    return base64.b64encode(_gzip(text.encode())).decode(), _digest(text)


def _gzip(content: bytes) -> bytes:
    """A gzip file without a time stamp or a name of the system: same input, same bytes."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)  # 9 saves 4 kB
    body = packer.compress(content) + packer.flush()
    ends = (zlib.crc32(content), len(content) & 0xFFFFFFFF)
    header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return header + body + b"".join(number.to_bytes(4, "little") for number in ends)


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _policy(digests: Sequence[str]) -> str:
    sources = " ".join(f"'sha256-{digest}'" for digest in digests)
    return _POLICY.format(scripts=sources or "'none'")
