"""Judging on a budget: a better judge of a sample of the queries, and what follows from it for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial

import polars as pl

from ragworth import two_judges
from ragworth.annotators import KINDS, annotation
from ragworth.annotators.contract import Annotator, Item
from ragworth.calls.job import Job
from ragworth.collection import COUNTER
from ragworth.errors import counted
from ragworth.evaluation.model_pool import Watching
from ragworth.evaluation.stage_cache import Made, frame_digest
from ragworth.evaluation.stages import contexts_key, judged_by, key_of
from ragworth.evaluation.state import State, better, settings_of
from ragworth.metrics.engine import Tokens
from ragworth.results import ESTIMATES
from ragworth.scoring import digests
from ragworth.tables import Judgments

STAGE = "score.estimates"


def stage_of(kind: str) -> str:
    """The stage in which the better judge is asked."""
    return f"annotate.{kind}.expensive"


def drawn(queries: Iterable[str], sample: int, seed: int) -> set[str]:
    """So many of the queries, by a hash of each: a larger sample holds a smaller one, so that nothing is paid twice."""

    def place(query: str) -> bytes:
        return hashlib.sha256(f"{seed}\n{query}".encode()).digest()

    return set(sorted(set(queries), key=place)[:sample])


def asked(state: State, kind: str, job: Job) -> tuple[Annotator, list[Item]]:
    """The better judge, and what it is asked: for a sample of the queries, all that is shown and has no label."""
    task = state.space.judgments[kind]
    assert task.expensive is not None and task.expensive.sample is not None
    settings = settings_of(better(task), state.space)
    annotator = annotation.made(kind, job.card, state.collection, state.folder, settings)
    labels = state.collection.relevance if "relevance" in annotator.valued else None
    known = set() if labels is None else set(labels.frame.select("query", "passage").iter_rows())
    things = annotation.items(annotator, state.shown, state.collection)
    things = [each for each in things if (each.query, each.passage) not in known]
    some = drawn((each.query for each in things), task.expensive.sample, state.space.seed)
    return annotator, [each for each in things if each.query in some]


def judge(state: State, kind: str) -> None:
    """What the better judge says of the sample, where the workspace has one."""
    task, name = state.space.judgments[kind], stage_of(kind)
    if task.expensive is None:
        return
    if task.expensive.file is not None:
        table = state.material.expensive[kind]
        mine = table.frame.filter(pl.col("aspect").is_in(list(KINDS.get(kind).aspects)))
        state.did(name, "given", notes=[*table.notes, _words(mine, state)])
        _remember(state, kind, mine)
        return
    own = better(task)
    with state.models.job(own.model) as job:
        annotator, things = asked(state, kind, job)
        state.prompts |= {each: annotator.prompt(each) for each in annotator.asked}
        if not things:
            state.did(name, "skipped", notes=["nothing was left to judge: labels say it all"])
            return
        key = key_of(state, job, own, [annotator.source]) | {"items": things}
        made = state.stage(name, key, partial(_judged, state, annotator, things, job, name))
    _remember(state, kind, made.frames["said"])


def _judged(
    state: State, annotator: Annotator, things: Sequence[Item], job: Job, name: str, watching: Watching | None
) -> Made:
    made = judged_by(annotator, things, job, name, watching)
    drawn_by = f"{_words(made.frames['said'], state)}, drawn with seed {state.space.seed}"
    return Made(made.frames, {**made.facts, "notes": [*made.facts["notes"], drawn_by]}, lasting=made.lasting)


def _words(frame: pl.DataFrame, state: State) -> str:
    shown = state.shown.frame["query"].n_unique()
    judged = counted(frame.select("query", "passage").n_unique(), "passage")
    return f"{judged} of {frame['query'].n_unique():,} of {counted(shown, 'query', 'queries')}"


def _remember(state: State, kind: str, frame: pl.DataFrame) -> None:
    state.said[f"{kind}-expensive"] = frame
    state.expensive[kind] = Judgments.trusted(frame)


def estimate(state: State) -> None:
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
    metrics = two_judges.readers(names, set(cheap.frame["aspect"]) & set(expensive.frame["aspect"]), state.space.folder)
    if not metrics:
        state.did(STAGE, "skipped", notes=["no metric reads what was judged twice"])
        return
    key = {
        "contexts": contexts_key(state.contexts),
        "judgments": [frame_digest(table) for table in (cheap, expensive, others)],
        "ratings": frame_digest(state.ratings),
        "passages": state.material.texts_key[1],
        "metrics": metrics,
        "files": digests(metrics, state.space.folder),
        "baseline": state.space.baseline,
        "seed": state.space.seed,
    }

    def make(watching: Watching | None) -> Made:
        texts = state.collection
        found = two_judges.estimate(
            state.contexts,
            cheap,
            expensive,
            metrics,
            others=others,
            ratings=state.ratings,
            tokens=Tokens.of(texts.tokens(), COUNTER) if texts.passages.height else None,
            baseline=state.space.baseline,
            seed=state.space.seed,
            folder=state.space.folder,
        )
        told = {*state.contexts.notes, *(state.scores.notes if state.scores is not None else ())}
        notes = [note for note in found.notes if note not in told]
        return Made(dict(zip(ESTIMATES, found[:2], strict=True)), {"notes": notes})

    state.estimates = dict(state.stage(STAGE, key, make).frames)
