"""Nothing turns into 0 on the way: what could not be judged has no value, a reason, and what the model wrote."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth import Collection
from ragworth.calls.budget import JobLimits
from ragworth.calls.job import NOT_ASKED, Job
from ragworth.core.errors import InputError, ModelError, PromptError, RagworthError
from ragworth.data import OK, Contexts
from ragworth.judging import ANNOTATORS
from ragworth.judging.annotators.abstention import CONTROL_QUESTIONS
from ragworth.judging.contract import run_task
from ragworth.judging.findings import UNFIT_MODEL
from ragworth.judging.judge import JudgingResult
from ragworth.judging.runner import annotate, annotation_items, build_judge
from ragworth.llm.contract import (
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    Output,
    Request,
    Score,
    Scored,
    Trace,
)
from ragworth.llm.scripted import Scripted, ScriptedReply
from tests.judging.annotators.samples import PASSAGES, RUN, WORLD, by_passage, column, statuses, three, trace

EVERY = ("abstention", "relevance", "downstream", "likelihood", "confidence", "ratings")


def fine(request: Request) -> ScriptedReply:
    """An answer to everything."""
    if isinstance(request, Choose):
        return {label: 0.9 / len(request.labels) for label in request.labels}
    return "Ann" if isinstance(request, Generate) else -0.5


def without(found: JudgingResult, status: str) -> None:
    """Every row lacks a value, for this reason, and the notes count them."""
    frame = found.frame
    assert frame["value"].null_count() == frame.height > 0
    assert set(frame["status"]) == {status}
    assert frame["reason"].null_count() == 0
    assert set(found.table.frame["status"]) == {status}
    what = "rating" if "subquestion" in frame.columns else "judgment"
    noun = f"{what} has" if frame.height == 1 else f"{what}s have"
    assert f"0 of {frame.height} {noun} a value; without one: {status} {frame.height}" in found.notes


def test_every_kind_is_tried_here() -> None:
    """Containment asks no model; its statuses are in test_containment, those of contribution in its folder."""
    assert sorted(ANNOTATORS.names()) == sorted([*EVERY, "containment", "contribution"])


# Texts that are not there


def world(**parts: Any) -> Collection:
    """The usual texts, with some of them replaced."""
    usual = {name: getattr(WORLD, name) for name in ("queries", "passages", "answers", "subquestions")}
    return Collection.of(**(usual | parts))


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize(
    ("part", "status"),
    [
        ({"passages": {"passage": ["p9"], "text": ["x"]}}, "no-passage-text"),
        ({"passages": {"passage": ["p1"], "text": [" \n"]}}, "empty-passage"),
        ({"queries": {"query": ["q9"], "text": ["x"]}}, "no-query-text"),
        ({"queries": {"query": ["q1"], "text": [""]}}, "no-query-text"),
    ],
    ids=["no passage", "empty passage", "no query", "empty query"],
)
def test_texts_that_are_missing(kind: str, part: dict[str, Any], status: str) -> None:
    model = Scripted(fine)
    found = annotate(kind, {"q1": {"p1": 1.0}}, world(**part), model)
    if kind == "ratings" and status == "no-query-text":
        assert statuses(found) == [OK, OK]  # a rating asks the sub-questions, not the query
        return
    without(found, status)
    assert model.calls == (2 * len(CONTROL_QUESTIONS) if kind == "abstention" else 0)


@pytest.mark.parametrize("kind", ["downstream", "likelihood"])
@pytest.mark.parametrize("answers", [{"query": ["q9"], "text": ["x"]}, {"query": ["q1"], "text": [" "]}], ids=str)
def test_no_accepted_answers(kind: str, answers: dict[str, Any]) -> None:
    model = Scripted(fine)
    without(annotate(kind, RUN, world(answers=answers), model), "no-accepted-answers")
    assert model.calls == 0


def test_relevance_does_without_accepted_answers() -> None:
    found = annotate("relevance", RUN, world(answers={"query": ["q9"], "text": ["x"]}), Scripted(fine))
    assert statuses(found) == [OK] * 4


def test_no_subquestions() -> None:
    found = annotate(
        "ratings", RUN, world(subquestions={"query": ["q9"], "subquestion": ["a"], "text": ["x"]}), Scripted(fine)
    )
    without(found, "no-subquestions")
    assert found.frame.height == 4, "a passage without sub-questions is not left out"


def test_a_blank_subquestion_is_not_asked() -> None:
    blank = {"query": ["q1"] * 2, "subquestion": ["a", "b"], "text": ["Who was it?", "  "]}
    model = Scripted(fine)
    found = annotate("ratings", {"q1": {"p1": 1.0}}, world(subquestions=blank), model)
    assert model.calls == 1
    assert found.frame.filter(pl.col("subquestion") == "b")["value"].to_list() == [None]


def test_a_subquestion_that_is_there_twice_is_refused() -> None:
    twice = {"query": ["q1"] * 2, "subquestion": ["a", "a"], "text": ["Who was it?", "When was it?"]}
    with pytest.raises(RagworthError):
        annotate("ratings", {"q1": {"p1": 1.0}}, world(subquestions=twice), Scripted(fine))


def test_one_missing_passage_leaves_the_others_alone() -> None:
    part = world(passages={"passage": ["p1", "p3"], "text": [PASSAGES["p1"], ""]})
    found = annotate("downstream", RUN, part, Scripted(fine))
    assert column(found, "status") == {
        "p1": OK,
        "p2": "no-passage-text",
        "p3": "empty-passage",
        "p4": "no-passage-text",
    }
    assert found.notes[0] == "1 of 4 judgments have a value; without one: no-passage-text 2, empty-passage 1"


def test_a_context_in_which_one_text_is_missing_has_no_confidence() -> None:
    model = Scripted(fine)
    found = annotate("confidence", RUN, world(passages={"passage": ["p1"], "text": ["x"]}), model)
    without(found, "no-passage-text")
    assert model.calls == 0


# Models that fail


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("reason", ["timed-out", "too-long", "server-error", "unauthorised", "content_filter"])
def test_failed_calls(kind: str, reason: str) -> None:
    found = annotate(kind, {"q1": {"p1": 1.0}}, WORLD, Scripted(lambda _: Failure(reason, "as scripted", retry=False)))
    without(found, reason)
    assert set(found.frame["reason"]) == {"as scripted"}


@pytest.mark.parametrize("kind", EVERY)
def test_one_failure_leaves_the_others_alone(kind: str) -> None:
    def script(request: Request) -> ScriptedReply:
        return Failure("timed-out", "late") if PASSAGES["p2"] in request.prompt.messages[-1].content else fine(request)

    settings: dict[str, Any] = {"each": True} if kind == "confidence" else {}
    found = annotate(kind, RUN, WORLD, Scripted(script), **settings)
    lost = found.frame.filter(pl.col("status") != OK)
    assert set(lost["passage"]) == {"p2"}
    assert set(lost["status"]) == {"timed-out"}
    assert lost["value"].null_count() == lost.height == found.frame.height // 4
    assert found.frame.filter(pl.col("status") == OK)["value"].null_count() == 0


@pytest.mark.parametrize("kind", EVERY)
def test_numbers_that_are_none(kind: str) -> None:
    class Broken(Scripted):
        """A model whose weights overflow: everything it computes is not a number."""

        def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
            nothing = [(math.nan,) * len(request.labels) for request in requests]
            return [
                found._replace(probabilities=none, low=none, high=none) if isinstance(found, Chosen) else found
                for none, found in zip(nothing, super().choose(requests), strict=True)
            ]

        def score(self, requests: Sequence[Score]) -> list[Scored | Failure]:
            broken = trace([math.nan], [math.nan])
            return [
                found._replace(trace=broken) if isinstance(found, Scored) else found
                for found in super().score(requests)
            ]

        def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
            broken = trace([math.nan], [math.nan])
            return [
                found._replace(outputs=(Output("", "stop", broken),)) if isinstance(found, Generated) else found
                for found in super().generate(requests)
            ]

    found = annotate(kind, {"q1": {"p1": 1.0}}, WORLD, Broken(fine))
    assert found.frame["value"].to_list() == [None] * found.frame.height
    assert OK not in found.frame["status"]


def test_an_impossible_answer_is_unlikely_and_not_infinitely_so() -> None:
    """A probability of 0 has no logarithm: the row says that something is wrong, and its file can be read again."""
    found = annotate("likelihood", {"q1": {"p1": 1.0}}, WORLD, Scripted(lambda _: -math.inf))
    assert found.frame["value"].to_list() == [None]


# What models write that is no judgment


@pytest.mark.parametrize("kind", ["relevance", "ratings"])
@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("It depends", "unparsable"),
        ("10", "unparsable"),
        ("3.5", "unparsable"),
        ("", "unparsable"),
        ("I'm sorry, I can't do that.", "refused"),
        (" ".join(["well"] * 50), "truncated"),
    ],
)
def test_what_is_no_label_is_kept_as_it_was_written(kind: str, text: str, status: str) -> None:
    model = Scripted({"*": text}, abilities=["generate"])
    ways: list[dict[str, Any]] = [{}, {"graded": True}] if kind == "relevance" else [{}]
    for more in ways:
        found = annotate(kind, RUN, WORLD, model, k=1, **more)
        without(found, status)
        assert all(text.startswith(raw) and (raw or not text) for raw in found.frame["raw"])


@pytest.mark.parametrize("kind", ["relevance", "ratings"])
def test_labels_that_have_no_probability_at_all(kind: str) -> None:
    without(annotate(kind, RUN, WORLD, Scripted({"*": {"something": 1.0}}), k=1), "no-label")


@pytest.mark.parametrize("text", ["", "  \n"])
def test_empty_answers(text: str) -> None:
    found = annotate("downstream", RUN, WORLD, Scripted({"*": text}))
    without(found, "empty-answer")
    assert set(found.frame["raw"]) == {text}
    sampled = annotate("abstention", RUN, WORLD, Scripted({"*": text}), estimator="sampled")
    without(sampled, "empty-answer")


def test_an_empty_answer_has_no_confidence() -> None:
    empty = Trace((), (), ())
    without(sure(three(empty, empty, trace([-1.0], [1.0]))), "empty-answer")
    # With the context it answered; without, it wrote nothing that could be compared.
    found = sure(three(trace([-1.0], [1.0]), trace([-2.0], [1.5]), empty))
    without(found, "empty-answer")


def sure(script: Callable[[Request], ScriptedReply], **settings: Any) -> JudgingResult:
    return annotate("confidence", {"q1": {"p1": 1.0}}, WORLD, Scripted(script), **settings)


def test_tokens_that_cannot_be_matched_cost_the_key_measures_alone() -> None:
    other = trace([-1.0, -1.0], [1.0, 1.0])
    found = sure(three(trace([-1.0], [0.5]), other, trace([-1.0], [1.0])), relative=False)
    by_aspect = column(found, "status", "aspect")
    assert by_aspect["KeyPPL"] == by_aspect["KeyEntropy"] == "tokens-differ"
    assert found.frame["raw"][0] == "t0 ", "what the model wrote is kept"
    # These go by the first answer alone, which is there: −e¹ and −0.5.
    values = column(found, "value", "aspect")
    assert (values["PPL"], values["Entropy"]) == (pytest.approx(-math.e), -0.5)


def test_a_reading_that_fails_costs_the_key_measures_alone() -> None:
    found = sure(three(trace([-1.0], [0.5]), Failure("timed-out", "late"), trace([-1.0], [1.0])), relative=False)
    values = column(found, "value", "aspect")
    assert (values["KeyPPL"], values["KeyEntropy"]) == (None, None)
    assert (values["PPL"], values["Entropy"]) == (pytest.approx(-math.e), -0.5)
    assert found.frame["raw"][0] == "t0 "


# Passages that do not fit


class Cutting(Scripted):
    """A model that has to cut every passage with a word in it, and says so."""

    def __init__(self, script: Callable[[Request], ScriptedReply], word: str) -> None:
        super().__init__(script)
        self.word = word

    def _cut(self, request: Request, found: Any) -> Any:
        cut = 7 if self.word in request.prompt.messages[-1].content else 0
        return found._replace(usage=found.usage._replace(cut=cut, limit=99)) if cut else found

    def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
        return list(map(self._cut, requests, super().choose(requests)))

    def score(self, requests: Sequence[Score]) -> list[Scored | Failure]:
        return list(map(self._cut, requests, super().score(requests)))

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        return list(map(self._cut, requests, super().generate(requests)))


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind != "confidence"])
def test_a_passage_that_was_cut_is_not_judged_unless_that_is_wanted(kind: str) -> None:
    found = annotate(kind, RUN, WORLD, Cutting(fine, "sold"))
    lost = found.frame.filter(pl.col("passage") == "p2")
    assert set(lost["status"]) == {"cut"}
    assert lost["value"].null_count() == lost.height
    assert "7 characters of the passage did not fit" in lost["reason"][0]
    assert set(found.frame.filter(pl.col("passage") != "p2")["status"]) == {OK}
    kept = annotate(kind, RUN, WORLD, Cutting(fine, "sold"), keep_cut=True).frame
    assert set(kept["status"]) == {OK}
    assert set(kept.filter(pl.col("passage") == "p2")["cut"]) == {7}


def test_one_answer_for_which_a_passage_was_cut_makes_the_best_unknown() -> None:
    """The longer an accepted answer, the less room for the passage: the best of two is known only if both saw it."""

    class Partly(Cutting):
        def score(self, requests: Sequence[Score]) -> list[Scored | Failure]:
            found = Scripted.score(self, requests)
            return [
                one._replace(usage=one.usage._replace(cut=7))
                if request.continuation == "Ann Lee" and isinstance(one, Scored)
                else one
                for request, one in zip(requests, found, strict=True)
            ]

    def script(request: Request) -> ScriptedReply:
        assert isinstance(request, Score)
        return -1.0 if request.continuation == "Ann" else -2.0

    without(annotate("likelihood", {"q1": {"p1": 1.0}}, WORLD, Partly(script, "")), "cut")


def test_contexts_that_were_cut_have_no_confidence_unless_that_is_wanted() -> None:
    without(annotate("confidence", RUN, WORLD, Cutting(fine, "sold")), "cut")
    kept = annotate("confidence", RUN, WORLD, Cutting(fine, "sold"), keep_cut=True)
    assert set(kept.frame["status"]) == {"ok"}
    assert kept.frame["cut"][0] > 0


def test_answers_that_were_ended_by_their_length_are_counted() -> None:
    found = annotate(
        "confidence", RUN, WORLD, Scripted(lambda r: "a b c" if isinstance(r, Generate) else -1.0), length=2
    )
    assert any("1 of 1 answers were ended by their greatest length" in note for note in found.notes)
    assert found.frame["finish"][0] == "length"


def test_prompts_that_are_too_long_for_the_model() -> None:
    model = Scripted(fine, context_length=3)
    without(annotate("relevance", RUN, WORLD, model, k=1), "too-long")


@pytest.mark.torch
def test_a_real_model_cuts_or_refuses_what_is_too_long(tmp_path: Path) -> None:
    from ragworth.llm import llm
    from tests.llm.local import tiny

    folder = tiny.saved(tmp_path / "tiny")
    long = world(passages={"passage": ["p1", "p2"], "text": ["the cat " * 400, "the cat"]})
    run = {"q1": {"p1": 2.0, "p2": 1.0}}
    cutting = annotate("relevance", run, long, llm(f"hf:{folder}", device="cpu", on_long="cut"))
    assert column(cutting, "status") == {"p1": "cut", "p2": OK}
    kept = annotate("relevance", run, long, llm(f"hf:{folder}", device="cpu", on_long="cut"), keep_cut=True)
    assert kept.frame["cut"][0] > 0
    assert statuses(kept) == [OK, OK]
    strict = annotate("relevance", run, long, llm(f"hf:{folder}", device="cpu"))
    assert column(strict, "status") == {"p1": "too-long", "p2": OK}


# Models that never decline


def declining(passages: float, controls: float | Failure) -> Scripted:
    """A model with one probability to decline for the user's passages and another for the controls."""
    usual: ScriptedReply = controls if isinstance(controls, Failure) else {"NO-RESPONSE": controls}
    return Scripted(by_passage({name: {"NO-RESPONSE": passages} for name in PASSAGES}, usual))


