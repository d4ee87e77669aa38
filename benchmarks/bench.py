"""Measure the tool against ripgrep and a line loop, and write RESULTS.md.

bench.py [--plain MB] [--heavy MB] [--gz MB] [--small MB] [--large MB]: corpora are made in
benchmarks/corpus where they are missing. Each figure is a whole process, page cache warm, modules
compiled: median of three runs. Memory is the highest sum of what the process and its workers hold,
sampled every 20 ms, where pages they share count once.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CORPORA = HERE / "corpus"
LOOP_MB = 20
"""The loop is read a part of the corpus only: its rate does not depend on the size."""

FEW = 27
"""Needles of the shorter list that ripgrep is given, too."""

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

LOOP = """
import re, sys
from pathlib import Path
needles = [n.encode() for n in open(sys.argv[1], encoding="utf-8").read().splitlines()]
pattern, kept, left = re.compile(b"|".join(map(re.escape, needles))), 0, int(sys.argv[3])
for path in sorted(Path(sys.argv[2]).iterdir()):
    with path.open("rb") as file:
        for line in file:
            left -= len(line)
            if left < 0:
                sys.exit(0)
            if pattern.search(line):
                kept += 1
"""


@dataclass(frozen=True)
class Row:
    """One measured command."""

    name: str
    seconds: float
    rate: float
    "MB of text per second."

    peak: float
    "MB of all its processes."


def held(pid: int) -> int:
    """Bytes a process and its children hold, shared pages by halves and so on; 0 once it is gone."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        said = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    own = next((int(line.split()[1]) for line in said.splitlines() if line.startswith("Pss:")), 0)
    return own * 1024 + sum(held(int(child)) for child in children)


def timed(name: str, command: list[str], megabytes: float, runs: int = 3) -> Row:
    """Median wall time of a command over some text, and the peak memory of its processes."""
    seconds, peak = [], 0
    for _ in range(runs):
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
        while process.poll() is None:
            peak = max(peak, held(process.pid))
            time.sleep(0.02)
        seconds.append(time.perf_counter() - start)
        if process.returncode not in {0, 1}:
            assert process.stderr is not None
            sys.exit(f"{command}: {process.stderr.read().decode()}")
    wall = statistics.median(seconds)
    row = Row(name, wall, megabytes / wall, peak / 1e6)
    print(f"{name}: {wall:.2f} s, {row.rate:,.0f} MB/s, {row.peak:.0f} MB")
    return row


def ripgrep() -> str | None:
    """The rg command, from the PATH or the environment of this interpreter."""
    beside = Path(sys.executable).parent / "rg"
    return str(beside) if beside.exists() else shutil.which("rg")


def corpus(kind: str, megabytes: int) -> Path:
    """A corpus of this kind and size, made if it is not there; its pages are warm."""
    folder = CORPORA / f"{kind}{megabytes}"
    if not folder.exists():
        make = [sys.executable, str(HERE / "make_corpus.py"), str(folder), str(megabytes), kind]
        subprocess.run(make, check=True)
    return warm(folder)


