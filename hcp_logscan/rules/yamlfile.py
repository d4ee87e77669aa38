"""Reading one YAML file of which nobody knows who wrote it: plain data, no surprises.

Refused: files above `MAX_BYTES`, aliases and anchors (a few lines of them expand to gigabytes),
nesting above `MAX_DEPTH`, duplicate keys (YAML would silently keep the last), tags other than
YAML's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml
from yaml.constructor import SafeConstructor

from hcp_logscan.rules.problem import Mistake, Problem, RuleFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 20
_BOM: Final = "\ufeff"

# libyaml where PyYAML was built with it: ten times as fast, same answers.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_QUOTE: Final = "write the text below `>-`, or in single quotation marks"
_MOVES: Final = (
    ("another document", "keep one rule in a file, or one line format, without a second `---`"),
    ("mapping values", f"check the indent; where a text holds `: `, {_QUOTE}"),
    ("unexpected end", "close the quotation mark"),
    ("expected ',' or", "close the bracket, and separate what is in it by commas"),
    ("expected key", f"check the indent; where a text begins with a bracket or quote, {_QUOTE}"),
    ("document start", "begin every field in the first column"),
    ("'-' indicator", "begin every item with `-`, at the same column"),
    ("escape character", "put the text in single quotation marks: they know no escapes"),
    ("cannot start any token", _QUOTE),
    ("an alias", _QUOTE),
    ("':'", "write `key: value`, with a blank after the colon"),
)
"""Part of libyaml's or PyYAML's message -> what its author does about it."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The content of one YAML file, and where each value stands in it."""

    path: Path
    data: Any
    _node: yaml.Node
    _text: str

    def line(self, location: Sequence[str | int] = ()) -> int:
        """Line, from 1, of the value at this path of keys and indices.

        What is not in the file has the line of the nearest thing around it.
        """
        return self._find(location)[1] + 1

    def problem(self, mistake: Mistake, location: Sequence[str | int] = ()) -> Problem:
        """The mistake at its place: to the column, with its line, where a span is known."""
        node, line, complete = self._find(location)
        index = None
        if complete and mistake.span is not None and isinstance(node, yaml.ScalarNode):
            index = _index(self._text, node, mistake.span[0])
        if index is None or mistake.span is None:
            where = f"{self.path}:{line + 1}"
            return Problem(where, mistake.what, mistake.move, line=line + 1)
        begin = self._text.rfind("\n", 0, index) + 1
        source = self._text[begin:].partition("\n")[0].rstrip()
        column, row = index - begin, self._text.count("\n", 0, index)
        width = max(1, min(mistake.span[1] - mistake.span[0], len(source) - column))
        mark = "".join("\t" if one == "\t" else " " for one in source[:column]) + "^" * width
        where = f"{self.path}:{row + 1}:{column + 1}"
        return Problem(where, mistake.what, mistake.move, (source, mark), row + 1)

    def _find(self, location: Sequence[str | int]) -> tuple[yaml.Node, int, bool]:
        """The node at a path, its line from 0, and whether the whole path is in the file."""
        node, line = self._node, self._node.start_mark.line
        for step in location:
            found = _child(node, step)
            if found is None:
                return node, line, False
            node, line = found
        return node, line, True


def read(path: Path) -> YamlFile:
    """Read one file. Raises `RuleFileError` that names file, line and reason."""
    text = _text(path)
    try:
        _check_events(path, text)
        node = yaml.compose(text, Loader=_LOADER)
        if node is None:
            raise _error(
                path, 1, "the file is empty", "write one rule into it, id first, or one line format"
            )
        if duplicates := list(_duplicates(path, node)):
            raise RuleFileError(duplicates)
        data = SafeConstructor().construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        what = f"this is not YAML: {error.problem}"
        raise _error(path, line, what, _move(text, line, f"{error.context} {what}")) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what, move = f"this is not YAML: {error.reason}", "take the character out, or escape it"
        raise _error(path, line, what, move) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        what = f"this is not YAML: {str(error).partition(chr(10))[0]}"
        raise _error(path, 1, what, "quote what is meant as a text") from error
    return YamlFile(path, data, node, text)


def _error(path: Path, line: int | None, what: str, move: str) -> RuleFileError:
    return RuleFileError([Problem(str(path) if line is None else f"{path}:{line}", what, move)])


def _move(text: str, line: int, message: str) -> str:
    """What to do about a message of the YAML parser."""
    lines = text.splitlines()[max(0, line - 2) : line]
    if any("\t" in one[: len(one) - len(one.lstrip())] for one in lines):
        return "indent with blanks: YAML refuses tabs"
    moves = (move for part, move in _MOVES if part in message)
    return next(moves, "check the lines above it, too")


def _text(path: Path) -> str:
    if path.exists() and not path.is_file():
        raise _error(path, None, "cannot be read: it is no regular file", "name a YAML file")
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        move = "check the path and its permissions"
        raise _error(path, None, f"cannot be read: {error.strerror}", move) from error
    if len(raw) > MAX_BYTES:
        what = f"larger than {MAX_BYTES // 1024} KiB"
        raise _error(path, None, what, "one file holds one rule or line format; shorten its logs")
    try:
        return raw.decode("utf-8").removeprefix(_BOM).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _error(path, line, "this is not UTF-8", "save the file as UTF-8") from error


def _check_events(path: Path, text: str) -> None:
    # Events come from a flat parser: nothing has been built or nested yet when this refuses.
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            what, move = "anchors and aliases are not allowed", "write the value out"
        elif getattr(event, "tag", None):
            what, move = "tags are not allowed", "write the value as it is"
        elif isinstance(event, yaml.CollectionStartEvent) and depth >= MAX_DEPTH:
            what, move = f"nested deeper than {MAX_DEPTH} levels", "a rule has five at most"
        else:
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            continue
        mark = event.start_mark
        raise _error(path, mark.line + 1 if mark else 1, what, move)


def _duplicates(path: Path, node: yaml.Node) -> Iterator[Problem]:
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in seen:
                what = f"`{name}` stands twice, first in line {seen[name]}"
                yield Problem(f"{path}:{line}", what, "keep one", line=line)
            seen.setdefault(name, line)
            yield from _duplicates(path, value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _duplicates(path, item)


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        # The line of the key: a nested value begins below it.
        return next(
            (
                (value, key.start_mark.line)
                for key, value in node.value
                if key.value in (step, str(step))
            ),
            None,
        )
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line
    return None


def _index(text: str, node: yaml.ScalarNode, position: int) -> int | None:
    """Where a character of a scalar's value stands in the file; None where that cannot be told.

    Folding moves white space only, so the n-th other character of the value is the n-th of the
    source. Escapes break that, and the comparison of the characters before it notices.
    """
    value = str(node.value)
    if position >= len(value) or value[position].isspace():
        return None
    begin, end = node.start_mark.index, node.end_mark.index
    if node.style in {"|", ">"}:  # past the header, which may end in a comment
        begin = text.find("\n", begin) + 1
    elif node.style in {"'", '"'}:
        begin += 1
    wanted = "".join(value[: position + 1].split())
    count = 0
    for index in range(begin, min(end, len(text))):
        if text[index].isspace():
            continue
        if text[index] != wanted[count]:
            return None
        count += 1
        if count == len(wanted):
            return index
    return None
