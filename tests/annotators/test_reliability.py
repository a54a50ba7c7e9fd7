"""How far judgments can be trusted: numbers worked out by hand, and what is said where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragworth
from ragworth.annotators import annotation
from ragworth.annotators.reliability import check_annotation
from ragworth.calls.job import Job
from ragworth.collection import Collection
from ragworth.llm.contract import Choose, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.tasks.contract import run_task
from ragworth.tasks.reliability import ReliabilityCheck, table

GOOD = {"a": True, "b": True, "c": False, "d": False}
"""Which passages hold the answer, by people."""


def world(**more: object) -> Collection:
    return Collection.of(
        queries={"query": ["q1", "q2"], "text": ["Who?", "Where?"]},
        passages={"passage": list(GOOD), "text": [f"text {name}" for name in GOOD]},
        relevance={query: {name: int(good) for name, good in GOOD.items()} for query in ("q1", "q2")},
        **more,  # type: ignore[arg-type]
    )


def run() -> ragworth.Contexts:
    return ragworth.Contexts({query: {name: 4.0 - n for n, name in enumerate(GOOD)} for query in ("q1", "q2")})


def checks(
    model: Scripted, kind: str = "relevance", folder: Path | None = None
) -> dict[tuple[str, str], ReliabilityCheck]:
    texts = world(subquestions={"query": ["q1"], "subquestion": ["1"], "text": ["What?"]})
    with Job(model) as job:
        annotator = annotation.build_annotator(kind, job.card, texts, folder, {})
        things = annotation.annotation_items(annotator, run(), texts)
        judged = run_task(annotator, things, job)
        found = check_annotation(annotator, things, judged, job)
    assert len(found) == len({(one.check, one.measure) for one in found})
    assert table(found).height == len(found)
    return {(one.check, one.measure): one for one in found}


def says(yes: dict[str, float], swapped: dict[str, float] | None = None) -> Scripted:
    """A judge with a probability of YES for each passage, and others when everything is in the other order."""

    def reply(request: Request) -> ScriptedReply:
        assert isinstance(request, Choose)
        text = request.prompt.messages[-1].content
        chosen = yes if swapped is None or text.startswith("Question") else swapped
        p = next(chosen[name] for name in GOOD if f"text {name}" in text)
        return {"YES": p, "NO": 0.9 - p}

    return Scripted(reply)


def test_a_judge_who_is_right_and_does_not_mind_the_order() -> None:
    found = checks(says({"a": 0.8, "b": 0.7, "c": 0.2, "d": 0.1}))
    assert found["labels' probability", "median"].value == pytest.approx(0.9)
    assert found["labels' probability", "share below 0.05"].value == 0
    assert found["other order", "Cohen κ"].value == 1
    assert found["given labels", "Cohen κ"].value == 1
    assert found["given labels", "AUC of p"].value == 1
    assert found["given labels", "wins within queries of p"].value == 1
    assert {one.n for one in found.values()} == {8} == {one.total for one in found.values()}


def test_agreement_by_hand() -> None:
    # Says YES for a, b and c: three of four as people do. Of 8 items 6 agree. By chance: YES 6/8 · 4/8 + NO
    # 2/8 · 4/8 = 0.5. κ = (0.75 − 0.5) / 0.5 = 0.5. In the other order YES for a alone: agrees on a and d, 4 of 8;
    # chance 6/8 · 2/8 + 2/8 · 6/8 = 0.375; κ = (0.5 − 0.375) / 0.625 = 0.2.
    # p ranks a .8, c .7, b .6, d .1: of the four pairs of good and bad only (b, c) is lost: AUC 0.75.
    found = checks(
        says({"a": 0.8, "b": 0.6, "c": 0.7, "d": 0.1}, {"a": 0.8, "b": 0.1, "c": 0.1, "d": 0.1}),
    )
    assert found["given labels", "Cohen κ"].value == pytest.approx(0.5)
    assert found["other order", "Cohen κ"].value == pytest.approx(0.2)
    assert found["given labels", "AUC of p"].value == pytest.approx(0.75)
    assert found["given labels", "wins within queries of p"].value == pytest.approx(0.75)


def test_a_judge_who_always_says_the_same_has_no_kappa_with_himself() -> None:
    found = checks(says(dict.fromkeys(GOOD, 0.8)))
    one = found["other order", "Cohen κ"]
    assert one.value is None
    assert "same label" in one.reason
    assert found["given labels", "Cohen κ"].value == 0
    assert found["given labels", "AUC of p"].value == 0.5


def test_probabilities_are_compared_as_quantities() -> None:
    def reply(request: Request) -> ScriptedReply:
        text = request.prompt.messages[-1].content
        p = next((n for n, name in enumerate(GOOD) if f"text {name}" in text), 3)
        moved = 0.1 if text.startswith("Question") else 0.0  # the other order asks the question first
        return {"NO-RESPONSE": p / 10 + moved}

    found = checks(Scripted(reply), "abstention")
    assert found["other order", "Spearman ρ"].value == pytest.approx(1)
    assert found["other order", "mean difference"].value == pytest.approx(0.1)
    # Declining speaks against a passage: the good ones have the lower p.
    assert found["given labels", "AUC of p_raw"].value == 1


def test_an_own_prompt_without_its_other_order_is_not_compared_with_ours(tmp_path: Path) -> None:
    (tmp_path / "relevance.txt").write_text("[user]\nQuestion {{query}} {{passage*}} {{#answers?}}{{.}}{{/answers}}")
    found = checks(says({"a": 0.8, "b": 0.7, "c": 0.2, "d": 0.1}), folder=tmp_path)
    assert "relevance-swapped.txt" in found["other order", "–"].reason
    swapped = "[user]\n{{passage*}} {{#answers?}}{{.}}{{/answers}} {{query}}"
    (tmp_path / "relevance-swapped.txt").write_text(swapped)
    found = checks(says({"a": 0.8, "b": 0.7, "c": 0.2, "d": 0.1}), folder=tmp_path)
    assert found["other order", "Cohen κ"].value == 1
