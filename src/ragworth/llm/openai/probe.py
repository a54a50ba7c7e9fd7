"""Find out an endpoint's capabilities with minimal requests: a list of models and a few single tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from ragworth.core.errors import ModelError, format_count, format_list, quote_short
from ragworth.llm.contract import MAX_TOKENS, Generate, Prompt
from ragworth.llm.openai.bounds import DEFAULT_VOCABULARY
from ragworth.llm.openai.errors import EndpointError, one_line
from ragworth.llm.openai.exact_scores import LlamaCppServer, SendRequest, TokenServer, VllmServer
from ragworth.llm.openai.extra_body import template_fields
from ragworth.llm.openai.protocol import (
    GeneratedToken,
    RequestFormat,
    raw_choices,
    read_choices,
    read_tokens,
    request_body,
)
from ragworth.llm.openai.refused_parameters import RefusedParameters
from ragworth.llm.openai.validation import bounded_int

TOP_LOGPROBS = (20, 5, 0)
"""Numbers of likeliest tokens to request, until an endpoint accepts one."""

MAX_NAMES = 10_000
"""Maximum model names to read."""

NEWER_LIMIT_FIELD = "max_completion_tokens"
"""Newer OpenAI models' name of ``max_tokens``."""

QUESTION = Prompt.chat("Say yes.", system="Be brief.")
UNLIKELY_STOP = "### STOP ###"
"""Shows whether the endpoint takes stop texts."""

TEXT = Prompt.text("One, two, three, four")
SCHEMA = {
    "type": "object",
    "properties": {"animal": {"type": "string", "enum": ["zebra"]}},
    "required": ["animal"],
    "additionalProperties": False,
}

DENIALS = ("refused", "malformed", "no-text", "server-error", "boundary")
"""Failures that mean "no" when testing for a capability."""

# These make the servers sample only by temperature and top_p: both have more by default, one fixed, the other from
# the model's generation_config.json.
_LLAMA_CPP = {"top_k": 0, "min_p": 0.0}
_VLLM = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


T = TypeVar("T")


class ModelListing(NamedTuple):
    """The relevant entries of the list of models."""

    names: tuple[str, ...] = ()
    owner: str = ""
    context_length: int | None = None
    vocabulary: int | None = None
    quantisation: str = ""
    is_vllm: bool = False


@dataclass(frozen=True)
class EndpointFacts:
    """Capabilities of an endpoint. ``manner.top`` is how many of the likeliest tokens it shows."""

    manner: RequestFormat
    text_top: int = 5
    """How many it shows for plain texts, which have a separate interface."""
    schema: bool = False
    tokens: TokenServer | None = None
    """Tokenizes texts, if the server can."""
    scores: bool = False
    """Whether ``tokens`` also returns exact log-probabilities."""
    context_length: int | None = None
    vocabulary: int = DEFAULT_VOCABULARY
    quantisation: str = ""
    template: str = ""
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = ()
    """Notes on what may be wrong with responses."""

    @property
    def abilities(self) -> frozenset[str]:
        able = {
            "generate": True,
            "logprobs": self.manner.top > 0,
            "score": self.scores,
            "choose": self.manner.top > 0 or self.scores,
            "schema": self.schema,
        }
        return frozenset(name for name, is_able in able.items() if is_able)


