"""Answers from contexts, from none and from the oracle's: what is asked, what is kept, what is said of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ragworth
from ragworth.calls.programs import NoValue
from ragworth.core.errors import InputError, ModelError, PromptError
from ragworth.judging.answers import AnsweringResult
from ragworth.judging.oracle import OracleSelector
from ragworth.judging.text_lookup import TextLookup
from ragworth.llm.contract import Failure, Generate, Generated, Output, Request, Usage
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.text_match.sentences import parse_citations

PASSAGES = {"a": "Ann built the mill.", "b": "The mill is old.", "c": "Ducks swim here.", "e": "  "}
TEXTS = ragworth.Collection.of(
    queries={"query": ["q1", "q2"], "text": ["Who built the mill?", "Who swims?"]},
    passages={"passage": list(PASSAGES), "text": list(PASSAGES.values())},
    relevance={"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"c": 1}},
)
RATED = ragworth.Collection.of(
    queries=TEXTS.queries,
    passages=TEXTS.passages,
    # q1: b answers x, y and w and goes first, a answers z besides x. q2: c alone.
    ratings={
        "query": ["q1"] * 8 + ["q2"],
        "passage": ["a"] * 4 + ["b"] * 4 + ["c"],
        "subquestion": ["x", "y", "z", "w", "x", "y", "z", "w", "x"],
        "rating": [5, 0, 3, 0, 4, 3, 0, 3, 3],
    },
)
RUN = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"c": 1.0}}


class Heard:
    """A model that says the same to everything and remembers what it was asked."""

    def __init__(self, says: Callable[[Generate], ScriptedReply] = lambda request: "Ann", **more: Any) -> None:
        self.asked: list[Generate] = []

        def script(request: Request) -> ScriptedReply:
            assert isinstance(request, Generate)
            self.asked.append(request)
            return says(request)

        self.model = Scripted(script, **more)

    @property
    def users(self) -> list[str]:
        """What the user's turns say."""
        return [request.prompt.messages[-1].content for request in self.asked]


def answered(
    contexts: Any = RUN, collection: ragworth.Collection = TEXTS, model: Any = None, **more: Any
) -> AnsweringResult:
    return ragworth.answer(contexts, collection, model or Heard().model, **more)


def test_an_answer_for_every_system_and_query() -> None:
    heard = Heard()
    made = answered(model=heard.model, k=2)
    assert made.table.frame.select("system", "query", "repeat", "text", "tokens", "status").rows() == [
        ("run", "q1", 0, "Ann", 1, "ok"),
        ("run", "q2", 0, "Ann", 1, "ok"),
    ]
    assert sorted(re.sub(r"\b[0-9a-f]{6}\b", "CODE", user) for user in heard.users) == [
        "Question: Who built the mill?\n\n<passage 1 CODE>\nAnn built the mill.\n</passage 1 CODE>\n\n"
        "<passage 2 CODE>\nThe mill is old.\n</passage 2 CODE>\n\nQuestion: Who built the mill?",
        "Question: Who swims?\n\n<passage 1 CODE>\nDucks swim here.\n</passage 1 CODE>\n\nQuestion: Who swims?",
    ]
    assert all((one.temperature, one.seed, one.max_tokens) == (0.0, 0, 256) for one in heard.asked)
    assert made.frame["shown"].to_list() == [["a", "b"], ["c"]]
    assert made.frame["seed"].to_list() == [None, None]
    assert made.contexts.frame.select("system", "query", "rank", "passage").rows() == [
        ("run", "q1", 1, "a"),
        ("run", "q1", 2, "b"),
        ("run", "q2", 1, "c"),
    ]
    assert made.frame["source"][0].startswith("scripted · answer@")
    assert made.frame["source"][0].endswith(" · k 2")
    assert made.notes == ()


def test_without_context_and_with_the_oracles() -> None:
    heard = Heard()
    made = answered(model=heard.model, k=1, without=True, oracle=True)
    assert made.frame.select("system", "query", "shown").rows() == [
        ("run", "q1", ["a"]),
        ("run", "q2", ["c"]),
        ("(none)", "q1", []),
        ("(none)", "q2", []),
        ("(oracle)", "q1", ["a", "b"]),  # k is for systems; the oracle has all that is relevant, best first
        ("(oracle)", "q2", ["c"]),
    ]
    assert "Question: Who built the mill?" in heard.users
    assert made.frame["source"][2].startswith("scripted · answer-alone@")
    assert made.frame["source"][4].endswith(" · oracle by relevance")
    # (oracle) and run show the same for q2: one call for both.
    assert heard.model.calls == 5
    assert made.contexts.systems == ["run", "(oracle)", "(none)"]
    assert made.contexts.empty == {("(none)", "q1"), ("(none)", "q2")}


