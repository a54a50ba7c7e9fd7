"""What can be found wrong with judging on a budget before anything is asked."""

from __future__ import annotations

from functools import partial

import polars as pl

from ragworth.annotators import ANNOTATORS, annotation
from ragworth.core.errors import InputError, RagworthError, format_count, format_list, quote_short
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool
from ragworth.evaluation.state import expensive_task, task_settings
from ragworth.tasks.options import options_by_name
from ragworth.two_judges import metrics_reading
from ragworth.workspace.config import ExpensiveJudge, TaskConfig
from ragworth.workspace.problems import Problems


class TwoJudgesChecker:
    """Check that an expensive judge of a sample is available and useful."""

    def __init__(self, material: EvaluationInputs, models: ModelPool, problems: Problems) -> None:
        self.material, self.models, self.problems = material, models, problems
        self.space, self.texts = material.workspace, material.collection

    def check(self, limit: int | None) -> None:
        """``limit``: of the queries, for this time only: a sample larger than that is no mistake."""
        for kind, task in self.space.judgments.items():
            if task.expensive is None or kind not in ANNOTATORS:
                continue  # unknown kinds are reported with the others
            path = ("judgments", kind, "expensive")
            self.problems.of(partial(self._kind, kind), *path)
            if self.material.to_judge is not None:
                self.problems.say(
                    f"judged_queries leaves queries out, and judgments.{kind}.expensive needs judgments of all",
                    "take one of them out",
                    *path,
                )
            if task.expensive.file is not None:
                self.problems.of(partial(self._file, kind, task.expensive), *path, "file")
                continue
            self.problems.of(partial(self._model, kind, task), *path, "model")
            if limit is None:
                self.problems.of(partial(self._sample, kind, task.expensive), *path, "sample")

    def _kind(self, kind: str) -> None:
        """Refuse what is no judgment of passages, or read by no metric."""
        chosen = ANNOTATORS.get(kind)
        if chosen.unit != "passage":
            raise InputError(
                f"judgments.{kind} has an expensive judge, and is no judgment of passages",
                expected=format_list(
                    [name for name in ANNOTATORS.names() if ANNOTATORS.get(name).unit == "passage"], 9
                ),
            )
        try:
            unread = self.space.metrics and not metrics_reading(self.space.metrics, chosen.aspects, self.space.folder)
        except RagworthError:
            return  # metrics are checked with what else they need
        if unread:
            raise InputError(
                f"no metric reads {format_list(list(chosen.aspects))}, which judgments.{kind}.expensive is for",
                remedy="name one that does under [metrics], or take the expensive judge out",
            )

    def _model(self, kind: str, task: TaskConfig) -> None:
        own, chosen = expensive_task(task), ANNOTATORS.get(kind)
        assert own.model is not None
        options_by_name(chosen, dict(own.settings), kind)
        if own.model == (task.model or self.space.model) and own.settings == task.settings:
            raise InputError(
                f"the expensive judge of {kind} is the cheap one: {quote_short(own.model.use)} asked in the same way",
                remedy="name another model, or other settings",
            )
        if not self.texts.queries.height or not self.texts.passages.height:
            return  # told of the kind itself
        folder = self.space.path(self.space.prompts) if self.space.prompts else None
        with self.models.job(own.model, plan=True) as job:
            annotation.build_annotator(kind, job.card, self.texts, folder, task_settings(own, self.space))

    def _sample(self, kind: str, expensive: ExpensiveJudge) -> None:
        queries = len(self.material.queries)
        if expensive.sample is not None and expensive.sample > queries:
            raise InputError(
                f"a sample of {expensive.sample:,} is larger than the {format_count(queries, 'query', 'queries')}",
                remedy=f"ask about {queries:,} or fewer, or name the model as that of judgments.{kind}",
            )

    def _file(self, kind: str, expensive: ExpensiveJudge) -> None:
        """Refuse a file that says nothing of the kind, nothing of these queries, or what labels say."""
        aspects, frame = ANNOTATORS.get(kind).aspects, self.material.expensive[kind].frame
        mine = frame.filter(pl.col("aspect").is_in(list(aspects)))
        file = str(self.space.path(expensive.file or ""))
        if not mine.height:
            has = format_list(frame["aspect"].unique(maintain_order=True).to_list()) if frame.height else "nothing"
            raise InputError(
                f"of the queries that are evaluated it says {has}",
                file=file,
                expected=f"judgments of {format_list(list(aspects))}",
            )
        labels = self.texts.relevance
        again = mine.join(labels.frame, on=["query", "passage", "aspect"], how="semi") if labels is not None else None
        if again is not None and again.height:
            row = again.row(0, named=True)
            raise InputError(
                f"{format_count(again.height, 'judgment')} of what has a label, such as "
                f"{quote_short(row['passage'], 24)} for "
                f"the query {quote_short(row['query'], 24)}: labels are what both judges share",
                file=file,
                remedy="name what the cheap judge says under [judgments] files, not as qrels of [collection]",
            )
