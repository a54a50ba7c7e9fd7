"""Run local models: turn requests into rows of tokens, batch them through a runtime, and convert the results.

A backend provides a function that loads a `Runtime`, which computes, and a `PromptEncoder`, which turns prompts into
tokens. Nothing is loaded before the first request. Results don't depend on which requests are batched together: rows
are padded at the end, where a causal model can't see it, and every sampled row has its own random numbers.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ragworth.llm.contract import (
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
    Score,
    Scored,
    Trace,
    Usage,
    text_before_stop,
)
from ragworth.llm.local.prompt_encoding import TAIL, EncodedPrompt, PromptEncoder
from ragworth.llm.local.runtime import (
    NO_TOKEN,
    GeneratingRuntime,
    LoadedModel,
    PrefixGroup,
    RowLogprobs,
    SamplingDraw,
    TokenRow,
    group_by_prefix,
)
from ragworth.llm.reasoning import drop_reasoning
from ragworth.llm.truncation import fit_prompt

R = TypeVar("R", Choose, Score)
T = TypeVar("T")

LOCAL_ABILITIES = frozenset({"generate", "logprobs", "entropies", "score", "choose"})
"""Abilities of every local model."""

TOKENS_WITHOUT_TEXT = 8
"""Tokens that may stand among those of a stop text and add nothing to it, such as parts of a character before it."""

UNKNOWN_TOKEN = Failure("unknown-token", "a token has a number that the model has no weights for", retry=False)
NOT_FINITE = Failure("malformed", "the model's logits, divided by the temperature, are not finite")
TOKEN_ACROSS_BOUNDARY = Failure("boundary", "a token spans the end of the prompt and what follows", retry=False)


class FittedPrompt(NamedTuple):
    """A prompt that fits, and how it was changed."""

    encoded: EncodedPrompt
    cut: int = 0
    limit: int = 0

    @property
    def ids(self) -> list[int]:
        return self.encoded.ids

    def usage(self, new: int, seconds: float) -> Usage:
        return Usage(len(self.ids), new, seconds, self.cut, self.encoded.defused, self.limit)


class RequestRows(NamedTuple):
    """The rows that answer a request, of a prompt that fits; for labels, the number of tokens of each."""

    fitted: FittedPrompt
    rows: list[TokenRow]
    lengths: tuple[int, ...] = ()


class Engine:
    """A model that runs in this process."""

    concurrency = 1
    abandons_calls = True
    """After Ctrl-C nobody waits for the batch under way: it is free, and may take long."""

    def __init__(
        self,
        card: Card,
        load: Callable[[], LoadedModel],
        *,
        batch: int = 64,
        share: bool = True,
        sort_by_prompt: bool = False,
    ) -> None:
        self.card = card
        self.batch = batch
        self.share = share
        self.sort_by_prompt = sort_by_prompt
        """True if prompts that begin alike should come together, instead of those of similar length."""
        self._load = load
        self._loaded: LoadedModel | None = None
        self._lock = threading.RLock()

    @property
    def loaded(self) -> LoadedModel:
        """The model, loaded on first use."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def count(self, prompt: Prompt) -> int:
        """Tokens of a prompt, including the template."""
        return len(self.loaded.writer.ids([prompt])[0].ids)

    def close(self) -> None:
        """Release the weights; another request loads them again. Doesn't wait for a batch under way."""
        if self._lock.acquire(blocking=False):
            if self._loaded is not None:
                self._loaded.close()
            self._loaded = None
            self._lock.release()

    def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
        """Label probabilities from the whole softmax."""
        with self._lock:
            encoder = self.loaded.writer
            labels = sorted({label for request in requests for label in request.labels})
            sizes = dict(zip(labels, map(len, encoder.tokenizer.encode(labels, whole=False)), strict=True))
            rooms = [
                max(sizes[label] for label in request.labels) + 1 if request.estimator == "sequence" else 1
                for request in requests
            ]
            fitted = self._fit_prompts([request.prompt for request in requests], rooms, continued=True)
            encoded: dict[tuple[str, str, str], list[int] | None] = {}

            def label_ids(prompt: EncodedPrompt, label: str) -> list[int] | None:
                key = (prompt.text[-TAIL:], prompt.blanks, label)
                if key not in encoded:
                    encoded[key] = encoder.after(prompt, label)
                return encoded[key]

            rows = [
                prompt
                if isinstance(prompt, Failure)
                else _choice_rows(request, prompt, [label_ids(prompt.encoded, label) for label in request.labels])
                for request, prompt in zip(requests, fitted, strict=True)
            ]
            return self._answer_rows(requests, rows, _build_chosen)

    def score(self, requests: Sequence[Score]) -> list[Scored | Failure]:
        """Log-probability and entropy at every token of the continuation."""
        with self._lock:
            rows: dict[int, RequestRows | Failure] = {}
            for has_ids in (False, True):  # given tokens follow the unchanged prompt
                numbers = [number for number, request in enumerate(requests) if bool(request.ids) == has_ids]
                rows |= zip(numbers, self._score_rows([requests[number] for number in numbers], has_ids), strict=True)
            decode = self.loaded.writer.tokenizer.decode

            def build(_: Score, answered: RequestRows, reads: list[RowLogprobs], seconds: float) -> Scored:
                ids = [wanted[0] for wanted in answered.rows[0].wanted]
                logprobs, entropies = [values[0] for values in reads[0].logprobs], tuple(reads[0].entropies)
                trace = _build_trace(decode, ids, logprobs, entropies or None)
                return Scored(trace, answered.fitted.usage(len(ids), seconds))

            return self._answer_rows(requests, [rows[number] for number in range(len(requests))], build)

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        """Greedy or sampled texts. Greedy repeats are equal and computed once."""
        with self._lock:
            fitted = self._fit_prompts([r.prompt for r in requests], [r.max_tokens for r in requests])
            fitted = [self._refusal(request) or prompt for request, prompt in zip(requests, fitted, strict=True)]
            samples = {
                number: [
                    Sample(request, prompt.ids, each) for each in range(request.n if request.temperature > 0 else 1)
                ]
                for number, (request, prompt) in enumerate(zip(requests, fitted, strict=True))
                if isinstance(prompt, FittedPrompt)
            }
            begun = time.perf_counter()
            extend_samples(self.loaded, [sample for group in samples.values() for sample in group], self.share)
            seconds = (time.perf_counter() - begun) / max(1, len(samples))
            decode = self.loaded.writer.tokenizer.decode
            return [
                prompt
                if isinstance(prompt, Failure)
                else _build_generated(request, prompt, samples[number], decode, seconds)
                for number, (request, prompt) in enumerate(zip(requests, fitted, strict=True))
            ]

    def _refusal(self, request: Generate) -> Failure | None:
        if request.schema:
            return Failure("cannot", "this model cannot be held to a JSON schema", retry=False)
        if request.detail == "entropies" and "entropies" not in self.card.abilities:
            return Failure("cannot", "this model doesn't report entropies", retry=False)
        return None

    def _fit_prompts(
        self, prompts: Sequence[Prompt], rooms: Sequence[int], *, continued: bool = False
    ) -> list[FittedPrompt | Failure]:
        """Encode the prompts, each with room for more tokens."""
        encoded = self.loaded.writer.ids(prompts, continued=continued)
        return [
            self._fit_prompt(prompt, room, each, continued)
            for prompt, room, each in zip(prompts, rooms, encoded, strict=True)
        ]

    def _fit_prompt(self, prompt: Prompt, room: int, encoded: EncodedPrompt, continued: bool) -> FittedPrompt | Failure:
        limit, tokens = self.card.context_length, len(encoded.ids)
        if not tokens:
            return Failure("empty-prompt", "the prompt has no tokens to go on from", retry=False)
        if not self._has_tokens(encoded.ids):
            return UNKNOWN_TOKEN
        if limit is None or tokens + room <= limit:
            return FittedPrompt(encoded)
        shorter = fit_prompt(prompt, limit - room, self.count) if self.card.cuts else None
        if shorter is None:
            return Failure("too-long", f"{tokens} tokens and {room} to come; the model reads {limit}", retry=False)
        return FittedPrompt(self.loaded.writer.ids([shorter[0]], continued=continued)[0], shorter[1], limit)

    def _has_tokens(self, ids: Sequence[int]) -> bool:
        """True if the model has all these tokens. Ids may come from another model, or a mismatched tokenizer."""
        return not ids or (min(ids) >= 0 and max(ids) < self.loaded.runtime.tokens)

    def _score_rows(self, requests: Sequence[Score], has_ids: bool) -> list[RequestRows | Failure]:
        """The row that scores each continuation: the given ids, or its text."""
        encoder = self.loaded.writer
        texts = [request.continuation for request in requests]
        ids = [request.ids for request in requests] if has_ids else encoder.tokenizer.encode(texts, whole=False)
        rooms = [len(each) + 1 for each in ids]
        rows: list[RequestRows | Failure] = []
        for request, prompt in zip(
            requests, self._fit_prompts([r.prompt for r in requests], rooms, continued=not has_ids), strict=True
        ):
            if isinstance(prompt, Failure):
                rows.append(prompt)
                continue
            after = list(request.ids) if has_ids else encoder.after(prompt.encoded, request.continuation)
            if after is None:
                rows.append(TOKEN_ACROSS_BOUNDARY)
            elif not after:
                rows.append(Failure("empty-continuation", "there is nothing to score", retry=False))
            elif not self._has_tokens(after):
                rows.append(UNKNOWN_TOKEN)
            else:
                row = TokenRow([*prompt.ids, *after[:-1]], len(prompt.ids) - 1, [[token] for token in after])
                rows.append(RequestRows(prompt, [row]))
        return rows

    def _answer_rows(
        self,
        requests: Sequence[R],
        request_rows: Sequence[RequestRows | Failure],
        build: Callable[[R, RequestRows, list[RowLogprobs], float], T],
    ) -> list[T | Failure]:
        """Read the rows of all requests in batches, and build the response to each request."""
        rows = [row for each in request_rows if isinstance(each, RequestRows) for row in each.rows]
        reads: dict[int, RowLogprobs] = {}

        def work(numbers: list[int], shared: int, prefix: Any) -> None:
            rest = [TokenRow(rows[n].ids[shared:], rows[n].first - shared, rows[n].wanted) for n in numbers]
            reads.update(zip(numbers, self.loaded.runtime.read(rest, prefix), strict=True))

        begun = time.perf_counter()
        ids = [row.ids for row in rows]
        _work_in_batches(self.loaded, ids, [row.first for row in rows], self.share, [0] * len(rows), work)
        seconds = (time.perf_counter() - begun) / max(1, len(requests))
        in_order = iter([reads[number] for number in range(len(rows))])
        return [
            each if isinstance(each, Failure) else build(request, each, [next(in_order) for _ in each.rows], seconds)
            for request, each in zip(requests, request_rows, strict=True)
        ]


