from __future__ import annotations

import dataclasses
import re

import pytest
import samples

from hcp_logscan.model.finding import Location
from hcp_logscan.model.report import SeriesSummary, Spread
from hcp_logscan.reporting.markdown import code, escaped, fenced, prose, render_markdown

MAKERS = [*samples.ALL, samples.huge]
NASTY = samples.HOSTILE + " ``` ~~~ `x` **b** # h\n```\n</details>\n| a | b |\n- [ ] x\n1. y"


def _outside_fences(text: str) -> str:
    """What Markdown would read: the text without fenced blocks and code spans."""
    kept, fence = [], ""
    for line in text.splitlines():
        mark = re.match("`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif mark:
            fence = mark[0]
        else:
            kept.append(line)
    assert not fence
    return re.sub(r"(?<!\\)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", "\n".join(kept))


@pytest.mark.parametrize("make", MAKERS)
def test_log_text_makes_no_markup(make):
    text = render_markdown(samples.filled(make(), NASTY))
    outside = _outside_fences(text)
    tags = set(re.findall(r"<[^>]*>", outside))
    assert tags <= {"<details>", "</details>", "<summary>", "</summary>", "<!-- -->"}
    assert outside.count("<details>") == outside.count("</details>")
    assert not re.search(r"(?<!\\)\[", outside)
    assert not re.search(r"@\w", outside)
    calm = _outside_fences(render_markdown(samples.filled(make(), "calm")))
    for mark in ("#", "- ", "|"):
        starts = [line for line in outside.splitlines() if line.startswith(mark)]
        assert len(starts) == len([line for line in calm.splitlines() if line.startswith(mark)])


@pytest.mark.parametrize("make", MAKERS)
def test_hostile_text_is_made_visible(make):
    text = render_markdown(samples.filled(make(), samples.HOSTILE))
    text.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)


def test_table_rows_have_equal_cells():
    data = samples.filled(samples.inactive(), "a | b")
    rows = [line for line in render_markdown(data).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}


def test_fences_are_longer_than_any_run_inside():
    assert fenced(["a ```` b"]).splitlines()[0] == "`````text"
    assert code("a ``` b") == "```` a ``` b ````"


def test_ordinary_names_stay_readable():
    assert escaped("hierarchical_context_parallel_sizes a2a+p2p") == (
        "hierarchical_context_parallel_sizes a2a+p2p"
    )


@pytest.mark.parametrize("start", ["# x", "- x", "+ x", "= x", "1. x", "> x"])
def test_blocks_are_not_opened(start):
    assert not re.match(r"[#+=>-]|\d+\.", escaped(start))


def test_code_in_advice_stays_code():
    assert prose("Set `--a b` and X_Y=1.") == "Set `--a b` and `X_Y=1`."


def test_ticket_is_short_and_says_the_verdict_first():
    text = render_markdown(samples.inactive())
    assert text.startswith("## llama-70b-cp16-h200: HCP inactive\n")
    assert len(text) < 6_000
    assert text.index("Next steps") < text.index("<details>")


def test_what_was_not_logged_has_no_column():
    series = SeriesSummary(8, step_ms=Spread(5.0, 5.0, 5.0))
    text = render_markdown(dataclasses.replace(samples.inactive(), series=series))
    assert "| iterations | step time | attempts |\n|---|---|---|\n| 8 | 5.0 ms median |" in text


def test_notes_are_one_line_each():
    base = samples.inactive()
    lines = render_markdown(base).splitlines()
    assert "- **note** `HCP013` Pure a2a would do here. (attempt 1)" in lines
    assert not any("--cp-comm-type" in line for line in lines)
    assert any("**Fix:** Set `--hierarchical-context-parallel-sizes 8 2`" in line for line in lines)


def test_the_first_place_is_named_and_the_others_counted():
    text = render_markdown(samples.inactive())
    assert "Seen at `logs/rank_00000.log:40` and 39 more lines." in text
    assert "logs/rank_00000.log:42 [rank 0]" in text.partition("<details>")[2]


@pytest.mark.parametrize("evil", ["@a ", "<&", "\U000e0001", "`", "x" * 99], ids=repr)
@pytest.mark.parametrize("make", MAKERS)
def test_no_text_is_too_long_for_a_comment(make, evil):
    data = samples.filled(make(), evil * 2_000)
    verdict = dataclasses.replace(data.verdict, next_steps=("@a " * 2_000,) * 40)
    text = render_markdown(dataclasses.replace(data, verdict=verdict))
    assert len(text.encode()) <= 60_000
    assert text.startswith("## ")
    assert text.count("<details>") == text.count("</details>")


def test_huge_run_is_short_too():
    assert len(render_markdown(samples.huge())) < 6_000


def test_failure_leads_where_hcp_was_not_requested():
    text = render_markdown(samples.not_requested())
    assert text.startswith("## llama-70b-cp16-h200: The run reached iteration 37 (failed).")
    assert "**error** `HCP501`" in text


def test_long_lines_are_cut():
    data = samples.not_requested()
    finding = dataclasses.replace(data.findings[0], evidence=(Location("a", 1, "x" * 5_000),))
    assert len(render_markdown(dataclasses.replace(data, findings=(finding,)))) < 3_000
