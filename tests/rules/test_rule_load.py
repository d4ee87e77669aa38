"""Loading rule files: what is refused, and that the message says where."""

from __future__ import annotations

import pytest
import yaml
from rule_files import rule_data, write

from hcp_logscan.model import bundled
from hcp_logscan.model.errors import HcpLogscanError, RuleError
from hcp_logscan.rules import load, yamlfile


def refused(tmp_path, text, match):
    path = tmp_path / "USR001-cp-too-big.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RuleError, match=match) as caught:
        load.load_file(path)
    assert str(path) in str(caught.value)


def test_shipped_rules_load_sorted_by_id():
    rules = load.load_rules()
    assert len(rules) >= 37
    assert [rule.id for rule in rules] == sorted(rule.id for rule in rules)


def test_users_files_and_directories_join_the_shipped_rules(tmp_path):
    single = write(tmp_path)
    folder = tmp_path / "more"
    folder.mkdir()
    write(folder, id="USR002", name="other")
    ids = [rule.id for rule in load.load_rules([single, folder])]
    assert ids[-2:] == ["USR001", "USR002"]


def test_one_file_given_twice_is_one_rule(tmp_path):
    path = write(tmp_path)
    assert len(load.load_paths([path, tmp_path])) == 1


def test_a_shipped_id_cannot_be_taken(tmp_path):
    with pytest.raises(RuleError, match="HCP004 is also the id of"):
        load.load_rules([write(tmp_path, id="HCP004")])


def test_all_mistakes_of_all_files_come_in_one_error(tmp_path):
    write(tmp_path, id="USR001", when="cp_sise > 1")
    write(tmp_path, id="USR002", severity="fatal", confidence="sure")
    with pytest.raises(RuleError) as caught:
        load.load_paths([tmp_path, tmp_path / "absent.yaml"])
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert "cp_sise" in lines[0]
    assert "severity" in lines[1]
    assert "confidence" in lines[2]
    assert "no such file" in lines[3]


def test_an_error_names_the_line(tmp_path):
    path = write(tmp_path, severity="fatal")
    line = path.read_text().splitlines().index("severity: fatal") + 1
    with pytest.raises(RuleError, match=rf":{line}: severity"):
        load.load_file(path)


def test_an_error_inside_an_example_names_its_line(tmp_path):
    examples = [{"name": "a", "outcome": "fires", "facts": {"cp_sise": 9}}]
    path = write(tmp_path, examples=examples)
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if "cp_sise" in text)
    with pytest.raises(RuleError, match=rf":{line}: example `a`: `cp_sise` is no fact"):
        load.load_file(path)


