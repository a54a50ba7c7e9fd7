"""Re-rankers that ask a model, in an evaluation: one store, one budget, plans that ask nothing, and going on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragworth import evaluate
from ragworth.core.errors import InputError, JobStopped
from ragworth.evaluation.plan import plan_evaluation
from ragworth.llm.contract import Choose, Request
from ragworth.workspace import config
from tests.evaluation.samples import Models, change, lines, statuses, workspace

JUDGED = 'useful(estimator="sequence")'

TOML = """
title = "The mill"
k = 2

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
qrels = "qrels.txt"

[systems]
first = {run = "first.run"}
judged = 'run("first.run") >> useful(estimator="sequence")'
useful = 'run("first.run") >> useful'

[judgments]
abstention = true

[metrics]
use = ["nDCG@2"]
"""


def estimators(asked: list[tuple[str, Request]]) -> list[str]:
    return [request.estimator for _, request in asked if isinstance(request, Choose)]


def shown(folder: Path, system: str) -> list[str]:
    found = evaluate(folder, until="retrieve")
    assert statuses(found.stages)["retrieve"] in ("kept", "done")
    import polars as pl

    (path,) = (folder / ".ragworth" / "stages").glob("retrieve-*/contexts.parquet")
    return pl.read_parquet(path).filter(system=system, query="q1").sort("rank")["passage"].to_list()


def by_label(request: Request) -> dict[str, float]:
    """Later passages are better to a judge; the model declines where there are few letters."""
    assert isinstance(request, Choose)
    text = request.prompt.messages[-1].content
    number = int(text.split("Passage ")[1].split(":")[0]) if "Passage " in text else 5
    return {"NO-RESPONSE": 1 - number / 20}


@pytest.fixture
def folder(tmp_path: Path, models: Models) -> Path:
    models.script = by_label
    return workspace(tmp_path / "w", TOML)


def test_what_is_asked_is_asked_once(folder: Path, models: Models) -> None:
    stages = evaluate(folder, until="score").stages
    asked = estimators(models.taken())
    assert asked.count("sequence") == 8  # the passages of the run, each once
    facts = next(stage for stage in stages if stage["name"] == "retrieve")
    assert (facts["status"], facts["calls"], facts["failed"]) == ("done", 16, 0)
    # The judgment asks what the step has asked: its passages come from the store.
    judged = next(stage for stage in stages if stage["name"] == "annotate.abstention")
    assert judged["stored"] >= 6
    assert shown(folder, "first") == ["p1", "p2", "p3"]
    assert shown(folder, "judged") == ["p3", "p2", "p1"]
    again = evaluate(folder, until="score").stages
    assert {stage["status"] for stage in again if stage["name"] != "load"} == {"kept"}
    assert models.taken() == []


def test_a_plan_asks_nothing_and_keeps_nothing(folder: Path, models: Models) -> None:
    stages = {stage.name: stage.words for stage in plan_evaluation(config.read(folder)).stages}
    assert models.taken() == []
    assert stages["retrieve.judged"].startswith(f"{JUDGED}: 8 requests, 8 distinct, 0 answered already; 8 calls")
    assert stages["retrieve.useful"].startswith("useful: 8 requests")
    assert "annotate.abstention" in stages
    assert not list((folder / ".ragworth").glob("stages/retrieve-*"))
    evaluate(folder, until="retrieve")
    models.taken()
    stages = {stage.name: stage.words for stage in plan_evaluation(config.read(folder)).stages}
    assert "8 answered already; 0 calls" in stages["retrieve.judged"]
    assert list((folder / ".ragworth").glob("stages/retrieve-*"))  # what was made is still there
    assert models.taken() == []
    assert {stage["status"] for stage in evaluate(folder, until="retrieve").stages[1:]} == {"kept"}


def test_a_plan_counts_once_what_systems_share(folder: Path, models: Models) -> None:
    change(folder, "useful = 'run(\"first.run\") >> useful'", f"first_two = 'run(\"first.run\") % 2 >> {JUDGED}'")
    stages = {stage.name: stage.words for stage in plan_evaluation(config.read(folder)).stages}
    assert "; 8 calls to make" in stages["retrieve.judged"]
    assert "6 requests, 6 distinct, 6 answered already; 0 calls to make" in stages["retrieve.first_two"]
    assert stages["retrieve.first_two"].endswith("; 6 of the answers come from steps before it")
    evaluate(folder, until="retrieve")
    assert len(models.taken()) == 8


def test_another_model_asks_again(folder: Path, models: Models) -> None:
    evaluate(folder, until="retrieve")
    models.taken()
    change(folder, 'title = "The mill"', 'title = "The mill"\nmodel = "other"')
    assert statuses(evaluate(folder, until="retrieve").stages)["retrieve"] == "done"
    assert {spec for spec, _ in models.taken()} == {"other"}
    change(folder, f">> {JUDGED}'", """>> useful(model="third", estimator="sequence")'""")
    evaluate(folder, until="retrieve")
    assert {spec for spec, _ in models.taken()} == {"third"}


