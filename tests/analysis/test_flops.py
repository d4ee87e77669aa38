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

DEEPSEEK_V3 = {
    "num_layers": 61,
    "hidden_size": 7168,
    "ffn_hidden_size": 18432,
    "num_attention_heads": 128,
    "query_groups": 128,
    "kv_channels": 128,
}
LATENT = {
    "multi_latent_attention": "True",
    "q_lora_rank": "1536",
    "kv_lora_rank": "512",
    "qk_head_dim": "128",
    "qk_pos_emb_head_dim": "64",
    "v_head_dim": "128",
}
DEEPSEEK_V3_VALUES = {
    **LATENT,
    "swiglu": "True",
    "padded_vocab_size": "129280",
    "num_experts": "256",
    "moe_router_topk": "8",
    "moe_ffn_hidden_size": "2048",
    "moe_shared_expert_intermediate_size": "2048",
    "moe_layer_freq": "([0]*3+[1]*58)",
    "mtp_num_layers": "1",
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
        (LLAMA_70B, GATED, 4_096, 417_010_286_592, 16_106_127_360),
        (LLAMA_70B, GATED, 131_072, 417_010_286_592, 515_396_075_520),
        # 6 x (32 x (41,943,040 + 3 x 4096 x 2 x 14336) + 131,072,000)
        (LLAMA_8B, MIXTRAL, 4_096, 76_485_230_592, 3_221_225_472),
        (LLAMA_8B, MIXTRAL, 131_072, 76_485_230_592, 103_079_215_104),
        # of 62 layers (one predicts a second token), 3 dense: with
        # p = 1536 x (7168 + 128 x 192 + 1) + 512 x (7168 + 128 x 256 + 1) + 7168 x 64
        #     + 128 x 128 x 7168 = 187,107,328
        # f = 3 x 3 x 7168 x 18432 + 59 x 3 x 7168 x (8 x 2048 + 2048) = 24,574,427,136
        # m = 3 x 7168 + 2 x 7168^2 = 102,781,952, and logits of 2 x 7168 x 129280
        # 6 x (62 p + f + m + 1,853,358,080), and 6 x 62 x S x 128 x (192 + 128) / 2
        (DEEPSEEK_V3, DEEPSEEK_V3_VALUES, 4_096, 228_787_329_024, 31_205_621_760),
        (DEEPSEEK_V3, DEEPSEEK_V3_VALUES, 131_072, 228_787_329_024, 998_579_896_320),
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
    assert found.feed_forward == 3 * 4096 * (2 * 14336 + 30 * (2 * 14336 + 2048))


def test_latent_experts_work_in_their_own_size_behind_two_projections():
    values = {**MIXTRAL, "moe_latent_size": "512"}
    found = flops.shape(config({**LLAMA_8B, "seq_length": 4_096}, values))
    assert found is not None
    assert found.feed_forward == 32 * (3 * 512 * 2 * 14336 + 2 * 512 * 4096)


def test_an_output_gate_is_one_more_projection():
    plain, gated = (
        flops.shape(config({**LLAMA_8B, "seq_length": 4_096}, {**GATED, **more}))
        for more in ({}, {"attention_output_gate": "True"})
    )
    assert plain is not None
    assert gated is not None
    assert gated.projections - plain.projections == 4096 * 4096


def test_a_query_without_low_rank_is_projected_straight():
    values = {**DEEPSEEK_V3_VALUES, "q_lora_rank": "None"}
    found = flops.shape(config({**DEEPSEEK_V3, "seq_length": 4_096}, values))
    assert found is not None
    assert found.projections == 187_107_328 - 48_760_320 + 7168 * 128 * 192


@pytest.mark.parametrize("how", ["version", "entire dump"])
def test_before_core_0_12_attention_counts_whole_and_every_layer_has_experts(how):
    values = {**MIXTRAL, "moe_layer_freq": "2", "moe_ffn_hidden_size": "1024"}
    facts = {**LLAMA_8B, "seq_length": 4_096}
    if how == "version":
        facts["mcore_version"] = "0.11.0"
    else:
        values |= {f"option_{number}": "None" for number in range(200)}
    found = flops.shape(config(facts, values))
    assert found is not None
    assert found.attention / 4_096 == 2 * 3_221_225_472
    assert found.linear / 4_096 == pytest.approx(76_485_230_592, rel=1e-9)
    values["mtp_num_layers"] = "None"
    found = flops.shape(config({**facts, "mcore_version": None}, values))
    assert found is not None
    assert found.attention / 4_096 == 3_221_225_472


def test_the_padded_vocabulary_may_stand_in_a_line_of_its_own():
    values = {"swiglu": "True", "padded_vocab_size": "None", "vocab_size": "None"}
    known = config({**LLAMA_8B, "seq_length": 4_096}, values)
    assert flops.shape(known) is None
    found = flops.shape(known, 128_256)
    assert found is not None
    assert found.linear / 4_096 == pytest.approx(45_027_950_592, rel=1e-9)


@pytest.mark.parametrize(
    "values",
    [
        {"swiglu": "True"},
        {**GATED, "multi_latent_attention": "True"},
        {**GATED, **LATENT, "kv_lora_rank": "None"},
        {**GATED, "mtp_num_layers": "some"},
        {**GATED, "hybrid_layer_pattern": "M-M*"},
        {**GATED, "window_size": "(128, 0)"},
        {**GATED, "experimental_attention_variant": "gated_delta_net"},
        {**GATED, "heterogeneous_layers_config_path": "/cfg/blocks.json"},
        {**GATED, "vision_config.depth": "32"},
        {**MIXTRAL, "moe_layer_freq": "lambda: 3"},
        {**MIXTRAL, "moe_layer_freq": "[0, 1]"},
        {**MIXTRAL, "moe_latent_size": "wide"},
        {**MIXTRAL, "moe_router_topk": "many"},
    ],
    ids=lambda values: next(reversed(values)),
)
def test_what_counts_otherwise_or_is_missing_has_no_shape(values):
    assert flops.shape(config({**LLAMA_8B, "seq_length": 4_096}, values)) is None


def test_a_block_that_is_cut_off_has_no_shape():
    assert flops.shape(config({**LLAMA_8B, "seq_length": 4_096}, GATED, complete=False)) is None


@pytest.mark.parametrize(
    ("compared", "projections"),
    [
        ("TransformerConfig", 41_943_040),
        # the class's own ranks and channels: 512, 512, 128, 64, 128
        (
            "MLATransformerConfig",
            512 * (4096 + 32 * 192 + 1) + 512 * (4096 + 32 * 256 + 1) + 4096 * 64 + 32 * 128 * 4096,
        ),
        ("MambaConfig", None),
        (None, None),
    ],
)
def test_what_a_summary_leaves_out_is_the_default_of_its_class(compared, projections):
    values = {"gated_linear_unit": "True", "vocab_size": "128256"}
    if compared:
        values[COMPARED_WITH] = compared
    known = config(
        {**LLAMA_8B, "seq_length": 4_096}, values, source="bridge_summary", section="model"
    )
    found = flops.shape(known)
    assert (found.projections if found else None) == projections
