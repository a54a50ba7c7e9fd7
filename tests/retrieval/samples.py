"""A small world to retrieve from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from ragworth.data import Contexts
from ragworth.data.collection import Collection
from ragworth.retrieval import STEPS
from ragworth.retrieval.pipeline import Pipeline, Step, StepContext

PASSAGES = {
    "p1": "Ann Lee built the mill.",
    "p2": "The mill was sold twice.",
    "p3": "Bread is baked at night.",
    "p4": "A mill grinds corn; the mill is old.",
    "p5": "",
}
QUERIES = {"q1": "Who built the mill?", "q2": "bread at night", "q3": "zeppelin", "q4": ""}
LABELS: dict[str, dict[str, float]] = {"q1": {"p1": 2, "p2": 1, "p3": 0, "p4": 0}, "q2": {"p3": 1}, "q3": {"p5": 0}}


def world(
    passages: Mapping[str, str] = PASSAGES,
    queries: Mapping[str, str] = QUERIES,
    labels: Mapping[str, Mapping[str, float]] | None = LABELS,
    **more: Any,
) -> StepContext:
    collection = Collection.of(
        queries={"query": list(queries), "text": list(queries.values())},
        passages={"passage": list(passages), "text": list(passages.values())},
        relevance=labels,
    )
    return StepContext.of(collection, **more)


def passages(contexts: Contexts, system: str) -> dict[str, list[str]]:
    """The passages of a system by query, in the order shown; ranks must count from 1 without a gap."""
    found: dict[str, list[str]] = {query: [] for name, query in contexts.empty if name == system}
    for query, rank, passage in contexts.only(system).frame.select("query", "rank", "passage").iter_rows():
        found.setdefault(query, []).append(passage)
        assert rank == len(found[query])
    return found


NUMBERS = st.floats(0, 5, allow_subnormal=False)
SETTINGS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "rewritten": st.fixed_dictionaries({}, optional={"history": st.integers(0, 9999), "seed": st.integers(0, 99)})
    | st.fixed_dictionaries({"model": st.text(), "n": st.integers(1, 9), "temperature": st.floats(0.1, 2)})
    | st.fixed_dictionaries({"by": st.sampled_from(["last", "all", "first+last", "history-terms", "human"])})
    | st.fixed_dictionaries({"file": st.text(min_size=1)}),
    "bm25": st.fixed_dictionaries(
        {},
        optional={
            "k1": NUMBERS,
            "b": st.floats(0, 1),
            "stopwords": st.sampled_from(["none", "english", "german"]),
            "stemmer": st.sampled_from(["none", "english"]),
        },
    ),
    "dense": st.fixed_dictionaries(
        {},
        optional={
            "model": st.text(min_size=1),
            "similarity": st.sampled_from(["model", "cosine", "dot"]),
            "query_prefix": st.text(),
        },
    ),
    "sparse": st.fixed_dictionaries({"model": st.text(min_size=1)}),
    "fused": st.fixed_dictionaries({}, optional={"k": NUMBERS}),
    "run": st.fixed_dictionaries({"path": st.text(min_size=1)}),
    "oracle": st.fixed_dictionaries({}, optional={"level": st.floats(-9, 9), "fill": st.booleans()}),
    "adversary": st.fixed_dictionaries({}, optional={"level": st.integers(-9, 9), "seed": st.integers(0, 10**17)}),
    "best_by": st.fixed_dictionaries({"by": st.sampled_from(["utility", "relevance", "my own"])}),
    "within": st.just({"chunks": "small"}),
    "rerank": st.fixed_dictionaries(
        {"model": st.sampled_from(["cross-encoder:a/b", "./here"])},
        optional={"length": st.integers(0, 999), "depth": st.integers(0, 99)},
    ),
    "listwise": st.fixed_dictionaries(
        {}, optional={"window": st.integers(12, 99), "step": st.integers(1, 11), "words": st.integers(0, 999)}
    ),
    "useful": st.fixed_dictionaries(
        {}, optional={"model": st.text(), "estimator": st.sampled_from(["first-token", "sequence", "sampled"])}
    ),
    "mmr": st.fixed_dictionaries(
        {},
        optional={
            "weight": st.floats(0, 1, allow_subnormal=False),
            "by": st.text(),
            "relevance": st.sampled_from(["place", "query"]),
        },
    ),
    "shuffled": st.fixed_dictionaries({}, optional={"seed": st.integers(0, 99)}),
    "random": st.fixed_dictionaries({}, optional={"seed": st.integers(0, 99)}),
    "reversed": st.just({}),
    "top": st.fixed_dictionaries({"k": st.integers(1, 999_999_999)}),
}


RERANKERS = ["rerank", "listwise", "useful", "mmr"]
BEHIND = ["reversed", "shuffled", "oracle", "adversary", "best_by", "top"]


@st.composite
def steps(draw: st.DrawFn, names: list[str]) -> Step:
    name = draw(st.sampled_from(names))
    inside = [draw(pipelines()) for _ in range(2)] if name == "fused" else []
    return STEPS.get(name)(*inside, **draw(SETTINGS[name]))


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """Any pipeline that can run."""
    first = draw(steps(["bm25", "dense", "sparse", "fused", "run", "random", "oracle", "adversary"]))
    behind = draw(st.lists(steps([*RERANKERS, *BEHIND]), max_size=5))
    rewriting = draw(st.lists(steps(["rewritten"]), max_size=1))
    return Pipeline((*rewriting, first, *behind))
