"""``downstream`` (eRAG): how well the answer that the model gives from one passage matches the accepted ones.

Paper: Salemi and Zamani, Evaluating Retrieval Quality in Retrieval-Augmented Generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.judging.annotators.contract import AnnotationItem, Annotator
from ragworth.judging.contract import option, prompt_option
from ragworth.judging.findings import AspectValues, require_abilities, value_unless_cut
from ragworth.judging.graders.judge import GRADE_LABELS
from ragworth.judging.labels import LabelScale, ask_label, choose_label_method
from ragworth.llm.contract import Generate, Generated
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

    kind: ClassVar[str] = "downstream"
    title: ClassVar[str] = "how well the answer from the passage alone matches the accepted answers (eRAG)"
    aspects: ClassVar[tuple[str, ...]] = ("downstream",)
    compares: ClassVar[tuple[str, ...]] = ("answers",)
    prompts: ClassVar[tuple[str, ...]] = ("answer", "grade")
    scales: ClassVar[Mapping[str, LabelScale]] = {"grade": GRADE_LABELS}
    slots: ClassVar[tuple[str, ...]] = ("query", "passages", "answer")
    rounds: ClassVar[int] = 2
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

    def conclude(
        self, frame: pl.DataFrame, controls: Sequence[AspectValues | NoValue]
    ) -> tuple[pl.DataFrame, list[str]]:
        """Say how many answers declined, and how many were ended by their length."""
        notes = []
        for what, words in (
            (pl.col("declined"), "decline, and match nothing"),
            (pl.col("finish") == "length", "were ended by their greatest length"),
        ):
            if number := frame.filter(what).height:
                notes.append(f"{number:,} of {frame.height:,} answers {words}")
        return frame, notes

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        answers = self.texts.answers(item.query)
        query, shown = self.texts.query(item.query), [{"text": self.texts.passage(item.passage)}]
        prompt = self.ask("answer", query=query, passages=shown)
        reply = self.template("answer").reply
        (outcome,) = yield [Generate(prompt, max_tokens=self.length, stop=reply.stop)]
        made = require_response(outcome, Generated)
        output = reply.trim(made.outputs[0])
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
