"""Files that are no text, have no end, change under the reader or are no files at all."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hcp_logscan import scan
from hcp_logscan.engine.run import scan_files
from hcp_logscan.model.errors import NothingUnderstoodError, SourceError
from hcp_logscan.reporting.text import render_text
from hcp_logscan.sources.discover import discover

ROOT = Path(__file__).parents[1]
START = (ROOT / "tests/fixtures/hcp22-console-without-prefixes/run/console.log").read_text()
ITERATIONS = scan(ROOT / "tests/fixtures/hcp22-console-without-prefixes/run").data.series.iterations


def put(folder: Path, data: bytes, name: str = "train.log") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    return folder


# Bytes --------------------------------------------------------------------------------------------


def test_a_hole_of_nul_bytes_costs_nothing_but_itself(tmp_path: Path) -> None:
    lines = START.splitlines(keepends=True)
    middle = next(n for n, line in enumerate(lines) if " iteration " in line)
    data = (
        "".join(lines[:middle]).encode() + bytes(300_000) + b"\n" + "".join(lines[middle:]).encode()
    )
    report = scan(put(tmp_path / "run", data))
    assert report.data.series.iterations == ITERATIONS


def test_a_file_of_nul_bytes_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(NothingUnderstoodError):
        scan(put(tmp_path / "run", bytes(1 << 20)))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_text_is_not_half_understood(tmp_path: Path, encoding: str) -> None:
    put(tmp_path / "run", START.encode(encoding), "wide.log")
    with pytest.raises(NothingUnderstoodError):
        scan(tmp_path / "run")
    report = scan(put(tmp_path / "run", START.encode()))
    assert report.data.series.iterations == ITERATIONS


def test_a_byte_order_mark_hides_no_line(tmp_path: Path) -> None:
    report = scan(put(tmp_path / "run", b"\xef\xbb\xbf" + START.encode()))
    assert report.data.series.iterations == ITERATIONS


def test_lines_of_two_logs_torn_into_each_other_are_no_crash(tmp_path: Path) -> None:
    data = START.encode()
    mixed = b"".join(
        data[at : at + 37] + data[-at - 37 : -at or None] for at in range(0, len(data), 37)
    )
    assert render_text(scan(put(tmp_path / "run", mixed + b"\n" + data)).data)


# No end -------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
limit = {extra} << 20
import hcp_logscan.api, polars
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
report = hcp_logscan.api.scan(sys.argv[1])
print(report.data.series.iterations, report.data.health.bytes)
"""
"""Address space beyond what is loaded: memory that is bounded for 200 MB is so for any size."""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
@pytest.mark.parametrize("kind", ["no line end at all", "a hole", "carriage returns alone"])
def test_a_line_of_200_megabytes_takes_bounded_memory(tmp_path: Path, kind: str) -> None:
    """A gigabyte in one line takes as long again, and no more memory: blocks, not lines, are held."""
    path = tmp_path / "run" / "train.log"
    path.parent.mkdir()
    size = 200 << 20
    with path.open("wb") as file:
        file.write(START.encode())
        if kind == "a hole":
            file.seek(size - 1)
            file.write(b"\n")
        else:
            part = b"x" * (1 << 20) if kind == "no line end at all" else b"step 1 of 2\r" * 87_381
            for _ in range(size // len(part)):
                file.write(part)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.format(extra=160), str(path)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "POLARS_MAX_THREADS": "1"},
    )  # fmt: skip
    assert done.stderr == ""
    iterations, read = map(int, done.stdout.split())
    assert iterations == ITERATIONS
    assert read == path.stat().st_size


# Under the reader ---------------------------------------------------------------------------------


def test_files_that_change_while_they_are_read_are_read_to_some_end(tmp_path: Path) -> None:
    run = put(tmp_path / "run", START.encode())
    path, stop = run / "train.log", threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            if number % 3 == 0:
                os.truncate(path, 5_000)
            elif number % 3 == 1:
                path.write_text(START)
            else:
                path.unlink()
                path.write_text(START[:9_000])

    writer = threading.Thread(target=change)
    writer.start()
    try:
        for _ in range(12):
            try:
                report = scan(run)
            except (NothingUnderstoodError, SourceError):
                continue
            assert render_text(report.data)
            assert report.data.series.iterations <= ITERATIONS
    finally:
        stop.set()
        writer.join()


