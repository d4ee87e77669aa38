from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import html
import json
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
import samples

from hcp_logscan.model.finding import Evidence, Verdict
from hcp_logscan.reporting import html as html_module
from hcp_logscan.reporting import words
from hcp_logscan.reporting.html import render_html
from hcp_logscan.reporting.view.evidence import reasons

MAKERS = [*samples.ALL, samples.huge]
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Tags, attributes, text and the nesting of a document."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif "style" not in self.open:
            self.text.append(data)


def static(data) -> Page:
    return Page(render_html(data, charts="static"))


@pytest.mark.parametrize("make", MAKERS)
def test_every_element_is_closed_and_ids_are_unique(make):
    page = static(make())
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)


@pytest.mark.parametrize("make", MAKERS)
def test_log_text_changes_no_tag_and_no_attribute(make):
    calm = static(samples.filled(make(), "calm"))
    hostile = static(samples.filled(make(), samples.HOSTILE))
    assert hostile.tags == calm.tags
    names = [(tag, name) for tag, name, _ in calm.attributes]
    assert [(tag, name) for tag, name, _ in hostile.attributes] == names


def test_log_text_is_shown_as_it_is():
    text = "".join(static(samples.filled(samples.inactive(), samples.HOSTILE)).text)
    assert "<script>alert(1)</script></script>" in text
    assert "{{ 7*7 }} {% raw %}" in text
    assert "␛[31mred␛[0m" in text
    assert "\\u202eevil \\xff \\ud83d NUL␀" in text


@pytest.mark.parametrize("charts", ["static", "interactive"])
def test_hostile_page_is_utf8_without_controls(charts):
    html = render_html(samples.filled(samples.inactive(), samples.HOSTILE), charts=charts)
    html.encode("utf-8")
    page = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)


@pytest.mark.parametrize("charts", ["static", "interactive"])
@pytest.mark.parametrize("make", [samples.inactive, samples.empty])
def test_nothing_is_loaded(make, charts):
    html = render_html(make(), charts=charts)
    page = Page(html)
    assert not page.tags.keys() & {"link", "img", "iframe", "object", "embed", "base", "form"}
    loading = {"src", "srcset", "data", "poster", "action", "background", "ping", "xlink:href"}
    assert not [name for _, name, _ in page.attributes if name in loading]
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name == "style"]
    css = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert css
    assert "url(" not in css[1]
    assert "@import" not in css[1]
    assert page.tags["style"] == 1


@pytest.mark.parametrize("charts", ["static", "interactive"])
def test_policy_forbids_requests_and_names_our_scripts(charts):
    page = Page(render_html(samples.inactive(), charts=charts))
    policy = next(v for _, name, v in page.attributes if name == "content" and "default-src" in v)
    assert "default-src 'none'" in policy
    assert "script-src 'unsafe-inline'" not in policy
    assert "unsafe-eval" not in policy
    running = []
    if charts == "interactive":
        _, copy, _, library, script = page.scripts
        running = [copy, script, gzip.decompress(base64.b64decode(library)).decode()]
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in running]
    sources = "".join(f" 'sha256-{digest}'" for digest in digests) or " 'none'"
    assert policy.endswith(f"script-src{sources}")
    assert len(page.scripts) == (5 if charts == "interactive" else 0)


def test_only_https_references_are_links():
    data = samples.inactive()
    references = (
        "https://example.org/a?b=1&c",
        "javascript:alert(1)",
        "http://example.org/",
        'https://example.org/" onclick="x',
        "https://exa mple.org/",
        " https://example.org/",
        "https://",
        "data:text/html,x",
        "https://example.org\n/x",
    )
    finding = dataclasses.replace(data.findings[0], references=references)
    page = static(dataclasses.replace(data, findings=(finding,)))
    links = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    outside = [link for link in links if not link.startswith("#")]
    assert outside == ["https://example.org/a?b=1&c"]
    rels = [value for tag, name, value in page.attributes if (tag, name) == ("a", "rel")]
    assert rels == ["noopener noreferrer"]
    assert "javascript:alert(1)" in "".join(page.text)


@pytest.mark.parametrize("make", MAKERS)
def test_inner_links_lead_somewhere(make):
    page = static(make())
    inner = {v[1:] for tag, name, v in page.attributes if name == "href" and v.startswith("#")}
    assert inner <= set(page.ids)


