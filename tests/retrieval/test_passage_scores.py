"""Scores of a retriever for passages inside and outside its list, from files and from pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.simulated_reader import collection

from ragworth import config
from ragworth.calls.programs import NoValue
from ragworth.errors import InputError
from ragworth.evaluation.checks import load_checked_inputs
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool
from ragworth.retrieval import retrieve
from ragworth.retrieval.passage_scores import retriever_scores
from ragworth.tables import Contexts

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


@pytest.mark.slow
def test_scores_of_a_run_file_and_none_of_other_passages(material: EvaluationInputs, contexts: Contexts) -> None:
    pairs = [("q000", "q001-gold0"), *listed(contexts, "file")]
    found = retriever_scores(contexts, "file", [*pairs, *pairs], material.systems.get("file"), material.step_context)
    assert list(found) == pairs
    missing = found.pop(pairs[0])
    assert isinstance(missing, NoValue) and str(missing.detail) == "file did not retrieve the passage"
    assert found == pytest.approx(listed(contexts, "file"))


def check_deeper_scores(material: EvaluationInputs, contexts: Contexts, system: str, deep_pipeline: str) -> None:
    """A search scores the passages outside its list as the same search does that lists them."""
    deep = listed(retrieve({"all": deep_pipeline}, material.step_context), "all")
    assert len(deep) > len(listed(contexts, system))
    scores = retriever_scores(contexts, system, deep, material.systems.get(system), material.step_context)
    assert scores == pytest.approx(deep)
    without = retriever_scores(contexts, system, deep)
    assert {pair for pair, value in without.items() if not isinstance(value, NoValue)} == set(listed(contexts, system))


@pytest.fixture
def one_query_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.retrieval.passage_scores.MAX_ROWS", 70)


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
    assert retriever_scores(contexts, "short", [pair], material.systems.get("short"), material.step_context)[
        pair
    ] == pytest.approx(0.0)


def test_what_has_no_score_says_why(material: EvaluationInputs, contexts: Contexts) -> None:
    pair = next(iter(listed(contexts, "turned")))
    turned = retriever_scores(contexts, "turned", [pair], material.systems.get("turned"), material.step_context)[pair]
    assert isinstance(turned, NoValue) and turned.detail == "turned ranks passages without scores"
    strange = retriever_scores(
        contexts, "short", [("q000", "p?")], material.systems.get("short"), material.step_context
    )["q000", "p?"]
    assert isinstance(strange, NoValue) and strange.detail == "the collection has no text of the passage"
    with pytest.raises(InputError, match="no system 'third'") as error:
        retriever_scores(contexts, "third", [], material.systems.get("third"), material.step_context)
    assert "short" in str(error.value)
