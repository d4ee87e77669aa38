"""The copy buttons of a page that was opened from a file."""

from __future__ import annotations

import dataclasses

import pytest
import samples

from hcp_logscan.reporting.copies import copies
from hcp_logscan.reporting.html import render_html

NO_CLIPBOARD = "Object.defineProperty(Navigator.prototype, 'clipboard', { value: undefined })"
REFUSED = f"{NO_CLIPBOARD}; document.execCommand = () => false"
_SAMPLE = samples.inactive()
DATA = dataclasses.replace(
    _SAMPLE,
    iterations=samples.frame([]),  # no charts: the pages open faster
    run=samples.filled(_SAMPLE.run, samples.HOSTILE),
    verdict=samples.filled(_SAMPLE.verdict, samples.HOSTILE),
    findings=tuple(
        dataclasses.replace(samples.filled(found, samples.HOSTILE), rule=found.rule)
        for found in _SAMPLE.findings
    ),
)


def pasted(report):
    """What the clipboard holds, as a text field of another page gets it."""
    page = report.page.context.new_page()
    page.set_content("<textarea></textarea>")
    page.locator("textarea").focus()
    page.keyboard.press("Control+V")
    return page.locator("textarea").input_value()


def opened(watch, script="", **options):
    return watch(render_html(DATA), before=lambda page: page.add_init_script(script), **options)


@pytest.mark.parametrize("script", ["", NO_CLIPBOARD], ids=["clipboard", "selection"])
@pytest.mark.parametrize("key", ["summary", "HCP002-1"])
def test_a_button_copies_its_text_and_says_so(watch, script, key):
    report = opened(watch, script)
    button = report.page.locator(f"button[data-copy='{key}']")
    button.focus()
    report.page.keyboard.press("Enter")
    report.page.get_by_role("status").get_by_text("Copied").wait_for(state="attached")
    assert button.inner_text() == "Copied"
    assert button.evaluate("button => button === document.activeElement")
    expected = copies(DATA)[key]
    assert pasted(report) == expected
    report.is_calm()


def test_the_label_comes_back(watch):
    report = opened(watch)
    button = report.page.locator("button[data-copy=summary]")
    button.click()
    button.click()
    button.get_by_text("Copied").wait_for()
    button.get_by_text("Copy summary").wait_for()


def test_a_refusal_is_said(watch):
    report = opened(watch, REFUSED)
    report.page.locator("button[data-copy=summary]").click()
    report.page.get_by_role("status").get_by_text("Copying was refused").wait_for(state="attached")
    report.is_calm()


def test_the_recipe_is_copied_as_shell(watch):
    report = watch(render_html(samples.inactive()))
    report.page.locator("button[data-copy=recipe]").click()
    report.page.get_by_role("status").get_by_text("Copied").wait_for(state="attached")
    assert "\nexport NVTE_DEBUG=1 " in pasted(report)


def test_without_scripts_there_is_no_button(watch):
    report = opened(watch, java_script_enabled=False)
    assert report.page.locator("button").count() > 3
    assert report.page.locator("button:visible").count() == 0


def test_a_policy_that_forbids_all_leaves_no_button(watch):
    strict = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
    report = watch(render_html(DATA).replace("<head>", f"<head>{strict}", 1))
    assert report.page.locator("button:visible").count() == 0


def test_buttons_are_not_printed(watch):
    report = opened(watch)
    assert report.page.locator("button:visible").count() > 3
    report.page.emulate_media(media="print")
    assert report.page.locator("button:visible").count() == 0
