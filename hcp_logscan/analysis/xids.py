"""Xids of NVIDIA's driver: which of them mean that a GPU failed, and which blame the program.

From the Xid catalogue for Ampere and newer GPUs, docs.nvidia.com/deploy/xid-errors (r595).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.said import N_

if TYPE_CHECKING:
    from collections.abc import Mapping

_HARDWARE: Final[Mapping[int, str]] = {
    48: N_("double-bit ECC error"),
    62: N_("internal micro-controller halt"),
    64: N_("row remapper or page retirement failed"),
    74: N_("NVLink error"),
    79: N_("GPU has fallen off the bus"),
    94: N_("contained memory error"),
    95: N_("uncontained memory error"),
    109: N_("context switch timeout"),
    119: N_("GSP RPC timeout"),
    120: N_("GSP error"),
    136: N_("link training failed"),
    140: N_("unrecovered ECC error"),
    143: N_("GPU initialization error"),
    158: N_("GPU fatal timeout"),
    167: N_("PCIe fatal timeout"),
    171: N_("uncorrectable DRAM error"),
    172: N_("uncorrectable SRAM error"),
}
_NVLINK: Final = range(144, 151)
"""NVLink errors of Blackwell: the line itself says whether one is fatal."""

_FAULTS: Final[Mapping[int, str]] = {
    13: N_("graphics engine exception, mostly an access out of bounds by the program"),
    31: N_("GPU memory page fault, mostly an illegal address in the program"),
    32: N_("invalid or corrupted push buffer stream"),
    43: N_("GPU stopped processing for one program"),
    45: N_("pre-emptive clean-up because of previous errors or of an ended process"),
    69: N_("graphics engine class error"),
    137: N_("NVLink privilege error, mostly an illegal peer access by the program"),
}
_EVENTS: Final[Mapping[int, str]] = {
    61: N_("internal micro-controller breakpoint or warning"),
    63: N_("row remapping or page retirement was recorded"),
    92: N_("high rate of single-bit ECC errors, all corrected"),
    121: N_("corrected errors of the C2C link"),
    154: N_("recovery action of the GPU changed"),
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
        return "gpu_lost" if fatal else "gpu_event", N_("NVLink error")
    return "gpu_event", N_("not in our table")
