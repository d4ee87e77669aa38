"""Printed TFLOP/s against step time and shape, by every version of the formula."""

import polars as pl
import pytest

from hcp_logscan.analysis import flops, formula
from hcp_logscan.analysis.config import Block, Config, Place
from hcp_logscan.analysis.facts import CONFIG_FACTS, schema
from hcp_logscan.analysis.gpus import Hardware

FACTS = {
    **dict.fromkeys(CONFIG_FACTS),
    "num_layers": 32,
    "hidden_size": 4096,
    "ffn_hidden_size": 14336,
    "num_attention_heads": 32,
    "query_groups": 8,
    "kv_channels": 128,
    "seq_length": 4096,
    "world_size": 8,
    "global_batch_size": 64,
}
GATED = {"swiglu": "True", "padded_vocab_size": "128256"}


def config(values, *, complete=True):
    placed = {("", key): (text, Place(0, 1, "", "args_dump")) for key, text in values.items()}
    return Config(FACTS, {}, complete, blocks=(Block("args_dump", complete, placed),))


def lines(flops_of_sequence, *, step_ms=5_000.0, batch=64):
    rate = batch * flops_of_sequence / (step_ms / 1e3) / 8 / 1e12
    rows = {
        "tflops_per_gpu": [rate, float("nan"), rate],
        "step_ms": [step_ms, step_ms, step_ms],
        "global_batch_size": [batch, batch, None],
    }
    wanted = schema("iterations")
    return pl.DataFrame(rows, schema={name: wanted[name] for name in rows})


@pytest.mark.parametrize("factor", [1.0, 1.003])
def test_a_printed_rate_is_compared_with_step_time_and_shape(factor):
    known = config(GATED)
    shape = flops.shape(known)
    assert shape is not None
    found = formula.facts(known, None, lines(shape.flops * factor), vary=False)
    assert found["formula_error"] == pytest.approx(factor - 1, abs=1e-9)
    assert found["formula_tflops"] == pytest.approx(64 * shape.flops / 5 / 8 / 1e12)


def test_the_version_of_the_formula_that_fits_is_taken():
    half, whole = flops.shapes(config(GATED))
    assert whole.flops - half.flops == half.attention
    found = formula.facts(config(GATED), None, lines(whole.flops), vary=False)
    assert found["formula_error"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("values", "complete", "vary"),
    [
        (GATED, True, True),
        (GATED, False, False),
        ({"swiglu": "True"}, True, False),
        ({**GATED, "attention_output_gate": "True"}, True, False),
        ({**GATED, "activation_func": "<function gelu>"}, True, False),
    ],
)
def test_nothing_is_compared_that_versions_count_differently(values, complete, vary):
    found = formula.facts(config(values, complete=complete), None, lines(1e15), vary=vary)
    assert set(found.values()) == {None}


def test_the_padded_vocabulary_stands_in_its_line():
    marks = pl.DataFrame({"kind": ["training", "padded_vocabulary"], "value": [None, 128_256]})
    assert formula.padded_vocabulary(marks) == 128_256
    assert formula.padded_vocabulary(marks.clear()) is None


def test_an_old_fork_that_no_version_fits_is_not_compared():
    old = config({**GATED, **{f"option_{number}": "None" for number in range(200)}})
    half, whole = flops.shapes(old)
    for shape in (half, whole):
        found = formula.facts(old, None, lines(shape.flops), vary=False)
        assert found["formula_error"] == pytest.approx(0.0, abs=1e-9)
    found = formula.facts(old, None, lines(4 / 3 * whole.flops), vary=False)
    assert found == {"formula_tflops": None, "formula_error": None}


def known(**facts):
    usual = dict.fromkeys(
        ("data_seq_length", "formula_error", "formula_tflops", "tflops_if_cp_off", "cp_comm_type")
    )
    rate = {"tflops_median": 59_892.5, "peak_bound_tflops": 989.4, "seq_length": 131_072}
    return {**usual, **rate, "cp_size": 1, "verdict_status": "not_requested", **facts}


def test_data_that_is_shorter_bounds_what_was_done_where_the_shape_is_not_understood():
    said = formula.explanation(known(data_seq_length=1_024), None, Hardware())
    assert said == {
        "rate_explained_by": "sequence_length",
        "rate_explanation": "Explained by the data: FLOPs are counted for 131,072 tokens, the data"
        " set has 1,024, so at most 468 were done (47% of the peak).",
    }


def test_an_explanation_has_to_leave_a_possible_rate():
    off = {"tflops_if_cp_off": 5_000.0, "cp_size": 16, "cp_comm_type": "a2a+p2p"}
    facts = known(**off, verdict_status="inactive")
    assert formula.explanation(facts, None, Hardware())["rate_explained_by"] == "nothing"
    facts["tflops_if_cp_off"] = 500.0
    assert formula.explanation(facts, None, Hardware())["rate_explained_by"] == "cp_off"
    facts["verdict_status"] = "active"
    assert formula.explanation(facts, None, Hardware())["rate_explained_by"] == "nothing"
    facts["peak_bound_tflops"] = None
    assert formula.explanation(facts, None, Hardware())["rate_explained_by"] is None
