"""`--check-rules` as an author of rules meets it: each mistake has a place, a reason, a next move."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from hcp_logscan.cli.app import main
from hcp_logscan.model.errors import RuleError, SourceError
from hcp_logscan.rules import load, yamlfile

GOOD = """\
id: USR001
name: cp-too-big
summary: the CP size is above the limit
severity: warning
confidence: high
over: attempts
params: {limit: 8}
when: >-
  cp_size > limit
  AND iterations_finished > 0
message: CP size {cp_size} is above {limit}.
why: It is slow.
fix: Lower it.
examples:
  - {name: above, outcome: fires, facts: {cp_size: 9, iterations_finished: 1}}
  - {name: at the limit, outcome: clean, facts: {cp_size: 8, iterations_finished: 1}}
  - {name: not logged, outcome: inconclusive, facts: {}}
"""


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def checked(capsys, **files):
    """Exit code and output (blanks folded) for these files of a directory."""
    folder = Path("rules")
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / f"{name}.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    code = main(["--check-rules", str(folder)])
    shown = capsys.readouterr()
    assert not shown.err
    return code, shown.out


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_good_rule_is_0_with_a_word_for_each_example(capsys):
    code, out = checked(capsys, a=GOOD)

    assert code == 0
    assert out.splitlines() == [
        "ok   USR001 fires: above",
        "ok   USR001 quiet: at the limit",
        "ok   USR001 quiet: not logged",
        "1 file, 1 rule, 3 examples: 0 problems, 0 examples that fail",
    ]


WHEN = "cp_size > limit\n"
BROKEN = {
    "fact that is none": (
        changed(WHEN, "cp_sise > limit\n"),
        "a.yaml:9:3: when: `cp_sise` is neither a fact nor a parameter",
        "did you mean `cp_size` or `hcp_sizes` or `tp_size`? `hcp-logscan --explain attempts`",
    ),
    "fact of another table": (
        changed(WHEN, "lm_loss > limit\n"),
        "a.yaml:9:3: when: `lm_loss` is neither",
        "it is a fact of `iterations`, and the rule is over `attempts`",
    ),
    "aggregate": (
        changed("AND iterations_finished > 0", "AND MAX(cp_size) > 0"),
        "a.yaml:10:7: when: function MAX is not allowed: it looks at many rows",
        "`over: iterations`: one row that fires is enough",
    ),
    "window": (
        changed("AND iterations_finished > 0", "AND ROW_NUMBER() OVER (ORDER BY cp_size) > 0"),
        "a.yaml:10:20: when: function OVER is not allowed: it looks at many rows",
        "use a fact that counts it already",
    ),
    "query": (
        changed("AND iterations_finished > 0", "AND cp_size IN (SELECT cp_size FROM attempts)"),
        "a.yaml:10:19: when: `SELECT` is neither a fact nor a parameter here, and a rule is one",
        "use a fact",
    ),
    "misspelt function": (
        changed(WHEN, "ABBS(cp_size) > limit\n"),
        "a.yaml:9:3: when: function ABBS is not allowed",
        "did you mean ABS? There are ABS, ARRAY_CONTAINS",
    ),
    "type mismatch": (
        changed(WHEN, "cp_comm_type > limit\n"),
        "a.yaml:9:3: when: `cp_comm_type > limit` cannot be evaluated",
        "compare like with like: `cp_comm_type` is a text, `limit` is 8",
    ),
    "number where truth is needed": (
        changed("AND iterations_finished > 0", "AND iterations_finished"),
        "a.yaml:10:7: when: `iterations_finished`: it gives a whole number where TRUE or FALSE",
        "compare it with something, as in `x > 1`",
    ),
    "half an expression": (
        changed("AND iterations_finished > 0", "AND"),
        "a.yaml:9:3: when: `cp_size > limit AND` cannot be evaluated: it is not complete",
        "an operand is missing, or a parenthesis",
    ),
    "division": (
        changed(WHEN, "cp_size / tp_size > limit\n"),
        "a.yaml:9:11: when: `/` needs NULLIF",
        "write a / NULLIF(b, 0), because x/0 is infinity",
    ),
    "null test": (
        changed(WHEN, "COALESCE(cp_size, 0) > limit\n"),
        "a.yaml:9:3: when: COALESCE turns a fact that was not observed into an answer",
        "say under `null_reason` why that is right",
    ),
    "double quotes": (
        changed(WHEN, 'cp_comm_type = "p2p"\n'),
        "a.yaml:9:18: when:",
        "strings stand in single quotes",
    ),
    "no fact": (
        changed(WHEN + "  AND iterations_finished > 0", "limit > 3"),
        "a.yaml:8: when: it names no fact",
        "`hcp-logscan --explain attempts` lists what there is",
    ),
    "parameter named like a fact": (
        changed("{limit: 8}", "{limit: 8, cp_size: 1}"),
        "a.yaml:8: when: parameter `cp_size` has the name of a column",
        "rename it",
    ),
    "parameter that nothing reads": (
        changed("{limit: 8}", "{limit: 8, spare: 1}"),
        "a.yaml:7: params.spare: nothing reads it",
        "take it out",
    ),
    "parameter of no kind": (
        changed("{limit: 8}", "{limit: [8]}"),
        "a.yaml:7: params.limit: a parameter is a number, a text, true or false",
        "give it one finite value",
    ),
    "message with an unknown fact": (
        changed("CP size {cp_size}", "CP size {cp_sise}"),
        "a.yaml:11:19: message: `{cp_sise}` is no fact of `attempts` and no parameter",
        "did you mean `cp_size`",
    ),
    "message that formats a text": (
        changed("{cp_size} is", "{cp_comm_type:.1f} is"),
        "a.yaml:11:19: message: `{cp_comm_type:.1f}` formats a number, but it is none",
        "write {cp_comm_type}",
    ),
    "message with an attribute": (
        changed("CP size {cp_size}", "CP size {cp_size.real}"),
        "a.yaml:11: message: `{cp_size.real}` must be the plain name",
        "write {name}",
    ),
    "ranks from a text": (
        GOOD + "ranks: cp_comm_type\n",
        "a.yaml:18: ranks: `cp_comm_type` is not a column of whole numbers or lists of them",
        "lists what there is",
    ),
    "evidence from no table": (
        GOOD + "evidence: {confg: TRUE = TRUE}\n",
        "a.yaml:18: evidence.confg: no event table `confg`",
        "did you mean `config`?",
    ),
    "evidence with an unknown column": (
        GOOD + "evidence:\n  config: keys = 'a'\n",
        "a.yaml:19:11: evidence.config: `keys` is neither",
        "did you mean `key`? `hcp-logscan --explain config` lists",
    ),
    "unknown field": (
        GOOD + "mesage: x\n",
        "a.yaml:18: mesage: no such field; a rule has id, name",
        "did you mean `message`?",
    ),
    "unknown field of an example": (
        changed("{name: above,", "{name: above, fact: 1,"),
        "a.yaml:15: example 1 `above`.fact: no such field here",
        "did you mean `facts`?",
    ),
    "field that is missing": (
        changed("fix: Lower it.\n", ""),
        "a.yaml:1: fix: it is missing",
        "add it: what the reader does about it",
    ),
    "severity of one's own": (
        changed("severity: warning", "severity: fatal"),
        "a.yaml:4: severity: 'fatal' is not known here",
        "write 'note', 'warning' or 'error'",
    ),
    "id of no form": (
        changed("id: USR001", "id: usr-1"),
        "a.yaml:1: id: an id is 2 to 10 capitals and three digits, and this is 'usr-1'",
        "such as USR001",
    ),
    "yes is no text": (
        changed("why: It is slow.", "why: yes"),
        "a.yaml:12: why: a text must stand here, and this is true (YAML reads yes",
        "put it in quotes",
    ),
    "empty text": (
        changed("why: It is slow.", "why: ' '"),
        "a.yaml:12: why: the text is empty",
        "write it",
    ),
    "condition without an end": (
        changed(WHEN, "cp_size > limit OR " * 150 + "TRUE\n"),
        "a.yaml:8: when: should have at most 2000 characters, and it has",
        "shorten it",
    ),
    "id of a shipped rule": (
        changed("USR001", "HCP002"),
        "a.yaml:1: id: HCP002 is the id of a shipped rule, hcp-sizes-missing",
        "choose capitals of your own",
    ),
    "value that does not fit its fact": (
        changed("{cp_size: 9,", "{cp_size: nine,"),
        "a.yaml:15: example `above`: `cp_size` is a whole number, so 'nine' cannot stand there",
        "leave it out: it was not observed then",
    ),
    "truth where a number stands": (
        changed("{cp_size: 9,", "{cp_size: true,"),
        "a.yaml:15: example `above`: `cp_size` is a whole number, so True cannot",
        "write a value of that kind",
    ),
    "fact of an example that is none": (
        changed("facts: {}", "facts: {cp_sise: 1}"),
        "a.yaml:17: example `not logged`: `cp_sise` is no fact of `attempts`",
        "did you mean `cp_size`",
    ),
    "example of nothing": (
        changed(", facts: {}", ""),
        "a.yaml:17: example 3 `not logged`: give exactly one of `log` and `facts`",
        "write a log below `log: |`, or `facts: {}`",
    ),
    "outcome without an example": (
        changed("  - {name: not logged, outcome: inconclusive, facts: {}}\n", ""),
        "a.yaml:14: examples: none has the outcome `inconclusive`",
        "list it under `never` with a `never_reason`",
    ),
    "no boundary": (
        changed("{cp_size: 8, iterations_finished: 1}", "{cp_size: 8, iterations_finished: 0}"),
        "a.yaml:14: examples: no `clean` one is a boundary",
        "change the one fact that makes it clean",
    ),
    "two examples of one name": (
        changed("name: at the limit", "name: above"),
        "a.yaml:16: examples: two are called `above`",
        "say what each of them is about",
    ),
    "more examples than anybody reads": (
        GOOD + "  - {name: a, outcome: fires, facts: {}}\n" * 99,
        "a.yaml:14: examples: more than 100 items",
        "keep those that say something new",
    ),
    "duplicate keys": (
        changed("severity: warning", "severity: warning\nid: USR002"),
        "a.yaml:5: `id` stands twice, first in line 1",
        "keep one",
    ),
    "tab": (
        changed("  AND", "\tAND"),
        "a.yaml:10: this is not YAML: found",
        "indent with blanks: YAML refuses tabs",
    ),
    "colon in a text": (
        changed("why: It is slow.", "why: It is: slow."),
        "a.yaml:12: this is not YAML: mapping values are not allowed",
        "where a text holds `: `, write the text below `>-`",
    ),
    "message that begins with a field": (
        changed("message: CP size {cp_size}", "message: {cp_size}"),
        "a.yaml:11: this is not YAML",
        "where a text begins with a bracket or quote",
    ),
    "open quotation mark": (
        changed("why: It is slow.", "why: 'It is slow."),
        "this is not YAML: found unexpected end of stream",
        "close the quotation mark",
    ),
    "two rules in a file": (
        GOOD + "---\n" + GOOD,
        "a.yaml:18: this is not YAML: but found another document",
        "keep one rule in a file",
    ),
    "no rule": ("- 1\n", "a.yaml:1: a rule is a mapping", "write `id: USR001` first"),
    "empty file": ("", "a.yaml:1: the file is empty", "write one rule into it"),
    "key that is no text": (GOOD + "7: x\n", "a.yaml:18: 7: '7' is no name", "names of"),
    "bomb of anchors": (
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "a.yaml:1: anchors and aliases are not allowed",
        "write the value out",
    ),
    "program": (
        "a: !!python/object/apply:os.system [ls]\n",
        "a.yaml:1: tags are not allowed",
        "write the value as it is",
    ),
    "nesting": ("a: " + "[" * 30 + "]" * 30, "a.yaml:1: nested deeper than 20", "five at most"),
    "bytes": (b"id: USR001\nname: \xff\n", "a.yaml:2: this is not UTF-8", "save the file as UTF-8"),
    "control character": ("id: USR001\nwhy: \x00\n", "a.yaml:2: this is not YAML", "escape it"),
    "size": (
        b"# " + b"x" * yamlfile.MAX_BYTES,
        "a.yaml: larger than 256 KiB",
        "one file holds one",
    ),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What is said of each broken rule, blanks folded; all of them are checked in one run."""
    folder = tmp_path_factory.mktemp("broken")
    for number, (text, _, _) in enumerate(BROKEN.values()):
        unique = (
            text if isinstance(text, bytes) else text.replace("USR001", f"USR{number:03}").encode()
        )
        (folder / f"{number:03}.yaml").write_bytes(unique)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.chdir(folder)
        assert main(["--check-rules", "."]) == 2
    assert max(map(len, output.getvalue().splitlines())) <= 80
    folded = re.sub(r"\s+", " ", output.getvalue())
    return {
        name: "".join(re.findall(rf"FAIL {number:03}\.yaml.*?(?=FAIL \d|ok |$)", folded))
        for number, name in enumerate(BROKEN)
    }


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_has_its_place_its_reason_and_the_next_move(name, told):
    _, place, move = BROKEN[name]
    said = re.sub(r"FAIL \d{3}", "a", told[name])

    assert place in said, said
    assert re.search(r"next: .*" + re.escape(move), said), said


