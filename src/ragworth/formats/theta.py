"""The weights of UDCG_θ: a small JSON file with the weights, their quality and their training data."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from ragworth.errors import FormatError, format_count, quote_short
from ragworth.formats.files import create_file, open_file
from ragworth.nested_text import parse_json

FORMAT = 1
"""File format version; other versions are rejected."""

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
        text = json.dumps([FORMAT, self.k, self.variant, self.alpha, self.beta, self.rel])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def trained_on(self) -> frozenset[str]:
        """Digests of the queries that the weights were learned from; empty if the file doesn't say."""
        return frozenset(self.learned_from.get("query_digests", "").split())

    def write(self, path: str | Path) -> None:
        """Write the file atomically."""
        text = json.dumps({"format": FORMAT} | asdict(self), ensure_ascii=False, indent=1, allow_nan=False)
        with create_file(path) as stream:
            stream.write((text + "\n").encode())

    @classmethod
    def read(cls, path: str | Path) -> Theta:
        """Read a file written by :meth:`write`, reporting all its problems at once."""
        facts = _read_object(Path(path))
        if facts.get("format") != FORMAT or isinstance(facts["format"], bool):
            raise FormatError(
                f"the format is {quote_short(facts.get('format', 'missing'), 40)}",
                file=str(path),
                expected=f"{EXPECTED}, of format {FORMAT}",
                remedy=RELEARN_HINT,
            )
        wrong = _find_problems(facts)
        if wrong:
            raise FormatError(
                f"{format_count(len(wrong), 'invalid field')}",
                more=tuple(wrong),
                file=str(path),
                expected=EXPECTED,
                remedy=RELEARN_HINT,
            )
        names = {name: facts[name] for name in cls.__dataclass_fields__}
        weights = {name: tuple(float(each) for each in facts[name]) for name in ("alpha", "beta")}
        return cls(**names | weights | {"rel": float(facts["rel"]), "c": float(facts["c"])})


def _read_object(path: Path) -> dict[str, Any]:
    with open_file(path) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise FormatError("the file is too large", file=str(path), expected=EXPECTED)
    try:
        value = parse_json(data.decode("utf-8"), parse_constant=_reject_constant)
    except ValueError as error:
        raise FormatError(f"not JSON: {str(error)[:120]}", file=str(path), expected=EXPECTED) from error
    if not isinstance(value, dict):
        raise FormatError("this is JSON, but not an object", file=str(path), expected=EXPECTED)
    return value


def _reject_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _find_problems(facts: Mapping[str, Any]) -> list[str]:
    """List the problems of a file's fields."""
    wrong = []
    k, variant = facts.get("k"), facts.get("variant")
    if not _is_int_between(k, 1, MAX_K):
        wrong.append(f"k is {_quote_field(facts, 'k')}; it is a whole number from 1 to {MAX_K:,}")
        k = None
    if variant not in VARIANTS:
        wrong.append(f"variant is {_quote_field(facts, 'variant')}; it is {' or '.join(VARIANTS)}")
    for name in ("alpha", "beta"):
        weights = facts.get(name)
        if not isinstance(weights, list) or not all(_is_finite(each) for each in weights):
            wrong.append(f"{name} is {_quote_field(facts, name)}; it is a list of numbers")
        elif k is not None and len(weights) != k:
            wrong.append(f"{name} has {format_count(len(weights), 'weight')} and k is {k}")
        elif name == "beta" and variant in ("relevance", "binary") and any(weights):
            wrong.append(f"beta is not 0, though the variant {variant!r} has no weights for harm")
    if not _is_finite(facts.get("rel")):
        wrong.append(f"rel is {_quote_field(facts, 'rel')}; it is a number")
    if not _is_finite(facts.get("c")) or facts["c"] <= 0:
        wrong.append(f"c is {_quote_field(facts, 'c')}; it is a number above 0")
    if not _is_int_between(facts.get("seed"), 0, None):
        wrong.append(f"seed is {_quote_field(facts, 'seed')}; it is a whole number from 0")
    if not isinstance(facts.get("version"), str):
        wrong.append(f"version is {_quote_field(facts, 'version')}; it is a text")
    for name in ("figures", "learned_from"):
        if not isinstance(facts.get(name), dict):
            wrong.append(f"{name} is {_quote_field(facts, name)}; it is an object")
        elif not isinstance(facts[name].get("query_digests", ""), str):
            wrong.append(f"{name} has query_digests {_quote_field(facts[name], 'query_digests')}; it is a text")
    return wrong


def digest_query(query: str) -> str:
    """The digest of a query's id, by which training queries are recognised."""
    return hashlib.sha256(query.encode()).hexdigest()[:DIGEST_LENGTH]


def _quote_field(facts: Mapping[str, Any], name: str) -> str:
    return quote_short(facts[name], 40) if name in facts else "not there"


def _is_int_between(value: object, low: int, high: int | None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value and (high is None or value <= high)


def _is_finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
