"""Fact: one column of a fact table, described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Fact:
    """One column of a fact table."""

    dtype: pl.DataType
    meaning: str
    observe: str = ""
    "How to make it observable, for the user whose rule came out inconclusive."
