"""JUnit XML: what a CI server makes of a report."""

import dataclasses
import re
from xml.etree import ElementTree as ET

import pytest
import samples

from hcp_logscan.model.report import Health
from hcp_logscan.reporting.junit import render_junit
from hcp_logscan.reporting.wishes import Wishes

CHILDREN = {
    "testsuites": (["testsuite"], {"name", "tests", "failures", "errors", "time"}),
    "testsuite": (
        ["properties", "testcase"],
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    ),
    "properties": (["property"], set()),
    "property": ([], {"name", "value"}),
    "testcase": (["skipped", "failure", "system-out"], {"name", "classname", "time"}),
    "skipped": ([], {"message"}),
    "failure": ([], {"message", "type"}),
    "system-out": ([], set()),
}
"""Children in their order and attributes, as `junit-10.xsd` of Jenkins' xunit plugin has them."""


def parsed(data, wishes=None):
    root = ET.fromstring(render_junit(data, wishes).encode())
    for element in root.iter():
        children, attributes = CHILDREN[element.tag]
        order = [children.index(child.tag) for child in element]
        assert order == sorted(order)
        assert set(element.attrib) <= attributes
        if element.tag in {"testsuites", "testsuite"}:
            for count, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped",) * 2):
                if count in attributes:
                    assert int(element.get(count)) == len(list(element.iter(tag)))
    return root


def cases(root):
    """(suite, case) -> what became of it: tag and text, or nothing where it passed."""
    return {
        (suite.get("name").rpartition(": ")[2], case.get("name")): (
            (case[0].tag, (case[0].get("message") or "") + "|" + (case[0].text or ""))
            if len(case)
            else ()
        )
        for suite in root
        for case in suite.iter("testcase")
    }


@pytest.mark.parametrize("make", samples.ALL)
def test_every_report_is_well_formed_whatever_it_holds(make):
    parsed(make())
    text = render_junit(samples.filled(make(), samples.HOSTILE))
    parsed(samples.filled(make(), samples.HOSTILE))

    assert not re.search("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)


def test_rules_are_test_cases_of_their_attempt():
    found = cases(parsed(samples.inactive()))

    tag, text = found["attempt 1", "HCP002 hcp-sizes-missing"]
    assert tag == "failure"
    assert "logs/rank_00000.log:40:   argument_0" in text
    assert "and 34 more lines" in text
    assert "fix: Set `--hierarchical-context-parallel-sizes 8 2`" in text
    assert found["attempt 0", "HCP008"] == ("skipped", "not observed: te_version|")
    assert found["attempt 1", "HCP004"] == ()
    assert ("attempt 0", "HCP002 hcp-sizes-missing") not in found


def with_note():
    """A report whose only finding is a note, and the judgement of it."""
    data = samples.inactive()
    note = data.findings[-1]
    judgement = dataclasses.replace(data.judgements[0], rule=note.rule)
    return dataclasses.replace(data, findings=(note,), judgements=(judgement,), health=Health())


@pytest.mark.parametrize(
    ("wishes", "failures"),
    [
        (Wishes(), []),
        (Wishes(fail_on="note"), ["HCP013 pure-a2a-would-do"]),
        (Wishes(expect=("inactive", "active")), []),
        (Wishes(expect=("active",)), ["verdict"]),
        (Wishes(strict=True), []),
    ],
)
def test_tests_fail_where_the_exit_code_is_1(wishes, failures):
    found = cases(parsed(with_note(), wishes))

    assert [name for (_, name), what in found.items() if what[:1] == ("failure",)] == failures
    assert wishes.failed(with_note()) == bool(failures)


def test_verdict_and_logs_are_test_cases_of_the_run():
    wishes = Wishes(expect=("active", "unconfirmed"), strict=True)
    found = cases(parsed(samples.inactive(), wishes))

    tag, text = found["run", "verdict"]
    assert tag == "failure"
    assert text.startswith("expected active or unconfirmed, but the verdict is inactive with 120")
    assert "next: Rerun with NVTE_DEBUG=1" in text
    tag, text = found["run", "scan health"]
    assert (tag, text.partition("|")[0]) == (
        "failure",
        "1 lines of unknown format; 1 unreadable files; 1 truncated inputs",
    )
    assert cases(parsed(with_note()))["run", "verdict"][0] == "system-out"


def test_a_milder_finding_is_output():
    assert cases(parsed(with_note()))["attempt 1", "HCP013 pure-a2a-would-do"] == (
        "system-out",
        "|note: Pure a2a would do here.\nlow confidence\nfix: Consider `--cp-comm-type a2a`.",
    )


def test_a_name_with_dots_is_one_package():
    data = samples.inactive()
    data = dataclasses.replace(data, run=dataclasses.replace(data.run, name="run.v1.2"))
    case = next(parsed(data).iter("testcase"))

    assert case.get("classname") == "hcp-logscan.run_v1_2 run"
