"""Lay out what the documentation site is built from: `python tools/docs_site.py build`.

That is docs/ as it stands, pages from elsewhere in the repository, and `mkdocs.yml` with the rules
by family in its navigation. A page from elsewhere keeps its links: each is resolved where the page
stands in the repository, and leads to the page of the site, or to the file in the public repository
where the site has none. The site generator needs no plug-in and can be exchanged.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from hcp_logscan.rules.load import load_rules
from hcp_logscan.rules.pages import family

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = "https://github.com/hcp-logscan/hcp-logscan/blob/main"
PUBLISHED: Final = {
    "README.md": "index.md",
    "README.zh-CN.md": "zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "docs/triage.ipynb": "notebook.md",
    "docs/rules/README.md": "rules/index.md",
    "rules/README.md": "writing-rules.md",
    "rules/gpus.toml": "gpus.toml",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/RESULTS.md": "benchmark-results.md",
    "reports/sample.html": "sample.html",
    "hcp_logscan/reporting/report.v1.schema.json": "schema/report.v1.schema.json",
    "hcp_logscan/reporting/triage.v1.schema.json": "schema/triage.v1.schema.json",
}
"""File in the repository -> file of the site. One that does not exist is passed over."""

_FENCED: Final = re.compile(r"(^ *(`{3,}).*?^ *\2`* *$)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(
    r"(?P<before>\]\(|<a [^>]*?href=\"|<img [^>]*?src=\"|srcset=\")"
    r"(?P<target>(?![a-z]+:|[#/])[^)\"#\s]+)"
)


def layout() -> Iterator[tuple[str, str]]:
    """(file in the repository, file of the site), each once."""
    for place, uri in PUBLISHED.items():
        if (ROOT / place).exists():
            yield place, uri
    for path in sorted((ROOT / "docs").rglob("*")):
        place = path.relative_to(ROOT).as_posix()
        if path.is_file() and place not in PUBLISHED and ".ipynb_checkpoints" not in place:
            yield place, place.removeprefix("docs/")


def relinked(text: str, here: str, pages: dict[str, str]) -> str:
    """Markdown that stands in the file `here`, with links that hold on the site; code is left.

    `pages` is `layout()`. Raises ValueError where a link leads to no file of the repository.
    """

    def moved(match: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(here), match["target"]))
        if not (ROOT / place).exists():
            raise ValueError(f"{here}: no such file: {match['target']}")
        if place not in pages:
            return f"{match['before']}{SOURCE}/{place}"
        folder = posixpath.dirname(pages[here]) or "."
        return match["before"] + posixpath.relpath(pages[place], folder)

    parts = _FENCED.split(text)  # text, fence, its ticks, text, ...
    parts[::3] = [_LINK.sub(moved, part) for part in parts[::3]]
    del parts[2::3]
    return "".join(parts)


def notebook(text: str) -> str:
    """A notebook as Markdown: its words, and its code in fences."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    return "\n\n".join(
        source if kind == "markdown" else f"```python\n{source}\n```" for kind, source in cells
    )


def content(place: str, pages: dict[str, str]) -> bytes:
    """A file of the repository as the site has it."""
    raw = (ROOT / place).read_bytes()
    if not pages[place].endswith(".md"):
        return raw
    text = notebook(raw.decode()) if place.endswith(".ipynb") else raw.decode()
    # examples of rules: what stands in <details> is Markdown in the repository, too
    text = text.replace("<details><summary>", '<details markdown="1"><summary>')
    return relinked(text, place, pages).encode()


def rule_nav() -> list[str | dict[str, list[dict[str, str]]]]:
    """The index of the rules, and a section for each family."""
    sections: dict[str, list[dict[str, str]]] = {}
    for rule in sorted(load_rules(), key=lambda one: one.id):
        entry = {f"{rule.id} {rule.name}": f"rules/{rule.id}.md"}
        sections.setdefault(family(rule), []).append(entry)
    return ["rules/index.md", *({title: entries} for title, entries in sections.items())]


def configuration(pages: dict[str, str]) -> str:
    """mkdocs.yml with the rules, and with the pages that its navigation does not name."""
    settings, mark, written = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    nav: list[dict[str, Any]] = yaml.safe_load(written)
    next(part for part in nav if "Rules" in part)["Rules"] = rule_nav()
    named = set(re.findall(r"[\w./-]+\.md", json.dumps(nav)))
    there = {uri for uri in pages.values() if uri.endswith(".md")}
    if more := sorted(there - named):
        nav.append({"More": more})
    return settings + mark + yaml.safe_dump(nav, sort_keys=False, allow_unicode=True)


def main(target: Path) -> None:
    """Write `docs/`, which is replaced, and `mkdocs.yml` in the directory `target`."""
    pages = dict(layout())
    shutil.rmtree(target / "docs", ignore_errors=True)
    for place, uri in pages.items():
        path = target / "docs" / uri
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(place, pages))
    (target / "mkdocs.yml").write_text(configuration(pages), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
