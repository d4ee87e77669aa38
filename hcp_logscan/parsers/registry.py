"""Every parser found under this package, in name order.

A module offers its parsers in a tuple `PARSERS`; adding a module is enough.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from typing import TYPE_CHECKING

import hcp_logscan.parsers as package

if TYPE_CHECKING:
    from hcp_logscan.parsers.base import Parser


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


@lru_cache(maxsize=1)
def needles() -> tuple[bytes, ...]:
    """All needles of all line and block parsers, sorted, without repeats."""
    texts = {needle for parser in parsers() for needle in parser.needles}
    return tuple(sorted(text.encode() for text in texts))


@lru_cache(maxsize=1)
def owners() -> tuple[tuple[Parser, ...], ...]:
    """For each needle of `needles()`, the parsers that asked for it."""
    return tuple(
        tuple(parser for parser in parsers() if needle.decode() in parser.needles)
        for needle in needles()
    )
