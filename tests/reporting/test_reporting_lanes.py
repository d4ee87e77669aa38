"""What broke first, drawn: lanes for those that matter, however many ranks followed."""

import dataclasses

from samples import TIMELINE, inactive

from hcp_logscan.model.report import Story, TimelineEntry
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
