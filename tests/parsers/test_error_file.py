"""torchelastic's error files: the record that a failed rank wrote of its own exception."""

import datetime as dt
import json
import tarfile
import traceback

import pytest

from hcp_logscan import scan
from hcp_logscan.analysis.run import examine
from hcp_logscan.parsers.error_file import MAX_ERROR_BYTES, parse_error_file
from hcp_logscan.parsers.flight_recorder import DumpError
from hcp_logscan.sources.discover import discover

LAUNCH = "logs/none_a1b2c3d4"
WORLD = (
    "using world size: 4, data-parallel size: 4, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)
STACK = (
    "Traceback (most recent call last):\n"
    '  File "/opt/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 367, in'
    " wrapper\n    return f(*args, **kwargs)\n           ^^^^^^^^^^^^^^^^^^\n"
    '  File "/opt/app/train.py", line 48, in train_step\n    loss = step(batch)\n'
)


def record(error, at=1605774851, *, stack=STACK, head=None, **more):
    """What `ErrorHandler.record_exception` writes."""
    extra = {"py_callstack": f"{stack}{error}\n", "timestamp": str(at)}
    said = {"message": head or error.rpartition("torch.")[2], "extraInfo": extra, **more}
    return json.dumps({"message": said})


def place(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def errors(folder):
    rows = examine(folder).facts["failures"].filter(kind="exception")
    return sorted(rows.select("rank", "exception_type", "role", "time").rows(), key=repr)


def of_rank(rank, attempt=0, name="error.json"):
    return f"{LAUNCH}/attempt_{attempt}/{rank}/{name}"


def test_a_record_gives_exception_message_last_frame_and_second():
    row = parse_error_file(record("torch.OutOfMemoryError: CUDA out of memory.").encode())
    said = {key: row[key] for key in ("exception", "message", "last_frame", "innermost")}
    assert said == {
        "exception": "torch.OutOfMemoryError",
        "message": "CUDA out of memory.",
        "last_frame": "train.py:train_step",
        "innermost": "train.py:48",
    }
    assert (row["recorded"], row["frames"], row["last_source"]) == (
        1605774851,
        2,
        "loss = step(batch)",
    )


def test_an_exception_that_python_recorded_is_read():
    try:
        int("seven")
    except ValueError as error:
        data = {
            "message": {
                "message": f"{type(error).__name__}: {error}",
                "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": "1605774851"},
            }
        }
    row = parse_error_file(json.dumps(data).encode())
    assert row["exception"] == "ValueError"
    assert row["message"] == "invalid literal for int() with base 10: 'seven'"
    assert row["last_frame"] == "test_error_file.py:test_an_exception_that_python_recorded_is_read"


def test_the_copy_of_a_launcher_with_its_exit_code_is_the_same_record():
    assert parse_error_file(record("ValueError: x", errorCode=1).encode()) == parse_error_file(
        record("ValueError: x").encode()
    )


def test_a_message_that_is_text_alone_has_its_time_beside_it():
    row = parse_error_file(b'{"message": "RuntimeError: foobar", "timestamp": 1605774851}')
    assert (row["exception"], row["message"]) == ("RuntimeError", "foobar")
    assert (row["recorded"], row["frames"]) == (1605774851, 0)


@pytest.mark.parametrize("time", ["0", "soon", None, True, [1], -5, "", 1e300, "9" * 40])
def test_what_is_no_second_is_no_time(time):
    data = json.dumps({"message": {"message": "ValueError: x", "extraInfo": {"timestamp": time}}})
    row = parse_error_file(data.encode())
    assert row["recorded"] is None or row["recorded"] < 10**10
    assert row["exception"] == "ValueError"


def test_the_last_exception_of_a_chain_is_the_one_that_was_not_handled():
    stack = STACK + "KeyError: 'a'\n\nDuring handling of the above exception, another exception"
    stack += " occurred:\n\n" + STACK
    row = parse_error_file(record("RuntimeError: no batch", stack=stack).encode())
    assert (row["exception"], row["message"], row["chained"]) == ("RuntimeError", "no batch", False)


def test_a_quoted_traceback_of_another_process_is_not_its_own():
    quoted = "RuntimeError: worker said\n" + STACK + "ValueError: inner"
    row = parse_error_file(record(quoted, head="RuntimeError: worker said").encode())
    assert (row["exception"], row["message"]) == ("RuntimeError", "worker said")


def test_a_message_without_a_type_states_no_exception():
    row = parse_error_file(b'{"message": "<NONE>"}')
    assert (row["exception"], row["message"]) == (None, "<NONE>")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "holds nothing"),
        (b'{"message": {"message": "ValueError: x", "extraInfo": {"py_ca', "ends early"),
        (b'{"message": }', "damaged JSON"),
        (b"[1, 2]", "no error file"),
        (b'{"message": 7}', "no error file"),
        (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested"),
        (b" " * (MAX_ERROR_BYTES + 1), "larger than 4 MiB"),
    ],
)
def test_what_is_no_record_says_why(data, why):
    with pytest.raises(DumpError, match=why):
        parse_error_file(data)


