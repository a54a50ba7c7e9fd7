"""``downstream`` (eRAG): how well the answer that the model gives from one passage matches the accepted ones.

Paper: Salemi and Zamani, Evaluating Retrieval Quality in Retrieval-Augmented Generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.annotate.contract import Annotator, Item
from ragworth.answers.compare import COMPARISONS
from ragworth.answers.graders.judge import GRADES
from ragworth.calls.steps import NoValue, Steps, wanted
from ragworth.judging.findings import Finding, need, whole
from ragworth.judging.labels import REFUSED, label, way_for
from ragworth.judging.settings import setting
from ragworth.llm.contract import Generate, Generated

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
    prompts: ClassVar[tuple[str, ...]] = ("answer", "grade")
    rounds: ClassVar[int] = 2
    details: ClassVar[Mapping[str, Any]] = {
        "finish": pl.String,
        "tokens": pl.Int64,
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
        """Say how many answers were ended by their length."""
        number = frame.filter(pl.col("finish") == "length").height
        return frame, [f"{number:,} of {frame.height:,} answers were ended by their greatest length"] if number else []

    def judge(self, item: Item) -> Steps[Finding]:
        answers = self.texts.answers(item.query)
        values = {"query": self.texts.query(item.query), "passages": [{"text": self.texts.passage(item.passage)}]}
        prompt = self.prompt("answer").render(values)
        (outcome,) = yield [Generate(prompt, max_tokens=self.length)]
        made = wanted(outcome, Generated)
        output = made.outputs[0]
        whole(made.usage, self.keep_cut, output.text)
        if output.finish == "content_filter":
            raise NoValue(REFUSED, "the endpoint withheld the answer", output.text)
        if not output.text.strip():
            raise NoValue("empty-answer", "the model wrote nothing", output.text)
        detail = {
            "raw": output.text,
            "finish": output.finish,
            "tokens": made.usage.new_tokens,
            "cut": made.usage.cut,
        }
        if self.compare != JUDGE:
            return Finding({"downstream": COMPARISONS[self.compare](output.text, answers)}, detail)
        asked = {"query": values["query"], "answers": answers, "answer": output.text}
        way = way_for(self.card, "auto", "downstream")
        found = yield from label(self.prompt("grade").render(asked), GRADES, self.card, way)
        return Finding({"downstream": float(found.value > 0)}, detail | {"mass": found.mass}, found.estimator)
