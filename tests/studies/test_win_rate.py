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
from ragworth.errors import InputError
from ragworth.llm.contract import Choose, Generate, Request, Score, Trace
from ragworth.llm.scripted import ScriptedReply
from ragworth.stats.estimate import Estimate
from ragworth.studies.confidences import best_measure
from ragworth.studies.run import StudyResult, plan_study
from ragworth.studies.win_rate import WinRate
from ragworth.tables import Judgments
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


@pytest.mark.slow
def test_controls_offer_no_distractors(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=12)
    toml = place / "ragworth.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace("[systems]\n", '[systems]\nchance = "random"\n'), "utf-8")
    found = ragworth.study("win-rate", place, keep=False)
    shown = found.cases[0].results.contexts.frame.filter(pl.col("system") == "distractor")
    top = {query: next(each for each in passages if "gold" not in each) for query, passages in found_of(place).items()}
    assert dict(shown.select("query", "passage").iter_rows()) == top
    ragworth.evaluate(place)
    judged = ragworth.study("win-rate", place / "results", keep=False).cases[0].results.contexts.frame
    assert (judged["passage"].str.slice(0, 4) == judged["query"]).all()
    with pytest.raises(InputError, match="there is no system 'third'"):
        ragworth.study("win-rate", place, keep=False, retriever="third")
    other = ragworth.study("win-rate", place, keep=False, retriever="chance").cases[0].results.contexts.frame
    assert not other.filter(pl.col("system") == "distractor").equals(shown)


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


def test_strict_wins_may_be_fewer_than_half_and_still_reliable(tmp_path: Path, opened: Opened) -> None:
    """14 wins, 26 ties, no loss: a strict win rate of 35 %."""
    first = ragworth.study("win-rate", collection(tmp_path / "w", queries=40), keep=False).cases[0]
    assert first.results.judgments is not None
    gold = first.results.contexts.frame.filter(pl.col("system") == "gold").select("query", "passage")
    won = pl.struct("query", "passage").is_in(gold.sort("query").head(14).to_struct().to_list())
    frame = first.results.judgments.frame.with_columns(value=won.cast(pl.Float64))
    case = replace(first, results=replace(first.results, judgments=Judgments.trusted(frame)))
    found = WinRate(ties="lose").find([case])
    row = found.tables[0].frame.row(0, named=True)
    assert row["win rate"] == pytest.approx(14 / 40) and (row["wins"], row["losses"]) == (14, 0)
    assert row["p_holm"] < 0.05 and "PPL, KeyPPL, Entropy, KeyEntropy recognise the relevant" in found.sentences[0]


def test_key_tokens_are_compared_in_the_row_they_belong_to(tmp_path: Path, opened: Opened) -> None:
    found = ragworth.study("win-rate", collection(tmp_path / "w", queries=25), keep=False)
    rows = rows_of(found)
    for (name, against), row in rows.items():
        if name.startswith("Key"):
            gain = row["win rate"] - rows[name.removeprefix("Key"), against]["win rate"]  # type: ignore[operator]
            assert row["key gain"] == pytest.approx(gain) and 0 < row["p_gain"] <= 1  # type: ignore[operator]
        else:
            assert row["key gain"] is None and row["p_gain"] is None
    assert found.findings.sentences[1].startswith("Over a distractor, KeyPPL wins ")


def test_a_few_answers_are_shown_token_by_token(tmp_path: Path, opened: Opened) -> None:
    found = ragworth.study("win-rate", collection(tmp_path / "w", queries=6), keep=False)
    views = found.findings.answers
    assert [view.arm for view in views] == ["gold", "distractor"] * 3 and len({view.query for view in views}) == 3
    assert all(view.tokens and view.tokens[0].alone == pytest.approx(1.5) for view in views)
    texts = dict(found.cases[0].results.collection.queries.select("query", "text").iter_rows())
    assert all(view.question == texts[view.query] and view.question in view.title for view in views)
    listed = found.findings.record["answers"]
    assert [(one["query"], one["arm"]) for one in listed] == [(view.query, view.arm) for view in views]
    assert [token["text"] for token in listed[0]["tokens"]] == [token.text for token in views[0].tokens]


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


def test_the_best_of_several_must_stand_holm(tmp_path: Path, opened: Opened) -> None:
    """11 of 13 is significant alone (p = 0.022), and not as the best of five confidences over two passages."""
    first = ragworth.study("win-rate", collection(tmp_path / "w", queries=13), keep=False).cases[0]
    judgments = first.results.judgments
    assert judgments is not None
    shown = first.results.contexts.frame
    gold = set(shown.filter(pl.col("system") == "gold").select("query", "passage").rows())
    queries = sorted(set(shown["query"]))
    wins = {"PPL": 11, "KeyPPL": 9, "Entropy": 7, "KeyEntropy": 6, "abstention": 6}

    def value(query: str, passage: str, aspect: str) -> float:
        mine = (queries.index(query) < wins.get(aspect, 0)) == ((query, passage) in gold)
        return (0.2 if mine else 0.8) if aspect == "abstention" else (0.8 if mine else 0.2)

    rows = judgments.frame.filter(pl.col("aspect") != "relevance")
    values = [value(*row) for row in rows.select("query", "passage", "aspect").iter_rows()]
    made = Judgments.trusted(rows.with_columns(pl.Series("value", values)))
    found = WinRate().find([replace(first, results=replace(first.results, judgments=made))])
    row = found.tables[0].frame.row(0, named=True)
    assert (row["confidence"], row["wins"], row["losses"]) == ("PPL", 11, 2)
    assert row["p"] < 0.05 < row["p_holm"] and row["low"] > 0.5
    words = found.sentences[0]
    assert words.startswith("No confidence reliably recognises the relevant passage; PPL comes closest")
    assert f"(p = {row['p_holm']:.3f} after Holm)" in words