def test_a_model_that_never_declines_is_unfit() -> None:
    found = annotate("abstention", RUN, WORLD, declining(0.001, 0.002))
    without(found, UNFIT_MODEL)
    assert found.frame["p_raw"].to_list() == [0.001] * 4, "what it said is kept beside"
    assert any("unfit" in note for note in found.notes)


def test_a_model_that_declines_where_it_should_keeps_its_values() -> None:
    """All passages hold the answer: that a fit model never declines on them is as it should be."""
    found = annotate("abstention", RUN, WORLD, declining(0.001, 0.9))
    assert found.frame["value"].to_list() == [0.001] * 4
    assert statuses(found) == [OK] * 4
    assert any(note.startswith("control questions: the model declines with p = 0.900") for note in found.notes)


def test_a_model_that_was_never_tried_on_controls_is_not_called_unfit() -> None:
    found = annotate("abstention", RUN, WORLD, declining(0.001, Failure("timed-out", "late", retry=False)))
    assert statuses(found) == [OK] * 4
    assert not any("also on passages without the answer" in note for note in found.notes)


def test_a_model_that_always_declines_is_unfit_as_well() -> None:
    without(annotate("abstention", RUN, WORLD, declining(0.99, 0.99)), UNFIT_MODEL)
    assert statuses(annotate("abstention", RUN, WORLD, declining(0.99, 0.5))) == [OK] * 4