@dataclass(frozen=True)
class EndpointProbe:
    """Probes an endpoint."""

    model: str
    api: str
    get: Callable[[str, Callable[[Any], Any]], Awaitable[Any]]
    ask: SendRequest
    refused: RefusedParameters = field(default_factory=RefusedParameters)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of requests."""

    async def facts(self, context_length: int | None, vocabulary: int | None) -> EndpointFacts:
        found = await self._read_models()
        tokens: TokenServer | None = VllmServer(self.model, template_fields(self.extra)) if found.is_vllm else None
        facts = EndpointFacts(RequestFormat(True), vocabulary=vocabulary or found.vocabulary or DEFAULT_VOCABULARY)
        told = found.context_length
        if found.owner == "llamacpp":
            tokens = LlamaCppServer(template=template_fields(self.extra))
            told, template = await self._read_properties(told)
            facts = replace(facts, quantisation=found.quantisation, template=template)
        own = _LLAMA_CPP if found.owner == "llamacpp" else _VLLM if found.owner == "vllm" else {}
        more = {**own, **self.extra}
        facts = replace(facts, context_length=context_length or told, text_top=20 if tokens else 5)
        facts = await self._probe_generation(replace(facts, manner=RequestFormat(True, more=more)), found)
        if facts.manner.chat:
            facts = replace(facts, schema=await self._probe_schema(facts.manner))
        if tokens is not None:
            facts = await self._probe_tokens(facts, tokens)
        notes, warnings = tuple(_describe_facts(facts, found, vocabulary)), _listing_warnings(self.model, found)
        return replace(facts, notes=notes, warnings=warnings)

    async def _read_models(self) -> ModelListing:
        """Read the list of models, which some endpoints lack."""
        try:
            found: ModelListing = await self.get("models", lambda value: read_model_list(value, self.model))
        except EndpointError as trouble:
            if trouble.failure.reason not in ("refused", "malformed"):
                raise
            found = ModelListing()
        return found

    async def _read_properties(self, told: int | None) -> tuple[int | None, str]:
        """Read llama.cpp's properties: the context of one slot, and the hash of the chat template."""
        try:
            value = await self.get("/props", lambda value: value)
        except EndpointError as trouble:
            if trouble.failure.reason not in ("refused", "unauthorised", "malformed"):
                raise
            return told, ""
        value = value if isinstance(value, dict) else {}
        settings, template = value.get("default_generation_settings"), value.get("chat_template")
        context = _token_count(settings.get("n_ctx")) if isinstance(settings, dict) else None
        digest = (
            hashlib.sha256(template.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            if isinstance(template, str)
            else ""
        )
        return context or told, digest

    async def _probe_generation(self, facts: EndpointFacts, found: ModelListing) -> EndpointFacts:
        """Find the interface that works, with the most log-probabilities that it accepts."""
        troubles: list[EndpointError] = []
        interfaces = {"chat": (True,), "completions": (False,)}.get(self.api, (True, False))
        manners = [facts.manner._replace(chat=chat, top=top) for chat in interfaces for top in TOP_LOGPROBS]
        while manners:
            manner = manners[0]
            try:
                shown = await self._probe_top_tokens(manner)
            except EndpointError as trouble:
                if wants_newer_limit_field(trouble, manner):
                    manners = [one._replace(limit=NEWER_LIMIT_FIELD) for one in manners]
                    continue
                if trouble.failure.reason == "no-text":  # it generates, but a single token is too few
                    return replace(facts, manner=manner._replace(top=0), text_top=0)
                # Some servers fail on log-probabilities instead of rejecting them.
                if trouble.failure.reason != "refused" and not (trouble.status == 500 and manner.top):
                    raise
                troubles.append(trouble)
                manners = [one for one in manners[1:] if trouble.status != 404 or one.chat != manner.chat]
                continue
            top = facts.text_top if manner.chat else shown
            return replace(facts, manner=manner._replace(top=shown), text_top=top)
        raise _generation_refused(self.model, troubles, found)

    async def _probe_top_tokens(self, manner: RequestFormat) -> int:
        """Request one token, and return how many of the likeliest are shown."""
        request = Generate(QUESTION if manner.chat else TEXT, max_tokens=1, stop=(UNLIKELY_STOP,))
        return await self._generate(request, manner, _count_top_tokens)

    async def _generate(self, request: Generate, manner: RequestFormat, read: Callable[[Any], T]) -> T:
        path = "chat/completions" if manner.chat else "completions"

        def body(manner: RequestFormat) -> dict[str, Any]:
            return request_body(self.model, request, manner, seed=0, n=1)

        return await self.refused.ask(self.ask, path, manner, body, read)

    async def _probe_schema(self, manner: RequestFormat) -> bool:
        """Whether a JSON schema is followed, and not only accepted. The request has all parameters of sampling."""
        request = Generate(QUESTION, max_tokens=64, temperature=0.5, top_p=0.9, schema=json.dumps(SCHEMA))
        try:
            found = await self._generate(
                request, manner._replace(top=0), lambda value: read_choices(value, 1, shown=False)
            )
            return bool(json.loads(found[0].text) == {"animal": "zebra"})
        except EndpointError as trouble:
            _require_denial(trouble)
        except ValueError:
            pass
        return False

    async def _probe_tokens(self, facts: EndpointFacts, tokens: TokenServer) -> EndpointFacts:
        """Whether the server really returns tokens and their log-probabilities."""
        try:
            ids = await tokens.ids(self.ask, TEXT.messages[0].content, True)
            if facts.manner.chat:
                await tokens.count(self.ask, QUESTION)
        except EndpointError as trouble:
            _require_denial(trouble)
            return facts
        facts = replace(facts, tokens=tokens)
        try:
            await tokens.forced(self.ask, ids[:-1], ids[-1:])
        except EndpointError as trouble:
            _require_denial(trouble)
            return facts
        return replace(facts, scores=True)


def _require_denial(trouble: EndpointError) -> None:
    """Ignore errors that mean "no", and raise others: capabilities must not depend on a bad connection."""
    if trouble.failure.reason not in DENIALS:
        raise trouble


def wants_newer_limit_field(trouble: EndpointError, manner: RequestFormat) -> bool:
    """Whether the endpoint rejected the field for the output length and named another one."""
    return manner.limit != NEWER_LIMIT_FIELD and NEWER_LIMIT_FIELD in trouble.failure.detail


def read_model_list(value: Any, model: str) -> ModelListing:
    """Read the list of models, as far as it is valid."""
    data = value.get("data") if isinstance(value, dict) else None
    entries = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    names = tuple(one_line(one["id"], 200) for one in entries[:MAX_NAMES] if isinstance(one.get("id"), str))
    own = next((one for one in entries if one.get("id") == model), entries[0] if len(entries) == 1 else {})
    meta, owner = own.get("meta"), own.get("owned_by")
    meta = meta if isinstance(meta, dict) else {}
    owner = owner if isinstance(owner, str) else ""
    told = (own.get("max_model_len"), meta.get("n_ctx"), meta.get("n_ctx_train"))
    return ModelListing(
        names,
        owner,
        next((one for one in map(_token_count, told) if one), None),
        _token_count(meta.get("n_vocab")),
        one_line(meta["ftype"], 80) if isinstance(meta.get("ftype"), str) else "",
        owner == "vllm" or _token_count(own.get("max_model_len")) is not None,
    )


def _token_count(value: Any) -> int | None:
    return bounded_int(value, 1, MAX_TOKENS)


def _count_top_tokens(value: Any) -> int:
    """Number of likeliest tokens in a reply, which may have no text: a reasoning model may have none yet.

    Log-probabilities in an unknown form can't be used, but texts can.
    """
    choice = raw_choices(value)[0]
    try:
        tokens: tuple[GeneratedToken, ...] = read_tokens(choice) or ()
    except EndpointError:
        return 0
    return min((len(one.top) for one in tokens), default=0)


def _generation_refused(model: str, troubles: list[EndpointError], found: ModelListing) -> ModelError:
    """The error for an endpoint that won't generate even one token."""
    missing = bool(found.names) and model not in found.names
    return ModelError(
        f"the endpoint refuses to generate with the model {quote_short(model)}",
        more=tuple(dict.fromkeys(trouble.failure.detail for trouble in troubles)),
        expected=f"one of {format_list([quote_short(name) for name in found.names])}" if missing else "",
        remedy="check the model's name" if missing else "see what it says, and check the name and the address",
    )


def _listing_warnings(model: str, found: ModelListing) -> tuple[str, ...]:
    """Whether the endpoint doesn't list the model; some answer with another one then, whatever name they are given.

    Lists may leave out a tag (``NAME:latest``) or a variant (``NAME:free``).
    """
    listed = {name.partition(":")[0] for name in found.names}
    if not found.names or model.partition(":")[0] in listed:
        return ()
    names = format_list([quote_short(name) for name in found.names], 5)
    return (f"doesn't list the model {quote_short(model)} ({names}), so another one may be answering",)


def _describe_facts(facts: EndpointFacts, found: ModelListing, vocabulary: int | None) -> list[str]:
    """Describe the capabilities in notes."""
    top, notes = facts.manner.top, []
    notes.append("chats" if facts.manner.chat else "completes plain texts; chats are sent as paragraphs")
    notes.append(
        f"shows the {format_count(top, 'likeliest token')} at each position" if top else "shows no log-probabilities"
    )
    if facts.scores:
        notes.append("returns exact log-probabilities of given texts")
    else:
        notes.append("can't return the probability of a given text")
    notes.append("follows JSON schemas" if facts.schema else "does not follow JSON schemas")
    if facts.tokens is None:
        notes.append("doesn't count tokens: a prompt that is too long is noticed only when sent")
    if facts.context_length is None:
        notes.append("doesn't report its context length; the option context_length sets it")
    if top and vocabulary is None and found.vocabulary is None:
        notes.append(f"doesn't report the size of its vocabulary; entropy bounds assume {DEFAULT_VOCABULARY:,}")
    if found.owner == "library":
        notes.append("looks like Ollama, which silently truncates prompts that are too long: set its num_ctx")
    return notes
