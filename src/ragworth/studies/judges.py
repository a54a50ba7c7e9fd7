"""``judges``: how far do judges of the same things agree, and how good is each against a reference?

Judges are models that are asked about what the systems of a workspace show, beside its labels; or files of judgments,
ratings or grades by models or people; or folders of results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import polars as pl

from ragworth.annotators import ANNOTATORS
from ragworth.collection import Collection
from ragworth.config import ModelSpec, TaskConfig, Workspace
from ragworth.errors import InputError, format_list
from ragworth.report.study import Findings
from ragworth.results import Results
from ragworth.studies import judge_tables
from ragworth.studies.bench import Bench
from ragworth.studies.contract import Case, Study
from ragworth.tables import Contexts, Scores
from ragworth.tasks.options import option

SAID = "judges"
"""Under which name the opinions of a case are kept."""
LABELS = "labels"
"""The judge who made the labels of a workspace."""


@dataclass(frozen=True)
class Judges(Study):
    """How far judges of the same things agree, and how good each is against a reference.

    Places are files of judgments (qrels, or tables with query, passage, system or subquestion, value or label, and
    maybe judge), folders of results (whose graders are judges of the same answers), or a workspace, whose labels are
    compared with what each of `models` says of the passages shown. Where each place has one judge, they are compared
    across places. A thing that a judge gave no value for is left out of what needs it, and counted.
    """

    models: str | None = option(
        None, "models that judge a workspace's passages, with commas between; by default its own"
    )
    judgment: str = option("relevance", "what they are asked: a kind of judgment")
    aspects: str | None = option(None, "outcomes or judgments that are of the same thing, with commas between")
    reference: str | None = option(None, "judge that the others are held against, for precision and recall")
    positive: float = option(1.0, "lowest value that means yes, for precision and recall")
    yes: str | None = option(None, "label that means yes, where labels are words; for precision and recall")

    kind: ClassVar[str] = "judges"
    title: ClassVar[str] = "how far judges of the same things agree"
    paper: ClassVar[str] = (
        "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, B; Ju et al., CRUX, 4.3"
    )
    answers: ClassVar[bool] = False
    labels: ClassVar[bool] = False

    def check(self) -> None:
        ANNOTATORS.get(self.judgment)
        names = self.named
        if self.models and (not all(names) or len(set(names)) < len(names)):
            raise InputError(f"models is {self.models!r}", expected="models, each once, such as embedded,embedded:base")

    @property
    def named(self) -> list[str]:
        """The models that are to judge, by their written forms."""
        return [each.strip() for each in (self.models or "").split(",")]

    @property
    def wanted(self) -> list[str]:
        return [each.strip() for each in (self.aspects or "").split(",") if each.strip()]

    def reads(self, place: Path) -> Case | None:
        if not judge_tables.is_table(place):
            return None
        found = judge_tables.read(place)
        none = pl.DataFrame(schema=Contexts.schema), pl.DataFrame(schema=Scores.schema)
        results = Results(
            Collection.of(), Contexts.trusted(none[0]), None, None, None, None, Scores.trusted(none[1]), {SAID: found}
        )
        return Case(place.name.partition(".")[0], results)

    def fit(self, space: Workspace) -> Workspace:
        mine = replace(space.judgments.get(self.judgment, TaskConfig()), model=None)
        return replace(space, judgments={self.judgment: mine})

    def run(self, bench: Bench) -> Case:
        space, kind = bench.space, self.judgment
        if ANNOTATORS.get(kind).unit == "context":
            raise InputError(f"{kind} is of contexts, not of passages", expected="relevance, abstention, ratings, …")
        asked = [ModelSpec(each) for each in self.named] if self.models else [space.model]
        contexts = bench.retrieved().cut(space.k)
        aspect = ANNOTATORS.get(kind).aspects[0]
        labels = self._labels(bench, contexts, aspect)
        if len(asked) + (labels.height > 0) < 2:
            raise InputError(
                f"there is one judge of {kind}, and nobody to compare it with",
                file=str(space.file),
                remedy="name two models: --models A,B; or labels in the workspace",
            )
        # Labels would keep the models from being asked about what they say.
        texts = replace(bench.collection, relevance=None, ratings=None)
        alone = replace(bench, material=replace(bench.material, collection=texts, judged=None))
        parts = [labels]
        for number, each in enumerate(asked, 1):
            alone.judge([kind], contexts, f"judge-{number}", model=each)
            if bench.plan is None:
                frame = alone.ratings.frame if alone.ratings is not None else alone.judgments[-1]
                mine = frame.filter(pl.col("aspect") == aspect) if "aspect" in frame.columns else frame
                parts.append(judge_tables.judgment_table(mine.with_columns(aspect=pl.lit(aspect)), each.use))
        case = alone.case(contexts, pl.DataFrame({"system": contexts.systems, "shown": [True] * len(contexts.systems)}))
        return replace(case, results=replace(case.results, said={**case.results.said, SAID: pl.concat(parts)}))

    def _labels(self, bench: Bench, contexts: Contexts, aspect: str) -> pl.DataFrame:
        """What the workspace itself says of the passages shown."""
        if aspect == "rating" or self.judgment == "ratings":
            frames = [bench.collection.ratings.frame] if bench.collection.ratings is not None else []
        else:
            frames = [table.of(aspect) for table in bench.material.given]
        shown = contexts.frame.select("query", "passage").unique()
        some = [frame.join(shown, on=["query", "passage"], how="semi") for frame in frames]
        made = [
            judge_tables.judgment_table(each.with_columns(aspect=pl.lit(aspect)), LABELS)
            for each in some
            if each.height
        ]
        return pl.concat(made) if made else pl.DataFrame(schema=judge_tables.SCHEMA)

    def take(self, case: Case) -> Case:
        if SAID in case.results.said:
            return case
        found = judge_tables.of_results(case.results, self.wanted, case.name)
        if not found.height:
            raise InputError(f"{case.name}: there are no judgments, ratings or outcomes", expected="what judges said")
        return replace(case, results=replace(case.results, said={**case.results.said, SAID: found}))

    def find(self, cases: Sequence[Case]) -> Findings:
        from ragworth.studies.judges_results import JudgePanels

        tables = {case.name: case.results.said[SAID] for case in cases}
        if self.wanted:
            tables = {name: _merged(frame, self.wanted) for name, frame in tables.items()}
        tables = {
            name: judge_tables.numbered(judge_tables.check_single_judgments(frame)) for name, frame in tables.items()
        }
        several = {name: _several(frame) for name, frame in tables.items()}
        if not all(several.values()):
            single = {name: frame for name, frame in tables.items() if not several[name]}
            tables = {name: frame for name, frame in tables.items() if several[name]}
            joined = judge_tables.check_single_judgments(
                pl.concat([_under(frame, name) for name, frame in single.items()])
            )
            joined = judge_tables.numbered(joined)  # words have one number, whoever uses them
            if not _several(joined):
                names = sorted(
                    {f"{judge} on {aspect}" for aspect, judge in joined.select("aspect", "judge").unique().iter_rows()}
                )
                raise InputError(
                    f"nobody judges what another judges: {format_list(names, 6)}",
                    expected="two or more judges of the same queries and things, under the same aspect",
                )
            tables[", ".join(single)] = joined
        return JudgePanels(self, tables).findings()


def _several(frame: pl.DataFrame) -> bool:
    """Whether some aspect has two judges who judge a thing both."""
    good = frame.drop_nulls("value").group_by("aspect", "query", "thing").agg(pl.col("judge").n_unique())
    return bool((good["judge"] > 1).any())


def _under(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """One judge of a place under the place's name; the aspect does not matter where there is but one."""
    alone = frame["judge"].n_unique() == 1
    made = frame.with_columns(pl.lit(name).alias("judge")) if alone else frame
    one = frame["aspect"].n_unique() == 1
    return made.with_columns(pl.lit(judge_tables.FILES).alias("aspect")) if one else made


def _merged(frame: pl.DataFrame, wanted: list[str]) -> pl.DataFrame:
    """Aspects that are of the same thing, as judges."""
    mine = frame.filter(pl.col("aspect").is_in(wanted))
    if not mine.height:
        return frame
    return mine.with_columns(pl.col("aspect").alias("judge"), pl.lit(judge_tables.FILES).alias("aspect"))
