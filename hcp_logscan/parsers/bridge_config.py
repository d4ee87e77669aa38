"""Megatron-Bridge's configuration: printed YAML, the summary of non-default values, saved YAML.

Written from Megatron-Bridge ``training/config.py`` and ``training/utils/log_utils.py`` (0.2 to 0.6
and main of 2026-08). Rank 0 prints.

* 0.2 and 0.3 print the whole ConfigContainer as YAML between ``------- Task Configuration -------``
  and a line of dashes.
* 0.4 and later print a summary between bars of 70 ``=``: values that differ from Megatron-Core's
  defaults, then other values; what a *complete* summary leaves out has its default. The ``dist``
  section is not in it.
* main prints the YAML without head and end, then the summary. The YAML is complete at the first
line
  that is not YAML if both ``model:`` and ``train:`` were seen.
* ``logger.save_config_filepath`` saves the same YAML as a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.parsers.base import BlockLine, BlockParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.parsers.base import Row

_KEY: Final = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z_][\w.-]*):(?: +(?P<value>.*))?$")
_ITEM: Final = re.compile(r"^(?P<indent> *)- (?P<value>.*)$")
_DASHES: Final = re.compile(r"^-{10,}\s*$")
_TASK_HEAD: Final = re.compile(r"^-{3,} Task Configuration -{3,}\s*$")
_CONTAINER: Final = "_target_: megatron.bridge.training.config.ConfigContainer"
_MAX_DEPTH: Final = 32


class YamlReader:
    """YAML as a configuration dump uses it, line by line: mappings, lists of scalars, scalars.

    A real YAML parser would give up at the first line of another rank between two of ours, and
    would not say on which line a value stands.
    """

    def __init__(self, source: str, head: BlockLine) -> None:
        self._source, self._head = source, head
        self._path: list[tuple[int, str]] = []
        self._values: dict[tuple[str, str], tuple[BlockLine, str]] = {}
        self._lists: dict[tuple[str, str], list[str]] = {}
        self.sections: set[str] = set()
        self.last = head.number
        self.complete = False

    def take(self, line: BlockLine) -> bool:
        """Read one line; False if it is not YAML."""
        if match := _KEY.match(line.text):
            indent = len(match["indent"])
            while self._path and self._path[-1][0] >= indent:
                self._path.pop()
            if len(self._path) >= _MAX_DEPTH:
                return False
            self._path.append((indent, match["key"]))
            if indent == 0:
                self.sections.add(match["key"])
            value = (match["value"] or "").strip()
            if value:
                self._values[self._name()] = (line, _scalar(value))
            else:
                self._lists[self._name()] = []
                self._values[self._name()] = (line, "")
        elif match := _ITEM.match(line.text):
            if not self._path or len(match["indent"]) < self._path[-1][0]:
                return self._skip_deep(match)
            items = self._lists.get(self._name())
            if items is not None and not match["value"].startswith("- "):
                items.append(_scalar(match["value"].strip()))
        else:
            return False
        self.last = line.number
        return True

    def _skip_deep(self, match: re.Match[str]) -> bool:
        return bool(self._path) and len(match["indent"]) > 0

    def _name(self) -> tuple[str, str]:
        names = [name for _, name in self._path]
        return (names[0], ".".join(names[1:])) if len(names) > 1 else ("", names[0])

    def rows(self) -> Iterator[Row]:
        """Every scalar and every list of scalars; empty values are sections and are left out."""
        entries = 0
        for (section, key), (line, value) in self._values.items():
            items = self._lists.get((section, key))
            text = f"[{', '.join(items)}]" if items else value
            if not text:
                continue
            entries += 1
            own = {
                "source": self._source,
                "block": self._head.number,
                "section": section,
                "key": key,
                "value": text,
            }
            yield ("config", line.number, line.offset, line.text, own)
        block = {
            "source": self._source,
            "last_line": self.last,
            "complete": self.complete,
            "entries": entries,
        }
        yield ("blocks", self._head.number, self._head.offset, self._head.text, block)


def _scalar(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


class _PrintedYaml:
    """YAML on a console: with a head it ends at a line of dashes, without one at its first gap."""

    def __init__(self, line: BlockLine, *, headed: bool) -> None:
        self._reader, self._headed = YamlReader("bridge_yaml", line), headed
        if not headed:
            self._reader.take(line)

    def feed(self, line: BlockLine) -> bool:
        reader = self._reader
        if self._headed:
            if _DASHES.match(line.text):
                reader.complete, reader.last = True, line.number
                return True
            reader.take(line)
            return bool(_TASK_HEAD.match(line.text))
        if reader.take(line):
            return False
        reader.complete = {"model", "train"} <= reader.sections
        return True

    def rows(self) -> Iterator[Row]:
        return self._reader.rows()


def _open_yaml(line: BlockLine) -> _PrintedYaml | None:
    if _TASK_HEAD.match(line.text):
        return _PrintedYaml(line, headed=True)
    if line.text.rstrip() == _CONTAINER:
        return _PrintedYaml(line, headed=False)
    return None


_TITLE: Final = "Configuration Summary (Non-Default Values vs Megatron Core)"
_BAR: Final = re.compile(r"^={50,}\s*$")
_SECTION: Final = re.compile(r"^\[(?P<name>\w+)\](?: Non-default values\b.*)?:\s*$")
_FIELD: Final = re.compile(
    r"^  (?P<key>[A-Za-z_]\w*): (?P<value>.*?)(?:  \(Mcore default: (?P<default>.*)\))?\s*$"
)


class _Summary:
    def __init__(self, line: BlockLine) -> None:
        self._head, self._last = line, line.number
        self._section, self._bars, self._complete = "", 0, False
        self._entries: list[tuple[BlockLine, str, str, str]] = []

    def feed(self, line: BlockLine) -> bool:
        text = line.text
        if text.startswith(_TITLE):
            return True
        if _BAR.match(text):
            self._last = line.number
            self._bars += 1
            self._complete = self._bars == 2
            return self._complete
        if match := _SECTION.match(text):
            self._section, self._last = match["name"], line.number
        elif self._section and (match := _FIELD.match(text)):
            self._entries.append((line, self._section, match["key"], _scalar(match["value"])))
            self._last = line.number
        return False

    def rows(self) -> Iterator[Row]:
        head = self._head
        for line, section, key, value in self._entries:
            own = {
                "source": "bridge_summary",
                "block": head.number,
                "section": section,
                "key": key,
                "value": value,
            }
            yield ("config", line.number, line.offset, line.text, own)
        block = {
            "source": "bridge_summary",
            "last_line": self._last,
            "complete": self._complete,
            "entries": len(self._entries),
        }
        yield ("blocks", head.number, head.offset, head.text, block)


class _SavedYaml:
    """A saved configuration: the file is the block, its end is the end mark."""

    def __init__(self, line: BlockLine) -> None:
        self._reader = YamlReader("saved_yaml", line)
        self._reader.take(line)

    def feed(self, line: BlockLine) -> bool:
        self._reader.take(line)
        return False

    def rows(self) -> Iterator[Row]:
        if "model" not in self._reader.sections:
            return iter(())  # some other YAML
        self._reader.complete = True
        return self._reader.rows()


PARSERS = (
    BlockParser(
        name="bridge-yaml",
        needles=("- Task Configuration -", _CONTAINER),
        tables=("config", "blocks"),
        opens=_open_yaml,
        sample="------- Task Configuration -------\n"
        "dist:\n  use_decentralized_pg: false\n"
        "model:\n  context_parallel_size: 4\n  cp_comm_type: a2a+p2p\n"
        "  hierarchical_context_parallel_sizes:\n  - 2\n  - 2\n"
        "train:\n  train_iters: 10\n"
        "----------------------------------\n",
    ),
    BlockParser(
        name="bridge-summary",
        needles=(_TITLE,),
        tables=("config", "blocks"),
        opens=lambda line: _Summary(line) if line.text.startswith(_TITLE) else None,
        sample=f"{_TITLE}\n{'=' * 70}\n\n"
        "[model] Non-default values (vs Mcore TransformerConfig):\n"
        "  context_parallel_size: 16  (Mcore default: 1)\n"
        "  cp_comm_type: 'a2a+p2p'  (Mcore default: None)\n\n"
        f"{'-' * 70}\nOther Configuration Values:\n{'-' * 70}\n\n"
        f"[train]:\n  train_iters: 10\n\n{'=' * 70}\n",
    ),
    BlockParser(
        name="bridge-saved-yaml",
        needles=(),
        tables=("config", "blocks"),
        opens=_SavedYaml,
        sample="_target_: megatron.bridge.training.config.ConfigContainer\n"
        "model:\n  context_parallel_size: 4\n",
        whole_file=True,
    ),
)
