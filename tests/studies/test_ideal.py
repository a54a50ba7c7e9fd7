"""``ragworth study ideal``: oracles pick what they should, the better judgment wins, and every number is right."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection

import ragworth
from ragworth.core.errors import InputError
from ragworth.llm.contract import Generate, Request
from ragworth.llm.scripted import ScriptedReply
from ragworth.stats.bootstrap import mean_intervals
from tests.studies.conftest import Opened
from tests.studies.planted import contexts, expected, given, grades, sureness, wilcoxon


def found_order(place: Path) -> dict[str, list[str]]:
    """Passages by query, in the order of the run."""
    made: dict[str, list[str]] = {}
    for line in (place / "run.txt").read_text(encoding="utf-8").splitlines():
        made.setdefault(line.split()[0], []).append(line.split()[2])
    return made


@pytest.mark.slow
def test_each_oracle_picks_the_best_by_its_own_judgment(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Reader(noise=0.0)
    place = collection(tmp_path / "w", queries=40)
    found = ragworth.study("ideal", place, keep=False)
    case, order = found.cases[0], found_order(place)
    assert case.design["system"].to_list() == ["relevance", "erag", "utility"]
    texts = {row["id"]: row["text"] for row in pl.read_ndjson(place / "passages.jsonl").to_dicts()}

    def sure(passage: str) -> float:
        return min(0.99, max(0.01, float(texts[passage].split("sure=")[1].split()[0])))

    def best(query: str, worth: dict[str, float]) -> list[str]:
        return sorted(order[query], key=lambda each: (-worth[each], order[query].index(each)))[:5]

    for (system, query), shown in contexts(case).items():
        mine = order[query]
        gold = {each: "gold" in each for each in mine}
        # Alone, a relevant passage is answered from right where it is surer than the threshold.
        worth = {
            "relevance": {each: float(gold[each]) for each in mine},
            "erag": {each: float(gold[each] and sure(each) >= 0.3) for each in mine},
            "utility": {each: (1 if gold[each] else -1) * sure(each) for each in mine},
        }
        assert shown == best(query, worth[system])


@pytest.mark.slow
def test_utility_wins_over_relevance_by_what_the_tables_say(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Reader(noise=0.0)
    found = ragworth.study("ideal", collection(tmp_path / "w", queries=60), keep=False)
    case, graded = found.cases[0], grades(found.cases[0])
    assert graded == expected(case)
    queries = sorted({query for _, query in graded})
    names = ["relevance", "erag", "utility"]
    values = np.array([[graded[name, query] for name in names] for query in queries])
    table = found.findings.tables[0].frame
    for kind, grade in (("correct", 1.0), ("abstained", 0.0), ("wrong", -1.0)):
        assert table[kind].to_list() == pytest.approx((values == grade).mean(axis=0))
    assert table["with_relevant"].to_list() == [1.0, 1.0, 1.0]
    assert table["correct"][2] > table["correct"][0] and table["wrong"][2] < table["wrong"][0]
    pairs = found.findings.tables[1].frame
    assert pairs.height == 9
    for measure, sides in (("grade", values), ("correct", values == 1), ("wrong", values == -1)):
        raw, mine = [], pairs.filter(pl.col("measure") == measure)
        for first, second in mine.select("first", "second").iter_rows():
            gap = sides[:, names.index(first)].astype(float) - sides[:, names.index(second)]
            raw.append(wilcoxon(gap))
            row = mine.filter((pl.col("first") == first) & (pl.col("second") == second)).row(0, named=True)
            assert row["difference"] == pytest.approx(gap.mean()) and row["queries"] == 60
            assert (row["wins"], row["losses"]) == (int((gap > 0).sum()), int((gap < 0).sum()))
            most = 2.0 if measure == "grade" else 1.0  # grades go from -1 to 1, shares from 0 to 1
            ends = mean_intervals(gap[:, None], resamples=2000, bounds=(-most, most)).spans()[0]
            assert (row["low"], row["high"]) == pytest.approx(ends)
        assert mine["p"].to_list() == pytest.approx(raw)
        order = np.argsort(raw, kind="stable")
        steps = np.minimum(np.maximum.accumulate(np.array(raw)[order] * [3, 2, 1]), 1)
        assert mine["p_holm"].to_numpy()[order] == pytest.approx(steps)
    assert found.findings.sentences[0].startswith("The utility oracle has the highest accuracy")


def test_queries_without_a_relevant_passage_stay_and_those_without_a_choice_do_not(
    tmp_path: Path, opened: Opened
) -> None:
    opened.reader = Reader(noise=0.0)
    place = collection(tmp_path / "w", queries=10)
    labels = [
        line for line in (place / "qrels.txt").read_text().splitlines() if not line.startswith("q001 0 q001-gold")
    ]
    (place / "qrels.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
    seen: Counter[str] = Counter()
    kept = []
    for line in (place / "run.txt").read_text().splitlines():
        seen[line.split()[0]] += 1
        if line.split()[0] != "q002" or seen["q002"] <= 5:
            kept.append(line)
    (place / "run.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    found = ragworth.study("ideal", place, keep=False, erag=False)
    assert found.findings.left_out.rows() == [("w", "no more than 5 passages found", 1)]
    assert found.cases[0].design["system"].to_list() == ["relevance", "utility"]
    table = found.findings.tables[0].frame
    assert table["queries"].to_list() == [9, 9] and table["with_relevant"].to_list() == pytest.approx([8 / 9, 8 / 9])
    quiet = contexts(found.cases[0])["utility", "q001"]
    sure = sureness(found.cases[0])
    assert max(map(sure, quiet)) < 0.3 and grades(found.cases[0])["utility", "q001"] == 0.0


def test_a_passage_that_could_not_be_judged_is_no_candidate(tmp_path: Path, opened: Opened) -> None:
    class Silent(Reader):
        def __call__(self, request: Request) -> ScriptedReply:
            last = request.prompt.messages[-1].content
            alone = last.count("sure=") == 1
            return " " if isinstance(request, Generate) and alone and "q003 " in last else super().__call__(request)

    opened.reader = Silent(noise=0.0)
    found = ragworth.study("ideal", collection(tmp_path / "w", queries=6), keep=False)
    assert found.findings.left_out.rows() == [("w", "no more than 5 passages that could be judged", 1)]
    # A limit counts the queries that can be used, q003 can't.
    some = ragworth.study("ideal", collection(tmp_path / "v", queries=6), keep=False, limit=4)
    assert set(some.cases[0].results.contexts.frame["query"]) == {"q000", "q001", "q002", "q004"}
    assert "q003" not in found.cases[0].results.contexts.frame["query"].to_list()


def test_what_cannot_be_is_refused(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    with pytest.raises(InputError, match="depth > k"):
        ragworth.study("ideal", place, k=5, depth=5)
    with pytest.raises(InputError, match=r"no query is left to study \(no more than 20 passages found: 6\)"):
        ragworth.study("ideal", place, k=20, keep=False)
    assert opened.calls == 0
    given(tmp_path / "given")
    with pytest.raises(InputError, match="results of an evaluation"):
        ragworth.study("ideal", tmp_path / "given")
