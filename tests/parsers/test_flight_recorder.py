import gc
import json
import pickle
import resource
import struct
import time
import tracemalloc
from collections import OrderedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hcp_logscan.model.events import EVENTS
from hcp_logscan.parsers import flight_recorder
from hcp_logscan.parsers.flight_recorder import (
    MAX_DUMP_BYTES,
    DumpError,
    parse_dump,
)
from hcp_logscan.sources.dump_names import is_dump_name, rank_of_name

L0 = "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L0"
L1 = "HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L1"
P2P = "AttnFuncWithCPAndKVP2P"


def frame(name):
    return {"name": name, "filename": "/opt/te/pytorch/attention/context_parallel.py", "line": 512}


def entry(guid, description, name, *frames, **more):
    return {
        "frames": [frame(text) for text in (*frames, "forward", "<module>")],
        "record_id": 7,
        "pg_id": 3,
        "process_group": (guid, description),
        "thread_name": "python3",
        "thread_id": "139899845897088",
        "collective_seq_id": 1,
        "p2p_seq_id": 0,
        "op_id": 1,
        "profiling_name": name,
        "time_created_ns": 1795968725971368006,
        "duration_ms": 0.25,
        "input_sizes": [[4, 1024]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[4, 1024]],
        "output_dtypes": ["BFloat16"],
        "state": "completed",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": 1795968725971568006,
        "retired": True,
        "timeout_ms": 600000,
        "is_p2p": False,
        **more,
    }


def config(**groups):
    return {
        guid: {"name": guid, "desc": description, "ranks": ranks}
        for guid, (description, ranks) in groups.items()
    }


def hcp_dump():
    """Rank 5 of 8, CP 4 = [2, 2] on ranks 4 to 7; torch 2.10."""
    return {
        "version": "2.10",
        "comm_lib_version": "2.27.5",
        "pg_config": config(
            **{"0": ("default_pg", "[0, 1, 2, 3, 4, 5, 6, 7]"), "31": (L0, "[4, 5]")},
            **{"33": (L1, "[5, 7]"), "9": ("undefined", "[5]")},
        ),
        "pg_status": {"3": {"last_enqueued_collective": 12, "last_started_collective": -1}},
        "entries": [
            entry("0", "default_pg", "nccl:all_reduce_barrier"),
            entry("31", L0, "nccl:all_to_all", "flash_attn_a2a_communicate"),
            entry("33", L1, "nccl:send 0->1", "flash_attn_p2p_communicate", is_p2p=True),
            entry("33", L1, "nccl:recv 0<-1", "flash_attn_p2p_communicate", is_p2p=True),
            entry("33", L1, "nccl:coalesced", "flash_attn_p2p_communicate", f"{P2P}.forward"),
            entry("31", L0, "nccl:all_to_allv"),
            entry("33", L1, "nccl:send 1->0"),
            entry("9", "undefined", "nccl:_all_gather_base"),
        ],
    }


GROUPS = [
    ("0", "default_pg", list(range(8))),
    ("31", L0, [4, 5]),
    ("33", L1, [5, 7]),
    ("9", None, [5]),
]
ENTRIES = [
    ("0", "default_pg", "all_reduce_barrier", 1, False),
    ("31", L0, "all_to_all", 2, True),
    ("33", L1, "send", 2, True),
    ("33", L1, "recv", 1, True),
    ("33", L1, "coalesced", 1, True),
    ("9", None, "_all_gather_base", 1, False),
]


def rows(data, name="nccl_trace_rank_5"):
    """(groups, entries) as tuples; every row has exactly the columns of its table."""
    found = {"dump_groups": [], "dump_entries": [], "dump_states": []}
    for table, own in parse_dump(data, name):
        assert list(own) == list(EVENTS[table].columns)
        found[table].append(tuple(own.values()))
    return found["dump_groups"], found["dump_entries"]


def read(dump):
    return rows(pickle.dumps(dump, 2))


# Content


