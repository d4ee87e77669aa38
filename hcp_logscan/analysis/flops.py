"""Megatron's accounting of model FLOPs, and the counterfactual "CP was off".

Trainers count, per sequence of S tokens, forward and backward (x 3), a multiply-add as two, causal
attention as half (Megatron-LM ``megatron/training/training.py``, ``num_floating_point_operations``,
core 0.12 to 0.19; Megatron-Bridge ``training/utils/flop_utils.py``, 0.1 to 0.6):

    attention core   6 L S^2 a
    token-linear     6 S (L p + f + m + h V (1 + M))

over L layers, the M multi-token prediction layers among them, with, of one token,

    a   attention: q = channels x heads; latent: heads x (qk + rotary + value channels) / 2
    p   projections: h (q + 2 kv) + q h, one more h q with an output gate; latent: below
    f   feed-forward, summed over the layers: g h F, g = 3 matrices for gated units, else 2; F of a
        layer with experts is that of the experts one token takes, plus the shared one's; where
        experts are latent, g l F and 2 l h
    m   of multi-token prediction: M (3 h + 2 h^2), norms and projection
    V   padded vocabulary

Core 0.7 to 0.11 count the whole attention matrix, twice as much, and every layer of a model with
experts as one with experts of the dense feed-forward size. docs/throughput.md derives all this.

With context parallelism silently off each rank attends inside its own S / CP tokens, so the
attention core that is *done* is 1 / CP of what is counted, and

    done = printed x (linear + attention / CP) / (linear + attention).

Linear, hybrid, sparse and windowed attention, layers that differ from each other, and vision towers
count otherwise: for them there is no shape here, and what needs one is inconclusive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.analysis.config import value_of, version_code
from hcp_logscan.parsers.bridge_config import COMPARED_WITH

if TYPE_CHECKING:
    from hcp_logscan.analysis.config import Config

_OTHERWISE: Final = (
    "hybrid_layer_pattern",
    "hybrid_override_pattern",
    "is_hybrid_model",
    "window_size",
    "experimental_attention_variant",
    "linear_attention_freq",
    "linear_attention_type",
    "heterogeneous_layers_config_path",
    "heterogeneous_layers_config_encoded_json",
    "heterogeneous_block_specs",
    "vision_config",
)
"""Options under which FLOPs are counted otherwise."""

_OFF: Final = frozenset({"None", "null", "~", "False", "false", "0", "", "[]"})
_ON: Final = frozenset({"True", "true"})
_MAX_LAYERS: Final = 10_000

_LATENT_DEFAULTS: Final = {
    "q_lora_rank": "512",
    "kv_lora_rank": "512",
    "qk_head_dim": "128",
    "qk_pos_emb_head_dim": "64",
    "v_head_dim": "128",
}
"""Megatron-Core's ``MLATransformerConfig``: what a summary compared with it leaves out."""

_COUNTS_HALF: Final = 12_000
"""Megatron-Core 0.12, the first that counts causal attention as half, as a version code."""

_ENTIRE_DUMP: Final = 200
"""Arguments of a dump that nobody shortened: an option that is not in it did not exist yet."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides the FLOPs of one sequence; sizes in multiply-adds of one token."""

    layers: int
    "Transformer layers, those of multi-token prediction among them."

    projections: int
    "Of the attention of one layer."

    attention_width: float
    "Channels times heads, or what stands for it in latent attention."

    feed_forward: int
    "Summed over the layers."

    prediction: int
    "Norms and projections of multi-token prediction."

    logits: int
    tokens: int
    "Sequence length S."

    whole_attention: bool = False
    "The formula does not halve causal attention."

    @property
    def attention(self) -> float:
        """FLOPs of the attention core of one sequence, forward and backward."""
        factor = 12.0 if self.whole_attention else 6.0
        return factor * self.layers * self.tokens**2 * self.attention_width

    @property
    def linear(self) -> float:
        """FLOPs of everything else, which grows with the tokens."""
        attention = self.layers * self.projections
        return 6.0 * self.tokens * (attention + self.feed_forward + self.prediction + self.logits)

    @property
    def flops(self) -> float:
        """FLOPs of one sequence, forward and backward."""
        return self.linear + self.attention

    def inflation(self, cp_size: int) -> float:
        """How many times too high a rate is printed with context parallelism off."""
        return self.flops / (self.linear + self.attention / cp_size)


