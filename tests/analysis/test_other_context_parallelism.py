"""Context parallelism of other kinds: never judged as hierarchical context parallelism."""

from __future__ import annotations

import pytest

from hcp_logscan import scan

HEAD = "------------------------ arguments ------------------------\n"
END = "-------------------- end of arguments ---------------------\n"


def dump(**values):
    entries = {"context_parallel_size": "8", "seq_length": "8192", **values}
    lines = [f"  {key} {'.' * (48 - len(key))} {value}\n" for key, value in entries.items()]
    return HEAD + "".join(lines) + END


def megatron(iteration):
    return (
        f" [2026-03-01 09:14:{iteration:02}] iteration {iteration:8}/       4 | consumed samples:"
        "          160 | elapsed time per iteration (ms): 5120.4 | learning rate: 2.9E-04 | global"
        " batch size:    16 | lm loss: 7.8E+00 | loss scale: 1.0 | grad norm: 1.234 | number of"
        " skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def titan(iteration):
    return (
        f"[rank0]:[titan] 2026-03-01 09:14:{iteration:02},123 - root - INFO - step: {iteration:2} "
        " loss:  7.81234  grad_norm:  1.2340  memory: 61.20GiB(77.00%)  tps: 4,210  tflops: 431.70 "
        " mfu: 43.65%\n"
    )


def opened(number, description, ranks=4):
    return "".join(
        f"[rank{rank}]:[I301 09:13:51.400500600 ProcessGroupNCCL.cpp:2774] [PG ID {number} PG GUID"
        f" {number}({description}) Rank {rank}] ProcessGroupNCCL broadcast unique ID through store"
        " took 0.093 ms\n"
        for rank in range(ranks)
    )


MINDSPEED = {
    "before hierarchical CP was in Megatron": {},
    "beside Megatron's own options": {
        "cp_comm_type": "['p2p']",
        "hierarchical_context_parallel_sizes": "None",
    },
}


@pytest.mark.parametrize("case", MINDSPEED)
@pytest.mark.parametrize("algorithm", ["hybrid_cp_algo", "hybrid_adaptive_cp_algo"])
def test_hybrid_context_parallelism_of_mindspeed_is_another_algorithm(tmp_path, case, algorithm):
    own = {"context_parallel_algo": algorithm, "ulysses_degree_in_cp": "2"}
    text = dump(**own, **MINDSPEED[case]) + "".join(megatron(n) for n in (1, 2, 3, 4))
    (tmp_path / "train.log").write_text(text, encoding="utf-8")

    report = scan(tmp_path)

    assert report.verdict.status == "not_requested"
    assert not [f for f in report.findings if f.severity == "error" or f.rule.startswith("HCP0")]


@pytest.mark.parametrize(
    "description", ["mesh_cp", "hybrid_cp", "HYBRID_DP_CP_GROUP_4", "undefined"]
)
def test_context_parallel_meshes_of_torchtitan_are_no_hierarchy(tmp_path, description):
    text = opened(3, description) + opened(4, "mesh_fsdp") + "".join(titan(n) for n in (1, 2, 3))
    (tmp_path / "train.log").write_text(text, encoding="utf-8")

    report = scan(tmp_path)

    assert report.verdict.status == "inconclusive"
    assert report.data.run.framework == "torchtitan"
    assert not [finding for finding in report.findings if finding.severity == "error"]
