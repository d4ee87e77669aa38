"""What was configured in one attempt, key by key, from every block that states it.

Several sources may state one key: the argument dump, Bridge's printed YAML and its summary, the
`using world size` line, a saved configuration. The first of them in `SOURCES` is in effect; two
that disagree on a key that decides about CP are a conflict. What a *complete* block leaves out has
its default; what a cut-off block leaves out is unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.facts import CONFIG_FACTS
from hcp_logscan.model.report import MAX_WORLD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

START_UP: Final = ("args_dump", "bridge_yaml", "bridge_summary", "world_size_line")
"""Sources that a trainer prints when it starts: seen again, they begin an attempt."""

SOURCES: Final = (
    *START_UP,
    *("saved_yaml", "device_mesh", "command_line", "mllog", "progress", "launcher"),
)
"""Sources of configuration, the one in effect first."""

_WHOLE: Final = frozenset({"args_dump", "bridge_yaml", "bridge_summary", "saved_yaml"})
"""Sources that state everything if they are read to their end."""

_OPTIONS: Final = frozenset({"device_mesh", "command_line", "mllog", "progress", "launcher"})
"""Sources that state a few values and never what has its default."""

_BRIDGE: Final = frozenset({"bridge_yaml", "bridge_summary", "saved_yaml"})
_NONE: Final = frozenset({"None", "null", "~"})
_OFF: Final = _NONE | {"False", "false", ""}
MAX_SAVED: Final = 16
"""Saved configurations that are looked at in one run."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands."""

    file: int
    line: int
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Block:
    """One source of one attempt: raw values by (section, key), and whether it is whole."""

    source: str
    complete: bool | None
    values: Mapping[tuple[str, str], tuple[str, Place]]


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration in effect."""

    facts: Mapping[str, Any]
    "One entry per name of CONFIG_FACTS (versions and precision included), None = not observed."

    places: Mapping[str, Place]
    "Fact name -> where its value stands; defaults that no line states are absent."

    complete: bool | None
    "A block was read to its end; False if one began and was cut off; None if there is none."

    conflicts: tuple[str, ...] = ()
    conflict_places: tuple[Place, ...] = ()
    saved_requests_hcp: bool | None = None
    blocks: tuple[Block, ...] = field(default=())


def _int(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None


def _size(text: str) -> int | None:
    """A parallel size. Zero, less, or more than any job has is a damaged number, not a size."""
    number = _int(text)
    return number if number is not None and 1 <= number <= MAX_WORLD else None


def _bool(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


_SIZES: Final = re.compile(
    r"\[ *(?:\d{1,6}(?: *, *\d{1,6})*)? *\]|\d{1,6}(?:[ ,]+\d{1,6})*"  # dump, YAML | options
)
_COMM: Final = r"['\"]?(?:a2a\+p2p|p2p|a2a|all_gather)['\"]?"
_COMM_TYPE: Final = re.compile(rf"\[ *{_COMM}(?: *, *{_COMM})* *\]|{_COMM}(?:[ ,]+{_COMM})*")


def _sizes(text: str) -> list[int] | None:
    """Sizes as a list of numbers; None for what is no whole list of them.

    >>> _sizes("[8, 2]"), _sizes("8 2"), _sizes("[8,"), _sizes("[2, 2]NCCL version 2.21")
    ([8, 2], [8, 2], None, None)
    """
    if not _SIZES.fullmatch(text):
        return None
    return [int(number) for number in re.findall(r"\d+", text)] or None


def _comm_type(text: str) -> str | None:
    """cp_comm_type without repeats: `['p2p', 'a2a+p2p', 'p2p']` -> `p2p,a2a+p2p`.

    >>> _comm_type("['a2a+p2p']"), _comm_type("['a2a")
    ('a2a+p2p', None)
    """
    if not _COMM_TYPE.fullmatch(text):
        return None
    return ",".join(dict.fromkeys(re.findall(r"[a-z][a-z0-9_+]*", text)))


def _text(text: str) -> str | None:
    return text or None


@dataclass(frozen=True, slots=True)
class _Key:
    """How one fact is called in Megatron-LM's dump and in Bridge's configuration."""

    megatron: str
    bridge: tuple[tuple[str, str], ...]
    read: Callable[[str], Any]


def _model(name: str) -> tuple[tuple[str, str], ...]:
    return (("model", name),)


_KEYS: Final[Mapping[str, _Key]] = {
    "cp_size": _Key("context_parallel_size", _model("context_parallel_size"), _size),
    "cp_comm_type": _Key("cp_comm_type", _model("cp_comm_type"), _comm_type),
    "hcp_sizes": _Key(
        "hierarchical_context_parallel_sizes",
        _model("hierarchical_context_parallel_sizes"),
        _sizes,
    ),
    "seq_length": _Key("seq_length", (("model", "seq_length"), ("dataset", "seq_length")), _int),
    "tp_size": _Key("tensor_model_parallel_size", _model("tensor_model_parallel_size"), _size),
    "pp_size": _Key("pipeline_model_parallel_size", _model("pipeline_model_parallel_size"), _size),
    "dp_size": _Key("data_parallel_size", (("dataset", "data_parallel_size"),), _size),
    "ep_size": _Key("expert_model_parallel_size", _model("expert_model_parallel_size"), _size),
    "world_size": _Key("world_size", (), _size),
    "num_layers": _Key("num_layers", _model("num_layers"), _int),
    "hidden_size": _Key("hidden_size", _model("hidden_size"), _int),
    "ffn_hidden_size": _Key("ffn_hidden_size", _model("ffn_hidden_size"), _int),
    "num_attention_heads": _Key("num_attention_heads", _model("num_attention_heads"), _int),
    "kv_channels": _Key("kv_channels", _model("kv_channels"), _int),
    "micro_batch_size": _Key("micro_batch_size", (("train", "micro_batch_size"),), _int),
    "global_batch_size": _Key("global_batch_size", (("train", "global_batch_size"),), _int),
    "train_iters": _Key("train_iters", (("train", "train_iters"),), _int),
    "log_interval": _Key("log_interval", (("logger", "log_interval"),), _int),
    "num_workers": _Key(
        "num_workers",
        (("dataset", "num_workers"), ("data", "num_workers"), ("model", "data.num_workers")),
        _int,
    ),
    "transformer_impl": _Key("transformer_impl", _model("transformer_impl"), _text),
    "hybrid_context_parallel": _Key(
        "hybrid_context_parallel", _model("hybrid_context_parallel"), _bool
    ),
    "use_decentralized_pg": _Key(
        "use_decentralized_pg", (("dist", "use_decentralized_pg"),), _bool
    ),
}
OPTION_NAMES: Final[Mapping[str, str]] = {fact: key.megatron for fact, key in _KEYS.items()}
"""Fact -> what Megatron-LM calls it."""

_COMPARED: Final = ("cp_size", "cp_comm_type", "hcp_sizes", "tp_size", "pp_size", "seq_length")
"""Facts whose disagreement between two sources is a conflict: they decide about CP."""


def blocks_of(
    config: pl.DataFrame, blocks: pl.DataFrame, sources: Sequence[str] = SOURCES
) -> tuple[Block, ...]:
    """The blocks of one attempt, one per source (of repeats the most complete, then the first).

    Saved configurations are files of their own, so all of them stay, the most complete first.
    """
    found: list[Block] = []
    for source in sources:
        best = blocks.filter(pl.col("source") == source).sort(
            ["complete", "entries"], descending=True, maintain_order=True, nulls_last=True
        )
        limit = MAX_SAVED if source == "saved_yaml" else 1
        for file, stream, line, complete in (
            best.head(limit).select("file", "stream", "line", "complete").iter_rows()
        ):
            mine = config.filter(
                (pl.col("source") == source)
                & (pl.col("file") == file)
                & (pl.col("stream") == stream)
                & (pl.col("block") == line)
            )
            found.append(Block(source, complete, _values(mine, source)))
    return tuple(found)


def _values(rows: pl.DataFrame, source: str) -> dict[tuple[str, str], tuple[str, Place]]:
    """(section, key) -> (value, place). A torn line does not hide one that could be read."""
    values: dict[tuple[str, str], tuple[str, Place]] = {}
    columns = rows.select("file", "section", "key", "value", "line", "text")
    for file, section, key, value, line, text in columns.iter_rows():
        if value or (section, key) not in values:
            values[section, key] = (value, Place(file, line, text, source))
    return values


@dataclass(frozen=True, slots=True)
class Stated:
    """What one block says of one fact: a value, or (with value None) that there is none."""

    value: Any
    place: Place | None
    "None for a default that a complete block leaves unsaid."


def _raw(block: Block, fact: str) -> tuple[str, Place] | None:
    key = _KEYS[fact]
    if block.source in _BRIDGE:
        for name in key.bridge:
            if name in block.values:
                return block.values[name]
        return None
    return block.values.get(("", key.megatron))


def _stated(block: Block, fact: str) -> Stated | None:
    """What a block says; None if it says nothing that can be read."""
    raw = _raw(block, fact)
    if raw is None:
        return None
    text, place = raw
    if text in _NONE:
        return Stated(None, place)
    value = _KEYS[fact].read(text)
    return None if value is None else Stated(value, place)


def _decided(block: Block, fact: str) -> Stated | None:
    """What a block says or, being complete, leaves at its default.

    Bridge's summary leaves out what has its default. An argument dump that has neither
    cp_comm_type nor the sizes is of a Megatron before 0.10, which has no hierarchical groups. YAML
    states every field: one that is missing there was lost.
    """
    stated = _stated(block, fact)
    if stated is not None or not block.complete or _raw(block, fact) is not None:
        return stated
    old = block.source == "args_dump" and not any(
        _raw(block, name) for name in ("cp_comm_type", "hcp_sizes")
    )
    if fact in _DEFAULTS and (block.source == "bridge_summary" or old):
        return Stated(_DEFAULTS[fact], None)
    return None


_DEFAULTS: Final[Mapping[str, Any]] = {
    "cp_size": 1,
    "tp_size": 1,
    "pp_size": 1,
    "cp_comm_type": None,
    "hcp_sizes": None,
}


_MAY_BE_NONE: Final = frozenset({"cp_comm_type", "hcp_sizes"})
"""Facts of which "none" is an answer."""


def _first(blocks: Sequence[Block], fact: str) -> Stated | None:
    """The first block that decides a fact; `None` as a value decides CP facts only."""
    for block in blocks:
        decided = _decided(block, fact)
        if decided is not None and (decided.value is not None or fact in _MAY_BE_NONE):
            return decided
    return None


def _complete(blocks: Sequence[Block]) -> bool | None:
    ended = [
        block.complete for block in blocks if block.source in _WHOLE and block.complete is not None
    ]
    return any(ended) if ended else None


def _conflicts(blocks: Sequence[Block]) -> tuple[list[str], list[Place]]:
    names: list[str] = []
    places: list[Place] = []
    for fact in _COMPARED:
        stated = [value for block in blocks if (value := _stated(block, fact)) is not None]
        if fact != "hcp_sizes":
            stated = [value for value in stated if value.value is not None]
        if len({repr(value.value) for value in stated}) > 1:
            names.append(_KEYS[fact].megatron)
            places.extend(value.place for value in stated if value.place)
    return names, places


def _agrees(saved: Block, live: Sequence[Block]) -> bool:
    """Whether a saved configuration says nothing else than the logs about what decides CP."""
    for fact in _COMPARED:
        ours, theirs = _first(live, fact), _stated(saved, fact)
        if ours is None or theirs is None or (theirs.value is None and fact not in _MAY_BE_NONE):
            continue
        if ours.value != theirs.value:
            return False
    return True


def _precision(blocks: Sequence[Block]) -> str | None:
    """The precision of the matrix products; None where a block ends before it says `fp8`."""
    for block in blocks:
        get = {
            key: value[0]
            for (section, key), value in block.values.items()
            if section in {"", "model"}
        }
        for name in ("fp4", "fp8"):
            if any(get.get(key, "None") not in _OFF for key in (name, f"{name}_format")):
                return name
        told = block.complete or "fp8" in get or block.source == "command_line"
        for name in ("bf16", "fp16"):
            if told and get.get(name, "").lower() == "true":
                return name
        if told and "bf16" in get and "fp16" in get and block.source == "args_dump":
            return "fp32"
    return None


def _implementation(blocks: Sequence[Block]) -> str | None:
    """Whose context parallelism it is, where it is not Megatron-Core's: such has no hierarchy.

    MindSpeed replaces Megatron's by its own; a torch device mesh that names `cp` brings torch's.
    """
    for block in blocks:
        algorithm = block.values.get(("", "context_parallel_algo"))
        if algorithm and re.fullmatch(r"['\"]?\w{1,40}['\"]?", algorithm[0]):
            return f"MindSpeed {algorithm[0].strip(chr(34) + chr(39))}"
    meshes = (block for block in blocks if block.source == "device_mesh")
    named = any(("", "context_parallel_size") in mesh.values for mesh in meshes)
    return "torch device mesh" if named else None


def _query_groups(blocks: Sequence[Block], heads: int | None) -> int | None:
    """Key/value heads: the dump prints `num_query_groups 1` even where grouping is off."""
    for block in blocks:
        section = "model" if block.source in _BRIDGE else ""
        groups = block.values.get((section, "num_query_groups"))
        grouping = block.values.get((section, "group_query_attention"))
        if grouping and _bool(grouping[0]) is False:
            return heads
        if groups and (number := _int(groups[0])):
            return number
    return heads


def _derive(facts: dict[str, Any]) -> None:
    sizes = facts["hcp_sizes"]
    if sizes:
        product = prod(sizes)
        facts["hcp_sizes_product"] = product if product < 2**63 else None
        facts["hcp_levels"] = len(sizes)
        facts["hcp_min_size"] = min(sizes)
        facts["hcp_a2a_size"] = sizes[0]
    parallel = [facts[name] for name in ("tp_size", "pp_size", "cp_size", "dp_size")]
    if facts["world_size"] is None and all(parallel):
        world_size = prod(parallel)
        facts["world_size"] = world_size if world_size <= MAX_WORLD else None


def requests_hcp(comm_type: str | None) -> bool:
    """Whether a cp_comm_type asks for hierarchical CP in at least one layer."""
    return comm_type is not None and "a2a+p2p" in comm_type.split(",")


def effective(blocks: Sequence[Block], versions: Mapping[str, str], *, trained: bool) -> Config:
    """The configuration in effect in one attempt.

    What the trainer printed is in effect; a saved configuration adds what logs leave unsaid, and
    only if it agrees with what they do. Before anything trained, a saved configuration may be a
    checkpoint's own, and to differ from it is then no conflict.
    """
    live = tuple(block for block in blocks if block.source in START_UP)
    saved = tuple(block for block in blocks if block.source == "saved_yaml")
    # beside a trainer's own configuration, a mesh is that of another model, such as a rollout's
    beside = _OPTIONS - {"device_mesh"} if live else _OPTIONS
    options = tuple(block for block in blocks if block.source in beside)
    fitting = tuple(block for block in saved if _agrees(block, live)) if trained or not live else ()
    speaking = (*live, *fitting, *options)
    facts: dict[str, Any] = dict.fromkeys(CONFIG_FACTS)
    places: dict[str, Place] = {}
    for fact in _KEYS:
        decided = _first(speaking, fact)
        if decided is None:
            continue
        facts[fact] = decided.value
        if decided.place is not None:
            places[fact] = decided.place
        if fact == "cp_comm_type" and decided.value is None:
            facts[fact] = "p2p"  # None is Transformer Engine's own default
        if fact == "hcp_sizes":
            facts["hcp_sizes_set"] = decided.value is not None
    if other := _implementation(speaking):  # to it, hierarchical sizes mean nothing
        facts.update(cp_implementation=other, hcp_sizes=None, hcp_sizes_set=None)
    facts["query_groups"] = _query_groups(speaking, facts["num_attention_heads"])
    facts["precision"] = _precision(speaking)
    _derive(facts)
    for fact, package in (
        ("te_version", "Transformer Engine"),
        ("mcore_version", "Megatron-Core"),
        ("torch_version", "PyTorch"),
    ):
        version = versions.get(package)
        facts[fact] = version if version != "0.0.0" else None
    whole = _complete(live)
    conflicts, conflict_places = _conflicts((*live, *(saved if trained else ()), *options))
    return Config(
        facts,
        places,
        _complete(fitting) if whole is None else whole,
        tuple(conflicts),
        tuple(conflict_places),
        _saved_requests(saved),
        tuple(blocks),
    )


def _saved_requests(saved: Sequence[Block]) -> bool | None:
    """Whether a saved configuration asks for hierarchical CP; None if there is none."""
    if not saved:
        return None
    comm, sizes = _first(saved, "cp_comm_type"), _first(saved, "hcp_sizes")
    return requests_hcp(comm.value if comm else None) and bool(sizes and sizes.value)


def value_of(known: Config, megatron: str, *bridge: str) -> str | None:
    """A value as printed, from the first block that states it; None if none does.

    `megatron` is its name in Megatron-LM's arguments, `bridge` its names in a Bridge configuration,
    there in the section of the model or of the tokenizer.
    """
    for block in known.blocks:
        if block.source in _BRIDGE:
            keys = [(section, name) for section in ("model", "tokenizer") for name in bridge]
        else:
            keys = [("", megatron)]
        for key in keys:
            if key in block.values:
                return block.values[key][0]
    return None


def states_true(known: Config, key: str) -> bool:
    """Whether a block states a Boolean key as true, in whatever section."""
    return any(
        name.rpartition(".")[2] == key and _bool(value)
        for block in known.blocks
        for (_, name), (value, _) in block.values.items()
    )


def version_code(version: str | None) -> int | None:
    """A version as one number that compares: `1.12.0` -> 1012000.

    >>> version_code("2.8.0+abcdef1"), version_code("1.12"), version_code("main")
    (2008000, 1012000, None)
    """
    match = re.match(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", version or "")
    if match is None:
        return None
    return int(match[1]) * 1_000_000 + int(match[2]) * 1_000 + int(match[3] or 0)
