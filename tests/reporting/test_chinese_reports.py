"""Whole reports in Chinese: no sentence of ours stays English, and English ones are as before."""

import html.parser
import re
from functools import cache

import pytest
import runs
from samples import ALL

from hcp_logscan import HcpLogscanError, scan
from hcp_logscan.model.finding import STATUSES
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.text import render_text
from hcp_logscan.rules.load import load_rules

WORDS = re.compile(r"[A-Za-z][a-z'-]*(?:[ ,;:.]+[A-Za-z][a-z'-]*){2,}")
"""Three words of prose or more in a row."""

NAMES = re.compile(
    r"Transformer Engine|Megatron[- ]\w+|flight recorder|desync|dump|TFLOP/s/GPU|hidden size"
    r"|head dim|loss scale|hcp-logscan|NVLink|PCIe|a2a\+p2p|p2p|HCP \S+|[A-Z0-9_]+"
    r"|`[^`]*`|torch device mesh|--\w[\w-]*|\S*[_/\\.=\[\]()@#][^\s，。；：（）]*|nvidia-smi -L"
)
"""Names that stay Latin: programs, options, identifiers, places."""

QUIET = frozenset({"pre", "code", "style", "script", "title"})
"""Elements that hold log text and code; the title has the run's name."""

OF_LOGS = frozenset({"value", "place", "where", "files", "traits", "log", "n", "t", "rule"})
"""Classes of elements that hold log text, names and places."""


class Prose(html.parser.HTMLParser):
    """Texts and labels of a page that are not of its logs."""

    def __init__(self):
        super().__init__()
        self.texts = []
        self._open = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.texts += [given[name] for name in ("aria-label", "data-done") if given.get(name)]
        if tag not in {"path", "circle", "rect", "br", "meta", "link", "polyline"}:
            quiet = tag in QUIET or bool(OF_LOGS & set((given.get("class") or "").split()))
            self._open.append((tag, quiet))

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if data.strip() and not any(quiet for _, quiet in self._open):
            self.texts.append(data)


@cache
def of_rules():
    """Chinese texts of the rules, which quote log lines and commands."""
    found = [rule.texts("zh") for rule in load_rules()]
    return "\n".join(f"{one.summary}\n{one.message}\n{one.why}\n{one.fix}" for one in found)


def of_logs(report):
    """Log text that messages and stories quote: what was not said by the program."""
    quoted = {str(text) for attempt in report.data.attempts for text in attempt.facts.values()}
    quoted |= {row.last_line for row in report.data.ranks}
    for table in (*report.tables.values(), *report.facts.values()):
        for column in table.get_columns():
            if str(column.dtype) == "String":
                quoted.update(column.drop_nulls().unique())
    return "\n".join(text for text in quoted if len(text) > 3 and text not in report.data.said)


def english(texts, quoted):
    """Runs of English words that are no name and stand in no log."""
    for text in texts:
        for match in WORDS.finditer(NAMES.sub("，", text)):
            if match[0] not in quoted:
                yield match[0], text


@cache
def scanned(name):
    try:
        return scan(runs.FIXTURES / name / "run")
    except HcpLogscanError:
        return None


NAMED = sorted(path.parent.name for path in runs.FIXTURES.glob("*/run"))


@pytest.mark.parametrize("name", NAMED)
def test_no_sentence_of_ours_stays_english(name):
    report = scanned(name)
    if report is None:
        pytest.skip("nothing is understood")
    page = Prose()
    page.feed(report.to_html(charts="static", lang="zh"))
    texts = [*page.texts, render_text(report.data, lang="zh"), report.to_markdown(lang="zh")]
    quoted = f"{of_logs(report)}\n{of_rules()}"

    assert list(english(texts, quoted)) == []


@pytest.mark.parametrize("name", NAMED[::8])
def test_english_is_found_where_there_is_some(name):
    report = scanned(name)
    if report is None:
        pytest.skip("nothing is understood")
    page = Prose()
    page.feed(report.to_html(charts="static"))

    assert len(list(english(page.texts, f"{of_logs(report)}\n{of_rules()}"))) > 40


def test_the_runs_show_every_status_that_a_log_alone_can_have():
    found = {report.verdict.status for name in NAMED if (report := scanned(name))}
    assert found == set(STATUSES)


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_a_page_says_its_language(make):
    data = make()
    assert '<html lang="zh-CN">' in render_html(data, charts="static", lang="zh")
    assert '<html lang="en">' in render_html(data, charts="static")


def test_a_report_in_chinese_leaves_the_english_one_as_it_is():
    report = scanned("hang-rank3")
    before = (report.to_markdown(), report.to_json(), report.to_sarif(), report.to_junit())
    assert report.to_markdown(lang="zh") != before[0]
    after = (report.to_markdown(), report.to_json(), report.to_sarif(), report.to_junit())
    assert after == before


TIGHT = re.compile(r"[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9%][\u4e00-\u9fff]")


@pytest.mark.parametrize("name", NAMED[::3])
def test_a_blank_stands_between_chinese_and_latin_letters_or_digits(name):
    report = scanned(name)
    if report is None:
        pytest.skip("nothing is understood")
    page = Prose()
    page.feed(report.to_html(charts="static", lang="zh"))
    said = [*page.texts, report.to_markdown(lang="zh")]

    assert [text for text in said if TIGHT.search(text)] == []
