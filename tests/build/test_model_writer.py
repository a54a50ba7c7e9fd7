"""The writer that asks a model: what it writes well becomes a draft, everything else keeps its reply and a status."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from ragworth.build.checks.run import CheckSettings
from ragworth.build.questions.build import BuildJobs, BuildSettings, Corpus, build_questions, plan_build, prepare_corpus
from ragworth.build.questions.contract import UNPARSABLE, QuestionSlot, SourceText
from ragworth.build.questions.model_writer import ModelWriter, parse_reply
from ragworth.build.questions.plan import QuestionPlan
from ragworth.calls.budget import JobLimits
from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue
from ragworth.core.errors import JobStopped
from ragworth.llm.contract import Request
from ragworth.llm.scripted import Scripted
from ragworth.retrieval.documents import read_documents
from tests.build.samples import careful_reader, write_corpus

PLAN = QuestionPlan(questions=12, drafts=1, types={"fact": 1, "numeric": 1, "unanswerable": 1}, styles={"question": 1})
SHOWN = [SourceText("p1", "d", "Mill", "Ann built the mill in 1820."), SourceText("p2", "e", "", "It burned in 1899.")]
FACT = QuestionSlot("q00001", "fact", "question", ("p1",), "0")
GOOD: dict[str, Any] = {
    "question": "Who built it?",
    "answers": ["Ann", "Ann "],
    "evidence": [{"passage": 1, "quote": "Ann built the mill"}],
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return prepare_corpus(read_documents([write_corpus(tmp_path_factory.mktemp("docs"))]), PLAN)


def test_a_good_reply_is_a_question_with_its_spans() -> None:
    found = parse_reply(f"```json\n{json.dumps(GOOD)}\n```", FACT, SHOWN[:1])
    assert found.text == "Who built it?"
    assert found.answers == ("Ann",)
    assert [tuple(span) for span in found.spans] == [("p1", "Ann built the mill")]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        json.dumps(GOOD) * 2,
        "Who built the mill?",
        "[1]",
        json.dumps(GOOD)[:-2],
        json.dumps(GOOD | {"question": " "}),
        json.dumps(GOOD | {"answers": "Ann"}),
        json.dumps(GOOD | {"answers": []}),
        json.dumps(GOOD | {"answers": [1]}),
        json.dumps(GOOD | {"evidence": []}),
        json.dumps(GOOD | {"evidence": [{"passage": 3, "quote": "x"}]}),
        json.dumps(GOOD | {"evidence": [{"passage": True, "quote": "x"}]}),
        json.dumps(GOOD | {"evidence": ["Ann"]}),
    ],
)
def test_any_other_reply_is_unparsable_and_kept(reply: str) -> None:
    with pytest.raises(NoValue) as caught:
        parse_reply(reply, FACT, SHOWN[:1])
    assert caught.value.status == UNPARSABLE
    assert caught.value.raw == reply


def test_a_question_on_two_passages_quotes_both() -> None:
    slot = QuestionSlot("q00001", "multi-passage", "question", ("p1", "p2"), "0")
    with pytest.raises(NoValue, match="no evidence from passage 2"):
        parse_reply(json.dumps(GOOD), slot, SHOWN)
    both = GOOD | {"evidence": [*GOOD["evidence"], {"passage": 2, "quote": "It burned"}]}
    assert [span.passage for span in parse_reply(json.dumps(both), slot, SHOWN).spans] == ["p1", "p2"]


def writer_model(faulty: int = 0) -> Scripted:
    """Quotes the first sentence of its passage; every ``faulty``-th reply is no JSON."""
    count = 0

    def reply(request: Request) -> str:
        nonlocal count
        count += 1
        if faulty and count % faulty == 0:
            return "I can't."
        prompt = request.prompt.messages[-1].content
        if "does not say" in prompt:
            return json.dumps({"question": f"What was the weather like on day {count}?", "answers": [], "evidence": []})
        quote = prompt.split(">\n", 1)[1].split(". ")[0]
        evidence = [{"passage": 1, "quote": quote}]
        return json.dumps({"question": f"In which year number {count}?", "answers": ["1820"], "evidence": evidence})

    return Scripted(reply, name="writer", batch=1)


def test_every_slot_ends_as_a_draft(corpus: Corpus) -> None:
    with Job(writer_model(faulty=3), None) as job:
        drafts = ModelWriter(temperature=0).write(corpus.slots, corpus.sources, job)
    assert [draft.id for draft in drafts] == [slot.id for slot in corpus.slots]
    counts = Counter(draft.status for draft in drafts)
    assert counts[UNPARSABLE] == len(drafts) // 3
    assert all(draft.fields["raw"] == "I can't." for draft in drafts if draft.status == UNPARSABLE)


@pytest.mark.parametrize("role", ["writer", "reader"])
def test_a_build_whose_budget_ends_concludes_nothing(corpus: Corpus, role: str) -> None:
    limits = {"writer": JobLimits(), "reader": JobLimits(), role: JobLimits(5)}
    settings = BuildSettings(PLAN, CheckSettings(encoder="none"))
    with (
        Job(writer_model(), None, limits=limits["writer"]) as writer,
        Job(careful_reader(), None, limits=limits["reader"]) as reader,
        pytest.raises(JobStopped, match="budget of 5 calls"),
    ):
        build_questions(corpus, settings, BuildJobs(writer, reader))


def test_a_build_with_two_models_plans_what_it_asks_and_names_both(corpus: Corpus) -> None:
    settings = BuildSettings(PLAN, CheckSettings(encoder="none"))
    with Job(model := writer_model(), None) as writer, Job(careful_reader(), None) as reader:
        jobs = BuildJobs(writer, reader)
        forecast = plan_build(corpus, settings, jobs)["write"]
        assert forecast is not None and forecast.plan.distinct == len(corpus.slots) and model.calls == 0
        built = build_questions(corpus, settings, jobs)
    assert built.card.models["writer"]["name"] == "writer"
    assert built.card.models["reader"]["name"] == "scripted"
    assert {"build-question", "abstention", "answer", "answer-alone"} <= set(built.card.prompts)
    assert built.card.drafts == len(corpus.slots)
