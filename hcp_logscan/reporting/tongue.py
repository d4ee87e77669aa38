"""The language that a report is being written in, and its catalogue.

The renderers set it for the time they run; it belongs to their thread or task. English texts stand
in the code and need no catalogue. `_` and `n_` fill in their fields themselves, so that a
translation may put them in another order.
"""

from __future__ import annotations

import gettext
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, TypeVar, cast

Lang = Literal["en", "zh"]
LANGS: Final[tuple[Lang, ...]] = ("en", "zh")
HTML_LANGS: Final[Mapping[Lang, str]] = {"en": "en", "zh": "zh-CN"}
"""What `<html lang>` says."""

DOMAIN: Final = "hcp_logscan"

_SPOKEN: ContextVar[Lang] = ContextVar("language of the report", default="en")


@contextmanager
def speaking(lang: Lang) -> Iterator[None]:
    """Render in this language."""
    token = _SPOKEN.set(lang)
    try:
        yield
    finally:
        _SPOKEN.reset(token)


def lang() -> Lang:
    """The language that is spoken now."""
    return _SPOKEN.get()


@cache
def catalogue(lang: Lang) -> gettext.NullTranslations:
    """The translations of one language."""
    if lang == "en":
        return gettext.NullTranslations()
    place = files("hcp_logscan.reporting") / "locales" / lang / "LC_MESSAGES" / f"{DOMAIN}.mo"
    with place.open("rb") as file:
        return gettext.GNUTranslations(file)


def _(text: str, /, **values: Any) -> str:
    """The text in the language that is spoken, its fields filled in."""
    shown = plain(text)
    return shown.format(**values) if values else shown


def n_(one: str, many: str, /, *, count: int, **values: Any) -> str:
    """The same with a text of its own for a count of 1."""
    return plain_n(one, many, count).format(count=count, **values)


def gap() -> str:
    """What stands between two sentences: Chinese has no blank there."""
    return "" if _SPOKEN.get() == "zh" else " "


def plain(text: str) -> str:
    """The text in the language that is spoken, as it stands in the catalogue."""
    return catalogue(_SPOKEN.get()).gettext(text) if text else ""


def plain_n(one: str, many: str, count: int) -> str:
    """The same of a text with a singular."""
    return catalogue(_SPOKEN.get()).ngettext(one, many, count)


K = TypeVar("K")
V = TypeVar("V")


class Spoken(Mapping[K, V]):
    """A table of constant texts, or of tuples with texts, that are shown translated.

    Items are marked with `N_` where the table is made.
    """

    def __init__(self, table: Mapping[K, V]) -> None:
        self._table = dict(table)

    def __getitem__(self, key: K) -> V:
        """The item in the language that is spoken."""
        return _spoken(self._table[key])

    def __iter__(self) -> Iterator[K]:
        """The keys in their order."""
        return iter(self._table)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._table)


def _spoken(item: V) -> V:
    if isinstance(item, str):
        return cast("V", plain(item))
    return cast("V", tuple(map(_spoken, item))) if isinstance(item, tuple) else item
