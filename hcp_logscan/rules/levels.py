"""Levels that printed rates are read against, from facts and the rules' own parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hcp_logscan.analysis.formula import rate_if_off
from hcp_logscan.model.report import RateLevels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.rules.schema import Rule


def levels(rules: Sequence[Rule], attempts: Sequence[Mapping[str, Any]]) -> tuple[RateLevels, ...]:
    """The levels of each attempt, whose facts `attempts` holds.

    `rules` are all that are known, those that the user left out of the scan among them.
    """
    params = {rule.id: rule.params for rule in rules}
    least = float(params["HCP103"]["believable_from"])
    most = float(params["HCP102"]["max_share"])
    return tuple(_levels(facts, least, most) for facts in attempts)


def _levels(facts: Mapping[str, Any], least: float, most: float) -> RateLevels:
    peak, done = facts["peak_tflops"], rate_if_off(facts)
    return RateLevels(
        attempt=facts["attempt"],
        believable=(least * peak, most * peak) if peak else None,
        if_cp_off=done,
        cp_size=facts["cp_size"] if done is not None else None,
    )
