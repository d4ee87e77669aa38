"""Trainers, launchers, and which of their pairs occur: what a run must be read as, by any of them.

A `Trainer` prints a short run of eight ranks that ends in an exception on every rank, whose lines
name no rank: so the launcher alone says who printed what. Shapes are those of the projects' own
sources, as the parsers' docstrings state them; hosts, numbers and paths are invented.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from channels import deduplicated
from compose import LAUNCHER, LAYOUTS, Job, Line, lines_of, loss_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compose import Files

RANKS: Final = 8
STEPS: Final = (1, 2, 3)
TFLOPS: Final = 431.7
START: Final = dt.datetime(2026, 3, 1, 9, 14)  # noqa: DTZ001 - logs have no zone


def loss(step: int) -> float:
    return 12.5 / (1 + step) + 0.25


@dataclass(frozen=True)
class Trainer:
    """What one trainer prints, and what must be read of it."""

    framework: str
    "As the report names it."

    lines: Callable[[Job], list[Line]]
    "All that the ranks print, but for the exception at the end."

    last_loss: float | None = loss(3)
    "None where no language model's loss is printed."

    tflops: float | None = TFLOPS
    "Median; None where no rate is printed."

    loss_digits: float = 1e-4
    "Relative precision of the printed loss."

    verdict: str = "not_requested"
    step_rank: int | None = RANKS - 1
    "Rank whose step line counts; None for a driver, which is no rank."

    untold: bool = False
    "No line of it says how many ranks there are: a user has to."

    def agrees(self, loss_read: float | None, tflops_read: float | None) -> bool:
        """Whether what was read is what was printed."""
        pairs = (loss_read, self.last_loss, self.loss_digits), (tflops_read, self.tflops, 0.01)
        return all(
            read is truth if None in (read, truth) else math.isclose(read, truth, rel_tol=digits)
            for read, truth, digits in pairs
        )


UNSEEN: Final = "inconclusive"
"""No line of it says how attention was made parallel."""


def at(step: int) -> str:
    return f"{START + dt.timedelta(seconds=5 * step):%Y-%m-%d %H:%M:%S}"


def composed(stack: str) -> Callable[[Job], list[Line]]:
    """Megatron-LM and Megatron-Bridge as `compose` writes them, with flat CP."""

    def lines(job: Job) -> list[Line]:
        made = lines_of(replace(job, stack=stack, comm_type="p2p", sizes=None, iterations=3))
        return [line for line in made if "after training is done" not in line.text]

    return lines


def by(rank: int, texts: Callable[[int], str | list[str]]) -> Callable[[Job], list[Line]]:
    """What one rank prints at each step."""

    def lines(job: Job) -> list[Line]:
        del job
        said = [texts(step) for step in STEPS]
        each = [[text] if isinstance(text, str) else text for text in said]
        return [Line(rank, text) for texts in each for text in texts]

    return lines


def before(*texts: str, then: Callable[[Job], list[Line]]) -> Callable[[Job], list[Line]]:
    """What rank 0 prints when it starts, and then the steps."""
    return lambda job: [*(Line(0, text) for text in texts), *then(job)]


def dump(**values: object) -> list[str]:
    known = {"context_parallel_size": 1, "seq_length": 4096, "world_size": RANKS, **values}
    rows = (f"  {name} {'.' * (48 - len(name))} {value}" for name, value in sorted(known.items()))
    ends = "-" * 24 + " arguments " + "-" * 24, "-" * 20 + " end of arguments " + "-" * 21
    return [ends[0], *rows, ends[1]]


def megatron(
    *, dated: bool = True, speed: str = "", name: str = "lm loss", end: str = "", unit: str = "ms"
) -> Callable[[int], str]:
    """The iteration line of Megatron and its relatives."""

    def line(step: int) -> str:
        stamp = f" [{at(step)}]" if dated else ""
        time = "5120.4" if unit == "ms" else "5.1204"
        return (
            f"{stamp} iteration {step:8d}/{100:8d} | consumed samples: {16 * step:12d} | elapsed"
            f" time per iteration ({unit}): {time} |{speed} learning rate: 3.000E-04 | global batch"
            f" size:    16 | {name}: {loss(step):.6E} | loss scale: 1.0 | grad norm: 1.234 | number"
            f" of skipped iterations:   0 | number of nan iterations:   0 |{end}"
        )

    return line


OLD_START: Final = (
    "using world size: 8, data-parallel-size: 8, tensor-model-parallel size: 1,"
    " pipeline-model-parallel size: 1 "
)
NEW_START: Final = (
    "using world size: 8, data-parallel size: 1, context-parallel size: 8, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1"
)
RATE: Final = f" throughput per GPU (TFLOP/s/GPU): {TFLOPS} |"


def primus(step: int) -> str:
    """Primus' own logger before Megatron's line: rank 7 prints it."""
    head = f"[{at(step).replace('-', '')}][rank-7/8][INFO ] [--------trainer.py:2560] : "
    rate = f" compute per GPU (TFLOP/s/GPU): {TFLOPS} (avg 430.1)  | tokens/s/GPU inst/harmonic mean: 9694.6/9700.6 |"
    line = megatron(dated=False, speed=rate)(step).replace("5120.4", "5120.4/5140.2")
    return head + line


def titan(job: Job) -> list[Line]:
    """Torchtitan: every rank prints each step."""
    mesh = "Building 2-D device mesh with ['dp_shard', 'cp'], [2, 4]"
    head = "[titan] {} - root - INFO - "
    lines = [Line(r, head.format(at(0) + ",101") + mesh) for r in range(job.world_size)]
    for step in STEPS:
        text = f"step: {step:2}  loss: {loss(step):8.5f}  grad_norm:  1.2340  memory: 61.20GiB(77.00%)  tps: 4,210  tflops: {TFLOPS}  mfu: 43.65%"
        said = head.format(at(step) + ",123") + text
        lines += [Line(rank, said) for rank in range(job.world_size)]
    return lines


def nemo_rl(step: int) -> list[str]:
    return [
        f"========================= Step {step}/100 =========================",
        "📊 Training Results:",
        f"  • Loss: {loss(step):.4f}",
        f"  • Training FLOPS: 3453.60 TFLOPS ({TFLOPS:.2f} TFLOPS per rank)",
        "",
        "⏱️  Timing:",
        "  • Total step time: 12.34s",
        "    - E2E (Tokens/sec/gpu): 512.00",
        "",
    ]


def slime(step: int) -> list[str]:
    return [
        f"[{at(step)}] model.py:918 - step {step}: {{'train/loss': {loss(step):.6f}, 'train/grad_norm': 0.17, 'train/lr-pg_0': 1e-06, 'train/step': {step}}}",
        f"[{at(step)}] train_metric_utils.py:44 - perf {step}: {{'perf/actor_train_time': 9.8, 'perf/actor_train_tflops': {TFLOPS}, 'perf/step_time': 43.3}}",
    ]


TRAINERS: Final[Mapping[str, Trainer]] = {
    "megatron-3.0": Trainer(
        "megatron-lm",
        before(
            OLD_START,
            *dump(),
            then=by(7, megatron(dated=False, speed=f" TFLOPs: {TFLOPS} |")),
        ),
    ),
    "megatron-0.9": Trainer(
        "megatron-lm",
        before(OLD_START, *dump(), then=by(7, megatron(speed=RATE))),
    ),
    "megatron-main": Trainer("megatron-lm", composed("megatron-main"), loss_at(3), 380.0),
    "bridge-0.3": Trainer("megatron-bridge", composed("bridge-0.3"), loss_at(3), 380.0),
    "bridge-main": Trainer(
        "megatron-bridge", composed("bridge-main"), loss_at(3), 380.0, untold=True
    ),
    "pai": Trainer("megatron-lm", before(OLD_START, *dump(), then=by(7, megatron())), tflops=None),
    "mindspeed": Trainer(
        "mindspeed",
        before(
            NEW_START,
            *dump(context_parallel_size=8, context_parallel_algo="ulysses_cp_algo"),
            then=by(7, megatron(speed=RATE)),
        ),
    ),
    "megatron-deepspeed": Trainer(
        "megatron-deepspeed",
        before(
            OLD_START,
            *dump(),
            then=by(
                7,
                megatron(
                    end=" actual seqlen:  4096 | samples per second: 3.678 | tokens per gpu per"
                    f" second (tgs): 627.680 | TFLOPs: {TFLOPS:.2f} |"
                ),
            ),
        ),
    ),
    "primus": Trainer(
        "primus", before(NEW_START, *dump(context_parallel_size=8), then=by(7, primus))
    ),
    "nemo-1": Trainer(
        "nemo",
        by(
            0,
            lambda step: (
                f"Epoch 0:   1%|▏         | {step}/1000 [0:00:{5 * step:02}<1:20:00,  5.12s/it,"
                f" loss={loss(step):.2f}, v_num=, reduced_train_loss={loss(step):.3f},"
                f" global_step={step - 1:.1f}, consumed_samples={16 * step}.0]"
            ),
        ),
        tflops=None,
        loss_digits=1e-3,
        step_rank=0,
        verdict=UNSEEN,
        untold=True,
    ),
    "nemo-2": Trainer(
        "nemo",
        by(
            0,
            lambda step: (
                f"Training epoch 0, iteration {step - 1}/99 | lr: 8e-06 | global_batch_size: 16 |"
                f" global_step: {step - 1} | reduced_train_loss: {loss(step):.4g} |"
                f" train_step_timing in s: 5.12 | TFLOPS_per_GPU: {TFLOPS}"
                f" | consumed_samples: {16 * step}"
            ),
        ),
        loss_digits=1e-3,
        step_rank=0,
        verdict=UNSEEN,
        untold=True,
    ),
    "nemo-rl": Trainer(
        "nemo-rl", by(LAUNCHER, nemo_rl), step_rank=None, verdict=UNSEEN, untold=True
    ),
    "torchtitan": Trainer("torchtitan", titan),
    "verl": Trainer(
        "verl",
        by(
            0,
            lambda step: (
                f"step:{step} - actor/pg_loss:-0.013 - actor/grad_norm:0.41 - perf/mfu/actor:0.31 -"
                " perf/time_per_step:61.2 - perf/throughput:1184.2"
            ),
        ),
        last_loss=None,
        tflops=None,
        step_rank=0,
        verdict=UNSEEN,
        untold=True,
    ),
    "slime": Trainer("slime", by(7, slime), verdict=UNSEEN, untold=True),
    "ms-swift": Trainer(
        "ms-swift",
        by(
            7,
            lambda step: (
                f"{{'loss': {loss(step):.6f}, 'grad_norm': 1.17, 'learning_rate': 1.9e-07,"
                f" 'iteration': '{step}/100', 'elapsed_time': '{5 * step}s', 'remaining_time': '8m"
                f" 5s', 'memory(GiB)': 61.2, 'train_speed(s/it)': 5.0{step}}}"
            ),
        ),
        tflops=None,
        verdict=UNSEEN,
        untold=True,
    ),
    "nanotron": Trainer(
        "nanotron",
        by(
            0,
            lambda step: (
                f"03/01/2026 {at(step)[11:]} [INFO|DP=0|PP=0|TP=0|host01]: iteration: {step} / 100"
                " | consumed_tokens: 65.5K | time_per_iteration_ms: 5.12K | tokens_per_sec: 182K |"
                f" tokens_per_sec_per_gpu: 22.8K | global_batch_size: 65.5K | lm_loss: {loss(step):.3g}"
                f" | lr: 3e-05 | model_tflops_per_gpu: {TFLOPS:.3g} | grad_norm: 0.191 | eta: 1 day"
            ),
        ),
        loss_digits=5e-3,
        step_rank=0,
        verdict=UNSEEN,
        untold=True,
    ),
}


# How every run ends ------------------------------------------------------------------------------


def crashed(lines: list[Line]) -> list[Line]:
    """The same exception on every rank, and no rank in its lines."""
    said = (
        "Traceback (most recent call last):",
        '  File "/opt/train/pretrain.py", line 210, in <module>',
        "    main()",
        '  File "/opt/train/data.py", line 88, in next_batch',
        '    raise ValueError(f"shard {shard} has no samples")',
        "ValueError: shard 17 has no samples",
    )
    return lines + [Line(rank, text, "stderr") for rank in range(RANKS) for text in said]


# Ray ---------------------------------------------------------------------------------------------


def _console(lines: list[Line], name: str) -> Files:
    """The driver's output, with the lines of its actors behind their names."""

    def head(rank: int) -> str:
        if rank == LAUNCHER:
            return ""
        return f"\x1b[36m({name.format(rank=rank)} pid={8120 + rank}, ip=10.0.0.5)\x1b[0m "

    return {"ray-driver.log": [head(line.rank) + line.text for line in lines]}


