# The folder with the real data sets; without it, tests that need it skip.
RLM_DATA_DIR ?= ../shared/data
export RLM_DATA_DIR

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help venv peers demo test lint types check benchmark clean

help:  ## Lists the targets.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(VENV)/.installed  ## Creates .venv with the pinned packages.

$(VENV)/.installed: requirements.lock setup.cfg
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

peers: $(VENV)/.peers  ## Adds PyTorch, NLTK and KenLM, for comparisons.

$(VENV)/.peers: requirements-peers.lock $(VENV)/.installed
	$(BIN)/pip install --quiet --requirement requirements-peers.lock
	touch $@

demo: venv  ## Trains with and without IMM on the embedded corpus, compares, exports.
	$(BIN)/python -m experiments.imm_lm --preset=small --min_count=1 \
	    --output_dir=runs/demo --export=saved_models/demo

test: venv  ## Runs the whole test suite.
	$(BIN)/python -m pytest

lint: venv  ## Checks style.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv  ## Checks types.
	$(BIN)/mypy

check: lint types test  ## All of the above.

benchmark: peers  ## Measures speed and memory beside other implementations.
	$(BIN)/python -m experiments.benchmark --preset=small --output_dir=runs/benchmark

clean:  ## Removes the environment and caches.
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
