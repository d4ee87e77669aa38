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

from hcp_logscan.model.errors import RuleError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 20

# libyaml where PyYAML was built with it: ten times as fast, same answers.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The content of one YAML file, and where each value stands in it."""

    path: Path
    data: Any
    _node: yaml.Node

    def line(self, location: Sequence[str | int] = ()) -> int:
        """Line, from 1, of the value at this path of keys and indices.

        What is not in the file has the line of the nearest thing around it.
        """
        node, line = self._node, self._node.start_mark.line
        for step in location:
            found = _child(node, step)
            if found is None:
                break
            node, line = found
        return line + 1

    def error(self, reason: str, location: Sequence[str | int] = ()) -> RuleError:
        """An error that names this file and the line of `location`."""
        return RuleError(f"{self.path}:{self.line(location)}: {reason}")


def read(path: Path) -> YamlFile:
    """Read one file. Raises `RuleError` that names file, line and reason."""
    text = _text(path)
    try:
        _check_events(path, text)
        node = yaml.compose(text, Loader=_LOADER)
        if node is None:
            raise RuleError(f"{path}:1: the file is empty; write one rule into it")
        _check_duplicates(path, node)
        data = SafeConstructor().construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise RuleError(f"{path}:{line}: this is not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise RuleError(f"{path}:1: this is not YAML: {error}") from error
    return YamlFile(path, data, node)


def _text(path: Path) -> str:
    if path.exists() and not path.is_file():
        raise RuleError(f"{path}: cannot be read: it is no regular file")
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise RuleError(f"{path}: cannot be read: {error.strerror}") from error
    if len(raw) > MAX_BYTES:
        raise RuleError(f"{path}: larger than {MAX_BYTES // 1024} KiB; one file holds one rule")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise RuleError(f"{path}:{line}: this is not UTF-8; save the file as UTF-8") from error


def _check_events(path: Path, text: str) -> None:
    # Events come from a flat parser: nothing has been built or nested yet when this refuses.
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            reason = "anchors and aliases are not allowed; write the value out"
        elif getattr(event, "tag", None):
            reason = "tags are not allowed; write the value as it is"
        elif isinstance(event, yaml.CollectionStartEvent) and depth >= MAX_DEPTH:
            reason = f"nested deeper than {MAX_DEPTH} levels"
        else:
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            continue
        mark = event.start_mark
        raise RuleError(f"{path}:{mark.line + 1 if mark else 1}: {reason}")


def _check_duplicates(path: Path, node: yaml.Node) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in seen:
                raise RuleError(
                    f"{path}:{line}: `{name}` stands twice, first in line {seen[name]}; keep one"
                )
            seen[name] = line
            _check_duplicates(path, value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_duplicates(path, item)


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        # The line of the key: a nested value begins below it.
        return next(
            ((value, key.start_mark.line) for key, value in node.value if key.value == step), None
        )
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line
    return None
