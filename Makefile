# Everything a newcomer needs. `make demo` and `make test` set up what is missing first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SEEDS  ?= 0
OUT    ?= runs/demo
# QUICK=1: fewer updates and problems
SHORT  := $(if $(QUICK),--set train.updates=20 --set eval.problems=60 --set eval.curve_problems=30,--baselines)
STUDY  := --suite nano --set eval.curve_every=10 $(SHORT)

.DEFAULT_GOAL := help
.PHONY: help demo paper test test-slow check format lint types imports setup smollm2 clean

help:  ## show this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.user  ## ES, GRPO and both compositions on the bundled model, compared in one report (QUICK=1, SEEDS=0,1,2)
	$(BIN)/broadreach study demo --out $(OUT)$(if $(QUICK),-quick) --seeds $(SEEDS) $(STUDY)

paper: $(VENV)/.user  ## every table and figure of the paper on the bundled model, and the page (about 90 minutes)
	$(BIN)/broadreach paper run all
	$(BIN)/broadreach paper report

# Two workers of one thread each: two multi-threaded processes at once would slow each other down.
PYTEST := OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile

test: $(VENV)/.dev  ## run the tests, with coverage
	$(PYTEST) -m "not slow" --cov --cov-report=term:skip-covered --cov-fail-under=85

test-slow: $(VENV)/.dev  ## run the long tests: every gold answer of every data set, every hostile program
	$(PYTEST) -m slow

check: format lint types imports test  ## everything CI runs: format, lint, types, import contract, tests

format: $(VENV)/.dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports

smollm2: $(VENV)/.dev  ## fetch SmolLM2-135M-Instruct once, into the cache
	$(BIN)/python scripts/fetch_smollm2.py

setup: $(VENV)/.dev  ## only set up the development environment

clean:  ## remove the environment and caches (runs/ stays)
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage

# torch goes first and pinned, so that pip takes a CPU build; constraints.txt holds the rest.
$(VENV)/.torch: constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("broadreach needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	@echo "setting up $(VENV): about a minute on a good connection"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --progress-bar on --disable-pip-version-check -c constraints.txt torch
	@touch $@

$(VENV)/.user: $(VENV)/.torch pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[grpo]'
	@touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.user
