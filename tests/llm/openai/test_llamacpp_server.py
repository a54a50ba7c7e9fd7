"""A real server: llama.cpp's, out of the package xllamacpp, with a real model of 135 million weights."""

from __future__ import annotations

import json
import math
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from ragworth.llm.contract import (
    Choose,
    Chosen,
    Generate,
    Generated,
    Prompt,
    Score,
    Scored,
)
from ragworth.llm.embedded import weights_file
from ragworth.llm.openai.model import OpenAIModel, open_model

pytestmark = [pytest.mark.server, pytest.mark.model]
CHAT = Prompt.chat("Answer with Yes or No: is Paris in France?")
TEXT = Prompt.text("The capital of France is")
CONTEXT = 256


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server that runs for this module."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights_file())
    parameters.n_ctx, parameters.n_parallel, parameters.port = 2 * CONTEXT, 2, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.verbosity = -1
    server = xllamacpp.Server(parameters)
    yield server.listening_address
    del server


@pytest.fixture(scope="module")
def model(url: str) -> Iterator[OpenAIModel]:
    model = open_model(f"smollm2@{url}", on_long="cut")
    yield model
    model.close()


def native(url: str, path: str, body: dict[str, Any]) -> Any:
    """What the server itself says, by another way than ours."""
    request = urllib.request.Request(f"{url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.load(reply)


def distribution(url: str, ids: list[int]) -> dict[int, float]:
    """The log-probabilities of all tokens that can come next."""
    body = {"prompt": ids, "n_predict": 1, "n_probs": 1_000_000, "temperature": 0}
    top = native(url, "/completion", body)["completion_probabilities"][0]["top_logprobs"]
    return {one["id"]: one["logprob"] for one in top}


def ids_of(url: str, text: str) -> list[int]:
    body = {"content": text, "add_special": True, "parse_special": True}
    found: list[int] = native(url, "/tokenize", body)["tokens"]
    return found


def template(url: str) -> str:
    messages = [{"role": one.role, "content": one.content} for one in CHAT.messages]
    return str(native(url, "/apply-template", {"messages": messages})["prompt"])


def test_tokens_are_counted_as_the_server_does_and_bos_is_there_once(model: OpenAIModel, url: str) -> None:
    reply = model.generate([Generate(CHAT, max_tokens=1)])[0]
    assert isinstance(reply, Generated)
    ids = ids_of(url, template(url))
    assert model.count(CHAT) == reply.usage.prompt_tokens == len(ids)
    assert ids[0] == 1, "<|im_start|>, which is BOS too"
    assert ids[1] != 1
    assert model.count(TEXT) == 5


def test_log_probabilities_and_bounds_are_those_of_the_whole_distribution(model: OpenAIModel, url: str) -> None:
    found = model.generate([Generate(TEXT, max_tokens=2, detail="logprobs")])[0]
    assert isinstance(found, Generated)
    trace = found.outputs[0].trace
    assert trace is not None
    assert "".join(trace.tokens) == found.outputs[0].text == " Paris."
    whole = distribution(url, ids_of(url, "The capital of France is"))
    assert math.fsum(map(math.exp, whole.values())) == pytest.approx(1, abs=1e-3)
    assert trace.logprobs[0] == pytest.approx(max(whole.values()), abs=0.01)
    entropy = -math.fsum(math.exp(value) * value for value in whole.values())
    assert trace.bounds is not None
    assert trace.bounds[0][0] - 0.01 <= entropy <= trace.bounds[0][1] + 0.01


def test_scores_are_those_of_the_whole_distribution(model: OpenAIModel, url: str) -> None:
    found = model.score([Score(TEXT, " London, in"), Score(Prompt.text("The capital of France is "), "London, in")])
    for one in found:
        assert isinstance(one, Scored)
        assert one.trace.tokens == (" London", ",", " in")
    before, after = ids_of(url, "The capital of France is"), ids_of(url, " London, in")
    true = [distribution(url, [*before, *after[:i]])[token] for i, token in enumerate(after)]
    assert isinstance(found[0], Scored)
    assert found[0].trace.logprobs == pytest.approx(true, abs=0.02)


def test_labels_are_exact_however_rare(model: OpenAIModel, url: str) -> None:
    labels = ("Yes", "No", "Zebra")
    found = model.choose([Choose(CHAT, labels), Choose(CHAT, labels, "sequence")])
    text = template(url)
    whole = distribution(url, ids_of(url, text))
    first = [math.exp(whole[ids_of(url, text + label)[len(ids_of(url, text))]]) for label in labels]
    assert isinstance(found[0], Chosen)
    assert found[0].probabilities == found[0].low == found[0].high
    assert found[0].probabilities == pytest.approx(first, rel=0.05)
    assert found[0].mass <= 1
    assert isinstance(found[1], Chosen)
    assert found[1].probabilities[:2] == pytest.approx(first[:2], rel=0.05), "Yes and No are single tokens"
    assert found[1].probabilities[2] <= found[0].probabilities[2] * 1.05
