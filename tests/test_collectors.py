"""Whatever a log collector puts around every line, the run behind it reads the same."""

import json
import re
from importlib.resources import files

import pytest

from hcp_logscan import scan
from hcp_logscan.engine.run import scan_files
from hcp_logscan.sources import kinds, leads
from hcp_logscan.sources.discover import discover

DEMO = files("hcp_logscan") / "demo" / "slurm-4711.out"
SAID = [re.sub(r"^ ?\d+: ?", "", line) for line in DEMO.read_text().splitlines()]
"""What one console prints: no label of srun stands inside a collector's lead."""

DIED = [*SAID[: next(n for n, line in enumerate(SAID) if "       7/       8 " in line)]]
"""The same before its end."""

TRACEBACK = [
    "[rank3]: Traceback (most recent call last):",
    '[rank3]:   File "/opt/train.py", line 12, in <module>',
    "[rank3]:     step(batch)",
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
]


def clock(n):
    return f"{9 + n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d}"


def docker(text, n):
    """Go's encoder spells three signs as escapes."""
    line = json.dumps({"log": f"{text}\n", "stream": "stdout", "time": f"2026-03-01T{clock(n)}.1Z"})
    return line.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def fluent(text, n):
    pod = {"pod_name": "pretrain-worker-0", "container_name": "pytorch"}
    return json.dumps({"@timestamp": f"2026-03-01T{clock(n)}Z", "log": text, "kubernetes": pod})


COLLECTORS = {
    "airflow": lambda text, n: f"[2026-03-01, {clock(n)} UTC] {{subprocess.py:93}} INFO - {text}",
    "brackets": lambda text, n: f"[2026-03-01T{clock(n)}Z] {text}",
    "cloudwatch": lambda text, n: f"2026-03-01T{clock(n)}.123Z\t{text}",
    "docker": docker,
    "fluent-bit": fluent,
    "github": lambda text, n: f"2026-03-01T{clock(n)}.1234567Z {text}",
    "google": lambda text, n: json.dumps({"timestamp": clock(n), "textPayload": text}),
    "json-logger": lambda text, n: json.dumps({"asctime": clock(n), "message": text}),
    "journald": lambda text, n: f"Mar 01 {clock(n)} node01 train.sh[4711]: {text}",
    "journald-iso": lambda text, n: f"2026-03-01T{clock(n)}+0000 node01 train.sh[4711]: {text}",
    "sagemaker": lambda text, n: f"[1,mpirank:0,algo-1]<stdout>:{text}",
    "ts": lambda text, n: f"Mar  1 {clock(n)} {text}",
    "ts-clock": lambda text, n: f"{clock(n)} {text}",
    "ts-date": lambda text, n: f"2026-03-01 {clock(n)} {text}",
    "ts-micro": lambda text, n: f"{clock(n)}.123456 {text}",
}


def written(folder, lines, name="job.log"):
    folder.mkdir()
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def told(report):
    data = report.data
    return (
        data.verdict.status,
        data.verdict.confidence,
        data.series,
        [(finding.rule, finding.message) for finding in data.findings],
        data.health.recognised_lines,
    )


@pytest.mark.parametrize("collector", COLLECTORS)
def test_a_collector_changes_nothing_that_a_run_says(tmp_path, collector):
    wrapped = [COLLECTORS[collector](text, n) for n, text in enumerate(SAID)]

    found = scan(written(tmp_path / "wrapped", wrapped))

    assert found.verdict.status == "inactive"
    assert told(found) == told(scan(written(tmp_path / "plain", SAID)))


@pytest.mark.parametrize("collector", COLLECTORS)
def test_an_error_behind_a_collector_keeps_its_rank(tmp_path, collector):
    wrapped = [COLLECTORS[collector](text, n) for n, text in enumerate([*DIED, *TRACEBACK])]

    [finding] = [
        one for one in scan(written(tmp_path / "wrapped", wrapped)).findings if one.rule == "HCP501"
    ]

    assert finding.ranks == (3,)


def test_a_traceback_in_one_record_is_read_line_by_line(tmp_path):
    texts = [*DIED, "\n".join(TRACEBACK), "the launcher's own words"]
    run = written(tmp_path / "run", [fluent(text, n) for n, text in enumerate(texts)])

    frame = scan_files(discover(run))["tracebacks"]

    assert frame.select("line_rank", "exception", "complete").rows() == [
        (3, "torch.OutOfMemoryError", True)
    ]


def test_an_export_is_a_log_and_a_dataset_of_the_same_suffix_is_none(tmp_path):
    run = written(tmp_path / "run", [fluent(text, n) for n, text in enumerate(SAID)], "all.jsonl")
    rows = [json.dumps({"text": text, "id": n}) for n, text in enumerate(SAID)]
    (run / "train.jsonl").write_text("\n".join(rows))
    (run / "ids.ndjson").write_text("[1, 2]\n[3, 4]\n")

    found = discover(run)

    assert [file.name for file in found.files] == ["all.jsonl"]
    assert [(one.kind, one.count) for one in found.skipped] == [("dataset", 2)]


def test_a_record_that_is_cut_or_no_object_stays_as_it_is():
    good = docker("x", 1).encode()
    for line in (good[:40], b"[]", b"{}", b'{"time": 1, "log": 5}', b"\xff{", b"{" * 100_000):
        assert leads.rewrite(("json",), line) == line


STEP_LOGS = {
    "torchtitan": "2026-03-01 {clock},123 - root - INFO - step: {n}  loss: 8.1  memory: 20 GiB",
    "megatron": " [2026-03-01 {clock}] iteration     {n}/    1000 | lm loss: 1.0E+00 |",
    "megatron-columns": " [2026-03-01 {clock}] iteration {n:8d}/    1000 | lm loss: 1.0E+00 |",
    "table": "{clock} {n:6d} 0.1 {n} 0.2 {word}",
    "primus": "[20260301 {clock}][rank-{rank}/8][INFO ] [trainer.py:12] :   a setting {word}: {n}",
    "verl": "2026-03-01 {clock} INFO step:{n} - actor/pg_loss:0.1",
    "logger": "[2026-03-01 {clock}] [INFO] [engine.py:{n}:step] {word} of step {n}",
}


@pytest.mark.parametrize("name", STEP_LOGS)
def test_stamps_of_a_trainer_stay(name):
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    lines = [
        STEP_LOGS[name].format(clock=clock(n), n=n, rank=n % 8, word=words[n % 6])
        for n in range(200)
    ]

    assert leads.detect("\n".join(lines).encode()) == ()


def test_names_of_nodes_behind_a_stamp_are_kept():
    lines = [f"2026-03-01 {clock(n)} node0{n % 2 + 1}: {text}" for n, text in enumerate(SAID)]

    found = leads.detect("\n".join(lines).encode())

    assert leads.rewrite(found, lines[0].encode()).startswith(b"[pod/node01/-] ")


def test_prefixes_of_launchers_behind_a_stamp_are_kept():
    lines = [f"{clock(n)} [default{n % 8}]:{text}" for n, text in enumerate(SAID)]

    found = leads.detect("\n".join(lines).encode())

    assert leads.rewrite(found, lines[3].encode()) == b"[default3]:" + SAID[3].encode()


def test_what_a_collector_wrapped_is_told_by_content_alone():
    wrapped = "\n".join(fluent(text, n) for n, text in enumerate(SAID)).encode()

    assert kinds.by_content(wrapped) is None
    assert kinds.by_content(b'{"text": "a", "time": 1}\n' * 20) == "dataset"
