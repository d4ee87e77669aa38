"""Configuration on a launch command line, and in Megatron's progress.txt.

``set -x`` echoes (``+ torchrun … --context-parallel-size 4``), job scripts that echo their
command, and Hydra-style overrides of Megatron-Bridge (``model.cp_comm_type=a2a+p2p``). A command
line is never complete: what it leaves out may come from a file. Written from Megatron-LM
``megatron/training/arguments.py`` (core 0.10 to main of 2026-08) and MindSpeed
``mindspeed/arguments.py`` (2024 to 2026; ``--context-parallel-algo``). ``progress.txt`` is written
by ``--log-progress`` (``megatron/training/training.py``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.parsers.base import BlockLine, BlockParser, Setting, config_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.parsers.base import Row

_LAUNCH: Final = re.compile(
    r"(?:^|[\s/'\"])(?:torchrun|srun|python3?|mpirun|deepspeed|bash|sh|ray|accelerate|nemo)\b"
    r"|\.(?:py|sh)\b|^\++ "
)
_USAGE: Final = re.compile(r"^\s*usage:|\[--|\.\.\.\]", re.IGNORECASE)
_INTEGER: Final = r"[= ]+['\"]?(\d{1,9})\b"
_OPTIONS: Final = {
    "context_parallel_size": re.compile(r"--context-parallel-size" + _INTEGER),
    "tensor_model_parallel_size": re.compile(r"--tensor-model-parallel-size" + _INTEGER),
    "pipeline_model_parallel_size": re.compile(r"--pipeline-model-parallel-size" + _INTEGER),
    "seq_length": re.compile(r"--seq-length" + _INTEGER),
    "num_attention_heads": re.compile(r"--num-attention-heads" + _INTEGER),
    "hierarchical_context_parallel_sizes": re.compile(
        r"--hierarchical-context-parallel-sizes[= ]+((?:['\"]?\d{1,6}['\"]?[ ,]*){1,8})"
    ),
    "context_parallel_algo": re.compile(r"--context-parallel-algo[= ]+['\"]?(\w{1,40})\b"),
    "cp_comm_type": re.compile(
        r"--cp-comm-type[= ]+((?:['\"]?(?:a2a\+p2p|p2p|a2a|all_gather)['\"]?[ ,]*){1,512})"
    ),
}
_OVERRIDES: Final = {
    "context_parallel_size": re.compile(r"\bmodel\.context_parallel_size=['\"]?(\d{1,9})\b"),
    "tensor_model_parallel_size": re.compile(
        r"\bmodel\.tensor_model_parallel_size=['\"]?(\d{1,9})\b"
    ),
    "pipeline_model_parallel_size": re.compile(
        r"\bmodel\.pipeline_model_parallel_size=['\"]?(\d{1,9})\b"
    ),
    "seq_length": re.compile(r"\bmodel\.seq_length=['\"]?(\d{1,9})\b"),
    "hierarchical_context_parallel_sizes": re.compile(
        r"\bmodel\.hierarchical_context_parallel_sizes=['\"]?(\[[\d, ]{1,64}\]|null|None)"
    ),
    "cp_comm_type": re.compile(
        r"\bmodel\.cp_comm_type=['\"]?(a2a\+p2p|p2p|a2a|all_gather|null|None)"
    ),
    "use_decentralized_pg": re.compile(r"\bdist\.use_decentralized_pg=['\"]?(\w{4,5})"),
}


class _CommandLine:
    """A block of one line."""

    def __init__(self, line: BlockLine) -> None:
        self._line = line

    def feed(self, line: BlockLine) -> bool:
        del line
        return True

    def values(self) -> dict[str, str]:
        """What the line states, the last mention of an option winning."""
        text = self._line.text
        return {
            key: found[-1].strip(" ,")
            for options in (_OPTIONS, _OVERRIDES)
            for key, regex in options.items()
            if (found := regex.findall(text))
        }

    def rows(self) -> Iterator[Row]:
        line = self._line
        settings = [Setting(line, "", key, value) for key, value in self.values().items()]
        return config_rows("command_line", line, settings, last_line=line.number, complete=True)


def _open(line: BlockLine) -> _CommandLine | None:
    if _USAGE.search(line.text) or not _LAUNCH.search(line.text):
        return None
    command = _CommandLine(line)
    return command if command.values() else None


_PROGRESS: Final = re.compile(r"\bJob ID: (?P<job>\S*)\t# GPUs: (?P<gpus>\d{1,9})\b")


class _Progress:
    """The number of GPUs, which progress.txt repeats on every line."""

    def __init__(self, line: BlockLine, gpus: str) -> None:
        self._line, self._gpus = line, gpus

    def feed(self, line: BlockLine) -> bool:
        del line
        return True

    def rows(self) -> Iterator[Row]:
        line = self._line
        settings = [Setting(line, "", "world_size", self._gpus)]
        return config_rows("progress", line, settings, last_line=line.number, complete=True)


def _open_progress(line: BlockLine) -> _Progress | None:
    match = _PROGRESS.search(line.text)
    return _Progress(line, match["gpus"]) if match else None


PARSERS = (
    BlockParser(
        name="launch-command",
        needles=(
            "--context-parallel-size",
            "--cp-comm-type",
            "--hierarchical-context-parallel-sizes",
            "model.context_parallel_size=",
            "model.cp_comm_type=",
            "model.hierarchical_context_parallel_sizes=",
        ),
        tables=("config", "blocks"),
        opens=_open,
        sample="+ torchrun --nproc_per_node=8 pretrain_gpt.py --context-parallel-size 4"
        " --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2 --seq-length 8192",
    ),
    BlockParser(
        name="megatron-progress",
        needles=("\t# GPUs: ",),
        tables=("config", "blocks"),
        opens=_open_progress,
        sample="2026-03-01 09:14:20\tJob ID: 4711\t# GPUs: 64\tStarting job",
    ),
)
