"""Score tools against the truth of a corpus of labelled runs (docs/open-data.md).

score.py [--corpus DIR] [--tool NAME=DIR ...]

Each run of the corpus is `<name>/run/` with the logs and `<name>/expected.json` with the truth. Three tools are at hand:
hcp-logscan, the usual `grep`, and the checks of Megatron-Bridge's log evaluation. `--tool NAME=DIR` scores another one, from
`DIR/<name>.json` per run, which holds as much of a report as the tool has an opinion on:

    {"verdict": {"status": "inactive"}, "findings": [{"severity": "error", "cause": "nan", "ranks": [11]}]}

`cause` is one of the kinds in CAUSES; a finding of hcp-logscan has a `rule` instead. A missing file is a run without an opinion.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import lzma
import math
import re
import statistics
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from hcp_logscan import HcpLogscanError, scan  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

CORPUS: Final = ROOT / "tests" / "fixtures"
GROUPS: Final = b"HIERARCHICAL_CONTEXT_PARALLEL_GROUPS"

CAUSES: Final[Mapping[str, frozenset[str]]] = {
    "nan": frozenset({"HCP201", "HCP202", "HCP203", "HCP210"}),
    "nccl_timeout": frozenset({"HCP401"}),
    "python_exception": frozenset({"HCP508"}),
    "gpu_oom": frozenset({"HCP501"}),
    "host_oom": frozenset({"HCP502"}),
    "sigkill": frozenset({"HCP503"}),
    "shared_memory": frozenset({"HCP504"}),
    "gpu_lost": frozenset({"HCP505"}),
    "rendezvous": frozenset({"HCP506"}),
    "dns": frozenset({"HCP507"}),
    "disk_full": frozenset({"HCP509"}),
    "crash": frozenset({"HCP511"}),
    "checkpoint": frozenset({"HCP302"}),
    "no_progress": frozenset({"HCP301"}),
}
"""Kind of a first cause -> our rules that say so."""

OFF: Final = frozenset({"inactive", "mixed"})
BAD: Final = OFF | {"rejected", "degenerate"}

Answer = dict[str, Any]
"""What a tool says of a run: members `verdict` and `findings` of a report, as far as it has them."""


# Tools --------------------------------------------------------------------------------------------


def ours(run: Path, _truth: Mapping[str, Any]) -> Answer:
    """hcp-logscan, with nothing said that the logs do not say."""
    try:
        return dict(json.loads(scan(run / "run").to_json()))
    except HcpLogscanError:
        return {"verdict": {"status": "nothing"}}


def grep(run: Path, _truth: Mapping[str, Any]) -> Answer:
    """The usual advice: the group's name in the logs is proof, and its absence, too."""
    found = any(GROUPS in data for data in _texts(run / "run"))
    return {"verdict": {"status": "active" if found else "inactive"}}


_FIELDS: Final[Mapping[str, re.Pattern[str]]] = {
    "loss": re.compile(r"lm loss:\s+(\S+)"),
    "rate": re.compile(r"GPU utilization:\s+([\d.]+)"),
    "grad_norm": re.compile(r"grad norm:\s+(\S+)"),
}


def golden_values(run: Path, truth: Mapping[str, Any]) -> Answer:
    """What Megatron-Bridge's log evaluation checks, written anew from its description.

    scripts/performance/utils/evaluate.py of NVIDIA-NeMo/Megatron-Bridge at 067f987df03b8355b03192d88d70f1709fedf51a: no gradient
    norm is NaN or infinite; where golden values of the recipe exist, losses correlate by 0.95 or more with them, at most a
    tenth of the steps is off by more than 10, 5 or 2 percent (loss above 2, above 0.5, below), the final loss by no more than 3,
    at most a tenth are outliers of 3 sigma, and the mean rate behind the first tenth of the steps is within 5 percent, either
    way. Golden values are those of the run that `golden` in expected.json names. It has no opinion on context parallelism, and names
    no rank. Memory is left out: no run of the corpus prints it on both sides.
    """
    mine = _series(run / "run")
    causes = ["nan"] if any(not math.isfinite(value) for value in mine["grad_norm"]) else []
    if golden := truth.get("golden"):
        causes += _apart(mine, _series(run.parent / golden / "run"))
    return {"findings": [{"severity": "error", "cause": cause, "ranks": []} for cause in causes]}


