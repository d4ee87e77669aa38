"""Where the groups of a flight-recorder dump stand."""

import pickle

import pytest

from hcp_logscan.parsers.dump_states import MAX_UNFINISHED
from hcp_logscan.parsers.flight_recorder import parse_dump


def entry(number, state="completed", *, group=("7", "dp"), name="nccl:all_reduce", **more):
    return {
        "process_group": group,
        "collective_seq_id": number,
        "profiling_name": name,
        "input_sizes": [[4, 8]],
        "output_sizes": [[4, 8]],
        "state": state,
        "is_p2p": False,
        **more,
    }


def states(*entries):
    dump = {"version": "2.10", "entries": list(entries)}
    rows = [
        own for table, own in parse_dump(pickle.dumps(dump, 2), "_dump_3") if table[5:] == "states"
    ]
    return [
        (row["sequence"], row["operation"], row["numel_in"], row["state"], row["last_enqueued"])
        for row in rows
    ]


def test_the_last_that_ended_and_those_that_did_not():
    found = states(entry(10), entry(11), entry(12, "started"), entry(13, "scheduled"))

    assert found == [
        (11, "all_reduce", 32, "completed", 13),
        (12, "all_reduce", 32, "started", 13),
        (13, "all_reduce", 32, "scheduled", 13),
    ]


def test_a_retired_entry_of_gloo_has_ended():
    assert states(entry(1, "scheduled", retired=True))[0][3] == "completed"


def test_send_and_receive_count_on_their_own():
    found = states(
        entry(5),
        entry(6, "started", name="nccl:send 0->1", is_p2p=True),
        entry(6, "started", name="nccl:coalesced"),
    )

    assert found == [(5, "all_reduce", 32, "completed", 5)]


def test_calls_that_share_a_number_compare_with_nothing():
    found = states(entry(5), entry(6, "started"), entry(6, "started", name="nccl:broadcast"))

    assert found[1] == (6, "coalesced", None, "started", 6)


def test_groups_apart_and_old_names_of_the_number():
    old = entry(None, "started", group=("8", "tp"), seq_id=3)
    del old["collective_seq_id"]

    assert [row[0] for row in states(entry(5), old)] == [5, 3]


def test_unfinished_entries_are_bounded():
    found = states(*(entry(n, "scheduled") for n in range(1000)))

    assert [row[0] for row in found] == list(range(MAX_UNFINISHED))
    assert found[0][4] == 999


@pytest.mark.parametrize(
    "sizes",
    [
        None,
        [],
        "x",
        [3],
        [[-1]],
        [["4"]],
        [[True]],
        [[1] * 17],
        [[1]] * 65,
        [[2**59, 2**59, 2**59]],
    ],
    ids=lambda value: repr(value)[:12],
)
def test_sizes_of_an_odd_shape_are_not_known(sizes):
    assert states(entry(1, "started", input_sizes=sizes))[0][2] is None


@pytest.mark.parametrize("number", [None, -1, 2**70, True, "3", 1.5])
def test_numbers_of_an_odd_shape_are_no_numbers(number):
    assert states(entry(number)) == []


def test_sizes_of_several_tensors_add_up():
    assert states(entry(1, "started", input_sizes=[[4, 8], [], [2]]))[0][2] == 35
