"""Scores of a retriever for passages inside and outside its list, from files and from pipelines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from benchmarks.simulated_reader import collection

from ragworth.data import Contexts
from ragworth.evaluation.checks import load_checked_inputs
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool
from ragworth.retrieval import retrieve
from ragworth.studies.passage_scores import with_scores
from ragworth.workspace import config

SYSTEMS = """
[systems]
file = { run = "run.txt" }
short = "bm25 % 2"
turned = "bm25 % 4 >> reversed"
"""


def inputs_with(systems: str, place: Path, model: str) -> EvaluationInputs:
    """The inputs of a small workspace with these systems."""
    toml = collection(place, queries=3) / "ragworth.toml"
    text = toml.read_text(encoding="utf-8").replace('[systems]\nfirst = { run = "run.txt" }\n', systems)
    text = text.replace("[collection]", f"model = '{model}'\n[collection]")
    toml.write_text(text, encoding="utf-8")
    space = config.read(place)
    with ModelPool(space) as models:
        return load_checked_inputs(space, models)


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory, unasked: str) -> EvaluationInputs:
    return inputs_with(SYSTEMS, tmp_path_factory.mktemp("scores") / "w", unasked)


@pytest.fixture(scope="module")
def contexts(material: EvaluationInputs) -> Contexts:
    return retrieve(material.systems, material.step_context)


def listed(contexts: Contexts, system: str) -> dict[tuple[str, str], float]:
    rows = contexts.frame.select("system", "query", "passage", "score").iter_rows()
    return {(query, passage): score for name, query, passage, score in rows if name == system}


def scored(
    contexts: Contexts, system: str, pairs: Iterable[tuple[str, str]], material: EvaluationInputs | None = None
) -> dict[tuple[str, str], float | None]:
    """The scores that a system gives these passages; without its inputs, only those of its list."""
    frame = pl.DataFrame([("one", *pair) for pair in pairs], schema=["system", "query", "passage"], orient="row")
    more = (material.systems[system], material.step_context) if material is not None else ()
    shown = Contexts.trusted(frame.with_columns(rank=1, score=pl.lit(None, pl.Float64)))
    made = with_scores(shown, contexts, system, *more).frame
    return {(query, passage): score for query, passage, score in made.select("query", "passage", "score").iter_rows()}


@pytest.mark.slow
def test_scores_of_a_run_file_and_none_of_other_passages(material: EvaluationInputs, contexts: Contexts) -> None:
    other = "q000", "q001-gold0"
    found = scored(contexts, "file", [other, *listed(contexts, "file")], material)
    assert found.pop(other) is None
    assert found == pytest.approx(listed(contexts, "file"))


def check_deeper_scores(material: EvaluationInputs, contexts: Contexts, system: str, deep_pipeline: str) -> None:
    """A search scores the passages outside its list as the same search does that lists them."""
    deep = listed(retrieve({"all": deep_pipeline}, material.step_context), "all")
    assert len(deep) > len(listed(contexts, system))
    assert scored(contexts, system, deep, material) == pytest.approx(deep)
    without = scored(contexts, system, deep)
    assert {pair for pair, value in without.items() if value is not None} == set(listed(contexts, system))


@pytest.fixture
def one_query_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.studies.passage_scores.MAX_ROWS", 70)


@pytest.mark.usefixtures("one_query_at_a_time")
def test_bm25_scores_any_passage_as_a_deeper_search_would(material: EvaluationInputs, contexts: Contexts) -> None:
    check_deeper_scores(material, contexts, "short", "bm25")


@pytest.mark.model
@pytest.mark.usefixtures("one_query_at_a_time")
def test_a_dense_search_scores_any_passage_as_a_deeper_one_would(tmp_path: Path, unasked: str) -> None:
    material = inputs_with('[systems]\ndense = "dense % 3"\n', tmp_path / "w", unasked)
    contexts = retrieve(material.systems, material.step_context)
    check_deeper_scores(material, contexts, "dense", "dense")


def test_a_passage_without_a_word_of_the_query_has_the_empty_sum(
    material: EvaluationInputs, contexts: Contexts
) -> None:
    pair = ("q000", "q002-far0")  # it shares no word with the question
    assert scored(contexts, "short", [pair], material) == {pair: pytest.approx(0.0)}


def test_what_has_no_score_stays_without(material: EvaluationInputs, contexts: Contexts) -> None:
    pair, unknown = next(iter(listed(contexts, "turned"))), ("q000", "p?")
    assert scored(contexts, "turned", [pair], material) == {pair: None}
    assert scored(contexts, "short", [unknown], material) == {unknown: None}
