"""The command line as a user meets it: outputs, exit codes, messages."""

import io
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from hcp_logscan import __version__
from hcp_logscan.cli.app import main
from hcp_logscan.parsers.registry import needles
from hcp_logscan.reporting.schema import load_schema

FIXTURES = Path(__file__).parents[1] / "fixtures"
INACTIVE = str(FIXTURES / "case01-no-sizes" / "run")
HEALTHY = str(FIXTURES / "hcp22-tee" / "run")
P2P = str(FIXTURES / "p2p" / "run")
CUT = str(FIXTURES / "dump-cut-in-the-middle" / "run")


@pytest.fixture(autouse=True)
def working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([HEALTHY], 0),
        ([INACTIVE], 1),
        ([INACTIVE, "--fail-on", "never"], 0),
        ([HEALTHY, "--fail-on", "note"], 1),
        ([HEALTHY, "--fail-on", "note", "--select", "HCP2"], 0),
        ([INACTIVE, "--ignore", "HCP002,HCP1"], 0),
        ([HEALTHY, "--expect", "unconfirmed"], 0),
        ([HEALTHY, "--expect", "active"], 1),
        ([P2P, "--expect", "active,not_requested"], 0),
        ([INACTIVE, "--expect", "inactive", "--fail-on", "never"], 0),
        ([CUT, "--fail-on", "never"], 0),
        ([CUT, "--fail-on", "never", "--strict"], 1),
        (["--demo"], 0),
        (["--list-rules"], 0),
        (["--explain", "HCP012"], 0),
        (["--explain", "hcp-sizes-missing"], 0),
        (["/no/such/path"], 2),
        ([], 2),
        (["--no-such-option"], 2),
        ([HEALTHY, "--expect", "great"], 2),
        ([HEALTHY, "-o", "report.doc"], 2),
        ([HEALTHY, "--select", "HCP999"], 2),
        ([HEALTHY, "--set", "HCP211.nope=1"], 2),
        ([HEALTHY, "--set", "nonsense"], 2),
        ([HEALTHY, "--rank-regex", "("], 2),
        ([HEALTHY, "--rules", "/no/such/rules"], 2),
        ([HEALTHY, "--job", "nobody"], 2),
        ([HEALTHY, "--world-size", "0"], 2),
        (["--explain", "HCP999"], 2),
        (["--check-rules", "/no/such/rules"], 2),
    ],
)
def test_exit_codes(arguments, code, capsys):
    assert main(arguments) == code
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err
    if code == 2:
        assert shown.err


def test_expect_needs_progress_and_no_error(tmp_path):
    log = tmp_path / "setup.log"
    log.write_text(
        "using world size: 1, data-parallel size: 1, context-parallel size: 1, hierarchical"
        " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size:"
        " 1\n"
    )

    assert main([str(log), "--expect", "not_requested", "-f", "none"]) == 1


def test_summary_goes_to_standard_output_and_the_report_to_reports(capsys):
    main([INACTIVE])
    shown = capsys.readouterr().out

    assert "INACTIVE" in shown.splitlines()[1].upper()
    assert "slurm-4711.out:" in shown
    assert "Report: reports/case01-no-sizes.html" in shown
    assert Path("reports/case01-no-sizes.html").stat().st_size > 10_000


def test_json_is_alone_on_standard_output_and_valid(capsys):
    main([INACTIVE, "-f", "json"])
    document = json.loads(capsys.readouterr().out)

    jsonschema.validate(document, load_schema())
    assert document["verdict"]["status"] == "inactive"
    assert not Path("reports").exists()


def test_markdown_is_alone_on_standard_output(capsys):
    main([INACTIVE, "-f", "md"])

    assert capsys.readouterr().out.startswith("#")
    assert not Path("reports").exists()


def test_outputs_replace_the_default_report():
    outputs = ("-o", "a/b.json", "-o", "c.md", "-o", "d.html", "-o", "e.sarif", "-o", "f.xml")
    main([INACTIVE, *outputs, "--charts", "static", "--fail-on", "never", "--expect", "active"])

    assert json.loads(Path("a/b.json").read_text())["schema"] == "hcp-logscan/report/v1"
    assert Path("c.md").exists()
    assert json.loads(Path("e.sarif").read_text())["runs"][0]["invocations"][0]["exitCode"] == 1
    assert '<failure message="expected active' in Path("f.xml").read_text()
    assert "HCP002 hcp-sizes-missing" in Path("f.xml").read_text()
    assert "plotly" not in Path("d.html").read_text().lower()
    assert not Path("reports").exists()