@pytest.mark.parametrize("protocol", range(6))
def test_pickle_of_every_protocol(protocol):
    assert rows(pickle.dumps(hcp_dump(), protocol)) == (GROUPS, ENTRIES)


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf", b"\n  "])
def test_json_whose_pairs_are_lists(bom):
    assert rows(bom + json.dumps(hcp_dump()).encode()) == (GROUPS, ENTRIES)


def test_json_of_torch_has_no_frames_and_an_empty_group():
    dump = hcp_dump()
    dump["pg_config"] = {"": {"desc": "", "name": "", "ranks": "[]"}}
    for one in dump["entries"]:
        del one["frames"]

    groups, entries = rows(json.dumps(dump).encode(), "_dump_fr_trace_json.rank5.json")

    assert groups == []
    assert [one[:4] for one in entries] == [one[:4] for one in ENTRIES]
    assert not any(one[4] for one in entries)


def test_memo_of_torchs_own_pickler_shares_strings_and_pairs():
    # as pickler.cpp writes it: keys and pairs are put when first seen and got afterwards
    def text(value, index):
        return b"X" + struct.pack("<i", len(value)) + value + b"q" + bytes([index])

    data = (
        b"\x80\x02}q\x00("
        + text(b"version", 1)
        + text(b"2.10", 2)
        + text(b"entries", 3)
        + b"]q\x04(}q\x05("
        + text(b"process_group", 6)
        + text(b"16", 7)
        + text(b"L0", 8)
        + b"\x86q\x09"
        + text(b"profiling_name", 10)
        + text(b"gloo:all_to_all", 11)
        + text(b"time_created_ns", 12)
        + b"\x8a\x08\x06\x10\x8c\x12\xfa\xff\xec\x18"
        + b"u}q\x0d(h\x06h\x09h\x0ah\x0bh\x0cNueu."
    )

    assert rows(data) == ([], [("16", "L0", "all_to_all", 2, False)])


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("nccl:all_to_all", "all_to_all"),
        ("nccl:all_to_allv", "all_to_all"),
        ("nccl:_all_to_all_base", "all_to_all"),
        ("gloo:all_to_all", "all_to_all"),
        ("ucc:alltoall_base", "all_to_all"),
        ("ucc:alltoall", "all_to_all"),
        ("NCCL:ALL_TO_ALL", "all_to_all"),
        ("all_to_all", "all_to_all"),
        ("nccl:send 0->1", "send"),
        ("nccl:send 12->107", "send"),
        ("gloo:recv 0<-1", "recv"),
        ("gloo:recvAnySource", "recv"),
        ("xccl:coalesced", "coalesced"),
        ("nccl:all_reduce", "all_reduce"),
        ("nccl:_reduce_scatter_base", "_reduce_scatter_base"),
    ],
)
def test_operation(name, operation):
    assert read({"entries": [entry("1", "x", name)], "version": "2.4"})[1] == [
        ("1", "x", operation, 1, False)
    ]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({"process_group": ("1", "tp")}, ("1", "tp")),
        ({"process_group": ["1", "tp"]}, ("1", "tp")),
        ({"process_group": ("1", "")}, ("1", None)),
        ({"process_group": ("1", "undefined")}, ("1", None)),
        ({"process_group": ("1",)}, ("1", None)),
        ({"process_group": ("1", "tp", "more")}, ("1", "tp")),
        ({"process_group": ("1", 5)}, ("1", None)),
        ({"process_group": ()}, (None, None)),
        ({"process_group": ("31", "")}, ("31", L0)),
        ({"process_group": "31"}, ("31", L0)),
        ({"pg_name": "31"}, ("31", L0)),
        ({"pg_name": ("1", "tp")}, ("1", "tp")),
        ({"process_group": 4}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_process_group_of_all_versions(group, expected):
    dump = {
        "pg_config": config(**{"31": (L0, "[0, 1]")}),
        "entries": [{"profiling_name": "nccl:all_to_all", **group}],
    }

    assert read(dump)[1] == [(*expected, "all_to_all", 1, False)]


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ("[0, 1]", [0, 1]),
        (" [0,1 , 17] ", [0, 1, 17]),
        ([3, 1], [3, 1]),
        ((3, 1), [3, 1]),
        ("[]", []),
        ([], []),
        ("0, 1", []),
        ("[0, 1", []),
        ("[0, -1]", []),
        ("[0, x]", []),
        ("[0,, 1]", []),
        ("[٣]", []),
        ("[1234567890]", []),
        ([0, True], []),
        ([0, -1], []),
        ([0, "1"], []),
        ([0, 10**30], []),
        (None, []),
        (7, []),
        ({"0": 1}, []),
        ("[" + "1," * 1_000 + "1]", []),
        ([1] * 1_001, []),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_ranks(ranks, expected, monkeypatch):
    monkeypatch.setattr(flight_recorder, "_MAX_RANKS", 1_000)
    assert read({"pg_config": {"4": {"desc": "x", "ranks": ranks}}})[0] == [("4", "x", expected)]


def test_all_groups_together_hold_a_million_ranks():
    shared = "[" + "1," * 399_999 + "1]"
    groups, _ = read({"pg_config": config(a=("x", shared), b=("x", shared), c=("x", shared))})

    assert [len(group[2]) for group in groups] == [400_000, 400_000, 0]


@pytest.mark.parametrize(
    "name",
    [
        *("AttnFuncWithCPAndKVP2P", "AttnFuncWithCPAndKVAllGather", "AttnFuncWithCPAndQKVOA2A"),
        *("flash_attn_a2a_communicate", "flash_attn_p2p_communicate", "attn_forward_func_with_cp"),
        "AttnFuncWithCPAndKVP2P.forward",
    ],
)
def test_frames_of_context_parallel_functions(name):
    assert read({"version": "2.4", "entries": [entry("1", "x", "nccl:send 0->1", name)]})[1][0][4]


@pytest.mark.parametrize(
    "frames",
    [None, "forward", 3, [None, 3, "x"], [{}], [{"name": 3}], [{"name": None}], {"name": P2P}],
)
def test_frames_of_a_wrong_shape_are_no_evidence(frames):
    one = entry("1", "x", "nccl:all_reduce", frames=frames)

    assert read({"version": "2.4", "entries": [one]})[1] == [("1", "x", "all_reduce", 1, False)]


def test_what_has_a_wrong_shape_is_skipped_and_the_rest_is_read():
    dump = hcp_dump()
    dump["entries"][:0] = [
        *(None, 4, "x", [], {}, {"profiling_name": None}, {"profiling_name": ["x"]}),
        *({"profiling_name": ""}, {"profiling_name": "->"}, {"profiling_name": "x" * 301}),
    ]
    dump["pg_config"] = {
        "": {"desc": "x"},
        "a": None,
        "b": "x",
        "c" * 301: {"desc": "x"},
        **dump["pg_config"],
    }

    assert read(dump) == (GROUPS, ENTRIES)


@pytest.mark.parametrize("key", ["pg_config", "entries", "version", "pg_status"])
@pytest.mark.parametrize("value", [None, 4, "x", [], {}, ()])
def test_missing_and_mistyped_parts(key, value):
    groups, entries = read({**hcp_dump(), key: value})

    assert groups == ([] if key == "pg_config" else GROUPS)
    assert entries == ([] if key == "entries" else ENTRIES)


def test_group_without_fields_and_texts_that_fit_no_table():
    dump = {
        "pg_config": {"4": {}, "5": {"desc": "a\ud800b"}, "6": {"desc": "x" * 301}},
        "entries": [{"profiling_name": "nccl:send 0->1", "process_group": ("5", "a\udcffb")}],
    }

    expected = (
        [("4", None, []), ("5", "a?b", []), ("6", None, [])],
        [("5", "a?b", "send", 1, False)],
    )
    assert rows(pickle.dumps(dump, 2)) == rows(json.dumps(dump).encode()) == expected


def test_dump_before_the_first_collective_has_no_rows():
    assert read({"version": "2.4", "pg_config": {}, "pg_status": {}, "entries": []}) == ([], [])
    assert read({"version": "1.5", "entries": []}) == ([], [])


def test_json_constants_and_repeated_keys():
    text = (
        b'{"version": NaN, "entries": [], "pg_config": -Infinity, "version": "2.4", "x": Infinity}'
    )

    assert rows(text) == ([], [])


@pytest.mark.parametrize("ranks", [" " * 900_000 + "x", "[" + "1," * 90_000 + "x]", ["x"] * 90_000])
def test_shared_malformed_ranks_are_looked_at_a_few_times_only(ranks, monkeypatch):
    monkeypatch.setattr(flight_recorder, "_MAX_RANKS", 100_000)
    dump = {"pg_config": {str(number): {"ranks": ranks} for number in range(5_000)}}
    begin = time.process_time()

    assert not any(group[2] for group in read(dump)[0])
    assert time.process_time() - begin < 10


# Names


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_3", 3),
        ("nccl_trace_rank_0", 0),
        ("nccl_trace_rank_00012", 12),
        ("nccl_trace_rank_node07_40", 40),
        ("nccl_trace_rank_gpu-12.cluster.local_40", 40),
        ("nccl_trace_rank_node07-40", 40),
        ("/tmp/rank_9/nccl_trace_rank_3", 3),
        ("run.17/nccl_trace_rank_3.json", 3),
        ("nccl_trace_rank_3.pickle", 3),
        ("nccl_trace_rank_3.pkl.gz", 3),
        ("nccl_trace_rank_3.gz", 3),
        ("nccl_trace_rank_3.zst", 3),
        ("comm_lib_trace_rank_3", 3),
        ("xccl_trace_rank_3", 3),
        ("job4711_nccl_trace_rank_3", 3),
        ("job4711.comm_lib_trace_rank_1023", 1023),
        ("_dump_3", 3),
        ("fr_dump_15", 15),
        ("run7_dump_15.pickle", 15),
        ("_dump_rank3", 3),
        ("_dump_fr_trace.rank0.pickle", 0),
        ("_dump_fr_trace_json.rank0.json", 0),
        ("_dump_fr_trace_json.rank12.json.gz", 12),
        ("torchcomm_fr_trace_5", 5),
        ("fr_trace_rank_5", 5),
        ("nccl_trace_rank_node0740", None),
    ],
)
def test_names_of_dumps(name, rank):
    assert is_dump_name(name)
    assert rank_of_name(name) == rank


