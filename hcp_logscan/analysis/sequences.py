"""Whether the sequences of a run have the configured length.

Where they are packed, or their lengths vary, batch size times sequence length is not the number of
tokens that a step trained, and model FLOPs that are counted from it are not those that were done.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from hcp_logscan.analysis.config import Config

_PACKS: Final = frozenset(
    {
        "variable_seq_lengths",  # Megatron-LM, Megatron-Bridge
        "sft",  # Megatron-LM: its data set packs
        "rl_use_sequence_packing",
        "packed_sequence_specs",  # Megatron-Bridge
        "offline_packing_specs",
        "enable_in_batch_packing",
        "pack_sequences_in_batch",
        "packing",  # ms-swift
        "padding_free",
        "dynamic_context_parallel",
        "hybrid_context_parallel",
        "curriculum_learning_legacy",  # Megatron-DeepSpeed: the length grows
    }
)
"""Options under which sequences are packed or vary, by the last or an earlier part of the key."""

_OFF: Final = frozenset({"None", "null", "~", "False", "false", "0", "", "[]", "{}"})
_LENGTHS: Final = ("sequence_length", "seq_length")


def vary(known: Config, attention_lines: pl.DataFrame) -> bool | None:
    """Whether sequences are packed or of several lengths; None where the logs do not say.

    `attention_lines` is that event table of the attempt: `thd` layouts are packed. A vision tower
    may pack while the decoder does not, which is taken for packing: then a number is left out.
    """
    for block in known.blocks:
        for (_, key), (value, _) in block.values.items():
            if value not in _OFF and not _PACKS.isdisjoint(key.split(".")):
                return True
    training = attention_lines.filter(
        (pl.col("kind") == "config") & pl.col("is_training").fill_null(value=True)
    )
    layouts = training["qkv_layout"].drop_nulls()
    if layouts.str.starts_with("thd").any():
        return True
    return False if known.complete or layouts.len() else None


def length_of_data(known: Config) -> int | None:
    """Length that a Megatron-Bridge configuration gives the data set, apart from the model's."""
    for block in known.blocks:
        for name in _LENGTHS:
            text, _ = block.values.get(("dataset", name), ("", None))
            if re.fullmatch(r"[1-9][0-9]{0,11}", text):
                return int(text)
    return None


def trained_length(known: Config, attention_lines: pl.DataFrame) -> int | None:
    """Tokens of every trained sequence; None where they differ or are not known."""
    length, data = known.facts["seq_length"], length_of_data(known)
    if vary(known, attention_lines) or (data is not None and data != length):
        return None
    return length if isinstance(length, int) else None
