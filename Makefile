# Two commands do all the set-up: `make trace` runs the main job, `make test` the tests.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
EXPR ?= a + b
BIN := $(VENV)/bin
# One stamp for each requirement: with another TORCH, another one is installed.
TORCH_STAMP := $(VENV)/.torch-$(subst /,-,$(subst =,-,$(firstword $(TORCH))))

.DEFAULT_GOAL := help
.PHONY: help trace test test-real unit integration check bench docs clean

help: ## Show what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo 'there is no $(PYTHON): make PYTHON=/path/to/python3'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo 'this Python has no venv: apt-get install python3-venv, or make PYTHON=/path/to/python3'; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.tdbg: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.'
	@touch $@

$(TORCH_STAMP): $(BIN)/python
	$(BIN)/pip install --quiet '$(TORCH)' numpy
	@rm -f $(VENV)/.torch-* && touch $@

$(VENV)/.dev: $(VENV)/.tdbg
	$(BIN)/pip install --quiet --editable '.[dev]' setuptools ninja
	@touch $@

trace: $(VENV)/.tdbg $(TORCH_STAMP) ## Trace EXPR (default: a + b) on the pinned PyTorch
	@$(BIN)/tdbg trace '$(EXPR)'

test: unit integration ## Run all tests

unit: $(VENV)/.dev ## Run the tests that start no process
	$(BIN)/python -m pytest tests/unit -q

integration: $(VENV)/.dev $(TORCH_STAMP) ## Run the tests on real torch and gdb
	$(BIN)/python -m pytest tests/integration -q -n 2

test-real: $(VENV)/.dev ## Build parts of the real PyTorch 2.6.0 on Debian (minutes; apt, root)
	$(BIN)/python -m pytest tests/real -q -s

check: $(VENV)/.dev ## Lint and check types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev $(TORCH_STAMP) ## Measure what tracing, the shell, attach and build cost, side by side
	$(BIN)/python benchmarks/trace_cost.py
	$(BIN)/python benchmarks/shell_cost.py
	$(BIN)/python benchmarks/attach_cost.py
	$(BIN)/python benchmarks/build_cost.py

docs: $(VENV)/.tdbg ## Make the generated pages of docs/reference anew
	$(BIN)/python -m torchbench_dbg.trace.schema docs/reference

clean: ## Remove what make made
	rm -rf $(VENV)
