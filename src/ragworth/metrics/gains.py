"""Gains of relevance levels in nDCG: a rule, and exceptions for some levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ragworth.core.errors import MetricError
from ragworth.metrics.blocks import Bools, Floats
from ragworth.metrics.declaration import Parameter, ParameterInput, ParameterValue, format_number

NO_GAINS = "none"


@dataclass(frozen=True)
class GainsParameter(Parameter):
    """Gains of relevance levels in trec_eval's syntax: ``1=3,2=9``. In Python also ``{1: 3, 2: 9}``."""

    default: ParameterValue = NO_GAINS
    doc: str = ""

    @property
    def takes(self) -> str:
        return "LEVEL=GAIN, separated by commas and in quotes; levels from 0"

    @property
    def example(self) -> str:
        return '"1=3,2=9"'

    def parse(self, text: str) -> ParameterValue:
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        return self.check(text[1:-1] if quoted else text)

    def check(self, value: ParameterInput) -> ParameterValue:
        """Normalize the gains: levels ascending, numbers as short as possible."""
        if value == NO_GAINS:
            return NO_GAINS
        if isinstance(value, Mapping):
            pairs = [(float(level), float(gain)) for level, gain in value.items()]
        elif isinstance(value, str):
            parts = [part.split("=") for part in value.split(",")]
            pairs = [(float(level), float(gain)) for level, gain in parts]
        else:
            raise ValueError
        levels = [level for level, _ in pairs]
        # Relevance below 0 means that the passage is unjudged.
        if not pairs or len(set(levels)) < len(levels) or not np.isfinite(pairs).all() or min(levels) < 0:
            raise ValueError
        return ",".join(f"{format_number(level)}={format_number(gain)}" for level, gain in sorted(pairs))


@lru_cache(maxsize=64)
def gain_table(gains: str) -> Mapping[float, float]:
    """Level → gain."""
    pairs = (part.split("=") for part in gains.split(",")) if gains != NO_GAINS else ()
    return {float(level): float(gain) for level, gain in pairs}


def may_gain(relevance: Floats, gains: str) -> Bools:
    """Where relevance can have a gain; NaN and negative relevance never do."""
    return np.asarray(relevance >= 0 if 0.0 in gain_table(gains) else relevance > 0)


def passage_gains(relevance: Floats, gain: str, gains: str) -> Floats:
    """Gains of passages with this relevance, which isn't negative."""
    if gain == "exponential" and relevance.max(initial=0.0) > 1000:
        raise MetricError(
            f"nDCG(gain=exponential): 2 to the power of relevance {relevance.max():g} is too large",
            remedy="use gain=linear, or a smaller scale of relevance",
        )
    worth = np.exp2(relevance) - 1 if gain == "exponential" else relevance.copy()
    for level, given in gain_table(gains).items():
        worth[relevance == level] = given
    return worth
