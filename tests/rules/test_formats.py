"""Line formats of users: each mistake has a place, a reason and a next move; all of them at once."""

import os
from pathlib import Path

import pytest

from hcp_logscan.cli.app import main
from hcp_logscan.model.errors import RuleError
from hcp_logscan.rules import formats, load

GOOD = """\
format: acme-step
table: iterations
needle: "acme step "
pattern: 'acme step (?P<iteration>[0-9]+) loss (?P<lm_loss>[^ ]+) in (?P<step_ms>[0-9.]+) s'
units:
  step_ms: s
samples:
  - line: "[rank3]: acme step 7 loss 2.5 in 5.12 s"
    gives: {iteration: 7, lm_loss: 2.5, step_ms: 5120}
refuses:
  - acme stepped back
"""
CHECKPOINT = """\
format: acme-save
table: checkpoints
kind: saved
needle: 'acme kept '
pattern: 'acme kept (?P<iteration>[0-9]+)'
samples: [{line: acme kept 8, gives: {iteration: 8}}]
refuses: [acme lost 8]
"""
RULE = """\
id: USR001
name: cp-too-big
summary: the CP size is above the limit
severity: warning
confidence: high
over: attempts
params: {limit: 8}
when: cp_size > limit
message: CP size {cp_size} is above {limit}.
why: It is slow.
fix: Lower it.
examples:
  - {name: above, outcome: fires, facts: {cp_size: 9}}
  - {name: at the limit, outcome: clean, facts: {cp_size: 8}}
  - {name: not logged, outcome: inconclusive, facts: {}}
"""


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


def problems(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RuleError) as error:
        formats.load_formats([path])
    return str(error.value).replace(f"{tmp_path}/", "")


