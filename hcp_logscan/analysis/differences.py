"""What two runs were configured with: every setting and version that they do not share.

Settings are compared within a source that both runs have (argument dump with argument dump, Bridge
YAML with Bridge YAML), as raw text. Where the trainers differ, what both translate to is left: the
facts of CONFIG_FACTS. A key that one of two complete blocks lacks has its default there, or is
another version's; so it is no difference if the other one states that it is off.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.analysis.config import OPTION_NAMES, SOURCES
from hcp_logscan.model.comparison import ConfigDifference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hcp_logscan.analysis.config import Block

MAX_DIFFERENCES: Final = 300
"""Differences that a report carries; more are counted."""

CONTEXT: Final = "context parallelism"
SEQUENCE: Final = "sequence"
RECOMPUTE: Final = "recompute"
_OTHER: Final = "other"

_GROUPS: Final = (
    (CONTEXT, r"context_parallel|^cp_|hierarchical|use_decentralized_pg"),
    ("parallelism", r"parallel|world_size|^pipeline_|fsdp|^zero|distributed_optimizer|_stage$"),
    (
        "precision",
        r"^(bf16|fp16|fp32|fp8|fp4)|dtype|precision|_(in|of)_(fp32|bf16|fp16|fp8)|loss_scale",
    ),
    (SEQUENCE, r"seq(uence)?_len(gth)?$|max_position|packed|packing"),
    (
        "model shape",
        (
            r"num_layers|hidden_size|_heads$|query_groups|channels|vocab|^moe_|expert|^mtp_|^mla_|_latent"
            r"|position|rope|rotary|attention|norm|swiglu|gated|activation_func|tie_|transformer_impl"
        ),
    ),
    ("batch", r"batch_size|rampup|accumulat|microbatch|per_token_loss"),
    (RECOMPUTE, r"recompute|checkpoint_activations|offload"),
    ("versions and hardware", r"version$|^gpu$"),
)
"""Why a setting matters -> its name, the most relevant first."""

_ASKED_FIRST: Final = (RECOMPUTE, CONTEXT)
"""Groups whose names hold words of others: `recompute_num_layers`."""

_CP_KEYS: Final = (
    "context_parallel_size",
    "cp_comm_type",
    "hierarchical_context_parallel_sizes",
    "use_decentralized_pg",
)
_PLACES: Final = re.compile(
    r"dir$|path|^(?:save|load)$|(?:^|_)(?:name|exp|url|addr|port|id|seed|rank|prefix|host|user)s?$"
)
"""Settings that differ between any two runs: last among the others."""

_OFF: Final = frozenset({"none", "null", "~", "false", "0", "0.0", "[]", "{}", ""})
_DEFAULT: Final = "default"

_VERSIONS: Final = ("mcore_version", "te_version", "torch_version", "gpu")
_FACTS: Final = {**OPTION_NAMES, **{name: name for name in ("precision", *_VERSIONS)}}
"""Fact -> the name under which a difference of it is shown."""


def group_of(key: str) -> str:
    """Why a setting matters, by its name.

    >>> [group_of(key) for key in ("cp_comm_type", "recompute_num_layers", "fp8", "lr")]
    ['context parallelism', 'recompute', 'precision', 'other']
    """
    base = key.rpartition(".")[2]
    groups = dict(_GROUPS)
    order = (*_ASKED_FIRST, *groups)
    return next((name for name in order if re.search(groups[name], base)), _OTHER)


def differences(
    ours: Mapping[str, Any],
    our_blocks: Sequence[Block],
    theirs: Mapping[str, Any],
    their_blocks: Sequence[Block],
) -> tuple[ConfigDifference, ...]:
    """All differences of two attempts, the most relevant first, from their facts and blocks."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for here, there in _same_sources(our_blocks, their_blocks):
        for key, pair in _between(here, there):
            found.setdefault(key, pair)
    known = {key.rpartition(".")[2] for key in found}
    found |= {key: pair for key, pair in _of_facts(ours, theirs) if key not in known}
    shown = (ConfigDifference(group_of(key), key, value) for key, value in found.items())
    return tuple(sorted(shown, key=_relevance))


def _relevance(found: ConfigDifference) -> tuple[int, int, bool, bool, str]:
    base = found.key.rpartition(".")[2]
    groups = [name for name, _ in _GROUPS]
    return (
        groups.index(found.group) if found.group in groups else len(groups),
        _CP_KEYS.index(base) if base in _CP_KEYS else len(_CP_KEYS),
        _PLACES.search(base) is not None,
        None in found.value,
        found.key,
    )


def _same_sources(ours: Sequence[Block], theirs: Sequence[Block]) -> Iterator[tuple[Block, Block]]:
    """Blocks of one kind that both runs have, the one in effect first."""
    for source in SOURCES:
        here = next((block for block in ours if block.source == source), None)
        there = next((block for block in theirs if block.source == source), None)
        if here is not None and there is not None:
            yield here, there


def _between(ours: Block, theirs: Block) -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    """Keys of two blocks of one kind whose values differ."""
    left_out = _DEFAULT if ours.source == "bridge_summary" else None
    for name in dict.fromkeys((*ours.values, *theirs.values)):
        here, there = (block.values.get(name) for block in (ours, theirs))
        key = ".".join(part for part in name if part)
        if here is not None and there is not None:
            if _plain(here[0]) != _plain(there[0]):
                yield key, (here[0], there[0])
        elif here is not None and theirs.complete is not False and not _is_off(here[0]):
            yield key, (here[0], left_out)
        elif there is not None and ours.complete is not False and not _is_off(there[0]):
            yield key, (left_out, there[0])


def _of_facts(
    ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    for fact, key in _FACTS.items():
        here, there = (_said(facts, fact) for facts in (ours, theirs))
        if here is not None and there is not None and here != there:
            yield key, (here, there)


def _said(facts: Mapping[str, Any], fact: str) -> str | None:
    """A fact as text; sizes that were seen not to be set are `None` in words."""
    value = facts[fact]
    if fact == "hcp_sizes" and value is None and facts["hcp_sizes_set"] is False:
        return "None"
    return None if value is None else str(value)


def _plain(text: str) -> str | float:
    """A value without what only its spelling adds.

    >>> _plain("1e-05") == _plain("1.0E-5"), _plain("True") == _plain("true"), _plain("'a'")
    (True, True, 'a')
    """
    stripped = text.strip().strip("'\"").lower()
    if re.fullmatch(r"[-+]?[0-9]{1,18}(?:\.[0-9]{0,18})?(?:e[-+]?[0-9]{1,3})?", stripped):
        return float(stripped)
    return "none" if stripped in {"null", "~"} else stripped


def _is_off(text: str) -> bool:
    return text.strip().lower() in _OFF
