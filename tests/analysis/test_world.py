"""How many ranks a job has where its configuration does not say it."""

import pytest

from hcp_logscan import HcpLogscanError, scan

RENDEZVOUS = """\
[default] Rendezvous complete for workers. Result:
  restart_count=0
  group_world_size=1
  local_ranks=[0, 1, 2, 3]
  role_world_sizes=[8, 8, 8, 8]
  global_world_sizes=[8, 8, 8, 8]
"""
LAUNCH = """\
I0301 09:14:20.123000 4711 torch/distributed/launcher/api.py:199] Starting elastic_operator with launch configs:
  entrypoint               : train.py
  min_nodes                : {least}
  max_nodes                : {most}
  nproc_per_node           : 4
  run_id                   : none
"""
MEMBER = "Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8\n"
DEEPSPEED = "[2031-04-07 13:09:33,220] [INFO] [launch.py:161:main] dist_world_size=8\n"
COMMAND = "+ torchrun --nnodes {nodes} --nproc_per_node={each} --node_rank 0 pretrain_gpt.py\n"
CREATED = (
    "[I301 09:12:44.100200300 ProcessGroupNCCL.cpp:979] [PG ID {id} PG GUID {id} Rank 0]"
    " ProcessGroupNCCL initialization options: size: {size}, global rank: 0, TIMEOUT(ms): 600000,"
    " USE_HIGH_PRIORITY_STREAM: 0, SPLIT_FROM: 0, SPLIT_COLOR: 0, PG Name: {id}\n"
)
LINE = (
    " [2031-03-02 11:00:{i:02d}] iteration {i:8d}/     100 | consumed samples: {samples:12d} | elapsed"
    " time per iteration (ms): 1000.0 | learning rate: 1.000000E-06 | global batch size:     8 | lm"
    " loss: 2.310000E+00 | loss scale: 1.0 | grad norm: 0.741 | number of skipped iterations:   0 |"
    " number of nan iterations:   0 |\n"
)
STEPS = "".join(LINE.format(i=i, samples=8 * i) for i in range(1, 6))
MEMORY = "[Rank {rank}] (after 2 iterations) memory (MB) | allocated: 1.0 | max allocated: 2.0 | reserved: 3.0 | max reserved: 4.0\n"


def facts(tmp_path, **options):
    return scan(tmp_path, **options).data.attempts[-1].facts


def known(tmp_path, text, **options):
    (tmp_path / "train.log").write_text(text)
    found = facts(tmp_path, **options)
    return found["world_size"], found["world_size_source"]


@pytest.mark.parametrize(
    "said",
    [
        RENDEZVOUS,
        LAUNCH.format(least=2, most=2),
        MEMBER,
        DEEPSPEED,
        COMMAND.format(nodes=2, each=4),
        COMMAND.format(nodes="2:2", each=4),
    ],
)
def test_launchers_say_how_many_ranks_there_are(tmp_path, said):
    assert known(tmp_path, said + STEPS) == (8, "the launcher")


@pytest.mark.parametrize(
    "said",
    [
        LAUNCH.format(least=1, most=4),  # elastic
        COMMAND.format(nodes="1:4", each=4),
        COMMAND.format(nodes="$NODES", each=4),
        COMMAND.format(nodes=2, each="gpu"),
        "+ torchrun --nproc_per_node=4 pretrain_gpt.py\n",  # PET_NNODES may say more
        "usage: torchrun --nnodes 2 --nproc_per_node=4 train.py\n",
        "accelerate launch --nnodes 2 --nproc_per_node=4 train.py\n",
        'logger.info(f"dist_world_size={dist_world_size}")\n',
    ],
)
def test_what_leaves_the_number_open_proves_nothing(tmp_path, said):
    assert known(tmp_path, said + STEPS) == (None, None)


def test_a_launch_command_alone_is_no_run(tmp_path):
    (tmp_path / "job.log").write_text("no step of this job was logged\n")
    with pytest.raises(HcpLogscanError):
        scan(tmp_path)


def test_the_first_process_group_is_the_whole_world(tmp_path):
    text = CREATED.format(id=0, size=8) + CREATED.format(id=3, size=2) + STEPS
    assert known(tmp_path, text) == (8, "c10d's first process group")


def test_groups_of_jobs_of_two_sizes_prove_nothing(tmp_path):
    other = CREATED.format(id=0, size=4).replace("global rank: 0", "global rank: 1")
    text = CREATED.format(id=0, size=8) + other + STEPS
    assert known(tmp_path, text) == (None, None)


def test_a_later_group_proves_nothing(tmp_path):
    assert known(tmp_path, CREATED.format(id=3, size=2) + STEPS) == (None, None)


def test_sizes_that_do_not_divide_it_refute_it(tmp_path):
    command = (
        "+ srun python pretrain_gpt.py --tensor-model-parallel-size 3 --context-parallel-size 1\n"
    )
    text = command + CREATED.format(id=0, size=8) + STEPS
    assert known(tmp_path, text) == (None, None)


def ranks(folder, seen, last):
    for rank in seen:
        steps = STEPS if rank == last else ""
        (folder / f"rank_{rank}.log").write_text(MEMORY.format(rank=rank) + steps)
    return facts(folder)


def test_the_last_rank_prints_the_iterations(tmp_path):
    found = ranks(tmp_path, range(4), last=3)
    assert found["world_size"] == 4
    assert found["world_size_source"].startswith("the rank that prints the iterations")
    assert found["ranks_missing"] == []


@pytest.mark.parametrize(("seen", "last"), [([0, 1, 3], 3), (range(4), 0), ([0], 0), (range(4), 2)])
def test_ranks_with_gaps_or_beyond_it_prove_nothing(tmp_path, seen, last):
    assert ranks(tmp_path, seen, last)["world_size"] is None


def test_the_word_of_the_user_and_of_the_dump_are_named(tmp_path):
    assert known(tmp_path, STEPS, world_size=16) == (16, "the user, not from the logs")
    line = (
        "using world size: 8, data-parallel size: 8, context-parallel size: 1,"
        " tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
    )
    assert known(tmp_path, line + MEMBER.replace("/8", "/4") + STEPS) == (8, "its start-up line")