def test_one_passage_on_which_it_declines_is_enough() -> None:
    script = by_passage({"p2": {"NO-RESPONSE": 0.5}}, {"NO-RESPONSE": 0.0})
    assert statuses(annotate("abstention", RUN, WORLD, Scripted(script))) == [OK] * 4


def test_the_floor_is_a_setting() -> None:
    assert statuses(annotate("abstention", RUN, WORLD, declining(0.001, 0.002), floor=0.001)) == [OK] * 4
    without(annotate("abstention", RUN, WORLD, declining(0.4, 0.4), floor=0.5), UNFIT_MODEL)


def test_rows_that_failed_keep_their_own_reason_in_an_unfit_model() -> None:
    script = by_passage({"p2": Failure("timed-out", "late", retry=False)}, {"NO-RESPONSE": 0.0})
    found = annotate("abstention", RUN, WORLD, Scripted(script))
    assert column(found, "status") == {"p1": UNFIT_MODEL, "p2": "timed-out", "p3": UNFIT_MODEL, "p4": UNFIT_MODEL}


# Budgets


def limited(kind: str, calls: int) -> JudgingResult:
    with Job(Scripted(fine), limits=JobLimits(calls=calls)) as job:
        annotator = build_judge(ANNOTATORS, kind, job.card, WORLD, None, {})
        return run_task(annotator, annotation_items(annotator, Contexts(RUN), WORLD), job)


