"""``openai:MODEL@URL``: a model behind any OpenAI-compatible endpoint.

OpenAI, vLLM, llama.cpp's server, Ollama and many more have this interface, each with differences. An endpoint's
capabilities are probed once, before the first request (`probe`). If the server returns tokens and their probabilities
(`servers`), scores and labels are exact; otherwise labels have bounds, and scores aren't available.
"""

from __future__ import annotations

import importlib.util
import json
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.llm.contract import Card, Choose, Chosen, Failure, Generate, Generated, Prompt, Score, Scored
from ragworth.llm.openai.api_key import OPENAI_VARIABLE, OWN_VARIABLE, find_key
from ragworth.llm.openai.call import EndpointCall
from ragworth.llm.openai.inference import EndpointRequest, gather_all
from ragworth.llm.openai.options import (
    EndpointOptions,
    ModelAddress,
    check_options,
    is_azure,
    parse_address,
    unencrypted_host,
)
from ragworth.llm.openai.probe import EndpointFacts, EndpointProbe
from ragworth.llm.openai.replies import EndpointError
from ragworth.llm.openai.requests import RefusedParameters
from ragworth.llm.truncation import parse_on_long

if TYPE_CHECKING:
    from ragworth.llm.openai.client import EndpointClient

FAILED_PROBE_SECONDS = 5.0
"""Seconds before an endpoint that didn't answer is probed again; all threads find out at the same time."""

R = TypeVar("R")
T = TypeVar("T")


def open_model(rest: str, **options: Any) -> OpenAIModel:
    """Open the model of ``MODEL@URL``; without a URL, OpenAI's. Nothing is sent yet."""
    address, checked = parse_address(rest), check_options(options)
    if importlib.util.find_spec("aiohttp") is None:
        raise MissingExtraError("aiohttp", "openai", "calling an endpoint")
    if host := unencrypted_host(address, checked.proxy):
        warnings.warn(f"texts and the API key go to {host} unencrypted: use https", UserWarning, stacklevel=3)
    return OpenAIModel(address, checked)


