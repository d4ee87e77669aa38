"""Run directories behind URLs: a real SFTP server that the tests start, and fsspec's own memory."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncssh
import fsspec
import pytest
from test_archive import PACK, files_of

from hcp_logscan import scan
from hcp_logscan.engine import pool
from hcp_logscan.engine.plan import units
from hcp_logscan.engine.run import merge, scan_files
from hcp_logscan.engine.scan import scan_batch
from hcp_logscan.model.errors import SourceError, UsageError
from hcp_logscan.sources import reader, remote, scanner
from hcp_logscan.sources.discover import discover

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = Path(__file__).parents[1] / "fixtures"
RUN = FIXTURES / "nan-from-iteration-1" / "run"
START = (FIXTURES / "hcp22-console-without-prefixes/run/console.log").read_bytes()


class Served:
    """An SFTP server on this machine, its folder, and what was asked of it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.opened: list[str] = []
        self.connections: list[Any] = []
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: Any = None

    def url(self, path: str, user: str = "tester") -> str:
        return f"sftp://{user}@127.0.0.1:{self.port}/{path}"

    def start(self) -> None:
        served = self

        class Folder(asyncssh.SFTPServer):
            def __init__(self, chan: Any) -> None:
                super().__init__(chan, chroot=str(served.folder).encode())

            def open(self, path: bytes, pflags: int, attrs: Any) -> Any:
                served.opened.append(path.decode("utf-8", "replace"))
                return super().open(path, pflags, attrs)

        class Login(asyncssh.SSHServer):
            def connection_made(self, conn: Any) -> None:
                served.connections.append(conn)

            def password_auth_supported(self) -> bool:
                return True

            def validate_password(self, username: str, password: str) -> bool:
                return (username, password) == ("tester", "s3cret/pass")

        async def listen() -> Any:
            return await asyncssh.listen(
                "127.0.0.1",
                0,
                server_factory=Login,
                server_host_keys=[host],
                authorized_client_keys=str(ssh / "id_ed25519.pub"),
                sftp_factory=Folder,
            )

        ssh = self.home / ".ssh"
        ssh.mkdir(mode=0o700)
        host, mine = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        mine.write_private_key(str(ssh / "id_ed25519"))
        mine.write_public_key(str(ssh / "id_ed25519.pub"))
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(listen(), self._loop).result(10)
        self.port = self._server.get_port()
        line = f"[127.0.0.1]:{self.port} {host.export_public_key().decode()}"
        (ssh / "known_hosts").write_text(line)

    def stop(self) -> None:
        async def close() -> None:
            self._server.close()
            await self._server.wait_closed()
            for connection in self.connections:
                connection.close()
                await connection.wait_closed()

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("home"))
    server.start()
    yield server
    remote._connected.cache_clear()
    server.stop()


