# sparselab: `make demo`, `make test` and `make lab` set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS ?= runs

.PHONY: help demo test lab bench lint data clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	  || { echo "sparselab needs Python 3.11 to 3.13 (found: $$($(PYTHON) --version 2>&1)): install one, or name it: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "this Python has no venv: install it (on Debian or Ubuntu: apt-get install python3-venv) and run make again" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	@touch $@

demo: $(VENV)/.installed ## run every notebook on the shipped data; pages and an index under runs/
	@# One at a time, since two of the notebooks measure times.
	$(BIN)/sparselab sweep notebooks/demo.yaml --out $(RUNS)/demo --rerun changed --jobs 1

test: $(VENV)/.installed ## run all tests
	@# Two processes; more threads in each would only get in the way.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -q
	@echo "make test: all tests passed (browser tests run where a Chromium is installed)"

lab: $(VENV)/.installed ## open JupyterLab on the notebooks (localhost, token on)
	@# No news pop-up. In a container one is root, which Jupyter refuses unless told.
	$(BIN)/jupyter lab --ServerApp.root_dir=notebooks --ip=127.0.0.1 --LabApp.news_url=None \
	  $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_ARGS)

bench: $(VENV)/.installed ## measure speed against stated baselines; a table and a JSON
	$(BIN)/python -m tests.benchmarks

lint: $(VENV)/.installed ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

data: $(VENV)/.installed ## recompute data/overlaps from the source files: make data SOURCE=<folder>
	@test -n "$(SOURCE)" || { echo "name the folder of source files: make data SOURCE=<folder>" >&2; exit 1; }
	$(BIN)/python -m sparselab.build_data "$(SOURCE)"

clean: ## remove what the other targets made
	rm -rf $(VENV) $(RUNS) screenshots .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -prune -exec rm -rf {} +