@pytest.mark.parametrize(
    "name",
    [
        *("model.pkl", "rank_0.pkl", "data/rank_0.pickle", "config.json", "rank_3.json", "3", ""),
        *("nccl_trace_rank_", "nccl_trace_rank_x", "nccl_trace_rank_notes.json", "nccl_trace.json"),
        *("nccl_trace_rank_3.log", "nccl_trace_rank_3.txt", "nccl_trace_rank_3.py", "trace_rank_3"),
        *("nccl_trace_rank_3/stdout.log", "nccl_trace_rank_3/", "mynccl_trace_rank_3"),
        *("_dump_", "_dump_x", "_dump_3.log", "_dump_3x", "dumped_3", "dump_3.txt", "_dump_3.pt"),
        *(
            "log_dump_20310401.json",
            "nccl_topo_dump_3.xml",
            "heap_dump_3.hprof",
            "_dump_3.json.bak",
        ),
        *("fr_trace.py", "fr_trace", "_dump_fr_trace.rank.pickle", "fr_trace.json", "fr_trace3d"),
        *(
            "trace.rank0.pickle",
            "events.out.tfevents.1.host.3",
            "slurm-4711.out",
            "x" * 300 + "_dump_3",
        ),
        *("_dump_3\n", "_dump_٣", "nccl_trace_rank_3 (copy)"),
    ],
)
def test_names_of_other_files(name):
    assert not is_dump_name(name)
    assert rank_of_name(name) is None


