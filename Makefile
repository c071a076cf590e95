# Every recipe is a line or two: what it does is in the script that it calls.
#   make demo [TEXT="your own words"]   see it work
#   make test                           all tests
#   make ci                             what must pass before anything lands

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
CARGO := cargo
LOCKED := --release --locked
CASES ?= 5000
QUERIES ?= 100000
FUZZ_SECONDS ?= 600
ROUNDS ?= 100
TIMES ?= 10
ITERATIONS ?= 2000

# The index with twins of its locks and atomics, for a scheduler that explores how threads interleave.
INTERLEAVED := RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=$(TARGET)/shuttle $(CARGO)

# What Python loads as the engine: a link to what cargo built.
ENGINE := python/longbow/_engine.abi3.so

# The Python side starts the binary that was just built.
export LONGBOW_BIN := $(TARGET)/release/longbow
export TEXT
export ITERATIONS
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo build test test-rust test-python interleave neon ci fmt fmt-check clippy doc lint-python tidy bench bench-log bench-ann bench-databases bench-filtered bench-spfresh torture clean

help: ## This list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build $(VENV)/ready ## Start a server, fill it, search it, kill it, find everything again
	$(PY) demo/run.py

build: ## The binary, target/release/longbow, and the engine for Python
	$(CARGO) build $(LOCKED) --workspace --bins --lib
	ln -sfn $(TARGET)/release/liblongbow_python.so $(ENGINE)

test: test-rust test-python ## All tests

test-rust:
	$(CARGO) test $(LOCKED) --workspace

test-python: build $(VENV)/ready
	$(PY) -m pytest -q scripts/tests bench/log_peers bench/ann bench/databases bench/filtered bench/spfresh
	cd python && ../$(PY) -m pytest -q

interleave: ## Threads of the index in ITERATIONS orders; with TEST=churn that test alone, by SCHEDULE if that is set
	$(INTERLEAVED) test $(LOCKED) -p longbow-index --lib interleave::$(TEST)

neon: ## The kernels of 64-bit ARM, in an emulator
	scripts/neon.sh

ci: fmt-check clippy doc lint-python test interleave ## What must pass before anything lands

fmt: $(VENV)/ready ## Format all code
	$(CARGO) fmt --all
	$(VENV)/bin/ruff format python

fmt-check:
	$(CARGO) fmt --all --check

clippy: ## Rust's linter; a warning is an error
	$(CARGO) clippy $(LOCKED) --workspace --all-targets -- -D warnings
	$(INTERLEAVED) clippy $(LOCKED) -p longbow-index --all-targets -- -D warnings

doc: ## The documentation of the code, target/doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(LOCKED) --workspace --no-deps --document-private-items --quiet

lint-python: $(VENV)/ready
	$(VENV)/bin/ruff check python && $(VENV)/bin/ruff format --check python
	cd python && ../$(PY) -m mypy

tidy: ## The rules of the house
	$(CARGO) test $(LOCKED) -p longbow --test tidy

bench: build $(VENV)/ready ## Figures beside peers, measured in the same run
	-$(PY) -m pip install --quiet hnswlib==0.8.0 # a peer; without it that comparison says "not measured"
	$(PY) bench/run.py $(ARGS)

bench-log: build $(VENV)/ready ## The log beside PostgreSQL, Kafka, SQLite and the raw disk
	$(PY) bench/log_peers/run.py $(ARGS)

bench-ann: build ## The indexes beside hnswlib, faiss, SymphonyQG and others, on real vectors
	$(PYTHON) bench/ann/run.py $(ARGS)

bench-databases: build $(VENV)/ready ## Longbow beside Qdrant, zvec, LanceDB, Chroma and pgvector
	$(PY) bench/databases/run.py $(ARGS)

bench-filtered: build $(VENV)/ready ## Recall and rate of Longbow's filtered searches, where what passes is near or far
	$(PY) bench/filtered/filtered_recall.py $(ARGS)

bench-spfresh: build $(VENV)/ready ## Updates and searches of a small set, beside LanceDB and alone
	$(PY) bench/spfresh/run.py
	$(LONGBOW_BIN) bench spfresh

torture: build $(VENV)/ready ## TIMES as many random lives, faults and interleavings, CASES property tests each, QUERIES beside writes, FUZZ_SECONDS of fuzz, ROUNDS of kill -9
	TORTURE=$(TIMES) $(CARGO) test $(LOCKED) -p longbow-engine --test it
	SHUTTLE_RANDOM_SEED=$$RANDOM $(MAKE) interleave ITERATIONS=$$(($(TIMES) * $(ITERATIONS)))
	QUERIES=$(QUERIES) $(CARGO) test $(LOCKED) --workspace --test churn
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test $(LOCKED) --workspace --test fuzz
	PROPTEST_CASES=$(CASES) $(CARGO) test $(LOCKED) --workspace
	$(PY) scripts/torture_test.py --rounds $(ROUNDS)
	$(PY) scripts/torture_test.py --rounds $(ROUNDS) --index spfresh

clean: ## Remove all that was built
	$(CARGO) clean
	rm -rf $(VENV) .venv-ann $(ENGINE)

# The stamp is newer than what it was made from, or the environment is made up to date.
$(VENV)/ready: python/requirements.txt python/pyproject.toml
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet -r python/requirements.txt
	$(PY) -m pip install --quiet --no-deps -e python
	touch $@