@pytest.mark.parametrize("make", MAKERS)
def test_headings_are_in_order_and_landmarks_are_there(make):
    page = static(make())
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    steps = zip(page.headings, page.headings[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps)
    assert all(page.tags[tag] == 1 for tag in ("header", "nav", "main", "footer"))


@pytest.mark.parametrize("make", MAKERS)
def test_tables_have_captions_and_headers(make):
    page = static(make())
    assert page.tags["caption"] == page.tags["table"] == page.tags["thead"]
    scopes = [name for tag, name, _ in page.attributes if tag == "th" and name == "scope"]
    assert len(scopes) == page.tags["th"]


def test_huge_run_stays_small():
    html = render_html(samples.huge(), charts="static")
    assert len(html.encode("utf-8")) < 400_000


def test_huge_run_stays_small_where_it_is_interactive():
    data = samples.huge()
    assert (data.run.world_size, data.iterations.height) == (1_024, 100_000)
    assert len(render_html(data).encode("utf-8")) < 2_500_000


def test_interactive_page_carries_plotly_once_and_the_drawings_too():
    html = render_html(samples.inactive(), charts="interactive")
    page = Page(html)
    packed = gzip.decompress(base64.b64decode(page.scripts[3])).decode()
    assert "plotly.js v" in packed[:200]
    assert len(html) < 2_200_000
    assert page.tags["polyline"] > 0
    plots = json.loads(page.scripts[2])
    assert [plot["key"] for plot in plots] == ["tflops", "loss", "step", "grad"]


def test_static_page_has_no_script():
    assert static(samples.inactive()).tags["script"] == 0


def test_page_without_iterations_has_nothing_but_buttons_that_copy():
    html = render_html(samples.empty())
    assert Page(html).tags["script"] == 2
    assert len(html) < 100_000


@pytest.mark.parametrize("make", [samples.inactive, samples.huge])
def test_same_report_gives_the_same_bytes(make):
    assert render_html(make(), charts="static") == render_html(make(), charts="static")


def test_verdict_is_said_in_words():
    text = "".join(static(samples.inactive()).text)
    assert "without hierarchical sizes, so context parallelism was silently off." in text
    assert "seen on 30 of 32 ranks" in text


def test_failure_leads_where_hcp_was_not_requested():
    text = "".join(static(samples.not_requested()).text)
    assert text.index("HCP501 gpu-out-of-memory") < text.index("Hierarchical CP: not requested")


def test_excerpt_shows_neighbouring_lines():
    text = "".join(static(samples.not_requested()).text)
    assert "logs/rank_00003.log:77" in text
    assert "line 76 of the log" in text


def test_reasons_lead_to_the_lines_they_rest_on():
    data = samples.mixed()
    by_text = {piece.explanation: piece for piece in reversed(data.verdict.evidence)}
    told = (*by_text, "8 iterations finished, so no check stopped it.")
    verdict = dataclasses.replace(data.verdict, reasons=told)
    *linked, bare = reasons(verdict)
    assert len(linked) > 3
    assert (bare.text, bare.channel) == (told[-1], "")
    html = render_html(dataclasses.replace(data, verdict=verdict), charts="static")
    for reason in linked:
        place = by_text[reason.text].location
        assert reason.where == f"{place.file}:{place.line}"
        assert f'<a class="place" href="#says-{reason.channel}">{reason.where}</a>' in html
        assert f'id="says-{reason.channel}"' in html


def test_a_refusal_rests_on_the_check_that_refused():
    piece = Evidence("assertion", "neutral", "B", samples.place(7, "AssertionError"), "A check.")
    verdict = Verdict("rejected", "high", "", reasons=("It was refused.",), evidence=(piece,))
    assert [(r.channel, r.where) for r in reasons(verdict)] == [
        ("assertion", "logs/rank_00000.log:7")
    ]


def test_a_contradiction_rests_on_no_single_line():
    assert reasons(samples.mixed().verdict)[0].channel == ""


def test_a_reason_without_a_line_has_no_link():
    verdict = Verdict("inconclusive", "low", "", reasons=("Nothing is visible.", "Nor is this."))
    assert [reason.channel for reason in reasons(verdict)] == ["", ""]


def test_key_numbers_lead_to_their_charts():
    page = static(samples.inactive())
    links = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    for place in ("#chart-tflops", "#chart-step", "#chart-loss", "#attempts"):
        assert links.count(place) >= 2 - (place == "#chart-step"), place
    numbered = static(samples.empty())
    assert "#chart-loss" not in [value for _, name, value in numbered.attributes if name == "href"]


def test_the_first_screen_says_what_to_do():
    data = samples.inactive()
    sure = dataclasses.replace(data, verdict=dataclasses.replace(data.verdict, next_steps=()))
    assert "What to do first" in "".join(static(sure).text)
    assert "What to do first" not in "".join(static(data).text)  # the next steps say it
    calm = dataclasses.replace(sure, findings=())
    assert "What to do first" not in "".join(static(calm).text)


def test_code_in_advice_is_marked():
    html = render_html(samples.inactive(), charts="static")
    assert "<code>--expect active</code>" in html
    assert "<code>NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 TORCH_CPP_LOG_LEVEL=INFO</code>" in html


def test_inconclusive_rules_say_how_to_observe():
    text = "".join(static(samples.inactive()).text)
    assert "keep rank 0's start-up output" in text


def test_reasons_quote_the_log_literally():
    data = samples.inactive()
    verdict = dataclasses.replace(data.verdict, reasons=("refused: `x` A_B=1",))
    html = render_html(dataclasses.replace(data, verdict=verdict), charts="static")
    assert "<li>refused: `x` A_B=1</li>" in html


def test_settings_that_were_not_observed_are_folded_but_not_those_of_cp():
    data = samples.inactive()
    config = samples.CONFIG | {"kv_channels": None, "te_version": None, "cp_size": None}
    attempt = dataclasses.replace(data.attempts[1], config=config)
    data = dataclasses.replace(data, attempts=(attempt,))
    html = render_html(data, charts="static")
    shown, _, folded = html.partition("2 settings that these logs do not show")
    assert "<code>cp_size</code>" in shown
    assert "<code>hcp_sizes</code>" in shown
    for name in ("kv_channels", "te_version"):
        assert f"<code>{name}</code>" not in shown
        assert f"<code>{name}</code>" in folded


def test_other_attempts_have_a_column_only_where_they_differ():
    data = samples.inactive()
    assert '<th scope="col">Other attempts</th>' in render_html(data, charts="static")
    same = tuple(dataclasses.replace(a, config=samples.CONFIG) for a in data.attempts)
    alike = dataclasses.replace(data, attempts=same)
    assert "Other attempts" not in render_html(alike, charts="static")


def test_library_is_packed_alike_every_time():
    assert html_module._gzip(b"x" * 999) == html_module._gzip(b"x" * 999)
    assert html_module._gzip(b"")[3:10] == b"\0\0\0\0\0\0\xff"  # no name, no time, no system
    assert gzip.decompress(html_module._gzip("é🙂".encode() * 5)) == "é🙂".encode() * 5


def named_first(data):
    """Anchors of the findings that the verdict's card names."""
    card = (
        render_html(data, charts="static").partition('id="verdict"')[2].partition("</section>")[0]
    )
    return re.findall(r'</strong> <a href="#(HCP\d+-\d+)">', card)


def test_the_first_screen_names_the_worst_findings_once_and_no_notes():
    data = samples.inactive()
    (first, *_) = data.findings
    many = [
        dataclasses.replace(first, rule=rule, severity=severity, attempt=attempt)
        for rule, severity, attempt in (
            ("HCP401", "error", 0),
            ("HCP401", "error", 1),
            ("HCP501", "error", 0),
            ("HCP102", "warning", 0),
            ("HCP104", "warning", 0),
            ("HCP306", "note", 0),
        )
    ]

    assert named_first(dataclasses.replace(data, findings=tuple(many))) == [
        "HCP401-0",
        "HCP501-0",
        "HCP102-0",
    ]
    assert named_first(dataclasses.replace(data, findings=tuple(many[-1:]))) == []


def test_a_finding_that_is_the_headline_is_not_named_again():
    data = samples.not_requested()
    worst = words.worst(data)
    card = (
        render_html(data, charts="static").partition('id="verdict"')[2].partition("</section>")[0]
    )

    assert worst.message in html.unescape(card)
    assert f"{worst.rule}-{worst.attempt}" not in named_first(data)
