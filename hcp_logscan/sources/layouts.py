"""What a path says about rank, node, attempt and job: one function per log layout, tried in order.

Launchers and the shapes they leave, each written from its source or manual:

* torchrun ``--log-dir`` (torch.distributed.elastic ``multiprocessing/api.py``, 2.1 to 2026 main):
  ``<run id>_<8 random characters>/attempt_<k>/<LOCAL rank>/{stdout,stderr}.log``, and beside them
  ``error.json`` of a rank that recorded its exception
* NeMo (``nemo.utils.exp_manager``): ``nemo_log_globalrank-<G>_localrank-<L>.txt``
* NeMo-Run on Slurm: ``log-<job>_<job id>_<restart count>.out``, ``sbatch_<job>_<job id>.out``
* Slurm ``-o`` patterns (sbatch manual): ``slurm-%j.out``, ``%x_%j.out``, ``%j_%n_%t.log``,
``%j_%t.log``
* a file per pod or host: ``pretrain-master-0.log`` and ``pretrain-worker-1.log`` of Kubeflow's
  PyTorchJob, ``nid001234.out`` of Slurm's ``%N``
* what log rotation leaves of any of them: ``rank0.log.1`` and ``rank0.log-20260301.gz`` are older
  parts of ``rank0.log``
* any file name that says ``rank``: ``rank_003.log``, ``train.rank3.log``
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class PathHints:
    """What one path says. None where it says nothing."""

    job: str | None = None
    job_kind: str | None = None
    "`torchrun` (run id) or `slurm` (job id): ids of two kinds name one and the same job."

    node: str | None = None
    "Directory or host name that stands for a node."

    launch: str | None = None
    "Directory of one torchrun agent: two of them with the same job are two nodes."

    attempt: int | None = None
    rank: int | None = None
    "Global rank."

    local_rank: int | None = None
    task: int | None = None
    "Slurm task number: the global rank where there is one task per rank, else a node."

    part_of: str | None = None
    "The log that this is an older part of, by its name."

    age: int = 0
    "Orders the older parts of one log: the greatest is the oldest."


_STREAM: Final = r"(?:(?:stdout|stderr)(?:\.log)?|error\.json)(?:\.(?:gz|zst|xz|bz2))?"
_TORCHRUN: Final = re.compile(
    rf"(?:^|/)(?P<launch>(?P<job>[^/]+)_(?P<random>[a-z0-9_]{{8}}))/attempt_(?P<attempt>\d{{1,6}})"
    rf"/(?P<local>\d{{1,6}})/{_STREAM}$"
)
_ATTEMPT: Final = re.compile(
    rf"(?:^|/)attempt_(?P<attempt>\d{{1,6}})/(?P<local>\d{{1,6}})/{_STREAM}$"
)
_NODE: Final = re.compile(
    r"^(?:.*[-_.])?(?:node|host|worker|nid|pod|compute|gpu)s?[-_.]?\d{1,7}$|^n\d{1,7}$",
    re.IGNORECASE,
)
_GLOBAL_RANK: Final = re.compile(
    r"(?:^|(?<!lora)[^a-z])(?:global[-_.]?)?rank[-_.=]?(?P<rank>\d{1,7})(?!\d)", re.IGNORECASE
)
_LOCAL_RANK: Final = re.compile(r"local[-_.]?rank[-_.=]?(?P<rank>\d{1,7})(?!\d)", re.IGNORECASE)
_END: Final = r"\.(?:out|err|log|txt)(?:\.(?:gz|zst|xz|bz2))?$"
_ROTATED: Final = re.compile(
    r"(?<=\.log|\.out|\.err|\.txt)"
    r"(?:\.(?P<number>[1-9]\d{0,2})|[-.](?P<date>20\d{6})(?:-?(?P<time>\d{2,6}))?)"
    r"(?:\.(?:gz|zst|xz|bz2))?$"
)
_NEMO_RUN: Final = re.compile(
    rf"^log-(?P<name>.+)_(?P<job>\d{{2,12}})_(?P<attempt>\d{{1,4}}){_END}"
)
_NODE_FILE: Final = re.compile(
    r"^(?P<node>(?:[a-z0-9.-]{1,200}-)?(?:master|chief|worker|node|host|nid|compute)-?\d{1,6}"
    rf"(?:-\d{{1,4}})?(?:-[bcdfghjklmnpqrstvwxz2456789]{{5}})?){_END}"
)
_SLURM_TASK: Final = re.compile(
    rf"^(?:.*[-_.])?(?P<job>\d{{3,12}})[-_.](?:(?:n|node)?(?P<node>\d{{1,6}})[-_.])?"
    rf"(?:t|task)?(?P<task>\d{{1,7}}){_END}"
)
_SLURM_JOB: Final = re.compile(rf"^(?:.*[-_.])?(?P<job>\d{{3,12}}){_END}")


def rotated(name: str) -> tuple[str, int]:
    """The name before log rotation, and the age of this part; 0 for what is no older part.

    >>> rotated("a/rank0.log.2.gz"), rotated("rank0.log"), rotated("slurm-4711.1")
    (('a/rank0.log', 2), ('rank0.log', 0), ('slurm-4711.1', 0))
    """
    match = _ROTATED.search(name)
    if match is None:
        return name, 0
    if match["number"]:
        return name[: match.start()], int(match["number"])
    stamp = (match["date"] + (match["time"] or "")).ljust(14, "0")
    return name[: match.start()], 10**15 - int(stamp)


def _torchrun(path: str) -> PathHints | None:
    if match := _TORCHRUN.search(path):
        return PathHints(
            job=match["job"],
            job_kind="torchrun",
            launch=path[: match.end("launch")],
            attempt=int(match["attempt"]),
            local_rank=int(match["local"]),
        )
    if match := _ATTEMPT.search(path):
        return PathHints(
            launch=path[: match.start()],
            attempt=int(match["attempt"]),
            local_rank=int(match["local"]),
        )
    return None


def _named_rank(path: str) -> PathHints | None:
    name = path.rpartition("/")[2]
    local = _LOCAL_RANK.search(name)
    without_local = _LOCAL_RANK.sub("", name)
    rank = _GLOBAL_RANK.search(without_local)
    if not (rank or local):
        rank = _GLOBAL_RANK.search(path.rpartition("/")[0].rpartition("/")[2])
    if not (rank or local):
        return None
    return PathHints(
        rank=int(rank["rank"]) if rank else None,
        local_rank=int(local["rank"]) if local else None,
    )


def _nemo_run(path: str) -> PathHints | None:
    match = _NEMO_RUN.match(path.rpartition("/")[2])
    return (
        PathHints(job=match["job"], job_kind="slurm", attempt=int(match["attempt"]))
        if match and not _DATE.fullmatch(match["job"])
        else None
    )


def _node_file(path: str) -> PathHints | None:
    match = _NODE_FILE.match(path.rpartition("/")[2])
    return PathHints(node=match["node"]) if match else None


def _slurm(path: str) -> PathHints | None:
    name = path.rpartition("/")[2]
    task = _SLURM_TASK.match(name)
    if task and not _DATE.fullmatch(task["job"]):
        return PathHints(task["job"], "slurm", node=task["node"], task=int(task["task"]))
    job = _SLURM_JOB.match(name)
    if job and not _DATE.fullmatch(job["job"]) and not (task and _DATE.fullmatch(task["job"])):
        return PathHints(job["job"], "slurm")
    return None


LAYOUTS: Final = (_torchrun, _named_rank, _nemo_run, _node_file, _slurm)
_DATE: Final = re.compile(r"20\d{6}")


def _node_of(path: str) -> str | None:
    """The innermost directory of the path whose name looks like a node's."""
    for part in reversed(path.split("/")[:-1]):
        if _NODE.match(part):
            return part
    return None