def shape(known: Config, padded_vocabulary: int | None = None) -> Shape | None:
    """The model shape of a configuration; None where a key is missing or counts otherwise.

    `padded_vocabulary` is the size that a start-up line prints, behind the argument dump.
    """
    return _shape(known, padded_vocabulary, old=_is_old(known))


def shapes(known: Config, padded_vocabulary: int | None = None) -> tuple[Shape, ...]:
    """The shape as every version of the formula counts it; none where `shape` has none."""
    found = (_shape(known, padded_vocabulary, old=old) for old in (False, True))
    return tuple(one for one in found if one is not None)


def _shape(known: Config, padded_vocabulary: int | None, *, old: bool) -> Shape | None:
    if known.complete is not True or _counts_otherwise(known):
        return None
    facts = known.facts
    names = ("num_layers", "hidden_size", "num_attention_heads", "query_groups", "seq_length")
    layers, hidden, heads, groups, tokens = (facts[name] for name in names)
    if not all((layers, hidden, heads, groups, tokens)) or layers > _MAX_LAYERS:
        return None
    mtp = 0 if _off(known, "mtp_num_layers") else _number(known, "mtp_num_layers")
    experts = _layers_with_experts(known, layers, old=old)
    vocabulary = _vocabulary(known, padded_vocabulary)
    attention = _attention(known, hidden, heads, groups)
    if mtp is None or mtp > _MAX_LAYERS or not experts or not vocabulary or attention is None:
        return None
    feed_forward = _feed_forward(known, hidden, (*experts, *experts[-1:] * mtp), old=old)
    if feed_forward is None:
        return None
    return Shape(
        layers=layers + mtp,
        projections=attention[0],
        attention_width=attention[1],
        feed_forward=feed_forward,
        prediction=mtp * (3 * hidden + 2 * hidden**2),
        logits=hidden * vocabulary * (1 + mtp),
        tokens=tokens,
        whole_attention=old,
    )


def _said(known: Config, name: str) -> str | None:
    return value_of(known, name, name)


def _off(known: Config, name: str) -> bool:
    """Whether an option is off or, as its default is, unsaid."""
    return (_said(known, name) or "None") in _OFF


def _on(known: Config, *names: str) -> bool:
    return any(_said(known, name) in _ON for name in names)


def _number(known: Config, name: str) -> int | None:
    text = _said(known, name)
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,12}", text) else None


def _compared_with(known: Config) -> str | None:
    """The class whose defaults a summary of the model leaves out; empty without a summary."""
    if "bridge_summary" not in {block.source for block in known.blocks}:
        return ""
    return value_of(known, COMPARED_WITH, COMPARED_WITH)


def _counts_otherwise(known: Config) -> bool:
    if _compared_with(known) not in {"", "TransformerConfig", "MLATransformerConfig"}:
        return True
    stated = {
        part: value
        for block in known.blocks
        for (section, key), (value, _) in block.values.items()
        if section in {"", "model"}
        for part in key.split(".")
    }
    return any(stated.get(name, "None") not in _OFF for name in _OTHERWISE)


def _is_old(known: Config) -> bool:
    """Whether the formula is that of Megatron-Core before 0.12."""
    code = version_code(known.facts["mcore_version"])
    if code is not None:
        return code < _COUNTS_HALF
    dumps = [block.values for block in known.blocks if block.source == "args_dump"]
    return any(
        len(values) >= _ENTIRE_DUMP and not {("", "mtp_num_layers"), ("", "fp8_recipe")} & {*values}
        for values in dumps
    )


def _vocabulary(known: Config, padded: int | None) -> int | None:
    """The padded vocabulary; the tokenizer's own where no line says how it is padded."""
    return _number(known, "padded_vocab_size") or padded or _number(known, "vocab_size")


