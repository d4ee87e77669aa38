"""Layouts that launchers and collectors leave: who printed a line, and which attempt it is of."""

import gzip
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import fsspec
import polars as pl
import pytest
from compose import Job, compose
from polars.testing import assert_frame_equal

from hcp_logscan import scan
from hcp_logscan.analysis.ranks import _natural_nodes
from hcp_logscan.analysis.rotated import parts_of
from hcp_logscan.engine.plan import units
from hcp_logscan.engine.run import merge, scan_files
from hcp_logscan.engine.scan import scan_batch
from hcp_logscan.sources import layouts, leads
from hcp_logscan.sources.discover import discover

REFUSED = Job(sizes=None)
"""Every rank raises, and no line names its rank: the launcher's prefix alone tells it."""


@pytest.mark.parametrize(
    "layout",
    ["torchx", "pods", "stern", "pdsh", "docker_compose", "pod_files", "mpirun", "slurm_nodes"],
)
def test_ranks_are_told_by_node_and_local_rank_or_by_task(layout, tmp_path):
    report = scan(compose(replace(REFUSED, layout=layout), tmp_path / "run"))

    assert report.verdict.status == "rejected"
    assert sorted(report.tables["assertions"]["rank"]) == list(range(8))


@pytest.mark.parametrize("layout", ["mpirun", "pods", "stern", "torchx", "skypilot"])
def test_prefixes_are_the_same_line_by_line_by_columns_and_in_any_split(
    layout, tmp_path, monkeypatch
):
    found = discover(compose(Job(layout=layout, iterations=2), tmp_path / "run"))
    together = scan_files(found)
    parts = [scan_batch([one]) for one in units(found.files, unit_bytes=10_000)]
    assert len(set(together["rank_lines"]["stream"])) == 8
    assert len(parts) > 1
    assert_frame_equal(merge(found, parts)["iterations"], together["iterations"])
    monkeypatch.setattr("hcp_logscan.engine.scan.odd", lambda: pl.lit(value=True))
    for table, frame in scan_files(found).frames.items():
        assert_frame_equal(together[table], frame)


def packed(run: Path, to: Path) -> str:
    """The run as an archive, or behind a URL."""
    files = [path for path in sorted(run.rglob("*")) if path.is_file()]
    if to.name == "memory":
        there = fsspec.filesystem("memory")
        for path in files:
            there.pipe(f"/launched/{path.relative_to(run)}", path.read_bytes())
        return "memory://launched"
    if to.suffix == ".zip":
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in files:
                archive.write(path, path.relative_to(run))
    else:
        with tarfile.open(to, "w:gz" if to.suffix == ".gz" else "w") as made:
            for path in files:
                made.add(path, path.relative_to(run))
    return str(to)


@pytest.fixture
def _nothing_remote():
    yield
    fsspec.filesystem("memory").store.clear()


@pytest.mark.usefixtures("_nothing_remote")
@pytest.mark.parametrize("where", ["logs.tar", "logs.tar.gz", "logs.zip", "memory"])
@pytest.mark.parametrize("beside", [False, True])
def test_what_leads_every_line_is_told_in_archives_and_behind_urls(where, beside, tmp_path):
    run = compose(replace(REFUSED, layout="stern"), tmp_path / "run")
    (run / "conf.yaml").write_text("node1: 3\n" * 9)
    to = tmp_path / "given" / where
    to.parent.mkdir()
    text = packed(run, to)
    found = discover(to.parent if beside and where != "memory" else text)

    assert {file.kind: file.leads for file in found.files} == {"log": ("stern",), "config": ()}
    assert len(set(scan_files(found)["assertions"]["stream"])) == 8


def test_the_master_is_the_first_node_and_names_without_an_order_have_none():
    pods = ("job-worker-1", "job-worker-0", "job-master-0")

    assert _natural_nodes(pods) == {"job-master-0": 0, "job-worker-0": 1, "job-worker-1": 2}
    assert _natural_nodes(["a10.hpc1", "a9.hpc1"]) == {"a9.hpc1": 0, "a10.hpc1": 1}
    assert _natural_nodes(["10.0.0.7", "10.0.0.12"]) == {"10.0.0.7": 0, "10.0.0.12": 1}
    assert _natural_nodes(["set-a-1-x7f2k", "set-a-0-zzz9k"]) == {
        "set-a-0-zzz9k": 0,
        "set-a-1-x7f2k": 1,
    }
    assert _natural_nodes(["a1-left", "b1-left"]) is None
    assert _natural_nodes(["left", "right"]) is None