def test_what_the_budget_did_not_reach_was_not_asked() -> None:
    found = limited("relevance", 3)
    assert statuses(found) == [OK] * 3 + [NOT_ASKED]
    assert found.frame["value"].to_list()[3] is None
    assert "the budget of 3 calls is spent" in found.frame["reason"][3]
    assert found.notes[0] == "3 of 4 judgments have a value; without one: not-asked 1"


# Models and settings that cannot do it

LACKING: list[tuple[str, dict[str, Any], list[str]]] = [
    ("abstention", {}, ["generate", "score"]),
    ("abstention", {"estimator": "sequence"}, ["generate"]),
    ("abstention", {"estimator": "sampled"}, ["choose"]),
    ("relevance", {"how": "labels"}, ["generate"]),
    ("relevance", {"how": "parsed"}, ["choose"]),
    ("relevance", {}, ["score"]),
    ("downstream", {}, ["choose", "score"]),
    ("likelihood", {}, ["generate", "choose"]),
    ("confidence", {}, ["generate", "logprobs", "entropies"]),
    ("confidence", {}, ["generate", "logprobs", "score"]),
    ("confidence", {"measures": "Entropy"}, ["generate", "logprobs"]),
    ("confidence", {"measures": "PPL"}, ["generate"]),
    ("ratings", {"how": "labels"}, ["generate"]),
    ("ratings", {}, ["score"]),
]