def test_the_mark_stands_under_the_word(capsys):
    _, out = checked(capsys, a=changed(WHEN, "cp_size > limt\n"))
    lines = out.splitlines()
    source = next(line for line in lines if "cp_size > limt" in line)
    mark = lines[lines.index(source) + 1]

    assert source[mark.index("^") : mark.rindex("^") + 1] == "limt"


def test_the_place_is_found_in_every_style_of_yaml(tmp_path):
    for number, when in enumerate(
        [
            "cp_size > limt",
            "'cp_size > limt'",
            '"cp_size > limt"',
            ">-\n    cp_size\n      > limt",
            "|  # so\n  cp_size >\n  limt",
            "cp_size >\n  limt",
        ]
    ):
        path = tmp_path / f"{number}.yaml"
        path.write_text(
            "# Größe ≥ 1\n" + GOOD.replace(GOOD[GOOD.index(">-") : GOOD.index("\nmess")], when)
        )
        with pytest.raises(RuleError) as caught:
            load.load_file(path)
        row, column = map(int, re.search(r"yaml:(\d+):(\d+): when", str(caught.value)).groups())
        assert path.read_text().splitlines()[row - 1][column - 1 :].startswith("limt"), when


def test_an_escape_in_the_text_leaves_the_line(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        changed("message: CP size {cp_size}", r'message: "\x43P {cp_sise}"'.rstrip('"') + '"\n#')
    )
    with pytest.raises(RuleError, match=r"a\.yaml:11: message: `\{cp_sise\}`"):
        load.load_file(path)