def test_an_empty_directory_is_an_error(tmp_path):
    with pytest.raises(RuleError, match="no rule in this directory"):
        load.load_paths([tmp_path])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("id: USR001\nid: USR002\n", ":2: `id` stands twice, first in line 1"),
        ("examples:\n- {name: a, name: b}\n", ":2: `name` stands twice"),
        ("a: &x [1]\nb: *x\n", ":1: anchors and aliases"),
        ("b: *x\n", ":1: anchors and aliases"),
        ("a: " + "[" * 40 + "]" * 40, "nested deeper"),
        ("a: [1\n", "not YAML"),
        ("a: !!python/object:os.system {}\n", ":1: tags are not allowed"),
        ("a: 2031-02-30\n", "not YAML"),
        ("", "the file is empty"),
        ("- 1\n", "a rule is a mapping"),
        ("id: [1, 2]\nid2: ? \n", "not YAML|no such field"),
        (b"id: \xff\n", ":1: this is not UTF-8"),
        (b"# " + b"x" * (yamlfile.MAX_BYTES + 1), "larger than 256 KiB"),
        ("id: USR001\na: ok\x00\n", "not YAML"),
    ],
)
def test_odd_yaml_is_refused(tmp_path, text, match):
    refused(tmp_path, text, match)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"id": "USR1"}, "id:"),
        ({"name": "Not Kebab"}, "name:"),
        ({"colour": "red"}, "colour: no such field; a rule has id"),
        ({"summary": "  "}, "summary:"),
        ({"over": "groups"}, "over:"),
        ({"when": None}, "when: it is missing"),
        ({"when": "limit > 1"}, "names no fact"),
        ({"examples": "none"}, "examples: "),
        ({"examples": [{"name": "a", "outcome": "fires", "facts": {}, "x": 1}]}, "field here"),
        ({"when": "x" * 3000}, "at most 2000"),
        ({"params": {"limit": float("nan")}}, "params"),
        ({"params": {"limit": [1]}}, "params"),
        ({"params": {"cp_size": 1}, "when": "cp_size > 1"}, "name of a column"),
        ({"message": "{cp_size.real}"}, "plain name"),
        ({"message": "{cp_size[0]}"}, "plain name"),
        ({"message": "{cp_size!r}"}, "plain name"),
        ({"message": "{0}"}, "plain name"),
        ({"message": "{}"}, "plain name"),
        ({"message": "{cp_size:>1000000}"}, "is no format"),
        ({"message": "{cp_comm_type:.1f}"}, "formats a number"),
        ({"message": "{nothing}"}, "no fact of"),
        ({"message": "{count}"}, "no fact of"),
        ({"message": "{open"}, "write {{ and }}"),
        ({"ranks": "cp_comm_type"}, "not a column of whole numbers"),
        ({"iteration": "culprit_ranks"}, "not a column of whole numbers"),
        ({"evidence": {"secrets": "TRUE"}}, "no event table `secrets`"),
        ({"evidence": {"config": "keys = 'a'"}}, "did you mean `key`"),
        ({"evidence": {"config": "line"}}, "it gives a whole number"),
        ({"references": ["ftp://x"]}, "references"),
        ({"never": ["clean"]}, "stand together"),
        ({"examples": [{"name": "a", "outcome": "fires"}]}, "exactly one of"),
        ({"examples": [{"name": "a", "outcome": "fires", "facts": {}, "log": "x"}]}, "exactly one"),
        ({"zh": {"summary": "a", "message": "{nothing}", "why": "c", "fix": "d"}}, "zh.message"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(tmp_path, changes, match):
    refused(tmp_path, yaml.safe_dump(rule_data(**changes), sort_keys=False), match)


def test_a_null_test_needs_its_reason(tmp_path):
    when = "COALESCE(cp_size, 0) > limit"
    with pytest.raises(RuleError, match="null_reason"):
        load.load_file(write(tmp_path, when=when))
    assert load.load_file(write(tmp_path, when=when, null_reason="absent means 0")).when == when


def test_rules_are_frozen(tmp_path):
    rule = load.load_file(write(tmp_path))
    with pytest.raises(ValueError, match="frozen"):
        rule.severity = "error"


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(RuleError, match="cannot be read"):
        load.load_file(tmp_path)


def test_the_wheel_carries_the_rules_beside_the_module(tmp_path, monkeypatch):
    for folder in ("rules/bundled", "../rules"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(bundled.resources, "files", lambda _: tmp_path)
    assert bundled.bundled_dir() == tmp_path / "rules" / "bundled"


def test_missing_shipped_rules_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled.resources, "files", lambda _: tmp_path / "package")
    with pytest.raises(HcpLogscanError, match="reinstall"):
        bundled.bundled_dir()


def test_text_of_a_rule_file_cannot_act_on_the_terminal_that_shows_its_errors(tmp_path):
    bad = [{"name": "\x1b[31m", "outcome": "fires", "facts": {"cp_sise": 9}}]
    with pytest.raises(RuleError, match="example `␛") as caught:
        load.load_file(write(tmp_path, examples=bad))
    assert "\x1b" not in str(caught.value)
