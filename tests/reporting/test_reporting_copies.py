"""What the copy buttons hand out, and how it stands in the page."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
import samples

from hcp_logscan.analysis.verdict import rerun_recipe
from hcp_logscan.reporting.copies import copies, finding_markdown
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.markdown import render_markdown
from hcp_logscan.reporting.recipe import shell


def carried(html):
    found = re.search(
        r'<script type="application/json" id="copies">(.*?)</script>', html, re.DOTALL
    )
    assert found
    return json.loads(found[1])


@pytest.mark.parametrize("make", samples.ALL)
def test_every_button_has_its_text_and_every_text_its_button(make):
    html = render_html(make())
    keys = re.findall(r'<button [^>]*data-copy="([^"]*)"', html)
    assert sorted(keys) == sorted(carried(html))
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("make", samples.ALL)
def test_a_static_page_has_no_button(make):
    assert "<button" not in render_html(make(), charts="static")


def test_buttons_are_hidden_until_the_script_shows_them():
    buttons = re.findall(r"<button [^>]*>", render_html(samples.inactive()))
    assert len(buttons) > 3
    assert all(button.endswith(" hidden>") for button in buttons)


def test_hostile_text_travels_as_it_is():
    data = samples.filled(samples.inactive(), samples.HOSTILE)
    html = render_html(data)
    assert carried(html) == copies(data)
    assert carried(html)["summary"] == render_markdown(data)


def test_a_finding_is_a_ticket_of_its_own():
    data = samples.inactive()
    text = finding_markdown(data, data.findings[0])
    assert text.startswith(f"### `HCP002` {data.findings[0].name}\n\n**error** ")
    assert "logs/rank_00000.log:40 [rank 0]    argument_0" in text
    assert "37 more lines of evidence." in text
    assert "**What to do**" in text
    assert "high confidence" in text


def test_lists_in_advice_stay_lists():
    data = samples.inactive()
    finding = dataclasses.replace(data.findings[0], fix="Do:\n- this\n- that *now*\n")
    assert finding_markdown(data, finding).endswith("Do:\n\n- this\n\n- that \\*now\\*\n")


def test_the_recipe_sets_what_it_asks_for_and_comments_the_rest():
    facts = {"cp_comm_type": "a2a+p2p", "config_complete": True}
    lines = shell(rerun_recipe(facts)).splitlines()
    live = [line for line in lines if not line.startswith("#")]
    assert live == ["export NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 TORCH_CPP_LOG_LEVEL=INFO"]
    assert "# export NCCL_DEBUG=INFO" in lines
    assert "# export RAY_DEDUP_LOGS=0" in lines
    assert lines[-1] == "# Scan again with --expect active."


def test_steps_without_a_setting_are_no_script():
    assert shell(["Scan again.", "Keep x=1 of all."]) == ""


@pytest.mark.parametrize(
    "evil",
    [
        "Set A_B=$(touch /tmp/x) now\nrm -rf /",
        "Set A_B=`id` and\r\nC=1;id",
        'A_B="x"; id',
        samples.HOSTILE,
        "A=\u2028id",
    ],
)
def test_no_step_makes_the_script_do_more_than_set_variables(evil):
    for line in shell(["X_Y=1", evil, evil * 20]).splitlines():
        assert re.fullmatch(r"#.*|export( [A-Z][A-Z0-9_]*=[A-Za-z0-9_.,:/-]+)+", line)
    for line in shell([evil]).splitlines():
        assert re.fullmatch(r"#.*|export( [A-Z][A-Z0-9_]*=[A-Za-z0-9_.,:/-]+)+", line)
