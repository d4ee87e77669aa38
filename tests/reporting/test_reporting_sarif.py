"""SARIF: what code scanning makes of a report."""

import dataclasses
import json

import jsonschema
import pytest
import samples

from hcp_logscan.model.finding import Location
from hcp_logscan.reporting.sarif import FINGERPRINT, RUN_DIR, render_sarif
from hcp_logscan.reporting.wishes import Wishes


def closed(required, **optional):
    """An object with these members and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": required | optional,
        "additionalProperties": False,
    }


def many(items):
    return {"type": "array", "items": items}


# The part of the standard that is used, written down from its text (OASIS SARIF 2.1.0, 3.13 to
# 3.58), and closed, so that a misspelt member fails.
TEXT = {"type": "string", "minLength": 1}
NUMBER = {"type": "integer", "minimum": 0}
LINE = {"type": "integer", "minimum": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = closed({"text": TEXT})
BAG = {"type": "object"}
FILE = closed({"uri": {"type": "string", "pattern": "^[A-Za-z0-9%._~/!-]+$"}, "uriBaseId": TEXT})
REGION = closed({"startLine": LINE}, endLine=LINE, snippet=closed({"text": TEXT}))
PHYSICAL = closed({"artifactLocation": FILE}, region=REGION, contextRegion=REGION)
LOGICAL = closed({"name": TEXT, "fullyQualifiedName": TEXT, "kind": TEXT})
LOCATION = closed({"physicalLocation": PHYSICAL}, logicalLocations=many(LOGICAL), id=NUMBER)
STEP = closed({"location": LOCATION, "importance": {"enum": ["important", "essential"]}})
FLOW = closed(
    {"threadFlows": {**many(closed({"id": TEXT, "locations": many(STEP)})), "minItems": 1}}
)
RULE = closed(
    {
        "id": TEXT,
        "name": TEXT,
        "shortDescription": MESSAGE,
        "fullDescription": MESSAGE,
        "help": closed({"text": TEXT, "markdown": TEXT}),
        "defaultConfiguration": closed({"level": LEVEL}),
        "properties": BAG,
    },
    helpUri=TEXT,
)
RESULT = closed(
    {
        "ruleId": TEXT,
        "kind": {"const": "fail"},
        "level": LEVEL,
        "message": MESSAGE,
        "locations": {**many(LOCATION), "minItems": 1},
        "partialFingerprints": {"type": "object", "additionalProperties": TEXT},
        "properties": BAG,
    },
    ruleIndex=NUMBER,
    relatedLocations=many(LOCATION),
    codeFlows=many(FLOW),
    suppressions=many(
        closed(
            {
                "kind": {"enum": ["inSource", "external"]},
                "status": {"enum": ["accepted", "underReview", "rejected"]},
                "justification": TEXT,
                "properties": BAG,
            }
        )
    ),
)
NOTIFICATION = closed({"level": LEVEL, "message": MESSAGE}, locations=many(LOCATION))
INVOCATION = closed(
    {
        "executionSuccessful": {"type": "boolean"},
        "exitCode": NUMBER,
        "exitCodeDescription": TEXT,
        "toolExecutionNotifications": many(NOTIFICATION),
    }
)
DRIVER = closed({"name": TEXT, "version": TEXT, "informationUri": TEXT, "rules": many(RULE)})
RUN = closed(
    {
        "tool": closed({"driver": DRIVER}),
        "automationDetails": closed({"id": {"type": "string", "pattern": "/$"}}),
        "invocations": many(INVOCATION),
        "language": {"const": "en"},
        "columnKind": {"const": "unicodeCodePoints"},
        "originalUriBaseIds": closed({RUN_DIR: closed({"description": MESSAGE})}),
        "results": many(RESULT),
        "properties": BAG,
    }
)
SARIF = closed(
    {"$schema": TEXT, "version": {"const": "2.1.0"}, "runs": {**many(RUN), "minItems": 1}}
)


def run_of(data, wishes=None):
    document = json.loads(render_sarif(data, wishes))
    jsonschema.validate(document, SARIF)
    (run,) = document["runs"]
    return run


@pytest.mark.parametrize("make", samples.ALL)
def test_every_report_is_valid_and_hostile_text_stays_text(make):
    run_of(make())
    run = run_of(samples.filled(make(), samples.HOSTILE))

    assert "](" not in json.dumps([result["message"] for result in run["results"]])


def test_result_has_place_rank_and_rule():
    run = run_of(samples.inactive())
    result = run["results"][1]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]

    assert (result["ruleId"], rule["id"], result["level"]) == ("HCP101", "HCP101", "error")
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {
        "uri": "logs/rank_00031.log",
        "uriBaseId": RUN_DIR,
    }
    region = place["physicalLocation"]["region"]
    assert region["startLine"] == 904
    assert region["snippet"]["text"].startswith(" iteration 1/ 5000")
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "attempt 1/rank 31"
    assert result["properties"]["iteration"] == 1
    assert result["properties"]["confidence"] == "high"
    assert "codeFlows" not in result


def test_rules_have_help_default_level_and_a_page_or_a_reference():
    rules = {rule["id"]: rule for rule in run_of(samples.inactive())["tool"]["driver"]["rules"]}
    rule = rules["HCP002"]

    assert rule["helpUri"] == "https://example.org/HCP002.md"
    assert rule["defaultConfiguration"]["level"] == "error"
    assert rule["shortDescription"]["text"] == "The hcp-sizes-missing rule fired."
    assert "## Fix\n\nSet `--hierarchical-context-parallel-sizes 8 2`" in rule["help"]["markdown"]
    assert "Fix:\n\nSet `--hier" in rule["help"]["text"]
    assert "When it is wrong:\n\n- a fork" in rule["help"]["text"]
    assert "helpUri" not in rules["HCP904"]
    assert rules["HCP013"]["properties"] == {
        "precision": "low",
        "problem.severity": "recommendation",
    }


def test_evidence_of_several_logs_is_a_flow_with_a_thread_per_log():
    data = samples.inactive()
    places = (
        Location("b.log", 9, "RuntimeError", 1),
        Location("a.log", 30, "broken pipe", 0),
        Location("a.log", 20, "time-out", 0),
    )
    found = dataclasses.replace(data.findings[0], evidence=places, evidence_total=3)
    result = run_of(dataclasses.replace(data, findings=(found,)))["results"][0]
    (flow,) = result["codeFlows"]
    threads = {
        thread["id"]: [
            (step["location"]["physicalLocation"]["region"]["startLine"], step["importance"])
            for step in thread["locations"]
        ]
        for thread in flow["threadFlows"]
    }

    assert list(threads.items()) == [
        ("rank 1 in b.log", [(9, "essential")]),
        ("rank 0 in a.log", [(20, "important"), (30, "important")]),
    ]
    assert [place["id"] for place in result["relatedLocations"]] == [1, 2]


def test_finding_without_a_line_is_about_the_run_directory():
    (result,) = [r for r in run_of(samples.inactive())["results"] if r["ruleId"] == "HCP904"]

    (place,) = result["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": ".", "uriBaseId": RUN_DIR}}
    assert [each["name"] for each in place["logicalLocations"]] == ["rank 30", "rank 31"]


def test_files_are_uris_and_braces_no_placeholders():
    data = samples.inactive()
    places = (Location("a b/x:y#%.tar.gz!/r\udcffé.log", 1, "t"),)
    found = dataclasses.replace(data.findings[0], evidence=places, message="config={'cp': {0}}")
    result = run_of(dataclasses.replace(data, findings=(found,)))["results"][0]

    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%20b/x%3Ay%23%25.tar.gz!/r%FF%C3%A9.log"
    assert result["message"]["text"] == "config={{'cp': {{0}}}}"


def test_fingerprints_tell_findings_of_a_run_apart_and_outlive_growing_logs():
    data = samples.inactive()
    first = dataclasses.replace(data.findings[0], evidence=(), message="grown", evidence_total=9)
    again = dataclasses.replace(data.findings[0], attempt=0)

    def prints(*findings, run=data.run):
        results = run_of(dataclasses.replace(data, findings=findings, run=run))["results"]
        return [result["partialFingerprints"][FINGERPRINT] for result in results]

    assert prints(first) == prints(data.findings[0])
    assert len(set(prints(*data.findings, again))) == len(data.findings) + 1
    assert prints(first, run=dataclasses.replace(data.run, name="other")) != prints(first)


@pytest.mark.parametrize(
    ("wishes", "code"),
    [
        (Wishes(), 1),
        (Wishes(fail_on=None), 0),
        (Wishes(fail_on=None, expect=("active",)), 1),
        (Wishes(fail_on=None, expect=("inactive",)), 0),
        (Wishes(fail_on=None, strict=True), 1),
    ],
)
def test_invocation_has_the_exit_code_and_what_was_not_read(wishes, code):
    (invocation,) = run_of(samples.inactive(), wishes)["invocations"]
    said = [each["message"]["text"] for each in invocation["toolExecutionNotifications"]]

    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (code, True)
    assert said == [
        "logs/rank_00030.log.gz could not be read: not a gzip file",
        "cut off: logs/rank_00012.log: the last line has no end",
        "3 lines have a format that megatron_iteration does not know:  iteration 7/ 10 elapsed",
    ]


def test_verdict_and_attempts_are_properties_of_the_run():
    properties = run_of(samples.inactive())["properties"]

    assert (properties["verdict"], properties["confidence"]) == ("inactive", "high")
    assert [each["outcome"] for each in properties["attempts"]] == ["rejected", "time_limit"]
    assert properties["inconclusive"] == ["HCP008"]
