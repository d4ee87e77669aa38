from __future__ import annotations

import dataclasses
import math
import random

import polars as pl
import pytest
import samples

from hcp_logscan.reporting.charts.chart import charts
from hcp_logscan.reporting.charts.series import MAX_POINTS, downsample
from hcp_logscan.reporting.rankmap import rank_map


@pytest.mark.parametrize("count", [0, 1, 2, 5, 99, 100, 101, 1_000, 12_345])
@pytest.mark.parametrize("gaps", [0.0, 0.3, 1.0])
def test_reduced_series_keep_ends_and_extremes(count, gaps):
    generator = random.Random(count)
    points = [(x, None if generator.random() < gaps else generator.random()) for x in range(count)]
    kept = downsample(points, 100)
    assert len(kept) <= max(100, 0)
    assert [x for x, _ in kept] == sorted({x for x, _ in kept})
    assert set(kept) <= set(points)
    if points:
        assert (kept[0], kept[-1]) == (points[0], points[-1])
    values = [y for _, y in points if y is not None]
    if values:
        shown = [y for _, y in kept if y is not None]
        assert (min(shown), max(shown)) == (min(values), max(values))


def test_a_stretch_without_values_stays_a_gap():
    points = [(x, None if 400 <= x < 600 else 1.0) for x in range(1_000)]
    assert any(y is None for _, y in downsample(points, 50))


def test_no_trace_is_longer_than_promised():
    for chart in charts(samples.huge()):
        assert all(len(series["x"]) <= MAX_POINTS for series in chart.plot["series"])
        reduced = "reduced to at most 480 points per line (2,000 where the chart is interactive)"
        assert any(reduced in note for note in chart.notes)


def test_one_spike_in_a_hundred_thousand_is_drawn():
    loss = next(chart for chart in charts(samples.huge()) if chart.key == "loss")
    assert 9999.5 in loss.plot["series"][0]["y"]


def test_missing_and_broken_values_are_marked():
    drawn = {chart.key: chart for chart in charts(samples.inactive())}
    loss, grad = drawn["loss"], drawn["grad"]
    assert [mark["x"] for mark in loss.plot["marks"]] == [[60, 90]]
    assert loss.notes == ("4 lines without a printed loss, the first at iteration 60.",)
    assert [mark["name"] for mark in grad.plot["marks"]] == ["NaN or Inf"]
    assert len(loss.svg.missing) == 2
    assert len(loss.svg.lines) == 3  # the line breaks at both gaps


def test_slow_first_iteration_gets_a_log_scale():
    step = next(c for c in charts(samples.not_requested()) if c.key == "step")
    assert step.log_scale
    assert step.unit == "ms, log scale"


def test_each_attempt_has_its_line_and_key():
    data = samples.inactive()
    rows = [samples.iteration(attempt, n) for attempt in range(9) for n in range(1, 20)]
    chart = charts(dataclasses.replace(data, iterations=samples.frame(rows)))[0]
    assert len(chart.svg.lines) == 9
    assert len(chart.svg.keys) == 9
    looks = {(series["colour"], series["dash"]) for series in chart.plot["series"]}
    assert len(looks) == 9


def test_legend_of_many_attempts_says_how_many_more():
    data = samples.inactive()
    rows = [samples.iteration(attempt, n) for attempt in range(12) for n in range(1, 5)]
    chart = charts(dataclasses.replace(data, iterations=samples.frame(rows)))[0]
    assert chart.svg.keys[-1].label == "and 4 more"


def test_attempts_without_the_field_are_counted():
    data = samples.inactive()
    rows = [samples.iteration(0, 1, lm_loss=None), samples.iteration(1, 1)]
    drawn = charts(dataclasses.replace(data, iterations=samples.frame(rows)))
    loss = next(chart for chart in drawn if chart.key == "loss")
    assert "1 attempt printed no loss at all." in loss.notes


def test_step_lines_without_numbers_keep_their_order():
    data = samples.inactive()
    rows = [samples.iteration(0, 1, iteration=None, tflops_per_gpu=float(n)) for n in range(3)]
    chart = charts(dataclasses.replace(data, iterations=samples.frame(rows)))[0]
    assert chart.plot["series"][0]["x"] == [1, 2, 3]
    assert chart.plot["series"][0]["y"] == [0.0, 1.0, 2.0]


EXTREMES = [
    [math.nan], [math.inf, -math.inf], [0.0], [1e308, -1e308], [5e-324, 1.0, 2.0, 3.0],
    [1e-9] * 4, [1e16, 1e16 + 2], [-5.0, -5.0], [1e99, 1.0, 1.0, 1.0],
]  # fmt: skip


@pytest.mark.parametrize("values", EXTREMES, ids=str)
def test_extreme_values_can_be_drawn(values):
    rows = [samples.iteration(0, n, lm_loss=value) for n, value in enumerate(values)]
    data = dataclasses.replace(samples.inactive(), iterations=samples.frame(rows))
    loss = next(chart for chart in charts(data) if chart.key == "loss")
    assert "nan" not in str(loss.svg)
    assert "inf" not in str(loss.svg)
    assert len(loss.svg.y_ticks) < 20


def test_frames_without_columns_draw_nothing():
    data = dataclasses.replace(samples.inactive(), iterations=pl.DataFrame({"attempt": [0]}))
    assert charts(data) == ()


def test_rank_map_joins_equal_neighbours():
    found = rank_map(confirmed=set(range(1024)), seen=set(range(1024)), missing=set(), named={5})
    assert found is not None
    assert len(found.cells) == 32 + 2
    assert [state for state, _, _ in found.legend] == ["named", "confirmed"]


def test_rank_map_gives_every_rank_one_cell():
    found = rank_map(confirmed={0, 1}, seen={0, 1, 2, 9}, missing={7, 8}, named={9})
    assert found is not None
    assert sum(cell.width for cell in found.cells) // found.cell == 6


def test_rank_map_of_too_many_ranks_is_words_only():
    found = rank_map(confirmed={9_000}, seen=set(), missing=set(), named=set())
    assert found is not None
    assert (found.cells, found.rows) == ((), ())
    assert found.legend[0][2] == "1 rank: 9000"


def test_no_ranks_no_map():
    assert rank_map(confirmed=set(), seen=set(), missing=set(), named=set()) is None
