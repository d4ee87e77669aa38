"""What is a secret and what only looks like one, and that a report loses the former alone."""

import dataclasses
import time

import polars as pl
import pytest
import samples
from hypothesis import given, settings
from hypothesis import strategies as st
from secret_texts import KEY40, NAMED, NEAR_MISSES, PASSWORD, PLACEHOLDER, TOKENS, encoded

from hcp_logscan.model.finding import Location
from hcp_logscan.model.report import REDACTION_LEVELS, ConfigEntry, Redaction
from hcp_logscan.reporting.json import render_json
from hcp_logscan.reporting.redact import LEVELS, redact, redact_text


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:7])
@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("with ", " in a line"), ("logs/", ".log"), ("x?u=%2F", "&y"), ("'\\n", "'")],
)
def test_token_of_a_known_shape_is_hidden_alone(token, before, after):
    if token.startswith(("SG", "ey")) and after.startswith("."):
        pytest.skip("a dot belongs to these tokens")
    shown = redact_text(before + token + after)

    assert token not in shown
    assert PLACEHOLDER.sub("|", shown).split("|") in ([before, after], [before, ""])


@pytest.mark.parametrize(("before", "secret", "after"), NAMED)
def test_secret_that_is_named_is_hidden_alone(before, secret, after):
    shown = redact_text(before + secret + after)

    assert secret not in shown
    assert PLACEHOLDER.sub("\0", shown).split("\0") == [before, after]


@pytest.mark.parametrize("text", NEAR_MISSES)
def test_what_only_looks_like_a_secret_stays(text):
    assert redact_text(text) == text


@pytest.mark.parametrize(("before", "secret", "after"), NAMED)
def test_level_none_hides_nothing(before, secret, after):
    text = before + secret + after

    assert redact_text(text, "none") == text


def test_tables_are_as_long_as_they_should_be():
    assert len(TOKENS) + len(NAMED) >= 60
    assert len(NEAR_MISSES) >= 60


SEPARATORS = (
    " ",
    "=",
    ": ",
    '"',
    "'",
    "\\",
    "\n",
    ", ",
    "@",
    "://",
    "--token ",
    "[",
    "[redacted token 3]",
)
PIECES = st.sampled_from(
    (*TOKENS[:12], *(part for row in NAMED for part in row[:2]), *NEAR_MISSES[:30], *SEPARATORS)
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=10).map("".join))
def test_redacting_twice_changes_nothing(text):
    once = redact_text(text)

    assert redact_text(once) == once


def with_lines(data, *lines, file="train.log", context=()):
    places = tuple(Location(file, n, line, None, context) for n, line in enumerate(lines, 1))
    first = dataclasses.replace(data.findings[0], evidence=places)
    return dataclasses.replace(data, findings=(first, *data.findings[1:]))


def test_equal_secrets_are_seen_to_be_equal_and_numbered_in_order():
    one, two = TOKENS[0], TOKENS[6]
    data = redact(with_lines(samples.inactive(), f"a {one}", f"b {two}", f"c {one} {two}"))

    assert [place.text for place in data.findings[0].evidence] == [
        "a [redacted github token 1]",
        "b [redacted gitlab token 2]",
        "c [redacted github token 1] [redacted gitlab token 2]",
    ]
    assert data.redaction == Redaction("secrets", 2)


def test_secret_that_one_line_names_is_hidden_in_others():
    data = with_lines(samples.inactive(), f"error 401 for {KEY40}", f"WANDB_API_KEY={KEY40}")

    assert KEY40 not in render_json(redact(data))


def test_word_that_is_a_password_stays_elsewhere():
    data = with_lines(samples.inactive(), "password: training", "training starts")

    assert [place.text for place in redact(data).findings[0].evidence] == [
        "password: [redacted password 1]",
        "training starts",
    ]


def test_placeholders_that_a_log_holds_keep_their_numbers():
    data = redact(with_lines(samples.inactive(), "[redacted token 1]", f"token={PASSWORD}"))

    assert data.findings[0].evidence[1].text == "token=[redacted token 2]"


