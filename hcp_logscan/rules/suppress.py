"""Findings that a user accepts: set aside with their reason, never thrown away."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.errors import UsageError
from hcp_logscan.model.finding import Suppressed, Suppression, one_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hcp_logscan.model.finding import Finding
    from hcp_logscan.rules.schema import Rule

_SHOWN: Final = 40
"""Characters of an unknown rule that a message quotes."""

FROM_PYTHON: Final = "scan(suppress=...)"


def stated(
    said: Mapping[str, str] | Sequence[Suppression], rules: Iterable[Rule]
) -> tuple[Suppression, ...]:
    """What the caller of `scan` suppresses, rule -> reason. Raises `UsageError`."""
    if not isinstance(said, Mapping):
        return known(said, rules)
    found = []
    for rule, reason in said.items():
        if not isinstance(rule, str) or not isinstance(reason, str) or not reason.strip():
            raise UsageError(
                "suppress maps the id of a rule to the reason why it is accepted, a text that is"
                " not blank."
            )
        found.append(Suppression(rule.strip().upper(), one_reason(reason), FROM_PYTHON))
    return known(found, rules)


def known(said: Iterable[Suppression], rules: Iterable[Rule]) -> tuple[Suppression, ...]:
    """The same. Raises `UsageError` where one names a rule that does not exist."""
    every, ids = tuple(said), [rule.id for rule in rules]
    for one in every:
        if one.rule not in ids:
            longer = [name for name in ids if one.rule and name.startswith(one.rule)]
            near = longer or difflib.get_close_matches(one.rule, ids, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise UsageError(
                f"{one.source}: suppress names the rule {one.rule[:_SHOWN]!r}, which does not"
                f" exist.{hint} --list-rules shows them all; rules of your own need --rules."
            )
    return every


def apart(
    findings: Iterable[Finding], *said: Iterable[Suppression]
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
    """The findings that stay, and those set aside, both in order.

    Of several that name one rule, the first counts.
    """
    accepted: dict[str, Suppression] = {}
    for suppressions in said:
        for one in suppressions:
            accepted.setdefault(one.rule, one)
    stay: list[Finding] = []
    aside: list[Suppressed] = []
    for found in findings:
        why = accepted.get(found.rule)
        if why is None:
            stay.append(found)
        else:
            aside.append(Suppressed(found, why.reason, why.source))
    return tuple(stay), tuple(aside)
