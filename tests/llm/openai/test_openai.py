"""Generating, scoring and choosing, against a model of which every probability is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ragworth.calls.budget import estimate_tokens, upper_bound_tokens
from ragworth.llm.contract import (
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    Prompt,
    PromptMessage,
    Score,
    Scored,
    Span,
)
from ragworth.llm.openai.model import OpenAIModel, open_model
from ragworth.llm.sampled import SampledModel
from tests.llm.openai import endpoint_toy as toy
from tests.llm.openai.endpoint import Endpoint, edited, status

CHAT = Prompt.chat("Is it so?", system="Be brief.")
CHAT_IDS = toy.encode("<|system|>Be brief.<|end|><|user|>Is it so?<|end|><|assistant|>", bos=True)
TEXT = Prompt.text("One, two")
TEXT_IDS = toy.encode("One, two", bos=True)
Opened = Callable[..., tuple[OpenAIModel, Endpoint]]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens a server and a model for it; closes both."""
    made: list[tuple[OpenAIModel, Endpoint]] = []

    def make(options: dict[str, Any] | None = None, **traits: Any) -> tuple[OpenAIModel, Endpoint]:
        server = Endpoint(**traits).__enter__()
        model = open_model(f"toy@{server.url}", **(options or {}))
        made.append((model, server))
        return model, server

    yield make
    for model, server in made:
        model.close()
        server.__exit__(None, None, None)


def generated(found: Generated | Failure) -> Generated:
    assert isinstance(found, Generated), found
    return found


def scored(found: Scored | Failure) -> Scored:
    assert isinstance(found, Scored), found
    return found


def chosen(found: Chosen | Failure) -> Chosen:
    assert isinstance(found, Chosen), found
    return found


def failed(found: object) -> Failure:
    assert isinstance(found, Failure), found
    return found


def truth(ids: list[int], text: str) -> list[float]:
    """The log-probabilities of a text's tokens after others."""
    after = toy.encode(text)
    return [toy.logprobs([*ids, *after[:i]])[token] for i, token in enumerate(after)]


@pytest.mark.parametrize("kind", ["openai", "vllm", "llamacpp"])
def test_greedy_texts_with_log_probabilities_and_bounds(opened: Opened, kind: str) -> None:
    model, server = opened(kind=kind)
    found = generated(model.generate([Generate(CHAT, max_tokens=3, detail="logprobs")])[0])
    ids = toy.generate(CHAT_IDS, 3).ids
    output = found.outputs[0]
    assert output.text == toy.decode(ids)
    assert output.trace is not None
    assert output.trace.logprobs == pytest.approx(truth(CHAT_IDS, output.text))
    assert output.trace.bounds is not None
    for i, (low, high) in enumerate(output.trace.bounds):
        assert low <= toy.entropy([*CHAT_IDS, *ids[:i]]) <= high
    assert output.trace.entropies is None
    assert found.usage[:2] == (len(CHAT_IDS), 3)
    assert 0 < found.usage.seconds < 5
    assert "seed" not in server.asked()[-1].body


def test_results_come_in_the_order_of_requests(opened: Opened) -> None:
    model, _ = opened()
    prompts = [f"question {i}" for i in range(30)]
    found = model.generate([Generate(Prompt.chat(prompt), max_tokens=2) for prompt in prompts])
    ids = [toy.encode(toy.template([{"role": "user", "content": prompt}]), bos=True) for prompt in prompts]
    assert [generated(one).outputs[0].text for one in found] == [toy.decode(toy.generate(one, 2).ids) for one in ids]
    assert model.generate([]) == []


def samples(seeds: list[int]) -> list[str]:
    return [toy.decode(toy.generate(CHAT_IDS, 4, 1.0, seed).ids) for seed in seeds]


@pytest.mark.parametrize(("several", "asked"), [(True, 1), (False, 5)])
def test_several_samples_even_where_only_one_comes_at_a_time(opened: Opened, several: bool, asked: int) -> None:
    model, server = opened(several=several)
    before = len(model.card.notes) and len(server.asked())
    found = generated(model.generate([Generate(CHAT, max_tokens=4, temperature=1.0, n=5, seed=7)])[0])
    assert [one.text for one in found.outputs] == samples([7, 8, 9, 10, 11])
    assert len(server.asked()) - before == asked
    assert found.usage[:2] == (asked * len(CHAT_IDS), 20)


