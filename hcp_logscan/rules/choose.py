"""Which rules run, and with which thresholds: `--select`, `--ignore`, `--set`."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import yaml
from pydantic import ValidationError

from hcp_logscan.model.errors import RuleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.rules.schema import Param, Rule


def select(
    rules: Iterable[Rule], select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> tuple[Rule, ...]:
    """The rules whose id begins with a word of `select` (all if empty) and with none of `ignore`.

    Words are ids or their beginnings (`HCP2`), in any case. Raises `RuleError` for a word that no
    rule's id begins with.
    """
    every = tuple(rules)
    wanted, unwanted = _words(every, select), _words(every, ignore)
    return tuple(
        rule
        for rule in every
        if (not wanted or rule.id.startswith(wanted)) and not rule.id.startswith(unwanted)
    )


def with_params(
    rules: Iterable[Rule], values: Mapping[str, Mapping[str, Param]]
) -> tuple[Rule, ...]:
    """The rules with these parameters (rule id -> name -> value) instead of their own.

    Raises `RuleError` for an unknown rule or parameter and for a value of another type; a whole
    number is fine where a fraction stands.
    """
    every = {rule.id: rule for rule in rules}
    for name, params in values.items():
        if name not in every:
            raise RuleError(f"no rule {name} to set a parameter of{_near(name, every)}")
        every[name] = _changed(every[name], params)
    return tuple(every.values())


def parse_settings(texts: Iterable[str]) -> dict[str, dict[str, Param]]:
    """`RULE.param=VALUE` texts -> the `values` of `with_params`. Raises `RuleError`."""
    found: dict[str, dict[str, Param]] = {}
    for text in texts:
        target, equals, value = text.partition("=")
        rule, dot, param = target.strip().partition(".")
        try:
            parsed = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, OverflowError):
            parsed = None
        if not (equals and dot and rule and param) or not isinstance(
            parsed, bool | int | float | str
        ):
            raise RuleError(
                f"`{text}` is not RULE.param=VALUE, such as HCP211.max_skipped_share=0.1"
            )
        found.setdefault(rule.upper(), {})[param] = parsed
    return found


def _words(rules: Sequence[Rule], words: Sequence[str]) -> tuple[str, ...]:
    clean = tuple(word.strip().upper() for word in words)
    ids = [rule.id for rule in rules]
    for word in clean:
        if not word or not any(name.startswith(word) for name in ids):
            raise RuleError(f"no rule `{word}`{_near(word, ids)} --list-rules shows them all")
    return clean


def _changed(rule: Rule, params: Mapping[str, Param]) -> Rule:
    changed = dict(rule.params)
    for name, value in params.items():
        if name not in changed:
            has = f"it has {', '.join(sorted(changed))}" if changed else "it has none"
            raise RuleError(f"{rule.id} has no parameter `{name}`; {has}")
        old = changed[name]
        if type(value) is not type(old) and not (type(old) is float and type(value) is int):
            raise RuleError(
                f"{rule.id}.{name} is {_kind(old)} ({old}), so {value!r} cannot stand there"
            )
        changed[name] = float(value) if type(old) is float else value
    try:
        return rule.model_validate(rule.model_dump() | {"params": changed})
    except ValidationError as error:
        raise RuleError(f"{rule.id}: {', '.join(params)}: {error.errors()[0]['msg']}") from error


def _kind(value: Param) -> str:
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(
        type(value), "a text"
    )


def _near(word: str, ids: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(ids), n=1)
    return f"; did you mean {near[0]}?" if near else ";"
