"""A small world to retrieve from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from ragworth.collection import Collection
from ragworth.retrieval import STEPS
from ragworth.retrieval.contract import Setting, Step
from ragworth.retrieval.pipeline import Pipeline
from ragworth.tables import Contexts

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
) -> Setting:
    collection = Collection.of(
        queries={"query": list(queries), "text": list(queries.values())},
        passages={"passage": list(passages), "text": list(passages.values())},
        relevance=labels,
    )
    return Setting.of(collection, **more)


def passages(contexts: Contexts, system: str) -> dict[str, list[str]]:
    """The passages of a system by query, in the order shown; ranks must count from 1 without a gap."""
    found: dict[str, list[str]] = {query: [] for name, query in contexts.empty if name == system}
    for query, rank, passage in contexts.only(system).frame.select("query", "rank", "passage").iter_rows():
        found.setdefault(query, []).append(passage)
        assert rank == len(found[query])
    return found


NUMBERS = st.floats(0, 5, allow_subnormal=False)
SETTINGS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "bm25": st.fixed_dictionaries(
        {},
        optional={
            "k1": NUMBERS,
            "b": st.floats(0, 1),
            "delta": NUMBERS,
            "method": st.sampled_from(["lucene", "robertson", "atire", "bm25l", "bm25+"]),
            "stopwords": st.sampled_from(["none", "english", "german"]),
            "stemmer": st.sampled_from(["none", "english"]),
        },
    ),
    "run": st.fixed_dictionaries({"path": st.text(min_size=1)}),
    "oracle": st.fixed_dictionaries({}, optional={"level": st.floats(-9, 9), "fill": st.booleans()}),
    "adversary": st.fixed_dictionaries({}, optional={"level": st.integers(-9, 9), "seed": st.integers(0, 10**17)}),
    "shuffled": st.fixed_dictionaries({}, optional={"seed": st.integers(0, 99)}),
    "random": st.fixed_dictionaries({}, optional={"seed": st.integers(0, 99)}),
    "reversed": st.just({}),
    "top": st.fixed_dictionaries({"k": st.integers(1, 999_999_999)}),
}


@st.composite
def steps(draw: st.DrawFn, names: list[str]) -> Step:
    name = draw(st.sampled_from(names))
    return STEPS.get(name)(**draw(SETTINGS[name]))


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """Any pipeline that can run."""
    first = draw(steps(["bm25", "run", "random", "oracle", "adversary"]))
    behind = draw(st.lists(steps(["reversed", "shuffled", "oracle", "adversary", "top"]), max_size=5))
    return Pipeline((first, *behind))
