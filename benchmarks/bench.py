"""Measure the tool against ripgrep and a line loop, and write RESULTS.md.

bench.py [--corpus DIR] [--megabytes N]: without --corpus a plain one is made in benchmarks/corpus.
Each figure is a whole process, page cache warm: median of three runs.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
LOOP = """
import re, sys
from pathlib import Path
needles = [n.encode() for n in open(sys.argv[1], encoding="utf-8").read().splitlines()]
pattern, kept = re.compile(b"|".join(map(re.escape, needles))), 0
for path in sorted(Path(sys.argv[2]).iterdir()):
    with path.open("rb") as file:
        for line in file:
            if pattern.search(line):
                kept += 1
print(kept)
"""


def timed(command: list[str], runs: int = 3) -> tuple[float, float]:
    """Median wall seconds of a command, and its peak memory in MB."""
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(command, check=False, capture_output=True)
        seconds.append(time.perf_counter() - start)
        if done.returncode not in {0, 1}:
            sys.exit(f"{command}: {done.stderr.decode()}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return statistics.median(seconds), peak


def ripgrep() -> str | None:
    """The rg command, from the PATH or the environment of this interpreter."""
    beside = Path(sys.executable).parent / "rg"
    return str(beside) if beside.exists() else shutil.which("rg")


def main() -> None:
    """Run every contender and write the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--corpus", type=Path)
    options.add_argument("--megabytes", type=int, default=200)
    chosen = options.parse_args()
    corpus = chosen.corpus or HERE / "corpus" / f"plain{chosen.megabytes}"
    if not corpus.exists():
        make = [sys.executable, str(HERE / "make_corpus.py"), str(corpus), str(chosen.megabytes)]
        subprocess.run(make, check=True)
    size = sum(path.stat().st_size for path in corpus.iterdir())
    for path in corpus.iterdir():
        path.read_bytes()  # warm the page cache

    with tempfile.TemporaryDirectory() as folder:
        needles = Path(folder) / "needles"
        tool = [sys.executable, "-m", "hcp_logscan"]
        listed = subprocess.run([*tool, "--list-needles"], check=True, capture_output=True).stdout
        needles.write_bytes(listed)
        out = str(Path(folder) / "report.json")
        contenders = {
            "hcp-logscan, cold process to written JSON": [
                *tool,
                str(corpus),
                "-f",
                "none",
                "-o",
                out,
            ],
            "`for line in file: re.search` with our needles": [
                sys.executable,
                "-c",
                LOOP,
                str(needles),
                str(corpus),
            ],
        }
        if rg := ripgrep():
            for threads in (1, 2):
                contenders[f"ripgrep -j{threads} -F with our needles, lines counted"] = [
                    *(
                        rg,
                        "-j",
                        str(threads),
                        "-a",
                        "-F",
                        "--no-messages",
                        "-c",
                        "-f",
                        str(needles),
                    ),
                    str(corpus),
                ]
        rows = []
        for name, command in contenders.items():
            wall, peak = timed(command)
            rows.append((name, wall, size / wall / 1e6, peak))
            print(f"{name}: {wall:.2f} s")
    own = rows[0][1]
    lines = [
        "# Results",
        "",
        f"`make bench`: {size / 1e6:.0f} MB in {len(list(corpus.iterdir()))} files,"
        f" {len(listed.splitlines())} needles, {os.cpu_count()} CPUs ({platform.machine()}),"
        f" Python {platform.python_version()}. Wall time of whole processes, page cache warm, median"
        " of 3.",
        "",
        "| | s | MB/s | time relative to ours |",
        "|---|---|---|---|",
        *(
            f"| {name} | {wall:.2f} | {rate:,.0f} | {wall / own:.2f} |"
            for name, wall, rate, _ in rows
        ),
        "",
        f"Peak memory of hcp-logscan: {rows[0][3]:.0f} MB.",
    ]
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