# What is no dump


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\0", b"\0" * 100, b"# a log\n", b"iteration 1/10 | lm loss: 1.0\n", b"[]", b"[1]"),
        *(b"{}", b'{"a": 1}', b'{"entries": []}', b'{"entries": [{"x": 1}]}', b'{"version": "2"}'),
        *(pickle.dumps(value, 2) for value in ([], 3, "x", None, {}, {"x": 1}, {"segments": []})),
        b"\x1f\x8b\x08\x00",
    ],
)
def test_other_files_are_no_dumps(data):
    with pytest.raises(DumpError, match=r"^is no flight-recorder dump$"):
        parse_dump(data, "_dump_3")


def test_what_is_named_json_is_never_read_as_a_pickle():
    with pytest.raises(DumpError, match="is no flight-recorder dump"):
        parse_dump(pickle.dumps(hcp_dump()), "nccl_trace_rank_3.json.gz")


# Attacks


def refused(data, why, name="nccl_trace_rank_5"):
    """Refused with a reason, in seconds and in little memory (that of the input apart)."""
    gc.collect()
    tracemalloc.start()
    begin = time.process_time()
    try:
        with pytest.raises(DumpError, match=rf"^cannot be read safely: .*{why}"):
            parse_dump(data, name)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - begin < 20
    assert peak < 100 * len(data) + 4_000_000