STEP = (
    " [2026-03-01 09:14:20] iteration        1/       1 | consumed samples:            8 | elapsed"
    " time per iteration (ms): 5120.4 | learning rate: 1.0E-04 | global batch size:     8 | lm loss:"
    " 2.0E+00 | loss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   0 | number of nan"
    " iterations:   0 |\n"
)


def test_as_many_pods_as_ranks_are_the_ranks(tmp_path):
    for pod in ("job-master-0", "job-worker-0", "job-worker-1", "job-worker-2"):
        (tmp_path / f"{pod}.log").write_text(f"starting {pod}\n{STEP if pod[-1] == '2' else ''}")
    report = scan(tmp_path, world_size=4)

    assert report.facts["iterations"]["rank"].to_list() == [3]
    assert scan(tmp_path, world_size=8).facts["iterations"]["rank"].to_list() == [None]


def test_local_ranks_of_two_nodes_are_not_one_process(tmp_path):
    for node in ("node0", "node1"):
        text = f"[default0]:{STEP}[default1]:{STEP}"
        (tmp_path / node).mkdir()
        (tmp_path / node / "console.log").write_text(text)
    report = scan(tmp_path, world_size=4)

    assert report.facts["iterations"]["rank"].to_list() == [3]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("log-acct.hcp_4711_2.out", {"job": "4711", "attempt": 2}),
        ("sbatch_acct.hcp_4711.out", {"job": "4711", "attempt": None}),
        ("exp/nemo_log_globalrank-11_localrank-3.txt", {"rank": 11, "local_rank": 3}),
        ("pretrain_4711_1_9.log", {"job": "4711", "node": "1", "task": 9}),
        ("pretrain-worker-3.log", {"node": "pretrain-worker-3", "job": None, "task": None}),
        ("set-node-3-x7f2k.log.gz", {"node": "set-node-3-x7f2k"}),
        ("nid001234.out", {"node": "nid001234", "job": None}),
        ("gpu3.log", {"node": None}),
        ("rank0.log.1", {"rank": 0, "part_of": "rank0.log", "age": 1}),
        ("logs/pretrain_4711_3.log.2.gz", {"task": 3, "part_of": "logs/pretrain_4711_3.log"}),
        ("rank0.log", {"rank": 0, "part_of": None, "age": 0}),
        ("train.2.log", {"part_of": None}),
    ],
)
def test_a_path_says_node_rank_and_part(name, said):
    hints = layouts.hints(name)

    assert {key: getattr(hints, key) for key in said} == said


def test_parts_named_by_date_are_older_the_earlier_it_is():
    names = ("0.log.20260302-010203", "0.log.20260301-091420.gz", "0.log-20260228", "0.log")
    ages = [layouts.hints(name).age for name in names]

    assert ages[2] > ages[1] > ages[0] > ages[3] == 0


def rotated(run: Path) -> Path:
    """Each log in three parts, the newest of them under the log's own name."""
    for path in [path for path in run.rglob("*") if path.is_file()]:
        lines = path.read_text().splitlines(keepends=True)
        two, four = len(lines) * 2 // 5, len(lines) * 4 // 5
        for end, part in ((".2", lines[:two]), (".1", lines[two:four]), ("", lines[four:])):
            path.with_name(path.name + end).write_text("".join(part))
    return run


@pytest.mark.parametrize("layout", ["console", "slurm_tasks", "nemo_files"])
def test_parts_of_rotated_logs_are_one_log_of_one_rank(layout, tmp_path):
    run = compose(Job(layout=layout, attempts=2), tmp_path / "run")
    whole = scan(run)
    report = scan(rotated(run))

    assert [one.iterations for one in report.data.attempts] == [3, 6]
    assert [one.rank for one in report.data.ranks] == [one.rank for one in whole.data.ranks]
    assert report.data.run.job == whole.data.run.job
    assert report.verdict.status in {whole.verdict.status, "inconclusive"}
    ranks = report.facts["iterations"].select("attempt", "iteration", "rank")
    assert ranks.equals(whole.facts["iterations"].select("attempt", "iteration", "rank"))


