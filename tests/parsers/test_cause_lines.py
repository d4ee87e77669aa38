"""Lines that say why something ended: kinds and the words that matter, and their look-alikes."""

from hcp_logscan.analysis.causes import read
from hcp_logscan.engine.run import scan_files
from hcp_logscan.sources.discover import discover

LINES = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total"
    " capacity of 79.11 GiB of which 1.20 GiB is free.": (
        "gpu_oom",
        {"detail": "2.00 GiB", "device": "3", "stored": "79.11 GiB"},
    ),
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.15 GiB"
    " total capacity; 77.00 GiB already allocated)": (
        "gpu_oom",
        {"detail": "20.00 MiB", "device": "0", "stored": "79.15 GiB"},
    ),
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 256.00 MiB.": ("gpu_oom", {}),
    "RuntimeError: CUDA error: out of memory": ("gpu_oom", {"detail": None}),
    "node01:77:902 [3] transport/p2p.cc:77 NCCL WARN Cuda failure 2 'out of memory'": (
        "gpu_oom",
        {},
    ),
    "WARNING:megatron.core.utils:CUDA out of memory. Tried to allocate 1.5 GiB": ("gpu_oom", {}),
    "slurmstepd: error: Detected 3 oom_kill events in StepId=1.0. Some of the step tasks have been"
    " OOM Killed.": ("host_oom", {}),
    "slurmstepd: error: Detected 1 oom-kill event(s) in step 1.0 cgroup.": ("host_oom", {}),
    "[88.1] Out of memory: Killed process 4711 (python3) total-vm:1kB": (
        "host_oom",
        {"code": 4711, "detail": "python3"},
    ),
    "Mar 01 10:00:00 node07 kernel: Memory cgroup out of memory: Killed process 12 (pt_main_thread)"
    " total-vm:1kB": ("host_oom", {"node": "node07", "detail": "pt_main_thread"}),
    "slurmstepd: error: Job 41 exceeded memory limit (3940736 > 2068480), being killed": (
        "host_oom",
        {},
    ),
    "srun: error: node07: task 3: Out Of Memory": ("host_oom", {"node": "node07"}),
    "      Reason:       OOMKilled": ("host_oom", {}),
    "trainer-worker-3   0/1     OOMKilled   0          5m": ("host_oom", {}),
    "(raylet, ip=10.0.0.5) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers"
    " crashed due to other reasons at node (ID: ab, IP: 10.0.0.5)": (
        "host_oom",
        {"node": "10.0.0.5"},
    ),
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.": (
        "host_oom",
        {},
    ),
    "Error while creating shared memory segment /dev/shm/nccl-AbCdEf (size 7340384)": (
        "shared_memory",
        {"detail": "/dev/shm/nccl-AbCdEf"},
    ),
    "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is possible that"
    " dataloader's workers are out of shared memory. Please try to raise your shared memory limit.": (
        "shared_memory",
        {},
    ),
    "n1:12:40 [0] transport/net_ib.cc:802 NCCL WARN NET/IB : Got completion from peer"
    " 10.0.0.5<4711> with error 12, opcode 0, len 0, vendor err 129": (
        "network_error",
        {"detail": "10.0.0.5<4711>", "node": "n1"},
    ),
    "n1:12:40 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer"
    " 10.0.0.5<4711> with status=5 opcode=0 len=0 vendor err 244 (Recv)": ("network_error", {}),
    "[2026-03-01 09:14:20] n1:12:40 [0] transport/net_ib.cc:95 NCCL WARN NET/IB : mlx5_0:1 Got async"
    " event : port error": ("network_error", {}),
    "n1:12:40 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with error Connection"
    " timed out": ("network_error", {}),
    "OSError: [Errno 28] No space left on device: '/dev/shm/torch_77_1'": ("shared_memory", {}),
    "NCCL WARN Call to posix_fallocate failed : No space left on device": ("shared_memory", {}),
    "OSError: [Errno 28] No space left on device: '/ckpt/iter_0000400/model.pt'": (
        "disk_full",
        {"detail": "/ckpt/iter_0000400/model.pt"},
    ),
    "OSError: [Errno 122] Disk quota exceeded": ("disk_full", {"detail": None}),
    "OSError: [Errno 28] No space left on device": ("no_space", {}),
    "[12.4] NVRM: Xid (PCI:0000:0b:00): 79, pid='<unknown>', GPU has fallen off the bus.": (
        "xid",
        {"code": 79, "device": "PCI:0000:0b:00"},
    ),
    "Unable to determine the device handle for GPU0000:0B:00.0: Unknown Error": (
        "gpu_lost",
        {"device": "0000:0B:00.0"},
    ),
    "RuntimeError: CUDA error: uncorrectable ECC error encountered": ("gpu_lost", {}),
    "pcieport 0000:0a:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer": (
        "pcie_corrected",
        {"device": "0000:0a:03.0"},
    ),
    "slurmstepd: error: *** STEP 1.18 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***": (
        "time_limit",
        {"node": "n1", "time": "2026-01-01 00:00:00"},
    ),
    "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***": (
        "preempted",
        {},
    ),
    "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE FAILURE, SEE"
    " SLURMCTLD LOG FOR DETAILS ***": ("node_failure", {}),
    "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO JOB REQUEUE ***": (
        "requeued",
        {},
    ),
    "srun: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***": ("cancelled", {}),
    "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 BY 1000 ***": (
        "cancelled",
        {"detail": "BY 1000"},
    ),
    "srun: error: Node failure on node17": ("node_failure", {"node": "node17"}),
    "=>> PBS: job killed: walltime 14432 exceeded limit 14400": ("time_limit", {}),
    "W0301 10:01:02.1 77 torch/distributed/elastic/agent/server/api.py:719] Received 15 death"
    " signal, shutting down workers": ("signal", {"detail": "SIGTERM"}),
    "[rank: 0] Received SIGTERM: 15": ("signal", {"detail": "SIGTERM"}),
    "submitit WARNING (2031-03-01 10:00:00,1) - Caught signal SIGUSR2 on n1: this job is timed-out.": (
        "signal",
        {"detail": "SIGUSR2"},
    ),
    "INFO: engine received SIGTERM": ("signal_seen", {}),
    "4711.batch   batch   acct   64 OUT_OF_ME+    0:125": ("host_oom", {}),
    "Handling auto-requeue signal: 10": ("signal", {"detail": "SIGUSR1"}),
    "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying"
    " to connect to (node01, 29500).": ("rendezvous", {"node": "node01"}),
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients"
    " joined.": ("rendezvous", {"detail": "1/2 clients joined"}),
    "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d"
    " store has failed. See inner exception for details.": ("rendezvous", {}),
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network"
    " address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE": (
        "port_in_use",
        {"detail": "port: 29500"},
    ),
    "nslookup: can't resolve 'job-abc-master-0': Name does not resolve": (
        "dns",
        {"node": "job-abc-master-0"},
    ),
    "socket.gaierror: [Errno -2] Name or service not known": ("dns", {}),
    "[W socket.cpp:601] [c10d] The IPv4 network addresses of (job-0.svc, 29500) cannot be retrieved"
    " (gai error: -2 - Name or service not known).": ("dns", {"node": "job-0.svc"}),
    "AssertionError: tensor_model_parallel_size value from checkpoint (1) is not equal to the input"
    " argument value (2).": (
        "checkpoint_mismatch",
        {"field": "tensor_model_parallel_size", "stored": "1", "given": "2"},
    ),
    "\tsize mismatch for embed.weight: copying a param with shape torch.Size([128, 8]) from"
    " checkpoint, the shape in current model is torch.Size([64, 8]).": (
        "checkpoint_mismatch",
        {"field": "embed.weight", "stored": "torch.Size([128, 8])", "given": "torch.Size([64, 8])"},
    ),
    "RuntimeError: Error(s) in loading state_dict for GPTModel:": (
        "state_dict",
        {"detail": "GPTModel"},
    ),
    "megatron.core.dist_checkpointing.core.CheckpointingException: Global shape mismatch for loaded"
    " (torch.Size([32, 8])) and expected ((64, 8)) tensor for key embed.weight": (
        "checkpoint_mismatch",
        {"field": "embed.weight", "stored": "torch.Size([32, 8])", "given": "(64, 8)"},
    ),
    "AssertionError: Rank 114: found NaN in local forward loss calculation. Device: 2, node: n07": (
        "nan",
        {"line_rank": 114, "device": "2", "node": "n07", "field": "loss"},
    ),
    "RuntimeError: Rank 3, node n01, device 3, iteration 7: Unexpected result nan (message='found"
    " NaN in local forward loss calculation')": (
        "nan",
        {"line_rank": 3, "node": "n01", "iteration": 7, "field": "loss"},
    ),
    "Unexpected result nan on rank 3 at iteration #3 invocation #2 (message='found NaN in local grad"
    " norm for bucket #0 in backward pass')": ("nan", {"line_rank": 3, "field": "gradient"}),
    "srun: error: *** STEP 1.0 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***": (
        "time_limit",
        {"node": None},
    ),
    "4711.0       train             acct        64    TIMEOUT      0:0 ": (
        "time_limit",
        {"field": "job", "given": "4711", "code": 4711},
    ),
    "4711_3|train|gpu|acct|64|PREEMPTED|0:0": ("preempted", {"given": "4711"}),
    "4711         train             acct        64 CANCELLED+      0:0 ": ("cancelled", {}),
    "4711|train|CANCELLED by 1000|0:15": ("cancelled", {}),
    "   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)": ("time_limit", {"given": None}),
    "   JobState=OUT_OF_MEMORY Reason=OutOfMemory Dependency=(null)": ("host_oom", {}),
    "NVRM: GPU 0000:0b:00.0: GPU has fallen off the bus.": (
        "gpu_lost",
        {"device": "0000:0b:00.0"},
    ),
    "[7.1] pcieport 0000:0a:03.0: PCIe Bus Error: severity=Correctable, type=Physical Layer": (
        "pcie_corrected",
        {},
    ),
    "[7.1] pcieport 0000:0a:03.0: AER: Corrected error received: 0000:0a:03.0": (
        "pcie_corrected",
        {"device": "0000:0a:03.0"},
    ),
    "[7.1] pcieport 0000:0a:03.0: AER: Uncorrected (Fatal) error received: id=0018": (
        "pcie_uncorrected",
        {},
    ),
    "[7.1] nvidia-nvswitch3: SXid (PCI:0000:c6:00.0): 19084, Fatal, Link 28 AN1 Heartbeat": (
        "switch_failed",
        {"code": 19084, "detail": "SXid 19084, Fatal, nvidia-nvswitch3"},
    ),
    "[7.1] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress": (
        "gpu_event",
        {"code": 12028},
    ),
    "amdgpu 0000:0b:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block": (
        "gpu_event",
        {"device": "0000:0b:00.0"},
    ),
    "|  | Warning: Detected 1 volatile double-bit ECC error(s) in GPU 3. Drain the GPU and": (
        "gpu_lost",
        {"device": "GPU 3", "detail": "double-bit ECC error"},
    ),
    "GPU had an uncontained error (XID 95) Drain the GPU": (
        "gpu_lost",
        {"detail": "uncontained error"},
    ),
    "  Warning  Evicted  3m  kubelet  The node was low on resource: memory. Threshold": (
        "host_oom",
        {},
    ),
    "  message: 'The node was low on resource: ephemeral-storage. Container trainer was using'": (
        "disk_full",
        {},
    ),
    "  Normal  Preempted  3m  default-scheduler  Preempted by pod 5a1c on node gpu-node01": (
        "preempted",
        {"node": "gpu-node01"},
    ),
    "    message: 'default-scheduler: preempting to accommodate a higher priority pod'": (
        "preempted",
        {},
    ),
    "Message:      Pod was active on the node longer than the specified deadline": (
        "time_limit",
        {},
    ),
    "RuntimeError: unable to write to file </torch_77_1>: No space left on device (28)": (
        "shared_memory",
        {},
    ),
    "cp: error writing '/ckpt/x.pt': No space left on device": (
        "disk_full",
        {"detail": "/ckpt/x.pt"},
    ),
    "tee: /logs/rank0.log: No space left on device": ("disk_full", {"detail": "/logs/rank0.log"}),
    "ping: master-0: Name or service not known": ("dns", {"node": "master-0"}),
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1": ("advice", {}),
    "/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker:"
    " There appear to be 6 leaked semaphore objects to clean up at shutdown": ("teardown", {}),
}
ALIKE = (
    "3m  Warning  Evicted    pod/other-0  The node was low on resource: memory. Threshold",
    "5m  Normal   Preempted  pod/other-0  Preempted by pod 5a1c on node gpu-node01",
    "2026-03-02 10:11:12,123 watchdog TIMEOUT 0:10 left",
    "NCCL_TIMEOUT=1800 TIMEOUT 0:0",
    "4711|train|RUNNING|0:0",
    "   JobState=RUNNING Reason=None Dependency=(null)",
    "[0.4] pcieport 0000:0a:03.0: AER: enabled with IRQ 34",
    "n1:12:40 [0] NCCL INFO NET/IB : Got completion from peer 10.0.0.5<4711> with status=0 opcode=0",
    "n1:12:40 [0] transport/net_ib.cc:95 NCCL WARN NET/IB : mlx5_0:1 Got async event : client"
    " reregistration",
    "amdgpu 0000:c3:00.0: amdgpu: no uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:c3:00.0: amdgpu: 3 correctable hardware errors detected in umc block",
    "Detected 0 volatile double-bit ECC error(s) in GPU 3.",
    "If you see CUDA out of memory, lower the micro batch size",
    "Detected 0 oom_kill events in StepId=1.0.",
    "oom_kill 0",
    "0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other",
    "(1) The process is killed by SIGKILL by OOM killer due to high memory usage.",
    "NOTE: The SHMEM allocation limit is set to the default of 64MB. This may be insufficient",
    "[W socket.cpp:752] [c10d] The client socket has failed to connect to [n1]:29500 (errno: 111)",
    "[W socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 -"
    " Address already in use).",
    "WARNING Retrying after connection error: Temporary failure in name resolution",
    "  File system was full once: fallen off the bus is no excuse",
    "| Volatile Uncorr. ECC |  0 uncorrectable errors in total",
    "Unexpected result 4.2 at loss.py line 3 (message='Spiky loss')",
    "+ sbatch --requeue-on NODE_FAIL train.sh",
    "traceback : Signal 15 (SIGTERM) received by PID 29617",
    "received signal quality is good",
    "[n1:7:0:7] Caught signal 11 (Segmentation fault: address not mapped to object)",
    "engine received 15 requests and received signal 37",
)


def test_a_cause_is_told_with_the_words_that_matter():
    for text, row in zip(LINES, read(list(LINES)), strict=True):
        kind, words = LINES[text]
        assert row is not None, text
        assert {name: row[name] for name in ("kind", *words)} == {"kind": kind, **words}, text


def test_look_alikes_are_no_causes():
    assert [row for row in read(list(ALIKE)) if row] == []


def test_causes_fold_and_keep_their_first_words(tmp_path):
    corrected = next(text for text in LINES if "severity=Corrected" in text)
    missing = next(text for text in LINES if text.startswith("\tsize mismatch"))
    texts = [corrected] * 40 + [missing, missing.replace("embed", "head")]
    (tmp_path / "dmesg.log").write_text("\n".join(texts) + "\n")

    rows = scan_files(discover(tmp_path))["causes"].select("kind", "field", "count", "last")

    assert rows.rows() == [
        ("pcie_corrected", None, 40, 40),
        ("checkpoint_mismatch", "embed.weight", 2, 42),
    ]
