"""Judging on a budget: a better judge of a sample of the queries, and what follows from it for all of them."""

from __future__ import annotations

from functools import partial

import polars as pl

from ragworth import two_judges
from ragworth.core.errors import InputError, RagworthError, format_count, format_list, quote_short
from ragworth.data import Judgments
from ragworth.data.conversations import conversation_ids, independence_notes
from ragworth.evaluation.inputs import EvaluationInputs
from ragworth.evaluation.model_pool import ModelPool, StageProgress
from ragworth.evaluation.stage_cache import StageResult, frame_digest
from ragworth.evaluation.stages.annotate import stage_annotator
from ragworth.evaluation.state import (
    EvaluationState,
    contexts_key,
    expensive_task,
    run_task_stage,
    skip_stage,
    stage_key,
    task_settings,
)
from ragworth.judging import ANNOTATORS, runner
from ragworth.judging.contract import options_by_name
from ragworth.judging.judge import AnnotationItem, Annotator
from ragworth.judging.text_lookup import sample_by_hash
from ragworth.results import ESTIMATE_TABLES
from ragworth.scoring import metric_file_digests, passage_tokens
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
            runner.build_judge(ANNOTATORS, kind, job.card, self.texts, folder, task_settings(own, self.space))

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


ESTIMATE_STAGE = "score.estimates"


def expensive_stage(kind: str) -> str:
    """The stage in which the better judge is asked."""
    return f"annotate.{kind}.expensive"


def _sampled_items(state: EvaluationState, annotator: Annotator, sample: int | None) -> list[AnnotationItem]:
    """What the better judge is asked: for a sample of the queries, all that is shown and has no label."""
    assert sample is not None
    labels = state.collection.relevance if "relevance" in annotator.value_names else None
    known = set() if labels is None else set(labels.of("relevance").select("query", "passage").iter_rows())
    items = runner.annotation_items(annotator, state.shown, state.collection)
    items = [each for each in items if (each.query, each.passage) not in known]
    some = sample_by_hash((each.query for each in items), sample, state.space.seed)
    return [each for each in items if each.query in some]


def run_expensive_judge(state: EvaluationState, kind: str, task: TaskConfig) -> None:
    """What the better judge says of the sample, where the workspace has one."""
    name = expensive_stage(kind)
    if task.expensive is None:
        return
    if task.expensive.file is not None:
        table = state.material.expensive[kind]
        mine = table.frame.filter(pl.col("aspect").is_in(list(ANNOTATORS.get(kind).aspects)))
        if state.plan is None:
            state.record_stage(name, "given", notes=[*table.notes, _sample_summary(mine, state)])
        _store_judgments(state, kind, mine)
        return
    own = expensive_task(task)
    with state.models.job(own.model, plan=state.plan is not None) as job:
        annotator = stage_annotator(state, kind, own, job)
        items = _sampled_items(state, annotator, task.expensive.sample)
        if not items:
            state.prompts |= annotator.templates
            skip_stage(state, name, "nothing was left to judge: labels say it all")
            return
        key = stage_key(state, job, own, annotator.key_sources) | {"items": items}
        drawn = lambda frame: f"{_sample_summary(frame, state)}, drawn with seed {state.space.seed}"  # noqa: E731
        made = run_task_stage(state, name, annotator, items, job, key, drawn)
    if made is not None:
        _store_judgments(state, kind, made.frames["said"])


def _sample_summary(frame: pl.DataFrame, state: EvaluationState) -> str:
    shown = state.shown.frame["query"].n_unique()
    judged = format_count(frame.select("query", "passage").n_unique(), "passage")
    return f"{judged} of {frame['query'].n_unique():,} of {format_count(shown, 'query', 'queries')}"


def _store_judgments(state: EvaluationState, kind: str, frame: pl.DataFrame) -> None:
    state.said[f"{kind}-expensive"] = frame
    state.expensive[kind] = Judgments.trusted(frame)


def run_estimates(state: EvaluationState) -> None:
    """What metrics would be if the better judge had judged everything."""
    if not state.expensive:
        return
    expensive = Judgments.concat(list(state.expensive.values()))
    twice = pl.col("aspect").is_in(expensive.frame["aspect"].unique().to_list())
    labels = state.collection.relevance
    # Labels are shared by both judges, whatever else says the same of other passages.
    tables = [table.frame for table in state.judgments if table is not labels]
    whole = pl.concat([Judgments.concat([]).frame, *tables])
    cheap = Judgments.trusted(whole.filter(twice))
    shared = [*([labels] if labels is not None else []), Judgments.trusted(whole.filter(~twice))]
    others = Judgments.concat(shared)
    assert state.scores is not None
    names = state.scores.frame["metric"].unique(maintain_order=True).to_list()
    metrics = two_judges.metrics_reading(
        names, set(cheap.frame["aspect"]) & set(expensive.frame["aspect"]), state.space.folder
    )
    if not metrics:
        state.record_stage(ESTIMATE_STAGE, "skipped", notes=["no metric reads what was judged twice"])
        return
    key = {
        "contexts": contexts_key(state.contexts),
        "judgments": [frame_digest(table) for table in (cheap, expensive, others)],
        "ratings": frame_digest(state.ratings),
        "passages": state.material.texts_key[1],
        "metrics": metrics,
        "files": metric_file_digests(metrics, state.space.folder),
        "baseline": state.space.baseline,
        "seed": state.space.seed,
    }

    def make(watching: StageProgress | None) -> StageResult:
        texts = state.collection
        found = two_judges.estimate(
            state.contexts,
            cheap,
            expensive,
            metrics,
            others=others,
            ratings=state.ratings,
            tokens=passage_tokens(texts),
            baseline=state.space.baseline,
            seed=state.space.seed,
            folder=state.space.folder,
        )
        told = {*state.contexts.notes, *(state.scores.notes if state.scores is not None else ())}
        notes = [note for note in found.notes if note not in told]
        notes += independence_notes(conversation_ids(texts))
        return StageResult(dict(zip(ESTIMATE_TABLES, found[:2], strict=True)), {"notes": notes})

    state.estimates = dict(state.stage(ESTIMATE_STAGE, key, make).frames)
