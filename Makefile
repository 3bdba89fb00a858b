# make demo   text from the bundled model; needs nothing but Python, make and a package index
# make quick  a test of everything, in a minute: before each commit
# make test   everything, parity with torch included, an hour on two cores: before each merge
# make fuzz   random programs in every way there is; N of them, other ones with another SEED
# make fuzz-files   files of models changed at random: each is read, or refused by one error
# make array-api SUITE=path   the public suite of the array API standard, as calls come and compiled
# make lint   ruff and the type checker
# make docs   the documentation as a site in site/, without a network; links and references are checked
# make try-wheel   builds the wheel, installs it where nothing else is, and has it write text

PYTHON ?= python3
N ?= 20000
JOBS ?= auto
SEED ?= 0
EXAMPLES ?= 8
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SPEAKS := $(shell $(BIN)/gptrs --version >/dev/null 2>&1 && echo yes)

# An environment that was moved, or whose Python is gone, is made anew.
ifneq ($(SPEAKS),yes)
$(shell rm -f $(VENV)/.runtime $(VENV)/.dev)
endif

# pytest keeps the bytecode of rewritten assertions between runs, unless this variable is set.
unexport PYTHONDONTWRITEBYTECODE

PYTEST := $(BIN)/python -m pytest
PARALLEL := --numprocesses $(JOBS) --maxprocesses 8 --dist worksteal

.PHONY: demo quick test fuzz fuzz-files array-api lint format docs wheel try-wheel clean

demo: $(VENV)/.runtime
	@$(BIN)/gptrs generate "Once upon a time" --stats

quick: $(VENV)/.dev
	$(PYTEST) $(PARALLEL) -m "not slow and not alone"

# Tests that need the machine to themselves run in one process, after the others.
test: $(VENV)/.dev
	$(PYTEST) $(PARALLEL) -m "not alone"
	$(PYTEST) -m alone

fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz --count $(N) --seed $(SEED)

fuzz-files: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz_files --count $(N) --seed $(SEED)

array-api: $(VENV)/.dev
	@test -d "$(SUITE)" || { echo "SUITE=path: a checkout of github.com/data-apis/array-api-tests, its requirements.txt installed"; exit 1; }
	$(BIN)/python -m tests.array_api $(SUITE) --max-examples $(EXAMPLES)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html; with search: $(BIN)/python -m http.server --directory site"

wheel: $(VENV)/.dev
	$(BIN)/python -m build

try-wheel:
	rm -rf build/wheel
	$(PYTHON) -m venv --clear build/tried
	build/tried/bin/python -m pip --quiet install build
	build/tried/bin/python -m build --wheel --outdir build/wheel
	$(PYTHON) -m venv --clear build/tried
	build/tried/bin/python -m pip --quiet install "$$(echo build/wheel/*.whl)[all]"
	cd build && tried/bin/gptrs generate "Once upon a time" --max-tokens 20 --stats

clean:
	rm -rf $(VENV) .pytest_cache build dist site

$(VENV)/.runtime: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gptrs needs Python 3.11 or newer; choose one: make PYTHON=python3.12")'
	@echo "installing into $(VENV) ..."
	@test "$(SPEAKS)" = yes || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --editable '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "installing the tools for development (torch among them) ..."
	@$(PIP) install --editable '.[dev,torch]'
	@touch $@
