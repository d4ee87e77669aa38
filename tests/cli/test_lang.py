"""`--lang`: what people read follows it, what programs read does not."""

import json
from pathlib import Path

import pytest

from hcp_logscan import HcpLogscanError, scan
from hcp_logscan.cli.app import main

FIXTURES = Path(__file__).parents[1] / "fixtures"
INACTIVE = str(FIXTURES / "case01-no-sizes" / "run")
HANG = str(FIXTURES / "hang-rank3" / "run")
ZH = ("--lang", "zh", "--charts", "static")


@pytest.fixture(autouse=True)
def working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments):
    code = main([*arguments])
    return code, capsys.readouterr().out


def chinese(text):
    return any("\u4e00" <= letter <= "\u9fff" for letter in text)


def test_summary_and_page_are_chinese_and_the_exit_code_is_the_same(capsys):
    code, out = run(capsys, INACTIVE, *ZH)
    assert (code, run(capsys, INACTIVE, "--format", "none")[0]) == (1, 1)
    assert "HCP 未生效 INACTIVE（置信度高）" in out
    page = next(Path("reports").glob("*.html")).read_text(encoding="utf-8")
    assert not chinese(page)  # the run without --lang replaced it
    run(capsys, INACTIVE, *ZH, "-o", "zh.html")
    page = Path("zh.html").read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in page
    assert "判定的证据" in page


def test_markdown_on_standard_output_is_chinese(capsys):
    assert "### 发现：" in run(capsys, HANG, *ZH, "-f", "md")[1]


@pytest.mark.parametrize("suffix", [".json", ".sarif", ".xml"])
def test_what_programs_read_is_the_same_in_any_language(capsys, suffix):
    run(capsys, HANG, *ZH, "--format", "none", "-o", f"zh{suffix}")
    run(capsys, HANG, "--format", "none", "-o", f"en{suffix}")
    assert Path(f"zh{suffix}").read_bytes() == Path(f"en{suffix}").read_bytes()


def test_json_on_standard_output_is_english(capsys):
    document = json.loads(run(capsys, HANG, *ZH, "-f", "json")[1])
    assert not chinese(json.dumps(document["verdict"], ensure_ascii=False))


def test_triage_table_index_and_reports_are_chinese(capsys):
    _, out = run(capsys, INACTIVE, HANG, *ZH)
    assert "2 次运行" in out
    index = Path("reports", "index.html").read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in index
    assert "最差者在前" in index
    assert "没有分层大小" in index  # the message of the worst finding
    pages = [path for path in Path("reports").glob("*.html") if path.name != "index.html"]
    assert len(pages) == 2
    assert all('lang="zh-CN"' in path.read_text(encoding="utf-8") for path in pages)
    assert "| 运行 | HCP | 最严重的发现 |" in run(capsys, INACTIVE, HANG, *ZH, "-f", "md")[1]


def test_redaction_holds_in_chinese(capsys, tmp_path):
    token = "hf_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3b"
    log = Path(HANG, "console.log").read_text()
    folder = tmp_path / "job"
    folder.mkdir()
    raised = f"[rank3]: RuntimeError: 401 for token {token} at https://h\n"
    trace = '[rank3]: Traceback (most recent call last):\n[rank3]:   File "/a.py", line 3, in f\n'
    (folder / "console.log").write_text(log + trace + raised)
    _, out = run(capsys, str(folder), *ZH, "-o", "r.html", "-o", "r.md")
    for text in (out, *(Path(name).read_text(encoding="utf-8") for name in ("r.html", "r.md"))):
        assert token not in text
    assert "[redacted hugging face token" in Path("r.html").read_text(encoding="utf-8")


def test_an_unknown_language_is_a_usage_error():
    report = scan(HANG)
    for render in (report.to_html, report.to_markdown):
        with pytest.raises(HcpLogscanError, match="lang is 'fr'; known are en, zh") as raised:
            render(lang="fr")
        assert raised.value.exit_code == 2
