"""Serialize requests, responses and models' cards: a 16-byte key, and JSON that any program can read."""

from __future__ import annotations

import json
import zlib
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from typing import Any

from ragworth.core.errors import RagworthError
from ragworth.llm.contract import (
    ABILITIES,
    Card,
    Choose,
    Chosen,
    Generate,
    Generated,
    Output,
    Prompt,
    PromptMessage,
    Request,
    Response,
    Score,
    Scored,
    Span,
    Trace,
    Usage,
)

REQUEST_KINDS: dict[type, str] = {Generate: "generate", Score: "score", Choose: "choose"}
"""Names of the kinds of requests, which are those of a model's methods."""

_to_json = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def model_digest(card: Card) -> bytes:
    """Hash of everything in a model's card that can change its output, and nothing else."""
    return blake2b(_to_json(card.identity).encode(), digest_size=16).digest()


def call_key(model: bytes, request: Request) -> bytes:
    """Key of a call: model, parameters, version of the prompt's template, and the rendered prompt with the positions of
    its passages, since these may be truncated.
    """
    prompt = request.prompt
    parameters = _parameters(request)
    # Lengths come first, so that no two lists of parts look alike.
    roles, contents = zip(*prompt.messages, strict=True)
    lengths = ":".join([*roles, *map(str, map(len, contents)), *[f"{m},{a},{b}" for m, a, b in prompt.passages]])
    text = f"{len(parameters)}:{len(prompt.version)}:{lengths}:{parameters}{prompt.version}{''.join(contents)}"
    return blake2b(text.encode("utf-8", "surrogatepass"), key=model, digest_size=16).digest()


def _parameters(request: Request) -> str:
    if isinstance(request, Choose):
        return _labels(request.labels, request.estimator)
    if isinstance(request, Score):
        return f"score-ids:{_to_json(request.ids)}" if request.ids else f"score:{request.continuation}"
    return _to_json(_generation(request))


@lru_cache(maxsize=256)
def _labels(labels: tuple[str, ...], estimator: str) -> str:
    return _to_json(["choose", estimator, *labels])


def _generation(request: Generate) -> list[Any]:
    """Parameters that change the output; at temperature 0, seed and top_p don't."""
    greedy = request.temperature <= 0
    drawn = [0.0, 1.0, 0] if greedy else [float(request.temperature), float(request.top_p), request.seed]
    return ["generate", request.max_tokens, *drawn, list(request.stop), request.n, request.detail, request.schema]


def request_to_json(request: Request) -> str:
    prompt = request.prompt
    values: dict[str, Any] = {"kind": REQUEST_KINDS[type(request)], "messages": prompt.messages}
    if prompt.passages:
        values["passages"] = prompt.passages
    if prompt.version:
        values["version"] = prompt.version
    if isinstance(request, Generate):
        names = ("max_tokens", "temperature", "top_p", "stop", "seed", "n", "detail", "schema")
        values |= {name: getattr(request, name) for name in names}
    elif isinstance(request, Score):
        values["continuation"] = request.continuation
        if request.ids:
            values["ids"] = request.ids
    else:
        values |= {"labels": request.labels, "estimator": request.estimator}
    return _to_json(values)


def request_from_json(text: str) -> Request:
    """Parse a request written by `request_to_json`."""
    values = json.loads(text)
    messages = tuple(PromptMessage(*message) for message in values.pop("messages"))
    passages = tuple(Span(*span) for span in values.pop("passages", ()))
    prompt = Prompt(messages, passages, values.pop("version", ""))
    kind = values.pop("kind")
    if kind == "generate":
        return Generate(prompt, **(values | {"stop": tuple(values["stop"])}))
    if kind == "score":
        return Score(prompt, values["continuation"], tuple(values.get("ids", ())))
    return Choose(prompt, tuple(values["labels"]), values["estimator"])


def response_to_json(response: Response) -> str:
    """Serialize a response as a list: its usage, then its values."""
    usage = list(response.usage)
    if isinstance(response, Chosen):
        exact = response.low == response.probabilities == response.high
        bounds = [] if exact else [response.low, response.high]
        return _to_json([usage, response.estimator, response.probabilities, *bounds])
    if isinstance(response, Scored):
        return _to_json([usage, *response.trace])
    return _to_json([usage, *((output.text, output.finish, output.trace) for output in response.outputs)])


def response_from_json(kind: str, text: str) -> Response:
    """Parse a response written by `response_to_json`. Its values may be anything if it was damaged meanwhile: see
    `ragworth.calls.checks.read_stored_response`.
    """
    counts, *values = json.loads(text)
    usage = Usage(*counts)
    if kind == "choose":
        estimator, probabilities, *bounds = values
        low, high = bounds or (probabilities, probabilities)
        return Chosen(tuple(probabilities), tuple(low), tuple(high), estimator, usage)
    if kind == "score":
        return Scored(_trace(values), usage)
    if kind != "generate":
        raise ValueError(f"{kind!r} is no kind of call")
    outputs = (Output(text, finish, None if trace is None else _trace(trace)) for text, finish, trace in values)
    return Generated(tuple(outputs), usage)


def _trace(columns: list[Any]) -> Trace:
    tokens, logprobs, entropies, bounds, ids = columns
    return Trace(
        tuple(tokens),
        tuple(logprobs),
        None if entropies is None else tuple(entropies),
        None if bounds is None else tuple((low, high) for low, high in bounds),
        None if ids is None else tuple(ids),
    )


DECODE_ERRORS = (zlib.error, ValueError, TypeError, LookupError, AttributeError, RecursionError, RagworthError)
"""Errors that reading a damaged record may raise."""


NOT_STORED = ("abilities", "notes", "cuts")
"""Fields of a card that aren't stored as they are."""


def card_to_json(card: Card) -> str:
    facts = {name: getattr(card, name) for name in card.__slots__ if name not in NOT_STORED}
    return json.dumps(facts | {"abilities": sorted(card.abilities)}, sort_keys=True)


def card_from_json(digest: object, text: object) -> Card | None:
    """Parse a stored card; None if it is damaged or another model's."""
    try:
        facts = json.loads(str(text))
        abilities, length, declining = frozenset(facts.pop("abilities")), facts["context_length"], facts["declining"]
        names = [value for name, value in facts.items() if name not in ("context_length", "declining")]
        is_valid = (
            abilities <= set(ABILITIES)
            and all(isinstance(name, str) for name in names)
            and (length is None or (isinstance(length, int) and length > 0))
            and (declining is None or (isfinite(declining) and declining > 0))
        )
        card = Card(**facts, abilities=abilities)
    except DECODE_ERRORS:
        return None
    return card if is_valid and model_digest(card) == digest else None
