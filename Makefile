# make demo and make test do all of their own set-up; a second run is quick.

SHELL := /bin/bash
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH):$(HOME)/.cargo/bin
CARGO := cargo
MANIFEST := --manifest-path cas/native/Cargo.toml --locked

# How many tests at a time, and what else to tell pytest: make test PYTEST='-k chunker'
WORKERS ?= 2
PYTEST ?=
# What to tell the benchmarks on bad links.
LINK ?=

READY := .venv/.ready
NATIVE := cas/_native.abi3.so
RUST := cas/native/Cargo.toml cas/native/Cargo.lock $(shell find cas/native/src -name '*.rs')

.PHONY: help setup packages test lint lint-python lint-rust bench bench-link demo clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

help:
	@echo 'make demo    a whole sync over a bad link, in a few minutes'
	@echo 'make test    lint, then every test but those marked big'
	@echo 'make lint    ruff, mypy --strict, cargo fmt, clippy and cargo test'
	@echo 'make bench   the measurements that the documents quote'
	@echo 'make bench-link  those on bad links: root, half an hour, LINK="--keep FILE NAME..."'
	@echo 'make setup   only the set-up that each of these does first'
	@echo 'make clean   remove what these made, .venv too'

setup: packages $(READY)

$(READY): pyproject.toml $(RUST) tools/setup $(if $(wildcard $(NATIVE)),,rebuild)
	@tools/setup venv
	@touch $@

.PHONY: rebuild
rebuild:

# Quick where nothing is missing; elsewhere it says each time what tests will be skipped for.
packages:
	@tools/setup packages

test: setup lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST)

lint: lint-python lint-rust

lint-python: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# With the bindings and without: the tests need no Python to link with.
lint-rust: $(READY)
	@if $(CARGO) fmt --version >/dev/null 2>&1; then set -x; \
	  $(CARGO) fmt --manifest-path cas/native/Cargo.toml --check; \
	else echo 'cargo fmt is missing (rustup component add rustfmt): not run'; fi
	@if $(CARGO) clippy --version >/dev/null 2>&1; then set -ex; \
	  $(CARGO) clippy --quiet $(MANIFEST) --all-targets -- -D warnings; \
	  $(CARGO) clippy --quiet $(MANIFEST) --features python -- -D warnings; \
	else echo 'cargo clippy is missing (rustup component add clippy): not run'; fi
	$(CARGO) test --quiet $(MANIFEST)

bench: setup
	$(BIN)/python tests/bench/run.py

bench-link: setup
	$(BIN)/python tests/bench/link/run.py $(LINK)

demo: setup
	bash tests/demo.sh

clean:
	rm -rf .venv cas/native/target $(NATIVE) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find cas cli indexes tests -name __pycache__ -prune -exec rm -rf {} +
