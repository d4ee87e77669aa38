"""Process groups that forks and wrapper scripts announce by hand, and lines that Ray printed once.

Stock Megatron prints no group. A line that says the hierarchical groups *were created* is
evidence; one that says what to look for, what is missing, or that quotes the name in a traceback,
a prompt, a path or a configuration is none. Written from what people print about
``megatron/core/parallel_state.py`` (core 0.10 to main of 2026-08), and from Ray's deduplication,
``python/ray/_private/ray_logging`` (2.6 and later).
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.base import LineParser

_NAME: Final = (
    r"(?:^|[^A-Z_])(?:HIERARCHICAL_)?CONTEXT_PARALLEL_GROUPS?(?:_L[0-9])?(?:[^A-Za-z_]|$)"
)
_MADE: Final = r"(?i)\b(?:created|creating|built|initiali[sz]ed|initiali[sz]ing)\b"
_NOT_SAID: Final = (
    r"(?i)\b(?:not|no|never|none|without|missing|expect(?:ed|s)?|should|must|look|looking|check|verify|"
    r"confirm|grep|search|if|whether|when|fail(?:ed|s|ure)?|error|assert\w*|raise[sd]?|todo|unless|only"
    r" if|ensure|make sure|see|prompt|question|answer)\b|n't\b|\?|\[PG |File \"|[A-Za-z]+Error|"
    r"\.{4,} |^\s*(?:#|//|\"|'|-{2,}\w|[{])|\bdef \b|\bprint\(|\bself\.|_[A-Z]+ = "
)


def _made(rows: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("text")
    said = rows.filter(
        text.str.contains(_NAME) & text.str.contains(_MADE) & ~text.str.contains(_NOT_SAID)
    )
    hierarchical = text.str.contains("HIERARCHICAL_CONTEXT_PARALLEL_GROUP")
    return said.with_columns(
        pl.when(hierarchical).then(pl.lit("hierarchical")).otherwise(pl.lit("flat")).alias("kind")
    )


PARSERS = (
    LineParser(
        name="printed-groups",
        table="printed_groups",
        needles=("CONTEXT_PARALLEL_GROUP",),
        pattern=r"CONTEXT_PARALLEL_GROUP",
        finish=_made,
        sample="> HIERARCHICAL_CONTEXT_PARALLEL_GROUPS created",
        drift=False,
    ),
    LineParser(
        name="ray-repeats",
        table="ray_repeats",
        needles=("x across cluster]",),
        pattern=r"\[repeated (?P<times>[0-9]+)x across cluster\]",
        sample="loading weights [repeated 7x across cluster]",
    ),
)