class Evil:
    """What `pickle` would call: it must stay uncalled."""

    called = False

    @staticmethod
    def run():
        Evil.called = True
        return {}

    def __reduce__(self):
        return Evil.run, ()


@pytest.mark.parametrize("protocol", range(6))
def test_pickle_that_calls_a_function_is_refused(protocol):
    for value in (Evil(), {**hcp_dump(), "more": Evil()}, {"entries": [Evil()]}):
        with pytest.raises(DumpError, match=r"instruction (STACK_)?GLOBAL|is no flight"):
            parse_dump(pickle.dumps(value, protocol), "nccl_trace_rank_5")
    assert not Evil.called


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"cos\nsystem\n", "GLOBAL"),
        (b"X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93", "STACK_GLOBAL"),
        (b"Nq\x00)R", "REDUCE"),
        (b"}}b", "BUILD"),
        (b"(ios\nsystem\n", "INST"),
        (b"(No", "OBJ"),
        (b"N)\x81", "NEWOBJ"),
        (b"N)}\x92", "NEWOBJ_EX"),
        (b"\x82\x01", "EXT1"),
        (b"\x83\x01\x00", "EXT2"),
        (b"\x84\x01\x00\x00\x00", "EXT4"),
        (b"Px\n", "PERSID"),
        (b"NQ", "BINPERSID"),
        (b"\x96\x01\0\0\0\0\0\0\0x", "BYTEARRAY8"),
        (b"\x97", "NEXT_BUFFER"),
        (b"N\x98", "READONLY_BUFFER"),
        (b"\x8f", "EMPTY_SET"),
        (b"(\x91", "FROZENSET"),
    ],
)
def test_instructions_that_no_dump_needs(body, name):
    refused(b"\x80\x02" + body + b".", f"instruction {name}, which")


@pytest.mark.parametrize(
    "value", [{1}, frozenset({1}), bytearray(b"x"), OrderedDict(), 1j, range(3)]
)
def test_values_that_no_dump_holds(value):
    refused(pickle.dumps({"entries": [value]}, 5), "it holds the instruction")


@pytest.mark.parametrize(
    "put",
    [b"r\xff\xff\xff\x0f", b"r\xff\xff\xff\xff", b"p268435455\n", b"p-1\n", b"q\xff", b"q\x03"],
)
def test_memo_bomb_allocates_nothing(put):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(b"\x80\x02}" + put + b".", "impossible place")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB: no 2 GB


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02X\xff\xff\xff\xff{}.",
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xffabc.",
        b"\x80\x02T\xff\xff\xff\x7fabc.",
        b"\x80\x02T\xff\xff\xff\xffabc.",
        b"\x80\x03B\xff\xff\xff\x7fabc.",
        b"\x80\x02\x8b\xff\xff\xff\x7fabc.",
        b"\x80\x02\x8b\xff\xff\xff\xffabc.",
    ],
)
def test_lengths_beyond_the_end(data):
    refused(data, "cut off or damaged")


