# tokbatch: `make demo` runs the main job on the sample, `make test` runs the tests. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
# What the native engine's own targets need; without it they say so and are passed over.
CARGO := $(shell command -v cargo 2>/dev/null)
DIST ?= dist
FUZZ_SECONDS ?= 120

.PHONY: help demo test test-all test-extras test-native fuzz lint wheel oracles bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(STAMP): pyproject.toml setup.py src/tokbatch/_version.py native/Cargo.toml native/Cargo.lock $(shell find native/src -name "*.rs")
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@$(BIN)/python -m compileall -q src/tokbatch
	@touch $(STAMP)

demo: $(STAMP)  ## tokenize the sample corpus and print what was lost, file by file
	$(BIN)/python jobs/demo.py

test: $(STAMP)  ## the tests
	$(BIN)/python -m pytest -m "not long"
ifdef CARGO
	cd native && cargo test --locked --quiet
else
	@echo "the tests of the crate native/ are not run: there is no cargo"
endif

test-all: $(STAMP)  ## the tests, with the exhaustive and the random ones
	$(BIN)/python -m pytest

test-extras: $(STAMP)  ## the tests that need more packages: Ray, Spark, readers, an object store; those that can be had
	scripts/test_extras.sh

test-native:  ## the tests of the crate native/, and its unsafe code under Miri (or in a checked build)
	scripts/test_native.sh

fuzz: $(STAMP)  ## look for texts and files that break a property, FUZZ_SECONDS for each
	$(BIN)/python scripts/fuzz.py --seconds $(FUZZ_SECONDS)

lint: $(STAMP)  ## ruff and mypy; rustfmt and clippy where they are
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
ifdef CARGO
	@if cargo fmt --version >/dev/null 2>&1; then cd native && cargo fmt --check; else echo "no rustfmt here"; fi
	@if cargo clippy --version >/dev/null 2>&1; then \
	    cd native && cargo clippy --locked --all-targets --features python,abi3 --quiet -- -D warnings; \
	else echo "no clippy here"; fi
endif

wheel:  ## a wheel with the native engine, for machines without cargo (one for all Pythons from 3.11 on)
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir $(DIST) .
	@$(PYTHON) -m zipfile --list $$(ls -t $(DIST)/tokbatch-*.whl | head -n 1) | grep _native || \
	    { echo "the wheel lacks the native engine: is there a cargo?" >&2; exit 1; }

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
	rm -rf $(VENV) .venv-extras $(BENCH_VENV) build dist out src/*.egg-info src/tokbatch/*.so native/target
