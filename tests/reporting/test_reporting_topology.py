from __future__ import annotations

import dataclasses
import re

import pytest
import samples

from hcp_logscan.reporting import topology, words
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.markdown import render_markdown
from hcp_logscan.reporting.text import render_text

ALL_OF_1024 = tuple(range(1024))


def section(rows) -> str:
    data = dataclasses.replace(samples.unconfirmed(), topology=rows)
    html = render_html(data, charts="static")
    return html[html.index('<section id="topology"') : html.index('<section id="ranks"')]


def said(rows) -> str:
    found = topology.groups(rows)
    assert found
    return topology.membership(found)[1]


def test_page_without_a_layout_has_no_section():
    html = render_html(samples.unconfirmed(), charts="static")
    assert "#topology" not in html
    assert 'id="topology"' not in html


def test_sentence_counts_groups_of_both_levels():
    found = topology.groups(samples.groups(16, (4, 2)))
    assert found
    assert topology.sentence(found) == (
        "CP 8 = 4 × 2 over 16 ranks: 4 groups of L0 (all-to-all) with 4 members,"
        " 8 of L1 (p2p) with 2 members."
    )


def test_a_level_of_size_1_is_shown_as_it_is():
    rows = samples.groups(4, (4, 1))
    found = topology.groups(rows)
    assert found
    assert topology.sentence(found).endswith(
        "1 group of L0 (all-to-all) with 4 members, 4 of L1 (p2p) with 1 member."
    )
    assert 'stroke-width="2"/><path class="band"' not in section(rows)  # no column to draw


@pytest.mark.parametrize(
    ("seen", "wrong", "words_"),
    [
        (range(0), (), "No runtime channel showed members: this is what the sizes ask for."),
        (range(12), (), "Members seen on 12 of 16 ranks."),
        (range(16), (3,), "Members seen on 16 of 16 ranks; rank 3 was in another group."),
        (range(16), (3, 4), "Members seen on 16 of 16 ranks; ranks 3-4 were in other groups."),
    ],
)
def test_membership_is_said_in_words(seen, wrong, words_):
    rows = samples.groups(16, (4, 2), seen=seen, wrong=wrong)
    assert said(rows) == words_
    assert words_ in section(rows)


@pytest.mark.parametrize(
    ("seen", "wrong", "tone", "badge"),
    [
        (range(0), (), "calm", "not seen"),
        (range(12), (), "good", "as expected"),
        (range(16), (3,), "bad", "1 rank differs"),
        (range(16), (3, 4), "bad", "2 ranks differ"),
    ],
)
def test_badge_has_words_and_a_tone(seen, wrong, tone, badge):
    html = section(samples.groups(16, (4, 2), seen=seen, wrong=wrong))
    assert f'<span class="badge {tone}">{badge}</span>' in html


def test_levels_seen_on_different_ranks_are_told_apart():
    rows = tuple(
        dataclasses.replace(row, seen_l1=None) for row in samples.groups(4, (2, 2), seen=range(3))
    )
    assert said(rows) == "Members seen on 3 of 4 ranks (L0 on 3, L1 on 0)."


def test_small_worlds_are_drawn_whole_with_numbers():
    html = section(samples.groups(16, (4, 2)))
    assert html.count('<svg class="groups"') == 2
    assert re.findall(r"<text[^>]*>(\d+)</text>", html) == [str(n) for n in range(16)]
    assert "Rows are L0 groups: 8-11; 12-15." in html


def test_ranks_that_stride_over_tensor_parallelism_keep_their_place():
    html = section(samples.groups(16, (4, 2), tp=2))
    assert "CP group 1: ranks 1-15 in steps of 2" in html
    assert "Rows are L0 groups: 1-7 in steps of 2; 9-15 in steps of 2." in html


def test_many_groups_alike_are_drawn_a_few_times_and_counted():
    html = section(samples.groups(1024, (8, 2), seen=range(1024)))
    assert html.count('<svg class="groups"') == 4
    assert "60 more groups alike, every rank seen as expected." in html


def test_groups_with_wrong_members_are_always_drawn():
    rows = samples.groups(1024, (8, 2), seen=range(512), wrong=(700, 333, 511))
    html = section(rows)
    assert "CP group 20: ranks 320-335" in html
    assert "CP group 31: ranks 496-511" in html
    assert "CP group 43: " not in html  # rank 700 was not seen at all
    assert "26 more groups alike, every rank seen as expected." in html
    assert "28 more groups alike, no rank seen." in html
    assert "1 differs" in html