def test_frames_beyond_the_end_and_unknown_protocols():
    refused(b"\x80\x04\x95" + struct.pack("<Q", 2**40) + b"}.", "FRAME says")
    refused(b"\x80\x04\x95" + struct.pack("<Q", 2**64 - 1) + b"}.", "damaged|FRAME says")
    refused(b"\x80\x09}.", "PROTO says 9")


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (b"\x8a\xff" + b"\x01" * 255, "absurd"),
        (b"\x8b" + struct.pack("<i", 2_000_000) + b"\x01" * 2_000_000, "absurd"),
        (b"L" + b"9" * 4_000 + b"L\n", "absurd"),
        (b"I" + b"9" * 4_000 + b"\n", "absurd"),
        (b"L" + b"9" * 5_000_000 + b"L\n", "damaged"),
        (b"Ix\n", "damaged"),
        (b"Fx\n", "damaged"),
        (b"S'\\q'\n", "damaged|no text"),
        (b"S'\\777'\n", "damaged|no text"),
        (b"Sx\n", "damaged"),
        (b"X\x01\0\0\0\xff", "damaged"),
    ],
)
def test_absurd_numbers_and_damaged_scalars(number, why):
    refused(b"\x80\x02}(" + number + b"Nu0.", why)


def test_marks_without_end():
    refused(b"\x80\x02" + b"(" * 1_000_000 + b".", "nested")


@pytest.mark.parametrize(
    "body",
    [
        b"]" * 50_000 + b"a" * 49_999,
        b"]q\0" + b"0]h\0aq\0" * 20_000,
        b")" + b"\x85" * 100_000,
        b"N" + b"]" * 50_000 + b"a" * 49_999 + b"0",
    ],
    ids=["lists", "lists through the memo", "tuples", "dropped"],
)
def test_deep_values_are_harmless(body):
    with pytest.raises(DumpError, match="is no flight-recorder dump"):
        parse_dump(b"\x80\x02" + body + b".", "_dump_3")
    gc.collect()


def test_deep_values_inside_a_dump_are_passed_over():
    deep = b"]" * 50_000 + b"a" * 49_999
    data = b"\x80\x02}(X\x07\0\0\0versionX\x01\0\0\x002X\x07\0\0\0entries(" + deep + b"lu."

    assert rows(data) == ([], [])


def test_dicts_whose_keys_are_no_text_are_refused():
    deep_tuple = b")" + b"\x85" * 20_000  # its hash recurses in C
    colliding = b"".join(
        b"\x8a\x08" + struct.pack("<q", number * (2**61 - 1) >> 1) + b"N" for number in range(4)
    )
    for keys in (
        deep_tuple + b"N",
        colliding,
        b"K\x01N",
        b"NN",
        b"C\x01xN",
        b"G" + b"\0" * 8 + b"N",
    ):
        refused(b"\x80\x03}(" + keys + b"u.", "keys are no text")
        refused(b"\x80\x03(" + keys + b"d.", "keys are no text")
    refused(b"\x80\x02}K\x01Ns.", "keys are no text")


def test_billion_laughs_in_the_frames(monkeypatch):
    monkeypatch.setattr(flight_recorder, "_MAX_NODES", 300_000)
    one = entry("1", "x", "nccl:all_reduce")
    one["frames"] = [frame("forward")] * 20_000
    dump = {"version": "2.4", "entries": [one] * 20_000}
    data = pickle.dumps(dump, 2)

    assert len(data) < 200_000
    refused(data, "frames")


def test_billion_laughs_that_nobody_looks_at():
    level = ["ha"]
    for _ in range(40):
        level = [level] * 1_000
    dump = {**hcp_dump(), "entries": [*hcp_dump()["entries"], level], "more": level}

    assert read(dump) == (GROUPS, ENTRIES)


