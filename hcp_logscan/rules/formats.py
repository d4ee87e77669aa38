"""YAML files -> line formats of users' own, with every sample run before a log is read.

Imports nothing heavy, and no pydantic: a format has ten fields, and the command line checks them
before it starts its worker processes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import regex

from hcp_logscan.model.line_format import (
    COLUMNS,
    FACTORS,
    KINDS,
    LINE_TIMEOUT_S,
    NEEDED,
    NOTATIONS,
    RESERVED,
    LineFormat,
    compiled,
)
from hcp_logscan.model.safe import cut
from hcp_logscan.rules import files, yamlfile
from hcp_logscan.rules.problem import Mistake, Problem, RuleFileError
from hcp_logscan.rules.sql import near_name
from hcp_logscan.sources import prefixes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from hcp_logscan.model.line_format import Column, Value

MAX_NEEDLE_BYTES: Final = 200
MIN_NEEDLE_BYTES: Final = 4
MAX_PATTERN: Final = 4_000
MAX_REPEATS: Final = 10_000
"""Counted repetitions, those inside others multiplied: `regex` writes each of them out."""

MAX_LINE: Final = 8_000
MAX_LINES: Final = 100
MAX_PROBLEMS: Final = 50
"""Mistakes of samples that are told of one file; of all of it, twice as many."""

FIELDS: Final[Mapping[str, str]] = {
    "format": "its name, such as acme-step",
    "table": f"what a line is: {', '.join(COLUMNS)}",
    "kind": "what a line of `checkpoints` or `marks` says",
    "needle": "a text that stands in each of the lines, and rarely in others",
    "pattern": "a regular expression whose named groups are columns",
    "units": "group: the unit that it is printed in",
    "drift": "false, where the needle stands in other lines, too",
    "samples": "a list of lines, each with what it gives",
    "refuses": "a list of lines that are none of this format",
}
_OPTIONAL: Final = frozenset({"kind", "units", "drift"})
_TITLES: Final[Mapping[str, str]] = {"samples": "sample", "refuses": "refused line"}
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_COUNTED: Final = re.compile(r"\{(\d*)(?:,(\d*))?\}")

Location = tuple[str | int, ...]
Found = tuple[Location, Mistake]


@dataclass(frozen=True, slots=True)
class CheckedFormat:
    """A format whose file is without a mistake."""

    form: LineFormat
    samples: tuple[str, ...]
    "Lines that give what they must."

    refused: tuple[str, ...]
    "Lines that give nothing, as they must."


def load_formats(paths: Sequence[Path]) -> tuple[LineFormat, ...]:
    """The formats at these paths (files or directories), sorted by name.

    Raises one `RuleFileError` that lists what is wrong in all of them, file and line first.
    """
    problems: list[Problem] = []
    found = files.yaml_files(paths, problems, "line format", files.is_format)
    twice = "format: {name} is also the name of {other}"
    return files.read_all(
        found, problems, lambda path: read_file(path).form, lambda form: form.format, twice
    )


def read_file(path: Path) -> CheckedFormat:
    """One format. Raises a `RuleFileError` with every mistake in it."""
    file = yamlfile.read(path)
    data = file.data
    if not isinstance(data, dict) or "format" not in data:
        rule = isinstance(data, dict) and "id" in data
        what = "this is a rule" if rule else "a line format is a mapping that begins with `format:`"
        move = "give it with --rules" if rule else "write `format: acme-step` first"
        raise RuleFileError([file.problem(Mistake(what, move))])
    wrong = list(_shape(data))
    fields = {place[0] for place, _ in wrong if place}
    if not fields & set(FIELDS) - {"samples", "refuses"}:
        wrong += islice(_sample_problems(_made(data), data, wrong), MAX_PROBLEMS)
    if wrong:
        problems = [file.problem(mistake, place) for place, mistake in wrong[: 2 * MAX_PROBLEMS]]
        raise RuleFileError(sorted(problems, key=lambda one: one.line))
    lines = tuple(sample["line"] for sample in data["samples"])
    return CheckedFormat(_made(data), lines, tuple(data["refuses"]))


def _made(data: Mapping[str, Any]) -> LineFormat:
    return LineFormat(
        format=data["format"],
        table=data["table"],
        needle=data["needle"],
        pattern=data["pattern"].strip("\n"),
        units=tuple(
            (group, (words,) if isinstance(words, str) else tuple(words))
            for group, words in sorted(data.get("units", {}).items())
        ),
        kind=data.get("kind"),
        drift=data.get("drift", True),
    )


def _shape(data: Mapping[Any, Any]) -> Iterator[Found]:
    """What is wrong with the fields, each by itself and together."""
    for name in data:
        if name not in FIELDS:
            what = f"{cut(str(name), 60)}: no such field; a format has {', '.join(FIELDS)}"
            yield (name,), Mistake(what, near_name(str(name), FIELDS))
    for name, meaning in FIELDS.items():
        if name not in data and name not in _OPTIONAL:
            yield (name,), Mistake(f"{name}: it is missing", f"add it: {meaning}")
    for name in ("format", "table", "needle", "pattern"):
        if name in data and (not isinstance(data[name], str) or not data[name].strip()):
            what = f"{name}: a text must stand here, and this is {_shown(data[name])}"
            yield (name,), Mistake(what, f"write {FIELDS[name]}, in quotes")
    if not isinstance(data.get("drift", True), bool):
        yield ("drift",), Mistake("drift: true or false must stand here", "leave it out, or false")
    yield from _name(data.get("format"))
    yield from _table(data.get("table"), data.get("kind"))
    yield from _needle(data.get("needle"))
    yield from _pattern(data.get("pattern"), data.get("table"))
    yield from _units(data.get("units", {}), data.get("pattern"), data.get("table"))
    yield from _lists(data)


def _name(name: object) -> Iterator[Found]:
    if not isinstance(name, str) or not name.strip():
        return
    if not _NAME.fullmatch(name) or len(name) > 60:
        what = "format: a name is made of a-z, 0-9 and single hyphens, 60 characters at most"
        yield ("format",), Mistake(what, "write one such as acme-step")
    elif name in RESERVED:
        what = f"format: {name} is a framework that is known already"
        yield ("format",), Mistake(what, "choose the name of your own trainer")


def _table(table: object, kind: object) -> Iterator[Found]:
    if not isinstance(table, str) or not table.strip():
        return
    if table not in COLUMNS:
        what = f"table: {_shown(table)} is not known here"
        near = near_name(table, COLUMNS)
        yield ("table",), Mistake(what, f"{near} There are {', '.join(COLUMNS)}".strip())
        return
    kinds = KINDS.get(table, {})
    known = ", ".join(f"{name} ({meaning})" for name, meaning in kinds.items())
    if kinds and kind is None:
        what = f"kind: it is missing; a line of `{table}` says one thing"
        yield ("kind",), Mistake(what, f"write one of: {known}")
    elif kinds and (not isinstance(kind, str) or kind not in kinds):
        yield ("kind",), Mistake(f"kind: {_shown(kind)} is not known here", f"there are: {known}")
    elif not kinds and kind is not None:
        what = f"kind: lines of `{table}` have none"
        yield ("kind",), Mistake(what, "leave the field out")


def _needle(needle: object) -> Iterator[Found]:
    if not isinstance(needle, str) or not needle.strip():
        return
    size = len(needle.encode())
    if not needle.isprintable():
        what = "needle: it holds a line feed or another control character"
        yield ("needle",), Mistake(what, "take a text from within one line")
    elif size < MIN_NEEDLE_BYTES:
        what = f"needle: {size} bytes are too few: such a text stands in too many lines"
        yield ("needle",), Mistake(what, f"take {MIN_NEEDLE_BYTES} at least")
    elif size > MAX_NEEDLE_BYTES:
        what = f"needle: more than {MAX_NEEDLE_BYTES} bytes"
        yield ("needle",), Mistake(what, "a part of the text will do")


def _pattern(pattern: object, table: object) -> Iterator[Found]:
    if not isinstance(pattern, str) or not pattern.strip():
        return
    place = ("pattern",)
    if len(pattern) > MAX_PATTERN:
        what = f"pattern: more than {MAX_PATTERN:,} characters"
        yield place, Mistake(what, "make several formats of it")
        return
    if repeats(pattern) > MAX_REPEATS:
        what = f"pattern: repeats a part of itself more than {MAX_REPEATS:,} times"
        yield place, Mistake(what, "write * or + where the count does not matter")
        return
    try:
        groups = compiled(pattern.strip("\n")).groupindex
    except regex.error as error:
        at = getattr(error, "pos", None)
        at = at if isinstance(at, int) and at < len(pattern) else None
        what = f"pattern: {getattr(error, 'msg', error)}"
        move = "see the syntax of the Python package `regex`; a literal . ( [ { * + ? | has a \\"
        yield place, Mistake(what, move, None if at is None else (at, at + 1))
        return
    except (
        RecursionError,
        MemoryError,
        OverflowError,
        ValueError,
        TypeError,
        LookupError,
    ) as error:
        what = f"pattern: cannot be used: {str(error) or type(error).__name__}"
        yield place, Mistake(what, "make it simpler")
        return
    if isinstance(table, str) and table in COLUMNS:
        yield from _groups(pattern, groups, table)


def _groups(pattern: str, groups: Mapping[str, int], table: str) -> Iterator[Found]:
    columns, place = COLUMNS[table], ("pattern",)
    for group in groups:
        if group not in columns:
            what = f"pattern: the group `{cut(group, 60)}` is no column of `{table}`"
            near = near_name(group, columns)
            at = pattern.find(f"<{group}>")
            span = (at + 1, at + 1 + len(group)) if at >= 0 else None
            move = f"{near} There are {', '.join(columns)}; an unnamed group is (?:...)".strip()
            yield place, Mistake(what, move, span)
    needed = NEEDED[table]
    if needed is not None and needed not in groups:
        what = f"pattern: it has no group `{needed}`, and a row of `{table}` needs it"
        yield place, Mistake(what, f"name the part that is it: (?P<{needed}>...)")


def repeats(pattern: str) -> int:
    r"""The largest product of counted repetitions inside each other.

    >>> repeats(r"(?:(?:ab){30}c){2,40}\{999\}[{5000}]")
    1200
    """
    inner, most, last = [1], 1, 1
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at, last = at + 2, 1
            continue
        if char == "[":
            close = pattern.find("]", at + 2)
            at, last = (close if close > 0 else at) + 1, 1
            continue
        counted = _COUNTED.match(pattern, at) if char == "{" else None
        if counted and (counted[1] or counted[2]):
            last *= max(int(count[:9]) for count in (counted[1], counted[2]) if count)
            inner[-1] = max(inner[-1], last)
            most = max(most, last)
            at = counted.end()
            continue
        if char == "(":
            inner.append(1)
        elif char == ")" and len(inner) > 1:
            last = inner.pop()
            inner[-1] = max(inner[-1], last)
            at += 1
            continue
        elif char not in "*+?":
            last = 1
        at += 1
    return most


def _units(units: object, pattern: object, table: object) -> Iterator[Found]:
    if not isinstance(units, dict):
        yield ("units",), Mistake("units: `group: unit` lines must stand here", "write step_ms: s")
        return
    columns = COLUMNS.get(table, {}) if isinstance(table, str) else {}
    for group, words in units.items():
        place: Location = ("units", group)
        if columns and group not in columns:
            what = f"units: `{cut(str(group), 60)}` is no column of `{table}`"
            yield place, Mistake(what, near_name(str(group), columns))
            continue
        if isinstance(pattern, str) and f"<{group}>" not in pattern:
            what = f"units: the pattern has no group `{group}`"
            yield place, Mistake(what, "leave it out, or correct its name")
        if columns:
            yield from _words(columns[group], str(group), words, place)


def _words(column: Column, group: str, words: object, place: Location) -> Iterator[Found]:
    listed = words if isinstance(words, list) else [words]
    notations = tuple(NOTATIONS) if column.kind != "clock" else ()
    known = (*column.units, *notations)
    for word in listed:
        if word not in known:
            what = f"units: {_shown(word)} is no unit of `{group}`"
            other = isinstance(word, str) and word in FACTORS
            elsewhere = "; that is another column's" if other else ""
            there = ", ".join(known) or "none for it"
            yield place, Mistake(f"{what}{elsewhere}", f"there are {there}")
    for several in (column.units, ("commas", "points")):
        if sum(word in several for word in listed) > 1:
            what = f"units: of {', '.join(several)} only one can be meant for `{group}`"
            yield place, Mistake(what, "keep one")


def _lists(data: Mapping[Any, Any]) -> Iterator[Found]:
    for name in ("samples", "refuses"):
        lines = data.get(name, [None])
        if not isinstance(lines, list) or not lines:
            what = f"{name}: a list of at least one line must stand here"
            yield (name,), Mistake(what, f"write {FIELDS[name]}")
        elif len(lines) > MAX_LINES:
            what = f"{name}: more than {MAX_LINES} lines"
            yield (name,), Mistake(what, "keep those that say something new")
        elif name in data:
            for index, one in enumerate(lines):
                check, title = (
                    _sample if name == "samples" else _line,
                    f"{_TITLES[name]} {index + 1}",
                )
                yield from check(one, (name, index), title, data.get("table"))


def _sample(sample: object, place: Location, title: str, table: object) -> Iterator[Found]:
    if not isinstance(sample, dict) or set(sample) != {"line", "gives"}:
        what = f"{title}: `line` and `gives` must stand here, and nothing else"
        yield place, Mistake(what, "write `- line: '...'`, and below it `gives: {iteration: 1}`")
        return
    yield from _line(sample["line"], (*place, "line"), title, table)
    columns = COLUMNS.get(table, {}) if isinstance(table, str) else {}
    gives = sample["gives"]
    if not isinstance(gives, dict):
        what = f"{title}: gives: a mapping of `column: value` must stand here"
        yield (*place, "gives"), Mistake(what, "write {} for none")
        return
    for name, value in gives.items():
        here = (*place, "gives", name)
        if columns and (name not in columns or columns[name].of):
            target = columns[name].of if name in columns else None
            near = f"it fills `{target}`" if target else near_name(str(name), columns)
            what = f"{title}: gives: `{cut(str(name), 60)}` is no column of `{table}`"
            yield here, Mistake(what, near)
        elif columns and not _fits(value, columns[name]):
            kind = {"whole": "a whole number", "number": "a number", "clock": "a text in quotes"}
            what = f"{title}: gives: `{name}` is {kind[columns[name].kind]}, not {_shown(value)}"
            yield here, Mistake(what, "NaN is .nan, and 1e-4 is 1.0e-4, in YAML")


def _line(line: object, place: Location, title: str, _table: object) -> Iterator[Found]:
    if not isinstance(line, str) or not line.strip():
        what = f"{title}: a line must stand here as a text, and this is {_shown(line)}"
        yield place, Mistake(what, "put it in single quotation marks")
    elif "\n" in line.strip("\n"):
        yield place, Mistake(f"{title}: several lines", "make a sample of each")
    elif len(line) > MAX_LINE:
        yield place, Mistake(f"{title}: more than {MAX_LINE:,} characters", "shorten it")


def _fits(value: object, column: Column) -> bool:
    if column.kind == "clock":
        return isinstance(value, str)
    return type(value) is int or (column.kind == "number" and type(value) is float)


def _sample_problems(
    form: LineFormat, data: Mapping[str, Any], wrong: Sequence[Found]
) -> Iterator[Found]:
    """Run every sample that is one; `form` is without a mistake in itself."""
    bad = {place[:2] for place, _ in wrong}
    for name in ("samples", "refuses"):
        if (name,) in bad or name not in data:
            continue
        for index, one in enumerate(data[name]):
            if (name, index) in bad:
                continue
            title = f"{_TITLES[name]} {index + 1}"
            try:
                if name == "samples":
                    yield from _gives(form, one, (name, index), title)
                else:
                    yield from _refuses(form, one, (name, index), title)
            except TimeoutError:
                what = f"{title}: the pattern takes longer than {LINE_TIMEOUT_S * 1000:.0f} ms"
                move = "avoid a repetition inside another, such as (a+)+; write [^|]* for .*"
                yield (name, index), Mistake(what, move)


def values_of(form: LineFormat, line: str) -> dict[str, Value] | None:
    """What a line of a log gives, as the scan would have it: needle first, then the prefixes off.

    Raises TimeoutError.
    """
    if form.needle not in line:
        return None
    _, rest = prefixes.split(prefixes.clean(line.strip("\n").encode("utf-8", "replace")))
    return form.values(rest.decode("utf-8", "replace"))


def _gives(
    form: LineFormat, sample: Mapping[str, Any], place: Location, title: str
) -> Iterator[Found]:
    line, gives, here = sample["line"], sample["gives"], (*place, "line")
    if form.needle not in line:
        what = f"{title}: the needle {form.needle!r} is not in it"
        yield here, Mistake(what, "take a needle that stands in every line of the format")
        return
    got = values_of(form, line)
    if got is None:
        needed = NEEDED[form.table]
        read = f", or reads no `{needed}` from it" if needed else ""
        what = f"{title}: the pattern does not match{read}"
        yield here, Mistake(what, "correct the pattern; prefixes such as `[rank0]:` are taken off")
        return
    for name in {**gives, **got}:
        if name not in got:
            what = f"{title}: gives: {name} must be {gives[name]}, and the pattern reads none"
            move = "correct the group or its unit; a group that may be absent is (?:...)?"
            yield (*place, "gives", name), Mistake(what, move)
        elif name not in gives:
            what = f"{title}: it gives {name} = {got[name]}, too"
            yield (*place, "gives"), Mistake(what, f"if that is right, add {name}: {got[name]}")
        elif not _same(got[name], gives[name]):
            what = (
                f"{title}: gives: {name} must be {gives[name]}, and the pattern reads {got[name]}"
            )
            yield (*place, "gives", name), Mistake(what, "correct the group, its unit or the value")


def _same(got: Value, wanted: Value) -> bool:
    if isinstance(got, str) or isinstance(wanted, str):
        return got == wanted
    return (math.isnan(got) and math.isnan(wanted)) or math.isclose(got, wanted, rel_tol=1e-9)


def _refuses(form: LineFormat, line: str, place: Location, title: str) -> Iterator[Found]:
    if (got := values_of(form, line)) is not None:
        said = ", ".join(f"{name}: {value}" for name, value in got.items())
        what = f"{title}: the pattern matches it" + (f" and gives {said}" if said else "")
        yield place, Mistake(what, "make the pattern more precise, or the needle")
    elif form.needle in line and form.drift:
        what = f"{title}: the needle stands in it, so a log with it would be told to have changed"
        yield place, Mistake(what, "take another needle, or add `drift: false`")


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "empty" if value is None else cut(repr(value), 60)
