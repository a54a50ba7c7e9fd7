"""``onnx:FOLDER``: an encoder in a folder, run by ONNX Runtime.

The folder contains ``tokenizer.json`` and either a graph (``model.onnx`` or ``onnx/model.onnx``) or a BERT model's
``config.json`` and ``model.safetensors``, which are converted to a graph once and stored in the user's cache folder.
Texts are read in batches of similar length; texts that are too long are truncated.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ragworth.core.cache import cache_folder
from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.llm.model_files import fingerprint, first_line
from ragworth.retrieval.artifact_cache import digest, load_or_build
from ragworth.retrieval.encoders import encoder_folder as folders
from ragworth.retrieval.encoders.contract import Floats, Role, normalize

GRAPHS = ("model.onnx", "onnx/model.onnx")
WEIGHTS = "model.safetensors"
DATA_SUFFIXES = (".bin", ".data", ".onnx_data")
LENGTH_MULTIPLE = 16
"""Rows are padded to a multiple of this many tokens, so that sums don't depend on the length of other rows."""

BATCH_TOKENS = 8192
"""Tokens read at a time."""


def open_encoder(rest: str, folder: Path | None = None) -> OnnxEncoder:
    """Open the encoder in a folder."""
    if not rest:
        raise ModelError("the folder is missing", expected="onnx:FOLDER")
    return OnnxEncoder((folder or Path()) / Path(rest).expanduser())


