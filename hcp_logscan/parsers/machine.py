"""What the kernel, the GPU driver, the scheduler and the container runtime say of a failure.

Written from Linux ``mm/oom_kill.c`` and ``drivers/pci/pcie/aer.c`` ("Corrected" and "Uncorrected",
in newer kernels "Correctable" and "Uncorrectable"), NVIDIA's driver ("NVRM: Xid",
docs.nvidia.com/deploy/xid-errors; "SXid" of its NVSwitches), ``nvidia-smi`` and DCGM
(``dcgm_errors.h``), AMD's ``amdgpu_ras.c``, Slurm ``slurmstepd``, ``slurmd``, ``srun``, ``sacct``
and ``scontrol`` (20.02 to 25.05; older ones name no node), PBS Pro and LSF, Kubernetes' pod status
and the events of ``kubectl describe``, Ray's memory monitor, the signal handlers of torchelastic
and Lightning, and public logs.

Listings of ``sacct`` may show other jobs, too: their rows carry the job's id (`given`). What amdgpu
counts of memory errors is information alone: reading the counters has made up millions.

Of a time in a line only what the line says is kept: zones differ between such logs.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from hcp_logscan.parsers.causes import cause

_HOUR: Final = (
    r"([A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}):[0-9]{2}:"
)
_SIGNALS: Final = {"15": "SIGTERM", "10": "SIGUSR1", "12": "SIGUSR2", "2": "SIGINT", "1": "SIGHUP"}
_NAME: Final = r"(?:Signals\.)?(SIG(?:TERM|USR1|USR2|INT|HUP))\b"
_NUMBER: Final = r"((?:15|10|12|2|1)\b)"


_STEP: Final = r"(?:_[0-9]{1,9})?(?:\.[a-z0-9]{1,18})?"
_STATE: Final = r"(?P<state_{}>TIMEOUT|PREEMPTED|CANCELLED)(?: by [0-9]{{1,10}})?"
_CODE: Final = r"[0-9]{1,3}:[0-9]{1,3}"
_POD: Final = r"^\s*(?:(?:Warning|Normal) +[A-Za-z]+ +.*|(?:- )?\"?[Mm]essage\"?: .*)"
"""Of the pod that is described, or its own status: listings of events begin with their age."""


def _slurm(rows: pl.DataFrame) -> pl.DataFrame:
    why = pl.col("why").fill_null("").str.to_uppercase()
    return rows.with_columns(
        pl.col("time").str.replace("T", " "),
        pl.when(why.str.contains("TIME LIMIT"))
        .then(pl.lit("time_limit"))
        .when(why.str.contains("PREEMPTION"))
        .then(pl.lit("preempted"))
        .when(why.str.contains("NODE FAILURE"))
        .then(pl.lit("node_failure"))
        .when(why.str.contains("REQUEUE"))
        .then(pl.lit("requeued"))
        .otherwise(pl.lit("cancelled"))
        .alias("kind"),
        pl.col("why").alias("detail"),
    )


def _lost(rows: pl.DataFrame) -> pl.DataFrame:
    """An Xid line may say the same in words: it is read as an Xid."""
    return rows.filter(~pl.col("text").str.contains("NVRM: Xid (", literal=True))


def _pcie(rows: pl.DataFrame) -> pl.DataFrame:
    corrected = pl.col("severity").str.starts_with("Correct")
    return rows.with_columns(
        pl.when(corrected)
        .then(pl.lit("pcie_corrected"))
        .otherwise(pl.lit("pcie_uncorrected"))
        .alias("kind"),
    )


def _switch(rows: pl.DataFrame) -> pl.DataFrame:
    """A fatal error of an NVSwitch ends what uses its links; others are noted."""
    fatal = pl.col("severity") == "Fatal"
    return rows.with_columns(
        pl.when(fatal).then(pl.lit("switch_failed")).otherwise(pl.lit("gpu_event")).alias("kind"),
        pl.format("SXid {}, {}, {}", "code", "severity", "switch").alias("detail"),
    )


def _state(rows: pl.DataFrame) -> pl.DataFrame:
    """How a job ended, by the state that Slurm's accounting shows."""
    state = pl.col("state")
    kinds = {"TIMEOUT": "time_limit", "PREEMPTED": "preempted", "OUT_OF_MEMORY": "host_oom"}
    return rows.with_columns(
        state.replace_strict(kinds, default="cancelled").alias("kind"),
        state.alias("detail"),
        pl.when(pl.col("given").is_not_null()).then(pl.lit("job")).alias("field"),
        pl.col("given").alias("code"),
    )


def _signal(rows: pl.DataFrame) -> pl.DataFrame:
    """A signal that a launcher or a handler announces; others only say that one came."""
    announced = pl.col("text").str.contains(
        r"(?i)death signal|requeue|received sigterm: 15|preempt|timed|limit|saving|checkpoint"
    )
    return rows.with_columns(
        pl.col("said").replace(_SIGNALS).alias("detail"),
        pl.when(announced).then(pl.lit("signal")).otherwise(pl.lit("signal_seen")).alias("kind"),
    ).filter(pl.col("detail").is_in(list(_SIGNALS.values())))


