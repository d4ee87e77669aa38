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
@pytest.mark.parametrize(
    "algorithm", ["ulysses_cp_algo", "megatron_cp_algo", "adaptive_cp_algo", "hybrid_cp_algo"]
)
def test_context_parallelism_of_mindspeed_is_named_and_is_another_one(tmp_path, case, algorithm):
    own = {"context_parallel_algo": algorithm, "ulysses_degree_in_cp": "2"}
    text = dump(**own, **MINDSPEED[case]) + "".join(megatron(n) for n in (1, 2, 3, 4))
    (tmp_path / "train.log").write_text(text, encoding="utf-8")

    report = scan(tmp_path)

    assert (report.verdict.status, report.verdict.confidence) == ("not_requested", "high")
    assert f"another one: MindSpeed {algorithm}" in report.verdict.reasons[0]
    assert report.data.run.framework == "mindspeed"
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


MESH = "[rank0]:[titan] 2026-03-01 09:14:00,101 - root - INFO - Building "
MESHES = {
    "4-D device mesh with ['pp', 'dp_shard', 'cp', 'tp'], [2, 2, 4, 2]": (32, 2, 4, 2, 2),
    "1-D device mesh with ['dp'], [8]": (8, 8, None, 1, 1),
    "4-D device mesh with ['dp_replicate', 'dp_shard_mod_ep', 'dp_shard_in_ep', 'cp'], [2, 1, 4, 2]": (
        16,
        8,
        2,
        1,
        1,
    ),
    "device mesh with parallelism: pp=1, dp_replicate=2, dp_shard=4, cp=2, tp=1, ep=8, etp=1": (
        16,
        8,
        2,
        1,
        1,
    ),
}


@pytest.mark.parametrize("mesh", MESHES)
def test_a_device_mesh_of_torchtitan_states_its_sizes(tmp_path, mesh):
    (tmp_path / "train.log").write_text(f"{MESH}{mesh}\n" + titan(1) + titan(2), encoding="utf-8")

    report = scan(tmp_path)

    names = ("world_size", "dp_size", "cp_size", "tp_size", "pp_size")
    assert tuple(report.data.attempts[0].facts[name] for name in names) == MESHES[mesh]
    size = MESHES[mesh][2]
    assert report.verdict.status == ("inconclusive" if size is None else "not_requested")
    if size is not None:
        assert "another one: torch device mesh" in report.verdict.reasons[0]
    assert report.findings == ()


@pytest.mark.parametrize(
    "mesh",
    [
        "2-D device mesh with ['fsdp', 'cp'], [2, 4]",
        "2-D device mesh with ['dp_shard', 'cp'], [2]",
        "2-D device mesh with ['dp_shard', 'cp'], [2, 0]",
        "2-D device mesh with ['dp_shard', 'c",
        "device mesh with parallelism: pp=1, dp_replicate=1, dp_sh",
        "device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=2, cp=1",
        "device mesh with a cp of 4",
    ],
)
def test_a_mesh_that_is_cut_or_not_known_states_nothing(tmp_path, mesh):
    (tmp_path / "train.log").write_text(f"{MESH}{mesh}\n" + titan(1) + titan(2), encoding="utf-8")

    report = scan(tmp_path)

    assert report.data.attempts[0].facts["world_size"] is None
    assert report.verdict.status == "inconclusive"


def test_a_mesh_beside_megatrons_own_configuration_is_another_models(tmp_path):
    mesh = "2-D device mesh with ['dp_shard', 'cp'], [2, 2]"
    text = dump(cp_comm_type="['p2p']", hierarchical_context_parallel_sizes="None") + MESH + mesh
    (tmp_path / "train.log").write_text(f"{text}\n{megatron(1)}", encoding="utf-8")

    report = scan(tmp_path)

    assert report.data.attempts[0].facts["cp_size"] == 8
    assert report.verdict.reasons[0].startswith("cp_comm_type is p2p")
    assert {finding.severity for finding in report.findings} <= {"note"}


@pytest.mark.parametrize("sizes", ["[4, 2]", "[8, 1]", "[2, 2]", "None"])
def test_what_asks_for_hierarchy_by_other_context_parallelism_cannot_be_judged(tmp_path, sizes):
    asked = {
        "context_parallel_algo": "hybrid_cp_algo",
        "cp_comm_type": "['a2a+p2p']",
        "hierarchical_context_parallel_sizes": sizes,
    }
    (tmp_path / "train.log").write_text(dump(**asked) + megatron(1), encoding="utf-8")

    report = scan(tmp_path)

    assert report.verdict.status == "inconclusive"
    assert not [finding for finding in report.findings if finding.severity == "error"]


def test_an_algorithm_of_mindspeed_on_the_command_line_is_named(tmp_path):
    command = "+ torchrun pretrain_gpt.py --context-parallel-size 4 --context-parallel-algo"
    (tmp_path / "train.log").write_text(f"{command} megatron_cp_algo\n{megatron(1)}")

    report = scan(tmp_path)

    assert "MindSpeed megatron_cp_algo" in report.verdict.reasons[0]
    assert report.data.run.framework == "mindspeed"
