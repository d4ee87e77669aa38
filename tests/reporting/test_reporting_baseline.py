"""A run beside its baseline, in every readable format."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest
import samples

from hcp_logscan.reporting import baseline
from hcp_logscan.reporting.charts.chart import charts
from hcp_logscan.reporting.charts.look import COLOURS
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.markdown import render_markdown
from hcp_logscan.reporting.text import render_text


def changed(**fields):
    data = samples.beside()
    return dataclasses.replace(data, comparison=dataclasses.replace(data.comparison, **fields))


def chart(data, key):
    return next(found for found in charts(data) if found.key == key)


def test_text_tells_the_thirds_and_the_first_differences():
    text = render_text(samples.beside(), width=200)
    assert (
        "Baseline  llama-70b-good (job 4700): 50 iterations laid beside each other by iteration"
        in text
    )
    assert "TFLOP/s/GPU   1.001× early, 0.910× middle, 0.837× late" in text
    assert "loss          3.30× late" in text
    assert (
        "40 settings differ: context_parallel_size 4 (baseline: 16); recompute_granularity not"
        in text
    )
    assert "and 35 more" in text
    assert "memory        1.200×, 61,240.2 MB against 51,033.5 MB allocated at most" in text
    assert "own verdict on HCP is inactive" in text
    assert "Baseline" not in render_text(samples.unconfirmed())


def test_what_ran_out_of_memory_lists_its_settings_and_claims_no_cause():
    said = baseline.out_of_memory(samples.beside().comparison)
    assert said.endswith(
        "context_parallel_size 4 (baseline: 16); recompute_granularity not stated (baseline: full)."
    )
    assert "option_1" not in said
    assert not baseline.out_of_memory(changed(out_of_memory=False).comparison)
    assert "No setting of" in baseline.out_of_memory(changed(differences=()).comparison)


def test_markdown_folds_all_but_one_line():
    text = render_markdown(samples.beside())
    line, folded = text.split("<details><summary>Comparison with the baseline</summary>")
    assert "late third: TFLOP/s/GPU 0.837×, loss 3.30×." in line
    assert "| TFLOP/s/GPU | 1.001× (1.001× to 0.920×) |" in folded
    assert "20 more settings differ." in folded


def test_page_has_the_thirds_and_the_differences():
    page = render_html(samples.beside(), charts="static")
    assert "<b>0.837×</b>" in page
    assert "512.3 against 612.3" in page
    assert "<code>option_22</code>" in page
    assert "15 further differences are not carried" in page
    assert "No setting that both runs state differs." in render_html(
        changed(differences=(), differences_total=0), charts="static"
    )


def test_the_baseline_is_one_dashed_line_within_the_range_of_the_run():
    found = chart(samples.beside(), "tflops")
    assert [key.label for key in found.svg.keys] == ["this run", "baseline llama-70b-good"]
    ours, theirs = found.plot["series"]
    assert theirs["colour"] not in {ours["colour"], *range(COLOURS)}
    assert (theirs["dash"], theirs["mode"]) == ("dash", "lines")
    assert theirs["x"] == ours["x"]
    assert found.svg.lines[1].dash
    assert found.svg.y_range[1] >= 612.3
    assert "Dashed: the baseline llama-70b-good." in found.notes[-1]
    assert found.caption.endswith("highest 514.3 TFLOP/s/GPU.")


def test_values_of_the_baseline_above_the_peak_are_not_marked():
    fast = samples.beside()
    rows = fast.comparison.series.with_columns(tflops_per_gpu=pl.lit(1200.0))
    fast = dataclasses.replace(fast, comparison=dataclasses.replace(fast.comparison, series=rows))
    found = chart(dataclasses.replace(fast, peak=samples.H100), "tflops")
    assert not found.svg.above
    assert not found.plot["above"]["x"]


def test_only_series_that_were_compared_are_laid_over():
    assert len(chart(samples.beside(), "grad").plot["series"]) == 1
    assert len(chart(changed(windows=()), "tflops").plot["series"]) == 1
    far = samples.beside().comparison.series.with_columns(pl.col("iteration") + 1000)
    assert len(chart(changed(series=far), "tflops").plot["series"]) == 1


def test_long_baselines_are_drawn_by_their_medians():
    data = samples.beside()
    rows = samples.frame([samples.iteration(0, n) for n in range(1, 2001)])
    found = chart(
        dataclasses.replace(changed(series=rows), iterations=rows, attempts=data.attempts), "loss"
    )
    assert [one["name"] for one in found.plot["series"]] == [
        "this run, extremes",
        "this run, medians",
        "baseline llama-70b-good, medians",
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"aligned_by": None, "windows": ()}, "no iterations that both logged"),
        ({"aligned_by": "order of lines"}, "in the order of their lines, for speed only"),
        ({"aligned_by": "consumed samples"}, "a larger batch takes fewer steps"),
        ({"differences_total": 1, "differences": ()}, "1 setting differs"),
    ],
)
def test_words_say_how_it_was_compared(fields, said):
    assert said in render_text(changed(**fields), width=400)
