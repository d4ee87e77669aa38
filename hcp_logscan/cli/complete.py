"""Shell completion: `_HCP_LOGSCAN_COMPLETE=bash_source hcp-logscan` prints what a shell evaluates.

No option for it clutters `--help`, and nothing of it is loaded otherwise. Options and choices are
known to the command line itself; here are the words of options that take a rule or a status, lists
with commas included.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VARIABLE: Final = "_HCP_LOGSCAN_COMPLETE"
_SHELLS: Final = ("bash", "zsh", "fish")

_WIDE: Final = "100000"
"""Columns: typer wraps the help of an option, and fish takes the second line for a word."""


def ready() -> None:
    """Make the variable work, if it is set: click's `bash_source` as well as typer's order."""
    said = os.environ.get(VARIABLE)
    if said is None:
        return
    shell, _, step = said.partition("_")
    if shell in _SHELLS:
        os.environ[VARIABLE] = f"{step}_{shell}"
    os.environ["COLUMNS"] = _WIDE
    from typer.completion import completion_init  # type: ignore[attr-defined]  # not in __all__

    completion_init()


def rules(incomplete: str) -> list[tuple[str, str]]:
    """Ids of shipped rules with their names, behind what stands before the last comma."""
    return list(_listed(_shipped(), incomplete))


def rule(incomplete: str) -> list[tuple[str, str]]:
    """The id of one shipped rule."""
    return [one for one in _shipped() if one[0].startswith(incomplete.upper())]


def statuses(incomplete: str) -> list[tuple[str, str]]:
    """Statuses of the verdict, behind what stands before the last comma."""
    from hcp_logscan.model.finding import STATUSES
    from hcp_logscan.reporting.words import STATUS_WORDS

    return list(_listed(((name, STATUS_WORDS[name][1]) for name in STATUSES), incomplete))


def _shipped() -> list[tuple[str, str]]:
    """Id and name of every shipped rule, from the names of the files: loading them takes longer."""
    from hcp_logscan.model.bundled import bundled_dir

    stems = sorted(path.stem for path in bundled_dir().glob("*-*.yaml"))
    return [(name, words.replace("-", " ")) for name, _, words in (s.partition("-") for s in stems)]


def _listed(known: Iterable[tuple[str, str]], incomplete: str) -> Iterator[tuple[str, str]]:
    before, comma, last = incomplete.rpartition(",")
    taken = before.upper().split(",")
    for word, about in known:
        if word.upper().startswith(last.upper()) and word.upper() not in taken:
            yield f"{before}{comma}{word}", about