@pytest.mark.parametrize("where", ["logs.tar", "logs.tar.gz", "logs.zip"])
@pytest.mark.parametrize("beside", [False, True])
def test_parts_of_rotated_logs_in_an_archive_are_one_log(where, beside, tmp_path):
    run = rotated(compose(Job(layout="slurm_tasks", attempts=2), tmp_path / "run"))
    to = tmp_path / "given" / where
    to.parent.mkdir()
    packed(run, to)
    given = to.parent if beside else to
    there, inside = scan(run), scan(given)

    files = discover(given).files
    logs = parts_of(files, range(len(files)))
    ages = [[files[part].hints.age for part in log] for log in logs]
    assert ages == [[2, 1, 0]] * (len(files) // 3)
    assert [one.iterations for one in inside.data.attempts] == [3, 6]
    assert [one.rank for one in inside.data.ranks] == [one.rank for one in there.data.ranks]
    ranks = there.facts["iterations"].select("attempt", "iteration", "rank")
    assert inside.facts["iterations"].select("attempt", "iteration", "rank").equals(ranks)


def test_a_role_called_rank_names_local_ranks_and_torch_names_global_ones(tmp_path):
    said = "[rank1]:[titan] 2026-03-01 09:14:20,123 - root - INFO - a\n" * 6
    both = "[rank1]:[rank5]: Traceback (most recent call last):\n[rank1]:[rank5]: ValueError: x\n"
    (tmp_path / "node1").mkdir()
    (tmp_path / "node1" / "console.log").write_text(said + both + f"[rank1]:{STEP}")
    (tmp_path / "node0").mkdir()
    (tmp_path / "node0" / "console.log").write_text(said + f"[rank0]:{STEP}")
    report = scan(tmp_path, world_size=4)

    assert report.tables["tracebacks"]["rank"].to_list() == [5]
    assert report.facts["iterations"]["rank"].to_list() == [3]


@pytest.mark.parametrize(
    "line", ["[rank3]: a", "[rank3]:[I301 09:12:44.1 a.cpp:7] b", "[rank3]:W0301 09:12:44.1 7 a.py"]
)
def test_what_torch_prints_behind_a_rank_is_no_role(line):
    assert leads.detect(f"{line}\n".encode() * 9) == ()


def test_numbers_that_go_through_the_nodes_are_global_ranks(tmp_path):
    for node in (0, 1):
        (tmp_path / f"node{node}").mkdir()
        text = "".join(
            f"[rank{n}]:start\n" * 3 + f"[rank{n}]:{STEP}" for n in (2 * node, 2 * node + 1)
        )
        (tmp_path / f"node{node}" / "console.log").write_text(text)
    report = scan(tmp_path, world_size=4)

    assert report.facts["iterations"]["rank"].to_list() == [3]


def test_the_two_files_of_a_process_have_one_rank(tmp_path):
    run = compose(Job(layout="redirects", stack="bridge-0.3", iterations=1), tmp_path / "run")
    stderr = next(run.rglob("5/stderr.log"))
    stderr.write_text("Traceback (most recent call last):\nValueError: no more data\n")

    assert scan(run).tables["tracebacks"]["rank"].to_list() == [5]


@pytest.mark.parametrize("layout", ["stern", "pdsh", "docker_compose", "role"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_leads_every_line_is_told_on_standard_input(layout, pack, tmp_path, monkeypatch):
    run = compose(replace(REFUSED, layout=layout), tmp_path / "run")
    files = [path for path in sorted(run.rglob("*")) if path.is_file()]
    (tmp_path / "piped").write_bytes(pack(b"".join(path.read_bytes() for path in files)))
    with (tmp_path / "piped").open("rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        tables = scan_files(discover("-"))

    assert len(set(tables["assertions"]["stream"])) == (4 if layout == "role" else 8)
    assert not tables["assertions"]["line_rank"].drop_nulls().len()


def test_speeds_and_places_of_steps_go_through_the_parts_of_a_rotated_log(tmp_path):
    run = compose(Job(layout="console", stack="bridge-0.3"), tmp_path / "run")
    lines = (run / "console.log").read_text().splitlines(keepends=True)
    whole = scan(run).facts["iterations"]
    at = [n for n, line in enumerate(lines) if "] iteration " in line]
    cut = at[3] - 1
    (run / "console.log.1.gz").write_bytes(gzip.compress("".join(lines[:cut]).encode()))
    (run / "console.log").write_text("".join(lines[cut:]))
    parts = scan(run).facts["iterations"]

    told = ("iteration", "tflops_per_gpu", "step_ms", "rank")
    assert parts.select(told).equals(whole.select(told))
    places = parts.select("file", "line").rows()
    assert places[:3] == [("console.log.1.gz", n + 1) for n in at[:3]]
    assert places[3:] == [("console.log", n + 1 - cut) for n in at[3:]]


def test_a_part_of_a_few_lines_is_led_as_its_log(tmp_path):
    run = compose(replace(REFUSED, layout="pdsh"), tmp_path / "run")
    lines = (run / "train.log").read_text().splitlines(keepends=True)
    (run / "train.log.1").write_text("".join(lines[:-2]))
    (run / "train.log").write_text("".join(lines[-2:]))

    assert [file.leads for file in discover(run).files] == [("host",), ("host",)]
