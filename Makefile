# Needs python3 (3.11 or newer), pip and make; uses uv where it is there. `make` alone tells what there is.
#
#   make test PYTHON=python3.12          another interpreter
#   make test ARGS='-k launcher -x'      arguments for pytest, or for `stormproof run`

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=

.DEFAULT_GOAL := help
.PHONY: help run test test-matrix lint format docs bench clean

help:  ## what can be made
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/.installed  ## set everything up and run the `ci` set against the reference agent
	$(VENV)/bin/stormproof run --set ci $(ARGS)

test: $(VENV)/.installed-dev  ## set everything up and run the tests
	$(VENV)/bin/pytest $(ARGS)

test-matrix:  ## the tests on each of Python 3.11, 3.12 and 3.13 that is found, each in .venv-3.x
	@+.ci/matrix

lint: $(VENV)/.installed-dev  ## ruff (rules, format) and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.installed-dev  ## let ruff put the files into shape
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs: $(VENV)/.installed  ## the pages that are written from the code
	$(VENV)/bin/python -m harness.documentation

bench: $(VENV)/.installed-dev  ## the benchmarks, one after the other
	@set -e; for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(VENV)/bin/python "$$file" $(ARGS); done

clean:  ## remove all that was made here: environments, builds, caches
	rm -rf .venv .venv-3.* build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: an environment is set up again only when what it is made from has changed.
$(VENV)/.installed: pyproject.toml .ci/environment
	@.ci/environment $(VENV) "$(PYTHON)"

$(VENV)/.installed-dev: pyproject.toml .ci/environment
	@.ci/environment $(VENV) "$(PYTHON)" dev
