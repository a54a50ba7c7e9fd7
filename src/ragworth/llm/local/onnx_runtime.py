"""Run decoders as ONNX graphs (see `onnx_build`) on the CPU.

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
from typing import Any, NamedTuple, TypeVar

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from ragworth.core.errors import ModelError, quote_short
from ragworth.llm.local.runtime import (
    NextTokens,
    PrefixGroup,
    RowLogprobs,
    SamplingDraw,
    TokenRow,
    entropy,
    group_by_prefix,
    log_softmax,
    pick_token,
    select_logprobs,
)

T = TypeVar("T")
Floats = NDArray[np.float32]
KeyValues = list[Floats]
"""Keys and values of all layers, alternating, each (rows, heads, tokens, width)."""

MODEL, DATA, PROBE = "model.onnx", "model.bin", "probe.onnx"
"""Files of a built model: the graph, its large constants, and a graph to test the machine with."""

MASKED = -1e30
"""Added to the score of a hidden token."""

LENGTH_MULTIPLE = 16
"""Attention runs over a multiple of this many tokens, with hidden ones at the end: processors then sum the visible ones
in the same order, however many there are, and results are the same to the last bit.
"""

CHUNK_TOKENS = 512
"""Tokens read at a time: enough to keep a core busy, few enough for its cache."""

PIECE_TOKENS = 256
"""Tokens of a single row read at a time: in shorter pieces, fewer scores are computed of tokens that come later."""

CAPACITY_STEP = 32
"""Tokens for which memory is allocated at a time when rows are extended."""

MIN_SHARED_TOKENS = 8
"""Tokens that some rows must have in common to read them once: fewer than a short question has."""


class CachedPrefix(NamedTuple):
    """Tokens that were read before."""

    state: KeyValues
    length: int


class SessionOutput(NamedTuple):
    """Output for some rows: logits (requested places, vocabulary) of each; keys and values if kept."""

    logits: list[Floats]
    state: KeyValues


class OnnxSession:
    """A graph in memory, run by a number of threads."""

    def __init__(self, path: Path, threads: int) -> None:
        self._session = _load_graph(path, threads)
        shapes = {value.name: value.shape for value in self._session.get_inputs() if value.name.startswith("past.")}
        self.tokens = int(self._session.get_outputs()[0].shape[-1])
        self._past = list(shapes)
        self._present = [name.replace("past", "present") for name in shapes]
        self.nothing = CachedPrefix(
            [np.zeros((1, heads, 0, width), np.float32) for _, heads, _, width in shapes.values()], 0
        )

    def read(
        self, rows: Sequence[list[int]], asked: Sequence[list[int]], before: CachedPrefix, *, keep: bool = False
    ) -> SessionOutput:
        """Read rows after a prefix; ``asked`` are the places in each whose next token is requested."""
        if len(rows) == 1 and len(rows[0]) > PIECE_TOKENS:
            return self._read_in_pieces(rows[0], asked[0], before)
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
        positions = np.arange(before.length, before.length + longest)
        room = round_up(before.length + longest)
        state = [pad_key_values(values, len(rows), room) for values in before.state]
        at = [i * longest + place for i, places in enumerate(asked) for place in places]
        logits, new = self._run(ids, np.tile(positions, (len(rows), 1)), positions[None, :, None], at, state, keep)
        ends = np.cumsum([len(places) for places in asked])
        return SessionOutput(np.split(logits, ends[:-1]), new)

    def extend(self, ids: Sequence[int], lengths: Sequence[int], state: KeyValues) -> tuple[Floats, KeyValues]:
        """Read one more token for each row; ``state`` has room for it and more."""
        positions = np.asarray(lengths, np.int64)[:, None]
        return self._run(np.asarray(ids)[:, None], positions, positions[..., None], range(len(ids)), state, True)

    def _read_in_pieces(self, row: list[int], asked: list[int], before: CachedPrefix) -> SessionOutput:
        """Read a long row in pieces, so that neither attention scores nor logits take much memory."""
        logits, state = [], before.state
        for start in range(0, len(row), PIECE_TOKENS):
            piece = row[start : start + PIECE_TOKENS]
            places = [place - start for place in asked if 0 <= place - start < len(piece)]
            part = self.read([piece], [places], CachedPrefix(state, before.length + start), keep=True)
            logits.append(part.logits[0])
            state = [np.concatenate(pair, axis=2) for pair in zip(state, part.state, strict=True)]
        return SessionOutput([np.concatenate(logits)], [values[:, :, before.length :] for values in state])

    def _run(
        self,
        ids: NDArray[np.int64],
        positions: NDArray[np.int64],
        seen: NDArray[np.int64],
        at: Sequence[int],
        state: KeyValues,
        keep: bool,
    ) -> tuple[Floats, KeyValues]:
        """Run the graph; each token sees those up to the position ``seen`` (1 or rows, tokens, 1)."""
        rows, heads, room, _ = state[0].shape
        hidden = np.arange(room) > seen
        slots = np.broadcast_arrays(np.arange(rows)[:, None, None], np.arange(heads)[:, None], positions[:, None])
        feeds: dict[str, NDArray[Any]] = {
            "ids": np.asarray(ids, np.int64),
            "positions": positions,
            "slots": np.stack(slots, axis=-1),
            "mask": np.where(hidden, np.float32(MASKED), np.float32(0))[:, None, None],
            "at": np.asarray(at, np.int64),
            **dict(zip(self._past, state, strict=True)),
        }
        try:
            logits, *new = self._session.run(["logits", *(self._present if keep else [])], feeds)
        except Exception as error:  # the library's errors have no common base
            if "allocat" in str(error):
                raise MemoryError(str(error)) from error
            raise ModelError(f"ONNX Runtime cannot run the model: {quote_short(error, 200)}") from error
        return logits, new


class OnnxRuntime:
    """The graph at ``path``, for texts of up to ``context`` tokens."""

    def __init__(self, path: Path, name: str, *, context: int, threads: int | None = None) -> None:
        self.name = name
        self.context = context
        self.threads = threads or available_cores()
        self._path = path
        self.pool = ThreadPoolExecutor(self.threads, thread_name_prefix="ragworth-onnx")
        self._alone = OnnxSession(path, 1)
        self.tokens = self._alone.tokens

    @cached_property
    def together(self) -> OnnxSession:
        """The graph run by all threads at once; it takes extra memory, so it is loaded on first use."""
        return self._alone if self.threads == 1 else OnnxSession(self._path, self.threads)

    def prefix(self, ids: Sequence[int]) -> CachedPrefix:
        """Compute keys and values of the prefix."""
        self._check([list(ids)], self._alone.nothing)
        return self._extend_prefix(self._alone.nothing, list(ids))

    def read(self, rows: Sequence[TokenRow], prefix: CachedPrefix | None = None) -> list[RowLogprobs]:
        """Read all rows, a few at a time, and what some of them have in common first."""
        before = prefix or self._alone.nothing
        ids = [row.ids for row in rows]
        self._check(ids, before)
        groups = list(group_by_prefix(ids, [row.first for row in rows], least=MIN_SHARED_TOKENS))
        alone = PrefixGroup([n for group in groups if not group.shared for n in group.rows], 0)
        groups = [*(group for group in groups if group.shared), alone]
        beginnings = [ids[group.rows[0]][: group.shared] if group.shared else [] for group in groups]
        longer = self.pool.map(lambda beginning: self._extend_prefix(before, beginning), beginnings)
        tokens = sum(map(len, ids))
        parts = [
            ([group.rows[i] for i in part], after)
            for group, after in zip(groups, longer, strict=True)
            for part in self._split([len(ids[n]) - group.shared for n in group.rows], tokens)
        ]
        results: dict[int, RowLogprobs] = {}

        def work(part: tuple[list[int], CachedPrefix], session: OnnxSession) -> None:
            numbers, after = part
            read, some = after.length - before.length, [rows[n] for n in numbers]
            asked = [list(range(row.first - read, row.first - read + len(row.wanted))) for row in some]
            logits = session.read([row.ids[read:] for row in some], asked, after).logits
            results.update((n, _row_logprobs(rows[n], each)) for n, each in zip(numbers, logits, strict=True))

        self.share(parts, work)
        return [results[n] for n in range(len(rows))]

    def _extend_prefix(self, before: CachedPrefix, ids: list[int]) -> CachedPrefix:
        """The prefix followed by more tokens, if there are any."""
        if not ids:
            return before
        new = self._alone.read([ids], [[]], before, keep=True).state
        state = [np.concatenate(pair, axis=2) for pair in zip(before.state, new, strict=True)]
        return CachedPrefix(state, before.length + len(ids))

    def decode(self, rows: Sequence[list[int]], prefix: CachedPrefix | None = None) -> OnnxDecoding:
        """Read the rows and keep their keys and values for extension. Equal ones, such as samples, are read once."""
        before = prefix or self._alone.nothing
        self._check(rows, before)
        decoding = OnnxDecoding(self, [len(row) for row in rows], before)
        copies: dict[tuple[int, ...], list[int]] = {}
        for number, row in enumerate(rows):
            copies.setdefault(tuple(row), []).append(number)
        distinct = [list(row) for row in copies]

        def work(numbers: list[int], session: OnnxSession) -> None:
            some = [distinct[n] for n in numbers]
            output = session.read(some, [[len(row) - 1] for row in some], before, keep=True)
            decoding.add([copies[tuple(row)] for row in some], output)

        lengths = [len(row) for row in distinct]
        self.share(list(self._split(lengths, sum(lengths))), work)
        return decoding

    def share(self, parts: Sequence[T], work: Callable[[T, OnnxSession], None]) -> None:
        """Process all parts, each by one thread; a single one by all threads."""
        if len(parts) == 1:
            work(parts[0], self.together)
        else:
            list(self.pool.map(lambda part: work(part, self._alone), parts))

    def _split(self, lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
        """Split rows into parts of similar length, longest first: each with so few of all ``tokens`` that all threads
        are busy to the end.
        """
        limit = min(CHUNK_TOKENS, tokens // (2 * self.threads))
        part: list[int] = []
        for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
            if part and (len(part) + 1) * lengths[part[0]] > limit:
                yield part
                part = []
            part.append(number)
        if part:
            yield part

    def _check(self, rows: Sequence[list[int]], before: CachedPrefix) -> None:
        longest = before.length + max((len(row) for row in rows), default=0)
        if longest > self.context:
            raise ModelError(f"a text has {longest:,} tokens", expected=f"at most {self.context:,}")


class OnnxDecoding:
    """Rows being extended. Their keys and values are side by side in memory, with room for more at the end of each."""

    def __init__(self, runtime: OnnxRuntime, lengths: Sequence[int], before: CachedPrefix) -> None:
        self._runtime = runtime
        self._lengths = [before.length + length for length in lengths]
        self._before = before.length
        self._slots = list(range(len(lengths)))
        self._logits: list[Floats] = [np.empty(0, np.float32)] * len(lengths)
        room = round_up(max(self._lengths) + CAPACITY_STEP)
        self._state = [pad_key_values(values, len(lengths), room) for values in before.state]

    def add(self, copies: Sequence[list[int]], part: SessionOutput) -> None:
        """Add the output of some rows, each of which stands in one or several places."""
        for i, numbers in enumerate(copies):
            start, end = self._before, self._lengths[numbers[0]]
            for number in numbers:
                self._logits[number] = part.logits[i][0]
                for space, new in zip(self._state, part.state, strict=True):
                    space[number, :, start:end] = new[i, :, : end - start]

    def pick(self, draws: Sequence[SamplingDraw]) -> NextTokens:
        """Pick a token for every row."""
        picks = self._runtime.pool.map(pick_token, self._logits, draws)
        return NextTokens(*(list(column) for column in zip(*picks, strict=True)))

    def step(self, ids: Sequence[int], keep: Sequence[int]) -> None:
        """Extend the rows that continue, and drop the others."""
        self._lengths = [self._lengths[i] for i in keep]
        self._slots = self._close_gaps([self._slots[i] for i in keep])
        longest, context = max(self._lengths), self._runtime.context
        if longest >= context:
            raise ModelError(f"a text has reached {longest:,} tokens", expected=f"at most {context:,}")
        if longest >= self._state[0].shape[2]:
            room = round_up(longest + CAPACITY_STEP)
            self._state = [pad_key_values(space, len(space), room) for space in self._state]
        rows = np.argsort(self._slots)  # in memory order
        size = max(2, -(-len(rows) // self._runtime.threads))
        self._logits = [np.empty(0, np.float32)] * len(keep)

        def work(start: int, session: OnnxSession) -> None:
            part, slots = rows[start : start + size], slice(start, start + size)
            lengths = [self._lengths[i] for i in part]
            logits, state = session.extend([ids[i] for i in part], lengths, [space[slots] for space in self._state])
            for space, new in zip(self._state, state, strict=True):
                space[range(start, start + len(part)), :, lengths] = new[:, :, 0]
            for i, each in zip(part, logits, strict=True):
                self._logits[i] = each

        self._runtime.share(range(0, len(rows), size), work)
        self._lengths = [length + 1 for length in self._lengths]

    def _close_gaps(self, slots: list[int]) -> list[int]:
        """Positions of the rows in memory, without gaps: the last ones move into freed slots."""
        free = iter(sorted(set(range(len(slots))) - set(slots)))
        for i, slot in enumerate(slots):
            if slot >= len(slots):
                slots[i] = next(free)
                for space in self._state:
                    space[slots[i]] = space[slot]
        self._state = [space[: len(slots)] for space in self._state]
        return slots


def has_exact_int8(probe: Path) -> bool:
    """Whether this machine multiplies unsigned with signed bytes without saturating large sums.

    x86 processors without instructions for dot products of bytes (VNNI) don't.
    """
    session = _load_graph(probe, 1)
    products = [session.run(None, {"bytes": np.full((rows, 64), 255, np.uint8)})[0] for rows in (1, 16)]
    return all(np.allclose(product, (255 - 128) * 64, rtol=1e-3) for product in products)


def _load_graph(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Planning which tensors may share memory takes seconds, and saves nothing here.
    options.enable_mem_reuse = False
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's errors have no common base
        raise ModelError(f"ONNX Runtime cannot load it: {error}", file=str(path)) from error


def available_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def round_up(tokens: int) -> int:
    return -(-tokens // LENGTH_MULTIPLE) * LENGTH_MULTIPLE


def pad_key_values(values: Floats, rows: int, tokens: int) -> Floats:
    """Copy keys or values to where there is room for more tokens; a single row is repeated."""
    _, heads, length, width = values.shape
    space = np.zeros((rows, heads, tokens, width), np.float32)
    space[:, :, :length] = values
    return space


def _row_logprobs(row: TokenRow, logits: Floats) -> RowLogprobs:
    """Extract the wanted values of a row."""
    logs = log_softmax(logits)
    return RowLogprobs(select_logprobs(logs, row.wanted), entropy(logs).tolist())