def test_a_file_that_is_gone_after_it_was_found_is_named(tmp_path: Path) -> None:
    run = put(tmp_path / "run", START.encode())
    put(run, START.encode(), "other.log")
    found = discover(run)
    (run / "other.log").unlink()
    stats = {
        file.name: one.error for file, one in zip(found.files, scan_files(found).stats, strict=True)
    }
    assert stats == {"train.log": None, "other.log": "No such file or directory"}


@pytest.mark.parametrize("into", ["pipe", "folder"])
def test_a_file_that_becomes_something_else_after_it_was_found_is_not_waited_for(
    tmp_path: Path, into: str
) -> None:
    run = put(tmp_path / "run", START.encode())
    found = discover(put(run, START.encode(), "other.log"))
    (run / "other.log").unlink()
    os.mkfifo(run / "other.log") if into == "pipe" else (run / "other.log").mkdir()
    first, second = scan_files(found).stats
    assert first.error in {"it is no regular file any more", "Is a directory"}
    assert second.error is None


# No files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_is_not_opened(device: str) -> None:
    if not Path(device).exists():
        pytest.skip("no such device here")
    with pytest.raises(SourceError, match="neither a file nor a directory"):
        scan(device)


def test_pipes_and_sockets_are_not_opened(tmp_path: Path) -> None:
    import socket

    run = put(tmp_path / "run", START.encode())
    os.mkfifo(run / "rank_1.log")
    os.mkfifo(run / ".hcp-logscan.toml")
    os.mkfifo(run / "config.yaml")
    with socket.socket(socket.AF_UNIX) as server:
        name = os.path.relpath(run / "s.log")
        server.bind(name if len(name) < 100 else str(run / "s.log")[:100])
        assert [file.name for file in discover(run).files] == ["train.log"]
        assert scan(run).data.series.iterations == ITERATIONS
    with pytest.raises(SourceError, match="neither a file nor a directory"):
        scan(run / "rank_1.log")


def test_links_to_devices_and_to_themselves_are_not_followed(tmp_path: Path) -> None:
    run = put(tmp_path / "run", START.encode())
    (run / "zero.log").symlink_to("/dev/zero")
    (run / "self.log").symlink_to("self.log")
    (run / "a.log").symlink_to("b.log")
    (run / "b.log").symlink_to("a.log")
    (run / "passwd.log").symlink_to("/etc/passwd")
    (run / ".hcp-logscan.toml").symlink_to("/etc/passwd")
    (run / "up").symlink_to("..")
    assert [file.name for file in discover(run).files] == ["train.log"]
    report = scan(run)
    assert report.data.series.iterations == ITERATIONS
    assert "root:" not in report.to_json()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    run = put(tmp_path / "run", START.encode())
    put(run / "closed", START.encode()).chmod(0)
    try:
        assert [one.file for one in discover(run).unreadable] == ["closed"]
    finally:
        (run / "closed").chmod(0o700)


def test_a_thousand_nested_folders_are_walked(tmp_path: Path) -> None:
    run = put(tmp_path / "run", START.encode())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    deep = run
    for _ in range(300):
        deep /= "d"
    deep.mkdir(parents=True)
    put(deep, START.encode(), "rank_1.log")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 64), hard))
        assert len(discover(run).files) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# Templates ----------------------------------------------------------------------------------------


def test_no_template_and_no_format_in_a_log_is_evaluated(tmp_path: Path) -> None:
    evil = "{{ 7*7 }} ${7*7} {7*7!r} %(name)s {% raw %} {0.__class__} #{7*7} <%= 7*7 %>"
    named = START[: START.rindex("\n", 0, START.index(" iteration        3/")) + 1]
    tail = f'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    f()\nValueError: {evil}\n'
    report = scan(put(tmp_path / "run", (named + tail).encode()))
    shown = report.to_html(charts="static") + report.to_markdown() + render_text(report.data)
    assert "{{ 7*7 }}" in shown
    assert "49 ${49}" not in shown
    assert "{49" not in shown