def test_a_schema(opened: Opened) -> None:
    schema = '{"type": "object", "properties": {"ok": {"type": "boolean"}}}'
    model, _ = opened()
    assert generated(model.generate([Generate(CHAT, schema=schema)])[0]).outputs[0].text == '{"ok": true}'
    assert failed(model.generate([Generate(CHAT, schema="{")])[0]).reason == "refused"
    assert failed(model.generate([Generate(TEXT, schema=schema)])[0]).reason == "cannot"
    model, _ = opened(schema=False)
    assert failed(model.generate([Generate(CHAT, schema=schema)])[0])[:3] == (
        "cannot",
        "the endpoint does not follow JSON schemas, or not for plain texts",
        False,
    )


def test_what_cannot_be_had_is_refused_without_asking(opened: Opened) -> None:
    model, server = opened(top=0)
    before = len(model.card.notes) and len(server.asked())
    found = [
        *model.generate([Generate(CHAT, detail="entropies"), Generate(CHAT, detail="logprobs")]),
        *model.score([Score(CHAT, "Yes")]),
        *model.choose([Choose(CHAT, ("Yes", "No")), Choose(CHAT, ("Yes", "No"), "sequence")]),
    ]
    assert {(failed(one).reason, failed(one).retry) for one in found} == {("no-logprobs", False)}
    assert failed(model.choose([Choose(CHAT, ())])[0]).reason == "bad-label"
    assert model.count(CHAT) is None
    assert len(server.asked()) == before


def test_reasoning_in_front_of_an_answer(opened: Opened) -> None:
    model, server = opened()
    assert model.card

    def says(text: str, first: str = "<think>") -> Any:
        step = {"token": first, "logprob": -0.01, "top_logprobs": [{"token": first, "logprob": -0.01}]}
        choice = {"message": {"content": text}, "finish_reason": "length", "logprobs": {"content": [step]}}
        return edited(lambda value: value | {"choices": [choice]})

    server.script(
        says("<think>\nYes or no?\n</think>\n\nNo"), says("<think>\nYes or"), says("<think>"), says("<think>")
    )
    request = Generate(CHAT, max_tokens=20)
    assert generated(model.generate([request])[0]).outputs[0].text == "No"
    before = len(server.asked())
    assert failed(model.generate([request])[0]).reason == "no-text"
    assert failed(model.choose([Choose(CHAT, ("Yes", "No"))])[0]).reason == "reasons-first"
    assert len(server.asked()) == before + 3  # nothing is asked again in vain


@pytest.mark.parametrize("marks", [["<think>", "\n\n", "</think>", "\n\n"], ["<|channel|>", "final", "<|message|>"]])
def test_labels_after_marks_without_reasoning(opened: Opened, marks: list[str]) -> None:
    def step(token: str, *others: tuple[str, float]) -> Any:
        top = [{"token": name, "logprob": math.log(p)} for name, p in others or [(token, 1.0)]]
        return {"token": token, "logprob": -0.1, "top_logprobs": top}

    def says(*steps: Any) -> Any:
        choice = {"message": {"content": "No"}, "finish_reason": "length", "logprobs": {"content": list(steps)}}
        return edited(lambda value: value | {"choices": [choice]})

    model, server = opened()
    assert model.card
    server.script(
        says(step(marks[0])), says(*map(step, marks), step("No", ("No", 0.8), ("Yes", 0.1)), step("!", ("!", 0.9)))
    )
    found = chosen(model.choose([Choose(CHAT, ("Yes", "No"))])[0])
    assert found.probabilities == pytest.approx((0.1, 0.8))
    assert found.usage.new_tokens == 17


EXACT = [{"kind": "vllm"}, {"kind": "llamacpp"}]


