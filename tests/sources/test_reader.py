import bz2
import gzip
import lzma

import pytest
import zstandard

from hcp_logscan.sources import reader

TEXT = b"a line of a log\n" * 20_000
PACKERS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


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


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
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
    path.write_bytes(b"this is no compressed file at all" * 10)

    with pytest.raises(reader.BrokenStreamError, match=r"."):
        read_all(path)


def test_zstandard_frames_are_read(tmp_path):
    path = tmp_path / "x.log.zst"
    path.write_bytes(zstandard.compress(TEXT) + zstandard.compress(b"second\n"))

    assert read_all(path) == (TEXT + b"second\n", False)


def test_plain_file_is_read_from_its_middle(tmp_path):
    path = tmp_path / "x.log"
    path.write_bytes(b"0123456789")
    stream = reader.open_bytes(str(path), 4)
    buffer = bytearray(10)

    assert stream.readinto(memoryview(buffer)) == 6
    stream.close()
    assert reader.seekable(str(path))
    assert not reader.seekable("x.log.gz")
