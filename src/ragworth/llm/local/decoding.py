"""Extend many prompts at once, token by token, until each has ended."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from ragworth.llm.contract import Generate
from ragworth.llm.local.batches import PrefixGroup, group_by_prefix
from ragworth.llm.local.loaded import LoadedModel
from ragworth.llm.local.prompt_encoding import PromptEncoder
from ragworth.llm.local.runtime import GeneratingRuntime, NextTokens, Runtime, SamplingDraw


@dataclass
class SampleInProgress:
    """A text in the making: its tokens so far and, in the end, why it ended."""

    request: Generate
    random: np.random.Generator
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    text: str = ""
    finish: str = ""
    seconds: float = 0.0

    def draw(self) -> SamplingDraw:
        """How to pick the next token."""
        request = self.request
        return SamplingDraw(
            request.temperature, request.top_p, self.random.random() if request.temperature > 0 else 0.0
        )

    def add(self, token: int, logprob: float, entropy: float, writer: PromptEncoder) -> None:
        """Add a token, and check whether this is the end. The token that ends a turn is dropped."""
        if token in writer.ends:
            self.end("stop", writer.tokenizer.decode(self.ids))
            return
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.entropies.append(entropy)
        if self.request.stop:
            text = writer.tokenizer.decode(self.ids)
            places = [place for stop in self.request.stop if (place := text.find(stop)) >= 0]
            if places:
                self.end("stop", text[: min(places)])
                return
        if len(self.ids) >= self.request.max_tokens:
            self.end("length", writer.tokenizer.decode(self.ids))

    def end(self, finish: str, text: str) -> None:
        """Set why it ended, and its text."""
        self.finish, self.text = finish, text


def generate_all(
    loaded: LoadedModel, asked: Sequence[tuple[Generate, list[int]]], share: bool
) -> list[list[SampleInProgress]]:
    """Generate texts for each request and prompt: n when sampling, one when greedy."""
    samples_by_request = [
        [
            SampleInProgress(request, _sample_rng(request, ids, i))
            for i in range(request.n if request.temperature > 0 else 1)
        ]
        for request, ids in asked
    ]
    rows = [(sample, ids) for samples, (_, ids) in zip(samples_by_request, asked, strict=True) for sample in samples]
    if isinstance(loaded.runtime, GeneratingRuntime):
        _generate_with(loaded.runtime, rows, loaded.writer)
        return samples_by_request
    runtime = loaded.runtime
    prompts = [ids for _, ids in rows]
    for group in group_by_prefix(prompts, [len(ids) - 1 for ids in prompts], share):
        shared = group.shared
        prefix = runtime.prefix(prompts[group.rows[0]][:shared]) if shared else None

        def work(start: int, end: int, group: PrefixGroup = group, shared: int = shared, prefix: Any = prefix) -> None:
            taken = [rows[n] for n in group.rows[start:end]]
            begun = time.perf_counter()
            _decode(runtime, loaded.writer, [sample for sample, _ in taken], [ids[shared:] for _, ids in taken], prefix)
            for sample, _ in taken:
                sample.seconds = (time.perf_counter() - begun) / len(taken)

        room = [len(prompts[n]) - shared + rows[n][0].request.max_tokens for n in group.rows]
        loaded.budget.batches([*accumulate(reversed(room), max)][::-1], work)
    return samples_by_request


def _generate_with(
    runtime: GeneratingRuntime, rows: list[tuple[SampleInProgress, list[int]]], writer: PromptEncoder
) -> None:
    """Let an engine extend all rows. Its tokens are added one by one, so texts end as with other models."""
    begun = time.perf_counter()
    asked = [(sample.request, ids, int(sample.random.integers(1 << 31))) for sample, ids in rows]
    for (sample, _), found in zip(rows, runtime.generate(asked), strict=True):
        for token, logprob in zip(found.ids, found.logprobs, strict=True):
            if not sample.finish:
                sample.add(token, logprob, math.nan, writer)
        if not sample.finish:
            sample.end(found.finish, writer.tokenizer.decode(sample.ids))
        sample.seconds = (time.perf_counter() - begun) / len(rows)


def _decode(
    runtime: Runtime, writer: PromptEncoder, samples: list[SampleInProgress], rows: list[list[int]], prefix: Any
) -> None:
    """Extend a batch until every row has ended, dropping finished rows."""
    for sample in samples:  # a batch may be retried after it ran out of memory
        sample.ids, sample.logprobs, sample.entropies, sample.finish = [], [], [], ""
    state, alive = runtime.decode(rows, prefix), samples
    while True:
        found: NextTokens = state.pick([sample.draw() for sample in alive])
        for sample, token, logprob, entropy in zip(alive, found.ids, found.logprobs, found.entropies, strict=True):
            sample.add(token, logprob, entropy, writer)
        keep = [i for i, sample in enumerate(alive) if not sample.finish]
        if not keep:
            return
        state.step([found.ids[i] for i in keep], keep)
        alive = [alive[i] for i in keep]


def _sample_rng(request: Generate, ids: list[int], sample: int) -> np.random.Generator:
    """Random numbers of one sample, from the seed, its number and its prompt, independent of other requests."""
    prompt = hashlib.blake2b(np.asarray(ids, np.int64).tobytes(), digest_size=8).digest()
    return np.random.default_rng([request.seed, sample, int.from_bytes(prompt, "little")])
