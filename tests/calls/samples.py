"""Requests, responses and stores that the tests of calls share."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.llm.contract import (
    Choose,
    Chosen,
    Failure,
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
from ragworth.llm.scripted import Scripted, ScriptedReply

YES = {"yes": 0.75, "no": 0.25}


def question(number: int, words: int = 3) -> Choose:
    """A small request; equal numbers make equal requests."""
    return Choose(Prompt.text(" ".join([f"question{number}"] * words)), ("yes", "no"))


def questions(number: int, words: int = 3) -> list[Request]:
    return [question(i, words) for i in range(number)]


def share(request: Request) -> dict[str, float]:
    """Probabilities that depend on the prompt, so that a mixed-up answer shows."""
    number = int(re.findall(r"\d+", request.prompt.messages[-1].content)[0])
    return {"yes": number % 1000 / 1000}


class Noted:
    """A script that notes what it is asked."""

    def __init__(self, script: Callable[[Request], ScriptedReply] = share) -> None:
        self.script = script
        self.seen: list[Request] = []

    def __call__(self, request: Request) -> ScriptedReply:
        self.seen.append(request)
        return self.script(request)


def fresh(script: Callable[[Request], ScriptedReply] = share, **options: Any) -> tuple[Scripted, Noted]:
    """A scripted model, and what it notes."""
    noted = Noted(script)
    return Scripted(noted, **options), noted


def filled(path: Path, requests: Iterable[Request], **options: Any) -> list[Response | Failure]:
    """Ask a scripted model and keep its answers in a store at ``path``."""
    with Store(path) as store:
        return list(Job(Scripted(share, **options), store).run(requests))


def tampered(path: Path, *statements: str) -> None:
    """Change a store behind ragworth's back."""
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        (number,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(number)


# Text with everything in it: controls, half characters, other planes. Two halves that make a whole are left out.
_WHOLE = re.compile("[\ud800-\udbff][\udc00-\udfff]")
TEXTS = st.text(st.characters(exclude_categories=()), max_size=12).map(lambda text: _WHOLE.sub("", text))
NUMBERS = st.integers(0, 10**6)
FLOATS = st.floats()

# Few, awkward values, so that two requests often agree in most of what they hold.
SHORT = st.text(st.sampled_from('a1:"\\,[é \ud800'), max_size=3)
MESSAGES = st.lists(
    st.builds(PromptMessage, st.sampled_from(["system", "user", "assistant", "text"]), SHORT), min_size=1, max_size=3
)
PROMPTS = st.builds(
    lambda messages, version: Prompt(tuple(messages), (), version), MESSAGES, st.sampled_from(["", "1", "1a", "a"])
)
GENERATES = st.builds(
    Generate,
    PROMPTS,
    max_tokens=st.sampled_from([1, 11]),
    temperature=st.sampled_from([0, 0.0, 0.5, 1, 1.0]),
    top_p=st.sampled_from([1.0, 1, 0.5]),
    stop=st.lists(SHORT, max_size=2).map(tuple),
    seed=st.sampled_from([0, 1]),
    n=st.sampled_from([1, 2]),
    detail=st.sampled_from(["text", "logprobs", "entropies"]),
    schema=st.sampled_from(["", "{}"]),
)
SCORES = st.builds(Score, PROMPTS, SHORT)
CHOOSES = st.builds(
    Choose, PROMPTS, st.lists(SHORT, max_size=3).map(tuple), st.sampled_from(["first-token", "sequence"])
)
REQUESTS: st.SearchStrategy[Request] = st.one_of(GENERATES, SCORES, CHOOSES)

WIDE_PROMPTS = st.builds(
    lambda texts, spans, version: Prompt(tuple(PromptMessage("user", text) for text in texts), tuple(spans), version),
    st.lists(TEXTS, min_size=1, max_size=3),
    st.lists(st.builds(Span, NUMBERS, NUMBERS, NUMBERS), max_size=2),
    TEXTS,
)
WIDE_REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.builds(
        Generate,
        WIDE_PROMPTS,
        max_tokens=NUMBERS,
        temperature=st.floats(0, 5),
        top_p=st.floats(0, 1),
        stop=st.lists(TEXTS, max_size=2).map(tuple),
        seed=st.integers(),
        n=NUMBERS,
        schema=TEXTS,
    ),
    st.builds(Score, WIDE_PROMPTS, TEXTS),
    st.builds(Choose, WIDE_PROMPTS, st.lists(TEXTS, max_size=3).map(tuple), st.sampled_from(["first-token"])),
)

USAGES = st.builds(Usage, NUMBERS, NUMBERS, st.floats(0, 1e6), NUMBERS, NUMBERS, NUMBERS, TEXTS)


def _tuples(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=3).map(tuple)


TRACES = st.builds(
    Trace,
    _tuples(TEXTS),
    _tuples(FLOATS),
    st.none() | _tuples(FLOATS),
    st.none() | _tuples(st.tuples(FLOATS, FLOATS)),
    st.none() | _tuples(NUMBERS),
)
OUTPUTS = st.builds(Output, TEXTS, TEXTS, st.none() | TRACES)
CHOSEN = st.builds(Chosen, _tuples(FLOATS), _tuples(FLOATS), _tuples(FLOATS), TEXTS, USAGES)
EXACT = CHOSEN.map(lambda chosen: chosen._replace(low=chosen.probabilities, high=chosen.probabilities))
RESPONSES: st.SearchStrategy[tuple[str, Response]] = st.one_of(
    st.builds(Generated, _tuples(OUTPUTS), USAGES).map(lambda found: ("generate", found)),
    st.builds(Scored, TRACES, USAGES).map(lambda found: ("score", found)),
    (CHOSEN | EXACT).map(lambda found: ("choose", found)),
)
