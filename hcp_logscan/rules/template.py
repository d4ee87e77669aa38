"""Messages of findings: text with `{name}` fields that are facts or parameters, nothing else.

`str.format` alone would let a rule file reach attributes and indices of what it formats; so the
fields are checked first, and values are made into text here.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hcp_logscan.analysis import facts as fact_tables
from hcp_logscan.model.said import Said, enter, joined
from hcp_logscan.rules.problem import Mistake, MistakeError, mistake
from hcp_logscan.rules.schema import ROW_TABLES
from hcp_logscan.rules.sql import near_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hcp_logscan.rules.schema import Rule

ROW_FIELDS: Final = ("count", "last_iteration_concerned")
"""Further fields where many rows of one attempt are judged: how many fire, and up to where."""

MAX_VALUE: Final = 300
"""Characters of one value: log text can be long, and a message is one paragraph."""

UNKNOWN: Final = "?"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_SPEC: Final = re.compile(r",?(?:\.\d{1,2}[efg%])?", re.ASCII)


def fields(template: str) -> dict[str, str]:
    """Name -> format specification of every field. Raises `MistakeError` for what is no field."""
    found: dict[str, str] = {}
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise mistake(str(error), "write {{ and }} for braces") from error
    for _, name, spec, conversion in parts:
        if name is None:
            continue
        if not _NAME.fullmatch(name) or conversion is not None:
            shown = f"{name}!{conversion}" if conversion else name
            raise mistake(
                f"`{{{shown}}}` must be the plain name of a fact or parameter",
                "write {name}, or {name:.1f} for a number",
            )
        if not _SPEC.fullmatch(spec or ""):
            raise mistake(f"`{spec}` is no format", f"`{{{name}:.1f}}` is an example")
        found[name] = spec or found.get(name, "")
    return found


def check(rule: Rule, template: str) -> None:
    """Check that every field of `template` is known to the rule. Raises `MistakeError`."""
    schema = fact_tables.schema(rule.over)
    extra = ROW_FIELDS if rule.over in ROW_TABLES else ()
    known = {*schema, *rule.params, *extra}
    mistakes: list[Mistake] = []
    for name, spec in fields(template).items():
        at = template.find(f"{{{name}") + 1
        span = (at, at + len(name))
        if name not in known:
            near = near_name(name, known)
            move = f"{near} `hcp-logscan --explain {rule.over}` lists what there is".strip()
            what = f"`{{{name}}}` is no fact of `{rule.over}` and no parameter"
            mistakes.append(Mistake(what, move, span))
            continue
        number = (
            schema[name].is_numeric() if name in schema else _is_number(rule.params.get(name, 0))
        )
        if spec and not number:
            what = f"`{{{name}:{spec}}}` formats a number, but it is none"
            mistakes.append(Mistake(what, f"write {{{name}}}", span))
    if mistakes:
        raise MistakeError(mistakes)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Fill in the fields; what was not observed shows as `?`."""
    return "".join(
        literal + ("" if name is None else _shown(values.get(name), spec or ""))
        for literal, name, spec, _ in string.Formatter().parse(template)
    ).strip()


def remembered(rule: Rule, values: Mapping[str, Any]) -> str:
    """The English message, entered with its translations for `reporting.translate`."""
    text = render(rule.message, values)
    if rule.zh is None:
        return text
    template, shown = _apart(rule.message, values, "en")
    chinese, more = _apart(rule.zh.message, values, "zh")
    return enter(text, Said(template, (*shown, *more), texts=(("zh", chinese),)))


def _apart(
    template: str, values: Mapping[str, Any], prefix: str
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The template with its fields numbered, and what each of them shows."""
    parts: list[str] = []
    shown: list[tuple[str, str]] = []
    for literal, name, spec, _ in string.Formatter().parse(template.strip()):
        parts.append(literal.replace("{", "{{").replace("}", "}}"))
        if name is not None and (text := _listed(values.get(name), spec or "")):
            key = f"{prefix}{len(shown)}"
            shown.append((key, text))
            parts.append(f"{{{key}}}")
    return "".join(parts).strip(), tuple(shown)  # an empty value at the end leaves a blank


def _listed(value: Any, spec: str) -> str:
    """What a field shows; words in a list stay translatable."""
    text = _shown(value, spec)
    if not isinstance(value, pl.Series | list | tuple):
        return text
    if not any(isinstance(item, str) for item in value):
        return text  # numbers, as a configuration writes them
    items = joined(", ", (_shown(item, "") for item in value))
    return enter(text, Said("[{items}]", (("items", items),)))


def _shown(value: Any, spec: str) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, pl.Series | list | tuple):
        return f"[{', '.join(_shown(item, '') for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return format(value, spec or ("g" if isinstance(value, float) else "d"))
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
