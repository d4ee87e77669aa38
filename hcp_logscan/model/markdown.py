"""Untrusted text as Markdown: what it holds is shown, and none of it becomes markup.

Used for reports, where the text comes from logs, and for the pages of rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.safe import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

# what starts a block at the beginning of a line, or an inline construct anywhere
_BLOCK: Final = re.compile(r"^(\s*)([#+=-]|\d{1,9}(?=[.)](?:\s|$)))")
_INLINE: Final = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_CODE: Final = re.compile(r"`([^`\n]+)`|((?:\b[A-Z][A-Z0-9_]*_[A-Z0-9_]*=[^\s,;()]+ ?)+)")


def escaped(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    >>> print(escaped("<b> a|b `x` cp_comm_type *y* @team"))
    &lt;b&gt; a\|b \`x\` cp_comm_type \*y\* @<!-- -->team
    """
    text = _INLINE.sub(lambda match: f"\\{match[0]}", one_line(text).strip())
    text = re.sub("[&<>]", lambda match: _ENTITIES[match[0]], text)
    text = _BLOCK.sub(lambda match: f"{match[1]}{_opener(match[2])}", text)
    return re.sub(r"@(?=\w)", "@<!-- -->", text)  # a log must not call people to a ticket


def _opener(mark: str) -> str:
    return f"<!-- -->{mark}" if mark.isdigit() else f"\\{mark}"


def code(text: str) -> str:
    r"""Text as a code span, fenced by more backticks than it holds.

    >>> print(code("a`b"))
    `` a`b ``
    """
    text = one_line(text).strip() or "-"
    ticks = "`" * (_longest(text) + 1)
    blank = " " if text.startswith("`") or text.endswith("`") or len(ticks) > 1 else ""
    return f"{ticks}{blank}{text}{blank}{ticks}"


def fence(lines: Iterable[str], language: str = "text") -> str:
    r"""Lines as a fenced block: the fence is longer than any run of backticks in it.

    >>> print(fence(["a", "```"]))
    ````text
    a
    ```
    ````
    """
    shown = [one_line(line) for line in lines]
    ticks = "`" * max(3, _longest("\n".join(shown)) + 1)
    return "\n".join((f"{ticks}{language}", *shown, ticks))


def _longest(text: str) -> int:
    """The longest run of backticks."""
    return max((len(run) for run in re.findall("`+", text)), default=0)


def segments(text: str) -> tuple[tuple[bool, str], ...]:
    """Prose split at code: (is code, text). Code stands in backticks or is a variable setting.

    >>> segments("set `a` or NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 first")
    ((False, 'set '), (True, 'a'), (False, ' or '), (True, 'NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2'), (False, ' first'))
    """  # noqa: E501
    parts: list[tuple[bool, str]] = []
    position = 0
    for match in _CODE.finditer(text):
        code = match[1] or match[2].rstrip().rstrip(".:")
        start = match.start(1) - 1 if match[1] else match.start()
        parts.append((False, text[position:start]))
        parts.append((True, code))
        position = start + len(code) + (2 if match[1] else 0)
    parts.append((False, text[position:]))
    return tuple(part for part in parts if part[1])


def prose_line(text: str) -> str:
    r"""One paragraph of a rule's text: code in backticks stays code, all else is escaped.

    >>> print(prose_line("set `a|b` to *x*"))
    set `a|b` to \*x\*
    """
    shown = [code(part) if is_code else _spaced(part) for is_code, part in segments(text)]
    return "".join(shown).strip()


def cell(text: str) -> str:
    r"""The same for a cell of a table, where a bar ends the cell even within code.

    >>> print(cell("`a` and `a|b`"))
    `a` and a\|b
    """
    shown = [cell_code(part) if is_code else _spaced(part) for is_code, part in segments(text)]
    return "".join(shown).strip()


def cell_code(text: str) -> str:
    """Code in a cell of a table; escaped instead where it holds a bar."""
    return escaped(text) if "|" in text else code(text)


def _spaced(part: str) -> str:
    """Escaped, with the blanks at both ends that `escaped` takes off."""
    before = " " if part[:1].isspace() else ""
    after = " " if part[-1:].isspace() and part.strip() else ""
    return f"{before}{escaped(part)}{after}"