def _work_in_batches(
    loaded: LoadedModel,
    ids: Sequence[list[int]],
    firsts: Sequence[int],
    share: bool,
    rooms: Sequence[int],
    work: Callable[[list[int], int, Any], None],
) -> None:
    """Call ``work(rows, length of their prefix, prefix)`` for each batch; ``rooms`` are tokens to come in each row."""
    for group in group_by_prefix(ids, firsts, share):
        shared = group.shared
        prefix = loaded.runtime.prefix(ids[group.rows[0]][:shared]) if shared else None

        def batch(start: int, end: int, group: PrefixGroup = group, prefix: Any = prefix) -> None:
            work(group.rows[start:end], group.shared, prefix)

        lengths = [len(ids[row]) - shared + rooms[row] for row in group.rows]
        loaded.budget.batches([*accumulate(reversed(lengths), max)][::-1], batch)


class Sample:
    """A text in the making: its tokens so far and, in the end, why it ended."""

    def __init__(self, request: Generate, prompt: list[int], number: int) -> None:
        self.request = request
        self.prompt = prompt
        self.number = number
        self._stop_tokens = max((len(stop.encode("utf-8", "replace")) for stop in request.stop), default=0)
        self.restart()

    def restart(self) -> None:
        """Begin again, with the same random numbers: a batch that ran out of memory is retried.

        They come from the seed, the sample's number and its prompt, and are independent of other requests.
        """
        digest = hashlib.blake2b(np.asarray(self.prompt, np.int64).tobytes(), digest_size=8).digest()
        self.random = np.random.default_rng([self.request.seed, self.number, int.from_bytes(digest, "little")])
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.entropies: list[float] = []
        self.text = self.finish = ""

    def draw(self) -> SamplingDraw:
        """Return the way to pick the next token."""
        request = self.request
        uniform = self.random.random() if request.temperature > 0 else 0.0
        return SamplingDraw(request.temperature, request.top_p, uniform, request.detail)

    def add(self, token: int, logprob: float, entropy: float, encoder: PromptEncoder) -> None:
        """Add a token, and check whether this is the end. The token that ends a turn is dropped."""
        decode = encoder.tokenizer.decode
        if token == NO_TOKEN:
            self.end(NOT_FINITE.reason, "")
            return
        if token in encoder.ends:
            self.end(STOP, decode(self.ids))
            return
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.entropies.append(entropy)
        before = self._text_before_stop(decode)
        if before is not None:
            self.end(STOP, before)
        elif len(self.ids) >= self.request.max_tokens:
            self.end(LENGTH, decode(self.ids))

    def end(self, finish: str, text: str) -> None:
        self.finish, self.text = finish, text

    def _text_before_stop(self, decode: Callable[[list[int]], str]) -> str | None:
        """The text before a stop text, if it has one. The whole text is decoded only if its last tokens have one."""
        stop = self.request.stop
        if not stop or text_before_stop(decode(self.ids[-self._stop_tokens - TOKENS_WITHOUT_TEXT :]), stop) is None:
            return None
        return text_before_stop(decode(self.ids), stop)


