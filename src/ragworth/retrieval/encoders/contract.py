"""What an encoder is, on one screen.

An encoder is cheap to open: weights are loaded by the first text. Equal texts give equal vectors, whatever is encoded
with them, as far as the library that computes them allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

Role = Literal["query", "passage"]
"""What a text is: some models want to be told, by words in front of it."""


class Encoder(Protocol):
    """Texts in, vectors out."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def revision(self) -> str:
        """A hash of everything that decides its vectors: weights, words, the way they are computed."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        ...

    @property
    def normalised(self) -> bool:
        """Whether vectors are meant to be compared by their angle alone; they have length 1 then."""
        ...

    def prefix(self, role: Role) -> str:
        """What it puts in front of a text of its own accord."""
        ...

    def encode(self, texts: Sequence[str], role: Role, prefix: str | None = None) -> Floats:
        """(texts, dimension): a vector for each text; ``prefix`` stands for the encoder's own."""
        ...


def normalize(vectors: Floats) -> Floats:
    """Vectors of length 1; one of zeros stays as it is."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    scaled: Floats = (vectors / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
    return scaled
