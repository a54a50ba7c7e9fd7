"""The encoder of graders that compare texts by BERTScore.

``embedded`` works offline; ``paper`` is what the paper on context utility uses; any other name is one of the Hugging
Face hub, or a folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ragworth.core.errors import InputError
from ragworth.core.registry import Registry
from ragworth.judging.contract import option
from ragworth.text_match.similarity import BERTScoreSimilarity

if TYPE_CHECKING:
    from ragworth.text_match.token_encoder import TokenVectors

TOKEN_ENCODERS: Registry[Callable[[int | None], TokenVectors]] = Registry(
    "token encoder",
    "ragworth.token_encoders",
    {"embedded": "ragworth.retrieval.encoders.embedded:EmbeddedTokenEncoder"},
)
"""Each opens an encoder at a layer, or at the one it recommends."""

EMBEDDED, PAPER = "embedded", "paper"
PAPER_ENCODER, PAPER_LAYER = "bert-large-uncased", 18


def encoder_option() -> str:
    """The option that names an encoder."""
    words = "embedded (small, works offline), paper (bert-large-uncased, layer 18), a name of the hub, or a folder"
    return option(EMBEDDED, f"encoder of BERTScore: {words}")


def build_bertscore_similarity(encoder: str, *, layer: int, device: str, download: bool) -> BERTScoreSimilarity:
    """BERTScore with an encoder; ``layer`` −1 uses the one known to be best."""
    from ragworth.text_match.bertscore import BERTScore
    from ragworth.text_match.token_encoder import TokenEncoder

    known = layer if layer >= 0 else None
    if encoder == PAPER:
        if known not in (None, PAPER_LAYER):
            raise InputError(
                f"layer is {layer}, but the paper uses layer {PAPER_LAYER}",
                remedy=f"name the encoder: {PAPER_ENCODER}",
            )
        encoder, known = PAPER_ENCODER, PAPER_LAYER
    opened = (
        TOKEN_ENCODERS.get(encoder)(known)
        if encoder in TOKEN_ENCODERS
        else TokenEncoder(encoder, layer=known, device=device or None, download=download)
    )
    return BERTScoreSimilarity(BERTScore(opened))
