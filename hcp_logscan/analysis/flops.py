"""Megatron's accounting of model FLOPs, as far as the counterfactual "CP was off" needs it.

Trainers count, per sequence of S tokens, forward and backward (x 3), a multiply-add as two, causal
attention as half (Megatron-LM ``megatron/training/training.py``, ``num_floating_point_operations``;
Megatron-Bridge ``training/utils/flop_utils.py``):

    attention core   6 L S^2 q                                           q  = channels x heads
    token-linear     6 S (L (h (q + 2 kv) + q h) + g h F + h V)        kv = channels x query groups

with F the feed-forward size summed over the layers, g = 3 for gated units and 2 otherwise, V the
padded vocabulary; on a mixture-of-experts layer the size of the experts that one token takes, and
the shared one. With context parallelism silently off each rank attends inside its own S / CP
tokens, so the attention core that is *done* is 1 / CP of what is counted, and

    done = printed x (linear + attention / CP) / (linear + attention).

Multi-latent, linear, hybrid and windowed attention, multi-token prediction and latent experts count
otherwise: for them there is no shape here, and what needs one is inconclusive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.analysis.config import value_of
from hcp_logscan.parsers.bridge_config import COMPARED_WITH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan.analysis.config import Config

_OTHERWISE: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("multi_latent_attention", ("multi_latent_attention",)),
    ("mtp_num_layers", ("mtp_num_layers",)),
    ("hybrid_layer_pattern", ("hybrid_layer_pattern", "hybrid_override_pattern")),
    ("is_hybrid_model", ("is_hybrid_model",)),
    ("hybrid_override_pattern", ("hybrid_override_pattern",)),
    ("window_size", ("window_size",)),
    ("experimental_attention_variant", ("experimental_attention_variant",)),
    ("linear_attention_freq", ("linear_attention_freq",)),
    ("linear_attention_type", ("linear_attention_type",)),
    ("moe_latent_size", ("moe_latent_size",)),
)
"""Options under which FLOPs are counted otherwise: Megatron-LM's name, and Bridge's."""

_OFF: Final = frozenset({"None", "null", "~", "False", "false", "0", "", "[]"})
_MAX_LAYERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides the FLOPs of one sequence."""

    layers: int
    hidden: int
    query: int
    "Channels times heads."

    key_value: int
    "Channels times query groups."

    ffn_total: int
    "Feed-forward size that one token takes, summed over the layers."

    ffn_factor: int
    "Matrices of a feed-forward layer: 3 for gated units, else 2."

    vocabulary: int
    tokens: int
    "Sequence length S."

    @property
    def attention(self) -> float:
        """FLOPs of the attention core of one sequence, forward and backward."""
        return 6.0 * self.layers * self.tokens**2 * self.query

    @property
    def linear(self) -> float:
        """FLOPs of everything else, which grows with the tokens."""
        h = self.hidden
        projections = self.layers * (h * (self.query + 2 * self.key_value) + self.query * h)
        feed_forward = self.ffn_factor * h * self.ffn_total
        return 6.0 * self.tokens * (projections + feed_forward + h * self.vocabulary)

    def inflation(self, cp_size: int) -> float:
        """How many times too high a rate is printed with context parallelism off."""
        whole = self.linear + self.attention
        return whole / (self.linear + self.attention / cp_size)


def shape(known: Config) -> Shape | None:
    """The model shape of a configuration; None where a key is missing or counts otherwise."""
    if known.complete is not True or not _plain_defaults(known):
        return None
    if any((value_of(known, name, *bridge) or "None") not in _OFF for name, bridge in _OTHERWISE):
        return None
    facts = known.facts
    names = ("num_layers", "hidden_size", "num_attention_heads", "query_groups", "seq_length")
    layers, hidden, heads, groups, tokens = (facts[name] for name in names)
    if not all((layers, hidden, heads, groups, tokens)) or layers > _MAX_LAYERS:
        return None
    channels = facts["kv_channels"] or hidden // heads
    ffn = _ffn(known, layers)
    vocabulary = _vocabulary(known)
    if ffn is None or vocabulary is None:
        return None
    gated = any(
        (value_of(known, name, name) or "").lower() == "true"
        for name in ("swiglu", "gated_linear_unit")
    )
    return Shape(
        layers=layers,
        hidden=hidden,
        query=channels * heads,
        key_value=channels * groups,
        ffn_total=ffn,
        ffn_factor=3 if gated else 2,
        vocabulary=vocabulary,
        tokens=tokens,
    )


