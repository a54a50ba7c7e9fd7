"""``ragworth study propagation``: utility is what the texts say, and follows relevance as far as it was planted."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from benchmarks.simulated_reader import VOICE, Reader, collection
from scipy import stats

import ragworth
from ragworth.core.errors import InputError
from ragworth.llm.contract import Generate, Request
from ragworth.llm.scripted import ScriptedReply
from ragworth.studies.bench import fit_workspace
from ragworth.studies.run import StudyResult, build_study
from ragworth.workspace import config
from tests.studies.conftest import Listener, Opened

UTILITY = 'utility = { similarity = "f1" }\n'


class Speaker(Reader):
    """Says what it hears after the word that all passages have; without a context only that word."""

    def __call__(self, request: Request) -> ScriptedReply:
        said = super().__call__(request)
        if not isinstance(said, str):
            return said
        return f"says {said}" if VOICE.search(request.prompt.messages[-1].content) else "says"


def f1(text: str, passage: str) -> float:
    first, second = (Counter(each.replace("=", "").replace(".", "").lower().split()) for each in (text, passage))
    same = sum((first & second).values())
    return 2 * same / (sum(first.values()) + sum(second.values()))


def table(found: StudyResult, at: int = 0) -> dict[tuple[int, str], dict[str, object]]:
    return {(row["k"], row["context"]): row for row in found.findings.tables[at].frame.to_dicts()}


@pytest.mark.slow
def test_a_reader_of_the_top_gains_from_relevance_and_loses_by_reversal(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Speaker(weights=(1.0, 0.05), threshold=0.02, noise=0.0)
    place = collection(tmp_path / "w", queries=60, relevant=6, toml=UTILITY)
    found = ragworth.study("propagation", place, keep=False, sizes="2,5")
    rows, carried = table(found), table(found, 1)
    # The same by the ratio of means: all queries have the same denominator.
    assert rows[2, "relevant only"]["gain"] == pytest.approx(5 / 7)
    assert rows[2, "non-relevant only"]["gain"] == pytest.approx(-1 / 7)
    # "says right7" against a relevant passage of five words: (4/7)/(2/6) − 1 = 5/7; a wrong answer (2/7)/(2/6) − 1.
    assert rows[2, "relevant only"]["utility"] == pytest.approx(5 / 7)
    assert rows[2, "non-relevant only"]["utility"] == pytest.approx(-1 / 7)
    assert all(rows[k, "first"]["marks"] == "†" for k in (2, 5))
    assert carried[2, "first"]["correlation"] > 0.7  # type: ignore[operator]
    assert carried[2, "first"]["low"] > 0 and carried[5, "first"]["low"] > 0  # type: ignore[operator]
    said = found.findings.sentences[0]
    assert said.startswith("For first, relevance carries over to the answer: Pearson r of nDCG@k with utility ")
    assert "mean P without a context 0.333" in found.findings.lead
    assert all(row["P without"] == pytest.approx(1 / 3) for row in rows.values())


@pytest.mark.slow
def test_numbers_are_those_of_the_texts(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Speaker()
    found = ragworth.study("propagation", collection(tmp_path / "w", queries=30, toml=UTILITY), keep=False, sizes="2,5")
    case = found.cases[0]
    results = case.results
    assert results.answers is not None
    texts = dict(results.collection.passages.iter_rows())
    said = {(s, q): t for s, q, t in results.answers.frame.select("system", "query", "text").iter_rows()}
    queries = [f"q{n:03d}" for n in range(30)]
    utility, similarity = {}, {}
    for (system, query), text in said.items():
        golds = [each for name, each in texts.items() if name.startswith(f"{query}-gold")]
        base = max(f1(said["(none)", query], each) for each in golds)
        similarity[system, query] = max(f1(text, each) for each in golds)
        utility[system, query] = (similarity[system, query] - base) / base
    scores = {
        (s, q, m): v for s, q, m, v in results.scores.frame.select("system", "query", "metric", "value").iter_rows()
    }
    for size in (2, 5):
        p_values = {}
        for label in ("first", "first reversed", "non-relevant only"):
            mine, oracle = (
                [similarity[f"{each} @{size}", query] for query in queries] for each in (label, "relevant only")
            )
            row = table(found)[size, label]
            own = [utility[f"{label} @{size}", query] for query in queries]
            assert row["utility"] == pytest.approx(sum(own) / 30) and row["queries"] == 30
            bare = [similarity["(none)", query] for query in queries]
            assert row["gain"] == pytest.approx(sum(mine) / sum(bare) - 1)
            assert row["p_gain"] == pytest.approx(
                stats.ttest_rel(mine, bare).pvalue if len(set(mine)) > 1 else 1 / 10_001
            )
            less = [a - b for a, b in zip(mine, oracle, strict=True)]
            assert row["less oracle"] == pytest.approx(sum(less) / 30)
            # A difference that never varies has no t: the signs alone, flipped at random, speak.
            varied = len({round(each, 9) for each in less}) > 1
            p_values[label] = stats.ttest_rel(mine, oracle).pvalue if varied else 1 / 10_001
        largest = 0.0
        for place, (label, p) in enumerate(sorted(p_values.items(), key=lambda pair: pair[1])):
            largest = max(largest, min(1.0, (3 - place) * p))
            assert table(found)[size, label]["p_oracle_holm"] == pytest.approx(largest)
            assert table(found)[size, label]["p_oracle"] == pytest.approx(p)
        for label in ("first", "first reversed"):
            x = [scores[f"{label} @{size}", query, f"nDCG@{size}"] for query in queries]
            y = [utility[f"{label} @{size}", query] for query in queries]
            row = table(found, 1)[size, label]
            assert row["correlation"] == pytest.approx(stats.pearsonr(x, y).statistic) and row["contexts"] == 30
        there, back = (
            [similarity[f"{each} @{size}", query] for query in queries] for each in ("first", "first reversed")
        )
        # Where every answer is the same in both orders, nothing speaks against the order's making no difference.
        p = stats.ttest_rel(there, back).pvalue if there != back else 1.0
        row = table(found)[size, "first"]
        assert row["p_reversal"] == pytest.approx(p) and row["p_reversal_holm"] == pytest.approx(p)  # the only pair


@pytest.mark.slow
def test_contexts_are_what_they_are_called(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Speaker()
    case = ragworth.study("propagation", collection(tmp_path / "w", queries=6, toml=UTILITY), keep=False).cases[0]
    shown: dict[tuple[str, str], list[str]] = {}
    for system, query, passage in case.results.contexts.frame.select("system", "query", "passage").iter_rows():
        shown.setdefault((system, query), []).append(passage)
    for query in (f"q{n:03d}" for n in range(6)):
        for size in (2, 5, 10, 15):
            assert shown[f"first @{size}", query][::-1] == shown[f"first reversed @{size}", query]
            assert len(shown[f"first @{size}", query]) == size
            oracle, adversary = shown[f"relevant only @{size}", query], shown[f"non-relevant only @{size}", query]
            assert all("gold" in each for each in oracle) and len(oracle) == min(size, 3)
            assert len(adversary) == size and all("near" in each for each in adversary[:12])  # those with a label first
            assert not any("gold" in each for each in adversary) and len(set(adversary)) == size
    assert set(case.design["role"]) == {"system", "reversed", "oracle", "adversary"}


@pytest.mark.slow
def test_an_evaluation_with_utility_is_enough(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Speaker()
    place = collection(tmp_path / "w", queries=12, toml=UTILITY)
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    (place / "ragworth.toml").write_text(text.replace("length = 16", "length = 16\nwithout = true"), encoding="utf-8")
    ragworth.evaluate(place)
    calls = opened.calls
    found = ragworth.study("propagation", place / "results", keep=False)
    results = ragworth.Results.read(place / "results")
    assert results.outcomes is not None and opened.calls == calls
    known = results.outcomes.frame.filter((pl.col("aspect") == "utility") & (pl.col("system") == "first"))
    row = table(found)[5, "first"]
    assert row["utility"] == pytest.approx(known["value"].mean()) and row["queries"] == 12 and row["p_oracle"] is None
    assert row["P without"] == pytest.approx(1 / 3)


def test_an_evaluation_without_utility_is_refused(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=4, toml="text = true\n")
    ragworth.evaluate(place)
    with pytest.raises(InputError, match="no outcomes 'utility'"):
        ragworth.study("propagation", place / "results")


def test_left_out_queries_and_answers_without_worth_are_counted(tmp_path: Path, opened: Opened) -> None:
    place = collection(
        tmp_path / "w", queries=6, toml=UTILITY
    )  # without a context it says NO-RESPONSE, which is worth 0
    kept = [line for line in (place / "qrels.txt").read_text().splitlines() if not line.startswith("q001 0 q001-gold")]
    (place / "qrels.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    found = ragworth.study("propagation", place, keep=False, sizes="2")
    left = {row["reason"]: row["queries"] for row in found.findings.left_out.to_dicts()}
    assert left == {"no relevant passage": 1, "no utility in some context: zero-shot-worthless": 5}
    assert len(found.findings.sentences) == 1 and found.findings.sentences[0].startswith("No context has a utility: ")
    assert found.findings.figures == ()
    rows = found.findings.tables[0].frame
    assert rows["utility"].null_count() == rows.height and set(rows["missing"]) == {5} and set(rows["marks"]) == {""}


def test_missing_repeats_are_counted(tmp_path: Path, opened: Opened) -> None:
    """One of three repeats of two queries has no answer at k = 2."""

    class Silent(Speaker):
        def __call__(self, request: Request) -> ScriptedReply:
            last = request.prompt.messages[-1].content
            mine = ("q001" in last or "q004" in last) and len(VOICE.findall(last)) == 2
            if isinstance(request, Generate) and request.seed is not None and mine:
                key = re.sub(r"\s+", " ", last)
                self.seen = {**getattr(self, "seen", {}), key: getattr(self, "seen", {}).get(key, 0) + 1}
                if self.seen[key] == 3:
                    return ""
            return super().__call__(request)

    opened.reader = Silent(noise=0.0)
    place = collection(tmp_path / "w", queries=6, toml=UTILITY)
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    sampled = "length = 16\ntemperature = 0.3\nrepeats = 3"
    (place / "ragworth.toml").write_text(text.replace("length = 16", sampled), encoding="utf-8")
    found = ragworth.study("propagation", place, keep=False, sizes="2,5", oracle=False, adversary=False)
    rows = table(found)
    assert rows[2, "first"]["fewer repeats"] == 2 and rows[2, "first"]["missing"] == 0
    assert rows[5, "first"]["fewer repeats"] == 0
    assert set(found.cases[0].design["role"]) == {"system", "reversed"}
    assert {row["p_oracle"] for row in rows.values()} == {None} and rows[2, "first"]["p_reversal"] is not None


def test_the_published_design(tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = build_study("propagation", {}, "paper")
    space = fit_workspace(config.read(collection(tmp_path / "w", queries=2)), chosen)
    assert space.answers is not None and space.answers.without
    assert space.answers.task.settings["temperature"] == pytest.approx(0.3)
    assert space.answers.task.settings["repeats"] == 5
    graded = space.grades["utility"].settings
    assert graded["similarity"] == "bertscore" and graded["encoder"] == "paper" and graded["repeats"] == 5
    assert chosen.settings["sizes"] == "2,5,10,15" and chosen.settings["measure"] == "pearson"
    ours = fit_workspace(config.read(tmp_path / "w"), build_study("propagation", {}))
    assert "similarity" not in ours.grades["utility"].settings  # the grader's own, which works offline


def test_the_papers_prompt_asks_for_what_the_model_knows_itself(tmp_path: Path, opened: Opened) -> None:
    opened.reader = Listener()
    place = collection(tmp_path / "w", queries=2)
    ragworth.study("propagation", place, keep=False, protocol="paper", sizes="2", relevant=1.0, similarity="f1")
    asked = opened.reader.asked
    assert asked and all("from what you know yourself" in each and "NO-RESPONSE" not in each for each in asked)
    assert any("from texts that you are given" in each for each in asked)
    assert any("Text 1" not in each for each in asked), "without a context"


def test_what_cannot_be_studied_is_refused(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=4, toml=UTILITY)
    for wrong, settings in (("sizes", {"sizes": "2,x"}), ("sizes", {"sizes": "0"}), ("measure", {"measure": "phi"})):
        with pytest.raises(InputError, match=wrong):
            ragworth.study("propagation", place, **settings)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no query is left"):
        ragworth.study("propagation", place, keep=False, relevant=2.0)
    with pytest.raises(InputError, match="needs downstream"):
        ragworth.study("propagation", place, keep=False, metrics=["eRAG"])
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    (place / "ragworth.toml").write_text(text.replace('similarity = "f1"', 'encoder = "nowhere"'), encoding="utf-8")
    with pytest.raises(ragworth.core.errors.RagworthError):
        ragworth.study("propagation", place, keep=False)
    assert opened.calls == 0
