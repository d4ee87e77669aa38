"""Runs in object stores: one that behaves as fsspec's do, and S3 itself where s3fs and moto are.

A store has no folders: a listing groups keys by their prefix, some tools leave an empty object
where a folder would be, and a read asks for a range of bytes (s3fs 2025 and 2026, gcsfs and adlfs
are fsspec's buffered files over such requests).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import fsspec
import pytest
from compose import Job, compose
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from hcp_logscan import scan
from hcp_logscan.sources import remote
from hcp_logscan.sources.discover import Selection, discover

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REFUSED = Job(sizes=None)
"""Every rank raises, and no line of it names a rank."""


class Ranges(AbstractBufferedFile):
    """An object that is read by ranges."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        data = Objects.kept[self.path][start:end]
        Objects.asked.append((self.path, start, len(data)))
        return data


class Objects(AbstractFileSystem):
    """Keys and bytes; everything else is made of them."""

    protocol = "objects"
    kept: ClassVar[dict[str, bytes]] = {}
    asked: ClassVar[list[tuple[str, int, int]]] = []

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        prefix = self._strip_protocol(path) + "/"
        found: dict[str, dict[str, Any]] = {}
        for key, data in self.kept.items():
            rest = key.removeprefix(prefix)
            if key.startswith(prefix) and "/" in rest:
                name = prefix + rest.partition("/")[0]
                found[name] = {"name": name, "size": 0, "type": "directory"}
            elif key.startswith(prefix):  # the placeholder of this very folder, too
                found[key] = {"name": key, "size": len(data), "type": "file"}
        if not found:
            raise FileNotFoundError(path)
        return list(found.values()) if detail else list(found)

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path in self.kept:
            return {"name": path, "size": len(self.kept[path]), "type": "file"}
        self.ls(path)
        return {"name": path, "size": 0, "type": "directory"}

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **kwargs: Any) -> Ranges:
        return Ranges(self, path, mode, block_size or 5 << 20, "readahead")


@pytest.fixture
def store() -> Iterator[dict[str, bytes]]:
    fsspec.register_implementation("objects", Objects, clobber=True)
    Objects.kept.clear()
    Objects.asked.clear()
    remote._connected.cache_clear()
    yield Objects.kept
    remote._connected.cache_clear()


def put(store: dict[str, bytes], run: Path, under: str) -> str:
    """Upload a run as such tools do: with an object for some of its folders."""
    for path in sorted(run.rglob("*")):
        key = f"{under}/{path.relative_to(run)}"
        if path.is_dir():
            store[f"{key}/"] = b""
        else:
            store[key] = path.read_bytes()
    store[f"{under}/"] = b""
    return f"objects://{under}"


def answers(report: Any) -> dict[str, Any]:
    said = json.loads(report.to_json())
    del said["run"]["name"]
    return said


@pytest.mark.parametrize("layout", ["nodes", "pod_files", "slurm_nodes", "role", "stern"])
def test_nodes_and_ranks_in_a_store_are_those_of_the_directory(store, layout, tmp_path):
    run = compose(replace(REFUSED, layout=layout), tmp_path / "job-7")
    url = put(store, run, "bucket/team/job-7")

    there, here = scan(url), scan(run)

    assert there.data.run.name == "job-7"
    assert answers(there) == answers(here)
    assert sorted(there.tables["assertions"]["rank"]) == list(range(8))
    assert there.data.ranks == here.data.ranks


@pytest.mark.parametrize("protocol", ["objects", "memory"])
def test_the_users_own_pattern_says_the_rank_of_a_remote_file(store, protocol, tmp_path):
    run = compose(replace(REFUSED, layout="slurm_tasks"), tmp_path / "run")
    for path in (run / "logs").iterdir():
        task = path.stem.rpartition("_")[2]
        path.rename(path.with_name(f"out.gpu{task}x.txt"))
    url = put(store, run, "bucket/run")
    if protocol == "memory":
        files = fsspec.filesystem("memory")
        files.pipe({f"/bucket/{key}": data for key, data in store.items() if key[-1] != "/"})
        url = "memory://bucket/bucket/run"

    found = discover(url, Selection.of(rank_regex=r"gpu(?P<rank>\d+)x"))
    report = scan(url, rank_regex=r"gpu(?P<rank>\d+)x")

    ranks = [file.hints.rank for file in found.files if "/out." in file.name]
    assert ranks == list(range(8))
    assert sorted(report.tables["assertions"]["rank"]) == list(range(8))
    assert not discover(url, Selection.of(exclude=["*.txt"])).files[0].name.endswith("txt")
    if protocol == "memory":
        files.rm("/bucket", recursive=True)


def test_only_the_ranges_that_are_needed_are_asked_for(store):
    line = b"> initialized tensor model parallel with size 1\n"
    store["bucket/long.log"] = line + b"nothing to see here\n" * 600_000
    store["bucket/ckpt/model.pt"] = bytes(1_000)

    found = discover("objects://bucket")

    assert [(file.name, file.size) for file in found.files] == [
        ("long.log", len(store["bucket/long.log"]))
    ]
    assert all(size <= 2 * remote._BLOCK_BYTES for _, _, size in Objects.asked)
    assert {path for path, *_ in Objects.asked} == {"bucket/long.log"}
    assert sum(size for *_, size in Objects.asked) < len(store["bucket/long.log"])
    assert scan("objects://bucket").data.health.bytes == len(store["bucket/long.log"])


def test_a_key_that_leads_out_is_left_alone(store):
    line = b"> initialized tensor model parallel with size 1\n"
    store |= {f"bucket/run/{name}": line for name in ("a.log", "../up.log", "x/../../up.log")}
    store["bucket/runner/b.log"] = line

    assert [file.name for file in discover("objects://bucket/run").files] == ["a.log"]


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """A bucket on an S3 server of this machine."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    servers = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.delenv("AWS_PROFILE", raising=False)
        server = servers.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        environment.setitem(fsspec.config.conf, "s3", {"endpoint_url": f"http://{host}:{port}"})
        files = fsspec.filesystem("s3", skip_instance_cache=True)
        files.mkdir("logs")
        yield files
        remote._connected.cache_clear()
        server.stop()


@pytest.mark.filterwarnings("ignore")  # of flask, werkzeug and botocore
def test_a_run_in_s3_gives_the_answers_of_its_directory(s3, tmp_path):
    run = compose(replace(REFUSED, layout="nodes"), tmp_path / "job-7")
    kept: dict[str, bytes] = {}
    put(kept, run, "logs/team/job-7")
    for key, data in kept.items():
        s3.pipe_file(key, data)
    s3.pipe_file("logs/team/job-70/other.log", b"> initialized tensor model parallel with size 1\n")

    report = scan("s3://logs/team/job-7")

    assert report.data.run.name == "job-7"
    assert answers(report) == answers(scan(run))
    sizes = {file.name: file.size for file in discover("s3://logs/team/job-7").files}
    assert sizes == {file.name: file.size for file in discover(run).files}
    long = b"> initialized tensor model parallel with size 1\n" + b"dull\n" * 2_000_000
    s3.pipe_file("logs/long/a.log", long)
    assert scan("s3://logs/long").data.health.bytes == len(long)
    assert scan("s3://logs/long/a.log").data.health.bytes == len(long)