def _series(folder: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in _FIELDS}
    for data in _texts(folder, logs_only=True):
        for line in data.decode("utf-8", "replace").splitlines():
            for name, pattern in _FIELDS.items():
                if match := pattern.search(line):
                    found[name].append(_number(match[1]))
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _apart(mine: Mapping[str, list[float]], good: Mapping[str, list[float]]) -> Iterator[str]:
    """Which checks against golden values fail."""
    pairs = list(zip(mine["loss"], good["loss"], strict=False))
    if len(pairs) > 1 and not _converges(pairs):
        yield "convergence"
    start = max(1, len(good["rate"]) // 10)
    here, there = mine["rate"][start:], good["rate"][start:]
    if here and there:
        rate = statistics.fmean(there)
        if abs(statistics.fmean(here) - rate) > 0.05 * rate:
            yield "performance"


def _converges(pairs: Sequence[tuple[float, float]]) -> bool:
    here, there = zip(*pairs, strict=True)
    off = [abs(a - b) / abs(b) > _tolerance(b) for a, b in pairs]
    gaps = [a - b for a, b in pairs]
    middle, spread = statistics.fmean(gaps), statistics.pstdev(gaps)
    far = [abs(gap - middle) > 3 * spread for gap in gaps]
    tenth, final = len(pairs) / 10, abs(here[-1] - there[-1]) / abs(there[-1])
    return (
        statistics.correlation(here, there) >= 0.95
        and sum(off) <= tenth
        and sum(far) <= tenth
        and final <= 0.03
    )


def _tolerance(loss: float) -> float:
    return 0.10 if loss > 2 else 0.05 if loss > 0.5 else 0.02


_OPENERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
}


_LOGS: Final = frozenset({".log", ".out", ".err", ".txt", ""})


def _texts(folder: Path, *, logs_only: bool = False) -> Iterator[bytes]:
    for path in sorted(folder.rglob("*")):
        suffix = path.with_suffix("").suffix if path.suffix in _OPENERS else path.suffix
        if path.is_file() and not path.is_symlink() and (suffix in _LOGS or not logs_only):
            yield _OPENERS.get(path.suffix, bytes)(path.read_bytes())


OWN: Final[Mapping[str, Callable[[Path, Mapping[str, Any]], Answer]]] = {
    "hcp-logscan": ours,
    f"grep {GROUPS.decode()}": grep,
    "golden values (Megatron-Bridge)": golden_values,
}
"""Tools at hand, by their name in the table."""


def stored(folder: Path) -> Callable[[Path, Mapping[str, Any]], Answer]:
    """A tool whose answers lie in a folder, one JSON file per run."""

    def answer(run: Path, _truth: Mapping[str, Any]) -> Answer:
        path = folder / f"{run.name}.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    return answer


# Scores -------------------------------------------------------------------------------------------

COLUMNS: Final = (
    "verdict right", "wrong", "undecided", "false active", "false inactive", "culprit right", "wrong culprit",
    "first failure right", "wrong failure", "bad runs flagged", "sound runs flagged",
)  # fmt: skip


