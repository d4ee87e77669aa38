"""Causes of single lines: which of them broke the run first, and what only followed."""

import pytest

from hcp_logscan.analysis.run import examine
from hcp_logscan.analysis.xids import meaning_of

WORLD = (
    "using world size: 4, data-parallel size: 4, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)
NCCL = "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error"
LIMIT = (
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***\n"
)
CANCELLED = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-03-01T10:00:00 ***\n"
XID = "[Sun Mar  1 09:58:00 2026] NVRM: Xid (PCI:0000:0b:00): 79, pid=1, GPU has fallen off the bus.\n"


def step(iteration, minute="09:50"):
    return (
        f" [2026-03-01 {minute}:00.123456] iteration {iteration:8d}/     200 | consumed samples: 4 |"
        " elapsed time per iteration (ms): 500.0 | learning rate: 1.0E-05 | global batch size:     4"
        " | lm loss: 8.3E+00 | loss scale: 1.0 | grad norm: 2.1 | number of skipped iterations:   0"
        " | number of nan iterations:   0 |\n"
    )


def trace(rank, error, function="train", more=""):
    p = f"[rank{rank}]: "
    return (
        f"{p}Traceback (most recent call last):\n"
        f'{p}  File "/opt/app/train.py", line 7, in {function}\n{p}    step()\n{p}{error}\n'
        + "".join(f"{p}{line}\n" for line in more.splitlines())
    )


def exited(code, rank=1, pid=100):
    return (
        f"E0301 10:00:28.026000 77 torch/distributed/elastic/multiprocessing/api.py:1002] failed"
        f" (exitcode: {code}) local_rank: {rank} (pid: {pid}) of binary: /usr/bin/python3\n"
    )


@pytest.fixture
def failures(tmp_path):
    def run(text, **files):
        (tmp_path / "train.log").write_text(WORLD + text)
        for name, more in files.items():
            (tmp_path / f"{name}.log").write_text(more)
        return examine(tmp_path)

    return run


def roles(analysis):
    rows = analysis.facts["failures"].select("kind", "cause", "rank", "role").rows()
    return sorted((kind, cause or "", rank, role) for kind, cause, rank, role in rows)


def test_out_of_memory_is_its_exceptions_cause_and_is_counted_once(failures):
    error = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total"
        " capacity of 79.11 GiB of which 1.20 GiB is free."
    )
    found = failures(step(1) + trace(3, error) + trace(0, NCCL))

    assert roles(found) == [("exception", "", 0, "cascade"), ("exception", "gpu_oom", 3, "root")]
    row = found.facts["failures"].filter(role="root").row(0, named=True)
    assert (row["detail"], row["stored"], row["phase"]) == ("2.00 GiB", "79.11 GiB", "iteration 2")


def test_out_of_memory_that_was_handled_is_no_failure(failures):
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    line = "WARNING:megatron.core.utils:CUDA out of memory. Tried to allocate 2.00 GiB\n"

    assert (
        roles(failures(step(1) + trace(3, error) + line + "".join(map(step, (2, 3, 4, 5))))) == []
    )


def test_time_limit_ends_a_run_that_nothing_else_broke(failures):
    found = failures(step(1) + LIMIT + trace(1, NCCL) + exited(-9))

    assert roles(found) == [
        ("cause", "time_limit", None, "root"),
        ("exception", "", 1, "cascade"),
        ("exit", "", None, "teardown"),
    ]
    assert found.attempts[0].outcome == "time_limit"


def test_time_limit_behind_an_exception_is_how_the_run_ended(failures):
    found = failures(step(1) + trace(1, "ValueError: bad batch") + LIMIT)

    assert ("cause", "time_limit", None, "teardown") in roles(found)
    assert found.attempts[0].facts["culprit_ranks"] == [1]


@pytest.mark.parametrize("name", ["before", "behind"])
def test_cancellation_beside_a_failure_is_teardown(failures, name):
    error = trace(1, "ValueError: bad batch")
    slurm = {"slurm": CANCELLED} if name == "before" else {}
    found = failures(step(1) + error + ("" if slurm else CANCELLED), **slurm)

    assert ("cause", "cancelled", None, "teardown") in roles(found)
    assert ("exception", "", 1, "root") in roles(found)


def test_oom_killer_explains_the_kill_wherever_its_line_stands(failures):
    oom = (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have\n"
    )
    found = failures(step(1) + trace(2, NCCL) + exited(-9) + oom)

    assert roles(found) == [
        ("cause", "host_oom", None, "root"),
        ("exception", "", 2, "cascade"),
        ("exit", "", None, "confirmation"),
    ]
    assert found.attempts[0].outcome == "killed"


