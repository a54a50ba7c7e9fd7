"""``support``: whether the passages that were shown support what the answer says, sentence by sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.contract import option
from ragworth.judging.findings import AspectValues
from ragworth.judging.graders.claim_support import (
    CONTRADICTED,
    NEITHER,
    SUPPORTED,
    Claim,
    SupportJudge,
    claims_of,
)
from ragworth.judging.graders.contribution import shown_passages
from ragworth.judging.labels import LabelResult


@dataclass(frozen=True)
class SupportGrader(SupportJudge):
    """Shares of the answer's sentences that the context supports, contradicts, or says nothing about.

    The model sees the question, all passages that were shown and one sentence, and gives one of three labels; the
    likeliest one counts. It is then asked about each passage alone: supporting lists the passages that support a
    sentence by themselves. Statements whose label is known are asked along; a model that can't tell them apart is
    unfit, and nothing it says counts. One sentence that can't be judged leaves the answer without a value.
    """

    alone: bool = option(True, "also ask about each passage alone, to know which one supports a sentence")

    kind: ClassVar[str] = "support"
    title: ClassVar[str] = "whether the context supports each sentence of the answer, by the model as judge"
    aspects: ClassVar[tuple[str, ...]] = ("supported", "contradicted", "unsupported")
    details: ClassVar[Mapping[str, Any]] = {
        "statements": pl.List(pl.String),
        "labels": pl.List(pl.String),
        "probabilities": pl.List(pl.List(pl.Float64)),
        "supporting": pl.List(pl.List(pl.String)),
        "contradicting": pl.List(pl.List(pl.String)),
        "mass": pl.Float64,
    }

    def program(self, answer: Answer) -> Program[AspectValues]:
        shown = shown_passages(self, answer)
        claims = claims_of(answer.words, shown)
        texts = [self.texts.passage(passage) for passage in shown]
        query = self.texts.query(answer.query)
        groups = [texts, *([text] for text in texts if self.alone)]
        asked = [self.ask(query, group, claim.text) for claim in claims for group in groups]
        found: list[LabelResult] = []
        for one in (yield from combine_programs(asked)):
            if isinstance(one, NoValue):
                raise one
            found.append(one)
        rows = [found[n * len(groups) : (n + 1) * len(groups)] for n in range(len(claims))]
        labels = [row[0].label for row in rows]
        shares = {label: labels.count(label) / len(labels) for label in (SUPPORTED, CONTRADICTED, NEITHER)}
        values = dict(zip(self.aspects, shares.values(), strict=True))
        return AspectValues(values, self._details(claims, shown, rows), rows[0][0].estimator)

    def _details(self, claims: list[Claim], shown: tuple[str, ...], rows: list[list[LabelResult]]) -> dict[str, Any]:
        masses = [each.mass for row in rows for each in row if each.mass is not None]
        single = {
            name: [[p for p, each in zip(shown, row[1:], strict=False) if each.label == label] for row in rows]
            for name, label in (("supporting", SUPPORTED), ("contradicting", CONTRADICTED))
        }
        return {
            "statements": [claim.text for claim in claims],
            "labels": [row[0].label.lower() for row in rows],
            "probabilities": [list(row[0].probabilities or ()) for row in rows],
            **(single if self.alone else {}),
            "mass": min(masses) if masses else None,
        }
