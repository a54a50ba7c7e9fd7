"""Keys: found where they may be, sent where they may go, and seen nowhere else."""

from __future__ import annotations

import copy
import gc
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ragworth.core.errors import ModelError
from ragworth.llm.contract import Failure, Generate, Generated, Prompt
from ragworth.llm.openai.api_key import OPENAI_HOST, OPENAI_VARIABLE, OWN_VARIABLE, REDACTED, ApiKey, find_key
from ragworth.llm.openai.model import OpenAIModel, open_model
from tests.llm.openai import endpoint_replies
from tests.llm.openai.endpoint import Act, Endpoint, status

KEY = 'sk-test/5ecret+"KEY"_0123456789abcdef'
ASK = Generate(Prompt.chat("hello"), max_tokens=2)


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (OWN_VARIABLE, OPENAI_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def held(secret: ApiKey | None) -> str:
    assert secret is not None
    return secret.header().removeprefix("Bearer ")


def test_the_own_key_goes_anywhere_and_before_openais(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_VARIABLE, f" {KEY}\n")
    monkeypatch.setenv(OPENAI_VARIABLE, "other")
    assert held(find_key("example.org")) == KEY
    assert held(find_key(OPENAI_HOST)) == KEY


def test_openais_key_goes_to_openai_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPENAI_VARIABLE, KEY)
    assert held(find_key(OPENAI_HOST)) == KEY
    assert find_key("localhost") is None
    assert find_key("api.openai.com.example.org") is None
    assert held(find_key("localhost", OPENAI_VARIABLE)) == KEY, "unless it is named"


def test_a_named_variable_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_VARIABLE, "other")
    with pytest.raises(ModelError, match="MY_KEY is empty or not set"):
        find_key("localhost", "MY_KEY")
    monkeypatch.setenv("MY_KEY", KEY)
    assert held(find_key("localhost", "MY_KEY")) == KEY


@pytest.mark.parametrize("bad", ["two words", "tab\tkey", "kéy", "line\nkey"])
def test_what_no_header_can_carry_is_refused_unseen(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_VARIABLE, bad)
    with pytest.raises(ModelError) as caught:
        find_key("localhost")
    assert bad not in shown(caught.value)


def test_a_secret_shows_itself_nowhere() -> None:
    secret = ApiKey(KEY)
    texts = [repr(secret), str(secret), f"{secret}", f"{secret:>40}", "%s %r" % (secret, secret), repr([secret])]  # noqa: UP031
    assert not any("5ecret" in text for text in texts)
    assert not hasattr(secret, "__dict__")
    for store in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
        with pytest.raises(TypeError):
            store(secret)


def test_scrubbing_finds_the_key_as_json_and_urls_write_it() -> None:
    secret = ApiKey(KEY)
    text = f"{KEY} {json.dumps(KEY)} sk-test%2F5ecret%2B%22KEY%22_0123456789abcdef"
    assert secret.scrub(text) == f'{REDACTED} "{REDACTED}" {REDACTED}'


def test_a_reply_without_the_key_is_left_alone() -> None:
    value = {"choices": [{"text": "a\\b"}, 7, None]}
    secret = ApiKey(KEY)
    assert secret.redact(value, json.dumps(value)) == value
    plain = {"text": "ab"}
    assert secret.redact(plain, json.dumps(plain)) is plain


@pytest.mark.parametrize("escape", [str, lambda text: "".join(f"\\u{ord(sign):04x}" for sign in text)])
def test_the_key_is_found_however_json_spells_it(escape: Callable[[str], str]) -> None:
    written = f'{{"a": ["x{escape(json.dumps(KEY)[1:-1] if escape is str else KEY)}y"], "{escape("k")}": 1}}'
    value = json.loads(written)
    assert value["a"] == [f"x{KEY}y"]
    assert ApiKey(KEY).redact(value, written) == {"a": [f"x{REDACTED}y"], "k": 1}


@pytest.mark.parametrize("word", ["none", "EMPTY", "required", "anything", "sk-1"])
def test_a_key_that_is_but_a_word_is_left_in_answers(word: str) -> None:
    value = {"text": f"it is {word}"}
    assert ApiKey(word).redact(value, json.dumps(value)) == value
    assert ApiKey(word).redact_tokens(["it is ", word]) == ("it is ", word)


def test_tokens_that_spell_out_the_key_together() -> None:
    tokens = ["The", " key is ", KEY[:5], KEY[5:20], f"{KEY[20:]}.", " Good", " day"]
    assert ApiKey(KEY).redact_tokens(tokens) == ("The", " key is ", REDACTED, REDACTED, REDACTED, " Good", " day")


def echo(value: Any) -> Any:
    """The reply of a server that repeats the key wherever there is room for it."""
    top = [{"token": KEY, "logprob": -0.1}, {"token": "b", "logprob": -3}]
    pieces = [{"token": one, "logprob": -0.1, "top_logprobs": top} for one in (KEY[:9], KEY[9:])]
    choice = {"message": {"content": f"It is {KEY}."}, "finish_reason": KEY, "logprobs": {"content": pieces}}
    return value | {"choices": [choice], "model": KEY}


