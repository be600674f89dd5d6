# The folder with the real data sets; without it, tests that need it skip.
RLM_DATA_DIR ?= ../shared/data
export RLM_DATA_DIR

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
QUICK := $(addprefix tests/,objectives layers metrics optimizers data envs restricted \
    test_checks.py test_numerics.py test_seeds.py test_distribution.py)

.PHONY: help venv peers docs demo coherence pretrain-demo seeds-demo distill quick test test-all budgets lint types check tables \
    benchmark clean

help:  ## Lists the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(VENV)/.installed  ## Creates .venv with the pinned packages.

$(VENV)/.installed: requirements.lock setup.cfg
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

peers: $(VENV)/.peers  ## Adds PyTorch, NLTK, KenLM, Snorkel and others, for comparisons.

$(VENV)/.peers: requirements-peers.lock $(VENV)/.installed
	$(BIN)/pip install --quiet --requirement requirements-peers.lock
	touch $@

docs: $(VENV)/.docs  ## Builds site/: the pages, and one of every public name.
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict \
	    --config-file docs/mkdocs.yml

$(VENV)/.docs: requirements-docs.lock $(VENV)/.installed
	$(BIN)/pip install --quiet --requirement requirements-docs.lock
	touch $@

DEMO := $(BIN)/rlm_tf train --text=python-docs --nomixture --nodynamic --epochs=4 \
    --width=128 --learning_rate=0.006 --dropouts=0.2,0.1,0.1,0.3

demo: venv  ## Trains with and without IMM on the embedded corpus, compares, exports.
	$(DEMO) --noimm --output_dir=runs/demo/without
	$(DEMO) --imm --output_dir=runs/demo/with
	$(BIN)/rlm_tf compare --models=runs/demo/without,runs/demo/with

coherence: venv  ## Measures how coherent the embedded corpus is over long ranges.
	$(BIN)/rlm_tf coherence --corpus=python-docs --folds=3 --output_dir=runs/coherence

pretrain-demo: venv  ## Trains an encoder on the embedded corpus, fills masks: three minutes.
	$(BIN)/rlm_tf pretrain --text=python-docs --objective=masked --minutes=3 \
	    --output_dir=runs/pretrain-demo
	$(BIN)/rlm_tf fill_mask --model=runs/pretrain-demo \
	    --text="The [MASK] of the class is called, and returns the [MASK]."

SEEDS := experiments/seed_classify/python_docs_seeds.json

seeds-demo: venv  ## Classifies paragraphs of the embedded corpus from seed words: two minutes.
	$(BIN)/rlm_tf seed_classify --texts=python-docs --seed_words=$(SEEDS) \
	    --output_dir=runs/seeds-demo

distill: venv  ## Makes a quarter of a classifier of digits, its price beside: two minutes.
	$(BIN)/rlm_tf distil --digits --epochs=30 --learning_rate=0.005 --output_dir=runs/distill \
	    --export=runs/distill-served/1 --overwrite

quick: venv  ## Tests of pure functions and layers, for every few minutes.
	$(BIN)/python -m pytest -m "not slow and not landing" $(QUICK)

test: venv  ## Tests of every promise, but for what only landing needs.
	$(BIN)/python -m pytest -m "not landing"

test-all: venv  ## The whole suite: kills, long runs, several processes, too.
	$(BIN)/python -m pytest

budgets: venv  ## Measures tests/budgets.json anew, on a quiet machine.
	$(BIN)/python -m pytest --write_budgets

lint: venv  ## Checks style.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv  ## Checks types.
	$(BIN)/mypy

check: lint types test-all  ## Style, types and the whole suite.

tables: venv  ## Writes the tables of all pages from the rows of the studies.
	$(BIN)/python -m experiments.pages

benchmark: peers  ## Measures speed and memory beside other implementations.
	$(BIN)/python -m experiments.benchmark --preset=small --output_dir=runs/benchmark

clean:  ## Removes the environment and caches.
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build site *.egg-info
