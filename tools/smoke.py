"""Does an installed hcp-logscan work? `python tools/smoke.py PYTHON` tries that environment.

Every output format, every way of packing, two worker processes, the examples of all rules, a line
format of a user, and the same from Python. Raises where something is not as it must be. It needs
nothing but the standard library, and runs from any directory.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

FORMAT: Final = """\
format: smoke
table: iterations
needle: "smoke step "
pattern: 'smoke step (?P<iteration>[0-9]+) loss (?P<lm_loss>[0-9.]+)'
refuses: [smoke timer]
samples:
  - line: smoke step 3 loss 2.5
    gives: {iteration: 3, lm_loss: 2.5}
"""
FROM_PYTHON: Final = """\
from hcp_logscan import demo_run, scan
with demo_run() as run_dir:
    report = scan(run_dir, baseline=run_dir)
assert report.verdict.status == "inactive", report
assert report.tables["iterations"].height == 8
assert "<iframe" in report._repr_html_()
"""
WHERE: Final = "from hcp_logscan.model.bundled import bundled_dir as d; print(d())"
DEMO: Final = "import hcp_logscan; print(hcp_logscan.__path__[0] + '/demo')"


def check(python: str, folder: Path) -> None:
    """Run everything in an empty folder."""

    def said(*words: str, code: int = 0) -> str:
        done = subprocess.run(  # noqa: S603 - the interpreter that was named
            [python, *words],
            cwd=folder,
            env={name: text for name, text in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != code:
            raise RuntimeError(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def program(*words: str, code: int = 0) -> str:
        return said("-m", "hcp_logscan", *words, code=code)

    (log,) = Path(said("-c", DEMO).strip()).glob("*.out")
    text = log.read_bytes()
    names = [f"report.{suffix}" for suffix in ("html", "md", "json", "sarif", "xml", "parquet")]
    program("--demo", "-f", "none", *(word for name in names for word in ("-o", name)))
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        raise RuntimeError(f"not written: {missing}")

    (folder / "plain").mkdir()
    (folder / "plain" / log.name).write_bytes(text)
    (folder / "packed.log.gz").write_bytes(gzip.compress(text))
    with tarfile.open(folder / "packed.tar.gz", "w:gz") as tar:
        tar.add(log, log.name)
    with zipfile.ZipFile(folder / "packed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(log, log.name)
    for run in ("plain", "packed.log.gz", "packed.tar.gz", "packed.zip"):
        found = json.loads(program(run, "-f", "json", code=1))
        if [one["rule"] for one in found["findings"]] != ["HCP002", "HCP101", "HCP103"]:
            raise RuntimeError(f"{run}: {found['findings']}")
    if program("plain", "-f", "json", "--workers", "2", code=1) != program(
        "plain", "-f", "json", code=1
    ):
        raise RuntimeError("two workers give another report")

    rules = said("-c", WHERE).strip()
    program("--check-rules", rules)
    for words in (["--help"], ["--version"], ["--list-rules"], ["--explain", "HCP002"]):
        program(*words)
    (folder / "smoke.yaml").write_text(FORMAT, encoding="utf-8")
    (folder / "own.log").write_text("smoke step 1 loss 3.5\nsmoke step 2 loss 3.25\n")
    found = json.loads(program("own.log", "--formats", "smoke.yaml", "-f", "json"))
    if found["series"]["lm_loss"]["last"] != 3.25:
        raise RuntimeError(f"a line format of a user: {found['series']}")
    said("-c", FROM_PYTHON)


def main(python: str) -> None:
    """Check, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        check(str(Path(python).absolute()), Path(folder))
    sys.stdout.write(f"{python}: works\n")


if __name__ == "__main__":
    main(sys.argv[1])
