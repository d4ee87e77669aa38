"""Damage the inputs of every reader, parser and loader, and see that each ends as it promises.

fuzz.py [--executions N] [--seed S] [--target NAME] [--first N] [--save DIR] [--replay FILE]

An execution damages one sound input (a log, dump, archive, compressed file, rule ...) and hands it
to one target. It must come to its end within a time limit, raise nothing but what the target
promises, and keep the properties that the target checks. The first that does not stops the run: its
input is saved, with the command that runs it again. Execution N of a seed is the same on every
machine, so `--seed S --first N --executions 1` repeats it.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import faulthandler
import gzip
import io
import json
import lzma
import pickle
import random
import re
import signal
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import zstandard
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from hcp_logscan.api import scan as scan_run  # noqa: E402
from hcp_logscan.engine.plan import Unit  # noqa: E402
from hcp_logscan.engine.scan import Collector, scan_batch  # noqa: E402
from hcp_logscan.model.errors import HcpLogscanError, RuleError, UsageError  # noqa: E402
from hcp_logscan.model.markdown import code, escaped, fence, prose_line  # noqa: E402
from hcp_logscan.model.safe import one_line, visible  # noqa: E402
from hcp_logscan.parsers.flight_recorder import DumpError, parse_dump  # noqa: E402
from hcp_logscan.parsers.registry import needles  # noqa: E402
from hcp_logscan.reporting.redact import redact_text  # noqa: E402
from hcp_logscan.reporting.text import render_text  # noqa: E402
from hcp_logscan.rules import formats as line_formats  # noqa: E402
from hcp_logscan.rules import load as rule_loader  # noqa: E402
from hcp_logscan.rules.choose import parse_settings  # noqa: E402
from hcp_logscan.sources import kinds, layouts, leads, packed, prefixes, reader, tar, zips  # noqa: E402
from hcp_logscan.sources import settings as settings_file  # noqa: E402
from hcp_logscan.sources.discover import discover  # noqa: E402
from hcp_logscan.sources.scanner import scan as scan_lines  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LIMIT_S: Final = 20.0
"""Seconds that one execution may take; most take a millisecond."""

MAX_INPUT: Final = 60_000
"""Bytes of one input."""

SECRET: Final = "ghp_" + "".join(chr(97 + n % 26) for n in range(36))
"""A token whose shape is known: it must be hidden wherever it stands whole."""


_TOLD: Final = re.compile(rf"(?<![A-Za-z0-9_])({SECRET})(?![A-Za-z0-9_])")


def told(text: str) -> bool:
    """Whether the token stands in a text, and not as a part of a longer word."""
    return _TOLD.search(text) is not None


_LIVE: Final = frozenset(
    {"html_inline", "html_block", "link_open", "image", "heading_open", "bullet_list_open"}
)
"""What text of a log must not become in Markdown."""


class BrokenPromiseError(AssertionError):
    """A property that does not hold."""


def held(condition: object, what: str) -> None:
    """Raise where a property does not hold."""
    if not condition:
        raise BrokenPromiseError(what)


# Damage -------------------------------------------------------------------------------------------

WORDS: Final[tuple[bytes, ...]] = (
    b"\0", b"\0" * 700, b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\x1b[31m", b"\x1b]0;",
    b"[rank3]: ", b"[default1]:", b"3: ", b"9" * 25, b"-1", b"1e400", b"nan", b"inf", b"[", b"]", b"{",
    b"((((((", b" " * 3_000, b"a." * 900, b"\xe2\x80\xae", "ｉｔｅｒ".encode(), b"\\", b"'", b'"', b"<script>",
    b"{{ 7*7 }}", b"%s%n", b"../../etc/passwd", b"/dev/zero", b"Traceback (most recent call last):\n",
    b"------------------------ arguments ------------------------\n", b"Failures:\n", b"=" * 70 + b"\n",
    b" iteration 1/ 2 |", b"PK\x01\x02", b"PK\x05\x06", b"\x80\x04", b"cos\nsystem\n", b"R.", b"!!python/name:os.system ",
    b"&a [*a, *a]", b"(?:b*)*c", SECRET.encode(), b"password=hunter2hunter ", b"https://u:p4ssw0rd@h/ ",
)  # fmt: skip


def damaged(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """The bytes after one to four kinds of damage; `other` is a sound input to splice with."""
    for _ in range(dice.randint(1, 4)):
        data = dice.choice(_DAMAGES)(data, other, dice)[:MAX_INPUT]
    return data


def _part(data: bytes, dice: random.Random, most: int = 400) -> tuple[int, int]:
    at = dice.randrange(len(data) + 1)
    return at, min(len(data), at + dice.randrange(most))


def _cut(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data) + 1)]


def _gap(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    at, end = _part(data, dice)
    return data[:at] + data[end:]


def _flip(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(dice.randint(1, 8) if made else 0):
        made[dice.randrange(len(made))] ^= 1 << dice.randrange(8)
    return bytes(made)


def _noise(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    at, end = _part(data, dice, 12)
    return data[:at] + dice.randbytes(dice.randrange(12)) + data[end:]


def _zeros(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    at, end = _part(data, dice, 4_096)
    return data[:at] + bytes(end - at) + data[end:]


def _word(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    at, end = _part(data, dice, 3)
    return data[:at] + dice.choice(WORDS) + data[end:]


def _again(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    at, end = _part(data, dice)
    return data[:end] + data[at:end] * dice.choice((1, 1, 2, 30)) + data[end:]


def _splice(data: bytes, other: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data) + 1)] + other[dice.randrange(len(other) + 1) :]


def _interleave(data: bytes, other: bytes, _dice: random.Random) -> bytes:
    pairs = zip_longest(
        data.splitlines(keepends=True), other.splitlines(keepends=True), fillvalue=b""
    )
    return b"".join(part for pair in pairs for part in pair)


def _shuffle(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    return b"\n".join(sorted(data.split(b"\n"), key=lambda _: dice.random()))


def _numbers(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    at, end = _part(data, dice)
    table = bytes.maketrans(b"0123", dice.choice((b"9890", b"----", b"eE+.", b"    ")))
    return data[:at] + data[at:end].translate(table) + data[end:]


def _wide(data: bytes, _other: bytes, dice: random.Random) -> bytes:
    text = data[: MAX_INPUT // 2].decode("utf-8", "replace")
    return text.encode(dice.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32")))


def _one_line(data: bytes, _other: bytes, _dice: random.Random) -> bytes:
    return data.replace(b"\n", b" ")


_DAMAGES: Final = (
    _cut, _gap, _flip, _flip, _noise, _zeros, _word, _word, _again, _splice, _interleave, _shuffle, _numbers,
    _wide, _one_line,
)  # fmt: skip


# Sound inputs -------------------------------------------------------------------------------------


@cache
def logs() -> tuple[bytes, ...]:
    """Logs of the fixtures."""
    found = sorted(ROOT.glob("tests/fixtures/*/run/**/*"))
    wanted = (p for p in found if p.is_file() and p.suffix in {".log", ".out", ".err", ".txt", ""})
    read = (path.read_bytes()[:MAX_INPUT] for path in wanted)
    return tuple(data for data in read if data)


@cache
def configs() -> tuple[bytes, ...]:
    """Saved configurations of the fixtures."""
    found = sorted(ROOT.glob("tests/fixtures/*/run/**/*.yaml"))
    return tuple(path.read_bytes()[:MAX_INPUT] for path in found)


@cache
def dumps() -> tuple[bytes, ...]:
    """Flight-recorder dumps in both forms, each behind the byte that says which it is."""
    entry = {
        "record_id": 0, "pg_id": 3, "process_group": ("3", "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0"),
        "collective_seq_id": 7, "op_id": 9, "profiling_name": "nccl:all_to_all", "state": "scheduled",
        "input_sizes": [[8, 2]], "output_sizes": [[8, 2]], "input_dtypes": ["BFloat16"],
        "time_created_ns": 1_700_000_000_000_000_000, "duration_ms": None, "is_p2p": False,
        "frames": [{"name": "forward", "filename": "context_parallel.py", "line": 12}],
    }  # fmt: skip
    dump = {
        "version": "2.10", "entries": [entry] * 3, "pg_config": {"3": {"name": "3", "desc": "CP", "ranks": "[0, 1]"}},
        "pg_status": {"3": {"last_enqueued_collective": 7}}, "rank": 1,
    }  # fmt: skip
    pickles = [b"p" + pickle.dumps(dump, protocol) for protocol in range(6)]
    return (*pickles, b"j" + json.dumps(dump, default=list).encode())


def _packed(data: bytes) -> dict[str, bytes]:
    return {
        ".gz": gzip.compress(data, mtime=0),
        ".zst": zstandard.compress(data),
        ".xz": lzma.compress(data),
        ".bz2": bz2.compress(data),
        ".log": data,
    }


@cache
def streams() -> tuple[bytes, ...]:
    """Compressed logs."""
    return tuple(made for log in logs()[:6] for made in _packed(log[:6_000]).values())


@cache
def archives() -> tuple[bytes, ...]:
    """Tars and zips of all kinds that hold logs, plain and compressed."""
    return tuple(_archives())


def _archives() -> Iterator[bytes]:
    first, second = logs()[0][:3_000], logs()[1][:3_000]
    members = {"run/rank_0.log": first, "run/a/rank_1.log.gz": gzip.compress(second, mtime=0)}
    members[f"run/{'deep/' * 30}rank_2.log"] = second
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w", format=form) as made:
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                made.addfile(info, io.BytesIO(data))
            link = tarfile.TarInfo("run/link.log")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            made.addfile(link)
        yield whole.getvalue()
        yield gzip.compress(whole.getvalue(), mtime=0)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w", method) as packer:
            for name, data in members.items():
                packer.writestr(zipfile.ZipInfo(name), data, method)
        yield whole.getvalue()


@cache
def rule_files() -> tuple[bytes, ...]:
    """The shipped rules."""
    return tuple(path.read_bytes() for path in sorted(ROOT.glob("rules/*.yaml")))


@cache
def format_files() -> tuple[bytes, ...]:
    """The formats that the documents show."""
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    blocks = (part.partition("\n```")[0] for part in text.split("```yaml\n")[1:])
    return tuple(block.encode() for block in blocks if block.startswith("format:"))


@cache
def toml_files() -> tuple[bytes, ...]:
    """Settings."""
    own = 'gpu = "H200"\nprecision = "bf16"\npeak_tflops = 989.4\nworld_size = 32\n'
    accepted = '[[suppress]]\nrule = "HCP304"\nreason = "the queue preempts"\n'
    return own.encode(), (own + accepted).encode(), accepted.encode()


@cache
def names() -> tuple[bytes, ...]:
    """Paths of logs below a run directory."""
    found = sorted(ROOT.glob("tests/fixtures/*/run/**/*"))
    return tuple(str(path.relative_to(ROOT)).encode() for path in found if path.is_file())


@cache
def lines() -> tuple[bytes, ...]:
    """Lines of logs, each once."""
    return tuple(sorted({line for log in logs() for line in log.splitlines()[:400] if line}))


# Targets ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """What is run, on what, and what it may raise."""

    run: Callable[[bytes, Path], object]
    inputs: Callable[[], tuple[bytes, ...]]
    weight: int
    allowed: tuple[type[BaseException], ...] = ()


class _Bytes:
    """An archive in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, offset: int, size: int) -> bytes:
        return self._data[max(offset, 0) :][: max(size, 0)]