def test_equal_confidence_is_half_a_win(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Even()
    found = ragworth.study("win-rate", collection(tmp_path / "w", queries=6), keep=False)
    for (name, _), row in rows_of(found).items():
        if name != "relevance":
            assert row["win rate"] == pytest.approx(0.5) and row["ties"] == 6 and row["p"] == pytest.approx(1.0)
    assert "No confidence reliably recognises" in found.findings.sentences[0]


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


def test_each_thing_is_asked_once_and_never_again(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    plan = plan_study("win-rate", [place])
    assert [stage.name for stage in plan] == ["judged.confidence", "judged.abstention"] and opened.calls == 0
    assert "18 calls to make" in plan[0].words
    first = ragworth.study("win-rate", place, keep=False)
    asked = opened.calls
    again = ragworth.study("win-rate", place, keep=False)
    assert opened.calls == asked and again.findings.sentences == first.findings.sentences
    assert again.findings.tables[0].frame.equals(first.findings.tables[0].frame)
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    (place / "ragworth.toml").write_text(f"seed = 1\n{text}", encoding="utf-8")
    other = ragworth.study("win-rate", place, keep=False)
    before, after = (each.cases[0].results.contexts.frame for each in (first, other))
    drawn = pl.col("system") == "random"
    assert not before.filter(drawn).equals(after.filter(drawn)) and before.filter(~drawn).equals(after.filter(~drawn))


@pytest.mark.slow
def test_what_it_wrote_and_what_an_evaluation_judged_need_no_model(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=12)
    first = ragworth.study("win-rate", place)
    assert first.folder is not None and (first.folder / "figures" / "win-rate.svg").is_file()
    asked = opened.calls
    again = ragworth.study("win-rate", first.folder / "cases" / "01", keep=False)
    assert again.findings.sentences == first.findings.sentences and opened.calls == asked
    assert again.findings.tables[0].frame.equals(first.findings.tables[0].frame)
    ragworth.evaluate(place)
    asked = opened.calls
    found = ragworth.study("win-rate", place / "results", keep=False)
    rows = rows_of(found)
    assert set(rows) == {("1 − abstention", "distractor"), ("relevance", "distractor")} and opened.calls == asked
    top = {query: passages[:5] for query, passages in found_of(place).items()}
    both = [each for each in top.values() if any("gold" in p for p in each) and any("gold" not in p for p in each)]
    assert rows["1 − abstention", "distractor"]["queries"] == len(both)
    texts = texts_of(place)
    wins = sum(
        sure(texts[next(p for p in each if "gold" in p)]) > sure(texts[next(p for p in each if "gold" not in p)])
        for each in both
    )
    assert rows["1 − abstention", "distractor"]["wins"] == wins


def test_left_out_queries_are_counted(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    kept = [line for line in (place / "qrels.txt").read_text().splitlines() if not line.startswith("q001 0 q001-gold")]
    (place / "qrels.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    asked = (place / "queries.jsonl").read_text(encoding="utf-8").replace('["right2"]', "[]")
    (place / "queries.jsonl").write_text(asked, encoding="utf-8")
    left = {
        row["reason"]: row["queries"]
        for row in ragworth.study("win-rate", place, keep=False).findings.left_out.to_dicts()
    }
    assert left == {"no relevant passage": 1, "no accepted answers": 1}
    alone = ragworth.study("win-rate", collection(tmp_path / "one", queries=1), keep=False).findings
    assert alone.left_out.to_dicts() == [
        {"case": "one", "reason": "not compared with a random passage: there is none", "queries": 1}
    ]
    assert set(alone.tables[0].frame["against"]) == {"distractor"}
    assert alone.tables[0].frame["low"].null_count() == alone.tables[0].frame.height  # one query has no interval


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


def test_a_sure_confidence_below_an_unsure_one_is_named() -> None:
    few = Estimate(1.0, p_holm=0.5, counts={"wins": 2, "losses": 0})
    many = Estimate(0.8, p_holm=0.001, counts={"wins": 80, "losses": 20})
    found = best_measure({"PPL": few, "Entropy": many}, ("wins", "losses"), 0.05, "recognise", "it")
    assert found == ("Entropy recognises it best of those that reliably do", "Entropy")
    found = best_measure({"PPL": few}, ("wins", "losses"), 0.05, "recognise", "it")
    assert found == ("no confidence reliably recognises it; PPL comes closest", "PPL")