def test_oom_killer_of_another_program_blames_nobody(failures):
    line = "[88.1] Out of memory: Killed process 4711 (node_exporter) total-vm:1kB\n"

    assert roles(failures(step(1), dmesg=line)) == [("cause", "host_oom", None, "confirmation")]


def test_lost_gpu_outranks_the_errors_that_follow_from_it(failures):
    cuda = "torch.AcceleratorError: CUDA error: unspecified launch failure"
    found = failures(step(1) + trace(2, cuda) + trace(0, NCCL), dmesg=XID)

    assert roles(found) == [
        ("cause", "gpu_lost", None, "root"),
        ("exception", "", 0, "cascade"),
        ("exception", "", 2, "cascade"),
    ]
    assert found.facts["failures"].filter(cause="gpu_lost")["xid"].to_list() == [79]


def test_lost_gpu_does_not_explain_a_mistake_in_the_code(failures):
    found = failures(step(1) + trace(2, "ValueError: bad batch"), dmesg=XID)

    assert ("exception", "", 2, "root") in roles(found)


def test_what_the_driver_saw_before_the_run_is_not_its_failure(failures):
    old = XID.replace("Mar  1 09:58", "Feb  3 09:58")

    assert roles(failures(step(1), dmesg=old)) == []


def test_what_the_driver_saw_before_does_not_hide_what_it_sees_now(failures):
    old = XID.replace("Mar  1 09:58", "Feb  3 09:58")
    found = failures(step(1), dmesg=old * 3 + XID)

    assert found.facts["failures"].select("xid", "lines").rows() == [(79, 1)]


def test_the_line_that_names_the_victim_speaks_for_the_oom_killer(failures):
    lines = (
        "[88.1] python3 invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=0\n"
        "[88.2] Out of memory: Killed process 4711 (python3) total-vm:1kB\n"
    )
    row = failures(step(1), dmesg=lines).facts["failures"].row(0, named=True)

    assert (row["role"], row["detail"], row["lines"]) == ("root", "python3", 2)
    assert "Killed process" in row["message"]


def test_events_of_the_driver_that_stop_nothing_are_no_cause(failures):
    lines = (
        "[9.1] pcieport 0000:0a:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer\n"
        * 9
        + XID.replace("): 79", "): 31")
        + XID.replace("): 79", "): 63")
    )
    found = failures(step(1), dmesg=lines)

    assert {role for *_, role in roles(found)} == {"confirmation"}
    assert found.facts["failures"].filter(cause="pcie_corrected")["lines"].to_list() == [9]
    assert found.attempts[0].outcome == "unknown"


SEARCH = "nslookup: can't resolve 'job-abc-master-0': Name does not resolve\nwaiting for master\n"
REFUSED = (
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
    "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d"
    " store has failed. See inner exception for details.\n"
)


def test_name_that_does_not_resolve_comes_before_the_rendezvous(tmp_path):
    (tmp_path / "train.log").write_text(SEARCH * 3 + REFUSED)

    found = examine(tmp_path)

    assert roles(found) == [
        ("cause", "dns", None, "root"),
        ("cause", "rendezvous", None, "cascade"),
    ]
    assert found.facts["failures"]["phase"].to_list() == ["rendezvous"] * 2


def test_name_that_resolved_in_the_end_is_no_failure(tmp_path):
    error = trace(1, "ValueError: bad batch")
    (tmp_path / "train.log").write_text(SEARCH + WORLD + error)

    assert roles(examine(tmp_path)) == [("exception", "", 1, "root")]


def test_what_others_went_on_behind_ended_nobody(failures):
    lines = (
        "[rank1]: Unexpected result nan on rank 1 at iteration #2 invocation #1 (message='found NaN"
        " in local grad norm for bucket #0')\n"
        "\tsize mismatch for embed.weight: copying a param with shape torch.Size([8]) from"
        " checkpoint, the shape in current model is torch.Size([4]).\n"
        "OSError: [Errno 28] No space left on device: '/tmp/cache'\n"
        "INFO: engine received SIGTERM\n" + SEARCH
    )
    found = failures("".join(map(step, (1, 2, 3))), rank1=lines)

    assert {role for *_, role in roles(found)} <= {"confirmation"}
    assert found.attempts[0].outcome == "unknown"


def test_rendezvous_fails_where_another_node_broke(failures):
    found = failures(trace(1, "ImportError: no module named x"), node2=REFUSED)

    assert ("cause", "rendezvous", None, "cascade") in roles(found)


