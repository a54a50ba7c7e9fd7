"""``abstention``: how likely the model is to decline to answer when it is shown one passage alone.

Paper: Trappolini, Cuconasu et al., Redefining Retrieval Evaluation in the Era of LLMs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, ClassVar, Literal, cast

import polars as pl

from ragworth.annotators.contract import Annotator, Item
from ragworth.annotators.control_questions import CONTROLS
from ragworth.calls.programs import NoValue, Steps, wanted
from ragworth.llm.contract import Choose, Chosen, Generate, Generated, Prompt
from ragworth.llm.sampled import wilson
from ragworth.tables import OK
from ragworth.tasks.answerability import LABEL, calibrated, labels_for
from ragworth.tasks.findings import Finding, held, need
from ragworth.tasks.options import setting
from ragworth.text_match.refusals import abstains

UNFIT = "unfit-model"
"""Status of all values of a model that practically never declines, or always, whatever it is shown."""


@dataclass(frozen=True)
class Abstention(Annotator):
    """The probability that the model declines to answer from a passage, 0 to 1.

    ``first-token`` is the probability of the abstention label's first token, out of the whole softmax; ``sequence``
    the product over all its tokens; ``sampled`` the share of samples that decline, for models that tell no
    probabilities. Which one was used is in the source of every value.
    """

    estimator: Literal["first-token", "sequence", "sampled"] = setting(
        "first-token", "how p is estimated", choices=("first-token", "sequence", "sampled")
    )
    samples: int = setting(16, "samples, where p is sampled", low=1)
    temperature: float = setting(1.0, "temperature of these samples", low=0.01)
    seed: int = setting(0, "seed of these samples", low=0)
    floor: float = setting(0.05, "a model whose every p is below this, or above 1 less this, is unfit", low=0, high=1)
    keep_cut: bool = setting(False, "keep values of passages that did not fit whole")

    kind: ClassVar[str] = "abstention"
    title: ClassVar[str] = "probability that the model declines to answer from the passage alone"
    aspects: ClassVar[tuple[str, ...]] = ("abstention",)
    prompts: ClassVar[tuple[str, ...]] = ("abstention",)
    worth: ClassVar[float] = -1.0
    swapped: ClassVar[bool] = True
    details: ClassVar[Mapping[str, Any]] = {
        "p": pl.Float64,
        "declines": pl.Float64,
        "answers": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "cut": pl.Int64,
    }

    def check(self) -> None:
        how = "generate" if self.estimator == "sampled" else "choose"
        need(self.card, (how,), f"abstention by {self.estimator}")

    def judge(self, item: Item) -> Steps[Finding]:
        query, passage = self.texts.query(item.query), self.texts.passage(item.passage)
        return (yield from self._asked(query, passage))

    def controls(self) -> Sequence[Steps[Finding]]:
        """Passages without the answer, then the same with a question that they answer."""
        questions = [control.unanswered for control in CONTROLS] + [control.answered for control in CONTROLS]
        return [self._asked(question, CONTROLS[n % len(CONTROLS)].passage) for n, question in enumerate(questions)]

    def _asked(self, query: str, passage: str) -> Steps[Finding]:
        prompt = self.ask("abstention", query=query, passage=passage)
        return (yield from (self._sampled(prompt) if self.estimator == "sampled" else self._read(prompt)))

    def _read(self, prompt: Prompt) -> Steps[Finding]:
        estimator = cast(Literal["first-token", "sequence"], self.estimator)
        (outcome,) = yield [Choose(prompt, labels_for(self.card), estimator)]
        chosen = wanted(outcome, Chosen)
        p, *others = chosen.probabilities
        detail: dict[str, Any] = {"p": p, "low": chosen.low[0], "high": chosen.high[0], "cut": chosen.usage.cut}
        if others:
            detail |= {"declines": sum(others), "answers": max(0.0, 1 - p - sum(others))}
        value = calibrated(min(1.0, p), self.card)
        how = chosen.estimator if self.card.declining is None else f"{chosen.estimator}, calibrated"
        return Finding({"abstention": held(value, chosen.usage, self.keep_cut)}, detail, how)

    def _sampled(self, prompt: Prompt) -> Steps[Finding]:
        request = Generate(prompt, 48, temperature=self.temperature, seed=self.seed, n=self.samples)
        (outcome,) = yield [request]
        made = wanted(outcome, Generated)
        texts = [output.text.strip() for output in made.outputs]
        raw = "\n".join(filter(None, texts))
        said = [text for text in texts if text]
        if not said:
            raise NoValue("empty-answer", "the model wrote nothing in any sample", raw)
        exact = sum(text.upper().startswith(LABEL) for text in said)
        others = sum(abstains(text) is not None for text in said if not text.upper().startswith(LABEL))
        share = (exact + others) / len(said)
        low, high = wilson(exact + others, len(said))
        parts = {"p": share, "declines": others / len(said), "answers": 1 - share, "low": low, "high": high}
        value = held(share, made.usage, self.keep_cut)
        return Finding({"abstention": value}, parts | {"raw": raw, "cut": made.usage.cut}, f"sampled({len(said)})")

    def conclude(self, frame: pl.DataFrame, controls: Sequence[Finding | NoValue]) -> tuple[pl.DataFrame, list[str]]:
        """Withdraw all values of a model that never declines, or always, whatever the controls ask it."""
        half = len(controls) // 2
        without, with_answer = (_values(part) for part in (controls[:half], controls[half:]))
        if not without or not with_answer:
            note = "whether the model declines where it should could not be checked: the control questions failed"
            return frame, [note]
        notes = [
            f"control questions: the model declines with p = {mean(without):.3f} in the mean where the passage lacks "
            f"the answer (from {min(without):.3f} to {max(without):.3f}), with {mean(with_answer):.3f} where it has it"
        ]
        every = [*frame["value"].drop_nulls().to_list(), *without, *with_answer]
        least, most = min(every), max(every)
        if most < self.floor:
            reason = f"the model practically never declines: every p is below {self.floor:g} (the greatest {most:.2g})"
        elif least > 1 - self.floor:
            reason = (
                f"the model practically always declines: every p is above {1 - self.floor:g} (the least {least:.2g})"
            )
        else:
            return frame, notes
        withdrawn = pl.col("status") == OK
        frame = frame.with_columns(
            pl.when(withdrawn).then(None).otherwise(pl.col("value")).alias("value"),
            pl.when(withdrawn).then(pl.lit(reason)).otherwise(pl.col("reason")).alias("reason"),
            pl.when(withdrawn).then(pl.lit(UNFIT)).otherwise(pl.col("status")).alias("status"),
        )
        return frame, [*notes, f"{reason}, also on the control questions; it is unfit for this judgment"]


def _values(controls: Sequence[Finding | NoValue]) -> list[float]:
    """The probabilities that came of control questions."""
    found = [one.values["abstention"] for one in controls if isinstance(one, Finding)]
    return [value for value in found if isinstance(value, float)]