def test_own_report_is_replaced_and_another_file_is_not():
    Path("reports").mkdir()
    theirs = Path("reports/case01-no-sizes.html")
    theirs.write_text("<html>my notes</html>")
    main([INACTIVE, "-f", "none"])
    main([INACTIVE, "-f", "none"])

    assert theirs.read_text() == "<html>my notes</html>"
    assert sorted(path.name for path in Path("reports").iterdir()) == [
        "case01-no-sizes-2.html",
        "case01-no-sizes.html",
    ]


def test_unknown_suffix_names_those_there_are(capsys):
    assert main([HEALTHY, "-o", "x.pdf"]) == 2
    assert ".html, .json, .md, .parquet, .sarif, .xml" in capsys.readouterr().err


def test_report_that_cannot_be_written_is_code_2_and_the_summary_is_printed(capsys):
    Path("reports").write_text("a file in the way")

    assert main([HEALTHY]) == 2
    shown = capsys.readouterr()
    assert "UNCONFIRMED" in shown.out.upper()
    assert "cannot write reports" in shown.err


def test_same_input_gives_the_same_bytes(capsys, tmp_path):
    copy = tmp_path / "elsewhere" / "case01-no-sizes" / "run"
    shutil.copytree(INACTIVE, copy)
    main([INACTIVE, "-f", "json"])
    first = capsys.readouterr().out
    main([str(copy), "-f", "json"])

    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "is empty"),
        (lambda path: (path.mkdir(), (path / "a.png").write_bytes(b"x")), "1 image"),
        (lambda path: (path.mkdir(), (path / "a.log").write_text("hello\n")), "not one line"),
        (lambda path: path.write_bytes(bytes(range(7)) * 99), "looks like binary"),
    ],
)
def test_nothing_understood_is_code_3_with_one_clear_message(make, message, tmp_path, capsys):
    path = tmp_path / "input"
    make(path)

    assert main([str(path)]) == 3
    shown = capsys.readouterr()
    assert message in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert not shown.out


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_unreadable_file_is_a_health_entry(tmp_path, capsys, monkeypatch):
    run = tmp_path / "job"
    shutil.copytree(P2P, run)
    locked = run / "locked.log"
    locked.write_text("secret")
    locked.chmod(0)
    if os.geteuid() == 0:  # root reads everything: the system's refusal is played
        real = io.FileIO

        def refuse(path, **how):
            if str(path).endswith("locked.log"):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, **how)

        monkeypatch.setattr("hcp_logscan.sources.reader.io.FileIO", refuse)
    code = main([str(run), "-f", "json"])
    document = json.loads(capsys.readouterr().out)

    assert code == 0
    assert document["health"]["unreadable"] == [{"file": "locked.log", "why": "Permission denied"}]
    assert "HCP903" in {found["rule"] for found in document["findings"]}
    locked.chmod(stat.S_IRUSR | stat.S_IWUSR)


def test_standard_input_is_read_as_one_log():
    done = subprocess.run(
        [sys.executable, "-m", "hcp_logscan", "-", "-f", "json"],
        input=Path(HEALTHY, "console.log").read_bytes(),
        capture_output=True,
        check=False,
    )
    document = json.loads(done.stdout)

    assert done.returncode == 0
    assert document["verdict"]["status"] == "unconfirmed"
    assert document["series"]["iterations"] == 5


