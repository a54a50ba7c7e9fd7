"""``ragworth study long-form``: coverage of contexts and of answers, bounds, ranks and thresholds, recomputed."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import ragworth
from ragworth.core.errors import FormatError, InputError
from ragworth.data import Outcomes, Ratings
from ragworth.llm.contract import Choose, Generate, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.results import Results
from ragworth.studies.long_form import LongForm
from ragworth.studies.rated_coverage import answer_coverage
from ragworth.studies.run import build_study, plan_study
from tests.studies.planted import contexts, given

FACT = re.compile(r"fact(\d+)x(\d+)=(\d)")
QUICK: dict[str, Any] = {"resamples": 100, "keep": False}
QUERIES, PARTS = 10, 5


def reader(request: Request) -> ScriptedReply:
    """Writes down every fact that it is shown, with how well it is told; rates a text by the best telling of a fact."""
    text = request.prompt.messages[-1].content
    if isinstance(request, Choose):
        asked = re.search(r"what is fact(\d+)x(\d+)", text)
        assert asked is not None
        told = [int(told) for query, part, told in FACT.findall(text) if (query, part) == asked.groups()]
        best = str(max(told, default=0))
        return {label: 0.95 if label == best else 0.01 for label in request.labels}
    assert isinstance(request, Generate)
    return " ".join(f"fact{q}x{part}={told}" for q, part, told in FACT.findall(text)) or "NO-RESPONSE"


def workspace(folder: Path, *, ratings: bool = True, judged: bool = False) -> Path:
    """Requests with five facts each; systems find more or less of them."""
    draw = random.Random(1)
    folder.mkdir(parents=True)
    queries, parts, passages, rated = [], [], [], []
    runs: dict[str, list[str]] = {f"s{at}": [] for at in range(4)}
    for q in range(QUERIES):
        queries.append({"id": f"q{q}", "text": f"report on q{q}"})
        texts = [f"what is fact{q}x{p}" for p in range(PARTS)]
        parts.append(
            {"query_id": f"q{q}", "subquestions": [{"id": f"q{q}s{p}", "text": text} for p, text in enumerate(texts)]}
        )
        for at in range(12):
            told = {p: draw.randint(1, 5) for p in draw.sample(range(PARTS), 2)} if at < 6 else {}
            words = " ".join(f"fact{q}x{p}={value}" for p, value in told.items()) or "nothing of use"
            passages.append({"id": f"q{q}p{at}", "text": f"{words} {'and so on ' * draw.randint(1, 4)}"})
            rated += [f"q{q} q{q}s{p} q{q}p{at} {told.get(p, 0)}" for p in range(PARTS)]
        for at in range(4):
            place = {each: (each >= 6) * (3 - at) * 0.2 + draw.random() for each in range(12)}
            found = sorted(place, key=lambda each: place[each])
            runs[f"s{at}"] += [f"q{q} Q0 q{q}p{each} {rank} {1 / rank} s{at}" for rank, each in enumerate(found, 1)]
    queries.append({"id": "short", "text": "no sub-questions"})
    for name, rows in (("queries", queries), ("subquestions", parts), ("passages", passages)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "ratings.txt").write_text("\n".join(rated) + "\n", encoding="utf-8")
    for name, lines in runs.items():
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n", encoding="utf-8")
    systems = "".join(f'{name} = {{ run = "{name}.run" }}\n' for name in runs)
    (folder / "ragworth.toml").write_text(
        'title = "facts"\nk = 3\n[collection]\nqueries = "queries.jsonl"\npassages = "passages.jsonl"\n'
        'subquestions = "subquestions.jsonl"\n'
        + ('ratings = "ratings.txt"\n' if ratings else "")
        + f"[systems]\n{systems}"
        + ("[judgments]\nratings = true\n" if judged else ""),
        encoding="utf-8",
    )
    return folder


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Scripted]:
    pytest.importorskip("altair")
    models: list[Scripted] = []

    def llm(spec: str = "", **options: Any) -> Scripted:
        models.append(Scripted(reader, name="facts"))
        return models[-1]

    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", llm)
    return models


def facts(place: Path) -> dict[str, dict[int, int]]:
    """What each passage tells, from its text."""
    rows = [json.loads(line) for line in (place / "passages.jsonl").read_text().splitlines()]
    return {row["id"]: {int(p): int(told) for _, p, told in FACT.findall(row["text"])} for row in rows}


def by_pair(frame: pl.DataFrame) -> dict[tuple[str, str], float]:
    """Values by system and query."""
    return {(system, query): value for system, query, value in frame.select("system", "query", "value").rows()}


def evaluated(place: Path, eta: float) -> Path:
    """The results of an evaluation whose answers were graded from one rating on."""
    toml = (place / "ragworth.toml").read_text()
    how = '[answers]\nprompt = "answer-long"\neverything = true\n'
    (place / "ragworth.toml").write_text(f"{toml}{how}[grades.coverage]\neta = {eta:g}\n", encoding="utf-8")
    ragworth.evaluate(place)
    return place / "results"


def best(place: Path, eta: float) -> dict[str, set[int]]:
    """The facts of each query that some passage tells with this rating or more."""
    told = facts(place)
    return {f"q{q}": {p for at in range(12) for p, v in told[f"q{q}p{at}"].items() if v >= eta} for q in range(QUERIES)}


@pytest.mark.slow
def test_contexts_and_answers_cover_what_the_texts_say(tmp_path: Path, made: list[Scripted]) -> None:
    place = workspace(tmp_path / "w")
    assert [stage.name for stage in plan_study("long-form", [place])] == ["answered", "grade.coverage"] and not sum(
        m.calls for m in made
    )
    found = ragworth.study("long-form", place, **QUICK)
    case, told = found.cases[0], facts(place)
    can = {f"q{q}": {p for at in range(12) for p, v in told[f"q{q}p{at}"].items() if v >= 3} for q in range(QUERIES)}
    wanted = {
        key: len({p for each in shown for p, v in told[each].items() if v >= 3}) / len(can[key[1]])
        for key, shown in contexts(case).items()
    }
    scores = case.results.scores.frame.filter(pl.col("metric") == "Cov")
    assert {(s, q): v for s, q, v in scores.select("system", "query", "value").rows()} == pytest.approx(wanted)
    # The reader writes down all that it is shown, so that answers cover what contexts cover; without any, nothing.
    answers = by_pair(answer_coverage(case.results, 3.0).coverage)
    assert {key: value for key, value in answers.items() if key[0] != "(none)"} == pytest.approx(wanted)
    assert {value for key, value in answers.items() if key[0] == "(none)"} == {0.0}
    rows = {row["system"]: row for row in found.findings.tables[0].frame.to_dicts()}
    assert (
        rows["(required)"]["Cov"] == 1 and rows["(none)"]["Cov"] is None and rows["(required)"]["role"] == "upper bound"
    )
    for system in ("s0", "s1", "s2", "s3"):
        mean = np.mean([value for key, value in wanted.items() if key[0] == system])
        assert rows[system]["Cov"] == pytest.approx(mean) and rows[system]["coverage of the answer"] == pytest.approx(
            mean
        )
    ranks = {(row["context"], row["answer"]): row for row in found.findings.tables[1].frame.to_dicts()}
    assert ranks["Cov", "coverage"]["τ-b"] == pytest.approx(1) and ranks["Cov", "coverage"]["systems"] == 4
    assert found.findings.left_out.rows() == [("facts", "no sub-questions", 1)]
    assert "Cov, Den rank the systems most" in found.findings.sentences[0]
    highest = max((row for name, row in rows.items() if name[0] != "("), key=lambda row: row["coverage of the answer"])
    assert f"The highest coverage of the answer is that of {highest['system']}," in found.findings.sentences[1]


@pytest.mark.slow
def test_density_of_answers_is_by_the_required_subset(tmp_path: Path, made: list[Scripted]) -> None:
    found = ragworth.study("long-form", workspace(tmp_path / "w"), **QUICK)
    results = found.cases[0].results
    tokens = dict(results.collection.tokens().select("passage", "tokens").rows())
    required = {
        q: sum(tokens[p] for p in shown) for (s, q), shown in contexts(found.cases[0]).items() if s == "(required)"
    }
    said = results.said["coverage"].filter(pl.col("aspect") == "coverage")
    lengths = {(s, q): n for s, q, n in said.select("system", "query", "tokens").rows()}
    coverage, density = map(by_pair, answer_coverage(results, 3.0))
    for key, value in density.items():
        assert value == pytest.approx((coverage[key] * required[key[1]] / lengths[key]) ** 0.5)


@pytest.mark.slow
def test_ratings_by_the_model(tmp_path: Path, made: list[Scripted]) -> None:
    place = workspace(tmp_path / "w", ratings=False, judged=True)
    plan = {stage.name: stage.words for stage in plan_study("long-form", [place])}
    assert list(plan) == ["judged.ratings", "answered", "grade.coverage"]
    found = ragworth.study("long-form", place, **QUICK)
    # Which passages are required is not known before; that something will be is.
    assert found.cases[0].results.answers is not None and found.cases[0].results.answers.frame.height == 60
    assert plan["answered"].startswith("60 requests, 60 distinct")
    assert plan["grade.coverage"].startswith(f"60 answers to grade: {60 * PARTS} requests at most")
    told = facts(place)
    assert found.cases[0].results.ratings is not None
    for query, passage, part, value in (
        found.cases[0].results.ratings.frame.select("query", "passage", "subquestion", "value").rows()
    ):
        assert value == told[passage].get(int(part.removeprefix(f"{query}s")), 0)


@pytest.mark.slow
@pytest.mark.parametrize("eta", [1.0, 2.0, 3.0, 4.0])
def test_contexts_and_answers_go_by_the_same_threshold_and_queries(
    tmp_path: Path, made: list[Scripted], eta: float
) -> None:
    """The reader writes down all it is shown: whatever the evaluation was graded at, both cover the same."""
    place = workspace(tmp_path / "w")
    results = evaluated(place, 3)
    found = ragworth.study("long-form", results, eta=eta, **QUICK)
    name = "Cov@3" if eta == 3 else f"Cov(eta={eta:g})@3"
    # Answers were rated for what is answerable from 3 on: where more is from η on, nobody knows what they cover.
    can, rated, told = best(place, eta), best(place, 3), facts(place)
    queries = [query for query in can if can[query] <= rated[query]]
    lost = QUERIES - len(queries)
    assert (lost > 0) == (eta < 3)
    shown = {key: passages[:3] for key, passages in contexts(found.cases[0]).items()}
    for row in found.findings.tables[0].frame.to_dicts():
        wanted = np.mean(
            [
                len({p for each in shown[row["system"], q] for p, v in told[each].items() if v >= eta}) / len(can[q])
                for q in queries
            ]
        )
        assert row[name] == pytest.approx(wanted) and row["coverage of the answer"] == pytest.approx(wanted)
        assert row["queries of contexts"] == row["queries of answers"] == len(queries)
    ranks = found.findings.tables[1].frame.filter(pl.col("answer") == "coverage")
    assert set(ranks["queries"]) == {len(queries)} and ranks["context"][0] == name and ranks["τ-b"][0] == 1
    for row in found.findings.tables[2].frame.to_dicts():
        assert row["answers"] == pytest.approx(row["contexts"]) and row["answers ±"] == pytest.approx(row["contexts ±"])
        assert row["queries"] == sum(best(place, row["η"])[query] <= rated[query] for query in rated)
    left = found.findings.left_out.filter(pl.col("reason") == "some system has no value of its contexts or answers")
    assert left["queries"].to_list() == ([lost] if lost else [])


@pytest.mark.slow
def test_grades_of_another_or_unknown_threshold_are_not_taken(tmp_path: Path, made: list[Scripted]) -> None:
    whole = Results.read(evaluated(workspace(tmp_path / "w"), 3))
    assert whole.outcomes is not None
    bare, strange = replace(whole, said={}), whole.outcomes.frame.with_columns(source=pl.lit("people.csv"))
    bare.write(tmp_path / "bare")  # the grades are there, and what they were made of is not
    mine = ragworth.study("long-form", tmp_path / "bare", **QUICK).findings
    assert "coverage of the answer" in mine.tables[0].frame.columns
    assert mine.tables[2].frame.filter(pl.col("answers").is_not_null())["η"].to_list() == [3]
    other = ragworth.study("long-form", tmp_path / "bare", eta=2.0, **QUICK).findings
    assert "at another threshold than 2" in other.sentences[0]
    assert "coverage of the answer" not in other.tables[0].frame.columns
    replace(bare, outcomes=Outcomes.trusted(strange)).write(tmp_path / "strange")
    unknown = ragworth.study("long-form", tmp_path / "strange", **QUICK).findings
    assert "coverage of the answer" not in unknown.tables[0].frame.columns


def test_bad_input(tmp_path: Path, made: list[Scripted]) -> None:
    with pytest.raises(InputError, match="no ratings of sub-questions"):
        ragworth.study("long-form", workspace(tmp_path / "w", ratings=False), **QUICK)
    bare = workspace(tmp_path / "v")
    toml = (bare / "ragworth.toml").read_text().replace('subquestions = "subquestions.jsonl"\n', "")
    (bare / "ragworth.toml").write_text(toml, encoding="utf-8")
    with pytest.raises(InputError, match="coverage needs sub-questions"):
        ragworth.study("long-form", bare, **QUICK)
    with pytest.raises(InputError, match="eta is 7"):
        ragworth.study("long-form", bare, eta=7, **QUICK)
    none = workspace(tmp_path / "u")
    text = re.sub(r" [1-5]$", " 0", (none / "ratings.txt").read_text(), flags=re.MULTILINE)
    (none / "ratings.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="no sub-question is answered with 3 or more: 10"):
        ragworth.study("long-form", none, **QUICK)
    assert sum(each.calls for each in made) == 0


def with_summaries(place: Path) -> dict[str, str]:
    """A summary of each request but the last, by a person: the first three facts, told well, and some more words."""
    texts = {f"q{q}": f"fact{q}x0=5 fact{q}x1=4 fact{q}x2=3{' and so on' * 8}" for q in range(QUERIES - 1)}
    rows = [{"query_id": query, "answers": [text, "short"]} for query, text in texts.items()]
    (place / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    toml = (place / "ragworth.toml").read_text()
    toml = toml.replace("[collection]\n", '[collection]\nanswers = "answers.jsonl"\n')
    (place / "ragworth.toml").write_text(toml, encoding="utf-8")
    return texts


@pytest.mark.slow
def test_the_human_summary_is_measured_like_an_answer(tmp_path: Path, made: list[Scripted]) -> None:
    place = workspace(tmp_path / "w")
    texts = with_summaries(place)
    found = ragworth.study("long-form", place, human="answers", **QUICK)
    can = best(place, 3)
    wanted = {query: len(can[query] & {0, 1, 2}) / len(can[query]) for query in texts}
    coverage, density = (
        by_pair(each.filter(pl.col("system") == "(human)")) for each in answer_coverage(found.cases[0].results, 3.0)
    )
    assert {query: value for (_, query), value in coverage.items()} == pytest.approx(wanted)
    assert density.keys() == coverage.keys()
    row = found.findings.tables[0].frame.filter(pl.col("role") == "human").row(0, named=True)
    assert row["coverage of the answer"] == pytest.approx(np.mean(list(wanted.values())))
    assert row["density of the answer"] is not None and row["Cov"] is None and row["queries of answers"] == len(texts)
    assert "the human (human)" in found.findings.sentences[1]
    # With ratings of the summaries, no model is asked about them.
    asked = sum(each.calls for each in made)
    lines = [f"{q} {q}s{p} summary {max(5 - p, 0) if p < 3 else 0}" for q in texts for p in range(PARTS)]
    (tmp_path / "human.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    more: dict[str, Any] = {"human": "answers", "human_ratings": str(tmp_path / "human.txt")}
    again = ragworth.study("long-form", place, **more, **QUICK)
    assert sum(each.calls for each in made) == asked
    assert again.findings.tables[0].frame.equals(found.findings.tables[0].frame)
    with pytest.raises(InputError, match="exactly one text by a person of 20 words"):
        ragworth.study("long-form", workspace(tmp_path / "v"), human="answers", **QUICK)


@pytest.mark.slow
def test_sizes_of_contexts_are_cutoffs(tmp_path: Path, made: list[Scripted]) -> None:
    """Per size, τ of each measure of contexts with the answers, in one table; required cuts query by query."""
    place = workspace(tmp_path / "w")
    told = facts(place)
    qrels = [f"q{q} 0 q{q}p{at} {int(bool(told[f'q{q}p{at}']))}" for q in range(QUERIES) for at in range(12)]
    (place / "qrels.txt").write_text("\n".join(qrels) + "\n", encoding="utf-8")
    toml = (place / "ragworth.toml").read_text().replace("[systems]", 'qrels = "qrels.txt"\n[systems]')
    (place / "ragworth.toml").write_text(toml, encoding="utf-8")
    found = ragworth.study("long-form", place, sizes="required,2,5", **QUICK)
    results, shown = found.cases[0].results, contexts(found.cases[0])
    size = {query: len(shown["(required)", query]) for system, query in shown if system == "(required)"}
    assert {len(passages) for (system, _), passages in shown.items() if system == "s0 · 5"} == {5}
    assert all(len(shown["s0 · required", query]) == n for query, n in size.items())
    scores = {name: by_pair(part) for (name,), part in results.scores.frame.group_by("metric")}
    cut = ragworth.score(results.contexts, ratings=results.ratings, metrics=["alpha_nDCG(at=required)"], complete=False)
    assert scores["alpha_nDCG@required"] == pytest.approx(by_pair(cut.frame))
    for (system, query), passages in shown.items():
        gains = [bool(told[each]) / np.log2(rank + 2) for rank, each in enumerate(passages[: size[query]])]
        ideal = sum(1 / np.log2(rank + 2) for rank in range(min(size[query], 6)))
        assert scores["nDCG@required"][system, query] == pytest.approx(sum(gains) / ideal)
    tables = {table.name: table.frame for table in found.findings.tables}
    assert tables["ranking"]["k"].unique(maintain_order=True).to_list() == ["required", "2", "5"]
    coverage, density = map(by_pair, answer_coverage(results, 3.0))
    assert set(tables["ranking"]["context"]) == {"Cov", "alpha_nDCG", "Den", "nDCG", "AP", "R", "P"}
    for row in tables["ranking"].drop_nulls("τ-b").to_dicts():
        answers = density if row["answer"] == "density" else coverage
        arms = [f"s{at} · {row['k']}" for at in range(4)]
        queries = [q for q in size if all((arm, q) in answers for arm in arms)]
        x, y = (
            [np.mean([each[arm, q] for q in queries]) for arm in arms]
            for each in (scores[f"{row['context']}@{row['k']}"], answers)
        )
        assert row["τ-b"] == pytest.approx(stats.kendalltau(np.round(x, 12), np.round(y, 12)).statistic)
    assert tables["systems"].filter(pl.col("role") != "system")["k"].to_list() == ["required"] * 2
    assert set(tables["systems"]["system"]) == {"s0", "s1", "s2", "s3", "(required)", "(none)"}
    with pytest.raises(InputError, match="sizes"):
        ragworth.study("long-form", place, sizes="all", **QUICK)


@pytest.mark.slow
def test_people_beside_the_model(tmp_path: Path, made: list[Scripted]) -> None:
    place, draw = workspace(tmp_path / "w"), random.Random(3)
    model = by_pair(answer_coverage(ragworth.study("long-form", place, **QUICK).cases[0].results, 3.0).coverage)
    mine = {key: value for key, value in model.items() if key[0] in ("s0", "(required)")}
    judged = {who: {key: value + draw.uniform(-0.4, 0.4) for key, value in mine.items()} for who in ("ann", "bob")}
    lines = [f"{s},{q},{who},{value}" for who, values in judged.items() for (s, q), value in values.items()]
    (tmp_path / "people.csv").write_text("system,query,judge,value\n" + "\n".join(lines) + "\n", encoding="utf-8")
    found = ragworth.study("long-form", place, people=str(tmp_path / "people.csv"), **QUICK).findings
    table = next(table.frame for table in found.tables if table.name == "people")
    for row in table.to_dicts():
        values = judged[row["judge"]]
        rho = stats.spearmanr([mine[key] for key in values], list(values.values())).statistic
        assert row["Spearman ρ"] == pytest.approx(rho) and row["answers"] == len(values)
    assert table["judge"].to_list() == ["ann", "bob"]
    assert [figure.name for figure in found.figures if figure.name.startswith("people")] == ["people-1", "people-2"]
    (tmp_path / "people.csv").write_text("query,judge,value\nq0,ann,1\n", encoding="utf-8")
    with pytest.raises(FormatError, match="no column system"):
        ragworth.study("long-form", place, people=str(tmp_path / "people.csv"), **QUICK)


def test_ratings_that_are_answerability_are_named(tmp_path: Path, made: list[Scripted]) -> None:
    results = given(tmp_path / "results", systems=4)
    assert results.ratings is not None
    plain = ragworth.study("long-form", tmp_path / "results", metrics=["Cov"], **QUICK).findings
    assert not any("answerability" in note for note in plain.notes)
    frame = results.ratings.frame.with_columns(source=pl.lit("reader · abstention@1 · answerability"))
    replace(results, ratings=Ratings.trusted(frame)).write(tmp_path / "other")
    found = ragworth.study("long-form", tmp_path / "other", metrics=["Cov"], **QUICK).findings
    assert any("passages: the ratings are answerability" in note.lower() for note in found.notes)


def test_published_design() -> None:
    chosen = build_study("long-form", {}, "paper")
    assert isinstance(chosen, LongForm)
    assert (chosen.eta, chosen.named_sizes, chosen.tie) == (3, ["required", "10", "20"], True)
