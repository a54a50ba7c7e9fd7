"""Find out an endpoint's capabilities with minimal requests: a list of models and a few single tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from ragworth.core.errors import ModelError, format_count, format_list, quote_short
from ragworth.llm.contract import MAX_TOKENS, Generate, Prompt
from ragworth.llm.openai.bounds import DEFAULT_VOCABULARY
from ragworth.llm.openai.call import EndpointCall
from ragworth.llm.openai.options import EndpointOptions
from ragworth.llm.openai.replies import EndpointError, bounded_int, one_line, raw_choices, read_choices, read_tokens
from ragworth.llm.openai.requests import RefusedParameters, RequestFormat
from ragworth.llm.openai.servers import LlamaCppServer, TokenServer, VllmServer

TOP_LOGPROBS = (20, 5, 0)
"""Numbers of likeliest tokens to request, until an endpoint accepts one."""

MAX_NAMES = 10_000
"""Maximum model names to read."""

NEWER_LIMIT_FIELD = "max_completion_tokens"
"""Newer OpenAI models' name of ``max_tokens``."""

QUESTION, TEXT = Prompt.chat("Say yes.", system="Be brief."), Prompt.text("One, two, three, four")
UNLIKELY_STOP = "### STOP ###"
"""Shows whether the endpoint takes stop texts."""

SCHEMA = {
    "type": "object",
    "properties": {"animal": {"type": "string", "enum": ["zebra"]}},
    "required": ["animal"],
    "additionalProperties": False,
}

DENIALS = ("refused", "malformed", "no-text", "server-error", "boundary")
"""Failures that mean "no" when testing for a capability. Others are raised: capabilities must not depend on a bad
connection.
"""

_SAMPLING = {
    "llamacpp": {"top_k": 0, "min_p": 0.0},
    "vllm": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
}
"""These make the servers sample only by temperature and top_p: both have more by default, one fixed, the other from the
model's generation_config.json.
"""

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
    """Capabilities of an endpoint. ``form.top`` is how many of the likeliest tokens it shows."""

    form: RequestFormat
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
        has_ability = {
            "generate": True,
            "logprobs": self.form.top > 0,
            "score": self.scores,
            "choose": self.form.top > 0 or self.scores,
            "schema": self.schema,
        }
        return frozenset(name for name, is_able in has_ability.items() if is_able)


@dataclass(frozen=True)
class EndpointProbe:
    """Probes an endpoint."""

    model: str
    options: EndpointOptions
    call: EndpointCall
    refused: RefusedParameters = field(default_factory=RefusedParameters)

    async def facts(self) -> EndpointFacts:
        options, extra = self.options, self.options.extra_fields
        listing = await self._read(("refused", "malformed"), "models", lambda value: read_model_list(value, self.model))
        listing = listing or ModelListing()
        tokens: TokenServer | None = VllmServer(self.model, extra) if listing.is_vllm else None
        context, template, quantisation = listing.context_length, "", ""
        if listing.owner == "llamacpp":
            tokens, quantisation = LlamaCppServer(self.model, extra), listing.quantisation
            properties = await self._read(("refused", "unauthorised", "malformed"), "/props", read_properties)
            context, template = properties or (None, "")
            context = context or listing.context_length
        facts = EndpointFacts(
            RequestFormat(True, more={**_SAMPLING.get(listing.owner, {}), **extra}),
            text_top=20 if tokens else 5,
            context_length=options.context_length or context,
            vocabulary=options.vocabulary or listing.vocabulary or DEFAULT_VOCABULARY,
            quantisation=quantisation,
            template=template,
        )
        facts = await self._probe_generation(facts, listing)
        if facts.form.chat:
            facts = replace(facts, schema=await self._probe_schema(facts.form))
        if tokens is not None:
            facts = await self._probe_tokens(facts, tokens)
        notes = tuple(_describe_facts(facts, listing, options.vocabulary))
        return replace(facts, notes=notes, warnings=listing_warnings(self.model, listing))

    async def _read(self, denials: tuple[str, ...], path: str, read: Callable[[Any], T]) -> T | None:
        """Read something that some endpoints lack."""
        try:
            return await self.call.send(path, None, read)
        except EndpointError as error:
            if error.failure.reason not in denials:
                raise
            return None

    async def _probe_generation(self, facts: EndpointFacts, listing: ModelListing) -> EndpointFacts:
        """Find the interface that works, with the most log-probabilities that it accepts."""
        errors: list[EndpointError] = []
        interfaces = {"chat": (True,), "completions": (False,)}.get(self.options.api, (True, False))
        forms = [facts.form._replace(chat=chat, top=top) for chat in interfaces for top in TOP_LOGPROBS]
        while forms:
            form = forms[0]
            request = Generate(QUESTION if form.chat else TEXT, max_tokens=1, stop=(UNLIKELY_STOP,))
            try:
                top = await self.call.complete(self.model, request, form, self.refused, count_top_tokens)
            except EndpointError as error:
                if form.limit != NEWER_LIMIT_FIELD and NEWER_LIMIT_FIELD in error.failure.detail:
                    forms = [one._replace(limit=NEWER_LIMIT_FIELD) for one in forms]
                    continue
                if error.failure.reason == "no-text":  # it generates, but a single token is too few
                    return replace(facts, form=form._replace(top=0), text_top=0)
                # Some servers fail on log-probabilities instead of rejecting them.
                if error.failure.reason != "refused" and not (error.status == 500 and form.top):
                    raise
                errors.append(error)
                forms = [one for one in forms[1:] if error.status != 404 or one.chat != form.chat]
                continue
            return replace(facts, form=form._replace(top=top), text_top=facts.text_top if form.chat else top)
        is_missing = bool(listing.names) and self.model not in listing.names
        raise ModelError(
            f"the endpoint refuses to generate with the model {quote_short(self.model)}",
            more=tuple(dict.fromkeys(error.failure.detail for error in errors)),
            expected=f"one of {format_list([quote_short(name) for name in listing.names])}" if is_missing else "",
            remedy="check the model's name" if is_missing else "see what it says, and check the name and the address",
        )

    async def _probe_schema(self, form: RequestFormat) -> bool:
        """Find out if a JSON schema is followed, not only accepted. The request has all parameters of sampling."""
        request = Generate(QUESTION, max_tokens=64, temperature=0.5, top_p=0.9, schema=json.dumps(SCHEMA))
        try:
            text = await self.call.complete(
                self.model,
                request,
                form._replace(top=0),
                self.refused,
                lambda value: read_choices(value, 1, shown=False),
            )
            return bool(json.loads(text[0].text) == {"animal": "zebra"})
        except EndpointError as error:
            if error.failure.reason not in DENIALS:
                raise
        except ValueError:
            pass
        return False

    async def _probe_tokens(self, facts: EndpointFacts, tokens: TokenServer) -> EndpointFacts:
        """Find out if the server really returns tokens and their log-probabilities."""
        try:
            ids = await tokens.ids(self.call.send, TEXT.messages[0].content, True)
            if facts.form.chat:
                await tokens.count(self.call.send, QUESTION)
            facts = replace(facts, tokens=tokens)
            await tokens.forced(self.call.send, ids[:-1], ids[-1:])
            facts = replace(facts, scores=True)
        except EndpointError as error:
            if error.failure.reason not in DENIALS:
                raise
        return facts


