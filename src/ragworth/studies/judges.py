"""``judges``: how far do judges of the same items agree, and how good is each against a reference?

Judges are models that are asked about the passages of a workspace, beside its labels; or files of judgments, ratings or
grades by models or people; or folders of results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.data import Contexts, Scores
from ragworth.data.collection import Collection
from ragworth.formats.grades import normalise_label
from ragworth.judging import ANNOTATORS
from ragworth.judging.contract import option
from ragworth.label import judge_tables
from ragworth.label.judge_tables import UNNAMED, JudgedItems
from ragworth.label.labels import ADJUDICATED
from ragworth.report.study import Findings
from ragworth.report.study.charts import dot_chart
from ragworth.report.study.page import StudyPage, TableText, estimate_rows, make_table
from ragworth.report.study.table_charts import mirrored_heat
from ragworth.report.wording import count_queries, signed, with_interval
from ragworth.results import Results
from ragworth.stats import judge_panels
from ragworth.stats.estimate import Estimate
from ragworth.studies.bench import Bench
from ragworth.studies.contract import Case, Published, Study, parse_names
from ragworth.workspace.config import ModelSpec, TaskConfig, Workspace

Row = dict[str, Any]

SAID = "judges"
"""Name under which a case stores what its judges said."""
LABELS = "labels"
"""The judge who made the labels of a workspace."""
MOST_SENTENCES = 4
"""Judges compared with the reference in sentences; of more, the best and the worst."""


@dataclass(frozen=True)
class Judges(Study):
    """How far judges of the same items agree, and how good each is against a reference.

    Places are files of judgments (qrels, or tables with query, passage, system or subquestion, value or label, and
    optionally judge), folders of results (whose graders are judges of the same answers), or a workspace, whose labels
    are compared with what each of `models` says about the passages shown. Places with one judge each are compared with
    each other. An item without a value by some judge is left out of what needs it, and counted.
    """

    models: str | None = option(
        None, "models that judge a workspace's passages, with commas between; by default its own"
    )
    judgment: str = option("relevance", "kind of judgment that they are asked for")
    k: int = option(0, "passages of each system and query that they judge; 0 for the workspace's k", low=0)
    aspects: str | None = option(None, "outcomes or judgments of the same thing, with commas between")
    reference: str | None = option(None, "judge that the others are compared with, for precision and recall")
    positive: float = option(1.0, "lowest value that means yes, for precision and recall")
    yes: str | None = option(None, "label that means yes, if labels are words; for precision and recall")

    kind: ClassVar[str] = "judges"
    title: ClassVar[str] = "how far judges of the same items agree"
    question: ClassVar[str] = "Judges: how far do they agree?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Trappolini et al., Redefining Retrieval Evaluation in the Era of LLMs, appendix B",
            {"judgment": "relevance", "k": 5},
            queries=300,
            differences=(
                "the first 300 queries of each workspace are judged, not 300 drawn from all collections",
                "the passages of every system are judged, in the paper those of one retriever",
                "intervals, other coefficients and the labels as a further judge are added to Cohen's κ",
            ),
        ),
        "crux": Published(
            "Ju et al., Controlled Retrieval-augmented Context Evaluation for Long-form RAG, section 4.3 and "
            "appendix A.2",
            {"positive": 3.0},
            differences=(
                "the model's precision and recall need its ratings as a further file, and the people as --reference",
                "the correlation of people's and the model's coverage is part of long-form (--people)",
            ),
        ),
    }
    why_ours: ClassVar[str] = "It takes judgments of any kind, by any number of judges, of all queries."
    answers: ClassVar[bool] = False
    labels: ClassVar[bool] = False

    def check(self) -> None:
        ANNOTATORS.get(self.judgment)
        if self.models and len(set(parse_names(self.models))) < self.models.count(",") + 1:
            raise InputError(f"models is {self.models!r}", expected="models, each once, such as embedded,embedded:base")

    def reads(self, place: Path) -> Case | None:
        if not judge_tables.is_judged(place):
            return None
        contexts, scores = Contexts.concat([]), Scores.concat([])
        results = Results(Collection.of(), contexts, None, None, None, None, scores, {SAID: judge_tables.read(place)})
        return Case(place.resolve().name.partition(".")[0], results)

    def fit(self, space: Workspace) -> Workspace:
        mine = replace(space.judgments.get(self.judgment, TaskConfig()), model=None)
        return replace(space, judgments={self.judgment: mine})

    def run(self, bench: Bench) -> Case:
        space, kind = bench.space, self.judgment
        if ANNOTATORS.get(kind).unit == "context":
            raise InputError(f"{kind} is of contexts, not of passages", expected="relevance, abstention, ratings, …")
        asked = [ModelSpec(each, chosen=True) for each in parse_names(self.models)] or [space.model]
        contexts = bench.retrieve().cut(self.k or space.k)
        aspect = ANNOTATORS.get(kind).aspects[0]
        parts = self._labels(bench, contexts, aspect)
        if len(asked) + bool(parts) < 2:
            found, remedy = "nobody to compare it with", "name two models: --models A,B; or labels in the workspace"
            raise InputError(f"there is one judge of {kind}, and {found}", file=str(space.file), remedy=remedy)
        # With labels, the models would not be asked about the passages that have one.
        texts = replace(bench.collection, relevance=None, ratings=None)
        bench.material = replace(bench.material, collection=texts, judged=None)
        for number, each in enumerate(asked, 1):
            bench.judge([kind], contexts, f"judge-{number}", model=each)
            if bench.plan is None:
                frame = bench.ratings.frame if bench.ratings is not None else bench.judgments[-1]
                mine = frame.filter(pl.col("aspect") == aspect) if "aspect" in frame.columns else frame
                parts.append(judge_tables.judgment_table(mine.with_columns(aspect=pl.lit(aspect)), each.use))
        case = bench.case(contexts, pl.DataFrame({"system": contexts.systems, "shown": [True] * len(contexts.systems)}))
        return _with_judgments(case, pl.concat([pl.DataFrame(schema=judge_tables.SCHEMA), *parts]))

    def _labels(self, bench: Bench, contexts: Contexts, aspect: str) -> list[pl.DataFrame]:
        """What the workspace itself says about the passages shown."""
        ratings = bench.collection.ratings
        rated = [ratings.frame] if ratings is not None else []
        frames = rated if self.judgment == "ratings" else [table.of(aspect) for table in bench.material.given]
        some = [frame.join(contexts.frame, on=["query", "passage"], how="semi") for frame in frames]
        named = [frame.with_columns(aspect=pl.lit(aspect)) for frame in some if frame.height]
        return [judge_tables.judgment_table(frame, LABELS) for frame in named]

    def take(self, case: Case) -> Case:
        if SAID in case.results.said:
            return case
        tables = (case.results.outcomes, case.results.judgments, case.results.ratings)
        outcomes, judged, rated = (table.frame if table is not None else None for table in tables)
        found = judge_tables.judges_of_tables(outcomes, judged, rated, parse_names(self.aspects), case.name)
        if not found.height:
            raise InputError(f"{case.name}: there are no judgments, ratings or outcomes", expected="what judges said")
        return _with_judgments(case, found)

    def find(self, cases: Sequence[Case]) -> Findings:
        return super().find(self._panels(cases))

    def _panels(self, cases: Sequence[Case]) -> list[Case]:
        """The cases with several judges of the same items, and one of all the others together."""
        said = {case.name: case.results.said[SAID] for case in cases}
        known = {case.name: case for case in cases}
        combined = judge_tables.combine_judges(said, parse_names(self.aspects))
        bases = {name: known.get(name) or replace(cases[0], name=name, left_out={}) for name in combined}
        found = [_with_judgments(bases[name], table) for name, table in combined.items()]
        every = pl.concat([case.results.said[SAID] for case in found])
        judges, labels = sorted(every["judge"].unique()), sorted(every["label"].drop_nulls().unique())
        if self.reference is not None and self.reference not in judges:
            raise InputError(f"there is no judge {self.reference!r}", expected=format_list(judges, 12))
        if self.yes is not None and normalise_label(self.yes) not in labels:
            expected = format_list(labels, 12) or "numbers have no labels; --positive says from which on it is yes"
            raise InputError(f"yes is {self.yes!r}, and no judge says that", expected=expected)
        return found

    def tables(self) -> Mapping[str, TableText]:
        return {
            "judges": TableText("Who judged what"),
            "together": TableText(
                "All judges together",
                "intervals are over queries; Fleiss assumed that all judges judge every item: if some don't, every "
                "item with two judgments or more counts the same; by all: items with a value from every judge",
            ),
            "pairs": TableText(
                "Every two judges", "over the items with a value from both; κ quadratic and ρ need an order"
            ),
            "reference": TableText(f"Each judge against {self.reference}"),
            "confusions": TableText(
                "What the second judge says, by what the first says", "share: of what the first says"
            ),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        frame = case.results.said[SAID]
        for number, ((aspect,), part) in enumerate(frame.group_by("aspect", maintain_order=True), 1):
            if part.drop_nulls("value")["judge"].n_unique() > 1:
                Panel(self, str(aspect), part).write(page, case, number)

    def finish(self, page: StudyPage) -> None:
        table = page.table("together")
        if not table.height or not table["value"].count():
            return
        several = table.select("case", "aspect").n_unique() > 1
        group = [pl.concat_str(["case", "aspect"], separator=", ").alias("group")] if several else []
        frame = table.drop_nulls("value").select("value", "low", "high", *group, label="measure", n="items")
        caption = f"{self.level:.0%} intervals over queries; 0 is chance."
        page.draw("together", "How far all judges agree", caption, dot_chart(frame, "agreement", zero=True))


class Panel(JudgedItems):
    """The judges of one aspect of one case."""

    def __init__(self, study: Judges, aspect: str, table: pl.DataFrame) -> None:
        super().__init__(table)
        self.study, self.aspect, self.table = study, aspect, table
        self.head = f"{aspect}: " if aspect != UNNAMED else ""
        # Whether equal values mean something, and whether they have an order.
        few = len(np.unique(self.values[self.known])) <= judge_panels.MOST_LABELS
        self.scale = {"nominal": few, "ordered": self.ordered}
        self.positive = self.meaning_yes(study.yes, study.positive)
        self.reference = self.judges.index(study.reference) if study.reference in self.judges else None
        free = [at for at, judge in enumerate(self.judges) if judge != ADJUDICATED]
        self.independent = free if len(free) > 1 else list(range(len(self.judges)))
        """The judges who count for the agreement of all: a decision follows from the others' labels."""
        others = [at for at in range(len(self.judges)) if at != self.reference]
        with_reference = [(self.reference, at) for at in others if self.reference is not None]
        self.compared = with_reference or list(combinations(others, 2))
        """Pairs whose confusions are counted: those with the reference, or all."""

    def write(self, page: StudyPage, case: Case, number: int) -> None:
        queries = count_queries(int(self.queries.max()) + 1)
        judges, items = format_count(len(self.judges), "judge"), format_count(len(self.values), "item")
        page.lead(case, f"{self.head}{judges} of {items} of {queries}.")
        page.say(case, self.sentence())
        rows = {"judges": self.who(), "together": self.together, "pairs": self.pairs, "reference": self.against}
        for name, mine in {**rows, "confusions": self.confusions}.items():
            page.add(name, case, [{"aspect": self.aspect, **row} for row in mine])
        if len(self.independent) < len(self.judges):
            page.note(case, f"{self.head}{ADJUDICATED} doesn't count in the agreement of all judges")
        page.note(case, self.scale_note())
        lone = int((self.known.sum(axis=1) < 2).sum())
        page.leave_out(case, {f"{self.aspect}: fewer than two judgments": lone}, "items")
        if self.reference is not None and self.positive is None:
            labels = format_list(sorted(self.labels.values()), 6)
            why = f"no judge gives {self.study.positive:g} or more; lower it (--positive)"
            why = why if self.ordered else f"nothing says which of {labels} means yes; name it (--yes)"
            page.note(case, f"{self.head}there is no precision and recall, since {why}")
        self.draw(page, case, number)

    def scale_note(self) -> str:
        """A note if some judges use 0 and 1 only and others higher values; empty if not."""
        tops = {judge: self.values[self.known[:, at], at].max(initial=0.0) for at, judge in enumerate(self.judges)}
        binary, highest = [judge for judge, top in tops.items() if top == 1], max(tops.values())
        if self.labels or not binary or highest <= 1:
            return ""
        return (
            f"{self.head}the values of {format_list(binary, 3)} go up to 1, others up to {highest:g}: if their "
            "scales differ, compare them by Spearman's ρ, precision and recall; κ and α mean nothing then"
        )

    def who(self) -> Iterator[Row]:
        for at, judge in enumerate(self.judges):
            known, mine = self.values[self.known[:, at], at], self.table.filter(pl.col("judge") == judge)
            counts = {"items": len(known), "without a value": mine["value"].null_count()}
            mean = float(known.mean()) if len(known) and self.ordered else None
            yield {"judge": judge, **counts, "not judged": len(self.values) - mine.height, "mean": mean}

    @cached_property
    def pairs(self) -> list[Row]:
        rows = []
        for one in judge_panels.pair_agreements(self.values, self.queries, self.study.plan, **self.scale):
            row: Row = {"first": self.judges[one.first], "second": self.judges[one.second], "items": one.kappa.n}
            row |= {"one of them missing": one.kappa.n_left_out, "equal": one.equal}
            row |= _ends("κ", one.kappa) | _ends("κ quadratic", one.weighted) | _ends("Spearman ρ", one.rank)
            reasons = self._constant(one.first, one.second) or (one.kappa.reason, one.rank.reason)
            rows.append(row | {"why": "; ".join(dict.fromkeys(filter(None, reasons)))})
        return rows

    def _constant(self, first: int, second: int) -> tuple[str, ...]:
        """Which of two judges gives the same value to all the items that both judged, so that ρ has no value."""
        both = self.known[:, first] & self.known[:, second]
        flat = [self.judges[at] for at in (first, second) if len(np.unique(self.values[both, at])) == 1]
        why = f"{' and '.join(flat)} gave every item the same label, so chance agrees as often"
        return (why,) if flat and both.sum() > 1 else ()

    @cached_property
    def together(self) -> list[Row]:
        values = self.values[:, self.independent]
        found = judge_panels.panel_agreements(values, self.queries, self.study.plan, **self.scale)
        return estimate_rows(("measure",), found, "value", "counts", "left out", unit="items")

    @cached_property
    def against(self) -> list[Row]:
        """Each judge against the reference: precision and recall of yes and of no."""
        rows: list[Row] = []
        if self.reference is None or self.positive is None:
            return rows
        words, values = self.positive
        for truth, at in self.compared:
            both = self.known[:, at] & self.known[:, truth]
            yes, right = (np.isin(self.values[both, column], values) for column in (at, truth))
            for label, given, true in (("yes", yes, right), ("no", ~yes, ~right)):
                one = judge_panels.precision_recall(given, true, self.queries[both], self.study.plan)
                row = {"judge": self.judges[at], "reference": self.judges[truth], "label": label, "yes is": words}
                row |= _ends("precision", one.precision) | _ends("recall", one.recall) | {"F1": one.f1}
                counts = {"both": one.hits, "judge alone": one.false, "reference alone": one.missed}
                rows.append(row | counts | {"items": len(given)})
        return rows

    @property
    def confusions(self) -> list[Row]:
        return [
            {"first": self.judges[a], "second": self.judges[b], "first says": self.word(one.first)}
            | {"second says": self.word(one.second), "items": one.items, "share": one.share}
            for a, b in (self.compared if self.scale["nominal"] else ())
            for one in judge_panels.confusions(self.values[:, a], self.values[:, b])
        ]

    def sentence(self) -> str:
        values = [one for one in self.together if one["value"] is not None]
        if not values:
            why = self.together[0]["why"] if self.together else judge_panels.CONTINUOUS
            return f"{self.head}agreement has no value: {why}."
        main = next((one for one in values if one["measure"].endswith("ordinal")), values[0])
        judges, items = format_count(len(self.independent), "judge"), format_count(main["items"], "item")
        value = with_interval(Estimate(main["value"], main["low"], main["high"]))
        said = f"{self.head}{judges} of {items}, {main['by all']:,} of them judged by all: {main['measure']} {value}."
        names = {self.judges[at] for at in self.independent}
        known = [one for one in self.pairs if one["κ"] is not None and {one["first"], one["second"]} <= names]
        known.sort(key=lambda one: -one["κ"])
        if known:
            said += f" Cohen κ of {known[0]['first']} and {known[0]['second']} is {signed(known[0]['κ'])}"
            low = known[-1]
            said += f", of {low['first']} and {low['second']} {signed(low['κ'])}." if len(known) > 1 else "."
        told = [one for one in self.against if one["label"] == "yes" and None not in (one["precision"], one["recall"])]
        if len(told) > MOST_SENTENCES:
            told = sorted(told, key=lambda one: -one["F1"])
            told = [told[0], told[-1]]
        for one in told:
            numbers = f"precision {one['precision']:.2f} and recall {one['recall']:.2f}"
            said += f" Against {one['reference']}, {one['judge']} has {numbers}."
        return said

    def draw(self, page: StudyPage, case: Case, number: int) -> None:
        measure, words = ("κ", "Cohen κ") if self.scale["nominal"] else ("Spearman ρ", "Spearman ρ")
        rows = make_table(self.pairs).drop_nulls(measure)
        if len(self.judges) > 2 and rows.height:
            title = f"How far every two judges agree{f': {self.aspect}' if self.head else ''}"
            spec = mirrored_heat(rows, self.judges, measure, words)
            page.draw(f"pairs-{number}", title, f"{words} over the items that both judged.", spec, case)


def _with_judgments(case: Case, table: pl.DataFrame) -> Case:
    return case.with_tables(said={**case.results.said, SAID: table})


def _ends(name: str, one: Estimate) -> Row:
    return {name: one.value, f"{name} low": one.low, f"{name} high": one.high}
