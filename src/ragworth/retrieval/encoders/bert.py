"""A BERT encoder run by ONNX Runtime.

Its weights are converted to a graph once, which is stored in the user's cache folder. Texts are read in batches of
similar length; texts that are too long are truncated.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
import numpy.typing as npt

from ragworth.core.cache import cache_folder
from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.llm.model_files import fingerprint, first_line
from ragworth.retrieval.artifacts import digest, load_or_build
from ragworth.retrieval.encoders import Floats, Role, normalize, read_json

FILES = ("model.safetensors", "tokenizer.json", "config.json")
"""Files that determine the vectors."""

LENGTH_MULTIPLE = 16
"""Rows are padded to a multiple of this many tokens, so that sums don't depend on the length of other rows."""

BATCH_TOKENS = 8192
"""Tokens read at a time."""

GRAPH_VERSION = 1
"""Incremented with every change in what the graph computes."""


class BertEncoder:
    """A BERT in a folder whose vectors are averages over tokens, of length 1. The first text loads the weights.

    ``longest``: maximum tokens read of a text.
    """

    normalised = True

    def __init__(self, folder: Path, name: str, longest: int) -> None:
        for package in ("onnxruntime", "tokenizers", "onnx"):
            if find_spec(package) is None:
                raise MissingExtraError(package, "embedded", "an encoder on this machine")
        self.folder, self.name, self.longest = folder, name, longest

    @cached_property
    def revision(self) -> str:
        facts = {
            "files": [fingerprint(self.folder / file) for file in FILES],
            "about": ["mean", True, self.longest, {}],
            "computed": [GRAPH_VERSION, LENGTH_MULTIPLE],
        }
        return digest(facts)[:16]

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.config["hidden_size"])

    @cached_property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = read_json(self.folder / "config.json")
        return config

    def encode(self, texts: Sequence[str], role: Role, prefix: str | None = None) -> Floats:
        rows = [each.ids for each in self.tokenizer.encode_batch([(prefix or "") + text for text in texts])]
        vectors = np.empty((len(rows), self.dimension), dtype=np.float32)
        for batch in _batches(rows):
            hidden, mask = self._read([rows[number] for number in batch])
            sums = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
            vectors[batch] = sums / mask.sum(axis=1, keepdims=True)
        return normalize(vectors)

    def token_vectors(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """Return a matrix for each row of token ids: one vector of length 1 for each token."""
        matrices: dict[int, Floats] = {}
        for batch in _batches(rows):
            hidden, _ = self._read([rows[number] for number in batch])
            matrices |= {number: normalize(row[: len(rows[number])]) for number, row in zip(batch, hidden, strict=True)}
        return [matrices[number] for number in range(len(rows))]

    def _read(self, rows: Sequence[Sequence[int]]) -> tuple[Floats, npt.NDArray[np.int64]]:
        """(rows, tokens, width): the vectors of the last layer, and which tokens are not padding."""
        longest = _round_up(max(map(len, rows)))
        ids = np.full((len(rows), longest), self.config.get("pad_token_id") or 0, dtype=np.int64)
        mask = np.zeros((len(rows), longest), dtype=np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        try:
            (hidden,) = self._session.run(None, {"input_ids": ids, "attention_mask": mask})
        except Exception as error:  # the library's errors have no common base
            if "allocat" in str(error):
                raise MemoryError(str(error)) from error
            raise ModelError(f"ONNX Runtime cannot run it: {first_line(error)}", file=str(self.folder)) from error
        if not np.isfinite(hidden).all():
            raise ModelError("its vectors are not finite: its weights are damaged", file=str(self.folder))
        return hidden, mask

    @cached_property
    def tokenizer(self) -> Any:
        """Of the library ``tokenizers``; it truncates texts that are too long."""
        from tokenizers import Tokenizer

        path = self.folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(path))
            tokenizer.no_padding()
            tokenizer.enable_truncation(self.longest)
        except Exception as error:  # the library raises nothing more specific
            raise ModelError(f"it cannot be used as a tokenizer: {first_line(error)}", file=str(path)) from error
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        options.log_severity_level = 3
        # Threads that spin while waiting would take a core from others on a busy machine.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = self._build_graph()
        try:
            return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's errors have no common base
            raise ModelError(f"ONNX Runtime cannot load it: {first_line(error)}", file=str(self.folder)) from error

    def _build_graph(self) -> Path:
        """Return the graph built from the weights."""
        from ragworth.retrieval.encoders import bert_graph

        weights = self.folder / "model.safetensors"
        name = hashlib.sha256(f"{fingerprint(weights)} {self.config} {GRAPH_VERSION}".encode()).hexdigest()[:24]

        def make() -> Path:
            folder = Path(tempfile.mkdtemp(prefix="ragworth-"))
            finalize(self, shutil.rmtree, folder, ignore_errors=True)
            bert_graph.write_bert(folder, self.config, weights)
            return folder

        def save(folder: Path, place: Path) -> None:
            shutil.copytree(folder, place, dirs_exist_ok=True)

        cache = cache_folder() / "encoders"
        return load_or_build(cache, name, make=make, save=save, load=lambda place: place) / "model.onnx"


def _round_up(length: int) -> int:
    return -(-length // LENGTH_MULTIPLE) * LENGTH_MULTIPLE


def _batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the numbers of rows of similar length to read at a time: as many as fit, at least one."""
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and (end + 1 - start) * _round_up(len(rows[order[end]])) <= BATCH_TOKENS:
            end += 1
        yield order[start:end]
        start = end
