"""Run local models: turn requests into rows of tokens, batch them through a runtime, and convert the results.

A backend provides a function that loads a `Runtime`, which computes, and a `PromptEncoder`, which turns prompts into
tokens. Nothing is loaded before the first request. Results don't depend on which requests are batched together: rows
are padded at the end, where a causal model can't see it, and every sampled row has its own random numbers.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ragworth.llm.contract import (
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
)
from ragworth.llm.local.batches import PrefixGroup, group_by_prefix
from ragworth.llm.local.decoding import SampleInProgress, generate_all
from ragworth.llm.local.loaded import LoadedModel
from ragworth.llm.local.prompt_encoding import TAIL, EncodedPrompt, Tokenizer
from ragworth.llm.local.runtime import RowLogprobs, TokenRow
from ragworth.llm.reasoning import drop_reasoning
from ragworth.llm.truncation import fit_prompt

T = TypeVar("T")

LOCAL_ABILITIES = frozenset({"generate", "logprobs", "entropies", "score", "choose"})
"""Abilities of every local model."""


class FittedPrompt(NamedTuple):
    """A prompt that fits, and how it was changed."""

    written: EncodedPrompt
    cut: int = 0
    limit: int = 0

    @property
    def ids(self) -> list[int]:
        return self.written.ids

    def usage(self, new: int, seconds: float) -> Usage:
        return Usage(len(self.ids), new, seconds, self.cut, self.written.defused, self.limit)


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
        """Whether prompts that begin alike should come together, instead of those of similar length."""
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
            writer = self.loaded.writer
            known: dict[tuple[str, str, str], list[int] | None] = {}

            def ids(written: EncodedPrompt, label: str) -> list[int] | None:
                key = (written.text[-TAIL:], written.blanks, label)
                if key not in known:
                    known[key] = writer.after(written, label)
                return known[key]

            texts = {label for request in requests for label in request.labels}
            sizes = dict(zip(texts, map(len, writer.tokenizer.encode([*texts], whole=False)), strict=True))
            rooms = [
                max(sizes[label] for label in request.labels) + 1 if request.estimator == "sequence" else 1
                for request in requests
            ]
            fitted = self._fit_prompts([request.prompt for request in requests], rooms, continued=True)
            rows = [
                one
                if isinstance(one, Failure)
                else _choice_rows(request, one, [ids(one.written, x) for x in request.labels])
                for request, one in zip(requests, fitted, strict=True)
            ]
            return self._answer_rows(requests, rows, _label_probabilities)

    def score(self, requests: Sequence[Score]) -> list[Scored | Failure]:
        """Log-probability and entropy at every token of the continuation."""
        with self._lock:
            tokenizer, writer = self.loaded.writer.tokenizer, self.loaded.writer
            made: list[RequestRows | Failure] = [Failure("not-asked")] * len(requests)
            for exactly in (False, True):  # given tokens follow the unchanged prompt
                numbers = [n for n, request in enumerate(requests) if bool(request.ids) == exactly]
                if not numbers:
                    continue
                mine = [requests[n] for n in numbers]
                given = [list(r.ids) for r in mine]
                texts = given if exactly else tokenizer.encode([r.continuation for r in mine], whole=False)
                rooms = [len(ids) + 1 for ids in texts]
                fitted = self._fit_prompts([r.prompt for r in mine], rooms, continued=not exactly)
                for n, request, one in zip(numbers, mine, fitted, strict=True):
                    if isinstance(one, FittedPrompt):
                        ids = list(request.ids) if exactly else writer.after(one.written, request.continuation)
                        made[n] = _score_rows(one, ids) if self._has_tokens(ids or []) else UNKNOWN_TOKEN
                    else:
                        made[n] = one

            def result(request: Score, rows: RequestRows, reads: list[RowLogprobs], seconds: float) -> Scored:
                ids = tuple(wanted[0] for wanted in rows.rows[0].wanted)
                texts = tuple(tokenizer.decode([token]) for token in ids)
                trace = Trace(
                    texts, tuple(v[0] for v in reads[0].logprobs), tuple(reads[0].entropies) or None, None, ids
                )
                return Scored(trace, rows.fitted.usage(len(texts), seconds))

            return self._answer_rows(requests, made, result)

    def generate(self, requests: Sequence[Generate]) -> list[Generated | Failure]:
        """Greedy or sampled texts. Greedy repeats are equal and computed once."""
        with self._lock:
            loaded = self.loaded
            fitted = [
                self._refusal(request) or one
                for request, one in zip(
                    requests,
                    self._fit_prompts([r.prompt for r in requests], [r.max_tokens for r in requests]),
                    strict=True,
                )
            ]
            wanted = [(r, one.ids) for r, one in zip(requests, fitted, strict=True) if isinstance(one, FittedPrompt)]
            texts = iter(generate_all(loaded, wanted, self.share))
            return [
                one
                if isinstance(one, Failure)
                else _build_generated(request, one, next(texts), loaded.writer.tokenizer)
                for request, one in zip(requests, fitted, strict=True)
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
        limit, writer = self.card.context_length, self.loaded.writer
        fitted: list[FittedPrompt | Failure] = []
        for prompt, room, written in zip(prompts, rooms, writer.ids(prompts, continued=continued), strict=True):
            if not written.ids:
                fitted.append(Failure("empty-prompt", "the prompt has no tokens to go on from", retry=False))
                continue
            if not self._has_tokens(written.ids):
                fitted.append(UNKNOWN_TOKEN)
                continue
            if limit is None or len(written.ids) + room <= limit:
                fitted.append(FittedPrompt(written))
                continue
            shorter = fit_prompt(prompt, limit - room, self.count) if self.card.cuts else None
            if shorter is None:
                why = f"{len(written.ids)} tokens and {room} to come; the model reads {limit}"
                fitted.append(Failure("too-long", why, retry=False))
            else:
                (again,) = writer.ids([shorter[0]], continued=continued)
                fitted.append(FittedPrompt(again, shorter[1], limit))
        return fitted

    def _has_tokens(self, ids: Sequence[int]) -> bool:
        """Whether the model has all these tokens. Ids may come from another model, or a mismatched tokenizer."""
        return not ids or (min(ids) >= 0 and max(ids) < self.loaded.runtime.tokens)

    def _answer_rows(
        self,
        requests: Sequence[Any],
        made: Sequence[RequestRows | Failure],
        result: Callable[[Any, RequestRows, list[RowLogprobs], float], T],
    ) -> list[T | Failure]:
        """Read the rows of all requests in batches, and combine the results by request."""
        rows = [row for one in made if isinstance(one, RequestRows) for row in one.rows]
        reads = iter(self._read_rows(rows))
        results: list[T | Failure] = []
        for request, one in zip(requests, made, strict=True):
            if isinstance(one, Failure):
                results.append(one)
            else:
                found = [next(reads) for _ in one.rows]
                results.append(result(request, one, [read for read, _ in found], sum(spent for _, spent in found)))
        return results

    def _read_rows(self, rows: list[TokenRow]) -> list[tuple[RowLogprobs, float]]:
        """Read all rows; returns each with the seconds it took."""
        found: dict[int, tuple[RowLogprobs, float]] = {}
        loaded, ids = self.loaded, [row.ids for row in rows]
        for group in group_by_prefix(ids, [row.first for row in rows], self.share):
            shared = group.shared
            prefix = loaded.runtime.prefix(ids[group.rows[0]][:shared]) if shared else None

            def work(
                start: int, end: int, group: PrefixGroup = group, shared: int = shared, prefix: Any = prefix
            ) -> None:
                numbers = group.rows[start:end]
                begun = time.perf_counter()
                cut = [TokenRow(rows[n].ids[shared:], rows[n].first - shared, rows[n].wanted) for n in numbers]
                reads = loaded.runtime.read(cut, prefix)
                spent = (time.perf_counter() - begun) / len(numbers)
                found.update((n, (read, spent)) for n, read in zip(numbers, reads, strict=True))

            loaded.budget.batches([len(ids[n]) - shared for n in group.rows], work)
        return [found[n] for n in range(len(rows))]


UNKNOWN_TOKEN = Failure("unknown-token", "a token has a number that the model has no weights for", retry=False)
TOKEN_ACROSS_BOUNDARY = Failure("boundary", "a token spans the end of the prompt and what follows", retry=False)


def _score_rows(fitted: FittedPrompt, after: list[int] | None) -> RequestRows | Failure:
    """The row that scores a continuation."""
    if after is None:
        return TOKEN_ACROSS_BOUNDARY
    if not after:
        return Failure("empty-continuation", "there is nothing to score", retry=False)
    return RequestRows(
        fitted, [TokenRow([*fitted.ids, *after[:-1]], len(fitted.ids) - 1, [[token] for token in after])]
    )


def _choice_rows(request: Choose, fitted: FittedPrompt, found: list[list[int] | None]) -> RequestRows | Failure:
    """The rows that distinguish labels: one at the end of the prompt, and one for each label of several tokens."""
    labels = [ids for ids in found if ids is not None]
    if len(labels) < len(found):
        return TOKEN_ACROSS_BOUNDARY
    if not all(labels):
        return Failure("bad-label", "a label has no tokens", retry=False)
    starts = [ids[:1] if request.estimator == "first-token" else ids for ids in labels]
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
    """Why two labels can't be distinguished."""
    if request.estimator == "first-token":
        return f"the labels {request.labels[i]!r} and {request.labels[j]!r} begin with the same token: use 'sequence'"
    return f"the label {request.labels[i]!r} is the beginning of {request.labels[j]!r}"


