# Two commands for a fresh Debian or Ubuntu machine with Python 3.11, git and make:
#   make nightly    set everything up and run the main job on real Postgres releases
#   make test       set everything up, lint, type-check and run every test
# Everything else is for people who work on Pointdrop.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
NIGHTLY_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup setup-test nightly test lint bench lock clean

help: ## say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## system packages and .venv, quick when there is nothing to do
	@.ci/system-packages run
	@.ci/virtualenv $(VENV) requirements/run.txt $(PYTHON)

setup-test: ## what the tests need on top
	@.ci/system-packages run build test
	@.ci/virtualenv $(VENV) requirements/dev.txt $(PYTHON)
	@.ci/test-tools

nightly: setup ## run the main job; NIGHTLY_ARGS=--dry-run prints the plan
	@$(BIN)/pointdrop nightly $(NIGHTLY_ARGS)

lint: setup-test ## ruff, mypy, the dependency rule, unused and undeclared packages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/deptry .

test: lint ## lint and every test, end-to-end tests on real servers included
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

bench: setup-test ## the benchmarks, with the peers beside ours
	@.ci/virtualenv .venv-otava requirements/otava.txt $(PYTHON)
	@.ci/virtualenv .venv-mongodb requirements/mongodb.txt $(PYTHON)
	@$(BIN)/python -m tests.benchmarks

lock: ## pin requirements/*.in by digest; needs uv
	@for set in run dev otava mongodb; do uv pip compile --quiet --upgrade --generate-hashes --python-version 3.11 \
	  --no-annotate --no-header requirements/$$set.in -o requirements/$$set.txt; done

clean: ## remove what make made, but not the history
	rm -rf $(VENV) .venv-otava .venv-mongodb build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