BROKEN = {
    "unknown field": (GOOD + "nedle: x\n", ":12: nedle: no such field", "did you mean `needle`?"),
    "no table": (changed("table: iterations\n", ""), ":1: table: it is missing", "what a line is"),
    "unknown table": (
        changed("table: iterations", "table: iteration"),
        ":2: table: 'iteration' is not known here",
        "did you mean `iterations`",
    ),
    "name": (changed("acme-step", "Acme Step"), ":1: format: a name is made of", "acme-step"),
    "name of a known framework": (
        changed("acme-step", "megatron"),
        ":1: format: megatron is a framework that is known already",
        "your own trainer",
    ),
    "kind where there is none": (GOOD + "kind: saved\n", ":12: kind: lines of `iter", "leave"),
    "kind that is missing": (
        CHECKPOINT.replace("kind: saved\n", ""),
        ":1: kind: it is missing",
        "loaded (the run resumed",
    ),
    "kind that is none": (
        CHECKPOINT.replace("kind: saved", "kind: [saved]"),
        ":3: kind: a list is not known",
        "there are: saved",
    ),
    "needle that is short": (changed('"acme step "', "'ép'"), ":3: needle: 3 bytes", "take 4"),
    "needle of two lines": (changed('"acme step "', r'"acme\nstep"'), ":3: needle: it h", "within"),
    "needle that is long": (
        changed('"acme step "', "x" * 201),
        ":3: needle: more than 200",
        "part",
    ),
    "needle that is a number": (
        changed('"acme step "', "12345"),
        ":3: needle: a text must",
        "quotes",
    ),
    "needle that the sample lacks": (
        changed('"acme step "', "'ACME step '"),
        ":8: sample 1: the needle 'ACME step ' is not in it",
        "every line of the format",
    ),
    "needle that other lines have": (
        changed("acme stepped", "acme step was"),
        ":11: refused line 1: the needle stands in it",
        "add `drift: false`",
    ),
    "pattern that is none": (
        changed("(?P<lm_loss>[^ ]+)", "(?P<lm_loss>[^ ]+"),
        ":4",
        "missing )",
    ),
    "pattern with a wrong sign": (
        changed("acme step (", "*acme step ("),
        ":4:11: pattern:",
        "regex",
    ),
    "pattern without a number": (
        changed("(?P<iteration>[0-9]+)", "[0-9]+"),
        ":4: pattern: it has no group `iteration`",
        "(?P<iteration>...)",
    ),
    "group that is no column": (
        changed("<lm_loss>", "<loss>"),
        ":4:52: pattern: the group `loss` is no column of `iterations`",
        "did you mean `lm_loss`?",
    ),
    "pattern that writes itself out": (
        changed("[0-9.]+", "(?:(?:[0-9]{1000}){1000}){1000}"),
        ":4: pattern: repeats a part of itself more than 10,000 times",
        "write * or +",
    ),
    "pattern that is too deep": (
        changed("[0-9.]+", "(" * 900 + "x" + ")" * 900),
        ":4: pat",
        "simpler",
    ),
    "pattern that is too long": (
        changed("[0-9.]+", "x" * 5000),
        ":4: pattern: more than 4,000",
        "",
    ),
    "pattern that is slow": (
        changed("[0-9.]+) s'", "[0-9.]+) s(?=(?:b*)*c)'").replace("5.12 s", "5.12 s" + "b" * 7000),
        ":8: sample 1: the pattern takes longer than 50 ms",
        "avoid a repetition inside another",
    ),
    "unit of another column": (
        changed("step_ms: s", "step_ms: GFLOP/s"),
        ":6: units: 'GFLOP/s' is no unit of `step_ms`; that is another column's",
        "there are ms, us, s, min",
    ),
    "two units": (changed("step_ms: s", "step_ms: [s, min]"), ":6: units: of ms, us", "keep one"),
    "unit of a group that is not there": (
        changed("step_ms: s", "mfu: percent"),
        ":6: units: the",
        "",
    ),
    "units that are a list": (
        changed("  step_ms: s", "  - s"),
        ":5: units: `group: unit`",
        "step_ms",
    ),
    "unit that is a mapping": (
        changed("step_ms: s", "step_ms: [{s: s}]"),
        ":6: units: a ma",
        "there",
    ),
    "no samples": (
        GOOD[: GOOD.index("samples")] + "samples: []\nrefuses: [x]\n",
        ":7: samples:",
        "",
    ),
    "no refused lines": (GOOD[: GOOD.index("refuses")], ":1: refuses: it is missing", "a list"),
    "sample that is a text": (
        changed('- line: "', '- "').replace(
            "    gives: {iteration: 7, lm_loss: 2.5, step_ms: 5120}\n", ""
        ),
        ":8: sample 1: `line` and `gives` must stand here",
        "write `- line:",
    ),
    "sample of two lines": (
        changed("acme step 7", r"acme\nstep 7"),
        ":8: sample 1: several",
        "each",
    ),
    "value that is wrong": (
        changed("step_ms: 5120", "step_ms: 5.12"),
        ":9: sample 1: gives: step_ms must be 5.12, and the pattern reads 5120.0",
        "its unit or the value",
    ),
    "value that is left out": (
        changed(", step_ms: 5120", ""),
        ":9: sample 1: it gives step_ms = 5120.0, too",
        "if that is right, add step_ms: 5120.0",
    ),
    "value that is not read": (
        changed("loss 2.5", "loss none"),
        ":9: sample 1: gives: lm_loss must be 2.5, and the pattern reads none",
        "may be absent",
    ),
    "value of the wrong kind": (
        changed("{iteration: 7", "{iteration: '7'"),
        ":9: sample 1: gives: `iteration` is a whole number, not '7'",
        ".nan",
    ),
    "value of a group in another unit": (
        changed("<step_ms>", "<step_s>")
        .replace("  step_ms: s", "  step_s: commas")
        .replace("step_ms: 5", "step_s: 5"),
        ":9: sample 1: gives: `step_s` is no column",
        "it fills `step_ms`",
    ),
    "sample that does not match": (
        changed("loss 2.5", "Loss 2.5"),
        ":8: sample 1: the pattern does not match, or reads no `iteration`",
        "prefixes such as",
    ),
    "line that should be refused": (
        changed("acme stepped back", "acme step 8 loss nan in 5.1 s"),
        ":11: refused line 1: the pattern matches it and gives iteration: 8, lm_loss: nan",
        "more precise",
    ),
    "rule": (RULE, ":1: this is a rule", "give it with --rules"),
    "list": ("- format: acme\n", ":1: a line format is a mapping", "write `format: acme-step`"),
    "program": ("format: !!python/name:os.system\n", ":1: tags are not allowed", "as it is"),
}