@pytest.fixture
def served(started: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setenv("HOME", str(started.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    started.opened.clear()
    return started


def copy_run(served: Served, name: str) -> None:
    for path, data in files_of(RUN):
        target = served.folder / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


@pytest.fixture(scope="module")
def said() -> Any:
    return scan(RUN)


def test_a_run_over_sftp_gives_the_answers_of_its_directory(served, said):
    copy_run(served, "job-7/run")
    report = scan(served.url("job-7/run"))
    there, here = json.loads(report.to_json()), json.loads(said.to_json())
    assert there["run"].pop("name") == "job-7"
    assert here["run"].pop("name") == "nan-from-iteration-1"
    assert there == here
    around = [place.context for found in report.findings for place in found.evidence]
    assert around == [place.context for found in said.findings for place in found.evidence]
    assert any(around)


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".zip"])
def test_an_archive_over_sftp_gives_the_answers_of_its_directory(served, said, suffix):
    (served.folder / f"x{suffix}").write_bytes(PACK[suffix](files_of(RUN)))
    report = scan(served.url(f"x{suffix}"))
    assert report.data.run.name == "x"
    there = json.loads(report.to_json().replace(f"x{suffix}!/", ""))
    assert there["findings"] == json.loads(said.to_json())["findings"]
    assert there["series"] == json.loads(said.to_json())["series"]


def test_single_files_are_read_whatever_packs_them(served):
    (served.folder / "a.log").write_bytes(gzip.compress(START))
    (served.folder / "b.log").write_bytes(START)
    for name in ("a.log", "b.log"):
        report = scan(served.url(name))
        assert report.data.health.bytes == len(START)
        assert report.data.run.name == name[0]


def test_a_large_file_is_read_in_pieces_and_cut_into_units(served, monkeypatch):
    data = START + b"nothing to see here\n" * 150_000 + START
    (served.folder / "long.log").write_bytes(data)
    asked = []
    read = remote._File.readinto

    def counted(self: Any, buffer: Any) -> int:
        asked.append(len(buffer))
        return read(self, buffer)

    monkeypatch.setattr(remote._File, "readinto", counted)
    found = discover(served.url("long.log"))
    whole = scan_files(found)
    assert max(asked) <= scanner.BLOCK_BYTES
    cut = list(units(found.files, 700_000))
    split = merge(found, [scan_batch([unit]) for unit in cut])
    assert len(cut) == 5
    assert split.stats == whole.stats
    assert split.stats[0].bytes == len(data)
    assert split["iterations"].equals(whole["iterations"])


def test_a_worker_connects_by_itself(served):
    (served.folder / "b.log").write_bytes(START)
    found = discover(served.url("b.log"))
    assert pool.workers_for(found, None) == 1
    assert pool.workers_for(found, 3) == 3
    sent = pickle.loads(pickle.dumps(list(units(found.files))))
    remote._connected.cache_clear()
    assert merge(found, [scan_batch(sent)]).stats[0].bytes == len(START)


def test_links_are_not_followed_on_the_server(served):
    folder = served.folder / "linked"
    folder.mkdir()
    (folder / "a.log").write_bytes(START)
    (served.folder / "outside.log").write_bytes(START)
    (folder / "b.log").symlink_to("../outside.log")
    (folder / "c").symlink_to("..", target_is_directory=True)
    assert [file.name for file in discover(served.url("linked")).files] == ["a.log"]
    assert set(served.opened) == {"/linked/a.log"}


def test_a_file_that_says_no_is_unreadable(served, monkeypatch):
    copy_run(served, "partly")
    opened = remote.open_raw

    def refuse(place: Any) -> Any:
        if place.path.endswith("attempt_0/3/stderr.log"):
            raise PermissionError(13, "Permission denied")
        return opened(place)

    monkeypatch.setattr(remote, "open_raw", refuse)
    unreadable = discover(served.url("partly")).unreadable
    assert [one.why for one in unreadable] == ["Permission denied"]


def test_the_program_reads_urls_and_shows_no_password(served):
    (served.folder / "job-8").mkdir()
    (served.folder / "job-8" / "a.log").write_bytes(START)
    (served.home / ".ssh" / "id_ed25519").rename(served.home / "away")
    try:
        url = served.url("job-8", "tester:s3cret%2Fpass")
        command = [sys.executable, "-m", "hcp_logscan", url, "-f", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        with pytest.raises(SourceError, match="credentials") as wrong:
            discover(served.url("job-8", "tester:wr0ng-one"))
        with pytest.raises(SourceError, match="no such file") as missing:
            discover(served.url("nowhere", "tester:s3cret%2Fpass"))
    finally:
        (served.home / "away").rename(served.home / ".ssh" / "id_ed25519")
    assert json.loads(done.stdout)["run"]["name"] == "job-8"
    assert done.stderr == ""
    assert wrong.value.exit_code == missing.value.exit_code == 2
    for text in (done.stdout, str(wrong.value), str(missing.value)):
        assert "s3cret" not in text
        assert "wr0ng-one" not in text


def test_an_unknown_host_is_refused(served):
    known = served.home / ".ssh" / "known_hosts"
    kept = known.read_text()
    known.write_text("")
    try:
        with pytest.raises(SourceError, match="known_hosts"):
            scan(served.url("job-7"))
    finally:
        known.write_text(kept)


def test_a_server_that_is_not_there_is_a_clear_error(served):
    with pytest.raises(SourceError, match=r"cannot read sftp://127\.0\.0\.1:1/x: .*network"):
        scan("sftp://tester@127.0.0.1:1/x")


def test_a_server_that_goes_away_is_an_unreadable_file(tmp_path_factory, monkeypatch):
    server = Served(tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("home"))
    server.start()
    monkeypatch.setenv("HOME", str(server.home))
    (server.folder / "a.log").write_bytes(START)
    place = discover(server.url("")).files[0].path
    server.stop()
    with pytest.raises(OSError, match=r"."):
        reader.open_bytes(place)
    remote._connected.cache_clear()


# Other protocols -------------------------------------------------------------------------------------


@pytest.fixture
def memory() -> Iterator[Any]:
    files = fsspec.filesystem("memory")
    yield files
    with contextlib.suppress(FileNotFoundError):
        files.rm("/bucket", recursive=True)


def test_an_object_store_is_walked_by_its_prefix(memory, said):
    for path, data in files_of(RUN):
        memory.pipe(f"/bucket/job-9/run/{path}", data)
    memory.pipe("/bucket/job-9/other.log", START)
    memory.pipe("/bucket/job-9/run/old.tar.gz", PACK[".tar.gz"]([("z/rank0.log", START)]))
    found = discover("memory://bucket/job-9/run")
    names = [file.name for file in found.files]
    assert names == [*(file.name for file in discover(RUN).files), "old.tar.gz!/z/rank0.log"]
    memory.rm("/bucket/job-9/run/old.tar.gz")
    report = json.loads(scan("memory://bucket/job-9/run").to_json())
    assert report["run"]["name"] == "job-9"
    assert report["findings"] == json.loads(said.to_json())["findings"]


def test_a_listing_that_leads_out_or_has_no_end_is_left_alone(monkeypatch):
    class Liar:
        def ls(self, folder: str, *, detail: bool) -> list[dict[str, Any]]:
            file = {"type": "file", "size": 3}
            return [
                {"name": "/etc/passwd", **file},
                {"name": f"{folder}/../../up.log", **file},
                {"name": folder, "type": "directory", "size": 0},
                {"name": f"{folder}/a.log", "type": "file", "size": None},
                {"name": f"{folder}/again", "type": "directory", "size": 0},
            ]

    monkeypatch.setattr(remote, "_connected", lambda url: (Liar(), "/run"))
    listed = list(remote.walk(remote.Remote("liar://x/run", "/run")))
    assert len(listed) == remote.MAX_DEPTH + 1
    assert {name.rpartition("/")[2] for _, name, _ in listed} == {"a.log"}
    assert {size for *_, size in listed} == {1}


def test_what_is_missing_is_named(monkeypatch):
    with pytest.raises(UsageError, match="no protocol is called nope://"):
        scan("nope://x/y")
    with pytest.raises(UsageError, match="chained"):
        scan("zip://a.log::memory://x.zip")
    monkeypatch.setattr(fsspec, "get_filesystem_class", _without_package)
    with pytest.raises(UsageError, match=r"s3:// needs one more package: Install s3fs"):
        scan("s3://bucket/run")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UsageError, match=r"pip install 'hcp-logscan\[remote\]'"):
        scan("sftp://host/run")


def _without_package(_protocol: str) -> None:
    raise ImportError("Install s3fs to access S3")


def test_messages_of_libraries_are_shown_without_credentials():
    url = "https://user:p%40ss@host/run?X-Token=abc"
    for text in (f"cannot GET {url}", "bad password p@ss of user:p@ss", "?X-Token=abc\nrefused"):
        with pytest.raises(OSError, match=r".") as caught, remote._as_os_error(url):
            raise RuntimeError(text)
        assert not any(word in str(caught.value) for word in ("p@ss", "p%40ss", "abc", "\n"))
    assert remote.shown(url) == "https://host/run"
