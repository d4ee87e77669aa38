"""Healthy runs that say frightening things: nothing broke, and nothing is found."""

from __future__ import annotations

from hcp_logscan import scan

START = (
    "using world size: 8, data-parallel size: 8, context-parallel size: 1,"
    " hierarchical context-parallel sizes: None, tensor-model-parallel size: 1,"
    " pipeline-model-parallel size: 1\n"
    "[after dataloaders are built] datetime: 2026-03-01 09:59:00 \ntraining ...\n"
)
DONE = "[after training is done] datetime: 2026-03-01 11:00:00 \n"
BEFORE = """\
nslookup: can't resolve 'job-master-0': Name does not resolve
waiting for master
[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
ERROR: pip's dependency resolver: OSError: [Errno 28] No space left on device
"""
DURING = """\
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.20 GiB is free.
[rank3]: Traceback (most recent call last):
[rank3]:   File "/opt/app/find_batch.py", line 8, in run
[rank3]:     step(batch)
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
(Worker pid=812) {"prompt": "fix this: Traceback (most recent call last):\\n RuntimeError: CUDA error", "reward": 1.0}
response: Killed process 123 (python) oom-kill: Out of memory
user: my job says DUE TO TIME LIMIT ***, slurmstepd: error: Detected 1 oom_kill event
wandb: WARNING Tried to log: OSError: [Errno 28] No space left on device: '/root/.cache/wandb/x'
node07:411:902 [3] transport/net_ib.cc:91 NCCL WARN NET/IB : Unable to open device mlx5_3
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
"""
AFTER = """\
W0301 11:00:05.433000 29612 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 29617 closing signal SIGTERM
slurmstepd: error: *** STEP 4711.0 ON node01 CANCELLED AT 2026-03-01T11:00:09 ***
"""
DMESG = """\
[Sun Feb  1 10:00:00 2026] NVRM: Xid (PCI:0000:0b:00): 79, pid=1, GPU has fallen off the bus.
[Sun Mar  1 10:00:05 2026] pcieport 0000:0a:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer
[Sun Mar  1 10:00:10 2026] NVRM: Xid (PCI:0000:0b:00): 31, pid=1, name=python, MMU fault
[Sun Mar  1 10:00:15 2026] Out of memory: Killed process 991 (chrome) total-vm:1kB
"""


def step(number, ms=5120.4, loss=4.0, norm=1.2):
    return (
        f" [2026-03-01 10:{number // 60:02d}:{number % 60:02d}.000000] iteration {number:8d}/      60"
        f" | consumed samples: {number * 16:12d} | elapsed time per iteration (ms): {ms:.1f}"
        f" | learning rate: 3.0E-04 | global batch size:    16 | lm loss: {loss:.6E}"
        f" | loss scale: 1.0 | grad norm: {norm:.3f} | number of skipped iterations:   0"
        " | number of nan iterations:   0 |\n"
    )


def steps():
    """Slow at first and at every checkpoint, with a spike while the learning rate warms up."""
    for number in range(1, 61):
        slow = 95_000.0 if number == 1 else 41_000.0 if number % 20 == 0 else 5_120.4
        loss = 12.5 if number == 3 else 11.0 - number / 12 + (number * 7919 % 13) / 40
        yield step(number, slow, loss, 80.0 if number < 4 else 1.2 + (number * 31 % 7) / 10)


def found(report):
    return [f"{one.rule}: {one.message}" for one in report.findings]


def test_frightening_lines_of_a_run_that_went_on_are_no_failures(tmp_path):
    lines = list(steps())
    text = BEFORE + START + "".join([*lines[:30], DURING, *lines[30:]]) + DONE + AFTER
    (tmp_path / "console.log").write_text(text)
    (tmp_path / "dmesg.txt").write_text(DMESG)
    report = scan(tmp_path)

    assert found(report) == []
    assert [story.sentences for story in report.data.stories if story.sentences] == []
    assert report.data.attempts[-1].outcome == "completed"


def test_the_same_without_an_end_is_as_quiet(tmp_path):
    lines = list(steps())
    text = BEFORE + START + "".join([*lines[:30], DURING, *lines[30:]])
    (tmp_path / "console.log").write_text(text)
    (tmp_path / "dmesg.txt").write_text(DMESG)
    report = scan(tmp_path)

    assert [one for one in found(report) if not one.startswith("HCP306")] == []


def test_what_breaks_behind_the_last_planned_iteration_broke_at_exit(tmp_path):
    end = 'Traceback (most recent call last):\n  File "/a.py", line 3, in close\n    x()\nOSError: no\n'
    (tmp_path / "console.log").write_text(START + "".join(steps()) + end)
    report = scan(tmp_path)

    assert report.facts["failures"]["during"].to_list() == ["at exit"]
    (error,) = [one for one in report.findings if one.severity == "error"]
    assert (error.rule, error.iteration) == ("HCP508", None)


def test_time_outs_without_a_time_stand_behind_what_they_follow_from(tmp_path):
    wait = (
        "[rank0]:[E301 10:16:02.1 ProcessGroupNCCL.cpp:683] [Rank 0] Watchdog caught collective"
        " operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,"
        " Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    )
    (tmp_path / "rank_0.log").write_text(START + wait)
    (tmp_path / "rank_7.log").write_text("".join(list(steps())[:5]))
    raised = '  File "/a.py", line 3, in get\n    x()\nIndexError: no\n'
    (tmp_path / "rank_3.log").write_text("Traceback (most recent call last):\n" + raised)
    report = scan(tmp_path)

    roles = [entry.role for entry in report.data.timeline]
    assert roles[-2:] == ["root", "cascade"]
    times = [entry.time for entry in report.data.timeline]
    assert times == sorted(times)
