"""The level `all`: who and where is hidden under stable names, and nothing else is."""

import dataclasses
import json
import time

import identity_texts
import polars as pl
import pytest
import samples
import secret_texts

from hcp_logscan.model.finding import Location
from hcp_logscan.model.report import ConfigEntry, Redaction
from hcp_logscan.reporting.json import render_json
from hcp_logscan.reporting.redact import redact, redact_text
from hcp_logscan.rules.load import load_rules


def test_names_are_replaced_and_nothing_else():
    shown = {text: redact_text(text, "all") for text, _ in identity_texts.NAMED}

    wrong = [(text, shown[text]) for text, wanted in identity_texts.NAMED if shown[text] != wanted]
    assert not wrong
    assert not [text for text in shown.values() if redact_text(text, "all") != text]


def test_what_only_looks_like_a_name_stays():
    changed = {text: redact_text(text, "all") for text in identity_texts.NEAR_MISSES}

    assert not [pair for pair in changed.items() if pair[0] != pair[1]]


def test_secrets_are_hidden_as_at_their_own_level():
    for before, secret, after in secret_texts.NAMED:
        assert secret not in redact_text(before + secret + after, "all")
    for text in secret_texts.TOKENS:
        assert redact_text(text, "all") == redact_text(text)


def test_names_are_no_secrets():
    for text, _ in identity_texts.NAMED:
        assert redact_text(text) == text


def test_tables_are_as_long_as_they_should_be():
    assert len(identity_texts.NAMED) >= 60
    assert len(identity_texts.NEAR_MISSES) >= 60


def with_lines(data, *lines, file="train.log"):
    places = tuple(Location(file, n, line) for n, line in enumerate(lines, 1))
    first = dataclasses.replace(data.findings[0], evidence=places)
    return dataclasses.replace(data, findings=(first, *data.findings[1:]))


HOSTS = ("node10", "node2", "hydra", "gpu", "7", "localhost", "dgx-a", "dgx-a-1")


def test_hosts_of_the_structure_are_hidden_wherever_they_stand_in_natural_order():
    lines = (
        "node10: no prefix says so",
        "rank_node2_40, node2.hpc.example.org, node2.log, node20, xnode2, node2x",
        "dgx-a-1 is not dgx-a, nor is dgx-a-12 (hydra.core)",
        "gpu 7 and hydra are words",
    )
    data = with_lines(samples.inactive(), *lines, file="node10/rank0.log")
    places = redact(data, "all", HOSTS).findings[0].evidence

    assert places[0].file == "host-6/rank0.log"
    assert [place.text for place in places] == [
        "host-6: no prefix says so",
        "rank_host-5_40, host-5, host-5.log, node20, xnode2, node2x",
        "host-2 is not host-1, nor is host-1-12 (hydra.core)",
        "gpu 7 and hydra are words",
    ]


def test_names_agree_in_all_of_a_report_and_its_tables():
    data = with_lines(
        samples.inactive(), "bschmidt waits for node3", "USER=bschmidt on 10.0.0.7", "10.0.0.8"
    )
    frame = pl.DataFrame(
        {
            "key": ["master_addr", "tokenizer_model"],
            "value": ["node9", "bschmidt/llama"],
            "file": ["node3/a.log", "b.log"],
            "host": ["node3", None],
        }
    )
    alone = redact(data, "all", ("node3",))
    shown = redact(dataclasses.replace(data, tables={"config": frame}), "all", ("node3",))

    assert [place.text for place in alone.findings[0].evidence] == [
        "user-1 waits for host-1",
        "USER=user-1 on ip-1",
        "ip-2",
    ]
    assert shown.findings == alone.findings
    assert shown.tables["config"].to_dict(as_series=False) == {
        "key": ["master_addr", "tokenizer_model"],
        "value": ["host-2", "user-1/llama"],
        "file": ["host-1/a.log", "b.log"],
        "host": ["host-1", None],
    }
    assert alone.redaction == Redaction("all", 0, 4)


def test_name_in_one_field_hides_the_value_in_another():
    data = samples.inactive()
    entries = (
        ConfigEntry("args_dump", "", "master_addr", "fenrir", "a.log", 3),
        ConfigEntry("args_dump", "", "wandb_entity", "my-lab", "a.log", 4),
        ConfigEntry("args_dump", "", "tokenizer_model", "fenrir", "a.log", 5),
        ConfigEntry("args_dump", "", "master_addr", "localhost", "a.log", 6),
        ConfigEntry("args_dump", "", "hf_token", "swordfish", "a.log", 7),
    )
    said = f"10.0.0.7 refused token={secret_texts.PASSWORD}"
    attempt = dataclasses.replace(data.attempts[0], full_config=entries, facts={"message": said})
    shown = redact(dataclasses.replace(data, attempts=(attempt,)), "all").attempts[0]

    values = [entry.value for entry in shown.full_config]
    assert shown.facts == {"message": "ip-1 refused token=[redacted token 1]"}
    assert values == ["host-1", "user-1", "host-1", "localhost", "[redacted token 2]"]


def test_texts_of_rules_name_nobody():
    texts = [
        text
        for rule in load_rules()
        for text in (rule.summary, rule.why, rule.fix, *rule.false_positives, *rule.references)
    ]

    assert redact_text("\n".join(texts), "all") == "\n".join(texts)


def test_numbers_that_a_log_uses_are_passed_over():
    data = with_lines(samples.inactive(), "host-1 and user-1", "/home/alice", "node7")
    shown = redact(data, "all", ("node7", "host-1"))

    assert [place.text for place in shown.findings[0].evidence] == [
        "host-1 and user-1",
        "/home/user-2",
        "host-2",
    ]


def test_redacting_a_report_twice_changes_nothing():
    data = with_lines(samples.inactive(), *(text for text, _ in identity_texts.NAMED))
    once = redact(data, "all", ("node0",))

    assert render_json(redact(once, "all")) == render_json(once)
    assert json.loads(render_json(once))["redaction"]["pseudonyms"] > 30


@pytest.mark.parametrize("make", samples.ALL)
def test_every_text_of_a_report_is_covered(make):
    shown = redact(samples.filled(make(), "at node77 by /home/alice/x"), "all", ("node77",))

    assert not [name for name in ("node77", "alice") if name in repr(shown)]


UNITS = (
    "a.",
    "1.",
    "1.1.1.1.",
    "10.0.0.7,",
    "f:",
    "ab::",
    "a@",
    "a@b.",
    "a-",
    "node:1:",
    "NCCL a:1:2 ",
    "host : ",
    "HOSTNAME=a",
    "SLURM_",
    "SLURM_NODELIST=a[1,",
    "tcp://",
    "tcp://a@",
    "http://a:",
    "/home/",
    "/home/a",
    "HOME=/a/",
    "~a",
    "user = ",
    "logged in as a ",
    " 10:00:00 a",
    "ip-1-",
    ".local",
    "a.local",
    "host-",
    "node1-",
    "JOB 1 ON ",
    " ",
)


def test_time_grows_with_the_length_of_a_hostile_text():
    def taken(text):
        start = time.process_time()
        redact_text(text, "all")
        return time.process_time() - start

    slow = []
    for unit in UNITS:
        # the least of three: a pass of the garbage collector takes longer than the text
        small, large = (
            min(taken((unit * size)[:size]) for _ in range(3)) for size in (2_000, 16_000)
        )
        if large > max(8 * 4 * small, 0.2):  # eight times the text; quadratic would be 64 times
            slow.append((unit, small, large))
    assert not slow
