"""Reading a run that grows: after every step the tables are those of a scan of it all."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from hcp_logscan.engine import follow, plan
from hcp_logscan.engine.follow import Follower
from hcp_logscan.engine.run import merge, scan_files
from hcp_logscan.sources.discover import discover

FIXTURES = Path(__file__).parents[1] / "fixtures"
DUMP = (FIXTURES / "case01-no-sizes" / "run" / "slurm-4711.out").read_bytes()
RUN = "restart-after-sigkill"


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    monkeypatch.setattr(plan, "UNIT_BYTES", 3000)
    monkeypatch.setattr(follow, "SETTLE_BYTES", 700)


@pytest.fixture
def scanned(monkeypatch):
    """Bytes that are scanned, file by file."""
    found = []
    real = follow.begun

    def noted(run, workers, some):
        found.extend((Path(unit.path).name, unit.start, unit.size) for unit in some)
        return real(run, workers, some)

    monkeypatch.setattr(follow, "begun", noted)
    return found


def read(follower: Follower, run_dir: Path, *, whole: bool = True) -> bool:
    """Read the run; whether anything was new. The tables are those of a scan."""
    found = discover(run_dir)
    running = follower.read(found, whole=whole)
    if running is None:
        return False
    tables = merge(found, running.results())
    if whole:
        assert_same(tables, found)
    return True


def assert_same(tables, found):
    wanted = scan_files(found)
    assert tables.stats == wanted.stats
    for name, frame in wanted.frames.items():
        assert tables[name].equals(frame), name


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["case01-no-sizes", RUN, "hcp22-redirect"])
def test_a_run_that_grows_anyhow_has_the_tables_of_a_scan(tmp_path, name, seed):
    chance = random.Random(seed)
    source = FIXTURES / name / "run"
    rest = {
        path.relative_to(source): path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.is_file()
    }
    follower = Follower(1)
    for step in range(6):
        for path in list(rest):
            if chance.random() < 0.3 and step < 5:
                continue
            count = len(rest[path]) if step == 5 else chance.randrange(len(rest[path]) + 1)
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            append(tmp_path / path, rest[path][:count])
            rest[path] = rest[path][count:]
        if any(path.is_file() and path.stat().st_size for path in tmp_path.rglob("*")):
            read(follower, tmp_path, whole=step % 2 == 1)

    assert not any(rest.values())
    assert follower.read(discover(tmp_path), whole=True) is None


def test_a_file_whose_lines_turn_out_to_have_a_lead_is_read_anew_and_then_grows(tmp_path, scanned):
    log = tmp_path / "a.log"
    lines = [b"node1: " + line for line in DUMP.splitlines(keepends=True)]
    log.write_bytes(b"node1: " + b"-" * 1000 + b"\n")
    follower = Follower(1)
    assert read(follower, tmp_path)
    starts = []
    for first in range(0, len(lines), len(lines) // 3):
        append(log, b"".join(lines[first : first + len(lines) // 3]))
        scanned.clear()
        assert read(follower, tmp_path)
        starts.append(min(start for _, start, _ in scanned))
    found = discover(tmp_path)

    assert found.files[0].leads == ("host",)
    assert set(scan_files(found)["config"]["stream"]) == {"hnode1,t0"}
    assert starts[0] == 0 < starts[-1]


def test_an_unchanged_run_is_not_read_again(tmp_path, scanned):
    shutil.copytree(FIXTURES / RUN / "run", tmp_path / "run")
    follower = Follower(1)
    assert read(follower, tmp_path)
    scanned.clear()

    assert not read(follower, tmp_path)
    assert not scanned


def test_only_what_is_new_of_a_file_that_grew_is_scanned(tmp_path, scanned):
    (tmp_path / "a.log").write_bytes(DUMP)
    (tmp_path / "b.log").write_bytes(DUMP)
    follower = Follower(1)
    read(follower, tmp_path)
    scanned.clear()
    append(tmp_path / "b.log", b"one line more\n" * 3)

    assert read(follower, tmp_path)
    assert {name for name, *_ in scanned} == {"b.log"}
    assert sum(size for *_, size in scanned) < 3000 + 700 + 42


def test_a_block_that_was_open_at_the_end_is_finished(tmp_path):
    log = tmp_path / "a.log"
    follower = Follower(1)
    lines = DUMP.splitlines(keepends=True)
    for first in range(0, len(lines), 40):
        append(log, b"".join(lines[first : first + 40]))
        read(follower, tmp_path, whole=bool(first % 80))
    found = discover(tmp_path)

    assert follower.read(found, whole=True) is None
    assert scan_files(found)["config"].height > 20


def test_a_line_without_end_waits_for_it(tmp_path):
    log = tmp_path / "a.log"
    whole = b" [t] iteration        1/       8 | consumed samples: 8 | lm loss: 1.0E+00 |\n"
    log.write_bytes(b"hello\n" + whole[:60])
    follower = Follower(1)
    found = discover(tmp_path)
    running = follower.read(found)
    assert running is not None
    assert merge(found, running.results()).stats[0].lines == 1
    assert follower.read(found) is None
    assert follower.read(found, whole=True) is not None
    append(log, whole[60:])

    assert read(follower, tmp_path)


def test_a_rotated_file_keeps_its_results_and_the_new_one_is_read(tmp_path, scanned):
    log = tmp_path / "train.log"
    log.write_bytes(DUMP)
    follower = Follower(1)
    read(follower, tmp_path)
    scanned.clear()
    log.rename(tmp_path / "train.1.log")
    log.write_bytes(b"a new one\n")

    assert read(follower, tmp_path)
    assert {name for name, *_ in scanned} == {"train.log"}


@pytest.mark.parametrize("longer", [False, True])
def test_a_file_that_was_cut_and_written_anew_is_read_from_its_beginning(tmp_path, longer):
    log = tmp_path / "a.log"
    log.write_bytes(DUMP)
    follower = Follower(1)
    read(follower, tmp_path)
    inode = log.stat().st_ino
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(b"other lines\n" * 2 + DUMP[:4000] + (DUMP if longer else b""))

    assert log.stat().st_ino == inode
    assert (log.stat().st_size > len(DUMP)) is longer
    assert read(follower, tmp_path)


def test_a_file_met_twice_while_it_is_renamed_counts_once_afterwards(tmp_path):
    (tmp_path / "a.log").write_bytes(DUMP)
    (tmp_path / "b.log").write_bytes(DUMP[:4000])
    found = discover(tmp_path)
    (tmp_path / "b.log").unlink()
    (tmp_path / "b.log").hardlink_to(tmp_path / "a.log")
    follower = Follower(1)
    assert follower.read(found) is not None

    assert read(follower, tmp_path)


def test_a_file_that_goes_takes_its_rows_with_it(tmp_path):
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(DUMP)
    follower = Follower(1)
    read(follower, tmp_path)
    (tmp_path / "a.log").unlink()

    assert read(follower, tmp_path)


def test_compressed_files_are_read_as_a_whole(tmp_path):
    import gzip

    log = tmp_path / "a.log.gz"
    log.write_bytes(gzip.compress(DUMP[:5000]))
    follower = Follower(1)
    read(follower, tmp_path, whole=False)
    append(log, gzip.compress(DUMP[5000:]))

    assert read(follower, tmp_path)


def test_worker_processes_give_the_same_tables(tmp_path):
    (tmp_path / "a.log").write_bytes(DUMP)
    follower = Follower(2)
    assert read(follower, tmp_path)
    append(tmp_path / "a.log", DUMP)

    assert read(follower, tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_a_file_that_cannot_be_read_is_tried_again(tmp_path, monkeypatch):
    (tmp_path / "a.log").write_bytes(DUMP)
    found = discover(tmp_path)
    follower = Follower(1)
    (tmp_path / "a.log").rename(tmp_path / "b")
    running = follower.read(found)
    assert running is not None
    assert merge(found, running.results()).stats[0].error
    (tmp_path / "b").rename(tmp_path / "a.log")

    assert read(follower, tmp_path)
