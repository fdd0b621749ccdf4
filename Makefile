# Two commands: `make demo` runs the main job, `make test` runs the tests. Both set up what they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.tilefarm-installed
SECONDS := 1800
PROFILE := brief
NATIVE := $(shell find device_server/vta/runtime driver/memory/core -type f 2>/dev/null)

.PHONY: help setup demo test faults soak cluster-test lint clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

setup: $(STAMP)  ## virtual environment, dependencies and the C++ library

$(STAMP): pyproject.toml deploy/locks/dev.txt $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "tilefarm needs Python 3.11 or newer; try: make PYTHON=python3.11 setup"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (once; a minute or two) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r deploy/locks/dev.txt
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)  ## tune, assemble, run and report the network in driver/network/examples
	@$(BIN)/tilefarm demo

# They start hundreds of Pythons: without byte code each would compile all of tilefarm anew. Many
# wait for processes and clocks, so that four at a time keep even two cores busy. The order is that of
# tests/conftest.py: files with few tests, which xdist would keep for the end, take the longest.
test: export PYTHONDONTWRITEBYTECODE =
test: $(STAMP)  ## the tests (PROFILE=thorough: property tests with all their examples)
	@$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder \
	  --hypothesis-profile $(PROFILE)

faults: $(STAMP)  ## what may happen to a farm, each on real processes, and how soon it is over
	@$(BIN)/python -m pytest -q -m faults tests/faults

soak: $(STAMP)  ## a farm that is not left alone for half an hour (SECONDS=1800), and 10,000 candidates
	@SOAK_SECONDS=$(SECONDS) SOAK_CANDIDATES=10000 $(BIN)/python -m pytest -q -m slow \
	  tests/faults/test_nemesis.py tests/faults/test_many_candidates.py

cluster-test: $(STAMP)  ## two Ray nodes, a tracker and devices on machines of their own, and jobs on them
	@$(BIN)/python -m pytest -q -s -m slow tests/whole/test_cluster.py

lint: $(STAMP)  ## style, types, import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:  ## remove everything that was built
	rm -rf $(VENV) build dist
