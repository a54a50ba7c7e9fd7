"""Models of the sentence-transformers library: encoders (``st:NAME_OR_FOLDER``), sparse encoders and cross-encoders.

Only safetensors files are read (no pickle), code that comes with a model is never run, and nothing is downloaded: a
hub model has to be in the local cache. A model made for something else is refused, because the library would add a
layer with random weights.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragworth.core.errors import MissingExtraError, ModelError, format_list
from ragworth.llm.model_files import IDENTITY_SUFFIXES, find_snapshot, fingerprint, first_line
from ragworth.retrieval.artifacts import digest
from ragworth.retrieval.encoders import Floats, Role, normalize, read_json

BATCH = 32
REMEDY = "use a model that was saved together with its tokenizer"
PASSAGE_PROMPTS = ("passage", "document", "corpus")
"""Names of passages in a model's list of prefixes."""
ARCHITECTURES = {"SparseEncoder": "ForMaskedLM", "CrossEncoder": "ForSequenceClassification"}
"""Endings of the architectures that the library can use as they are, by the class that reads them."""


def open_encoder(rest: str, folder: Path | None = None) -> SentenceEncoder:
    """Open a dense encoder by its name in the local cache, or by its folder."""
    return SentenceEncoder(rest, folder)


class LibraryModel:
    """A model of the library. The first text loads the weights."""

    library_class = ""

    def __init__(self, name: str, start: Path | None = None) -> None:
        self.folder = _find_folder(name, start)
        self.name = self.folder.name if ((start or Path()) / Path(name).expanduser()).is_dir() else name
        if self.library_class in ARCHITECTURES:
            _check_purpose(self.folder, self.library_class)

    @cached_property
    def revision(self) -> str:
        """A hash of all files that determine a model's output, and of the library versions."""
        from importlib.metadata import version

        files = sorted(path for path in self.folder.rglob("*") if path.suffix in IDENTITY_SUFFIXES and path.is_file())
        facts = {str(path.relative_to(self.folder)): fingerprint(path) for path in files}
        return digest(facts | {"library": version("sentence-transformers"), "torch": version("torch")})[:16]

    @cached_property
    def model(self) -> Any:
        import sentence_transformers
        import torch

        from ragworth.llm.hf import silence_libraries

        silence_libraries()
        logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
        with self.errors("sentence-transformers cannot load it", "use a complete model with safetensors weights"):
            model = getattr(sentence_transformers, self.library_class)(
                str(self.folder),
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32},
            )
            missing = _missing_weights(model)
        if missing:
            raise ModelError(
                f"its weights lack {format_list(missing, 3)}, which would be random numbers",
                file=str(self.folder),
                remedy="use a complete model",
            )
        return model

    @contextmanager
    def errors(self, what: str, remedy: str = REMEDY) -> Iterator[None]:
        """Convert errors of the libraries to model errors: what failed, and why."""
        try:
            yield
        except (OSError, ValueError, LookupError, RuntimeError, ImportError) as error:
            if "out of memory" in str(error):  # how libraries report it for a GPU, without a common type
                remedy = "free memory, or use a smaller model or a shorter length"
            raise ModelError(f"{what}: {first_line(error)}", file=str(self.folder), remedy=remedy) from error


class SentenceEncoder(LibraryModel):
    """A dense encoder."""

    library_class = "SentenceTransformer"

    def __init__(self, name: str, start: Path | None = None) -> None:
        super().__init__(name, start)
        settings = read_json(self.folder / "config_sentence_transformers.json")
        self._prompts = {str(role): str(text) for role, text in (settings.get("prompts") or {}).items()}
        self.normalised = settings.get("similarity_fn_name") != "dot"

    def encode(self, texts: Sequence[str], role: Role, prefix: str | None = None) -> Floats:
        names = ("query",) if role == "query" else PASSAGE_PROMPTS
        own = next((self._prompts[name] for name in names if name in self._prompts), "")
        with self.errors("the model cannot encode texts"):
            # The model's own prefix is passed as `prompt`, so that it may be excluded from the average.
            encoded = self.model.encode(
                list(texts),
                prompt=(own if prefix is None else prefix) or None,
                batch_size=BATCH,
                show_progress_bar=False,
            )
        vectors: Floats = np.asarray(encoded, dtype=np.float32).reshape(len(texts), -1)
        return normalize(vectors) if self.normalised else vectors


class TermWeights(NamedTuple):
    """Positive weights of words in some texts: how many each text has, word numbers, and weights, text by text."""

    counts: npt.NDArray[np.int64]
    words: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]


