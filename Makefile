# Everything needed is installed into .venv at the first run, and again only when
# pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORES  := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

# Each test process computes on one thread: otherwise every one of them would start
# a pool as large as the machine.
# scikit-learn skips its array API checks unless SCIPY_ARRAY_API says that SciPy takes part.
ONE_THREAD := SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE

.PHONY: help demo test check lint format docs paper clean
.DEFAULT_GOAL := help

help:
	@echo "make demo     train on a sample of real data, beside scikit-learn, and save convergence.png"
	@echo "make test     lint, type check and run all tests"
	@echo "make check    the same without what is slow: no processes, browsers or interpreted kernels"
	@echo "make lint     lint and type check only"
	@echo "make format   rewrite the code in the house format"
	@echo "make docs     build the documentation into build/docs/"
	@echo "make paper    run the paper's experiments at their small scale (a quarter of an hour) and rebuild docs/paper"
	@echo "make clean    remove the virtual environment, caches and build outputs"

demo: $(VENV)/.installed-plot
	$(BIN)/python -m parablock.demo

test: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(CORES)

check: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(CORES) -m "not slow"

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

# In one process, whose experiments share fits.
paper: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.paper all --scale small

# One stamp for each extra of pyproject.toml: plot (for the demo), test and docs.
$(VENV)/.installed-%: pyproject.toml constraints.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$*]"
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis convergence.png
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