def extend_samples(loaded: LoadedModel, samples: list[Sample], share: bool) -> None:
    """Extend all samples until each has ended."""
    runtime, encoder = loaded.runtime, loaded.writer
    if isinstance(runtime, GeneratingRuntime):
        asked = [(sample.request, sample.prompt, int(sample.random.integers(1 << 31))) for sample in samples]
        for sample, written in zip(samples, runtime.generate(asked), strict=True):
            for token, logprob in zip(written.ids, written.logprobs, strict=True):
                if not sample.finish:  # texts end as with other models
                    sample.add(token, logprob, math.nan, encoder)
            if not sample.finish:
                sample.end(written.finish, encoder.tokenizer.decode(sample.ids))
        return

    def work(numbers: list[int], shared: int, prefix: Any) -> None:
        alive = [samples[number] for number in numbers]
        for sample in alive:
            sample.restart()
        state = runtime.decode([sample.prompt[shared:] for sample in alive], prefix)
        while True:
            tokens = state.pick([sample.draw() for sample in alive])
            for sample, token, logprob, entropy in zip(alive, *tokens, strict=True):
                sample.add(int(token), logprob, entropy, encoder)
            keep = [place for place, sample in enumerate(alive) if not sample.finish]
            if not keep:
                return
            state.step([tokens.ids[place] for place in keep], keep)
            alive = [alive[place] for place in keep]

    prompts = [sample.prompt for sample in samples]
    rooms = [sample.request.max_tokens for sample in samples]
    _work_in_batches(loaded, prompts, [len(ids) - 1 for ids in prompts], share, rooms, work)