SPACE = "OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("error", "function", "cause"),
    [
        (SPACE + ": '/ckpt/iter_0000001/x.pt'", "train", "disk_full"),
        (SPACE + ": '/dev/shm/torch_7'", "train", "shared_memory"),
        (SPACE, "save_checkpoint", "disk_full"),
        (SPACE, "train", "shared_memory"),
    ],
)
def test_full_file_system_is_told_from_full_shared_memory(failures, error, function, cause):
    assert roles(failures(step(1) + trace(0, error, function))) == [("exception", cause, 0, "root")]


def test_shared_memory_outranks_the_system_error_of_nccl(failures):
    line = (
        "n1:1:2 [0] misc/shmutils.cc:87 NCCL WARN Error while creating shared memory segment"
        " /dev/shm/nccl-AbCdEf (size 7340384)\n"
    )
    found = failures(line + trace(0, NCCL))

    assert roles(found) == [
        ("cause", "shared_memory", None, "root"),
        ("exception", "", 0, "cascade"),
    ]


def test_checkpoint_that_does_not_fit_says_what(failures):
    error = "RuntimeError: Error(s) in loading state_dict for GPTModel:"
    size = (
        "\tsize mismatch for embed.weight: copying a param with shape torch.Size([128, 8]) from"
        " checkpoint, the shape in current model is torch.Size([64, 8]).\n"
    )
    found = failures(trace(0, error, "load_checkpoint", size * 2))

    assert roles(found) == [("exception", "checkpoint_mismatch", 0, "root")]
    row = found.facts["failures"].row(0, named=True)
    assert (row["field"], row["stored"]) == ("embed.weight", "torch.Size([128, 8])")
    assert row["during"] == "while loading the checkpoint"


def test_nan_is_found_on_a_rank_and_outranks_what_its_rank_raises_later(failures):
    line = (
        "[rank3]: ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at"
        " iteration #2 invocation #1 (message='found NaN in local grad norm for bucket #0')\n"
    )
    late = trace(3, "TypeError: cannot save a partial state")
    found = failures(step(1) + line + late)

    assert roles(found) == [
        ("cause", "nan", 3, "root"),
        ("exception", "", 3, "cascade"),
    ]
    assert found.facts["failures"].filter(cause="nan")["phase"].to_list() == ["iteration 2"]


