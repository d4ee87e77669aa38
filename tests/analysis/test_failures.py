"""Roles of failures: who can be the first cause, and who cannot."""

import pytest

from hcp_logscan import scan
from hcp_logscan.analysis.run import examine

WORLD = (
    "using world size: 4, data-parallel size: 4, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)


def trace(rank, error):
    p = f"[default{rank}]:[rank{rank}]: "
    return (
        f"{p}Traceback (most recent call last):\n"
        f'{p}  File "/opt/app/train.py", line 7, in train\n{p}    step()\n{p}{error}\n'
    )


def failed(rank, code, pid=100):
    return (
        f"E1129 16:00:28.026000 77 torch/distributed/elastic/multiprocessing/api.py:1002] failed"
        f" (exitcode: {code}) local_rank: {rank} (pid: {pid}) of binary: /usr/bin/python3\n"
    )


def stopped(pid):
    return (
        "W1129 16:00:27.433000 77 torch/distributed/elastic/multiprocessing/api.py:1028] Sending"
        f" process {pid} closing signal SIGTERM\n"
    )


def table(root, rows):
    def entry(number, rank, code, pid):
        return (
            f"[{number}]:\n  time      : 2026-11-29_16:00:28\n  host      : node0\n"
            f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {pid})\n"
            "  error_file: <N/A>\n  traceback : Signal received\n"
        )

    text = (
        "Failures:\n" + "".join(entry(i, *row) for i, row in enumerate(rows, 1)) + "-" * 60 + "\n"
    )
    text += "Root Cause (first observed failure):\n" + entry(0, *root)
    return text + "=" * 60 + "\n"


@pytest.fixture
def roles(tmp_path):
    def run(text):
        console = "[default0]:" + WORLD + text
        (tmp_path / "console.log").write_text(console)
        analysis = examine(tmp_path)
        rows = analysis.facts["failures"].select("kind", "rank", "role").rows()
        return sorted(rows, key=repr), analysis.attempts[-1].facts

    return run


GLOO = (
    "RuntimeError: [/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:38281"
)


def test_echo_of_another_ranks_end_is_cascade(roles):
    found, facts = roles(trace(2, GLOO) + trace(1, "ValueError: bad batch") + trace(3, GLOO))

    assert found == [
        ("exception", 1, "root"),
        ("exception", 2, "cascade"),
        ("exception", 3, "cascade"),
    ]
    assert facts["culprit_ranks"] == [1]
    assert facts["exception_rank"] == 1


def test_silent_rank_is_the_suspect_where_all_others_timed_out(roles):
    text = "".join(trace(r, "RuntimeError: Timed out waiting 60000ms for recv") for r in (0, 1, 3))

    _, facts = roles(text + table((0, 1, 10), [(1, 1, 11), (3, 1, 13)]))

    assert facts["culprit_ranks"] == [2]
    assert facts["elastic_root_role"] == "victim"


def watchdog(rank):
    return (
        f"[rank{rank}]:[E301 10:01:02.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught"
        " collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1,"
        " NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    )


@pytest.mark.parametrize(("present", "suspects"), [(range(8), [5]), ((*range(5), 6, 7), [])])
def test_silence_in_a_file_of_its_own_counts_where_nobody_says_how_many_ranks_there_are(
    tmp_path, present, suspects
):
    for rank in present:
        said = "ready\n" + (watchdog(rank) if rank != 5 else "")
        (tmp_path / f"rank_{rank}.log").write_text(said)

    facts = examine(tmp_path).attempts[-1].facts

    assert facts["culprit_ranks"] == suspects


def test_one_exception_in_files_of_several_processes_is_no_copy(tmp_path):
    text = trace(0, "ImportError: libcudnn.so.9: cannot open").replace("[default0]:[rank0]: ", "")
    for local_rank in range(4):
        folder = tmp_path / "none_x" / "attempt_0" / str(local_rank)
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text(text)

    (finding,) = scan(tmp_path).findings

    assert finding.rule == "HCP508"
    assert finding.message.startswith("4 rank(s) ended with an uncaught exception, first local")


def test_nobody_is_accused_where_too_many_are_silent(roles):
    _, facts = roles(trace(0, GLOO) + trace(1, GLOO))

    assert facts["culprit_ranks"] == []


def test_stopped_process_is_teardown_even_if_killed_in_the_end(roles):
    text = stopped(11) + failed(2, -9, 12) + table((2, -9, 12), [(1, -9, 11)])

    found, facts = roles(text)

    assert ("exit", 2, "root") in found
    assert ("exit", 1, "teardown") in found
    assert facts["elastic_root_role"] == "root"


def test_abort_behind_a_watchdog_time_out_is_cascade(roles):
    watchdog = (
        "[default1]:[rank1]:[E301 10:01:02.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught"
        " collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,"
        " Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    )
    found, _ = roles(watchdog + failed(1, -6) + table((1, -6, 100), []))
    alone, _ = roles(failed(1, -6) + table((1, -6, 100), []))

    assert ("exit", 1, "cascade") in found
    assert ("exit", 1, "root") in alone


def test_collective_error_is_an_echo_where_a_rank_was_killed(roles):
    error = "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error"
    with_kill, _ = roles(trace(0, error) + table((2, -9, 12), []))
    alone, _ = roles(trace(0, error))

    assert ("exception", 0, "cascade") in with_kill
    assert ("exception", 0, "root") in alone


def test_traceback_after_which_its_rank_goes_on_killed_nobody(roles):
    memory = "[default1]:[Rank 1] (after 5 iterations) memory (MB) | allocated: 0.00\n"

    found, facts = roles(trace(1, "OSError: cannot reach the metrics server") + memory)

    assert found == []
    assert facts["failures"] == 0


def test_restart_gives_each_failure_its_attempt(roles):
    memory = "[default{r}]:[Rank {r}] (after 5 iterations) memory (MB) | allocated: 0.00\n"
    lines = "".join(memory.format(r=r) for r in range(4))
    text = lines + failed(1, -9, 12) + "[default0]:" + WORLD + failed(3, 1, 22)
    text += table((3, 1, 22), [])

    found, facts = roles(text)

    assert facts["attempt"] == 1
    assert ("exit", 1, "root") in found
    assert facts["elastic_root_rank"] == 3


def test_kill_with_a_kernel_line_is_explained(tmp_path):
    text = WORLD + failed(1, -9) + "Out of memory: Killed process 100 (python3) total-vm:1kB\n"
    (tmp_path / "console.log").write_text(text)

    rows = examine(tmp_path).facts["failures"]

    kinds = rows.select("kind", "role", "cause", "kill_explained").rows()
    assert sorted(kinds) == [
        ("cause", "root", "host_oom", None),
        ("exit", "confirmation", None, True),
    ]
