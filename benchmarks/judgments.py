"""How well a model's judgments tell passages that hold the answer from others, on real passages.

    RAGWORTH_DATA=FOLDER python benchmarks/judgments.py --model embedded --store judgments.sqlite

Passages that hold the answer and passages that do not come from four sets: RGB (supporting and irrelevant snippets;
some of the latter hold the answer all the same), HotpotQA (a supporting paragraph alone rarely answers the whole
question), MuSiQue (single-hop sub-questions with their supporting paragraph and others of the same question) and ARAGOG
(the chunk retrieved for a question against one retrieved for another). For each kind of judgment it prints the AUC
over all passages and the win rate within questions, both with bootstrap intervals over questions. It goes on where it
was left.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import ragworth
from ragworth.judging.judge import JudgingResult
from ragworth.stats.auc import auc_interval, pairs_within, win_rate

KINDS: dict[str, dict[str, Any]] = {
    "abstention": {},
    "relevance": {},
    "relevance, graded": {"graded": True},
    "downstream": {},
    "likelihood": {},
    "confidence": {"each": True, "relative": False, "length": 32},
    "ratings": {},
}
COLUMNS = {"abstention": "p", "relevance": "p", "relevance, graded": "expected", "ratings": "expected"}
"""What a judgment is ranked by, where that is not its value."""


class Case(NamedTuple):
    """A question with passages that hold its answer and passages that do not."""

    question: str
    answers: list[str]
    good: list[str]
    bad: list[str]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def rgb(data: Path) -> list[Case]:
    cases = []
    for item in lines(data / "rgb" / "en_fact.json.gz"):
        given = item["answer"] if isinstance(item["answer"], list) else [item["answer"]]
        answers = [text for each in given for text in ([each] if isinstance(each, str) else each)]
        cases.append(Case(item["query"], answers, item["positive"], item["negative"]))
    return cases


def hotpot(data: Path) -> list[Case]:
    cases = []
    for item in lines(data / "multihop" / "hotpot.json.gz"):
        titles = {title for title, _ in item["supporting_facts"]}
        texts = [(title in titles, f"{title}\n{''.join(parts)}") for title, parts in item["context"]]
        good, bad = ([text for yes, text in texts if yes is wanted] for wanted in (True, False))
        cases.append(Case(item["question"], [item["answer"]], good, bad))
    return cases


def musique(data: Path) -> list[Case]:
    """The first hop of each question, whose sub-question stands alone."""
    cases = []
    for item in lines(data / "multihop" / "musique.json.gz"):
        hop = item["question_decomposition"][0]
        texts = [f"{each['title']}\n{each['paragraph_text']}" for each in item["paragraphs"]]
        supporting = {each["paragraph_support_idx"] for each in item["question_decomposition"]}
        bad = [text for number, text in enumerate(texts) if number not in supporting]
        question = hop["question"].replace(" >> ", ": ")
        cases.append(Case(question, [hop["answer"]], [texts[hop["paragraph_support_idx"]]], bad))
    return cases


def aragog(data: Path) -> list[Case]:
    path = data / "aragog" / "detailed_all-mpnet-base-v2__top_k=1__chunk_size=128.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    rows = [row for row in rows if float(row["context_relevance"]) == 1]
    texts = [ast.literal_eval(row["contexts"])[0] for row in rows]
    far = len(rows) // 2
    return [
        Case(row["questions"], [row["true_answers"]], [texts[n]], [texts[(n + far) % len(rows)]])
        for n, row in enumerate(rows)
        if texts[n] != texts[(n + far) % len(rows)]
    ]


SETS: dict[str, Callable[[Path], list[Case]]] = {"RGB": rgb, "HotpotQA": hotpot, "MuSiQue": musique, "ARAGOG": aragog}


def collection(cases: list[Case], each: int, seed: int) -> tuple[ragworth.Collection, ragworth.Contexts]:
    """At most ``each`` passages of either kind for a question, and the contexts that name them."""
    draw = random.Random(seed)
    passages: dict[str, str] = {}
    judged: list[tuple[str, str, float]] = []
    for number, case in enumerate(cases):
        for value, texts in ((1.0, case.good), (0.0, case.bad)):
            some = draw.sample(texts, min(each, len(texts)))
            for place, text in enumerate(some):
                name = f"{number}-{value:g}-{place}"
                passages[name] = text
                judged.append((str(number), name, value))
    ids = [str(number) for number in range(len(cases))]
    answers = [(str(number), answer) for number, case in enumerate(cases) for answer in case.answers]
    whole = ragworth.Collection.of(
        queries={"query": ids, "text": [case.question for case in cases]},
        passages={"passage": list(passages), "text": list(passages.values())},
        answers={"query": [query for query, _ in answers], "text": [text for _, text in answers]},
        subquestions={"query": ids, "subquestion": ["1"] * len(ids), "text": [case.question for case in cases]},
        relevance=pl.DataFrame(judged, schema=["query", "passage", "value"], orient="row"),
    )
    order = pl.DataFrame(judged, schema=["query", "passage", "value"], orient="row").select("query", "passage")
    ranks = pl.int_range(1, pl.len() + 1).over("query").alias("rank")
    return whole, ragworth.Contexts(order.with_columns(ranks))


def report(name: str, kind: str, found: JudgingResult, texts: ragworth.Collection) -> None:
    """One line for each value of a judgment."""
    assert texts.relevance is not None
    labels = texts.relevance.frame.select("query", "passage", pl.col("value").alias("label"))
    frame = found.frame.join(labels, on=["query", "passage"], maintain_order="left")
    aspects = frame["aspect"].unique(maintain_order=True).to_list() if "aspect" in frame.columns else [""]
    for aspect in aspects:
        mine = frame.filter(pl.col("aspect") == aspect) if aspect else frame
        column = COLUMNS.get(kind, "value")
        known = mine.drop_nulls([column])
        sign = -1 if kind == "abstention" else 1
        values, label = sign * known[column].to_numpy(), known["label"].to_numpy() > 0
        query = known["query"].to_numpy()
        area = auc_interval(values, label, query)
        won = win_rate(*pairs_within(values, label, query))
        title = aspect if kind == "confidence" else kind
        print(
            f"| {name} | {title} | {_words(area.value, area.interval)} | {_words(won.value, won.interval)} "
            f"| {len(values)} of {mine.height} |",
            flush=True,
        )


def _words(value: float | None, interval: Any) -> str:
    return "–" if value is None or interval is None else f"{value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--store", default="judgments.sqlite")
    parser.add_argument("--questions", type=int, default=100, help="of each set")
    parser.add_argument("--each", type=int, default=2, help="passages of either kind for a question")
    parser.add_argument("--skip", type=int, default=0, help="questions of RGB left out in front")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    given = parser.parse_args()
    data = Path(os.environ["RAGWORTH_DATA"])
    model = ragworth.llm(given.model)
    print(f"# {model.card.name}, {given.questions} questions a set, {given.each} passages of either kind\n")
    print("| set | judgment | AUC | win rate within questions | n of N |\n| --- | --- | --- | --- | --- |")
    for name in given.sets.split(","):
        cases = SETS[name](data)
        cases = [case for case in cases if case.good and case.bad]
        cases = cases[given.skip :] if name == "RGB" else cases
        texts, contexts = collection(cases[: given.questions], given.each, seed=0)
        for kind in given.kinds:
            # Settings of a kind are in the table above; its name comes before the comma.
            # The documented figures are from before there were fences.
            found = ragworth.annotate(
                kind.partition(",")[0], contexts, texts, model, store=given.store, prompts="plain", **KINDS[kind]
            )
            report(name, kind, found, texts)
            for note in found.notes:
                print(f"<!-- {note} -->")


if __name__ == "__main__":
    np.seterr(all="raise")
    main()
