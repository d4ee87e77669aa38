"""What tells a traceback that ended nobody from one that did."""

import polars as pl
import pytest

from hcp_logscan.analysis.handled import handled
from hcp_logscan.model.events import EVENTS, empty


@pytest.fixture
def lived():
    def run(attempt=0, **rows):
        """`rows` hold (file, rank, line), or (file, rank, line, last) of folded tables."""
        tables = {}
        for name in EVENTS:
            frame = pl.DataFrame(
                [
                    dict(zip(("file", "event_rank", "line", "last"), row, strict=False))
                    for row in rows.get(name, [])
                ],
                schema_overrides={"event_rank": pl.Int64},
            )
            number = pl.lit(0, dtype=pl.Int64)
            bare = empty(name).with_columns(number.alias("attempt"), number.alias("event_rank"))
            keep = [name for name in frame.columns if name in bare.columns]
            tables[name] = pl.concat(
                [bare, frame.select(keep).with_columns(attempt=number)], how="diagonal"
            )
        return handled(tables, attempt)

    return run


def at(line, rank=1, file=0, stream=""):
    return {
        "file": file,
        "event_rank": rank,
        "stream": stream,
        "first_line": line - 3,
        "last_line": line,
    }


def test_a_rank_lives_on_by_a_line_of_its_own_behind_the_traceback(lived):
    found = lived(checkpoints=[(0, 1, 11), (1, 1, 99), (0, 2, 99)])

    assert found.goes_on(at(10))
    assert not found.goes_on(at(11))


def test_a_folded_row_counts_to_its_last_line(lived):
    found = lived(rank_lines=[(0, 1, 4, 20)])

    assert found.goes_on(at(19))
    assert not found.goes_on(at(20))


def test_a_third_iteration_of_anybody_shows_that_all_ranks_live(lived):
    steps = [(0, 3, 11), (0, 3, 12), (0, 3, 13)]

    assert lived(iterations=steps[:2], steps=steps[2:]).goes_on(at(10))
    assert not lived(iterations=steps).goes_on(at(11))
    assert not lived(iterations=steps[:2]).goes_on(at(10))


def test_two_lines_may_still_arrive_where_ranks_share_one_stream(lived):
    lines = [(0, None, 11), (0, 3, 12), (0, None, 13)]

    assert lived(validations=lines).goes_on(at(10, rank=None))
    assert not lived(validations=lines[1:]).goes_on(at(10, rank=None))


def test_other_attempts_do_not_count(lived):
    assert not lived(attempt=1, checkpoints=[(0, 1, 11)]).goes_on(at(10))


def test_an_introduction_stands_at_most_eight_lines_above(lived):
    found = lived(handled=[(0, None, 2)])
    streamless = {**at(0), "stream": None}

    assert found.introduced({**streamless, "first_line": 10})
    assert not found.introduced({**streamless, "first_line": 11})
    assert not found.introduced({**streamless, "first_line": 2})
    assert not found.introduced({**streamless, "stream": "r1", "first_line": 3})
