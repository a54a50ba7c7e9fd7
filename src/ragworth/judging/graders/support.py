"""``support`` and ``citations``: whether passages support what an answer says, sentence by sentence.

Paper of the citations: Gao, Yen, Yu and Chen 2023, Enabling Large Language Models to Generate Text with Citations
(ALCE).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import polars as pl

from ragworth.calls.programs import NoValue, Program, combine_programs
from ragworth.data import EMPTY_ANSWER
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import NO_CITATIONS, AspectValues, reject_cut_passage
from ragworth.judging.judge import Grader, LabelJudge
from ragworth.judging.labels import LabelResult, LabelScale, all_found
from ragworth.judging.text_lookup import Answer
from ragworth.text_match.refusals import find_refusal
from ragworth.text_match.sentences import parse_citations, sentences, without_citations


class ControlClaims(NamedTuple):
    """A small text of an invented world, with statements that it supports, contradicts, or says nothing about.

    A model that can judge support at all tells the three apart. They are asked along with a user's own answers.
    """

    question: str
    passage: str
    supported: str
    contradicted: str
    neither: str


CONTROL_CLAIMS = (
    ControlClaims(
        "What is known of the Harrow bridge?",
        "The Harrow bridge was opened in 1864. It is made of iron and carries two railway tracks over the river Esk.",
        "The Harrow bridge was opened in 1864.",
        "The Harrow bridge was opened in 1912.",
        "The Harrow bridge was designed by a woman.",
    ),
    ControlClaims(
        "What does the bakery of Lower Tarn sell?",
        "The bakery of Lower Tarn sells rye bread every day but Sunday. It has belonged to the Weir family since 1950.",
        "The bakery is owned by the Weir family.",
        "The bakery belongs to the Moss family.",
        "The bakery also sells coffee.",
    ),
    ControlClaims(
        "How large is the Selby orchestra?",
        "The Selby orchestra has forty-two players, most of them amateurs. They rehearse on Thursdays.",
        "The Selby orchestra rehearses on Thursdays.",
        "All players of the Selby orchestra are professionals.",
        "The Selby orchestra has travelled to Portugal.",
    ),
    ControlClaims(
        "What lives in Corran lake?",
        "Corran lake is nine metres deep and freezes in most winters. Pike and perch live in it, but no trout.",
        "Perch live in Corran lake.",
        "Trout live in Corran lake.",
        "Fishing in Corran lake needs a licence.",
    ),
    ControlClaims(
        "Who was Ilse Varga?",
        "Ilse Varga was a botanist who described eleven species of moss. She taught in Dellmark until 1931.",
        "Ilse Varga described eleven species of moss.",
        "Ilse Varga was a painter.",
        "Ilse Varga had three children.",
    ),
    ControlClaims(
        "When does the ferry to Oran leave?",
        "The ferry to Oran leaves at seven in the morning and takes four hours. Bicycles travel for free.",
        "The crossing to Oran takes four hours.",
        "The ferry to Oran leaves in the evening.",
        "The ferry to Oran was built in Norway.",
    ),
)

LEAST_RIGHT = 12
"""Of the 18 statements, how many a fit model gets right. By guessing, 12 or more are right in 0.4 % of all cases."""


SUPPORTED, CONTRADICTED, NEITHER = "SUPPORTED", "CONTRADICTED", "NEITHER"
SUPPORT_LABELS = LabelScale((SUPPORTED, CONTRADICTED, NEITHER), (1.0, -1.0, 0.0))
"""Words that begin with different letters, so that a first token tells them apart."""


class Claim(NamedTuple):
    """A sentence of an answer, without its citations; the numbers of the passages that it cites, from 0."""

    text: str
    cited: tuple[int, ...]
    strays: int
    """Citations of passages that weren't shown."""


def claims_of(answer: str, shown: Sequence[str]) -> list[Claim]:
    """The sentences of an answer that say something; raises `NoValue` if there are none."""
    if not answer.strip():
        raise NoValue(EMPTY_ANSWER, "the answer is empty")
    if find_refusal(answer) is not None:
        raise NoValue("declined", "the answer declines: it states nothing that could be supported", answer)
    numbers = {passage: n for n, passage in enumerate(shown)}
    found = []
    for sentence in sentences(answer):
        text, cited = without_citations(sentence), parse_citations(sentence, shown)
        if any(sign.isalnum() for sign in text):
            found.append(Claim(text, tuple(numbers[passage] for passage in cited.passages), cited.strays))
    if not found:
        raise NoValue("no-statement", "no sentence of the answer states anything", answer)
    return found


