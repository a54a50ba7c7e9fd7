"""``st:NAME_OR_FOLDER``: encoders of the sentence-transformers library, dense and sparse.

Only safetensors files are read (no pickle), code that comes with a model is never run, and nothing is downloaded: a
hub model has to be in the local cache.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.llm.model_files import IDENTITY_SUFFIXES, find_snapshot, fingerprint
from ragworth.retrieval.artifact_cache import digest
from ragworth.retrieval.encoders.contract import Floats, Role, normalize
from ragworth.retrieval.encoders.encoder_folder import EncoderConfig, read_json
from ragworth.retrieval.encoders.model_purpose import ModelPurpose, architectures, model_errors, wrong_model_error

EXTRA = "sentence-transformers"
BATCH = 32
TOKENIZER_REMEDY = "use a model that was saved together with its tokenizer"


def open_encoder(rest: str, folder: Path | None = None) -> SentenceEncoder:
    """Open a dense encoder by its name in the local cache, or by its folder."""
    return SentenceEncoder(rest, find_model_folder(rest, folder))


def find_model_folder(name: str, start: Path | None) -> Path:
    """Find a model's folder."""
    if find_spec("sentence_transformers") is None:
        raise MissingExtraError("sentence-transformers", EXTRA, "a model of sentence-transformers")
    if not name:
        raise ModelError("the model has no name", expected="the name of a model, or its folder")
    own = (start or Path()) / Path(name).expanduser()
    found = own if own.is_dir() else find_snapshot("encoder", name, "main", False)
    if found is None:
        raise ModelError(
            f"the encoder {name!r} is neither a folder nor in the local cache of the Hugging Face hub",
            remedy=f"hf download {name}",
        )
    if not any((found / file).is_file() for file in ("modules.json", "config.json")):
        raise ModelError("it contains no model", file=str(found), expected="modules.json, or config.json")
    return found


def model_revision(folder: Path) -> str:
    """A hash of all files that determine a model's output, and of the library versions."""
    from importlib.metadata import version

    files = sorted(path for path in folder.rglob("*") if path.suffix in IDENTITY_SUFFIXES and path.is_file())
    facts = {str(path.relative_to(folder)): fingerprint(path) for path in files}
    return digest(facts | {"library": version("sentence-transformers"), "torch": version("torch")})[:16]


class SentenceEncoder:
    """A dense encoder."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = Path(name).name if Path(name).exists() else name
        self.folder = folder
        settings = read_json(folder / "config_sentence_transformers.json", {})
        prompts = {str(role): str(text) for role, text in (settings.get("prompts") or {}).items()}
        self._about = EncoderConfig("", settings.get("similarity_fn_name") not in ("dot",), 0, prompts)

    @cached_property
    def revision(self) -> str:
        return model_revision(self.folder)

    @cached_property
    def dimension(self) -> int:
        return int(self.encode([""], "query").shape[1])

    @property
    def normalised(self) -> bool:
        return self._about.normalised

    def prefix(self, role: Role) -> str:
        return self._about.prefix(role)

    def encode(self, texts: Sequence[str], role: Role, prefix: str | None = None) -> Floats:
        front = self.prefix(role) if prefix is None else prefix
        # The model's own prefix is passed as `prompt`, so that it may be excluded from the average.
        options = {"batch_size": BATCH, "show_progress_bar": False, "convert_to_numpy": True}
        with model_errors("the model cannot encode texts", self.folder, TOKENIZER_REMEDY):
            made = self._model.encode(list(texts), prompt=front or None, **options)
        vectors: Floats = np.asarray(made, dtype=np.float32).reshape(len(texts), -1)
        return normalize(vectors) if self.normalised else vectors

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return _open_model(SentenceTransformer, self.folder)


class TermWeights(NamedTuple):
    """Weights of words in some texts: those of text i are at ``ends[i]`` to ``ends[i + 1]``, by word number."""

    ends: npt.NDArray[np.int64]
    words: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]


class SparseTextEncoder:
    """A sparse encoder (such as SPLADE): represents a text by weights of words in a vocabulary."""

    def __init__(self, name: str, start: Path | None) -> None:
        self.folder = find_model_folder(name, start)
        _require_sparse(self.folder)
        self.name = Path(name).name if self.folder.samefile((start or Path()) / name) else name

    @cached_property
    def revision(self) -> str:
        return model_revision(self.folder)

    def encode(self, texts: Sequence[str], role: Role) -> TermWeights:
        """The positive weights of each text, by word number."""
        way = self._model.encode_query if role == "query" else self._model.encode_document
        options = {"convert_to_tensor": True, "convert_to_sparse_tensor": True, "save_to_cpu": True}
        with model_errors("the model cannot weigh words", self.folder, TOKENIZER_REMEDY):
            weights = way(list(texts), batch_size=BATCH, show_progress_bar=False, **options).coalesce()
        (owners, words), values = weights.indices().numpy(), weights.values().numpy().astype(np.float32)
        good = values > 0
        counts = np.bincount(owners[good], minlength=len(texts))
        ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        return TermWeights(ends, words[good].astype(np.int32), values[good])

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SparseEncoder

        return _open_model(SparseEncoder, self.folder)


def _require_sparse(folder: Path) -> None:
    """Reject models that the library would turn into a sparse encoder with a randomly initialized layer."""
    if (folder / "modules.json").is_file():
        kind = read_json(folder / "config_sentence_transformers.json", {}).get("model_type", "SentenceTransformer")
        if kind != "SparseEncoder":
            raise wrong_model_error(
                folder, f"the model is a {kind} of sentence-transformers, no SparseEncoder", ModelPurpose.WEIGHTS
            )
        return
    names = architectures(folder)
    if not any(name.endswith(ModelPurpose.WEIGHTS.ends) for name in names):
        found = f"has the architecture {names[0]}" if names else "doesn't state its architecture"
        raise wrong_model_error(folder, f"the model {found}", ModelPurpose.WEIGHTS)


def _open_model(kind: Any, folder: Path) -> Any:
    """Load a model of the library from its folder only, without log messages."""
    from ragworth.llm.hf import silence_libraries

    silence_libraries()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    options = {"use_safetensors": True}
    with model_errors("sentence-transformers cannot load it", folder, "use a complete model with safetensors weights"):
        return kind(str(folder), local_files_only=True, trust_remote_code=False, model_kwargs=options)
