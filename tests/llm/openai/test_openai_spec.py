"""Addresses and options: what is refused before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from ragworth.core.errors import ModelError
from ragworth.llm.openai.model import open_model
from ragworth.llm.openai.options import check_options, parse_address
from ragworth.llm.openai.probe import EndpointFacts
from ragworth.llm.openai.requests import RequestFormat


@pytest.mark.parametrize(
    ("rest", "model", "url"),
    [
        ("gpt-4o", "gpt-4o", "https://api.openai.com/v1"),
        ("m@http://localhost:8000", "m", "http://localhost:8000/v1"),
        ("m@http://localhost:8000/", "m", "http://localhost:8000/v1"),
        ("m@http://localhost:8000/v1/", "m", "http://localhost:8000/v1"),
        ("m@HTTPS://Example.ORG/Api", "m", "https://example.org/Api"),
        ("org/m:tag@rev@https://h/v1", "org/m:tag@rev", "https://h/v1"),
        ("m@http://x/@http://h", "m@http://x/", "http://h/v1"),
        ("@cf/meta/llama@2", "@cf/meta/llama@2", "https://api.openai.com/v1"),
        ("m@http://[::1]:80", "m", "http://[::1]:80/v1"),
    ],
)
def test_addresses(rest: str, model: str, url: str) -> None:
    assert parse_address(rest) == (model, url)


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("", "not a model name"),
        ("@http://h", "not a model name"),
        ("m@http://", "not an address"),
        ("m@http://h:port/v1", "not an address"),
        ("m@http://a b/v1", "not an address"),
        ("m@http://[::1/v1", "not an address"),
        ("m@http://user:pa55@h/v1", "a user or a password"),
        ("m@http://h/v1?key=pa55", "a query"),
        ("m@http://h/v1#pa55", "a query"),
        ("m@http://h/v1/chat/completions", "one of its functions"),
        ("m@localhost:8000", "without http://"),
        ("m@127.0.0.1/v1", "without http://"),
        ("m@gpu-3:8000/v1", "without http://"),
    ],
)
def test_addresses_that_are_refused(rest: str, found: str) -> None:
    with pytest.raises(ModelError, match=found) as caught:
        parse_address(rest)
    assert "pa55" not in str(caught.value)


def test_who_can_read_along() -> None:
    assert parse_address("m@https://example.org").is_private
    assert parse_address("m@http://localhost:1").is_private
    assert parse_address("m@http://127.0.0.1:1").is_private
    assert not parse_address("m@http://example.org").is_private
    assert not parse_address("m@http://10.0.0.1").is_private


def test_all_that_is_wrong_with_options_is_said_at_once() -> None:
    given: dict[str, Any] = {"concurency": 3, "deadline": 0, "retries": -1, "api": "both", "concurrency": True}
    with pytest.raises(ModelError) as caught:
        check_options(given | {"vocabulary": 2.5, "context_length": "many", "key_variable": ""})
    message = str(caught.value)
    for name in (*given, "vocabulary", "context_length", "key_variable"):
        assert f"  {name} is " in message
    assert "concurency is unknown" in message
    assert "expected: some of concurrency, deadline" in message


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ('{"chat_template_kwargs": {"enable_thinking": false}}', {"chat_template_kwargs": {"enable_thinking": False}}),
        ("{}", {}),
        ("", {}),
        (None, {}),
    ],
)
def test_further_fields(given: Any, fields: dict[str, Any]) -> None:
    assert check_options({"extra_body": given}).extra_fields == fields


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("low", "is not an object"),
        ([1], "is not an object"),
        ({1: 2}, "is not an object"),
        ({"a": float("nan")}, "is not an object"),
        ({"a": object()}, "is not an object"),
        ({"temperature": 1, "model": "x"}, "sets model, temperature, which ragworth sets itself"),
        ({"api_key": "pa55"}, "has a key in it"),
        ({"headers": [{"Authorization": "pa55"}]}, "has a key in it"),
    ],
)
def test_further_fields_that_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(ModelError, match=problem) as caught:
        check_options({"extra_body": given})
    assert "pa55" not in str(caught.value)


def test_further_fields_are_part_of_the_identity() -> None:
    cards = [
        open_model("m@http://127.0.0.1:9", extra_body=each).partial for each in ({}, {"a": 1}, {"a": 2}, '{"a":1}')
    ]
    assert len({card.identity for card in cards}) == 3
    assert cards[1] == cards[3]


def test_azure_is_asked_for_deployments_which_it_does_not_list() -> None:
    for host, warnings in (("a.openai.azure.com", ()), ("a.example.com", ("the endpoint of mine odd",))):
        model = open_model(f"mine@https://{host}/openai/v1")
        model._facts = EndpointFacts(RequestFormat(True), warnings=("odd",))
        assert model.warnings == warnings
