"""Where in a program the collective was called that failed, as c10d's flight recorder remembers it.

Written from PyTorch ``FlightRecorderDetail.hpp`` and ``ProcessGroupNCCL.cpp`` (``Stack trace of the
failed collective: ``, 2.4 to main) and public logs: lines ``#<n> <function> from <file>:<line>``,
innermost first, without any prefix behind a head that has one. The first of them is in
``torch/distributed/distributed_c10d.py``; the call site is the first outside of PyTorch.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.parsers.base import BlockLine, BlockParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.parsers.base import Row

_FRAME: Final = re.compile(
    r"^#\d{1,4} (?P<function>\S{1,200}) from (?P<file>\S{1,1000}):(?P<line>\d{1,9})\s*$"
)
_NEEDLE: Final = "/torch/distributed/distributed_c10d.py:"


class _Stack:
    def __init__(self, head: BlockLine, operation: str) -> None:
        self._head, self._operation = head, operation
        self._site: tuple[BlockLine, str] | None = None

    def feed(self, line: BlockLine) -> bool:
        match = _FRAME.match(line.text)
        if match and "/torch/" not in match["file"]:
            base = match["file"].rpartition("/")[2]
            self._site = (line, f"{base}:{match['line']} ({match['function']})")
        return match is None or self._site is not None

    def rows(self) -> Iterator[Row]:
        if self._site is not None:
            line, site = self._site
            own = {"operation": self._operation, "site": site, "first_line": self._head.number}
            yield ("call_sites", line.number, line.offset, line.text, own)


def _opens(line: BlockLine) -> _Stack | None:
    match = _FRAME.match(line.text)
    if match is None or not line.text.startswith("#0 "):
        return None
    return _Stack(line, match["function"])


PARSERS = (
    BlockParser(
        name="c10d-call-site",
        needles=(_NEEDLE,),
        tables=("call_sites",),
        max_gap=200,
        opens=_opens,
        sample="#0 all_reduce from /opt/venv/lib/python3.13/site-packages/torch/distributed/"
        "distributed_c10d.py:3068\n"
        "#1 wrapper from /opt/venv/lib/site-packages/torch/distributed/c10d_logger.py:83\n"
        "#2 reduce_gradients from /opt/app/train.py:246\n",
    ),
)
