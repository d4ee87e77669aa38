"""The throughput chart beside what is believable and what was done if CP was off."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest
import samples

from hcp_logscan.model.report import RateLevels
from hcp_logscan.reporting.charts.chart import charts
from hcp_logscan.reporting.html import render_html

BELIEVABLE = (98.94, 742.05)
OFF = {"if_cp_off": 493.2, "cp_size": 16}


def measured(*rates, **levels):
    data = dataclasses.replace(samples.measured(*rates), judged_attempt=0)
    return dataclasses.replace(data, levels=(RateLevels(0, **levels),))


def throughput(data):
    return next(chart for chart in charts(data) if chart.key == "tflops")


def boxes(svg):
    """Areas of the labels: left, right, top, bottom."""
    behind = svg.behind
    for line in (behind.limit, behind.off, behind.band and behind.band.label):
        if line:
            width = len(line.label) * 6.3
            left = line.x if line.anchor == "start" else line.x - width
            yield left, left + width, line.text_y - 10, line.text_y + 2


def test_the_believable_band_is_shaded_between_labelled_edges():
    chart = throughput(measured(400.0, 410.0, believable=BELIEVABLE))
    band = chart.svg.behind.band
    assert band.label.label == "believable: 99 to 742"
    assert chart.svg.top < band.top < band.bottom == chart.svg.bottom
    assert band.edges == (band.top,)  # the lower edge is below the axis
    assert chart.plot["band"] == {
        "low": 98.94, "high": 742.05, "label": "believable: 99 to 742", "at": "start", "over": False,
    }  # fmt: skip
    shaded = "Believable: 99 to 742 TFLOP/s/GPU, 10 % to 75 % of the peak (shaded)."
    assert shaded in chart.notes


def test_what_was_done_if_cp_was_off_is_a_dotted_labelled_line():
    chart = throughput(measured(1916.0, 1920.0, believable=BELIEVABLE, **OFF))
    off = chart.svg.behind.off
    assert (off.label, off.dash) == ("if CP was off (attention \u00f7 16): 493", "2 4")
    assert chart.plot["off"]["dash"] == "dot"
    assert chart.plot["off"]["y"] == 493.2
    said = (
        "If context parallelism was off, 493 TFLOP/s/GPU were done: the median with its attention"
        " divided by the CP size, 16 (dotted line)."
    )
    assert said in chart.notes


def test_rates_above_the_peak_share_their_axis_with_what_was_done():
    svg = throughput(measured(1916.0, 1920.0, believable=BELIEVABLE, **OFF)).svg
    assert svg.behind.limit.y < svg.behind.band.top < svg.behind.off.y < svg.behind.band.bottom
    assert svg.y_range[0] == 0


@pytest.mark.parametrize("rate", [120.0, 412.0, 640.0, 760.0, 1200.0, 1916.0])
@pytest.mark.parametrize("share", [0.07, 0.25, 0.5, 0.77, 0.97])
def test_labels_cover_neither_one_another_nor_the_frame(rate, share):
    off = {"if_cp_off": rate * share, "cp_size": 16}
    data = measured(rate, rate * 1.01, believable=BELIEVABLE, **off)
    svg = throughput(data).svg
    found = list(boxes(svg))
    for at, (left, right, top, bottom) in enumerate(found):
        assert svg.left <= left < right <= svg.right
        for other in found[:at]:
            apart = left >= other[1] or right <= other[0] or top >= other[3] or bottom <= other[2]
            assert apart, found


def test_levels_far_above_the_series_are_said_and_not_drawn():
    chart = throughput(measured(20.0, 20.4, believable=(98.94, 742.05), **OFF))
    behind = chart.svg.behind
    assert behind.limit is behind.off is behind.band is None
    assert chart.plot["band"] is chart.plot["off"] is None
    text = " ".join(chart.notes)
    assert "of the peak (not on this axis)." in text
    assert "the CP size, 16 (too far off to be drawn)." in text
    assert chart.behind == ""


def test_levels_are_said_to_those_who_do_not_see_the_drawing():
    data = measured(640.0, 650.0, believable=BELIEVABLE, **OFF)
    label = re.search(r'aria-label="(Throughput over [^"]*)"', render_html(data, charts="static"))
    assert label
    assert label[1].endswith(
        "Behind it a line at the dense BF16 peak of H100 SXM, 989.4; a shaded band, believable: "
        "99 to 742; a dotted line, if CP was off (attention \u00f7 16): 493."
    )


def test_only_the_judged_attempt_has_levels():
    data = measured(640.0, 650.0, believable=BELIEVABLE)
    other = dataclasses.replace(data, levels=(RateLevels(1, believable=BELIEVABLE),))
    assert throughput(data).svg.behind.band
    assert throughput(other).svg.behind.band is None
    two = dataclasses.replace(data, attempts=(*data.attempts, *data.attempts))
    assert "Believable in attempt 0: 99 to 742" in " ".join(throughput(two).notes)


@pytest.mark.parametrize("broken", [math.nan, math.inf, 0.0, -1.0])
def test_broken_levels_draw_nothing(broken):
    data = measured(412.0, 413.0, believable=(broken, broken), if_cp_off=broken, cp_size=16)
    chart = throughput(data)
    assert chart.svg.behind.band is chart.svg.behind.off is None
    assert "nan" not in str(chart.svg) + "".join(chart.notes)


def test_other_charts_have_no_levels():
    data = measured(640.0, 650.0, believable=BELIEVABLE, **OFF)
    for chart in charts(data):
        if chart.key != "tflops":
            assert chart.plot["band"] is chart.plot["off"] is chart.svg.behind.band is None


def test_shapes_of_the_levels_keep_their_look_without_styles():
    html = render_html(measured(640.0, 650.0, believable=BELIEVABLE, **OFF), charts="static")
    assert re.search(r'<rect class="believable"[^>]* fill="#0c7a6b" fill-opacity="0.09"/>', html)
    assert 'stroke-dasharray="2 4"' in html
