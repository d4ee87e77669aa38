"""The scanner against a plain loop over lines, for any split of any file."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcp_logscan.sources import scanner
from hcp_logscan.sources.reader import CutOffError

NEEDLES = (b"alpha", b"beta", b"alphabet", b"- end")


class Recorder:
    """Keeps every survivor; hungry for `walk` lines behind one that holds `alpha`."""

    def __init__(self, walk: int = 0) -> None:
        self.hungry = False
        self.found: list[tuple[int, int, bytes, frozenset[int]]] = []
        self.walked: list[tuple[int, int, bytes]] = []
        self.sets = scanner.NeedleSets(len(NEEDLES))
        self._walk, self._left = walk, 0

    def take(self, found, first, last):
        for at in range(first, last):
            held = self.sets.held[found.sets[at]]
            ids = frozenset(n for n in range(held.bit_length()) if held >> n & 1)
            offset = found.base + found.starts[at]
            self.found.append((found.numbers[at], offset, found.line(at), ids))
            if self._walk and 0 in ids:
                self._left, self.hungry = self._walk, True
                return at + 1
        return last

    def settle(self):
        self.sets.forget()

    def walk(self, number, offset, line):
        self.walked.append((number, offset, line))
        self._left -= 1
        self.hungry = self._left > 0


def by_loop(data: bytes):
    """What the scanner must find, found the slow way."""
    rows, offset = [], 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        ids = frozenset(i for i, needle in enumerate(NEEDLES) if needle in line)
        if ids:
            rows.append((number, offset, line, ids))
        offset += len(line) + 1
    return rows


def scan_split(data: bytes, cuts, walk: int = 0):
    starts = [0, *sorted({c for c in cuts if 0 < c < len(data)})]
    rows, walked, lines, total = [], [], 0, 0
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        sink = Recorder(walk)
        stream = io.BytesIO(data)
        stream.seek(max(start - 1, 0))
        stats = scanner.scan(stream, NEEDLES, sink, start, end)
        rows += [(number + lines, *rest) for number, *rest in sink.found]
        walked += [(number + lines, *rest) for number, *rest in sink.walked]
        lines += stats.lines
        total += stats.bytes
    return rows, walked, lines, total


WORDS = st.sampled_from(
    [b"alpha", b"beta", b"alphabet", b"- end", b" noise ", b"\n", b"\n\n", b"\r", b"\xff", b"\0"]
)


@given(st.lists(WORDS, max_size=60), st.lists(st.integers(0, 400), max_size=6))
def test_any_split_finds_the_lines_of_a_plain_loop(words, cuts):
    data = b"".join(words)

    rows, _, lines, total = scan_split(data, cuts)

    assert rows == by_loop(data)
    assert lines == data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
    assert total == len(data)


@given(st.lists(WORDS, max_size=60), st.lists(st.integers(0, 400), max_size=6))
@settings(max_examples=60)
def test_open_blocks_read_past_the_end_of_their_unit(words, cuts):
    data = b"".join(words)
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()

    _, walked, _, _ = scan_split(data, cuts, walk=2)

    assert {(number, line) for number, _, line in walked} >= {
        (number, line)
        for number, line in enumerate(lines, 1)
        if number > 1 and b"alpha" in lines[number - 2]
    }


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(scanner, "BLOCK_BYTES", 16)
    monkeypatch.setattr(scanner, "MAX_LINE_BYTES", 64)


@given(st.lists(WORDS, max_size=80), st.lists(st.integers(0, 600), max_size=4))
def test_small_blocks_and_growing_buffers_change_nothing(words, cuts):
    data = b"".join(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "BLOCK_BYTES", 16)
        rows, _, lines, _ = scan_split(data, cuts)

    assert rows == by_loop(data)
    assert lines == data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))


@given(
    st.lists(st.sampled_from([b"x" * 30, b"alpha", b"\r", b"\n"]), max_size=60), st.integers(0, 900)
)
def test_lines_longer_than_the_cap_keep_their_number_whatever_the_split(words, cut):
    data = b"".join(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "BLOCK_BYTES", 16)
        patch.setattr(scanner, "MAX_LINE_BYTES", 64)
        whole = scan_split(data, [])
        split = scan_split(data, [cut])

    assert split == whole
    assert {row[0] for row in whole[0]} <= {row[0] for row in by_loop(data)}


def test_needle_behind_a_progress_bar_of_many_megabytes_is_found():
    bar = b"\r".join(b"step %7d" % i for i in range(900_000))
    data = bar + b"\ralpha at last\n" + b"beta\n"

    rows, _, lines, _ = scan_split(data, [])

    assert [row[0] for row in rows] == [1, 2]
    assert rows[0][2].endswith(b"alpha at last")
    assert lines == 2


def test_cut_off_stream_gives_what_was_read():
    class Cut(io.RawIOBase):
        parts = [b"alpha\nbe", b"ta\nalp"]

        def readinto(self, buffer):
            if not self.parts:
                raise CutOffError
            part = self.parts.pop(0)
            buffer[: len(part)] = part
            return len(part)

    sink = Recorder()
    stats = scanner.scan(Cut(), NEEDLES, sink, 0, None)

    assert [line for _, _, line, _ in sink.found] == [b"alpha", b"beta"]
    assert stats.cut_off
    assert stats.lines == 3


@given(st.lists(WORDS, max_size=60))
def test_fall_back_search_gives_the_hits_of_hyperscan(words):
    data = bytearray(b"".join(words))

    fast = scanner.make_search(NEEDLES)(data, len(data))
    slow = scanner.find_search(NEEDLES)(data, len(data))

    assert sorted(fast) == list(slow)
