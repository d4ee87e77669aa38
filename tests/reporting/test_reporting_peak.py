"""Printed throughput beside the peak of its GPUs: the line, the caption, the key numbers."""

from __future__ import annotations

import dataclasses
import math

import pytest
import samples

from hcp_logscan.model.report import Peak
from hcp_logscan.reporting import peak
from hcp_logscan.reporting.charts.chart import charts
from hcp_logscan.reporting.charts.look import MAX_ABOVE
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.limitline import limit_line
from hcp_logscan.reporting.markdown import render_markdown
from hcp_logscan.reporting.text import render_text
from hcp_logscan.reporting.view import numbers as view

ASSUMED = dataclasses.replace(
    samples.H100, assumed=True, bound_tflops=1978.9, explanation="BF16 is assumed."
)
NO_FIGURE = Peak("fp4", gpu="H100 SXM", source="--gpu", explanation="No FP4 figure for H100 SXM.")
BOX = (62.0, 470.0, 14.0, 204.0)


def throughput(data):
    return next(chart for chart in charts(data) if chart.key == "tflops")


def caption(data):
    return " ".join(throughput(data).notes)


def test_a_known_peak_is_a_solid_labelled_line():
    chart = throughput(samples.measured(400.0, 410.0, 420.0))
    assert chart.svg.behind.limit.label == "dense BF16 peak of H100 SXM, 989.4"
    assert chart.svg.behind.limit.dash == ""
    assert chart.plot["limit"] == {
        "y": 989.4,
        "label": "dense BF16 peak of H100 SXM, 989.4",
        "dash": "solid",
        "at": "start",
        "over": False,
    }


def test_a_bound_is_a_dashed_line_that_says_so():
    chart = throughput(samples.measured(400.0, 410.0, 420.0, peak=samples.HOPPER))
    assert chart.svg.behind.limit.label == "no GPU of this kind does more than 989.5"
    assert chart.svg.behind.limit.dash
    assert chart.plot["limit"]["dash"] == "dash"


def test_the_axis_holds_a_near_peak():
    svg = throughput(samples.measured(400.0, 410.0, 420.0)).svg
    assert svg.top <= svg.behind.limit.y < min(dot[1] for dot in _places(svg))
    assert svg.y_range[1] >= 989.4


def _places(svg):
    return [
        tuple(map(float, place.split(",")))
        for line in svg.lines
        for place in line.points.split(" ")
    ]


@pytest.mark.parametrize(("rate", "where"), [(20.0, "above"), (20_000.0, "below")])
def test_a_far_peak_does_not_flatten_the_series(rate, where):
    data = samples.measured(rate, rate * 1.01, rate * 0.99)
    chart = throughput(data)
    assert chart.svg.behind.limit is chart.plot["limit"] is None
    heights = [y for _, y in _places(chart.svg)]
    assert max(heights) - min(heights) > 90  # of 190
    assert f"The line of 989.4 lies far {where} the series and is not drawn" in caption(data)


@pytest.mark.parametrize(("rate", "drawn"), [(989.4 / 4, True), (989.4 / 4 - 1, False)])
def test_a_linear_axis_reaches_four_times_the_series(rate, drawn):
    assert (throughput(samples.measured(rate, rate, rate)).svg.behind.limit is not None) is drawn


def test_a_logarithmic_axis_reaches_further():
    chart = throughput(samples.measured(400.0, *[30.0] * 20))
    assert chart.log_scale
    assert chart.svg.behind.limit is not None


def test_values_above_the_peak_are_marked_by_shape_and_counted():
    data = samples.measured(412.0, 1900.0, 1950.0, 989.4)
    chart = throughput(data)
    assert len(chart.svg.above) == 2
    assert chart.plot["above"] == {"x": [2, 3], "y": [1900.0, 1950.0]}
    assert "2 values of 4 are above this peak (diamonds): no such GPU can do that" in caption(data)
    assert render_html(data, charts="static").count('class="over"') == 2


def test_values_at_the_peak_are_not_above_it():
    chart = throughput(samples.measured(989.4, 989.4))
    assert chart.svg.above == ()
    assert "above" not in caption(samples.measured(989.4, 989.4))


def test_marks_are_limited_and_all_values_counted():
    data = samples.measured(*(1900.0 + n % 7 for n in range(3_000)))
    chart = throughput(data)
    assert len(chart.svg.above) <= MAX_ABOVE
    assert "All 3,000 values are above this peak" in caption(data)


def test_the_peak_far_below_still_marks_what_is_above_it():
    assert len(throughput(samples.measured(20_000.0, 20_100.0)).svg.above) == 2


def test_an_assumed_precision_leaves_room_for_doubt():
    data = samples.measured(1200.0, 1210.0, peak=ASSUMED)
    assert throughput(data).svg.behind.limit.label == "assumed dense BF16 peak of H100 SXM, 989.4"
    assert "the precision is not the assumed one, or the numbers are wrong" in caption(data)
    above_all = samples.measured(1200.0, 2000.0, peak=ASSUMED)
    assert "no such GPU can do that" in caption(above_all)


