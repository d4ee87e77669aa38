"""Every module of parsers says what it was written from: project, file and version."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import hcp_logscan.parsers as package

MODULES = [
    module
    for info in pkgutil.iter_modules(package.__path__)
    if getattr(module := importlib.import_module(f"{package.__name__}.{info.name}"), "PARSERS", ())
]
SOURCE = re.compile(r"``[^`]*(?:/|\.(?:py|cpp|cc|c|hpp))[^`]*``|https?://|``nvidia-smi``")
VERSION = re.compile(r"\b\d{1,2}\.(?:\d|x)|\b20[12]\d\b")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_module_of_parsers_states_its_sources(module):
    before, said, source = " ".join((module.__doc__ or "").split()).partition("ritten from ")

    assert before
    assert said, "say `Written from <project> <file> (<versions>)`"
    assert re.search(r"[A-Za-z]{3}", source), "name the project"
    assert SOURCE.search(source), "name the file, or the page"
    assert VERSION.search(source), "name the versions"
