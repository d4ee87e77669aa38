"""Worker processes: the same bytes as one process, and none of them left behind."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hcp_logscan import HcpLogscanError, scan
from hcp_logscan.engine import pool
from hcp_logscan.engine.plan import Unit, batches, units
from hcp_logscan.sources.discover import discover

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_batches_keep_the_order_and_hold_every_unit_once():
    work = [Unit(n, f"{n}.log", size=size) for n, size in enumerate([1, 9 << 20, 3, 4, 5 << 20, 0])]
    made = batches(work, workers=2, total=14 << 20)
    assert [unit for batch in made for unit in batch] == work
    assert [len(batch) for batch in made] == [2, 3, 1]


def test_a_large_file_is_cut_for_all_workers(tmp_path):
    (tmp_path / "a.log").write_bytes(b"x" * 1000)
    cut = list(units(discover(tmp_path).files, unit_bytes=300))
    assert [unit.size for unit in cut] == [300, 300, 300, 100]
    assert len(batches(cut, workers=1, total=1000)) == 1


def test_small_logs_and_standard_input_are_scanned_in_this_process(tmp_path):
    (tmp_path / "a.log").write_text("using world size: 1\n")
    found = discover(tmp_path)
    assert pool.workers_for(found, None) == 1
    assert pool.workers_for(found, 3) == 3
    assert pool.workers_for(discover("-"), 3) == 1
    large = dataclasses.replace(found.files[0], size=1 << 40)
    many = pool.workers_for(dataclasses.replace(found, files=(large,)), None)
    assert many == min(pool.available_cpus(), pool.MAX_WORKERS)


def test_any_number_of_workers_gives_the_same_bytes():
    run_dir = FIXTURES / "hcp22-redirect" / "run"
    alone = scan(run_dir).to_json()
    assert scan(run_dir, workers=3).to_json() == alone
    command = [sys.executable, "-m", "hcp_logscan", str(run_dir), "-f", "json", "--workers"]
    for workers in ("1", "2"):
        done = subprocess.run([*command, workers], capture_output=True, text=True, check=False)
        assert done.stdout == alone
    assert multiprocessing.active_children() == []


def test_a_worker_that_dies_is_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(pool, "_scan", _die)
    with pytest.raises(HcpLogscanError, match="--workers 1"):
        scan(FIXTURES / "p2p" / "run", workers=2)
    assert multiprocessing.active_children() == []


def _die(_batch: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def children_of(process: subprocess.Popen[str]) -> list[int]:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(child) for child in path.read_text().split()]


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody waited for counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupted_scan_leaves_no_process_and_no_report(tmp_path, sent, code):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    log = run_dir / "a.log"
    log.write_text("training ...\n" * 10_000)
    os.truncate(log, 1 << 36)  # takes minutes: behind its text it has a hole
    command = [sys.executable, "-m", "hcp_logscan", str(run_dir), "--workers", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, text=True, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(workers := children_of(process)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert ("interrupted" in said) is (sent == signal.SIGINT)
    while not all(gone(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(workers) == 2
    assert all(gone(pid) for pid in workers)
    assert not (tmp_path / "reports").exists()
