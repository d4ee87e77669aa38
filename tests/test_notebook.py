"""docs/triage.ipynb runs from top to bottom, and its outputs say what its prose claims."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "triage.ipynb"
SOURCE = json.loads(NOTEBOOK.read_text(encoding="utf-8"))

# A process of its own: the warnings and event loops of Jupyter's machinery stay out of pytest's.
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, startup_timeout=120, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


CLAIMS = {
    "report = scan(run_dir)": [r"<Report demo: HCP inactive \(high confidence\);"],
    "verdict = report.verdict": [
        r"^inactive - high confidence\n",
        "hierarchical_context_parallel_",
    ],
    "for piece in verdict.evidence": [
        r"\[A\] config says inactive, slurm-4711\.out:\d+\n +.*cp_comm_type: 'a2a\+p2p'"
    ],
    "for finding in report.findings": [
        "^error HCP002 hcp-sizes-missing\n",
        r"seen at slurm-4711\.out:\d+",
        "fix: Set hierarchical_context_parallel_sizes",
    ],
    "steady = ": [r"\b19\d\d\.\d", "<table"],
    "impossible = ": ["7 of 7 iterations are above the peak", "<table"],
    "repaired = scan": ["<Report repaired: HCP unconfirmed", "its absence proves nothing"],
    "repaired.verdict.next_steps": ["TORCH_CPP_LOG_LEVEL=INFO"],
    "ways = {}": [r"TORCH_CPP_LOG_LEVEL=INFO.*\n    shows .*hierarchical_groups_seen"],
    "repaired.data.judgements": [r"HCP\d{3} lacks \w+"],
    "report.to_markdown()": ["HCP inactive", r"^\d+ kB of HTML", "<iframe srcdoc="],
}
"""Words of a code cell -> what its output must hold, because the prose around it says so."""


def executed(folder):
    """Source and output (text, then HTML) of each code cell, run from top to bottom."""
    home = folder / "home"
    names = ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXECUTE, str(NOTEBOOK), "out.ipynb"],
        cwd=folder,
        env={
            **os.environ,
            # No kernel, configuration or history of whoever runs the tests.
            **{name: str(home / name.lower()) for name in names},
            "JUPYTER_PLATFORM_DIRS": "1",
            "PYTHONPATH": os.pathsep.join(paths),
        },
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    cells = json.loads((folder / "out.ipynb").read_text(encoding="utf-8"))["cells"]
    return [("".join(one["source"]), shown(one)) for one in cells if one["cell_type"] == "code"]


def shown(cell):
    data = [output.get("data", output) for output in cell["outputs"]]
    kinds = ("text", "text/plain", "text/html")
    return "\n".join("".join(one.get(kind, "")) for one in data for kind in kinds)


def test_outputs_are_stripped_in_the_repository():
    for cell in SOURCE["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    assert SOURCE["metadata"]["kernelspec"]["name"] == "python3"


# One test, because it costs seconds to run the cells: no two workers shall do it.
def test_every_cell_runs_and_shows_what_the_prose_claims(tmp_path):
    cells = executed(tmp_path)

    assert len(cells) == len(CLAIMS)
    for (words, claims), (source, output) in zip(CLAIMS.items(), cells, strict=True):
        assert words in source
        for claim in claims:
            assert re.search(claim, output, re.MULTILINE), f"{claim}\n{output[:2000]}"
    frame = cells[-1][1]
    assert "sandbox></iframe>" in frame
    assert len(frame) < 500_000
