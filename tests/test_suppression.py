"""A finding that somebody accepts leaves the gate and stays in sight."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from hcp_logscan import scan
from hcp_logscan.cli.app import main
from hcp_logscan.model.errors import UsageError
from hcp_logscan.model.finding import MAX_REASON
from hcp_logscan.reporting.schema import load_schema
from hcp_logscan.sources.settings import Settings, load

if TYPE_CHECKING:
    from hcp_logscan.api import Report

RUN = Path(__file__).parent / "fixtures" / "case01-no-sizes" / "run"
ERRORS = ("HCP002", "HCP101", "HCP103")
"""All that fires in RUN."""

RUN_FILE = ".hcp-logscan.toml of the run directory"
OWN_FILE = ".hcp-logscan.toml of the working directory"
PROJECT = "pyproject.toml of the working directory"
DOCS = Path(__file__).parents[1] / "docs"


def entries(*rules: str, reason: str = "known", section: str = "") -> str:
    return "".join(
        f"[[{section}suppress]]\nrule = {json.dumps(rule)}\nreason = {json.dumps(reason)}\n"
        for rule in rules
    )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of RUN, in a working directory of its own."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return Path(shutil.copytree(RUN, tmp_path / "job"))


def rules(report: Report) -> list[str]:
    return sorted(found.rule for found in report.findings)


def aside(report: Report) -> dict[str, tuple[str, str]]:
    return {one.finding.rule: (one.reason, one.source) for one in report.suppressed}


def scanned(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict]:
    code = main([*map(str, arguments), "-f", "json"])
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(load_schema()).validate(document)
    return code, document


def sources(document: dict) -> dict[str, str]:
    return {one["rule"]: one["source"] for one in document["suppressed"]}


# What it does ------------------------------------------------------------------------------------


def test_a_suppressed_finding_leaves_the_findings_and_keeps_its_evidence(run: Path) -> None:
    before = scan(run)
    report = scan(run, suppress={"hcp101": "  the meter\n is known to be wrong "})

    assert rules(before) == list(ERRORS)
    assert rules(report) == ["HCP002", "HCP103"]
    assert aside(report) == {"HCP101": ("the meter is known to be wrong", "scan(suppress=...)")}
    same = next(found for found in before.findings if found.rule == "HCP101")
    assert report.suppressed[0].finding == same
    assert before.suppressed == ()


def test_the_verdict_and_the_judgements_stay(run: Path) -> None:
    before, report = scan(run), scan(run, suppress=dict.fromkeys(ERRORS, "known"))
    assert report.findings == ()
    assert report.verdict == before.verdict
    assert report.verdict.status == "inactive"
    assert report.data.judgements == before.data.judgements


def test_fail_on_and_expect_pass_over_what_is_suppressed(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = ("-f", "none", "-o", "out.json")
    assert main([str(run), *quiet]) == 1
    (run / ".hcp-logscan.toml").write_text(entries(*ERRORS))
    assert main([str(run), *quiet]) == 0
    assert main([str(run), *quiet, "--expect", "inactive"]) == 0
    assert main([str(run), *quiet, "--expect", "active"]) == 1
    assert "the verdict is inactive" in capsys.readouterr().err


def test_the_clause_of_expect_about_errors_passes_over_what_is_suppressed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    hang = str(RUN.parents[1] / "hang-rank3" / "run")
    expected = [hang, "-f", "none", "-o", "out.json", "--fail-on", "never"]
    expected += ["--expect", "unconfirmed"]
    assert main(expected) == 1
    assert "1 error findings" in capsys.readouterr().err
    (tmp_path / ".hcp-logscan.toml").write_text(entries("HCP401"))
    assert main(expected) == 0


def test_a_rule_of_ones_own_can_be_suppressed(run: Path) -> None:
    own = run.parent / "own.yaml"
    text = next((Path(__file__).parents[1] / "rules").glob("HCP101-*.yaml")).read_text()
    own.write_text(text.replace("id: HCP101", "id: OWN101").replace("name: above", "name: own"))
    assert "OWN101" in rules(scan(run, rules=[own]))
    report = scan(run, rules=[own], suppress={"OWN101": "known"})
    assert "OWN101" not in rules(report)
    assert set(aside(report)) == {"OWN101"}


# Whose word counts -------------------------------------------------------------------------------


def test_all_files_count_and_the_working_directory_gives_the_reason(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / ".hcp-logscan.toml").write_text(entries(*ERRORS, reason="of the run"))
    (run / "pyproject.toml").write_text(entries("HCP901", section="tool.hcp-logscan."))
    Path("pyproject.toml").write_text(
        entries("HCP101", "HCP103", reason="of the project", section="tool.hcp-logscan.")
    )
    Path(".hcp-logscan.toml").write_text(entries("HCP103", reason="of the place"))

    code, document = scanned(capsys, run)

    assert code == 0
    assert {one["rule"]: (one["reason"], one["source"]) for one in document["suppressed"]} == {
        "HCP002": ("of the run", RUN_FILE),
        "HCP101": ("of the project", PROJECT),
        "HCP103": ("of the place", OWN_FILE),
    }


def test_the_option_makes_all_of_them_ignored(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / ".hcp-logscan.toml").write_text("gpu = 'B200'\n" + entries("HCP002"))
    Path("pyproject.toml").write_text(entries("HCP101", section="tool.hcp-logscan."))
    Path(".hcp-logscan.toml").write_text(entries("HCP103"))

    code, document = scanned(capsys, run, "--no-suppressions")

    assert code == 1
    assert document["suppressed"] == []
    assert sorted(found["rule"] for found in document["findings"]) == list(ERRORS)


def test_python_reads_the_run_directory_alone_and_may_refuse_to(run: Path) -> None:
    (run / ".hcp-logscan.toml").write_text(entries("HCP002"))
    Path(".hcp-logscan.toml").write_text(entries("HCP103"))
    assert aside(scan(run)) == {"HCP002": ("known", RUN_FILE)}
    refused = scan(run, suppressions=False, suppress={"HCP101": "mine"})
    assert aside(refused) == {"HCP101": ("mine", "scan(suppress=...)")}


def test_the_project_file_says_the_other_settings_too(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = RUN.parents[1] / "case13-twin-unknown-gpu" / "run"
    assert scanned(capsys, silent)[1]["run"]["gpu"] is None
    Path("pyproject.toml").write_text("[tool.hcp-logscan]\ngpu = 'B200'\nworld_size = 64\n")
    assert scanned(capsys, silent)[1]["run"]["gpu"] == "B200"
    Path(".hcp-logscan.toml").write_text("gpu = 'H200'\n")
    assert load(Path.cwd()) == Settings(64, "H200")


@pytest.mark.parametrize(
    "text",
    ["", "[project]\nname = 'x'\n", "[project]\nname = 'hcp-logscan'\n", "no = toml = at all"],
)
def test_a_project_file_without_our_table_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert load(tmp_path) == Settings()


def test_a_packed_run_suppresses_as_its_directory_does(run: Path) -> None:
    (run / ".hcp-logscan.toml").write_text(entries("HCP101"))
    packed = shutil.make_archive(str(run.parent / "packed"), "gztar", run.parent, run.name)
    assert aside(scan(packed)) == aside(scan(run)) == {"HCP101": ("known", RUN_FILE)}


# Mistakes ----------------------------------------------------------------------------------------

MISTAKES = {
    "suppress = 'HCP304'": r"suppress is 'HCP304'; write \[\[suppress\]\] with rule = ",
    "suppress = ['HCP304']": "suppress entry 1 is 'HCP304'; write",
    "[[suppress]]\nreason = 'x'": "suppress entry 1 has no rule, which is a text; write",
    "[[suppress]]\nrule = 'HCP304'": "suppress entry 1 has no reason, which is a text; write",
    "[[suppress]]\nrule = 'HCP304'\nreason = ' '": "entry 1 has ' ' as reason, which is a text",
    "[[suppress]]\nrule = 'HCP304'\nreason = 7": "suppress entry 1 has 7 as reason",
    "[[suppress]]\nrule = 304\nreason = 'x'": "suppress entry 1 has 304 as rule",
    "[[suppress]]\nrule = 'HCP304'\nreason = 'x'\nuntil = 2027-01-01": "entry 1 has 'until'; write",
    entries("HCP304", "hcp304"): "suppress entry 2 names 'HCP304' again; keep one",
    entries("HCP305", "HCP999"): r"the rule 'HCP999', which does not exist.*--list-rules",
    entries("HCP10"): r"does not exist\. Did you mean HCP10\d\?",
    entries("X" * 9_000): r"the rule 'X{40}', which",
    entries("\x1b[31m"): r"the rule '\\x1b\[31M', which does not exist\. --list-rules",
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
@pytest.mark.parametrize("place", ["run", "work", "project"])
def test_a_mistake_names_the_file_and_the_next_move(
    run: Path, text: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = {"run": run}.get(place, Path.cwd())
    name = "pyproject.toml" if place == "project" else ".hcp-logscan.toml"
    said = MISTAKES[text]
    if place == "project":
        text = text.replace("[[suppress]]", "[[tool.hcp-logscan.suppress]]")
        text = text if text.startswith("[[") else f"[tool.hcp-logscan]\n{text}"
        said = said.replace(r"\[\[suppress", r"\[\[tool\.hcp-logscan\.suppress")
    (folder / name).write_text(text)

    assert main([str(run), "-f", "none"]) == 2

    error = capsys.readouterr().err
    assert re.search(f"{re.escape(name)}.*{said}", error)
    assert len(error) < 600
    assert "\x1b" not in error
    assert not Path("reports").exists()


def test_a_project_table_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nhcp-logscan = 1\n")
    with pytest.raises(
        UsageError, match=r"pyproject\.toml: \[tool\.hcp-logscan\] is a table, not 1"
    ):
        load(tmp_path)


@pytest.mark.parametrize("bad", [{"HCP101": " "}, {"HCP101": None}, {7: "x"}])
def test_a_mistake_from_python_is_named(run: Path, bad: dict) -> None:
    with pytest.raises(UsageError, match="a text that is not blank"):
        scan(run, suppress=bad)
    with pytest.raises(
        UsageError, match=r"scan\(suppress=\.\.\.\): suppress names the rule 'NONE1'"
    ):
        scan(run, suppress={"none1": "x"})


def test_one_bad_run_is_a_row_and_the_others_go_on(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / ".hcp-logscan.toml").write_text(entries("HCP999"))
    assert main([str(run), str(RUN), "-f", "text"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "1 failed the gate, 1 cannot be read" in out
    assert "suppress names the rule 'HCP999', which does not exist" in out


def test_a_mistake_in_a_file_that_is_ignored_is_none(run: Path) -> None:
    (run / ".hcp-logscan.toml").write_text(entries("HCP999"))
    assert main([str(run), "--no-suppressions", "-f", "none", "-o", "x.json"]) == 1
    assert rules(scan(run, suppressions=False)) == list(ERRORS)


# How it is shown ---------------------------------------------------------------------------------

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
HOSTILE = (
    f"<script>alert(1)</script> {{{{ 7*7 }}}} </table> `a` | @all [x](javascript:alert(1)) \x1b[31m"
    f" \u202e ]]> --> token {SECRET} "
)


@pytest.fixture
def hostile(run: Path) -> Path:
    (run / ".hcp-logscan.toml").write_text(entries("HCP101", reason=HOSTILE + "z" * 9_000))
    return run


def test_a_reason_is_bounded_and_holds_no_secret(hostile: Path) -> None:
    report = scan(hostile)
    (reason, _source) = aside(report)["HCP101"]
    assert len(reason) <= MAX_REASON + 40  # a placeholder may be longer than its secret
    assert SECRET not in reason
    assert "[redacted github token 1]" in reason
    for text in (
        report.to_json(), report.to_html(), report.to_markdown(), report.to_sarif(),
        report.to_junit(),
    ):  # fmt: skip
        assert SECRET not in text
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_the_page_shows_the_reason_as_text(hostile: Path) -> None:
    page = scan(hostile).to_html(charts="static")
    part = page[page.index('<section id="suppressed"') :].partition("</section>")[0]
    assert "<script" not in part
    assert "&lt;script&gt;alert(1)&lt;/script&gt; {{ 7*7 }} &lt;/table&gt;" in part
    assert "1 finding by .hcp-logscan.toml of the run directory" in part
    assert "HCP101 above-dense-peak" in part
    assert '<section id="suppressed"' not in scan(RUN).to_html(charts="static")


def test_the_ticket_shows_the_reason_as_text(hostile: Path) -> None:
    text = scan(hostile).to_markdown()
    (line,) = [line for line in text.splitlines() if line.startswith("- error `HCP101`")]
    assert "&lt;script&gt;" in line
    assert "<script" not in text
    assert r"\[x\](javascript" in line
    assert "### Suppressed: 1 finding by .hcp-logscan.toml of the run directory" in text
    assert "Suppressed" not in scan(RUN).to_markdown()


def test_the_summary_has_a_line_for_each_and_names_the_files(
    hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pyproject.toml").write_text(entries("HCP103", section="tool.hcp-logscan."))
    assert main([str(hostile)]) == 1
    out = capsys.readouterr().out
    assert re.search(
        r"Suppressed  1 finding by \.hcp-logscan\.toml of the run directory, 1 finding by"
        r" pyproject\.toml of the\s+working directory\n",
        out,
    )
    (line,) = [line for line in out.splitlines() if line.startswith("  error    HCP101")]
    assert line.startswith("  error    HCP101 above-dense-peak: <script>alert(1)</script>")
    assert len(line) <= 100
    assert "  error    HCP103 explained-by-cp-off: known\n" in out


def test_code_scanning_gets_a_suppression_with_its_justification(run: Path) -> None:
    report = scan(run, suppress={"HCP101": "known"})
    log = json.loads(report.to_sarif())["runs"][0]
    by_rule = {result["ruleId"]: result for result in log["results"]}
    assert by_rule["HCP101"]["suppressions"] == [
        {
            "kind": "external",
            "status": "accepted",
            "justification": "known",
            "properties": {"source": "scan(suppress=...)"},
        }
    ]
    assert "suppressions" not in by_rule["HCP002"]
    every = scan(run, suppress=dict.fromkeys(ERRORS, "known"))
    invocation = json.loads(every.to_sarif())["runs"][0]["invocations"][0]
    assert invocation["exitCode"] == 0


def test_junit_skips_the_case_with_the_reason(run: Path) -> None:
    root = ET.fromstring(scan(run, suppress={"HCP101": "known"}).to_junit())
    (case,) = [c for c in root.iter("testcase") if c.get("name") == "HCP101 above-dense-peak"]
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "suppressed by scan(suppress=...): known"
    assert case.find("failure") is None
    assert (case.findtext("system-out") or "").startswith("error: ")
    assert root.get("failures") == "2"


def test_triage_counts_what_is_suppressed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / ".hcp-logscan.toml").write_text(entries("HCP101", "HCP103"))
    assert main([str(run), str(RUN)]) == 1
    out = capsys.readouterr().out
    assert "job: suppressed 2 findings by .hcp-logscan.toml of the run directory\n" in out
    page = Path("reports/index.html").read_text(encoding="utf-8")
    assert "suppressed: 2 findings by .hcp-logscan.toml of the run directory" in page
    assert main([str(run), str(RUN), "-f", "md"]) == 1
    text = capsys.readouterr().out
    assert "- job: suppressed 2 findings by .hcp-logscan.toml of the run directory" in text
    assert main([str(run), str(RUN), "-f", "json"]) == 1
    reports = json.loads(capsys.readouterr().out)["runs"]
    assert sorted(len(one["report"]["suppressed"]) for one in reports) == [0, 2]


def test_attempts_of_one_rule_are_one_line(tmp_path: Path) -> None:
    source = RUN.parents[1] / "case30-time-limit-loop" / "run"
    report = scan(source)
    many = [found for found in report.findings if found.rule == "HCP303"]
    assert len(many) > 1
    text = scan(source, suppress={"HCP303": "short queue"}).to_markdown()
    assert text.count("short queue") == 1
    assert f"### Suppressed: {len(many)} findings by scan(suppress=...)" in text


def test_the_page_of_the_documents_shows_what_works(run: Path) -> None:
    text = (DOCS / "suppression.md").read_text(encoding="utf-8")
    own, project = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    Path(".hcp-logscan.toml").write_text(own)
    assert [one.rule for one in load(Path.cwd()).suppress] == ["HCP304"]
    Path(".hcp-logscan.toml").unlink()
    Path("pyproject.toml").write_text(project)
    assert [one.rule for one in load(Path.cwd()).suppress] == ["HCP304"]
    assert load(Path.cwd()).gpu == "H200"