def read_model_list(value: Any, model: str) -> ModelListing:
    """Read the list of models, as far as it is valid."""
    data = value.get("data") if isinstance(value, dict) else None
    entries = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    names = tuple(one_line(one["id"], 200) for one in entries[:MAX_NAMES] if isinstance(one.get("id"), str))
    own = next((one for one in entries if one.get("id") == model), entries[0] if len(entries) == 1 else {})
    meta, owner = own.get("meta"), own.get("owned_by")
    meta = meta if isinstance(meta, dict) else {}
    owner = owner if isinstance(owner, str) else ""
    contexts = (own.get("max_model_len"), meta.get("n_ctx"), meta.get("n_ctx_train"))
    return ModelListing(
        names,
        owner,
        next((one for one in map(_token_count, contexts) if one), None),
        _token_count(meta.get("n_vocab")),
        one_line(meta["ftype"], 80) if isinstance(meta.get("ftype"), str) else "",
        owner == "vllm" or _token_count(own.get("max_model_len")) is not None,
    )


def read_properties(value: Any) -> tuple[int | None, str]:
    """Read llama.cpp's properties: the context of one slot, and the hash of the chat template."""
    properties: Mapping[str, Any] = value if isinstance(value, dict) else {}
    settings, template = properties.get("default_generation_settings"), properties.get("chat_template")
    context = _token_count(settings.get("n_ctx")) if isinstance(settings, dict) else None
    if not isinstance(template, str):
        return context, ""
    return context, hashlib.sha256(template.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _token_count(value: Any) -> int | None:
    return bounded_int(value, 1, MAX_TOKENS)


def count_top_tokens(value: Any) -> int:
    """Number of likeliest tokens in a reply, which may have no text: a reasoning model may have none yet.

    Log-probabilities in an unknown form can't be used, but texts can.
    """
    choice = raw_choices(value)[0]
    try:
        steps = read_tokens(choice) or ()
    except EndpointError:
        return 0
    return min((len(one.top) for one in steps), default=0)


def listing_warnings(model: str, listing: ModelListing) -> tuple[str, ...]:
    """Warn if the endpoint doesn't list the model; some answer with another one then, whatever name they are given.

    Lists may leave out a tag (``NAME:latest``) or a variant (``NAME:free``).
    """
    listed = {name.partition(":")[0] for name in listing.names}
    if not listing.names or model.partition(":")[0] in listed:
        return ()
    names = format_list([quote_short(name) for name in listing.names], 5)
    return (f"doesn't list the model {quote_short(model)} ({names}), so another one may be answering",)


def _describe_facts(facts: EndpointFacts, listing: ModelListing, vocabulary: int | None) -> list[str]:
    """Describe the capabilities in notes."""
    top, scores = facts.form.top, facts.scores
    notes = [
        "chats" if facts.form.chat else "completes plain texts; chats are sent as paragraphs",
        f"shows the {format_count(top, 'likeliest token')} at each position" if top else "shows no log-probabilities",
        "returns exact log-probabilities of given texts" if scores else "can't return the probability of a given text",
        "follows JSON schemas" if facts.schema else "does not follow JSON schemas",
    ]
    if facts.tokens is None:
        notes.append("doesn't count tokens: a prompt that is too long is noticed only when sent")
    if facts.context_length is None:
        notes.append("doesn't report its context length; the option context_length sets it")
    if top and vocabulary is None and listing.vocabulary is None:
        notes.append(f"doesn't report the size of its vocabulary; entropy bounds assume {DEFAULT_VOCABULARY:,}")
    if listing.owner == "library":
        notes.append("looks like Ollama, which silently truncates prompts that are too long: set its num_ctx")
    return notes
