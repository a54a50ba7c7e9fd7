"""``abstention``: how likely the model is to decline to answer when it is shown one passage alone.

Paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs.

Control questions are asked along with the user's own: small texts of an invented world, with one question that each
answers and one that it does not. A model that can judge at all tells the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, ClassVar, Literal, NamedTuple, cast

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.data import Judgments, Outcomes
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import UNFIT_MODEL, AspectValues, require_abilities, value_unless_cut
from ragworth.judging.judge import AnnotationItem, Annotator
from ragworth.judging.labels import answerability_labels, calibrate, declining_label, name_p
from ragworth.llm.contract import Choose, Chosen, Generate, Generated, Prompt
from ragworth.metrics.utility import abstention_notes
from ragworth.stats.range_intervals import plain_wilson_interval
from ragworth.text_match.refusals import find_refusal


class ControlQuestion(NamedTuple):
    passage: str
    answered: str
    """A question that the passage answers."""
    unanswered: str
    """One that it does not."""


CONTROL_QUESTIONS = (
    ControlQuestion(
        "The Veldrin lighthouse was built in 1871 by the engineer Tomasina Oake. Its lamp burned whale oil until 1902.",
        "Who built the Veldrin lighthouse?",
        "How tall is the Veldrin lighthouse?",
    ),
    ControlQuestion(
        "Marrowfield grows three kinds of pear. The harvest begins in the second week of September and lasts a month.",
        "When does the pear harvest in Marrowfield begin?",
        "Who is the mayor of Marrowfield?",
    ),
    ControlQuestion(
        "The Quill Street tram runs every twelve minutes. A single ticket costs two crowns and is valid for an hour.",
        "How much does a single ticket of the Quill Street tram cost?",
        "In which year was the Quill Street tram opened?",
    ),
    ControlQuestion(
        "Osric Pell painted forty-one portraits in his life. The largest of them, of his sister, hangs in Harrow Hall.",
        "How many portraits did Osric Pell paint?",
        "Where was Osric Pell born?",
    ),
    ControlQuestion(
        "The river Annet rises in the Soke hills and flows south for eighty miles until it meets the sea at Dunmouth.",
        "Where does the river Annet meet the sea?",
        "What is the capital of the Republic of Tessaly?",
    ),
    ControlQuestion(
        "At the Lowen works, glass is melted at 1,450 degrees and blown by hand. The works employ sixty people.",
        "How many people do the Lowen works employ?",
        "Which team won the Harbour Cup in 1988?",
    ),
)


@dataclass(frozen=True)
class AbstentionAnnotator(Annotator):
    """The probability that the model declines to answer from a passage, 0 to 1.

    ``first-token`` is the probability of the abstention label's first token, out of the whole softmax; ``sequence``
    the product over all its tokens; ``sampled`` the share of samples that decline, for models that tell no
    probabilities. A model that was trained to decline may come with a calibration, as the embedded reader does:
    ``p_raw`` is its own p, ``p_calibrated`` the other, and ``calibrated`` says which of them is the value, to which
    ``low`` and ``high`` belong. The source of every value names the estimator and the p.
    """

    prompt: str = prompt_option("abstention")
    estimator: Literal["first-token", "sequence", "sampled"] = option(
        "first-token", "how p is estimated", choices=("first-token", "sequence", "sampled")
    )
    samples: int = option(16, "samples, where p is sampled", low=1)
    temperature: float = option(1.0, "temperature of these samples", low=0.01)
    seed: int = option(0, "seed of these samples", low=0)
    calibrated: bool = option(True, "calibrate p if the model comes with a calibration; otherwise p is its own")
    floor: float = option(0.05, "a model whose every p is below this, or above 1 less this, is unfit", low=0, high=1)
    keep_cut: bool = option(False, "keep values of passages that did not fit whole")

    kind = "abstention"
    title = "probability that the model declines to answer from the passage alone"
    aspects = ("abstention",)
    prompts = ("abstention",)
    details: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(("p_raw", "p_calibrated", "declines", "answers", "low", "high"), pl.Float64),
        "cut": pl.Int64,
    }

    def check(self) -> None:
        how = "generate" if self.estimator == "sampled" else "choose"
        require_abilities(self.card, (how,), f"abstention by {self.estimator}")

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        query, passage = self.texts.query(item.query), self.texts.passage(item.passage)
        return (yield from self._asked(query, passage))

    def controls(self) -> Sequence[Program[AspectValues]]:
        """Passages without the answer, then the same with a question that they answer."""
        questions = [control.unanswered for control in CONTROL_QUESTIONS] + [
            control.answered for control in CONTROL_QUESTIONS
        ]
        return [
            self._asked(question, CONTROL_QUESTIONS[n % len(CONTROL_QUESTIONS)].passage)
            for n, question in enumerate(questions)
        ]

    def _asked(self, query: str, passage: str) -> Program[AspectValues]:
        prompt = self.ask("abstention", query=query, passage=passage)
        return (yield from (self._sampled(prompt) if self.estimator == "sampled" else self._read(prompt)))

    @property
    def _label(self) -> str:
        return declining_label(self.template("abstention"))

    def _read(self, prompt: Prompt) -> Program[AspectValues]:
        estimator = cast(Literal["first-token", "sequence"], self.estimator)
        (outcome,) = yield [Choose(prompt, answerability_labels(self.card, self._label), estimator)]
        chosen = require_response(outcome, Chosen)
        p, *others = chosen.probabilities
        raw = [min(1.0, each) for each in (p, chosen.low[0], chosen.high[0])]
        calibrated = [calibrate(each, self.card) for each in raw]
        value, low, high = calibrated if self.calibrated else raw
        detail: dict[str, Any] = {"p_raw": raw[0], "low": low, "high": high, "cut": chosen.usage.cut}
        if self.card.declining is not None:
            detail["p_calibrated"] = calibrated[0]
        if others:
            detail |= {"declines": sum(others), "answers": max(0.0, 1 - p - sum(others))}
        how = ", ".join((chosen.estimator, *name_p(self.card, calibrated=self.calibrated)))
        return AspectValues({"abstention": value_unless_cut(value, chosen.usage, self.keep_cut)}, detail, how)

    def _sampled(self, prompt: Prompt) -> Program[AspectValues]:
        reply, label = self.template("abstention").reply, self._label.upper()
        request = Generate(prompt, 48, temperature=self.temperature, stop=reply.stop, seed=self.seed, n=self.samples)
        (outcome,) = yield [request]
        made = require_response(outcome, Generated)
        texts = [reply.trim(output).text.strip() for output in made.outputs]
        raw = "\n".join(filter(None, texts))
        said = [text for text in texts if text]
        if not said:
            raise NoValue("empty-answer", "the model wrote nothing in any sample", raw)
        exact = sum(text.upper().startswith(label) for text in said)
        others = sum(find_refusal(text) is not None for text in said if not text.upper().startswith(label))
        share = (exact + others) / len(said)
        low, high = plain_wilson_interval(exact + others, len(said), 0.95)
        parts = {"p_raw": share, "declines": others / len(said), "answers": 1 - share, "low": low, "high": high}
        value = value_unless_cut(share, made.usage, self.keep_cut)
        return AspectValues({"abstention": value}, parts | {"raw": raw, "cut": made.usage.cut}, f"sampled({len(said)})")

    def unfit_reason(self, rows: Sequence[Mapping[str, Any]], controls: Sequence[AspectValues | NoValue]) -> str:
        """Say so of a model that never declines, or always, whatever the controls ask it."""
        half = len(controls) // 2
        if not _control_values(controls[:half]) or not _control_values(controls[half:]):
            return ""
        every = [*_control_values(controls), *(row["value"] for row in rows if row["value"] is not None)]
        least, most = min(every), max(every)
        if most < self.floor:
            return f"the model practically never declines: every p is below {self.floor:g} (the greatest {most:.2g})"
        if least > 1 - self.floor:
            return f"the model practically always declines: every p is above {1 - self.floor:g} (the least {least:.2g})"
        return ""

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        half = len(controls) // 2
        without, with_answer = _control_values(controls[:half]), _control_values(controls[half:])
        if not without or not with_answer:
            said = "whether the model declines where it should could not be checked: the control questions failed"
        else:
            said = (
                f"control questions: the model declines with p = {mean(without):.3f} in the mean where the passage "
                f"lacks the answer (from {min(without):.3f} to {max(without):.3f}), with {mean(with_answer):.3f} where "
                "it has it"
            )
        withdrawn = frame.filter(pl.col("status") == UNFIT_MODEL)["reason"]
        unfit = (
            [f"{withdrawn[0]}, also on the control questions; it is unfit for this judgment"] if len(withdrawn) else []
        )
        table = Judgments if self.judged_unit == "passage" else Outcomes
        return [*abstention_notes(table.trusted(frame)), said, *unfit]


def _control_values(controls: Sequence[AspectValues | NoValue]) -> list[float]:
    """The probabilities that came of control questions."""
    found = [one.values["abstention"] for one in controls if isinstance(one, AspectValues)]
    return [value for value in found if isinstance(value, float)]
