"""NCCL's and RCCL's communicator lines.

Written from NCCL ``src/init.cc`` 2.18.3 to 2.30.7 and public logs. ``Init COMPLETE`` is printed by
every member: since 2.21 behind a function name, since 2.29 the START line has ``[Rank r]`` in
front; a split names its parent and colour instead of a commId (2.21 and 2.22 print both); RCCL
2.20 lacks nvmlDev. Ranks that share a pipe write into each other's lines: the pattern begins at
``host:pid:tid`` and is searched, so the record behind a torn one is found. The device is a local
one; there is no global rank.

No name stands in these lines, and two members prove nothing: TE's ring opens a communicator per
pair.
"""

from __future__ import annotations

from typing import Final

from hcp_logscan.parsers.base import LineParser

_QUICK: Final = (
    r"(?P<host>[A-Za-z0-9_.-]{1,128}):(?P<pid>[0-9]{1,10}):[0-9]{1,10} \[(?P<device>[0-9]{1,3})\]"
    r" NCCL INFO [A-Za-z]+ comm (?P<comm>0x[0-9a-f]+) rank (?P<comm_rank>[0-9]+)"
    r" nranks (?P<nranks>[0-9]+) cudaDev [0-9]+ nvmlDev [0-9]+ busId [0-9a-f]+"
    r" commId (?P<comm_id>0x[0-9a-f]+) - Init COMPLETE"
)
"""A communicator that no other one was split into, since 2.21."""


PARSERS = (
    LineParser(
        name="nccl-communicator",
        table="communicator_lines",
        needles=("- Init COMPLETE",),
        pattern=r"(?P<host>[A-Za-z0-9_.-]{1,128}):(?P<pid>[0-9]{1,10}):[0-9]{1,10}"
        r" \[(?P<device>[0-9]{1,3})\]"
        r" NCCL INFO (?:\[Rank [0-9]+\] )?(?:[A-Za-z]+ )?comm (?P<comm>0x[0-9a-f]+) rank"
        r" (?P<comm_rank>[0-9]+) nranks (?P<nranks>[0-9]+) cudaDev [0-9]+(?: nvmlDev [0-9]+)? busId"
        r" [0-9a-f]+ (?:commId (?P<comm_id>0x[0-9a-f]+)"
        r"|parent (?P<parent>0x[0-9a-f]+)(?: (?:splitCount|childCount) [0-9]+)?"
        r" color (?P<color>-?[0-9]+) key -?[0-9]+(?: commId (?P<split_id>0x[0-9a-f]+))?)"
        r" ?- Init COMPLETE",
        quick=_QUICK,
        sample="node07:41022:41910 [1] NCCL INFO ncclCommInitRankConfig comm 0x55d0c1a2b340 rank 1"
        " nranks 2 cudaDev 1 nvmlDev 1 busId 3b000 commId 0x9d2f4c1188aa0b17 - Init COMPLETE",
        drift=False,
    ),
)
