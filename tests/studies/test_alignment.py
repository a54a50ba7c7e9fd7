"""``ragworth study alignment``: a planted order of metrics is found, and every number is what it should be."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from benchmarks.noise import World
from benchmarks.simulated_reader import Reader, collection
from scipy import stats

import ragworth
from ragworth.core.errors import InputError
from ragworth.data import Contexts, Judgments, Outcomes, Scores
from ragworth.data.collection import Collection
from ragworth.llm.contract import Generate, Request
from ragworth.llm.scripted import ScriptedReply
from ragworth.metrics.theta import Theta
from ragworth.prediction.correlations import Prediction
from ragworth.report.page.relations import outcome_predictions
from ragworth.results import Results
from ragworth.score_rows import ScoreRows, rows_of, with_partial_grades
from ragworth.stats.estimate import Estimate, Resampling
from ragworth.studies.candidates import Candidates, draw_contexts
from ragworth.studies.contract import Case
from ragworth.studies.contrast import arm_rows, read_grid
from ragworth.studies.run import plan_study
from tests.studies import planted
from tests.studies.conftest import Opened
from tests.studies.planted import grades


def predict(
    metrics: list[str],
    values: npt.NDArray[np.float64],
    outcome: npt.NDArray[np.float64],
    queries: list[str],
    systems: list[str],
) -> Prediction:
    return Prediction(ScoreRows(metrics, values, outcome, queries, systems, "grade"), "spearman", Resampling())


def by_metric(found: ragworth.studies.run.StudyResult) -> dict[str, dict[str, object]]:
    return {row["metric"]: row for row in found.findings.tables[0].frame.to_dicts()}


@pytest.mark.slow
def test_a_reader_that_sums_up_what_helps_and_misleads_is_predicted_best_by_udcg(
    tmp_path: Path, opened: Opened
) -> None:
    opened.reader = Reader(gamma=1 / 3, threshold=0.5, noise=0.05)
    place = collection(tmp_path / "w", queries=120)
    wanted = ["UDCG@5", "UDCG(gamma=0)@5", "nDCG(ideal=retrieved)@5", "RR@5", "P@5"]
    found = ragworth.study("alignment", place, keep=False, metrics=wanted)
    assert found.findings.sentences[0].startswith("Use UDCG@5: Spearman ρ 0.")
    worse = found.findings.tables[1].frame.filter(pl.col("p_holm") < 0.05)["second"].to_list()
    assert {"UDCG(gamma=0)@5", "nDCG(ideal=retrieved)@5", "RR@5", "P@5"} <= set(worse)


@pytest.mark.slow
def test_numbers_are_those_of_scipy_within_each_query(tmp_path: Path, opened: Opened) -> None:
    found = ragworth.study("alignment", collection(tmp_path / "w", queries=25), keep=False, measure="kendall")
    results = found.cases[0].results
    assert results.outcomes is not None
    graded = {(s, q): v for s, q, v in results.outcomes.frame.select("system", "query", "value").iter_rows()}
    for metric, row in by_metric(found).items():
        sign = -1 if metric.startswith("Distraction") else 1
        pairs: dict[str, list[tuple[float, float]]] = {}
        mine = results.scores.frame.filter(pl.col("metric") == metric)
        for system, query, value in mine.select("system", "query", "value").iter_rows():
            pairs.setdefault(query, []).append((sign * value, graded[system, query]))
        taus, constant = [], 0
        for some in pairs.values():
            x, y = zip(*some, strict=True)
            if len(set(x)) < 2 or len(set(y)) < 2:
                constant += 1
            else:
                taus.append(stats.kendalltau(x, y).statistic)
        assert row["queries"] == len(taus) and row["left out"] == constant
        if taus:
            assert row["correlation"] == pytest.approx(sum(taus) / len(taus), abs=1e-12)


@pytest.mark.slow
def test_all_contexts_at_once(tmp_path: Path, opened: Opened) -> None:
    found = ragworth.study("alignment", collection(tmp_path / "w", queries=25), keep=False)
    results = found.cases[0].results
    assert results.outcomes is not None
    (together,) = [table.frame for table in found.findings.tables if table.name == "together"]
    both = results.scores.frame.filter(metric="UDCG@5").join(results.outcomes.frame, on=["system", "query"])
    rho = stats.spearmanr(both["value"], both["value_right"]).statistic
    row = together.filter(metric="UDCG@5").to_dicts()[0]
    assert row["correlation"] == pytest.approx(rho, abs=1e-9) and row["low"] < rho < row["high"]
    assert row["contexts"] == 250


@pytest.mark.slow
def test_contexts_are_half_with_a_relevant_passage_drawn_from_the_top(tmp_path: Path, opened: Opened) -> None:
    case = ragworth.study("alignment", collection(tmp_path / "w", queries=12), keep=False, depth=14).cases[0]
    frame = case.results.contexts.frame
    assert frame.group_by("system", "query").len()["len"].unique().to_list() == [5]
    assert frame.select("system", "query", "passage").is_unique().all()
    assert frame.height == 12 * 10 * 5
    gold = frame.with_columns(pl.col("passage").str.contains("gold").alias("gold"))
    with_gold = gold.group_by("system", "query").agg(pl.col("gold").any()).join(case.design, on="system")
    assert (with_gold["gold"] == with_gold["relevant"]).all() and with_gold["gold"].mean() == 0.5


@pytest.mark.slow
def test_a_study_asks_each_thing_once_and_never_again(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=8)
    plan = plan_study("alignment", [place])
    assert [stage.name for stage in plan] == ["judged.abstention", "answered"] and opened.calls == 0
    first = ragworth.study("alignment", place, keep=False)
    asked = opened.calls
    assert f"{asked - 80:,} calls to make" in plan[0].words and "80 calls to make" in plan[1].words
    again = ragworth.study("alignment", place, keep=False)
    assert opened.calls == asked and again.findings.sentences == first.findings.sentences
    other = ragworth.study("alignment", place, keep=False, seed=1)
    values = [each.findings.tables[0].frame["correlation"].to_list() for each in (other, first)]
    assert values[0] == values[1]


@pytest.mark.slow
def test_tables_that_it_wrote_are_studied_again_without_a_model(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=8)
    first = ragworth.study("alignment", place)
    assert first.folder == place / "results" / "studies" / "alignment" and first.page is not None
    assert first.page.is_file() and json.loads((first.folder / "study.json").read_text(encoding="utf-8"))["title"]
    asked, case = opened.calls, first.folder / "cases" / "01"
    before = {path: path.read_bytes() for path in sorted(case.rglob("*")) if path.is_file()}
    again = ragworth.study("alignment", case, output=tmp_path / "again")
    assert opened.calls == asked and again.findings.sentences == first.findings.sentences
    assert again.findings.tables[0].frame.equals(first.findings.tables[0].frame)
    some = ragworth.study("alignment", case, metrics=["nDCG@3", "P@5"])
    assert set(some.findings.tables[0].frame["metric"]) == {"nDCG@3", "P@5"} and opened.calls == asked
    assert before == {path: path.read_bytes() for path in sorted(case.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_several_collections_stand_side_by_side(tmp_path: Path, opened: Opened) -> None:
    places = [collection(tmp_path / name, queries=8, seed=number) for number, name in enumerate(("one", "two"))]
    found = ragworth.study("alignment", places, keep=False)
    assert found.findings.tables[0].frame["case"].unique(maintain_order=True).to_list() == ["one", "two"]
    assert [sentence.split(":")[0] for sentence in found.findings.sentences] == ["one", "two"]
    assert len(found.findings.figures) == 3
    tables = {table.name: table.frame for table in found.findings.tables}
    mine = tables["alignment"].filter(metric="UDCG@5")["correlation"]
    average = tables["average"].filter(metric="UDCG@5").row(0, named=True)
    assert average["correlation"] == pytest.approx(mine.mean()) and average["low"] < mine.mean() < average["high"]
    assert "UDCG@5 − nDCG(ideal=retrieved)@5" in tables["average"]["metric"]


@pytest.mark.slow
@pytest.mark.usefixtures("whole_report")
def test_systems_of_an_evaluation_are_contexts(tmp_path: Path, opened: Opened) -> None:
    more = '[metrics]\nuse = ["nDCG@5", "P@5", "UDCG@5"]\n'
    place = collection(tmp_path / "w", queries=10, toml=more)
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    extra = 'back = [\'run("run.txt") % 20\', "reversed"]\nbest = "oracle % 5"\n[judgments]'
    (place / "ragworth.toml").write_text(text.replace("[judgments]", extra), encoding="utf-8")
    ragworth.evaluate(place)
    asked = opened.calls
    found = ragworth.study("alignment", place / "results")
    assert opened.calls == asked
    assert set(found.findings.tables[0].frame["metric"]) == {"nDCG@5", "P@5", "UDCG@5"}
    assert found.folder == place / "results" / "studies" / "alignment"
    assert "studies/alignment/study.html" in (place / "results" / "report.html").read_text(encoding="utf-8")


def test_queries_that_cannot_be_studied_are_counted_by_reason(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=10)
    kept = [line for line in (place / "qrels.txt").read_text().splitlines() if not line.startswith("q001 0 q001-gold")]
    (place / "qrels.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    run = [line for line in (place / "run.txt").read_text().splitlines() if not line.startswith("q002")]
    (place / "run.txt").write_text("\n".join(run) + "\n", encoding="utf-8")
    left = ragworth.study("alignment", place, keep=False).findings.left_out
    found = {row["reason"]: row["queries"] for row in left.to_dicts()}
    assert found["no relevant passage retrieved"] == 2


def test_the_metrics_of_the_papers_fifth_table(tmp_path: Path, opened: Opened) -> None:
    """Answer likelihood with the design, and learned weights where a file of them is named."""
    place = collection(tmp_path / "w", queries=4)
    found = ragworth.study("alignment", place, keep=False, protocol="paper")
    assert {"eRAG@5", "Likelihood@5", "UDCG@5"} <= set(by_metric(found))
    judged = set(found.cases[0].results.judgments.frame["aspect"])  # type: ignore[union-attr]
    assert {"likelihood", "downstream", "abstention"} <= judged
    Theta(5, "full", (0.2,) * 5, (0.1,) * 5).write(tmp_path / "theta.json")
    names = ["P@5", "Likelihood@5", f"UDCG(theta={tmp_path / 'theta.json'})@5"]
    some = ragworth.study("alignment", place, keep=False, protocol="paper", metrics=names)
    assert len(by_metric(some)) == 3
    # What no metric needs isn't asked for.
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    (place / "ragworth.toml").write_text(text.replace("abstention = true\n", ""), encoding="utf-8")
    few = ragworth.study("alignment", place, keep=False, metrics=["P@5"])
    assert few.cases[0].results.judgments is not None
    assert set(few.cases[0].results.judgments.frame["aspect"]) == {"relevance"}


@pytest.mark.usefixtures("opened")
def test_no_metric_predicts_a_reader_that_ignores_its_passages(tmp_path: Path) -> None:
    """Two of the workspaces of `benchmarks/noise.py`, which counts the false alarms of many."""
    noise, related = (World.build(tmp_path, 0, planted=each, queries=30) for each in (False, True))
    assert (noise.study(), noise.study("paper")) == ("", "")
    assert related.study()
    assert related.study("paper")


def test_the_papers_half_grade_stands_beside_the_plain_one_and_in_no_sentence(tmp_path: Path, opened: Opened) -> None:
    class KnowsAll(Reader):
        """Answers every question correctly, whatever it is shown."""

        def __call__(self, request: Request) -> ScriptedReply:
            asked = re.search(r"q0*(\d+)", request.prompt.messages[-1].content)
            return f"right{asked[1]}" if isinstance(request, Generate) and asked else super().__call__(request)

    opened.reader = KnowsAll()
    place = collection(tmp_path / "w", queries=6)
    found = ragworth.study("alignment", place, keep=False, protocol="paper", abstention=False)
    row = by_metric(found)["Success@5"]
    assert row["correlation"] is None and row["with grade(partial)"] == pytest.approx(1.0)
    assert found.findings.sentences[0].startswith("No metric has a correlation with the outcome")
    assert not any("partial" in each for each in found.findings.sentences)
    assert set(grades(found.cases[0]).values()) == {1.0}
    plain = ragworth.study("alignment", place, keep=False, abstention=False)
    assert "with grade(partial)" not in by_metric(plain)["P@5"]
    with pytest.raises(InputError, match="contains the labels"):
        rows_of(found.cases[0].results, "grade(partial)")


def test_a_query_without_labels_has_no_half_grade() -> None:
    rows = [(query, "p", 1, 1.0) for query in ("found", "missed", "unlabelled", "unjudged")]
    contexts = Contexts(pl.DataFrame(rows, schema=["query", "passage", "rank", "score"], orient="row"), system="a")
    labels = [
        {"query": "found", "passage": "p", "aspect": "relevance", "value": 1.0, "status": "ok"},
        {"query": "missed", "passage": "other", "aspect": "relevance", "value": 1.0, "status": "ok"},
        {"query": "unlabelled", "passage": "p", "aspect": "abstention", "value": 0.0, "status": "ok"},
        {"query": "unjudged", "passage": "p", "aspect": "relevance", "value": None, "status": "timeout"},
    ]
    right = [{"system": "a", "query": row[0], "aspect": "grade", "value": 1.0} for row in rows]
    tables = (Judgments(pl.DataFrame(labels)), None, None, Outcomes(pl.DataFrame(right)))
    results = Results(Collection(), contexts, *tables, Scores.trusted(pl.DataFrame(schema=Scores.schema)))
    halved = with_partial_grades(results)
    partial = halved.outcomes_of("grade(partial)").select("query", "value").rows()
    assert partial == [("found", 1.0), ("missed", 0.5)]
    grid = read_grid(Case("case", halved, pl.DataFrame()), ["a"], None)
    (row,) = arm_rows(grid, "arm", Resampling())
    assert (row["grade"], row["grade(partial)"], row["queries"]) == (1.0, 0.75, 4)


def test_what_is_lacking_is_refused_before_anything_is_asked(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    text = (place / "ragworth.toml").read_text(encoding="utf-8")
    for wrong, line in (("relevance labels", 'qrels = "qrels.txt"\n'), ("accepted", 'answers = "queries.jsonl"\n')):
        (place / "ragworth.toml").write_text(text.replace(line, ""), encoding="utf-8")
        with pytest.raises(InputError, match=wrong):
            ragworth.study("alignment", place, keep=False)
    (place / "ragworth.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="metric"):
        ragworth.study("alignment", place, metrics=["nCDG@5"])
    with pytest.raises(InputError, match="no query is left"):
        ragworth.study("alignment", place, keep=False, k=20, depth=20)
    with pytest.raises(InputError, match="depth"):
        ragworth.study("alignment", place, k=9, depth=5)
    with pytest.raises(InputError, match="contexts is 1"):
        ragworth.study("alignment", place, contexts=1)
    with pytest.raises(InputError, match="alignement"):
        ragworth.study("alignement", place)
    with pytest.raises(InputError, match="no setting"):
        ragworth.study("alignment", place, deep=3)
    assert opened.calls == 0


@pytest.mark.slow
def test_contexts_without_an_outcome_are_counted(tmp_path: Path, opened: Opened) -> None:
    first = ragworth.study("alignment", collection(tmp_path / "w", queries=12))
    assert first.folder is not None
    results = Results.read(first.folder / "cases" / "01")
    assert results.outcomes is not None
    lost = pl.col("query").is_in(["q000", "q001"]) & (pl.col("system") < "c04")
    frame = results.outcomes.frame.with_columns(
        value=pl.when(~lost).then("value"), status=pl.when(lost).then(pl.lit("unparsable")).otherwise("status")
    )
    replace(results, outcomes=Outcomes.trusted(frame)).write(tmp_path / "less")
    left = ragworth.study("alignment", tmp_path / "less", keep=False).findings.left_out
    assert {row["reason"]: row["queries"] for row in left.to_dicts()}["8 contexts without an outcome: unparsable"] == 2


def test_a_metric_that_is_behind_where_both_have_a_value_is_not_called_better(tmp_path: Path) -> None:
    """The best by its mean over more queries can be behind over those that both have."""
    draw = np.random.default_rng(1)
    queries, systems, outcome, values = [], [], [], []
    for query in range(60):
        for context in range(6):
            queries.append(f"q{query}")
            systems.append(f"c{context}")
            outcome.append(float(context))
            easy = query >= 25
            first = context + (0.0 if easy else draw.normal(0, 6))
            values.append((first, 0.0 if easy else context + draw.normal(0, 2)))
    found = predict(["all", "hard"], np.array(values), np.array(outcome), queries, systems)
    best = found.rows.metrics[found.best]
    ((_, _, gap),) = found.compared
    assert best == "all" and found.within[1].n == 25 and gap.value is not None and gap.value < 0
    assert gap.is_significant(0.05)
    assert "behind hard" in found.sentence() and "better than hard" not in found.sentence()


def test_metrics_that_go_the_wrong_way_are_told() -> None:
    draw = np.random.default_rng(0)
    outcome = draw.integers(-1, 2, 300).astype(float)
    queries, systems = [f"q{n // 6}" for n in range(300)], [f"c{n % 6}" for n in range(300)]
    values = np.stack([-outcome + draw.normal(0, 1, 300), -outcome + draw.normal(0, 2, 300)], 1)
    found = predict(["a", "b"], values, outcome, queries, systems)
    assert found.sentence().startswith("the metrics go against the outcome") and "least so b" in found.sentence()


def test_nothing_is_written_among_other_files(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    other = tmp_path / "other"
    other.mkdir()
    (other / "outcomes.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="other files"):
        ragworth.study("alignment", place, output=other)
    assert opened.calls == 0 and (other / "outcomes.csv").read_text(encoding="utf-8") == "mine"


def test_everything_is_checked_before_anything_is_spent(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    for given, words in (
        ({"outcome": "nope"}, "no outcome 'nope'"),
        ({"metrics": ["Cov@5"]}, "ratings"),
    ):
        with pytest.raises(InputError, match=words):
            ragworth.study("alignment", place, keep=False, **given)
    with pytest.raises(InputError, match="no such file or folder"):
        ragworth.study("alignment", [place, tmp_path / "nowhere"], keep=False)
    assert opened.calls == 0


def with_control(place: Path) -> Path:
    """The workspace with a random control before its retriever."""
    file = place / "ragworth.toml"
    text = file.read_text(encoding="utf-8").replace("[systems]\n", '[systems]\nrandom = "random % 30"\n')
    file.write_text(text, encoding="utf-8")
    return place


def test_candidates_come_from_one_retriever_and_never_from_a_control(tmp_path: Path, opened: Opened) -> None:
    place = with_control(collection(tmp_path / "w", queries=6, far=0))
    ranked = [line.split() for line in (place / "run.txt").read_text(encoding="utf-8").splitlines()]
    top = {(query, passage) for query, _, passage, rank, *_ in ranked if int(rank) <= 25}
    shown = ragworth.study("alignment", place, keep=False).cases[0].results.contexts.frame
    assert set(shown.select("query", "passage").iter_rows()) <= top
    other = ragworth.study("alignment", place, keep=False, retriever="random", sampling="plain")
    assert not set(other.cases[0].results.contexts.frame.select("query", "passage").iter_rows()) <= top
    with pytest.raises(InputError, match="'frist'"):
        ragworth.study("alignment", place, keep=False, retriever="frist")


def test_plain_sampling_draws_without_labels_in_the_order_found(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=6)
    found = ragworth.study(
        "alignment", place, keep=False, protocol="crux", contexts=12, depth=18, metrics=["nDCG@10", "R@10"]
    )
    case = found.cases[0]
    rank = {
        (query, passage): int(at)
        for query, _, passage, at, *_ in map(str.split, (place / "run.txt").read_text(encoding="utf-8").splitlines())
    }
    for (_, query), part in case.results.contexts.frame.sort("rank").group_by("system", "query", maintain_order=True):
        places = [rank[str(query), passage] for passage in part["passage"]]
        assert places == sorted(places) and len(places) == 10 and places[-1] <= 18
    assert case.results.judgments is not None and "abstention" not in set(case.results.judgments.frame["aspect"])
    pairs = next(table.frame for table in found.findings.tables if table.name == "agreement")
    assert "grade" in set(pairs["second"])
    assert "systems" in {table.name for table in found.findings.tables}
    assert found.findings.notes[0].startswith("Protocol crux: the design of Ju et al.")


def test_balanced_contexts_are_drawn_as_if_at_random_given_that_some_are_relevant() -> None:
    """With 1 of 25 relevant, other passages appear equally often: none is preferred."""
    passages = {"passage": [f"p{n}" for n in range(25)], "text": [f"x{n}" for n in range(25)]}
    texts = ragworth.Collection(passages=pl.DataFrame(passages))
    labels = {"q": {f"p{n}": 1.0 for n in range(10)}}
    pool = Candidates(texts, {"q": [f"p{n}" for n in range(25)]}, labels)
    drawn, _ = draw_contexts([pool], 2000, 5)
    counts = [sum(f"p{n}" in each for n in range(10) for each in [drawn[arm]["q"]]) for arm in drawn]
    assert counts[1::2] == [0] * 1000
    expected = 5 * 10 / 25 / (1 - stats.hypergeom(25, 10, 5).pmf(0))
    assert np.mean(counts[::2]) == pytest.approx(expected, abs=0.1) and min(counts[::2]) == 1


def test_a_published_protocol_sets_what_is_not_given(tmp_path: Path, opened: Opened) -> None:
    from ragworth.studies.run import build_study

    paper = build_study("alignment", {"k": 3}, "paper")
    assert (paper.settings["k"], paper.settings["depth"], paper.protocol) == (3, 25, "paper")
    with pytest.raises(InputError, match="no protocol 'papre'"):
        build_study("alignment", {}, "papre")
    found = ragworth.study("alignment", collection(tmp_path / "w", queries=6), keep=False, protocol="paper")
    assert set(by_metric(found)) >= {"nDCG(ideal=retrieved)@5", "AP(ideal=retrieved)@5", "RR@5", "Success@5", "eRAG@5"}
    assert found.findings.settings["settings"]["protocol"] == "paper"


@pytest.mark.parametrize(("outcome", "sign"), [("hallucination", -1), ("faithfulness", 1)])
def test_outcomes_of_which_lower_is_better_are_predicted_the_other_way(tmp_path: Path, outcome: str, sign: int) -> None:
    results = planted.given(tmp_path / "results")
    rows = results.scores.frame.filter(pl.col("metric") == "nDCG@5")
    inverse = rows.with_columns(metric=pl.lit("inverse"), value=1 - pl.col("value"))
    values = Outcomes(rows.select("system", "query", aspect=pl.lit(outcome), value=sign * pl.col("value")))
    results = replace(results, scores=Scores(pl.concat([rows, inverse])), outcomes=values)
    results.write(tmp_path / "results")
    found = ragworth.study("alignment", [tmp_path / "results"], keep=False).findings
    assert found.sentences[0].startswith("Use nDCG@5")
    assert ("(lower is better)" in found.lead) == (sign < 0)
    best = outcome_predictions(results, ["inverse", "nDCG@5"], 0).row(0, named=True)
    assert (best["metric"], best["rho"]) == ("nDCG@5", pytest.approx(sign))


def test_a_metric_that_is_constant_in_many_queries_is_not_recommended() -> None:
    some = predict(["Distraction@5", "UDCG@5"], np.zeros((2, 2)), np.zeros(2), ["q", "q"], ["a", "b"])
    some.__dict__["within"] = [Estimate(0.63, 0.52, 0.73, p=0.001, n=21), Estimate(0.59, 0.39, 0.73, p=0.001, n=34)]
    assert some.order == [1, 0]
    some.__dict__["within"][1] = Estimate(-0.59, -0.73, -0.39, p=0.001, n=34)
    assert "go against the outcome" in some.sentence()
    assert " Distraction@5 predicts it, 0.63 [0.52, 0.73], in the 21 queries" in some.sentence()


def test_metrics_that_only_chance_ties_to_the_outcome_predict_nothing() -> None:
    """Of eight metrics, one is above 0 by its own interval in every third or fourth collection without any relation."""
    draw, sure, interval = np.random.default_rng(5), 0, 0
    queries, systems = [f"q{n // 6}" for n in range(150)], [f"c{n % 6}" for n in range(150)]
    for _ in range(30):
        outcome, values = draw.integers(-1, 2, 150).astype(float), draw.normal(0, 1, (150, 8))
        rows = ScoreRows([f"m{n}" for n in range(8)], values, outcome, queries, systems, "grade")
        found = Prediction(rows, "spearman", Resampling(resamples=400))
        interval += any((one.low or 0.0) > 0 for one in found.within)
        sure += not found.sentence().startswith(("no metric reliably", "the metrics go against"))
    assert interval >= 5 and sure <= 2