class OpenAIModel:
    """A model behind an endpoint. Requests run concurrently, within the limits of the endpoint and the options."""

    batch = 1

    def __init__(self, address: ModelAddress, options: EndpointOptions) -> None:
        self.address = address
        self.options = options
        self.concurrency = options.concurrency
        self.reasoning_tokens = options.reasoning_tokens
        """Tokens that each text may have on top of its length."""
        self._secret = find_key(address.host, options.key_variable, encrypted=address.url.startswith("https:"))
        self._opening, self._probing = threading.Lock(), threading.Lock()
        self._client: EndpointClient | None = None
        self._inherited: EndpointClient | None = None
        """The client of the process that this one was forked from, which is left alone."""
        self._facts: EndpointFacts | None = None
        self._refused = RefusedParameters()
        self._failure: tuple[float, ModelError] | None = None

    def __repr__(self) -> str:
        return f"OpenAI({self.address.model!r}, {self.address.url!r})"

    @property
    def partial(self) -> Card:
        """The card as far as known without calling the endpoint."""
        settings = [f"api={self.options.api}"] if self.options.api != "auto" else []
        settings += [f"vocabulary={self.options.vocabulary}"] if self.options.vocabulary else []
        settings += [f"reasoning_tokens={self.reasoning_tokens}"] if self.reasoning_tokens else []
        extra = self.options.extra_fields
        settings += [f"extra_body={json.dumps(extra, sort_keys=True)}"] if extra else []
        return Card(
            "openai",
            self.address.model,
            revision=" ".join(settings),
            endpoint=self.address.url,
            cuts=parse_on_long(self.options.on_long),
        )

    @property
    def card(self) -> Card:
        """The model's identity and abilities; calls the endpoint the first time."""
        facts = self.probe()
        return replace(
            self.partial,
            quantisation=facts.quantisation,
            template=facts.template,
            abilities=facts.abilities,
            context_length=facts.context_length,
            notes=(*facts.notes, *self.warnings),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return sentences on all that is known to make responses differ from the requests."""
        listing = () if self._facts is None or is_azure(self.address.host) else self._facts.warnings
        return tuple(f"the endpoint of {self.address.model} {each}" for each in (*listing, *self._refused.notes))

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        """Generate texts. Uses the endpoint's own count of tokens, or 0 if it gives none."""
        extra = self.reasoning_tokens
        longer = [replace(one, max_tokens=one.max_tokens + extra) for one in requests] if extra else requests
        return self._all(longer, EndpointRequest.generate)

    def score(self, requests: Sequence[Score]) -> list[Scored | Failure]:
        """Log-probabilities of continuations, if the server returns them exactly."""
        return self._all(requests, EndpointRequest.score)

    def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
        """Probabilities of labels: exact if the server returns tokens, else bounds from what it shows."""
        return self._all(requests, EndpointRequest.choose)

    def count(self, prompt: Prompt) -> int | None:
        """Tokens of a prompt including the template; None if the server doesn't count them, or not now."""
        number = self._all([prompt], EndpointRequest.count)[0]
        return None if isinstance(number, Failure) else number

    def hurry(self) -> None:
        """Cancel requests that wait for their turn; those under way continue."""
        if self._client is not None:
            self._client.hurry()

    def close(self) -> None:
        """Cancel requests under way and close all connections; a later request opens new ones."""
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def probe(self) -> EndpointFacts:
        """Find out the endpoint's capabilities, once for all threads."""
        with self._probing:
            if self._facts is None:
                self._facts = self._ask_for_facts()
            return self._facts

    def _open(self) -> EndpointClient:
        from ragworth.llm.openai.client import EndpointClient

        with self._opening:
            if self._client is not None and self._client.process != os.getpid():
                self._inherited, self._client = self._client, None
            if self._client is None:
                self._client = EndpointClient(self.address.url, self.options, self._secret)
                weakref.finalize(self, self._client.close)
            return self._client

    def _all(
        self, requests: Sequence[R], work: Callable[[EndpointRequest, R], Coroutine[Any, Any, T]]
    ) -> list[T | Failure]:
        facts, client = self.probe(), self._open()

        async def one(request: R) -> T | Failure:
            call = EndpointCall(client)
            try:
                asking = EndpointRequest(self.address.model, facts, self.options.on_long, call, self._refused)
                return await work(asking, request)
            except EndpointError as error:
                return error.failure._replace(usage=call.spent)

        async def every() -> list[T | Failure]:
            return await gather_all([one(request) for request in requests])

        try:
            return client.run(every())
        except EndpointError as stopped:
            return [stopped.failure] * len(requests)

    def _ask_for_facts(self) -> EndpointFacts:
        if self._failure is not None and time.monotonic() - self._failure[0] < FAILED_PROBE_SECONDS:
            known = self._failure[1]
            raise ModelError(known.found, more=known.more, expected=known.expected, remedy=known.remedy)
        client = self._open()
        probe = EndpointProbe(self.address.model, self.options, EndpointCall(client, is_probe=True), self._refused)
        try:
            return client.run(probe.facts())
        except EndpointError as error:
            failure = error.failure
        except ModelError as error:
            self._failure = (time.monotonic(), error)
            raise
        # Raised here, so that no traceback leads into the frames that saw the request.
        self._failure = (time.monotonic(), self._no_facts(failure))
        raise self._failure[1]

    def _no_facts(self, failure: Failure) -> ModelError:
        """The error for an endpoint that can't be probed."""
        remedy = {
            "unreachable": "is the server running, and is the address right?",
            "malformed": "is this the base of an OpenAI-compatible interface? it mostly ends in /v1",
            "timed-out": "is the server busy or stuck? the option deadline allows more time",
            "unauthorised": f"set the environment variable {OWN_VARIABLE} to the endpoint's key",
        }.get(failure.reason, "try again later")
        if failure.reason == "unauthorised" and self._secret is not None:
            remedy = "check the key"
        elif failure.reason == "unauthorised" and os.environ.get(OPENAI_VARIABLE):
            remedy += f" ({OPENAI_VARIABLE} goes to OpenAI only, unless the option key_variable names it)"
        problem = f"the endpoint {self.address.url} can't be probed: {failure.reason}"
        return ModelError(problem, more=(failure.detail,), remedy=remedy)
