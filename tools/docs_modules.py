"""Every module in a sentence, into docs/architecture.md: `python tools/docs_modules.py`."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Final

from hcp_logscan.cli.guide import BEGIN, END, renewed
from hcp_logscan.model.markdown import prose_line

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "architecture.md"
LAYERS: Final = (
    "cli",
    "reporting",
    "rules",
    "analysis",
    "engine",
    "parsers",
    "sources",
    "model",
)
"""Packages from top to bottom, as import-linter has them; `api` is one module between two."""


def sentence(path: Path) -> str:
    """The first paragraph of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    # reStructuredText's double backticks would hold the single ones of Markdown
    return " ".join(text.partition("\n\n")[0].replace("``", "`").split())


def _name(path: Path, folder: Path) -> str:
    """A module by its file, a package inside a layer by its folder."""
    name = path.relative_to(folder).as_posix()
    return name.removesuffix("__init__.py")


def made() -> str:
    """A list for each layer."""
    blocks = [BEGIN]
    for layer in LAYERS:
        folder = ROOT / "hcp_logscan" / layer
        modules = [
            path
            for path in sorted(folder.rglob("*.py"))
            if path.parent != folder or path.stem != "__init__"
        ]
        blocks += [
            f"### `{layer}`",
            prose_line(sentence(folder / "__init__.py")),
            "\n".join(
                f"- `{_name(path, folder)}`: {prose_line(sentence(path))}" for path in modules
            ),
        ]
    return "\n\n".join([*blocks, END])


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), made()), encoding="utf-8")
    sys.exit(0)
