"""Several RUN_DIRs: one report each, one table and one index."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from hcp_logscan import HcpLogscanError
from hcp_logscan.cli.app import main
from hcp_logscan.cli.triage import distinct
from hcp_logscan.engine import pool
from hcp_logscan.engine.scan import scan_batch
from hcp_logscan.reporting.schema import load_triage_schema
from hcp_logscan.reporting.triage import Row, worst_first
from hcp_logscan.sources.discover import discover

FIXTURES = Path(__file__).parents[1] / "fixtures"
INACTIVE = str(FIXTURES / "case01-no-sizes" / "run")
HEALTHY = str(FIXTURES / "hcp22-tee" / "run")
P2P = str(FIXTURES / "p2p" / "run")
CUT = str(FIXTURES / "dump-cut-in-the-middle" / "run")
STATIC = ("--charts", "static")


@pytest.fixture(autouse=True)
def working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run_of(path, log=""):
    path.mkdir(parents=True)
    (path / "a.log").write_text(log or Path(P2P, "console.log").read_text())
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([HEALTHY, P2P], 0),
        ([HEALTHY, "empty"], 3),
        (["empty", INACTIVE], 1),
        ([HEALTHY, "/no/such/path", INACTIVE], 2),
        ([HEALTHY, INACTIVE, "--fail-on", "never"], 0),
        ([HEALTHY, P2P, "--expect", "unconfirmed"], 1),
        ([HEALTHY, P2P, "--job", "nobody"], 2),
        ([HEALTHY, P2P, "--select", "HCP999"], 2),
    ],
)
def test_exit_code_of_several_runs(arguments, code, capsys):
    Path("empty").mkdir()
    assert main([*arguments, "-f", "md"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_table_is_worst_first_and_says_why_there_is_no_report():
    Path("empty").mkdir()
    named = ["llama-405b-hcp-8x2-after-the-outage", "p2p"]
    runs = [run_of(Path(name)) for name in named]
    done = subprocess.run(
        [sys.executable, "-m", "hcp_logscan", *runs, "empty", INACTIVE, *STATIC],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()

    assert done.returncode == 1
    assert lines[0] == "4 runs: 1 failed the gate, 1 not understood, 2 passed"
    assert [line.split()[0] for line in lines[2:6]] == ["case01-no-sizes", "empty", *named]
    assert "inactive" in lines[2]
    assert "error HCP002" in lines[2]
    assert "1,916.1" in lines[2]
    assert lines[2].endswith("1")
    assert "empty: no log file in empty: it is empty." in lines
    assert lines[-1] == "Reports: reports/index.html"


@pytest.mark.parametrize("name", ["a-name-that-is-far-too-long-for-one-cell-of-a-table", "卷" * 30])
def test_table_fits_the_terminal(name):
    from rich.cells import cell_len
    from rich.console import Console

    from hcp_logscan.reporting.triage import print_triage

    rows = [Row(name, 1, 1, "not_requested", iterations=1_234_567, tflops=1234.5, ranks=(1, 5, 9))]
    console = Console(width=80)
    with console.capture() as captured:
        print_triage(rows, console)
    lines = captured.get().splitlines()

    assert max(cell_len(line) for line in lines) <= 80
    assert "1,234,567" in captured.get()
    assert "".join(line.split()[0] for line in lines[2:]).startswith(name[:10])


def test_index_links_to_the_reports_beside_it_and_loads_nothing():
    main([HEALTHY, INACTIVE, "/no/such/path", "-f", "none", "-o", "out", *STATIC])
    page = Path("out/index.html").read_text()
    links = [value for tag, name, value in attributes(page) if (tag, name) == ("a", "href")]

    assert links == ["#main", "case01-no-sizes.html", "hcp22-tee.html"]
    assert sorted(path.name for path in Path("out").iterdir()) == sorted([*links[1:], "index.html"])
    (policy,) = [value for *_, value in attributes(page) if value and "default-src" in value]
    assert "default-src 'none'" in policy
    assert "script-src 'none'" in policy
    assert not any(name in {"src", "srcset"} for _, name, _ in attributes(page))
    assert "cannot read /no/such/path" in page
    assert not Path("reports").exists()


def attributes(page):
    found = []

    class Collect(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.extend((tag, name, value) for name, value in attrs)

    Collect().feed(page)
    return found


def test_json_holds_complete_reports_and_is_valid(capsys):
    main([HEALTHY, "/no/such/path", INACTIVE, "-f", "json"])
    document = json.loads(capsys.readouterr().out)
    main([INACTIVE, "-f", "json"])
    alone = json.loads(capsys.readouterr().out)

    jsonschema.validate(document, load_triage_schema())
    assert [(run["argument"], run["exit_code"]) for run in document["runs"]] == [
        (3, 1),
        (2, 2),
        (1, 0),
    ]
    assert document["exit_code"] == 2
    assert document["runs"][0]["report"] == alone
    assert document["runs"][1]["report"] is None
    assert "No such file" in document["runs"][1]["error"]
    assert not Path("reports").exists()


def test_markdown_is_one_table(capsys):
    main([HEALTHY, INACTIVE, "-f", "md"])
    shown = capsys.readouterr().out

    assert shown.startswith("## 2 runs: 1 failed the gate, 1 passed\n")
    assert shown.count("\n|") == 4
    assert not Path("reports").exists()


def test_names_that_clash_are_numbered_and_told_apart(capsys):
    runs = [run_of(Path(folder, "job", "run")) for folder in ("a", "b")] + [run_of(Path("JOB-2"))]
    Path("reports").mkdir()
    Path("reports/job.html").write_text("my notes")
    for _ in range(2):
        main([*runs, *STATIC])

    names = sorted(path.name for path in Path("reports").iterdir())
    assert names == ["JOB-2-2-2.html", "index.html", "job-2-2.html", "job-2.html", "job.html"]
    assert Path("reports/job.html").read_text() == "my notes"
    assert "job-2 is b/job/run" in capsys.readouterr().out


def test_a_run_called_index_and_a_foreign_index_are_not_overwritten():
    runs = [run_of(Path("index")), run_of(Path("other"))]
    Path("reports").mkdir()
    Path("reports/index.html").write_text("my notes")
    main([*runs, "-f", "none", *STATIC])

    assert Path("reports/index.html").read_text() == "my notes"
    names = sorted(path.name for path in Path("reports").iterdir())
    assert names == ["index-2.html", "index-3.html", "index.html", "other.html"]
    assert "triage" in Path("reports/index-2.html").read_text()


@pytest.mark.parametrize("output", ["all.json", "all.html", "results.d", "taken"])
def test_a_single_file_for_several_runs_is_a_usage_error(output, capsys):
    Path("taken").write_text("a file")

    assert main([HEALTHY, P2P, "-o", output]) == 2
    assert "name a folder" in capsys.readouterr().err
    assert Path("taken").read_text() == "a file"
    assert not Path("reports").exists()


def test_a_folder_that_cannot_be_written_is_code_2_and_the_table_is_printed(capsys):
    Path("reports").write_text("a file in the way")

    assert main([HEALTHY, P2P]) == 2
    shown = capsys.readouterr()
    assert "unconfirmed" in shown.out
    assert "cannot write reports" in shown.err


def test_a_run_named_twice_is_one_run(capsys):
    assert distinct([HEALTHY, P2P, HEALTHY + "/"]) == [HEALTHY, P2P]
    main([HEALTHY, HEALTHY + "/", "-f", "json"])
    assert json.loads(capsys.readouterr().out)["schema"] == "hcp-logscan/report/v1"


def test_what_is_wrong_with_one_run_is_said_with_its_name(capsys):
    main([HEALTHY, CUT, "--strict", "--expect", "unconfirmed", "-f", "none"])
    said = capsys.readouterr().err

    assert "dump-cut-in-the-middle: --expect unconfirmed is not met" in said
    assert "dump-cut-in-the-middle: --strict" in said
    assert "hcp22-tee" not in said


def test_an_interrupt_leaves_whole_reports_and_no_index(monkeypatch, capsys):
    from hcp_logscan import api

    real = api.examine

    def examine(run_dir, *arguments, **options):
        if run_dir == INACTIVE:
            raise KeyboardInterrupt
        return real(run_dir, *arguments, **options)

    monkeypatch.setattr(api, "examine", examine)

    assert main([HEALTHY, INACTIVE, *STATIC]) == 130
    assert "no partial report is left" in capsys.readouterr().err
    (report,) = Path("reports").iterdir()
    assert report.read_text().endswith("</html>\n")


def test_secrets_in_names_are_hidden_everywhere(capsys):
    secret = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD2f"
    run_of(Path("x", secret), "hello\n")
    main([f"x/{secret}", HEALTHY, *STATIC])
    shown = capsys.readouterr()

    assert "no report" in shown.out
    assert secret not in shown.out + shown.err + Path("reports/index.html").read_text()
    assert main([INACTIVE, HEALTHY, "--job", secret]) == 2  # the same is wrong with both
    assert secret not in capsys.readouterr().err


def test_hostile_names_stay_text():
    hostile = "<img src=x onerror=alert(1)>|`*"
    main([run_of(Path(hostile)), HEALTHY, "-f", "none", *STATIC])
    page = Path("reports/index.html").read_text()

    assert "<img" not in page
    (link,) = [v for t, n, v in attributes(page) if n == "href" and "img" in v]
    assert Path("reports", link).exists()


def test_rows_alike_in_code_are_ordered_by_verdict_then_as_given():
    rows = [Row("a", 1, 0, "active"), Row("b", 2, 0, "inactive"), Row("c", 3, 0, "active")]

    assert [row.name for row in worst_first(rows)] == ["b", "a", "c"]


def test_workers_are_shared_and_give_the_same_bytes():
    runs = [INACTIVE, HEALTHY, P2P]
    command = [sys.executable, "-m", "hcp_logscan", *runs, "-f", "json", "--workers"]
    alone, shared = (
        subprocess.run([*command, workers], capture_output=True, text=True, check=False)
        for workers in ("1", "2")
    )

    assert alone.stdout == shared.stdout
    assert alone.returncode == shared.returncode == 1
    assert not alone.stderr + shared.stderr


def test_workers_that_break_down_cost_one_run(monkeypatch):
    monkeypatch.setattr(pool, "_scan", _die_of_case01)
    runs = [discover(run) for run in (INACTIVE, HEALTHY, P2P)]
    with pool.begun_each(runs, 2) as scans:
        with pytest.raises(HcpLogscanError, match="--workers 1"):
            list(next(scans).results())
        assert [len(list(scan.results())) for scan in scans] == [1, 1]
    assert multiprocessing.active_children() == []


def _die_of_case01(batch):
    if "case01" in batch[0].path:
        os.kill(os.getpid(), signal.SIGKILL)
    return scan_batch(batch)
