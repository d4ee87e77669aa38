"""axe-core finds nothing against WCAG 2.1 A and AA in the pages, in either scheme."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import samples

from hcp_logscan import demo_run, scan
from hcp_logscan.model.report import RateLevels
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.triage import Row, judged, triage_index, worst_first

FIXTURES = Path(__file__).parents[1] / "fixtures"
PHONE = {"viewport": {"width": 390, "height": 844}}
WCAG = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
COLOURS = {"type": "rule", "values": ["color-contrast"]}
"""All that differs between the schemes."""

UNFOLD = "document.querySelectorAll('details').forEach(found => { found.open = true })"


def sample():
    with demo_run() as folder:
        return scan(folder).data


def levelled():
    levels = (RateLevels(1, believable=(98.9, 742.0), if_cp_off=493.2, cp_size=16),)
    return dataclasses.replace(samples.inactive(), peak=samples.H100, levels=levels)


def four_ranks():
    return scan(FIXTURES / "hcp22-redirect" / "run").data


PAGES = {
    "sample": sample,
    "4 ranks": four_ranks,
    "32 ranks, levels": levelled,
    "64 ranks": samples.mixed,
    "1,024 ranks": samples.huge,
    "baseline": samples.beside,
    "out of memory": samples.not_requested,
    "nothing known": samples.empty,
}


def problems(page, rules: dict[str, Any] = WCAG) -> list[dict[str, Any]]:
    """What axe-core objects to; playwright hands it in past the policy of the page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core")
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    response = axe.Axe().run(page, options=options).response
    assert len(response["passes"]) > (20 if rules == WCAG else 0)  # it did look
    return [
        {"rule": found["id"], "nodes": [node["html"][:200] for node in found["nodes"]]}
        for found in response["violations"]
    ]


@pytest.mark.parametrize(
    ("name", "charts"),
    [
        ("sample", "static"),
        ("sample", "interactive"),
        ("4 ranks", "static"),
        ("32 ranks, levels", "interactive"),
        ("64 ranks", "interactive"),
        ("1,024 ranks", "static"),  # a quarter of a minute: the charts are those of the others
        ("baseline", "interactive"),
        ("out of memory", "static"),
        ("nothing known", "static"),
    ],
)
def test_report_is_accessible_in_both_schemes(watch, name, charts):
    report = watch(render_html(PAGES[name](), charts=charts), color_scheme="light")
    report.page.evaluate(UNFOLD)
    if charts == "interactive":
        report.scroll_through()
    assert problems(report.page) == []
    report.page.emulate_media(color_scheme="dark")
    assert problems(report.page, COLOURS) == []


def test_report_is_accessible_on_a_phone_before_it_is_unfolded(watch):
    report = watch(render_html(sample(), charts="static"), **PHONE)
    assert problems(report.page) == []


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_triage_page_is_accessible_in_both_schemes(watch, options):
    made = [samples.inactive(), samples.mixed(), samples.not_requested(), samples.empty()]
    rows = [judged(data, f"run-{n}", n, 1, f"run-{n}.html") for n, data in enumerate(made)]
    rows.append(Row("gone", 9, 2, error="no such file"))
    report = watch(triage_index(worst_first(rows)), **options)
    assert problems(report.page) == []
    report.page.emulate_media(color_scheme="dark")
    assert problems(report.page, COLOURS) == []


def test_axe_does_find_what_is_wrong(watch):
    broken = render_html(samples.inactive(), charts="static").replace(' lang="en"', "", 1)
    assert [found["rule"] for found in problems(watch(broken).page)] == ["html-has-lang"]


def test_tabs_go_down_the_page_in_the_order_of_reading(watch):
    report = watch(render_html(samples.inactive(), charts="static"), **PHONE)  # one column
    tops = []
    for _ in range(40):
        report.page.keyboard.press("Tab")
        focused = "document.activeElement.getBoundingClientRect().top + scrollY"
        inside = report.page.evaluate("document.activeElement.closest('main') !== null")
        tops += [report.page.evaluate(focused)] if inside else []
    assert len(tops) > 20
    assert tops == sorted(tops)


def test_the_first_tab_leads_past_the_navigation(watch):
    report = watch(render_html(samples.inactive(), charts="static"))
    report.page.keyboard.press("Tab")
    assert report.page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    assert report.page.locator(".skip").evaluate("el => el.getBoundingClientRect().left >= 0")


def test_nothing_moves_for_those_who_ask_for_stillness(watch):
    report = watch(render_html(samples.inactive()), reduced_motion="reduce")
    report.scroll_through()
    assert report.page.evaluate("document.getAnimations().length") == 0
    report.page.locator("button[data-copy=summary]").click()
    report.page.get_by_role("status").get_by_text("Copied").wait_for(state="attached")
    assert report.page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize("charts", ["static", "interactive"])
def test_every_chart_has_a_text_alternative(watch, charts):
    report = watch(render_html(levelled(), charts=charts))
    role = "img"
    if charts == "interactive":
        report.scroll_through()
        role = "group"
    for title in ("Throughput", "Loss", "Step time", "Gradient norm"):
        name = report.page.get_by_role(role, name=f"{title} over iterations. First")
        assert name.count() == 1
    spoken = report.page.get_by_role(role, name="a dotted line, if CP was off")
    assert spoken.count() == 1