def _choice_rows(request: Choose, fitted: FittedPrompt, ids: list[list[int] | None]) -> RequestRows | Failure:
    """The rows that distinguish labels: one at the end of the prompt, and one for each label of several tokens."""
    labels = [label for label in ids if label is not None]
    if len(labels) < len(ids):
        return TOKEN_ACROSS_BOUNDARY
    if not all(labels):
        return Failure("bad-label", "a label has no tokens", retry=False)
    starts = [label[:1] if request.estimator == "first-token" else label for label in labels]
    for i, start in enumerate(starts):
        for j, other in enumerate(starts):
            if i != j and other[: len(start)] == start:
                return Failure("ambiguous-labels", _ambiguity_message(request, i, j), retry=False)
    last = len(fitted.ids) - 1
    rows = [TokenRow(fitted.ids, last, [[start[0] for start in starts]])]
    for start in starts:
        if len(start) > 1:
            rows.append(TokenRow([*fitted.ids, *start[:-1]], last + 1, [[token] for token in start[1:]]))
    return RequestRows(fitted, rows, tuple(len(start) for start in starts))


def _ambiguity_message(request: Choose, i: int, j: int) -> str:
    if request.estimator == "first-token":
        return f"the labels {request.labels[i]!r} and {request.labels[j]!r} begin with the same token: use 'sequence'"
    return f"the label {request.labels[i]!r} is the beginning of {request.labels[j]!r}"


def _build_chosen(request: Choose, answered: RequestRows, reads: list[RowLogprobs], seconds: float) -> Chosen:
    """Probabilities of labels: the first token's, times those of the following tokens."""
    logs = list(reads[0].logprobs[0])
    more = iter(reads[1:])
    for number, length in enumerate(answered.lengths):
        if length > 1:
            logs[number] += sum(value[0] for value in next(more).logprobs)
    values = tuple(math.exp(value) for value in logs)
    return Chosen(values, values, values, request.estimator, answered.fitted.usage(1, seconds))


def _build_generated(
    request: Generate,
    fitted: FittedPrompt,
    samples: list[Sample],
    decode: Callable[[list[int]], str],
    seconds: float,
) -> Generated | Failure:
    """Build the texts with as much detail as requested; a failure if one of them is nothing but reasoning, or if the
    model gave no numbers to pick a token by.
    """
    outputs = []
    for sample in samples:
        if sample.finish == NOT_FINITE.reason:
            return NOT_FINITE
        trace = None
        if request.detail != "text":
            entropies = tuple(sample.entropies) if request.detail == "entropies" else None
            trace = _build_trace(decode, sample.ids, sample.logprobs, entropies)
        output = drop_reasoning(Output(sample.text, sample.finish, trace))
        if isinstance(output, Failure):
            return output
        outputs.append(output)
    if len(outputs) < request.n:
        outputs *= request.n  # greedy repeats are equal
    new = sum(len(sample.ids) for sample in samples)
    return Generated(tuple(outputs), fitted.usage(new, seconds))


def _build_trace(
    decode: Callable[[list[int]], str],
    ids: Sequence[int],
    logprobs: Sequence[float],
    entropies: tuple[float, ...] | None,
) -> Trace:
    return Trace(tuple(decode([token]) for token in ids), tuple(logprobs), entropies, None, tuple(ids))
