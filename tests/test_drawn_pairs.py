"""Drawn pairs of trainer and launcher, disturbed as logs are: what is read of them stays the same.

Trainers, launchers and their pairs are those of `trainers`; a run may come in CRLF, in colours,
with bars, rotated, packed, piped, or behind the logs of an older job in the same file.
"""

from __future__ import annotations

import gzip
import random
import re
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from channels import write
from compose import Job
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from trainers import LAUNCHERS, PAIRS, RANKS, TRAINERS, UNTELLING, crashed

from hcp_logscan.analysis.run import Options, examine

if TYPE_CHECKING:
    import pytest
    from compose import Files

EXAMPLES = 24
PACKS = ("", "", "", "tar.gz", "zip", "gz", "stdin")
CASES = [(trainer, launcher) for trainer, mine in PAIRS.items() for launcher in mine]
STEP = re.compile(
    r"iteration +\d+/|step(?: time in s)?: *\d|=== Step \d|Epoch 0:|iteration: \d|- step \d|'iteration'"
    r"|Training epoch"
)
DULL = "INFO:data.loader:prefetched shard 17 of 64 with 1024 samples"
BAR = "Loading:  33%|███▎      | 1/3 [00:01<00:02]\rLoading: 100%|██████████| 3/3 [00:03<00:00]\r"


@dataclass(frozen=True)
class Drawn:
    trainer: str
    launcher: str
    noise: frozenset[str]
    pack: str
    parts: int
    salt: int


@st.composite
def runs(draw: st.DrawFn) -> Drawn:
    trainer, launcher = draw(st.sampled_from(CASES))
    return Drawn(
        trainer,
        launcher,
        draw(st.frozensets(st.sampled_from(["crlf", "ansi", "bars", "dull", "blank"]), max_size=3)),
        draw(st.sampled_from(PACKS)),
        draw(st.sampled_from([1, 1, 1, 2, 3])),
        draw(st.integers(0, 1 << 16)),
    )


def files_of(run: Drawn) -> Files:
    """The run's files with noise between what the ranks print, and in it."""
    chance = random.Random(run.salt)
    lines = crashed(TRAINERS[run.trainer].lines(Job(layout=run.launcher)))
    out = []
    for line in lines:
        text = line.text
        step = STEP.search(text) is not None
        if step and "ansi" in run.noise and chance.random() < 0.5:
            text = f"\x1b[36m{text}\x1b[0m"
        if step and "bars" in run.noise and chance.random() < 0.5:
            text = BAR + text
        if "dull" in run.noise and line.rank >= 0 and chance.random() < 0.3:
            out.append(type(line)(line.rank, DULL, line.stream, line.attempt, line.when))
        out.append(type(line)(line.rank, text, line.stream, line.attempt, line.when))
        if step and "blank" in run.noise and chance.random() < 0.3:
            out.append(type(line)(line.rank, "", line.stream, line.attempt, line.when))
    made = LAUNCHERS[run.launcher](Job(layout=run.launcher), out)
    return rotated(made, run.parts)


def rotated(files: Files, parts: int) -> Files:
    """Each log in parts, the newest of them under the log's own name; records stay whole."""
    out: Files = {}
    for name, texts in files.items():
        between = [n for n, text in enumerate(texts) if STEP.search(text) or "Traceback (" in text]
        cuts = (
            sorted({between[len(between) * part // parts] for part in range(1, parts)} - {0})
            if between
            else []
        )
        ends = [0, *cuts, len(texts)]
        for age, (start, end) in enumerate(reversed(list(pairwise(ends)))):
            out[f"{name}.{age}" if age else name] = texts[start:end]
    return out


def given_as(run: Drawn, folder: Path) -> str:
    """What is scanned: the directory, or what it was packed into."""
    files = files_of(run)
    top = write(files, folder / "run", end="\r\n" if "crlf" in run.noise else "\n")
    paths = [path for path in sorted(top.rglob("*")) if path.is_file()]
    if run.pack == "tar.gz":
        with tarfile.open(folder / "run.tar.gz", "w:gz") as archive:
            archive.add(top, "run")
        return str(folder / "run.tar.gz")
    if run.pack == "zip":
        with zipfile.ZipFile(folder / "run.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in paths:
                archive.write(path, path.relative_to(folder))
        return str(folder / "run.zip")
    if run.pack == "gz":
        for path in paths:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    if run.pack == "stdin" and len(paths) == 1:
        (folder / "piped").write_bytes(gzip.compress(paths[0].read_bytes()))
        return "-"
    return str(top)


def read_as(run: Drawn, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = TRAINERS[run.trainer]
    what = given_as(run, folder)
    options = Options(world_size=RANKS if truth.untold else None)
    if what == "-":
        with (folder / "piped").open("rb") as stdin, monkeypatch.context() as patched:
            patched.setattr("sys.stdin", stdin)
            found = examine(what, options)
    else:
        found = examine(what, options)

    facts, series = found.attempts[0].facts, found.facts["iterations"]
    assert len(found.attempts) == 1
    assert facts["framework"] == truth.framework
    assert (facts["iterations_finished"], found.attempts[0].outcome) == (3, "failed")
    assert truth.agrees(series["lm_loss"].to_list()[-1], facts["tflops_median"])
    assert found.verdict.status == truth.verdict
    raised = set(found.events["tracebacks"]["rank"].to_list())
    told = run.launcher not in UNTELLING
    assert raised == (set(range(RANKS)) if told else {None})


def test_what_is_read_does_not_depend_on_how_it_lies_there(monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        print_blob=False,
        phases=[Phase.generate],  # shrinking scans hundreds of runs more
        suppress_health_check=list(HealthCheck),
    )
    @given(runs())
    def check(run: Drawn) -> None:
        with tempfile.TemporaryDirectory() as folder:
            read_as(run, Path(folder), monkeypatch)

    check()
