"""Archives of logs: the same answers as the directory, and nothing that a hostile one can do."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import stat
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from hcp_logscan import HcpLogscanError, scan
from hcp_logscan.engine.plan import batches, units
from hcp_logscan.engine.run import scan_files
from hcp_logscan.model.errors import NothingUnderstoodError
from hcp_logscan.sources import archive, packed, reader, tar
from hcp_logscan.sources.discover import Selection, discover

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FIXTURES = Path(__file__).parents[1] / "fixtures"
START = (FIXTURES / "hcp22-console-without-prefixes/run/console.log").read_bytes()
Files = "Iterable[tuple[str, bytes]]"


def files_of(run: Path) -> list[tuple[str, bytes]]:
    return [
        (path.relative_to(run).as_posix(), path.read_bytes())
        for path in sorted(run.rglob("*"))
        if path.is_file()
    ]


def tarred(files: Files, form: int = tarfile.PAX_FORMAT, links: Iterable[Any] = ()) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as made:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
        for name, kind, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            made.addfile(info)
    return out.getvalue()


def zipped(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, data in files:
            made.writestr(name, data)
    return out.getvalue()


PACK: Mapping[str, Any] = {
    ".tar": tarred,
    ".tar.gz": lambda files: gzip.compress(tarred(files)),
    ".tgz": lambda files: gzip.compress(tarred(files)),
    ".tar.zst": lambda files: zstandard.compress(tarred(files)),
    ".tar.xz": lambda files: lzma.compress(tarred(files)),
    ".tar.bz2": lambda files: bz2.compress(tarred(files)),
    ".zip": zipped,
}


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def answers(report: Any, prefix: str = "") -> Any:
    """What a report says, with file names as in the directory."""
    return json.loads(report.to_json().replace(json.dumps(prefix)[1:-1], ""))


def texts(found: Any) -> dict[str, bytes]:
    """Name -> bytes of every file, read in the order of the scan."""
    said = {}
    with reader.Opener() as opener:
        for unit in units(found.files):
            if unit.start:
                continue
            stream = opener.open(unit.path)
            try:
                said[found.files[unit.file].name] = reader.read_up_to(stream, 1 << 24)
            except reader.CutOffError:
                said[found.files[unit.file].name] = b""
            stream.close()
    return said


def why(found: Any) -> dict[str, str]:
    return {one.file: one.why for one in found.unreadable}


def skipped(found: Any) -> dict[str, int]:
    return {one.kind: one.count for one in found.skipped}


# The same answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nan-from-iteration-1", "gz-rank-files"])
def test_an_archive_gives_the_answers_of_its_directory(tmp_path, name):
    run = FIXTURES / name / "run"
    said = answers(scan(run))
    for suffix in PACK if name.startswith("nan") else (".tar.gz", ".zip"):
        path = put(tmp_path / f"{name}{suffix}", PACK[suffix](files_of(run)))
        assert answers(scan(path), f"{path.name}!/") == said, suffix


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_workers_change_nothing(tmp_path, suffix):
    files = files_of(FIXTURES / "nan-from-iteration-1" / "run")
    path = put(tmp_path / f"run{suffix}", PACK[suffix](files))
    assert scan(path, workers=2).to_json() == scan(path).to_json()


@pytest.mark.parametrize("suffix", [".tar.zst"])
def test_an_archive_inside_a_run_directory_is_looked_into(tmp_path, suffix):
    run = FIXTURES / "nan-from-iteration-1" / "run"
    inner = tmp_path / "job" / "old"
    inner.mkdir(parents=True)
    path = put(inner / f"logs{suffix}", PACK[suffix](files_of(run)))
    report = scan(tmp_path / "job")
    assert answers(report, f"old/{path.name}!/")["findings"] == answers(scan(run))["findings"]
    assert report.data.health.files == scan(run).data.health.files


def test_a_folder_named_as_its_archive_says_nothing_about_ranks(tmp_path):
    for top in ("fail-rank1-iter3/", "./fail-rank1-iter3/", ""):
        path = tmp_path / "fail-rank1-iter3.tar"
        put(path, tarred([(f"{top}console.log", START), (f"{top}rank7/x.log", START)]))
        found = discover(path)
        assert [file.hints.rank for file in found.files] == [None, 7]
        assert found.name == "fail-rank1-iter3"


def test_one_archive_per_node_names_the_node(tmp_path):
    member = "none_a1b2c3d4/attempt_1/3/stderr.log"
    put(tmp_path / "node03.tar.gz", gzip.compress(tarred([(member, START)])))
    hints = discover(tmp_path).files[0].hints
    assert (hints.node, hints.attempt, hints.local_rank) == ("node03", 1, 3)


def test_logs_that_lie_beside_their_archive_are_read_once(tmp_path):
    (tmp_path / "logs").mkdir()
    put(tmp_path / "logs" / "rank0.log", START + b"more\n")
    put(tmp_path / "logs" / "rank1.log", b"another run\n" * 9999)
    kept = [("logs/rank0.log", START), ("logs/rank1.log", START), ("logs/rank2.log", START)]
    put(tmp_path / "logs.tar.gz", gzip.compress(tarred(kept)))
    found = discover(tmp_path)
    assert [file.name for file in found.files] == [
        "logs/rank0.log",
        "logs/rank1.log",
        "logs.tar.gz!/logs/rank1.log",
        "logs.tar.gz!/logs/rank2.log",
    ]
    assert skipped(found) == {"copy of a file beside the archive": 1}


def test_evidence_of_a_plain_tar_has_its_neighbours(tmp_path):
    run = FIXTURES / "nan-from-iteration-1" / "run"
    path = put(tmp_path / "run.tar", tarred(files_of(run)))
    around = [place.context for found in scan(path).findings for place in found.evidence]
    assert around == [place.context for found in scan(run).findings for place in found.evidence]
    assert any(around)


def test_options_speak_of_members(tmp_path):
    put(tmp_path / "logs.zip", zipped([("a/x.log", START), ("a/y.txt", START)]))
    put(tmp_path / "old.zip", zipped([("z.log", START)]))
    found = discover(tmp_path, Selection(include=("*.log",), exclude=("old.zip",)))
    assert [file.name for file in found.files] == ["logs.zip!/a/x.log"]


# Formats -------------------------------------------------------------------------------------------

LONG = "deep/" * 60 + "rank0.log"


@pytest.mark.parametrize(
    "form",
    [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT],
    ids=["ustar", "gnu", "pax"],
)
def test_every_tar_format_gives_names_and_bytes(tmp_path, form):
    long = LONG if form != tarfile.USTAR_FORMAT else "d/" * 60 + "rank0.log"
    files = [(long, START), ("ünï/秩0.log", b"x\n" * 700), ("empty.log", b""), ("e.log", START)]
    found = discover(put(tmp_path / "x.tar", tarred(files, form)))
    assert texts(found) == {f"x.tar!/{name}": data for name, data in files}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_every_zip_method_gives_names_and_bytes(tmp_path, method):
    files = [("a/ünï.log", START), ("b\nc\x1b.log", START), ("empty.log", b"")]
    found = discover(put(tmp_path / "x.zip", zipped(files, method)))
    assert texts(found) == {f"x.zip!/{name}": data for name, data in files}


def test_zip64_is_read(tmp_path):
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made,
        made.open("a.log", "w", force_zip64=True) as member,
    ):
        member.write(START)
    for data in (out.getvalue(), out.getvalue()[:-60]):
        assert texts(discover(put(tmp_path / "x.zip", data))) == {"x.zip!/a.log": START}


def test_members_that_are_compressed_are_decompressed_by_their_first_bytes(tmp_path):
    files = [
        ("rank0.log.gz", gzip.compress(START)),
        ("RANK1.LOG.BZ2", bz2.compress(START)),
        ("rank2.log", zstandard.compress(START)),
        ("rank3.log.xz", START),
    ]
    for suffix in (".tar", ".tar.gz", ".zip"):
        found = discover(put(tmp_path / f"x{suffix}", PACK[suffix](files)))
        assert set(texts(found).values()) == {START}
        assert len(found.files) == 4


def test_an_archive_is_recognised_by_its_first_bytes(tmp_path):
    put(tmp_path / "logs.gz", gzip.compress(tarred([("a.log", START)])))
    put(tmp_path / "LOGS.ZIP", zipped([("a.log", START)]))
    put(tmp_path / "no.tar", b"this is a text\n" * 99)
    found = discover(tmp_path)
    assert [file.name for file in found.files] == ["LOGS.ZIP!/a.log", "logs.gz!/a.log"]
    assert why(found) == {"no.tar": "neither a tar nor a zip, whatever its name says"}


def test_what_system_tar_packs_is_read(tmp_path):
    (tmp_path / "run").mkdir()
    put(tmp_path / "run" / ("n" * 180 + ".log"), START)
    subprocess.run(["tar", "-cf", "x.tar", "./run"], cwd=tmp_path, check=True)
    assert texts(discover(tmp_path / "x.tar")) == {f"x.tar!/run/{'n' * 180}.log": START}


# One pass ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.zst", ".zip"])
def test_two_hundred_members_are_one_pass_to_find_and_one_to_scan(tmp_path, monkeypatch, suffix):
    files = [(f"logs/rank_{n:03}.log", START + os.urandom(500).hex().encode()) for n in range(200)]
    path = put(tmp_path / f"run{suffix}", PACK[suffix](files))
    read, opened = [0], [0]

    class Counting(io.FileIO):
        def __init__(self, path: str) -> None:
            opened[0] += 1
            super().__init__(path)

        def readinto(self, buffer: Any, /) -> int:
            count = super().readinto(buffer) or 0
            read[0] += count
            return count

        def read(self, size: int = -1, /) -> bytes:
            data = super().read(size)
            read[0] += len(data)
            return data

    monkeypatch.setattr(reader, "open_raw", Counting)
    found = discover(path)
    assert (len(found.files), opened[0]) == (200, 3)  # what it is, how it is packed, what it holds
    before = read[0]
    assert before <= path.stat().st_size * 1.2 + 4 * packed.MAGIC_BYTES + 300_000
    assert scan_files(found).stats[199].bytes == len(files[199][1])
    assert opened[0] == 4
    assert read[0] - before <= path.stat().st_size
    assert len(batches(units(found.files), 4, 1 << 40)) == 1


def test_a_compressed_tar_is_one_batch_and_a_plain_one_is_cut(tmp_path, monkeypatch):
    files = [(f"rank{n}.log", START * 9) for n in range(8)]
    monkeypatch.setattr("hcp_logscan.engine.plan._LEAST_BATCH", 1)
    for suffix, wanted in ((".tar.gz", 1), (".tar", 8), (".zip", 8)):
        found = discover(put(tmp_path / f"x{suffix}", PACK[suffix](files)))
        assert len(batches(units(found.files), 8, 8)) == wanted
    cut = list(units(discover(tmp_path / "x.tar").files, unit_bytes=len(START)))
    assert len(cut) == 72


# Hostile and damaged -------------------------------------------------------------------------------


def test_links_devices_and_unsafe_names_are_counted_and_left_alone(tmp_path):
    secret = put(tmp_path / "secret.log", START)
    links = [
        ("link.log", tarfile.SYMTYPE, str(secret)),
        ("hard.log", tarfile.LNKTYPE, "a.log"),
        ("pipe", tarfile.FIFOTYPE, ""),
        ("null", tarfile.CHRTYPE, ""),
    ]
    files = [("/abs.log", START), ("x/../../up.log", START), ("a.log", START), ("n" * 5000, START)]
    found = discover(put(tmp_path / "x.tar", tarred(files, links=links)))
    assert [file.name for file in found.files] == ["x.tar!/a.log"]
    assert skipped(found) == {"link": 2, "device or pipe": 2, "unsafe name": 3}


def test_links_in_a_zip_are_left_alone(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, mode in (("l.log", stat.S_IFLNK), ("p.log", stat.S_IFIFO)):
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, (mode | 0o644) << 16
            made.writestr(info, "/etc/passwd")
        made.writestr("..\\up.log", START)
        made.writestr("dir\\a.log", START)
    found = discover(put(tmp_path / "x.zip", out.getvalue()))
    assert [file.name for file in found.files] == ["x.zip!/dir/a.log"]
    assert skipped(found) == {"link": 1, "device or pipe": 1, "unsafe name": 1}


def test_archives_inside_archives_are_not_opened(tmp_path):
    files = [
        ("a.log", START),
        ("in.zip", zipped([("b.log", START)])),
        ("in.tar.gz", gzip.compress(tarred([("b.log", START)]))),
        ("hidden", tarred([("b.log", START)])),
    ]
    for suffix in (".tar.gz", ".zip"):
        found = discover(put(tmp_path / f"x{suffix}", PACK[suffix](files)))
        assert [file.name for file in found.files] == [f"x{suffix}!/a.log"]
        assert skipped(found) == {"archive inside an archive": 3}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".zip"])
def test_of_members_with_one_name_the_last_counts(tmp_path, suffix):
    files = [("./a.log", b"old\n"), ("b.log", START), ("a.log", START)]
    found = discover(put(tmp_path / f"x{suffix}", PACK[suffix](files)))
    assert texts(found) == {f"x{suffix}!/a.log": START, f"x{suffix}!/b.log": START}
    assert skipped(found) == {"replaced later in the archive": 1}


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.zst", ".tar.xz", ".zip"])
def test_of_an_archive_cut_off_the_beginning_is_read(tmp_path, suffix):
    files = [(f"rank{n}.log", START + os.urandom(60_000).hex().encode()) for n in range(4)]
    data = PACK[suffix](files)
    path = put(tmp_path / f"x{suffix}", data[: len(data) * 5 // 8])
    report = scan(path)
    assert 2 <= report.data.health.files <= 3
    assert report.data.health.unreadable[0].file == path.name
    assert "cut off" in report.data.health.unreadable[0].why
    assert report.data.series.iterations
    assert all(
        files[n][1] == text for n, text in enumerate(texts(discover(path)).values()) if n < 2
    )


@pytest.mark.parametrize("suffix", PACK)
def test_no_cut_and_no_flipped_byte_is_more_than_an_error(tmp_path, suffix):
    data = PACK[suffix]([("a.log", START), ("b/c.log.gz", gzip.compress(START)), ("d.log", START)])
    path = tmp_path / f"x{suffix}"
    step = max(len(data) // 9, 1)
    for at in range(1, len(data), step):
        for broken in (data[:at], data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]):
            put(path, broken)
            with contextlib.suppress(HcpLogscanError):
                scan_files(discover(path))


def test_a_tar_that_stops_at_the_end_of_a_member_is_cut_off(tmp_path):
    data = tarred([("a.log", START)])
    end = tar.BLOCK + -(-len(START) // tar.BLOCK) * tar.BLOCK
    assert "cut off" in why(discover(put(tmp_path / "x.tar", data[:end])))["x.tar"]
    assert why(discover(put(tmp_path / "x.tar", data[: end + tar.BLOCK]))) == {}


def header(name: bytes = b"a.log", size: bytes = b"00000000000\0", kind: bytes = b"0") -> bytes:
    block = bytearray(tar.BLOCK)
    block[: len(name)], block[124 : 124 + len(size)], block[156:157] = name, size, kind
    block[257:265], block[148:156] = b"ustar\x0000", b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize(
    "data",
    [
        header(size=b"\xff" * 12),
        header(size=b"-0000000512\0"),
        header(size=b"\x80" + b"\xff" * 11),
        header(size=b"77777777777\0", kind=b"L"),
        header(size=b"\x80" + b"\x7f" * 11, kind=b"x"),
        header(size=b"00000001000\0", kind=b"x") + b"9" * 512,
        header(size=b"00000001000\0", kind=b"x") + b"30 size=-100000000000000000000\n" * 17,
        header(size=b"00000001000\0", kind=b"g") + bytes(512),
        header(kind=b"x") * 1000,
        header(kind=b"S"),
        header(kind=b"S")[:482] + b"\x01" + bytes(29),
        header()[:100] + b"\xff" * 412,
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_crafted_header_is_an_entry_and_no_hang(tmp_path, data, pack):
    good = tarred([("good.log", START)])
    good = good[: tar.BLOCK + -(-len(START) // tar.BLOCK) * tar.BLOCK]
    found = discover(put(tmp_path / "x.tar", pack(good + data)))
    assert texts(found)["x.tar!/good.log"] == START
    assert "x.tar" in why(found)


def test_sparse_members_are_named(tmp_path):
    with (tmp_path / "holes.log").open("wb") as made:
        made.write(START)
        made.truncate(1 << 22)
        made.seek(0, 2)
        made.write(b"end\n")
    for form in ("gnu", "posix"):
        command = ["tar", "-cSf", "x.tar", f"--format={form}", "holes.log"]
        subprocess.run(command, cwd=tmp_path, check=True)
        found = discover(tmp_path / "x.tar")
        assert not found.files
        assert "--sparse" in why(found)["x.tar!/holes.log"]


def test_encrypted_and_unsupported_members_are_named(tmp_path):
    data = bytearray(zipped([("a.log", START), ("b.log", START), ("c.log", START)]))
    for name, flags, method in ((b"a.log", 1, 8), (b"b.log", 0, 9)):
        local = data.index(name) - 30
        central = data.index(name, data.index(b"PK\x01\x02")) - 46
        struct.pack_into("<HH", data, local + 6, flags, method)
        struct.pack_into("<HH", data, central + 8, flags, method)
    found = discover(put(tmp_path / "x.zip", bytes(data)))
    assert texts(found) == {"x.zip!/c.log": START}
    assert why(found) == {
        "x.zip!/a.log": "encrypted",
        "x.zip!/b.log": "packed with method 9, which is not supported",
    }


def test_a_damaged_member_of_a_zip_is_an_error_of_its_own(tmp_path):
    data = bytearray(zipped([("a.log", START), ("b.log", START)], zipfile.ZIP_STORED))
    data[data.index(START[:50]) + len(START) // 2] ^= 1
    stats = scan_files(discover(put(tmp_path / "x.zip", bytes(data)))).stats
    assert "checksum" in (stats[0].error or "")
    assert stats[1].error is None


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip", ".tar"])
def test_a_bomb_is_read_up_to_the_ceiling(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(packed, "MIN_CEILING", 1 << 20)
    monkeypatch.setattr(packed, "MAX_RATIO", 3)
    zeros = b"nothing to see here\n" * 300_000
    bomb = ("bomb.log", zeros) if suffix != ".tar" else ("bomb.log.gz", gzip.compress(zeros))
    files = [("a.log", START), bomb, ("z.log", START)]
    report = scan(put(tmp_path / f"x{suffix}", PACK[suffix](files)))
    assert any("expands to more than" in one.why for one in report.data.health.unreadable)
    assert report.data.series.iterations
    assert 1 << 19 < report.data.health.bytes < 4 << 20


def test_a_bomb_of_many_members_shares_one_ceiling(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "MIN_CEILING", 1 << 20)
    zeros = gzip.compress(b"nothing to see here\n" * 100_000)
    path = put(tmp_path / "x.tar", tarred([(f"{n}.log.gz", zeros) for n in range(20)]))
    monkeypatch.setattr(packed, "MAX_RATIO", 2)
    stats = scan_files(discover(path)).stats
    assert sum(one.bytes for one in stats) <= 2 * path.stat().st_size + (1 << 20)
    assert all("expands" in (one.error or "") for one in stats)


def test_too_many_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    for suffix in (".tar", ".zip"):
        files = [(f"{n}.log", START) for n in range(5)]
        found = discover(put(tmp_path / f"x{suffix}", PACK[suffix](files)))
        assert len(found.files) == 3
        assert "more than 3 members" in why(found)[f"x{suffix}"]


def test_an_archive_without_logs_is_nothing_understood(tmp_path):
    path = put(tmp_path / "x.zip", zipped([("train.py", b"import os\n"), ("a.png", b"\x89PNG")]))
    with pytest.raises(NothingUnderstoodError, match="1 image, 1 source code"):
        discover(path)
    with pytest.raises(NothingUnderstoodError, match="empty"):
        discover(put(tmp_path / "e.zip", zipped([])))


def test_nothing_is_written_and_nothing_outside_is_opened(tmp_path):
    """Every file that the program opens below the temporary folder is the archive itself."""
    put(tmp_path / "secret.log", START)
    links = [("l.log", tarfile.SYMTYPE, "../secret.log"), ("m.log", tarfile.LNKTYPE, "secret.log")]
    files = [("secret.log", START), ("../secret.log", START)]
    put(tmp_path / "x.tar.gz", gzip.compress(tarred(files, links=links)))
    program = (
        "import sys\nfrom hcp_logscan import scan\nopened = set()\n"
        "sys.addaudithook(lambda e, a: e == 'open' and opened.add(str(a[0])))\n"
        "scan(sys.argv[1])\n"
        "print(sorted(o for o in opened if o.startswith(sys.argv[2])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x.tar.gz"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str([str(tmp_path / "x.tar.gz")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.log", "x.tar.gz"]


def test_a_bz2_cut_in_its_first_block_says_so(tmp_path):
    put(tmp_path / "a.log.bz2", bz2.compress(START)[:200])
    put(tmp_path / "b.log", START)
    report = scan(tmp_path)
    assert [(one.file, one.why) for one in report.data.health.unreadable] == [
        ("a.log.bz2", "cut off before its first byte of text")
    ]
    with pytest.raises(NothingUnderstoodError, match="cut off"):
        scan(tmp_path / "a.log.bz2")


def test_a_dump_that_is_cut_off_is_no_traceback(tmp_path):
    put(tmp_path / "b.log", START)
    dump = gzip.compress(b"\x80\x04" + os.urandom(5000))
    put(tmp_path / "nccl_trace_rank_0.pickle.gz", dump[:3000])
    report = scan(tmp_path)
    assert len(report.data.health.truncated) == 1
