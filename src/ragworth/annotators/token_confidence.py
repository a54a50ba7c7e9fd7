"""How sure a model was of a text, from the entropy and surprisal of its tokens: pure functions, no model.

H_i is the entropy of the model's distribution before token i, over the whole vocabulary, and s_i = −log p its
surprisal, both in nats, with the context; H'_i and s'_i are those of the same tokens without it.

============ ===================================================================
Entropy      −mean H_i over all tokens
PPL          −exp(mean s_i) over all tokens
KeyEntropy   −mean H_i over the key tokens: those with |H_i − H'_i| > a
KeyPPL       −exp(mean s_i) over the key tokens: those with |s_i − s'_i| > a
============ ===================================================================

Where no token is a key token, the ``top`` share of tokens with the highest H (s) are taken, at least one. Without
H', as for the answer that the model gives without a context, the key tokens are those with H_i > a.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragworth.calls.programs import NoValue

MEASURES = ("PPL", "KeyPPL", "Entropy", "KeyEntropy")


@dataclass(frozen=True)
class TokenStatistics:
    """What a model thought of each token of a text, with its context and, for the same tokens, without."""

    surprisals: Sequence[float]
    entropies: Sequence[float] | None = None
    surprisals_alone: Sequence[float] | None = None
    entropies_alone: Sequence[float] | None = None

    def pair(self, measure: str) -> tuple[Sequence[float], Sequence[float] | None] | None:
        """The quantity that a measure goes by, with and without the context."""
        if measure.endswith("PPL"):
            return self.surprisals, self.surprisals_alone
        return None if self.entropies is None else (self.entropies, self.entropies_alone)


def key_tokens(values: Sequence[float], alone: Sequence[float] | None, a: float, top: float) -> list[int]:
    """Numbers of the key tokens, in order."""
    changes = values if alone is None else [abs(x - y) for x, y in zip(values, alone, strict=True)]
    chosen = [number for number, change in enumerate(changes) if change > a]
    if chosen:
        return chosen
    highest = sorted(range(len(values)), key=lambda number: (-values[number], number))
    return sorted(highest[: fallback_count(top, len(values))])


def fallback_count(top: float, tokens: int) -> int:
    """How many tokens are taken where none is a key token: a share of all, rounded up, at least one."""
    # The product of a share and a whole number may fall short of a whole number by rounding.
    return max(1, math.ceil(round(top * tokens, 9)))


def confidences(tokens: TokenStatistics, a: float, top: float, measures: Sequence[str]) -> dict[str, float | NoValue]:
    """The measures of a text with at least one token; the reason, where a model does not tell what one needs."""
    found: dict[str, float | NoValue] = {}
    for measure in measures:
        quantities = tokens.pair(measure)
        if quantities is None:
            found[measure] = NoValue("no-entropies", "the model does not tell the entropy of its tokens")
            continue
        values, alone = quantities
        if measure.startswith("Key"):
            values = [values[number] for number in key_tokens(values, alone, a, top)]
        mean = math.fsum(values) / len(values)
        found[measure] = -math.exp(mean) if measure.endswith("PPL") else -mean
    return found