def test_all_problems_of_all_files_come_in_one_run(capsys):
    code, out = checked(
        capsys,
        a=changed("severity: warning", "severity: fatal")
        .replace("cp_size > limit", "cp_sise > limt")
        .replace("{cp_size: 8,", "{cp_size: x,"),
        b=GOOD.replace("USR001", "USR002").replace("outcome: clean", "outcome: fires"),
        c="a: [",
        d=GOOD.replace("USR001", "USR004"),
        e=GOOD.replace("USR001", "USR004"),
    )
    places = re.findall(r"^FAIL rules/(\w)\.yaml(?::(\d+))?", out, re.MULTILINE)

    assert code == 2
    assert places[:4] == [("a", "4"), ("a", "9"), ("a", "9"), ("a", "16")]
    assert {name for name, _ in places} == {"a", "b", "c", "e"}
    assert "FAIL USR002 missed: at the limit" in out
    assert "id: USR004 is also the id of rules/d.yaml" in out
    assert out.splitlines()[-1] == (
        "5 files, 3 rules, 9 examples: 7 problems, 1 example that fails"
    )


@pytest.mark.parametrize(
    ("old", "new", "word", "shown"),
    [
        (
            "outcome: clean, facts: {cp_size: 8",
            "outcome: fires, facts: {cp_size: 7",
            "missed: at the limit",
            ["FALSE all of", "FALSE cp_size > limit [cp_size = 7, limit = 8]"],
        ),
        (
            "outcome: clean, facts: {cp_size: 8",
            "outcome: clean, facts: {cp_size: 10",
            "noisy: at the limit",
            ["TRUE all of", "TRUE iterations_finished > 0 [iterations_finished = 1]"],
        ),
        (
            "outcome: clean, facts: {cp_size: 8, ",
            "outcome: clean, facts: {cp_size: 9, tp_size: 1} }\n  #",
            "wrong: at the limit",
            [
                "NULL all of",
                "NULL iterations_finished > 0 [iterations_finished was not observed]",
                "next: give it iterations_finished",
            ],
        ),
        (
            "inconclusive, facts: {}",
            "inconclusive, facts: {cp_size: 1}",
            "wrong: not logged",
            ["FALSE cp_size > limit", "next: take the facts out of the example that decide it"],
        ),
        (
            "outcome: fires, facts: {cp_size: 9, iterations_finished: 1}",
            "outcome: fires, facts: {iterations_finished: 1}",
            "missed: above",
            [
                "NULL cp_size > limit [cp_size was not observed, limit = 8]",
                "cp_size: keep rank 0's start-up output",
            ],
        ),
    ],
)
def test_an_example_that_fails_shows_each_operand_with_its_facts(old, new, word, shown, capsys):
    code, out = checked(capsys, a=changed(old, new))
    told = re.sub(r"\s+", " ", out)

    assert code == 2
    assert f"FAIL USR001 {word}" in told
    for part in shown:
        assert part in told, out


