"""`--explain`: the page of one rule, or of a table, for a person at a terminal."""

import os
import pty
import re
import subprocess
import sys
import threading

import pytest
from rich.cells import cell_len

from hcp_logscan.analysis.facts import FACTS
from hcp_logscan.cli import explain, paper
from hcp_logscan.cli.app import main
from hcp_logscan.rules.load import load_rules
from hcp_logscan.rules.schema import EVIDENCE_TABLES, Rule

RULES = load_rules()


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def explained(capsys, word, *arguments):
    assert main(["--explain", word, *arguments]) == 0
    return capsys.readouterr().out


def folded(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("word", ["HCP211", "hcp211", " Hcp211", "skipped-or-nan-iterations"])
def test_a_rule_is_found_by_id_in_any_case_and_by_name(word, capsys):
    assert explained(capsys, word).startswith("HCP211 skipped-or-nan-iterations  [warning, medium")


@pytest.mark.parametrize("width", [24, 60, 80, 132])
def test_every_page_keeps_to_its_width(width):
    for rule in RULES:
        code = {line.strip() for line in rule.fix.splitlines() if line.startswith(" ")}
        for line in explain.page(rule, width):
            if line.startswith(paper.HEADING) or line.strip() in code:
                continue
            # Code, and a word that is wider than the page, stay whole: they are for copying.
            whole = max(map(cell_len, line.split()), default=0) > width - 14
            assert cell_len(line) <= width or whole, line


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_page_says_what_the_rule_says(rule):
    page = folded("\n".join(explain.page(rule, 80)))

    for text in (rule.summary, *rule.references, *rule.false_positives, *rule.params):
        assert folded(text) in page
    for example in rule.examples:
        assert folded(f"{example.outcome}: {example.name}") in page
    assert all(f"--set {rule.id}.{name}=VALUE" in page for name in rule.params)


def test_facts_come_with_meaning_kind_and_how_to_observe_them(capsys):
    page = folded(explained(capsys, "HCP211"))

    assert "nan_iterations, a whole number: sum of `number of nan iterations`" in page
    assert (
        "to observe nan_iterations, skipped_iterations, loss_scaled, late_skipped_share: keep the"
        " last rank's output" in page
    )


def test_the_condition_stands_operand_by_operand(capsys):
    lines = explained(capsys, "HCP002").splitlines()
    start = lines.index("Fires (over attempts) when")

    assert lines[start + 1] == "  cp_size > 1"
    assert lines[start + 2] == "  AND cp_comm_type LIKE '%a2a+p2p%'"


def test_examples_show_their_facts_or_their_log(capsys):
    page = explained(capsys, "HCP001")

    assert "cp_size = 4, cp_comm_type = 'a2a+p2p', hierarchical_groups_seen = FALSE," in page
    assert "      | ------------------------ arguments ---" in page
    assert re.search(r"^      \(\d+ more lines\)$", page, re.MULTILINE)
    assert "no fact was observed" in "\n".join(
        explain.page(RULES[0].model_copy(update={"examples": (EMPTY,)}))
    )


EMPTY = next(example for rule in RULES for example in rule.examples).model_copy(
    update={"log": None, "facts": {}}
)


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("HCP99", "HCP90"),
        ("HCP2011", "HCP201 loss-field-vanished"),
        ("hcp-size-missing", "HCP002 hcp-sizes-missing"),
        ("decentralized", "HCP003 decentralized-process-groups"),
        ("attempt", "attempts"),
        ("\x1b[31m", "--list-rules shows all"),
        ("", "--list-rules shows all"),
        ("x" * 9999, "--list-rules shows all"),
    ],
)
def test_an_unknown_word_is_met_with_what_is_near(word, near, capsys):
    assert main(["--explain", word]) == 2
    shown = capsys.readouterr()

    assert near in shown.err
    assert "\x1b" not in shown.err
    assert len(shown.err) < 300
    assert not shown.out


@pytest.mark.parametrize("table", sorted({*FACTS, *EVIDENCE_TABLES}))
def test_every_table_that_messages_point_to_is_explained(table, capsys):
    page = explained(capsys, table)

    for name, fact in FACTS.get(table, {}).items():
        assert f"  {name}, " in page
        assert folded(fact.meaning) in folded(page)
    assert (f"Event table {table}, for `evidence`" in page) == (table in EVIDENCE_TABLES)


def test_a_rule_of_ones_own_is_explained_and_cannot_act_on_the_terminal(capsys, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        'id: OWN001\nname: own\nsummary: "red \\e[31m"\nseverity: note\nconfidence: low\n'
        "over: attempts\nwhen: cp_comm_type = '\u202e'\nmessage: x\nwhy: \"\\e]0;x\\a\"\n"
        "fix: |\n  do\n\n  - this\n\n      run --me\n"
        'examples:\n- {name: "\\e[1m", outcome: fires, log: "\\e[2J"}\n',
        encoding="utf-8",
    )
    page = explained(capsys, "own001", "--rules", str(path))

    assert not re.search("[\x1b\u202e\x07]", page)
    assert "␛[31m" in page
    assert "\n  - this\n" in page
    assert "\n      run --me\n" in page


def test_text_without_blanks_is_broken_by_its_width_and_addresses_stay_whole():
    chinese = list(paper.wrapped("分层上下文并行没有开启" * 8, 40, "  - "))
    url = "https://example.org/" + "x" * 90

    assert all(cell_len(line) <= 40 for line in chinese)
    assert len(chinese) > 3
    assert url in [line.strip() for line in paper.wrapped(f"see {url} there", 40)]


def test_log_lines_are_folded_and_cut():
    rows = list(paper.folded("x" * 500, 40, "| "))

    assert len(rows) == 3
    assert rows[-1].endswith("x…")
    assert all(cell_len(row) <= 40 for row in rows)


def on_a_terminal(columns, **environment):
    """What `--explain` writes to a terminal of this width."""
    leader, follower = pty.openpty()
    chunks = []

    def drain():
        try:
            while chunk := os.read(leader, 4096):
                chunks.append(chunk)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    inherited = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "NO_COLOR"}}
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import fcntl, struct, sys, termios\n"
            f"fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, {columns}, 0, 0))\n"
            "from hcp_logscan.cli.app import main\n"
            "sys.exit(main(['--explain', 'HCP202']))",
        ],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        check=True,
        env={**inherited, "TERM": "xterm", **environment},
    )
    os.close(follower)
    reader.join(timeout=20)
    os.close(leader)
    return b"".join(chunks).decode().replace("\r\n", "\n")


def test_a_terminal_gets_its_width_and_bold_headings_unless_it_wants_none():
    shown = on_a_terminal(50)
    plain = on_a_terminal(50, NO_COLOR="1")

    assert "\x1b[1mWhy\x1b[0m" in shown
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[\d+m", "", shown) == plain
    widest = max(len(line) for line in plain.splitlines() if "https://" not in line)
    assert 44 < widest <= 50


def test_a_pipe_gets_80_columns_and_no_bold(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: (_ for _ in ()).throw(OSError))
    page = explained(capsys, "HCP202")

    assert "\x1b" not in page
    assert 70 < max(map(len, page.splitlines())) <= 80


def test_the_reason_for_a_null_test_is_shown():
    rule = Rule.model_validate(
        RULES[0].model_dump(exclude={"examples", "when"})
        | {"when": "cp_size IS NULL", "null_reason": "absence is what it is about."}
    )
    assert "An unobserved fact counts, because absence" in "\n".join(explain.page(rule))
