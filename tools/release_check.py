"""Is this release fit to be published? `make release-check` builds it and calls this with `dist`.

The wheel is installed into fresh environments, with the highest and with the lowest versions that
pyproject.toml allows, and with every other Python that is found or named behind `dist`; in each,
tools/smoke.py uses it.
The source distribution must hold every file of the repository, and its tests must run from it.
Raises where something is not as it must be; needs git, uv, and the tools of the extra `release`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import smoke

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parents[1]
BIN: Final = Path(sys.executable).parent
EXTRAS: Final = ("dask", "remote")
OTHERS: Final = ("python3.11", "python3.12", "python3.13", "python3.14")
TESTS: Final = ("tests/test_docs.py", "tests/test_golden.py", "tests/test_site.py", "tests/cli")
"""What runs from the unpacked source distribution: tests that read files of all kinds."""


def run(*words: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Run a tool; its standard output. Raises CalledProcessError."""
    sys.stdout.write(f"$ {' '.join(map(str, words))}\n")
    sys.stdout.flush()
    return subprocess.run(  # noqa: S603 - tools of this environment
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def environment(folder: Path, python: str, wheel: Path, resolution: str) -> Path:
    """A fresh environment with the wheel and its dependencies; its interpreter."""
    wanted = folder / "requirements.txt"
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    compiled = run(
        *(BIN / "uv", "pip", "compile", "--quiet", "--no-header", "--python", python),
        *("--resolution", resolution, *extras, ROOT / "pyproject.toml"),
    )
    wanted.write_text(compiled, encoding="utf-8")
    run(BIN / "uv", "venv", "--quiet", "--no-project", "--python", python, folder / "venv")
    inside = folder / "venv" / "bin" / "python"
    run(BIN / "uv", "pip", "install", "--quiet", "--python", inside, "-r", wanted)
    run(BIN / "uv", "pip", "install", "--quiet", "--python", inside, "--no-deps", wheel)
    named = re.findall(r"^(polars|typer|hyperscan)==(\S+)", compiled, re.MULTILINE)
    sys.stdout.write(f"  {resolution}: {', '.join(map(' '.join, named))}\n")
    return inside


def try_wheel(wheel: Path, python: str, resolution: str) -> None:
    """Install the wheel and use it."""
    with tempfile.TemporaryDirectory() as scratch:
        inside = environment(Path(scratch), python, wheel, resolution)
        run(BIN / "uv", "pip", "check", "--quiet", "--python", inside)
        smoke.main(str(inside))


def pythons() -> list[str]:
    """Interpreters besides this one that can be used, by path: a shim may lead nowhere."""
    found = []
    for name in OTHERS:
        path = shutil.which(name)
        if path is None or name == f"python3.{sys.version_info.minor}":
            continue
        tried = subprocess.run([path, "-c", ""], capture_output=True, check=False)  # noqa: S603
        if tried.returncode == 0:
            found.append(path)
    return found


def try_sdist(sdist: Path) -> None:
    """Compare it with the repository, and run some tests from it."""
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(sdist) as tar:
        tar.extractall(scratch, filter="data")
        (folder,) = Path(scratch).iterdir()
        tracked = set(run("git", "ls-files", "-z").split("\0")) - {""}
        held = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        if missing := sorted(tracked - held):
            raise RuntimeError(f"{sdist.name} lacks {missing}")
        if more := sorted(held - tracked - {"PKG-INFO"}):
            raise RuntimeError(f"{sdist.name} holds what is not in the repository: {more}")
        run(
            *(BIN / "python", "-m", "pytest", "-q", *TESTS),
            cwd=folder,
            env={"PYTHONPATH": str(folder)},
        )


def main(dist: Path, more: Sequence[str]) -> None:
    """Check the one wheel and the one source distribution in `dist`, with more interpreters."""
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    sys.stdout.write(run(BIN / "twine", "check", "--strict", wheel, sdist))
    sys.stdout.write(run(BIN / "check-wheel-contents", wheel))
    try_wheel(wheel, sys.executable, "highest")
    try_wheel(wheel, sys.executable, "lowest-direct")
    for python in (*pythons(), *more):
        try_wheel(wheel, python, "highest")
    try_sdist(sdist)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
