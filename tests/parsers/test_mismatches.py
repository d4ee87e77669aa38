"""Fingerprints of collectives that differ between two ranks."""

import polars as pl
import pytest

from hcp_logscan.parsers.base import conform
from hcp_logscan.parsers.mismatches import PARSERS

DIFFER = "Detected mismatch between collectives on ranks. Rank 0 is running collective: "
OPTIONS = (
    "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default),"
    " requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)))"
)


@pytest.mark.parametrize(
    ("line", "own", "other"),
    [
        (
            f"RuntimeError: {DIFFER}CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE,"
            f" TensorShape=[20, 10], TensorDtypes=Float, {OPTIONS}, but Rank 2 is running"
            " collective: CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE, TensorShape=[],"
            f" TensorDtypes=Half, {OPTIONS}.Collectives differ in the following aspects: ",
            (0, 4, "ALLREDUCE", "20, 10", "Float"),
            (2, 4, "ALLREDUCE", "", "Half"),
        ),
        (
            f"{DIFFER}CollectiveFingerPrint(SequenceNumber=1649OpType=BARRIER), but Rank 1 is"
            " running collective: CollectiveFingerPrint(SequenceNumber=0OpType=GATHER).Collectives",
            (0, 1649, "BARRIER", None, None),
            (1, 0, "GATHER", None, None),
        ),
        (
            f"{DIFFER}CollectiveFingerPrint(OpType=ALLGATHER, TensorShape=[4], TensorDtypes=Float,"
            f" {OPTIONS}, but Rank 2 is running collective: CollectiveFingerPrint(OpType=ALLGATHER).",
            (0, None, "ALLGATHER", "4", "Float"),
            (2, None, "ALLGATHER", None, None),
        ),
    ],
    ids=["with tensors", "without a separator", "before 1.13"],
)
def test_both_fingerprints_are_read(line, own, other):
    (parser,) = PARSERS
    lines = conform("drift", pl.DataFrame({"text": [line], "line": [1]}))

    rows, _ = parser.parse(lines.drop("parser", "count", "last"))

    names = ("rank", "sequence", "operation", "shape", "dtypes")
    row = rows.row(0, named=True)
    assert tuple(row[f"own_{name}"] for name in names) == own
    assert tuple(row[f"other_{name}"] for name in names) == other