def test_version_and_needles_are_printed(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"hcp-logscan {__version__}\n"
    main(["--list-needles"])
    assert capsys.readouterr().out.encode().splitlines() == list(needles())


def test_list_rules_has_a_line_per_rule(capsys):
    main(["--list-rules"])
    lines = capsys.readouterr().out.splitlines()

    assert len(lines) >= 30
    assert any(line.startswith("HCP002  error") for line in lines)


def test_explain_shows_condition_reason_fix_and_examples(capsys):
    main(["--explain", "hcp012"])
    page = capsys.readouterr().out

    for part in ("Fires (over attempts) when", "Why", "Fix", "References", "Examples"):
        assert part in page
    assert "HIERARCHICAL_CONTEXT_PARALLEL_GROUPS" in page


RULE = """\
id: MINE001
name: many-iterations
summary: more iterations than wanted
severity: warning
confidence: high
over: attempts
when: iterations_finished > limit
params: {limit: 3}
message: "{iterations_finished} iterations"
why: we like it short
fix: stop earlier
false_positives: [none known]
references: [https://example.org/]
examples:
  - {name: many, outcome: fires, facts: {iterations_finished: 4}}
  - {name: few, outcome: clean, facts: {iterations_finished: 3}}
  - {name: unknown, outcome: inconclusive, facts: {}}
"""


def test_rules_of_ones_own_run_and_are_checked(tmp_path, capsys):
    path = tmp_path / "MINE001-many-iterations.yaml"
    path.write_text(RULE)

    assert main(["--check-rules", str(path)]) == 0
    assert "0 examples that fail" in capsys.readouterr().out
    assert main([HEALTHY, "--rules", str(path), "--fail-on", "warning", "-f", "none"]) == 1
    quiet = ["--set", "MINE001.limit=99", "-f", "none"]
    assert main([HEALTHY, "--rules", str(path), "--fail-on", "warning", *quiet]) == 0
    path.write_text(RULE.replace("outcome: clean", "outcome: fires"))
    assert main(["--check-rules", str(path)]) == 2
    assert "FAIL MINE001 missed: few" in capsys.readouterr().out


def test_interrupt_is_code_130_and_leaves_no_report(monkeypatch, capsys):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("hcp_logscan.api.examine", interrupt)

    assert main([HEALTHY]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert not Path("reports").exists()


def test_hostile_log_lines_stay_text_in_every_output(tmp_path):
    evil = "<script>alert(1)</script>{{ 7*7 }}\"'\x1b[31m"
    run = tmp_path / "job"
    shutil.copytree(INACTIVE, run)
    log = run / "slurm-4711.out"
    log.write_text(log.read_text().replace("'a2a+p2p'", f"'a2a+p2p'  {evil}"))
    main([str(run), "-f", "none", "-o", "x.html", "-o", "x.md", "-o", "x.json"])
    page = Path("x.html").read_text()

    assert "<script>alert" not in page
    assert "{{ 7*7 }}" in page or "{{ 7*7 }}" in Path("x.json").read_text()
    assert "\x1b" not in page + Path("x.md").read_text()


def gpu_of(capsys, *arguments):
    assert main([*arguments, "-f", "json", "--fail-on", "never"]) == 0
    return json.loads(capsys.readouterr().out)["run"]["gpu"]


def test_the_gpu_is_said_by_option_variable_run_directory_and_working_directory(
    tmp_path, monkeypatch, capsys
):
    run_dir = shutil.copytree(HEALTHY, tmp_path / "run")
    here = Path(".hcp-logscan.toml")
    assert gpu_of(capsys, str(run_dir)) is None
    here.write_text("gpu = 'A100'")
    assert gpu_of(capsys, str(run_dir)) == "A100"
    (run_dir / here).write_text("gpu = 'H100'")
    assert gpu_of(capsys, str(run_dir)) == "H100 SXM"
    monkeypatch.setenv("HCP_LOGSCAN_GPU", "h200")
    assert gpu_of(capsys, str(run_dir)) == "H200"
    assert gpu_of(capsys, str(run_dir), "--gpu", "B200") == "B200"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gpu", "H300"], "no such GPU in the table. Known: H800, H200"),
        (["--precision", "int4"], "int4"),
        (["--peak-tflops", "-3"], "peak_tflops is -3"),
    ],
)
def test_hardware_that_cannot_be_is_refused(arguments, message, capsys):
    assert main([HEALTHY, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_demo_knows_nothing_of_the_working_directory(capsys):
    Path(".hcp-logscan.toml").write_text("nonsense")
    assert main(["--demo"]) == 0
    assert "nonsense" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "files"), [("--include", ["old.out"]), ("--exclude", ["new.out"])]
)
def test_include_and_exclude_choose_the_files(option, files, tmp_path):
    log = next(Path(INACTIVE).glob("*.out")).read_text()
    run = tmp_path / "run"
    run.mkdir()
    for name in ("old.out", "new.out"):
        (run / name).write_text(log)

    code = main([str(run), option, "old*", "--output", "seen.json"])

    seen = json.loads(Path("seen.json").read_text())
    assert code == 1
    assert seen["health"]["files"] == 1
    assert {one["file"] for one in seen["verdict"]["evidence"]} == set(files)