def ray_ranked(job: Job, lines: list[Line]) -> Files:
    """Actors that say their rank in their name, as NeMo-RL's do."""
    return _console(lines, "MegatronPolicyWorker[rank={rank}]")


def ray_bare(job: Job, lines: list[Line]) -> Files:
    """Actors that do not, as those of verl and slime."""
    return _console(lines, "WorkerDict")


def ray_deduplicated(job: Job, lines: list[Line]) -> Files:
    """Ray's default: what several workers say alike is shown once."""
    return _console(deduplicated(lines), "WorkerDict")


def ray_workers(job: Job, lines: list[Line]) -> Files:
    """A session's own files: two per worker, none of which says a rank."""
    logs = "session_2026-03-01_09-12-00_123456_4242/logs"
    files: Files = {
        f"{logs}/job-driver-raysubmit_Kx7Qp2.log": [x.text for x in lines if x.rank == LAUNCHER]
    }
    for rank in range(RANKS):
        name = f"{logs}/worker-{rank:x}{'5c03f7a9' * 7}-01000000-{8120 + rank}"
        for end, stream in (("out", "stdout"), ("err", "stderr")):
            mine = [x.text for x in lines if (x.rank, x.stream) == (rank, stream)]
            files[f"{name}.{end}"] = [":job_id:01000000", ":actor_name:WorkerDict", *mine]
    return files


