"""Results with contributions, support and hops of a few answers, some of them hostile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

import ragworth
from ragworth.judging.contribution.rows import DETAIL_COLUMNS
from ragworth.results import Results
from tests.report.page import small_samples

SYSTEM = "one"
QUERIES = ["q1", "q2"]
HOSTILE = '<script>window.hacked = 1</script>"><img src=x onerror=window.hacked=1>'
SENTENCES = ["Joss Belwether built it.", "It was opened in 1802, after nine years.", f"See {HOSTILE}."]
BY_SENTENCE = [[6.0, 2.0, -1.5], [0.0, 3.0, -0.3], [0.0, 0.0, 0.0]]
LABELS = ["contradicted", "supported", "neither"]
GROWING = [-20.0, -17.0, -11.0, -11.0, -12.0]
SEARCHES = ["who built the lighthouse", HOSTILE, "when was it opened", "lighthouse fair"]
KEYS = {"system": pl.String, "query": pl.String, "repeat": pl.Int64, "aspect": pl.String, "value": pl.Float64}
TEXTS = {"status": pl.String, "reason": pl.String, "source": pl.String}


def _row(system: str, query: str, aspect: str, **more: Any) -> dict[str, Any]:
    return {"system": system, "query": query, "repeat": 0, "aspect": aspect, "value": 0.5, "status": "ok", **more}


def _split(values: list[list[float]], passages: list[str], sentences: list[str]) -> dict[str, Any]:
    totals = [sum(each) for each in zip(*values, strict=True)]
    pairs = [[0.0] * len(passages) for _ in passages]
    pairs[0][1] = pairs[1][0] = -2.0
    return {
        "passages": passages, "contributions": totals, "errors": [0.1] * len(totals), "removed": totals,
        "sentences": sentences, "by_sentence": values, "interactions": pairs, "logprob": -10.0, "logprob_alone": -20.0,
        "tokens": 12, "method": "exact", "subsets": 1 << len(passages), "cited": passages[:1],
    }  # fmt: skip


def contribution_frame() -> pl.DataFrame:
    rows = [
        _row(SYSTEM, query, "reliance", **_split(BY_SENTENCE, list(small_samples.SHOWN[SYSTEM][query]), SENTENCES))
        for query in QUERIES
    ]
    return pl.DataFrame(rows, schema={**KEYS, **TEXTS, **DETAIL_COLUMNS}, orient="row")


def support_frame() -> pl.DataFrame:
    details = {"statements": SENTENCES, "labels": LABELS, "supporting": [[], ["r"], []]}
    rows = [_row(SYSTEM, query, "supported", **details) for query in QUERIES]
    lists = {"statements": pl.List(pl.String), "labels": pl.List(pl.String), "supporting": pl.List(pl.List(pl.String))}
    return pl.DataFrame(rows, schema={**KEYS, **TEXTS, **lists}, orient="row")


def hops_frame() -> pl.DataFrame:
    names = [f"hop {n}" for n in range(1, len(SEARCHES) + 1)]
    split = _split([[3.0, 6.0, 0.0, -1.0]], names, ["Joss Belwether."])
    rows = [_row(SYSTEM, query, "gain", **split, growing=GROWING, searches=SEARCHES) for query in QUERIES]
    return pl.DataFrame(rows, schema={**KEYS, **TEXTS, **DETAIL_COLUMNS}, orient="row")


def contributed() -> Results:
    """Two systems and two queries; one system has all three."""
    said = {"graded-contribution": contribution_frame(), "support": support_frame(), "hops": hops_frame()}
    results = small_samples.results(["UDCG@3", "P@3"], small_samples.GRADES, said=said)
    texts = ragworth.Collection.of(
        queries={"query": QUERIES, "text": ["Who built the lighthouse?", f"Who built {HOSTILE}?"]},
        passages={
            "passage": list("rhwx"),
            "text": [f"Passage {name}: {HOSTILE}." for name in "rhwx"],
        },
    )
    return replace(results, collection=texts)
