# Needs git, make and Python 3.11 or newer with venv; everything else goes into .venv.

VENV ?= .venv
OUT ?= out/demo
PYTHON ?= $(shell for python in python3.11 python3; do \
	$$python -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)

INSTALLED := $(VENV)/.installed
DOCUMENTING := $(VENV)/.documenting
GRADLAB := $(VENV)/bin/gradlab
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet --quiet

.DELETE_ON_ERROR:
.PHONY: help install demo test browser lint docs bench bench-quick wheel-test clean

help:
	@echo "make demo        run the main job: a sweep and three reports, in $(OUT)"
	@echo "make test        run all tests"
	@echo "make browser     look at the pages in a headless Chromium; pictures in out/screenshots"
	@echo "make lint        check style, types and the direction of imports"
	@echo "make docs        build the documentation, in site"
	@echo "make bench       measure speed against floors, peers and targets, as ratios"
	@echo "make bench-quick the same for small networks, in under two minutes"
	@echo "make wheel-test  build the wheel and test it in an empty environment"
	@echo "make clean       remove .venv, results, caches and builds"

install: $(INSTALLED)

# The build backend is installed first, so that its version is a constrained one too.
$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer with venv was found: install one," \
		"or name it, as in: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Installing into $(VENV), once; this takes a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --constraint constraints.txt hatchling editables
	@$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

demo: $(INSTALLED)
	$(GRADLAB) sweep --gamma 0.5:1.5:21 --hidden-size 64 --length 100 --seeds 10 -o $(OUT)/sweep --force
	$(GRADLAB) report vanishing -o $(OUT)/vanishing --force
	$(GRADLAB) report exploding -o $(OUT)/exploding --force
	$(GRADLAB) report examples/digits/digits_rnn.safetensors --inputs examples/digits/digits_test_inputs.npy \
		-o $(OUT)/digits --force
	@echo
	@echo "The reports are pages for a browser, the tables and figures lie beside them:"
	@echo "  spectral norms swept from 0.5 to 1.5   $(OUT)/sweep/figures/rate.png"
	@echo "  a network whose gradient vanishes      $(OUT)/vanishing/report.html"
	@echo "  a network whose gradient explodes      $(OUT)/exploding/report.html"
	@echo "  a network trained on digits            $(OUT)/digits/report.html"

# One process a core, and one BLAS thread in each: the test matrices are small, and threads would
# only wait for each other.
test: $(INSTALLED)
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/pytest -n auto --dist loadfile

# Chromium and axe-core are installed where they are missing and that is permitted.
browser: $(INSTALLED)
	.ci/browser
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/pytest -m browser tests/browser

lint: $(INSTALLED)
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# Building needs no network, and the pages need none either: that is checked.
docs: $(DOCUMENTING)
	$(VENV)/bin/python docs/reference.py
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet
	$(VENV)/bin/python docs/check_site.py site
	$(VENV)/bin/pytest --quiet tests/architecture/test_notation.py
	@echo "The documentation is in site/index.html"

$(DOCUMENTING): $(INSTALLED)
	@$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[docs]'
	@touch $@

bench: $(INSTALLED)
	$(VENV)/bin/python -m benchmarks.run

bench-quick: $(INSTALLED)
	$(VENV)/bin/python -m benchmarks.run --quick

wheel-test: $(INSTALLED)
	.ci/wheel-test $(VENV)/bin/python

clean:
	rm -rf $(VENV) node_modules out build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -f benchmarks/results.* benchmarks/growth.csv benchmarks/growth.png
	find gradlab cli reports tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
