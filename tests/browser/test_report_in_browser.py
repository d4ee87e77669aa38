"""The HTML report as a reader opens it: from a file, offline, with and without scripts."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import samples

from hcp_logscan import scan
from hcp_logscan.model.report import RateLevels, ReportData
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.json import render_json
from hcp_logscan.reporting.markdown import render_markdown
from hcp_logscan.reporting.text import render_text

FIXTURES = Path(__file__).parents[1] / "fixtures"
PHONE = {"viewport": {"width": 390, "height": 800}}
KEYS = ("tflops", "loss", "step", "grad")
OPEN = "el => el.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})"


LEVELS = RateLevels(1, believable=(98.94, 742.05), if_cp_off=493.2, cp_size=16)


def inactive() -> ReportData:
    return dataclasses.replace(samples.inactive(), peak=samples.H100, levels=(LEVELS,))


@pytest.fixture(scope="module")
def interactive() -> str:
    return render_html(inactive())


@pytest.fixture(scope="module")
def static() -> str:
    return render_html(inactive(), charts="static")


@pytest.fixture(scope="module")
def drawn(watch, interactive):
    """The interactive report with every chart drawn; tests leave it as they find it."""
    report = watch(interactive, color_scheme="light")
    report.scroll_through()
    return report


def test_report_opens_from_a_file_and_draws_every_chart(drawn):
    for key in KEYS:
        assert drawn.page.locator(f"#chart-{key} .live .scatterlayer .trace").count() >= 1
    for label in ("dense BF16 peak of H100 SXM", "believable: 99 to 742", "if CP was off"):
        assert drawn.page.locator("#chart-tflops .live").get_by_text(label).count() == 1, label
    drawn.is_calm()


def test_colours_follow_the_scheme(drawn):
    line = "document.querySelector('#chart-loss .live .js-line').style.stroke"
    before = drawn.page.evaluate(line)
    drawn.page.emulate_media(color_scheme="dark")
    drawn.page.wait_for_function(f"before => {line} !== before", arg=before)
    drawn.page.emulate_media(color_scheme="light")
    drawn.page.wait_for_function(f"before => {line} === before", arg=before)
    drawn.is_calm()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_print_shows_what_matters_on_white(drawn, scheme):
    page = drawn.page
    page.emulate_media(media="print", color_scheme=scheme)
    assert page.locator(".drawing:visible").count() == len(KEYS)
    assert page.locator(".live:visible").count() == 0
    for part in (".finding p", ".finding pre", ".channel pre"):
        assert page.locator(part).evaluate_all(f"all => all.length > 0 && all.every({OPEN})"), part
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(22, 32, 44)"
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="screen", color_scheme="light")
    drawn.is_calm()


@pytest.mark.parametrize("missing", ["DecompressionStream", "IntersectionObserver", "Blob"])
def test_an_old_browser_keeps_the_still_drawings(watch, interactive, missing):
    report = watch(
        interactive, before=lambda page: page.add_init_script(f"delete window.{missing}")
    )
    report.page.locator("#chart-tflops").scroll_into_view_if_needed()
    report.page.wait_for_timeout(100)
    assert report.page.locator(".drawing:visible").count() == len(KEYS)
    assert report.page.locator(".live").count() == 0
    report.is_calm()


def test_a_damaged_library_keeps_the_still_drawings(watch, interactive):
    damaged = re.sub(r'(id="plotly">.{5000}).{64}', rf"\1{'A' * 64}", interactive)
    assert damaged != interactive
    report = watch(damaged)
    report.page.locator("#chart-tflops").scroll_into_view_if_needed()
    report.page.locator("#chart-tflops [data-drawn=still]").wait_for()
    assert report.page.locator(".drawing:visible").count() == len(KEYS)
    assert report.errors == []


def _carries_everything(report):
    """All that the report says is there to read, drawings included."""
    assert report.page.locator(".drawing:visible").count() == len(KEYS)
    text = report.text()
    for words in (
        "without hierarchical sizes, so context parallelism was silently off.",
        "HCP002",
        "Set --hierarchical-context-parallel-sizes 8 2",
        "logs/rank_00003.log:812",
        "The median is 193 % of it.",
        "dense BF16 peak of H100 SXM, 989.4",
        "believable: 99 to 742",
        "if CP was off (attention ÷ 16): 493",
        "argument_59",
        "time limit reached",
        "not a gzip file",
    ):
        assert words in text
    for name in ("verdict", "findings", "evidence", "course", "configuration", "ranks", "health"):
        assert report.page.locator(f"#{name}").bounding_box()["height"] > 0


@pytest.mark.parametrize("charts", ["interactive", "static"])
def test_everything_reads_without_scripts(watch, request, charts):
    report = watch(request.getfixturevalue(charts), java_script_enabled=False)
    _carries_everything(report)
    assert report.requests == [report.address]


def test_everything_reads_under_a_policy_that_forbids_all(watch, interactive):
    strict = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
    report = watch(interactive.replace("<head>", f"<head>{strict}", 1))
    report.page.locator("#chart-tflops").scroll_into_view_if_needed()
    _carries_everything(report)
    assert report.page.evaluate("document.styleSheets.length") == 0  # styles were blocked indeed
    line = report.page.locator("#chart-tflops polyline").first
    assert line.evaluate("el => getComputedStyle(el).fill") == "none"
    assert report.requests == [report.address]
    assert report.errors == []
    assert all("Content Security Policy" in message for message in report.console)


def _hostile_run(folder: Path) -> Path:
    """A run whose name, file names, settings and lines all want to be something else."""
    run = folder / "<img src=x onerror=alert(1)> {{ 7*7 }}"
    run.mkdir()
    text = (FIXTURES / "case01-no-sizes/run/slurm-4711.out").read_text(encoding="utf-8")
    evil = " 0: <script>alert(2)</script></pre>]]>{% raw %}\u202ejavascript:alert(3)\n"
    lines = [line + evil for line in text.splitlines(keepends=True)]
    settings = "cp_comm_type: 'a2a+p2p'"
    assert settings in text
    path = run / "slurm-4711 <b onclick=alert(4)>.out"
    path.write_text("".join(lines), encoding="utf-8")
    return run


def test_a_hostile_run_stays_text(watch, tmp_path):
    report = watch(scan(_hostile_run(tmp_path)).to_html())
    text = report.text()
    for literal in (
        "<img src=x onerror=alert(1)> {{ 7*7 }}",
        "slurm-4711 <b onclick=alert(4)>.out",
        "<script>alert(2)</script></pre>]]>{% raw %}\\u202ejavascript:alert(3)",
    ):
        assert literal in text
    assert report.page.title().startswith("<img src=x onerror=alert(1)> {{ 7*7 }}: HCP")
    assert report.page.locator("img, iframe, b[onclick], a[href^=javascript]").count() == 0
    report.is_calm()


@pytest.fixture(scope="module")
def phone(watch):
    """Hostile text in every field, on a phone, every chart drawn."""
    report = watch(render_html(samples.filled(inactive(), samples.HOSTILE)), **PHONE)
    report.page.wait_for_timeout(200)
    report.early = report.page.evaluate("typeof window.Plotly")
    report.scroll_through()
    return report


def test_hostile_text_in_every_field_stays_text(phone):
    assert (
        phone.page.locator("h1")
        .inner_text()
        .startswith(
            "<script>alert(1)</script></script><img src=x onerror=alert(1)> {{ 7*7 }} {% raw %}"
        )
    )
    assert "</style></pre></code></details> ]]> -->" in phone.text()
    assert phone.page.locator("img").count() == 0
    own = ["copies", "", "plots", "plotly", ""]
    assert [s.get_attribute("id") or "" for s in phone.page.locator("body script").all()] == own
    phone.is_calm()


def test_library_waits_until_a_chart_is_near(phone):
    assert phone.early == "undefined"


def test_interactive_charts_fit_a_phone(phone):
    assert phone.fits_its_width()
    for figure in phone.page.locator("figure.chart").all():
        outer, inner = figure.bounding_box(), figure.locator(".live").bounding_box()
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1


def test_hostile_run_is_literal_in_other_formats(tmp_path):
    data = scan(_hostile_run(tmp_path)).data
    markdown = re.sub(r"(`{3,})text\n.*?\n\1|`[^`\n]*`", "", render_markdown(data), flags=re.DOTALL)
    assert "&lt;img src=x onerror=alert(1)&gt; {{ 7\\*7 }}" in markdown
    assert set(re.findall(r"</?[a-z]+", markdown)) <= {
        "<details",
        "</details",
        "<summary",
        "</summary",
    }
    assert "{{ 7*7 }}" in render_text(data)
    assert "\u202e" not in render_text(data) + render_markdown(data) + render_json(data)


WIDE = "x" * 3_000


@pytest.mark.parametrize("make", [samples.inactive, samples.mixed, samples.huge, samples.empty])
def test_a_phone_scrolls_in_one_direction(watch, make):
    report = watch(render_html(make(), charts="static"), **PHONE)
    assert report.fits_its_width()


def test_overlong_values_do_not_widen_the_page(watch):
    data = samples.filled(inactive(), WIDE)
    report = watch(render_html(data, charts="static"), **PHONE)
    assert report.fits_its_width()
