"""``layouts``: is the context that one model is surest of also the best for another?

For each query the same passages are laid out in several ways: the relevant one first, in between, last. Every model
answers from each layout, and the layout that it is surest of is given to every model. A model that knows what helps it
answers better from its own choice than from a random one, or from another model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, format_list
from ragworth.data import Contexts
from ragworth.judging.annotators.confidence import MEASURES
from ragworth.judging.contract import option
from ragworth.report.study.charts import heat_chart
from ragworth.report.study.page import StudyPage, TableText, columns
from ragworth.report.wording import count_queries, p_words
from ragworth.stats.bootstrap import Clusters
from ragworth.stats.estimate import mean_estimates
from ragworth.stats.paired import correct_by_holm, difference
from ragworth.studies import confidences, contrast
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import contexts_from_lists, draw_positions
from ragworth.studies.contract import Case, PoolStudy, Published, parse_names
from ragworth.studies.contrast import SHARE, Contrasts, Floats
from ragworth.workspace.config import ModelSpec, Workspace

RANDOM, BEST = "(at random)", "(best possible)"
"""In the place of a chooser: a random layout, and one that led to a correct answer if any did."""
TWO = "two models or more, each once, such as embedded,embedded:base"
Cells = dict[tuple[str, str], Floats]
"""Whether the answers are correct, query by query, by who answered and who chose the layout."""


@dataclass(frozen=True)
class Layouts(PoolStudy):
    """Whether a model's own confidence chooses the context from which it answers best.

    Every layout has the same passages: the relevant one and the first found that aren't relevant; the relevant one is
    first, last, and evenly in between. Every model answers greedily from every layout; its confidence is that of this
    very answer. So choosing at random (the mean over the layouts) and choosing best (whether any led to a correct
    answer) are exact, not drawn. If a model is equally sure of several layouts, their mean counts.
    """

    models: str = option("", "models, with commas between them; by default the workspace's and embedded:base")
    size: int = option(10, "passages of a context", low=2, high=100)
    candidates: int = option(3, "layouts of each query", low=2, high=100)
    measure: str = option("KeyEntropy", "confidence that the figure shows and sentences are about", choices=MEASURES)
    correct: float = option(1.0, "lowest outcome that counts as a correct answer", low=0, high=100)
    test: str = option("randomisation", "test of differences over queries", choices=("randomisation", "sign"))

    kind: ClassVar[str] = "layouts"
    title: ClassVar[str] = "whether the context that one model is surest of is the best for another"
    question: ClassVar[str] = "Layouts: is the context that one model is surest of the best for another?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            f"{confidences.PAPER}, Tables 4, 6 and 11",
            {"size": 10, "candidates": 3, "measure": "KeyEntropy", "test": "sign"},
            queries=2889,
            tasks=confidences.TASKS,
            differences=(
                "choosing at random is the mean over the layouts, not one drawn for each query",
                "answers are graded by the workspace's graders",
            ),
        )
    }
    design_column: ClassVar[str] = "model"
    why_ours: ClassVar[str] = "It takes all queries, and tests differences by how large they are, not only by sign."
    judges: ClassVar[tuple[str, ...]] = (confidences.KIND,)

    def check(self) -> None:
        if self.candidates > self.size:
            found = f"{self.candidates} layouts need as many positions, and there are {self.size}"
            raise InputError(found, expected="candidates ≤ size")
        if self.models and len(set(parse_names(self.models))) < max(2, self.models.count(",") + 1):
            raise InputError(f"models is {self.models!r}", expected=TWO)

    def fit(self, space: Workspace) -> Workspace:
        return confidences.with_confidence(space)

    def specs(self, space: Workspace) -> list[ModelSpec]:
        """The models; the workspace's own has its options."""
        names = parse_names(self.models) or list(dict.fromkeys([space.model.use, "embedded:base"]))
        if len(names) < 2:
            found = f"layouts compares models, and there is only {names[0]}"
            raise InputError(found, file=str(space.file), expected=TWO, remedy="name them: --models")
        return [space.model if name == space.model.use else ModelSpec(name, chosen=True) for name in names]

    @property
    def places(self) -> list[int]:
        """Where the relevant passage stands in each layout, from first to last."""
        return [1 + at * (self.size - 1) // (self.candidates - 1) for at in range(self.candidates)]

    def run(self, bench: Bench) -> Case:
        models = self.specs(bench.space)
        for model in models:
            bench.check_model(self.judges, model)
        candidates = bench.pool(self.depth, self.retriever)
        drawn = draw_positions(candidates, self.size, self.places, "--size", with_text=True)
        tables, design = [], []
        for number, model in enumerate(models, 1):
            mine = {f"m{number:02d}{name}": rows for name, rows in drawn.shown.items()}
            tables.append(contexts_from_lists(mine))
            bench.answer_with_confidence(tables[-1], f"model-{number}", model=model)
            design += [(name, model.use, place) for name, place in zip(mine, self.places, strict=True)]
        schema = {"system": pl.String, "model": pl.String, "place": pl.Int64}
        return bench.case(Contexts.concat(tables), pl.DataFrame(design, schema, orient="row"), (), drawn.left)

    def tables(self) -> Mapping[str, TableText]:
        test = f"p by {'randomisation' if self.test == 'randomisation' else 'a sign test'} over queries"
        note = (
            "tied: queries in which the chooser is equally sure of several layouts; missing: queries without some "
            "model's confidence in a layout"
        )
        holm = "p_holm corrected by Holm for a measure's choices against random ones, and for own ones against others"
        return {
            "accuracy": TableText("Correct answers, by who answered and who chose the context", note),
            "differences": TableText("Choices against each other", f"{contrast.CONTRAST_NOTE}; {test}; {holm}"),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        systems, models = case.design["system"].to_list(), case.design["model"].unique(maintain_order=True).to_list()
        grid = contrast.outcome_grid(case, systems, self.outcome, page)
        correct = (grid.values >= self.correct).astype(np.float64).reshape(len(grid.queries), len(models), -1)
        queries = f"each of {count_queries(len(grid.queries))}; models: {format_list(models, 12)}"
        page.lead(case, f"{correct.shape[2]} layouts of the same passages for {queries}.")
        known = contrast.confidence_grids(case, grid)
        for measure, values in known.items():
            self._compare(case, page, measure, models, values.reshape(correct.shape), correct, grid.clusters)
        if self.measure not in known or np.isnan(known[self.measure]).any(axis=1).all():
            page.say(case, f"no query has a {self.measure} of every layout by every model.")

    def _compare(
        self,
        case: Case,
        page: StudyPage,
        measure: str,
        models: list[str],
        sure: Floats,
        correct: Floats,
        clusters: list[int] | None,
    ) -> None:
        """What becomes of the choices by one measure. ``sure``, ``correct``: queries × models × layouts."""
        there = ~np.isnan(sure).any(axis=(1, 2))
        turns = None if clusters is None else np.array(clusters)[there]
        cells, tied = choose_layouts(models, sure[there], correct[there])
        found, rows = self._contrasts(models, cells, turns), []
        for (reader, chooser), values in cells.items():
            (mean,) = mean_estimates(values[:, None], self.plan, SHARE, turns)
            row = {"measure": measure, "answered by": reader, "chosen by": chooser} | columns(mean, "accuracy")
            rows.append(row | {"tied": tied.get(chooser), "missing": int((~there).sum())})
        table = page.add("accuracy", case, rows)
        gaps = contrast.contrast_rows(found, "answered by", "first", "second")
        page.add("differences", case, [{"measure": measure, **row} for row in gaps])
        if measure == self.measure and there.any():
            page.say(case, *(self._words(reader, models, cells, found) for reader in models))
            names = {"chosen by": "first", "answered by": "second", "accuracy": "value", "queries": "n"}
            shown, axes = table.select(*names).rename(names), {"down": "context chosen by", "along": "answered by"}
            spec = heat_chart(shown, [*models, RANDOM, BEST], models, "accuracy", "plain", **axes)
            caption = f"Share of correct answers; contexts chosen by {measure}."
            page.draw("accuracy", "Who answers best from whose choice", caption, spec, case)

    def _contrasts(self, models: list[str], cells: Cells, clusters: Clusters) -> Contrasts:
        """By reader: each choice against a random one, and a model's own against others'; Holm for each of the two."""
        found: Contrasts = {}
        pairs = [(reader, chooser) for reader in models for chooser in models]
        for some in ([(r, c, RANDOM) for r, c in pairs], [(r, r, c) for r, c in pairs if c != r]):
            sides = {key: (cells[key[:2]], cells[key[0], key[2]]) for key in some}
            gaps = {key: difference(*both, self.test, self.plan, SHARE, clusters) for key, both in sides.items()}  # type: ignore[arg-type]
            found |= correct_by_holm(gaps)
        return found

    def _words(self, reader: str, models: list[str], cells: Cells, found: Contrasts) -> str:
        """What a model makes of its own choice."""
        share = {name: f"{100 * float(cells[reader, name].mean()):.1f} %" for name in (*models, RANDOM, BEST)}
        parts = []
        for other in (RANDOM, *(name for name in models if name != reader)):
            one, name = found[reader, reader, other], "a random layout" if other == RANDOM else f"the choice of {other}"
            value, how = 100 * (one.value or 0.0), f"not significantly more or less than from {name}"
            if one.is_significant(self.plan.alpha):
                how = f"{'more' if value > 0 else 'less'} than from {name} by {abs(value):.1f} points"
            parts.append(f"{how} ({share[other]}; {p_words(one.p_holm)})")
        start = f"from the context that it is surest of, {reader} answers {share[reader]} correctly"
        return f"{start}, at best {share[BEST]}: {'; '.join(parts)}."


def choose_layouts(models: list[str], sure: Floats, correct: Floats) -> tuple[Cells, dict[str, int]]:
    """What becomes of each chooser's layouts with each reader, and how often a chooser is equally sure of several."""
    most, cells = sure == sure.max(axis=2, keepdims=True, initial=-np.inf), Cells()
    share = most / np.maximum(most.sum(axis=2, keepdims=True), 1)
    for to, reader in enumerate(models):
        cells |= {(reader, name): (share[:, at] * correct[:, to]).sum(axis=1) for at, name in enumerate(models)}
        cells[reader, RANDOM] = correct[:, to].mean(axis=1)
        cells[reader, BEST] = correct[:, to].max(axis=1, initial=0.0)
    return cells, {name: int((most[:, at].sum(axis=1) > 1).sum()) for at, name in enumerate(models)}
