"""What rewrites retrieve: the passages that the reader would see."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ragworth.collection import Collection
from ragworth.errors import InputError
from ragworth.retrieval.contract import StepContext, passages_by_query
from ragworth.retrieval.execution import retrieve
from ragworth.retrieval.pipeline import Pipeline
from ragworth.tables import Contexts

DEFAULT_PIPELINE = "bm25 % 10"
SYSTEM = "rewrites"


def retrieve_by_text(
    texts: Sequence[str], collection: Collection, pipeline: str = DEFAULT_PIPELINE, cache: Path | None = None
) -> dict[str, tuple[str, ...]]:
    """The passages that each text retrieves, in order; equal texts are searched once, empty ones not at all.

    The pipeline sees nothing but the text: a step that needs to know the turn, such as one that goes by relevance
    labels, is an error.
    """
    parsed = check_pipeline(pipeline)
    wanted = [text for text in dict.fromkeys(texts) if text.strip()]
    if not wanted:
        return {}
    ids = [f"text-{number}" for number in range(len(wanted))]
    queries = pl.DataFrame({"query": ids, "text": wanted}, schema=dict.fromkeys(("query", "text"), pl.String))
    searched = replace(collection, queries=queries, turns=collection.turns.clear(), relevance=None)
    found = passages_by_query(retrieve({SYSTEM: parsed}, StepContext.of(searched, cache=cache)))
    return {text: tuple(found.get(name, ())) for name, text in zip(ids, wanted, strict=True)}


def check_pipeline(pipeline: str) -> Pipeline:
    """Parse a pipeline that searches with given rewrites, so it goes by their text alone."""
    parsed = Pipeline.of(pipeline).complete()
    if lacking := [str(step) for step in parsed.steps if set(step.needs) & {"relevance", "judgments"}]:
        raise InputError(f"{', '.join(lacking)} goes by labels of the turn", expected="steps that go by the text alone")
    if any(step.rewrites for step in parsed.steps):
        raise InputError(f"the pipeline is {pipeline!r}", expected="no step that rewrites: the rewrites are given")
    return parsed


def context_key(passages: Sequence[str]) -> str:
    """A short key of passages in their order; empty for none."""
    if not passages:
        return ""
    digest = hashlib.sha256("".join(f"{len(each)} {each}\n" for each in passages).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def distinct_contexts(shown: Mapping[tuple[str, str], tuple[str, ...]]) -> Contexts:
    """Contexts by (query, key), with the key as the system, so that each distinct one is judged once."""
    rows = [
        (key, query, rank, passage, None)
        for (query, key), passages in shown.items()
        for rank, passage in enumerate(passages, 1)
    ]
    return Contexts.trusted(pl.DataFrame(rows, schema=dict(Contexts.schema), orient="row"))
