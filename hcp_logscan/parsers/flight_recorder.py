"""Flight-recorder dumps: which collectives ran on which process group, as c10d itself recorded it.

Written from PyTorch ``torch/csrc/distributed/c10d/FlightRecorder.cpp``,
``FlightRecorderDetail.hpp`` and ``torch/csrc/jit/serialization/pickler.cpp`` (torch 2.3 to 2.13,
dump versions 2.0 to 2.10): a pickle of protocol 2 that holds nothing but dicts, lists, tuples and
scalars, or JSON (``_dump_nccl_trace_json``, ``_dump_fr_trace_json``; without frames). Names:
PyTorch's default prefixes, Megatron-LM's ``--flight-recorder-dump-path`` and Megatron-Bridge's
``dist.flight_recorder_dump_path`` (a directory gives ``_dump_<rank>``). The frames are functions
of Transformer Engine ``pytorch/attention`` (1.12 to 2.18).

A dump comes from strangers, and a pickle is a program. It is never handed to ``pickle``: its
instructions are decoded by ``pickletools`` and carried out here, and only those that build plain
data exist. Keys of dicts are text, because hashing anything else can be made to take hours (numbers
that collide) or to crash the interpreter (deep tuples).
"""

from __future__ import annotations

import json
import pickletools
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from hcp_logscan.parsers.dump_states import states

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DUMP_BYTES: Final = 64 * 1024 * 1024
"""Size of the largest dump that is read, uncompressed; 2000 entries make 0.5 to 3 MB."""

_MAX_NODES: Final = 3_000_000
"Instructions of a pickle, values of a JSON text, entries and frames that are looked at."

_MAX_NESTING: Final = 64
_MAX_INTEGER_BITS: Final = 512
_MAX_ROWS: Final = 10_000
_MAX_RANKS: Final = 1_000_000
"Numbers in all groups of a dump: one rank of a job with 100,000 is in a few large groups."

_MAX_TEXT: Final = 300
"Characters of a name or description; one memoised text can stand in every entry."

_JSON_NAME: Final = re.compile(r"\.json(?:\.(?:gz|zst|xz|bz2))?$")


class DumpError(ValueError):
    """A dump that cannot be read safely. The message continues the file's name."""


class NoDumpError(DumpError):
    """A file that is named like a dump and is none."""


def parse_dump(data: bytes, name: str) -> list[tuple[str, dict[str, Any]]]:
    """(event table, own columns) of every group, of every kind of collective, of every state.

    `data` is the uncompressed file. Its first byte tells JSON from pickle, but what is named
    `.json` is never read as a pickle. What has an unexpected shape inside a dump is skipped.

    Raises:
        NoDumpError: it is no dump.
        DumpError: it is cut off, or it cannot be read safely.
    """
    if len(data) > MAX_DUMP_BYTES:
        _refuse(f"it is larger than {MAX_DUMP_BYTES // 1024**2} MiB")
    if data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        dump = load_json(data)
    elif data[:1] in {b"\x80", b"(", b"}"} and not _JSON_NAME.search(name):
        dump = _load_pickle(data)
    else:
        raise NoDumpError("is no flight-recorder dump")
    if not isinstance(dump, dict):
        raise NoDumpError("is no flight-recorder dump")
    groups = list(_groups(dump))
    descriptions = {group["guid"]: group["description"] for group in groups}
    entries = _entries(dump, descriptions)
    standing = list(states(_named(dump, descriptions)))
    known = {"pg_config", "pg_status"} & dump.keys() or {"version", "entries"} <= dump.keys()
    if not known and not entries:
        raise NoDumpError("is no flight-recorder dump")
    tables = (("dump_groups", groups), ("dump_entries", entries), ("dump_states", standing))
    return [(table, row) for table, rows in tables for row in rows]


def _refuse(why: str) -> NoReturn:
    raise DumpError(f"cannot be read safely: {why}")


# JSON

_JSON_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)


def load_json(data: bytes) -> Any:
    """The value of a JSON text, after its values are counted and its nesting is measured."""
    if sum(map(data.count, (b",", b":", b"[", b"{"))) > _MAX_NODES:
        _refuse(f"it holds more than {_MAX_NODES:,} values")
    depth = 0
    for match in _JSON_TOKEN.finditer(data):
        token = data[match.start()]
        if token in b"[{":
            depth += 1
            if depth > _MAX_NESTING:
                _refuse(f"it is nested more than {_MAX_NESTING} levels deep")
        elif token in b"]}":
            depth -= 1
    if depth > 0:
        _refuse("it ends early")
    text = data.decode("utf-8-sig", "replace")
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        _refuse("it is damaged JSON")


# Pickle

