"""A live run: what is written while it is followed is what the report says at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hcp_logscan.cli import follow
from hcp_logscan.cli.app import main
from hcp_logscan.engine.follow import Follower
from hcp_logscan.rules.load import load_rules

FIXTURES = Path(__file__).parents[1] / "fixtures"
INACTIVE = (FIXTURES / "case01-no-sizes" / "run" / "slurm-4711.out").read_bytes()
HEALTHY = (FIXTURES / "p2p" / "run" / "console.log").read_bytes()
STATIC = ("--charts", "static")
PATIENCE_S = 60
"""On a busy machine; a quiet one needs one or two."""


@pytest.fixture(autouse=True)
def working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(follow, "INTERVAL_S", 0.02)
    monkeypatch.setattr(follow, "IDLE_PER_BUSY", 0)
    Path("run").mkdir()


class Job:
    """Writes logs beside the one who follows them, step by step."""

    def __init__(self, monkeypatch):
        self.begun = self.looks = 0
        self.trouble = None
        self.asked = False
        real = follow._Look.again

        def counted(look, *, whole):
            self.begun += 1
            real(look, whole=whole)
            self.looks += 1

        monkeypatch.setattr(follow._Look, "again", counted)

    def seen(self):
        """Wait until what was written by now has been looked at."""
        wanted, end = self.begun + 1, time.monotonic() + PATIENCE_S
        while self.looks < wanted and time.monotonic() < end:
            time.sleep(0.005)

    def followed(self, steps, *arguments, interrupt=True):
        """Follow the run while the steps are done; Ctrl-C after them. The exit code."""
        over = threading.Event()

        def work():
            try:
                for step in steps:
                    self.seen()
                    step()
                if interrupt:
                    self.seen()
            except BaseException as error:  # noqa: BLE001 - it belongs to the test, not to its thread
                self.trouble = error
            if self.trouble or not over.wait(0 if interrupt else PATIENCE_S):
                self.asked = True
                os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            code = main(["run", "--follow", *arguments])
        finally:
            over.set()
            thread.join()
        assert self.trouble is None
        return code


@pytest.fixture
def job(monkeypatch):
    return Job(monkeypatch)


def append(name, data):
    with Path("run", name).open("ab") as file:
        file.write(data)


def halves(data):
    at = len(data) // 2 + 7
    return data[:at], data[at:]


def test_rotated_truncated_and_late_files_end_in_the_report_of_a_scan(job, capsys):
    first, second = halves(HEALTHY)
    log = Path("run", "console.log")
    steps = [
        lambda: append("console.log", first),
        lambda: append("other.log", INACTIVE[:3000]),
        lambda: log.rename("run/console.1.log"),
        lambda: append("console.log", second),
        lambda: Path("run/other.log").write_bytes(b"cut, and written anew\n"),
        lambda: append("console.log", b"a line without an end"),
    ]
    code = job.followed(steps, "-f", "json", "--fail-on", "never")
    followed = capsys.readouterr().out

    assert code == 0
    assert main(["run", "-f", "json", "--fail-on", "never"]) == 0
    assert capsys.readouterr().out == followed
    assert json.loads(followed)["series"]["iterations"] > 0
    assert not Path("reports").exists()


def test_an_error_stops_it_and_the_report_is_written(job, capsys):
    at = INACTIVE.index(b"Step Time")
    append("a.log", INACTIVE[:at])
    code = job.followed([lambda: append("a.log", INACTIVE[at:])], *STATIC, interrupt=False)
    shown = capsys.readouterr().out

    assert code == 1
    assert not job.asked
    assert "HCP INACTIVE" in shown
    assert "error    HCP002" in shown
    assert "Report: reports/" in shown
    assert len(list(Path("reports").iterdir())) == 1


def test_the_end_of_the_log_stops_nothing_until_ctrl_c(job, capsys):
    cut = HEALTHY[: HEALTHY.index(b" iteration        5/")].rpartition(b"\n")[0] + b"\n"
    steps = [lambda: append("a.log", cut), lambda: append("a.log", b"nothing of note\n")]
    code = job.followed(steps, "--fail-on", "note", *STATIC)

    assert job.asked
    assert "HCP306 stopped-early" in capsys.readouterr().out
    assert code == 1


def test_rules_that_wait_for_the_end_exist_or_are_promised():
    promised = {"HCP404"}

    assert {rule.id for rule in load_rules()} | promised >= follow.ENDINGS


def test_the_summary_is_printed_anew_only_when_its_status_changes(job, capsys):
    lines = HEALTHY.splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if b" iteration " in line)
    steps = [
        lambda: append("a.log", b"".join(lines[: last - 3])),
        lambda: append("a.log", b"".join(lines[last - 3 : last])),
    ]
    job.followed(steps, *STATIC)
    shown = capsys.readouterr()

    assert shown.out.count("Scan health") == 2, "one while it is followed, one at the end"
    assert "waiting: no log file in run" in shown.err
    assert shown.err.count("waiting") == 1


def test_ctrl_c_before_anything_was_understood_is_code_3(job, capsys):
    assert job.followed([lambda: append("a.log", b"hello\n")]) == 3
    assert "not one line" in capsys.readouterr().err
    assert not Path("reports").exists()


def test_a_second_ctrl_c_interrupts_and_leaves_no_report(monkeypatch, capsys):
    append("a.log", HEALTHY)

    def twice(*_args, **_options):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(PATIENCE_S)

    monkeypatch.setattr(Follower, "read", twice)
    before = signal.getsignal(signal.SIGINT)

    assert main(["run", "--follow"]) == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert "interrupted" in capsys.readouterr().err
    assert not Path("reports").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-"], "standard input"),
        (["run", "."], "one RUN_DIR"),
        (["/no/such/path"], "Check the path"),
        (["run", "-o", "report.doc"], "suffix"),
    ],
)
def test_what_cannot_be_followed_is_a_usage_error(arguments, said, capsys):
    assert main([*arguments, "--follow"]) == 2
    assert said in capsys.readouterr().err


def test_secrets_in_what_is_said_of_the_run_are_hidden(capsys):
    secret = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD2f"

    assert main([f"/no/{secret}", "--follow"]) == 2
    said = capsys.readouterr().err
    assert "cannot read" in said
    assert secret not in said


def test_a_run_that_is_gone_for_a_while_keeps_its_report(job, capsys):
    append("a.log", HEALTHY)
    steps = [lambda: Path("run").rename("away"), lambda: None]

    assert job.followed(steps, *STATIC) == 0
    shown = capsys.readouterr()
    assert "waiting: cannot read run" in shown.err
    assert "Report: reports/" in shown.out


PROGRAM = """
import sys
from hcp_logscan.cli import app, follow
follow.INTERVAL_S, follow.IDLE_PER_BUSY = 0.02, 0
app.main(sys.argv[1:])
"""


def test_a_terminal_shows_the_summary_in_place():
    pty = pytest.importorskip("pty", reason="terminals are POSIX")
    append("a.log", HEALTHY)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "run", "--follow", *STATIC],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "100", "LINES": "60", "TERM": "xterm", "NO_COLOR": "1"},
    )
    os.close(theirs)
    told, asked = b"", False
    try:
        while part := os.read(ours, 65536):
            told += part
            if b"Scan health" in told and not asked:
                asked = True
                process.send_signal(signal.SIGINT)
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    process.communicate(timeout=PATIENCE_S)
    screen, _, final = told.decode().rpartition("\x1b[2K")

    assert process.returncode == 0
    assert "following; Ctrl-C" in screen
    assert "Scan health" in screen
    assert "following" not in final
    assert final.count("Scan health") == 1
    assert "Report: reports/" in final
    assert "\x1b[3" not in told.decode()
