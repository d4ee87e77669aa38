"""Whole runs whose logs hold secrets: no output has them, and nothing else is lost."""

import json
import re
import shutil
from pathlib import Path

import jsonschema
import polars as pl
import pytest
from secret_texts import PASSWORD, PLACEHOLDER, TOKENS, drawn, of

from hcp_logscan import scan
from hcp_logscan.cli.app import Redact, main
from hcp_logscan.model.errors import HcpLogscanError, UsageError
from hcp_logscan.model.report import REDACTION_LEVELS, Redaction
from hcp_logscan.reporting.base import RENDERERS, WITH_TABLES
from hcp_logscan.reporting.json import render_json
from hcp_logscan.reporting.schema import load_schema
from hcp_logscan.reporting.text import render_text
from hcp_logscan.reporting.wishes import Wishes

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILE_TOKEN, LINE_TOKEN, CONTEXT_KEY = TOKENS[0], TOKENS[4], of("K", drawn(31))


def configured(run):
    """Secrets in the configuration, in a neighbour of evidence, and in the name of the run."""
    run = run / FILE_TOKEN
    shutil.copytree(FIXTURES / "case01-no-sizes" / "run", run)
    log = run / "slurm-4711.out"
    anchor = " 0:   cp_comm_type: 'a2a+p2p'"
    more = f" 0:   hf_token: '{PASSWORD}'\n 0:   hub: 'https://x:{CONTEXT_KEY}@hub.example.org'\n"
    log.write_text(log.read_text().replace(anchor, more + anchor))
    return run, (FILE_TOKEN, PASSWORD, CONTEXT_KEY)


def failed(run):
    """Secrets in an exception's message, in names of files, and in a folder's."""
    run = run / "job"
    shutil.copytree(FIXTURES / "exception-rank1" / "run", run)
    for path in [run / "console.log", *run.glob("logs/*/attempt_0/1/stderr.log")]:
        said = "RuntimeError: injected failure in train_step"
        path.write_text(path.read_text().replace(said, f"{said}: api_key={PASSWORD} {LINE_TOKEN}"))
    (run / "console.log").rename(run / f"console-{FILE_TOKEN}.log")
    (run / f"images-{CONTEXT_KEY}-token={TOKENS[2]}").mkdir()
    (run / f"images-{CONTEXT_KEY}-token={TOKENS[2]}" / "a.png").write_bytes(b"x")
    return run, (PASSWORD, LINE_TOKEN, FILE_TOKEN, TOKENS[2])


@pytest.mark.parametrize("make", [configured, failed])
def test_no_output_of_a_run_holds_its_secrets(make, tmp_path):
    run, secrets = make(tmp_path)
    plain, report = scan(run, redact="none").data_with_tables(), scan(run)
    shown, tables = report.data, report.data_with_tables()

    assert shown.redaction.hidden == tables.redaction.hidden == len(secrets)
    assert all(secret in repr(plain) for secret in secrets)
    for suffix, render in RENDERERS.items():
        document = text_of(render(tables if suffix in WITH_TABLES else shown, Wishes()))
        assert not [secret for secret in secrets if secret in document]
        assert not PLACEHOLDER.search(text_of(render(plain, Wishes())))
        assert "secrets hidden" in document or suffix in {".json", ".sarif", ".parquet"}
    assert not [secret for secret in secrets if secret in render_text(shown)]
    assert "secrets hidden" in render_text(shown)


@pytest.mark.parametrize("level", ["secrets", "all"])
@pytest.mark.parametrize("make", [configured, failed])
def test_no_output_in_chinese_holds_the_secrets_of_its_run(make, level, tmp_path):
    run, secrets = make(tmp_path)
    shown, plain = scan(run, redact=level).data, scan(run, redact="none").data
    wishes = Wishes(lang="zh")
    for render in (RENDERERS[".html"], RENDERERS[".md"]):
        document = render(shown, wishes)
        assert not [secret for secret in secrets if secret in document]
        assert [secret for secret in secrets if secret in render(plain, wishes)]
        assert "个机密" in document
    assert not [secret for secret in secrets if secret in render_text(shown, lang="zh")]
    assert not [secret for secret in secrets if secret in repr(shown.said)]


def text_of(rendered):
    """All that a document, or a folder of tables, holds."""
    if isinstance(rendered, str):
        return rendered
    frames = [pl.read_parquet(data) for name, data in rendered.items() if name[0] != "_"]
    return str([frame.to_dicts() for frame in frames])


@pytest.mark.parametrize("make", [configured, failed])
def test_redacted_report_says_the_same_but_for_the_secrets(make, tmp_path):
    run, _ = make(tmp_path)
    plain, shown = scan(run, redact="none").data, scan(run).data
    before, after = json.loads(render_json(plain)), json.loads(render_json(shown))

    jsonschema.validate(after, load_schema())
    assert before.pop("redaction") == {"level": "none", "hidden": 0, "pseudonyms": 0}
    hidden = shown.redaction.hidden
    assert after.pop("redaction") == {"level": "secrets", "hidden": hidden, "pseudonyms": 0}
    assert without_secrets(before, after) == after


