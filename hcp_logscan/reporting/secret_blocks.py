r"""Private keys in PEM form: on one line with `\n` spelt out, over several lines, or cut.

A report shows windows of lines, so that either end of a key may be out of sight: what follows a
`BEGIN`, what precedes an `END`, and lines that are nothing but base64 are parts of a key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.reporting.secret_shapes import Span

KIND: Final = "private key"
HINT: Final = "-----(?:BEGIN|END) (?:[A-Z0-9]+ ){0,3}PRIVATE KEY|[A-Za-z0-9+/]{64}"
"""Rust regex: texts without it hold no part of a key."""

_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(r"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_LABEL: Final = r"(?:[^\n]{0,64}[:\]>|][ \t]{1,4})?"
_BODY: Final = re.compile(
    _LABEL + r"(?:[A-Za-z0-9+/=\\\"',]+|(?:Comment|DEK-Info|Proc-Type|Version):.*)\s*"
)
_CHARACTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\"
_WHOLE_LINE: Final = re.compile(_LABEL + r"(?P<run>[A-Za-z0-9+/]{64,76})\s*")
_MOST_LINES: Final = 200


def in_text(text: str) -> Iterator[Span]:
    """Parts of private keys, one span per key however many lines it takes."""
    lines = text.split("\n")
    starts = [0]
    for line in lines[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    number = 0
    while number < len(lines):
        line = lines[number]
        if match := _BEGIN.search(line):
            last, end = _last(lines, number, match.end())
            yield from _span(text, starts[number] + match.end(), starts[last] + end)
            yield from _further(text, line, starts[number], match.end())
            number = last
        elif match := _END.search(line):
            first, begin = _first(lines, number, match.start())
            yield from _span(text, starts[first] + begin, starts[number] + match.start())
        elif (whole := _WHOLE_LINE.fullmatch(line)) and _mixed(whole["run"]):
            yield starts[number] + whole.start("run"), starts[number] + whole.end("run"), KIND
        number += 1


def _span(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end, KIND


def _further(text: str, line: str, start: int, position: int) -> Iterator[Span]:
    """Keys behind the first one of a line: each up to the next mark, or to the end of the line."""
    for match in _BEGIN.finditer(line, position):
        end = line.find("-----", match.end())
        yield from _span(text, start + match.end(), start + (end if end >= 0 else len(line)))


def _last(lines: list[str], number: int, position: int) -> tuple[int, int]:
    """Line and column at which the key that begins there ends."""
    if (end := lines[number].find("-----", position)) >= 0:
        return number, end
    for at in range(number + 1, min(number + _MOST_LINES, len(lines))):
        if match := _END.search(lines[at]):
            return at, match.start()
        if _BEGIN.search(lines[at]):
            break
    last, rest = number, lines[number][position:]
    if " " in rest.strip():  # prose that only names the mark
        return number, position
    while last + 1 < len(lines) and _BODY.fullmatch(lines[last + 1]):
        last += 1
    return last, len(lines[last])


def _first(lines: list[str], number: int, position: int) -> tuple[int, int]:
    """Line and column at which the key that ends there begins, as far as it is in sight."""
    begin = len(lines[number][:position].rstrip(_CHARACTERS))
    if lines[number][:begin].strip():
        return number, begin
    first = number
    while first and _BODY.fullmatch(lines[first - 1]):
        first -= 1
    return first, (begin if first == number else 0)


def _mixed(run: str) -> bool:
    kinds = (str.islower, str.isupper, str.isdigit)
    return all(any(map(kind, run)) for kind in kinds)
