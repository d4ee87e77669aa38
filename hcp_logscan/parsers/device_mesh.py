"""The device mesh that torchtitan says it builds: the only line that states its parallel sizes.

Written from torchtitan ``distributed/parallel_dims.py`` (``parallel_dims.py`` until February 2025;
2024-07 to main of 2026-08), and public logs. Every rank prints it:

* until December 2025 ``Building 3-D device mesh with ['dp_shard', 'cp', 'tp'], [2, 2, 2]``: only
  sizes above 1, and with expert parallelism two dimensions for ``dp_shard``. A mesh without ``cp``
  is no statement about it: silence is no evidence
* since January 2026 ``Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=2, …``,
  where ``ep`` borrows ranks of the others

Context parallelism over such a mesh is torch's own: it knows no hierarchy.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from hcp_logscan.parsers.base import BlockLine, BlockParser, Setting, config_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.parsers.base import Row

_LISTED: Final = re.compile(
    r"\bBuilding \d-D device mesh with"
    r" \[(?P<names>[a-z_', ]{0,120})\], \[(?P<sizes>[0-9, ]{0,80})\]"
)
_NAMED: Final = re.compile(
    r"\bBuilding device mesh with parallelism: (?P<pairs>[a-z_=0-9, ]{1,200})"
)
_PAIR: Final = re.compile(r"([a-z_]{1,20})=(\d{1,7})\b")
_DATA: Final = frozenset({"dp", "dp_replicate", "dp_shard", "dp_shard_mod_ep", "dp_shard_in_ep"})
_KNOWN: Final = _DATA | {"pp", "cp", "tp"}
_BORROWED: Final = frozenset({"ep", "etp"})
"""Sizes that divide ranks which other dimensions count already."""


def _sizes(text: str) -> dict[str, int] | None:
    """Sizes by dimension; None for what is no mesh, or has a dimension that is not known."""
    if match := _NAMED.search(text):
        said = {name: int(size) for name, size in _PAIR.findall(match["pairs"])}
        sizes = {name: size for name, size in said.items() if name not in _BORROWED}
        complete = said.keys() >= {"pp", "dp_shard", "cp", "tp", "ep"}  # else the line is cut
    elif match := _LISTED.search(text):
        names = re.findall(r"[a-z_]+", match["names"])
        numbers = [int(size) for size in re.findall(r"\d{1,7}", match["sizes"])]
        sizes = dict(zip(names, numbers, strict=False))
        complete = len(names) == len(numbers) == len(sizes)
    else:
        return None
    return sizes if complete and sizes.keys() <= _KNOWN and all(sizes.values()) else None


class _Mesh:
    """A block of one line."""

    def __init__(self, line: BlockLine, sizes: dict[str, int]) -> None:
        self._line, self._sizes = line, sizes

    def feed(self, line: BlockLine) -> bool:
        del line
        return True

    def rows(self) -> Iterator[Row]:
        line, sizes = self._line, self._sizes
        stated = {
            "world_size": prod(sizes.values()),
            "data_parallel_size": prod(size for name, size in sizes.items() if name in _DATA),
            "context_parallel_size": sizes.get("cp"),
            "tensor_model_parallel_size": sizes.get("tp", 1),
            "pipeline_model_parallel_size": sizes.get("pp", 1),
        }
        settings = [
            Setting(line, "", key, str(value)) for key, value in stated.items() if value is not None
        ]
        yield from config_rows("device_mesh", line, settings, last_line=line.number, complete=True)


def _open(line: BlockLine) -> _Mesh | None:
    sizes = _sizes(line.text)
    return _Mesh(line, sizes) if sizes is not None else None


PARSERS = (
    BlockParser(
        name="torchtitan-device-mesh",
        needles=(" device mesh with ",),
        tables=("config", "blocks"),
        opens=_open,
        sample="[titan] 2026-03-01 09:14:20,123 - root - INFO - Building 2-D device mesh with"
        " ['dp_shard', 'cp'], [2, 4]",
    ),
)
