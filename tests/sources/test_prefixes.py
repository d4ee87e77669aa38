import pytest

from hcp_logscan.sources import prefixes


@pytest.mark.parametrize(
    ("line", "rank", "local", "label", "replica", "rest"),
    [
        (b"[rank3]: Traceback", 3, None, None, None, b"Traceback"),
        (b"[rank3]:   File", 3, None, None, None, b"  File"),
        (b"[default3]:[rank11]:   File", 11, 3, None, None, b"  File"),
        (b" 3: [default1]: iteration", None, 1, 3, None, b" iteration"),
        (b"0: Training epoch 0", None, None, 0, None, b"Training epoch 0"),
        (b"12: ", None, None, 12, None, b""),
        (b"ain_fp8_mx/2 [default0]:> init", None, 0, None, 2, b"> init"),
        (b"(Actor[rank=9] pid=77, ip=10.0.0.5) line", 9, None, None, None, b"line"),
        (b"(Actor pid=77) line", None, None, None, None, b"line"),
        (b"1078:[default0]:[rank0]: x", 0, 0, None, None, b"x"),
        (b"2026-05-18 12:51:27.1246 [rank0]: x", 0, None, None, None, b"x"),
        (b"[2025-11-20T14:55:23+08:00] ining/0 step", None, None, None, 0, b"step"),
        (b"12:30:11 not a label", None, None, None, None, b"12:30:11 not a label"),
        (b" [2026-03-01 09:14:20] iteration", None, None, None, None, None),
        (b"  train_iters: 10", None, None, None, None, None),
        (b"[rank3]:[E301 10:01:02 f.cpp:1] x", 3, None, None, None, b"[E301 10:01:02 f.cpp:1] x"),
    ],
)
def test_prefixes_are_stripped_and_say_the_rank(line, rank, local, label, replica, rest):
    prefix, text = prefixes.split(line)

    assert (prefix.rank, prefix.local_rank, prefix.label, prefix.replica) == (
        rank,
        local,
        label,
        replica,
    )
    assert text == (line if rest is None else rest)


def test_streams_of_one_file_have_different_keys():
    keys = {
        prefixes.split(line)[0].key for line in (b"[default0]:a", b"[default1]:a", b"0: a", b"a")
    }

    assert len(keys) == 4


def test_times_in_front_do_not_change_the_key():
    early, late = (
        prefixes.split(f"2026-05-18 12:51:{second}.1 [rank4]: x".encode())[0].key
        for second in (10, 11)
    )

    assert early == late


def test_colours_and_carriage_return_are_cleaned():
    assert prefixes.clean(b"\x1b[32m[rank1]:\x1b[0m hello\r") == b"[rank1]: hello"


def test_a_prefix_holds_for_what_follows_a_carriage_return():
    before, _ = prefixes.split(b"3: [default1]:Loading:  33%")
    assert prefixes.split_after(before, b"iteration 1/ 2 |") == (before, b"iteration 1/ 2 |")
    own, rest = prefixes.split_after(before, b"[rank2]: Traceback")
    assert (own.rank, own.label, rest) == (2, None, b"Traceback")


@pytest.mark.parametrize(
    ("line", "label", "host", "local", "rest"),
    [
        (b"[1,3]<stdout>: iteration", 3, None, None, b" iteration"),
        (b"[1,12]<stderr>:[rank12]: x", 12, None, None, b"x"),
        (b"[prterun-node01-5220@1,0]<stdout>:[default1]:x", 0, None, 1, b"x"),
        (b"[1,3] x", None, None, None, b"[1,3] x"),
        (b"[pod/job-worker-1/pytorch] [default1]:x", None, "job-worker-1", 1, b"x"),
        (b"[pod/job-worker-1/pytorch]", None, "job-worker-1", None, b""),
        (b"[pod/job-worker-1/pytorch] 3: x", 3, "job-worker-1", None, b"x"),
        (b"[pod/a b/c] x", None, None, None, b"[pod/a b/c] x"),
        (b"node01: x", None, None, None, b"node01: x"),
        (b"job-worker-1 pytorch x", None, None, None, b"job-worker-1 pytorch x"),
        (b"svc-1  | x", None, None, None, b"svc-1  | x"),
    ],
)
def test_prefixes_of_other_launchers_say_task_and_node(line, label, host, local, rest):
    prefix, text = prefixes.split(line)

    assert (prefix.label, prefix.host, prefix.local_rank, text) == (label, host, local, rest)
    assert (f"h{host}" in prefix.key) is (host is not None)