def test_only_without_or_oracle_goes_over_all_queries() -> None:
    made = answered(None, without=True)
    assert made.frame["query"].to_list() == ["q1", "q2"]
    made = answered(None, oracle=True, level=2)
    assert made.frame.select("query", "status", "shown").rows() == [("q1", "ok", ["a"]), ("q2", "no-relevant", None)]
    assert made.notes == ("1 of 2 answers have a text; without one: no-relevant 1",)
    assert answered(None, oracle=True, oracle_k=1).frame["shown"].to_list() == [["a"], ["c"]]


def test_the_required_subset_in_the_order_chosen() -> None:
    # b answers three sub-questions (ratings of 3 and above), then a adds z.
    made = answered(None, RATED, oracle=True)
    assert made.frame["shown"].to_list() == [["b", "a"], ["c"]]
    assert made.frame["source"][0].endswith("oracle by ratings")
    # At 4 only x is answered, by both; the tie goes to the first one rated.
    assert answered(None, RATED, oracle=True, eta=4).frame["shown"].to_list() == [["a"], None]
    both = ragworth.Collection(**{**TEXTS.__dict__, "ratings": RATED.ratings})
    assert answered(None, both, oracle=True, oracle_by="relevance").frame["shown"].to_list() == [["a", "b"], ["c"]]


def test_where_the_oracle_does_not_know() -> None:
    assert RATED.ratings is not None
    status = pl.when(pl.col("query") == "q1").then(pl.lit("refused")).otherwise(pl.lit("ok"))
    value = pl.when(pl.col("query") == "q1").then(None).otherwise(pl.col("value"))
    failed = ragworth.Collection.of(
        ratings=RATED.ratings.frame.with_columns(status.alias("status"), value.alias("value"))
    )
    oracle = OracleSelector(TextLookup(failed))
    assert oracle.passages("q2") == ("c",)
    for query, reason in (("q1", "unjudged"), ("q3", "no-ratings")):
        with pytest.raises(NoValue) as caught:
            oracle.passages(query)
        assert caught.value.status == reason
    with pytest.raises(NoValue) as caught:
        OracleSelector(TextLookup(RATED), eta=6).passages("q1")
    assert caught.value.status == "no-answerable"


def test_k_and_length_tied_to_the_oracle() -> None:
    heard = Heard(lambda request: "one two three four five six seven eight nine")
    run = {"q1": {"c": 3.0, "b": 2.0, "a": 1.0}, "q2": {"a": 2.0, "c": 1.0}}
    made = answered(run, RATED, heard.model, k="oracle", length="oracle")
    # |Z*| is 2 for q1 (b, a) and 1 for q2 (c); a scripted model counts words: 4 + 4 and 3.
    assert made.frame["shown"].to_list() == [["c", "b"], ["a"]]
    assert made.frame["tokens"].to_list() == [8, 3]
    assert made.frame["status"].to_list() == ["truncated", "truncated"]
    assert made.notes == (
        "2 answers ended at the greatest length (truncated)",
        "as many passages are shown as the oracle's context has",
        "answers may be as long as the oracle's context, counted in tokens of scripted",
    )
    assert "length of the oracle in tokens of scripted" in made.frame["source"][0]


def test_lengths_in_words_where_the_model_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(lambda request: "one two three four five six seven eight nine ten eleven twelve")
    count = heard.model.count
    # It counts prompts for itself, but tells nobody how long a text is.
    monkeypatch.setattr(
        heard.model, "count", lambda prompt: None if prompt.messages[0].role == "text" else count(prompt)
    )
    made = answered({"q1": {"a": 1.0}}, RATED, heard.model, length="oracle")
    # Four words and a full stop in each of the two passages.
    assert heard.asked[0].max_tokens == 10
    assert made.notes[-1].endswith("counted in words and punctuation marks")


def test_repeats_have_seeds_of_their_own() -> None:
    heard = Heard(lambda request: f"seed {request.seed}")
    made = answered({"q1": {"a": 1.0}}, model=heard.model, repeats=3, temperature=0.3, seed=7)
    assert made.frame.select("repeat", "text", "seed").rows() == [(0, "seed 7", 7), (1, "seed 8", 8), (2, "seed 9", 9)]
    assert all(one.temperature == 0.3 for one in heard.asked)
    assert "temperature 0.3" in made.frame["source"][0]
    with pytest.raises(InputError, match="3 greedy answers to a question are all the same"):
        answered(repeats=3)