def _label_probabilities(request: Choose, rows: RequestRows, reads: list[RowLogprobs], seconds: float) -> Chosen:
    """Probabilities of labels: the first token's, times those of the following tokens."""
    logs = list(reads[0].logprobs[0])
    more = iter(reads[1:])
    for i, length in enumerate(rows.lengths):
        if length > 1:
            logs[i] += sum(value[0] for value in next(more).logprobs)
    values = tuple(math.exp(value) for value in logs)
    return Chosen(values, values, values, request.estimator, rows.fitted.usage(1, seconds))


def _build_generated(
    request: Generate, fitted: FittedPrompt, made: list[SampleInProgress], tokenizer: Tokenizer
) -> Generated | Failure:
    """Build the texts with as much detail as requested; a failure if one of them is nothing but reasoning."""
    outputs = []
    for sample in made:
        trace = None
        if request.detail != "text":
            texts = tuple(tokenizer.decode([token]) for token in sample.ids)
            entropies = tuple(sample.entropies) if request.detail == "entropies" else None
            trace = Trace(texts, tuple(sample.logprobs), entropies, None, tuple(sample.ids))
        output = drop_reasoning(Output(sample.text, sample.finish, trace))
        if isinstance(output, Failure):
            return output
        outputs.append(output)
    if len(outputs) < request.n:
        outputs *= request.n  # greedy repeats are equal
    new = sum(len(sample.ids) for sample in made)
    return Generated(tuple(outputs), fitted.usage(new, sum(sample.seconds for sample in made)))
