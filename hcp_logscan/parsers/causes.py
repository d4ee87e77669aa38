"""Lines that say by themselves why something ended: in the worker that ended, or beside it.

Written from PyTorch ``c10/cuda/CUDACachingAllocator.cpp`` and ``torch/csrc/distributed/c10d``
(1.9 to 2.13; torch 2.5 renamed ``torch.cuda.OutOfMemoryError``), ``torch/utils/data`` and
``torch/distributed/elastic/rendezvous`` (2.0 to 2.13), NCCL ``src/misc/shmutils.cc``, Megatron-LM
``training/checkpointing.py`` and ``core/dist_checkpointing`` (core 0.5 to main of 2026-08), glibc's
and busybox's texts for names that do not resolve, and public logs. What the kernel, the driver and
schedulers say is in `machine`.

Warnings that are tried again (``The client socket has failed to connect to [host]:29500``) and
prose about such errors do not match. Whether a line that matches ended anybody is not known here:
a training may go on behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.parsers.base import LineParser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SIZE: Final = r"[0-9]{1,9}(?:\.[0-9]{1,6})? [KMGTP]iB"
_ERROR: Final = r"^[A-Za-z0-9_.]*(?:Error|Exception|gaierror|herror): "
_SHAPE: Final = r"torch\.Size\(\[[0-9, ]*\]\)|\([0-9, ]*\)|\[[0-9, ]*\]"


def joined(rows: pl.DataFrame) -> pl.DataFrame:
    """Columns `x_a`, `x_b` of the ages of a text become `x`: the first that is there."""
    ends: dict[str, list[str]] = {}
    for name in rows.columns:
        base, _, end = name.rpartition("_")
        if len(end) == 1 and base:
            ends.setdefault(base, []).append(name)
    return rows.with_columns(pl.coalesce(names).alias(base) for base, names in ends.items())


def cause(
    kind: str,
    needles: tuple[str, ...],
    pattern: str,
    sample: str,
    *,
    fields: Mapping[str, str] | None = None,
    finish: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
) -> LineParser:
    """A parser of the table `causes`."""
    return LineParser(
        name=f"cause-{kind.replace('_', '-')}",
        table="causes",
        needles=needles,
        pattern=pattern,
        fields=fields or {},
        constants={"kind": kind},
        finish=(lambda rows: finish(joined(rows))) if finish else joined,
        sample=sample,
        drift=False,
    )


def _space(rows: pl.DataFrame) -> pl.DataFrame:
    """Which file system is full: /dev/shm, another that is named, or one that is not."""
    text = pl.col("text")
    shared = text.str.contains(r"\/dev\/shm|posix_fallocate|\bshm\b|shared memory|<\/torch_[0-9]")
    return rows.with_columns(
        pl.when(shared)
        .then(pl.lit("shared_memory"))
        .when(pl.col("detail").is_not_null() | text.str.contains(r"quota exceeded|low on resource"))
        .then(pl.lit("disk_full"))
        .otherwise(pl.lit("no_space"))
        .alias("kind")
    )


def _names(rows: pl.DataFrame) -> pl.DataFrame:
    """Names that do not resolve; libraries that try a web site again only warn of it."""
    text = pl.col("text")
    web = text.str.contains(r"HTTPS?Connection|https?://|Retrying|retry")
    return rows.filter(~web | text.str.contains(_ERROR))


PARSERS = (
    cause(
        "gpu_oom",
        ("out of memory",),
        r"(?:CUDA|HIP|XPU) out of memory\. Tried to allocate"
        r"|(?:OutOfMemoryError|RuntimeError|AcceleratorError): (?:CUDA|HIP) (?:error: )?out of"
        r" memory|Cuda failure (?:[0-9]{1,6} )?'out of memory'",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total"
        " capacity of 79.11 GiB of which 1.20 GiB is free.",
        fields={
            "detail": rf"Tried to allocate ({_SIZE})",
            "device": r"\bGPU ([0-9]{1,4})(?: has|;)",
            "stored_a": rf"total capacity of ({_SIZE})",
            "stored_b": rf"({_SIZE}) total capacity",
        },
    ),
    cause(
        "shared_memory",
        ("creating shared memory segment", "out of shared memory", "insufficient shared memory"),
        r"Error while creating shared memory segment (?P<detail>/\S+)"
        r"|workers are out of shared memory|caused by insufficient shared memory",
        "node07:411:902 [3] misc/shmutils.cc:87 NCCL WARN Error: failed to extend; Error while"
        " creating shared memory segment /dev/shm/nccl-AbCdEf (size 7340384)",
    ),
    cause(
        "network_error",
        (" Got completion from peer ", " Got async event : ", "NCCL WARN Call to ibv_"),
        # src/transport/net_ib.cc: "with error 12, opcode" to NCCL 2.18, then "with status="
        r"NCCL WARN (?:NET/IB ?: (?:\S+ )?Got completion from peer (?P<detail>\S+) with"
        r" (?:error |status=)[1-9]|NET/IB ?: (?:[^ ]+ )?Got async event : (?:port error|.*fatal)"
        r"|Call to ibv_[a-z_]+ failed with error )",
        "node1:123:456 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer"
        " 10.0.0.5<4711> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
        fields={"node": r"^([A-Za-z0-9_.-]+):[0-9]{1,10}:[0-9]{1,10} \["},
    ),
    cause(
        "disk_full",
        (
            "No space left on device",
            "Disk quota exceeded",
            "The node was low on resource: ephemeral-storage",
        ),
        r"No space left on device|Disk quota exceeded"
        r"|^\s*(?:(?:Warning|Normal) +[A-Za-z]+ +.*|(?:- )?\"?[Mm]essage\"?: .*)"
        r"The node was low on resource: ephemeral-storage\.",
        "OSError: [Errno 28] No space left on device: '/ckpt/iter_0000400/model.pt'",
        fields={
            "detail_a": r"(?:No space left on device|Disk quota exceeded): '([^']+)'",
            "detail_b": r"'(/[^']+)': (?:No space left on device|Disk quota exceeded)",
            "detail_c": r"^[a-z][a-z0-9_.-]{0,30}: (/[^:]+): (?:write error: )?(?:No space left on"
            r" device|Disk quota exceeded)",
        },
        finish=_space,
    ),
    cause(
        "rendezvous",
        (
            "RendezvousConnectionError",
            "RendezvousTimeoutError",
            "The client socket has",
            " clients joined",
        ),
        r"Rendezvous(?:Connection|Timeout)Error"
        r"|The client socket has (?:timed out after [0-9]{1,12} ?ms while trying to connect to"
        r"|failed to connect to any network address of)"
        r"|Timed out after [0-9]{1,9} seconds waiting for clients\. [0-9]{1,9}/[0-9]{1,9} clients"
        r" joined",
        "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while"
        " trying to connect to (gpu-node01, 29500).",
        fields={
            "node": r"(?:connect to|address of) \(([^,() ]+), [0-9]{1,5}\)",
            "detail": r"([0-9]{1,9}/[0-9]{1,9} clients joined)",
        },
    ),
    cause(
        "port_in_use",
        ("EADDRINUSE", "failed to listen on any local", "Address already in use"),
        r"code: -?98, name: EADDRINUSE|failed to listen on any local network address"
        r"|^[A-Za-z0-9_.]*(?:RuntimeError|DistNetworkError): .*Address already in use",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local"
        " network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message:"
        " address already in use",
        fields={"detail": r"(port: [0-9]{1,5})"},
    ),
    cause(
        "dns",
        (
            "Name or service not known",
            "Temporary failure in name resolution",
            "Name does not resolve",
            "nslookup: can't resolve",
            "server can't find",
        ),
        r"Name or service not known|Temporary failure in name resolution|Name does not resolve"
        r"|nslookup: can't resolve|server can't find",
        "nslookup: can't resolve 'job-abc-master-0': Name does not resolve",
        fields={
            "node": r"(?:can't resolve '|addresses of \(|host '|server can't find"
            r" |^ping: |[Cc]ould not resolve (?:host(?:name)?:? )?'?)([A-Za-z0-9._-]*[A-Za-z0-9])"
        },
        finish=_names,
    ),
    cause(
        "checkpoint_mismatch",
        (
            "value from checkpoint (",
            "size mismatch for ",
            "shape mismatch for loaded",
            "Size mismatch between saved",
            "Missing key in checkpoint state_dict",
        ),
        r"[A-Za-z0-9_]+ value from checkpoint \([^()]*\) is not equal to the input argument value"
        r"|size mismatch for \S+: copying a param with shape"
        r"|[Gg]lobal shape mismatch for loaded \("
        r"|Size mismatch between saved \S"
        r"|Missing key in checkpoint state_dict: \S",
        "AssertionError: tensor_model_parallel_size value from checkpoint (1) is not equal to the"
        " input argument value (2).",
        fields={
            "field_a": r"([A-Za-z0-9_]+) value from checkpoint \(",
            "stored_a": r"value from checkpoint \(([^()]*)\)",
            "given_a": r"input argument value \(([^()]*)\)",
            "field_b": r"size mismatch for (\S+): copying",
            "stored_b": rf"copying a param with shape ({_SHAPE}) from checkpoint",
            "given_b": rf"the shape in current model is ({_SHAPE})",
            "field_c": r"(?:for key|\]\)? for) ([A-Za-z0-9_.]+)[.:]? ?$",
            "stored_c": rf"(?:mismatch for loaded \(|between saved )({_SHAPE})",
            "given_c": rf"(?:and expected \(|and current: )({_SHAPE})",
            "field_d": r"Missing key in checkpoint state_dict: ([A-Za-z0-9_.]+?)\.?$",
        },
    ),
    cause(
        "state_dict",
        ("in loading state_dict for",),
        r"Error\(s\) in loading state_dict for (?P<detail>[A-Za-z0-9_.]+):",
        "RuntimeError: Error(s) in loading state_dict for GPTModel:",
    ),
    cause(
        "advice",
        ("For debugging consider passing CUDA_LAUNCH_BLOCKING",),
        r"^For debugging consider passing CUDA_LAUNCH_BLOCKING",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    ),
    cause(
        "teardown",
        ("leaked semaphore", "Killing subprocess "),
        r"resource_tracker: There appear to be [0-9]{1,9} leaked semaphore"
        r"|\] Killing subprocess [0-9]{1,18}",
        "[2031-04-07 13:09:32,871] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 412",
    ),
)
