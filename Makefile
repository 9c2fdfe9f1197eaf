# The one door: everything a newcomer, a maintainer or CI needs. Needs Python 3.11, git and make, nothing else.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
# The same version stands in pyproject.toml (group dev), so that a sync keeps the uv that does it.
UV_VERSION := 0.13.9
# Test workers. Two suit two cores; `make test WORKERS=0` runs all in one process.
WORKERS ?= 2

BIN := $(VENV)/bin
ENVIRONMENT := $(VENV)/.synced
KERNELS := $(VENV)/.kernels
KERNEL_SOURCES := $(wildcard src/armada/scheduling/*.py src/armada/scheduling/kernels/*.py src/armada/scheduling/kernels/*/*.py)

export UV_PROJECT_ENVIRONMENT := $(abspath $(VENV))
# Packages and Python come from the lock and the machine: uv fetches no interpreter of its own.
export UV_PYTHON_DOWNLOADS := never
export UV_NO_PROGRESS := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo up test nightly check bench fmt proto

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(KERNELS) ## Create the environment in .venv from the lock file and compile the kernels.

demo: setup ## Start everything, run a mix of jobs from three queues, show what happened.
	@$(BIN)/armada demo

up: setup ## Start everything and stay: prints the addresses, then one line "ready".
	@$(BIN)/armada up

test: setup ## Run all tests.
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal

# `make nightly SEED=7` repeats a run; EXAMPLES and MINUTES bound it.
nightly: setup ## Compare the scheduler with the plain oracle on 20,000 drawn problems, over all cores.
	@$(BIN)/python -m tests.nightly.run $(if $(SEED),--seed $(SEED)) --examples $(or $(EXAMPLES),20000) \
		--minutes $(or $(MINUTES),240) --workers $(or $(NIGHTLY_WORKERS),$(shell nproc))

check: setup ## Everything CI checks: format, lint, types, borders between rooms, tests.
	@echo "== format";  $(BIN)/ruff format --check .
	@echo "== lint";    $(BIN)/ruff check .
	@echo "== types";   $(BIN)/mypy
	@echo "== borders"; $(BIN)/lint-imports --no-cache
	@echo "== tests";   $(BIN)/pytest -n $(WORKERS) --dist worksteal

bench: setup ## Measure speed, latency and memory; each figure beside the reference's.
	@$(BIN)/python -m tests.benchmarks

fmt: $(ENVIRONMENT) ## Format the sources and repair what the linter can repair.
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

proto: $(ENVIRONMENT) ## Generate the protobuf code from proto/.
	@$(BIN)/python proto/generate.py

# Stamps: a target runs its recipe again only when one of the named files is newer.

$(ENVIRONMENT): pyproject.toml uv.lock
	@test -x $(BIN)/uv || { echo "== environment in $(VENV)"; $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet uv==$(UV_VERSION); }
	@$(BIN)/uv sync --frozen --compile-bytecode --all-extras --all-groups --python $(BIN)/python
	@touch $@

$(KERNELS): $(ENVIRONMENT) $(KERNEL_SOURCES)
	@$(BIN)/python -m compileall -q src/armada
	@echo "== kernels"
	@$(BIN)/python -m armada.scheduling
	@touch $@
