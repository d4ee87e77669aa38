"""Values of `key: value` records, as trainers in Python print them."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

NUMBER: Final = (
    r"['\"]?(?:(?:np|numpy)\.float[0-9]{2}\(|tensor\()?"
    r"([+-]?(?:[0-9][0-9_]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+|nan|NaN|inf|Infinity))"
)
"""A number in one group: bare, quoted (transformers 5), or as numpy and torch show theirs."""


def item(key: str) -> str:
    r"""Regex for the value of one key in a dict repr or a JSON object.

    >>> import re
    >>> re.search(item("train/loss"), "{'train/loss': np.float64(-0.5), 'x': 1}")[1]
    '-0.5'
    """
    return rf"['\"]{re.escape(key)}['\"]: ?{NUMBER}"


def number(name: str) -> pl.Expr:
    """A column of printed numbers as Float64, NaN and Inf included."""
    return pl.col(name).str.to_lowercase().cast(pl.Float64, strict=False)


def milliseconds(name: str) -> pl.Expr:
    """A column of printed seconds in milliseconds."""
    return number(name) * 1000.0
