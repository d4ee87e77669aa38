"""Xids of NVIDIA's driver: which of them mean that a GPU failed, and which blame the program.

From the Xid catalogue for Ampere and newer GPUs, docs.nvidia.com/deploy/xid-errors (r595).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_HARDWARE: Final[Mapping[int, str]] = {
    48: "double-bit ECC error",
    62: "internal micro-controller halt",
    64: "row remapper or page retirement failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    94: "contained memory error",
    95: "uncontained memory error",
    109: "context switch timeout",
    119: "GSP RPC timeout",
    120: "GSP error",
    136: "link training failed",
    140: "unrecovered ECC error",
    143: "GPU initialization error",
    158: "GPU fatal timeout",
    167: "PCIe fatal timeout",
    171: "uncorrectable DRAM error",
    172: "uncorrectable SRAM error",
}
_NVLINK: Final = range(144, 151)
"""NVLink errors of Blackwell: the line itself says whether one is fatal."""

_FAULTS: Final[Mapping[int, str]] = {
    13: "graphics engine exception, mostly an access out of bounds by the program",
    31: "GPU memory page fault, mostly an illegal address in the program",
    32: "invalid or corrupted push buffer stream",
    43: "GPU stopped processing for one program",
    45: "pre-emptive clean-up because of previous errors or of an ended process",
    69: "graphics engine class error",
    137: "NVLink privilege error, mostly an illegal peer access by the program",
}
_EVENTS: Final[Mapping[int, str]] = {
    61: "internal micro-controller breakpoint or warning",
    63: "row remapping or page retirement was recorded",
    92: "high rate of single-bit ECC errors, all corrected",
    121: "corrected errors of the C2C link",
    154: "recovery action of the GPU changed",
}


def meaning_of(code: int | None, text: str = "") -> tuple[str, str]:
    """(kind of cause, meaning) of an Xid; one that is not in the tables blames nobody.

    >>> meaning_of(79), meaning_of(31)[0], meaning_of(4711)
    (('gpu_lost', 'GPU has fallen off the bus'), 'gpu_fault', ('gpu_event', 'not in our table'))
    """
    number = -1 if code is None else code
    for kind, table in (("gpu_lost", _HARDWARE), ("gpu_fault", _FAULTS), ("gpu_event", _EVENTS)):
        if number in table:
            return kind, table[number]
    if number in _NVLINK:
        fatal = re.search(r"\bFatal\b", text) is not None
        return "gpu_lost" if fatal else "gpu_event", "NVLink error"
    return "gpu_event", "not in our table"
