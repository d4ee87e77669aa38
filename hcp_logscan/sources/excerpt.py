"""Lines read again around a place, for the evidence that a report shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hcp_logscan.sources import prefixes, reader

if TYPE_CHECKING:
    from hcp_logscan.sources.place import Place

WINDOW_BYTES: Final = 16_384
"""How far around a line its neighbours are looked for; longer neighbours are left out."""

Lines = tuple[tuple[int, str], ...]


def around(place: Place, offset: int, number: int, neighbours: int = 2) -> Lines:
    """The line at byte `offset` and up to `neighbours` lines on each side, as (number, text).

    `number` is the line's own number. Empty where the file cannot be read again: a stream, a
    compressed file, or a file that is gone or has shrunk since the scan.
    """
    if not reader.seekable(place):
        return ()
    start = max(offset - WINDOW_BYTES, 0)
    try:
        stream = reader.open_bytes(place, start)
        try:
            window = reader.read_up_to(stream, offset - start + WINDOW_BYTES)
        finally:
            stream.close()
    except (reader.CutOffError, *reader.READ_ERRORS):
        return ()
    at = offset - start
    if at >= len(window) or (at and window[at - 1 : at] != b"\n"):
        return ()
    before = window[:at].split(b"\n")[:-1]
    if start:
        before = before[1:]  # the first of them is cut by the window
    after = window[at:].split(b"\n")
    if (len(window) == at + WINDOW_BYTES and len(after) > 1) or (after and not after[-1]):
        after = after[:-1]
    first = number - len(before[-neighbours:])
    shown = [*before[-neighbours:], *after[: neighbours + 1]]
    return tuple((first + index, text_of(line)) for index, line in enumerate(shown))


def text_of(line: bytes) -> str:
    """A raw line as text: no colours, invalid bytes replaced."""
    return prefixes.clean(line).decode("utf-8", "replace")
