"""Inspect, verify and prune a call store."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from ragworth.calls.cards import card_from_json
from ragworth.calls.serialization import DECODE_ERRORS, call_key, model_digest, request_to_json, response_from_json
from ragworth.calls.store import Store
from ragworth.calls.store_entry import StoreEntry
from ragworth.calls.timestamps import UNKNOWN_TIME, format_time
from ragworth.errors import InputError, StoreError
from ragworth.llm.contract import MAX_SECONDS, MAX_TOKENS, Chosen, Response, Scored


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
    uncounted: int = 0
    """Calls left out of the totals because their tokens, seconds or date are impossible."""


class FailedCalls(NamedTuple):
    """Calls of one model that failed for one reason and have no answer yet."""

    model: str
    kind: str
    reason: str
    calls: int
    example: str


TOKENS_CONDITION = "typeof({0}) = 'integer' AND {0} BETWEEN 0 AND " + str(MAX_TOKENS)
SECONDS_CONDITION = "typeof({0}) IN ('real', 'integer') AND {0} BETWEEN 0 AND " + str(MAX_SECONDS)
DATES_CONDITION = "typeof({0}) IN ('real', 'integer') AND {0} BETWEEN 0 AND 253402300799"
"""Up to the year 9999."""

COLUMN_CONDITIONS = {
    "prompt_tokens": TOKENS_CONDITION,
    "new_tokens": TOKENS_CONDITION,
    "seconds": SECONDS_CONDITION,
    "made": DATES_CONDITION,
}
"""Valid values of a store's columns. A damaged store can contain anything, and sums of that could overflow."""


def stored_calls(store: Store) -> list[StoredCalls]:
    """Totals of a store and its segments by model and kind. Impossible numbers are left out and counted."""
    found: dict[tuple[str, ...], StoredCalls] = {}
    for part in store.parts():
        for one in _stored_calls(part):
            same = found.get(one[:4])
            found[one[:4]] = one if same is None else _total(same, one)
    return list(found.values())


def _total(one: StoredCalls, other: StoredCalls) -> StoredCalls:
    return one._replace(
        calls=one.calls + other.calls,
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        new_tokens=one.new_tokens + other.new_tokens,
        seconds=one.seconds + other.seconds,
        first=min((day for day in (one.first, other.first) if day is not None), default=None),
        last=max((day for day in (one.last, other.last) if day is not None), default=None),
        uncounted=one.uncounted + other.uncounted,
    )


def _stored_calls(store: Store) -> list[StoredCalls]:
    tests = {name: test.format(name) for name, test in COLUMN_CONDITIONS.items()}
    sums = [
        f"coalesce(sum({name}) FILTER (WHERE {tests[name]}), 0)" for name in ("prompt_tokens", "new_tokens", "seconds")
    ]
    dates = [f"{pick}(made) FILTER (WHERE {tests['made']})" for pick in ("min", "max")]
    uncounted = f"sum(NOT ({' AND '.join(f'({test})' for test in tests.values())}))"
    rows = store.query(
        f"SELECT card, kind, count(*), {', '.join(sums + dates)}, {uncounted} "
        "FROM answers LEFT JOIN models ON models.number = answers.model GROUP BY model, kind ORDER BY model, kind"
    )
    return [StoredCalls(*_names(card), _as_text(kind), *rest) for card, kind, *rest in rows]


def count_unreported(store: Store) -> int:
    """Calls with unknown tokens, because the endpoint didn't report them."""
    count = "SELECT count(*) FROM answers WHERE prompt_tokens = 0"
    return sum(int(part.query(count)[0][0]) for part in store.parts())


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
    """Yield every call as plain values: model, request (if stored), response. Damaged answers are an error."""
    for part in store.parts():
        part.refuse_damage()
        yield from _export_part(part)


def _export_part(store: Store) -> Iterator[dict[str, Any]]:
    for entry in store.entries():
        try:
            response, request = response_from_json(entry.kind, entry.response), entry.request()
        except DECODE_ERRORS as error:
            raise StoreError(
                f"call {entry.key.hex()} can't be read: {error}",
                file=str(store.path),
                remedy=f"ragworth calls prune {store.path} --damaged removes only what is damaged",
            ) from error
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


Damage = Literal["", "card", "segment", "call", "file"]


class VerificationResult(NamedTuple):
    """Result of checking a store. ``unchecked``: calls whose prompts weren't stored."""

    calls: int
    unchecked: int
    problems: list[str]
    worst: Damage = ""
    """The worst damage: model cards only, a segment, calls, or the file itself."""


def verify(store: Store) -> VerificationResult:
    """Check that all files are intact, that every answer is unchanged, and that it belongs to its request."""
    own, *segments = (_verify_part(part) for part in store.parts())
    found = own
    for file, one in zip(store.segments.files, segments, strict=True):
        problems = [*found.problems, *(f"{file.name}: {problem}" for problem in one.problems)]
        worst = "segment" if one.problems and found.worst in ("", "card") else found.worst
        found = VerificationResult(found.calls + one.calls, found.unchecked + one.unchecked, problems, worst)
    return found