@pytest.mark.parametrize(("kind", "settings", "abilities"), LACKING, ids=str)
def test_a_model_that_cannot_do_it_is_refused_before_anything_runs(
    kind: str, settings: dict[str, Any], abilities: list[str], tmp_path: Path
) -> None:
    model = Scripted(fine, abilities=abilities)
    with pytest.raises(ModelError, match="needs a model that can"):
        annotate(kind, RUN, WORLD, model, store=tmp_path / "calls.sqlite", **settings)
    assert model.calls == 0


def test_kinds_prompts_and_contexts_that_are_not_there(tmp_path: Path) -> None:
    model = Scripted(fine)
    with pytest.raises(InputError, match="abstention"):
        annotate("sentiment", RUN, WORLD, model)
    with pytest.raises(InputError, match="nothing to judge"):
        annotate("relevance", None, WORLD, model)
    with pytest.raises(InputError, match="whole contexts"):
        annotate("confidence", None, WORLD, model)
    with pytest.raises(PromptError, match="no such folder"):
        annotate("relevance", RUN, WORLD, model, prompts=tmp_path / "none")
    assert model.calls == 0


# What an endpoint does not tell


def bounded(low: float, high: float) -> Trace:
    return Trace(("x",), (-1.0,), None, ((low, high),))


