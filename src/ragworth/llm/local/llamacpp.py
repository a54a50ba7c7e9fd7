"""Run GGUF files with llama.cpp (the package ``llama-cpp-python``), which knows every architecture and quantisation.

Prompts are read one after the other; a shared prefix stays in memory and isn't read again.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llama_cpp as cpp
import numpy as np
from numpy.typing import NDArray

from ragworth.core.errors import ModelError
from ragworth.llm.local.batches import BatchBudget
from ragworth.llm.local.loaded import LoadedModel
from ragworth.llm.local.logits import entropy, log_softmax, pick_token, select_logprobs
from ragworth.llm.local.prompt_encoding import PromptEncoder, load_chat_template
from ragworth.llm.local.runtime import NextTokens, RowLogprobs, SamplingDraw, TokenRow

_SILENT_LOG = cpp.llama_log_callback(lambda level, text, data: None)
"""llama.cpp logs a lot about every model it loads."""

BATCH_TOKENS = 512
"""Tokens passed to llama.cpp at a time."""


def load(path: Path, *, context: int, threads: int = 0, gpu_layers: int = 0) -> LoadedModel:
    """Load a GGUF file."""
    cpp.llama_log_set(_SILENT_LOG, ctypes.c_void_p(0))
    settings = cpp.llama_model_default_params()
    settings.n_gpu_layers = gpu_layers
    model = cpp.llama_model_load_from_file(os.fsencode(path), settings)
    if not model:
        raise ModelError("llama.cpp cannot load it", file=str(path), expected="a GGUF file of a kind that it knows")
    reads = int(cpp.llama_model_n_ctx_train(model))
    if context > reads:
        raise ModelError(f"the model reads {reads:,} tokens", file=str(path), remedy=f"context_length={reads}")
    options = cpp.llama_context_default_params()
    options.n_ctx = context
    options.n_batch = options.n_ubatch = BATCH_TOKENS
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    options.n_threads = options.n_threads_batch = threads or allowed
    found = cpp.llama_init_from_model(model, options)
    if not found:
        raise ModelError(f"llama.cpp has no memory for {context} tokens", file=str(path), remedy="context_length=4096")
    runtime = LlamaCppRuntime(found, cpp.llama_model_get_vocab(model))
    return LoadedModel(runtime, _build_prompt_encoder(runtime, model), BatchBudget(1 << 30, 1))


class LlamaCppRuntime:
    """A llama.cpp context, and the tokens currently in its memory."""

    name = "llama.cpp"

    def __init__(self, context: Any, vocabulary: Any) -> None:
        self.vocabulary = vocabulary
        self._context = context
        self.tokens = self._size = int(cpp.llama_vocab_n_tokens(vocabulary))
        self._batch = cpp.llama_batch_init(BATCH_TOKENS, 0, 1)
        self._held: list[int] = []

    def prefix(self, ids: Sequence[int]) -> list[int]:
        """Do nothing yet: tokens already in memory are recognized when the rows are read."""
        return list(ids)

    def read(self, rows: Sequence[TokenRow], prefix: list[int] | None = None) -> list[RowLogprobs]:
        """Read the rows one after the other."""
        before = prefix or []
        reads = []
        for row in rows:
            first = len(before) + row.first
            logs = log_softmax(self.logits([*before, *row.ids], first, len(row.wanted)))
            reads.append(RowLogprobs(select_logprobs(logs, row.wanted), entropy(logs).tolist()))
        return reads

    def decode(self, rows: Sequence[list[int]], prefix: list[int] | None = None) -> LlamaCppDecoding:
        """Start to extend one row."""
        (row,) = rows
        return LlamaCppDecoding(self, [*(prefix or []), *row])

    def logits(self, ids: list[int], first: int, number: int) -> NDArray[np.float32]:
        """Logits after ``number`` tokens from ``first`` on, reading only ``ids`` that aren't in memory yet."""
        known = 0
        while known < min(len(self._held), len(ids), first) and self._held[known] == ids[known]:
            known += 1
        memory = cpp.llama_get_memory(self._context)
        if not cpp.llama_memory_seq_rm(memory, 0, known, -1):
            cpp.llama_memory_clear(memory, True)  # some architectures can only forget everything
            known = 0
        self._held = ids[:known]
        found = np.empty((number, self._size), np.float32)
        for start in range(known, len(ids), BATCH_TOKENS):
            part = ids[start : start + BATCH_TOKENS]
            self._fill(part, start, first, first + number)
            if cpp.llama_decode(self._context, self._batch) != 0:
                self._held = []
                cpp.llama_memory_clear(memory, True)
                raise ModelError("llama.cpp could not read a prompt", remedy="give it a longer context_length")
            for place in range(max(first, start), min(first + number, start + len(part))):
                row = cpp.llama_get_logits_ith(self._context, place - start)
                found[place - first] = np.ctypeslib.as_array(row, (self._size,))
        self._held = list(ids)
        return found

    def _fill(self, ids: list[int], start: int, first: int, end: int) -> None:
        batch = self._batch
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i] = token
            batch.pos[i] = start + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = first <= start + i < end

    def encode(self, texts: Sequence[str], *, whole: bool) -> list[list[int]]:
        """Ids of texts, recognizing control tokens."""
        return [self._encode(text.encode("utf-8", "replace"), whole) for text in texts]

    def _encode(self, data: bytes, whole: bool) -> list[int]:
        ids = (cpp.llama_token * (len(data) + 2))()
        number = cpp.llama_tokenize(self.vocabulary, data, len(data), ids, len(ids), whole, True)
        return list(ids[:number])

    def decode_ids(self, ids: list[int]) -> str:
        """The text of ids, without control tokens."""
        array = (cpp.llama_token * len(ids))(*ids)
        room = 16 * len(ids) + 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            number = cpp.llama_detokenize(self.vocabulary, array, len(ids), buffer, room, True, False)
            if number >= 0:
                return buffer.raw[:number].decode("utf-8", "replace")
            room = -number