def test_report_without_secrets_is_the_same_objects():
    data = samples.inactive()
    shown = redact(data)

    assert shown.redaction == Redaction("secrets", 0)
    for field in dataclasses.fields(data):
        if field.name != "redaction":
            assert getattr(shown, field.name) is getattr(data, field.name)


@pytest.mark.parametrize("make", samples.ALL)
def test_every_text_of_a_report_is_covered(make):
    token = TOKENS[0]
    frame = pl.DataFrame(
        {
            "file": ["a.log", token, None],
            "count": [1, 2, 3],
            "list": [[token], [], ["x", token]],
            "kind": pl.Series([token, "b", None], dtype=pl.Categorical),
        }
    )
    data = samples.filled(make(), f"a {token} b")
    attempts = tuple(
        dataclasses.replace(a, facts={token: [token], "series": pl.Series([token]), "set": {token}})
        for a in data.attempts
    )
    data = dataclasses.replace(data, iterations=frame, attempts=attempts)
    shown = redact(data)

    assert token not in repr(shown)
    assert token not in str(shown.iterations.to_dicts())
    assert all(token not in str(list(a.facts["series"])) for a in shown.attempts)
    assert shown.iterations["count"].to_list() == [1, 2, 3]
    assert shown.iterations["file"].to_list() == ["a.log", "[redacted github token 1]", None]
    assert shown.redaction.hidden == 1
    assert shape(shown) == shape(dataclasses.replace(data, redaction=shown.redaction))


