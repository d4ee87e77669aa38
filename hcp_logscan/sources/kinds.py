"""What is a log, and what only lies beside the logs: by name first, then by the first bytes.

Source code, notebooks, Markdown, datasets, checkpoints, pickles and our own earlier reports are
never evidence, although run directories hold them and although they quote the very texts a scanner
looks for.
"""

from __future__ import annotations

import re
from typing import Final

from hcp_logscan.sources import leads

SNIFF_BYTES: Final = 65_536
"""How much of a file decides what it is."""

_BY_SUFFIX: Final = {
    "source code": ".py .pyx .pyi .ipynb .c .cc .cpp .cu .cuh .h .hpp .rs .go .java .js .ts .sh"
    " .bash"
    " .zsh .slurm .sbatch .pl .rb .lua .sql .mk .cmake .toml .ini .cfg .conf .patch .diff .j2",
    "document": ".md .rst .html .htm .xhtml .tex .pdf .docx .xml .css .svg",
    "dataset": ".json .csv .tsv .parquet .arrow .feather .npy .npz .idx .bin .h5 .hdf5 .lmdb"
    " .mmap .tfrecord .sarif",
    "checkpoint": ".pt .pth .ckpt .safetensors .distcp .metadata .onnx .gguf .index",
    "pickle": ".pkl .pickle .joblib",
    "image": ".png .jpg .jpeg .gif .webp .bmp .ico .mp4 .avi .mov .wav .mp3",
    "trace or profile": ".nsys-rep .qdrep .ncu-rep .prof .pstat .sqlite .db .etl .trace",
    "archive": ".zip .tar .tgz .tbz2 .txz .tzst .7z .rar .whl .jar .deb .rpm .sqsh .sif",
    "program": ".so .o .a .dll .exe .pyc .pyo .egg .class .wasm",
    "tokenizer": ".model .vocab .spm .tiktoken .merges",
}
_SUFFIX_KIND: Final = {
    suffix: kind for kind, suffixes in _BY_SUFFIX.items() for suffix in suffixes.split()
}
_ARCHIVE: Final = re.compile(
    r"\.(?:zip|tgz|tbz2?|txz|tzst|tar(?:\.(?:gz|zst|xz|bz2))?)$", re.ASCII | re.IGNORECASE
)
_JSON_LINES: Final = (".jsonl", ".ndjson")
"""Datasets, what a trainer logs its steps to (ms-swift's), or lines wrapped by a log collector."""

_METRIC_MARKS: Final = (b'"train_speed(', b'"global_step/max_steps"')
SAVED_CONFIG_SUFFIXES: Final = (".yaml", ".yml")


def dump_content(head: bytes) -> bool:
    """Whether a file begins as a pickle (protocol 2 or later) or as a JSON object does.

    A name like ``x_dump_3`` may also be a text log's.
    """
    return head.startswith(b"\x80") or head.lstrip()[:1] == b"{"


_KUBERNETES: Final = re.compile(
    rb"(?:^|\n) {0,8}(?:- )?apiVersion: \S+\n(?:.{0,200}\n){0,8}?"
    rb" {0,40}kind: (?:Pod|Event)(?:List)?\s"
)


def kubernetes_status(head: bytes) -> bool:
    r"""Whether a YAML file is what `kubectl get -o yaml` prints of pods or events: no settings.

    >>> kubernetes_status(b"apiVersion: v1\nkind: Pod\nmetadata:\n"), kubernetes_status(b"model: 1")
    (True, False)
    """
    return _KUBERNETES.search(head[:8192]) is not None


SKIPPED_FOLDERS: Final = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "site-packages", "node_modules"}
    | {".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".cache", ".idea"}
)

