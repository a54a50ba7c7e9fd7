"""``ragworth study win-rate``: the confidence of a reader that says how sure it is wins as often as it should."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from benchmarks.simulated_reader import Reader, collection
from scipy import stats

import ragworth
from ragworth.core.errors import InputError
from ragworth.data import Judgments
from ragworth.llm.contract import Choose, Generate, Request, Score, Trace
from ragworth.llm.scripted import ScriptedReply
from ragworth.studies.run import StudyResult
from ragworth.studies.win_rate import WinRate
from tests.studies.conftest import Opened

SURE = re.compile(r"sure=([\d.]+)")


class Even(Reader):
    """Equally sure of everything."""

    def __call__(self, request: Request) -> ScriptedReply:
        if isinstance(request, Choose):
            return {request.labels[0]: 0.5}
        words = tuple(request.continuation.split(" ")) if isinstance(request, Score) else ("x",)
        assert isinstance(request, Score | Generate)
        return Trace(words, (-1.0,) * len(words), (1.0,) * len(words))


def texts_of(place: Path) -> dict[str, str]:
    lines = (place / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row["text"] for row in map(json.loads, lines)}


def found_of(place: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (place / "run.txt").read_text(encoding="utf-8").splitlines():
        found.setdefault(line.split()[0], []).append(line.split()[2])
    return found


def sure(text: str) -> float:
    match = SURE.search(text)
    assert match is not None
    return float(match[1])


def rows_of(found: StudyResult) -> dict[tuple[str, str], dict[str, object]]:
    return {(row["confidence"], row["against"]): row for row in found.findings.tables[0].frame.to_dicts()}


def test_a_reader_that_says_how_sure_it_is_wins_as_often_as_its_relevant_passages_are_surer(
    tmp_path: Path, opened: Opened
) -> None:
    opened.reader = Reader(noise=0.0)
    place = collection(tmp_path / "w", queries=60)
    found = ragworth.study("win-rate", place, keep=False)
    texts, wins = texts_of(place), 0
    for passages in found_of(place).values():
        gold = next(each for each in passages if "gold" in each)
        other = next(each for each in passages if "gold" not in each)
        wins += sure(texts[gold]) > sure(texts[other])
    rows = rows_of(found)
    assert {name for name, _ in rows} == {"PPL", "KeyPPL", "Entropy", "KeyEntropy", "1 − abstention", "relevance"}
    for name in ("PPL", "KeyPPL", "Entropy", "KeyEntropy"):
        row = rows[name, "distractor"]
        assert row["win rate"] == pytest.approx(wins / 60) and row["wins"] == wins and row["ties"] == 0
    words = found.findings.sentences[0]
    names = "PPL, KeyPPL, Entropy, KeyEntropy, 1 − abstention"
    assert words.startswith(f"{names} recognise the relevant passage best: higher with it than with a distractor in ")
    assert f"in {100 * wins / 60:.1f} % [" in words and words.count("after Holm") == 2
    assert found.findings.left_out.height == 0 and len(found.findings.notes) == 1  # which protocol it is


@pytest.mark.slow
def test_the_retrievers_own_score_is_shown_beside_the_confidences(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=30)
    found = ragworth.study("win-rate", place)
    ahead = [
        next(rank for rank, each in enumerate(passages) if "gold" in each)
        < next(rank for rank, each in enumerate(passages) if "gold" not in each)
        for passages in found_of(place).values()
    ]
    row = rows_of(found)["relevance", "distractor"]
    assert (row["wins"], row["ties"], row["losses"]) == (sum(ahead), 0, 30 - sum(ahead)) and row["p_holm"] is None
    assert f"; the retriever's score in {100 * sum(ahead) / 30:.1f} % [" in found.findings.sentences[0]
    # The list has no score for random passages.
    row = rows_of(found)["relevance", "random"]
    assert (row["win rate"], row["missing"], row["why"]) == (None, 30, "there are no pairs of values")
    assert found.folder is not None
    again = ragworth.study("win-rate", found.folder / "cases" / "01", keep=False)
    assert rows_of(again) == rows_of(found)
    # A search scores any passage.
    pytest.importorskip("bm25s")
    toml = place / "ragworth.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace("[systems]\n", '[systems]\nwords = "bm25"\n'), "utf-8")
    assert rows_of(ragworth.study("win-rate", place, keep=False))["relevance", "random"]["missing"] == 0


def test_strict_wins_count_no_ties(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Even()
    place = collection(tmp_path / "w", queries=6)
    found = ragworth.study("win-rate", place, keep=False, ties="lose")
    for (name, _), row in rows_of(found).items():
        if name != "relevance":
            assert (row["win rate"], row["ties"], row["wins"]) == (0.0, 6, 0) and row["p"] == pytest.approx(1.0)
    assert found.findings.tables[0].note.startswith("ties count as losses")
    paper = ragworth.study("win-rate", place, keep=False, protocol="paper")
    assert rows_of(paper) == rows_of(found)
    assert paper.findings.notes[0].startswith("Protocol paper: the design of Hua et al.")


def test_measures_over_key_tokens_are_compared_with_those_over_all(tmp_path: Path, opened: Opened) -> None:
    """KeyEntropy wins the 4 queries that Entropy wins and 8 more; KeyPPL wins 5 of the 7 that PPL wins."""
    first = ragworth.study("win-rate", collection(tmp_path / "w", queries=13), keep=False).cases[0]
    assert first.results.judgments is not None
    gold = set(first.results.contexts.frame.filter(pl.col("system") == "gold").select("query", "passage").rows())
    queries = sorted({query for query, _ in gold})
    wins = {"PPL": 7, "KeyPPL": 5, "Entropy": 4, "KeyEntropy": 12}
    rows = first.results.judgments.frame.filter(pl.col("aspect").is_in(list(wins)))
    values = [
        float((queries.index(query) < wins[aspect]) == ((query, passage) in gold))
        for query, passage, aspect in rows.select("query", "passage", "aspect").iter_rows()
    ]
    planted = Judgments.trusted(rows.with_columns(value=pl.Series(values)))
    found = WinRate().find([replace(first, results=replace(first.results, judgments=planted))])
    shown = {(row["confidence"], row["against"]): row for row in found.tables[0].frame.to_dicts()}
    for against in ("distractor", "random"):
        for name, gain, p in (("KeyEntropy", 8 / 13, 2 / 2**8), ("KeyPPL", -2 / 13, 0.5)):
            row = shown[name, against]
            assert (row["key gain"], row["p_gain"]) == (pytest.approx(gain), pytest.approx(p))
            assert row["gain low"] < gain < row["gain high"]
        assert all(shown[name, against]["p_gain"] is None for name in ("PPL", "Entropy"))
    assert found.sentences[1] == (
        "Over a distractor, KeyPPL wins 15.4 points less often than PPL (p = 0.500); "
        "KeyEntropy wins 61.5 points more often than Entropy (p = 0.008)."
    )


def test_numbers_are_those_of_the_tables(tmp_path: Path, opened: Opened) -> None:
    found = ragworth.study("win-rate", collection(tmp_path / "w", queries=25), keep=False)
    results = found.cases[0].results
    assert results.judgments is not None
    shown = {(s, q): p for s, q, p in results.contexts.frame.select("system", "query", "passage").iter_rows()}
    assert results.contexts.frame.height == 75
    p_values = []
    for (name, against), row in rows_of(found).items():
        if name == "relevance":
            continue
        aspect = "abstention" if "abstention" in name else name
        values = {
            (q, p): -v if aspect == "abstention" else v
            for q, p, a, v in results.judgments.frame.select("query", "passage", "aspect", "value").iter_rows()
            if a == aspect
        }
        signs = []
        for query in {query for _, query in shown}:
            gold, other = values[query, shown["gold", query]], values[query, shown[against, query]]
            signs.append((gold > other) - (gold < other))
        wins, losses = signs.count(1), signs.count(-1)
        assert (row["wins"], row["ties"], row["losses"]) == (wins, signs.count(0), losses)
        assert row["win rate"] == pytest.approx((wins + signs.count(0) / 2) / 25)
        assert row["p"] == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, abs=1e-12)
        assert row["low"] <= row["win rate"] <= row["high"]  # type: ignore[operator]
        p_values.append(row["p"])
    least = min(p_values)  # type: ignore[type-var]
    corrected = [row["p_holm"] for row in rows_of(found).values() if row["p"] == least]
    assert corrected[0] == pytest.approx(min(1.0, least * len(p_values)))  # type: ignore[operator]


def test_a_passage_that_holds_an_accepted_answer_is_no_distractor(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=5)
    first, second = [each for each in found_of(place)["q003"] if "gold" not in each][:2]
    text = (place / "passages.jsonl").read_text(encoding="utf-8")
    (place / "passages.jsonl").write_text(
        text.replace(f'"{first}", "text": "', f'"{first}", "text": "right3 '), "utf-8"
    )
    found = ragworth.study("win-rate", place, keep=False)
    shown = found.cases[0].results.contexts.frame.filter(pl.col("query") == "q003")
    assert dict(shown.select("system", "passage").iter_rows())["distractor"] == second
    note = "Passages skipped because they contain an accepted answer: distractor: 1"
    assert note in found.findings.notes


@pytest.mark.slow
def test_what_cannot_be_studied_is_refused(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=4)
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="depth is 0"):
        ragworth.study("win-rate", place, depth=0)
    (place / "ragworth.toml").write_text(text.replace('answers = "queries.jsonl"\n', ""), encoding="utf-8")
    with pytest.raises(InputError, match=r"no query is left to study \(no accepted answers: 4\)"):
        ragworth.study("win-rate", place, keep=False)
    assert opened.calls == 0
    (place / "ragworth.toml").write_text(text.replace("abstention = true\n", ""), encoding="utf-8")
    ragworth.evaluate(place)
    with pytest.raises(InputError, match="no passage has a confidence"):
        ragworth.study("win-rate", place / "results")
    ragworth.study("layouts", place, models="embedded,other", size=3, output=tmp_path / "layouts")
    with pytest.raises(InputError, match="no passage has a confidence"):
        ragworth.study("win-rate", tmp_path / "layouts" / "cases" / "01")
