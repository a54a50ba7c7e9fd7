"""Ask whether passages support a statement, and whether a model is fit to be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from ragworth.calls.programs import NoValue, Program
from ragworth.data import EMPTY_ANSWER
from ragworth.judging.answers.answer_book import Answer
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues, reject_cut_passage
from ragworth.judging.graders.contract import Grader
from ragworth.judging.labels import LabelResult, LabelScale, ask_label, choose_label_method, label_method_option
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
class SupportJudge(Grader):
    """What graders share that ask whether passages support a statement."""

    prompt: str = prompt_option("support")
    how: str = label_method_option()
    length: int = option(16, "maximum tokens of what the model writes", low=1)
    keep_cut: bool = option(False, "keep values where the passages did not fit whole")

    asks_model: ClassVar[bool] = True
    single: ClassVar[bool] = False
    prompts: ClassVar[tuple[str, ...]] = ("support",)

    def check(self) -> None:
        _ = self.scale
        choose_label_method(self.model, self.how, self.kind)

    def check_for(self, answers: Sequence[Answer]) -> None:
        self.need_queries(answers)

    @cached_property
    def scale(self) -> LabelScale:
        return SUPPORT_LABELS.for_prompt(self.template)

    def ask(self, query: str, passages: Sequence[str], statement: str) -> Program[LabelResult]:
        """Ask whether passages support a statement."""
        values: Mapping[str, Any] = {
            "query": query,
            "passages": [{"text": text} for text in passages],
            "statement": statement,
        }
        way = choose_label_method(self.model, self.how, self.kind)
        prompt = self.template.render({name: value for name, value in values.items() if name in self.template.names})
        found = yield from ask_label(prompt, self.scale, self.model, way, length=self.length)
        reject_cut_passage(found.usage, self.keep_cut, found.raw)
        return found

    def control_programs(self) -> Sequence[Program[AspectValues]]:
        """Statements that are supported, contradicted, and neither."""
        return [
            self._control(each.question, each.passage, statement, label)
            for each in CONTROL_CLAIMS
            for label, statement in zip(SUPPORT_LABELS.labels, each[2:], strict=True)
        ]

    def _control(self, question: str, passage: str, statement: str, label: str) -> Program[AspectValues]:
        found = yield from self.ask(question, [passage], statement)
        return AspectValues({"right": float(found.label == label)}, {"label": label})

    def unfit_reason(self, controls: Sequence[AspectValues | NoValue]) -> str:
        known = [one.values["right"] for one in controls if isinstance(one, AspectValues)]
        right = sum(value == 1.0 for value in known)
        if not known or right >= LEAST_RIGHT * len(known) / len(controls):
            return ""
        return (
            f"the model is unfit to judge support: it is right about {right} of {len(known)} control statements, "
            f"and {LEAST_RIGHT} are the least"
        )

    def control_notes(self, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        known = [one for one in controls if isinstance(one, AspectValues)]
        if not known:
            return ["whether the model can judge support could not be checked: the control statements failed"]
        words = []
        for label in SUPPORT_LABELS.labels:
            mine = [one.values["right"] for one in known if one.detail["label"] == label]
            words.append(f"{sum(value == 1.0 for value in mine)} of {len(mine)} that are {label.lower()}")
        return [f"control statements: the model is right about {', '.join(words)}"]
