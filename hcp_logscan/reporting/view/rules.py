"""All rules with their outcomes, and what was missing to judge them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.said import N_
from hcp_logscan.reporting import words
from hcp_logscan.reporting.tongue import Spoken, _

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.model.finding import Judgement
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.words import Tone


@dataclass(frozen=True, slots=True)
class RuleView:
    """One rule's outcome, attempts of equal outcome joined."""

    rule: str
    outcome: str
    tone: Tone
    attempts: str
    missing: tuple[str, ...]
    observe: tuple[str, ...]


_OUTCOME_ORDER: Final = ("fires", "inconclusive", "clean")

_RULE_WORDS: Final[Mapping[str, str]] = Spoken(
    {"fires": N_("fires"), "inconclusive": N_("inconclusive"), "clean": N_("clean")}
)
_RULE_TONES: Final[Mapping[str, Tone]] = {"fires": "bad", "inconclusive": "warn", "clean": "good"}


def without_baseline(data: ReportData) -> tuple[list[Judgement], str]:
    """The judgements to list, and what is said of the rules that only a baseline could judge."""
    from hcp_logscan.analysis.baseline_facts import BASELINE_FACTS

    if data.comparison is not None:
        return list(data.judgements), ""
    listed = [one for one in data.judgements if BASELINE_FACTS.keys().isdisjoint(one.missing)]
    left = dict.fromkeys(one.rule for one in data.judgements if one not in listed)
    if not left:
        return listed, ""
    return listed, (
        _(
            "{many} compare with a known good run ({names}): give one with `--baseline RUN_DIR`.",
            many=words.plural(len(left), "rule"),
            names=", ".join(left),
        )
    )


def rules(judgements: Sequence[Judgement]) -> list[RuleView]:
    """All rules with their outcomes: what fired, what could not be judged, what is clean."""
    joined: dict[tuple[int, str, tuple[str, ...]], list[int]] = {}
    for judgement in judgements:
        key = (_OUTCOME_ORDER.index(judgement.outcome), judgement.rule, judgement.missing)
        joined.setdefault(key, []).append(judgement.attempt)
    return [
        RuleView(
            rule=rule,
            outcome=_RULE_WORDS[_OUTCOME_ORDER[order]],
            tone=_RULE_TONES[_OUTCOME_ORDER[order]],
            attempts=words.ranges(attempts),
            missing=missing,
            observe=_observe(missing),
        )
        for (order, rule, missing), attempts in sorted(joined.items())
    ]


def _observe(missing: Iterable[str]) -> tuple[str, ...]:
    """How to make missing facts observable, each way once."""
    from hcp_logscan.analysis.facts import FACTS

    ways = {
        _(table[name].observe): None
        for name in missing
        for table in FACTS.values()
        if name in table
    }
    return tuple(way for way in ways if way)


def rule_counts(judgements: Iterable[Judgement]) -> str:
    """How many of each outcome."""
    count = Counter(judgement.outcome for judgement in judgements)
    return _(
        "{fires} fired, {inconclusive} inconclusive, {clean} clean",
        fires=count["fires"],
        inconclusive=count["inconclusive"],
        clean=count["clean"],
    )
