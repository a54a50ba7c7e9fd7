"""Inspect, export, verify and merge call stores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from ragworth.calls.serialization import REQUEST_KINDS, call_key, model_digest, request_to_json
from ragworth.calls.store import UNKNOWN, Store, StoredCall, format_time
from ragworth.core.errors import StoreError
from ragworth.llm.contract import Card, Failure

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


class FailedCalls(NamedTuple):
    """Calls of one model that failed for one reason and have no answer yet."""

    model: str
    kind: str
    reason: str
    calls: int
    example: str


def stored_calls(store: Store) -> list[StoredCalls]:
    """Return totals of a store by model and kind."""
    rows = store.query(
        "SELECT model, kind, count(*), sum(prompt_tokens), sum(new_tokens), sum(seconds), min(made), max(made) "
        "FROM answers GROUP BY model, kind ORDER BY model, kind"
    )
    cards = store.cards()
    return [StoredCalls(*_names(cards.get(model)), str(kind), *rest) for model, kind, *rest in rows]


def count_unreported(store: Store) -> int:
    """Count calls with unknown tokens, because the endpoint didn't report them."""
    ((number,),) = store.query("SELECT count(*) FROM answers WHERE prompt_tokens = 0")
    return int(number)


def failed_calls(store: Store) -> list[FailedCalls]:
    """Return failures by model, kind and reason."""
    rows = store.query(
        "SELECT model, kind, reason, count(*), min(detail) FROM errors GROUP BY model, kind, reason "
        "ORDER BY count(*) DESC"
    )
    cards = store.cards()
    return [
        FailedCalls(_names(cards.get(model))[1], str(kind), str(reason), calls, str(detail))
        for model, kind, reason, calls, detail in rows
    ]


def _names(card: Card | None) -> tuple[str, str, str]:
    """Return backend, name and revision of a model, whose card may be damaged."""
    return (UNKNOWN, UNKNOWN, "") if card is None else (card.backend, card.name, card.revision)


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
            if problem := _find_damage(call):
                problems.append(f"call {call.key.hex()}: {problem}")
    except StoreError as error:
        problems.append(f"reading stopped after {calls} calls: {error.found}")
    return VerificationResult(calls, problems)


def _find_damage(call: StoredCall) -> str:
    """Describe the damage of a call; empty if there is none."""
    response = call.response()
    if isinstance(response, Failure):
        return response.detail
    if call.model is None:
        return "its model is not known: the card is gone or damaged (the next call writes it again)"
    try:
        request = call.request()
    except ValueError as error:
        return str(error)
    fits = call_key(model_digest(call.model), request) == call.key and REQUEST_KINDS[type(request)] == call.kind
    return "" if fits else "its key is not that of its model and request"


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
            sound = [call for call in batch if not _find_damage(call)]
            damaged += len(batch) - len(sound)
            fresh = [call for call in sound if call.key not in stored]
            present += len(sound) - len(fresh)
            added += len(fresh)
            for card in {call.model for call in fresh}:
                assert card is not None
                rows = [(call.key, call.request(), call.response()) for call in fresh if call.model == card]
                store.commit(card, rows)
    return MergeResult(added, present, damaged)
