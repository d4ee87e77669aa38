"""Places in the logs with their neighbours: what is shown once, and what is folded."""

from __future__ import annotations

import dataclasses

import pytest
import samples

from hcp_logscan.reporting.view.excerpts import MAX_HITS, counted, excerpts, opened


def place(line, rank=0):
    return samples.place(line, f"text of {line}", rank, context=True)


def shown(*places):
    return [found.where.partition(":")[2] for found in excerpts(places)]


def test_overlapping_neighbours_are_one_excerpt_with_several_marks():
    (found,) = excerpts([place(97), place(98), place(101)])
    assert found.where == "logs/rank_00000.log:97, 98, 101"
    assert [line.number for line in found.lines] == list(range(95, 104))
    assert [line.number for line in found.lines if line.hit] == [97, 98, 101]
    assert found.lines[2].text == "text of 97"


def test_a_marked_line_reads_as_it_stands_in_the_file():
    found = dataclasses.replace(place(5), text="of 5")  # without what a launcher put before it
    lines = excerpts([found, place(6)])[0].lines
    assert [line.text for line in lines if line.hit] == ["text of 5", "text of 6"]


@pytest.mark.parametrize(("second", "joined"), [(14, True), (15, True), (16, False)])
def test_excerpts_join_where_no_line_is_missing_between_them(second, joined):
    assert (len(excerpts([place(10), place(second)])) == 1) is joined


def test_other_ranks_and_files_stay_apart():
    assert shown(place(10), place(11, rank=1), place(12)) == ["10", "11", "12"]
    moved = dataclasses.replace(place(11), file="other.log")
    assert shown(place(10), moved) == ["10", "11"]
    assert shown(place(10), dataclasses.replace(place(11), rank=None)) == ["10", "11"]


def test_an_order_that_goes_back_is_kept():
    assert shown(place(12), place(10), place(11)) == ["12", "10, 11"]
    assert shown(place(10), place(10)) == ["10", "10"]


def test_no_excerpt_grows_without_end():
    numbers = range(1, 3 * MAX_HITS + 1)
    found = excerpts(place(10 * MAX_HITS + number) for number in numbers)
    assert [counted([one]) for one in found] == [MAX_HITS] * 3


def test_every_place_is_marked_once_and_none_is_lost():
    numbers = [3, 4, 9, 30, 33, 90, 91, 92, 93, 94, 95]
    found = excerpts(place(number) for number in numbers)
    marked = [line.number for one in found for line in one.lines if line.hit]
    assert marked == numbers
    for one in found:
        lines = [line.number for line in one.lines]
        assert lines == sorted(set(lines))


def test_places_without_neighbours_show_their_own_line():
    bare = samples.place(7, "alone")
    assert [(line.number, line.text) for line in excerpts([bare])[0].lines] == [(7, "alone")]


def test_as_many_are_open_as_hold_the_first_places():
    found = excerpts([place(10), place(11), place(50), place(90)])
    assert [opened(found, most) for most in (0, 1, 2, 3, 4, 9)] == [0, 1, 1, 2, 3, 3]
