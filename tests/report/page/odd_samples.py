"""Results that are hard on a report: next to nothing in them, hostile texts, or very many."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import polars as pl

import ragworth
from ragworth.data import Answers, Contexts, Judgments, Outcomes, Ratings, Scores
from ragworth.results import Results
from tests.report.page.samples import manifest, source


@cache
def minimal() -> Results:
    """Nothing but contexts and scores: no texts, no judgments, one system."""
    contexts = Contexts({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}}, system="only")
    values = {"q1": 0.5, "q2": 1.0}
    rows = [{"system": "only", "query": query, "metric": "nDCG@10", "value": value} for query, value in values.items()]
    return Results(ragworth.Collection(), contexts, None, None, None, None, Scores(rows))


BAD = '<script>window.hacked=1</script><img src=x onerror="window.hacked=1">\'"&amp;</script><!--\u202e\x07'


@cache
def hostile() -> Results:
    """HTML in every text and id, huge texts, empty contexts, values that are missing with their statuses."""
    systems = [f"{BAD}a", "\u0001bad", "</style>b"]
    queries = [f"{BAD}q{i}" for i in range(3)] + ["__proto__", "constructor", "#query=1&x=%"]
    passages = [f"{BAD}p{i}" for i in range(4)] + ["toString"]
    shown = {"passage": passages, "rank": range(1, 6)}
    frames = [pl.DataFrame({"system": [s] * 5, "query": [q] * 5, **shown}) for s in systems[:2] for q in queries]
    contexts = Contexts(pl.concat(frames), empty=[(systems[2], query) for query in queries])
    labels: list[dict[str, Any]] = []
    for query in queries[:5]:
        for i, passage in enumerate(passages):
            known = {"query": query, "passage": passage}
            labels.append({**known, "aspect": "relevance", "value": float(i == 0), "status": "ok", "source": BAD})
            p, status = (None, f"{BAD}refused") if i == 3 else (0.1 * i, "ok")
            labels.append(
                {**known, "aspect": "abstention", "value": p, "status": status, "source": source("abstention")}
            )
    frame = pl.DataFrame(labels)
    said = frame.filter(pl.col("aspect") == "abstention").with_columns(
        reason=pl.lit(BAD), raw=pl.lit(f"{BAD}\n{{{{query}}}}"), detail=pl.lit(BAD), nested=pl.lit([[1.0]])
    )
    pairs = [(system, query) for system in systems for query in queries]
    last = systems[2]
    written = [
        (s, q, 0, None if s == last else f"{BAD} answer", 3, "timed-out" if s == last else "ok", BAD) for s, q in pairs
    ]
    graded = [
        (s, q, "grade", None if s == last else (-1.0) ** i, "unparsable" if s == last else "ok", BAD)
        for i, (s, q) in enumerate(pairs)
    ]
    texts = [BAD * 3, "word " * 40_000, "\x00\x1b[31m" + BAD, "", BAD]
    odd = {BAD: {BAD: [BAD, None, 1.5]}, "settings": {"baseline": [BAD]}, "stages": BAD, "versions": [BAD]}
    odd |= {"systems": {systems[0]: BAD, systems[1]: "\x1b[31m" + BAD}}
    judgments = Judgments(frame)
    return Results(
        ragworth.Collection.of(
            queries={"query": queries, "text": [BAD + " what?"] * len(queries)},
            passages={"passage": passages, "text": texts},
            answers={"query": queries, "text": [BAD] * len(queries)},
            subquestions={"query": queries[:1], "subquestion": [BAD], "text": [BAD]},
        ),
        contexts,
        judgments,
        Ratings([{"query": queries[0], "passage": passages[0], "subquestion": BAD, "value": 4.0}]),
        Answers(pl.DataFrame(written, schema=dict(Answers.schema), orient="row")),
        Outcomes(pl.DataFrame(graded, schema=dict(Outcomes.schema), orient="row")),
        ragworth.score(contexts, judgments, ["UDCG@5", "nDCG@5"]),
        {"abstention": said},
        {**manifest(BAD), **odd},
    )


@cache
def large(queries: int = 1000, systems: int = 10, depth: int = 10, unique: int = 30, seed: int = 3) -> Results:
    """Many queries of many systems; passages of about 100 words, ``unique`` of them for each query."""
    rng = random.Random(seed)
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "ol", "um")]
    words = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3)))) for _ in range(9000)]
    ranks = [i for i in range(60) for _ in range(60 // (i + 1))]

    def text(length: int) -> str:
        # Few words are frequent, as in a language; drawing from a list is faster than drawing by weights.
        return " ".join(words[rng.choice(ranks) * 150 + rng.randrange(150)] for _ in range(length))

    passages = {f"d{q}-{i}": text(rng.randint(85, 115)) for q in range(queries) for i in range(unique)}
    questions = {f"q{q}": f"{text(9)}?" for q in range(queries)}
    contexts, labels, graded, answers = [], [], [], []
    asked, answer = source("abstention", how="first-token"), source("answer")
    for q in range(queries):
        ids = [f"d{q}-{i}" for i in range(unique)]
        for i, passage in enumerate(ids):
            labels.append((f"q{q}", passage, "relevance", float(i < 4), "ok", "given"))
            labels.append((f"q{q}", passage, "abstention", round(rng.random(), 5), "ok", asked))
        for s in range(systems):
            weights = {each: rng.random() - (0.05 * s if each[-2:] in ("-0", "-1") else 0) for each in ids}
            order = sorted(ids, key=weights.__getitem__)
            name = f"system {s}"
            contexts += [(name, f"q{q}", rank, passage, 10.0 - rank) for rank, passage in enumerate(order[:depth], 1)]
            graded.append((name, f"q{q}", "grade", rng.choice((1.0, 1.0, 0.0, -1.0)), "ok", "deterministic"))
            answers.append((name, f"q{q}", 0, text(12), 14, "ok", answer))
    judgments = Judgments(pl.DataFrame(labels, schema=dict(Judgments.schema), orient="row"))
    shown = Contexts(pl.DataFrame(contexts, schema=dict(Contexts.schema), orient="row"))
    return Results(
        collection=ragworth.Collection.of(
            queries={"query": list(questions), "text": list(questions.values())},
            passages={"passage": list(passages), "text": list(passages.values())},
        ),
        contexts=shown,
        judgments=judgments,
        ratings=None,
        answers=Answers(pl.DataFrame(answers, schema=dict(Answers.schema), orient="row")),
        outcomes=Outcomes(pl.DataFrame(graded, schema=dict(Outcomes.schema), orient="row")),
        scores=ragworth.score(shown, judgments, ["UDCG@10", "nDCG@10", "P@10", "AP", "RR", "R@10"]),
        manifest=manifest("A large evaluation"),
    )
