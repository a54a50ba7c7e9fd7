"""A decoder graph (see `onnx_graph`) in memory: rows of tokens in; logits, keys and values out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from ragworth.core.errors import ModelError, quote_short

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


class CachedPrefix(NamedTuple):
    """Tokens that were read before."""

    state: KeyValues
    length: int


class SessionOutput(NamedTuple):
    """Output for some rows: logits (requested places, vocabulary) of each; keys and values if kept."""

    logits: list[Floats]
    state: KeyValues


class OnnxSession:
    """A graph, run by a number of threads."""

    def __init__(self, path: Path, threads: int) -> None:
        self._session = _inference_session(path, threads)
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
        count, longest, most = len(rows), max(map(len, rows)), max(1, *map(len, asked))
        ids = np.zeros((count, longest), np.int64)
        at = np.zeros((count, most), np.int64)
        for i, (row, places) in enumerate(zip(rows, asked, strict=True)):
            ids[i, : len(row)] = row
            at[i, : len(places)] = places
        room = -(before.length + longest) % LENGTH_MULTIPLE
        mask = _causal_mask(longest, before.length, room)
        feeds: dict[str, NDArray[Any]] = {
            "ids": ids,
            "positions": np.repeat(np.arange(before.length, before.length + longest)[None], count, axis=0),
            "mask": mask[None, None, None],
            "at": at + np.arange(count)[:, None] * longest,
            "mask_at": mask[at][:, None, None],
        }
        state = [pad_key_values(kept, count, before.length + room) for kept in before.state]
        logits, new = self._run(feeds, state, keep=keep)
        return SessionOutput([found[: len(places)] for found, places in zip(logits, asked, strict=True)], new)

    def extend(self, ids: Sequence[int], seen: Sequence[int], state: KeyValues) -> tuple[Floats, KeyValues]:
        """Read one more token for each row after ``seen`` others; ``state`` has room for it and more."""
        room = state[0].shape[2]
        hidden = np.arange(room + 1)[None] > np.asarray(seen)[:, None]
        mask = np.where(hidden, np.float32(MASKED), np.float32(0))[:, None, None, None]
        feeds = {
            "ids": np.asarray(ids, np.int64)[:, None],
            "positions": np.asarray(seen, np.int64)[:, None],
            "mask": mask,
            "at": np.arange(len(ids))[:, None],
            "mask_at": mask,
        }
        logits, new = self._run(feeds, state, keep=True)
        return logits[:, 0], new

    def _read_in_pieces(self, row: list[int], asked: list[int], before: CachedPrefix) -> SessionOutput:
        """Read a long row in pieces, so that neither attention scores nor logits take much memory."""
        logits, state = [], before.state
        for start in range(0, len(row), PIECE_TOKENS):
            piece = row[start : start + PIECE_TOKENS]
            places = [place - start for place in asked if 0 <= place - start < len(piece)]
            part = self.read([piece], [places], CachedPrefix(state, before.length + start), keep=True)
            logits.append(part.logits[0])
            state = [np.concatenate(pair, axis=2) for pair in zip(state, part.state, strict=True)]
        return SessionOutput([np.concatenate(logits)], [kept[:, :, before.length :] for kept in state])

    def _run(self, feeds: dict[str, NDArray[Any]], state: KeyValues, *, keep: bool) -> tuple[Floats, KeyValues]:
        feeds |= zip(self._past, state, strict=True)
        with _memory_errors():
            logits, *new = self._session.run(["logits", *(self._present if keep else [])], feeds)
        return logits, new


def pad_key_values(kept: Floats, rows: int, tokens: int) -> Floats:
    """Pad keys or values with room for more tokens, repeating a single row if there is only one."""
    _, heads, length, width = kept.shape
    space = np.zeros((rows, heads, tokens, width), np.float32)
    space[:, :, :length] = kept
    return space


def has_exact_int8(path: Path) -> bool:
    """Whether this machine multiplies unsigned with signed bytes without saturating large sums.

    x86 processors without instructions for dot products of bytes (VNNI) don't.
    """
    session = _inference_session(path, 1)
    found = [session.run(None, {"bytes": np.full((rows, 64), 255, np.uint8)})[0] for rows in (1, 16)]
    return all(np.allclose(products, (255 - 128) * 64, rtol=1e-3) for products in found)


def _inference_session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Planning which tensors may share memory takes seconds, and saves nothing here.
    options.enable_mem_reuse = False
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's errors have no common base
        raise ModelError(f"ONNX Runtime cannot load it: {error}", file=str(path)) from error


def _causal_mask(length: int, before: int, room: int) -> Floats:
    """The mask (tokens, tokens and room) of a text that is read from the left."""
    later = np.arange(before + room + length)[None] > np.arange(before, before + length)[:, None]
    return np.where(later, np.float32(MASKED), np.float32(0))


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Raise MemoryError when out of memory; other errors affect every row, and end the job.

    Versions of ONNX Runtime differ by processor: 1.22 lacks products of 8-bit blocks on ARM.
    """
    try:
        yield
    except Exception as error:
        if "allocat" in str(error):
            raise MemoryError(str(error)) from error
        raise ModelError(
            f"ONNX Runtime {onnxruntime.__version__} cannot run the model on this machine: {quote_short(error, 200)}",
            remedy="pip install --upgrade onnxruntime",
        ) from error
