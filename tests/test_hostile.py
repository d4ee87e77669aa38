"""Damaged, absurd and hostile input: a verdict or a clear refusal, never a traceback or a hang."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import zstandard

from hcp_logscan import HcpLogscanError, scan
from hcp_logscan.cli.write import default_path
from hcp_logscan.model.errors import NothingUnderstoodError, RuleError, UsageError
from hcp_logscan.parsers import bridge_config, tracebacks
from hcp_logscan.reporting.schema import load_schema
from hcp_logscan.reporting.text import render_text
from hcp_logscan.reporting.words import paragraphs
from hcp_logscan.rules.choose import parse_settings
from hcp_logscan.rules.load import load_rules
from hcp_logscan.sources import kinds

if TYPE_CHECKING:
    from hcp_logscan.api import Report

FIXTURES = Path(__file__).parent / "fixtures"
SCHEMA = jsonschema.Draft202012Validator(load_schema())
HUGE = ("0", "-3", "9999999999", "9" * 19, "9" * 30, "9" * 5000)
START = (FIXTURES / "hcp22-console-without-prefixes/run/console.log").read_text()
M = (
    "using world size: 4, data-parallel size: 1, context-parallel size: 4, hierarchical"
    " context-parallel sizes: [2, 2], tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)
BAR = "=" * 70 + "\n"
TITLE = f"{BAR}Configuration Summary (Non-Default Values vs Megatron Core)\n{BAR}"
SUMMARY = (
    TITLE + "\n[model] Non-default values (vs Mcore X):\n  context_parallel_size: 16"
    "  (Mcore default: 1)\n  cp_comm_type: 'a2a+p2p'  (Mcore default: None)\n{line}"
    "  hierarchical_context_parallel_sizes: [8, 2]  (Mcore default: None)\n"
    "[train]:\n  train_iters: 1\n" + BAR
)
TRACEBACK = (
    "{rank}Traceback (most recent call last):\n"
    '{rank}  File "/opt/train.py", line 3, in step\n{rank}    loss()\n{rank}ValueError: x\n'
)
H = "------------------------ arguments ------------------------\n"
E = "-------------------- end of arguments ---------------------\n"


def entry(key: str, value: str) -> str:
    return f"  {key} {'.' * (48 - len(key))} {value}\n"


def dump(**settings: str) -> str:
    asked = {
        "context_parallel_size": "4",
        "cp_comm_type": "['a2a+p2p']",
        "hierarchical_context_parallel_sizes": "[2, 2]",
    } | settings
    return H + "".join(entry(key, value) for key, value in asked.items()) + E


def everything(path: Path, **options: Any) -> Report | None:
    """Scan and render in every format. None where nothing was understood."""
    try:
        report = scan(path, **options)
    except NothingUnderstoodError:
        return None
    SCHEMA.validate(json.loads(report.to_json()))
    for text in (
        report.to_html(charts="static"),
        report.to_markdown(),
        report.to_sarif(),
        report.to_junit(),
        render_text(report.data),
    ):
        text.encode("utf-8")
    return report


def of(tmp_path: Path, text: str) -> Report:
    run = tmp_path / "run"
    run.mkdir()
    (run / "train.log").write_text(text)
    report = everything(run)
    assert report is not None
    return report


# Numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize(
    "key",
    ["world_size", "context_parallel_size", "seq_length"],
)
def test_an_absurd_number_in_the_configuration_is_no_size(
    tmp_path: Path, key: str, number: str
) -> None:
    report = of(tmp_path, dump(**{"world_size": "4", key: number}) + START)
    assert report.verdict.status not in {"active", "inactive", "mixed"}


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("size", ["using world size: ", "data-parallel size: "])
def test_an_absurd_world_in_the_start_line_is_unknown(
    tmp_path: Path, size: str, number: str
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    line = M.replace(f"{size}{'4' if 'world' in size else '1'}", f"{size}{number}")
    assert line != M
    for rank in range(2):
        (run / f"rank_{rank}.log").write_text(line)
    report = everything(run)
    assert report is not None
    assert report.data.run.world_size in {None, 4}


def test_sizes_whose_product_fits_no_integer_are_not_multiplied(tmp_path: Path) -> None:
    sizes = f"[{', '.join(['2'] * 100)}]"
    report = of(tmp_path, dump(hierarchical_context_parallel_sizes=sizes))
    assert report.facts["attempts"]["hcp_sizes_product"].to_list()[-1] is None


@pytest.mark.parametrize("number", HUGE[2:])
@pytest.mark.parametrize("field", ["rank", "local_rank", "exitcode", "pid"])
def test_an_absurd_number_in_the_failure_table_is_left_out(
    tmp_path: Path, field: str, number: str
) -> None:
    said = {"rank": "1", "local_rank": "1", "exitcode": "1 ", "pid": "77", field: number}
    table = (
        "=" * 60 + "\ntrain.py FAILED\n" + "-" * 60 + "\nFailures:\n  <NO_OTHER_FAILURES>\n"
        + "-" * 60 + "\nRoot Cause (first observed failure):\n[0]:\n"
        "  time      : 2026-03-01_09:15:00\n  host      : node-1\n"
        f"  rank      : {said['rank']} (local_rank: {said['local_rank']})\n"
        f"  exitcode  : {said['exitcode'].strip()} (pid: {said['pid']})\n"
        "  error_file: <N/A>\n  traceback : To enable traceback see: x\n" + "=" * 60 + "\n"
    )  # fmt: skip
    report = of(tmp_path, START + table)
    assert report.data.series.iterations > 0


@pytest.mark.parametrize("loss", ["5e-324", "1e-310", "1e308", "1e400", "-1e308"])
def test_a_loss_at_the_end_of_the_scale_is_drawn(tmp_path: Path, loss: str) -> None:
    first = START.index("lm loss: ") + len("lm loss: ")
    report = of(tmp_path, START[:first] + loss + START[first + 12 :])
    assert report.data.series.iterations > 0


@pytest.mark.parametrize("ranks", [0, -1, 10**9, 10**30])
def test_a_world_size_that_no_job_has_is_refused(ranks: int) -> None:
    with pytest.raises(UsageError, match="a job has 1 to"):
        scan(FIXTURES / "hcp22-tee" / "run", world_size=ranks)


# Names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [b"rank_0\xff.log", b"\xff/rank_0.log", b"a\nb.log", b"-o.log"])
def test_a_file_name_of_any_bytes_is_shown_as_text(tmp_path: Path, name: bytes) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)  # noqa: PTH118 - a Path holds no bytes
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(path, "wb") as stream:  # noqa: PTH123
            stream.write(START.encode())
    except OSError:
        pytest.skip("this file system takes no such name")
    report = everything(tmp_path)
    assert report is not None
    assert report.data.series.iterations > 0


def test_a_path_with_a_nul_byte_is_refused() -> None:
    with pytest.raises(HcpLogscanError, match="no path"):
        scan("a\0b")


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".xz", ".bz2"])
def test_text_before_the_damage_is_kept(tmp_path: Path, suffix: str) -> None:
    packers = {".gz": gzip.compress, ".zst": zstandard.compress, ".xz": lzma.compress}
    packed = packers.get(suffix, bz2.compress)(START.encode())
    (tmp_path / f"train.log{suffix}").write_bytes(packed + b"GARBAGE" * 9)
    report = everything(tmp_path)
    assert report is not None
    assert report.data.series.iterations > 0


@pytest.mark.parametrize("name", ["x" * 255, "\u754c" * 84])
def test_a_long_run_name_gives_a_report_name_that_fits(name: str) -> None:
    path = default_path(Path("/nonexistent"), name)
    assert len(path.name.encode()) <= 220
    assert path.stem
    assert name.startswith(path.stem)


def test_deep_sections_of_long_keys_stay_small(tmp_path: Path) -> None:
    deep = "".join(f"{' ' * depth}{'k' * 10_000}:\n" for depth in range(1, 31))
    leaves = "".join(f"{' ' * 31}a{number}: 1\n" for number in range(2_000))
    run = tmp_path / "run"
    run.mkdir()
    (run / "train.log").write_text(START)
    (run / "config.yaml").write_text(f"model:\n{deep}{leaves}  context_parallel_size: 4\n")
    report = everything(run)
    assert report is not None
    assert report.tables["config"].estimated_size() < 5_000_000


# Patterns: each of these would take hours if the pattern went back and forth --------------------

LONG = 200_000


@pytest.mark.parametrize("text", ["A" + "a" * LONG + "!", "Aa." * LONG + "A!", "A." * LONG + "!"])
def test_a_long_word_is_no_exception(text: str) -> None:
    assert tracebacks._EXCEPTION.match(text) is None


def test_exceptions_are_told_from_words() -> None:
    for text, name in (
        ("ValueError: x", "ValueError"),
        ("torch.distributed.DistBackendError: NCCL", "torch.distributed.DistBackendError"),
        ("a.B.Cd", "a.B.Cd"),
        ("KeyError", "KeyError"),
    ):
        match = tracebacks._EXCEPTION.match(text)
        assert match is not None
        assert match["name"] == name
    for text in ("EOF", "ALL: x", "value", "a.b", "Value error: x", "torch.OOM"):
        assert tracebacks._EXCEPTION.match(text) is None


@pytest.mark.parametrize("tail", [" " * LONG + "x", "  (Mcore default: " * (LONG // 18) + "x"])
def test_a_long_value_of_the_summary_ends(tmp_path: Path, tail: str) -> None:
    assert bridge_config._FIELD.match(f"  key: {tail}") is not None
    report = of(tmp_path, SUMMARY.format(line=f"  note: 1{tail}\n"))
    assert report.facts["attempts"]["cp_size"].to_list()[-1] == 16


@pytest.mark.parametrize(
    "line", [b" " * LONG + b"x", b"for " + b" in " * LONG, b"|" + b"| " * LONG]
)
def test_a_long_line_is_sniffed(line: bytes) -> None:
    assert kinds.by_content(b"import a\nimport b\nimport c\n" + line) == "source code"


def test_long_spaces_in_prose() -> None:
    assert paragraphs("a" + " " * LONG + "x") == ("a" + " " * LONG + "x",)


HEADS = (
    "Failures:\n",
    "_target_: megatron.bridge.training.config.ConfigContainer\n",
    "Traceback (most recent call last):\n",
    TITLE,
)


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.split()[0])
def test_heads_without_a_body_do_not_pile_up(tmp_path: Path, head: str) -> None:
    report = of(tmp_path, START + head * 60 + TRACEBACK.format(rank=""))
    assert report.tables["tracebacks"]["exception"].to_list()[-1] == "ValueError"


def test_tracebacks_of_many_ranks_line_by_line(tmp_path: Path) -> None:
    lines = TRACEBACK.splitlines(keepends=True)
    text = "".join(
        line.replace("{rank}", f"[rank{rank}]: ") for line in lines for rank in range(300)
    )
    report = of(tmp_path, START + text)
    found = report.tables["tracebacks"]
    assert found["exception"].to_list() == ["ValueError"] * 300
    assert found["rank"].n_unique() == 300


# Rule files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["2026-99-99", "1" + ":1" * 400 + ":1.0", "[1", "!!int x"])
def test_an_odd_setting_is_refused(value: str) -> None:
    with pytest.raises(RuleError, match=r"is not RULE\.param=VALUE"):
        parse_settings([f"HCP211.max_skipped_share={value}"])


def test_a_rule_file_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rule.yaml")
    with pytest.raises(RuleError, match="no regular file"):
        load_rules([tmp_path])


@pytest.mark.parametrize(
    "value",
    ['!!int ""', '!!float ""', "!!bool maybe", "!!timestamp x", "!!python/name:os.system", "! x"],
)
def test_a_tag_in_a_rule_file_is_refused(tmp_path: Path, value: str) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text(f"id: HCP999\nname: {value}\n")
    with pytest.raises(RuleError, match=r"rule\.yaml:2: tags are not allowed"):
        load_rules([rule])


def test_a_rule_file_of_wrong_keys_names_the_first_of_them(tmp_path: Path) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text("".join(f"k{number}: 1\n" for number in range(5_000)))
    with pytest.raises(RuleError) as caught:
        load_rules([rule])
    assert 1 < str(caught.value).count("\n") < 250


def test_a_number_beyond_every_float_is_refused(tmp_path: Path) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text("id: HCP999\nname: " + ":".join(["59"] * 400) + ".5\n")
    with pytest.raises(RuleError, match=r"rule\.yaml"):
        load_rules([rule])


# Mutations --------------------------------------------------------------------------------------

SEEDS = sorted(path.parent.name for path in FIXTURES.glob("*/run"))
SPICE = (
    b"\0", b"\xff", b"\r", b"\n", b"\x1b[31m", b"[rank3]: ", b"9" * 25, b"-", b"nan", b"[", b"]",
    TITLE.encode(), H.encode(), E.encode(), b"Traceback (most recent call last):\n", b" " * 3000,
    b"Failures:\n", b"\xe2\x80\xae", "ｉｔｅｒ".encode(),
)  # fmt: skip


def mutated(data: bytes, dice: random.Random) -> bytes:
    """The bytes with a few cuts, repeats, swaps, spices and foreign numbers."""
    for _ in range(dice.randint(1, 6)):
        at, to = sorted(dice.randrange(len(data) + 1) for _ in range(2))
        part = data[at : min(to, at + 400)]
        end = at + len(part)
        data = dice.choice(
            (
                data[:at] + data[end:],
                data[:end] + part + data[end:],
                data[:at] + dice.choice(SPICE) + data[at:],
                data[:at],
                data[:at] + bytes(dice.randrange(256) for _ in range(8)) + data[at:],
                data[:at] + part.translate(bytes.maketrans(b"0124", b"9890")) + data[end:],
                b"\n".join(sorted(data.split(b"\n"), key=lambda _: dice.random())),
            )
        )
        if not data:
            break
    return data


@pytest.mark.parametrize("number", range(40))
def test_a_damaged_run_is_scanned_to_its_end(tmp_path: Path, number: int) -> None:
    dice = random.Random(number)
    source = FIXTURES / dice.choice(SEEDS) / "run"
    target = tmp_path / "run"
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        data = file.read_bytes()[:200_000]
        copy.write_bytes(mutated(data, dice) if data and dice.random() < 0.8 else data)
    report = everything(target)
    if report is not None:
        for finding in report.findings:
            for place in finding.evidence:
                assert place.line >= 1
                assert (target / place.file).is_file()
