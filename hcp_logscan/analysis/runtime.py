"""Runtime evidence: the channels that can prove hierarchical CP on or off.

Each function looks at one attempt's events. What every channel shares: grade A and B are only
given where the document of that channel allows no other reading; silence counts only where the
channel was demonstrably on; what cannot be attributed to a rank has rank None.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis.config import requests_hcp
from hcp_logscan.model.finding import Evidence, Location
from hcp_logscan.model.said import joined, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hcp_logscan.analysis.evidence import AttemptView
    from hcp_logscan.model.finding import Grade, Says

LEVEL: Final = re.compile(r"HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L(\d+)")
"""Whole description of a hierarchical group. `HYBRID_DP_CP_GROUP_n` is another feature."""

_RING: Final = frozenset({"send", "recv", "coalesced"})


def wanted(view: AttemptView) -> bool:
    """CP above 1 and a2a+p2p in at least one layer: hierarchical CP was asked for."""
    return (view.facts["cp_size"] or 0) > 1 and requests_hcp(view.facts["cp_comm_type"])


def both_levels(view: AttemptView) -> bool | None:
    """Both sizes are above 1; None where the sizes are unknown or none are set."""
    sizes: list[int] | None = view.facts["hcp_sizes"]
    return bool(len(sizes) == 2 and min(sizes) > 1) if sizes else None


def _finished(view: AttemptView) -> bool:
    return bool(view.facts["iterations_finished"])


def _piece(
    view: AttemptView,
    channel: str,
    says: Says,
    grade: Grade,
    row: Mapping[str, Any],
    explanation: str,
    layer_kind: str | None = None,
) -> Evidence:
    place = Location(view.names[row["file"]], row["line"], row["text"] or "", row["event_rank"])
    process = row["process"] if row["event_rank"] is None else f"rank {row['event_rank']}"
    return Evidence(channel, says, grade, place, explanation, layer_kind, process)  # type: ignore[arg-type]


def _levels(rows: Iterable[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """Level -> first row whose description names it."""
    found: dict[int, Mapping[str, Any]] = {}
    for row in rows:
        match = LEVEL.fullmatch(row["description"] or "")
        if match:
            found.setdefault(int(match[1]), row)
    return found


def _by_process(frame: pl.DataFrame) -> dict[str | None, list[dict[str, Any]]]:
    """Rows by the process that printed them; None where ranks share a stream."""
    groups: dict[str | None, list[dict[str, Any]]] = {}
    for row in frame.sort("file", "line").iter_rows(named=True):
        rank = row["event_rank"]
        groups.setdefault(row["process"] if rank is None else f"rank {rank}", []).append(row)
    return groups


def _with_thread_ranks(rows: pl.DataFrame) -> pl.DataFrame:
    """Ranks of glog lines: a creation line names the global rank of its thread's process."""
    named = (
        rows.filter(pl.col("global_rank").is_not_null() & pl.col("thread").is_not_null())
        .group_by("file", "thread")
        .agg(pl.col("global_rank").unique().alias("_ranks"))
        .filter(pl.col("_ranks").list.len() == 1)
        .with_columns(pl.col("_ranks").list.first().alias("_thread_rank"))
        .select("file", "thread", "_thread_rank")
    )
    said = pl.when(pl.col("kind") == "created").then("global_rank").otherwise(None)
    return (
        rows.join(named, on=["file", "thread"], how="left", maintain_order="left")
        .with_columns(pl.coalesce("event_rank", "_thread_rank", said).alias("event_rank"))
        .drop("_thread_rank")
    )


def c10d_channel(view: AttemptView) -> list[Evidence]:
    """Process groups whose communicators were opened, by their descriptions."""
    rows = _with_thread_ranks(view.tables["group_lines"])
    if not rows.height:
        return []
    eager = rows.filter(pl.col("kind") == "eager").height > 0
    deduplicated = view.tables["ray_repeats"].height > 0
    found: list[Evidence] = []
    opened = rows.filter((pl.col("kind") == "opened") & pl.col("description").is_not_null())
    created = set(_by_process(rows.filter(pl.col("kind") == "created")))
    for process, mine in _by_process(opened).items():
        silence_counts = not deduplicated and (process in created or _from_the_start(view))
        found.extend(_opened_groups(view, mine, eager=eager, silence_counts=silence_counts))
    failed = rows.filter((pl.col("kind") == "failed") & pl.col("description").is_not_null())
    for mine in _by_process(failed).values():
        says = say(
            "The watchdog names a hierarchical group: it carried traffic up to this failure."
        )
        found.extend(
            _piece(view, "c10d", "active", "B", row, says) for row in _levels(mine).values()
        )
    if not found:
        shown = rows.row(0, named=True)
        says = say(
            "c10d lines without descriptions (torch older than 2.4, or Megatron-Core "
            "older than 0.11), or of groups that were only created: nothing about "
            "hierarchical groups."
        )
        found.append(_piece(view, "c10d", "neutral", "C", shown, says))
    return found


