"""Judging on a budget, end to end: a cheap model for all that is shown, a better one for some queries."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth import evaluate
from ragworth.core.errors import InputError, JobStopped, RagworthError
from ragworth.evaluation.plan import plan_evaluation
from ragworth.judging.text_lookup import sample_by_hash
from ragworth.llm.contract import Choose, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.report.page.sections.budget import summarise_two_judges
from ragworth.results import Results
from ragworth.two_judges import estimate
from ragworth.workspace import config
from tests.evaluation.samples import Models, change, lines, run, share, statuses, workspace

TOML = """
title = "On a budget"
k = 2
model = "cheap"

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
qrels = "qrels.txt"

[systems]
first = {run = "first.run"}
second = {run = "second.run"}

[judgments.abstention.expensive]
model = "dear"
sample = 25

[metrics]
use = ["UDCG@2", "Distraction@2", "nDCG@2"]
"""
N = 40
STAGE = "annotate.abstention.expensive"


class Two(Models):
    """Two models: the cheap one says nearly what the other says, and leans."""

    def __call__(self, spec: str = "embedded", **options: Any) -> Scripted:
        def reply(request: Request) -> ScriptedReply:
            self.asked.append((spec, request))
            value = share(request) if spec.startswith("dear") else 0.3 + 0.6 * share(request)
            assert isinstance(request, Choose)
            return {request.labels[0]: value, request.labels[1]: 1 - value}

        return Scripted(reply, name=spec, batch=self.batch)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Two:
    found = Two()
    found.batch = 64
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", found)
    return found


def space(folder: Path, toml: str = TOML) -> Path:
    """40 queries, two systems that show two passages each, one of which they share; every third is relevant."""
    workspace(folder, toml)
    queries = [f"q{i}" for i in range(N)]
    lines(folder / "queries.jsonl", [{"_id": query, "text": f"Question {query}?"} for query in queries])
    passages = [f"{query}-{part}" for query in queries for part in "abc"]
    lines(folder / "passages.jsonl", [{"_id": each, "text": f"Passage {each}."} for each in passages])
    run(folder / "first.run", {query: [f"{query}-a", f"{query}-b"] for query in queries})
    run(folder / "second.run", {query: [f"{query}-b", f"{query}-c"] for query in queries})
    labels = [f"q{i} 0 q{i}-{'abc'[i % 3]} 1\n" for i in range(N)]
    (folder / "qrels.txt").write_text("".join(labels))
    return folder


def problems(folder: Path) -> str:
    with pytest.raises(RagworthError) as caught:
        plan_evaluation(config.read(folder))
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_end_to_end(tmp_path: Path, two: Two, undrawn: list[dict[str, Any]]) -> None:
    folder = space(tmp_path / "w")
    plan = {stage.name: stage.words for stage in plan_evaluation(config.read(folder)).stages}
    assert list(plan) == ["annotate.abstention", STAGE]
    assert two.taken() == []
    found = evaluate(folder)
    asked = Counter(spec for spec, _ in two.taken())
    controls = asked["cheap"] - 3 * N
    assert asked == {"cheap": 3 * N + controls, "dear": 3 * 25 + controls}
    for name, spec in (("annotate.abstention", "cheap"), (STAGE, "dear")):
        assert f"{asked[spec]:,} calls to make" in plan[name]
    stage = next(stage for stage in found.stages if stage["name"] == STAGE)
    assert stage["status"] == "done" and stage["calls"] == asked["dear"]
    assert "75 passages of 25 of 40 queries, drawn with seed 0" in stage["notes"]

    results = Results.read(folder / "results")
    frame, gaps = (pl.read_parquet(folder / "results" / f"{name}.parquet") for name in results.estimates)
    assert frame.equals(results.estimates["estimates"])
    assert frame.select("metric", "system", "n", "total", "asked").rows() == [
        (metric, system, 25, N, 75) for metric in ("UDCG@2", "Distraction@2") for system in ("first", "second")
    ]
    # The same from the tables alone.
    assert results.judgments is not None
    said = results.said["abstention-expensive"].select("query", "passage", "aspect", "value", "status", "source")
    cheap = results.judgments.of("abstention")
    others = results.judgments.of("relevance")
    again = estimate(results.contexts, cheap, said, ["UDCG@2", "Distraction@2"], others=others)
    assert again.frame.equals(frame) and again.differences.equals(gaps)
    assert set(said["source"].unique()) != set(cheap["source"].unique())
    manifest = json.loads((folder / "results" / "manifest.json").read_text())
    assert {model["name"] for model in manifest["models"]} == {"cheap", "dear"}

    assert found.page is not None
    summary = summarise_two_judges(found.page.results, found.page.overview)
    assert summary is not None
    html = found.page.html
    assert 'id="budget"' in html and 'href="#budget"' in html
    row = frame.row(0, named=True)
    assert f"[{row['low']:.3f}, {row['high']:.3f}]" in html
    sentence = summary.sentences[0]
    assert sentence.startswith("75 expensive judgments were made, for 25 of 40 queries.")
    stand = sorted(round(75 * each / 25) for each in frame.filter(pl.col("metric") == "UDCG@2")["effective"])
    text = found.page.markdown
    assert f"## Judged on a budget\n\n{sentence}\n\n" in text and "| first | UDCG@2 |" in text
    assert f"{stand[0]:,}" in sentence and f"{stand[-1] - 75:,} were saved" in sentence


def test_a_second_time_nothing_is_asked_and_a_larger_sample_pays_for_the_rest(tmp_path: Path, two: Two) -> None:
    folder = space(tmp_path / "w")
    evaluate(folder, until="score")
    two.taken()
    found = statuses(evaluate(folder, until="score").stages)
    assert {found[name] for name in (STAGE, "score.estimates", "annotate.abstention")} == {"kept"}
    assert two.taken() == []
    change(folder, "sample = 25", "sample = 30")
    found = statuses(evaluate(folder, until="score").stages)
    assert found["annotate.abstention"] == "kept" and found[STAGE] == found["score.estimates"] == "done"
    assert Counter(spec for spec, _ in two.taken()) == {"dear": 15}
    change(folder, "sample = 30", "sample = 25")
    evaluate(folder, until="score")
    assert two.taken() == []


def test_the_better_judge_is_in_the_budget_and_goes_on(tmp_path: Path, two: Two) -> None:
    folder = space(tmp_path / "w")
    two.batch = 4
    calls = len(two.taken()) + 3 * N + 30
    change(folder, "[metrics]", f"[budget]\ncalls = {calls}\n\n[metrics]")
    with pytest.raises(JobStopped, match=rf"{STAGE}: the budget is spent"):
        evaluate(folder, until="score")
    first = Counter(spec for spec, _ in two.taken())
    assert 0 < first["dear"] < 75
    found = statuses(evaluate(folder, until="score").stages)
    assert found["annotate.abstention"] == "kept" and found[STAGE] == "done"
    rest = Counter(spec for spec, _ in two.taken())
    assert rest["cheap"] == 0 and first["dear"] + rest["dear"] == 75 + first["cheap"] - 3 * N


def test_without_a_better_judge_there_is_nothing_of_it(tmp_path: Path, two: Two, undrawn: list[dict[str, Any]]) -> None:
    folder = space(tmp_path / "w")
    evaluate(folder)
    change(
        folder, '[judgments.abstention.expensive]\nmodel = "dear"\nsample = 25\n', "[judgments]\nabstention = true\n"
    )
    found = evaluate(folder)
    assert found.page is not None and summarise_two_judges(found.page.results, found.page.overview) is None
    assert 'id="budget"' not in found.page.html and "#budget" not in found.page.html
    assert "## Judged on a budget" not in found.page.markdown
    assert not list((folder / "results").glob("estimate*"))
    assert Results.read(folder / "results").estimates == {}


def test_a_file_of_the_better_judge(tmp_path: Path, two: Two) -> None:
    folder = space(tmp_path / "w", TOML.replace('model = "dear"\nsample = 25', 'file = "human.csv"'))
    rows = [f"q{i},q{i}-{part},{(7 * i + ord(part)) % 10 / 10}\n" for i in range(0, N, 2) for part in "abc"]
    (folder / "human.csv").write_text("query,passage,abstention\n" + "".join(rows) + "q999,p,0.5\n")
    found = evaluate(folder, until="score")
    assert statuses(found.stages)[STAGE] == "given"
    assert {spec for spec, _ in two.taken()} == {"cheap"}
    assert [stage.name for stage in plan_evaluation(config.read(folder)).stages] == ["annotate.abstention"]
    again = statuses(evaluate(folder, until="score").stages)
    assert again["score.estimates"] == "kept"
    (folder / "human.csv").write_text("query,passage,abstention\n" + "".join(rows[3:]))
    assert statuses(evaluate(folder, until="score").stages)["score.estimates"] == "done"


def test_labels_are_shared_and_the_rest_is_judged_twice(tmp_path: Path, two: Two) -> None:
    relevance = '[judgments.relevance]\ngraded = true\n[judgments.relevance.expensive]\nmodel = "dear"\nsample = 25\n'
    toml = TOML.replace('[judgments.abstention.expensive]\nmodel = "dear"\nsample = 25\n', relevance)
    folder = space(tmp_path / "w", toml.replace('["UDCG@2", "Distraction@2", "nDCG@2"]', '["P@2"]'))
    evaluate(folder, until="score")
    asked = Counter(spec for spec, _ in two.taken())
    assert asked == {"cheap": 2 * N, "dear": 2 * 25}  # of three passages a query one has a label


def test_a_limit_for_this_time_is_no_mistake(tmp_path: Path, two: Two) -> None:
    folder = space(tmp_path / "w")
    assert statuses(evaluate(folder, until="score", limit=6).stages)[STAGE] == "done"
    assert len({*sample_by_hash([f"q{i}" for i in range(9)], 25, 0)}) == 9
    change(folder, "sample = 25", "sample = 41")
    assert "a sample of 41 is larger than the 40 queries" in problems(folder)
    change(folder, "sample = 41", "sample = 40")
    plan_evaluation(config.read(folder))


def test_all_queries_must_be_judged_by_the_cheap_judge(tmp_path: Path, two: Two) -> None:
    folder = space(tmp_path / "w")
    change(folder, "k = 2", "k = 2\njudged_queries = 30")
    assert "judgments.abstention.expensive needs judgments of all" in problems(folder)


def test_samples_are_drawn_by_the_seed_and_hold_smaller_ones() -> None:
    queries = [f"q{i}" for i in range(500)]
    small, large = sample_by_hash(queries, 50, 3), sample_by_hash(queries, 120, 3)
    assert len(small) == 50 and len(large) == 120 and small < large
    assert sample_by_hash(reversed(queries), 50, 3) == small
    assert len(small & sample_by_hash(queries, 50, 4)) < 25
    # Each query is as likely as any other.
    often = Counter(query for seed in range(400) for query in sample_by_hash(queries, 50, seed))
    assert len(often) == 500 and min(often.values()) > 15 and max(often.values()) < 75


@pytest.mark.parametrize(
    ("old", "new", "words", "key"),
    [
        ('"dear"\n', '"nonsense:x"\n', "unknown kind of model 'nonsense:x'", 'model = "nonsense'),
        ('"dear"\n', '"cheap"\n', "the expensive judge of abstention is the cheap one", 'model = "cheap"\nsample'),
        ("sample = 25", "sample = 25\nlenght = 3", "abstention has no setting lenght", None),
        ("abstention.expensive]", "sureness.expensive]", "unknown kind of judgment 'sureness'", None),
        ("abstention.expensive]", "confidence.expensive]", "is no judgment of passages", None),
        ('use = ["UDCG@2", "Distraction@2", "nDCG@2"]', 'use = ["nDCG@2"]', "no metric reads abstention", None),
        ('model = "dear"\nsample = 25', 'file = "none.csv"', "none.csv", None),
        ('model = "dear"\nsample = 25', 'file = "qrels.txt"', "it says relevance\n", None),
        ('model = "dear"\nsample = 25', 'file = "other.csv"', "it says nothing\n", None),
    ],
)
def test_mistakes_are_found_before_anything_is_asked(
    tmp_path: Path, two: Two, monkeypatch: pytest.MonkeyPatch, old: str, new: str, words: str, key: str | None
) -> None:
    if "nonsense" in new:
        from ragworth.llm import llm

        monkeypatch.setattr(
            "ragworth.evaluation.model_pool.llm",
            lambda spec, **more: two(spec) if spec == "cheap" else llm(spec, **more),
        )
    folder = space(tmp_path / "w", TOML.replace(old, new))
    (folder / "other.csv").write_text("query,passage,abstention\nQ1,p1,0.5\n")
    found = problems(folder)
    assert words in found, found
    assert two.taken() == []
    if key is not None:
        number = (folder / "ragworth.toml").read_text().partition(key)[0].count("\n") + 1
        assert f"ragworth.toml, line {number}: " in found


def test_a_file_that_says_what_labels_say(tmp_path: Path, two: Two) -> None:
    toml = TOML.replace("abstention.expensive]", "relevance]\ngraded = true\n[judgments.relevance.expensive]")
    folder = space(tmp_path / "w", toml.replace('model = "dear"\nsample = 25', 'file = "human.csv"'))
    change(folder, '["UDCG@2", "Distraction@2", "nDCG@2"]', '["P@2"]')
    (folder / "human.csv").write_text("query,passage,relevance\nq0,q0-a,1\nq0,q0-b,0\n")
    found = problems(folder)
    assert "1 judgment of what has a label, such as 'q0-a' for the query 'q0'" in found
    assert "[judgments] files" in found


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ("sample = 25", "names neither a model nor a file"),
        ('model = "dear"', "does not say about how many queries"),
        ('file = "x.csv"\nsample = 3', "has no other settings"),
        ('file = "x.csv"\nmodel = "dear"', "has no other settings"),
        ('model = "dear"\nsample = 1', "sample is 1, not greater than or equal to 2"),
        ('model = "dear"\nsample = "many"', "is 'many', not a valid integer"),
        ("model = 3\nsample = 9", "is 3, not the name of a model or a table"),
        ('file = ""', "file is ''"),
    ],
)
def test_a_table_that_says_too_little_or_too_much(tmp_path: Path, new: str, words: str) -> None:
    folder = space(tmp_path / "w", TOML.replace('model = "dear"\nsample = 25', new))
    with pytest.raises(InputError, match=r"judgments\.abstention\.expensive") as caught:
        config.read(folder)
    assert words in str(caught.value)
    assert caught.value.line is not None
