"""Texts that remember how they were put together, so that a report can be read in two languages.

`say` makes an English text of a template and its values, and enters both in the book that is open,
if one is. The text itself is a plain `str`: it travels through polars, JSON and pickles like any
other, and whoever makes the report looks it up in the book again. Without an open book nothing is
remembered. The template is what is translated (reporting/locales); values are either said
themselves, and then translated too, or text of logs, which never is.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Said:
    """How a text was put together."""

    template: str
    "English, with `{name}` fields; of texts that were joined: what stands between them."

    values: tuple[tuple[str, Any], ...] = ()
    parts: tuple[str, ...] | None = None
    "Texts that were joined; None where a template was filled in."

    one: str = ""
    "The template for a count of 1, where it has another."

    capital: bool = False
    "Begins with a capital letter, whatever the template does."

    texts: tuple[tuple[str, str], ...] = ()
    "Language and template, of texts that bring their own translation, such as those of rules."

    def english(self) -> str:
        """The text itself."""
        values = dict(self.values)
        one = self.one and values.get("count") == 1
        text = self.filled(self.one if one else self.template)
        return text[:1].upper() + text[1:] if self.capital else text

    def filled(self, template: str, values: Mapping[str, Any] | None = None) -> str:
        """The text by another template, with these values instead of its own."""
        if self.parts is not None:
            return template.join(self.parts)
        values = dict(self.values) if values is None else values
        return template.format(**values) if values else template


Book = dict[str, Said]
"""Text -> how it was put together."""

_OPEN: ContextVar[Book | None] = ContextVar("open book of said texts", default=None)


@contextmanager
def remembering() -> Iterator[Book]:
    """A book that is open for this thread or task, and for nobody else."""
    book: Book = {}
    token = _OPEN.set(book)
    try:
        yield book
    finally:
        _OPEN.reset(token)


def enter(text: str, said: Said) -> str:
    """The text, entered in the open book."""
    book = _OPEN.get()
    if book is not None:
        book.setdefault(text, said)
    return text


def say(template: str, /, **values: Any) -> str:
    """The English text of a template.

    >>> say("rank {rank} saw {count:,} lines", rank=3, count=1200)
    'rank 3 saw 1,200 lines'
    """
    text = template.format(**values) if values else template
    return text if _OPEN.get() is None else enter(text, Said(template, tuple(values.items())))


def say_n(one: str, many: str, /, *, count: int, **values: Any) -> str:
    """The same with a template of its own for a count of 1.

    >>> [say_n("{count} rank", "{count:,} ranks", count=count) for count in (1, 1200)]
    ['1 rank', '1,200 ranks']
    """
    said = Said(many, (("count", count), *values.items()), one=one)
    return enter(said.english(), said)


def joined(between: str, parts: Iterable[str]) -> str:
    """Texts one after the other, each of which stays translatable.

    >>> joined("; ", ["one", "two"])
    'one; two'
    """
    listed = tuple(parts)
    text = between.join(listed)
    return text if len(listed) < 2 else enter(text, Said(between, parts=listed))


def capital(text: str) -> str:
    """A text as the beginning of a sentence.

    >>> capital("rank 3 saw it")
    'Rank 3 saw it'
    """
    said = Said("{text}", (("text", text),), capital=True)
    shown = said.english()
    return text if shown == text else enter(shown, said)


def N_(text: str) -> str:  # noqa: N802 - the name that gettext knows
    """A constant text that is translated where it is shown; this only marks it."""
    return text