def test_orders() -> None:
    ids = [f"p{n}" for n in range(8)]
    many = ragworth.Collection.of(queries=TEXTS.queries, passages={"passage": ids, "text": [f"Text {n}." for n in ids]})
    run = {"q1": {name: 9.0 - n for n, name in enumerate(ids)}, "q2": {name: 9.0 - n for n, name in enumerate(ids)}}
    assert answered(run, many, order="reversed").frame["shown"].to_list() == [ids[::-1]] * 2
    first, second = answered(run, many, order="shuffled").frame["shown"].to_list()
    assert sorted(first) == sorted(second) == ids
    assert first != second  # drawn for each query
    assert answered(run, many, order="shuffled").frame["shown"].to_list() == [first, second]
    assert answered(run, many, order="shuffled", seed=1).frame["shown"].to_list() != [first, second]
    assert answered(run, many, order="reversed").frame["source"][0].endswith("reversed")


def test_a_system_that_shows_nothing_still_answers() -> None:
    heard = Heard(lambda request: "NO-RESPONSE")
    contexts = ragworth.Contexts(
        {"system": ["x", "y"], "query": ["q1", "q2"], "passage": ["a", "c"], "score": [1.0, 1.0]}, empty=[("x", "q2")]
    )
    made = answered(contexts, model=heard.model)
    # y has no row for q1, and x says that it has nothing for q2: both are asked without passages.
    assert made.frame.select("system", "query", "shown").rows() == [
        ("x", "q1", ["a"]),
        ("x", "q2", []),
        ("y", "q1", []),
        ("y", "q2", ["c"]),
    ]
    assert "Question: Who swims?\n\nQuestion: Who swims?" in heard.users
    assert heard.asked[0].prompt.version == heard.asked[-1].prompt.version
    assert made.notes == ("2 answers from contexts that have no passages, asked with the same prompt",)


@pytest.mark.parametrize(
    ("run", "status"),
    [
        ({"q1": {"a": 2.0, "e": 1.0}}, "empty-passage"),
        ({"q1": {"a": 2.0, "z": 1.0}}, "no-passage-text"),
        ({"q9": {"a": 2.0}}, "no-query-text"),
    ],
)
def test_texts_that_are_not_there(run: Any, status: str) -> None:
    heard = Heard()
    made = answered(run, model=heard.model)
    assert made.table.frame.select("text", "status").rows() == [(None, status)]
    assert heard.asked == []
    assert made.notes == (f"0 of 1 answer has a text; without one: {status} 1",)


def test_a_rank_that_nobody_listed() -> None:
    gap = ragworth.Contexts({"query": ["q1", "q1"], "passage": ["a", "b"], "rank": [1, 3]})
    made = answered(gap)
    assert made.frame.select("status", "reason").rows() == [
        ("no-passage-text", "nothing says which passage has rank 2"),
    ]
    assert answered(gap, k=1).frame["status"].to_list() == ["ok"]


@pytest.mark.parametrize("reason", ["timed-out", "refused", "server-error"])
def test_failures_are_statuses(reason: str) -> None:
    model = Scripted(lambda request: Failure(reason, "no luck"))
    made = answered(model=model)
    assert made.frame.select("text", "tokens", "status", "reason").rows() == [(None, None, reason, "no luck")] * 2
    assert len(ragworth.Answers(made.table.frame)) == 2


def test_empty_and_withheld_answers() -> None:
    made = answered(model=Scripted({"*": " \n"}))
    assert made.table.frame["status"].to_list() == ["empty-answer", "empty-answer"]

    class Withholding(Scripted):
        def generate(self, requests: Any) -> Any:
            return [Generated((Output("The", "content_filter"),), Usage(1, 1, 0.0)) for _ in requests]

    assert answered(model=Withholding({})).frame["status"].to_list() == ["refused", "refused"]


