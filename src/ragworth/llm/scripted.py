"""``scripted``: a model with given answers, for tests of ragworth and of programs that use it.

It has all abilities, answers deterministically from a script, and fails on request.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragworth.core.errors import ModelError, quote_short
from ragworth.core.nested_text import parse_json
from ragworth.llm.contract import (
    ABILITIES,
    LENGTH,
    STOP,
    Card,
    Choose,
    Chosen,
    Failure,
    Generate,
    Generated,
    Output,
    Prompt,
    Request,
    Score,
    Scored,
    Trace,
    Usage,
    text_before_stop,
)

ScriptedReply = str | Mapping[str, float] | float | Trace | Failure
"""A script's reply: a text to generate, probabilities by label, a log-probability per token, a trace (to generate or to
score), or a failure.
"""


class Scripted:
    """A model that answers from ``script``.

    Parameters
    ----------
    script: from a request to a reply; or a mapping from the last message of a prompt to replies, ``*`` for all others.
    entropy: of every token, in nats, if the script gives no trace.
    error: share of calls that fail, drawn from the prompt and the number of the attempt, so that runs repeat.
    abilities: the model's abilities; all by default.
    seconds: how long a call takes.
    """

    def __init__(
        self,
        script: Callable[[Request], ScriptedReply] | Mapping[str, ScriptedReply],
        *,
        name: str = "scripted",
        entropy: float = 0.5,
        error: float = 0.0,
        abilities: Sequence[str] = ABILITIES,
        context_length: int | None = None,
        batch: int = 16,
        concurrency: int = 1,
        seconds: float = 0.0,
    ) -> None:
        if batch < 1 or concurrency < 1:
            raise ModelError(f"batch is {batch} and concurrency {concurrency}", expected="1 or more")
        if not 0 <= error <= 1:
            raise ModelError(f"error is {error}", expected="a share from 0 to 1")
        self._script = script
        self._entropy = entropy
        self._error = error
        self._seconds = seconds
        self._tries: dict[bytes, int] = {}
        self.batch = batch
        self.concurrency = concurrency
        self.calls = 0
        """Requests answered so far, including failures."""
        self.card = Card("scripted", name, abilities=frozenset(abilities), context_length=context_length)

    def count(self, prompt: Prompt) -> int:
        """Number of words, which are this model's tokens."""
        return sum(len(message.content.split()) for message in prompt.messages)

    def close(self) -> None:
        """Nothing to let go of."""

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        return [self._generate(request) for request in requests]

    def score(self, requests: Sequence[Score]) -> list[Scored | Failure]:
        return [self._score(request) for request in requests]

    def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
        return [self._choose(request) for request in requests]

    def _reply(self, request: Request, room: int, kinds: tuple[type, ...], expected: str) -> Any:
        """The script's reply of some kinds, or a failure: the prompt is too long, a fault, or one of the script."""
        self.calls += 1
        time.sleep(self._seconds)
        limit, tokens = self.card.context_length, self.count(request.prompt)
        if limit is not None and tokens + room > limit:
            return Failure("too-long", f"{tokens} tokens and {room} to come; the model reads {limit}", retry=False)
        if self._is_fault(request):
            return Failure("server-error", "scripted fault")
        if callable(self._script):
            reply: ScriptedReply | None = self._script(request)
        else:
            last = request.prompt.messages[-1].content
            reply = self._script.get(last, self._script.get("*"))
            if reply is None:
                return Failure("not-scripted", f"nothing is scripted for {quote_short(last)}", retry=False)
        if not isinstance(reply, (*kinds, Failure)):
            raise ModelError(f"the script gave {quote_short(reply)}, not {expected}", expected=expected)
        return reply

    def _is_fault(self, request: Request) -> bool:
        if not self._error:
            return False
        key = hashlib.blake2b(repr(request).encode("utf-8", "replace"), digest_size=8).digest()
        number = self._tries[key] = self._tries.get(key, 0) + 1
        return random.Random(f"{number} {key.hex()}").random() < self._error

    def _usage(self, prompt: Prompt, new: int) -> Usage:
        return Usage(self.count(prompt), new, self._seconds)

    def _generate(self, request: Generate) -> Generated | Failure:
        reply = self._reply(request, request.max_tokens, (str, Trace), "a text to generate")
        if isinstance(reply, Failure):
            return reply
        finish, trace = STOP, reply
        if isinstance(reply, Trace):
            text = "".join(reply.tokens)
        else:
            before = text_before_stop(reply, request.stop)
            words = (reply if before is None else before).split(" ")
            if len(words) > request.max_tokens:
                words, finish = words[: request.max_tokens], LENGTH
            text = " ".join(words)
            trace = Trace(tuple(words), (-self._entropy,) * len(words), (self._entropy,) * len(words))
        new = len(trace.tokens)
        if request.detail == "text":
            trace = None
        elif request.detail == "logprobs":
            trace = trace._replace(entropies=None, bounds=None)
        return Generated((Output(text, finish, trace),) * request.n, self._usage(request.prompt, new * request.n))

    def _score(self, request: Score) -> Scored | Failure:
        words = tuple(request.continuation.split())
        reply = self._reply(request, len(words), (int, float, Trace), "a number for a continuation to score")
        if isinstance(reply, Failure):
            return reply
        if not isinstance(reply, Trace):
            reply = Trace(words, (float(reply),) * len(words), (self._entropy,) * len(words))
        return Scored(reply, self._usage(request.prompt, len(reply.tokens)))

    def _choose(self, request: Choose) -> Chosen | Failure:
        reply = self._reply(request, 1, (Mapping,), "a probability for each label")
        if isinstance(reply, Failure):
            return reply
        values = tuple(float(reply.get(label, 0.0)) for label in request.labels)
        if not all(0 <= value <= 1 for value in values) or math.fsum(values) > 1 + 1e-9:
            raise ModelError(f"the script gave the probabilities {quote_short(values)}", expected="a sum of 1 at most")
        return Chosen(values, values, values, request.estimator, self._usage(request.prompt, 1))


def open_model(
    rest: str,
    *,
    error: float = 0.0,
    context_length: int = 0,
    batch: int = 16,
    concurrency: int = 1,
    seconds: float = 0.0,
) -> Scripted:
    """Open ``scripted:FILE``: a JSON object from the last message of a prompt to the reply; ``*`` for all others.

    Options are those of `Scripted`.
    """
    if not rest:
        raise ModelError("the script is missing", expected="scripted:FILE, a JSON object", remedy="name a file")
    path = Path(rest)
    try:
        script = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ModelError(f"it cannot be read: {problem}", file=rest, expected="a JSON object") from problem
    if not isinstance(script, dict) or not all(
        isinstance(reply, str | dict | int | float) for reply in script.values()
    ):
        example = '{"Is it?": {"yes": 0.8}, "*": "I do not know"}'
        raise ModelError("it is not a script", file=rest, expected=f"a JSON object such as {example}")
    limit = context_length or None
    model = Scripted(
        script, name=path.name, error=error, context_length=limit, batch=batch, concurrency=concurrency, seconds=seconds
    )
    digest = hashlib.sha256(json.dumps(script, sort_keys=True).encode()).hexdigest()[:16]
    model.card = replace(model.card, revision=digest)
    return model
