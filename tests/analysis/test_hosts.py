"""Names of hosts that the structure of a run gives away."""

from pathlib import Path

from hcp_logscan.analysis.run import examine

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_prefixes_paths_and_columns_name_hosts(tmp_path):
    elastic = (FIXTURES / "exception-rank1" / "run" / "console.log").read_text()
    nccl = (FIXTURES / "runtime-nccl-two-levels" / "run" / "train.log").read_text()
    logs = {
        "n17/rank0.log": elastic,
        "gpu3/rank1.log": nccl,
        "7/rank2.log": "".join(f"[pod/pretrain-worker-1/main] {x}\n" for x in elastic.splitlines()),
    }
    for name, text in logs.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text)

    found = examine(tmp_path).hosts

    assert set(found) == {"n17", "node0", "node07", "pretrain-worker-1"}
    assert list(found) == sorted(found)
