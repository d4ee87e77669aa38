"""What stands before every line of a file is taken off; what only looks like it is left alone."""

import pytest

from hcp_logscan.engine.run import scan_files
from hcp_logscan.sources import leads
from hcp_logscan.sources.discover import discover

SAID = ("[default0]:using world size: 8", "[default1]:x", "", "    y: 3", "done: 3 of 4")


def head(form, names=("1", "2"), said=SAID):
    return "".join(form.format(n, text) + "\n" for text in said for n in names).encode()


@pytest.mark.parametrize(
    ("form", "found", "host"),
    [
        ("node{}: {}", ("host",), b"node1"),
        ("10.0.0.{}: {}", ("host",), b"10.0.0.1"),
        ("gpu-a{}.cluster.local: {}", ("host",), b"gpu-a1.cluster.local"),
        ("job-worker-{} pytorch {}", ("stern",), b"job-worker-1"),
        ("\x1b[32mset-{}-x7f2k\x1b[0m \x1b[32mmain\x1b[0m {}", ("stern",), b"set-1-x7f2k"),
        ("trainer-{}  | {}", ("compose",), b"trainer-1"),
        ("trainer-{}  | 2026-03-01T09:14:20.123456789Z {}", ("compose", "time"), b"trainer-1"),
        ("[pod/w-{}/c] 2026-03-01T09:14:20.123456789Z {}", ("time",), b"w-1"),
    ],
)
def test_a_lead_that_nearly_all_lines_have_becomes_the_name_of_a_node(form, found, host):
    text = head(form) + b"Error from server: the container is gone\n"
    assert leads.detect(text) == found

    lines = [leads.rewrite(found, line) for line in text.splitlines()]
    assert lines[0].startswith(b"[pod/" + host + b"/")
    assert [line.partition(b"] ")[2].decode() for line in lines[:-1:2]] == list(SAID)
    assert lines[-1] == b"Error from server: the container is gone"


def test_times_of_a_container_runtime_are_taken_off():
    text = head("2026-03-01T09:14:2{}.123456789+08:00 stdout F {}")

    assert leads.detect(text) == ("time",)
    assert leads.rewrite(("time",), text.splitlines()[0]) == SAID[0].encode()


def test_the_blank_of_mpirun_5_is_taken_off_and_that_of_a_line_of_mpirun_4_is_not():
    new, old = head("[1,{}]<stdout>: {}"), head("[1,{}]<stdout>:{}")

    assert leads.detect(new) == ("tag",)
    assert leads.rewrite(("tag",), b"[1,2]<stdout>:  iteration") == b"[1,2]<stdout>: iteration"
    assert leads.detect(old) == ()


@pytest.mark.parametrize(
    "form",
    [
        "{}: {}",  # srun --label: a prefix of its own
        "INFO: {}{}",
        "rank{}: {}",
        "step{}: {}",
        "[rank{}]: {}",
        "2026-03-01 09:14:20,123 INFO {}{}",
        "iteration {} loss {}",
        "w{}:1234:1234 [0] NCCL INFO {}",
    ],
)
def test_what_is_no_node_is_left_alone(form):
    assert leads.detect(head(form)) == ()


def test_names_that_each_stand_once_are_no_nodes():
    counted = "".join(f"shard{n}: 12 documents\n" for n in range(40)).encode()

    assert leads.detect(counted) == ()


def test_a_lead_that_some_lines_lack_is_none():
    mixed = b"node1: x\nnode1: y\n" * 10 + b"Setting up the job\n" * 5

    assert leads.detect(mixed) == ()
    assert leads.detect(b"node1: x\n" * 4) == ()
    assert leads.detect(b"") == ()


def test_lines_that_begin_like_a_node_stay_what_they_are(tmp_path):
    (tmp_path / "train.log").write_text(
        "node1: cannot reach the store\n[Rank 3] (after 5 iterations) memory (MB) | x: 0.00\n" * 6
        + "\n".join("plain text" for _ in range(30))
    )
    found = discover(tmp_path)

    assert found.files[0].leads == ()
    assert set(scan_files(found)["rank_lines"]["stream"]) == {""}


def test_no_head_breaks_the_detection():
    for text in (b"\xff\xfe\x00: \n" * 9, b": \n" * 9, b"\x1b[" * 50 + b"\n" * 9, b"a1:" * 9000):
        assert leads.detect(text) == ()