def every_parser(data: bytes, _folder: Path) -> None:
    """All line and block parsers, behind scanner, leads and prefixes."""
    collector = Collector()
    stream = io.BytesIO(data)
    stats = scan_lines(stream, needles(), collector, 0, None)
    collector.close()
    held(stats.bytes == len(data), "every byte is counted")
    for table, frame in collector.frames().items():
        held(frame["line"].min() >= 1, f"{table} counts lines from 1")
        held(frame["line"].max() <= stats.lines, f"{table} names lines that are there")
        held(frame["offset"].max() <= len(data), f"{table} names offsets that are there")


def one_line_of_text(data: bytes, _folder: Path) -> None:
    """Prefixes, leads, kinds, redaction and escaping, on a line."""
    prefix, rest = prefixes.split(prefixes.clean(data))
    held(data.endswith(rest) or b"\x1b" in data or b"\r" in data, "the rest of a line is its end")
    held(prefix.rank is None or prefix.rank >= 0, "no rank is negative")
    for lead in (leads.detect(data), leads.detect(data + b"\n" + data)):
        leads.rewrite(lead, data)
    kinds.by_content(data)
    kinds.dump_content(data)
    text = data.decode("utf-8", "replace")
    held("\x1b" not in one_line(text), "no escape is left")
    held("\n" not in one_line(text), "one line is one line")
    for shown in (prose_line(text), escaped(text), code(text)):
        for token in MarkdownIt("commonmark").parse(shown):
            for part in token.children or (token,):
                held(part.type not in _LIVE or part.content == "<!-- -->", f"{part.type} is alive")
    fenced = fence([one_line(text)]).splitlines()
    held(set(fenced[-1]) == {"`"} and fenced[0].startswith(fenced[-1]), "a fence is closed")
    visible(text)
    for level in ("secrets", "all"):
        held(not told(redact_text(f"{text} {SECRET} {text}", level)), "a token is hidden")


