"""The dask engine: the same bytes as in one process, and clear words where a cluster is no use."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path
from types import SimpleNamespace

import pytest

from hcp_logscan import HcpLogscanError, scan
from hcp_logscan.engine import cluster, plan, remote, versions
from hcp_logscan.engine.plan import Unit
from hcp_logscan.engine.sight import disagreement, sight
from hcp_logscan.sources.discover import discover

distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
WAIT_S = 60
QUICK = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


def until(done):
    """Wait for something true, and return it."""
    deadline = time.monotonic() + WAIT_S
    while not (found := done()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


class Cluster:
    """A scheduler and workers over TCP, each a process of its own."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.file = folder / "scheduler.json"
        self.start("dask_scheduler", "--port", "0", "--dashboard-address", ":0")
        self.address = json.loads(until(self._text))["address"]

    def _text(self):
        text = self.file.read_text() if self.file.exists() else ""
        return text if text.rstrip().endswith("}") else ""

    def start(self, program, *arguments, path=()):
        command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments]
        command += ["--scheduler-file", str(self.file), "--host", "127.0.0.1", "--no-dashboard"]
        seen = os.pathsep.join([*map(str, path), str(ROOT)])
        with (self.folder / "log").open("a") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **QUICK, "PYTHONPATH": seen},
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    @contextlib.contextmanager
    def worker(self, name, path=()):
        """One more worker, for as long as it is needed."""
        options = ["--nworkers", "1", "--nthreads", "1", "--no-nanny", "--name", name]
        process = self.start("dask_worker", *options, path=path)
        with distributed.Client(self.address, set_as_default=False) as client:

            def ready():
                """Its address, once it takes tasks: it is known to the scheduler before."""
                for place, said in client.sync(client.scheduler.identity)["workers"].items():
                    if (said["name"], said["status"]) == (name, "running"):
                        return place
                return None

            place = until(ready)
        try:
            yield process, place
        finally:
            process.kill()
            process.wait()

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        with made.worker("a"), made.worker("b"):
            yield made
    finally:
        made.close()


@pytest.fixture
def small(monkeypatch):
    """A batch is as small as a kilobyte, so that a fixture run keeps several workers busy."""
    monkeypatch.setattr(cluster, "of_run", lambda found: plan.units(found.files, 1 << 10))
    monkeypatch.setattr(plan, "_LEAST_BATCH", 1)


@pytest.mark.parametrize("name", ["hcp22-redirect", "gz-rank-files", "runtime-te-rank1-off"])
def test_a_running_cluster_gives_the_same_bytes(running, small, name):
    run_dir = FIXTURES / name / "run"
    report = scan(run_dir, engine="dask", scheduler=running.address)
    assert report.to_json() == scan(run_dir).to_json()


def command(run_dir, *options):
    return [sys.executable, "-m", "hcp_logscan", str(run_dir), "-f", "json", *options]


