"""The bar of a scan: on a terminal only, and without any part in the result."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from hcp_logscan.cli import progress
from hcp_logscan.engine import plan
from hcp_logscan.engine.pool import begun
from hcp_logscan.engine.run import merge
from hcp_logscan.sources.discover import discover

FIXTURES = Path(__file__).parents[1] / "fixtures"
MANY_FILES = FIXTURES / "restart-after-sigkill" / "run"

PROGRAM = """
import sys
from hcp_logscan.cli import app, progress
from hcp_logscan.engine import plan, pool
progress.PATIENCE_S = 0.0
plan._LEAST_BATCH = plan.UNIT_BYTES = 1000
app.main(sys.argv[1:])
"""
"""The command line with such small batches that a small run has many."""

pty = pytest.importorskip("pty", reason="terminals are POSIX")


def on_a_terminal(cwd: Path, *arguments: str, **environment: str) -> tuple[str, str]:
    """What a scan prints on standard output, a pipe, and on standard error, a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm", **environment},
    )
    os.close(theirs)
    told = b""
    try:
        while part := os.read(ours, 4096):
            told += part
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    printed = process.communicate(timeout=60)[0]
    return printed, told.decode()


def test_a_terminal_gets_a_bar_and_standard_output_stays_a_document(tmp_path):
    quiet = subprocess.run(
        [sys.executable, "-m", "hcp_logscan", str(MANY_FILES), "-f", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    printed, told = on_a_terminal(tmp_path, str(MANY_FILES), "-f", "json", NO_COLOR="1")

    assert not quiet.stderr
    assert printed == quiet.stdout
    assert re.search(r"\d+ of \d+ files", told)
    assert re.search(r"/\d+\.\d kB", told)
    assert not re.search(r"\x1b\[[0-9;]*[34]\d", told), "colours in spite of NO_COLOR"
    assert told.endswith("\x1b[2K"), "the bar is not taken away"


def test_a_dumb_terminal_gets_none(tmp_path):
    assert on_a_terminal(tmp_path, str(MANY_FILES), "-f", "none", TERM="dumb") == ("", "")


def test_batches_of_a_watched_scan_give_the_same_tables(monkeypatch):
    found = discover(MANY_FILES)
    with begun(found, 1) as running:
        alone = merge(found, running.results())
        monkeypatch.setattr(plan, "_LEAST_BATCH", 1000)
        told = []
        watched = dataclasses.replace(running, tell=told.append)
        cut = merge(found, watched.results())

    assert len(told) > 2
    assert [unit for units in told for unit in units] == list(plan.units(found.files))
    assert cut.stats == alone.stats
    assert all(frame.equals(alone[name]) for name, frame in cut.frames.items())
    assert sum(frame.height for frame in cut.frames.values()) > 10
    assert isinstance(cut["iterations"], pl.DataFrame)


def test_nothing_is_told_where_standard_error_is_no_terminal():
    with progress.shown([discover(MANY_FILES)]) as tell:
        assert tell is None
