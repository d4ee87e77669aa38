"""Every fenced block of the documentation is exercised, or says visibly why it is not.

Pages are worked through from top to bottom, each in a directory of its own, in which `run_dir`,
`RUN_DIR` and so on are runs. What a block is, its language and its first words tell:

* commands of the program are run: exit code 0 or 1, and what stands below one is what it prints;
  a line `...` stands for any lines. Targets of `make` and scripts of `python` exist
* Python runs, or is a doctest; the blocks of a page share their names
* YAML, TOML and JSON are read; rules, line formats and settings are loaded as such
* a line before a block like "`name`:" is the file that it is

A comment on the line before a block says what cannot be seen from it:

* `<!-- not run: why -->`: nothing does; the reasons are listed below
* `<!-- tested by: tests/test_x.py -->`: that file extracts it
* `<!-- output: fixture -->`: part of what the program prints for a run of tests/fixtures
* `<!-- file: path -->`: the block is that file
* `<!-- log lines -->`: every line is one that the program understands
"""

import doctest
import json
import re
import shlex
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
import yaml

from hcp_logscan import scan
from hcp_logscan.cli.app import app, main
from hcp_logscan.engine.plan import Unit
from hcp_logscan.engine.scan import scan_batch
from hcp_logscan.reporting.text import render_text
from hcp_logscan.rules.formats import load_formats
from hcp_logscan.rules.load import load_paths
from hcp_logscan.rules.pages import MARK
from hcp_logscan.sources import settings

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "tests" / "fixtures"
DEMO = ROOT / "hcp_logscan" / "demo"
RUNS = {
    "run_dir": DEMO,
    "RUN_DIR": DEMO,
    "path/to/run_dir": DEMO,
    "new_run": FIXTURES / "case01-no-sizes" / "run",
    "good_run": FIXTURES / "case01-twin-a-sizes-set" / "run",
    "runs/a": DEMO,
    "runs/b": FIXTURES / "p2p" / "run",
}
"""What stands in the working directory of every page."""

NOT_RUN = {
    "docs/command-line.md": {"it follows a log that grows until somebody stops it"},
    "docs/throughput.md": {"a formula; snippets below compute with it"},
    "docs/architecture.md": {"a drawing"},
    "docs/evidence.md": {
        "two entries of a binary file, as Python shows them",
        "lines from the middle of an argument dump",
    },
    "docs/scale.md": {"it needs a Slurm cluster; it is compiled"},
}
"""Page -> every reason why a block of it is not exercised."""

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "rules/*.md", "docs/zh/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>[a-z]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
WIDTHS = ("100", "80")


