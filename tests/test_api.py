import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import hcp_logscan
from hcp_logscan import HcpLogscanError, scan
from hcp_logscan.analysis.facts import FACTS
from hcp_logscan.model.finding import SEVERITIES

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="module")
def report():
    return scan(FIXTURES / "exception-rank1" / "run")


def test_report_has_verdict_findings_and_documents(report):
    assert report.verdict.status == "unconfirmed"
    assert "HCP508" in {found.rule for found in report.findings}
    assert report.to_json().startswith("{")
    assert report.to_markdown().startswith("#")
    assert report.to_html().lstrip().lower().startswith("<!doctype html")
    assert report._repr_html_().startswith("<iframe")


def test_tables_are_polars_frames_with_their_place_first(report):
    for name in ("iterations", "config", "tracebacks", "exits", "marks"):
        frame = report.tables[name]
        assert isinstance(frame, pl.DataFrame)
        assert {"attempt", "rank", "file", "line", "text"} <= set(frame.columns)
    assert set(report.facts) == set(FACTS)


def test_evidence_is_shown_with_its_neighbours(report):
    finding = next(found for found in report.findings if found.rule == "HCP508")
    place = finding.evidence[0]

    assert place.rank == 1
    assert "injected failure" in place.text
    assert place.line in {number for number, _ in place.context}
    assert len(place.context) > 1


def test_iteration_evidence_is_read_again_from_the_file():
    found = scan(FIXTURES / "nan-from-iteration-4" / "run").findings
    nan = next(finding for finding in found if finding.rule == "HCP201")

    assert nan.iteration == 4
    assert "grad norm: nan" in nan.evidence[0].text


def test_every_rule_is_judged_once_per_attempt(report):
    keys = [(judgement.rule, judgement.attempt) for judgement in report.data.judgements]

    assert len(keys) == len(set(keys))
    assert all(j.missing for j in report.data.judgements if j.outcome == "inconclusive")


def test_nothing_understood_raises_with_its_exit_code(tmp_path):
    (tmp_path / "a.log").write_text("hello\n")

    with pytest.raises(HcpLogscanError, match="not one line") as caught:
        scan(tmp_path)
    assert caught.value.exit_code == 3


def test_package_offers_what_it_says():
    assert hcp_logscan.scan is scan
    assert all(getattr(hcp_logscan, name) for name in hcp_logscan.__all__)
    with pytest.raises(AttributeError):
        _ = hcp_logscan.nonsense


def test_saved_report_fields_are_relative_paths(report):
    assert str(FIXTURES) not in report.to_json()


def test_a_report_names_run_verdict_and_findings_on_one_line(report):
    counts = [sum(f.severity == name for f in report.findings) for name in SEVERITIES]

    assert repr(report).startswith("<Report exception-rank1: HCP unconfirmed (low confidence); ")
    assert [int(n) for n in re.findall(r"(\d+) (?:note|warning|error)", repr(report))] == counts[
        ::-1
    ]
    assert "1 error, " in repr(report)
    name = replace(report.data.run, name="a\nb\x1b")
    assert "a␊b␛" in repr(replace(report, data=replace(report.data, run=name)))


def test_the_demo_run_is_a_directory_that_can_be_scanned():
    with hcp_logscan.demo_run() as run_dir:
        assert scan(run_dir).verdict.status == "inactive"


class Frame(HTMLParser):
    """What a notebook gets."""

    def handle_starttag(self, tag, attrs):
        self.frame = (tag, dict(attrs)) if tag == "iframe" else self.frame
        self.tags.append(tag)

    def __init__(self, text):
        super().__init__()
        self.frame, self.tags = None, []
        self.feed(text)


def test_a_notebook_shows_the_page_in_a_frame_that_may_run_and_load_nothing(report):
    outer = Frame(report._repr_html_())
    tag, attributes = outer.frame
    page = attributes["srcdoc"]

    assert outer.tags == ["iframe"]
    assert (tag, attributes["sandbox"]) == ("iframe", None)
    assert "script" not in Frame(page).tags
    assert "script-src 'none'" in html.unescape(page)
    assert page.index('<base href="about:srcdoc">') < page.index("Content-Security-Policy")
    assert "injected failure" in page


def test_a_notebook_stays_small_however_long_the_run_is(tmp_path):
    line = (
        " [2031-03-01 09:14:20] iteration {0:8d}/   9000 | consumed samples: {0:12d} | elapsed time"
        " per iteration (ms): {1:.1f} | learning rate: 1.0E-05 | global batch size:     2 | lm loss:"
        " {2:.6E} | loss scale: 1.0 | grad norm: 2.134 | number of skipped iterations:   0 | number"
        " of nan iterations:   0 |\n"
    )
    (tmp_path / "train.log").write_text(
        "".join(line.format(i, 5000 + i % 97, 8 - i / 2000) for i in range(1, 9001))
    )
    long = scan(tmp_path)

    assert long.tables["iterations"].height == 9000
    assert len(long._repr_html_()) < 1_000_000