@pytest.mark.parametrize("traits", EXACT)
def test_scores_are_exact(opened: Opened, traits: dict[str, Any]) -> None:
    model, _ = opened(**traits)
    chat, text, blank = map(scored, model.score([Score(CHAT, "Yes, é"), Score(TEXT, " four"), Score(TEXT, " x")]))
    assert chat.trace.logprobs == pytest.approx(truth(CHAT_IDS, "Yes, é"))
    assert chat.trace.tokens[:2] == ("Yes", ", ")
    assert chat.usage[:2] == (len(CHAT_IDS), 4)
    assert text.trace.logprobs == pytest.approx(truth(TEXT_IDS, " four"))
    assert text.usage[:2] == (len(TEXT_IDS), 1)
    assert blank.trace.tokens == (" ", "x")


@pytest.mark.parametrize("traits", EXACT)
def test_where_the_prompt_ends(opened: Opened, traits: dict[str, Any]) -> None:
    model, _ = opened(**traits)
    # The blank belongs to the token that follows; "Yes" and "terday" are one token together; nothing is nothing.
    moved = scored(model.score([Score(Prompt.text("One, two "), "four")])[0])
    assert moved.trace.tokens == (" four",)
    assert moved.trace.logprobs == pytest.approx(truth(TEXT_IDS, " four"))
    found = model.score([Score(Prompt.text("Yes"), "terday"), Score(CHAT, "")])
    assert [failed(one)[::2] for one in found] == [("boundary", False), ("empty-continuation", False)]


@pytest.mark.parametrize("traits", EXACT)
def test_labels_are_exact_where_tokens_are_told(opened: Opened, traits: dict[str, Any]) -> None:
    model, _ = opened(**traits)
    labels = ("Yes", "No", "zebra", "abc")
    found = chosen(model.choose([Choose(CHAT, labels)])[0])
    first = [math.exp(truth(CHAT_IDS, label)[0]) for label in labels]
    assert found.probabilities == found.low == found.high == pytest.approx(first)
    assert (found.estimator, found.usage[:2]) == ("first-token", (len(CHAT_IDS), 1))
    found = chosen(model.choose([Choose(TEXT, labels, "sequence")])[0])
    assert found.probabilities == pytest.approx([math.exp(sum(truth(TEXT_IDS, label))) for label in labels])
    assert found.estimator == "sequence"
    for alike in (Choose(CHAT, ("abc", "axe")), Choose(CHAT, ("ab", "abc"), "sequence")):
        assert failed(model.choose([alike])[0])[::2] == ("ambiguous-labels", False)


@pytest.mark.parametrize("prompt", [CHAT, TEXT])
def test_labels_have_bounds_where_tokens_are_not_told(opened: Opened, prompt: Prompt) -> None:
    model, _ = opened()
    ids = CHAT_IDS if prompt is CHAT else toy.encode("One, two")
    labels = ("Yes", "No", "zebra", "Maybe", "abc")
    found = chosen(model.choose([Choose(prompt, labels)])[0])
    true = [math.exp(truth(ids, label)[0]) for label in labels]
    bounds = zip(found.low, true, found.high, strict=True)
    assert all(low - 1e-12 <= value <= high + 1e-12 for low, value, high in bounds)
    assert found.mass == pytest.approx(sum(found.probabilities))
    assert failed(model.choose([Choose(prompt, labels, "sequence")])[0]).reason == "no-logprobs"


LONG = Prompt((PromptMessage("user", "Judge this: " + "word " * 200 + "End."),), (Span(0, 12, 1012),), "v")


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_prompts_that_are_too_long(opened: Opened, kind: str) -> None:
    model, server = opened(kind=kind, context=200)
    before = len(model.card.notes) and len(server.asked())
    found = [*model.generate([Generate(LONG, max_tokens=9)]), *model.score([Score(LONG, "Yes")])]
    assert {(failed(one).reason, failed(one).retry) for one in found} == {("too-long", False)}
    assert "tokens and 9 to come; the model reads 200" in failed(found[0]).detail
    assert len(server.asked()) == before


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_prompts_that_are_cut(opened: Opened, kind: str) -> None:
    model, server = opened({"on_long": "cut"}, kind=kind, context=200)
    found = generated(model.generate([Generate(LONG, max_tokens=9)])[0])
    sent = server.asked()[-1].body["messages"][0]["content"]
    assert sent.startswith("Judge this: word word")
    assert sent.endswith("End.")
    assert found.usage.cut == len(LONG.messages[0].content) - len(sent) > 0
    assert 180 <= found.usage.prompt_tokens + 9 <= 200
    assert scored(model.score([Score(LONG, "Yes")])[0]).usage.cut > 0
    assert chosen(model.choose([Choose(LONG, ("Yes", "No"))])[0]).usage.cut > 0
    hopeless = Prompt.chat("word " * 200)
    assert failed(model.generate([Generate(hopeless, max_tokens=9)])[0]).reason == "too-long"


