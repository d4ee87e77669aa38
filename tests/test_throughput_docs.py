"""docs/throughput.md: its snippets run, its tables are what the code computes."""

import doctest
import re
from pathlib import Path

import pytest

from hcp_logscan.analysis import flops, formula, pace, steady
from hcp_logscan.analysis.config import Block, Config, Place
from hcp_logscan.analysis.facts import CONFIG_FACTS, FACTS
from hcp_logscan.analysis.gpus import find
from hcp_logscan.rules.load import load_rules

PAGE = Path(__file__).parents[1] / "docs" / "throughput.md"
TEXT = PAGE.read_text(encoding="utf-8")


def table(first):
    """Rows of the table whose head begins with these cells."""
    lines = TEXT.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


MODELS = {row[0]: row[1:] for row in table("model | layers")}


def shape(model, tokens):
    layers, hidden, heads, groups, ffn, vocabulary = MODELS[model]
    size, _, experts = ffn.partition(", ")
    values = {"swiglu": "True", "padded_vocab_size": vocabulary}
    if experts:
        top_k, many = experts.split(" of ")
        values |= {"num_experts": many, "moe_router_topk": top_k, "moe_ffn_hidden_size": size}
    facts = {
        **dict.fromkeys(CONFIG_FACTS),
        "num_layers": int(layers),
        "hidden_size": int(hidden),
        "ffn_hidden_size": int(size),
        "num_attention_heads": int(heads),
        "query_groups": int(groups),
        "seq_length": tokens,
    }
    placed = {("", key): (text, Place(0, 1, "", "args_dump")) for key, text in values.items()}
    return flops.shape(Config(facts, {}, True, blocks=(Block("args_dump", True, placed),)))


def test_snippets_run():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried >= 10) == (0, True)


@pytest.mark.parametrize("row", table("model | tokens"), ids=lambda row: f"{row[0]} {row[1]}")
def test_shares_and_inflations_are_those_of_the_model(row):
    found = shape(row[0], int(row[1]))
    assert row[2:] == [
        f"{found.flops / found.tokens / 1e9:.1f}",
        f"{found.attention / found.flops:.1%}",
        f"{found.inflation(8):.2f}",
        f"{found.inflation(16):.2f}",
    ]


def test_numbers_of_the_steady_state_are_those_of_the_code():
    assert f"at most {steady.WARM_UP_SHARE * 100:.0f} % of all" in TEXT
    assert f"running median of\n{steady.WINDOW_ROWS} lines" in TEXT
    assert f"is {steady.NOISE_DEVIATIONS:.0f} standard deviations" in TEXT
    assert f"at least {steady.NOISE_SHARE * 100:.0f} %" in TEXT
    assert f"more than {steady.PAUSES_SHARE * 100:.0f} % of all" in TEXT
    assert f"Fewer than {steady.MIN_ROWS} such lines" in TEXT
    assert f"until {pace.RESOLUTIONS} times as much has passed" in TEXT
    assert steady.LATE_SHARE == 0.1  # "the last tenth"


def test_rules_facts_and_peaks_that_it_names_exist():
    rules = {rule.id for rule in load_rules()}
    assert set(re.findall(r"HCP\d{3}", TEXT)) <= rules
    for fact in ("attention_flops_share", "cp_off_inflation", "tflops_if_cp_off"):
        assert f"`{fact}`" in TEXT
        assert fact in FACTS["attempts"]
    peaks = {name: find(name) for name in ("H200", "MI350X", "A100")}
    assert [gpu.dense["bf16"] for gpu in peaks.values() if gpu] == [989.4, 2306.9, 312]
    assert formula.EXPLANATIONS[:3] == ("sequence_length", "formula", "cp_off")
