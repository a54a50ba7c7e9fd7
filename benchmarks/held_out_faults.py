"""Planted faults that the rules of the checks weren't written for: all from `held_out_faults.toml`, written by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.planted_world import World

from ragworth.build.question_set import Question
from ragworth.build.questions.contract import SourceSpan

FILE = Path(__file__).with_name("held_out_faults.toml")

Sentences = Mapping[str, list[str]]


def build_held_out_world() -> World:
    """300 faults, and clean questions: on one passage, on two, and some that rightly can't be answered."""
    given = tomllib.loads(FILE.read_text(encoding="utf-8"))
    world = World()
    sentences: Sentences = {each["id"]: each["passage"] for each in given["documents"]}
    world.passages.update({id: " ".join(texts) for id, texts in sentences.items()})
    for document in given["documents"]:
        _add_clean(world, document)
    for pair in given["pairs"]:
        _add_pair(world, pair, sentences)
    for document in given["documents"]:
        _add_faults(world, document)
    return world


def untouched_questions(world: World) -> set[str]:
    """Questions on the second half of the documents, whose misses nobody looked at when rules were revised."""
    documents = list(world.passages)
    second = set(documents[len(documents) // 2 :])
    return {each.id for each in world.questions if each.id.split("-")[0].split("+")[0] in second}


def _add_clean(world: World, document: Mapping[str, Any]) -> None:
    id = document["id"]
    for number, (text, answer, said, place) in enumerate(document["clean"]):
        sentence = document["passage"][place - 1]
        question = Question(f"{id}-clean-{number}", text, (answer,), (id,), (SourceSpan(id, sentence),), True)
        world.add(question, ((sentence,), said))
    world.add(Question(f"{id}-open", document["open"], answerable=False))


def _add_pair(world: World, pair: Mapping[str, Any], sentences: Sentences) -> None:
    """A question that needs both passages, and one that claims to and needs one."""
    passages = tuple(pair["passages"])
    text, answer, *places = pair["clean"]
    needed = tuple(sentences[id][place - 1] for id, place in zip(passages, places, strict=True))
    spans = tuple(SourceSpan(id, sentence) for id, sentence in zip(passages, needed, strict=True))
    name = "+".join(passages)
    world.add(Question(f"{name}-clean", text, (answer,), passages, spans, True), (needed, answer))
    text, answer, id, place = pair["faulty"]
    way = ((sentences[id][place - 1],), answer)
    world.add(Question(f"{name}-fault", text, (answer,), passages, spans, True), way, fault="each-passage")


def _add_faults(world: World, document: Mapping[str, Any]) -> None:
    id, passage = document["id"], document["passage"]
    (_, first, said, place), _ = document["clean"]

    def add(check: str, text: str, answer: str, said: str | None, place: int, quote: str = "", number: int = 0) -> None:
        span = (SourceSpan(id, quote or passage[place - 1]),)
        ways = [((passage[place - 1],), said)] if said else []
        world.add(Question(f"{id}-{check}-{number}", text, (answer,), (id,), span, True), *ways, fault=check)

    text, answer, where, quote = document["verbatim"]
    add("verbatim", text, answer, answer, where, quote)
    for number, text in enumerate(document["outside"]):
        add("self-contained", text, first, said, place, number=number)
    add("language", document["language"], first, said, place)
    text, answer, where = document["copied"]
    add("copied", text, answer, answer, where)
    for number, text in enumerate(document["duplicate"]):
        _, answer, replied, where = document["clean"][number]
        add("duplicate", text, answer, replied, where, number=number)
    text, answer, replied = document["answerable"]
    add("answerable", text, answer, replied, 1)
    text, answer = document["known"]
    question = Question(f"{id}-closed-book", text, (answer,), (id,), (SourceSpan(id, passage[0]),), True)
    world.add(question, ((), answer), fault="closed-book")
    text, answer, where = document["stated"]
    question = Question(f"{id}-unanswerable", text, answerable=False)
    world.add(question, ((passage[where - 1],), answer), fault="unanswerable")
