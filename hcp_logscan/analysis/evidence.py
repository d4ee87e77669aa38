"""Evidence for and against hierarchical CP, one function per channel, listed in `CHANNELS`.

A channel is a pure function of one attempt's events and facts; a new one is added by writing it
and naming it in the tuple. Conditions here and in the rules' YAML say the same thing over the same
facts: verdict and rules are one truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import runtime
from hcp_logscan.analysis.config import Config, Place, requests_hcp
from hcp_logscan.model.finding import Evidence, Location
from hcp_logscan.model.said import say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class AttemptView:
    """What a channel may look at."""

    attempt: int
    facts: Mapping[str, Any]
    "Fact table `attempts`, this attempt's row, as far as it is known before the verdict."

    config: Config
    tables: Mapping[str, pl.DataFrame]
    "Event tables of this attempt."

    names: Sequence[str]
    "File names by index."

    def at(self, place: Place, rank: int | None = None) -> Location:
        """A configuration value's place as a location."""
        return Location(self.names[place.file], place.line, place.text, rank)


def _place(view: AttemptView, *facts: str) -> Place | None:
    return next((place for fact in facts if (place := view.config.places.get(fact))), None)


def config_channel(view: AttemptView) -> list[Evidence]:
    """What the configuration alone decides, and what it asks for."""
    facts = view.facts
    place = _place(view, "cp_comm_type", "hcp_sizes", "cp_size")
    if place is None:
        return []
    location = view.at(place)
    sizes_place = _place(view, "hcp_sizes")
    finished = facts["iterations_finished"] > 0
    if runtime.wanted(view) and facts["hcp_sizes_set"] is False and finished:
        return [
            Evidence(
                "config",
                "inactive",
                "A",
                location,
                say(
                    "a2a+p2p without hierarchical_context_parallel_sizes: Megatron-Core makes no "
                    "hierarchical groups, Transformer Engine gets none and runs with a CP size "
                    "of 1."
                ),
            )
        ]
    asks = requests_hcp(facts["cp_comm_type"])
    parallel = (facts["cp_size"] or 0) > 1
    if facts["cp_comm_type"] and not asks and facts["hcp_sizes_set"] and parallel and finished:
        return [
            Evidence(
                "config",
                "inactive",
                "A",
                view.at(sizes_place) if sizes_place else location,
                say(
                    "hierarchical sizes are set, but cp_comm_type is {cp_comm_type}: attention "
                    "takes the flat context parallel group.",
                    cp_comm_type=facts["cp_comm_type"],
                ),
            )
        ]
    says = (
        say("asks for hierarchical context parallelism; that is intent, no proof")
        if asks
        else say("does not ask for hierarchical context parallelism")
    )
    shown = [
        Evidence("config", "neutral", "C", location, say("The configuration {says}.", says=says))
    ]
    if asks and sizes_place and sizes_place.line != place.line:
        shown.append(
            Evidence("config", "neutral", "C", view.at(sizes_place), say("The hierarchical sizes."))
        )
    return shown


def path_channel(view: AttemptView) -> list[Evidence]:
    """How process groups were built: HyperCommGrid has no hierarchical groups."""
    facts = view.facts
    seen = view.tables["paths"]
    fits = pl.col("grid_cp").is_null() | pl.col("grid_cp").eq_missing(facts["cp_size"])
    grid = seen.filter((pl.col("kind") == "hyper_comm_grid") & fits)
    decided = (
        runtime.wanted(view)
        and facts["decentralized_pg"] is True
        and facts["iterations_finished"] > 0
        and (facts["hcp_sizes_set"] is False or (facts["hcp_min_size"] or 0) > 1)
    )
    explanation = say(
        "Decentralized process groups hold no hierarchical groups: with a2a+p2p, "
        "Transformer Engine gets none and runs with a CP size of 1."
    )
    if decided and grid.height:
        return [Evidence("path", "inactive", "A", _location(view, grid), explanation)]
    if decided and (place := _place(view, "use_decentralized_pg")):
        return [Evidence("path", "inactive", "B", view.at(place), explanation)]
    if seen.height:
        kind = "HyperCommGrid" if grid.height else say("the MPU path")
        return [
            Evidence(
                "path",
                "neutral",
                "C",
                _location(view, grid if grid.height else seen),
                say("Process groups were built by {kind}.", kind=kind),
            )
        ]
    return []


def assertion_channel(view: AttemptView) -> list[Evidence]:
    """A start-up check that refused the configuration."""
    return [
        Evidence(
            "assertion",
            "neutral",
            "A",
            Location(view.names[row["file"]], row["line"], row["text"], row["rank"]),
            say("The stack refused the configuration: {check}.", check=row["check"]),
        )
        for row in view.tables["assertions"].iter_rows(named=True)
    ]


def throughput_channel(view: AttemptView) -> list[Evidence]:
    """A printed rate that the hardware cannot reach: a symptom, which decides nothing."""
    facts = view.facts
    rate, bound = facts["tflops_median"], facts["peak_bound_tflops"]
    if rate is None or bound is None or rate <= bound or not runtime.wanted(view):
        return []
    above = (
        view.tables[name].filter(pl.col("tflops_per_gpu") > bound)
        for name in ("steps", "iterations")
    )
    rows = next((rows for rows in above if rows.height), None)
    if rows is None:
        return []
    return [
        Evidence(
            "throughput",
            "inactive",
            "C",
            _location(view, rows),
            say(
                "{rate:,.0f} TFLOP/s/GPU is printed, and the {peak_bound_of} is {bound:,g}: "
                "attention that skips most of the sequence would explain it. A symptom, no "
                "proof.",
                rate=rate,
                peak_bound_of=facts["peak_bound_of"],
                bound=bound,
            ),
        )
    ]


def _location(view: AttemptView, rows: pl.DataFrame) -> Location:
    row = rows.row(0, named=True)
    return Location(view.names[row["file"]], row["line"], row["text"] or "", row["event_rank"])


CHANNELS: Final[tuple[Callable[[AttemptView], list[Evidence]], ...]] = (
    config_channel,
    path_channel,
    assertion_channel,
    runtime.c10d_channel,
    runtime.te_channel,
    runtime.recorder_channel,
    runtime.nccl_channel,
    runtime.print_channel,
    throughput_channel,
)


def collect(view: AttemptView) -> tuple[Evidence, ...]:
    """All evidence of one attempt, in the order of the channels."""
    return tuple(piece for channel in CHANNELS for piece in channel(view))
