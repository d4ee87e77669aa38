"""Tables as Parquet: types stay, secrets do not, and nobody else's folder is touched."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from secret_texts import TOKENS

from hcp_logscan import demo_run, scan
from hcp_logscan.cli import write
from hcp_logscan.cli.app import main
from hcp_logscan.cli.write import write_folder
from hcp_logscan.model.errors import OutputError
from hcp_logscan.reporting.parquet import CONTENTS, TABLES_SCHEMA, render_parquet
from hcp_logscan.reporting.redact import redact

FILES = {CONTENTS: json.dumps({"schema": TABLES_SCHEMA, "tables": {"a": 1}}).encode()}


@pytest.fixture(scope="module")
def report():
    with demo_run() as run_dir:
        return scan(run_dir)


def test_every_table_is_a_file_with_its_types(report):
    files = render_parquet(report.data_with_tables())
    contents = json.loads(files.pop(CONTENTS))

    assert {name.removesuffix(".parquet") for name in files} == set(report.tables)
    for name, frame in report.tables.items():
        read = pl.read_parquet(files[f"{name}.parquet"])
        assert read.equals(frame)
        assert read.schema == frame.schema
        assert contents["tables"][name] == frame.height
    assert contents["tables"]["iterations"] == 8
    assert contents["redaction"] == "secrets"


def test_data_of_other_formats_carries_no_tables(report):
    assert report.data.tables == {}


def test_value_is_hidden_where_the_column_beside_it_names_a_secret(report):
    token = TOKENS[0]
    frame = pl.DataFrame(
        {
            "key": ["wandb_api_key", "cp_comm_type", None, "hf_token"],
            "value": ["abc", "abc", "abc", None],
            "ranks": [[1], None, [2, 3], []],
            "text": [f"a {token}", None, token, ""],
        }
    )
    shown = redact(replace(report._whole, tables={"config": frame})).tables["config"]

    assert shown["value"].to_list() == ["[redacted key 1]", "abc", "abc", None]
    assert shown["text"].to_list()[:3] == [
        "a [redacted github token 2]",
        None,
        "[redacted github token 2]",
    ]
    assert shown.schema == frame.schema
    assert shown["ranks"].to_list() == frame["ranks"].to_list()


def test_own_folder_is_replaced_whole(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = Path("out/x.parquet")
    assert main(["--demo", "-o", str(path)]) == 0
    (path / "iterations.parquet").write_bytes(b"old")
    (path / "steps.parquet").unlink()
    assert main(["--demo", "-o", str(path), "-o", "y.json"]) == 0

    assert "Report: out/x.parquet" in capsys.readouterr().out
    assert pl.read_parquet(path / "iterations.parquet").height == 8
    assert (path / "steps.parquet").exists()
    assert [entry.name for entry in path.parent.iterdir()] == ["x.parquet"]
    assert path.stat().st_mode & 0o777 == 0o777 & ~write._mask()


def foreign(path):
    """Whatever is no folder of ours, or no longer."""
    made = []

    def make(name, *files):
        made.append(path / name)
        made[-1].mkdir()
        for file in files:
            (made[-1] / file).write_bytes(FILES.get(file, b"theirs"))

    make("empty")
    make("theirs", "notes.txt")
    make("with notes", CONTENTS, "notes.txt")
    make("with a table", CONTENTS, "a.parquet", "b.parquet")
    make("other contents")
    (path / "other contents" / CONTENTS).write_text('{"schema": "x", "tables": {}}')
    made += [path / "file", path / "link", path / "lost"]
    (path / "file").write_text("theirs")
    make("target", CONTENTS)
    made.pop()
    (path / "link").symlink_to(path / "target")
    (path / "lost").symlink_to(path / "nowhere")
    return made


def test_what_is_not_ours_stays(tmp_path):
    for path in foreign(tmp_path):
        before = sorted(str(each) for each in tmp_path.rglob("*"))
        with pytest.raises(OutputError, match="not a folder of hcp-logscan's tables"):
            write_folder(path, FILES)
        assert sorted(str(each) for each in tmp_path.rglob("*")) == before


def test_folder_that_cannot_be_written_leaves_the_earlier_one(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    write_folder(path, FILES)
    rename = Path.rename

    def refuse(self, target):
        if self.name == "new":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OutputError, match="No space left on device"):
        write_folder(path, FILES)

    assert [entry.name for entry in tmp_path.iterdir()] == ["x.parquet"]
    assert (path / CONTENTS).read_bytes() == FILES[CONTENTS]


def test_command_line_says_what_is_in_the_way_and_prints_the_summary(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("x.parquet").mkdir()

    assert main(["--demo", "-o", "x.parquet"]) == 2
    shown = capsys.readouterr()
    assert "cannot write x.parquet" in shown.err
    assert "INACTIVE" in shown.out.upper()


def test_several_runs_get_no_folder_of_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["--demo", "-o", "x.parquet", "-f", "none"]) == 0

    assert main(["a", "b", "-o", "x.parquet"]) == 2
    assert "with several RUN_DIRs name a folder" in capsys.readouterr().err
