"""``dense``: passages whose vectors are near to the query's.

Queries and passages are encoded by a model, and a passage's score is the inner product of its vector with the
query's: the cosine of their angle, unless the model was made for plain products. Every passage has a score, so as
many are retrieved as are wanted; only texts without any sign (empty, or white space alone) have no vector: such a
passage is never retrieved, and such a query retrieves nothing. Equal scores are ordered by passage id, descending.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.errors import MissingExtraError
from ragworth.retrieval.contract import Need, Place, Setting, Step, argument
from ragworth.retrieval.encoders import Encoder, ann_search, encoder
from ragworth.retrieval.encoders.contract import Floats, unit
from ragworth.retrieval.encoders.exact_search import UNIT, nearest
from ragworth.retrieval.encoders.vector_cache import name_of, vectors_of
from ragworth.retrieval.hits import NOTHING, Found, Ints, contexts, order_of
from ragworth.tables import Contexts
from ragworth.tasks.options import setting as named


@dataclass(frozen=True)
class Dense(Step):
    """Dense retrieval with one vector a text."""

    model: str = argument("embedded", "encoder: embedded, onnx:FOLDER or st:NAME_OR_FOLDER")
    similarity: str = named("model", "how vectors are compared; model: as it says", choices=("model", "cosine", "dot"))
    query_prefix: str = named("", "what stands in front of queries; nothing given: as the model says")
    passage_prefix: str = named("", "what stands in front of passages; nothing given: as the model says")
    search: str = named("exact", "compare all passages, or those of near groups alone", choices=("exact", "ann"))
    probes: int = named(32, "groups of passages that ann looks into", low=1)

    kind: ClassVar[str] = "dense"
    title: ClassVar[str] = "passages whose vectors are near to the query's"
    place: ClassVar[Place] = "first"
    needs: ClassVar[tuple[Need, ...]] = ("passages", "query texts")

    def problems(self, setting: Setting) -> list[str]:
        if self.search == "ann" and find_spec("faiss") is None:
            raise MissingExtraError("faiss-cpu", "ann", "approximate search")
        self.encoder(setting)
        return super().problems(setting)

    def sources(self, setting: Setting) -> tuple[str, ...]:
        return (f"{self.model} {self.encoder(setting).revision}",)

    def encoder(self, setting: Setting) -> Encoder:
        """The model, not loaded before it is asked."""
        return encoder(self.model, setting.folder)

    def apply(self, before: Contexts | None, setting: Setting) -> Contexts:
        passages, queries = setting.collection.passages, setting.queries
        rows, asked = signed(passages["text"]), signed(queries["text"])
        found = [NOTHING] * queries.height
        if len(rows) and len(asked):
            places = order_of(passages["passage"])[rows]
            texts = passages["text"].gather(rows)
            for number, each in zip(
                asked, self.found(texts, queries["text"].gather(asked), places, setting), strict=True
            ):
                found[number] = Found(rows[each.rows], each.scores)
        return contexts(found, queries["query"], passages["passage"])

    def found(self, texts: pl.Series, queries: pl.Series, places: Ints, setting: Setting) -> list[Found]:
        """The best of some texts for each of some queries."""
        model = self.encoder(setting)
        cosine = self.similarity == "cosine" or (self.similarity == "model" and model.normalised)
        prefix = self.passage_prefix or None
        vectors = vectors_of(model, texts, setting.cache, cosine=cosine, prefix=prefix, told=setting.told)
        asked: Floats = model.encode(queries.to_list(), "query", self.query_prefix or None)
        asked = unit(asked) if cosine else asked
        longest = UNIT if cosine else None
        if self.search == "exact":
            return nearest(vectors, asked, places, setting.depth, longest)
        name = name_of(model, texts, cosine, prefix) if setting.cache is not None else ""
        index = ann_search.index_of(vectors, name, setting.cache)
        return ann_search.near(index, vectors, asked, places, setting.depth, self.probes, longest)


def signed(texts: pl.Series) -> Ints:
    """The places of texts that are not empty, nor white space alone."""
    return np.flatnonzero((texts.str.strip_chars() != "").to_numpy()).astype(np.int64)