def test_the_command_line_scans_on_a_running_cluster(running):
    run_dir = FIXTURES / "restart-after-sigkill" / "run"
    done = subprocess.run(
        command("run", "--engine", "dask", "--scheduler", running.address),
        cwd=run_dir.parent,  # relative paths mean nothing to a worker
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (scan(run_dir).to_json(), "")


def test_without_a_scheduler_workers_are_started_and_ended(tmp_path, held):
    run_dir = FIXTURES / "restart-after-sigkill" / "run"
    done = subprocess.run(
        command(run_dir, "--engine", "dask", "--workers", "2"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (scan(run_dir).to_json(), "")
    assert list(tmp_path.iterdir()) == []


def test_batches_of_a_lost_worker_are_scanned_by_another(running, small, monkeypatch):
    run_dir = FIXTURES / "hcp22-redirect" / "run"
    found, alone, check = discover(run_dir), scan(run_dir).to_json(), versions.check
    with running.worker("lost") as (lost, place):

        def then_stop(said):
            check(said)
            lost.send_signal(signal.SIGSTOP)  # what it is given from now on stays undone

        monkeypatch.setattr(versions, "check", then_stop)
        with cluster.begun(found, None, running.address) as begun:
            assert len(begun.futures) > 2 * 3, "with so many, the scheduler passes over no worker"
            assert until(lambda: begun.futures[0].future.client.processing().get(place))
            lost.kill()
            assert scan(run_dir, begun=begun).to_json() == alone


@pytest.fixture
def held(monkeypatch):
    """A port of dask's usual dashboard that is taken: nobody may stumble over it."""
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # then it is taken already
            taken.bind(("", 8787))
            taken.listen()
        yield


def children_of(pid):
    """Processes below a process, at any depth."""
    found, waiting = set(), [pid]
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{one}/task").glob("*/children"):
                mine = {int(child) for child in path.read_text().split()} - found
                found |= mine
                waiting += mine
    return found


def gone(pid):
    """Whether a process has ended; one that nobody waited for counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@linux
def test_an_interrupted_scan_leaves_no_process_no_report_and_no_folder(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "a.log").write_text("using world size: 1\n" * 4096)
    os.truncate(run_dir / "a.log", 1 << 36)  # takes minutes
    (tmp_path / "scratch").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "hcp_logscan", run_dir, "--engine", "dask", "--workers", "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "scratch")},
        text=True,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )

    def scanning():
        """The workers, once they use the processor for the file."""
        return {
            pid
            for pid in children_of(process.pid)
            if any(run_dir / "a.log" == Path(os.path.realpath(fd)) for fd in fds(pid))
        }

    try:
        assert until(lambda: scanning() or process.poll() is not None)
        workers = children_of(process.pid)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    assert said == "hcp-logscan: interrupted; no partial report is left.\n"
    # CPython ends by the signal itself if it came while source text was executed (dataclasses)
    assert process.returncode in {130, -signal.SIGINT}
    assert until(lambda: all(map(gone, workers)))
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not (tmp_path / "reports").exists()


def fds(pid):
    with contextlib.suppress(OSError):
        return list(Path(f"/proc/{pid}/fd").iterdir())
    return []


@linux
@pytest.mark.parametrize("theirs", [None, "using world size: 64\n"])
def test_a_worker_that_sees_other_files_is_an_error(running, tmp_path, monkeypatch, theirs):
    mine = tmp_path / "run"
    mine.mkdir()
    (mine / "rank0.log").write_text("using world size: 8\n")
    monkeypatch.chdir(tmp_path)  # the workers stand elsewhere
    far = running.folder / "run"
    if theirs:
        far.mkdir()
        (far / "rank0.log").write_text(theirs)
    task_of = remote.task_of

    def spelt(batch, files):
        """The same file by a path that says another one where the process stands elsewhere."""
        task = task_of(batch, files)
        name = Path("/proc/self/cwd/run") / Path(batch[0].path).name
        return dataclasses.replace(task, units=(dataclasses.replace(batch[0], path=str(name)),))

    monkeypatch.setattr(remote, "task_of", spelt)
    said = "finds another file there" if theirs else r"cannot open it \(No such file or directory\)"
    with pytest.raises(HcpLogscanError, match=f"{said}.*all workers see") as caught:
        scan(mine, engine="dask", scheduler=running.address)
    assert caught.value.exit_code == 2


def test_a_file_that_grew_or_went_is_no_disagreement(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 9000 + b"end\n")
    size = log.stat().st_size
    there = sight(str(log), size)
    with log.open("ab") as more:
        more.write(b"more\n")
    os.utime(log, ns=(1, 1))
    assert disagreement(str(log), size, there) is None
    log.write_bytes(b"x" * 9000 + b"END\n")
    assert disagreement(str(log), size, there) == "finds another file there"
    log.unlink()
    assert disagreement(str(log), size, there) is None
    assert disagreement(str(log), size, "Permission denied") is None


def test_an_empty_file_that_is_full_elsewhere_is_another_file(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("their line\n")
    there = sight(str(log), 0)
    log.write_text("")
    assert disagreement(str(log), 0, there) == "finds another file there"
    log.write_text("their line\nand mine\n")
    assert disagreement(str(log), 0, there) is None


def test_a_broken_file_is_a_health_entry_as_everywhere(running, tmp_path):
    (tmp_path / "rank0.log").write_text("using world size: 8\n")
    (tmp_path / "rank1.log.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"\xff" * 64)
    report = scan(tmp_path, engine="dask", scheduler=running.address)
    assert [entry.file for entry in report.data.health.unreadable] == ["rank1.log.gz"]
    assert report.to_json() == scan(tmp_path).to_json()


def test_a_worker_with_other_versions_is_refused_before_anything_is_scanned(running, tmp_path):
    (tmp_path / "polars-0.0.1.dist-info").mkdir()
    (tmp_path / "polars-0.0.1.dist-info" / "METADATA").write_text("Name: polars\nVersion: 0.0.1\n")
    with (
        running.worker("old", path=[tmp_path]) as (_, place),
        pytest.raises(HcpLogscanError, match=f"worker {place} runs other versions") as caught,
    ):
        scan(FIXTURES / "p2p" / "run", engine="dask", scheduler=running.address)
    assert re.search(r"polars is \S+ here and 0\.0\.1 there", str(caught.value))


def said(python="3.11.7.final.0", **packages):
    return {"packages": {"python": python, "hcp-logscan": "1.0", "polars": "2.0", **packages}}


def test_versions_are_compared_one_by_one():
    same = {"client": said(), "scheduler": said("3.11.9.final.0"), "workers": {"tcp://a:1": said()}}
    versions.check(same)
    with pytest.raises(HcpLogscanError, match=r"python is 3\.11 here and 3\.12 there"):
        versions.check({**same, "scheduler": said("3.12.0.final.0")})
    lacking = {"tcp://a:1": said(**{"hcp-logscan": None}), "tcp://b:1": None}
    with pytest.raises(HcpLogscanError, match=r"\(and 1 more .* 1.0 here and not installed there"):
        versions.check({**same, "workers": lacking})


def test_a_worker_that_joined_late_with_another_version_refuses_its_batch(tmp_path):
    with pytest.raises(HcpLogscanError, match=r"runs hcp-logscan .*, and this process 0\.0\.0"):
        remote.scan(remote.Task((), (), version="0.0.0"))


def failing(error):
    def result():
        raise error

    task = remote.Task((Unit(0, "/logs/rank0.log"),), (0,))
    return cluster._Batch(task, SimpleNamespace(result=result, release=lambda: None))


def test_a_batch_that_kills_every_worker_is_named():
    last = SimpleNamespace(address="tcp://a:1")
    with pytest.raises(HcpLogscanError, match=r"4 workers died .* /logs/rank0\.log.*memory"):
        failing(distributed.KilledWorker("key", last, 3)).result()


def test_a_lost_scheduler_is_an_error():
    with pytest.raises(HcpLogscanError, match="scheduler was lost"):
        failing(CancelledError()).result()


def test_dask_logs_nothing_while_it_is_used_and_as_before_afterwards():
    program = (
        "import logging; from hcp_logscan.engine import cluster\n"
        "with cluster._quiet(): logging.getLogger('distributed.client').error('within')\n"
        "logging.getLogger('distributed.client').error('after')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "within" not in done.stderr
    assert "after" in done.stderr


@pytest.fixture
def silent():
    """The address of somebody who listens and never answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield f"tcp://127.0.0.1:{taken.getsockname()[1]}"


def on(scheduler, **options):
    scan(FIXTURES / "p2p" / "run", engine="dask", scheduler=scheduler, **options)


def test_no_scheduler_is_an_error_within_seconds(silent, monkeypatch):
    with pytest.raises(HcpLogscanError, match=r"no dask scheduler answers at tcp:\S+:1 \("):
        on("tcp://127.0.0.1:1")
    monkeypatch.setattr(cluster, "CONNECT_S", 0.2)
    with pytest.raises(HcpLogscanError, match="no answer") as caught:
        on(silent)
    assert caught.value.exit_code == 2


def test_a_server_that_is_no_scheduler_is_an_error():
    def answer(server):
        for _ in range(2):  # whether somebody listens is tried first
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        with pytest.raises(HcpLogscanError, match="something else answers there"):
            on(f"tcp://127.0.0.1:{server.getsockname()[1]}")


def test_the_address_of_a_worker_is_none_of_a_scheduler(running):
    with distributed.Client(running.address, set_as_default=False) as client:
        place = next(iter(client.nthreads()))
    with pytest.raises(HcpLogscanError, match="a worker of a cluster is there"):
        on(place)


def test_a_cluster_with_too_few_workers_is_an_error(running, monkeypatch):
    monkeypatch.setattr(cluster, "WORKERS_S", 0.1)
    few = cluster._connected(running.address, 3)
    with pytest.raises(HcpLogscanError, match=r"fewer than 3 workers .* Start workers first"), few:
        pass


def test_workers_that_do_not_start_are_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(HcpLogscanError, match=r"did not start.*/bin/false -P -m hcp_logscan\.eng"):
        on(None, workers=1)


@pytest.mark.parametrize("address", ["", "host", "ftp://host:1", "tcp://a b:1", "tcp://host:port"])
def test_what_is_no_address_is_said(address):
    with pytest.raises(HcpLogscanError, match="is no address of a scheduler"):
        on(address)


def test_options_that_do_not_go_together_are_refused():
    with pytest.raises(HcpLogscanError, match="not both"):
        on("tcp://127.0.0.1:1", workers=2)
    with pytest.raises(HcpLogscanError, match="add --engine dask"):
        scan(FIXTURES / "p2p" / "run", scheduler="tcp://127.0.0.1:1")
    with pytest.raises(HcpLogscanError, match="known are local, dask"):
        scan(FIXTURES / "p2p" / "run", engine="spark")
    with pytest.raises(HcpLogscanError, match="standard input"):
        scan("-", engine="dask")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HcpLogscanError, match=r"pip install 'hcp-logscan\[dask\]'"):
        on("tcp://127.0.0.1:1")
