"""Replies: what they say, in whichever form, and no reply that can do harm."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.llm.contract import Generate, Prompt, PromptMessage, Span
from ragworth.llm.openai.probe import read_model_list
from ragworth.llm.openai.replies import (
    EndpointError,
    error_for_status,
    one_line,
    parse_reply,
    read_choices,
    read_counts,
)
from ragworth.llm.openai.requests import RequestFormat, as_text_prompt, request_body

PROMPT = Prompt((PromptMessage("system", "Be brief."), PromptMessage("user", "Hello")), (Span(1, 1, 3),), "v1")
SCHEMA = '{"type": "object"}'


def test_a_greedy_chat_has_neither_seed_nor_top_p() -> None:
    fields = request_body("m", Generate(PROMPT, max_tokens=7, stop=("\n",)), RequestFormat(True), seed=3, n=1)
    assert fields == {
        "model": "m",
        "max_tokens": 7,
        "temperature": 0.0,
        "stop": ["\n"],
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
    }


def test_a_sampled_chat_has_everything() -> None:
    request = Generate(PROMPT, temperature=0.5, top_p=0.9, schema=SCHEMA)
    fields = request_body("m", request, RequestFormat(True, "max_completion_tokens", 5, {"top_k": 0}), seed=3, n=2)
    expected = {"seed": 3, "top_p": 0.9, "n": 2, "logprobs": True, "top_logprobs": 5, "top_k": 0}
    assert expected.items() <= fields.items()
    assert fields["max_completion_tokens"] == 256
    assert fields["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert "max_tokens" not in fields


def test_a_chat_without_an_interface_for_chats_becomes_paragraphs() -> None:
    text = as_text_prompt(PROMPT)
    assert text.messages == (PromptMessage("text", "Be brief.\n\nHello\n\n"),)
    span = text.passages[0]
    assert text.messages[0].content[span.start : span.end] == "el"
    assert request_body("m", Generate(PROMPT), RequestFormat(False, top=4), seed=0, n=1)["logprobs"] == 4


def chat(**changes: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"} | changes
    return {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}


def test_a_chat() -> None:
    assert read_choices(chat())[0][:2] == ("Hi", "stop")
    assert read_counts(chat()) == (3, 1)


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29}, (9, 20)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 111}, (9, 102)),  # as Gemini counts
        ({"prompt_tokens": 9, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 50}}, (9, 52)),
        ({"prompt_tokens": 9, "completion_tokens": 60, "completion_tokens_details": {"reasoning_tokens": 50}}, (9, 60)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "completion_tokens_details": None, "total_tokens": -4}, (9, 2)),
        ({"total_tokens": 30}, (0, 0)),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 111}
            | {"prompt_tokens_details": {"cached_tokens": 100}},
            (9, 2),
        ),
    ],
)
def test_hidden_reasoning_counts(usage: Any, counts: tuple[int, int]) -> None:
    assert read_counts(chat() | {"usage": usage}) == counts


def test_log_probabilities_in_both_forms_are_the_same() -> None:
    entry = {"token": "Hi", "logprob": -0.5, "top_logprobs": [{"token": "Hi", "logprob": -0.5}]}
    new = read_choices(chat(logprobs={"content": [entry]}))[0].steps
    old = {"tokens": ["Hi"], "token_logprobs": [-0.5], "top_logprobs": [{"Hi": -0.5}]}
    assert new == read_choices({"choices": [{"text": "Hi", "logprobs": old}]})[0].steps
    assert new is not None
    assert new[0].token == ("Hi", -0.5, None)


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        ([], "malformed", "the reply is a list, not an object"),
        ({}, "malformed", "the field 'choices' is missing or null, not a list"),
        ({"choices": []}, "malformed", "no choices"),
        ({"choices": ["Hi"]}, "malformed", "a choice is a string"),
        ({"choices": [{}]}, "malformed", "'message' is missing"),
        (chat(message={"content": None}), "malformed", "is missing or null, not a string"),
        (chat(message={"content": 7}), "malformed", "is a number, not a string"),
        (chat(message={"content": None, "reasoning_content": "hm"}), "no-text", "only reasoning"),
        (chat(message={"content": "", "reasoning": "hm"}), "no-text", "only reasoning"),
        (chat(message={"content": [{"type": "thinking", "thinking": []}]}), "no-text", "only reasoning"),
        (
            chat(message={"content": ""}) | {"usage": {"completion_tokens_details": {"reasoning_tokens": 9}}},
            "no-text",
            "only reasoning",
        ),
        (
            chat(message={"role": "assistant"}, finish_reason="length")
            | {"usage": {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 41}},
            "no-text",
            "only reasoning",
        ),
        (chat(message={"content": [{"type": "reasoning", "summary": []}]}), "no-text", "only reasoning"),
        (chat(message={"content": None, "reasoning_details": [{"text": "hm"}]}), "no-text", "only reasoning"),
        (chat(message={"content": ["Hi"]}), "malformed", "a part of the text is a string"),
        (chat(message={"content": "", "refusal": "no"}), "refused", "refused to answer"),
        (chat(message={"content": None, "refusal": "no"}), "refused", "refused to answer"),
        (chat(message={"content": ""}, finish_reason="content_filter"), "refused", "content filter"),
        (chat(message={"content": None}, finish_reason="CONTENT_FILTER"), "refused", "content filter"),
        (chat(finish_reason="error"), "server-error", "gave up on the output: error"),
        (chat(finish_reason="abort"), "server-error", "abort"),
        (chat(finish_reason=None, error={"code": 502, "message": "upstream\ndied"}), "server-error", "upstream died"),
        (chat() | {"error": "no memory"}, "server-error", "no memory"),
        (chat(logprobs=[1]), "malformed", "logprobs is a list"),
        (chat(logprobs={"content": [7]}), "malformed", "a token is a number"),
        (chat(logprobs={"content": [{"token": "a", "logprob": "x"}]}), "malformed", "a log-probability is a string"),
        (chat(logprobs={"content": [{"token": "a", "logprob": 0.7}]}), "malformed", "not a number below 0"),
        (chat(logprobs={"content": [{"token": "a", "logprob": math.nan}]}), "malformed", "not a number below 0"),
        (chat(logprobs={"tokens": ["a"], "token_logprobs": []}), "malformed", "not of one length"),
    ],
)
def test_what_a_reply_must_not_be(value: Any, reason: str, detail: str) -> None:
    with pytest.raises(EndpointError) as caught:
        read_choices(value)
    assert caught.value.failure.reason == reason
    assert detail in caught.value.failure.detail
    assert caught.value.failure.retry == (reason in ("malformed", "server-error"))


def test_a_text_in_parts_is_joined_without_its_reasoning() -> None:
    parts = [
        {"type": "thinking", "thinking": "12?"},
        {"type": "text", "text": "36 "},
        {"type": "text", "text": "months"},
    ]
    assert read_choices(chat(message={"content": parts}))[0].text == "36 months"


@pytest.mark.parametrize(
    ("given", "finish"),
    [
        *((word, "length") for word in ("MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded")),
        *((word, "length") for word in ("SAFETY", "refusal", "timeout", "insufficient_system_resource", "x" * 99)),
        *((word, "stop") for word in ("STOP", "eos", "eos_token", "end_turn", "stop_sequence")),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"),
        (None, "unknown"),
        ("", "unknown"),
        (7, "unknown"),
    ],
)
def test_why_an_output_ended(given: Any, finish: str) -> None:
    assert read_choices(chat(finish_reason=given))[0].finish == finish


@given(st.binary(max_size=60), st.integers(300, 599))
def test_no_text_does_harm(data: bytes, status: int) -> None:
    text = data.decode("utf-8", "replace")
    try:
        parse_reply(text, str)
    except EndpointError as caught:
        assert caught.failure.detail.isprintable()
    failure = error_for_status(status, text, str).failure
    assert failure.detail.isprintable()
    assert len(failure.detail) <= 300


@pytest.mark.parametrize(
    ("status", "words", "reason", "retry"),
    [
        (400, "bad", "refused", False),
        (400, "This model's maximum context length is 4096 tokens.", "too-long", False),
        (500, "the request exceeds the available context size", "too-long", False),
        (400, "prompt is too long: 208310 tokens > 200000 maximum", "too-long", False),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed", "too-long", False),
        (400, "Could not finish the message because max_tokens or model output limit was reached.", "no-text", False),
        (401, "no", "unauthorised", False),
        (402, "Insufficient Balance", "rate-limited", True),
        (403, "no", "unauthorised", False),
        (404, "no", "refused", False),
        (408, "late", "timed-out", True),
        (413, "large", "too-long", False),
        (429, "slow down", "rate-limited", True),
        (500, "oops", "server-error", True),
        (501, "what?", "refused", False),
        (503, "loading", "server-error", True),
        (302, "", "refused", False),
    ],
)
def test_what_a_status_means(status: int, words: str, reason: str, retry: bool) -> None:
    said = {"error": {"message": words}}
    for text in (words, json.dumps(said), json.dumps([said]), json.dumps({"detail": words})):
        failure = error_for_status(status, text, str).failure
        assert (failure.reason, failure.retry) == (reason, retry)
        assert failure.detail == (f"HTTP {status}: {words}" if words else f"HTTP {status}") or status == 302


def test_words_of_others_are_made_harmless() -> None:
    assert one_line("a\x1b[31m\n\tb\u202e" + "c" * 500, 20) == "a [31m b " + "c" * 10 + "…"


def test_the_list_of_models() -> None:
    vllm = {"data": [{"id": "a"}, {"id": "m", "owned_by": "vllm", "max_model_len": 4096}]}
    found = read_model_list(vllm, "m")
    assert (found.names, found.context_length, found.is_vllm) == (("a", "m"), 4096, True)
    meta = {"n_vocab": 9, "n_ctx_train": 8192, "n_ctx": 512, "ftype": "Q4_1"}
    found = read_model_list({"data": [{"id": "x.gguf", "owned_by": "llamacpp", "meta": meta}]}, "m")
    assert (found.owner, found.context_length, found.vocabulary, found.quantisation) == ("llamacpp", 512, 9, "Q4_1")
    assert read_model_list({"data": [{"id": "a"}, {"id": "b"}]}, "m").owner == "", "another model's facts are not ours"


def shown(*values: Any) -> Any:
    top = [{"token": f"t{i}", "logprob": value} for i, value in enumerate(values)]
    return chat(logprobs={"content": [{"token": "t0", "logprob": -0.5, "top_logprobs": top}]})


def listed(**values: Any) -> Any:
    old = {"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": [values]}
    return {"choices": [{"text": "a", "logprobs": old}]}


@pytest.mark.parametrize(
    "value",
    [
        shown(0, 0),
        shown(*[0.0] * 20),
        shown(-math.inf, -math.inf),
        shown(-9999, -9999, -9999),
        shown(math.log(0.6), math.log(0.6)),
        shown(-0.1, math.nan),
        shown(-0.1, math.inf),
        shown(0.2, -3),
        shown(-0.1, -(10**400)),
        shown(-0.1, 10**400),
        shown(-0.1, True),
        listed(a=0, b=0),
        listed(a=-math.inf, b=-math.inf),
        chat(logprobs={"content": [{"token": "a", "logprob": -math.inf}]}),
        chat(logprobs={"content": [{"token": "a", "logprob": -(10**400)}]}),
        chat(logprobs={"content": [{"token": "a", "logprob": -1}] * 200_001}),
        shown(*[-9.0] * 1001),
        {"choices": [{"text": "a", "logprobs": {"tokens": ["a"], "token_logprobs": [-math.inf]}}]},
    ],
)
def test_distributions_that_none_can_be(value: Any) -> None:
    with pytest.raises(EndpointError) as caught:
        read_choices(value)
    assert caught.value.failure.reason == "malformed"
    assert caught.value.failure.retry
    assert read_choices(value, shown=False)[0].text in ("Hi", "a"), "the text is kept where nobody asked for more"


@pytest.mark.parametrize(
    "value",
    [
        shown(0.0, -9999.0, -9999.0),
        shown(0.0, -math.inf),
        shown(0.0, -3.4028234663852886e38),
        shown(0.0),
        shown(-18.0),
        shown(math.log(0.7 * 1.001), math.log(0.3 * 1.001)),
        shown(0.005, -7.0),
        shown(*[-math.log(300_000)] * 20),
        shown(),
        listed(a=-0.1, b=-9999),
    ],
)
def test_distributions_that_are_only_rounded(value: Any) -> None:
    steps = read_choices(value)[0].steps
    assert steps is not None
    assert len(steps) == 1


def test_half_a_character_is_replaced() -> None:
    assert read_choices(chat(message={"content": "a\ud800é\U0001f600"}))[0].text == "a\ufffdé\U0001f600"


def test_a_table_that_lost_tokens_is_not_shown_at_all() -> None:
    old = {"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": [{"a": -1, "\ufffd": -2}]}
    steps = read_choices({"choices": [{"text": "Hi", "logprobs": old}]})[0].steps
    assert steps is not None
    assert steps[0].top == ()
