"""What an endpoint can do is found out by asking it, once, and said in words."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ragworth.core.errors import ModelError
from ragworth.llm.contract import Generate, Generated, Prompt
from ragworth.llm.openai import rate_limit
from ragworth.llm.openai.model import open_model
from ragworth.llm.openai.probe import ModelListing, listing_warnings
from tests.llm.openai.endpoint import GOOD, HTML, SILENT, TRUNCATED, Endpoint, edited, status

ALL = {"generate", "logprobs", "score", "choose", "schema"}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "FIRST_WAIT", 0.005)


def card_of(server: Endpoint, **options: Any) -> Any:
    model = open_model(f"toy@{server.url}", **options)
    try:
        return model.card
    finally:
        model.close()


@pytest.mark.parametrize(
    ("traits", "abilities", "asked"),
    [
        ({}, ALL - {"score"}, 2),
        ({"kind": "vllm"}, ALL, 3),
        ({"kind": "llamacpp"}, ALL, 3),
        ({"top": 5}, ALL - {"score"}, 3),
        ({"top": 0}, {"generate", "schema"}, 4),
        ({"schema": False}, ALL - {"score", "schema"}, 2),
        ({"limit": "max_completion_tokens"}, ALL - {"score"}, 3),
        ({"limit": "max_completion_tokens", "top": 5}, ALL - {"score"}, 4),
        ({"chat": False}, {"generate", "logprobs", "choose"}, 2),
        ({"without": ("/v1/models",)}, ALL - {"score"}, 2),
        ({"without": ("/props",), "kind": "llamacpp"}, ALL, 3),
        ({"without": ("/tokenize",), "kind": "llamacpp"}, ALL - {"score"}, 2),
        ({"without": ("/completion",), "kind": "llamacpp"}, ALL - {"score"}, 3),
        ({"completions": False, "kind": "vllm"}, ALL - {"score"}, 3),
    ],
)
def test_abilities(traits: dict[str, Any], abilities: set[str], asked: int) -> None:
    with Endpoint(**traits) as server:
        card = card_of(server)
        assert card.abilities == abilities
        assert card.identity[:2] == ("openai", "toy")
        assert card.endpoint == f"{server.url}/v1"
        assert len(server.asked()) == asked, "few requests to the model"


def test_facts_of_servers_that_tell_them() -> None:
    with Endpoint(kind="llamacpp", context=512) as server:
        card = card_of(server)
        assert (card.context_length, card.quantisation, len(card.template)) == (512, "Q4_1", 16)
    with Endpoint(kind="vllm", context=700) as server:
        assert card_of(server).context_length == 700
        assert card_of(server, context_length=300).context_length == 300


@pytest.mark.parametrize(
    ("listed", "asked", "warns"),
    [
        (("toy",), "toy", False),
        ((), "toy", False),
        (("toy:latest", "other"), "toy", False),
        (("toy",), "toy:free", False),
        (("toy-2", "other"), "toy", True),
        (("org/toys",), "org/toy", True),
    ],
)
def test_a_model_that_the_endpoint_does_not_list(listed: tuple[str, ...], asked: str, warns: bool) -> None:
    found = listing_warnings(asked, ModelListing(listed))
    assert bool(found) == warns
    if warns:
        assert repr(listed[0]) in found[0] and "another one may be answering" in found[0]


def test_an_endpoint_that_is_not_there() -> None:
    with Endpoint() as server:
        url = server.url
    model = open_model(f"toy@{url}")
    for _ in range(2):
        with pytest.raises(ModelError, match="is the server running") as caught:
            model.generate([Generate(Prompt.chat("hello"))])
        assert url in str(caught.value)
    model.close()


def test_faults_while_probing_change_nothing() -> None:
    acts = (status(500), status(429, retry_after="0.01"), SILENT, GOOD, TRUNCATED, HTML, GOOD)
    with Endpoint(kind="llamacpp") as server:
        whole = card_of(server)
        server.script(*acts, edited(lambda value: {"choices": 7}))
        found = card_of(server)
        assert (found.abilities, found.notes) == (whole.abilities, whole.notes)


def test_an_overloaded_endpoint_is_not_taken_for_a_poor_one() -> None:
    with Endpoint(lambda seen: status(429)) as server, pytest.raises(ModelError, match="rate-limited"):
        card_of(server)


def test_many_threads_probe_once() -> None:
    with Endpoint() as server:
        model = open_model(f"toy@{server.url}")
        found: list[Any] = []
        threads = [
            threading.Thread(
                target=lambda: found.extend(model.generate([Generate(Prompt.chat("hello"), max_tokens=2)]))
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        model.close()
        assert sum(one.path == "/v1/models" for one in server.seen) == 1
        assert all(isinstance(one, Generated) for one in found)
        assert len(found) == 8


TOO_FEW = "Could not finish the message because max_tokens or model output limit was reached."


def odd(value: Any) -> Any:
    """Log-probabilities in a form that nobody knows."""
    return value | {"choices": [one | {"logprobs": [{"tok": "Yes"}]} for one in value["choices"]]}


@pytest.mark.parametrize(
    "behaviour",
    [
        lambda seen: status(500) if seen.body.get("logprobs") else GOOD,
        lambda seen: edited(odd) if seen.body.get("logprobs") else GOOD,
        lambda seen: status(400, TOO_FEW) if seen.body["max_tokens"] == 1 else GOOD,
    ],
    ids=["fails on log-probabilities", "unknown log-probabilities", "needs more than a token"],
)
def test_a_server_that_only_generates(behaviour: Any) -> None:
    with Endpoint(behaviour) as server:
        assert card_of(server).abilities == {"generate", "schema"}