def test_partly_seen_groups_are_a_kind_of_their_own():
    html = section(samples.groups(1024, (8, 2), seen=range(0, 1024, 3)))
    assert "60 more groups with ranks seen as expected and ranks not seen." in html


@pytest.mark.parametrize("sizes", [(2, 2), (8, 2), (4, 8), (16, 4), (32, 32), (2, 512), (512, 2)])
@pytest.mark.parametrize("wrong", [(), (5, 700), ALL_OF_1024])
def test_a_thousand_ranks_stay_small(sizes, wrong):
    html = section(samples.groups(1024, sizes, seen=range(1024), wrong=wrong))
    assert len(html.encode()) < 40_000


def test_what_is_not_drawn_is_counted():
    html = section(samples.groups(1024, (8, 2), seen=range(1024), wrong=ALL_OF_1024))
    assert "40 more groups with wrong members not drawn." in html
    assert re.search(r"\d+ further rows stand in the JSON report", html)


def test_groups_too_large_to_draw_are_counted():
    html = section(samples.groups(4096, (64, 32)))
    assert "2 groups alike, no rank seen." in html
    assert '<svg class="groups"' not in html


def test_differences_are_listed_with_both_groups():
    html = section(samples.groups(16, (4, 2), seen=range(16), wrong=(3, 12)))
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", html)[4:]
    assert cells == [
        "3",
        "L0 (all-to-all)",
        "0-3",
        "3, 7",
        "12",
        "L0 (all-to-all)",
        "12-15",
        "8, 12",
    ]


def test_drawings_use_presentation_attributes_only_and_say_what_they_show():
    html = section(samples.groups(64, (8, 2), seen=range(60), wrong=(9,)))
    assert "style=" not in html
    drawings = re.findall(r'<svg class="groups".*?</svg>', html, re.DOTALL)
    assert len(drawings) == 4
    for drawing in drawings:
        assert 'role="img"' in drawing
        assert "<title>Context parallel group" in drawing
        assert "<desc>Rows are L0 groups" in drawing
    assert "Seen with other members: rank 9." in drawings[0]
    assert 'fill="#b3194a"' in drawings[0]


def test_states_differ_in_shape_and_words_not_only_in_colour():
    html = section(samples.groups(64, (8, 2), seen=range(60), wrong=(9,)))
    for words_ in topology.STATE_WORDS.values():
        assert f"<b>{words_}</b>" in html
    assert re.search(r'class="t-wrong" d="M[\d ]+h\d+l', html)


def test_short_formats_say_it_in_one_line_where_members_were_seen():
    data = samples.unconfirmed()
    silent = dataclasses.replace(data, topology=samples.groups(16, (4, 2)))
    assert "Groups: " not in render_text(silent) + render_markdown(silent)
    seen = dataclasses.replace(data, topology=samples.groups(16, (4, 2), seen=range(12)))
    line = "Groups: CP 8 = 4 × 2; members seen on 12 of 16 ranks, as expected"
    assert f"\n{line}\n" in render_text(seen)
    assert f"\n{line}.\n" in render_markdown(seen)
    wrong = dataclasses.replace(
        data, topology=samples.groups(16, (4, 2), seen=range(12), wrong=(1, 2))
    )
    line = "Groups: CP 8 = 4 × 2; members seen on 12 of 16 ranks; 2 ranks differ: 1-2"
    assert f"\n{line}\n" in render_text(wrong)
    assert f"\n{line}.\n" in render_markdown(wrong)


def test_the_line_is_there_where_progress_leads():
    data = samples.not_requested()
    data = dataclasses.replace(data, topology=samples.groups(4, (2, 2), seen=range(4)))
    assert "Groups: CP 4 = 2 × 2; members seen on 4 of 4 ranks" in render_text(data)


def test_members_keep_their_order():
    assert words.members((1, 0, 3, 2)) == "1, 0, 3, 2"
    assert words.members(()) == ""


@pytest.mark.parametrize(("sizes", "tall"), [((8, 2), False), ((2, 512), True)])
def test_only_high_drawings_scroll(sizes, tall):
    assert ('class="scroll tall"' in section(samples.groups(1024, sizes))) is tall