PARSERS = (
    cause(
        "host_oom",
        (
            "oom-kill",
            "oom_kill event",
            "Out of memory: Kill",
            "cgroup out of memory",
            "exceeded memory limit",
            ": Out Of Memory",
            "OOMKilled",
            "OUT_OF_ME",
            "killed due to memory pressure",
            "The node was low on resource: memory",
            "node running low on memory",
        ),
        r"Detected [1-9][0-9]{0,9} oom[-_]kill event|\binvoked oom-killer\b|oom-kill:constraint="
        r"|[Oo]ut of memory: Kill(?:ed)? process [0-9]|exceeded memory limit \([0-9]+ > [0-9]+\)"
        r"|srun: error: \S+: tasks? [0-9,\[\]-]+: Out Of Memory"
        r"|(?:[Rr]eason\"?: {0,40}\"?|^\S+ .*[ \t])OOMKilled(?:\"|[ \t,]|$)"
        r"|^[0-9]{1,18}\S* .*\bOUT_OF_ME(?:MORY|\+) "
        r"|\b[1-9][0-9]{0,9} Workers \(tasks / actors\) killed due to memory pressure \(OOM\)"
        r"|was killed due to the node running low on memory"
        rf"|{_POD}The node was low on resource: memory\.",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have"
        " been OOM Killed.",
        fields={
            "detail": r"(?:[Kk]ill(?:ed)? process [0-9]{1,18},? |task=)\(?([^),]+)",
            "code": r"(?:[Kk]ill(?:ed)? process |,pid=)([0-9]{1,18})",
            "node_a": r"srun: error: (\S+): task",
            "node_b": r"\bIP: ([0-9A-Fa-f.:]{2,45})\)",
            "node_c": r"(\S+) kernel: ",
            "hour": _HOUR,
        },
    ),
    cause(
        "xid",
        ("NVRM: Xid (",),
        r"NVRM: Xid \((?P<device>[^) ]+)\): (?P<code>[0-9]{1,6})\b",
        "[1812.441902] NVRM: Xid (PCI:0000:0b:00): 79, pid='<unknown>', name=<unknown>, GPU has"
        " fallen off the bus.",
        fields={"node": r"(\S+) kernel: ", "hour": _HOUR},
    ),
    cause(
        "gpu_lost",
        (
            "fallen off the bus",
            "Unable to determine the device handle",
            " uncorrectable ",
            "volatile double-bit ECC error",
            " had an uncontained error (XID 95)",
        ),
        r"^.*(?:GPU|NVRM).*fallen off the bus"
        r"|Detected [1-9][0-9]{0,9} volatile double-bit ECC error\(s\) in GPU [0-9]"
        r"|\bGPU had an uncontained error \(XID 95\)"
        r"|Unable to determine the device handle for (?:gpu|GPU) ?[0-9A-Fa-f:.]{4,32}"
        r"|uncorrectable (?:ECC error encountered|NVLink error detected|memory errors?\b)",
        "Unable to determine the device handle for GPU0000:0B:00.0: Unknown Error",
        fields={
            "device_a": r"(?:handle for (?:gpu|GPU) ?|GPU at |NVIDIA GPU |NVRM: GPU |Xid \()"
            r"((?:PCI:)?[0-9A-Fa-f:.]{4,32}?):?(?:[ ),]|$)",
            "device_b": r"\b(GPU [0-9]{1,4}) had uncorrectable",
            "device_c": r"double-bit ECC error\(s\) in (GPU [0-9]{1,4})",
            "detail": r"(double-bit ECC error|uncontained error|fallen off the bus"
            r"|Unable to determine the device handle"
            r"|uncorrectable (?:ECC|NVLink|memory) errors?)",
            "node": r"(\S+) kernel: ",
            "hour": _HOUR,
        },
        finish=_lost,
    ),
    cause(
        "switch",
        (": SXid (PCI:",),
        r"(?P<switch>nvidia-nvswitch[0-9]{1,3}): SXid \(PCI:[0-9A-Fa-f:.]{4,32}\):"
        r" (?P<code>[0-9]{1,6}), (?P<severity>Fatal|Non-fatal)\b",
        "[812.4] nvidia-nvswitch3: SXid (PCI:0000:c6:00.0): 19084, Fatal, Link 28 AN1 Heartbeat"
        " Timeout Error (First)",
        fields={"node": r"(\S+) kernel: ", "hour": _HOUR},
        finish=_switch,
    ),
    cause(
        "gpu_event",
        ("uncorrectable hardware errors detected in ", "amdgpu: GPU reset begin!"),
        r"amdgpu (?P<device>[0-9a-f:.]{7,12}): .*(?:[1-9][0-9]{0,18} (?:new )?uncorrectable"
        r" hardware errors detected in |amdgpu: GPU reset begin!)",
        "amdgpu 0000:0b:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block",
        fields={"node": r"(\S+) kernel: ", "hour": _HOUR},
    ),
    cause(
        "aer",
        ("AER: ",),
        r"\bAER: (?:Multiple )?(?P<severity>Correct(?:ed|able)|Uncorrect(?:ed|able) \([A-Za-z-]+\))"
        r" error (?:message )?received",
        "pcieport 0000:0a:03.0: AER: Multiple Uncorrectable (Non-Fatal) error message received from"
        " 0000:0b:00.0",
        fields={"device": r"\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"},
        finish=_pcie,
    ),
    cause(
        "pcie",
        ("PCIe Bus Error: severity=",),
        r"PCIe Bus Error: severity=(?P<severity>[A-Za-z]{1,20})",
        "pcieport 0000:0a:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer",
        fields={"device": r"\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"},
        finish=_pcie,
    ),
    cause(
        "slurm",
        (" CANCELLED AT ",),
        r"\*\*\* (?:STEP|JOB) \S+ (?:ON (?P<node>\S+) )?CANCELLED AT (?P<time>[0-9T:-]{19})"
        r" ?(?P<why>[^*]*?) ?\*\*\*",
        "slurmstepd: error: *** JOB 77001 ON node01 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME"
        " LIMIT ***",
        finish=_slurm,
    ),
    cause(
        "slurm_state",
        (
            "JobState=",
            " TIMEOUT ",
            "|TIMEOUT|",
            " PREEMPTED ",
            "|PREEMPTED|",
            " CANCELLED+ ",
            " CANCELLED by ",
            "|CANCELLED",
        ),
        r"\bJobState=(?P<state_a>TIMEOUT|PREEMPTED|CANCELLED|OUT_OF_MEMORY)\b"
        rf"|^(?P<given_a>[0-9]{{1,18}}){_STEP} .* {_STATE.format('b')}\+? +{_CODE}(?: |$)"
        rf"|^(?P<given_b>[0-9]{{1,18}}){_STEP}\|(?:[^|]*\|)*{_STATE.format('c')}\|"
        rf"(?:[^|]*\|)*{_CODE}(?:\||$)",
        "4711.0       train             acct        64    TIMEOUT      0:0",
        finish=_state,
    ),
    cause(
        "time_limit",
        (
            ">> PBS: job killed: walltime",
            "TERM_RUNLIMIT: ",
            "active on the node longer than the specified deadline",
            "Job was active longer than specified deadline",
        ),
        r">> PBS: job killed: walltime|^TERM_RUNLIMIT: "
        rf"|{_POD}\bPod was active on the node longer than the specified deadline"
        rf"|{_POD}\bJob was active longer than specified deadline",
        "=>> PBS: job killed: walltime 14432 exceeded limit 14400",
    ),
    cause(
        "preempted",
        ("Preempted by ", "to accommodate a higher priority pod"),
        rf"{_POD}(?:\bPreempted by (?:a )?pod (?:\S+ )?on node (?P<node>[A-Za-z0-9.-]+)"
        r"|: preempting to accommodate a higher priority pod)",
        "  Normal  Preempted  3m  default-scheduler  Preempted by pod 5a1c2b3d on node gpu-node01",
    ),
    cause(
        "node_failure",
        ("srun: error: Node failure on", "NODE_FAIL"),
        r"srun: error: Node failure on (?P<node>\S+)|\bJobState=NODE_FAIL\b"
        r"|^[0-9]{1,18}\S* .*\bNODE_FAIL +[0-9]{1,5}:[0-9]{1,5}",
        "srun: error: Node failure on gpu-node17",
    ),
    cause(
        "step_aborted",
        ("srun: Job step aborted",),
        r"^srun: Job step aborted",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    ),
    cause(
        "signal",
        (
            "death signal, shutting down",
            "eceived SIG",
            "eceived signal",
            "aught signal ",
            "auto-requeue signal",
        ),
        r"Received (?:Signals\.)?[A-Z0-9]+ death signal, shutting down"
        rf"|\b(?:[Rr]eceived|[Cc]aught) (?:signal:? )?{_NAME}"
        rf"|\b(?:[Rr]eceived|[Cc]aught) signal:? {_NUMBER}"
        r"|[Hh]andling auto-requeue signal: ",
        "W0301 10:01:02.123000 77 torch/distributed/elastic/agent/server/api.py:719] Received"
        " Signals.SIGTERM death signal, shutting down workers",
        fields={
            "said_a": r"[Rr]eceived (?:Signals\.)?([A-Z0-9]+) death signal",
            "said_b": rf"(?:[Rr]eceived|[Cc]aught) (?:signal:? )?{_NAME}",
            "said_c": rf"(?:[Rr]eceived|[Cc]aught) signal:? {_NUMBER}",
            "said_d": r"auto-requeue signal: (?:Signals\.)?([A-Z0-9]+)",
        },
        finish=_signal,
    ),
)
