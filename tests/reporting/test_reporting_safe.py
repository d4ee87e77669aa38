from __future__ import annotations

import pytest

from hcp_logscan.reporting.safe import cut, encodable, one_line, visible


@pytest.mark.parametrize(
    ("unsafe", "shown"),
    [
        ("\x00", "␀"),
        ("\r", "␍"),
        ("\x7f", "␡"),
        ("\x9b", "\\x9b"),
        ("\u202e", "\\u202e"),
        ("\ufeff", "\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\udc80", "\\x80"),
        ("\ud800", "\\ud800"),
    ],
)
def test_unsafe_characters_are_spelt_out(unsafe, shown):
    assert visible(f"a{unsafe}b") == f"a{shown}b"


def test_ordinary_text_is_untouched():
    text = "日本 é \u00a0 → 😀 \t\n"
    assert visible(text) == text
    assert encodable(text) == text


def test_one_line_has_no_breaks():
    assert one_line("a\tb\nc") == "a    b␊c"


def test_cut_says_so():
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "ab…")
