"""``likelihood``: how likely the model finds the accepted answer when it is shown one passage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ragworth.calls.programs import NoValue, Program, require_response
from ragworth.judging.annotators.contract import AnnotationItem, Annotator
from ragworth.judging.contract import option
from ragworth.judging.findings import AspectValues, require_abilities, value_unless_cut
from ragworth.llm.contract import Score, Scored


@dataclass(frozen=True)
class LikelihoodAnnotator(Annotator):
    """Mean log-probability of the tokens of the accepted answer, of the best one where several are accepted.

    At most 0. ``answer`` is the answer that was best and ``logprob`` the sum over its tokens.
    """

    keep_cut: bool = option(False, "keep values of passages that did not fit whole")

    kind: ClassVar[str] = "likelihood"
    title: ClassVar[str] = "log-probability of the accepted answer, given the passage alone"
    aspects: ClassVar[tuple[str, ...]] = ("likelihood",)
    compares: ClassVar[tuple[str, ...]] = ("answers",)
    prompts: ClassVar[tuple[str, ...]] = ("reply",)
    slots: ClassVar[tuple[str, ...]] = ("query", "passages")
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
        shown = [{"text": self.texts.passage(item.passage)}]
        prompt = self.ask("reply", query=self.texts.query(item.query), passages=shown)
        outcomes = yield [Score(prompt, answer.strip()) for answer in answers]
        scored = [
            (answer, require_response(outcome, Scored)) for answer, outcome in zip(answers, outcomes, strict=True)
        ]
        for _, one in scored:
            if not one.trace.logprobs:
                raise NoValue("empty-continuation", "an accepted answer has no tokens")
        means = [(sum(one.trace.logprobs) / len(one.trace.logprobs), n) for n, (_, one) in enumerate(scored)]
        best, number = max(means, key=lambda mean: (mean[0], -mean[1]))
        answer, one = scored[number]
        if best > 0:
            raise NoValue("malformed", "a log-probability is above 0")
        logs = one.trace.logprobs
        detail = {"answer": answer, "logprob": sum(logs), "tokens": len(logs), "cut": one.usage.cut}
        # Cut for any of the answers, the best of them is not known.
        worst = max((one.usage for _, one in scored), key=lambda usage: usage.cut)
        return AspectValues({"likelihood": value_unless_cut(best, worst, self.keep_cut)}, detail)
