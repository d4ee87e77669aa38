"""Settings and facts of the judged attempt, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.reporting import words
from hcp_logscan.reporting.safe import cut
from hcp_logscan.reporting.tongue import _

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hcp_logscan.model.report import AttemptData, ReportData

CP_SETTINGS: Final = frozenset({"cp_size", "cp_comm_type", "hcp_sizes", "hcp_sizes_set"})
"""Settings that the table shows even where they are not observed."""

_LONG: Final = 600


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of the judged attempt, with what other attempts had instead."""

    name: str
    meaning: str
    value: str
    observed: bool
    others: str


def settings(data: ReportData, judged: AttemptData | None) -> list[Setting]:
    """The CP/HCP keys and the model shape of the judged attempt, in the order given."""
    from hcp_logscan.analysis.facts import CONFIG_FACTS

    if judged is None:
        return []
    others = [attempt for attempt in data.attempts if attempt.attempt != judged.attempt]
    return [
        Setting(
            name=name,
            meaning=_(CONFIG_FACTS[name].meaning) if name in CONFIG_FACTS else "",
            value=shown(value),
            observed=value is not None,
            others=_others(name, value, others),
        )
        for name, value in judged.config.items()
    ]


def parted(found: list[Setting]) -> tuple[list[Setting], list[Setting]]:
    """Settings to show and those to fold: what is not observed, but for the CP and HCP keys."""
    shown_ones = [
        setting
        for setting in found
        if setting.observed or setting.others or setting.name in CP_SETTINGS
    ]
    return shown_ones, [setting for setting in found if setting not in shown_ones]


def _others(name: str, value: Any, others: Iterable[AttemptData]) -> str:
    """What other attempts had instead: `attempt 0-2: p2p`."""
    values: dict[str, list[int]] = {}
    for attempt in others:
        other = attempt.config.get(name)
        if other is not None and shown(other) != shown(value):
            values.setdefault(shown(other), []).append(attempt.attempt)
    return _("; ").join(
        _("attempt {attempt}: {other}", attempt=words.ranges(found), other=other)
        for other, found in values.items()
    )


def shown(value: Any) -> str:
    """A fact in words."""
    if value is None:
        return _("not observed")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, float):
        return f"{value:.6g}"
    if hasattr(value, "to_list"):  # a polars Series: the value of a list fact
        value = value.to_list()
    if isinstance(value, (list, tuple)):
        if len(value) > 8 and all(isinstance(item, int) for item in value):
            return f"[{words.ranges(value)}]"
        more = _(" and {count:,} more", count=len(value) - 40) if len(value) > 40 else ""
        return f"[{', '.join(shown(item) for item in value[:40])}{more}]"
    return cut(str(value), _LONG)


def facts(judged: AttemptData | None, *, compared: bool) -> list[Setting]:
    """Every fact of the judged attempt that is no setting; of a comparison only if there is one."""
    from hcp_logscan.analysis.baseline_facts import BASELINE_FACTS
    from hcp_logscan.analysis.facts import ATTEMPT_FACTS

    if judged is None:
        return []
    return [
        Setting(
            name=name,
            meaning=_(ATTEMPT_FACTS[name].meaning) if name in ATTEMPT_FACTS else "",
            value=shown(value),
            observed=value is not None,
            others="",
        )
        for name, value in judged.facts.items()
        if name not in judged.config and (compared or name not in BASELINE_FACTS)
    ]
