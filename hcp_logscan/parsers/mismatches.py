"""Collectives that differ between two ranks, as c10d's wrapper for debugging finds them.

Written from PyTorch ``torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp`` (1.9 to 2.13), which
compares before each collective under ``TORCH_DISTRIBUTED_DEBUG=DETAIL``. A fingerprint has a
sequence number since 1.13; one without tensors prints no separator behind it
(``SequenceNumber=0OpType=GATHER``). Both ranks count inside the group, which is not named.
"""

from __future__ import annotations

from hcp_logscan.parsers.base import LineParser


def _print(who: str) -> str:
    return (
        rf"Rank (?P<{who}_rank>[0-9]+) is running collective: CollectiveFingerPrint\("
        rf"(?:SequenceNumber=(?P<{who}_sequence>[0-9]+)(?:, ?)?)?"
        rf"OpType=(?P<{who}_operation>[A-Za-z_0-9]+)"
        rf"(?:, TensorShape=\[(?P<{who}_shape>[0-9, ]*)\])?"
        rf"(?:, TensorDtypes=(?P<{who}_dtypes>[A-Za-z0-9_\[\], ]+?), Tensor)?"
    )


PARSERS = (
    LineParser(
        name="c10d-mismatch",
        table="mismatches",
        needles=("Detected mismatch between collectives on ranks",),
        pattern=rf"Detected mismatch between collectives on ranks\. {_print('own')}.*?"
        rf"but {_print('other')}",
        sample="RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running"
        " collective: CollectiveFingerPrint(SequenceNumber=3104, OpType=ALLREDUCE,"
        " TensorShape=[1024], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float"
        " (default), device=cuda, layout=Strided (default), requires_grad=false (default),"
        " pinned_memory=false (default), memory_format=(nullopt))), but Rank 0 is running"
        " collective: CollectiveFingerPrint(SequenceNumber=3104OpType=BARRIER).Collectives differ"
        " in the following aspects: \t  Op type: ALLREDUCEvs BARRIER",
        drift=False,
    ),
)