def test_caption_gives_the_share_and_whence():
    assert throughput(samples.measured(400.0, 412.0, 420.0)).notes[0] == (
        "Dense BF16 peak of H100 SXM: 989.4 TFLOP/s; the GPU is known from the logs. "
        "The median is 42 % of it."
    )
    bare = dataclasses.replace(samples.H100, explanation="")
    assert throughput(samples.measured(412.0, peak=bare)).notes[0] == (
        "989.4, according to the logs. The median is 42 % of the dense BF16 peak of H100 SXM."
    )


def test_an_unknown_gpu_says_how_to_tell():
    data = samples.measured(412.0, peak=None)
    assert "these logs do not say which GPU it is. Name it with `--gpu`" in caption(data)
    assert "<code>--gpu</code>" in render_html(data, charts="static")


def test_a_gpu_without_a_figure_says_so():
    data = samples.measured(412.0, peak=NO_FIGURE)
    assert "No FP4 figure for H100 SXM. Give the dense peak with `--peak-tflops`" in caption(data)
    assert peak.brief(data) == ""


@pytest.mark.parametrize("broken", [math.nan, math.inf, 0.0, -1.0])
def test_a_broken_peak_draws_nothing(broken):
    data = samples.measured(412.0, peak=Peak("bf16", tflops=broken, bound_tflops=broken))
    assert throughput(data).svg.behind.limit is None
    assert "nan" not in str(throughput(data).svg)


def test_other_charts_have_no_peak():
    others = [c for c in charts(samples.measured(412.0)) if c.key != "tflops"]
    assert others
    assert all(chart.svg.behind.limit is None and not chart.svg.above for chart in others)
    assert not any("peak" in note for chart in others for note in chart.notes)


def test_key_numbers_carry_share_and_source():
    numbers = {name: (value, more) for name, value, more in view.numbers(samples.measured(412.0))}
    assert numbers["TFLOP/s/GPU"] == ("412.0", "median; 42 % of the dense BF16 peak of H100 SXM")
    assert numbers["Dense peak of the GPU"] == ("989.4", "BF16, H100 SXM, according to the logs")


def test_an_assumed_precision_is_said_in_every_summary():
    data = samples.measured(412.0, peak=ASSUMED)
    numbers = {name: (value, more) for name, value, more in view.numbers(data)}
    assert numbers["Dense peak of the GPU"][1] == "BF16 (assumed), H100 SXM, according to the logs"
    for text in (render_text(data), render_markdown(data), render_html(data, charts="static")):
        assert "42 % of the assumed dense BF16 peak of H100 SXM" in text


def test_a_bound_gives_a_least_share():
    data = samples.measured(300.0, peak=samples.HOPPER)
    numbers = {name: (value, more) for name, value, more in view.numbers(data)}
    assert numbers["TFLOP/s/GPU"][1] == "median; at least 30 % of the peak"
    assert numbers["Bound of the GPU"][1].startswith("BF16, no GPU of this kind does more,")
    assert "at least 30 % of the peak (no GPU of this kind does more than 989.5" in render_markdown(
        data
    )


def test_claimed_mfu_is_named_a_claim_and_only_where_printed():
    data = samples.measured(412.0, 413.0, mfu=0.412)
    assert ("MFU as printed", "41 %", "median; the trainer's claim") in view.numbers(data)
    assert "printed MFU 41 % median, the trainer's claim" in render_text(data)
    assert "printed MFU 41 % median, the trainer's claim" in render_markdown(data)
    silent = samples.measured(412.0)
    for text in (render_text(silent), render_markdown(silent), render_html(silent)):
        assert "MFU as printed" not in text
        assert "printed MFU" not in text


def test_a_mfu_of_nan_is_none():
    assert peak.claimed_mfu(samples.measured(412.0, mfu=math.nan)) is None


def test_summaries_without_a_peak_say_nothing_of_it():
    data = samples.measured(412.0, peak=None)
    assert "peak" not in render_text(data)
    assert "peak" not in render_markdown(data)


def test_findings_and_charts_lead_to_each_other():
    page = render_html(samples.inactive(), charts="static")
    assert '<a href="#chart-tflops">chart: throughput</a>' in page
    figure = page.partition('id="chart-tflops"')[2].partition("</figure>")[0]
    assert '<a href="#HCP101-1">HCP101 above-dense-peak</a>' in figure
    assert "HCP201" not in figure


def test_findings_without_a_chart_have_no_link_to_one():
    data = dataclasses.replace(samples.inactive(), iterations=samples.frame([]))
    assert "#chart-" not in render_html(data)


def test_label_keeps_off_the_series():
    low = [(62.0, 60.0), (260.0, 55.0), (470.0, 60.0)]  # just over the line
    assert not limit_line("peak", 64.0, [low], dash="", box=BOX).above
    steep = [(62.0, 100.0), (120.0, 14.0), (121.0, 204.0)]
    assert limit_line("peak", 100.0, [steep], dash="", box=BOX).anchor == "end"


def test_label_stays_within_the_drawing():
    for y in (14.0, 20.0, 198.0, 204.0):
        line = limit_line("x" * 200, y, [], dash="", box=BOX)
        assert 14.0 - 5 <= line.text_y <= 204.0 + 13
