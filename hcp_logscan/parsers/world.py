"""How many ranks a job has, as launchers say it: the only word on it where a trainer prints none.

Written from PyTorch ``torch/distributed/elastic/agent/server/api.py`` and
``torch/distributed/launcher/api.py`` (1.9 to main of 2026-08), Lightning
``lightning/fabric/utilities/distributed.py`` (1.5 to 2.5), DeepSpeed
``deepspeed/launcher/launch.py`` (0.3 to 0.17), and public logs:

* torchrun at ``LOGLEVEL=INFO``: ``  global_world_sizes=[8, 8, 8, 8]``, one entry per worker of the
  node
* torchrun at ``LOGLEVEL=INFO``: ``Starting elastic_operator with launch configs:`` and, indented,
  ``min_nodes``, ``max_nodes`` and ``nproc_per_node``. Where the nodes may vary it says nothing
* its command line, echoed by a script, with both ``--nnodes`` and ``--nproc-per-node`` as numbers:
  either may come from the environment (``PET_NNODES``) where it is left out
* Lightning, under NeMo: ``GLOBAL_RANK: 0, MEMBER: 1/8``
* DeepSpeed's launcher: ``dist_world_size=8``
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.parsers.base import BlockLine, BlockParser, Setting, config_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hcp_logscan.parsers.base import Row

_RENDEZVOUS: Final = re.compile(r"^ *global_world_sizes=\[(\d{1,7})(?:, \1){0,63}\]")
_MEMBER: Final = re.compile(
    r"\bInitializing (?:distributed|ddp): GLOBAL_RANK: \d{1,7}, MEMBER: \d{1,7}/(\d{1,7})\s*$"
)
_DEEPSPEED: Final = re.compile(r"\[launch\.py:\d+:main\] dist_world_size=(\d{1,7})\s*$")
_TORCHRUN: Final = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b")
_NODES: Final = re.compile(r"--nnodes[= ]+['\"]?(?:(\d{1,5}):(?=\1\b))?(\d{1,5})['\"]?(?=\s|$)")
_PER_NODE: Final = re.compile(r"--nproc[-_]per[-_]node[= ]+['\"]?(\d{1,5})['\"]?(?=\s|$)")
_USAGE: Final = re.compile(r"^\s*usage:|\[--|\.\.\.\]", re.IGNORECASE)
_LAUNCH_CONFIG: Final = re.compile(r"^ +(min_nodes|max_nodes|nproc_per_node) *: (\d{1,7})\s*$")
_INDENTED: Final = re.compile(r"^ +\w+ *: ")


class _Said:
    """A block of one line that says the number."""

    def __init__(self, line: BlockLine, size: int) -> None:
        self._line, self._size = line, size

    def feed(self, line: BlockLine) -> bool:
        del line
        return True

    def rows(self) -> Iterator[Row]:
        line = self._line
        settings = [Setting(line, "", "world_size", str(self._size))]
        return config_rows("launcher", line, settings, last_line=line.number, complete=True)


class _LaunchConfig:
    """torchrun's launch configuration: the lines behind its head that are indented."""

    def __init__(self, line: BlockLine) -> None:
        self._head, self._last = line, line
        self._values: dict[str, int] = {}

    def feed(self, line: BlockLine) -> bool:
        if match := _LAUNCH_CONFIG.match(line.text):
            self._values[match[1]] = int(match[2])
            self._last = line
        return _INDENTED.match(line.text) is None

    def rows(self) -> Iterator[Row]:
        least, most, each = (
            self._values.get(name) for name in ("min_nodes", "max_nodes", "nproc_per_node")
        )
        if least is None or least != most or not each:
            return iter(())
        line = self._last
        settings = [Setting(line, "", "world_size", str(least * each))]
        return config_rows("launcher", self._head, settings, last_line=line.number, complete=True)


def _by(pattern: re.Pattern[str]) -> Callable[[BlockLine], _Said | None]:
    def opens(line: BlockLine) -> _Said | None:
        match = pattern.search(line.text)
        return _Said(line, int(match[1])) if match and int(match[1]) else None

    return opens


def _command(line: BlockLine) -> _Said | None:
    if _USAGE.search(line.text) or not (start := _TORCHRUN.search(line.text)):
        return None
    text = line.text[start.end() :]
    nodes, each = _NODES.findall(text), _PER_NODE.findall(text)
    if len(nodes) != 1 or len(each) != 1:
        return None
    size = int(nodes[0][1]) * int(each[0])
    return _Said(line, size) if size else None


def _config(line: BlockLine) -> _LaunchConfig | None:
    head = "Starting elastic_operator with launch configs:"
    return _LaunchConfig(line) if line.text.rstrip().endswith(head) else None


PARSERS = (
    BlockParser(
        name="torchrun-rendezvous",
        needles=("global_world_sizes=[",),
        tables=("config", "blocks"),
        opens=_by(_RENDEZVOUS),
        sample="  global_world_sizes=[32, 32, 32, 32, 32, 32, 32, 32]",
    ),
    BlockParser(
        name="torchrun-launch-config",
        needles=("Starting elastic_operator with launch configs:",),
        tables=("config", "blocks"),
        opens=_config,
        sample="I0301 09:14:20.123000 4711 torch/distributed/launcher/api.py:199] Starting"
        " elastic_operator with launch configs:\n  entrypoint               : train.py\n"
        "  min_nodes                : 4\n  max_nodes                : 4\n"
        "  nproc_per_node           : 8\n  run_id                   : none\n",
    ),
    BlockParser(
        name="torchrun-command",
        needles=("--nproc_per_node", "--nproc-per-node"),
        tables=("config", "blocks"),
        opens=_command,
        sample="+ torchrun --nnodes 4 --nproc_per_node=8 --node_rank 0 pretrain_gpt.py --bf16",
    ),
    BlockParser(
        name="lightning-member",
        needles=(", MEMBER: ",),
        tables=("config", "blocks"),
        opens=_by(_MEMBER),
        sample="Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/32",
    ),
    BlockParser(
        name="deepspeed-world",
        needles=("dist_world_size=",),
        tables=("config", "blocks"),
        opens=_by(_DEEPSPEED),
        sample="[2031-04-07 13:09:33,220] [INFO] [launch.py:161:main] dist_world_size=32",
    ),
)
