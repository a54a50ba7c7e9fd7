"""Each check finds what was planted for it, and says so when it can't tell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.held_out_faults import build_held_out_world
from benchmarks.planted_faults import PLANTED, build_world
from benchmarks.planted_world import World, measure, run_world

from ragworth.build.checks import CHECKS, duplicate
from ragworth.build.checks.contract import ReaderReply
from ragworth.build.checks.reader import check_fitness
from ragworth.build.checks.run import CheckResult, CheckSettings, run_checks
from ragworth.build.checks.self_contained import dangling_reference
from ragworth.build.checks.summary import apply_checks, summarise_checks
from ragworth.build.checks.text_checks import copied_share
from ragworth.build.drafts import Draft, Drafts
from ragworth.build.question_set import Question, QuestionSet, from_drafts, read_question_set
from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue
from ragworth.judging.annotators.abstention import CONTROL_QUESTIONS
from ragworth.llm.contract import Choose, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.text_match.languages import identify_language


@pytest.fixture(scope="module")
def planted() -> tuple[World, CheckResult]:
    world = build_world()
    return world, run_world(world, "none")


def test_every_check_finds_its_planted_faults_and_leaves_the_clean_questions_alone(
    planted: tuple[World, CheckResult],
) -> None:
    assert sum(PLANTED.values()) == 340
    rows = measure(*planted)
    assert {row.check for row in rows} == set(CHECKS.names()) == set(PLANTED)
    for row in rows:
        assert row.recall >= 0.95, row
        assert row.precision is not None and row.precision >= 0.95, row


def test_faults_that_the_rules_have_not_seen_are_found_too() -> None:
    """Floors a little below what docs/build-questions.md reports: `self-contained` misses many of them."""
    world = build_held_out_world()
    rows = {row.check: row for row in measure(world, run_world(world, "none"))}
    assert sum(row.planted for row in rows.values()) == 300
    for row in rows.values():
        assert row.recall >= {"self-contained": 0.6, "duplicate": 0.8}.get(row.check, 0.9), row
        assert row.precision is not None and row.precision >= 0.95, row


def test_a_reader_that_declines_in_words_confirms_an_unanswerable_question() -> None:
    """It is likelier to answer than not, and then writes that it can't."""

    def reply(request: Request) -> ScriptedReply:
        prompt = "\n".join(message.content for message in request.prompt.messages)
        known = any(each.answered in prompt for each in CONTROL_QUESTIONS)
        if isinstance(request, Choose):
            control = any(each.unanswered in prompt for each in CONTROL_QUESTIONS)
            return {label: (0.9 if control else 0.1) if label == "NO-RESPONSE" else 0.01 for label in request.labels}
        return "the answer" if known else "The document does not say."

    passages = pl.DataFrame({"passage": ["p"], "text": ["The Veldrin bridge was opened in 1820."]})
    asked = QuestionSet((Question("q", "Who painted the Veldrin bridge?", answerable=False),), passages)
    with Job(Scripted(reply), None) as job:
        found = run_checks(asked, CheckSettings(("unanswerable",), "none"), job).frame
    assert found["verdict"].to_list() == ["pass"], found


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("four times a day", "pass"),
        ("4 times a day", "pass"),
        ("3 May 1874", "pass"),
        ("5 times a day", "fail"),
        ("Ulf Brandt", "fail"),
        ("Yes", "unknown"),
        ("a new one", "unknown"),
        ("the German engineers", "unknown"),
        ("rather often", "unknown"),
    ],
)
def test_whether_passages_state_an_answer(answer: str, verdict: str) -> None:
    passages = pl.DataFrame({"passage": ["p"], "text": ["Since May 3, 1874 Germans cross it four times a day."]})
    asked = QuestionSet((Question("q", "How is it?", (answer,), ("p",)),), passages)
    assert run_checks(asked, CheckSettings(("stated",), "none")).frame["verdict"].to_list() == [verdict]


def test_a_question_that_repeats_only_dropped_ones_is_kept() -> None:
    """The first is dropped for its pronoun, so the second stays; the third repeats the second."""
    texts = ["When was the Veldrin bridge, which it replaced, opened?", "When was the Veldrin bridge opened?"]
    texts.append("When was the Veldrin bridge opened, please?")
    fields = [{"question": text, "answers": ["1820"], "passages": ["p"], "answerable": True} for text in texts]
    drafts = Drafts(Draft(f"q{number}", "question", "", each) for number, each in enumerate(fields))
    passages = pl.DataFrame({"passage": ["p"], "text": ["The Veldrin bridge was opened in 1820."]})
    rows = [(f"q{number}", "self-contained", "pass" if number else "fail", 0.0, "it") for number in range(3)]
    rows += [(f"q{number}", "duplicate", "fail" if number else "pass", 0.9, "like q0") for number in range(3)]
    frame = pl.DataFrame(rows, schema=["question", "check", "verdict", "value", "reason"], orient="row")
    found = CheckResult(from_drafts(drafts, passages), frame, (), {"q1": ("q0",), "q2": ("q0", "q1")})
    settled = apply_checks(drafts, found)
    assert [(draft.id, draft.status) for draft in drafts] == [
        ("q0", "self-contained"),
        ("q1", "kept"),
        ("q2", "duplicate"),
    ]
    assert "q1" in drafts["q2"].reason
    assert settled.failed("duplicate") == ["q2"]


