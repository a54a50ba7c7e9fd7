"""Looking after a store: what is in it, whether it is sound, taking things out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ragworth.calls.records import key_of, model_digest, request_to_json, response_from_json
from ragworth.calls.store import Entry, Store, card_from_json, seal
from ragworth.errors import InputError, StoreError
from ragworth.llm.contract import Chosen, Response, Scored


class Holding(NamedTuple):
    """What a store has of one model and one kind of call."""

    backend: str
    model: str
    revision: str
    kind: str
    calls: int
    prompt_tokens: int
    new_tokens: int
    seconds: float
    first: float
    last: float


class Trouble(NamedTuple):
    """Calls of one model that failed for one reason and are still without an answer."""

    model: str
    kind: str
    reason: str
    calls: int
    example: str


def holdings(store: Store) -> list[Holding]:
    """What is in a store, by model and kind."""
    rows = store.query(
        "SELECT card, kind, count(*), sum(prompt_tokens), sum(new_tokens), sum(seconds), min(made), max(made) "
        "FROM answers JOIN models ON models.number = answers.model GROUP BY model, kind ORDER BY model, kind"
    )
    return [Holding(*_names(card), *rest) for card, *rest in rows]


def troubles(store: Store) -> list[Trouble]:
    """What failed, by model, kind and reason."""
    rows = store.query(
        "SELECT card, kind, reason, count(*), min(detail) FROM errors JOIN models ON models.number = errors.model "
        "GROUP BY model, kind, reason ORDER BY count(*) DESC"
    )
    return [Trouble(_names(card)[1], *rest) for card, *rest in rows]


def _names(card: str) -> tuple[str, str, str]:
    known = card_from_json(card)
    return known.backend, known.name, known.revision


def exported(store: Store) -> Iterator[dict[str, Any]]:
    """Every call as plain values: model, request (where it was kept), response."""
    for entry in store.entries():
        try:
            response, request = response_from_json(entry.kind, entry.response), entry.request()
        except (ValueError, TypeError, LookupError) as error:
            raise StoreError(
                f"call {entry.key.hex()} cannot be read: {error}",
                file=str(store.path),
                remedy="ragworth calls verify says more",
            ) from error
        model = entry.model.identity if entry.model is not None else ("",) * len(IDENTITY)
        yield {
            "key": entry.key.hex(),
            "model": dict(zip(IDENTITY, model, strict=True)),
            "kind": entry.kind,
            "request": None if request is None else json.loads(request_to_json(request)),
            "response": _plain(response),
            "usage": response.usage._asdict(),
            "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry.made)),
        }


IDENTITY = ("backend", "name", "revision", "quantisation", "template", "endpoint")


def _plain(response: Response) -> dict[str, Any]:
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


class Verified(NamedTuple):
    """What a check of a store found. ``unchecked``: calls whose prompts were not kept."""

    calls: int
    unchecked: int
    problems: list[str]


def verify(store: Store) -> Verified:
    """Read everything: is the file whole, is every answer as it was written, and does it belong to its request?"""
    problems = [text for (text,) in store.query("PRAGMA integrity_check") if text != "ok"]
    calls = unchecked = 0
    try:
        for entry in store.entries():
            calls += 1
            unchecked += entry.packed is None
            problems += [f"call {entry.key.hex()}: {problem}" for problem in _problems(entry)]
    except StoreError as error:
        problems.append(f"reading stopped after {calls} calls: {error.found}")
    return Verified(calls, unchecked, problems)


def _problems(entry: Entry) -> Iterator[str]:
    """What is wrong with one call."""
    if seal(entry.key, entry.kind, entry.response) != entry.seal:
        yield "its response is not as it was written"
    if entry.model is None:
        yield "its model is not known"
        return
    try:
        request = entry.request()
    except ValueError as error:
        yield str(error)
        return
    if request is not None and key_of(model_digest(entry.model), request) != entry.key:
        yield "its key is not that of its model and request"


class Choice(NamedTuple):
    """Which calls to take out: those that fit everything that is given."""

    model: str = ""
    kind: str = ""
    older_than_days: float | None = None
    errors: bool = False
    """Errors instead of answers."""
    prompts: bool = False
    """Only the prompts, not the answers."""


def prune(store: Store, choice: Choice, *, dry: bool) -> int:
    """Take calls out; how many that are. ``dry`` only counts."""
    if choice == Choice():
        raise InputError(
            "nothing was said about what to take out",
            remedy="give --model, --kind, --older-than, --errors or --prompts",
        )
    where = ["1 = 1"]
    values: list[object] = []
    if choice.model:
        numbers = [n for n, card in store.query("SELECT number, card FROM models") if choice.model in _names(card)[:2]]
        if not numbers:
            known = sorted({_names(card)[1] for (card,) in store.query("SELECT card FROM models")})
            raise InputError(f"the store has no model {choice.model!r}", expected=", ".join(known) or "an empty store")
        where.append(f"model IN ({','.join(map(str, numbers))})")
    if choice.kind:
        where.append("kind = ?")
        values.append(choice.kind)
    if choice.older_than_days is not None:
        where.append("made < ?")
        values.append(time.time() - 86400 * choice.older_than_days)
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