class LlamaCppDecoding:
    """A row being extended."""

    def __init__(self, runtime: LlamaCppRuntime, ids: list[int]) -> None:
        self._runtime = runtime
        self._ids = ids
        self._logits = runtime.logits(ids, len(ids) - 1, 1)

    def pick(self, draws: Sequence[SamplingDraw]) -> NextTokens:
        logs = log_softmax(self._logits)
        token = pick_token(self._logits[0], draws[0])
        return NextTokens([token], [float(logs[0, token])], entropy(logs).tolist())

    def step(self, ids: Sequence[int], keep: Sequence[int]) -> None:
        self._ids = [*self._ids, *ids]
        self._logits = self._runtime.logits(self._ids, len(self._ids) - 1, 1)


class _LlamaCppTokenizer:
    """llama.cpp's tokenizer as `prompt_encoding.Tokenizer`."""

    def __init__(self, runtime: LlamaCppRuntime) -> None:
        self.encode = runtime.encode
        self.decode = runtime.decode_ids


def _build_prompt_encoder(runtime: LlamaCppRuntime, model: Any) -> PromptEncoder:
    vocabulary = runtime.vocabulary
    control, ends = [], set()
    for token in range(cpp.llama_vocab_n_tokens(vocabulary)):
        if cpp.llama_vocab_is_control(vocabulary, token):
            control.append(cpp.llama_vocab_get_text(vocabulary, token).decode("utf-8", "replace"))
        if cpp.llama_vocab_is_eog(vocabulary, token):
            ends.add(token)
    names = {
        name: cpp.llama_vocab_get_text(vocabulary, token).decode("utf-8", "replace") if token >= 0 else ""
        for name, token in (
            ("bos_token", cpp.llama_vocab_bos(vocabulary)),
            ("eos_token", cpp.llama_vocab_eos(vocabulary)),
        )
    }
    source = cpp.llama_model_chat_template(model, None)
    render = load_chat_template(source.decode("utf-8", "replace"), names) if source else None
    return PromptEncoder(_LlamaCppTokenizer(runtime), render, tuple(control), frozenset(ends))