def test_list_that_holds_itself():
    dump = hcp_dump()
    dump["entries"].append(dump["entries"])
    dump["entries"].append(entry("9", "undefined", "nccl:_all_gather_base", frames=dump["entries"]))
    dump["pg_config"]["0"]["more"] = dump

    groups, entries = read(dump)

    assert groups == GROUPS
    assert entries[-1] == ("9", None, "_all_gather_base", 2, False)


def test_shared_long_texts_do_not_multiply():
    long = "nccl:" + "x" * 1_000_000
    one = entry("1", "x", long)
    dump = {"version": "2.4", "entries": [one] * 100_000}
    other = entry("1", long, "nccl:send 0->1", long + P2P)
    dump["entries"] += [other] * 20_000

    assert read(dump)[1] == [("1", None, "send", 20_000, False)]


def test_too_many_rows():
    groups = {str(number): {"desc": "x"} for number in range(10_001)}
    refused(pickle.dumps({"pg_config": groups}, 2), "process groups")
    entries = [{"profiling_name": f"nccl:x{number}"} for number in range(10_001)]
    with pytest.raises(DumpError, match="kinds of collectives"):
        read({"version": "2.4", "entries": entries})


@pytest.mark.parametrize("protocol", range(6))
def test_truncated_at_every_byte(protocol):
    data = pickle.dumps({**hcp_dump(), "entries": hcp_dump()["entries"][:2]}, protocol)
    for end in range(len(data)):
        with pytest.raises(DumpError):
            parse_dump(data[:end], "nccl_trace_rank_5")


@pytest.mark.parametrize("tail", [b"x", b"\n", b".", b"\x80\x02}.", b"\0\0x"])
def test_data_after_the_end(tail):
    refused(pickle.dumps(hcp_dump(), 2) + tail, "follows its end")


def test_zero_padding_after_the_end():
    assert rows(pickle.dumps(hcp_dump(), 2) + b"\0" * 4096) == (GROUPS, ENTRIES)


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"",
            b"a",
            b"Na",
            b"}Na",
            b"NNa",
            b"(NNe",
            b"}(Nu",
            b"(Nd",
            b"](NNu",
            b"]NNs",
            b"s",
            b"Ns",
        ),
        *(b"h\x05", b"g5\n", b"j\xff\xff\xff\xff", b"q\0", b"\x94", b"e", b"u", b"t", b"l", b"d"),
        *(b"\x86", b"N\x86", b"\x85", b"NN\x87", b"0", b"1", b"2", b"(", b"NN", b"(N", b"\xff"),
    ],
)
def test_damaged_programs(body):
    refused(b"\x80\x02" + body + b".", "cut off or damaged")


def test_lesser_instructions_of_other_picklers():
    body = b"N0N200(NN1(I01\nI00\nF1.5\nL5L\nt0S'a'\n0U\x01a0T\x01\0\0\0a0C\x01a0G" + b"\0" * 8
    body += b"0\x8a\x000\x8b\0\0\0\x000(lp0\n0(dp1\n0g0\n0J\xff\xff\xff\xff0M\x01\x000"
    data = b"\x80\x03" + body + pickle.dumps(hcp_dump(), 2)[2:]

    assert rows(data) == (GROUPS, ENTRIES)


def test_too_many_instructions(monkeypatch):
    monkeypatch.setattr(flight_recorder, "_MAX_NODES", 100_000)
    with pytest.raises(DumpError, match="instructions"):
        parse_dump(b"\x80\x02" + b"N0" * 50_000 + b"}.", "_dump_3")


