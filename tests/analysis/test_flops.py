"""Model FLOPs against numbers computed by hand from the published formula."""

import pytest

from hcp_logscan.analysis import flops
from hcp_logscan.analysis.config import Block, Config, Place
from hcp_logscan.analysis.facts import CONFIG_FACTS
from hcp_logscan.parsers.bridge_config import COMPARED_WITH

LLAMA_8B = {
    "num_layers": 32,
    "hidden_size": 4096,
    "ffn_hidden_size": 14336,
    "num_attention_heads": 32,
    "query_groups": 8,
    "kv_channels": 128,
}
LLAMA_70B = {
    "num_layers": 80,
    "hidden_size": 8192,
    "ffn_hidden_size": 28672,
    "num_attention_heads": 64,
    "query_groups": 8,
    "kv_channels": 128,
}
GATED = {"swiglu": "True", "padded_vocab_size": "128256"}
MIXTRAL = {
    "swiglu": "True",
    "padded_vocab_size": "32000",
    "num_experts": "8",
    "moe_router_topk": "2",
    "moe_ffn_hidden_size": "14336",
    "moe_layer_freq": "1",
}


def config(facts, values, *, source="args_dump", complete=True, section=""):
    placed = {(section, key): (text, Place(0, 1, "", source)) for key, text in values.items()}
    known = {**dict.fromkeys(CONFIG_FACTS), **facts}
    return Config(known, {}, complete, blocks=(Block(source, complete, placed),))


@pytest.mark.parametrize(
    ("facts", "values", "tokens", "linear", "attention"),
    [
        # per token: 6 x (32 x (41,943,040 + 176,160,768) + 525,336,576), and 6 x 32 x S x 4096
        (LLAMA_8B, GATED, 4_096, 45_027_950_592, 3_221_225_472),
        (LLAMA_8B, GATED, 131_072, 45_027_950_592, 103_079_215_104),
        # 6 x (80 x (150,994,944 + 704,643,072) + 1,050,673,152), and 6 x 80 x S x 8192
        (LLAMA_70B, GATED, 131_072, 417_010_286_592, 515_396_075_520),
        # 6 x (32 x (41,943,040 + 3 x 4096 x 2 x 14336) + 131,072,000)
        (LLAMA_8B, MIXTRAL, 4_096, 76_485_230_592, 3_221_225_472),
        # without gates two matrices: 6 x (32 x (41,943,040 + 117,440,512) + 525,336,576)
        (LLAMA_8B, {**GATED, "swiglu": "False"}, 4_096, 33_753_661_440, 3_221_225_472),
    ],
)
def test_flops_per_token_are_those_of_the_formula(facts, values, tokens, linear, attention):
    found = flops.shape(config({**facts, "seq_length": tokens}, values))
    assert found is not None
    assert found.linear / tokens == pytest.approx(linear, rel=1e-9)
    assert found.attention / tokens == pytest.approx(attention, rel=1e-9)


def test_the_inflation_is_all_counted_over_what_was_done():
    found = flops.shape(config({**LLAMA_8B, "seq_length": 131_072}, GATED))
    assert found is not None
    assert found.inflation(16) == pytest.approx(
        (45_027_950_592 + 103_079_215_104) / (45_027_950_592 + 103_079_215_104 / 16)
    )
    assert found.inflation(1) == 1


def test_experts_of_some_layers_and_a_shared_one():
    values = {
        **MIXTRAL,
        "moe_layer_freq": "([0]*2+[1]*30)",
        "moe_shared_expert_intermediate_size": "2048",
    }
    found = flops.shape(config({**LLAMA_8B, "seq_length": 4_096}, values))
    assert found is not None
    assert found.ffn_total == 2 * 14336 + 30 * (2 * 14336 + 2048)


@pytest.mark.parametrize(
    "values",
    [
        {"swiglu": "True"},
        {**GATED, "multi_latent_attention": "True"},
        {**GATED, "mtp_num_layers": "1"},
        {**GATED, "hybrid_layer_pattern": "M-M*"},
        {**GATED, "window_size": "(128, 0)"},
        {**GATED, "experimental_attention_variant": "gated_delta_net"},
        {**MIXTRAL, "moe_layer_freq": "lambda: 3"},
        {**MIXTRAL, "moe_layer_freq": "[0, 1]"},
        {**MIXTRAL, "moe_latent_size": "512"},
        {**MIXTRAL, "moe_router_topk": "many"},
    ],
    ids=lambda values: next(reversed(values)),
)
def test_what_counts_otherwise_or_is_missing_has_no_shape(values):
    assert flops.shape(config({**LLAMA_8B, "seq_length": 4_096}, values)) is None


def test_a_block_that_is_cut_off_has_no_shape():
    assert flops.shape(config({**LLAMA_8B, "seq_length": 4_096}, GATED, complete=False)) is None


@pytest.mark.parametrize(
    ("compared", "understood"),
    [("TransformerConfig", True), ("MLATransformerConfig", False), (None, False)],
)
def test_a_summary_counts_only_where_its_defaults_are_a_plain_transformers(compared, understood):
    values = {"gated_linear_unit": "True", "vocab_size": "128256"}
    if compared:
        values[COMPARED_WITH] = compared
    known = config(
        {**LLAMA_8B, "seq_length": 4_096}, values, source="bridge_summary", section="model"
    )
    assert (flops.shape(known) is not None) is understood
