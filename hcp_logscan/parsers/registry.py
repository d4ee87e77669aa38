"""Every parser found under this package, in name order, and the line formats of users beside them.

A module offers its parsers in a tuple `PARSERS`; adding a module is enough. Formats are arguments,
never remembered: two scans of one process may have different ones.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import hcp_logscan.parsers as package

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hcp_logscan.model.line_format import LineFormat
    from hcp_logscan.parsers.base import Parser

_FORMATS: Final = 8
"""Sets of formats whose parsers and needles are kept."""


@lru_cache(maxsize=1)
def parsers() -> tuple[Parser, ...]:
    """All parsers, sorted by name.

    >>> "megatron-iteration" in [parser.name for parser in parsers()]
    True
    """
    found: list[Parser] = []
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        found.extend(getattr(loaded, "PARSERS", ()))
    return tuple(sorted(found, key=lambda parser: parser.name))


def _all(formats: Iterable[LineFormat]) -> tuple[Parser | LineFormat, ...]:
    return (*parsers(), *formats)


@lru_cache(maxsize=_FORMATS)
def needles(formats: tuple[LineFormat, ...] = ()) -> tuple[bytes, ...]:
    """All needles of all parsers and of these formats, sorted, without repeats."""
    texts = {needle for parser in _all(formats) for needle in parser.needles}
    return tuple(sorted(text.encode() for text in texts))


@lru_cache(maxsize=_FORMATS)
def owners(
    formats: tuple[LineFormat, ...] = (),
) -> tuple[tuple[Parser | LineFormat, ...], ...]:
    """For each needle of `needles(formats)`, the parsers and formats that asked for it."""
    return tuple(
        tuple(one for one in _all(formats) if needle.decode() in one.needles)
        for needle in needles(formats)
    )