class OnnxEncoder:
    """An encoder in a folder. The first text loads the weights."""

    def __init__(self, folder: Path, name: str = "") -> None:
        for package in ("onnxruntime", "tokenizers", "onnx"):
            if find_spec(package) is None:
                raise MissingExtraError(package, "embedded", "an encoder on this machine")
        if not folder.is_dir():
            raise ModelError("no such folder", file=str(folder), expected="an encoder's folder")
        if not (folder / "tokenizer.json").is_file():
            raise ModelError("it has no tokenizer.json", file=str(folder), expected="an encoder's folder")
        self.folder = folder
        self.name = name or folder.resolve().name
        self.about = folders.read_config(folder)
        found = [folder / graph for graph in GRAPHS if (folder / graph).is_file()]
        self._graph = found[0] if found else None
        if self._graph is None and not (folder / WEIGHTS).is_file():
            raise ModelError(
                "it has neither a graph nor weights", file=str(folder), expected=" or ".join((*GRAPHS, WEIGHTS))
            )

    @cached_property
    def revision(self) -> str:
        from ragworth.retrieval.encoders import bert_graph

        facts = {
            "files": [fingerprint(path) for path in self._files()],
            "about": [self.about.pooling, self.about.normalised, self.about.longest, self.about.prompts],
            "computed": [bert_graph.VERSION, LENGTH_MULTIPLE],
        }
        return digest(facts)[:16]

    @property
    def normalised(self) -> bool:
        return self.about.normalised

    @cached_property
    def dimension(self) -> int:
        return int(self.encode([""], "query").shape[1])  # what the graph returns, whatever its files say

    def prefix(self, role: Role) -> str:
        return self.about.prefix(role)

    def encode(self, texts: Sequence[str], role: Role, prefix: str | None = None) -> Floats:
        front = self.prefix(role) if prefix is None else prefix
        tokens = [each.ids for each in self.tokenizer.encode_batch([front + text for text in texts])]
        batches = [(batch, self._vectors([tokens[number] for number in batch])) for batch in _batches(tokens)]
        if not batches:
            return np.empty((0, self.dimension), dtype=np.float32)
        vectors = np.empty((len(texts), batches[0][1].shape[1]), dtype=np.float32)
        for numbers, found in batches:
            vectors[numbers] = found
        return normalize(vectors) if self.normalised else vectors

    def token_vectors(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """A matrix for each row of token ids: one vector of length 1 for each token."""
        found: dict[int, Floats] = {}
        for batch in _batches(rows):
            hidden, _ = self._hidden([rows[number] for number in batch])
            if hidden.ndim == 2:
                raise ModelError("its graph gives no vectors of tokens", file=str(self.folder))
            for number, vectors in zip(batch, hidden, strict=True):
                found[number] = normalize(vectors[: len(rows[number])])
        return [found[number] for number in range(len(rows))]

    def _files(self) -> list[Path]:
        """Files that determine its vectors."""
        computed = self._graph or self.folder / WEIGHTS
        # The weights of a large graph are in separate files, under arbitrary names.
        beside = [path for path in sorted(computed.parent.iterdir()) if path.suffix in DATA_SUFFIXES]
        words, config = (self.folder / name for name in ("tokenizer.json", "config.json"))
        return [computed, *(beside if self._graph else ()), words, *([config] if config.is_file() else ())]

    def _vectors(self, rows: Sequence[Sequence[int]]) -> Floats:
        """A vector for each row of tokens."""
        hidden, mask = self._hidden(rows)
        if hidden.ndim == 2:  # the graph does the pooling itself
            return hidden
        if self.about.pooling == "cls":
            return np.ascontiguousarray(hidden[:, 0])
        sums = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
        return np.asarray(sums / mask.sum(axis=1, keepdims=True), dtype=np.float32)

    def _hidden(self, rows: Sequence[Sequence[int]]) -> tuple[Floats, Any]:
        """The output of the graph for rows of tokens, and which of them are no padding."""
        longest = _round_up(max(map(len, rows)))
        ids = np.full((len(rows), longest), self._padding_id, dtype=np.int64)
        mask = np.zeros((len(rows), longest), dtype=np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return self._run_graph(feeds), mask

    def _run_graph(self, feeds: dict[str, Any]) -> Floats:
        """Run the graph on rows of tokens, and check that the output can be vectors."""
        rows, longest = feeds["input_ids"].shape
        wanted = [each.name for each in self._session.get_inputs()]
        try:
            (found, *_) = self._session.run(None, {name: feeds[name] for name in wanted})
        except Exception as error:  # the library's errors have no common base
            if "allocat" in str(error):
                raise MemoryError(str(error)) from error
            raise ModelError(
                f"ONNX Runtime cannot run its graph: {first_line(error)}",
                file=str(self.folder),
                expected="a graph and a tokenizer that were made for each other",
            ) from error
        output = np.asarray(found)
        shapes = ((rows, output.shape[-1]), (rows, longest, output.shape[-1])) if output.ndim else ()
        if output.dtype.kind != "f" or output.shape not in shapes or not output.size:
            raise ModelError(
                f"its graph gives {output.dtype} of {output.shape} for {rows} rows of {longest} tokens",
                file=str(self.folder),
                expected="a vector of floats for each row, or for each token",
            )
        if not np.isfinite(output).all():
            raise ModelError(
                "its graph gives numbers that are not finite",
                file=str(self.folder),
                remedy="use another file of the model: this one is damaged, or its precision is too low",
            )
        return output.astype(np.float32, copy=False)

    @cached_property
    def tokenizer(self) -> Any:
        """Of the library ``tokenizers``; it truncates texts that are too long."""
        from tokenizers import Tokenizer

        path = self.folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(path))
            tokenizer.no_padding()
            tokenizer.enable_truncation(self.about.longest)
        except Exception as error:  # the library raises nothing more specific
            raise ModelError(f"it cannot be used as a tokenizer: {first_line(error)}", file=str(path)) from error
        return tokenizer

    @cached_property
    def _padding_id(self) -> int:
        config = folders.read_json(self.folder / "config.json", {})
        return folders.int_field(config, "pad_token_id", self.folder / "config.json", 0)

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        options.log_severity_level = 3
        # Threads that spin while waiting would take a core from others on a busy machine.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = self._graph or self._build_graph()
        try:
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's errors have no common base
            raise ModelError(f"ONNX Runtime cannot load it: {error}", file=str(path)) from error
        unknown = [each.name for each in session.get_inputs() if each.name not in KNOWN_INPUTS]
        if unknown:
            raise ModelError(f"its graph needs {', '.join(unknown)}", file=str(path), expected=", ".join(KNOWN_INPUTS))
        return session

    def _build_graph(self) -> Path:
        """The graph built from the weights."""
        from ragworth.retrieval.encoders import bert_graph

        config = folders.read_json(self.folder / "config.json", {})
        weights = self.folder / WEIGHTS
        name = hashlib.sha256(f"{fingerprint(weights)} {config} {bert_graph.VERSION}".encode()).hexdigest()[:24]

        def make() -> Path:
            place = Path(tempfile.mkdtemp(prefix="ragworth-"))
            atexit.register(shutil.rmtree, place, ignore_errors=True)
            bert_graph.write_bert(place, config, weights)
            return place

        def save(graph: Path, place: Path) -> None:
            shutil.copytree(graph, place, dirs_exist_ok=True)

        return (
            load_or_build(cache_folder() / "encoders", name, make=make, save=save, load=lambda place: place)
            / "model.onnx"
        )


KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""Inputs that a graph may need."""


def _round_up(length: int) -> int:
    return -(-length // LENGTH_MULTIPLE) * LENGTH_MULTIPLE


def _batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Numbers of rows of similar length to read at a time: as many as fit, at least one."""
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and (end + 1 - start) * _round_up(len(rows[order[end]])) <= BATCH_TOKENS:
            end += 1
        yield order[start:end]
        start = end