def _from_the_start(view: AttemptView) -> bool:
    """Whether the logs reach back to the first iteration: groups open in it and never again."""
    first, resumed = view.facts["first_iteration"], view.facts["resumed_from"]
    return first in {0, 1} or (resumed is not None and first == resumed + 1)


def _opened_groups(
    view: AttemptView, rows: list[dict[str, Any]], *, eager: bool, silence_counts: bool
) -> list[Evidence]:
    """What the opened groups of one rank say.

    `silence_counts` says that nothing that was opened on this rank can be missing from its log.
    """
    levels = _levels(rows)
    if {0, 1} <= set(levels):
        grade: Grade = "C" if eager else "A"
        says = (
            say(
                "The communicators of both hierarchical levels were opened; nothing but "
                "attention uses them."
            )
            if not eager
            else say(
                "Both hierarchical groups exist; with eager initialisation that is no traffic."
            )
        )
        return [_piece(view, "c10d", "active", grade, levels[k], says) for k in (0, 1)]
    if levels:
        return _one_level(view, levels, whole=silence_counts and not eager)
    megatrons = [row for row in rows if "_GROUP" in row["description"]]
    if not megatrons or eager:
        says = say("Groups without Megatron's descriptions: nothing about hierarchical groups.")
        return [_piece(view, "c10d", "neutral", "C", rows[0], says)]
    if wanted(view) and _finished(view) and silence_counts:
        says = say(
            "Other groups were opened and described on this rank, iterations finished, "
            "and no hierarchical group was ever opened."
        )
        return [_piece(view, "c10d", "inactive", "B", megatrons[0], says)]
    says = say("Other groups were opened; the flat context parallel group proves neither.")
    return [_piece(view, "c10d", "neutral", "C", megatrons[0], says)]


def _one_level(
    view: AttemptView, levels: dict[int, Mapping[str, Any]], *, whole: bool
) -> list[Evidence]:
    """One level only: degenerate sizes, a run that never got further, or really half of it."""
    level, row = next(iter(levels.items()))
    other = 1 - level if level in {0, 1} else 0
    if both_levels(view) and _finished(view) and whole:
        return [
            _piece(
                view,
                "c10d",
                "active",
                "B",
                row,
                say("The communicator of level L{level} was opened.", level=level),
                f"L{level}",
            ),
            _piece(
                view,
                "c10d",
                "inactive",
                "B",
                row,
                say(
                    "Level L{other} was never opened on this rank, although iterations finished.",
                    other=other,
                ),
                f"L{other}",
            ),
        ]
    says = say("Only level L{level} was opened: that alone proves neither.", level=level)
    return [_piece(view, "c10d", "neutral", "C", row, says)]


def _layer(row: Mapping[str, Any]) -> str:
    return say(
        "heads {num_heads}/{num_gqa_groups}, head dim {head_dim}",
        num_heads=row["num_heads"],
        num_gqa_groups=row["num_gqa_groups"],
        head_dim=row["head_dim"],
    )


def te_channel(view: AttemptView) -> list[Evidence]:
    """What Transformer Engine says its attention ran with."""
    rows = view.tables["attention_lines"]
    if not rows.height:
        return []
    found: list[Evidence] = []
    for mine in _by_process(rows).values():
        entries = [row for row in mine if row["kind"] == "config"]
        training = [row for row in entries if row["is_training"] is not False]
        on = any(row["context_parallel"] for row in training)
        pieces = (_entry(view, row, some_on=on) for row in training)
        found.extend(piece for piece in pieces if piece is not None)
        found.extend(_backends(view, mine, entries))
    if not found:
        says = say(
            "Transformer Engine's lines speak of other layers, of evaluation, or of flat CP only."
        )
        found.append(_piece(view, "te_debug", "neutral", "C", rows.row(0, named=True), says))
    return found