def warm(folder: Path) -> Path:
    """Read every file once."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
    return folder


def compressed(folder: Path) -> Path:
    """The same files as .gz."""
    packed = folder.with_name(folder.name + "-gz")
    if not packed.exists():
        packed.mkdir()
        for path in folder.iterdir():
            (packed / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 6))
    return warm(packed)


def size(folder: Path) -> float:
    """MB of all files."""
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def one_file(folder: Path) -> Path:
    """The same text as one file."""
    joined = folder.with_name(folder.name + "-one")
    if not joined.exists():
        joined.mkdir()
        with (joined / "all.log").open("wb") as out:
            for path in sorted(folder.iterdir()):
                with path.open("rb") as part:
                    shutil.copyfileobj(part, out)
                out.write(b"\n")
    return warm(joined)


def table(title: str, rows: list[Row]) -> list[str]:
    """One section of the results; the first row is ours."""
    return [
        f"## {title}",
        "",
        "| | s | MB/s | our speed over it | peak memory, MB |",
        "|---|---|---|---|---|",
        *(
            f"| {row.name} | {row.seconds:.2f} | {row.rate:,.0f} | {rows[0].rate / row.rate:.2f}"
            f" | {row.peak:.0f} |"
            for row in rows
        ),
        "",
    ]


def main() -> None:
    """Run every contender and write the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    sizes = (("plain", 1000), ("heavy", 400), ("gz", 200), ("small", 500), ("large", 4000))
    for kind, megabytes in sizes:
        options.add_argument(f"--{kind}", type=int, default=megabytes, metavar="MB")
    chosen = options.parse_args()
    package = HERE.parent / "hcp_logscan"
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(package)], check=True)
    with tempfile.TemporaryDirectory() as scratch:
        needles, few = Path(scratch) / "needles", Path(scratch) / "few"
        out = Path(scratch) / "report.json"
        tool = [sys.executable, "-m", "hcp_logscan"]
        listed = subprocess.run([*tool, "--list-needles"], check=True, capture_output=True).stdout
        lines = listed.splitlines(keepends=True)
        needles.write_bytes(listed)
        few.write_bytes(b"".join(lines[:: max(len(lines) // FEW, 1)][:FEW]))

        def ours(name: str, folder: Path, text: float, *more: str) -> Row:
            command = [*tool, str(folder), "-f", "none", "-o", str(out), "--fail-on", "never"]
            return timed(name, [*command, *more], text)

        def greps(folder: Path, text: float) -> list[Row]:
            if (rg := ripgrep()) is None:
                return []
            found = []
            for which, threads in ((needles, 1), (needles, 2), (few, 2)):
                flags = ["-j", str(threads), "-a", "-F", "--no-messages", "-c", "-f", str(which)]
                said = "our needles" if which == needles else f"{FEW} of them"
                name = f"ripgrep -j{threads} -F with {said}, lines counted"
                found.append(timed(name, [rg, *flags, str(folder)], text))
            return found

        def whole(folder: Path) -> list[Row]:
            text = size(folder)
            return [
                ours("hcp-logscan, cold process to written JSON", folder, text),
                ours("the same with `--workers 1`", folder, text, "--workers", "1"),
                *greps(folder, text),
            ]

        plain = corpus("plain", chosen.plain)
        rows = whole(plain)
        loop = [sys.executable, "-c", LOOP, str(needles), str(plain), str(LOOP_MB * 10**6)]
        rows.append(timed(f"`re.search` line by line, first {LOOP_MB} MB", loop, LOOP_MB))
        heavy = whole(corpus("heavy", chosen.heavy))
        packed = corpus("plain", chosen.gz)
        text = size(packed)
        zipped = [
            ours("the .gz files", compressed(packed), text),
            ours("the plain files", packed, text),
        ]
        small, large = corpus("plain", chosen.small), corpus("plain", chosen.large)
        grown = [
            ours(f"{chosen.small} MB in 64 files", small, size(small)),
            ours(f"{chosen.large} MB in 64 files", large, size(large)),
            ours(f"{chosen.large} MB in one file", one_file(large), size(large)),
        ]
        page = str(Path(scratch) / "report.html")
        starts = [
            timed("`hcp-logscan --version`", [*tool, "--version"], 0),
            timed('`python -c "import polars"`', [sys.executable, "-c", "import polars"], 0),
            timed("the demo run to HTML", [*tool, "--demo", "-f", "none", "-o", page], 0),
        ]
    written = [
        "# Results",
        "",
        f"`make bench`: {len(lines)} needles, {os.cpu_count()} CPUs ({platform.machine()}), Python"
        f" {platform.python_version()}. Wall time of whole processes, page cache warm, modules"
        " compiled, median of 3. Corpora have 64 files. *Plain*: 2 % of the lines hold a needle;"
        " *heavy*: 30 %. Memory counts pages that processes share once.",
        "",
        *table(f"Plain, {chosen.plain} MB", rows),
        *table(f"Heavy, {chosen.heavy} MB", heavy),
        *table(f"Compressed, {chosen.gz} MB of text", zipped),
        *table("Memory and size, plain", grown),
        "## Start",
        "",
        "| | s |",
        "|---|---|",
        *(f"| {row.name} | {row.seconds:.2f} |" for row in starts),
        "",
    ]
    (HERE / "RESULTS.md").write_text("\n".join(written), encoding="utf-8")


if __name__ == "__main__":
    main()