def test_advice_and_clean_up_are_never_a_first_cause(failures):
    text = (
        trace(
            1,
            "torch.AcceleratorError: CUDA error: device-side assert triggered",
            more="For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        )
        + "[rank2]: For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        + "resource_tracker: There appear to be 6 leaked semaphore objects to clean up at shutdown\n"
        + "[2031-04-07 13:09:32,871] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 412\n"
    )
    assert roles(failures(step(1) + text)) == [
        ("cause", "advice", None, "advice"),
        ("cause", "teardown", None, "teardown"),
        ("exception", "", 1, "root"),
    ]


@pytest.mark.parametrize(
    ("line", "role"),
    [
        (
            "[2031-04-07 13:09:33,220] [ERROR] [launch.py:324:sigkill_handler] ['python3', 't.py',"
            " '--local_rank=3'] exits with return code = -9",
            "root",
        ),
        ("mpirun noticed that process rank 1 with PID 5 on node n1 exited on signal 9", "root"),
        ("srun: error: n1: task 3: Killed", "root"),
        (
            "srun: Job step aborted: Waiting up to 32 s.\nsrun: error: n1: task 3: Killed",
            "teardown",
        ),
        ("srun: error: n1: task 3: Exited with exit code 1", None),
    ],
)
def test_ends_of_processes_as_other_launchers_say_them(failures, line, role):
    rows = failures(step(1) + line + "\n").facts["failures"].filter(kind="exit")

    assert rows["role"].to_list() == [role]


@pytest.mark.parametrize(
    ("before", "function", "during"),
    [
        ("", "train", "at start-up"),
        ("", "initialize_model_parallel", "while creating process groups"),
        ("", "load_checkpoint", "while loading the checkpoint"),
        (" loading checkpoint from /ckpt at iteration 50\n", "x", "while loading the checkpoint"),
        ("training ...\n", "train", "in the first iteration"),
        (step(1), "zero_grad_buffer", "at the start of iteration 2"),
        (step(1), "forward_step", "in the forward pass of iteration 2"),
        (step(1) + step(11), "train", "in iteration 12 or later"),
        (step(1), "evaluate", "during evaluation"),
        (step(1), "save_checkpoint", "while saving a checkpoint"),
        (step(1) + "saving checkpoint at iteration 1 to /c\n", "x", "while saving a checkpoint"),
        (step(1) + "saving checkpoint at iteration 1 to /c\n" + step(2), "x", "in iteration 3"),
        (
            step(1) + "[after training is done] datetime: 2026-03-01 09:59:00 \n",
            "x",
            "at exit",
        ),
    ],
)
def test_phase_of_a_failure(failures, before, function, during):
    found = failures(before + trace(1, "ValueError: bad batch", function) + exited(1))

    rows = found.facts["failures"].filter(kind="exception")
    assert rows["during"].to_list() == [during]
    assert rows["where"].to_list() == ["train.py:7"]


def test_meaning_of_an_xid():
    assert meaning_of(145, "NVLINK: RLW_CTRL Nonfatal XC0")[0] == "gpu_event"
    assert meaning_of(145, "NVLINK: RLW_REMAP Fatal XC0")[0] == "gpu_lost"
    assert meaning_of(None)[0] == "gpu_event"


def test_whoever_ends_a_run_that_was_done_broke_nothing(failures):
    done = step(199) + step(200)
    stopped = failures(done + CANCELLED)
    limited = failures(done + LIMIT)
    early = failures(step(199) + CANCELLED)

    assert roles(stopped) == [("cause", "cancelled", None, "teardown")]
    assert [a.attempts[-1].outcome for a in (stopped, limited, early)] == [
        "completed",
        "time_limit",
        "terminated",
    ]
    assert stopped.stories[0].sentences == ()
    assert early.stories[0].sentences != ()


def test_a_last_checkpoint_that_is_cut_off_is_lost(failures):
    saving = "saving checkpoint at iteration      200 to /ckpt in torch_dist format\n"
    found = failures(step(200) + saving + CANCELLED)

    assert roles(found) == [("cause", "cancelled", None, "root")]
    assert "while saving a checkpoint" in found.stories[0].sentences[0]


WORKERS = (
    "------------------------ arguments ------------------------\n"
    "  num_workers ..................................... {}\n"
    "  world_size ...................................... 4\n"
    "-------------------- end of arguments ---------------------\n"
)


@pytest.mark.parametrize(
    ("workers", "ranks", "hint"),
    [
        (128, 4, "(num_workers 128, x 4 ranks on the node: 512)"),
        (2, 0, "(num_workers 2 per rank)"),
        (0, 4, ""),
    ],
)
def test_configured_workers_stand_behind_what_fills_memory(failures, workers, ranks, hint):
    said = "".join(f"[default{n}]:[Rank {n}] (after 2 iterations) memory\n" for n in range(ranks))
    lines = "".join(
        f"[default{n}]:[rank{n}]: Traceback (most recent call last):\n" for n in range(ranks)
    )
    oom = "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of them.\n"

    rows = failures(WORKERS.format(workers) + said + lines + oom).facts["failures"]

    assert rows.filter(cause="host_oom")["workers_hint"].to_list() == [hint]


def test_workers_without_a_word_of_memory_are_no_failure(failures):
    assert roles(failures(WORKERS.format(128))) == []


SACCT = "{}.0       train             acct        64    TIMEOUT      0:0 \n"


def test_accounting_of_the_judged_job_says_how_it_ended(tmp_path):
    (tmp_path / "slurm-4711.out").write_text(WORLD + step(1))
    (tmp_path / "sacct.txt").write_text(SACCT.format(4711) + SACCT.format(4600))

    assert roles(examine(tmp_path)) == [("cause", "time_limit", None, "root")]


@pytest.mark.parametrize("listed", [(4600,), (4600, 4601)])
def test_accounting_of_other_jobs_says_nothing(tmp_path, listed):
    (tmp_path / "slurm-4711.out").write_text(WORLD + step(1))
    (tmp_path / "sacct.txt").write_text("".join(SACCT.format(job) for job in listed))

    assert roles(examine(tmp_path)) == []


def test_a_listing_of_many_jobs_beside_a_run_without_a_name_says_nothing(failures):
    assert roles(failures(step(1), sacct=SACCT.format(4600) + SACCT.format(4711))) == []


POD = """apiVersion: v1
kind: Pod
metadata:
  name: trainer-0
status:
  containerStatuses:
  - lastState:
      terminated:
        exitCode: 137
        reason: OOMKilled
"""


def test_the_status_of_a_pod_is_read_as_a_log(tmp_path):
    (tmp_path / "train.log").write_text(WORLD + step(1))
    (tmp_path / "pod.yaml").write_text(POD)

    assert roles(examine(tmp_path)) == [("cause", "host_oom", None, "root")]
