# tokbatch: `make demo` runs the main job on the sample, `make test` runs the tests. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint oracles bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(STAMP): pyproject.toml setup.py src/tokbatch/_version.py native/Cargo.toml native/Cargo.lock $(shell find native/src -name "*.rs")
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)  ## tokenize the sample corpus and print what was lost, file by file
	$(BIN)/python jobs/demo.py

test: $(STAMP)  ## the tests
	$(BIN)/python -m pytest -m "not long"

test-all: $(STAMP)  ## the tests, with the exhaustive and the random ones
	$(BIN)/python -m pytest

lint: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

oracles: $(STAMP)  ## regenerate the frozen answers of the oracle and compare them with the committed ones
	$(BIN)/python tests/oracles/make_oracles.py --check

# BENCH_CORPUS, BENCH_TOKENIZER: files to measure on, in place of the sample. BENCH_ARGS: see bench/run.py --help.
# The peers live in a venv of their own; one that cannot be had is left out, and the table says so.
BENCH_VENV := bench/.venv
bench/.venv/.installed: $(STAMP) bench/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable .
	@grep -v '^#' bench/requirements.txt | while read -r peer; do \
		$(BENCH_VENV)/bin/python -m pip install --quiet "$$peer" || echo "left out: $$peer"; done
	@touch $@

bench: bench/.venv/.installed  ## tokbatch and its peers, measured on the sample or on BENCH_CORPUS
	BENCH_CORPUS="$(BENCH_CORPUS)" BENCH_TOKENIZER="$(BENCH_TOKENIZER)" $(BENCH_VENV)/bin/python bench/run.py $(BENCH_ARGS)

clean:  ## remove what the targets made
	rm -rf $(VENV) $(BENCH_VENV) build dist out src/*.egg-info src/tokbatch/*.so native/target
