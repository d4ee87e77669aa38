"""What tells the time of a step, and windows of time stamps."""

import datetime as dt
import random

import polars as pl
import pytest
from test_steady import frame

from hcp_logscan.analysis import pace, steady

START = dt.datetime(2031, 3, 2, 11)  # noqa: DTZ001 - logs have no zone


def dated(seconds, *, digits=0, every=1):
    """Rows without step times, at the end of steps that take these seconds."""
    at, times = 0.0, []
    for one in seconds:
        at += one
        stamp = START + dt.timedelta(seconds=at)
        part = f".{stamp.microsecond // 1_000:03d}" if digits else ""
        times.append(f"{stamp:%Y-%m-%d %H:%M:%S}{part}")
    many = len(times)
    return frame([None] * many, time=times, iteration=range(every, every * many + 1, every))


def noisy(many, seconds, seed=1):
    made = random.Random(seed)
    return [seconds * (1.0 + made.gauss(0.0, 0.01)) for _ in range(many)]


def told(rows):
    source, found = steady.steady(rows)
    return None if source is None else source.name, steady.facts(source, found)


def test_the_best_source_is_taken():
    times, rates = [5_000.0] * 10, [4_000.0] * 10
    none = [None] * 10
    stamps = [f"2031-03-02 11:00:{5 * i:02d}" for i in range(10)]
    every = {"tokens_per_s_per_gpu": rates, "tflops_per_gpu": rates, "time": stamps}
    names = [
        told(rows)[0]
        for rows in (
            frame(times, **every),
            frame(none, **every),
            frame(none, **{**every, "tokens_per_s_per_gpu": none}),
            frame(none, time=stamps),
            frame(none),
        )
    ]
    assert names == [*(source.name for source in pace.SOURCES), None]


@pytest.mark.parametrize(("seconds", "windows"), [(0.7, 20), (5.0, 150), (40.0, 599)])
def test_stamps_of_a_second_tell_short_steps_over_windows(seconds, windows):
    name, found = told(dated(noisy(600, seconds)))
    assert name == "the time stamps of the lines"
    assert found["step_ms_steady"] == pytest.approx(1_000 * seconds, rel=0.02)
    assert found["steady_iterations"] == pytest.approx(windows, rel=0.1)


def test_stamps_with_milliseconds_need_no_windows():
    name, found = told(dated(noisy(300, 0.7), digits=3))
    assert name == "the time stamps of the lines"
    assert found["step_ms_steady"] == pytest.approx(700, rel=0.01)
    assert found["steady_iterations"] == pytest.approx(298, abs=2)


def test_lines_of_ten_iterations_are_told_by_iteration():
    found = told(dated(noisy(300, 50.0), every=10))[1]
    assert found["step_ms_steady"] == pytest.approx(5_000, rel=0.01)


def test_saving_and_evaluating_are_pauses_of_the_clock_too():
    seconds = noisy(600, 30.0)
    for at in range(100, 600, 100):
        seconds[at] += 240.0
    seconds[0] = 300.0
    found = told(dated(seconds))[1]
    assert found["steady_iterations"] == pytest.approx(593, abs=3)
    assert found["pace_change"] == pytest.approx(1.0, rel=0.02)


def test_a_clock_that_jumps_back_says_nothing_of_that_step():
    rows = dated(noisy(100, 30.0))
    moved = rows.with_columns(
        pl.when(pl.col("iteration") > 50)
        .then(pl.col("time").str.replace("2031-03-02", "2031-03-01"))
        .otherwise("time")
        .alias("time")
    )
    assert told(moved)[1]["step_ms_steady"] == pytest.approx(30_000, rel=0.01)


@pytest.mark.parametrize("time", ["", "soon", "2031-13-40 99:00:00"])
def test_damaged_stamps_tell_nothing(time):
    assert told(frame([None] * 20, time=[time] * 20))[0] is None


def test_lines_without_numbers_have_no_clock():
    rows = dated(noisy(50, 30.0)).with_columns(iteration=pl.lit(None, pl.Int64))
    assert told(rows)[0] is None


def test_slower_steps_are_told_in_the_unit_of_the_source():
    slower = [one * 1.4 for one in noisy(200, 30.0, seed=2)]
    found = told(dated(noisy(400, 30.0) + slower))[1]
    assert found["pace_change"] == pytest.approx(1.4, rel=0.02)
    assert found["pace_change_apart"] > 1.0
    assert found["step_ms_late"] == pytest.approx(42_000, rel=0.02)
    rates = [4_000.0 / one for one in noisy(400, 1.0) + [1.4 * one for one in noisy(200, 1.0)]]
    found = told(frame([None] * 600, tokens_per_s_per_gpu=rates))[1]
    assert found["pace_change"] == pytest.approx(1.4, rel=0.02)
    assert found["pace_early"].endswith(" tokens/s/GPU")
    assert found["step_ms_late"] is None
