"""The fuzzer of benchmarks/fuzz.py: a part of what `make fuzz` runs, and that it would notice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scripts import script

if TYPE_CHECKING:
    from types import ModuleType

PATH = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
SEED = 20_260_301
MANY = {
    "parsers": 60,
    "stream": 60,
    "archive": 60,
    "config": 60,
    "rule": 60,
    "format": 60,
    "run": 3,
}
"""Executions of targets that take milliseconds; of the others a few hundred."""


@pytest.fixture(scope="module")
def fuzzer() -> ModuleType:
    return script("benchmarks/fuzz.py")


TARGETS = ("parsers", "line", "dump", "stream", "archive", "headers", "config", "rule", "format",
           "settings", "name", "run")  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_input_breaks_no_promise(fuzzer: ModuleType, target: str) -> None:
    wanted = MANY.get(target, 300)
    done = fuzzer.fuzz(wanted, SEED, (target,))
    assert done.why == ""
    assert done.executions == done.by_target[target] == wanted


def test_every_target_of_the_fuzzer_is_run_here(fuzzer: ModuleType) -> None:
    assert set(TARGETS) == set(fuzzer.TARGETS)
    assert all(target.inputs() and all(target.inputs()) for target in fuzzer.TARGETS.values())


def test_sound_input_is_understood(fuzzer: ModuleType, tmp_path: Path) -> None:
    """Damage is done to inputs that reach the inside of their target."""
    for name, target in fuzzer.TARGETS.items():
        for data in target.inputs()[:3]:
            assert fuzzer.attempt(name, data, tmp_path) == ""
    assert all(
        fuzzer.parse_dump(dump[1:], "a.json" if dump[:1] == b"j" else "a")
        for dump in fuzzer.dumps()
    )
    assert fuzzer.format_files()


def test_an_execution_is_the_same_wherever_it_is_run(fuzzer: ModuleType) -> None:
    every = tuple(fuzzer.TARGETS)
    cases = [fuzzer.case(SEED, number, every) for number in range(40)]
    assert cases == [fuzzer.case(SEED, number, every) for number in range(40)]
    assert cases != [fuzzer.case(SEED + 1, number, every) for number in range(40)]
    assert len({name for name, _ in cases}) > 3


def test_the_first_failure_stops_the_run_and_its_input_is_saved_and_fails_again(
    fuzzer: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(data: bytes, _folder: Path) -> None:
        if b"\x00" in data:
            raise ValueError("planted")

    planted = fuzzer.Target(broken, fuzzer.lines, 1)
    monkeypatch.setitem(fuzzer.TARGETS, "line", planted)
    code = fuzzer.main(
        ["--seed", "3", "--target", "line", "--save", str(tmp_path), "--executions", "9000"]
    )
    out = capsys.readouterr().out
    assert code == 1
    assert out.startswith("seed 3, 9,000 executions\n")
    assert " a second: line " in out
    assert "planted" in out
    (saved,) = tmp_path.iterdir()
    assert b"\x00" in saved.read_bytes()
    assert f"--replay {saved}" in out
    assert fuzzer.main(["--replay", str(saved)]) == 1
    number = saved.stem.rpartition("-")[2]
    again = ["--seed", "3", "--target", "line", "--first", number, "--executions", "1"]
    assert fuzzer.main([*again, "--save", str(tmp_path)]) == 1
    saved.write_bytes(b"sound")
    assert fuzzer.main(["--replay", str(saved)]) == 0
    assert "keeps its promises" in capsys.readouterr().out


def test_what_does_not_end_is_a_failure(
    fuzzer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(_data: bytes, _folder: Path) -> None:
        while True:
            pass

    monkeypatch.setattr(fuzzer, "LIMIT_S", 0.2)
    monkeypatch.setitem(fuzzer.TARGETS, "name", fuzzer.Target(endless, fuzzer.names, 1))
    assert "no end within 0.2 seconds" in fuzzer.attempt("name", b"x", tmp_path)


def test_a_clean_run_says_its_rate_and_is_code_0(
    fuzzer: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fuzzer.main(["--executions", "20", "--target", "name"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("seed ")
    assert "20 executions in " in out
