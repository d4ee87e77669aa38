r"""A time, and what else one collector puts before every line, in whatever shape it has.

Airflow, GitHub and GitLab, ``ts``, CloudWatch's and many sites' own collectors stamp every line
they pass on. Such a lead has one shape over the whole file (its digits apart), holds a time of day,
and stands before lines too that no logger stamps: empty ones, and ones that are indented. A
trainer's own logger stamps the first line of a message only, so its stamps stay where they are:
parsers read them. What names a rank or a process is never taken off.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAME: Final = "habit:"
"""Begins the name of such a lead; behind it stands its pattern."""

MIN_LINES: Final = 20
SHARE: Final = 0.95
"""Of the lines that have the shape: a collector's own messages stand between them."""

MIN_UNSTAMPED: Final = 3
MIN_SHARE: Final = 0.02
MIN_WORDS: Final = 5
"""Lines of a kind that no logger stamps, and first words of others: a step log has few of them."""

MAX_LEAD: Final = 120
_VARIES: Final = re.compile(
    r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b(?= {1,2}[0-9])|[0-9]+"
)
_TIME: Final = re.compile(r"(?<!#)#:#:#(?:[.,]#)?")
_DAY_TIME: Final = re.compile(rb"[0-9]:[0-9]+:[0-9]")
_KEPT: Final = re.compile(r"(?i)rank|pid=|\[[a-z][a-z_-]*#\]|<std| #: | [a-z][a-z0-9_.-]*#")
"""Where the prefixes begin that say who printed a line; a word with a number may name a node."""


def candidates(lines: Sequence[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    r"""The leads that these lines may have, shortest first, each with what stands behind it.

    >>> lines = [f"[10:00:{n}] {text}".encode() for n, text in enumerate("abcdefghij" * 3, 10)]
    >>> [(name, rests[:2]) for name, rests in candidates(lines)]
    [('habit:\\[\\d+:\\d+:\\d+\\](?:[ \\t]|$)', [b'a', b'b'])]
    """
    if len(lines) < MIN_LINES or not _timed(lines):
        return
    shapes = [_shape(line.decode("utf-8", "replace")[: 2 * MAX_LEAD]) for line in lines]
    for lead in dict.fromkeys(_ends(_common(shapes))):
        name = NAME + _pattern(lead)
        matches = [(line, found) for line in lines if (found := _compiled(name).match(line))]
        if len(matches) >= SHARE * len(lines):
            yield name, [line[found.end() :] for line, found in matches]


def _timed(lines: Sequence[bytes]) -> bool:
    """Whether enough lines hold a time at all: most logs are told after a few lines."""
    without = (line for line in lines if not _DAY_TIME.search(line))
    most = int(len(lines) - SHARE * len(lines))
    return next(islice(without, most, None), None) is None


def passed_on(rests: Sequence[bytes]) -> bool:
    """Whether lines of many kinds follow, and enough that no logger stamps."""
    bare = sum(1 for rest in rests if not rest.strip() or rest.startswith((b" ", b"\t")))
    words = {re.sub(rb"[0-9]+", b"#", rest.split()[0]) for rest in rests if rest[:1].strip()}
    return bare >= max(MIN_UNSTAMPED, MIN_SHARE * len(rests)) and len(words) >= MIN_WORDS


def strip(name: str, line: bytes) -> bytes:
    """The line behind a learnt lead."""
    found = _compiled(name).match(line)
    return line[found.end() :] if found else line


@lru_cache(maxsize=256)
def _compiled(name: str) -> re.Pattern[bytes]:
    return re.compile(name.removeprefix(NAME).encode())


def _shape(text: str) -> str:
    return _VARIES.sub(lambda found: "#" if found[0][0].isdigit() else "@", text)


def _pattern(shape: str) -> str:
    pattern = re.escape(shape).replace(r"\#", r"\d+")
    return re.sub(r"@(?:\\ ){1,2}", "[A-Z][a-z]{2} {1,2}", pattern) + r"(?:[ \t]|$)"


def _common(shapes: Sequence[str]) -> str:
    """The longest beginning that nearly all shapes have."""
    found, left = "", list(shapes)
    while len(found) < MAX_LEAD:
        place = len(found)
        heads = Counter(shape[place] for shape in left if len(shape) > place)
        likely, count = max(heads.items(), key=lambda head: (head[1], head[0]), default=("", 0))
        # a line may end where its lead does
        same = [shape for shape in left if len(shape) <= place or shape[place] == likely]
        if len(same) < SHARE * len(shapes) or count < len(shapes) / 2:
            break
        found, left = found + likely, same
    return found


def _ends(common: str) -> list[str]:
    """Where a lead may end, shortest first: at a blank behind a time of day."""
    time = _TIME.search(common)
    if time is None:
        return []
    kept = _KEPT.search(common)
    if kept:
        common = common[: kept.start()]
    blanks = [
        at
        for at, char in enumerate(common)
        # two blanks are columns of a record
        if char in " \t" and at >= time.end() and common[at + 1 : at + 2] != " "
    ]
    return [common[:at] for at in [*blanks, len(common)] if at >= time.end()]