def shape(value):
    """A value with every text taken out."""
    if isinstance(value, str):
        return ""
    if isinstance(value, pl.DataFrame):
        return value.shape
    if dataclasses.is_dataclass(value):
        return {f.name: shape(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return [shape(item) for item in value.values()]
    if isinstance(value, (tuple, list, set, pl.Series)):
        return [shape(item) for item in value]
    return value


def test_redacting_a_report_twice_changes_nothing():
    once = redact(with_lines(samples.inactive(), *(row[0] + row[1] + row[2] for row in NAMED)))

    assert once.redaction.hidden >= 24
    assert not [secret for _, secret, _ in NAMED if len(secret) > 4 and secret in repr(once)]
    assert render_json(redact(once)) == render_json(once)


def test_name_in_one_field_hides_the_value_in_another():
    data = samples.inactive()
    entries = [
        ConfigEntry("args_dump", "", "wandb_api_key", "abc", "a.log", 3),
        ConfigEntry("bridge_yaml", "model", "tokenizer_model", "llama", "a.log", 4),
        ConfigEntry("bridge_yaml", "model", "hf_token", "None", "a.log", 5),
    ]
    attempt = dataclasses.replace(
        data.attempts[0], facts={"db_password": "abc", "api_key": None}, full_config=tuple(entries)
    )
    shown = redact(dataclasses.replace(data, attempts=(attempt,))).attempts[0]

    assert [entry.value for entry in shown.full_config] == [
        "[redacted password 1]",
        "llama",
        "None",
    ]
    assert shown.facts == {"db_password": "[redacted password 1]", "api_key": None}


def key_lines():
    body = encoded(300)
    return ["-----BEGIN RSA PRIVATE KEY-----", *(body[i : i + 64] for i in range(0, 320, 64))]


@pytest.mark.parametrize("label", ["", "[rank3]: ", "0: "])
@pytest.mark.parametrize("part", ["whole", "head", "tail", "middle"])
def test_private_key_over_several_lines_is_hidden_and_lines_stay_in_place(part, label):
    whole = [*key_lines(), "-----END RSA PRIVATE KEY-----"]
    lines = {"whole": whole, "head": whole[:4], "tail": whole[-4:], "middle": whole[2:5]}[part]
    texts = ["before it", *(label + line for line in lines), "and after it"]
    context = tuple(enumerate(texts, start=7))
    data = redact(with_lines(samples.inactive(), "x", context=context))
    shown = data.findings[0].evidence[0].context

    assert [number for number, _ in shown] == [number for number, _ in context]
    assert shown[0] == context[0]
    assert shown[-1] == context[-1]
    for line in lines:
        if "-----" not in line:
            assert line not in str(shown)


def test_several_private_keys_on_one_line_are_hidden():
    begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    one, two, three = (encoded(count) for count in (30, 33, 36))
    shown = redact_text(f"{begin}{one}{end} {begin}{two}{end}\n{begin}\n{three}\n{begin}\nx\n{end}")

    assert not [key for key in (one, two, three) if key in shown]
    assert shown.count("\n") == 5


def test_lines_with_line_ends_of_their_own_are_redacted_one_by_one():
    begin = f"-----BEGIN PRIVATE KEY-----\n{encoded(48)}"
    context = ((1, begin), (2, f"token={PASSWORD}"))
    data = redact(with_lines(samples.inactive(), "x", context=context))

    assert data.findings[0].evidence[0].context == (
        (1, "-----BEGIN PRIVATE KEY-----\n[redacted private key 1]"),
        (2, "token=[redacted token 2]"),
    )


@pytest.mark.parametrize("length", [200, 2_000])
def test_token_that_a_cut_text_ends_in_is_hidden(length):
    head = "x " * (length // 2 - 10)
    for start in (TOKENS[0][:14], TOKENS[8][:14], "https://trainer:" + PASSWORD[:4]):
        line = (head + "y" * length)[: length - len(start) - 1] + " " + start
        assert len(line) == length
        assert start not in redact_text(line)
    assert redact_text("x" * (length - 8) + " hf_model") == "x" * (length - 8) + " hf_model"


def test_names_with_bytes_that_are_no_utf8_are_read():
    assert redact_text(f"\udcff {TOKENS[0]} é") == "\udcff [redacted github token 1] é"


HOSTILE = {
    "assignments": "a=",
    "names": "token=",
    "keys": "api_key: ",
    "flags": "--token ",
    "dots": "key ....",
    "quotes": "password='",
    "escapes": 'password=\\"',
    "urls": "://a:",
    "begins": "-----BEGIN PRIVATE KEY-----",
    "begin lines": "-----BEGIN PRIVATE KEY-----\n",
    "ends": "-----END PRIVATE KEY-----\n",
    "halves": "-----BEGIN RSA PRIVATE ",
    "base64": "A1b",
    "jwt": "eyJ-",
    "jwt dots": "eyJabcdefgh.",
    "cookies": "cookie:",
    "logins": "docker login ",
    "curls": "curl -u ",
    "tokens": "sk-ant-sk-",
    "names in a row": "token_",
    "blanks": " ",
    "bars": "| ",
    "cells": "| password ",
    "commands": "mysql -p",
    "options": "zip -P ",
    "sentences": "password is ",
    "placeholders": "[redacted token 1]",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_time_grows_with_the_length_of_a_hostile_text(unit):
    def taken(size):
        text = (unit * (size // len(unit) + 1))[:size]
        start = time.process_time()
        redact_text(text)
        return time.process_time() - start

    small, large = (min(taken(size) for _ in range(3)) for size in (6_000, 48_000))

    assert large < max(8 * 4 * small, 0.5)  # eight times the text; quadratic would be 64 times


def test_report_of_ordinary_lines_costs_little():
    line = (
        "[rank3]: iteration 17/ 100 | tokens per gpu: 8192 | tokenizer HuggingFaceTokenizer " * 24
    )
    places = tuple(Location("train.log", n, f"{line[:1_980]} {n}") for n in range(1, 20_001))
    data = samples.inactive()
    data = dataclasses.replace(
        data, findings=(dataclasses.replace(data.findings[0], evidence=places),)
    )
    start = time.process_time()
    shown = redact(data)

    assert shown.findings[0] is data.findings[0]
    assert time.process_time() - start < 20


def test_every_level_of_the_model_has_its_detectors():
    assert tuple(LEVELS) == REDACTION_LEVELS
