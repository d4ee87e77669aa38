from pathlib import Path

import polars as pl
import pytest

import hcp_logscan
from hcp_logscan import HcpLogscanError, scan
from hcp_logscan.analysis.facts import FACTS

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
    with pytest.raises(AttributeError):
        _ = hcp_logscan.nonsense


def test_saved_report_fields_are_relative_paths(report):
    assert str(FIXTURES) not in report.to_json()