def _verify_part(store: Store) -> VerificationResult:
    broken = [str(text) for (text,) in store.query("PRAGMA integrity_check") if text != "ok"]
    unknown, damaged = _unknown_models(store), []
    calls = unchecked = 0
    try:
        for entry in store.entries():
            calls += 1
            unchecked += entry.packed is None
            if (damage := _find_damage(entry)) is not None:
                damaged.append(f"call {entry.key.hex()}: {damage.problem}")
    except StoreError as error:
        broken.append(f"reading stopped after {calls} calls: {error.found}")
    worst: Damage = "file" if broken else "call" if damaged else "card" if unknown else ""
    return VerificationResult(calls, unchecked, [*broken, *unknown, *damaged], worst)


def _unknown_models(store: Store) -> list[str]:
    """Models without a readable card. Their answers are found by their keys all the same."""
    cards = store.cards()
    rows = store.query("SELECT model, count(*) FROM answers GROUP BY model")
    return [
        f"model {model} of {calls:,} calls is not known: its card is gone or damaged (the next call writes it again)"
        for model, calls in rows
        if cards.get(model) is None
    ]


class CallDamage(NamedTuple):
    """Damage to a call. ``answer``: the answer is unusable; otherwise only its stored prompt is."""

    problem: str
    answer: bool


def _find_damage(entry: StoreEntry) -> CallDamage | None:
    if not entry.intact:
        return CallDamage("its response changed after it was written", answer=True)
    try:
        response_from_json(entry.kind, entry.response)
    except DECODE_ERRORS as error:
        return CallDamage(f"its response can't be read ({error})", answer=True)
    try:
        request = entry.request()
        fits = request is None or entry.model is None or call_key(model_digest(entry.model), request) == entry.key
    except DECODE_ERRORS as error:
        return CallDamage(str(error), answer=False)
    return None if fits else CallDamage("its key is not that of its model and request", answer=False)


class CallFilter(NamedTuple):
    """Calls to remove: those that match all given criteria."""

    model: str = ""
    kind: str = ""
    older_than_days: float | None = None
    errors: bool = False
    """Errors instead of answers."""
    prompts: bool = False
    """Only the prompts, not the answers."""
    damaged: bool = False
    """Only damaged data: answers, and prompts of intact answers."""


def prune(store: Store, choice: CallFilter, *, dry: bool) -> int:
    """Remove calls and return their number. ``dry`` only counts."""
    if choice == CallFilter():
        raise InputError(
            "no criteria for what to remove",
            remedy="set --model, --kind, --older-than, --errors, --prompts or --damaged",
        )
    if choice.damaged:
        return _prune_damaged(store, choice, dry=dry)
    _check_model(store, choice)
    return sum(_prune_part(part, choice, dry=dry) for part in store.parts())


def _check_model(store: Store, choice: CallFilter) -> None:
    """Refuse the name of a model that the store doesn't have."""
    known = {name for card in store.cards().values() if card is not None for name in (card.backend, card.name)}
    if choice.model and choice.model not in known:
        names = sorted({card.name for card in store.cards().values() if card is not None})
        raise InputError(f"the store has no model {choice.model!r}", expected=", ".join(names) or "an empty store")


def _prune_part(store: Store, choice: CallFilter, *, dry: bool) -> int:
    where = ["1 = 1"]
    values: list[object] = []
    if choice.model:
        numbers = [n for n, card in store.query("SELECT number, card FROM models") if choice.model in _names(card)[:2]]
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


def _prune_damaged(store: Store, choice: CallFilter, *, dry: bool) -> int:
    """Remove damaged data: an answer with its prompt, or only the prompt if the answer is intact."""
    if choice != CallFilter(damaged=True):
        raise InputError("--damaged can't be combined with other criteria", remedy="use --damaged alone")
    number = sum(1 for _ in _damaged_keys(store))
    if not dry and number:
        with store.writing():
            store.remove(_damaged_keys(store))
    return number


def _damaged_keys(store: Store) -> Iterator[tuple[bytes, bool]]:
    """Keys of damaged data, and whether the answer is damaged."""
    for entry in store.entries():
        if (damage := _find_damage(entry)) is not None:
            yield entry.key, damage.answer


def count_future_dates(store: Store) -> int:
    """Answers dated in the future, because a clock is or was wrong."""
    ((number,),) = store.query("SELECT count(*) FROM answers WHERE made > ?", [time.time() + CLOCK_SLACK])
    return int(number)


CLOCK_SLACK = 60.0
"""Allowed clock difference in seconds between machines that share a store."""
