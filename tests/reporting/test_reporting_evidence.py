from __future__ import annotations

import dataclasses
import re

import pytest
import samples

from hcp_logscan.model.finding import Evidence, Verdict
from hcp_logscan.reporting import words
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.markdown import render_markdown
from hcp_logscan.reporting.text import render_text
from hcp_logscan.reporting.view.evidence import channels
from hcp_logscan.reporting.view.excerpts import counted

FOR_ALL = "decided by configuration, for all ranks"


def test_equal_pieces_of_many_ranks_are_told_once():
    te, recorder, c10d, *rest = channels(samples.mixed().verdict)
    assert [channel.name for channel in (te, recorder, c10d)] == [
        "te_debug",
        "flight_recorder",
        "c10d",
    ]
    assert [channel.name for channel in rest] == ["nccl", "print", "config"]
    assert (te.summary, te.tone, te.lines) == (
        "active and inactive",
        "bad",
        "128 lines, ranks 0-63",
    )
    assert [(piece.says, piece.traits) for piece in te.pieces] == [
        ("inactive", ("text layers", "2 lines, ranks 17, 42")),
        ("inactive", ("vision layers", "2 lines, ranks 17, 42")),
        ("active", ("text layers", "62 lines, ranks 0-16, 18-41, 43-63")),
        ("active", ("vision layers", "62 lines, ranks 0-16, 18-41, 43-63")),
    ]
    (opened,) = c10d.pieces
    assert opened.traits == ("128 lines, ranks 0-63",)
    assert counted(opened.excerpts) == 2  # both levels of one rank
    assert 2 + opened.more_places + opened.hidden == 128


def test_page_shows_few_lines_and_counts_the_rest():
    html = render_html(samples.mixed(), charts="static")
    evidence = html[html.index('id="evidence"') : html.index('id="course"')]
    assert "10 more lines that say the same (of 126)" in evidence
    assert "116 further lines that say the same stand in the JSON report." in evidence
    assert len(evidence) < 60_000


def test_markdown_tells_equal_pieces_once():
    text = render_markdown(samples.mixed())
    assert "**c10d** says active, grade A (128 lines, ranks 0-63): " in text
    assert "**te_debug** says inactive of text layers, grade A (2 lines, ranks 17, 42): " in text
    assert len(text) < 6_500


def test_neutral_pieces_come_last_within_a_channel():
    pieces = [
        Evidence("c10d", says, "C" if says == "neutral" else "A", samples.place(n, "x", n))
        for n, says in enumerate(("neutral", "active", "neutral"))
    ]
    assert [len(same) for same in words.same_pieces(pieces)] == [1, 2]


def verdict(status, *evidence, confirmed=0, seen=16):
    return Verdict(
        status, "high", "", ranks_confirmed=confirmed, ranks_seen=seen, evidence=evidence
    )


def piece(channel, says, grade="A", rank=None):
    return Evidence(channel, says, grade, samples.place(1, "x", rank))


@pytest.mark.parametrize(
    "found",
    [
        verdict("inactive", piece("config", "inactive")),
        verdict("inactive", piece("path", "inactive", "B"), seen=0),
        verdict("inactive", piece("config", "inactive"), piece("c10d", "neutral", "C", 3)),
        verdict("inactive"),
        verdict("degenerate", piece("c10d", "active", "A", 3)),
        verdict("rejected", piece("assertion", "neutral")),
        verdict("not_requested", seen=0),
    ],
)
def test_what_the_configuration_decides_holds_for_all_ranks(found):
    assert words.coverage(found, 32) == FOR_ALL


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            verdict("unconfirmed", piece("config", "neutral", "C")),
            "runtime evidence on none of 16 ranks",
        ),
        (verdict("inactive", piece("te_debug", "inactive"), confirmed=3), "seen on 3 of 16 ranks"),
        (
            verdict("inactive", piece("print", "inactive", "B")),
            "seen in lines that name no rank; 16 ranks in these logs",
        ),
        (
            verdict("active", piece("te_debug", "active"), seen=0),
            "ranks cannot be told apart in these logs",
        ),
    ],
)
def test_other_verdicts_count_ranks(found, said):
    assert words.coverage(found, 16) == said


def test_no_meter_where_no_rank_had_to_confirm():
    data = samples.inactive()
    by_config = dataclasses.replace(
        data.verdict, ranks_confirmed=0, evidence=data.verdict.evidence[1:]
    )
    data = dataclasses.replace(data, verdict=by_config)
    html = render_html(data, charts="static")
    assert re.search(rf"<dd>{FOR_ALL}\s*</dd>", html)
    assert f"Coverage: {FOR_ALL}\n" in render_text(data)
    assert f"Coverage: {FOR_ALL}.\n" in render_markdown(data)
