"""Searching with rewrites of a conversation's turns: rules, files, models, fusion and plans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth.core.errors import InputError, ModelError
from ragworth.data.collection import Collection
from ragworth.data.conversations import Message, Turn
from ragworth.llm.contract import Card, Failure, Generate, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.retrieval import Pipeline, StepContext, retrieve
from ragworth.retrieval.asker import StepAsker
from ragworth.retrieval.steps.rewritten import Rewritten
from ragworth.retrieval.words import add_history_terms
from tests.retrieval.samples import passages, world

PASSAGES = {
    "otter-food": "Otters eat fish and crabs.",
    "otter-winter": "Otters hunt under ice in winter.",
    "bear-winter": "Bears sleep in caves all winter.",
    "mill": "A mill grinds corn.",
}
HISTORY = [{"role": "user", "text": "What do otters eat?"}, {"role": "assistant", "text": "Fish and crabs."}]
TURNS: list[dict[str, Any]] = [
    {"query": "o_1", "conversation": "o", "number": 1, "history": []},
    {"query": "o_2", "conversation": "o", "number": 2, "history": HISTORY, "rewrite": "Do otters hunt in winter?"},
]
QUERIES = {"o_1": "What do otters eat?", "o_2": "And winter?"}


def talk(**more: Any) -> StepContext:
    collection = Collection.of(
        queries={"query": list(QUERIES), "text": list(QUERIES.values())},
        passages={"passage": list(PASSAGES), "text": list(PASSAGES.values())},
        turns=TURNS,
    )
    return StepContext.of(collection, **more)


def found(pipeline: str, context: StepContext | None = None) -> dict[str, list[str]]:
    return passages(retrieve({"s": pipeline}, context or talk()), "s")


def texts(by: str, **more: Any) -> Mapping[str, str]:
    return Rewritten(by=by, **more).search_texts(talk()).texts[0]


def writes(text: ScriptedReply) -> Scripted:
    def reply(request: Request) -> ScriptedReply:
        assert isinstance(request, Generate)
        return text

    return Scripted(reply)


def test_written_forms() -> None:
    for text in (
        'rewritten(by="last") >> bm25 % 10',
        'rewritten("hf:me/rewriter") >> bm25 % 10 >> reversed',
        'rewritten(file="rewrites.jsonl") >> fused(bm25, random) % 5',
        'fused(rewritten(by="last") >> bm25, rewritten >> bm25) % 3',
        "rewritten(n=4, temperature=0.8) >> bm25",
    ):
        made = Pipeline.of(text)
        assert str(made) == text
        assert Pipeline.of(str(made)).digest == made.digest


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rewritten", "retrieves nothing"),
        ("rewritten % 10", "can't follow rewritten"),
        ("rewritten >> reversed", "can't follow rewritten"),
        ("rewritten >> rewritten >> bm25", "can't follow rewritten"),
        ("bm25 >> rewritten", "can't follow bm25"),
        ('rewritten(by="human", file="a") >> bm25', "one of a model, a rule"),
        ('rewritten("m", by="all") >> bm25', "one of a model, a rule"),
        ('rewritten(by="all", n=2, temperature=1) >> bm25', "takes no samples"),
        ("rewritten(n=2) >> bm25", "all the same"),
        ('rewritten(by="first") >> bm25', "first[+]last"),
        ('rewritten(file="none.jsonl") >> bm25', "there is no file"),
    ],
)
def test_wrong_forms_say_what_to_write(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        found(text)


@pytest.mark.parametrize(
    ("said", "passage", "added"),
    [
        ("黑猫在哪里", "黑猫睡觉", "猫 黑 黑猫"),
        ("हिन्दी में", "हिन्दी", "हिन्दी"),
    ],
)
def test_terms_of_the_history_are_words_as_bm25_finds_them(said: str, passage: str, added: str) -> None:
    turn = Turn("q", "c", 2, "?", (Message("user", said),))
    assert add_history_terms([turn], pl.Series([passage, "", ""])) == [f"? {added}"]


def test_rules() -> None:
    assert texts("last")["o_2"] == "And winter?"
    assert texts("all")["o_2"] == "What do otters eat? And winter?"
    assert texts("first+last")["o_2"] == "What do otters eat? And winter?"
    assert texts("human") == {"o_1": "What do otters eat?", "o_2": "Do otters hunt in winter?"}
    assert set(texts("history-terms", terms=9)["o_2"].split()) >= {"And", "winter?", "crabs", "Fish", "otters", "eat"}
    assert len(texts("history-terms", terms=1)["o_2"].split()) == 3


def test_steps_behind_search_with_the_rewrite() -> None:
    assert found('rewritten(by="last") >> bm25') == found("bm25")
    assert found("bm25 % 1")["o_2"] == ["otter-food"]
    assert found('rewritten(by="human") >> bm25 % 1')["o_2"] == ["otter-winter"]
    inner = found('rewritten(by="human") >> fused(bm25, bm25(k1=0.9)) % 1')
    assert inner["o_2"] == ["otter-winter"]


def test_what_was_searched_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PASSAGES, "otter:0-12@small", "Otters eat.")
    systems = {
        "plain": "bm25",
        "human": 'rewritten(by="human") >> bm25',
        "both": 'fused(bm25, rewritten(by="all") >> bm25)',
        "chunked": 'within(rewritten(by="first+last") >> bm25, chunks="small")',
    }
    searches = retrieve(systems, talk()).searches
    assert searches is not None
    assert searches.filter(query="o_2").rows() == [
        ("human", "o_2", "Do otters hunt in winter?"),
        ("both", "o_2", "And winter?"),
        ("both", "o_2", "What do otters eat? And winter?"),
        ("chunked", "o_2", "What do otters eat? And winter?"),
    ]


def test_the_embedded_reader_leaves_rewriting_to_the_embedded_rewriter() -> None:
    class Asker(StepAsker):
        def card(self, model: str) -> Card:
            asked.append(model)
            return replace(super().card(""), backend="embedded", declining=2.0 if model == "" else None)

    asked: list[str] = []
    context = replace(talk(), model_access=Asker(writes("Do otters hunt in winter?")))
    Rewritten().problems(context)
    assert asked == ["", "embedded:rewriter"]
    asked.clear()
    Rewritten("hf:mine").problems(context)
    assert asked == ["hf:mine"]


def test_rewrites_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rewrites.jsonl"
    rows = [{"query": "o_1", "text": "mill"}, {"query": "o_2", "text": "bears"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pipeline = 'rewritten(file="rewrites.jsonl") >> bm25'
    context = talk(folder=tmp_path)
    assert found(pipeline, context) == {"o_1": ["mill"], "o_2": ["bear-winter"]}
    assert Pipeline.of(pipeline).steps[0].files(context) == (file,)
    file.write_text(json.dumps(rows[0]) + "\n")
    with pytest.raises(InputError, match=r"no rewrite of 1 query \('o_2'\)"):
        found(pipeline, context)
    file.write_text((json.dumps(rows[0]) + "\n") * 2)
    with pytest.raises(InputError, match="line 2"):
        found(pipeline, context)


@pytest.mark.parametrize("step", ["rewritten", 'rewritten(by="all")', 'rewritten(by="human")'])
def test_queries_without_conversations_are_refused(step: str) -> None:
    with pytest.raises(InputError, match="needs conversations, and no query is a turn of one"):
        found(f"{step} >> bm25", world())


def test_missing_human_rewrites_are_refused() -> None:
    context = talk()
    turns = context.collection.turns.with_columns(rewrite=None)
    context = replace(context, collection=Collection.of(queries=context.collection.queries, turns=turns))
    with pytest.raises(InputError, match=r"no human rewrite of 1 turn \('o_2'\)"):
        found('rewritten(by="human") >> random', context)


def test_a_model_rewrites_turns_with_a_history(tmp_path: Path) -> None:
    model, store = writes("bears in caves"), tmp_path / "calls.sqlite"
    assert found("rewritten >> bm25 % 1", talk(model=model, store=store)) == {
        "o_1": ["otter-food"],
        "o_2": ["bear-winter"],
    }
    again = writes(Failure("down", "", retry=False))
    assert found("rewritten >> bm25 % 1", talk(model=again, store=store))["o_2"] == ["bear-winter"]


def test_a_rewrite_that_fails_is_counted(tmp_path: Path) -> None:
    def reply(request: Request) -> ScriptedReply:
        assert isinstance(request, Generate)
        return "" if request.prompt.messages[-1].content.rstrip().endswith("And winter?") else "crabs"

    context = talk(model=Scripted(reply))
    more = {"query": "o_3", "conversation": "o", "number": 3, "history": HISTORY}
    queries = {"query": [*QUERIES, "o_3"], "text": [*QUERIES.values(), "What else?"]}
    grown = Collection.of(queries=queries, passages=context.collection.passages, turns=[*TURNS, more])
    context = replace(StepContext.of(grown), model_access=context.model_access)
    made = retrieve({"s": "rewritten >> bm25", "plain": "bm25"}, context)
    assert any("1 of 2 rewrites failed; the turn is searched as it is (empty-rewrite 1)" in note for note in made.notes)
    assert passages(made, "s")["o_2"] == passages(made, "plain")["o_2"]
    assert passages(made, "s")["o_3"] == ["otter-food"]


def test_no_rewrite_at_all_is_an_error() -> None:
    with pytest.raises(ModelError, match="none of 1 rewrite succeeded: empty-rewrite 1"):
        found("rewritten >> bm25", talk(model=writes(" ")))
    with pytest.raises(ModelError, match="none of 1 rewrite succeeded: empty-rewrite 1"):
        found("rewritten >> bm25", talk(model=writes("<message 0a1b2c>")))
    with pytest.raises(ModelError, match="none of 1 rewrite succeeded: truncated 1"):
        found("rewritten >> bm25", talk(model=writes("bear " * 99)))


def test_long_histories_are_cut_from_the_oldest_message() -> None:
    shown: list[str] = []

    def reply(request: Request) -> ScriptedReply:
        assert isinstance(request, Generate)
        shown.append(request.prompt.messages[-1].content)
        return "bears"

    made = retrieve({"s": "rewritten(history=20) >> bm25"}, talk(model=Scripted(reply)))
    assert "Fish and crabs." in shown[0]
    assert "What do otters eat?" not in shown[0]
    assert any("the oldest 1 message of the histories of 1 turn" in note for note in made.notes)


def test_samples_are_fused_and_cut() -> None:
    def reply(request: Request) -> ScriptedReply:
        return "otters winter"

    made = found("rewritten(n=3, temperature=0.8) >> bm25 % 2", talk(model=Scripted(reply)))
    assert len(made["o_2"]) == 2
    assert made["o_2"][0] == "otter-winter"


def test_results_depend_on_the_turns_and_the_prompt() -> None:
    context = talk(model=writes("bears"))
    step = Rewritten()
    shorter = replace(context.collection, turns=context.collection.turns.head(1))
    assert step.sources(context) != step.sources(replace(context, collection=shorter))
    assert any(source.startswith("rewrite@") for source in step.sources(context))
    assert step.models() == ("",)
    assert Rewritten(by="all").models() == ()


def test_human_rewrites_are_a_control() -> None:
    assert Pipeline.of('rewritten(by="human") >> bm25').is_control
    assert not Pipeline.of('rewritten(by="all") >> bm25').is_control
    assert Pipeline.of("rewritten >> bm25").asks_model
    assert not Pipeline.of('rewritten(by="all") >> bm25').asks_model


def test_re_rankers_see_the_search_text() -> None:
    shown: list[str] = []

    def reply(request: Request) -> ScriptedReply:
        shown.append(request.prompt.messages[-1].content)
        return "[1]"

    retrieve({"s": 'rewritten(by="human") >> bm25 >> listwise'}, talk(model=Scripted(reply)))
    assert any("Do otters hunt in winter?" in text for text in shown)
    assert not any("Conversation so far" in text for text in shown)
    shown.clear()
    retrieve({"s": "bm25 >> listwise"}, talk(model=Scripted(reply)))
    assert any("Conversation so far:\nUser: What do otters eat?" in text for text in shown)
