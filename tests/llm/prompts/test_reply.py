"""Prompt files that declare how their replies are read, and the set of prompts in the papers' format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ragworth
from ragworth import Collection
from ragworth.core.errors import PromptError
from ragworth.judging.labels import LabelScale
from ragworth.judging.runner import annotate
from ragworth.llm.contract import Choose, Failure, Generate, Generated, Output, Request, Usage
from ragworth.llm.prompts import PROMPT_SETS, load_prompt
from ragworth.llm.prompts.template import parse_template
from ragworth.llm.scripted import Scripted, ScriptedReply
from tests.conftest import Save

TEXTS = Collection.of(
    queries={"query": ["q1"], "text": ["Who built the mill?"]},
    passages={"passage": ["a", "b"], "text": ["Ann built the mill.", "The mill is old."]},
    answers={"query": ["q1"], "text": ["Ann"]},
    subquestions={"query": ["q1"], "subquestion": ["s1"], "text": ["Who was it?"]},
)
RUN = {"q1": {"a": 2.0, "b": 1.0}}
ANSWERS = ragworth.Answers([{"system": "x", "query": "q1", "repeat": 0, "text": "Ann", "status": "ok"}])
JUDGE = "[reply]\nlabels: A = relevant, B = irrelevant\n{more}\n[user]\n{{{{query}}}} {{{{passage*}}}}"


class Heard:
    """A model that remembers what it was asked."""

    def __init__(self, reply: ScriptedReply) -> None:
        self.asked: list[Request] = []

        def script(request: Request) -> ScriptedReply:
            self.asked.append(request)
            return reply

        self.model = Scripted(script)


def file(save: Save, text: str, name: str = "mine.txt") -> str:
    return str(save(name, text))


# The section


def test_the_section_is_parsed_and_never_sent(save: Save) -> None:
    text = (
        "About it.\n\n[reply]\nlabels: A = relevant, B = not relevant, 3\n\nfield: grade\nstop: STOP it\n"
        'stop: "\\n\\n"\nlength: 200\n[user]\nHi {{who}}\n[assistant]\n{"grade": "A"}\n[user]\nGo'
    )
    found = load_prompt(file(save, text))
    assert found.about == "About it."
    assert found.reply.labels == (("A", "relevant"), ("B", "not relevant"), ("3", "3"))
    assert (found.reply.field, found.reply.stop, found.reply.length) == ("grade", ("STOP it", "\n\n"), 200)
    assert [message.role for message in found.render({"who": "you"}).messages] == ["user", "assistant", "user"]
    shown = found.reply.source
    assert load_prompt(file(save, f"[reply]\n{shown}\n[user]\nx", "again.txt")).reply == found.reply


@pytest.mark.parametrize(
    ("section", "line", "words"),
    [
        ("label: A = relevant", 2, "declares nothing"),
        ("field: grade\nIt is JSON.", 3, "declares nothing"),
        ("labels:", 2, "declares nothing"),
        ("labels: A = x, , B = y", 2, "is no label"),
        ("labels: A =, B = y", 2, "is no label"),
        ("labels: A = x, a = y", 2, "is declared twice"),
        ("field: a\nfield: b", 3, "field is declared twice"),
        ("length: many", 2, "the length is 'many'"),
        ("length: 0", 2, "the length is '0'"),
        ('stop: "half', 2, "is no quoted text"),
        ('stop: ""', 2, "is no quoted text"),
        ("", 1, "[reply] is empty"),
        ("stop: x\n[reply]\nstop: y", 3, "[reply] comes twice"),
        ("stop: x\n[user]\nHi\n[reply]\nstop: y", 5, "[reply] comes after a message"),
        ("stop: x\n[Reply]", 3, "[Reply] is not a role"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(section: str, line: int, words: str, save: Save) -> None:
    path = file(save, f"[reply]\n{section}\n[user]\nHi")
    with pytest.raises(PromptError) as error:
        load_prompt(path)
    assert words in error.value.found
    assert (error.value.file, error.value.line) == (path, line)
    assert error.value.expected


def test_another_way_to_read_replies_is_another_version(save: Save) -> None:
    sections = ["", "[reply]\nfield: grade\n", "[reply]\nfield: label\n", "About.\n[reply]\nfield: label\n"]
    bare, grade, label, described = [
        load_prompt(file(save, f"{section}[user]\nHi", f"{n}.txt")).version for n, section in enumerate(sections)
    ]
    assert len({bare, grade, label}) == 3
    assert described == label


# Labels


SCALE = LabelScale(("YES", "NO"), (1.0, 0.0), ("relevant", "irrelevant"))


def scale(more: str = "", labels: str = "A = relevant, B = irrelevant", base: LabelScale = SCALE) -> LabelScale:
    return base.for_prompt(parse_template(f"[reply]\nlabels: {labels}\n{more}\n[user]\nx", "x.txt"))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('{"reason": "It says so.", "grade": "A"}', 0),
        ('```json\n{\n  "reason": "no",\n  "grade": "B"\n}\n```', 1),
        ('Here you are:\n{"grade": "A", "reason": "x"}\nDone.', 0),
        ('{"Grade": "b"}', 1),
        ('{"grade": "A: RELEVANT"}', 0),
        ('{"grade": "A (relevant)"}', 0),
        ("{'reason': 'x', 'grade': 'B'}", 1),
        ('{"reason": "it says "yes" twice", "grade": "A"}', 0),
        ('{"reason": "x", "grade": "A",\n}', 0),
        ('{"reason": "x", "grade": "A"', 0),
        ('The format is {"grade": "A" or "B"}.\n{"grade": "B"}', 1),
        ('The format is {"grade": "A", "B", or "C"}.\n{"grade": "B"}', 1),
        ('{"grade": "A"} or {"grade": "B"}', None),
        ('{"grade": "A: RELEVANT, B: IRRELEVANT"}', None),
        ('{"grade": "A document"}', None),
        ('{"grade": "C"}', None),
        ('{"grade": true}', None),
        ('{"grade": "A" or "B"}', None),
        ('{"grade": "', None),
        ('{"reason": "A"}', None),
        ("A", None),
        ("", None),
    ],
)
def test_a_label_in_json(text: str, number: int | None) -> None:
    assert scale("field: grade").parse_field(text) == number


@pytest.mark.parametrize(
    ("value", "number"),
    [("4", 4), ('"4"', 4), ("4.0", 4), ('"4/5"', 4), ("4.5", None), ("-1", None), ('"-1"', None), ('"3 or 4"', None)],
)
def test_a_number_in_json(value: str, number: int | None) -> None:
    ratings = scale("field: score", "5, 4, 3, 2, 1, 0", LabelScale.numbers(0, 5))
    assert ratings.parse_field(f'{{"score": {value}}}') == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("A", 0), ("b.", 1), ("A: it is", 0), ("The grade is B.", 1), ("A document", None), ("A\nIt says so.", 0)],
)
def test_a_letter_that_is_a_word_is_no_label(text: str, number: int | None) -> None:
    assert scale().parse(text) == number


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("A = relevant, B = wrong", "a label means wrong"),
        ("A = relevant", "no label means irrelevant"),
    ],
)
def test_labels_that_do_not_fit_the_task(labels: str, words: str, save: Save) -> None:
    path = file(save, f"[reply]\nlabels: {labels}\n[user]\n{{{{query}}}} {{{{passage*}}}}")
    with pytest.raises(PromptError) as error:
        annotate("relevance", RUN, TEXTS, Heard("A").model, prompt=path)
    assert words in error.value.found
    assert (error.value.file, error.value.line) == (path, 2)
    assert error.value.expected == "labels: LABEL = relevant, LABEL = irrelevant"


# Tasks


def test_probabilities_are_those_of_the_declared_labels(save: Save) -> None:
    labels = "[reply]\nlabels: 3 = relevant, 2 = relevant, 1 = irrelevant\n[user]\n{{query}} {{passage*}}"
    heard = Heard({"3": 0.25, "2": 0.25, "1": 0.375})
    found = annotate("relevance", RUN, TEXTS, heard.model, k=1, prompt=file(save, labels)).frame
    assert [each.labels for each in heard.asked if isinstance(each, Choose)] == [("3", "2", "1")]
    assert found["value"].to_list() == [1.0]
    assert found["p"][0] == pytest.approx(0.5 / 0.875)
    assert found["source"][0].endswith("first-token")


def test_json_is_parsed_even_if_probabilities_are_asked_for(save: Save) -> None:
    path = file(save, JUDGE.format(more="field: grade\nlength: 90"))
    heard = Heard('{"reason": "It says so.", "grade": "B"}')
    found = annotate("relevance", RUN, TEXTS, heard.model, k=1, prompt=path, how="labels").frame
    (request,) = heard.asked
    assert isinstance(request, Generate)
    assert (request.max_tokens, request.schema) == (90, "")
    assert found.select("value", "p", "status").row(0) == (0.0, None, "ok")
    assert "parsed from JSON" in found["source"][0]
    assert found["raw"][0].startswith('{"reason"')


def test_json_without_a_label_is_missing_with_its_reason(save: Save) -> None:
    path = file(save, JUDGE.format(more="field: grade"))
    found = annotate("relevance", RUN, TEXTS, Heard("It is relevant.").model, k=1, prompt=path).frame
    assert found.select("value", "status", "reason", "raw").row(0) == (
        None,
        "unparsable",
        "expected JSON with the field 'grade': one of A, B",
        "It is relevant.",
    )


def test_a_declared_word_for_declining(save: Save) -> None:
    path = file(save, "[reply]\nlabels: UNKNOWN = abstained\n[user]\n{{query}} {{passage*}}")
    heard = Heard({"UNKNOWN": 0.25})
    found = annotate("abstention", RUN, TEXTS, heard.model, k=1, prompt=path).frame
    assert found["value"].to_list() == [0.25]
    assert isinstance(heard.asked[0], Choose)
    assert heard.asked[0].labels[0] == "UNKNOWN"


class Endless(Scripted):
    """A server that ignores stop texts."""

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        return [Generated((Output("Ann Lee. STOP\nQuestion: Who", "length"),), Usage(1, 9, 0.1)) for _ in requests]


def test_an_answer_ends_before_the_stop_word(save: Save) -> None:
    heard = Heard("Ann Lee.\nSTOP\nQuestion: Who else? STOP")
    for model in (heard.model, Endless({})):
        made = ragworth.answer(RUN, TEXTS, model, without=True, prompt="papers/answer-knowledge").frame
        assert set(made["text"]) == {"Ann Lee."}
        assert set(made["status"]) == {"ok"}
    assert [each.stop for each in heard.asked if isinstance(each, Generate)] == [("STOP",)] * 2
    assert "Text 1: Ann built the mill." in heard.asked[0].prompt.messages[0].content
    assert "Text" not in heard.asked[1].prompt.messages[0].content, "the zero-shot prompt goes with it"


def test_an_answer_from_one_passage_ends_before_the_stop_word() -> None:
    heard = Heard("Ann STOP and go")
    found = annotate("downstream", RUN, TEXTS, heard.model, k=1, prompt="papers/answer-knowledge", compare="em").frame
    assert (found["raw"][0], found["value"][0]) == ("Ann", 1.0)


# The papers' format


def test_one_prompt_asks_for_abstention_and_for_answers() -> None:
    for settings in ({"prompts": "papers"}, {"prompt": "papers/answer"}):
        asked, said = Heard({"NO-RESPONSE": 0.5}), Heard("Ann")
        annotate("abstention", RUN, TEXTS, asked.model, k=1, **settings)  # type: ignore[arg-type]
        ragworth.answer(RUN, TEXTS, said.model, k=1, **settings)  # type: ignore[arg-type]
        assert asked.asked[-1].prompt == said.asked[0].prompt
        assert len(said.asked[0].prompt.passages) == 1


@pytest.mark.parametrize("way", [{"prompts": "papers"}, {"prompt": "papers/{}"}])
def test_every_task_takes_the_set(way: dict[str, str]) -> None:
    def settings(name: str) -> dict[str, Any]:
        return {key: value.format(name) for key, value in way.items()}

    heard = Heard('{"reason": "Right.", "grade": "A"}')
    judged = annotate("relevance", RUN, TEXTS, heard.model, k=1, **settings("relevance")).frame
    assert judged["value"].to_list() == [1.0]
    assert "Accepted answer: Ann\n" in heard.asked[0].prompt.messages[-1].content
    graded = ragworth.grade("judge", ANSWERS, TEXTS, heard.model, **settings("grade")).frame
    assert graded.select("value", "label").row(0) == (1.0, "correct")
    assert "grade@" in graded["source"][0]
    rated = annotate("ratings", RUN, TEXTS, Heard({"4": 0.75, "5": 0.25}).model, k=1, **settings("rating")).frame
    assert rated["expected"][0] == pytest.approx(4.25)
    ideal = ragworth.grade(
        "ideal", ANSWERS, TEXTS, Heard({"5": 0.9}).model, ideal="accepted", **settings("ideal")
    ).frame
    assert ideal["value"].to_list() == [5.0]
    covered = ragworth.grade("coverage", ANSWERS, TEXTS, Heard({"4": 0.9}).model, **settings("rating")).frame
    assert covered["value"][0] == pytest.approx(1.0)


def test_what_the_set_lacks_comes_from_the_models_own() -> None:
    assert load_prompt("reply", "papers", "plain") == load_prompt("reply", "plain")
    assert load_prompt("relevance-graded", "papers") == load_prompt("relevance-graded")
    assert load_prompt("grade", "papers", "plain") == load_prompt("papers/grade")
    assert {path.parent.name for path in PROMPT_SETS["papers"].glob("*.txt")} == {"papers"}
    with pytest.raises(PromptError, match="unknown prompt 'papers/nothing'"):
        load_prompt("papers/nothing")
    with pytest.raises(PromptError, match="unknown prompt"):
        load_prompt("../prompts/answer")


def test_a_chosen_prompt_is_used_also_with_a_model_that_was_taught_to_decline() -> None:
    model = Heard({"5": 0.9, "NO-RESPONSE": 0.1}).model
    model.card = replace(model.card, declining=1.0)
    found = annotate("ratings", RUN, TEXTS, model, k=1, prompt="papers/rating").frame
    assert "rating@" in found["source"][0]
    usual = annotate("ratings", RUN, TEXTS, model, k=1).frame
    assert "answerability" in usual["source"][0]


def test_a_file_has_its_zero_shot_version_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("[user]\n{{query}} {{#passages}}{{text*}}{{/passages}}")
    (tmp_path / "mine-alone.txt").write_text("[user]\nFrom memory: {{query}}")
    heard = Heard("Ann")
    ragworth.answer(RUN, TEXTS, heard.model, without=True, prompt=str(tmp_path / "mine.txt"))
    assert heard.asked[-1].prompt.messages[0].content == "From memory: Who built the mill?"
