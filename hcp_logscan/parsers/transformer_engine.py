"""Transformer Engine's attention debug lines.

Written from Transformer Engine
``pytorch/attention/dot_product_attention/{utils,dot_product_attention}.py`` (1.8 to 2.18 and main
of 2026-08) and public logs. ``NVTE_DEBUG=1`` with ``NVTE_DEBUG_LEVEL=2`` prints the configuration
(``Running with config={…}``, a Python dict that cannot be evaluated) and the selection; level 1
prints the chosen backend. The head of the line depends on who set up logging, so it is not looked
at. Keys: ``context_parallel`` always; ``cp_comm_type`` since 2.8, the *configured* value;
``cp_size`` since 2.15, measured from the groups. A value may be a tensor's text.
"""

from __future__ import annotations

import polars as pl

from hcp_logscan.parsers.base import LineParser


def _booleans(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        (pl.col(name) == "True").alias(name) for name in ("context_parallel", "is_training")
    )


PARSERS = (
    LineParser(
        name="te-config",
        table="attention_lines",
        needles=("Running with config={",),
        pattern=r"Running with"
        r" config=\{.*'(?:qkv_layout|attn_mask_type|transformer_engine_version)'",
        fields={
            "context_parallel": r"'context_parallel': (True|False)",
            "cp_comm_type": r"'cp_comm_type': '([^']*)'",
            "cp_size": r"'cp_size': ([0-9]+)",
            "is_training": r"'is_training': (True|False)",
            "num_heads": r"'num_heads': ([0-9]+)",
            "num_gqa_groups": r"'num_gqa_groups': ([0-9]+)",
            "head_dim": r"'head_dim(?:_qk)?': ([0-9]+)",
            "qkv_layout": r"'qkv_layout': '([^']*)'",
            "te_version": r"'transformer_engine_version': '([^']*)'",
            "max_seqlen_q": r"'max_seqlen_q': (?:tensor\()?([0-9]+)",
        },
        constants={"kind": "config"},
        finish=_booleans,
        sample="DEBUG:DotProductAttention:Running with config={'transformer_engine_version':"
        " '2.8.0',"
        " 'compute_capability': 'sm90', 'qkv_layout': 'sbhd_sbhd_sbhd', 'num_heads': 32,"
        " 'num_gqa_groups': 8, 'max_seqlen_q': 32768, 'head_dim_qk': 128, 'attn_mask_type':"
        " 'causal',"
        " 'context_parallel': True, 'cp_comm_type': 'a2a+p2p', 'is_training': True, 'fp8': False}",
        drift=False,
    ),
    LineParser(
        name="te-backend",
        table="attention_lines",
        needles=(
            "Running with FusedAttention backend",
            "Running with FlashAttention backend",
            "Running with UnfusedDotProductAttention backend",
            "Selected backend = ",
        ),
        pattern=r"(?:Running with (?P<running>[A-Za-z]+) backend|Selected backend ="
        r" (?P<selected>[A-Za-z]+))",
        constants={"kind": "backend"},
        finish=lambda rows: rows.with_columns(backend=rows["running"].fill_null(rows["selected"])),
        sample="[INFO     | DotProductAttention]: Running with FusedAttention backend"
        " (sub-backend 1)",
        drift=False,
    ),
    LineParser(
        name="te-cp-on",
        table="attention_lines",
        needles=("does not support context parallelism", "for context parallelism with"),
        pattern=r"Disabling [A-Za-z]+(?: [0-9])? (?:as it does not support context parallelism"
        r"|for context parallelism with)",
        fields={"cp_comm_type": r"cp_comm_type = '?([a-z0-9_+]+)"},
        constants={"kind": "cp_on"},
        sample="DEBUG:DotProductAttention:Disabling UnfusedDotProductAttention as it does not"
        " support"
        " context parallelism",
        drift=False,
    ),
)