def test_every_question_has_a_finding_from_every_check(planted: tuple[World, CheckResult]) -> None:
    world, result = planted
    assert result.frame.height == len(world.questions) * len(CHECKS.names())
    failed = result.frame.filter(pl.col("verdict") != "pass")
    assert failed.height
    assert all(failed["reason"].to_list())
    for summary in summarise_checks(result):
        assert summary.passed + summary.failed + summary.unknown + summary.not_applicable == len(world.questions)


@pytest.mark.parametrize("p", [0.01, 0.99])
def test_a_reader_that_always_does_the_same_is_unfit(p: float) -> None:
    world = build_world()
    some = QuestionSet(world.question_set.questions[:5], world.question_set.passages)
    model = Scripted(lambda request: {"NO-RESPONSE": p} if hasattr(request, "labels") else "something")
    with Job(model, None) as job:
        result = run_checks(some, CheckSettings(("answerable",), "none"), job)
    assert set(result.frame["verdict"]) == {"unknown"}
    assert all("unfit-model" in reason for reason in result.frame["reason"])
    assert any("unfit for checks" in note for note in result.notes)


def test_controls_that_fail_are_no_proof_of_fitness() -> None:
    notes, unfit = check_fitness([NoValue("timed-out")] * 12)
    assert unfit is not None and "failed" in notes[0]
    assert check_fitness([ReaderReply(0.9, None)] * 6 + [ReaderReply(0.1, "x")] * 6)[1] is None


def test_failures_of_the_model_are_unknown_and_never_pass() -> None:
    world = build_world()
    reader = world.scripted_reader()
    reader._error = 0.4
    with Job(reader, None) as job:
        result = run_checks(world.question_set, CheckSettings(("answerable",), "none"), job)
    lost = result.frame.filter(pl.col("reason").str.starts_with("server-error"))
    assert lost.height > 20
    assert set(lost["verdict"]) == {"unknown"}


@pytest.mark.parametrize(
    "text",
    [
        "What does it do?",
        "According to the passage, who built the mill?",
        "What is mentioned above about mills?",
        "How many of these wheels are there?",
        "Who is he?",
        "What does this article say about Rome?",
        "Which of the following is a mill?",
    ],
)
def test_references_outside_the_question_are_found(text: str) -> None:
    assert dangling_reference(text)


@pytest.mark.parametrize(
    "text",
    [
        "Who built the mill, and when was it sold?",
        "When did Rome fall and who ruled it?",
        "How long does it take to get to Mars?",
        "Is it true that cats sleep a lot?",
        "who wrote the text of the national anthem",
        "What do bees do with their honey?",
        "what year did this is us start",
        "Who said “this passage is mine”?",
        "who bought the old london bridge and where is it now",
        "where did they film game of thrones season 2",
    ],
)
def test_questions_that_stand_alone_pass(text: str) -> None:
    if text == "what year did this is us start":
        pytest.xfail("a title that reads like a reference")
    assert dangling_reference(text) == ""


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Who was the first king of the Franks?", "English"),
        ("Wer war der erste König der Franken und wie ist er gestorben?", "German"),
        ("Quel est le premier roi des Francs ?", "French"),
        ("フランク王国の最初の王は誰ですか", "Japanese"),
        ("谁是法兰克人的第一位国王", "Chinese"),
        ("42", ""),
        ("Veldrin 1871", ""),
    ],
)
def test_languages_by_script_and_common_words(text: str, language: str) -> None:
    assert identify_language(text) == language


def test_the_share_of_copied_words() -> None:
    text = "one two three four five six seven".split()  # noqa: SIM905
    # five words of a run of six, and two of their own
    assert copied_share(["two", "three", "four", "five", "six", "x", "y"], [text])[0] == pytest.approx(5 / 7)
    assert copied_share(["two", "three", "four", "five", "x"], [text])[0] == 0


def test_near_duplicates_with_other_answers_or_names_stay() -> None:
    same = "How many rooms does the Velford {} have on its upper floor?"
    questions = (
        Question("a", same.format("abbey"), ("12",)),
        Question("b", same.format("abbey").lower(), ("12",)),
        Question("c", same.format("abbey") + " Please.", ("13",)),
        Question("d", same.format("abbey").replace("Velford", "Balford"), ("12",)),
    )
    frame = pl.DataFrame({"passage": ["p"], "text": ["x"]})
    result = run_checks(QuestionSet(questions, frame), CheckSettings(("duplicate",), "none"))
    assert result.failed("duplicate") == ["b"]


