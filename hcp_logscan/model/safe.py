"""Making log text harmless to show without hiding what it held.

Logs may carry terminal escapes, bidirectional overrides, NUL bytes and bytes that are no UTF-8, and
so may rules of unknown authors. Whoever shows their text shows such characters spelt out, so that
nothing in them acts on its reader.
"""

from __future__ import annotations

import re
from typing import Final

# C0 but tab and line feed, DEL, C1, line and paragraph separators, bidirectional and other
# invisible controls, tag characters, the byte order mark, and lone surrogates (how Python
# carries bytes that are no UTF-8)
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff\ufffe\uffff]"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_BYTE: Final = range(0xDC80, 0xDD00)


def _spelt(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode has a picture of each C0 control
    if code == 0x7F:
        return "\u2421"
    if code in _ESCAPED_BYTE:  # `surrogateescape`: the byte that was read
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: str) -> str:
    r"""The text with every unsafe character spelt out; tabs and line feeds stay.

    >>> visible("\x1b[31mred\x00 \udcff \u202e")
    '␛[31mred␀ \\xff \\u202e'
    """
    return _UNSAFE.sub(_spelt, text)


def one_line(text: str) -> str:
    r"""The text as one safe line: tabs become spaces, line feeds the picture `␊`.

    >>> one_line("a\tb\nc")
    'a    b␊c'
    """
    return visible(text).replace("\t", "    ").replace("\n", "\u240a")


def encodable(text: str) -> str:
    r"""The text with lone surrogates spelt out: what UTF-8 can carry, all else unchanged.

    >>> encodable("\x1b \udcff")
    '\x1b \\xff'
    """
    return _SURROGATE.sub(_spelt, text)


def cut(text: str, limit: int) -> str:
    """The text, or its beginning with `…` where it is longer than `limit` characters.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"
