"""Synthetic rank logs for measurements: make_corpus.py OUT_DIR MEGABYTES [plain|heavy].

64 files, the same bytes for the same arguments. *plain*: about 2 % of the lines hold a needle, and
only the last rank prints iterations. *heavy*: about 30 %, and every rank prints iterations. Noise is
what real logs are full of: NCCL channel lines, data loader chatter, progress bars with carriage
returns, invalid UTF-8, lines of 10 kB.
"""

from __future__ import annotations

import random
import sys
from multiprocessing import Pool
from pathlib import Path

WORLD = 64
GROUPS = ("DATA_PARALLEL_GROUP", "TENSOR_MODEL_PARALLEL_GROUP", "CONTEXT_PARALLEL_GROUP")
LEVELS = ("HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0", "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1")


def noise(rank: int, draw: random.Random) -> list[bytes]:
    """A pool of uninteresting lines of one rank."""
    nccl = f"node{rank // 8}:{1000 + rank}:{3000 + rank} [{rank % 8}] NCCL INFO"
    lines: list[str] = []
    for _ in range(2_500):
        a, b, c = draw.randint(0, 63), draw.randint(0, 31), draw.randint(0, 10**6)
        lines += [
            f"{nccl} Channel {b:02d}/0 : {rank}[{rank % 8}] -> {a}[{a % 8}] via P2P/CUMEM/read",
            f"{nccl} Ring {b:02d} : {a} -> {rank} -> {(rank + 1) % 64}",
            f"{nccl} Connected all rings, use ring PXN 0 GDR 1",
            "  warnings.warn(  # warn only once",
            f"INFO:megatron.core.datasets.indexed_dataset:Extract the sequence lengths {c}",
            f"> building indices for blend: sample {c} took {draw.random():.6f} s ...",
            f"[default{rank % 8}]:DEBUG worker {b}: fetched shard s3://bucket/shard-{c:06d}.tar",
            "",
        ]
    pool = [line.encode() + b"\n" for line in lines]
    for _ in range(200):
        bar = (f"Loading: {k * 5:3d}%|{'#' * k:<20}| {k}/20" for k in range(draw.randint(1, 20)))
        pool.append("\r".join(bar).encode() + b"\n")
    pool += [b"payload \xff\xfe\x80 " + bytes(draw.choices(range(128, 256), k=40)) + b"\n"] * 40
    pool += [b"tensor([" + b", ".join(b"%.4f" % draw.random() for _ in range(1250)) + b"])\n"] * 6
    return pool


def iteration(number: int, draw: random.Random) -> bytes:
    """One Megatron iteration line."""
    return (
        f" [2026-03-12 {10 + number // 3600 % 14:02d}:{number // 60 % 60:02d}:{number % 60:02d}.123456]"
        f" iteration {number:8d}/ 5000000 | consumed samples: {number * 32:12d} | elapsed time per"
        f" iteration (ms): {draw.uniform(900, 2000):.1f} | throughput per GPU (TFLOP/s/GPU):"
        f" {draw.uniform(300, 500):.1f} | learning rate: {draw.uniform(1e-6, 1e-4):.6E} | global batch"
        f" size:    32 | lm loss: {draw.uniform(1, 12):.6E} | loss scale: 1.0 | grad norm:"
        f" {draw.uniform(0.1, 5):.3f} | number of skipped iterations:   0 | number of nan iterations:"
        "   0 |\n"
    ).encode()


def process_group(rank: int, draw: random.Random) -> bytes:
    """One c10d line, half of them with a description."""
    guid = draw.randint(0, 99)
    head = f"[rank{rank}]:[I312 10:11:12.{draw.randint(0, 999_999_999):09d} ProcessGroupNCCL.cpp:"
    if draw.random() < 0.5:
        return (
            f"{head}979] [PG ID 3 PG GUID {guid} Rank 0] ProcessGroupNCCL initialization options:"
            f" size: 8, global rank: {rank}, TIMEOUT(ms): 600000, USE_HIGH_PRIORITY_STREAM: 0,"
            f" SPLIT_FROM: 0, SPLIT_COLOR: 0, PG Name: {guid}\n"
        ).encode()
    group = draw.choice(GROUPS + LEVELS)
    return (
        f"{head}2774] [PG ID 3 PG GUID {guid}({group}) Rank 0] ProcessGroupNCCL broadcast unique ID"
        f" through store took 0.{draw.randint(0, 999):03d} ms\n"
    ).encode()


def communicator(rank: int, draw: random.Random) -> bytes:
    """One NCCL communicator line."""
    size = 2 ** draw.randint(0, 6)
    return (
        f"node{rank // 8}:{1000 + rank}:{3000 + rank} [{rank % 8}] NCCL INFO ncclCommInitRankConfig"
        f" comm 0x{draw.getrandbits(44):x} rank {rank % size} nranks {size} cudaDev {rank % 8} nvmlDev"
        f" {rank % 8} busId {rank % 8 + 1:x}000 commId 0x{draw.getrandbits(60):x} - Init COMPLETE\n"
    ).encode()


def write(job: tuple[Path, int, str, int]) -> None:
    """Write the log of one rank."""
    path, size, kind, rank = job
    draw = random.Random(f"{kind}-{size}-{rank}")
    pool, share = noise(rank, draw), 0.02 if kind == "plain" else 0.30
    steps = rank == WORLD - 1 or kind == "heavy"
    written = number = 0
    with path.open("wb", buffering=1 << 20) as file:
        while written < size:
            if draw.random() >= share:
                line = draw.choice(pool)
            elif steps and draw.random() < (0.9 if kind == "plain" else 0.35):
                number += 1
                line = iteration(number, draw)
            elif draw.random() < 0.55:
                line = process_group(rank, draw)
            else:
                line = communicator(rank, draw)
            file.write(line)
            written += len(line)


def main() -> None:
    """Write the corpus."""
    folder, megabytes = Path(sys.argv[1]), float(sys.argv[2])
    kind = sys.argv[3] if len(sys.argv) > 3 else "plain"
    folder.mkdir(parents=True, exist_ok=True)
    size = int(megabytes * 1e6 / WORLD)
    jobs = [(folder / f"rank_{rank:03d}.log", size, kind, rank) for rank in range(WORLD)]
    with Pool(2) as pool:
        pool.map(write, jobs, chunksize=1)


if __name__ == "__main__":
    main()