@pytest.mark.parametrize("kind", ["openai", "vllm", "llamacpp"])
def test_further_fields_go_with_texts_and_templates(opened: Opened, kind: str) -> None:
    extra = {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 5}
    model, server = opened({"extra_body": extra}, kind=kind)
    generated(model.generate([Generate(CHAT, max_tokens=1)])[0])
    assert all(extra.items() <= one.body.items() for one in server.asked() if one.path.endswith("chat/completions"))
    if kind != "openai":
        scored(model.score([Score(CHAT, "Yes")])[0])
        chats = [one.body for one in server.seen if one.body and "messages" in one.body and one.number < 0]
        assert chats and all(one["chat_template_kwargs"] == extra["chat_template_kwargs"] for one in chats)


def test_room_for_reasoning(opened: Opened) -> None:
    model, server = opened({"reasoning_tokens": 500})
    request = Generate(CHAT, max_tokens=4, n=2, temperature=1.0)
    generated(model.generate([request])[0])
    assert server.asked()[-1].body["max_tokens"] == 504
    assert estimate_tokens(request, model).written == 1008
    assert upper_bound_tokens(request, model).written == 1008
    assert SampledModel(model, samples=3, max_tokens=5).choice_tokens == 3 * 505
    assert "reasoning_tokens=500" in model.partial.revision


def test_a_withheld_label_has_no_probability(opened: Opened) -> None:
    model, server = opened()
    assert model.card
    server.script(
        edited(
            lambda value: value | {"choices": [one | {"finish_reason": "content_filter"} for one in value["choices"]]}
        )
    )
    assert failed(model.choose([Choose(CHAT, ("Yes", "No"))])[0])[::2] == ("refused", False)


@pytest.mark.parametrize("blank", [" ", "\n", "▁", "Ġ"])
def test_labels_after_a_blank(opened: Opened, blank: str) -> None:
    model, server = opened()
    assert model.card
    top = [{"token": f"{blank}{label}", "logprob": math.log(p)} for label, p in (("No", 0.7), ("Yes", 0.2))]
    step = {"token": top[0]["token"], "logprob": math.log(0.7), "top_logprobs": top}
    choice = {"message": {"content": " No"}, "finish_reason": "length", "logprobs": {"content": [step]}}
    server.script(edited(lambda value: value | {"choices": [choice]}))
    found = model.choose([Choose(CHAT, ("Yes", "No"))])[0]
    assert isinstance(found, Chosen) and found.probabilities == pytest.approx((0.2, 0.7))


def test_greedy_repeats_are_asked_for_once(opened: Opened) -> None:
    model, server = opened()
    before = len(model.card.notes) and len(server.asked())
    found = generated(model.generate([Generate(CHAT, max_tokens=2, n=4)])[0])
    assert len(set(found.outputs)) == 1
    assert len(found.outputs) == 4
    assert len(server.asked()) == before + 1


def test_a_server_that_refuses_several(opened: Opened) -> None:
    model, server = opened()
    assert model.card
    server.script(status(400, "n must be 1"))
    before = len(server.asked())
    for _ in range(2):
        found = generated(model.generate([Generate(CHAT, max_tokens=4, temperature=1.0, n=3)])[0])
        assert [one.text for one in found.outputs] == samples([0, 1, 2])
    assert len(server.asked()) == before + 1 + 3 + 3, "it is asked for several once"
