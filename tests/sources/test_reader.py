import bz2
import gzip
import lzma
import os
import tarfile
import threading

import pytest
import zstandard

from hcp_logscan.sources import packed, reader

TEXT = b"".join(b"line %d of a log\n" % (number * number) for number in range(20_000))
PACKERS = {
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def read_all(path):
    stream, parts, buffer = reader.open_bytes(str(path)), [], bytearray(4096)
    try:
        while count := stream.readinto(memoryview(buffer)):
            parts.append(bytes(buffer[:count]))
    except reader.CutOffError:
        return b"".join(parts), True
    finally:
        stream.close()
    return b"".join(parts), False


@pytest.mark.parametrize("suffix", PACKERS)
def test_members_are_read_one_after_the_other(tmp_path, suffix):
    path = tmp_path / f"x.log{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT) + PACKERS[suffix](b"second\n"))

    assert read_all(path) == (TEXT + b"second\n", False)


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".xz"])
def test_cut_off_file_gives_every_byte_before_the_cut(tmp_path, suffix):
    path = tmp_path / f"x.log{suffix}"
    packed = PACKERS[suffix](TEXT)
    path.write_bytes(packed[: len(packed) * 3 // 4])

    text, cut = read_all(path)

    assert cut
    assert text
    assert TEXT.startswith(text)


@pytest.mark.parametrize("suffix", PACKERS)
def test_zero_padding_behind_the_last_member_is_no_damage(tmp_path, suffix):
    path = tmp_path / f"x.log{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT) + bytes(512))

    assert read_all(path) == (TEXT, False)


@pytest.mark.parametrize("suffix", PACKERS)
def test_garbage_is_an_error_that_names_itself(tmp_path, suffix):
    path = tmp_path / f"x.log{suffix}"
    path.write_bytes(b"\x01\x02\x03 this is neither compressed nor a text" * 10)

    with pytest.raises(reader.BrokenStreamError, match=r"."):
        read_all(path)


@pytest.mark.parametrize("suffix", PACKERS)
def test_every_cut_gives_a_beginning_of_the_text(tmp_path, suffix):
    packed = PACKERS[suffix](TEXT[:3000])
    path = tmp_path / f"x.log{suffix}"
    for end in range(1, len(packed), 37):
        path.write_bytes(packed[:end])
        text, cut = read_all(path)
        assert cut
        assert TEXT.startswith(text)


@pytest.mark.parametrize("suffix", PACKERS)
def test_first_bytes_decide_where_the_suffix_lies(tmp_path, suffix):
    lies = {"x.log": PACKERS[suffix](TEXT), f"plain.log{suffix}": TEXT}
    lies[f"X.LOG{suffix.upper()}"] = PACKERS[suffix](TEXT)
    for name, data in lies.items():
        (tmp_path / name).write_bytes(data)
        assert read_all(tmp_path / name) == (TEXT, False)
    assert not reader.seekable(str(tmp_path / "x.log"))


def test_a_file_that_grows_beyond_the_ceiling_is_read_up_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "MIN_CEILING", 100_000)
    monkeypatch.setattr(packed, "MAX_RATIO", 2)
    path = tmp_path / "x.log.gz"
    path.write_bytes(gzip.compress(bytes(1_000_000)))
    stream = reader.open_bytes(str(path))
    assert reader.read_up_to(stream, 200_000) == bytes(100_000)
    with pytest.raises(reader.BrokenStreamError, match="100,000 bytes"):
        stream.readinto(memoryview(bytearray(1)))
    stream.close()


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_standard_input_is_decompressed(tmp_path, monkeypatch, suffix):
    path = tmp_path / "x"
    path.write_bytes(PACKERS[suffix](TEXT))
    with path.open("rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert read_all("-") == (TEXT, False)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_on_standard_input_says_what_to_do(tmp_path, monkeypatch, mode):
    path = tmp_path / "x"
    with tarfile.open(path, mode) as archive:
        archive.addfile(tarfile.TarInfo("a.log"))
    with path.open("rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(reader.BrokenStreamError, match="give the file"):
            read_all("-")


def test_a_frame_that_grows_a_thousandfold_is_handed_over_in_pieces(tmp_path):
    path = tmp_path / "x.log.zst"
    path.write_bytes(zstandard.compress(bytes(300_000_000)))
    stream, buffer, total = reader.open_bytes(str(path)), bytearray(1 << 20), 0
    while count := stream.readinto(memoryview(buffer)):
        total += count
    stream.close()
    assert total == 300_000_000


@pytest.mark.parametrize("suffix", PACKERS)
def test_standard_input_that_grows_beyond_what_came_in_is_read_up_to_the_ceiling(
    tmp_path, monkeypatch, suffix
):
    monkeypatch.setattr(packed, "MIN_CEILING", 300_000)
    path = tmp_path / "x"
    path.write_bytes(PACKERS[suffix](bytes(3_000_000)))
    with path.open("rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr(packed, "MAX_RATIO", 250)
        ceiling = packed.ceiling_of(path.stat().st_size)
        if ceiling >= 3_000_000:
            assert read_all("-")[0] == bytes(3_000_000)
            return
        stream = reader.open_bytes("-")
        assert reader.read_up_to(stream, 1 << 22) == bytes(ceiling)
        with pytest.raises(reader.BrokenStreamError, match="expands to more than"):
            stream.readinto(memoryview(bytearray(1)))


def test_standard_input_that_is_closed_is_an_error(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(OSError, match="closed"):
        reader.open_bytes("-")


def test_a_slow_writer_is_waited_for(monkeypatch):
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with os.fdopen(read_end) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        later = threading.Timer(0.2, lambda: (os.write(write_end, b"late\n"), os.close(write_end)))
        later.start()
        assert read_all("-") == (b"late\n", False)
        later.join()


def test_plain_file_is_read_from_its_middle(tmp_path):
    path = tmp_path / "x.log"
    path.write_bytes(b"0123456789")
    stream = reader.open_bytes(str(path), 4)
    buffer = bytearray(10)

    assert stream.readinto(memoryview(buffer)) == 6
    stream.close()
    assert reader.seekable(str(path))
    assert not reader.seekable("x.log.gz")
