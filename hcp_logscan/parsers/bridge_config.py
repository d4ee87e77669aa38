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

from hcp_logscan.parsers.base import (
    CP_KEYS,
    BlockLine,
    BlockParser,
    Setting,
    config_rows,
    spoiled,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.parsers.base import Row

_KEY: Final = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z_][\w.-]{0,127}):(?: +(?P<value>.*))?$")
_ITEM: Final = re.compile(r"^(?P<indent> *)- (?P<value>.*)$")
_TAG: Final = re.compile(r"^(?:!!\S+|&\w+)\s*")
_DASHES: Final = re.compile(r"^-{34}\s*$")
_TASK_HEAD: Final = re.compile(r"^-{3,} Task Configuration -{3,}\s*$")
_CONTAINER: Final = "_target_: megatron.bridge.training.config.ConfigContainer"
_SECTIONS: Final = frozenset(
    {"checkpoint", "comm_overlap", "dataset", "ddp", "dist", "env_vars", "ft", "logger", "model"}
    | {"inprocess_restart", "mixed_precision", "nvrx_straggler", "optimizer", "peft", "profiling"}
    | {"optimizer_config_override_provider", "rerun_state_machine", "rng", "scheduler", "straggler"}
    | {"tensor_inspect", "tokenizer", "train", "validation"}
)
_EMPTY: Final = frozenset({"null", "{}", "[]", "true", "false"})
_MAX_DEPTH: Final = 32


def _is_section(key: str, value: str) -> bool:
    """Whether a line at column 0 is the configuration's own.

    Other ranks' lines have the same shape (`WARNING: …`, `wandb: …`): what is not known has to be a
    bare section.
    """
    if key == "_target_" or key in _SECTIONS:
        return " " not in value
    return key == key.lower() and (not value or value in _EMPTY)


class YamlReader:
    """YAML as a configuration dump uses it, line by line: mappings, lists of scalars, scalars.

    A real YAML parser would give up at the first line of another rank, and would not say on which
    line a value stands.
    """

    def __init__(self, source: str, head: BlockLine) -> None:
        self._source, self._head = source, head
        self._path: list[tuple[int, str]] = []
        self._values: dict[tuple[str, str], tuple[BlockLine, str]] = {}
        self._lists: dict[tuple[str, str], list[str]] = {}
        self._torn: list[Setting] = []
        self.sections: set[str] = set()
        self.last: int = head.number
        self.complete: bool | None = False
        self.container: bool = head.text.rstrip() == _CONTAINER

    def take(self, line: BlockLine) -> bool:
        """Read one line; False if it is not the configuration's."""
        if match := _KEY.match(line.text):
            read = self._take_key(line, match)
        elif match := _ITEM.match(line.text):
            read = self._take_item(match)
        else:
            read = False
        if read:
            self.last = line.number
        elif torn := spoiled(line, "model"):
            self._torn.append(torn)
        return read

    def _take_key(self, line: BlockLine, match: re.Match[str]) -> bool:
        indent, key = len(match["indent"]), match["key"]
        value = _TAG.sub("", (match["value"] or "").strip())
        if indent == 0 and not _is_section(key, value):
            return False
        if indent and not self._path:
            return False
        while self._path and self._path[-1][0] >= indent:
            self._path.pop()
        if len(self._path) >= _MAX_DEPTH:
            return False
        self._path.append((indent, key))
        if indent == 0:
            self.sections.add(key)
            self.container |= key == "_target_" and value in _CONTAINER
        self._values[self._name()] = (line, _scalar(value))
        if not value:
            self._lists[self._name()] = []
        return True

    def _take_item(self, match: re.Match[str]) -> bool:
        indent = len(match["indent"])
        if not self._path or indent < self._path[-1][0]:
            return bool(self._path) and indent > 0  # an item of a nested list: read over
        items = self._lists.get(self._name())
        if items is not None and not match["value"].startswith("- "):
            items.append(_scalar(match["value"].strip()))
        return True

    def _name(self) -> tuple[str, str]:
        names = [name for _, name in self._path]
        return (names[0], ".".join(names[1:])) if len(names) > 1 else ("", names[0])

    def rows(self) -> Iterator[Row]:
        """Every scalar and every list of scalars.

        What is empty is a section and is left out, except a CP key: its value was lost.
        """
        settings = []
        for (section, key), (line, value) in self._values.items():
            items = self._lists.get((section, key))
            text = f"[{', '.join(items)}]" if items else value
            if text or key in CP_KEYS:
                settings.append(Setting(line, section, key, text))
        settings.sort(key=lambda setting: setting.line.number)
        return config_rows(
            self._source,
            self._head,
            [*self._torn, *settings],
            last_line=self.last,
            complete=self.complete,
        )


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
                reader.complete, reader.last = "model" in reader.sections, line.number
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
_BAR: Final = re.compile(r"^={70}\s*$")
_SECTION: Final = re.compile(
    r"^\[(?P<name>\w+)\](?: Non-default values\b(?: \(vs Mcore (?P<of>\w{1,80})\))?.*)?:\s*$"
)
COMPARED_WITH: Final = "(compared with)"
"""Key under which the class stands whose defaults a section of the summary leaves out."""