def hints(
    name: str, rank_regex: re.Pattern[str] | None = None, above: Sequence[str] = ()
) -> PathHints:
    """What a path says, by the first layout that knows it.

    `name` is relative to the run directory; `above` are the last directories over it, which only
    torchrun's layout looks at (a user may point at an `attempt_0` directory itself). `rank_regex`
    is the user's own pattern for the global rank: its group `rank`, else its first group, else the
    whole match.

    >>> hints("logs/none_a1b2c3d4/attempt_1/3/stderr.log").attempt
    1
    >>> hints("out/train.rank_003.log").rank
    3
    >>> hints("log-pretrain_4711_2.out").attempt
    2
    """
    whole, (name, age) = name, rotated(name)
    found = _torchrun("/".join([*above, name])) or next(
        (hint for layout in LAYOUTS[1:] if (hint := layout(name))), PathHints()
    )
    if rank_regex and (match := rank_regex.search(whole)):
        text = match.groupdict().get("rank") or (match[1] if match.groups() else match[0])
        if text and text.isdecimal():
            found = replace(found, rank=int(text))
    if age:
        found = replace(found, part_of=name, age=age)
    return found if found.node else replace(found, node=_node_of(whole))


def settle_tasks(all_hints: Sequence[PathHints]) -> tuple[PathHints, ...]:
    """Slurm task numbers, once all names are known.

    ``name_4711_0.out`` alone may be a restart count or an array index; only where the numbers of
    one job fill 0..n-1 with n > 1 are they tasks. What is no task is dropped.
    """
    tasks: dict[str | None, set[int]] = {}
    for hint in all_hints:
        if hint.task is not None:
            tasks.setdefault(hint.job, set()).add(hint.task)

    def is_task(numbers: Iterable[int]) -> bool:
        ordered = sorted(numbers)
        return len(ordered) > 1 and ordered == list(range(len(ordered)))

    return tuple(
        hint if hint.task is None or is_task(tasks[hint.job]) else replace(hint, task=None)
        for hint in all_hints
    )
