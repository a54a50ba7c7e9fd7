"""``citations``: whether the passages that an answer cites support what it says.

Paper: Gao, Yen, Yu and Chen 2023, Enabling Large Language Models to Generate Text with Citations (ALCE).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import polars as pl

from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.contract import option
from ragworth.judging.findings import AspectValues
from ragworth.judging.graders.claim_support import SUPPORTED, Claim, SupportJudge, claims_of
from ragworth.judging.graders.contribution import shown_passages

NO_CITATIONS = "no-citations"


class CheckedClaim(NamedTuple):
    """A sentence, whether its citations together support it, and for each citation whether it is needed."""

    supported: bool
    precise: tuple[bool, ...]


@dataclass(frozen=True)
class CitationGrader(SupportJudge):
    """Citation recall and precision of an answer, as ALCE defines them.

    Recall is the share of sentences that the passages they cite together support; a sentence without a citation isn't
    supported. A citation is precise if its sentence is supported, and it either supports the sentence by itself, or the
    other citations don't without it. A citation of a passage that wasn't shown is not precise. An answer that cites
    nothing has recall 0 and no precision (ALCE: 0).
    """

    citations: bool = option(True, "citations are always read, and removed before a sentence is judged")

    kind: ClassVar[str] = "citations"
    title: ClassVar[str] = "precision and recall of citations such as [2], by the model as judge"
    aspects: ClassVar[tuple[str, ...]] = ("citation-recall", "citation-precision")
    rounds: ClassVar[int] = 3
    details: ClassVar[Mapping[str, Any]] = {
        "statements": pl.List(pl.String),
        "cited": pl.List(pl.List(pl.String)),
        "supported_by_cited": pl.List(pl.Boolean),
        "precise": pl.List(pl.List(pl.Boolean)),
        "strays": pl.Int64,
    }

    def program(self, answer: Answer) -> Program[AspectValues]:
        shown = shown_passages(self, answer)
        claims = claims_of(answer.words, shown)
        texts = [self.texts.passage(passage) for passage in shown]
        query = self.texts.query(answer.query)
        checked: list[CheckedClaim] = []
        for one in (yield from combine_programs([self._check(query, texts, claim) for claim in claims])):
            if isinstance(one, NoValue):
                raise one
            checked.append(one)
        strays = sum(claim.strays for claim in claims)
        cited = sum(len(claim.cited) for claim in claims) + strays
        precise = sum(sum(one.precise) for one in checked)
        values: dict[str, float | NoValue] = {
            "citation-recall": sum(one.supported for one in checked) / len(claims),
            "citation-precision": precise / cited if cited else NoValue(NO_CITATIONS, "the answer cites no passage"),
        }
        detail = {
            "statements": [claim.text for claim in claims],
            "cited": [[shown[n] for n in claim.cited] for claim in claims],
            "supported_by_cited": [one.supported for one in checked],
            "precise": [list(one.precise) for one in checked],
            "strays": strays,
        }
        return AspectValues(values, detail)

    def _check(self, query: str, texts: Sequence[str], claim: Claim) -> Program[CheckedClaim]:
        """Ask about all cited passages, then each alone, then the others without those that don't do alone."""
        if not claim.cited:
            return CheckedClaim(False, ())
        cited = [texts[n] for n in claim.cited]
        if not (yield from self._supported(query, cited, claim.text)):
            return CheckedClaim(False, (False,) * len(cited))
        if len(cited) == 1:
            return CheckedClaim(True, (True,))
        alone = yield from self._all_supported(query, [[text] for text in cited], claim.text)
        weak = [n for n, does in enumerate(alone) if not does]
        rests = [cited[:n] + cited[n + 1 :] for n in weak]
        replaced = dict(zip(weak, (yield from self._all_supported(query, rests, claim.text)), strict=True))
        return CheckedClaim(True, tuple(does or not replaced[n] for n, does in enumerate(alone)))

    def _supported(self, query: str, passages: Sequence[str], statement: str) -> Program[bool]:
        found = yield from self.ask(query, passages, statement)
        return found.label == SUPPORTED

    def _all_supported(self, query: str, groups: Sequence[Sequence[str]], statement: str) -> Program[list[bool]]:
        found: list[bool] = []
        for one in (yield from combine_programs([self._supported(query, group, statement) for group in groups])):
            if isinstance(one, NoValue):
                raise one
            found.append(one)
        return found