def test_ragas_and_deepeval_output_can_be_checked(save) -> None:  # type: ignore[no-untyped-def]
    ragas = save(
        "testset.jsonl",
        '{"user_input": "According to the text, who built the mill?", "reference": "Ann", '
        '"reference_contexts": ["Ann built the mill in 1820."]}\n'
        '{"user_input": "Who built the mill?", "reference": "Ann", '
        '"reference_contexts": ["Ann built the mill in 1820."]}\n',
    )
    deepeval = save(
        "goldens.json",
        '{"goldens": [{"input": "According to the passage, who?", "expected_output": "Ann", "context": ["Ann did."]}]}',
    )
    for path, failing in ((ragas, 1), (deepeval, 1)):
        questions = read_question_set([str(path)])
        result = run_checks(questions, CheckSettings(("self-contained", "verbatim"), "none"))
        assert len(result.failed("self-contained")) == failing
        assert set(result.frame.filter(pl.col("check") == "verbatim")["verdict"]) == {"unknown"}


def test_nothing_is_concluded_from_the_passages_of_a_dataset_alone(save) -> None:  # type: ignore[no-untyped-def]
    """A ragas test set on two passages: retrieval can't go wrong, and the marks of hops aren't part of a text."""
    mill, bridge = "Ann built the mill in 1820.", "Osric opened the bridge in 1904."
    rows = [
        {"user_input": "Who built the mill?", "reference": "Ann", "reference_contexts": [mill]},
        {
            "user_input": "Is the mill older than the bridge?",
            "reference": "yes",
            "reference_contexts": [f"<1-hop>\n\n{mill}", f"<2-hop>\n\n{bridge}"],
        },
    ]
    questions = read_question_set([str(save("testset.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))])
    assert questions.passages["text"].to_list() == [mill, bridge]
    result = run_checks(questions, CheckSettings(("round-trip",), "none"))
    assert set(result.frame["verdict"]) == {"unknown"} and "2 passages" in result.frame["reason"][0]
    assert any("every passage is relevant" in note for note in result.notes)


@pytest.mark.parametrize(("known", "verdict"), [(1, "fail"), (2, "pass"), (3, "unknown")])
def test_a_reader_who_needs_more_than_there_is_shows_nothing_about_each_passage(known: int, verdict: str) -> None:
    """It answers once it has seen as many passages as ``known``; there are two."""

    def reply(request: Request) -> ScriptedReply:
        prompt = "\n".join(message.content for message in request.prompt.messages)
        control = next((each for each in CONTROL_QUESTIONS if each.passage in prompt), None)
        seen = sum(text in prompt for text in texts)
        knows = f"Question: {control.answered}" in prompt if control else seen >= known
        if isinstance(request, Choose):
            return {label: (0.05 if knows else 0.95) if label == "NO-RESPONSE" else 0.001 for label in request.labels}
        return "the mill" if knows else "NO-RESPONSE"

    texts = ["Ann built the mill in 1820.", "Osric opened the bridge in 1904."]
    passages = pl.DataFrame({"passage": ["a", "b"], "text": texts})
    asked = QuestionSet((Question("q", "Which is older?", ("the mill",), ("a", "b")),), passages)
    with Job(Scripted(reply), None) as job:
        found = run_checks(asked, CheckSettings(("each-passage",), "none"), job).frame
    assert found["verdict"].to_list() == [verdict], found


def test_a_collection_of_report_requests_is_checked_by_its_queries(tmp_path: Path) -> None:
    """build crux writes drafts.jsonl too, but not of questions: its queries are in the workspace."""
    Drafts([Draft("a!", "request", "a", {"text": "Report on mills."})]).write(tmp_path / "drafts.jsonl")
    (tmp_path / "queries.jsonl").write_text('{"_id": "a", "text": "Report on mills."}\n')
    (tmp_path / "passages.jsonl").write_text('{"_id": "p", "text": "The mill grinds."}\n')
    (tmp_path / "ragworth.toml").write_text('[collection]\nqueries = "queries.jsonl"\npassages = "passages.jsonl"\n')
    assert [question.id for question in read_question_set([str(tmp_path)]).questions] == ["a"]


def test_similar_vectors_are_found() -> None:
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((1200, 64), dtype=np.float32)
    vectors[600:] = vectors[:600] + 0.1 * draw.standard_normal((600, 64), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = {(one, other) for one, other, _ in duplicate.vector_pairs(vectors, 0.92)}
    assert found == {(number, number + 600) for number in range(600)}
