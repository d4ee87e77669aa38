"""What pydantic says about a rule file, in an author's words: one problem for each value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.model.safe import cut
from hcp_logscan.rules.problem import Mistake, Problem
from hcp_logscan.rules.schema import Example, Rule, Translation
from hcp_logscan.rules.sql import near_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic import ValidationError

    from hcp_logscan.rules.yamlfile import YamlFile

_PATTERNS: Final = {
    "id": ("an id is 2 to 10 capitals and three digits", "write one such as USR001"),
    "name": ("a name is made of a-z, 0-9 and single hyphens", "write one such as cp-too-big"),
    "references": ("a reference is a URL", "begin it with https:// and leave blanks out"),
}
_NEEDED: Final = {
    "id": "2 to 10 capitals and three digits, such as USR001",
    "name": "words with hyphens, such as cp-too-big",
    "summary": "one line without a full stop, for lists",
    "severity": "error, warning or note",
    "confidence": "high, medium or low",
    "over": "the fact table: attempts, iterations, failures or run",
    "when": "the SQL condition that fires it",
    "message": "what a finding says, with facts as {name}",
    "why": "why it matters",
    "fix": "what the reader does about it",
    "outcome": "fires, clean or inconclusive",
}
_EXAMPLE: Final[Mapping[str, Any]] = {"name": "?", "outcome": "fires", "facts": {}}
_STAND_INS: Final[Mapping[str, Any]] = {
    "id": "USR000",
    "name": "x",
    "severity": "note",
    "confidence": "low",
    "over": "attempts",
    "when": "TRUE",
    **dict.fromkeys(("summary", "message", "why", "fix"), "x"),
}
MAX_MISTAKES: Final = 200
"""Errors of pydantic that are read: a value has up to five."""

Location = tuple[str | int, ...]
_COLUMN: Final = "names of facts and parameters are made of a-z, 0-9 and _"


def problems(error: ValidationError, file: YamlFile) -> dict[Location, Problem]:
    """Every mistake once by its place, in the order of the file."""
    found: dict[Location, Problem] = {}
    errors = error.errors(include_url=False)
    for one in errors[:MAX_MISTAKES]:
        location = _in_file(tuple(one["loc"]), file, missing=one["type"] == "missing")
        # A value that may be of several kinds has one error for each of them.
        found.setdefault(location, file.problem(_mistake(one, location, file), location))
    if len(errors) > MAX_MISTAKES:
        more = Mistake(f"{len(errors) - MAX_MISTAKES} more mistakes", "correct these first")
        found["more",] = file.problem(more)
    return dict(sorted(found.items(), key=lambda one: one[1].line))


def without(data: dict[Any, Any], places: Collection[Location]) -> dict[Any, Any]:
    """The data without what is wrong, so that the rest of it can be checked, too.

    A field that is needed gets a stand-in, and so does an example: the others keep their numbers.
    """
    broken = {place[0] for place in places if place}
    if () in places:  # the two that stand together
        broken |= {"never", "never_reason"}
    kept = {name: value for name, value in data.items() if name not in broken}
    if isinstance(data.get("examples"), list):
        bad = {place[1] for place in places if place[:1] == ("examples",) and len(place) > 1}
        kept["examples"] = [
            _EXAMPLE if index in bad else one for index, one in enumerate(data["examples"])
        ]
    return {name: value for name, value in _STAND_INS.items() if name in broken} | kept


def _in_file(location: Location, file: YamlFile, *, missing: bool) -> Location:
    """The location without the steps that pydantic adds for kinds of value."""
    kept: list[str | int] = []
    value: Any = file.data
    for step in location:
        inside = isinstance(value, dict) or (isinstance(value, list) and isinstance(step, int))
        absent = isinstance(value, dict) and step not in value
        if not inside or (absent and not missing):
            break
        kept.append(step)
        if absent:
            break
        value = value[step]
    return tuple(kept)


def _value(location: Location, file: YamlFile) -> Any:
    value: Any = file.data
    for step in location:
        value = value[step]
    return value


def _mistake(error: Any, location: Location, file: YamlFile) -> Mistake:
    what, move = _said(error, location, file)
    return Mistake(f"{_field(location, file)}: {what}", move)


def _field(location: Location, file: YamlFile) -> str:
    """The field in words: examples by number and name."""
    names = [cut(str(step), 60) for step in location]
    if location[:1] == ("examples",) and len(location) > 1:
        example = _value(location[:2], file)
        title = example.get("name") if isinstance(example, dict) else None
        named = f" `{cut(str(title), 60)}`" if title else ""
        names = [f"example {int(location[1]) + 1}{named}", *names[2:]]
    return ".".join(names) or "rule"


def _said(error: Any, location: Location, file: YamlFile) -> tuple[str, str]:
    kind, last = error["type"], str(location[-1]) if location else "rule"
    names = [str(step) for step in location if isinstance(step, str)]
    if kind == "missing":
        return "it is missing", f"add it: {_NEEDED.get(last, 'a text')}"
    if kind == "extra_forbidden":
        return _unknown(location)
    if kind == "invalid_key" or "[key]" in error["loc"]:
        return f"{last!r} is no name", _COLUMN
    if kind == "value_error":
        move = "write a log below `log: |`, or `facts: {}`" if "examples" in location else ""
        return str(error["msg"]).removeprefix("Value error, "), move
    if kind == "too_long":
        return f"more than {error['ctx']['max_length']} items", "keep those that say something new"
    value = _value(location, file)
    if kind == "string_pattern_mismatch" and names[-1] in _PATTERNS:
        what, move = _PATTERNS[names[-1]]
        return f"{what}, and this is {_shown(value)}", move
    if kind == "literal_error":
        return f"{_shown(value)} is not known here", f"write {error['ctx']['expected']}"
    if kind == "string_too_long":
        return (
            f"{str(error['msg']).removeprefix('String ')}, and it has {len(value):,}",
            "shorten it",
        )
    if isinstance(value, str) and not value.strip():
        return "the text is empty", "write it, or leave the field out if it is not needed"
    return _wrong_kind(names, value, error)


def _wrong_kind(names: list[str], value: Any, error: Any) -> tuple[str, str]:
    shown = _shown(value)
    if names[0] == "params" and len(names) > 1:
        return f"a parameter is a number, a text, true or false, and this is {shown}", (
            "give it one finite value, below 2 to the 63rd"
        )
    if "facts" in names and len(names) > 2:
        return f"the value of a fact cannot be {shown}", (
            "write a number, a text in quotes, true, false, null or a list of them"
        )
    wanted = {"dict": "a mapping of `name: value` lines", "mapping": "a mapping of `name: value`"}
    wanted |= {"model": "a mapping of `name: value` lines", "tuple": "a list of items that begin -"}
    wanted |= {"string": "a text"}
    need = wanted.get(str(error["type"]).partition("_")[0], str(error["msg"]))
    quote = "put it in quotes" if need == "a text" and not isinstance(value, dict | list) else ""
    return f"{need} must stand here, and this is {shown}", quote or "compare a shipped rule"


def _unknown(location: tuple[str | int, ...]) -> tuple[str, str]:
    last = str(location[-1])
    if len(location) == 1:
        fields = tuple(Rule.model_fields)
        return f"no such field; a rule has {', '.join(fields)}", near_name(last, fields)
    model = Translation if location[0] == "zh" else Example
    fields = tuple(model.model_fields)
    return "no such field here", f"{near_name(last, fields)} There are {', '.join(fields)}".strip()


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"{str(value).lower()} (YAML reads yes, no, on and off so)"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