def test_rank_and_attempt_are_those_of_the_folder(tmp_path):
    place(
        tmp_path,
        {of_rank(rank, 0, "stdout.log"): WORLD if rank == 0 else "hello\n" for rank in range(4)}
        | {of_rank(rank, 1, "stdout.log"): WORLD if rank == 0 else "hello\n" for rank in range(4)}
        | {of_rank(2, 0): record("ValueError: bad batch")},
    )
    failed = examine(tmp_path).facts["failures"]
    assert failed.select("attempt", "rank", "exception_type", "where").rows() == [
        (0, 2, "ValueError", "train.py:48")
    ]


def test_traceback_in_the_log_and_record_are_one_failure(tmp_path):
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    place(
        tmp_path,
        {of_rank(rank, 0, "stdout.log"): WORLD if rank == 0 else "hello\n" for rank in range(4)}
        | {of_rank(3): record(error)}
        | {
            of_rank(3, 0, "stderr.log"): "".join(
                f"[rank3]: {x}\n" for x in (STACK + error).split("\n")
            )
        },
    )
    report = scan(tmp_path)
    (found,) = [one for one in report.findings if one.rule == "HCP501"]
    assert found.ranks == (3,)
    assert found.evidence[0].file.endswith("stderr.log")
    assert len(errors(tmp_path)) == 1


def test_the_earliest_record_is_the_first_cause(tmp_path):
    place(
        tmp_path,
        {of_rank(rank, 0, "stdout.log"): WORLD if rank == 0 else "hello\n" for rank in range(4)}
        | {of_rank(0): record("ValueError: late", 1605774900)}
        | {of_rank(2): record("KeyError: 'early'", 1605774860)},
    )
    (found,) = [one for one in scan(tmp_path).findings if one.rule == "HCP508"]
    assert "first rank 2" in found.message
    assert "KeyError" in found.message


def elastic_table(rank, at):
    return (
        "Root Cause (first observed failure):\n[0]:\n"
        f"  time      : {at}\n  host      : node0\n  rank      : {rank} (local_rank: {rank})\n"
        "  exitcode  : 1 (pid: 77)\n  error_file: /logs/error.json\n  traceback : Traceback\n"
        + "=" * 60
        + "\n"
    )


def test_torchruns_table_tells_the_zone_of_the_clock(tmp_path):
    place(
        tmp_path,
        {
            "console.log": WORLD + elastic_table(1, "2020-11-19_09:34:11"),
            of_rank(1): record("ValueError: x", 1605774851),
            of_rank(2): record("ValueError: y", 1605774853),
        },
    )
    assert [row[3] for row in errors(tmp_path) if row[0] == 1] == ["11-19 09:34:11"]


def test_a_time_of_another_failure_tells_no_zone(tmp_path):
    shown = dt.datetime.fromtimestamp(1605774851 + 77, dt.UTC)
    place(
        tmp_path,
        {
            "console.log": WORLD + elastic_table(1, f"{shown:%Y-%m-%d_%H:%M:%S}"),
            of_rank(1): record("ValueError: x", 1605774851),
        },
    )
    assert errors(tmp_path) == [(1, "ValueError", "root", None)]


def test_ranks_without_a_record_are_not_missing(tmp_path):
    place(
        tmp_path,
        {
            "console.log": WORLD + elastic_table(1, "2020-11-19_09:34:11"),
            of_rank(1): record("ValueError: x"),
        },
    )
    report = scan(tmp_path)
    assert report.data.health.ranks_missing == ()
    assert "HCP904" not in {one.rule for one in report.findings}


def test_what_the_launcher_recorded_of_itself_is_no_failure_of_a_rank(tmp_path):
    place(
        tmp_path,
        {"console.log": WORLD, "app/trainer/0/error.json": record("SignalException: signal: 15")},
    )
    assert errors(tmp_path) == []


def test_a_record_outside_of_torchruns_folders_is_known_by_its_shape(tmp_path):
    place(
        tmp_path,
        {
            "console.log": WORLD,
            "app/trainer/0/error.json": record("ValueError: x"),
            "errors/torchelastic_error_rank_2.json": record("KeyError: 'y'"),
            "api/error.json": '{"message": "not found"}',
            "data/errors.json": '{"errors": []}',
        },
    )
    found = discover(tmp_path)
    assert [file.name for file in found.files if file.kind == "error"] == [
        "app/trainer/0/error.json",
        "errors/torchelastic_error_rank_2.json",
    ]
    assert (2, "KeyError", "root", None) in errors(tmp_path)


def test_a_damaged_record_is_shown_under_health_and_the_scan_goes_on(tmp_path):
    place(
        tmp_path,
        {"console.log": WORLD, of_rank(1): record("ValueError: x")[:60], of_rank(2): b""},
    )
    report = scan(tmp_path)
    why = {one.file: one.why for one in report.data.health.unreadable}
    assert why[of_rank(1)] == "cannot be read safely: it ends early"
    assert "holds nothing" in why[of_rank(2)]
    assert not [one for one in report.findings if one.rule == "HCP508"]


def test_a_record_in_an_archive_is_read(tmp_path):
    place(tmp_path / "run", {"console.log": WORLD, of_rank(1): record("ValueError: x")})
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "run", "run")
    assert [row[1] for row in errors(tmp_path / "run.tar.gz")] == ["ValueError"]
