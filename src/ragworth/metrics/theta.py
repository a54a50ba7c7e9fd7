"""The weights of UDCG_θ: a small JSON file with the weights, their quality and their training data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from ragworth.core.errors import FormatError, format_count
from ragworth.core.files import open_output
from ragworth.core.nested_text import InvalidValueError, validate_json

MAX_BYTES = 1 << 24
"""Maximum file size in bytes."""

MAX_K = 1000
"""Maximum number of positions with weights."""

Variant = Literal["full", "relevance", "binary"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)

DIGEST_LENGTH = 12
"""Hexadecimal digits of the digest of a query's id: two of a million ids rarely share one."""

RELEARN_HINT = "learn it again: ragworth train udcg RESULTS -o FILE"
EXPECTED = "a file that ragworth train udcg wrote"


@dataclass(frozen=True)
class Theta:
    """Weights of UDCG_θ.

    Attributes
    ----------
    k: number of passages.
    variant: ``full``; ``relevance``, without weights for harm; ``binary``, in which a relevant passage also counts 1
        instead of its utility.
    alpha, beta: weights of help and harm at positions 1 to k; ``beta`` is all 0 in variants without harm.
    rel: lowest relevance that counts as relevant.
    c: the C of the support vector machine.
    figures: agreement with the outcome, by name: ``value``, ``low``, ``high``, ``queries``, …
    learned_from: titles, models, sources of judgments and outcomes, numbers of queries, contexts and pairs;
        ``query_digests``, the digests of the queries' ids.
    seed: seed of the cross-validation folds and of resampling.
    version: version of ragworth.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"allow_inf_nan": False}

    k: int
    variant: Variant
    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    rel: float = 1.0
    c: float = 1.0
    figures: Mapping[str, Any] = field(default_factory=dict)
    learned_from: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    version: str = ""

    @cached_property
    def digest(self) -> str:
        """Hash of everything that scores depend on."""
        text = json.dumps([1, self.k, self.variant, self.alpha, self.beta, self.rel])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def trained_on(self) -> frozenset[str]:
        """Digests of the queries that the weights were learned from; empty if the file doesn't say."""
        return frozenset(self.learned_from.get("query_digests", "").split())

    def write(self, path: str | Path) -> None:
        """Write the file atomically."""
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1, allow_nan=False)
        with open_output(Path(path), private=False) as part:
            part.stream.write((text + "\n").encode())

    @classmethod
    def read(cls, path: str | Path) -> Theta:
        """Read a file written by :meth:`write`, reporting all its problems at once."""
        try:
            with Path(path).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            found = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
            raise FormatError(found, file=str(path), expected=EXPECTED, remedy="check the path") from error
        if len(data) > MAX_BYTES:
            raise FormatError("the file is too large", file=str(path), expected=EXPECTED)
        try:
            theta: Theta = validate_json(cls, data)
        except InvalidValueError as error:
            raise _error(path, error.texts) from None
        if wrong := tuple(theta._inconsistencies()):
            raise _error(path, wrong)
        return theta

    def _inconsistencies(self) -> Iterator[str]:
        """What can't be right although every field by itself is."""
        if not 1 <= self.k <= MAX_K:
            yield f"k is {self.k}; it is a whole number from 1 to {MAX_K:,}"
        if self.c <= 0 or self.seed < 0:
            yield f"c is {self.c} and seed {self.seed}; c is above 0, and seed 0 or more"
        for name, weights in (("alpha", self.alpha), ("beta", self.beta)):
            if len(weights) != self.k:
                yield f"{name} has {format_count(len(weights), 'weight')} and k is {self.k}"
        if self.variant != "full" and any(self.beta):
            yield f"beta is not 0, though the variant {self.variant!r} has no weights for harm"
        if not isinstance(self.learned_from.get("query_digests", ""), str):
            yield "learned_from has query_digests that are no text"


def _error(path: str | Path, wrong: tuple[str, ...]) -> FormatError:
    what = format_count(len(wrong), "problem")
    return FormatError(what, more=wrong, file=str(path), expected=EXPECTED, remedy=RELEARN_HINT)


def digest_query(query: str) -> str:
    """The digest of a query's id, by which training queries are recognised."""
    return hashlib.sha256(query.encode()).hexdigest()[:DIGEST_LENGTH]
