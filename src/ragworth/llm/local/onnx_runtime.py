"""Run decoders as ONNX graphs (see `onnx_graph`) on the CPU.

Rows are read a few at a time, by one thread each: its data stays in its cache, and it waits for no other. Only a single
row is shared by all threads. What some of the rows have in common, such as a question with several passages, is read
once. The results are the same either way, whatever rows are read together and wherever their common prefix ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from ragworth.core.errors import ModelError
from ragworth.llm.local.batches import PrefixGroup, group_by_prefix
from ragworth.llm.local.logits import entropy, log_softmax, pick_token, select_logprobs
from ragworth.llm.local.onnx_session import (
    CHUNK_TOKENS,
    LENGTH_MULTIPLE,
    CachedPrefix,
    Floats,
    OnnxSession,
    SessionOutput,
    pad_key_values,
)
from ragworth.llm.local.runtime import NextTokens, RowLogprobs, SamplingDraw, TokenRow

T = TypeVar("T")

CAPACITY_STEP = 32
"""Tokens for which memory is allocated at a time when rows are extended."""

MIN_SHARED_TOKENS = 8
"""Tokens that some rows must have in common to read them once: fewer than a short question has."""

MAX_SHARED_TOKENS = 4096
"""Tokens of such beginnings to keep at a time; for the embedded model, they take 190 MB."""

DISTRIBUTIONS_AT_A_TIME = 32
"""Distributions converted to probabilities and entropies at a time."""


def available_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class OnnxRuntime:
    """The graph at ``path``, for texts of up to ``context`` tokens."""

    def __init__(self, path: Path, name: str, *, context: int, threads: int | None = None) -> None:
        self.name = name
        self.context = context
        self.threads = threads or available_cores()
        self._path = path
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="ragworth-onnx")
        self._alone = OnnxSession(path, 1)
        self.tokens = self._alone.tokens

    @cached_property
    def together(self) -> OnnxSession:
        """The graph run by all threads at once; it takes extra memory, so it is loaded on first use."""
        return self._alone if self.threads == 1 else OnnxSession(self._path, self.threads)

    def prefix(self, ids: Sequence[int]) -> CachedPrefix:
        """Compute keys and values of the prefix."""
        before = self._alone.nothing
        self._check([list(ids)], before)
        return CachedPrefix(self._alone.read([list(ids)], [[]], before, keep=True).state, len(ids))

    def read(self, rows: Sequence[TokenRow], prefix: CachedPrefix | None = None) -> list[RowLogprobs]:
        """Read all rows, a few at a time."""
        before = prefix or self._alone.nothing
        ids = [row.ids for row in rows]
        self._check(ids, before)
        limit = self._part_tokens(sum(map(len, ids)))
        found: dict[int, RowLogprobs] = {}

        def work(part: tuple[list[int], CachedPrefix], session: OnnxSession) -> None:
            numbers, read = part
            taken, done = [rows[n] for n in numbers], read.length - before.length
            asked = [list(range(row.first - done, row.first - done + len(row.wanted))) for row in taken]
            logits = session.read([row.ids[done:] for row in taken], asked, read).logits
            found.update((n, _row_logprobs(row, each)) for n, row, each in zip(numbers, taken, logits, strict=True))

        for groups in _group_rows(rows):
            parts: list[tuple[list[int], CachedPrefix]] = []
            longer = self._extend_prefix(before, [ids[group.rows[0]][: group.shared] for group in groups])
            for group, read in zip(groups, longer, strict=True):
                lengths = [len(ids[n]) - group.shared for n in group.rows]
                parts += [([group.rows[i] for i in part], read) for part in _split_by_length(lengths, limit)]
            self.share(parts, work)
        return [found[n] for n in range(len(rows))]

    def _extend_prefix(self, before: CachedPrefix, more: list[list[int]]) -> list[CachedPrefix]:
        """The prefix followed by each of these tokens."""
        longer = [before] * len(more)
        lengths = [len(ids) for ids in more]

        def work(numbers: list[int]) -> None:
            part = self._alone.read([more[n] for n in numbers], [[]] * len(numbers), before, keep=True)
            for i, n in enumerate(numbers):
                new = (values[i : i + 1, :, : lengths[n]] for values in part.state)
                state = [np.concatenate(pair, axis=2) for pair in zip(before.state, new, strict=True)]
                longer[n] = CachedPrefix(state, before.length + lengths[n])

        parts = _split_by_length(lengths, self._part_tokens(sum(lengths)))
        list(self._pool.map(work, [part for part in parts if more[part[0]]]))
        return longer

    def decode(self, rows: Sequence[list[int]], prefix: CachedPrefix | None = None) -> OnnxDecoding:
        """Read the rows and keep their keys and values for extension."""
        before = prefix or self._alone.nothing
        decoding = OnnxDecoding(self, [len(row) for row in rows], before)

        def work(numbers: list[int], session: OnnxSession) -> None:
            taken = [rows[n] for n in numbers]
            decoding.add(numbers, session.read(taken, [[len(row) - 1] for row in taken], before, keep=True))

        self._check(rows, before)
        lengths = [len(row) for row in rows]
        self.share(list(_split_by_length(lengths, self._part_tokens(sum(lengths)))), work)
        return decoding

    def share(self, parts: Sequence[T], work: Callable[[T, OnnxSession], None]) -> None:
        """Process all parts, each by one thread; a single one by all threads."""
        if len(parts) == 1:
            work(parts[0], self.together)
        else:
            list(self._pool.map(lambda part: work(part, self._alone), parts))

    def _part_tokens(self, tokens: int) -> int:
        """Tokens of a part, if there are so many in all: few enough to keep all threads busy to the end."""
        return min(CHUNK_TOKENS, tokens // (2 * self.threads))

    def _check(self, rows: Sequence[list[int]], before: CachedPrefix) -> None:
        longest = before.length + max((len(row) for row in rows), default=0)
        if longest > self.context:
            raise ModelError(f"a text has {longest:,} tokens", expected=f"at most {self.context:,}")


class OnnxDecoding:
    """Rows being extended. Their keys and values are side by side in memory, with room for more at the end of each."""

    def __init__(self, runtime: OnnxRuntime, lengths: Sequence[int], before: CachedPrefix) -> None:
        self._runtime = runtime
        self._seen = [before.length + length for length in lengths]
        self._before = before.length
        self._slots = list(range(len(lengths)))
        self._logits: list[Floats] = [np.empty(0, np.float32)] * len(lengths)
        self._state = [pad_key_values(kept, len(lengths), _token_capacity(max(self._seen))) for kept in before.state]

    def add(self, numbers: Sequence[int], part: SessionOutput) -> None:
        """Add the output of some rows."""
        for i, number in enumerate(numbers):
            self._logits[number] = part.logits[i][0]
            start, end = self._before, self._seen[number]
            for space, new in zip(self._state, part.state, strict=True):
                space[number, :, start:end] = new[i, :, : end - start]

    def pick(self, draws: Sequence[SamplingDraw]) -> NextTokens:
        """Pick a token for every row; log-probability and entropy are those of the unmodified distribution."""
        picked = NextTokens([], [], [])
        for logits, draw in zip(self._logits, draws, strict=True):
            logs = log_softmax(logits)
            token = pick_token(logits, draw)
            picked.ids.append(token)
            picked.logprobs.append(float(logs[token]))
            picked.entropies.append(float(entropy(logs)))
        return picked

    def step(self, ids: Sequence[int], keep: Sequence[int]) -> None:
        """Extend the rows that continue, and drop the others."""
        self._seen = [self._seen[i] for i in keep]
        self._slots = self._close_gaps([self._slots[i] for i in keep])
        longest, context, threads = max(self._seen), self._runtime.context, self._runtime.threads
        if longest >= context:
            raise ModelError(f"a text has reached {longest:,} tokens", expected=f"at most {context:,}")
        if longest >= self._state[0].shape[2]:
            self._state = [pad_key_values(space, len(space), _token_capacity(longest)) for space in self._state]
        rows = np.argsort(self._slots)  # in memory order
        size = max(2, -(-len(rows) // threads))

        def work(start: int, session: OnnxSession) -> None:
            part = rows[start : start + size]
            places, seen = [self._slots[i] for i in part], [self._seen[i] for i in part]
            spaces = [space[places[0] : places[-1] + 1] for space in self._state]
            logits, state = session.extend([ids[i] for i in part], seen, spaces)
            for space, new in zip(self._state, state, strict=True):
                space[places, :, seen] = new[:, :, 0]
            for i, found in zip(part, logits, strict=True):
                self._logits[i] = found

        self._logits = [np.empty(0, np.float32)] * len(keep)
        self._runtime.share(range(0, len(rows), size), work)
        self._seen = [seen + 1 for seen in self._seen]

    def _close_gaps(self, slots: list[int]) -> list[int]:
        """Positions of the rows in memory, without gaps: the last ones move into freed slots."""
        free = iter(sorted(set(range(len(slots))) - set(slots)))
        for i, slot in enumerate(slots):
            if slot >= len(slots):
                slots[i] = next(free)
                for space in self._state:
                    space[slots[i]] = space[slot]
        return slots


def _token_capacity(tokens: int) -> int:
    """Number of tokens to allocate memory for; with one more, it is an even number."""
    return -(-(tokens + CAPACITY_STEP) // LENGTH_MULTIPLE) * LENGTH_MULTIPLE - 1


def _group_rows(rows: Sequence[TokenRow]) -> Iterator[list[PrefixGroup]]:
    """Group rows that begin alike; all others are one group. Yields as many groups as have room for their prefixes."""
    found = list(group_by_prefix([row.ids for row in rows], [row.first for row in rows], least=MIN_SHARED_TOKENS))
    alone = PrefixGroup([row for group in found if not group.shared for row in group.rows], 0)
    groups, tokens = [alone] if alone.rows else [], 0
    for group in found:
        if not group.shared:
            continue
        if groups and tokens + group.shared > MAX_SHARED_TOKENS:
            yield groups
            groups, tokens = [], 0
        groups.append(group)
        tokens += group.shared
    if groups:
        yield groups


def _split_by_length(lengths: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Split rows into parts of similar length and at most ``limit`` tokens, longest first."""
    part: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if part and (len(part) + 1) * lengths[part[0]] > limit:
            yield part
            part = []
        part.append(number)
    if part:
        yield part


def _row_logprobs(row: TokenRow, logits: Floats) -> RowLogprobs:
    """Extract the wanted values of a row."""
    found = RowLogprobs([], [])
    for start in range(0, len(row.wanted), DISTRIBUTIONS_AT_A_TIME):
        logs = log_softmax(logits[start : start + DISTRIBUTIONS_AT_A_TIME])
        found.logprobs.extend(select_logprobs(logs, row.wanted[start : start + DISTRIBUTIONS_AT_A_TIME]))
        found.entropies.extend(entropy(logs).tolist())
    return found