def a_dump(data: bytes, _folder: Path) -> None:
    """The unpickler and the JSON reader of flight-recorder dumps."""
    rows = parse_dump(
        data[1:], "nccl_trace_rank_0.json" if data[:1] == b"j" else "nccl_trace_rank_0"
    )
    held(all(isinstance(row, dict) for _, row in rows), "rows are rows")


def a_stream(data: bytes, folder: Path) -> None:
    """Decompression, by name and by first bytes."""
    path = folder / f"train.log{('.gz', '.zst', '.xz', '.bz2', '')[len(data) % 5]}"
    path.write_bytes(data)
    with contextlib.suppress(*reader.READ_ERRORS):
        reader.look(str(path))
    (stats,) = scan_batch([Unit(0, str(path))]).units
    held(stats.bytes <= max(packed.MIN_CEILING, packed.MAX_RATIO * len(data)), "growth is bounded")


def an_archive(data: bytes, folder: Path) -> None:
    """Discovery of an archive's members, and a scan of each."""
    path = folder / "run.tar.gz"
    path.write_bytes(data)
    found = discover(path)
    for file in found.files:
        held(".." not in Path(file.name.partition("!/")[2]).parts, "no name leads out")
    result = scan_batch([Unit(0, file.path, kind=file.kind) for file in found.files])
    held(len(result.units) == len(found.files), "every member is accounted for")


