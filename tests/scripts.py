"""Scripts of the repository that are no package, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[1]


@cache
def script(name: str) -> ModuleType:
    """`benchmarks/score.py` as a module: one per name, whoever asks."""
    path = ROOT / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    return made
