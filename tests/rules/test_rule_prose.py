"""Prose of rule files: unwrapped once, at loading."""

from __future__ import annotations

import pytest

from hcp_logscan.rules import load
from hcp_logscan.rules.prose import reflow


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo\n", "one two"),
        ("one\n\n\ntwo", "one\n\ntwo"),
        ("head:\n- a\n  b\n- c", "head:\n- a\n  b\n- c"),
        ("run\n\n    A=1 B=2\n\nnow", "run\n\n    A=1 B=2\n\nnow"),
        ("上下\n文", "上下文"),
        ("并行；\n没有", "并行；没有"),
        ("用 a2a\n训练", "用 a2a 训练"),
        ("训练\nCP", "训练 CP"),
        ("（\nCP）", "（CP）"),
    ],
)
def test_soft_line_breaks_go_and_meant_ones_stay(text, expected):
    assert reflow(text) == expected
    assert reflow(expected) == expected


def test_shipped_texts_have_no_blank_at_chinese_punctuation():
    for rule in load.load_rules():
        zh = rule.texts("zh")
        for text in (zh.summary, zh.message, zh.why, zh.fix):
            assert not {"， ", "。 ", "； ", "： "} & {text[i : i + 2] for i in range(len(text))}