def archive_headers(data: bytes, _folder: Path) -> None:
    """The walks over headers, in memory."""
    count = 0
    for walk in (tar.entries(_Bytes(data)), zips.walk(_Bytes(data), len(data))):
        with contextlib.suppress(*packed.READ_ERRORS, packed.CutOffError):
            for _entry in walk:
                count += 1
                held(count <= len(data), "a walk comes to its end")
    with contextlib.suppress(*packed.READ_ERRORS, packed.CutOffError):
        zips.directory(_Bytes(data), len(data))


def a_config(data: bytes, folder: Path) -> None:
    """Saved configurations, read as a whole."""
    path = folder / "run_config.yaml"
    path.write_bytes(data)
    (stats,) = scan_batch([Unit(0, str(path), kind="config")]).units
    held(stats.error is None, f"a configuration is read: {stats.error}")


def a_rule(data: bytes, folder: Path) -> None:
    """The loader of rule files: a rule, or a refusal that names the file."""
    path = folder / "rule.yaml"
    path.write_bytes(data)
    try:
        rule_loader.load_file(path)
    except RuleError as error:
        held("rule.yaml" in str(error), "a refusal names the file")


def a_format(data: bytes, folder: Path) -> None:
    """The loader of line formats, and the format on lines where it loads."""
    path = folder / "format.yaml"
    path.write_bytes(data)
    try:
        made = line_formats.load_formats([path])
    except RuleError as error:
        held("format.yaml" in str(error), "a refusal names the file")
        return
    collector = Collector(made)
    scan_lines(io.BytesIO(data), needles(made), collector, 0, None)
    collector.close()
    collector.frames()


def settings_of_all_places(data: bytes, folder: Path) -> None:
    """`.hcp-logscan.toml`, `pyproject.toml` and `--set`."""
    (folder / "pyproject.toml").write_bytes(b"[tool.hcp-logscan]\n" + data)
    for read in (
        lambda: settings_file.parse(data, "here"),
        lambda: settings_file.load(folder),
        lambda: parse_settings([data.decode("utf-8", "replace")]),
    ):
        try:
            read()
        except (UsageError, RuleError) as error:
            held(str(error), "a refusal says something")
    for one in _accepted(data):
        held(one.reason.strip() and one.rule.strip(), "no suppression without a reason")


def _accepted(data: bytes) -> tuple[Any, ...]:
    try:
        return settings_file.parse(data, "here").suppress
    except UsageError:
        return ()


def a_name(data: bytes, _folder: Path) -> None:
    """What paths say of rank, node and attempt."""
    text = data.decode("utf-8", "surrogateescape").replace("\0", "")
    found = layouts.hints(text, None, ["runs", "job-7"])
    layouts.settle_tasks([found, found])
    held(found.rank is None or found.rank >= 0, "no rank is negative")
    kinds.by_name(text)
    layouts.rotated(text)
    packed.suffix_of(text)


def whole_run(data: bytes, folder: Path) -> None:
    """The way from bytes to every document."""
    path = folder / "train.log"
    path.write_bytes(data)
    report = scan_run(path)
    page = report.to_html(charts="static")
    held("<script" not in page, "no tag of a log lives")
    held(not told(page), "a token is hidden in the page")
    for text in (
        page, report.to_markdown(), report.to_json(), report.to_sarif(), report.to_junit(),
        render_text(report.data),
    ):  # fmt: skip
        text.encode("utf-8")
        held(not told(text), "a token is hidden")
        held("\x1b" not in text, "no escape is left")


