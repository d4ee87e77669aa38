"""Pseudonyms: `host-1` for a host, wherever it stands, `user-1`, `ip-1` and `email-1` likewise.

Names that the structure of the logs gives away are numbered first, in natural order, so that the
order of nodes stays readable; others as the walk meets them. A number that a log uses itself
(`host-3` may be a real name, and gives nothing away) is passed over.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.identity_shapes import FILE_SUFFIXES, PSEUDONYM, is_host, is_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_RUN: Final = re.compile("[A-Za-z0-9]+")
_IN_TEXT: Final = re.compile(rf"(?<![A-Za-z0-9]){PSEUDONYM.pattern}(?![A-Za-z0-9])")
_DOMAIN: Final = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9-]{0,62}){1,6}(?![A-Za-z0-9(])")

_WORDS: Final = frozenset(
    {"all", "alloc", "api", "app", "apps", "arg", "args", "attention", "auto", "backend"}
    | {"base", "batch", "bench", "bert", "best", "bf16", "cache", "chat", "ckpt", "client"}
    | {"cluster", "code", "collective", "common", "compute", "conda", "config", "context", "core"}
    | {"cpu", "cuda", "daemon", "dask", "data", "debug", "deepspeed", "default", "demo", "dev"}
    | {"dist", "distributed", "dgx", "doc", "docs", "eval", "exp", "expert", "export", "failed"}
    | {"fast", "file", "files", "flash", "fp16", "fp8", "fsdp", "gen", "global", "gloo", "gpt"}
    | {"gpu", "gpus", "group", "head", "hf", "home", "host", "hosts", "hpc", "hydra", "init"}
    | {"input", "iter", "job", "jobs", "kernel", "lab", "large", "latest", "lib", "linux"}
    | {"llama", "llm", "local", "log", "login", "logs", "loss", "lustre", "main", "manager"}
    | {"master", "max", "megatron", "mem", "memory", "meta", "min", "mixtral", "mlp", "model"}
    | {"models", "moe", "mpi", "nccl", "nemo", "net", "network", "new", "node", "nodes", "none"}
    | {"null", "number", "nvidia", "old", "optimizer", "out", "output", "param", "params"}
    | {"parallel", "path", "pipeline", "pod", "pool", "port", "pretrain", "primus", "prod"}
    | {"project", "proxy", "python", "pytorch", "queue", "qwen", "rank", "ranks", "ray"}
    | {"research", "root", "run", "runs", "runtime", "sample", "scratch", "script", "send"}
    | {"server", "service", "shared", "size", "slurm", "small", "source", "src", "stage", "start"}
    | {"state", "std", "step", "store", "stream", "sub", "system", "table", "task", "tasks"}
    | {"team", "temp", "tensor", "test", "time", "tmp", "token", "tokens", "tool", "torch"}
    | {"torchrun", "train", "trainer", "training", "user", "users", "utils", "val", "value"}
    | {"var", "verl", "version", "view", "wandb", "work", "worker", "workers", "workspace"}
    | {"world", "zero"}
)
"""What logs of training jobs say every day: hidden as a name where it stands for one, not
elsewhere."""


class Pseudonyms:
    """The names of one report, each with one pseudonym."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._numbers: Counter[str] = Counter()
        self._used: set[str] = set()
        self._given: dict[tuple[str, str], str] = {}
        self._shown: set[str] = set()
        self._known: dict[str, str] = {}
        "Names to hide wherever they stand -> pseudonym."

        self._beginnings: set[str] = set()
        "Of those names, up to each of their runs of letters and digits."

        given = set(hosts)
        self._used.update(name for name in given if PSEUDONYM.fullmatch(name))
        self._waiting = sorted(filter(is_host, given), key=_natural)

    @property
    def count(self) -> int:
        """How many stand in the report."""
        return len(self._shown)

    @property
    def known(self) -> bool:
        """Whether there is anything to hide wherever it stands."""
        return bool(self._known)

    def begin(self, texts: Iterable[str]) -> None:
        """Number what the structure gives away, past the numbers that these texts use."""
        self._used.update(found for text in texts for found in _IN_TEXT.findall(text))
        for name in self._waiting:
            self._pseudonym("host", name)

    def __call__(self, kind: str, name: str) -> str:
        """The pseudonym for a name that stands in the report."""
        shown = self._pseudonym(kind, name)
        self._shown.add(shown)
        return shown

    def _pseudonym(self, kind: str, name: str) -> str:
        # node07 and node07.hpc.example.org are one host
        key = name.lower().partition(".")[0] if kind == "host" else name
        if (kind, key) not in self._given:
            self._numbers[kind] += 1
            while f"{kind}-{self._numbers[kind]}" in self._used:
                self._numbers[kind] += 1
            self._given[kind, key] = f"{kind}-{self._numbers[kind]}"
        shown = self._given[kind, key]
        for known in {name, name.partition(".")[0]} if kind == "host" else {name}:
            self._remember(kind, known, shown)
        return shown

    def _remember(self, kind: str, name: str, shown: str) -> None:
        """Hide it elsewhere too, unless a word may be meant there; addresses have their shape."""
        name = name.rstrip("-_")
        holds = {"host": is_host, "user": is_user}.get(kind)
        if holds is None or not holds(name) or "[" in name or name in self._known:
            return
        if len(name) < 3 or name.lower() in _WORDS:
            return
        self._known[name] = shown
        self._beginnings.update(name[: match.end()] for match in _RUN.finditer(name))

    def hide(self, text: str) -> str:
        """The text without names that are known by now: as whole words, the longest first."""
        runs = [match.span() for match in _RUN.finditer(text)]
        parts: list[str] = []
        position = 0
        for number, (start, _) in enumerate(runs):
            if start < position:
                continue
            known = self._longest(text, runs, number)
            if known:
                shown, end = self._known[known], start + len(known)
                end = _with_domain(text, end) if shown.startswith("host") else end
                parts += (text[position:start], shown)
                self._shown.add(shown)
                position = end
        return "".join((*parts, text[position:])) if parts else text

    def _longest(self, text: str, runs: Sequence[tuple[int, int]], number: int) -> str:
        """The longest known name that begins with that run; empty where none does."""
        best = ""
        for other in range(number, len(runs)):
            piece = text[runs[number][0] : runs[other][1]]
            if piece not in self._beginnings:
                break
            best = piece if piece in self._known else best
        return best


def _with_domain(text: str, end: int) -> int:
    """The end of the whole name of a host, whose domain says where it stands."""
    match = _DOMAIN.match(text, end)
    if match is None or match[0].rpartition(".")[2].lower() in FILE_SUFFIXES:
        return end
    return match.end()


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts node2 before node10.

    >>> sorted(["node10", "node2", "a"], key=_natural)
    ['a', 'node2', 'node10']
    """
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d{1,18})", name)
    ]
