"""The catalogue of translations, kept up to date: `python -m hcp_logscan.reporting.messages`.

Reads every text that the code and the templates mark, and the meanings of facts and causes, into
the .po file of each language, and compiles it. Prints what has no translation yet. Needs babel
(extra `dev`); a run needs only what it wrote.
"""

from __future__ import annotations

import ast
import datetime as dt
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

from hcp_logscan.analysis.causes import CAUSES
from hcp_logscan.analysis.facts import FACTS
from hcp_logscan.reporting.tongue import DOMAIN, LANGS

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE: Final = Path(__file__).parents[1]
LOCALES: Final = PACKAGE / "reporting" / "locales"

_FIRST: Final = frozenset({"_", "N_", "say", "joined"})
_PAIRS: Final = frozenset({"n_", "say_n"})
"""Functions whose first argument, or first two, are texts."""

_JINJA: Final = ("_", "n_", "plain")


def texts() -> Iterator[str | tuple[str, str]]:
    """Every text to translate; a pair has a singular and a plural."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield from _marked(ast.parse(path.read_text(encoding="utf-8")))
    for path in sorted(PACKAGE.rglob("*.j2")):
        with path.open("rb") as file:
            for _line, _function, found, _comments in babel_extract(file, _JINJA, (), {}):
                given = (found,) if isinstance(found, str) else tuple(found or ())
                one, *more = (text for text in given if isinstance(text, str))
                yield (one, more[0]) if more else one
    yield from (fact.meaning for fact in FACTS["attempts"].values())
    yield from (fact.observe for table in FACTS.values() for fact in table.values() if fact.observe)
    yield from (cause.what for cause in CAUSES.values())


def _marked(tree: ast.AST) -> Iterator[str | tuple[str, str]]:
    """The literal texts of calls, in their order; calls may stand within each other."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        given = [arg.value if isinstance(arg, ast.Constant) else None for arg in call.args[:2]]
        if name in _FIRST and given and isinstance(given[0], str):
            yield given[0]
        elif name in _PAIRS and isinstance(given[0], str) and isinstance(given[1], str):
            yield given[0], given[1]


def place(lang: str, suffix: str) -> Path:
    """Where the catalogue of a language lies; the suffix is `po` or `mo`."""
    return LOCALES / lang / "LC_MESSAGES" / f"{DOMAIN}.{suffix}"


def updated(lang: str) -> Catalog:
    """The catalogue with every text of today, and no other."""
    with place(lang, "po").open("rb") as file:
        known = read_po(file, locale=lang, domain=DOMAIN)
    new = Catalog(
        locale=lang,
        domain=DOMAIN,
        header_comment=known.header_comment,
        project="hcp-logscan",
        revision_date="",
        fuzzy=False,
    )
    for text in texts():
        held = known.get(text if isinstance(text, str) else text[0])
        new.add(text, held.string if held and _fits(held.string, text) else None)
    return new


def _fits(string: Any, text: str | tuple[str, ...]) -> bool:
    return isinstance(string, str) == isinstance(text, str)


def po(catalogue: Catalog) -> bytes:
    """The file that people edit."""
    buffer = io.BytesIO()
    write_po(buffer, catalogue, width=100, no_location=True, omit_header=True)
    head = "".join(f"{line}\n" for line in catalogue.header_comment.splitlines())
    return f"{head}{_HEADER}\n".encode() + buffer.getvalue()


def mo(catalogue: Catalog) -> bytes:
    """The file that is read at run time."""
    buffer = io.BytesIO()
    catalogue.creation_date = catalogue.revision_date = _DATED  # same texts, same bytes
    write_mo(buffer, catalogue)
    return buffer.getvalue()


_DATED: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)

_HEADER: Final = r"""msgid ""
msgstr ""
"Language: zh\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=utf-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=1; plural=0;\n"
"""


def main() -> int:
    """Write the files again; the exit code is 1 where a translation is missing."""
    missing = 0
    for lang in LANGS[1:]:
        catalogue = updated(lang)
        place(lang, "po").write_bytes(po(catalogue))
        with place(lang, "po").open("rb") as file:
            place(lang, "mo").write_bytes(mo(read_po(file, locale=lang, domain=DOMAIN)))
        for message in catalogue:
            if message.id and not any(message.string or ()):
                missing += 1
                sys.stderr.write(f"{lang}: {message.id!r} has no translation\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