TARGETS: Final[dict[str, Target]] = {
    "parsers": Target(every_parser, logs, 6),
    "line": Target(one_line_of_text, lines, 40),
    "dump": Target(a_dump, dumps, 60, (DumpError,)),
    "stream": Target(a_stream, streams, 8),
    "archive": Target(an_archive, archives, 6, (HcpLogscanError,)),
    "headers": Target(archive_headers, archives, 30),
    "config": Target(a_config, configs, 4),
    "rule": Target(a_rule, rule_files, 2),
    "format": Target(a_format, format_files, 6),
    "settings": Target(settings_of_all_places, toml_files, 30),
    "name": Target(a_name, names, 30),
    "run": Target(whole_run, logs, 1, (HcpLogscanError,)),
}


# The run ------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What a run of the fuzzer came to."""

    executions: int = 0
    seconds: float = 0.0
    by_target: Counter[str] = field(default_factory=Counter)
    failed: str = ""
    "Target of the execution that failed; empty for none."

    number: int = 0
    data: bytes = b""
    why: str = ""


def case(seed: int, number: int, wanted: Sequence[str]) -> tuple[str, bytes]:
    """Target and input of one execution: they depend on nothing else."""
    dice = random.Random(f"{seed}:{number}")
    weights = [TARGETS[name].weight for name in wanted]
    (name,) = dice.choices(list(wanted), weights)
    inputs = TARGETS[name].inputs()
    return name, damaged(dice.choice(inputs), dice.choice(inputs), dice)


def attempt(name: str, data: bytes, folder: Path) -> str:
    """Run one execution; why it failed, empty where it kept its promises."""
    target = TARGETS[name]
    own = folder / name  # each target writes the same files again and again
    own.mkdir(exist_ok=True)
    try:
        with _limited():
            target.run(data, own)
    except target.allowed:
        return ""
    except Exception:  # noqa: BLE001 - whatever it is, it is reported
        return traceback.format_exc()
    return ""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise BrokenPromiseError(f"no end within {LIMIT_S:g} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fuzz(
    executions: int,
    seed: int,
    wanted: Sequence[str] = tuple(TARGETS),
    *,
    first: int = 0,
    tell: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    """Run executions until one fails."""
    done, began = Outcome(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for number in range(first, first + executions):
            name, data = case(seed, number, wanted)
            done.why = attempt(name, data, Path(folder))
            done.executions += 1
            done.by_target[name] += 1
            done.seconds = time.monotonic() - began
            if done.why:
                done.failed, done.number, done.data = name, number, data
                break
            tell(done)
    return done


def _replay(path: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        why = attempt(path.name.partition("-")[0], path.read_bytes(), Path(folder))
    print(why or f"{path.name}: it keeps its promises")
    return 1 if why else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the options say: 0 where every execution kept its promises, else 1."""
    parser = argparse.ArgumentParser(description="Damage inputs and see what happens.")
    parser.add_argument("--executions", type=int, default=100_000)
    parser.add_argument(
        "--seed", type=int, default=None, help="default: a new one, which is printed"
    )
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument(
        "--first", type=int, default=0, metavar="N", help="number of the first execution"
    )
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"), metavar="DIR")
    parser.add_argument("--replay", type=Path, metavar="FILE")
    said = parser.parse_args(arguments)
    if said.replay:
        return _replay(said.replay)
    seed = said.seed if said.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, {said.executions:,} executions", flush=True)
    last = [0.0]

    def tell(done: Outcome) -> None:
        if done.seconds - last[0] >= 10:
            last[0] = done.seconds
            print(f"  {done.executions:,} in {done.seconds:.0f} s", flush=True)

    done = fuzz(said.executions, seed, said.target or tuple(TARGETS), first=said.first, tell=tell)
    rate = done.executions / max(done.seconds, 1e-9)
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(done.by_target.items()))
    print(f"{done.executions:,} executions in {done.seconds:.1f} s, {rate:,.0f} a second: {counts}")
    if not done.failed:
        return 0
    said.save.mkdir(parents=True, exist_ok=True)
    path = said.save / f"{done.failed}-{seed}-{done.number}.bin"
    path.write_bytes(done.data)
    print(
        f"{done.why}\nexecution {done.number} failed; its input is {path}. Again:\n  {sys.argv[0]} --replay {path}"
    )
    return 1


if __name__ == "__main__":
    faulthandler.enable()  # a crash in native code tells where
    sys.exit(main())
