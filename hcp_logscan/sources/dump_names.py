"""Names of flight-recorder dumps, and the ranks in them.

PyTorch's default prefixes (``nccl_trace_rank_<N>``, since about 2.7 ``comm_lib_trace_rank_<N>``,
with host names inside in some set-ups), the dump folders of Megatron-LM and Megatron-Bridge
(``…_dump_<N>``) and torch's own script (``_dump_fr_trace.rank<N>.pickle``).
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(
    r"(?:(?:[\w.-]*[_.-])?(?:nccl|rccl|hccl|xccl|comm_lib)_trace_rank_"
    r"(?:(?:[\w.-]*[_-])?(?P<trace>\d{1,7})|[\w.-]*\d)"
    r"|[\w.-]*_dump_(?:rank_?)?(?P<dump>\d{1,7})"
    r"|[\w.-]*fr_trace\w*[._-](?:rank_?)?(?P<recorder>\d{1,7}))"
    r"(?:\.(?:pickle|pkl|json))?(?:\.(?:gz|zst|xz|bz2))?",
    re.ASCII,
)


def is_dump_name(name: str) -> bool:
    """Whether a file's name is that of a dump; the folders before it do not count.

    >>> is_dump_name("fr/nccl_trace_rank_node07_40"), is_dump_name("data/rank_0.pkl")
    (True, False)
    """
    return _match_name(name) is not None


def rank_of_name(name: str) -> int | None:
    """The global rank in a dump's name: its last number, as host names carry digits too.

    None for other names, and where no separator tells the rank from the host (`…_rank_node0740`).

    >>> rank_of_name("nccl_trace_rank_node07_40"), rank_of_name("_dump_fr_trace.rank3.pickle")
    (40, 3)
    """
    match = _match_name(name)
    rank = match and (match["trace"] or match["dump"] or match["recorder"])
    return int(rank) if rank else None


def _match_name(name: str) -> re.Match[str] | None:
    base = name.rpartition("/")[2]
    return _NAME.fullmatch(base) if len(base) <= 255 else None
