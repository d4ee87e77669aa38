# Thin names over the tools. `make help` lists them.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test lint types rules unit coverage bench fuzz reports images docs messages golden site dist release-check clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 demo"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@ $(VENV)/.run

$(VENV)/.release: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,release]'
	@touch $@ $(VENV)/.run $(VENV)/.dev

demo: $(VENV)/.run  ## create the environment, scan the bundled run, write reports/demo.html
	$(BIN)/hcp-logscan --demo

test: lint types rules unit  ## everything that must be green

lint: $(VENV)/.dev  ## format, style, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(VENV)/.dev  ## mypy --strict, and whether the public types are complete
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" basedpyright --verifytypes hcp_logscan --ignoreexternal \
	  > $(VENV)/.types || { cat $(VENV)/.types; exit 1; }

rules: $(VENV)/.dev  ## the rules' own linter
	$(BIN)/python -m hcp_logscan.rules.lint

unit: $(VENV)/.dev  ## pytest
	$(BIN)/pytest

coverage: $(VENV)/.dev  ## the same with coverage, which takes two thirds longer
	$(BIN)/pytest --cov --cov-report=term-missing:skip-covered

reports: $(VENV)/.dev  ## write the sample report again
	$(BIN)/hcp-logscan --demo --format none --output reports/sample.html --charts static

images: $(VENV)/.dev  ## draw docs/images again
	$(BIN)/python tests/browser/images.py

docs: $(VENV)/.dev  ## write what docs/ has from the program: pages of rules, tables, modules
	$(BIN)/python -m hcp_logscan.rules.pages docs/rules
	$(BIN)/python -m hcp_logscan.cli.guide docs/python.md
	$(BIN)/python tools/docs_modules.py

golden: $(VENV)/.dev  ## write what users rely on (tests/golden) again, to be reviewed
	$(BIN)/python tests/test_golden.py

site: $(VENV)/.docs  ## the documentation as a static site, into build/site; a dead link ends it
	$(BIN)/python tools/docs_site.py build
	$(BIN)/zensical build --strict --clean --config-file build/mkdocs.yml
	@! grep -rlE '<(script|img|iframe)[^>]* src="?(https?:)?//|<link[^>]*stylesheet[^>]*//' build/site --include='*.html' \
	  || { echo "these pages load something from a server"; exit 1; }

messages: $(VENV)/.dev  ## write the catalogue of translations again; fails where one is missing
	$(BIN)/python -m hcp_logscan.reporting.messages

dist: $(VENV)/.release  ## wheel and source distribution, into dist
	rm -rf dist
	$(BIN)/python -m build

release-check: dist  ## try both: contents, lowest and highest dependencies, every Python found
	$(BIN)/python tools/release_check.py dist $(PYTHONS)

bench: $(VENV)/.dev  ## measure against ripgrep and a line loop, into benchmarks/RESULTS.md
	$(BIN)/python benchmarks/bench.py

fuzz: $(VENV)/.dev  ## damage inputs of every reader and parser, 100,000 times; stops at the first failure
	$(BIN)/python benchmarks/fuzz.py $(FUZZ)

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .coverage build dist
