"""Python tracebacks, and the start-up checks of the CP configuration among them.

Written from CPython's ``Lib/traceback.py`` (3.8 to 3.14; 3.13 marks with ``~~~^^``). Megatron's
own handled failures stand *inside* a line (``… failed with: Traceback``, one-line list reprs) and
are not read: only a line that begins with ``Traceback`` in its stream begins one.

The check texts are those of Megatron-LM ``training/arguments.py`` and ``core/parallel_state.py``
(core 0.10 to main of 2026-08), Megatron-Bridge ``training/{config,initialize}.py`` (0.4 to main),
Megatron-Core ``core/extensions/transformer_engine.py`` and Transformer Engine
``pytorch/attention`` (1.12 to 2.18). Bare assertions carry no text: there the source line that the
traceback shows says which check it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.parsers.base import BlockLine, BlockParser, LineParser

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hcp_logscan.parsers.base import Row

BEGIN: Final = "Traceback (most recent call last)"
_FRAME: Final = re.compile(
    r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d{1,9}), in (?P<function>.+)$'
)
_EXCEPTION: Final = re.compile(
    # Possessive throughout: a long line costs no more than its length.
    r"^(?P<name>(?:[A-Za-z_]\w*+\.)*+(?=[^\Wa-z]++[a-z])[A-Z]\w*+)(?:: ?(?P<message>.*))?$"
)
_CHAIN: Final = re.compile(
    r"^(?:During handling of the above exception|The above exception was the direct cause)"
)
_MARKS: Final = re.compile(r"^\s*[~^]+\s*$")

STAGES: Final[Mapping[str, str]] = {
    "init_process_group": "rendezvous",
    "_initialize_distributed": "rendezvous",
    "initialize_model_parallel": "group creation",
    "new_group": "group creation",
    "validate_args": "start-up",
    "load_checkpoint": "load",
    "_load_base_checkpoint": "load",
    "load_state_dict": "load",
    "save_checkpoint": "save",
    "save_checkpoint_and_time": "save",
    "evaluate_and_print_results": "evaluation",
    "evaluate": "evaluation",
    "zero_grad_buffer": "start of iteration",
    "forward_step": "forward pass",
    "forward_backward_no_pipelining": "forward pass",
    "forward_backward_pipelining_without_interleaving": "forward pass",
    "backward_step": "backward pass",
    "backward": "backward pass",
    "prepare_grads": "optimizer step",
    "train_step": "iteration",
    "train": "training",
}
"""Functions of Megatron-LM, Megatron-Bridge and PyTorch -> what is being done inside."""

CHECKS: Final[Mapping[str, str]] = {
    "hierarchical sizes missing": r"hierarchical-context-parallel-sizes must be set when a2a\+p2p"
    r"|hierarchical_context_parallel_sizes must be set when cp_comm_type contains",
    "product of the sizes": r"Product of hierarchical_context_parallel_sizes .*must equal",
    "decentralized process groups": r"Decentralized process groups \(use_decentralized_pg=True\)"
    r" do not support hierarchical_context_parallel_sizes"
    r"|use_decentralized_pg.* does not support .*a2a\+p2p",
    "Transformer Engine version": r"must be >= 1\.12\.0 to support ?hierarchical cp",
    "two levels": r"Current implementation only supports two-level CP groups"
    r"|Hierarchical CP implementation needs multi-level CP groups"
    r"|CP implementation a2a\+p2p requires cp_group = \[",
    "packed sequences": r"is not supported with hierarchical CP implementation yet",
    "sliding window attention": r"does not support sliding window attention with"
    r" cp_comm_type='a2a\+p2p'",
    "process group collection": r"pg_collection must have hierarchical cp pg",
    "sequence length": r"seq-length should be a multiple of 2 \* context-parallel-size"
    r"|seq_length must be divisible by 2 ?\* ?context_parallel_size",
    "layers of cp_comm_type": r"Length of cp_comm_type \(\d+\) should equal to the total number of"
    r" transformer layers",
}
"""Check -> regex over the message. What each means stands in the rule that reports it."""

BARE_CHECKS: Final[Mapping[str, str]] = {
    "product of the sizes": r"prod\(.*hierarchical_context_parallel_sizes\)"
    r"|hierarchical_context_parallel_sizes.*== *(?:\w+\.)?context_parallel_size",
    "hierarchical sizes missing": r"hierarchical_context_parallel_sizes is not None",
    "two levels": r"len\(cp_group\) *== *2",
    "sequence length": r"seq_length % \((?:\w+\.)?context_parallel_size \* 2\)",
}
"""Check -> regex over the source line of the innermost frame, for assertions without a text."""

_NEEDLES: Final = (
    "must be set when a2a+p2p",
    "must be set when cp_comm_type",
    "Product of hierarchical_context_parallel_sizes",
    "do not support hierarchical_context_parallel_sizes",
    "hierarchical cp commucation",
    "supports two-level CP groups",
    "needs multi-level CP groups",
    "CP implementation a2a+p2p requires",
    "with hierarchical CP implementation yet",
    "sliding window attention with cp_comm_type",
    "must have hierarchical cp pg",
    "should be a multiple of 2 * context-parallel-size",
    "Length of cp_comm_type (",
)


def exception_of(text: str) -> tuple[str, str] | None:
    """(type, first line of the message) of the line that ends a traceback; None for others.

    >>> exception_of("torch.OutOfMemoryError: CUDA out of memory."), exception_of("done")
    (('torch.OutOfMemoryError', 'CUDA out of memory.'), None)
    """
    match = _EXCEPTION.match(text)
    return (match["name"], (match["message"] or "").strip()) if match else None


class Traceback:
    """One traceback that is being read."""

    def __init__(self, line: BlockLine) -> None:
        """`line` is the head."""
        self._head, self._last = line, line.number
        self._frames, self._frame, self._source = 0, "", ""
        self._innermost, self._stage = "", ""
        self._expect_source = False
        self._exception: tuple[str, str] | None = None
        self._exception_line = line
        self._chained, self._after = False, 0

    def feed(self, line: BlockLine) -> bool:
        """Take the next line; True when the traceback is done."""
        text = line.text
        if self._exception is not None:
            self._chained = bool(_CHAIN.match(text))
            self._after += 1
            return self._chained or bool(text.strip()) or self._after > 2
        if text.startswith(BEGIN):
            return True
        if match := _FRAME.match(text):
            self._frames += 1
            file, function = match["file"].rpartition("/")[2], match["function"]
            self._frame = f"{file}:{function}"
            self._innermost = f"{file}:{match['line']}"
            self._stage = function if function in STAGES else self._stage
            self._expect_source, self._last = True, line.number
        elif text[:1] in (" ", "\t"):
            if self._expect_source and not _MARKS.match(text):
                self._source, self._expect_source = text.strip(), False
            self._last = line.number
        elif self._frames and (raised := exception_of(text)):
            self._exception = raised
            self._exception_line, self._last = line, line.number
        return False

    def rows(self) -> Iterator[Row]:
        """One row, also of a traceback that ended early."""
        name, message = self._exception or ("", "")
        own = {
            "exception": name or None,
            "message": message or None,
            "frames": self._frames,
            "last_frame": self._frame or None,
            "last_source": self._source or None,
            "innermost": self._innermost or None,
            "stage": self._stage or None,
            "first_line": self._head.number,
            "last_line": self._last,
            "complete": self._exception is not None,
            "chained": self._chained,
        }
        shown = self._exception_line
        yield ("tracebacks", shown.number, shown.offset, shown.text, own)


def _checks(rows: pl.DataFrame) -> pl.DataFrame:
    check = pl.lit(None, dtype=pl.String)
    for name, regex in CHECKS.items():
        check = pl.when(pl.col("message").str.contains(regex)).then(pl.lit(name)).otherwise(check)
    return rows.with_columns(check.alias("check")).filter(pl.col("check").is_not_null())


PARSERS = (
    BlockParser(
        name="python-traceback",
        needles=(BEGIN,),
        tables=("tracebacks",),
        max_gap=3_000,
        opens=lambda line: Traceback(line) if line.text.startswith(BEGIN) else None,
        sample="Traceback (most recent call last):\n"
        '  File "/opt/app/arguments.py", line 582, in validate_args\n'
        "    assert args.context_parallel_size == prod(args.hierarchical_context_parallel_sizes)\n"
        "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "AssertionError\n",
    ),
    LineParser(
        name="python-handled",
        table="handled",
        needles=(
            "Exception ignored in",
            "Exception in thread ",
            "--- Logging error ---",
            "Error in atexit.",
            "Error in sys.excepthook",
        ),
        pattern=r"^(?:Exception ignored in|Exception in thread |--- Logging error ---"
        r"|Error in atexit\.|Error in sys\.excepthook)",
        constants={"kind": "handled"},
        sample="Exception ignored in: <function Queue.__del__ at 0x7f00>",
        drift=False,
    ),
    LineParser(
        name="cp-start-up-check",
        table="assertions",
        needles=_NEEDLES,
        pattern=r"^(?:[A-Za-z_]\w*\.)*(?P<exception>[A-Z][A-Za-z]*(?:Error|Exception)):"
        r" (?P<message>.*)$",
        finish=_checks,
        sample="AssertionError: --hierarchical-context-parallel-sizes must be set when a2a+p2p"
        " is used"
        " in cp comm",
        drift=False,
    ),
)
