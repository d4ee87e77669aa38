"""Where a run was when something broke: from what its ranks had printed until then.

A traceback says it best: its innermost function that means a stage. Else what the attempt had
reached: a checkpoint being loaded or saved, iterations finished, or only its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.model.said import N_, say
from hcp_logscan.parsers.tracebacks import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST: Final = "first iteration"
_BY_STAGE: Final = frozenset({"rendezvous", "group creation", "load", "save", "evaluation"})
_BY_CAUSE: Final = {
    "checkpoint_mismatch": "load",
    "rendezvous": "rendezvous",
    "port_in_use": "rendezvous",
    "dns": "rendezvous",
}
_WORDS: Final = {
    "start-up": N_("at start-up"),
    "rendezvous": N_("at the rendezvous"),
    "group creation": N_("while creating process groups"),
    "load": N_("while loading the checkpoint"),
    "save": N_("while saving a checkpoint"),
    "evaluation": N_("during evaluation"),
    "exit": N_("at exit"),
}
_PARTS: Final = {
    "start of iteration": N_("at the start of {iteration}"),
    "forward pass": N_("in the forward pass of {iteration}"),
    "backward pass": N_("in the backward pass of {iteration}"),
    "optimizer step": N_("in the optimizer step of {iteration}"),
}


_START: Final = ("blocks", "marks", "paths", "versions", "group_lines")


@dataclass(frozen=True, slots=True)
class Reached:
    """What one attempt had reached when it ended."""

    iteration: int | None
    "Last finished iteration."

    interval: int | None = None
    "Iterations between two iteration lines."

    state: str | None = "start-up"
    "`start-up`, `load`, `training`, `save` or `exit`; None where not even a start was logged."

    @property
    def next_iteration(self) -> str:
        """The iteration that was under way, as far as the lines tell."""
        if self.iteration is None:
            return _FIRST
        number = self.iteration + 1
        if self.interval == 1:
            return say("iteration {number}", number=number)
        return say("iteration {number} or later", number=number)


def reached(
    tables: Mapping[str, pl.DataFrame],
    attempt: int,
    iteration: int | None,
    interval: int | None,
    planned: int | None,
) -> Reached:
    """What an attempt had reached, by its marks, checkpoints and iterations."""
    here = pl.col("attempt") == attempt
    marks = set(tables["marks"].filter(here)["kind"].to_list())
    checkpoints = tables["checkpoints"].filter(here)
    kinds = checkpoints["kind"].to_list()
    # first of all, for a trainer saves once more when its last iteration is done
    if kinds and kinds[-1] == "saving" and _unfinished(tables, here, checkpoints):
        return Reached(iteration, interval, "save")
    if "training_done" in marks or (iteration and planned and iteration >= planned):
        return Reached(iteration, interval, "exit")
    if iteration is not None or "training" in marks:
        return Reached(iteration, interval, "training")
    if kinds and kinds[-1] == "loading":
        return Reached(None, interval, "load")
    begun = any(tables[name].filter(here).height for name in _START)
    return Reached(None, interval, "start-up" if begun else None)


def _unfinished(
    tables: Mapping[str, pl.DataFrame], here: pl.Expr, checkpoints: pl.DataFrame
) -> bool:
    """Whether no iteration behind the one that is being saved was printed."""
    last = checkpoints.row(-1, named=True)
    later = tables["iterations"].filter(here & (pl.col("iteration") > last["iteration"]))
    return not later.height


def phase(row: Mapping[str, Any], now: Reached) -> tuple[str | None, str]:
    """(phase, the same as words for a sentence) of a failure; None where nothing tells.

    `row` has `stage` (a function of a traceback), `cause` and `at_iteration` where known.

    >>> phase({"stage": "zero_grad_buffer"}, Reached(1, 1, "training"))
    ('iteration 2', 'at the start of iteration 2')
    """
    stage = STAGES.get(row.get("stage") or "")
    if row.get("at_iteration") is not None:
        return _iteration(say("iteration {number}", number=row["at_iteration"]), stage)
    name = stage if stage in _BY_STAGE else _BY_CAUSE.get(row.get("cause") or "")
    if name is None and (stage in _PARTS or now.state == "training"):
        return _iteration(now.next_iteration, stage)
    name = name or now.state
    return name, _WORDS[name] if name else say("at an unknown point")


def _iteration(name: str, stage: str | None) -> tuple[str, str]:
    named = say("the first iteration") if name == _FIRST else name
    return name, say(_PARTS.get(stage or "", N_("in {iteration}")), iteration=named)
