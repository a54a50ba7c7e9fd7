"""The interface of encoders.

An encoder is cheap to open: the first text loads the weights. Equal texts give equal vectors, whatever else is encoded
with them, as far as the underlying library allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

Role = Literal["query", "passage"]
"""What a text is; some models need a different prefix for each."""


class Encoder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """The name shown to people."""
        ...

    @property
    def revision(self) -> str:
        """A hash of everything that determines its vectors: weights, prefixes, the way they are computed."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def normalised(self) -> bool:
        """Whether vectors are meant to be compared only by their angle; they then have length 1."""
        ...

    def prefix(self, role: Role) -> str:
        """The encoder's own prefix for a text."""
        ...

    def encode(self, texts: Sequence[str], role: Role, prefix: str | None = None) -> Floats:
        """(texts, dimension): a vector for each text; ``prefix`` replaces the encoder's own."""
        ...


def normalize(vectors: Floats) -> Floats:
    """Scale vectors to length 1; zero vectors stay as they are."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    scaled: Floats = (vectors / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
    return scaled
