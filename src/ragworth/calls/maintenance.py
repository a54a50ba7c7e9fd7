"""Inspect, export, verify and merge call stores."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from ragworth.calls.serialization import REQUEST_KINDS, call_key, model_digest, request_to_json
from ragworth.calls.store import UNKNOWN, Store, StoredCall, format_time
from ragworth.core.errors import StoreError
from ragworth.llm.contract import Card, Failure, Request, Response

IDENTITY_FIELDS = ("backend", "name", "revision", "quantisation", "template", "endpoint")

MERGE_BATCH = 1024
"""Calls that are merged in a transaction."""


class StoredCalls(NamedTuple):
    """Totals of one model and one kind of call in a store."""

    backend: str
    model: str
    revision: str
    kind: str
    calls: int
    prompt_tokens: int
    new_tokens: int
    seconds: float
    first: float | None
    last: float | None
    unreported: int
    """Calls with unknown tokens, because the endpoint didn't report them."""


def stored_calls(store: Store) -> list[StoredCalls]:
    """Return totals of a store by model and kind."""
    rows = store.query(
        "SELECT model, kind, count(*), sum(prompt_tokens), sum(new_tokens), sum(seconds), min(made), max(made), "
        "sum(prompt_tokens = 0) "
        "FROM answers GROUP BY model, kind ORDER BY model, kind"
    )
    cards = store.cards()
    names = {number: (card.backend, card.name, card.revision) for number, card in cards.items() if card is not None}
    return [StoredCalls(*names.get(model, (UNKNOWN, UNKNOWN, "")), str(kind), *rest) for model, kind, *rest in rows]


def export_calls(store: Store) -> Iterator[dict[str, Any]]:
    """Yield every call as plain values: model, request (if it can be read), response. Damaged answers are left out;
    `verify` names them.
    """
    for call in store.calls():
        response = call.response()
        if isinstance(response, Failure):
            continue
        try:
            request = json.loads(request_to_json(call.request()))
        except ValueError:
            request = None
        identity = call.model.identity if call.model is not None else ("",) * len(IDENTITY_FIELDS)
        yield {
            "key": call.key.hex(),
            "model": dict(zip(IDENTITY_FIELDS, identity, strict=True)),
            "kind": call.kind,
            "request": request,
            "response": _plain(response),
            "made": format_time(call.made, "%Y-%m-%dT%H:%M:%SZ", utc=True),
        }


def _plain(value: Any) -> Any:
    """Return nested named tuples as dicts."""
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


class VerificationResult(NamedTuple):
    """Result of checking a store."""

    calls: int
    problems: list[str]


def verify(store: Store) -> VerificationResult:
    """Check that the file is intact, that every answer can be used, and that it belongs to its request."""
    problems = [str(text) for (text,) in store.query("PRAGMA integrity_check") if text != "ok"]
    calls = 0
    try:
        for call in store.calls():
            calls += 1
            try:
                _check_call(call)
            except ValueError as problem:
                problems.append(f"call {call.key.hex()}: {problem}")
    except StoreError as error:
        problems.append(f"reading stopped after {calls} calls: {error.found}")
    return VerificationResult(calls, problems)


def _check_call(call: StoredCall) -> tuple[Card, Request, Response]:
    """Return model, request and answer. Raises ValueError if one is damaged, or if they don't belong together."""
    response = call.response()
    if isinstance(response, Failure):
        raise ValueError(response.detail)
    if call.model is None:
        raise ValueError("its model is not known: the card is gone or damaged (the next call writes it again)")
    request = call.request()
    if call_key(model_digest(call.model), request) != call.key or REQUEST_KINDS[type(request)] != call.kind:
        raise ValueError("its key is not that of its model and request")
    return call.model, request, response


class MergeResult(NamedTuple):
    """Numbers of answers in another store: new ones, those that were there, and those left out as damaged."""

    added: int
    present: int
    damaged: int


def merge(store: Store, other: Store) -> MergeResult:
    """Add the answers of another store, with their prompts. An answer that is there already stays."""
    added = present = damaged = 0
    calls = other.calls()
    with store.writing():
        while batch := list(islice(calls, MERGE_BATCH)):
            stored = {key for key, _ in store.look_up([call.key for call in batch])}
            fresh: defaultdict[Card, list[tuple[bytes, Request, Response]]] = defaultdict(list)
            for call in batch:
                try:
                    card, request, response = _check_call(call)
                except ValueError:
                    damaged += 1
                    continue
                if call.key in stored:
                    present += 1
                else:
                    fresh[card].append((call.key, request, response))
            for card, answers in fresh.items():
                store.commit(card, answers)
                added += len(answers)
    return MergeResult(added, present, damaged)