# Which pairs occur -------------------------------------------------------------------------------

LAUNCHERS: Final[Mapping[str, Callable[[Job, list[Line]], Files]]] = {
    **LAYOUTS,
    "ray_ranked": ray_ranked,
    "ray_bare": ray_bare,
    "ray_deduplicated": ray_deduplicated,
    "ray_workers": ray_workers,
}
UNTELLING: Final = frozenset(
    {"merged", "sbatch", "deepspeed", "ray_bare", "ray_deduplicated", "ray_workers"}
)
"""Launchers that do not say which rank printed a line."""

_TORCHRUN: Final = ("console", "torchrun_tee", "redirects", "nodes", "role", "merged")
_SLURM: Final = ("srun_label", "slurm_tasks", "slurm_nodes", "sbatch")
_PODS: Final = ("pods", "pod_files", "stern")
_HOSTS: Final = ("pdsh", "docker_compose", "mpirun")
_NEMO_RUN: Final = ("nemo_run", "torchx")
_RAY: Final = ("ray_bare", "ray_deduplicated", "ray_workers")

PAIRS: Final[Mapping[str, tuple[str, ...]]] = {
    "megatron-3.0": ("console", "merged", "srun_label", "slurm_tasks", "mpirun", "pdsh"),
    "megatron-0.9": (*_TORCHRUN, *_SLURM, *_PODS, *_HOSTS),
    "megatron-main": (*_TORCHRUN, *_SLURM, *_PODS, *_HOSTS, *_NEMO_RUN, "skypilot"),
    "bridge-0.3": (*_NEMO_RUN, "console", "redirects", "srun_label", "pods", "sbatch"),
    "bridge-main": (*_TORCHRUN, *_SLURM, *_PODS, *_NEMO_RUN),
    "pai": ("console", "redirects", "pods", "pod_files", "stern"),
    "mindspeed": ("console", "redirects", "nodes", "merged", "pdsh", "pod_files"),
    "megatron-deepspeed": ("deepspeed", "console", "mpirun", "pdsh", "srun_label", "sbatch"),
    "primus": ("console", "nodes", "merged", "srun_label", "sbatch", "pods", "docker_compose"),
    "nemo-1": (*_SLURM, "console", "pods", "mpirun", "nemo_files", "skypilot"),
    "nemo-2": (*_NEMO_RUN, *_SLURM, "console", "redirects", "pods", "nemo_files"),
    "nemo-rl": ("ray_ranked", "ray_workers", "pods", "sbatch"),
    "torchtitan": ("role", "console", "redirects", "merged", *_SLURM, *_PODS, "torchx", "skypilot"),
    "verl": (*_RAY, "pods", "sbatch"),
    "slime": (*_RAY, "pods", "sbatch"),
    "ms-swift": ("console", "redirects", "nodes", "merged", "srun_label", "pods", "pdsh"),
    "nanotron": ("console", "torchrun_tee", "merged", "srun_label", "sbatch", "pods"),
}
"""Trainer -> launchers that it is met with."""

_OWN: Final = "its project starts it by torchrun, srun or an operator's pods, not so"
WHY_NOT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("ray_ranked", *_RAY), "only trainers that are made of Ray actors write through Ray"
    ),
    "nemo_files": "written by NeMo's experiment manager alone",
    **dict.fromkeys(_NEMO_RUN, "NeMo-Run and TorchX start NVIDIA's and PyTorch's own trainers"),
    "skypilot": "one of many clouds' launchers: three trainers stand for all that torchrun starts",
    "deepspeed": "DeepSpeed's launcher is met with trainers that import DeepSpeed",
    **dict.fromkeys(_HOSTS, _OWN),
    **dict.fromkeys((*_TORCHRUN, *_SLURM, *_PODS), _OWN),
}
"""Launcher -> why the trainers that `PAIRS` does not name are not met with it."""