@dataclass(frozen=True)
class SupportJudge(LabelJudge[Answer], Grader):
    """What graders share that ask whether passages support a statement."""

    prompt: str = prompt_option("support")
    length: int = option(16, "maximum tokens of what the model writes", low=1)
    keep_cut: bool = option(False, "keep values where the passages did not fit whole")

    single = False
    compares = ("queries",)
    prompts = ("support",)
    scales: ClassVar[Mapping[str, LabelScale]] = {"support": SUPPORT_LABELS}

    def supports(self, query: str, passages: Sequence[str], statement: str) -> Program[LabelResult]:
        """Ask whether passages support a statement."""
        shown = [{"text": text} for text in passages]
        found = yield from self.label(query=query, passages=shown, statement=statement)
        reject_cut_passage(found.usage, self.keep_cut, found.raw)
        return found

    def controls(self) -> Sequence[Program[AspectValues]]:
        """Statements that are supported, contradicted, and neither."""
        return [
            self._control(each.question, each.passage, statement, label)
            for each in CONTROL_CLAIMS
            for label, statement in zip(SUPPORT_LABELS.labels, each[2:], strict=True)
        ]

    def _control(self, question: str, passage: str, statement: str, label: str) -> Program[AspectValues]:
        found = yield from self.supports(question, [passage], statement)
        return AspectValues({"right": float(found.label == label)}, {"label": label})

    def unfit_reason(self, rows: Sequence[Mapping[str, Any]], controls: Sequence[AspectValues | NoValue]) -> str:
        known = [one.values["right"] for one in controls if isinstance(one, AspectValues)]
        right = sum(value == 1.0 for value in known)
        if not known or right >= LEAST_RIGHT * len(known) / len(controls):
            return ""
        return (
            f"the model is unfit to judge support: it is right about {right} of {len(known)} control statements, "
            f"and {LEAST_RIGHT} are the least"
        )

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        known = [one for one in controls if isinstance(one, AspectValues)]
        said = "whether the model can judge support could not be checked: the control statements failed"
        if known:
            words = []
            for label in SUPPORT_LABELS.labels:
                mine = [one.values["right"] for one in known if one.detail["label"] == label]
                words.append(f"{sum(value == 1.0 for value in mine)} of {len(mine)} that are {label.lower()}")
            said = f"control statements: the model is right about {', '.join(words)}"
        return [*filter(None, [self.unfit_reason((), controls)]), said, *super().notes(frame, controls)]


@dataclass(frozen=True)
class SupportGrader(SupportJudge):
    """Shares of the answer's sentences that the context supports, contradicts, or says nothing about.

    The model sees the question, all passages that were shown and one sentence, and gives one of three labels; the
    likeliest one counts. It is then asked about each passage alone: supporting lists the passages that support a
    sentence by themselves. Statements whose label is known are asked along; a model that can't tell them apart is
    unfit, and nothing it says counts. One sentence that can't be judged leaves the answer without a value.
    """

    alone: bool = option(True, "also ask about each passage alone, to know which one supports a sentence")

    kind = "support"
    title = "whether the context supports each sentence of the answer, by the model as judge"
    aspects = ("supported", "contradicted", "unsupported")
    details: ClassVar[Mapping[str, Any]] = {
        "statements": pl.List(pl.String),
        "labels": pl.List(pl.String),
        "probabilities": pl.List(pl.List(pl.Float64)),
        "supporting": pl.List(pl.List(pl.String)),
        "contradicting": pl.List(pl.List(pl.String)),
        "mass": pl.Float64,
    }

    def program(self, item: Answer) -> Program[AspectValues]:
        shown = self.shown_passages(item)
        claims = claims_of(item.words, shown)
        texts = [self.texts.passage(passage) for passage in shown]
        query = self.texts.query(item.query)
        groups = [texts, *([text] for text in texts if self.alone)]
        asked = [self.supports(query, group, claim.text) for claim in claims for group in groups]
        found = all_found((yield from combine_programs(asked)))
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

    kind = "citations"
    title = "precision and recall of citations such as [2], by the model as judge"
    aspects = ("citation-recall", "citation-precision")
    rounds = 3
    details: ClassVar[Mapping[str, Any]] = {
        "statements": pl.List(pl.String),
        "cited": pl.List(pl.List(pl.String)),
        "supported_by_cited": pl.List(pl.Boolean),
        "precise": pl.List(pl.List(pl.Boolean)),
        "strays": pl.Int64,
    }

    def program(self, item: Answer) -> Program[AspectValues]:
        shown = self.shown_passages(item)
        claims = claims_of(item.words, shown)
        texts = [self.texts.passage(passage) for passage in shown]
        query = self.texts.query(item.query)
        checked = all_found((yield from combine_programs([self._check(query, texts, claim) for claim in claims])))
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
        found = yield from self.supports(query, passages, statement)
        return found.label == SUPPORTED

    def _all_supported(self, query: str, groups: Sequence[Sequence[str]], statement: str) -> Program[list[bool]]:
        programs = [self._supported(query, group, statement) for group in groups]
        return all_found((yield from combine_programs(programs)))