@dataclass
class Score:
    """How one tool did on one corpus."""

    counts: Counter[str] = field(default_factory=Counter)
    of: Counter[str] = field(default_factory=Counter)
    "How many runs have a truth of this kind."

    def add(self, answer: Answer, truth: Mapping[str, Any]) -> None:
        """Count what the tool says of one run."""
        self._verdict(answer, truth)
        errors = [one for one in answer.get("findings", ()) if one.get("severity") == "error"]
        self._culprit(errors, truth)
        self._failure(errors, truth)
        flagged = bool(errors) or _status(answer) in BAD
        if is_bad(truth):
            self.of["bad runs flagged"] += 1
            self.counts["bad runs flagged"] += flagged
        elif truth.get("errors") == []:
            self.of["sound runs flagged"] += 1
            self.counts["sound runs flagged"] += flagged

    def _verdict(self, answer: Answer, truth: Mapping[str, Any]) -> None:
        allowed = truth.get("status")
        if allowed is None:
            return
        said = _status(answer)
        self.of["verdict right"] += 1
        if said in allowed:
            self.counts["verdict right"] += 1
        elif said in {None, "inconclusive", "nothing"}:
            self.counts["undecided"] += 1
        else:
            self.counts["wrong"] += 1
            self.counts["false active"] += said == "active"
            self.counts["false inactive"] += said == "inactive"

    def _culprit(self, errors: Sequence[Mapping[str, Any]], truth: Mapping[str, Any]) -> None:
        rank = culprit_of(truth)
        if rank is None:
            return
        self.of["culprit right"] += 1
        named = next((one["ranks"] for one in errors if one.get("ranks")), None)
        self.counts["culprit right"] += named == [rank]
        self.counts["wrong culprit"] += named is not None and rank not in named

    def _failure(self, errors: Sequence[Mapping[str, Any]], truth: Mapping[str, Any]) -> None:
        kind = cause_of(truth)
        if kind is None:
            return
        self.of["first failure right"] += 1
        said = {one.get("cause") or one.get("rule") for one in errors}
        right = bool(said & ({kind} | CAUSES.get(kind, frozenset())))
        self.counts["first failure right"] += right
        self.counts["wrong failure"] += bool(said) and not right


def _status(answer: Answer) -> str | None:
    said = answer.get("verdict", {}).get("status")
    return said if isinstance(said, str) else None


def culprit_of(truth: Mapping[str, Any]) -> int | None:
    """The rank that broke first, where the truth names it."""
    rank = truth.get("culprit_rank")
    if rank is None and truth.get("errors"):
        rank = truth["errors"][0].get("rank")
    return rank


def cause_of(truth: Mapping[str, Any]) -> str | None:
    """What broke first, as a kind of CAUSES, where the truth tells one."""
    if truth.get("errors"):
        return str(truth["errors"][0]["kind"])
    kinds = [kind for kind, rules in CAUSES.items() if rules & set(truth.get("fires", ()))]
    return kinds[0] if len(kinds) == 1 else None


def is_bad(truth: Mapping[str, Any]) -> bool:
    """Whether somebody should be told of the run: it broke, or HCP was not what was asked for."""
    status = truth.get("status")
    off = bool(status) and set(status) <= BAD
    return off or cause_of(truth) is not None or culprit_of(truth) is not None


def runs_in(corpus: Path) -> list[Path]:
    """The labelled runs of a corpus, in name order."""
    return sorted(path.parent for path in corpus.glob("*/expected.json"))


def scores(
    corpus: Path, tools: Mapping[str, Callable[[Path, Mapping[str, Any]], Answer]]
) -> dict[str, Score]:
    """The score of each tool."""
    made = {name: Score() for name in tools}
    for run in runs_in(corpus):
        truth = json.loads((run / "expected.json").read_text(encoding="utf-8"))
        for name, tool in tools.items():
            made[name].add(tool(run, truth), truth)
    return made


def table(made: Mapping[str, Score]) -> str:
    """The scores as a Markdown table, one column per tool."""
    lines = [
        f"| | {' | '.join(f'`{n}`' if n.startswith('grep') else n for n in made)} |",
        f"|---|{'---|' * len(made)}",
    ]
    for column in COLUMNS:
        cells = (_cell(score, column) for score in made.values())
        lines.append(f"| {column} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(score: Score, column: str) -> str:
    of = score.of[column]
    return f"{score.counts[column]} of {of}" if of else str(score.counts[column])


def _named(texts: Iterable[str]) -> dict[str, Callable[[Path, Mapping[str, Any]], Answer]]:
    found = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not (name and equals and Path(folder).is_dir()):
            raise SystemExit(f"--tool {text}: write NAME=DIR, where DIR holds a JSON file per run")
        found[name] = stored(Path(folder))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Score tools on labelled runs.")
    parser.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=DIR")
    said = parser.parse_args(arguments)
    runs = runs_in(said.corpus)
    if not runs:
        print(f"{said.corpus}: no run with an expected.json", file=sys.stderr)
        return 2
    print(f"{len(runs)} runs\n\n{table(scores(said.corpus, {**OWN, **_named(said.tool)}))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