def test_an_own_prompt_asks_again(folder: Path, models: Models) -> None:
    evaluate(folder, until="retrieve")
    models.taken()
    (folder / "mine").mkdir()
    (folder / "mine" / "abstention.txt").write_text("[user]\n{{passage*}}\n{{query}} Or NO-RESPONSE?")
    change(folder, "[metrics]", '[paths]\nprompts = "mine"\n\n[metrics]')
    assert statuses(evaluate(folder, until="retrieve").stages)["retrieve"] == "done"
    assert set(estimators(models.taken())) == {"sequence", "first-token"}


def test_a_budget_ends_it_and_it_goes_on(folder: Path, models: Models) -> None:
    change(folder, "[metrics]", "[budget]\ncalls = 5\n\n[metrics]")
    with pytest.raises(JobStopped, match=r"retrieve, judged: useful.*: the budget is spent"):
        evaluate(folder, until="retrieve")
    first = models.taken()
    assert len(first) == 5
    change(folder, "calls = 5", "calls = 50")
    evaluate(folder, until="retrieve")
    rest = models.taken()
    assert len(rest) == 11
    assert not {repr(request) for _, request in first} & {repr(request) for _, request in rest}


def test_calls_that_failed_are_tried_again(folder: Path, models: Models) -> None:
    models.failing = lambda request: "Passage 2:" in request.prompt.messages[-1].content
    stages = evaluate(folder, until="retrieve").stages
    facts = next(stage for stage in stages if stage["name"] == "retrieve")
    assert (facts["status"], facts["failed"]) == ("incomplete", 4)
    assert any("2 of 8 passages could not be judged and stand behind" in note for note in facts["notes"])
    models.taken()
    models.failing = lambda request: False
    assert statuses(evaluate(folder, until="retrieve").stages)["retrieve"] == "done"
    assert len(models.taken()) == 4
    models.failing = lambda request: True
    change(folder, f">> {JUDGED}'", """>> useful(model="third", estimator="sequence")'""")
    with pytest.raises(JobStopped, match="all 8 calls failed: server-error 8"):
        evaluate(folder, until="retrieve")


def test_notes_name_the_systems_and_are_told_again(folder: Path, models: Models) -> None:
    change(folder, "[judgments]", f"both = 'run(\"first.run\") % 3 >> useful >> {JUDGED}'\n\n[judgments]")
    models.failing = lambda request: "Passage 2:" in request.prompt.messages[-1].content
    models.reason = "too-long"  # which another time would not mend
    facts = evaluate(folder, until="retrieve").stages[-1]
    reason = "(too-long 2)"
    said = f"{JUDGED}: 2 of 8 passages could not be judged and stand behind the others in the order before {reason}"
    assert f"judged, both: {said}" in facts["notes"]
    assert said in facts["noted"]["judged"]
    assert said in facts["noted"]["both"]
    assert facts["noted"].keys() == {"judged", "useful", "both"}
    again = evaluate(folder, until="retrieve").stages[-1]
    assert again["status"] == "kept"
    assert (again["notes"], again["noted"]) == (facts["notes"], facts["noted"])


def test_a_model_that_cannot_is_refused_before_anything_is_asked(folder: Path, models: Models) -> None:
    change(folder, ">> useful'", """>> listwise(window=2, step=1)'""")
    (folder / "mine").mkdir()
    (folder / "mine" / "rerank-list.txt").write_text("[user]\n{{query}}")
    change(folder, "[metrics]", '[paths]\nprompts = "mine"\n\n[metrics]')
    with pytest.raises(InputError, match="no slot for passages"):
        evaluate(folder, until="retrieve")
    assert models.taken() == []


def test_steps_inside_of_others_are_planned_and_written_down(folder: Path, models: Models) -> None:
    lines(
        folder / "passages.jsonl",
        [{"_id": f"d:{n}-{n + 1}@small", "text": f"Passage {n}: a mill"} for n in range(1, 5)],
    )
    change(folder, 'first = {run = "first.run"}', """inside = 'within(bm25 % 3 >> useful, chunks="small")'""")
    change(folder, f"""judged = 'run("first.run") >> {JUDGED}'\nuseful = 'run("first.run") >> useful'""", "")
    stages = {stage.name: stage.words for stage in plan_evaluation(config.read(folder)).stages}
    assert stages["retrieve.inside"].startswith("useful: 6 requests")  # q3 shares no word with them
    assert models.taken() == []
    results = evaluate(folder, until="report").folder
    assert results is not None
    assert "abstention" in json.loads((results / "manifest.json").read_text())["prompts"]
