"""``ragworth study noise``: retrieved passages mislead a reader by a known amount, and it is as sure as planted."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection
from scipy import stats

import ragworth
from ragworth.core.errors import InputError
from ragworth.data import Outcomes
from ragworth.llm.contract import Choose, Generate, Request, Score, Trace
from ragworth.llm.scripted import ScriptedReply
from ragworth.stats.concordance import macro_f1
from ragworth.studies.noise import Noise
from tests.studies.conftest import Opened
from tests.studies.test_win_rate import sure, texts_of

OWN = re.compile(r"(q\d+) \w+ sure=([\d.]+) says (\w+)")
ASKED = re.compile(r"word of (q\d+)")


@dataclass
class Listener(Reader):
    """Hears only passages of the query that it is asked: random ones say nothing to it.

    It answers what the surest passage says. ``doubts``: the more another passage contradicts, the less sure it is;
    else it is as sure as the surest passage.
    """

    doubts: bool = False
    generated: list[Generate] = field(default_factory=list)

    def __call__(self, request: Request) -> ScriptedReply:
        last = request.prompt.messages[-1].content
        self.generated += [request] if isinstance(request, Generate) else []
        if isinstance(request, Choose):
            return super().__call__(request)
        if isinstance(request, Score):
            words = tuple(request.continuation.split(" "))
            return Trace(words, (-3.0,) * len(words), (3.0,) * len(words))
        assert isinstance(request, Generate)
        asked = ASKED.search(last)
        assert asked is not None
        heard = sorted(((float(s), said) for query, s, said in OWN.findall(last) if query == asked[1]), reverse=True)
        strength, text = heard[0] if heard else (0.0, "NO-RESPONSE")
        rest = heard[1][0] if self.doubts and len(heard) > 1 else 0.0
        entropy = 1.5 - (strength - rest)
        return text if request.detail == "text" else Trace((text,), (-entropy,), (entropy,))


@pytest.mark.slow
def test_retrieved_passages_cost_what_was_planted_and_the_misled_reader_is_sure(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Listener()
    place = collection(tmp_path / "w", queries=50)
    found = ragworth.study("noise", place, keep=False)
    texts, frame = texts_of(place), found.cases[0].results.contexts.frame
    right = 0
    for _, part in frame.filter(pl.col("system") == "with retrieved").group_by("query"):
        surest = max(part["passage"].to_list(), key=lambda each: sure(texts[each]))
        right += "gold" in surest
    answers, differences, taus = (table.frame for table in found.findings.tables)
    assert answers["correct"].to_list() == [1.0, pytest.approx(right / 50)] and 5 < right < 45
    assert answers["f1"].to_list() == [1.0, pytest.approx(right / 50)]
    gap = differences.row(0, named=True)
    assert gap["difference"] == pytest.approx(1 - right / 50) and gap["wins"] == 50 - right
    assert gap["p"] == pytest.approx(stats.binomtest(0, 50 - right).pvalue) and gap["losses"] == 0
    assert answers["wins"].to_list() == [50 - right, 0] and answers["ties"].to_list() == [right, right]
    assert "retrieved passages hurt more" in found.findings.sentences[0]
    sured = taus.filter(pl.col("confidence") != "UDCG@5")
    assert set(sured["confidence"]) == {"PPL", "KeyPPL", "Entropy", "KeyEntropy"}
    assert sured["tau"].to_list() == [-1.0] * 4 and set(sured["discordant"]) == {50 - right}
    assert found.findings.left_out.height == 0 and set(sured["even"]) == {right}


@pytest.mark.slow
def test_the_best_of_several_must_stand_holm(tmp_path: Path, opened: Opened) -> None:
    """11 of 13 is significant alone (p = 0.022), and not as the best of four confidences."""
    opened.reader = Listener()
    place = collection(tmp_path / "w", queries=60)
    first = ragworth.study("noise", place, keep=False, metrics=["P@5"]).cases[0]
    assert first.results.outcomes is not None
    frame = first.results.outcomes.frame
    queries = sorted(set(frame["query"]))
    right = {"PPL": 11, "KeyPPL": 9, "Entropy": 7, "KeyEntropy": 6}

    def value(system: str, query: str, aspect: str, known: float) -> float:
        at, good = queries.index(query), system == "with random"
        if aspect == "grade":  # only the first 13 queries differ
            return 1.0 if good or at >= 13 else -1.0
        return float((at < right[aspect]) == good) if aspect in right else known

    rows = frame.select("system", "query", "aspect", "value").iter_rows()
    made = Outcomes.trusted(frame.with_columns(pl.Series("value", [value(*row) for row in rows])))
    case = replace(first, results=replace(first.results, outcomes=made))
    found = Noise().find([case])
    row = found.tables[2].frame.filter(pl.col("confidence") == "PPL").row(0, named=True)
    assert (row["concordant"], row["discordant"]) == (11, 2) and row["low"] > 0
    assert row["p"] < 0.05 < row["p_holm"]
    assert "no confidence reliably predicts the correct one; PPL comes closest: τ = " in found.sentences[1]
    assert f"(p = {row['p_holm']:.3f} after Holm)" in found.sentences[1]


@pytest.mark.slow
def test_numbers_are_those_of_the_tables(tmp_path: Path, opened: Opened) -> None:
    found = ragworth.study("noise", collection(tmp_path / "w", queries=40), keep=False)
    results = found.cases[0].results
    assert results.outcomes is not None and results.answers is not None
    values = {
        (s, q, a): v for s, q, a, v in results.outcomes.frame.select("system", "query", "aspect", "value").iter_rows()
    }
    values |= {
        (s, q, m): v for s, q, m, v in results.scores.frame.select("system", "query", "metric", "value").iter_rows()
    }
    queries = sorted({query for _, query, _ in values})
    pair = ("with random", "with retrieved")
    correct = {query: [values[system, query, "grade"] == 1 for system in pair] for query in queries}
    answers = found.findings.tables[0].frame
    for at, system in enumerate(pair):
        row = answers.filter(pl.col("context") == system).row(0, named=True)
        assert row["correct"] == pytest.approx(sum(both[at] for both in correct.values()) / 40)
        assert row["wrong"] == pytest.approx(sum(values[system, query, "grade"] == -1 for query in queries) / 40)
    for row in found.findings.tables[2].frame.to_dicts():
        counts = {1: 0, -1: 0, 0: 0}
        for query in queries:
            first, second = (values[system, query, row["confidence"]] for system in pair)
            if correct[query][0] != correct[query][1]:
                higher = (first > second) - (first < second)
                counts[higher * (1 if correct[query][0] else -1)] += 1
        c, d = counts[1], counts[-1]
        assert (row["concordant"], row["discordant"], row["tied"]) == (c, d, counts[0])
        assert row["tau"] == pytest.approx((c - d) / (c + d)) and row["right"] == pytest.approx(c / (c + d))
        assert row["p"] == pytest.approx(stats.binomtest(c, c + d).pvalue, abs=1e-12)


@pytest.mark.slow
def test_both_contexts_have_the_same_relevant_passage_at_the_same_place(tmp_path: Path, opened: Opened) -> None:
    case = ragworth.study("noise", collection(tmp_path / "w", queries=20), keep=False, n=3).cases[0]
    frame = case.results.contexts.frame
    gold = frame.filter(pl.col("passage").str.contains("gold") & pl.col("passage").str.starts_with(pl.col("query")))
    places = gold.pivot("system", index="query", values=["rank", "passage"])
    assert (places["rank_with random"] == places["rank_with retrieved"]).all() and places[
        "rank_with random"
    ].n_unique() > 2
    assert (places["passage_with random"] == places["passage_with retrieved"]).all() and places.height == 20
    others = frame.join(gold, on=["system", "query", "rank"], how="anti")
    own = others.select(pl.col("passage").str.starts_with(pl.col("query"))).to_series()
    assert (own == (others["system"] == "with retrieved")).all() and others.height == 2 * 20 * 3


@pytest.mark.slow
def test_what_cannot_be_studied_is_refused(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=4)
    for wrong, settings in (("n is 0", {"n": 0}), ("no query is left", {"n": 90})):
        with pytest.raises(InputError, match=wrong):
            ragworth.study("noise", place, keep=False, **settings)  # type: ignore[arg-type]
    assert opened.calls == 0
    ragworth.evaluate(place)
    with pytest.raises(InputError, match="results of an evaluation"):
        ragworth.study("noise", place / "results")
    with pytest.raises(InputError, match="no outcome 'mood'"):
        ragworth.study("noise", place, keep=False, outcome="mood")


def test_macro_f1_is_the_mean_of_both_kinds() -> None:
    import numpy as np

    draw = random.Random(0)
    sured = np.array([[draw.random(), draw.random()] for _ in range(30)])
    correct = np.array([[1.0, 0.0] if draw.random() < 0.6 else [0.0, 1.0] for _ in range(30)])
    scores = []
    for kind in (True, False):
        told = [(a > b) == kind for a, b in sured]
        true = [(a > b) == kind for a, b in correct]
        both = sum(x and y for x, y in zip(told, true, strict=True))
        precision, recall = both / sum(told), both / sum(true)
        scores.append(2 * precision * recall / (precision + recall))
    assert macro_f1(sured, correct) == pytest.approx(sum(scores) / 2)
    assert macro_f1(np.tile([1.0, 0.0], (30, 1)), correct) is None  # one kind is never told