def test_size_is_bounded():
    with pytest.raises(DumpError, match="larger than 64 MiB"):
        parse_dump(bytes(MAX_DUMP_BYTES + 1), "_dump_3")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a":' * 1_000_000, "nested"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested"),
        (b'{"a":' + b"[" * 65, "nested"),
        (b'{"a":[' + b"[]," * 1_600_000 + b"0]}", "values"),
        (b'{"entries": [', "ends early"),
        (b'{"entries": "' + b'\\"' * 1_000_000, "ends early"),
        (b'{"entries": [}', "ends early|damaged"),
        (b'{"entries": ]}', "damaged"),
        (b'{"entries": []} x', "damaged"),
        (b'{"entries": []}}', "damaged"),
        (b'{"version": ' + b"9" * 5_000 + b"}", "damaged"),
        (b"{\"version\": '2'}", "damaged"),
        (b"{\xff\xfe", "ends early"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_attacks_in_json(text, why):
    refused(text, why, "_dump_fr_trace_json.rank0.json")


def test_invalid_bytes_in_json_texts_cost_only_themselves():
    data = json.dumps(hcp_dump()).encode().replace(b'"python3"', b'"py\xff\xfe"')

    assert rows(data) == (GROUPS, ENTRIES)


def test_brackets_inside_json_texts_do_not_count():
    dump = {**hcp_dump(), "more": '[{"\\' * 1_000 + '"'}

    assert rows(json.dumps(dump).encode()) == (GROUPS, ENTRIES)


# Anything


def only_rows_or_refusal(data, name):
    try:
        found = parse_dump(data, name)
    except DumpError:
        return
    for table, own in found:
        assert list(own) == list(EVENTS[table].columns)


NAMES = st.sampled_from(["_dump_3", "nccl_trace_rank_3.json", "x"])
PICKLES = [pickle.dumps(hcp_dump(), protocol) for protocol in range(6)]
ANYTHING = st.one_of(
    st.binary(max_size=400),
    st.binary(max_size=400).map(lambda data: b"\x80\x02" + data + b"."),
    st.lists(
        st.sampled_from(
            [bytes([code]) for code in b"()]}NaestdlubqhpgX\x85\x86\x94.0125KIVJ\n\0\x01"]
        )
    ).map(lambda codes: b"}" + b"".join(codes) + b"."),
    st.text(max_size=200).map(lambda text: b"{" + text.encode("utf-8", "replace")),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "entries",
                    "pg_config",
                    "frames",
                    "name",
                    "desc",
                    "ranks",
                    "process_group",
                    "profiling_name",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(ANYTHING, NAMES)
def test_random_bytes_give_rows_or_a_refusal(data, name):
    only_rows_or_refusal(data, name)


@QUICK
@given(
    st.sampled_from([*PICKLES, json.dumps(hcp_dump()).encode()]),
    st.lists(
        st.tuples(st.integers(0, 6_000), st.integers(0, 3), st.binary(max_size=6)),
        min_size=1,
        max_size=6,
    ),
    NAMES,
)
def test_mutated_dumps_give_rows_or_a_refusal(data, changes, name):
    for place, removed, added in changes:
        at = place % len(data)
        data = data[:at] + added + data[at + removed :]
    only_rows_or_refusal(data, name)


@QUICK
@given(
    st.dictionaries(st.sampled_from(["entries", "pg_config", "version"]), JSON_VALUES),
    st.integers(0, 5),
)
def test_any_shape_gives_rows_or_a_refusal(dump, protocol):
    only_rows_or_refusal(pickle.dumps(dump, protocol), "_dump_3")
    only_rows_or_refusal(json.dumps(dump).encode("utf-8", "replace"), "_dump_3.json")


def test_entries_and_groups_of_any_shape_side_by_side():
    entries = [
        {"profiling_name": "nccl:send 0->1", "process_group": value, "frames": value}
        for value in (None, 1, "x", [], [None, None], {"a": 1}, (("x",), "y"))
    ]

    assert sum(row[3] for row in read({"version": "2.4", "entries": entries})[1]) == len(entries)


def test_real_size_is_quick():
    dump = hcp_dump()
    dump["entries"] = [
        entry("31", L0, "nccl:all_to_all", *[f"f{n}" for n in range(30)]) for _ in range(300)
    ]
    begin = time.process_time()

    assert read(dump)[1] == [("31", L0, "all_to_all", 300, False)]
    assert time.process_time() - begin < 10


def test_module_never_loads_a_pickle():
    assert not hasattr(flight_recorder, "pickle")