def test_contexts_that_are_too_long_are_refused_or_cut_and_said_to_be() -> None:
    made = answered({"q1": {"a": 1.0}}, model=Scripted({"*": "Ann"}, context_length=60), length=50)
    assert made.frame["status"].to_list() == ["too-long"]
    assert "the model reads 60" in made.frame["reason"][0]

    class Cutting(Scripted):
        def generate(self, requests: Any) -> Any:
            return [
                replace_usage(one, cut=12) if isinstance(one, Generated) else one for one in super().generate(requests)
            ]

    def replace_usage(made: Generated, **more: Any) -> Generated:
        return made._replace(usage=made.usage._replace(**more))

    model = Cutting({"*": "Ann"})
    model.card = replace(model.card, cuts=True)
    made = answered(model=model)
    assert made.frame["cut"].to_list() == [12, 12]
    assert made.frame["status"].to_list() == ["ok", "ok"]
    assert made.notes == ("2 answers from passages that were cut to fit (24 characters in all)",)


def test_citations_are_ids() -> None:
    says = "Ann built it [1]. It is old [2, 1][7]."
    made = answered({"q1": {"a": 3.0, "b": 2.0}}, model=Scripted({"*": says}), prompt="answer-cited", order="reversed")
    assert made.frame.select("shown", "cited", "strays").rows() == [(["b", "a"], ["b", "a"], 1)]
    assert made.frame["text"][0] == says
    assert made.notes == ("1 citation in 1 answer of a passage that was not shown",)
    assert made.frame["source"][0].startswith("scripted · answer-cited@")


@pytest.mark.parametrize(
    ("text", "cited", "strays"),
    [
        ("no marks", (), 0),
        ("[1]", ("a",), 0),
        ("x [ 3 ] y [1]", ("c", "a"), 0),
        ("[1-3]", ("a", "b", "c"), 0),
        ("[2–3; 1]", ("b", "c", "a"), 0),
        ("[Passage 2]", ("b",), 0),
        ("[0] [4] [3-1]", ("c", "a"), 2),
        ("[1999]", (), 1),
        ("[note] [1.5] [a1] (2)", (), 0),
        ("[1-9999]", ("a",), 1),
    ],
)
def test_forms_of_citations(text: str, cited: tuple[str, ...], strays: int) -> None:
    assert parse_citations(text, ["a", "b", "c"]) == (cited, strays)


def test_prompts_by_name_or_file(tmp_path: Path) -> None:
    own = tmp_path / "mine.txt"
    own.write_text("[user]\n{{#passages}}<{{id}}|{{rank}}|{{number}}> {{text*}}\n{{/passages}}{{query}}\n")
    heard = Heard()
    answered({"q1": {"a": 3.0, "b": 2.0}}, model=heard.model, prompt=str(own), order="reversed")
    assert heard.users == ["<b|2|1> The mill is old.\n<a|1|2> Ann built the mill.\nWho built the mill?"]
    assert len(heard.asked[0].prompt.passages) == 2
    heard = Heard()
    made = answered(model=heard.model, prompt="answer-long", without=True)
    assert "answer-long@" in made.frame["source"][0]
    assert "answer-long-alone@" in made.frame["source"][-1]
    made = answered(without=True, prompt="answer-cited")
    assert "answer-alone@" in made.frame["source"][-1]
    (tmp_path / "answer-alone.txt").write_text("[user]\n{{query}} {{#passages}}!{{/passages}}\n")
    heard = Heard()
    answered(None, model=heard.model, without=True, prompts=tmp_path, limit=1)
    assert heard.users == ["Who built the mill?"]
    with pytest.raises(PromptError, match="no slot for passages"):
        answered(prompt="answer-alone")
    with pytest.raises(PromptError, match="unknown prompt 'nonsense'"):
        answered(prompt="nonsense")


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"order": "random"}, "order is 'random'"),
        ({"k": 0}, "k is 0"),
        ({"k": True}, "k is True"),
        ({"limit": -1}, "limit is -1"),
        ({"sample": 0}, "sample is 0"),
        ({"nonsense": 1}, "answer has no setting nonsense"),
        ({"oracle_by": "ratings", "oracle": True}, "needs ratings, but there is none"),
        ({"k": "oracle", "oracle_by": "ratings"}, "needs ratings, but there is none"),
    ],
)
def test_bad_settings(settings: dict[str, Any], found: str) -> None:
    with pytest.raises(InputError, match=found):
        answered(**settings)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="nothing to answer from"):
        answered(None)
    with pytest.raises(InputError, match=r"called '\(none\)' already"):
        answered(ragworth.Contexts(RUN, system="(none)"), without=True)
    with pytest.raises(ModelError, match="the model is '3'"):
        answered(model=3)
    with pytest.raises(ModelError, match="cannot generate"):
        answered(model=Scripted({}, abilities=("choose",)))
