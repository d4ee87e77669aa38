"""Where output cannot go: a clear message and exit code, and the report of before or none."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hcp_logscan import scan
from hcp_logscan.cli import write
from hcp_logscan.model.errors import OutputError
from hcp_logscan.reporting.wishes import Wishes

ROOT = Path(__file__).parents[2]
FULL = Path("/dev/full")
RUN = str(ROOT / "hcp_logscan" / "demo")
OTHER = ROOT / "tests" / "fixtures" / "p2p" / "run"
OTHER = str(ROOT / "tests" / "fixtures" / "hang-rank3" / "run")

needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def program(*arguments, cwd, limit=None, **how):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "hcp_logscan", *arguments]
    if limit is not None:
        command = ["sh", "-c", f'ulimit -f {limit}; exec "$@"', "sh", *command]
    return subprocess.run(
        command, check=False, stderr=subprocess.PIPE, text=True, cwd=cwd, env=env, **how
    )


@needs_full
@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ([RUN], ["reports/demo.html"]),
        ([RUN, "-f", "json", "-o", "a.sarif"], ["a.sarif"]),
        ([RUN, OTHER], ["reports/demo.html", "reports/hang-rank3.html", "reports/index.html"]),
        ([RUN, OTHER, "-f", "json", "-o", "all"], ["all/index.html"]),
        (["--demo"], ["reports/demo.html"]),
        (["--explain", "HCP101"], []),
        (["--version"], []),
    ],
    ids=lambda value: " ".join(map(str, value)).replace(str(ROOT), ""),
)
def test_a_full_standard_output_is_said_and_reports_are_written_all_the_same(
    arguments, left, tmp_path
):
    with FULL.open("w") as full:
        done = program(*arguments, cwd=tmp_path, stdout=full)
    lines = done.stderr.splitlines()
    assert "hcp-logscan: cannot write standard output: No space left on device." in lines
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode == 2
    for name in left:
        assert (tmp_path / name).stat().st_size > 1_000


@needs_full
def test_where_nobody_can_be_told_the_exit_code_tells(tmp_path):
    with FULL.open("w") as full:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "hcp_logscan", "no-such-run"]
        done = subprocess.run(command, check=False, stdout=full, stderr=full, cwd=tmp_path, env=env)
    assert done.returncode == 2


def test_closed_outputs_are_no_traceback(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f'"{sys.executable}" -m hcp_logscan "{RUN}"'
    for closed, code in ((">&-", 1), (">&- 2>&-", 1)):
        done = subprocess.run(
            ["sh", "-c", f"{command} {closed}"],
            check=False, capture_output=True, text=True, cwd=tmp_path, env=env,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (code, "")
        assert (tmp_path / "reports" / "demo.html").exists()


def test_a_reader_that_leaves_early_is_no_error_message(tmp_path):
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m hcp_logscan "{RUN}" | head -1'],
        check=False, capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.startswith("demo")
    assert done.stderr == ""
    assert (tmp_path / "reports" / "demo.html").exists()


def test_a_reader_of_the_triage_table_that_leaves_early_is_no_error_message(tmp_path):
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m hcp_logscan "{RUN}" "{OTHER}" | true'],
        check=False, capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stderr == ""
    assert (tmp_path / "reports" / "index.html").exists()


# Reports are whole or not there -------------------------------------------------------------------


@pytest.fixture(scope="module")
def report():
    return scan(RUN)


LIMIT = 2
"""Blocks of 512 or 1,024 bytes: no file of the process may be larger, as if the disk were full."""


@pytest.mark.parametrize(
    ("suffix", "before"),
    [
        (".html", "hcp-logscan: the report of yesterday\n"),
        (".html", None),
        (".json", "{}"),
        (".xml", None),
    ],
)
def test_a_full_disk_leaves_the_report_of_before_or_none(suffix, before, tmp_path):
    path = tmp_path / f"report{suffix}"
    if before:
        path.write_text(before)
    done = program(
        RUN, "-f", "none", "-o", path.name, "--charts", "static", cwd=tmp_path,
        stdout=subprocess.PIPE, limit=LIMIT,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"cannot write {path.name}: File too large. Choose another place" in done.stderr
    assert "Traceback" not in done.stderr
    assert listed(tmp_path) == ([path.name] if before else [])
    assert not before or path.read_text() == before


def test_a_full_disk_leaves_the_tables_of_before(tmp_path, report):
    path = tmp_path / "x.parquet"
    write.write_report(report, path, Wishes())
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    done = program(
        RUN, "-f", "none", "-o", path.name, "--gpu", "B200", cwd=tmp_path,
        stdout=subprocess.PIPE, limit=LIMIT,
    )  # fmt: skip
    assert done.returncode == 2
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    assert listed(tmp_path) == [path.name]


def test_the_summary_is_printed_where_the_report_cannot_be_written(tmp_path):
    done = program(RUN, cwd=tmp_path, stdout=subprocess.PIPE, limit=LIMIT)
    assert done.returncode == 2
    assert "HCP INACTIVE" in done.stdout
    assert "Report:" not in done.stdout


SLOW_WRITE = """
import os, sys, time
from hcp_logscan.cli import write
from pathlib import Path
real = os.fdopen
def slow(*arguments, **options):
    file = real(*arguments, **options)
    class Slow:
        def __enter__(self): return self
        def __exit__(self, *_): file.close()
        def write(self, text):
            file.write(text[: len(text) // 2]); file.flush()
            print("half", flush=True)
            time.sleep(60)
    return Slow()
os.fdopen = slow
write.write_whole(Path(sys.argv[1]), "new " * 50_000)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_killed_while_it_writes_leaves_the_report_of_before(how, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SLOW_WRITE, str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        writer.send_signal(how)
        writer.wait(timeout=20)
    assert path.read_text() == "old"
    others = [name for name in listed(tmp_path) if name != path.name]
    assert all(name.startswith(f".{path.name}.") for name in others)
    assert how is not signal.SIGINT or not others  # what can be tidied up is


def test_a_folder_that_is_no_folder_is_said(tmp_path, report):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        write.write_report(report, tmp_path / "file" / "a.json", Wishes())


def test_readers_see_one_whole_report_at_any_time(tmp_path, report):
    path = tmp_path / "a.json"
    write.write_report(report, path, Wishes())
    ended = threading.Event()

    def again():
        while not ended.is_set():
            write.write_report(report, path, Wishes())

    writer = threading.Thread(target=again)
    writer.start()
    try:
        for _ in range(30):
            assert json.loads(path.read_text())["verdict"]["status"] == "inactive"
    finally:
        ended.set()
        writer.join()
