# Two commands on a machine with python3 and make: `make quickstart` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
WORKDIR ?= runs/quickstart
SENTENCE ?= The old man whom Anna knows did not want to open the window today.
BIN    := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TEST_PACKAGES := $(VENV)/.test-packages
DOCS_PACKAGES := $(VENV)/.docs-packages
SYSTEM_PACKAGES := slurm-wlm munge chromium procps espeak-ng

.PHONY: help install quickstart docs test test-all test-gpu test-beam system-packages format lint types lock clean

help:            ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 18

install: $(INSTALLED)  ## create the environment in .venv, every package pinned and hashed

$(INSTALLED): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit("nmt-jax needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(TEST_PACKAGES): $(INSTALLED) tests/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r tests/requirements.txt
	@touch $@

$(DOCS_PACKAGES): $(INSTALLED) docs/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r docs/requirements.txt
	@touch $@

quickstart: $(INSTALLED)  ## train, translate, score and draw on the embedded corpus: a few minutes on two cores
	$(BIN)/nmt-jax train --config=configs/quickstart.py --workdir=$(WORKDIR)
	$(BIN)/nmt-jax corpus --workdir=$(WORKDIR) --split=test --lines=500 --output=$(WORKDIR)/test --overwrite
	$(BIN)/nmt-jax translate --workdir=$(WORKDIR) --input=$(WORKDIR)/test.en > $(WORKDIR)/test.hypothesis
	$(BIN)/nmt-jax score $(WORKDIR)/test.hypothesis --reference=$(WORKDIR)/test.de
	@echo; echo "Five sentences the model never saw:"
	@paste $(WORKDIR)/test.en $(WORKDIR)/test.hypothesis | head -n 5 | awk -F '\t' '{print "  " $$1 "\n    -> " $$2}'
	@echo; echo "What it looked at while translating:"
	$(BIN)/nmt-jax plot --workdir=$(WORKDIR) --kind=attention --sentence="$(SENTENCE)"
	@echo; echo "Next: train on your own text: $(BIN)/nmt-jax train --config=configs/multi30k.py --config.data.directory=FOLDER --workdir=runs/mine (README, 'Your own text')"

docs: $(DOCS_PACKAGES)  ## the documentation as a site: build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

test: $(TEST_PACKAGES) lint types  ## format, lint, types and all tests that are not marked slow
	$(BIN)/python -m pytest --quiet -n 2 --dist=worksteal -m "not slow and not gpu"

test-all: test $(DOCS_PACKAGES) system-packages  ## the slow tests as well: SLURM, Chromium, several processes, kills, real training
	$(BIN)/python -m pytest --quiet -n 2 --dist=worksteal -m "slow and not gpu"

test-gpu: $(TEST_PACKAGES)  ## the tests that compare a GPU with the CPU (CONTRIBUTING.md); says what to install
	@$(BIN)/python -m tests.gpu.device
	$(BIN)/python -m pytest --quiet -m gpu tests/gpu

test-beam: $(TEST_PACKAGES)  ## the tests that need Apache Beam (CONTRIBUTING.md)
	$(BIN)/python -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("apache_beam") and "Apache Beam is not installed: see CONTRIBUTING.md")'
	$(BIN)/python -m pytest --quiet tests/nmt_jax/data/prepared/test_beam_engine.py

system-packages: ## Debian packages that slow tests need, installed with apt-get where one is missing (needs root)
	@dpkg-query --show $(SYSTEM_PACKAGES) > /dev/null 2>&1 || { \
	  echo "installing $(SYSTEM_PACKAGES) with apt-get"; \
	  apt-get update --quiet=2 && apt-get install --quiet=2 --yes --no-install-recommends $(SYSTEM_PACKAGES); }

lint: $(INSTALLED)  ## format check and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(INSTALLED)  ## static types
	$(BIN)/mypy

format: $(INSTALLED)  ## rewrite the source in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock:            ## pin every package anew for Python 3.11 to 3.13 (needs uv)
	uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 --extra dev --output-file requirements.lock pyproject.toml

clean:           ## remove the environment and every cache
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info build dist