def _entry(view: AttemptView, row: Mapping[str, Any], *, some_on: bool) -> Evidence | None:
    """One training entry: `Running with config={…}`."""
    comm, layer = row["cp_comm_type"], _layer(row)
    in_line = requests_hcp(comm)
    asked = in_line or (comm is None and requests_hcp(view.facts["cp_comm_type"]))
    if not asked or row["context_parallel"] is None:
        return None
    if row["context_parallel"]:
        sizes = both_levels(view)
        if sizes is False:
            return None  # degenerate or invalid sizes: CP on, but not hierarchical
        unknown = sizes is None and view.facts["hcp_sizes_set"] is not False
        grade: Grade = "C" if unknown else "A" if in_line and sizes else "B"
        says = (
            say(
                "Context parallelism is on in a layer with a2a+p2p: there the wrapper passes "
                "the hierarchical groups or nothing."
            )
            if not unknown
            else say(
                "Context parallelism is on in a layer with a2a+p2p; its sizes are unknown, "
                "and one of them may be 1."
            )
        )
        return _piece(view, "te_debug", "active", grade, row, says, layer)
    if (view.facts["cp_size"] or 0) <= 1 or row["is_training"] is not True:
        return None
    if in_line:
        says = say(
            "A training layer that asks for a2a+p2p ran with context parallelism off: "
            "Transformer Engine was given no groups."
        )
        return _piece(view, "te_debug", "inactive", "A", row, says, layer)
    if some_on:
        return None
    if packed := _packed(view, row):
        return packed
    says = say("Context parallelism is off in every training layer of this rank (TE before 2.8).")
    return _piece(view, "te_debug", "inactive", "B", row, says, layer)


def _packed(view: AttemptView, row: Mapping[str, Any]) -> Evidence | None:
    """Packed sequences with a2a+p2p die in TE 1.12 to 2.18 if the groups are there."""
    code = view.facts["te_version_code"]
    if not (row["qkv_layout"] or "").startswith("thd") or code is None:
        return None
    if not (1_012_000 <= code < 2_019_000 and wanted(view) and _finished(view)):
        return None
    if view.facts["hcp_sizes_set"] is not False and not both_levels(view):
        return None
    says = say(
        "Packed sequences ran with a2a+p2p on a Transformer Engine that refuses them "
        "where hierarchical groups are in use: they were not."
    )
    return _piece(view, "te_debug", "inactive", "A", row, says, _layer(row))


def _backends(
    view: AttemptView, rows: list[dict[str, Any]], entries: list[dict[str, Any]]
) -> list[Evidence]:
    """Backends and level-2 remarks of one rank, where they add to its entries."""
    found: list[Evidence] = []
    chosen = [row for row in rows if row["kind"] == "backend"]
    unfused = [row for row in chosen if row["backend"] == "UnfusedDotProductAttention"]
    if unfused and len(unfused) == len(chosen) and not entries and wanted(view) and _finished(view):
        says = say(
            "Every layer of this rank ran unfused attention, which cannot do context parallelism."
        )
        found.append(_piece(view, "te_debug", "inactive", "B", unfused[0], says))
    remarks = [row for row in rows if row["kind"] == "cp_on"]
    if remarks and not entries:
        sure = wanted(view) and both_levels(view)
        says = say("Context parallelism is on, of some kind.")
        found.append(
            _piece(
                view,
                "te_debug",
                "active" if sure else "neutral",
                "B" if sure else "C",
                remarks[0],
                says,
            )
        )
    return found


def recorder_channel(view: AttemptView) -> list[Evidence]:
    """Flight-recorder dumps: traffic on the hierarchical groups, else groups that were opened."""
    entries, groups = view.tables["dump_entries"], view.tables["dump_groups"]
    if not entries.height and not groups.height:
        return []
    found: list[Evidence] = []
    opened = _by_process(groups)
    for rank, mine in _by_process(entries).items():
        used = [row for row in mine if row["operation"] == "all_to_all"]
        ring = [row for row in mine if row["operation"] in _RING]
        first, second = _levels(used).get(0), _levels(ring).get(1)
        if first is not None and second is not None:
            says = say("All-to-all on level L0 and send/recv on level L1 were recorded.")
            found += [
                _piece(view, "flight_recorder", "active", "A", row, says) for row in (first, second)
            ]
            opened.pop(rank, None)
        elif seen := _levels(mine):
            says = say(
                "The dump knows a hierarchical group, but the recorded operations are not "
                "those of attention."
            )
            row = next(iter(seen.values()))
            found.append(_piece(view, "flight_recorder", "neutral", "C", row, says))
            opened.pop(rank, None)
    for mine in opened.values():
        levels = _levels(mine)
        if {0, 1} <= set(levels):
            says = say(
                "Both hierarchical groups are in the dump; eager initialisation does that too."
            )
            found += [
                _piece(view, "flight_recorder", "active", "C", levels[k], says) for k in (0, 1)
            ]
    if not found:
        shown = (entries if entries.height else groups).row(0, named=True)
        says = say("No hierarchical group in this dump; the ring buffer may have dropped it.")
        found.append(_piece(view, "flight_recorder", "neutral", "C", shown, says))
    return found