_FIELD: Final = re.compile(r"^  (?P<key>[A-Za-z_]\w*): (?P<value>.*)$")
_DEFAULT: Final = "  (Mcore default: "


def _without_default(value: str) -> str:
    """The value without the default that the summary prints behind it.

    >>> _without_default("[2, 2]  (Mcore default: None)")
    '[2, 2]'
    """
    value = value.rstrip()
    return value.partition(_DEFAULT)[0] if value.endswith(")") else value


class _Summary:
    def __init__(self, line: BlockLine) -> None:
        self._head, self._last = line, line.number
        self._section, self._bars, self._complete = "", 0, False
        self._settings: list[Setting] = []

    def feed(self, line: BlockLine) -> bool:
        text = line.text
        if text.startswith(_TITLE):
            return True
        if _BAR.match(text):
            self._last = line.number
            # the title's own bar may come twice; only a bar behind a section is the end
            self._complete = bool(self._section)
            return self._complete
        if match := _SECTION.match(text):
            self._section, self._last = match["name"], line.number
            if match["of"]:
                setting = Setting(line, self._section, COMPARED_WITH, match["of"])
                self._settings.append(setting)
        elif self._section and (match := _FIELD.match(text)):
            value = _scalar(_without_default(match["value"]))
            self._settings.append(Setting(line, self._section, match["key"], value))
            self._last = line.number
        elif torn := spoiled(line, "model"):
            self._settings.append(torn)
        return False

    def rows(self) -> Iterator[Row]:
        return config_rows(
            "bridge_summary",
            self._head,
            self._settings,
            last_line=self._last,
            complete=self._complete,
        )


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
        reader = self._reader
        # Another program's file (Hydra's config.yaml) leaves out what it does not set.
        reader.complete = {"model", "train"} <= reader.sections if reader.container else None
        return reader.rows()


_OVERRIDE: Final = re.compile(
    r"^- ['\"]?\+{0,2}(?P<section>model|dist|train|dataset)\.(?P<key>\w+)=(?P<value>[^'\"]*)['\"]?$"
)


class _Overrides:
    """Hydra's ``.hydra/overrides.yaml``: a list of ``key=value``, as given on the command line."""

    def __init__(self, line: BlockLine) -> None:
        self._head, self._last = line, line.number
        self._settings: list[Setting] = []
        self._listed = True
        self.feed(line)

    def feed(self, line: BlockLine) -> bool:
        self._listed = self._listed and line.text.startswith("- ")
        self._last = line.number
        if match := _OVERRIDE.match(line.text):
            setting = Setting(line, match["section"], match["key"], match["value"].strip())
            self._settings.append(setting)
        return not self._listed

    def rows(self) -> Iterator[Row]:
        if not (self._listed and self._settings):
            return iter(())  # some other YAML
        return config_rows(
            "saved_yaml",
            self._head,
            self._settings,
            last_line=self._last,
            complete=None,
            ended=True,
        )


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
        f"train:\n  train_iters: 10\n{'-' * 34}\n",
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
    BlockParser(
        name="hydra-overrides",
        needles=(),
        tables=("config", "blocks"),
        opens=_Overrides,
        sample="- model.context_parallel_size=4\n- ++model.cp_comm_type=a2a+p2p\n",
        whole_file=True,
    ),
)
