"""The wall-clock of a line, whoever printed it, as far as two logs can be compared by it.

Month, day and time to the second: c10d and torch print no year. Never the nanoseconds of c10d's
lines, which differ between hosts by more than they tell. Zones differ between hosts' own logs; so a
comparison is a clue, and what was only just earlier is not.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

_ISO: Final = re.compile(r"\b\d{4}-(\d{2})-(\d{2})[T_ ](\d{2}:\d{2}:\d{2})")
_NAMED: Final = re.compile(
    r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(\d{1,2}) (\d{2}:\d{2}:\d{2})"
)
_GLOG: Final = re.compile(r"(?:^|[\[ ])[EWIF](\d{1,2})(\d{2}) (\d{2}:\d{2}:\d{2})\.\d")
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
CLOSE: Final = 60.0
"""Seconds within which the clocks of two logs do not tell what came first: a driver writes late."""

_HEAD: Final = 400
"""Characters of a line in which its time stands."""


def clock(text: str | None) -> str | None:
    """`MM-DD hh:mm:ss` of a line; None where it carries no date.

    >>> clock("*** JOB 1 ON n1 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***")
    '03-01 10:00:00'
    >>> clock("[Sun Mar  1 10:00:00 2026] NVRM: Xid"), clock("[rank1]:[E301 10:01:02.1112 P.cpp:1]")
    ('03-01 10:00:00', '03-01 10:01:02')
    >>> clock("[1812.441902] NVRM: Xid")
    """
    head = (text or "")[:_HEAD]
    if match := _ISO.search(head):
        return f"{match[1]}-{match[2]} {match[3]}"
    if match := _NAMED.search(head):
        return f"{_MONTHS.index(match[1]) // 3 + 1:02d}-{int(match[2]):02d} {match[3]}"
    if match := _GLOG.search(head):
        return f"{int(match[1]):02d}-{match[2]} {match[3]}"
    return None


def zone_of(shown: str | None, at: int) -> int | None:
    """Seconds that a clock is ahead of UTC, if it shows the second `at` since 1970 as `shown`.

    None where that is no zone: those are up to 14 hours away, in quarters of an hour.

    >>> zone_of("2020-11-19 09:34:11", 1605774851), zone_of("2020-11-19 09:34:12", 1605774851)
    (3600, None)
    """
    time, utc = clock(shown), clock_at(at, 0)
    if time is None or utc is None:
        return None
    ahead = int(apart(utc, time))
    return ahead if ahead % 900 == 0 and abs(ahead) <= 14 * 3600 else None


def clock_at(at: int | None, zone: int | None) -> str | None:
    """`MM-DD hh:mm:ss` of a second since 1970, on a clock that is `zone` seconds ahead of UTC.

    >>> clock_at(1605774851, 3600), clock_at(1605774851, None)
    ('11-19 09:34:11', None)
    """
    if at is None or zone is None:
        return None
    return f"{dt.datetime.fromtimestamp(at + zone, dt.UTC):%m-%d %H:%M:%S}"


def apart(earlier: str, later: str) -> float:
    """Seconds from one time to another; negative where `later` is earlier.

    >>> apart("03-01 10:00:00", "03-01 10:01:30")
    90.0
    """
    return (_parsed(later) - _parsed(earlier)).total_seconds()


def seconds_of(time: str) -> float:
    """A time as seconds of a year that nobody means.

    >>> seconds_of("01-01 00:01:30")
    90.0
    """
    return (_parsed(time) - dt.datetime(2024, 1, 1)).total_seconds()  # noqa: DTZ001


def moved(time: str, seconds: float) -> str:
    """The time so many seconds later.

    >>> moved("03-01 10:00:00", -90.0), moved("12-31 23:59:59", 1.5)
    ('03-01 09:58:30', '01-01 00:00:00')
    """
    return (_parsed(time) + dt.timedelta(seconds=seconds)).strftime("%m-%d %H:%M:%S")


def _parsed(time: str) -> dt.datetime:
    # strptime takes ten times as long, and a run has a time for each of its iterations
    month, day, hour = time[:2], time[3:5], time[6:8]
    try:
        return dt.datetime(  # noqa: DTZ001
            2024, int(month), int(day), int(hour), int(time[9:11]), int(time[12:14])
        )
    except ValueError:  # a damaged line, such as one of month 13
        return dt.datetime(2024, 1, 1)  # noqa: DTZ001
