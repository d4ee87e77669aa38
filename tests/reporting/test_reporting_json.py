from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import json
import math
from typing import get_args

import jsonschema
import polars as pl
import pytest
import samples

from hcp_logscan.model import finding, report
from hcp_logscan.model.report import Spread
from hcp_logscan.reporting.json import render_json
from hcp_logscan.reporting.schema import load_schema

MAKERS = [*samples.ALL, samples.huge]


@pytest.fixture(scope="module")
def validator():
    schema = load_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("make", MAKERS)
def test_report_follows_the_schema(validator, make):
    validator.validate(json.loads(render_json(make())))


@pytest.mark.parametrize("make", MAKERS)
def test_hostile_report_follows_the_schema(validator, make):
    text = render_json(samples.filled(make(), samples.HOSTILE))
    validator.validate(json.loads(text.encode("utf-8")))


def _objects(value, path=()):
    if isinstance(value, dict):
        yield path
        for key, item in value.items():
            yield from _objects(item, (*path, key))
    elif isinstance(value, list) and value:
        yield from _objects(value[0], (*path, 0))


def _at(document, path):
    for key in path:
        document = document[key]
    return document


FREE = {"config", "facts"}
OPTIONAL = {
    "topology",
    "redaction",
    "comparison",
    "stories",
    "timeline",
    "suppressed",
}  # came later: older reports of the same version lack it


def _full():
    others = {
        "topology": samples.mixed().topology,
        "comparison": samples.beside().comparison,
    }
    return dataclasses.replace(samples.inactive(), **others)


def _paths():
    document = json.loads(render_json(_full()))
    return [path for path in _objects(document) if not FREE & set(path)]


@pytest.mark.parametrize("path", _paths(), ids=str)
def test_schema_rejects_an_unknown_and_a_missing_member(validator, path):
    document = json.loads(render_json(_full()))
    more = copy.deepcopy(document)
    _at(more, path)["surprise"] = 1
    assert not validator.is_valid(more)
    for key in _at(document, path).keys() - OPTIONAL:
        less = copy.deepcopy(document)
        del _at(less, path)[key]
        assert not validator.is_valid(less), key


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("schema",), "hcp-logscan/report/v2"),
        (("verdict", "status"), "on"),
        (("verdict", "evidence", 0, "line"), 0),
        (("verdict", "evidence", 0, "channel"), "rumour"),
        (("findings", 0, "severity"), "fatal"),
        (("findings", 0, "ranks"), [-1]),
        (("judgements", 0, "outcome"), "maybe"),
        (("attempts", 0, "outcome"), "fine"),
        (("run", "baseline"), 7),
        (("series", "step_ms", "median"), "5 s"),
        (("comparison", "windows", 0, "window"), "last"),
        (("topology", "sizes"), [8]),
        (("topology", "wrong", 0, "level"), 2),
        (("stories", 0, "sentences"), ["one", "two", "three", "four"]),
        (("timeline", 0, "count"), 0),
    ],
)
def test_schema_rejects_a_wrong_value(validator, path, wrong):
    document = json.loads(render_json(_full()))
    _at(document, path[:-1])[path[-1]] = wrong
    assert not validator.is_valid(document)


def test_members_stand_in_the_order_of_the_contract():
    document = json.loads(render_json(samples.inactive()))
    assert list(document)[:3] == ["schema", "tool", "run"]
    first = document["findings"][0]
    assert list(first)[:6] == ["rule", "name", "severity", "confidence", "attempt", "iteration"]
    assert list(first["evidence"][0]) == ["rank", "file", "line", "text"]


def test_topology_lists_ranks_with_other_members():
    data = samples.inactive()
    assert json.loads(render_json(data))["topology"] is None
    rows = samples.groups(8, (2, 2), seen=range(6), wrong=(1,))
    document = json.loads(render_json(dataclasses.replace(data, topology=rows)))
    assert document["topology"] == {
        "cp_size": 4,
        "sizes": [2, 2],
        "ranks_seen": 6,
        "wrong": [{"rank": 1, "level": 0, "expected": [0, 1], "seen": [1, 3]}],
    }


def test_report_without_topology_is_valid_too(validator):
    document = json.loads(render_json(samples.inactive()))
    del document["topology"]
    validator.validate(document)


def test_nan_and_infinity_become_null():
    data = samples.inactive()
    series = dataclasses.replace(data.series, step_ms=Spread(math.nan, -math.inf, math.inf))
    attempt = dataclasses.replace(data.attempts[0], facts={"x": [math.nan, 1.0]})
    data = dataclasses.replace(data, series=series, attempts=(attempt,))
    document = json.loads(render_json(data))
    assert document["series"]["step_ms"] == {"median": None, "min": None, "max": None}
    assert document["attempts"][0]["facts"] == {"x": [None, 1.0]}


def test_floats_carry_six_digits_and_facts_are_sorted():
    data = samples.inactive()
    attempt = dataclasses.replace(data.attempts[0], facts={"b": 1 / 3, "a": 10**12})
    document = json.loads(render_json(dataclasses.replace(data, attempts=(attempt,))))
    assert list(document["attempts"][0]["facts"].items()) == [("a", 10**12), ("b", 0.333333)]


def test_control_characters_are_escaped_and_survive_a_round_trip():
    data = samples.inactive()
    text = "\x00\x1b[0m\x9b\u202e\ufeff"
    data = dataclasses.replace(data, run=dataclasses.replace(data.run, name=text))
    printed = render_json(data)
    assert not set(text) - {"[", "0", "m"} & set(printed)
    assert json.loads(printed)["run"]["name"] == text


def test_evidence_total_is_never_below_what_is_listed():
    data = samples.inactive()
    first = dataclasses.replace(data.findings[0], evidence_total=0)
    document = json.loads(render_json(dataclasses.replace(data, findings=(first,))))
    assert document["findings"][0]["evidence_total"] == len(first.evidence)


def test_text_ends_with_one_line_end_and_keeps_utf8():
    data = samples.inactive()
    data = dataclasses.replace(data, run=dataclasses.replace(data.run, name="训练"))
    text = render_json(data)
    assert text.endswith("}\n")
    assert '"name": "训练"' in text


def test_values_of_other_kinds_become_plain_json():
    data = samples.inactive()
    facts = {
        "series": pl.Series([1, None]),
        "set": frozenset({2, 1}),
        "time": dt.datetime(2026, 3, 1, 10, tzinfo=dt.UTC),
        "nested": {"k": (1.5, "\udcff")},
        "other": 1j,
    }
    attempt = dataclasses.replace(data.attempts[0], facts=facts)
    document = json.loads(render_json(dataclasses.replace(data, attempts=(attempt,))))
    assert document["attempts"][0]["facts"] == {
        "nested": {"k": [1.5, "\\xff"]},
        "other": "1j",
        "series": [1, None],
        "set": [1, 2],
        "time": "2026-03-01T10:00:00+00:00",
    }


def test_schema_knows_the_words_of_the_model():
    defs = load_schema()["$defs"]
    words = {
        ("verdict", "status"): finding.Status,
        ("verdict", "confidence"): finding.Confidence,
        ("evidence", "channel"): finding.Channel,
        ("evidence", "says"): finding.Says,
        ("evidence", "grade"): finding.Grade,
        ("finding", "severity"): finding.Severity,
        ("judgement", "outcome"): finding.Outcome,
        ("attempt", "outcome"): report.AttemptOutcome,
    }
    for (name, member), literal in words.items():
        assert defs[name]["properties"][member]["enum"] == list(get_args(literal))
