# Every target sets up what it needs, from a bare checkout on.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tools that inspect the dependencies stay out of them.
TOOLS := $(VENV)/tools
# Python keeps compiled modules; otherwise every process that a test starts compiles them again.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# One more than there are processor cores, since tests in a browser wait now and then; at most four, each takes 2 GB.
WORKERS = $(shell $(PYTHON) -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))')

PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: app test test-slow test-all check docs nightly bench kills screenshots hashes sbom audit clean

app: $(VENV)/.app
	$(BIN)/stepsight app

# Without the tests that are slow by nature, which test-slow runs.
test: $(VENV)/.dev
	$(BIN)/python -m tests.programs chromium
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/python -m tests.programs chromium nginx
	$(PYTEST) -m "slow and not nightly"

test-all: test test-slow

# Searches for faults, with another seed each time: damaged and hostile files, requests, patterns, every button.
# SEED=NUMBER repeats one, COUNT=100 tries fewer inputs of each kind.
nightly: SEED := $(or $(SEED),$(shell date +%s))
nightly: $(VENV)/.dev
	$(BIN)/python -m tests.programs chromium
	@echo "make nightly SEED=$(SEED)"
	SEED=$(SEED) STEPSIGHT_FUZZ=$(or $(COUNT),1000) $(PYTEST) -m nightly

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/.docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --fresh-env docs build/docs
	@echo "The manual is at build/docs/index.html."

# SHORT=1 measures the scorer alone, and fails on a clear loss.
bench: $(VENV)/.dev
	$(if $(SHORT),,$(BIN)/python -m tests.programs chromium)
	$(BIN)/python -m tests.bench $(if $(SHORT),--short,--write)

# Kills of processes of every kind while they write, on each database: what was lost, doubled or left in part.
kills: $(VENV)/.dev
	$(BIN)/python -m tests.bench.kills --kills $(or $(COUNT),14)

screenshots: $(VENV)/.dev
	$(BIN)/python -m tests.programs chromium
	$(BIN)/python -m tests.screenshots

# For all files of each package, on every platform.
hashes: $(VENV)/.tools
	mkdir -p build
	{ echo '# What a server needs, with the SHA-256 of every file that PyPI has of it, for pip install --require-hashes.'; \
	  echo '# Written by: make hashes'; \
	  $(TOOLS)/bin/uv pip compile pyproject.toml --constraints constraints.txt --universal --python-version 3.11 \
	    --extra lora --extra parquet --extra postgresql --generate-hashes \
	    --no-annotate --no-header --quiet; } > build/hashes.txt
	mv build/hashes.txt requirements-hashed.txt

sbom: $(VENV)/.app $(VENV)/.tools
	mkdir -p build
	$(TOOLS)/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-reproducible -o build/sbom.json
	@echo "What is installed is listed in build/sbom.json."

audit: $(VENV)/.dev $(VENV)/.tools
	$(BIN)/python -m tests.audit $(TOOLS)/bin/pip-audit

clean:
	rm -rf $(VENV) build dist *.egg-info

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "StepSight needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.app: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.app

$(VENV)/.tools: $(VENV)/.python
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check \
		cyclonedx-bom==7.5.0 pip-audit==2.10.1 uv==0.13.9
	touch $@

$(VENV)/.docs: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) -e '.[docs]'
	touch $@ $(VENV)/.app