def test_entropies_that_are_only_bounded_are_refused_or_said_to_be_bounds() -> None:
    few = ["generate", "logprobs"]

    class Narrow(Scripted):
        def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
            made = super().generate(requests)
            return [
                one._replace(outputs=(Output("x", "stop", bounded(0.25, 2.0)),)) if isinstance(one, Generated) else one
                for one in made
            ]

    with pytest.raises(ModelError):
        annotate("confidence", RUN, WORLD, Narrow(fine, abilities=few), measures="Entropy", relative=False)
    with pytest.raises(InputError, match="key tokens cannot be found from bounds"):
        annotate("confidence", RUN, WORLD, Narrow(fine, abilities=[*few, "score"]), approximate=True)
    found = annotate(
        "confidence", RUN, WORLD, Narrow(fine, abilities=few), measures="PPL,Entropy", relative=False, approximate=True
    )
    # The least possible entropy is the greatest possible confidence; the other bound stands beside it.
    assert column(found, "value", "aspect") == pytest.approx({"PPL": -math.e, "Entropy": -0.25})
    assert found.frame["high"][0] == -2.0
    assert "least possible entropy" in found.frame["source"][0]


def test_every_value_says_where_it_comes_from() -> None:
    for kind in EVERY:
        for source in annotate(kind, RUN, WORLD, Scripted(fine, name="m1")).frame["source"]:
            assert source.startswith("scripted:m1 · ")
            assert "@" in source
