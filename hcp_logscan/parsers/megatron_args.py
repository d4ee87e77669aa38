"""Megatron-LM's start-up configuration: the `using world size` line and the argument dump.

Written from Megatron-LM ``megatron/training/arguments.py`` (core 0.5 to 0.19 and main of 2026-08)
and public logs of core 0.10 to 0.12. Rank 0 prints both. In core 0.10 to 0.12 no separator follows
the hierarchical sizes (``sizes: [2, 2]tensor-model-parallel size: 1``); 0.9 and older have no such
field; 0.8 lacks a comma. The dump pads names with dots to 48 characters, longer names with none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.parsers.base import BlockLine, BlockParser, Setting, config_rows, spoiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.parsers.base import Row

_WORLD_KEYS: Final = {
    "world_size": re.compile(r"using world size: *(\d+)"),
    "data_parallel_size": re.compile(r"data-parallel[ -]size: *(\d+)"),
    "context_parallel_size": re.compile(r"(?<!hierarchical )context-parallel size: *(\d+)"),
    "hierarchical_context_parallel_sizes": re.compile(
        r"hierarchical context-parallel sizes: *(None|\[[\d, ]*\])"
    ),
    "tensor_model_parallel_size": re.compile(r"(?<!encoder-)tensor-model-parallel size: *(\d+)"),
    "pipeline_model_parallel_size": re.compile(
        r"(?<!encoder-)pipeline-model-parallel size: *(\d+)"
    ),
}


class _WorldSizeLine:
    """A block of one line."""

    def __init__(self, line: BlockLine) -> None:
        self._line = line

    def feed(self, line: BlockLine) -> bool:
        del line
        return True

    def rows(self) -> Iterator[Row]:
        line = self._line
        matches = {
            key: match for key, regex in _WORLD_KEYS.items() if (match := regex.search(line.text))
        }
        if "pipeline_model_parallel_size" not in matches and matches:
            # every version ends with it: this line is cut, and so may be its last number
            del matches[max(matches, key=lambda key: matches[key].end())]
        settings = [Setting(line, "", key, match[1]) for key, match in matches.items()]
        yield from config_rows(
            "world_size_line", line, settings, last_line=line.number, complete=True
        )


_HEAD: Final = re.compile(r"^-{3,} arguments -{3,}\s*$")
_END: Final = re.compile(r"^-{3,} end of arguments -{3,}")
_ENTRY: Final = re.compile(r"^ {1,2}(?P<key>[A-Za-z_]\w*) (?P<dots>\.*) ?(?P<value>.*)$")
_PADDED_NAME: Final = 46
"""A name shorter than this is always followed by dots: what has none is somebody else's line."""


class _ArgumentDump:
    def __init__(self, line: BlockLine) -> None:
        self._head, self._last = line, line.number
        self._complete = False
        self._settings: list[Setting] = []

    def feed(self, line: BlockLine) -> bool:
        if _HEAD.match(line.text):
            return True  # another dump begins: this one was cut off
        if _END.match(line.text):
            self._complete, self._last = True, line.number
            return True
        entry = _ENTRY.match(line.text)
        if entry and (entry["dots"] or len(entry["key"]) >= _PADDED_NAME):
            setting = Setting(line, "", entry["key"], entry["value"].strip())
            self._settings.append(setting)
            self._last = line.number
        elif torn := spoiled(line, ""):
            self._settings.append(torn)
        return False

    def rows(self) -> Iterator[Row]:
        return config_rows(
            "args_dump",
            self._head,
            self._settings,
            last_line=self._last,
            complete=self._complete,
        )


PARSERS = (
    BlockParser(
        name="megatron-world-size",
        needles=("using world size:",),
        tables=("config", "blocks"),
        opens=lambda line: (
            _WorldSizeLine(line) if line.text.startswith("using world size:") else None
        ),
        sample="using world size: 4, data-parallel size: 1, context-parallel size: 4, hierarchical"
        " context-parallel sizes: [2, 2], tensor-model-parallel size: 1, pipeline-model-parallel"
        " size: 1",
    ),
    BlockParser(
        name="megatron-arguments",
        needles=("- arguments -",),
        tables=("config", "blocks"),
        opens=lambda line: _ArgumentDump(line) if _HEAD.match(line.text) else None,
        sample="------------------------ arguments ------------------------\n"
        "  context_parallel_size ........................... 4\n"
        "  cp_comm_type .................................... ['a2a+p2p']\n"
        "-------------------- end of arguments ---------------------\n",
    ),
)