def test_groups_of_operands_are_taken_apart(capsys):
    when = "cp_size > limit AND (tp_size > 1 OR pp_size BETWEEN 2 AND 4) OR NOT (dp_size > 1)\n"
    _, out = checked(capsys, a=changed(WHEN + "  AND iterations_finished > 0\n", when))
    start = out.index("FALSE any of") if "FALSE any of" in out else out.index("NULL  any of")
    tree = [line.split("    [")[0].rstrip() for line in out[start:].splitlines()[:8]]

    assert [line.strip() for line in tree] == [
        "NULL  any of",
        "NULL  all of",
        "TRUE  cp_size > limit",
        "NULL  any of",
        "NULL  tp_size > 1",
        "NULL  pp_size BETWEEN 2 AND 4",
        "NULL  NOT (dp_size > 1)",
        tree[7].strip(),
    ]


ITERATIONS = """\
id: USR001
name: spike
summary: a loss above the limit
severity: note
confidence: low
over: iterations
when: lm_loss > 9 AND grad_norm > 1
message: "{lm_loss}"
why: w
fix: f
examples:
  - name: logged
    outcome: fires
    log: |
"""
LINE = (
    "       [2031-03-01 09:14:2{0}.123456] iteration        {0}/       3 | consumed samples:"
    "            2 | elapsed time per iteration (ms): 5121.4 | learning rate: 1.0E-05 | global"
    " batch size:     2 | lm loss: {1}E+00 | loss scale: 1.0 | grad norm: 2.134 | number of"
    " skipped iterations:   0 | number of nan iterations:   0 |\n"
)


