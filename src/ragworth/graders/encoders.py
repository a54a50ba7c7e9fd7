"""The encoder of graders that compare texts by BERTScore.

``embedded`` works offline; ``paper`` is what the paper on context utility uses; any other name is one of the Hugging
Face hub, or a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ragworth.errors import InputError
from ragworth.registry import Registry
from ragworth.tasks.options import option
from ragworth.text_match.similarity import BERTScoreSimilarity

if TYPE_CHECKING:
    from ragworth.text_match.token_encoder import TokenVectors

TOKEN_ENCODERS: Registry[Callable[[int | None], TokenVectors]] = Registry(
    "token encoder",
    "ragworth.token_encoders",
    {"embedded": "ragworth.retrieval.encoders.embedded_tokens:EmbeddedTokenEncoder"},
)
"""Each opens an encoder at a layer, or at the one it recommends."""

EMBEDDED, PAPER = "embedded", "paper"
PAPER_ENCODER, PAPER_LAYER = "bert-large-uncased", 18


def encoder_option() -> str:
    """The option that names an encoder."""
    words = "embedded (small, works offline), paper (bert-large-uncased, layer 18), a name of the hub, or a folder"
    return option(EMBEDDED, f"encoder of BERTScore: {words}")


def baseline_option() -> str:
    """The option of graders that rescale BERTScore."""
    return option(
        "",
        "score of unrelated texts, which becomes 0 while 1 stays 1: a number, or a file of bert-score "
        "(LAYER,P,R,F); by default scores aren't rescaled",
    )


def build_bertscore_similarity(
    encoder: str, *, layer: int, corpus: Sequence[str] | None, baseline: str, device: str, download: bool
) -> BERTScoreSimilarity:
    """BERTScore with an encoder; ``layer`` −1 uses the one known to be best.

    ``corpus``: texts in which tokens are counted for idf, so that a score doesn't depend on what else is scored.
    ``baseline``: a number as text, a file, or empty.
    """
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
    idf: Sequence[str] | bool = corpus if corpus is not None else False
    return BERTScoreSimilarity(BERTScore(opened, idf=idf, baseline=_number_or_text(baseline) if baseline else None))


def _number_or_text(text: str) -> float | str:
    """Parse a number, or return the text, which then names a file."""
    try:
        return float(text)
    except ValueError:
        return text