@dataclass
class Block:
    page: Path
    line: int
    language: str
    text: str
    mark: str
    file: str

    @property
    def where(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        before = text[: match.start()].rstrip("\n").rpartition("\n")[2]
        named = re.fullmatch(r"`([\w./-]+)`[:：]", before)
        line = text.count("\n", 0, match.start("language")) + 1
        mark = match["mark"] or ""
        file = named[1] if named else ""
        if mark.startswith("file: "):
            mark, file = "", mark.removeprefix("file: ")
        yield Block(page, line, match["language"], match["text"], mark, file)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    for name, target in RUNS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(target, tmp_path / name)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def matches(shown, printed):
    """Whether what a page shows is what was printed; a line `...` stands for any lines."""
    lines = shown.strip("\n").split("\n")
    wanted = "".join(r"(?:.*\n)*?" if line == "..." else f"{re.escape(line)}\n" for line in lines)
    return re.fullmatch(wanted, printed.strip("\n") + "\n") is not None


def commands(text):
    """(command, what is shown below it), if the block is made of commands."""
    joined = text.replace("\\\n", " ")
    if joined.startswith("$ "):
        for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown
    else:
        for line in joined.splitlines():
            if line.strip() and not line.startswith("#"):
                yield line, ""


def words_of(command):
    """Words up to what a shell would do with the result, and without comments."""
    words = shlex.split(command, comments=True)
    for end in ("||", "&&", "|", ">", ";"):
        words = words[: words.index(end)] if end in words else words
    return words


def run(words, shown, capsys, monkeypatch):
    arguments = [word.removeprefix("/") for word in words[1:]]
    printed = capsys.readouterr().out  # of Python blocks above it
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", width)
        code = main(arguments)
        printed = capsys.readouterr().out
        assert code in {0, 1} or "--check-rules" in arguments, (words, code)
        if not shown or matches(shown, printed):
            return
    assert shown == printed


def is_command(word):
    return word.rpartition("/")[2] == "hcp-logscan"


def shell(block, capsys, monkeypatch):
    """Whether every command is the program's, which is run, or a target or script that exists."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command, shown in commands(block.text):
        words = words_of(command)
        if words and is_command(words[0]):
            run(words, shown, capsys, monkeypatch)
        elif words and words[0] == "make":
            assert set(words[1:]) <= targets, block.where
        elif words and words[0] == "python" and words[1:2] == ["-m"]:
            assert (ROOT / f"{words[2].replace('.', '/')}.py").exists(), block.where
        elif words and words[0] == "python" and words[1:] and words[1].endswith(".py"):
            assert (ROOT / words[1]).exists(), block.where
        else:
            return False
    return True


def data(block, names):
    if block.language == "toml":
        tomllib.loads(block.text)
        if block.file.endswith(settings.FILE_NAME) or re.search("^(gpu|peak_tflops) =", block.text):
            Path(settings.FILE_NAME).write_text(block.text)
            settings.load(Path())
            Path(settings.FILE_NAME).unlink()
    elif block.language == "json":
        json.loads(block.text)
    else:
        documents = [one for one in yaml.safe_load_all(block.text) if one is not None]
        assert all(isinstance(one, dict | list) for one in documents), block.where
        path = Path(block.file or f"snippet-{block.line}.yaml")
        path.write_text(block.text)
        if "format" in documents[0]:
            assert load_formats([path])
        elif "when" in documents[0]:
            assert load_paths([path])


def exercise(block, names, capsys, monkeypatch):
    """Whether something exercised the block."""
    kind, _, about = block.mark.partition(": ")
    if kind == "not run":
        if block.language == "python":
            compile(block.text, block.where, "exec")
        return about in NOT_RUN[name_of(block.page)]
    if kind == "tested by":
        return block.page.name in (ROOT / about).read_text(encoding="utf-8")
    if kind == "output":
        report = scan(FIXTURES / about / "run")
        return block.text in render_text(report.data)
    if kind == "log lines":
        return understood(block)
    if block.file:
        shutil.rmtree(Path(block.file).parent, ignore_errors=True) if "/" in block.file else None
        Path(block.file).parent.mkdir(parents=True, exist_ok=True)
        Path(block.file).write_text(block.text, encoding="utf-8")
        if block.language in {"", "text"}:
            return True
    if block.language == "python":
        python(block, names)
        return True
    if block.language in {"yaml", "toml", "json"}:
        data(block, names)
        return True
    if block.text.startswith("Usage: hcp-logscan "):
        run(["hcp-logscan", "--help"], block.text, capsys, monkeypatch)
        return True
    if block.language in {"", "console", "bash", "text"}:
        return shell(block, capsys, monkeypatch)
    return False


def understood(block):
    path = Path(f"lines-{block.line}.log")
    path.write_text(block.text, encoding="utf-8")
    (stats,) = scan_batch([Unit(0, str(path))]).units
    return stats.recognised == len(block.text.splitlines())


def python(block, names):
    if ">>> " in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, names, block.where, None, block.line)
        test.globs = names  # a copy otherwise
        assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0, block.where
    else:
        exec(compile("\n" * block.line + block.text, name_of(block.page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_exercised_or_says_why_not(page, here, capsys, monkeypatch):
    names = {"__name__": "snippet"}
    for block in blocks(page):
        assert exercise(block, names, capsys, monkeypatch), f"{block.where} is exercised by nothing"


def test_every_fence_is_seen():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(list(blocks(page))), page


def test_no_reason_is_left_over():
    found = {}
    for page in PAGES:
        for block in blocks(page):
            if block.mark.startswith("not run"):
                found.setdefault(name_of(page), set()).add(block.mark.partition(": ")[2])
    assert found == NOT_RUN


def test_pages_of_rules_are_made_from_examples_that_are_run():
    for page in (ROOT / "docs" / "rules").glob("*.md"):
        assert page.read_text(encoding="utf-8").startswith(MARK)


def option_names():
    parameters = typer.main.get_command(app).params
    return [name for one in parameters for name in one.opts if name.startswith("-")]


def named(option, text):
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text) is not None


TESTED = "".join(
    path.read_text(encoding="utf-8")
    for path in (ROOT / "tests").rglob("*.py")
    if path != Path(__file__)
)


@pytest.mark.parametrize("option", option_names())
def test_every_option_stands_in_the_documentation_and_in_a_test(option):
    documents = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    documents = re.sub(r"```text\nUsage: hcp-logscan .*?```", "", documents, flags=re.DOTALL)
    assert named(option, documents)
    assert named(option, TESTED), option


def test_a_block_that_nothing_exercises_is_found(here, capsys, monkeypatch):
    def tried(language, text, mark=""):
        page = ROOT / "README.md"
        return exercise(Block(page, 1, language, text, mark, ""), {}, capsys, monkeypatch)

    assert not tried("", "cli -> api\n")
    assert not tried("text", "some words\n")
    assert not tried("text", "no log\n", "log lines")
    assert not tried("", "echo hcp-logscan\n")
    assert tried("", "python benchmarks/bench.py --help  # words\n")
    with pytest.raises(AssertionError):
        tried("", "python benchmarks/no_such_script.py\n")
    assert not tried("text", "What broke  Nothing.\n", "output: hang-rank3")
    assert (
        not tried("text", "x\n", "tested by: tests/test_site.py")
        or "README.md" in (ROOT / "tests/test_site.py").read_text()
    )
    with pytest.raises(AssertionError):
        tried("console", "$ hcp-logscan --no-such-option\n")
    with pytest.raises(AssertionError):
        tried("console", "$ hcp-logscan --version\n0.0.0-nonsense\n")
    with pytest.raises(AssertionError):
        tried("", "make no-such-target\n")
    with pytest.raises(KeyError):
        tried("", "x\n", "not run: because")
    with pytest.raises(NameError):
        tried("python", "no_such_name\n")


def test_shown_lines_may_be_left_out():
    assert matches("a\n...\nc\n", "a\nb\nb\nc\n")
    assert matches("a\n...\n", "a\nb\n")
    assert matches("a\n", "a\n")
    assert not matches("a\nc\n", "a\nb\nc\n")
    assert not matches("a\n...\nd\n", "a\nb\nc\n")
