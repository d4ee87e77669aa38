"""The labelled runs as open data: complete, and scored as docs/open-data.md says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import runs
from scripts import script

from hcp_logscan.model.finding import STATUSES

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[1]
FIXTURES = sorted(path for path in (ROOT / "tests" / "fixtures").iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def score() -> ModuleType:
    return script("benchmarks/score.py")


@pytest.mark.parametrize("run", FIXTURES, ids=lambda run: run.name)
def test_every_run_has_its_logs_its_truth_and_its_origin(run: Path) -> None:
    origin = (run / "ORIGIN.md").read_text(encoding="utf-8")
    assert origin.startswith(f"# {run.name}\n")
    assert len(origin.split()) > 15
    assert any((run / "run").rglob("*"))
    truth = json.loads((run / "expected.json").read_text(encoding="utf-8"))
    assert truth["truth"]
    assert set(truth["status"] or ()) <= {*STATUSES, "nothing"}
    assert {path.name for path in run.iterdir()} == {"run", "expected.json", "ORIGIN.md"}


def test_the_table_of_the_documents_is_current(
    score: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score.main([]) == 0
    text = (ROOT / "docs" / "open-data.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() in text


def test_every_member_of_the_truth_is_explained() -> None:
    text = (ROOT / "docs" / "open-data.md").read_text(encoding="utf-8")
    members = {name for run in FIXTURES for name in json.loads((run / "expected.json").read_text())}
    assert {name for name in members if f"`{name}`" not in text} == set()


def test_causes_are_those_of_the_tests(score: ModuleType) -> None:
    assert score.CAUSES == runs.CAUSES
    text = (ROOT / "docs" / "open-data.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in text for kind in score.CAUSES)


def make(corpus: Path, name: str, log: str, **truth: object) -> None:
    (corpus / name / "run").mkdir(parents=True)
    (corpus / name / "run" / "train.log").write_text(log)
    (corpus / name / "expected.json").write_text(json.dumps(truth))


def steps(losses: list[float], rate: float, norm: str = "1.0") -> str:
    return "".join(
        f" iteration {n}/ {len(losses)} | lm loss: {loss:.6E} | grad norm: {norm} |\n"
        f"Step Time : 1.0s GPU utilization: {rate}MODEL_TFLOP/s/GPU\n"
        for n, loss in enumerate(losses, 1)
    )


def test_tools_are_scored_by_what_they_say(
    score: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, answers = tmp_path / "corpus", tmp_path / "answers"
    answers.mkdir()
    make(corpus, "a", "HIERARCHICAL_CONTEXT_PARALLEL_GROUPS", status=["unconfirmed"], errors=[])
    make(corpus, "b", "x", status=["inactive"])
    make(corpus, "c", "x", status=None, errors=[{"kind": "nan", "rank": 4}])
    make(corpus, "d", "x", status=["active"], errors=[])
    for name, answer in {
        "a": {"verdict": {"status": "inconclusive"}},
        "b": {"verdict": {"status": "active"}},
        "c": {"findings": [{"severity": "error", "cause": "nan", "ranks": [4]}]},
    }.items():
        (answers / f"{name}.json").write_text(json.dumps(answer))

    assert score.main(["--corpus", str(corpus), "--tool", f"mine={answers}"]) == 0

    rows = {}
    for line in capsys.readouterr().out.splitlines()[4:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    assert {name: cells[-1] for name, cells in rows.items()} == {
        "verdict right": "0 of 3", "wrong": "1", "undecided": "2", "false active": "1", "false inactive": "0",
        "culprit right": "1 of 1", "wrong culprit": "0", "first failure right": "1 of 1", "wrong failure": "0",
        "bad runs flagged": "1 of 2", "sound runs flagged": "0 of 2",
    }  # fmt: skip
    assert (rows["verdict right"][1], rows["false active"][1], rows["false inactive"][1]) == (
        "1 of 3",
        "1",
        "1",
    )


def test_the_checks_against_golden_values_are_those_described(
    score: ModuleType, tmp_path: Path
) -> None:
    good = [8.0 - n / 10 for n in range(40)]
    make(tmp_path, "good", steps(good, 500), status=None)
    cases = {
        "same": (steps(good, 500), []),
        "faster": (steps(good, 530), ["performance"]),
        "slower": (steps(good, 470), ["performance"]),
        "near": (steps(good, 520), []),
        "higher": (steps([loss * 1.2 for loss in good], 500), ["convergence"]),
        "nan": (steps(good, 500, "nan"), ["nan"]),
        "other end": (steps([*good[:-1], good[-1] * 1.05], 500), ["convergence"]),
        "one outlier": (steps([good[0] * 1.3, *good[1:]], 500), []),
    }
    for name, (log, causes) in cases.items():
        make(tmp_path, name, log, status=None, golden="good")
        truth = json.loads((tmp_path / name / "expected.json").read_text())
        said = score.golden_values(tmp_path / name, truth)["findings"]
        assert [one["cause"] for one in said] == causes, name


def test_mistakes_are_said(
    score: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score.main(["--corpus", str(tmp_path)]) == 2
    assert "no run with an expected.json" in capsys.readouterr().err
    make(tmp_path, "a", "x", status=None)
    with pytest.raises(SystemExit, match="write NAME=DIR"):
        score.main(["--corpus", str(tmp_path), "--tool", "nothing"])