def _attention(known: Config, hidden: int, heads: int, groups: int) -> tuple[int, float] | None:
    """Projections and width of the attention of one layer; None where a size is missing."""
    summary = _compared_with(known)
    if not _on(known, "multi_latent_attention") and summary != "MLATransformerConfig":
        query, key_value = (
            (known.facts["kv_channels"] or hidden // heads) * many for many in (heads, groups)
        )
        gate = hidden * query if _on(known, "attention_output_gate") else 0
        return hidden * (query + 2 * key_value) + query * hidden + gate, float(query)
    defaults = _LATENT_DEFAULTS if summary == "MLATransformerConfig" else {}
    said = {name: _said(known, name) or defaults.get(name) for name in _LATENT_DEFAULTS}
    if said["q_lora_rank"] in _OFF:
        said["q_lora_rank"] = "0"
    sizes = [
        int(text) if text is not None and re.fullmatch(r"[0-9]{1,12}", text) else None
        for text in said.values()
    ]
    if any(size is None for size in sizes):
        return None
    query_rank, rank, channels, rotary, value = (size or 0 for size in sizes)
    query = heads * (channels + rotary)
    # from hidden to query, straight or by a low rank with its norm
    to_query = query_rank * (hidden + query + 1) if query_rank else hidden * query
    to_key_value = rank * (hidden + heads * (channels + value) + 1) + hidden * rotary
    output = heads * value * hidden
    return to_query + to_key_value + output, (query + heads * value) / 2


def _has_experts(known: Config) -> bool:
    return (value_of(known, "num_experts", "num_moe_experts") or "None") not in _OFF


def _layers_with_experts(known: Config, layers: int, *, old: bool) -> tuple[bool, ...] | None:
    if not _has_experts(known):
        return (False,) * layers
    return (True,) * layers if old else expert_layers(_said(known, "moe_layer_freq"), layers)


def _feed_forward(
    known: Config, hidden: int, experts: tuple[bool, ...], *, old: bool
) -> int | None:
    """Multiply-adds of the feed-forward layers, of which `experts` says which have experts."""
    dense = known.facts["ffn_hidden_size"]
    matrices = 3 if _on(known, "swiglu", "gated_linear_unit") else 2
    many = sum(experts)
    if not dense and many < len(experts):
        return None
    total = (len(experts) - many) * matrices * hidden * (dense or 0)
    if not many:
        return total
    routed = dense if old else _number(known, "moe_ffn_hidden_size") or dense
    top_k = _number(known, "moe_router_topk")
    if top_k is None and _said(known, "moe_router_topk") is None:
        top_k = 2  # Megatron-Core's default, which a summary leaves out
    latent = 0 if _off(known, "moe_latent_size") else _number(known, "moe_latent_size")
    if routed is None or top_k is None or latent is None:
        return None
    shared = _number(known, "moe_shared_expert_intermediate_size") or 0
    taken = matrices * top_k * routed * (latent or hidden) + 2 * latent * hidden
    return total + many * (taken + matrices * hidden * shared)


def expert_layers(frequency: str | None, layers: int) -> tuple[bool, ...] | None:
    """Which layers have experts: every n-th, or as a pattern of 0 and 1 says.

    >>> texts = (None, "1", "2", "[0, 1, 1, 1]", "([0]*1+[1]*3)")
    >>> [sum(expert_layers(text, 4)) for text in texts]
    [4, 4, 2, 3, 3]
    """
    if frequency is None:
        return (True,) * layers
    text = frequency.strip("'\"()")
    if re.fullmatch(r"[1-9][0-9]{0,3}", text):
        return tuple(layer % int(text) == 0 for layer in range(layers))
    if re.fullmatch(r"\[[01](?:, *[01])*\]", text):
        pattern = re.findall("[01]", text)
    elif re.fullmatch(r"\[[01]\]\*[0-9]{1,4}(?:\+\[[01]\]\*[0-9]{1,4})*", text):
        runs = re.findall(r"\[([01])\]\*([0-9]+)", text)
        pattern = [bit for bit, many in runs for _ in range(int(many))]
    else:
        return None
    return tuple(bit == "1" for bit in pattern) if len(pattern) == layers else None


def facts(
    found: Shape | None, cp_size: int | None, rate: float | None, peak: float | None
) -> dict[str, Any]:
    """The counterfactual of one attempt: what was done, had context parallelism been off.

    `rate` is the printed TFLOP/s/GPU, `peak` the dense peak of the GPU.
    """
    values: dict[str, Any] = dict.fromkeys(
        ("attention_flops_share", "cp_off_inflation", "tflops_if_cp_off", "peak_share_if_cp_off")
    )
    values["peak_share"] = rate / peak if rate is not None and peak else None
    if found is None:
        return values
    inflation = found.inflation(cp_size) if cp_size else None
    done = rate / inflation if rate is not None and inflation else None
    return {
        **values,
        "attention_flops_share": found.attention / found.flops,
        "cp_off_inflation": inflation,
        "tflops_if_cp_off": done,
        "peak_share_if_cp_off": done / peak if done is not None and peak else None,
    }