def _plain_defaults(known: Config) -> bool:
    """Whether what a summary leaves out has the defaults of a plain transformer.

    A summary of a multi-latent attention model does not say so, as that is its class's default.
    """
    compared = value_of(known, COMPARED_WITH, COMPARED_WITH)
    sources = {block.source for block in known.blocks}
    return compared == "TransformerConfig" or "bridge_summary" not in sources


def _number(known: Config, name: str, *bridge: str) -> int | None:
    text = value_of(known, name, *(bridge or (name,)))
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,12}", text) else None


def _vocabulary(known: Config) -> int | None:
    """The padded vocabulary; the tokenizer's own where no line says how it is padded."""
    return _number(known, "padded_vocab_size") or _number(known, "vocab_size")


def _ffn(known: Config, layers: int) -> int | None:
    """Feed-forward size that one token takes, summed over the layers."""
    dense = known.facts["ffn_hidden_size"]
    experts = value_of(known, "num_experts", "num_moe_experts") or "None"
    if experts in _OFF:
        return dense * layers if dense else None
    routed = _number(known, "moe_ffn_hidden_size") or dense
    top_k = _number(known, "moe_router_topk")
    if top_k is None and value_of(known, "moe_router_topk", "moe_router_topk") is None:
        top_k = 2  # Megatron-Core's default, which a summary leaves out
    of_experts = _expert_layers(value_of(known, "moe_layer_freq", "moe_layer_freq"), layers)
    if routed is None or top_k is None or of_experts is None:
        return None
    if of_experts < layers and not dense:
        return None
    shared = _number(known, "moe_shared_expert_intermediate_size") or 0
    return of_experts * (routed * top_k + shared) + (layers - of_experts) * (dense or 0)


def _expert_layers(frequency: str | None, layers: int) -> int | None:
    """Layers with experts: every n-th, or as a pattern of 0 and 1 says.

    >>> [_expert_layers(text, 4) for text in (None, "1", "2", "[0, 1, 1, 1]", "([0]*1+[1]*3)")]
    [4, 4, 2, 3, 3]
    """
    if frequency is None:
        return layers
    text = frequency.strip("'\"()")
    if re.fullmatch(r"[1-9][0-9]{0,3}", text):
        return len(range(0, layers, int(text)))
    if re.fullmatch(r"\[[01](?:, *[01])*\]", text):
        pattern = re.findall("[01]", text)
    elif re.fullmatch(r"\[[01]\]\*[0-9]{1,4}(?:\+\[[01]\]\*[0-9]{1,4})*", text):
        runs = re.findall(r"\[([01])\]\*([0-9]+)", text)
        pattern = [bit for bit, many in runs for _ in range(int(many))]
    else:
        return None
    return pattern.count("1") if len(pattern) == layers else None


def facts(known: Config, rate: float | None, peak: float | None) -> dict[str, Any]:
    """The counterfactual of one attempt: what was done, had context parallelism been off.

    `rate` is the printed TFLOP/s/GPU, `peak` the dense peak of the GPU.
    """
    found, cp_size = shape(known), known.facts["cp_size"]
    values: Mapping[str, Any] = dict.fromkeys(
        ("attention_flops_share", "cp_off_inflation", "tflops_if_cp_off", "peak_share_if_cp_off")
    )
    share = {"peak_share": rate / peak if rate is not None and peak else None}
    if found is None:
        return {**values, **share}
    inflation = found.inflation(cp_size) if cp_size else None
    done = rate / inflation if rate is not None and inflation else None
    return {
        **share,
        "attention_flops_share": found.attention / (found.attention + found.linear),
        "cp_off_inflation": inflation,
        "tflops_if_cp_off": done,
        "peak_share_if_cp_off": done / peak if done is not None and peak else None,
    }