@pytest.mark.parametrize(("text", "where", "move"), BROKEN.values(), ids=BROKEN)
def test_a_mistake_is_told_with_its_place_and_the_next_move(text, where, move, tmp_path):
    told = problems(tmp_path, text)

    assert f"a.yaml{where}" in told
    assert move in told
    assert "Traceback" not in told


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path):
    (tmp_path / "a.yaml").write_text(
        changed("step_ms: 5120", "step_ms: 1").replace("acme stepped", "acme step x")
    )
    (tmp_path / "b.yaml").write_text(changed("table: iterations", "table: losses"))

    with pytest.raises(RuleError) as error:
        formats.load_formats([tmp_path])

    places = [line.split(": ")[0].rpartition("/")[2] for line in str(error.value).splitlines()]
    assert places == ["a.yaml:9", "a.yaml:11", "b.yaml:2"]


def test_a_file_of_thousands_of_mistakes_names_the_first_of_them(tmp_path):
    wrong = "".join(f"k{number}: 1\n" for number in range(3_000))

    assert 10 < problems(tmp_path, "format: a\n" + wrong).count("\n") <= 100


def test_two_formats_of_one_name_are_a_mistake(tmp_path):
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)

    with pytest.raises(RuleError, match=r"b.yaml: format: acme-step is also the name of .*a.yaml"):
        formats.load_formats([tmp_path])


def test_a_directory_may_hold_rules_and_formats_side_by_side(tmp_path, capsys):
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text("# ours\n---\n" + CHECKPOINT)
    (tmp_path / "c.yaml").write_text(RULE)
    os.mkfifo(tmp_path / "pipe")

    assert [one.format for one in formats.load_formats([tmp_path])] == ["acme-save", "acme-step"]
    assert "USR001" in {rule.id for rule in load.load_rules([tmp_path])}
    assert main(["--check-rules", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == (
        "3 files, 1 rule, 3 examples, 2 formats, 4 samples: 0 problems, 0 examples that fail"
    )
    with pytest.raises(RuleError, match="this is a line format, and no rule; give it with --forma"):
        load.load_rules([tmp_path / "a.yaml"])


def test_the_check_tells_mistakes_of_formats_as_it_tells_those_of_rules(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("a.yaml").write_text(changed("<lm_loss>", "<loss>"))
    Path("b.yaml").write_text(GOOD)
    Path("c.yaml").write_text(GOOD)

    assert main(["--check-rules", "."]) == 2
    told = capsys.readouterr().out
    assert told.startswith("FAIL a.yaml:4:52:\n     pattern: the group `loss` is no column")
    assert "FAIL c.yaml:\n     format: acme-step is also the name of b.yaml" in told
    assert told.splitlines()[-1] == "3 files, 2 formats, 4 samples: 2 problems"


def test_a_path_without_a_format_is_a_usage_error(tmp_path, capsys):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.yaml").write_text(RULE)
    (tmp_path / "run").mkdir()

    for path in (tmp_path / "rules", tmp_path / "none.yaml"):
        assert main([str(tmp_path / "run"), "--formats", str(path)]) == 2
        told = capsys.readouterr().err
        assert "no line format in this directory" in told or "no such file" in told
