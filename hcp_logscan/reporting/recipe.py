"""The rerun recipe as a shell script to paste: what to do stands in comments."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.safe import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SETTING: Final = re.compile(r"\b[A-Z][A-Z0-9_]*=[A-Za-z0-9_.,:/-]*[A-Za-z0-9_]")
"""A variable and a value that no shell expands, splits or runs."""

_WIDTH: Final = 88


def shell(steps: Iterable[str]) -> str:
    """The steps as a script; empty where none of them sets a variable.

    The variables of the first step that has any are exported. Those of later ones hold under a
    condition, which the comment above them states, and are left for the reader to switch on.

    >>> print(shell(["Set A_B=1 C=x on all.", "On old ones add D=2."]), end="")
    # Set A_B=1 C=x on all.
    export A_B=1 C=x
    # On old ones add D=2.
    # export D=2
    """
    lines = list(_lines(steps))
    if not any(line.startswith("export ") for line in lines):
        return ""
    return "\n".join(lines) + "\n"


def _lines(steps: Iterable[str]) -> Iterator[str]:
    off = ""
    for step in steps:
        said = one_line(step)
        yield from (f"# {line}" for line in textwrap.wrap(said, _WIDTH, break_on_hyphens=False))
        if found := _SETTING.findall(said):
            yield f"{off}export {' '.join(found)}"
            off = "# "
