"""``downstream`` and ``likelihood``: one passage by the accepted answers.

How well does what the model answers from the passage match them (eRAG), and how likely does the model find them?

Paper of eRAG: Salemi and Zamani, Evaluating Retrieval Quality in Retrieval-Augmented Generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues, answer_logprobs, require_abilities, value_unless_cut
from ragworth.judging.graders.judge import GRADE_LABELS
from ragworth.judging.judge import AnnotationItem, Annotator
from ragworth.judging.labels import LabelScale, ask_label, choose_label_method
from ragworth.llm.contract import Score, Scored
from ragworth.text_match.overlap import COMPARISONS
from ragworth.text_match.refusals import find_refusal

JUDGE = "judge"


@dataclass(frozen=True)
class DownstreamAnnotator(Annotator):
    """How well the answer from the passage alone matches the accepted answers, 0 to 1.

    The comparison is named in the source of every value, the answer itself is kept as ``raw``. An answer that declines
    matches nothing and has the value 0, as it should; an empty one has no value. With ``judge`` the value is 1 where
    the same model, as judge, calls the answer correct, and 0 elsewhere.
    """

    prompt: str = prompt_option("answer")
    compare: str = option(
        "rouge-l", "how the answer is compared with accepted ones; judge asks the model", choices=(*COMPARISONS, JUDGE)
    )
    length: int = option(64, "maximum tokens of an answer", low=1)
    keep_cut: bool = option(False, "keep values of passages that did not fit whole")

    kind = "downstream"
    title = "how well the answer from the passage alone matches the accepted answers (eRAG)"
    aspects = ("downstream",)
    compares = ("answers",)
    prompts = ("answer", "grade")
    scales: ClassVar[Mapping[str, LabelScale]] = {"grade": GRADE_LABELS}
    rounds = 2
    details: ClassVar[Mapping[str, Any]] = {
        "finish": pl.String,
        "tokens": pl.Int64,
        "declined": pl.Boolean,
        "mass": pl.Float64,
        "cut": pl.Int64,
    }

    def check(self) -> None:
        require_abilities(self.card, ("generate",), "downstream")

    @property
    def max_rounds(self) -> int:
        return 2 if self.compare == JUDGE else 1

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return self.prompts[: self.max_rounds]

    @property
    def source(self) -> str:
        return f"{super().source} · {self.compare}"

    def notes(self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]) -> list[str]:
        """Say how many answers declined, and how many were ended by their length."""
        cases = (
            (pl.col("declined"), "decline, and match nothing"),
            (pl.col("finish") == "length", "were ended by their greatest length"),
        )
        numbers = [(frame.filter(rows).height, words) for rows, words in cases]
        return [f"{number:,} of {frame.height:,} answers {words}" for number, words in numbers if number]

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        answers = self.texts.answers(item.query)
        query = self.texts.query(item.query)
        prompt = self.ask("answer", query=query, passages=self.fill(item, "passages"))
        output, made = yield from self.write("answer", prompt, self.length)
        if not output.text.strip():
            raise NoValue("empty-answer", "the model wrote nothing", output.text)
        detail = {
            "raw": output.text,
            "finish": output.finish,
            "tokens": made.tokens_written,
            "cut": made.usage.cut,
            "declined": find_refusal(output.text) is not None,
        }
        if self.compare != JUDGE:
            value = COMPARISONS[self.compare](output.text, answers)
            return AspectValues({"downstream": value_unless_cut(value, made.usage, self.keep_cut)}, detail)
        asked = self.ask("grade", query=query, answers=answers, answer=output.text)
        found = yield from ask_label(
            asked, self.scale("grade"), self.card, choose_label_method(self.card, "auto", "downstream")
        )
        right = value_unless_cut(float(found.value > 0), made.usage, self.keep_cut)
        return AspectValues({"downstream": right}, detail | {"mass": found.mass}, found.estimator)


@dataclass(frozen=True)
class LikelihoodAnnotator(Annotator):
    """Mean log-probability of the tokens of the accepted answer, of the best one where several are accepted.

    At most 0. ``answer`` is the answer that was best and ``logprob`` the sum over its tokens.
    """

    keep_cut: bool = option(False, "keep values of passages that did not fit whole")

    kind = "likelihood"
    title = "log-probability of the accepted answer, given the passage alone"
    aspects = ("likelihood",)
    compares = ("answers",)
    prompts = ("reply",)
    details: ClassVar[Mapping[str, Any]] = {
        "answer": pl.String,
        "logprob": pl.Float64,
        "tokens": pl.Int64,
        "cut": pl.Int64,
    }

    def check(self) -> None:
        require_abilities(self.card, ("score",), "likelihood")

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        answers = self.texts.answers(item.query)
        passages = self.fill(item, "passages")
        prompt = self.ask("reply", query=self.texts.query(item.query), passages=passages)
        outcomes = yield [Score(prompt, answer.strip()) for answer in answers]
        scored = [
            (answer, require_response(outcome, Scored)) for answer, outcome in zip(answers, outcomes, strict=True)
        ]
        means = [sum(logs) / len(logs) for logs in (answer_logprobs(one) for _, one in scored)]
        best = max(means)
        answer, one = scored[means.index(best)]
        logs = one.trace.logprobs
        detail = {"answer": answer, "logprob": sum(logs), "tokens": len(logs), "cut": one.usage.cut}
        # Cut for any of the answers, the best of them is not known.
        worst = max((one.usage for _, one in scored), key=lambda usage: usage.cut)
        return AspectValues({"likelihood": value_unless_cut(best, worst, self.keep_cut)}, detail)
