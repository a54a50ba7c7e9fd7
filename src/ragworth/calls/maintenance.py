"""Inspect, export, verify, merge and prune call stores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ragworth.calls.serialization import (
    DECODE_ERRORS,
    REQUEST_KINDS,
    call_key,
    card_from_json,
    model_digest,
    request_to_json,
)
from ragworth.calls.store import UNKNOWN_TIME, Store, StoreEntry, format_time
from ragworth.core.errors import InputError, StoreError
from ragworth.llm.contract import Chosen, Failure, Response, Scored


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
    """Totals of a store by model and kind."""
    rows = store.query(
        "SELECT card, kind, count(*), sum(prompt_tokens), sum(new_tokens), sum(seconds), min(made), max(made) "
        "FROM answers LEFT JOIN models ON models.number = answers.model GROUP BY model, kind ORDER BY model, kind"
    )
    return [StoredCalls(*_names(card), _as_text(kind), *rest) for card, kind, *rest in rows]


def count_unreported(store: Store) -> int:
    """Calls with unknown tokens, because the endpoint didn't report them."""
    ((number,),) = store.query("SELECT count(*) FROM answers WHERE prompt_tokens = 0")
    return int(number)


def failed_calls(store: Store) -> list[FailedCalls]:
    """Failures by model, kind and reason."""
    rows = store.query(
        "SELECT card, kind, reason, count(*), min(detail) FROM errors LEFT JOIN models ON models.number = errors.model "
        "GROUP BY model, kind, reason ORDER BY count(*) DESC"
    )
    return [
        FailedCalls(_names(card)[1], _as_text(kind), _as_text(reason), calls, _as_text(detail))
        for card, kind, reason, calls, detail in rows
    ]


def _names(card: object) -> tuple[str, str, str]:
    """Backend, name and revision from a model's card."""
    try:
        known = card_from_json(str(card))
    except DECODE_ERRORS:
        return UNKNOWN_TIME, UNKNOWN_TIME, ""
    return str(known.backend), str(known.name), str(known.revision)


def _as_text(value: object) -> str:
    """Convert a value of a possibly damaged store to text."""
    return value if isinstance(value, str) else UNKNOWN_TIME


def export_calls(store: Store) -> Iterator[dict[str, Any]]:
    """Yield every call as plain values: model, request (if it was stored and can be read), response. Damaged answers
    are left out; `verify` names them.
    """
    for entry in store.entries():
        response = entry.answer()
        if isinstance(response, Failure):
            continue
        try:
            request = entry.request()
        except ValueError:
            request = None
        model = entry.model.identity if entry.model is not None else ("",) * len(IDENTITY_FIELDS)
        yield {
            "key": entry.key.hex(),
            "model": dict(zip(IDENTITY_FIELDS, model, strict=True)),
            "kind": entry.kind,
            "request": None if request is None else json.loads(request_to_json(request)),
            "response": _response_values(response),
            "usage": response.usage._asdict(),
            "made": format_time(entry.made, "%Y-%m-%dT%H:%M:%SZ", utc=True),
        }


IDENTITY_FIELDS = ("backend", "name", "revision", "quantisation", "template", "endpoint")


def _response_values(response: Response) -> dict[str, Any]:
    if isinstance(response, Chosen):
        found = response._asdict()
        del found["usage"]
        return found
    if isinstance(response, Scored):
        return dict(response.trace._asdict())
    return {
        "outputs": [
            {"text": o.text, "finish": o.finish, "trace": None if o.trace is None else o.trace._asdict()}
            for o in response.outputs
        ]
    }


class VerificationResult(NamedTuple):
    """Result of checking a store. ``unchecked``: calls whose prompts weren't stored."""

    calls: int
    unchecked: int
    problems: list[str]


def verify(store: Store) -> VerificationResult:
    """Check that the file is intact, that every answer can be used, and that it belongs to its request."""
    problems = [str(text) for (text,) in store.query("PRAGMA integrity_check") if text != "ok"]
    calls = unchecked = 0
    try:
        for entry in store.entries():
            calls += 1
            unchecked += entry.packed is None
            if problem := _find_damage(entry):
                problems.append(f"call {entry.key.hex()}: {problem}")
    except StoreError as error:
        problems.append(f"reading stopped after {calls} calls: {error.found}")
    return VerificationResult(calls, unchecked, problems)


def _find_damage(entry: StoreEntry) -> str:
    """Return how a call is damaged; empty if it isn't."""
    answer = entry.answer()
    if isinstance(answer, Failure):
        return answer.detail
    if entry.model is None:
        return "its model is not known: the card is gone or damaged (the next call writes it again)"
    try:
        request = entry.request()
    except ValueError as error:
        return str(error)
    if request is None:
        return ""
    fits = call_key(model_digest(entry.model), request) == entry.key and REQUEST_KINDS[type(request)] == entry.kind
    return "" if fits else "its key is not that of its model and request"


class MergeResult(NamedTuple):
    """Numbers of answers in another store: new ones, those that were there, and those left out as damaged."""

    added: int
    present: int
    damaged: int


def merge(store: Store, other: Store) -> MergeResult:
    """Add the answers of another store, with their prompts. An answer that is there already stays."""
    sound = damaged = 0

    def sound_entries() -> Iterator[tuple[StoreEntry, Response]]:
        nonlocal sound, damaged
        for entry in other.entries():
            answer = entry.answer()
            if isinstance(answer, Failure) or entry.model is None:
                damaged += 1
            else:
                sound += 1
                yield entry, answer

    with store.writing():
        added = store.insert(sound_entries())
    return MergeResult(added, sound - added, damaged)


class CallFilter(NamedTuple):
    """Calls to remove: those that match all given criteria."""

    model: str = ""
    kind: str = ""
    errors: bool = False
    """Errors instead of answers."""
    prompts: bool = False
    """Only the prompts, not the answers."""


def prune(store: Store, choice: CallFilter, *, dry: bool) -> int:
    """Remove calls and return their number. ``dry`` only counts."""
    if choice == CallFilter():
        raise InputError(
            "no criteria for what to remove",
            remedy="set --model, --kind, --errors or --prompts",
        )
    _check_model(store, choice)
    where = ["1 = 1"]
    values: list[object] = []
    if choice.model:
        numbers = [n for n, card in store.query("SELECT number, card FROM models") if choice.model in _names(card)[:2]]
        where.append(f"model IN ({','.join(map(str, numbers))})")
    if choice.kind:
        where.append("kind = ?")
        values.append(choice.kind)
    table = "errors" if choice.errors else "answers"
    keys = f"SELECT key FROM {table} WHERE {' AND '.join(where)}"
    target = f"requests WHERE key IN ({keys})" if choice.prompts else f"{table} WHERE key IN ({keys})"
    ((number,),) = store.query(f"SELECT count(*) FROM {target}", values)
    if not dry and number:
        with store.writing():
            statements: list[tuple[str, list[object]]] = [(f"DELETE FROM {target}", values)]
            if not choice.prompts:
                left = "SELECT key FROM answers UNION ALL SELECT key FROM errors"
                statements.append((f"DELETE FROM requests WHERE key NOT IN ({left})", []))
            store.change(statements)
    return int(number)


def _check_model(store: Store, choice: CallFilter) -> None:
    """Refuse the name of a model that the store doesn't have."""
    models = {name for card in store.cards().values() if card is not None for name in (card.backend, card.name)}
    if choice.model and choice.model not in models:
        names = sorted({card.name for card in store.cards().values() if card is not None})
        raise InputError(f"the store has no model {choice.model!r}", expected=", ".join(names) or "an empty store")
