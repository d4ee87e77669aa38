from __future__ import annotations

import dataclasses

import pytest
import samples

from hcp_logscan.model.finding import STATUSES
from hcp_logscan.reporting import words
from hcp_logscan.reporting.base import RENDERERS
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.wishes import Wishes

WISHES = Wishes()
MAKERS = [*samples.ALL, samples.huge]


@pytest.mark.parametrize("suffix", RENDERERS)
@pytest.mark.parametrize("make", MAKERS)
def test_every_renderer_gives_the_same_bytes_again(suffix, make):
    render = RENDERERS[suffix]
    shown = render(make(), WISHES)
    for text in texts(shown):
        assert text.endswith("\n")
        text.encode("utf-8")
    assert shown == render(make(), WISHES)


def texts(rendered):
    """The texts of a document, or of a folder."""
    if isinstance(rendered, str):
        return [rendered]
    return [content.decode() for name, content in rendered.items() if name.endswith(".json")]


@pytest.mark.parametrize("suffix", RENDERERS)
def test_every_renderer_survives_hostile_text(suffix):
    rendered = RENDERERS[suffix](samples.filled(samples.inactive(), samples.HOSTILE), WISHES)
    for text in texts(rendered):
        assert "\x00" not in text
        text.encode("utf-8")


@pytest.mark.parametrize("suffix", [".html", ".md"])
@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_words(suffix, status):
    data = samples.inactive()
    data = dataclasses.replace(data, verdict=dataclasses.replace(data.verdict, status=status))
    word = words.STATUS_WORDS[status][0]
    assert word.lower() in RENDERERS[suffix](data, WISHES).lower()


@pytest.mark.parametrize("status", STATUSES)
def test_a_verdict_says_nothing_twice(status):
    word, meaning, _ = words.STATUS_WORDS[status]
    data = samples.inactive()
    same = dataclasses.replace(data.verdict, status=status, summary=f"{meaning}.")
    # the script of the other page has the Markdown summary to copy
    html = render_html(dataclasses.replace(data, verdict=same), charts="static")
    assert html.count(f"{meaning}.") == 1, word


def test_coverage_says_what_the_world_is():
    verdict = samples.inactive().verdict
    assert words.coverage(verdict, 64) == "seen on 30 of 32 ranks; the world has 64"
    none = samples.unconfirmed().verdict
    assert words.coverage(none, 32) == "runtime evidence on none of 32 ranks"
    merged = dataclasses.replace(verdict, ranks_seen=0)
    assert words.coverage(merged, None) == "seen in lines that name 30 ranks"
    assert words.coverage(merged, 64) == "seen in lines that name 30 ranks of 64"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "not logged"), (float("nan"), "NaN"), (float("-inf"), "-Inf"), (1234.56, "1,234.6")],
)
def test_numbers_in_words(value, shown):
    assert words.fixed(value) == shown