def without_secrets(before, after):
    """`before` with the texts of `after` where those have placeholders."""
    if isinstance(before, dict):
        assert list(before) == list(after)
        return {key: without_secrets(before[key], after[key]) for key in before}
    if isinstance(before, list):
        assert len(before) == len(after)
        return [without_secrets(*pair) for pair in zip(before, after, strict=True)]
    if isinstance(after, str) and PLACEHOLDER.search(after):
        kept = PLACEHOLDER.split(after)
        assert re.fullmatch(".+".join(map(re.escape, kept)), before, re.DOTALL)
        return after
    return before


def test_tables_and_facts_stay_what_the_logs_say(tmp_path):
    run, _ = configured(tmp_path)
    report = scan(run)

    assert PASSWORD in report.tables["config"]["value"].to_list()
    assert report.data.redaction == Redaction("secrets", 3)


def test_command_line_hides_secrets_in_all_it_prints_and_writes(tmp_path, monkeypatch, capsys):
    run, secrets = configured(tmp_path)
    monkeypatch.chdir(tmp_path)
    main([str(run)])
    shown = capsys.readouterr()
    page = Path("reports/redacted_github_token_1.html")

    assert "3 secrets hidden" in shown.out
    assert f"Report: {page}" in shown.out
    assert not [secret for secret in secrets if secret in shown.out + shown.err + page.read_text()]
    main([str(run), "--redact", "none", "-f", "json"])
    assert FILE_TOKEN in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"nothing here\n", b"\x00\x01\x02" * 99, None])
def test_error_messages_hide_secrets_of_names(content, tmp_path, capsys):
    path = tmp_path / f"run-{FILE_TOKEN}"
    if content is not None:
        path.write_bytes(content)
    for arguments in ([str(path)], [str(path), "--strict"]):
        assert main(arguments) in {2, 3}
        assert FILE_TOKEN not in capsys.readouterr().err
    with pytest.raises(HcpLogscanError) as caught:
        scan(path)
    assert FILE_TOKEN not in str(caught.value)
    assert caught.value.exit_code in {2, 3}


def test_unreadable_file_is_named_without_its_secret(tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    (run / f"{FILE_TOKEN}.log.gz").write_bytes(b"\x1f\x8b not gzip at all")

    assert main([str(run)]) == 3
    said = capsys.readouterr().err
    assert "could not be read" in said
    assert FILE_TOKEN not in said
    main([str(run), "--redact", "none"])
    assert FILE_TOKEN in capsys.readouterr().err


def test_unknown_level_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="known are secrets, all, none"):
        scan(tmp_path, redact="some")
    assert main([str(tmp_path), "--redact", "some"]) == 2


def placed(run):
    """Hosts, a user, an address and a secret, in paths, tables, tracebacks and messages."""
    run = run / "of-bschmidt"
    shutil.copytree(FIXTURES / "exception-rank1" / "run", run / "gpu-a07")
    for path in run.rglob("*.log"):
        text = path.read_text().replace("host      : node0", "host      : gpu-a07.hpc.example.org")
        text = text.replace("/workspace/", "/home/bschmidt/")
        said = "RuntimeError: injected failure in train_step"
        text = text.replace(said, f"{said}: api_key={PASSWORD} 203.0.113.9 a.b@example.edu gpu-a07")
        path.write_text(text)
    return run, ("gpu-a07", "example.org", "bschmidt", "203.0.113.9", "a.b@", PASSWORD)


def test_no_output_at_the_level_all_says_who_and_where(tmp_path, monkeypatch, capsys):
    run, names = placed(tmp_path)
    report = scan(run, redact="all", workers=2)
    shown, tables = report.data, report.data_with_tables()

    assert all(name in repr(scan(run, redact="none").data_with_tables()) for name in names)
    for suffix, render in RENDERERS.items():
        document = text_of(render(tables if suffix in WITH_TABLES else shown, Wishes()))
        assert not [name for name in names if name in document]
        assert "host-1" in document
        assert "names replaced" in document or suffix in {".json", ".sarif", ".parquet"}
    assert tables.findings == shown.findings
    assert set(tables.tables["exits"]["host"].drop_nulls()) == {"host-1"}
    jsonschema.validate(json.loads(report.to_json()), load_schema())

    monkeypatch.chdir(tmp_path)
    main([str(run), "--redact", "all", "-f", "json"])
    assert capsys.readouterr().out == report.to_json()
    main([str(tmp_path / "home" / "bschmidt" / "nothing"), "--redact", "all"])
    assert "/home/user-1/nothing" in capsys.readouterr().err


def test_levels_of_the_command_line_are_those_of_the_model():
    assert tuple(level.value for level in Redact) == REDACTION_LEVELS
    assert load_schema()["properties"]["redaction"]["properties"]["level"]["enum"] == [*Redact]