def nccl_channel(view: AttemptView) -> list[Evidence]:
    """NCCL communicators carry no name, and a ring opens one per pair: they support at best."""
    rows = view.tables["communicator_lines"]
    if not rows.height:
        return []
    sizes = rows.group_by("nranks").agg(pl.col("comm").n_unique()).sort("nranks")
    listed = joined(
        ", ",
        (
            say("{count} of {members}", count=count, members=members)
            for members, count in sizes.iter_rows()
        ),
    )
    says = say(
        "Communicators opened: {listed} members. Without names they prove neither.", listed=listed
    )
    return [_piece(view, "nccl", "neutral", "C", rows.row(0, named=True), says)]


def print_channel(view: AttemptView) -> list[Evidence]:
    """Creation lines of forks and wrapper scripts."""
    rows = view.tables["printed_groups"]
    if not rows.height:
        return []
    hierarchical = rows.filter(pl.col("kind") == "hierarchical")
    shown = (hierarchical if hierarchical.height else rows).row(0, named=True)
    if hierarchical.height:
        if wanted(view) and both_levels(view) and _finished(view):
            says = say("The stack says by hand that the hierarchical groups were created.")
            return [_piece(view, "print", "active", "B", shown, says)]
        says = say(
            "Hierarchical groups were created; what is configured does not use them as such."
        )
        return [_piece(view, "print", "neutral", "C", shown, says)]
    if wanted(view) and _finished(view) and not view.tables["ray_repeats"].height:
        says = say(
            "The stack lists the groups it created by hand, and only the flat one is among them."
        )
        return [_piece(view, "print", "inactive", "B", shown, says)]
    return [
        _piece(
            view, "print", "neutral", "C", shown, say("A flat context parallel group was created.")
        )
    ]


def facts(view: AttemptView, pieces: tuple[Evidence, ...]) -> dict[str, Any]:
    """Facts that rules read, from the evidence of grade A and B."""
    strong = [piece for piece in pieces if piece.grade != "C"]

    def says(what: str, *channels: str) -> list[Evidence]:
        return [piece for piece in strong if piece.says == what and piece.channel in channels]

    groups_on, groups_off = says("active", "c10d", "print"), says("inactive", "c10d", "print")
    engine_on, engine_off = says("active", "te_debug"), says("inactive", "te_debug")
    whole_off = [piece for piece in groups_off if piece.layer_kind is None]
    return {
        "hierarchical_groups_seen": True if groups_on else False if whole_off else None,
        "te_off_seen": True if engine_off else False if engine_on else None,
        "te_off_ranks": sorted({p.location.rank for p in engine_off} - {None}),
        "packed_sequences": _packed_sequences(view),
    }


def _packed_sequences(view: AttemptView) -> bool | None:
    """Whether layers that take part in context parallelism ran on packed sequences.

    A vision tower may pack while the decoder does not: only training entries count that have CP on
    or ask for a2a+p2p, or, where the lines do not say (TE before 2.8), entries of ranks on which no
    training entry has CP on.
    """
    lines = view.tables["attention_lines"]
    training = lines.filter(
        (pl.col("kind") == "config") & pl.col("is_training").fill_null(value=True)
    )
    if not training.height:
        return None
    asks = pl.col("cp_comm_type").str.contains("a2a+p2p", literal=True).fill_null(value=False)
    on = pl.col("context_parallel").fill_null(value=False)
    unsaid = pl.col("cp_comm_type").is_null() & ~on.any().over("process")
    ours = training.filter(asks | on | unsaid)
    return bool(ours["qkv_layout"].fill_null("").str.starts_with("thd").any())


def disagreement(status: str, pieces: tuple[Evidence, ...]) -> dict[str, Any]:
    """Whether ranks, levels or layers disagree, and who is off: for a verdict that is known."""
    strong = [
        piece
        for piece in pieces
        if piece.grade != "C" and piece.channel in {"c10d", "te_debug", "flight_recorder"}
    ]
    if not strong:
        return {"ranks_disagree": None, "disagreeing_ranks": []}
    off = {piece.location.rank for piece in strong if piece.says == "inactive"} - {None}
    mixed = status == "mixed"
    return {"ranks_disagree": mixed, "disagreeing_ranks": sorted(off) if mixed else []}
