"""What broke first, drawn: lanes for those that matter, however many ranks followed."""

import dataclasses
import re

from samples import TIMELINE, inactive

from hcp_logscan.model.report import Place, Story, TimelineEntry
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.lanes import MAX_LANES, MAX_MARKS, MAX_ROWS, story_view
from hcp_logscan.reporting.markdown import render_markdown


def entry(who, role, *, ranks=(), count=1, attempt=0, text="x", line=1, time=None):
    return TimelineEntry(
        attempt, time, False, who, ranks, role, "exception", text, count, None, "a.log", line
    )


def told(*entries, sentences=("Rank 3 broke first.",), more=()):
    stories = (Story(None, sentences), Story(0, sentences), *more)
    return dataclasses.replace(inactive(), stories=stories, timeline=entries)


def test_no_story_no_section():
    whole = dataclasses.replace(inactive(), stories=(Story(None), Story(0)))

    assert story_view(whole, {}) is None
    assert 'id="story"' not in render_html(whole, charts="static")
    assert "What broke" not in render_markdown(whole)


def test_the_job_comes_first_then_who_broke_then_who_followed():
    view = story_view(
        told(
            entry("ranks", "cascade", ranks=(0, 1, 2), count=3),
            entry("job", "progress"),
            entry("rank 3", "root", ranks=(3,)),
        ),
        {},
    )

    assert [lane.label for lane in view.lanes] == ["the job", "rank 3", "ranks 0-2"]
    assert [(mark.role, mark.count) for mark in view.marks] == [
        ("cascade", "×3"),
        ("progress", ""),
        ("root", ""),
    ]
    assert [mark.x for mark in view.marks] == sorted({mark.x for mark in view.marks})


def test_a_thousand_ranks_share_the_lanes_of_their_roles():
    many = [entry(f"rank {n}", "cascade", ranks=(n,), line=n) for n in range(1023)]
    view = story_view(told(*many, entry("rank 1023", "root", ranks=(1023,), line=1023)), {})

    assert [lane.label for lane in view.lanes] == ["rank 1023", "failed because of another…"]
    assert len(view.marks) == MAX_MARKS
    assert view.left_out == 1024 - MAX_MARKS
    assert len(view.rows) == MAX_ROWS
    assert len(view.more_rows) == 1024
    assert view.rows[-1].who == "rank 1023"
    few = story_view(told(*many[: MAX_LANES - 1], entry("rank 1023", "root")), {})
    assert len(few.lanes) == MAX_LANES


def test_a_row_leads_to_the_finding_that_its_line_proves():
    view = story_view(told(entry("rank 3", "root", line=7)), {("a.log", 7): "f-1"})

    assert view.rows[0].anchor == "f-1"
    assert view.rows[0].where == "a.log:7"


def test_attempts_have_their_stories_and_their_place_in_the_drawing():
    later = Story(1, ())
    view = story_view(
        told(entry("job", "progress"), entry("job", "progress", attempt=1), more=(later,)), {}
    )

    assert [attempt for attempt, _ in view.attempts] == [0, 1]
    assert [name for _, name in view.splits] == ["attempt 0", "attempt 1"]
    page = render_html(told(entry("job", "progress"), more=(later,)), charts="static")
    assert "nothing is known to have broken" in page


def test_the_page_draws_every_role_and_says_it_in_words():
    roles = ("root", "rejection", "cascade", "teardown", "confirmation", "advice", "progress", "?")
    data = told(*(entry("rank 1", role, line=n) for n, role in enumerate(roles)))
    page = render_html(data, charts="static")
    section = page[page.index('id="story"') : page.index('id="numbers"')]

    assert section.count("<tr>") == len(roles) + 1
    assert "role not known" in section
    assert "style=" not in section


def test_log_text_of_the_timeline_stays_text():
    data = told(entry("<b>rank</b>", "root", text="<script>alert(1)</script>"))
    page, ticket = render_html(data, charts="static"), render_markdown(data)

    assert "<script>alert" not in page
    assert "<script>alert" in ticket
    assert not [part for part in ticket.split("```")[::2] if "<b>" in part or "<script" in part]


def test_samples_show_it():
    assert story_view(inactive(), {}).rows[0].what == TIMELINE[0].text


def rests_on(*pairs, entries=()):
    """A report whose story has these sentences, each with the lines of `a.log` it rests on."""
    story = Story(
        None,
        tuple(text for text, _ in pairs),
        tuple(tuple(Place("a.log", line) for line in lines) for _, lines in pairs),
    )
    return dataclasses.replace(inactive(), stories=(story, story), timeline=entries)


def test_a_sentence_leads_to_the_finding_or_the_entry_that_shows_its_line():
    data = rests_on(
        ("Rank 3 broke first [a.log:1]; nothing tells of rank 4 [a.log:2].", (1, 2)),
        ("Then 3 ranks timed out.", (3, 9)),
        ("Nothing is kept.", (9,)),
        entries=[entry("rank 3", "root", line=line) for line in (1, 2, 3)],
    )

    view = story_view(data, {("a.log", 1): "HCP508-0"})

    assert view.sentences == (
        (
            ("Rank 3 broke first [", ""),
            ("a.log:1", "HCP508-0"),
            ("]; nothing tells of rank 4 [", ""),
            ("a.log:2", "timeline-1"),
            ("].", ""),
        ),
        (("Then 3 ranks timed out.", ""), (" \u2192 ", ""), ("a.log:3", "timeline-2")),
        (("Nothing is kept.", ""),),
    )
    assert [row.id for row in view.rows] == ["", "timeline-1", "timeline-2"]


def test_each_anchor_of_the_page_is_there_once_and_every_link_arrives():
    entries = [entry(f"rank {n}", "cascade", line=n) for n in range(1, 40)]
    page = render_html(
        rests_on(("Then 39 ranks timed out.", (1, 20, 39)), entries=entries), charts="static"
    )

    ids = re.findall(r'id="(timeline-\d+)"', page)
    links = re.findall(r'href="#(timeline-\d+)"', page)
    assert sorted(ids) == sorted(links) == ["timeline-0", "timeline-19", "timeline-38"]


def test_markdown_names_the_first_line_of_a_sentence_that_names_none():
    data = rests_on(("Rank 3 broke first [a.log:1].", (1,)), ("Then 3 ranks timed out.", (3, 4)))

    said = render_markdown(data).replace("\\", "")
    assert "Rank 3 broke first [a.log:1]. Then 3 ranks timed out [a.log:3]." in said