class SparseTextEncoder(LibraryModel):
    """A sparse encoder (such as SPLADE): represents a text by weights of words in a vocabulary."""

    library_class = "SparseEncoder"

    def encode(self, texts: Sequence[str], role: Role) -> TermWeights:
        options = {"convert_to_tensor": True, "convert_to_sparse_tensor": True, "save_to_cpu": True}
        with self.errors("the model cannot weigh words"):
            encode = self.model.encode_query if role == "query" else self.model.encode_document
            weights = encode(list(texts), batch_size=BATCH, show_progress_bar=False, **options).coalesce()
        (rows, words), values = weights.indices().numpy(), weights.values().numpy().astype(np.float32)
        positive = values > 0
        counts = np.bincount(rows[positive], minlength=len(texts))
        return TermWeights(counts, words[positive].astype(np.int32), values[positive])


class PairScore(NamedTuple):
    """The score of a query and a passage, and the maximum tokens to which they were truncated; 0 if they weren't."""

    value: float
    truncated_to: int = 0


class PairScorer(LibraryModel):
    """A cross-encoder, which reads a query and a passage together.

    The score is its one logit, or the second of two minus the first. Pairs that are too long lose tokens of the longer
    text first. ``length``: maximum tokens of a pair; 0 for the model's maximum.
    """

    library_class = "CrossEncoder"

    def __init__(self, name: str, start: Path | None = None, length: int = 0) -> None:
        super().__init__(name, start)
        self.length = length
        self.scores: dict[str, PairScore] = {}
        """Finite scores so far, by the digest of the pair, which several lists may share."""

    @property
    def longest(self) -> int:
        """Maximum tokens of a pair."""
        most = int(self.model.max_seq_length)
        return min(self.length or most, most)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """Score each pair, the higher the better."""
        import torch

        with self.errors("the model cannot score pairs"):
            self.model.max_seq_length = self.longest
            whole = self.model.tokenizer(*map(list, zip(*pairs, strict=True)), verbose=False)["input_ids"]
            limits = [self.longest if len(ids) > self.longest else 0 for ids in whole]
            options = {"batch_size": BATCH, "show_progress_bar": False, "activation_fn": torch.nn.Identity()}
            logits = np.asarray(self.model.predict(list(pairs), **options), dtype=np.float64).reshape(len(pairs), -1)
        if logits.shape[1] > 2:
            raise ModelError(
                f"the model has {logits.shape[1]} labels",
                file=str(self.folder),
                expected="one, or two: not relevant, relevant",
            )
        values = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        return list(map(PairScore, values.tolist(), limits))


def _find_folder(name: str, start: Path | None) -> Path:
    """Find a model's folder: a path relative to the start, or the local cache of the hub."""
    if find_spec("sentence_transformers") is None:
        raise MissingExtraError("sentence-transformers", "sentence-transformers", "a model of sentence-transformers")
    if not name:
        raise ModelError("the model has no name", expected="the name of a model, or its folder")
    own = (start or Path()) / Path(name).expanduser()
    folder = own if own.is_dir() else None
    if folder is None and not name.startswith(("/", ".", "~")):
        folder = find_snapshot("model", name, "main", False)
    if folder is None:
        raise ModelError(
            f"{name!r} is neither a folder nor a model in the local cache of the Hugging Face hub",
            remedy=f"hf download {name}",
        )
    if not any((folder / file).is_file() for file in ("modules.json", "config.json")):
        raise ModelError("it contains no model", file=str(folder), expected="modules.json, or config.json")
    return folder


def _missing_weights(model: Any) -> list[str]:
    """Return the names of weights that are not in a model's files, so that the libraries filled in random numbers."""
    from safetensors import safe_open
    from sentence_transformers.base.modules import Transformer

    missing: set[str] = set()
    for network in (module.auto_model for module in model.modules() if isinstance(module, Transformer)):
        stored: set[str] = set()
        for path in Path(network.name_or_path).glob("*.safetensors"):
            with safe_open(path, framework="pt") as file:
                stored.update(file.keys())
        if network.state_dict().keys() - stored:  # they may also have other names in the file, or be shared
            options = {"local_files_only": True, "trust_remote_code": False, "use_safetensors": True}
            _, about = type(network).from_pretrained(
                network.name_or_path, config=network.config, output_loading_info=True, **options
            )
            missing.update(about["missing_keys"])
    # An encoder's vectors come from its last layer, not from the pooler, which many files lack.
    return sorted(name for name in missing if not name.startswith("pooler."))


def _check_purpose(folder: Path, library_class: str) -> None:
    """Refuse a model that isn't made for a class of the library, by what its folder says."""
    if (folder / "modules.json").is_file():
        purpose = read_json(folder / "config_sentence_transformers.json").get("model_type", "SentenceTransformer")
        if purpose == library_class:
            return
    else:
        names = [str(name) for name in read_json(folder / "config.json").get("architectures") or []]
        if any(name.endswith(ARCHITECTURES[library_class]) for name in names):
            return
        purpose = ", ".join(names) or "model that doesn't say what it is"
    raise ModelError(
        f"it is a {purpose}",
        file=str(folder),
        expected=f"a {library_class} of sentence-transformers, or a model …{ARCHITECTURES[library_class]}",
        remedy="use another model: this one was made for something else",
    )