def test_of_many_rows_the_nearest_to_firing_is_shown(capsys):
    text = ITERATIONS + LINE.format(1, 8.5) + LINE.format(2, 9.0)
    _, out = checked(capsys, a=text)
    told = re.sub(r"\s+", " ", out)

    assert "missed: logged" in told
    assert "`when` is FALSE, so it is clean; of 2 rows, the nearest to firing:" in told
    assert "FALSE lm_loss > 9 [lm_loss = 8.5]" in told
    assert "TRUE grad_norm > 1 [grad_norm = 2.134]" in told


def test_a_log_in_which_nothing_is_understood_says_so(capsys):
    _, out = checked(capsys, a=ITERATIONS + "      hello\n")

    assert "no row was judged: its log filled no table" in out
    assert "next: give it lines that the tool reads" in out


def test_many_problems_of_one_file_are_counted_not_listed(capsys):
    facts = ", ".join(f"fact{number}: 1" for number in range(99))
    _, out = checked(capsys, a=changed("facts: {}", f"facts: {{{facts}}}"))

    assert out.count("is no fact of") == 40
    assert "10 more problems" in out


def test_a_thousand_wrong_examples_end_soon(capsys):
    _, out = checked(capsys, a=GOOD + "  - {name: [], outcome: 1, facts: {a: {}}}\n" * 999)

    assert "correct these first" in out or "more problem" in out


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "no rule in this directory"),
        (lambda _path: None, "no such file or directory"),
        (lambda path: path.symlink_to(path), "no such file or directory"),
    ],
)
def test_a_path_without_rules_is_an_error(make, message, capsys):
    make(Path("there"))

    assert main(["--check-rules", "there"]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out


def test_a_directory_that_cannot_be_read_is_an_error(capsys, monkeypatch, tmp_path):
    def refuse(_self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert main(["--check-rules", str(tmp_path)]) == 2
    assert "cannot be read: Permission denied" in capsys.readouterr().err


def test_files_that_are_no_files_are_told_with_the_others(capsys):
    Path("rules/a.yaml").mkdir(parents=True)
    Path("rules/gone.yaml").symlink_to("nowhere")
    code, out = checked(capsys, b=GOOD)

    assert code == 2
    assert "a.yaml: cannot be read: it is no regular file" in re.sub(r"\s+", " ", out)
    assert "gone.yaml: cannot be read: No such file" in re.sub(r"\s+", " ", out)
    assert "ok   USR001 fires: above" in out


def test_text_of_a_rule_cannot_act_on_the_terminal(capsys):
    evil = r'"red \e[31m \u202e"'
    _, out = checked(
        capsys, a=changed("name: above", f"name: {evil}"), b=changed("why: It", "why: \x1b")
    )

    assert not re.search("[\x1b\u202e]", out)
    assert "␛[31m" in out


def test_the_shipped_rules_pass(capsys):
    assert (
        main(["--check-rules", str(load.bundled_dir() / "HCP211-skipped-or-nan-iterations.yaml")])
        == 0
    )
    assert "0 problems, 0 examples that fail" in capsys.readouterr().out


def test_an_example_whose_log_cannot_be_scanned_is_a_problem_of_its_file(capsys, monkeypatch):
    def refuse(*_args):
        raise SourceError("it cannot be read")

    monkeypatch.setattr("hcp_logscan.rules.examples.judge", refuse)
    code, out = checked(capsys, a=GOOD)

    assert code == 2
    assert "FAIL rules/a.yaml:14:\n     it cannot be read" in out
