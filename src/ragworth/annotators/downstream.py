"""``downstream`` (eRAG): how well the answer that the model gives from one passage matches the accepted ones.

Paper: Salemi and Zamani, Evaluating Retrieval Quality in Retrieval-Augmented Generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.annotators.contract import Annotator, Item
from ragworth.calls.programs import NoValue, Steps, wanted
from ragworth.graders.judge import GRADES
from ragworth.llm.contract import Generate, Generated
from ragworth.tasks.findings import Finding, held, need
from ragworth.tasks.labels import REFUSED, label, way_for
from ragworth.tasks.options import setting
from ragworth.text_match.overlap import COMPARISONS
from ragworth.text_match.refusals import abstains

JUDGE = "judge"


@dataclass(frozen=True)
class Downstream(Annotator):
    """How well the answer from the passage alone matches the accepted answers, 0 to 1.

    The comparison is named in the source of every value, the answer itself is kept as ``raw``. An answer that declines
    matches nothing and has the value 0, as it should; an empty one has no value. With ``judge`` the value is 1 where
    the same model, as judge, calls the answer correct, and 0 elsewhere.
    """

    compare: str = setting(
        "rouge-l", "how the answer is compared with accepted ones; judge asks the model", choices=(*COMPARISONS, JUDGE)
    )
    length: int = setting(64, "most tokens of an answer", low=1)
    keep_cut: bool = setting(False, "keep values of passages that did not fit whole")

    kind: ClassVar[str] = "downstream"
    title: ClassVar[str] = "how well the answer from the passage alone matches the accepted answers (eRAG)"
    aspects: ClassVar[tuple[str, ...]] = ("downstream",)
    compares: ClassVar[tuple[str, ...]] = ("answers",)
    prompts: ClassVar[tuple[str, ...]] = ("answer", "grade")
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
        need(self.card, ("generate",), "downstream")

    @property
    def turns(self) -> int:
        return 2 if self.compare == JUDGE else 1

    @property
    def asked(self) -> tuple[str, ...]:
        return self.prompts[: self.turns]

    @property
    def source(self) -> str:
        return f"{super().source} · {self.compare}"

    def conclude(self, frame: pl.DataFrame, controls: Sequence[Finding | NoValue]) -> tuple[pl.DataFrame, list[str]]:
        """Say how many answers declined, and how many were ended by their length."""
        notes = []
        for what, words in (
            (pl.col("declined"), "decline, and match nothing"),
            (pl.col("finish") == "length", "were ended by their greatest length"),
        ):
            if number := frame.filter(what).height:
                notes.append(f"{number:,} of {frame.height:,} answers {words}")
        return frame, notes

    def judge(self, item: Item) -> Steps[Finding]:
        answers = self.texts.answers(item.query)
        query, shown = self.texts.query(item.query), [{"text": self.texts.passage(item.passage)}]
        prompt = self.ask("answer", query=query, passages=shown)
        (outcome,) = yield [Generate(prompt, max_tokens=self.length)]
        made = wanted(outcome, Generated)
        output = made.outputs[0]
        if output.finish == "content_filter":
            raise NoValue(REFUSED, "the endpoint withheld the answer", output.text)
        if not output.text.strip():
            raise NoValue("empty-answer", "the model wrote nothing", output.text)
        detail = {
            "raw": output.text,
            "finish": output.finish,
            "tokens": made.usage.new_tokens,
            "cut": made.usage.cut,
            "declined": abstains(output.text) is not None,
        }
        if self.compare != JUDGE:
            value = COMPARISONS[self.compare](output.text, answers)
            return Finding({"downstream": held(value, made.usage, self.keep_cut)}, detail)
        asked = self.ask("grade", query=query, answers=answers, answer=output.text)
        found = yield from label(asked, GRADES, self.card, way_for(self.card, "auto", "downstream"))
        right = held(float(found.value > 0), made.usage, self.keep_cut)
        return Finding({"downstream": right}, detail | {"mass": found.mass}, found.estimator)
