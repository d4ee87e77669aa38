"""Names of hosts and pods that the structure of the logs gives away: prefixes, paths, columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from hcp_logscan.sources.discover import LogFile


_DEVICE: Final = re.compile(r"(?i:gpu)s?[-_.]?\d{1,3}")
"""A folder per GPU has its name from the device, which says nothing of the host."""


def is_host(name: str) -> bool:
    """Whether a folder is a node's and not a device's.

    >>> is_host("node0"), is_host("gpu-3"), is_host("gpu-node07")
    (True, False, True)
    """
    return _DEVICE.fullmatch(name) is None


def hosts(events: Mapping[str, pl.DataFrame], files: Sequence[LogFile]) -> tuple[str, ...]:
    """Every name once, in order; what has no letter is a node's number and no name.

    `events` have their column `stream`, whose key holds the host behind an `h`.
    """
    nodes = {file.hints.node for file in files}
    named = {node for node in nodes if node and is_host(node)}
    for frame in events.values():
        if "host" in frame.columns:
            named.update(frame["host"].drop_nulls().unique().to_list())
        if "stream" in frame.columns:
            streams = frame["stream"].drop_nulls().unique()
            named.update(streams.str.extract(r"^h([^,]+)").drop_nulls().to_list())
    return tuple(sorted(name for name in named if any(map(str.isalpha, name))))