def test_a_key_that_is_repeated_by_the_model_is_taken_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(OWN_VARIABLE, KEY)
    caplog.set_level(logging.DEBUG)
    with Endpoint() as server:
        model = open_model(f"toy@{server.url}")
        assert model.card.abilities
        server.script(*[Act(edit=echo, headers={"X-Key": KEY, "Set-Cookie": f"key={KEY}"})] * 2)
        [plain, traced] = [
            model.generate([Generate(Prompt.chat("hello"), max_tokens=2, detail=detail)])[0]
            for detail in ("text", "logprobs")
        ]
        model.close()
    assert isinstance(plain, Generated)
    assert isinstance(traced, Generated)
    assert plain.outputs[0].text == f"It is {REDACTED}."
    assert traced.outputs[0].trace is not None
    assert traced.outputs[0].trace.tokens == (REDACTED, REDACTED)
    assert "5ecret" not in repr(plain) + repr(traced)
    assert "5ecret" not in caplog.text


def test_a_card_does_not_repeat_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_VARIABLE, KEY)
    monkeypatch.setattr(endpoint_replies, "MODEL", KEY)
    with Endpoint(kind="llamacpp") as server:
        model = open_model(f"other@{server.url}")
        assert "5ecret" not in repr(model.card)
        model.close()


def shown(error: BaseException) -> str:
    """A traceback as verbose as can be, with all local variables but those of the test itself."""
    assert error.__traceback__ is not None
    frames = error.__traceback__.tb_next
    return "".join(traceback.TracebackException(type(error), error, frames, capture_locals=True).format())


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint(key="another key") as server:
        yield server


def opened(server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> OpenAIModel:
    monkeypatch.setenv(OWN_VARIABLE, KEY)
    return open_model(f"toy@{server.url}", retries=0)


def test_an_endpoint_that_echoes_the_key_in_errors(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model = opened(server, monkeypatch)
    with pytest.raises(ModelError, match="unauthorised") as caught:
        model.card  # noqa: B018
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}", "it was sent"
    assert REDACTED in str(caught.value)
    everything = [shown(caught.value), repr(model), repr(vars(model)), caplog.text]
    everything += [repr(vars(record)) for record in caplog.records]
    everything.append(repr(vars(model._client)) if model._client is not None else "")
    model.close()
    assert caplog.records
    assert not any("5ecret" in text for text in everything)


@pytest.mark.parametrize("status_code", [200, 400, 500])
@pytest.mark.parametrize("pad", range(0, 320, 16))
def test_no_piece_of_the_key_is_left_by_cutting(status_code: int, pad: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragworth.llm.openai.replies import EndpointError, error_for_status, parse_reply

    secret = ApiKey(KEY)
    page = f"<html>{'x' * pad}{KEY}{'y' * 500}"
    if status_code == 200:
        with pytest.raises(EndpointError) as caught:
            parse_reply(page, secret.scrub)
        detail = caught.value.failure.detail
    else:
        detail = error_for_status(status_code, page, secret.scrub).failure.detail
    assert "sk-t" not in detail
    assert "5ecret" not in detail


def test_failures_are_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_VARIABLE, KEY)
    with Endpoint() as server:
        model = open_model(f"toy@{server.url}", retries=0)
        assert model.card.endpoint == f"{server.url}/v1"
        server.script(
            status(400, f"the header {json.dumps(KEY)} is wrong"),
            status(500, f"{'.' * 290}{KEY}"),
            Act(body=f"<html>{'.' * 60}{KEY}".encode()),
            Act(body=json.dumps({"error": {"message": KEY, "code": 400}}).encode()),
            Act(302, b"", {"Location": f"http://elsewhere/{KEY}"}),
        )
        failures = [model.generate([ASK])[0] for _ in range(5)]
        model.close()
        assert [one.reason for one in failures if isinstance(one, Failure)] == [
            *("refused", "server-error", "malformed", "refused", "refused"),
        ]
        assert not any("sk-t" in repr(one) or "5ecret" in repr(one) for one in failures)
        assert len(server.asked()) == 2 + 5, "and no redirect is followed"


@pytest.mark.parametrize("head", [b"X: %s", b"%s: x", b"Transfer-Encoding: chunked\r\n\r\n%s\r\n"])
def test_no_piece_of_the_key_is_left_by_quotations_of_a_damaged_reply(
    head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OWN_VARIABLE, KEY)
    filler = b"z" * 85 + KEY.encode() + b"z" * 200_000
    with Endpoint() as server:
        model = open_model(f"toy@{server.url}", retries=0)
        assert model.card
        server.script(Act(raw=b"HTTP/1.1 200 OK\r\n" + head % filler + b"\r\n\r\n"))
        found = model.generate([ASK])[0]
        model.close()
    assert isinstance(found, Failure)
    assert found.reason == "unreachable"
    assert "sk-t" not in found.detail


def test_no_key_no_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPENAI_VARIABLE, KEY)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with Endpoint() as server:
        model = open_model(f"toy@{server.url}")
        model.generate([ASK])
        model.close()
        assert not any("authorization" in one.headers for one in server.seen)
    gc.collect()


def test_an_address_that_is_not_encrypted_is_a_warning_before_the_first_call() -> None:
    with pytest.warns(UserWarning, match=r"texts and the API key go to llm\.example unencrypted"):
        open_model("toy@http://llm.example:8000")
    for url in ("https://llm.example", "http://localhost:8000"):  # warnings are errors here
        open_model(f"toy@{url}")


def test_openais_own_key_does_not_travel_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OWN_VARIABLE, raising=False)
    monkeypatch.setenv(OPENAI_VARIABLE, KEY)
    assert open_model(f"toy@https://{OPENAI_HOST}")._secret is not None
    with pytest.warns(UserWarning, match="unencrypted"):
        assert open_model(f"toy@http://{OPENAI_HOST}")._secret is None