_CODE_LINE: Final = re.compile(
    rb"^\s*(?:def |class |import |from [\w.]+ import |return\b|elif |else:|try:|except\b|raise "
    rb"|assert |with .*:$|for .* in .*:$|if .*:$|while .*:$|@\w|#include|static |void |[}{]$"
    rb"|[\w.\[\]]+ = |#|\)|.*[,({\[]$|\"\"\")"
)
_CODE_STRONG: Final = re.compile(
    rb"^\s*(?:def \w+\(|class \w+[(:]|import \w|from [\w.]+ import |@\w+|#include [<\"]|#!/)"
)
_MARKDOWN_LINE: Final = re.compile(rb"^(?:#{1,6} \S|[-*] \S|\d+\. \S|```|> \S|\|.*\|\s*$)")
_LONG_LINE: Final = 400
_REPORT_MARKS: Final = (b"hcp-logscan/report/v1", b"hcp-logscan report")


def by_name(name: str) -> str | None:
    """The kind of a file that its name gives away; None where the content has to tell.

    >>> by_name("ckpt/iter_0000010/model.pt"), by_name("stdout.log.gz"), by_name("slurm-1.out")
    ('checkpoint', None, None)
    """
    base = name.rpartition("/")[2].lower()
    if base.startswith("events.out.tfevents"):
        return "trace or profile"
    for suffix in (".gz", ".zst", ".xz", ".bz2"):
        base = base.removesuffix(suffix)
    stem, dot, suffix = base.rpartition(".")
    if not dot or not stem:
        return None
    if stem.endswith(".tar"):
        return "archive"
    return _SUFFIX_KIND.get(dot + suffix)


def is_archive_name(name: str) -> bool:
    """Whether a name says that the file is an archive that can be looked into.

    >>> is_archive_name("logs.tar.gz"), is_archive_name("LOGS.ZIP"), is_archive_name("logs.7z")
    (True, True, False)
    """
    return _ARCHIVE.search(name) is not None


def without_archive_suffix(name: str) -> str:
    """The name of what an archive holds.

    >>> without_archive_suffix("node03/run.1.tar.gz")
    'node03/run.1'
    """
    return _ARCHIVE.sub("", name)


_HOLE: Final = re.compile(rb"\0{512,}")
"""What a crashed machine, or a rotation by copying, leaves in a log that goes on behind it."""

_SOLID: Final = 512
"""Bytes of text that a file with holes must show to be taken for a log."""


def by_content(head: bytes) -> str | None:
    """The kind of a file that its first bytes give away; None for what may be a log.

    A log may hold control bytes (torch 2.4 prints a device number as a raw byte), so only a file
    that is mostly not text is binary.
    """
    if not head:
        return None
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) and head.count(0) > len(head) // 4:
        return "UTF-16 text"
    if start[:15].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "document"
    if any(mark in head[:4096] for mark in _REPORT_MARKS):
        return "own report"
    solid = _HOLE.sub(b"", head)
    if len(solid) >= _SOLID:
        head = solid
    control = len(head) - len(
        head.translate(None, bytes(range(9)) + bytes(range(14, 27)) + b"\x7f")
    )
    if control > len(head) // 10:
        return "binary"
    # A longer line is neither code nor prose, and the patterns would take their time over it.
    lines = [line[:_LONG_LINE] for line in head.split(b"\n") if line.strip()]
    strong = sum(1 for line in lines if _CODE_STRONG.match(line))
    if strong >= 3 and sum(1 for line in lines if _CODE_LINE.match(line)) > len(lines) // 2:
        return "source code"
    marks = sum(1 for line in lines if _MARKDOWN_LINE.match(line))
    if start.startswith(b"# ") and marks >= 3 and marks > len(lines) // 4:
        return "document"
    if (
        start[:1] in (b"{", b"[")
        and start[1:2] in (b"\n", b"\r", b'"', b" ")
        and b'":' in start[:400]
        and not json_lines_log(head)
    ):
        return "dataset"
    return None


def json_lines_log(head: bytes) -> bool:
    """Whether lines of JSON are a log: steps of a trainer, or lines that a collector wrapped."""
    return any(mark in head for mark in _METRIC_MARKS) or leads.in_json(head)


def by_both(name: str, head: bytes) -> str | None:
    """The kind of a file whose name does not say enough; None for what may be a log."""
    kind = by_content(head)
    if kind is None and name.lower().endswith(_JSON_LINES) and not json_lines_log(head):
        return "dataset"
    return kind