_SCALARS: Final = frozenset(
    {"INT", "LONG", "LONG1", "LONG4", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT"}
    | {"UNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINUNICODE"}
    | {"STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "BINBYTES8", "SHORT_BINBYTES"}
)
_CONSTANTS: Final = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_PUTS: Final = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_GETS: Final = frozenset({"GET", "BINGET", "LONG_BINGET"})
_TUPLES: Final = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def _load_pickle(data: bytes) -> Any:
    machine, end = _Machine(), 0
    try:
        for count, (opcode, argument, position) in enumerate(pickletools.genops(data)):
            if count >= _MAX_NODES:
                _refuse(f"it holds more than {_MAX_NODES:,} instructions")
            assert position is not None  # bytes have positions
            end = position + 1
            if opcode.name == "FRAME" and (argument or 0) > len(data) - end:
                _refuse(f"its FRAME says {argument}")
            machine.step(opcode.name, argument, count)
        value = machine.result()
    except DumpError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, Warning):
        _refuse("it is cut off or damaged")  # a Warning: odd escapes, where warnings are errors
    if data[end:].strip(b"\0"):
        _refuse("other data follows its end")
    return value


class _Machine:
    """Carries out the instructions of a pickle that build plain data; there are no others.

    `pickletools` has bounded every length by the bytes that are left. The memo is a dict: an index
    costs nothing. IndexError, KeyError and TypeError mean a damaged pickle.
    """

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any, count: int) -> None:
        """One instruction; `count` were carried out before it."""
        stack = self._stack
        if name in _SCALARS:
            if isinstance(argument, int) and argument.bit_length() > _MAX_INTEGER_BITS:
                _refuse("it holds a number of absurd size")
            stack.append(argument)
        elif name in _GETS:
            stack.append(self._memo[argument])
        elif name in _PUTS:
            index = len(self._memo) if name == "MEMOIZE" else argument
            if not 0 <= index <= count:
                _refuse(f"it stores a value at the impossible place {index}")
            self._memo[index] = stack[-1]
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            self._tuple(_TUPLES[name])
        elif name == "MARK":
            if len(self._below) >= _MAX_NESTING:
                _refuse(f"it is nested more than {_MAX_NESTING} levels deep")
            self._below.append(stack)
            self._stack = []
        elif name == "PROTO":
            if argument > 5:
                _refuse(f"its PROTO says {argument}")
        elif name not in {"FRAME", "STOP"}:
            self._build(name)

    def _tuple(self, size: int) -> None:
        items = [self._stack.pop() for _ in range(size)]
        self._stack.append(tuple(reversed(items)))

    def _build(self, name: str) -> None:
        match name:
            case "EMPTY_DICT":
                self._stack.append({})
            case "EMPTY_LIST":
                self._stack.append([])
            case "APPEND":
                self._extend([self._stack.pop()])
            case "APPENDS":
                self._extend(self._since_mark())
            case "SETITEM":
                value, key = self._stack.pop(), self._stack.pop()
                self._update([key, value])
            case "SETITEMS":
                self._update(self._since_mark())
            case "LIST":
                items = self._since_mark()
                self._stack.append(items)
            case "DICT":
                items = self._since_mark()
                self._stack.append({})
                self._update(items)
            case "TUPLE":
                items = self._since_mark()
                self._stack.append(tuple(items))
            case "POP":
                self._stack.pop()
            case "POP_MARK":
                self._since_mark()
            case "DUP":
                self._stack.append(self._stack[-1])
            case _:
                _refuse(f"it holds the instruction {name}, which no dump needs")

    def _since_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._below.pop()
        return items

    def _extend(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(items)

    def _update(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise TypeError
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str):
                _refuse("it holds a dict whose keys are no text")
            target[key] = value

    def result(self) -> Any:
        """The value that is left at the end."""
        if self._below or len(self._stack) != 1:
            raise IndexError
        return self._stack[0]


# Content

_OPERATION: Final = re.compile(r"(?:\w*:)*\s*(\w+)", re.ASCII)
_SAME: Final = {
    "all_to_allv": "all_to_all",
    "all_to_all_single": "all_to_all",
    "_all_to_all_base": "all_to_all",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
    "recvanysource": "recv",
}
_CP_FUNCTIONS: Final = (
    "AttnFuncWithCPAndKVP2P",
    "AttnFuncWithCPAndKVAllGather",
    "AttnFuncWithCPAndQKVOA2A",
    "flash_attn_a2a_communicate",
    "flash_attn_p2p_communicate",
    "attn_forward_func_with_cp",
)


def _groups(dump: dict[str, Any]) -> Iterator[dict[str, Any]]:
    config = dump.get("pg_config")
    if not isinstance(config, dict):
        return
    if len(config) > _MAX_ROWS:
        _refuse(f"it holds more than {_MAX_ROWS:,} process groups")
    room, work = _MAX_RANKS, 10 * _MAX_RANKS  # shared texts cost work each time
    for key, group in config.items():
        if not isinstance(group, dict):
            continue
        guid = _text(key) or _text(group.get("name"))
        if guid is None:
            continue  # without NCCL communicators there is one group that says nothing
        members = group.get("ranks")
        size = len(members) if isinstance(members, (str, list, tuple)) else 0
        ranks: list[int] = []
        if size <= work:
            ranks = _ranks(members, room)
            room, work = room - len(ranks), work - size
        yield {"guid": guid, "description": _description(group.get("desc")), "ranks": ranks}


def _named(
    dump: dict[str, Any], descriptions: dict[str, str | None]
) -> Iterator[tuple[dict[str, Any], str | None, str | None, str]]:
    """(entry, group name, description, operation) of every entry of a known shape."""
    entries = dump.get("entries")
    if not isinstance(entries, (list, tuple)):
        return
    for entry in entries:
        operation = _operation(entry.get("profiling_name")) if isinstance(entry, dict) else None
        if operation is None:
            continue
        guid, description = _process_group(entry)
        if description is None and guid is not None:
            description = descriptions.get(guid)
        yield entry, guid, description, operation


def _entries(
    dump: dict[str, Any], descriptions: dict[str, str | None]
) -> tuple[dict[str, Any], ...]:
    """Entries of one kind on one group, folded; in the order of the first of each."""
    folded: dict[tuple[str | None, str | None, str], dict[str, Any]] = {}
    known: dict[str, bool] = {}
    entries = dump.get("entries")
    room = _MAX_NODES - (len(entries) if isinstance(entries, (list, tuple)) else 0)
    for entry, guid, description, operation in _named(dump, descriptions):
        if (key := (guid, description, operation)) not in folded:
            if len(folded) >= _MAX_ROWS:
                _refuse(f"it holds more than {_MAX_ROWS:,} kinds of collectives")
            folded[key] = dict(
                zip(("guid", "description", "operation"), key, strict=True),
                entries=0,
                cp_frames=False,
            )
        row = folded[key]
        row["entries"] += 1
        frames = entry.get("frames")
        if isinstance(frames, (list, tuple)) and not row["cp_frames"]:
            room -= len(frames)
            if room < 0:
                _refuse(f"it holds more than {_MAX_NODES:,} frames")
            row["cp_frames"] = any(_is_cp_frame(frame, known) for frame in frames)
    return tuple(folded.values())


def _is_cp_frame(frame: Any, known: dict[str, bool]) -> bool:
    name = frame.get("name") if isinstance(frame, dict) else None
    if not isinstance(name, str):
        return False
    if name not in known:
        known[name] = any(function in name[:_MAX_TEXT] for function in _CP_FUNCTIONS)
    return known[name]


def _process_group(entry: dict[str, Any]) -> tuple[str | None, str | None]:
    """(guid, description): a pair, in older dumps the name alone."""
    group = entry.get("process_group", entry.get("pg_name"))
    if isinstance(group, (list, tuple)):
        guid, description = (*group[:2], None, None)[:2]
        return _text(guid), _description(description)
    return _text(group), None


def _operation(profiling_name: Any) -> str | None:
    """The bare word of `nccl:all_to_all`, `nccl:send 0->1`, `gloo:recv 0<-1`."""
    text = _text(profiling_name)
    match = text and _OPERATION.match(text.lower())
    return _SAME.get(match[1], match[1]) if match else None


def _description(value: Any) -> str | None:
    text = _text(value)
    return None if text == "undefined" else text


def _text(value: Any) -> str | None:
    """Text of a sane length; None for anything else and for empty text."""
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_TEXT:
        return None
    return value.encode("utf-8", "replace").decode()  # lone surrogates fit in no table


def _ranks(value: Any, room: int) -> list[int]:
    """The numbers of `"[0, 1]"` or of a list; empty if any of it is malformed or too much."""
    if isinstance(value, str):
        inner = value.strip()
        if not (inner.startswith("[") and inner.endswith("]")) or inner.count(",") >= room:
            return []
        words = [word.strip() for word in inner[1:-1].split(",")]
        if not all(word.isascii() and word.isdecimal() and len(word) <= 9 for word in words):
            return []
        return [int(word) for word in words]
    if not isinstance(value, (list, tuple)) or len(value) > room:
        return []
    if not all(type(rank) is int and 0 <= rank < 10**9 for rank in value):
        return []
    return list(value)
