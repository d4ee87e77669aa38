"""Prose of rule files: wrapped there for the editor, unwrapped for whoever shows it."""

from __future__ import annotations

import re
from typing import Final

_PUNCTUATION: Final = "\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_WIDE: Final = f"\u2e80-\u9fff\uf900-\ufaff{_PUNCTUATION}"
# A line break becomes a blank; Chinese has none between characters or at punctuation.
_BLANK: Final = re.compile(
    f"(?<=[{_WIDE}]) (?=[{_WIDE}])|(?<=[{_PUNCTUATION}]) (?=\\S)|(?<=\\S) (?=[{_PUNCTUATION}])"
)


def reflow(text: str) -> str:
    r"""The text with one line per paragraph, list item (`- `) and indented line (code).

    Paragraphs stand one empty line apart.

    >>> reflow("one\ntwo\n\n- three\n- four\n\n    code here\n")
    'one two\n\n- three\n- four\n\n    code here'
    >>> reflow("上下文\n并行，\nCP 大小")
    '上下文并行，CP 大小'
    """
    paragraphs = re.split(r"\n\s*\n", text.strip("\n").rstrip())
    return "\n\n".join(_paragraph(one) for one in paragraphs)


def _paragraph(text: str) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        if lines and not line.startswith((" ", "- ")) and not lines[-1].startswith(" "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line.rstrip())
    return "\n".join(one if one.startswith(" ") else _BLANK.sub("", one) for one in lines)
