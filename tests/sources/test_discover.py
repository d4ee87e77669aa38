import os
import re
from pathlib import Path

import pytest

from hcp_logscan.model.errors import NothingUnderstoodError, SourceError
from hcp_logscan.sources import kinds, layouts
from hcp_logscan.sources.discover import Selection, discover, run_name

LOG = "using world size: 2, data-parallel size: 2, context-parallel size: 1\n"


def names(found):
    return [file.name for file in found.files]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "logs/none_a1b2c3d4/attempt_2/3/stderr.log",
            {"job": "none", "attempt": 2, "local_rank": 3},
        ),
        ("attempt_0/1/stdout.log", {"attempt": 0, "local_rank": 1}),
        ("node03/none_a1b2c3d4/attempt_0/0/stdout.log", {"node": "node03"}),
        ("rank_003.log", {"rank": 3, "job": None}),
        ("train.rank12.log.gz", {"rank": 12}),
        ("rank7/stdout.txt", {"rank": 7}),
        ("nemo_log_globalrank-5_localrank-1.txt", {"rank": 5, "local_rank": 1}),
        ("log-pretrain_4711_2.out", {"job": "4711", "attempt": 2}),
        ("slurm-4711.out", {"job": "4711", "task": None}),
        ("pretrain_4711_3.log", {"job": "4711", "task": 3}),
        ("4711_n1_t9.log", {"job": "4711", "task": 9}),
        ("run_20260620_074019.log", {"job": None, "task": None}),
        ("console.log", {"job": None, "rank": None}),
    ],
)
def test_layouts_read_what_a_path_says(path, expected):
    hints = layouts.hints(path)

    assert {key: getattr(hints, key) for key in expected} == expected


def test_directories_above_the_run_name_no_rank_and_no_node():
    hints = layouts.hints("console.log", above=["node7", "fail-rank1-iter3"])

    assert hints == layouts.PathHints()


def test_users_rank_regex_wins():
    hints = layouts.hints("out/gpu-17.txt", re.compile(r"gpu-(\d+)"))

    assert hints.rank == 17


def test_numbers_behind_a_job_are_tasks_only_where_they_fill_a_range():
    pair = [layouts.hints(f"x_4711_{n}.log") for n in (0, 1)]
    alone = [layouts.hints("x_4711_7.log")]

    assert [h.task for h in layouts.settle_tasks(pair)] == [0, 1]
    assert [h.task for h in layouts.settle_tasks(alone)] == [None]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("train.py", "x", "source code"),
        ("README.md", "x", "document"),
        ("data.jsonl", "{}", "dataset"),
        ("model.safetensors", "x", "checkpoint"),
        ("trace_0.pickle", "x", "pickle"),
        ("events.out.tfevents.17.node0", "x", "trace or profile"),
        ("train.py.txt", "import os\nimport sys\n\ndef main():\n    return 1\n", "source code"),
        ("old", "<!DOCTYPE html><html></html>", "document"),
        ("report.txt", '{"schema": "hcp-logscan/report/v1"}', "own report"),
        ("blob", "\x00\x01\x02" * 100, "binary"),
        ("notes.txt", "# How to\n\n- grep\n- look\n\n## Why\n\n- it helps\n", "document"),
    ],
)
def test_what_is_no_log_is_skipped_by_name_or_content(tmp_path, name, content, kind):
    (tmp_path / "train.log").write_text(LOG)
    (tmp_path / name).write_text(content)

    found = discover(tmp_path)

    assert names(found) == ["train.log"]
    assert [(s.kind, s.count) for s in found.skipped] == [(kind, 1)]


def test_log_with_a_few_control_bytes_is_a_log():
    head = b"I0527 ProcessGroupNCCL created ncclComm_ on CUDA device: \x00\n" * 20

    assert kinds.by_content(head) is None


def test_links_out_of_the_run_directory_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.log").write_text(LOG)
    run = tmp_path / "run"
    run.mkdir()
    (run / "train.log").write_text(LOG)
    (run / "link.log").symlink_to(outside / "secret.log")
    (run / "folder").symlink_to(outside, target_is_directory=True)

    assert names(discover(run)) == ["train.log"]


def test_cyclic_links_and_second_names_are_read_once(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train.log").write_text(LOG)
    (tmp_path / "a" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "b.log").symlink_to(tmp_path / "a" / "train.log")

    assert len(names(discover(tmp_path))) == 1


def test_pipes_are_not_opened(tmp_path):
    (tmp_path / "train.log").write_text(LOG)
    os.mkfifo(tmp_path / "pipe.log")

    assert names(discover(tmp_path)) == ["train.log"]


def test_include_and_exclude_choose_files(tmp_path):
    for name in ("a.log", "b.log", "c.log"):
        (tmp_path / name).write_text(LOG)

    found = discover(tmp_path, Selection(include=("a*", "b*"), exclude=("b.log",)))

    assert names(found) == ["a.log"]


@pytest.mark.parametrize("make", [lambda p: None, lambda p: (p / "x.png").write_bytes(b"\x89PNG")])
def test_directory_without_logs_is_nothing_understood(tmp_path, make):
    make(tmp_path)

    with pytest.raises(NothingUnderstoodError, match="no log file"):
        discover(tmp_path)


def test_missing_path_says_so(tmp_path):
    with pytest.raises(SourceError, match=r"No such file.*Check the path"):
        discover(tmp_path / "nope")


@pytest.mark.parametrize(
    ("path", "name"),
    [("/data/job-7/run", "job-7"), ("/data/job-7/logs/attempt_0", "job-7"), ("/x/mine", "mine")],
)
def test_generic_directory_names_take_their_parents_name(path, name):
    assert run_name(Path(path)) == name
