"""``propagation``: does the relevance of what is retrieved carry over to the answer?

Contexts of several sizes: what the workspace's systems show, the same in reverse order, relevant passages only (the
oracle), and passages that aren't relevant only (the adversary). The utility of a context is how much closer its answer
comes to the relevant passages than the answer without any context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import polars as pl

from ragworth.core.errors import InputError, format_count, format_list, quote_short
from ragworth.data import OK, Outcomes
from ragworth.judging.answers import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM
from ragworth.judging.contract import option
from ragworth.judging.graders.similarity import gain_over_none
from ragworth.metrics.cutoffs import metrics_at_sizes, with_k
from ragworth.metrics.parsing import try_parse
from ragworth.prediction.correlations import Prediction
from ragworth.report.study.charts import point_chart
from ragworth.report.study.page import Row, StudyPage, TableText, columns, estimate_rows
from ragworth.report.study.table_charts import curves_or_dots
from ragworth.report.wording import FEWEST_QUERIES, MEASURE_NAMES, count_queries, signed, with_interval
from ragworth.score_rows import ScoreRows, rows_of
from ragworth.stats.estimate import Estimate, mean_estimates
from ragworth.stats.paired import correct_alike, correct_by_holm, difference, is_reliable
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import Unusable, lists_by_system
from ragworth.studies.cases import matrix
from ragworth.studies.contract import MEASURES, Case, Published, Study, parse_numbers
from ragworth.workspace.config import TaskConfig, Workspace

UTILITY, SIMILARITY, ALL = "utility", "similarity P", "all contexts"
SYSTEM, REVERSED, ORACLE, ADVERSARY = "system", "reversed", "oracle", "adversary"
ORDERS = {SYSTEM: "", REVERSED: " reversed"}
LABELS = {ORACLE: "relevant only", ADVERSARY: "non-relevant only"}
AGAINST = {ORACLE: "relevant passages only", REVERSED: "its reversal"}
DEEPEST = 100
"""The largest size, and how far down the adversary looks for passages."""
SAID = 4
"""Systems of a case that have a sentence of their own."""
FEWEST = 3
FEW = f"fewer than {FEWEST} contexts with both values"
"""Then there is no correlation: any two points lie on a line."""
SCATTER = 5
"""Scatter plots are of the size nearest to this one, which the paper takes."""
REMEDY = "give more relevance labels, or lower what counts as relevant (--relevant)"
DESIGN = {"system": pl.String, "context": pl.String, "role": pl.String, "of": pl.String, "size": pl.Int64}


@dataclass(frozen=True)
class Propagation(Study):
    """Whether better retrieval makes better answers, by context size.

    The oracle draws relevant passages (all, if there are fewer than k), the adversary those labelled not relevant, and
    if these are too few, those that the retriever found and nobody labelled. Utility is that of the grader ``utility``:
    U = (P(with) − P(without)) / P(without). Its mean is too high where P(without) varies by chance, so sentences go by
    the ratio of the means of P, and by differences of P between contexts. Paired t-tests, corrected by Holm among the
    contexts of one size: of P against no context, † against the oracle, ‡ of a system against its reversal. In the
    published design, † and ‡ are of U. A query without a relevant passage is left out and counted.
    """

    sizes: str = option("2,5,10,15", "sizes of contexts, such as 2,5,10,15")
    relevant: float = option(1.0, "lowest label that counts as relevant", low=0)
    similarity: str | None = option(
        None,
        "how answers are compared; by default as the workspace says, or by BERTScore with the embedded encoder",
        choices=("bertscore", "rouge-l", "f1"),
    )
    encoder: str | None = option(
        None, "encoder of BERTScore; by default the workspace's, or the embedded one; paper is bert-large-uncased"
    )
    measure: str = option("pearson", "correlation over queries", choices=MEASURES)
    oracle: bool = option(True, "include contexts of relevant passages only")
    adversary: bool = option(True, "include contexts of passages that aren't relevant")
    retriever: str | None = option(None, "system that the adversary's unlabelled passages are from")

    kind: ClassVar[str] = "propagation"
    title: ClassVar[str] = "whether the relevance of a context carries over to the answer"
    question: ClassVar[str] = "Propagation: does the relevance of a context carry over to the answer?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Tian, Ganguly and Macdonald, Is Relevance Propagated from Retriever to Generator in RAG?, Table 1, "
            "Figures 4 and 5",
            {
                "sizes": "2,5,10,15",
                "relevant": 2.0,
                "similarity": "bertscore",
                "encoder": "paper",
                "measure": "pearson",
            },
            ("nDCG",),
            tasks={
                "answers": {"prompt": "papers/answer-knowledge", "temperature": 0.3, "repeats": 5},
                UTILITY: {"repeats": 5},
            },
            differences=(
                "the paper also takes labels of 3 alone, and of 1 where labels are binary: --relevant",
                "if too few passages are labelled not relevant, the adversary goes on with unlabelled ones",
            ),
        )
    }
    design_column: ClassVar[str] = "role"
    why_ours: ClassVar[str] = (
        "It compares texts with an encoder that works offline, answers once, and marks differences by p corrected by "
        "Holm, which the published design does not."
    )
    needs_answers: ClassVar[bool] = False

    def check(self) -> None:
        parse_numbers(self.sizes, "sizes", DEEPEST)

    def fit(self, space: Workspace) -> Workspace:
        task, writing = space.grades.get(UTILITY, TaskConfig()), space.answers
        assert writing is not None
        settings = {"repeats": writing.task.settings.get("repeats", 0), **task.settings, "level": self.relevant}
        given = {"similarity": self.similarity, "encoder": self.encoder}
        settings |= {name: value for name, value in given.items() if value is not None}
        answers = replace(writing, without=True, everything=True)
        return replace(space, grades={UTILITY: task.with_settings(settings)}, graded=(), answers=answers)

    def run(self, bench: Bench) -> Case:
        lists, pool = lists_by_system(bench.retrieve()), bench.pool(DEEPEST, self.retriever, self.relevant)
        kinds = [(role, name + words, name) for name in lists for role, words in ORDERS.items()]
        # In brackets: a system of the workspace may be called oracle or adversary itself.
        kinds += [(role, label, f"({role})") for role, label in LABELS.items() if getattr(self, role)]
        sizes, left = parse_numbers(self.sizes, "sizes", DEEPEST), Counter[str]()
        design = [(f"{label} @{size}", label, role, of, size) for size in sizes for role, label, of in kinds]
        for name, number in Counter(label for _, label, _ in kinds).items():
            if number > 1:
                raise InputError(f"two contexts would be called {quote_short(name)}", remedy="rename that system")

        def build(query: str) -> dict[str, list[str]]:
            relevant = [each for each in pool.relevant(query) if pool.has_text(each)]
            if not relevant:
                raise Unusable("no relevant passage")
            rng, labels = pool.rng("propagation", query), pool.labels.get(query, {})
            judged = sorted(each for each in labels if not pool.is_relevant(query, each) and pool.has_text(each))
            more = [each for each in pool.others(query) if each not in labels and pool.has_text(each)]
            whole = {name: found.get(query, []) for name, found in lists.items()}
            whole[f"({ORACLE})"] = rng.sample(relevant, len(relevant))  # a larger context begins like a smaller one
            whole[f"({ADVERSARY})"] = [*rng.sample(judged, len(judged)), *more]
            if self.adversary and not whole[f"({ADVERSARY})"]:
                left["not in the adversary: no passage that isn't relevant"] += 1
            return {
                name: whole[of][:size][:: -1 if role == REVERSED else 1]
                for name, _, role, of, size in design
                if role != ADVERSARY or whole[of]
            }

        drawn = pool.draw([name for name, *_ in design], build, REMEDY, left)
        given = bench.metrics or (self.design.metrics if self.design is not None else ("nDCG",))
        bench.metrics = tuple(metrics_at_sizes(given, sizes))
        bench.judge_for(bench.metrics, drawn.contexts)
        bench.answer(drawn.contexts, without=True)
        return bench.case(drawn.contexts, pl.DataFrame(design, schema=DESIGN, orient="row"), left_out=drawn.left)

    def take(self, case: Case) -> Case:
        return super().take(case) if case.is_designed else evaluation_case(case)

    def tables(self) -> Mapping[str, TableText]:
        of, p = "P", "p corrected by Holm among the contexts of one size"
        if self.protocol == "paper":
            of, p = UTILITY, "p"
        return {
            UTILITY: TableText(
                "Mean utility of each context",
                "P with, P without: similarity of the answers with the context, and without any; gain: P with over P "
                "without, less 1, with Fieller's interval (gain_low, gain_high) and the p of a paired t-test; utility: "
                "the mean of the queries' own ratios, too high where P without varies by chance; "
                f"† differs from the oracle, ‡ from its reversal, by paired t-tests of {of} over queries ({p}); "
                "detectable: the smallest true difference from the oracle that this many queries show with probability "
                "0.8; missing: queries without a utility; fewer repeats: queries whose utility is from fewer repeats "
                "than asked for",
            ),
            "correlations": TableText(
                f"{MEASURE_NAMES[self.measure]} of the metric with utility",
                "over the queries of a context; all contexts: over all those of a size, resampling whole queries",
            ),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        every = [SizedContexts(self, case, size) for size in case.design["size"].unique().sort()]
        sizes, kinds = format_list([str(each.size) for each in every], 20), case.design["context"].n_unique()
        queries = len({query for each in every for query in each.queries})
        bare = every[0].mean_of("p_without")
        without = f"; mean P without a context {bare:.3f}" if bare is not None else ""
        contexts = f"{format_count(kinds, 'kind')} of contexts, k = {sizes}"
        page.lead(case, f"{contexts}, of {count_queries(queries)}{without}.")
        page.add(UTILITY, case, [row for each in every for row in each.utility_rows()])
        found = {(each.size, label, name): one for each in every for (name, label), one in each.correlations.items()}
        keys = "k", "context", "metric"
        page.add("correlations", case, estimate_rows(keys, found, "correlation", "counts", "left out", unit="contexts"))
        if any(one.value is not None and one.n < FEWEST_QUERIES for one in found.values()):
            page.note(case, f"correlations over fewer than {FEWEST_QUERIES} contexts are only a hint")
        mine = case.results.outcomes_of(UTILITY).filter(pl.col("system").is_in(case.design["system"].to_list()))
        how = mine["source"].str.split(" ← ").list.first().unique(maintain_order=True).to_list()
        page.note(case, f"how utility is measured: {format_list(how, 3)}")
        gone = mine.filter(pl.col("status") != OK).group_by("status", maintain_order=True).agg(pl.n_unique("query"))
        left = {f"no utility in some context: {status}": number for status, number in gone.iter_rows()}
        page.leave_out(case, left)
        if all(np.isnan(each.values).all() for each in every):
            why = ", ".join(f"{reason}: {n:,}" for reason, n in {**case.left_out, **left}.items()) or "no contexts"
            page.say(case, f"no context has a utility: {why}.")
            return
        systems = case.design.filter(pl.col("role") == SYSTEM)["context"].unique(maintain_order=True).to_list()
        reached = self._reached_sizes(case, [each.size for each in every], page)
        sizes_of = {name: [each for each in every if each.size <= reached[name]] for name in systems}
        firsts = {
            (n, each.size): each.correlations[each.first, n] for n in systems for each in sizes_of[n] if each.first
        }
        tested = dict(zip(firsts, correct_alike(list(firsts.values())), strict=True))
        told = [
            f"for {name}, {words}."
            for name, some in sizes_of.items()
            if (words := self._words(name, some, {size: one for (of, size), one in tested.items() if of == name}))
        ]
        more = [f"{format_count(len(told) - SAID, 'more system')} in the tables."] if len(told) > SAID else []
        page.say(case, *told[:SAID], *more)
        middle = min(every, key=lambda each: abs(each.size - SCATTER))
        for number, name in enumerate(systems, 1):
            if (points := middle.points(name)).height:
                title, caption = f"{middle.first} and utility of {name}", "A point per query; lines of least squares."
                page.draw(f"scatter-{number}", title, caption, point_chart(points, middle.first, UTILITY), case)

    def _reached_sizes(self, case: Case, sizes: Sequence[int], page: StudyPage) -> dict[str, int]:
        """The largest size at which each system's contexts differ from the smaller ones; a note names the others."""
        mine = case.design.filter(pl.col("role") == SYSTEM).join(case.results.contexts.frame, on="system")
        shown = dict(mine.group_by("context").agg(pl.col("rank").max()).iter_rows())
        reached, same = {}, dict[tuple[int, str], list[str]]()
        for name in case.design.filter(pl.col("role") == SYSTEM)["context"].unique(maintain_order=True):
            most = shown.get(name, 0)
            reached[name] = next((size for size in sizes if size >= most), sizes[-1])
            if beyond := [str(size) for size in sizes if size > reached[name]]:
                same.setdefault((most, format_list(beyond, 20)), []).append(name)
        for (most, sizes_beyond), names in same.items():
            shows = f"{format_list(names, 20)} {'shows' if len(names) == 1 else 'show'}"
            page.note(
                case, f"contexts of k = {sizes_beyond} are no larger: {shows} {format_count(most, 'passage')} at most"
            )
        return reached

    def _words(self, name: str, every: Sequence[SizedContexts], found: Mapping[int, Estimate]) -> str:
        """Describe the first metric's correlation with utility, where the oracle's differs, and whether order matters.

        ``found``: the correlations by size, corrected for the sizes of all systems.
        """
        parts = []
        if found:
            sure = [is_reliable(one, self.plan.alpha) for one in found.values()]
            against = [(one.value or 0.0) < 0 and one.is_significant(self.plan.alpha) for one in found.values()]
            verdict = f"{'' if any(sure) else 'it is not clear that '}relevance carries over to the answer"
            verdict += " at some sizes" if any(sure) and not all(sure) else ""
            if any(against) and not any(sure):
                verdict = "a higher metric goes with a lower utility" + ("" if all(against) else " at some sizes")
            values = [
                f"{with_interval(one)} at k = {size}" if one.value is not None else f"none at k = {size} ({one.reason})"
                for size, one in found.items()
            ]
            metric = with_k(every[0].first)
            parts = [f"{verdict}: {MEASURE_NAMES[self.measure]} of {metric} with utility {', '.join(values)}"]
        gains = {each.size: one for each in every if (one := each.gains.get(each.labels.index(name))) is not None}
        where = [
            f"{size} ({signed(100 * (one.value or 0), 0)} %)" for size, one in gains.items() if self.is_significant(one)
        ]
        verb = "differs" if where else "is not significantly different"
        at = f" at k = {format_list(where, 20)}" if where else ""
        parts += [f"the mean {SIMILARITY} of its answers {verb} from that without a context{at}"] if gains else []
        for role, other in AGAINST.items():
            every_one = [(each.size, each.contrasts[role].get(each.labels.index(name))) for each in every]
            known = [(size, one) for size, one in every_one if one is not None and one.value is not None]
            where = [f"{size} ({signed(one.value or 0.0)})" for size, one in known if self.is_significant(one)]
            verb = "differs" if where else "is not significantly different"
            at = f" at k = {format_list(where, 20)}" if where else ""
            parts += [f"its mean {every[0].compared} {verb} from that of {other}{at}"] if known else []
        return "; ".join(parts)

    def is_significant(self, one: Estimate) -> bool:
        """By p after Holm; in the published design by p alone."""
        return (one._replace(p_holm=None) if self.protocol == "paper" else one).is_significant(self.plan.alpha)

    def finish(self, page: StudyPage) -> None:
        level, words = f"{self.level:.0%} intervals", MEASURE_NAMES[self.measure]
        line = pl.concat_str("case", pl.lit(": "), "context") if page.several else pl.col("context")
        if (known := page.table(UTILITY).drop_nulls(UTILITY)).height:
            caption = f"Mean utility, {level}; 0 is no context. A model that ignores its context is above 0 as well."
            spec = curves_or_dots(known, line, "k", UTILITY, "mean utility")
            page.draw(UTILITY, "Utility of contexts", caption, spec)
        table = page.table("correlations")
        if table.height and (known := table.drop_nulls("correlation")).height:
            base = with_k(known["metric"][0])
            shown = known.filter(pl.Series([with_k(name) == base for name in known["metric"]]))
            spec = curves_or_dots(shown, line, "k", "correlation", words)
            page.draw("correlation", f"How {base} goes with utility", f"{words}, {level}.", spec)


class SizedContexts:
    """The contexts of one size: their utilities, queries × contexts, and metrics beside them."""

    def __init__(self, study: Propagation, case: Case, size: int) -> None:
        self.study, self.case, self.size = study, case, size
        design = case.design.filter(pl.col("size") == size)
        self.names, self.labels, self.roles, self.of = (design[name].to_list() for name in list(DESIGN)[:4])
        frame = case.results.outcomes_of(UTILITY).filter(pl.col("system").is_in(self.names))
        self.queries = frame["query"].unique(maintain_order=True).to_list()
        self.clusters = case.clusters(self.queries)
        self.asked = Counter(frame["system"].to_list())
        self.values = matrix(frame, self.names, self.queries)
        self.said = case.results.said.get(UTILITY, pl.DataFrame())
        known = [name for name, part in case.results.scores_by_metric().items() if part["value"].count()]
        self.metrics = [name for name in known if (m := try_parse(name)) is None or m.cutoff in (None, size)] or known
        self.first = next(iter(self.metrics), "")
        of_role = {role: [at for at, each in enumerate(self.roles) if each == role] for role in self.roles}
        oracle = {at: best for best in of_role.get(ORACLE, ()) for at in range(len(self.names)) if at != best}
        back = {self.of[at]: at for at in of_role.get(REVERSED, ())}
        reversal = {at: back[self.of[at]] for at in of_role.get(SYSTEM, ()) if self.of[at] in back}
        self.contrasts = {ORACLE: self._against(oracle), REVERSED: self._against(reversal)}

    def _against(self, pairs: Mapping[int, int]) -> dict[int, Estimate]:
        """Contexts against others, by place: paired t-tests, corrected by Holm."""
        values = self.values
        if self.compared != UTILITY:
            values = matrix(self._told("p").select("system", "query", value="p"), self.names, self.queries)
        sides = {a: (values[:, a], values[:, b]) for a, b in pairs.items()}
        gaps = {a: difference(*both, "t", self.study.plan, clusters=self.clusters) for a, both in sides.items()}
        return correct_by_holm(gaps)

    @cached_property
    def rows(self) -> ScoreRows:
        """The metrics of the contexts that have a utility."""
        return rows_of(self.case.results, UTILITY, self.metrics, self.case.name).of_systems(self.names)

    @cached_property
    def correlations(self) -> dict[tuple[str, str], Estimate]:
        """How each metric goes with utility over the queries of a context, and over all contexts."""
        arms = {self.labels[at]: [self.names[at]] for at, role in enumerate(self.roles) if role in ORDERS}
        if len(self.names) > 1:
            arms[ALL] = self.names
        every = {label: self._correlate(names) for label, names in arms.items()} if self.metrics else {}
        return {(metric, label): found[at] for at, metric in enumerate(self.metrics) for label, found in every.items()}

    def _correlate(self, names: Sequence[str]) -> list[Estimate]:
        """How the metrics go with utility over some contexts of all queries."""
        found = Prediction(self.rows.of_systems(names), self.study.measure, self.study.plan).pooled
        return [one if one.n >= FEWEST else one._replace(value=None, low=None, high=None, reason=FEW) for one in found]

    @property
    def compared(self) -> str:
        """The measure that contexts are compared by: P, or utility in the published design and where P isn't known."""
        return UTILITY if self.study.protocol == "paper" or not self._told("p").height else SIMILARITY

    @cached_property
    def gains(self) -> dict[int, Estimate]:
        """Return the gain from contexts over none, by place, if P is known for both: ratio of the means, less 1."""
        if "p" not in self.said.columns:
            return {}
        ratios = {
            at: gain_over_none(
                self.said.filter(pl.col("system") == name), self.study.plan, self.case.results.conversations
            )
            for at, name in enumerate(self.names)
        }
        return correct_by_holm({at: one for at, one in ratios.items() if one.value is not None})

    def _told(self, column: str, at: int | None = None) -> pl.DataFrame:
        """What the grader says of the contexts, or of one, that have a utility, as far as it is known."""
        if column not in self.said.columns:
            return pl.DataFrame({column: [], "query": [], "of": []})
        names = self.names if at is None else [self.names[at]]
        return self.said.filter(pl.col("system").is_in(names)).drop_nulls(column)

    def mean_of(self, column: str, at: int | None = None) -> float | None:
        """Return the answers' mean similarity with a context (``p``) or without, over queries, if it is known."""
        similarities = self._told(column, at).unique("query", keep="first", maintain_order=True)
        return float(similarities[column].mean()) if similarities.height else None  # type: ignore[arg-type]

    def utility_rows(self) -> Iterator[Row]:
        for at, mean in enumerate(mean_estimates(self.values, self.study.plan, clusters=self.clusters)):
            best, back = (self.contrasts[role].get(at, Estimate()) for role in (ORACLE, REVERSED))
            fewer = self._told("repeats", at).filter(pl.col("repeats").is_between(1, pl.col("of") - 1))
            marks = "†" * self.study.is_significant(best) + "‡" * self.study.is_significant(back)
            row: dict[str, object] = {"k": self.size, "context": self.labels[at]} | columns(mean, UTILITY)
            gain = self.gains.get(at, Estimate())
            row |= {"marks": marks, "P with": self.mean_of("p", at), "P without": self.mean_of("p_without", at)}
            row |= {"gain": gain.value, "gain_low": gain.low, "gain_high": gain.high}
            row |= {"p_gain": gain.p, "p_gain_holm": gain.p_holm}
            row |= {"less oracle": best.value, "p_oracle": best.p, "p_oracle_holm": best.p_holm}
            row |= {"detectable": best.detectable, "less reversal": back.value}
            row |= {"p_reversal": back.p, "p_reversal_holm": back.p_holm}
            yield row | {"missing": self.asked[self.names[at]] - mean.n, "fewer repeats": fewer.height}

    def points(self, name: str) -> pl.DataFrame:
        """The first metric against utility for each query of a system and of its reversal."""
        if not self.first:
            return pl.DataFrame()
        labels = {arm: label for arm, label, of in zip(self.names, self.labels, self.of, strict=True) if of == name}
        rows = pl.DataFrame({"x": self.rows.values[:, 0], "y": self.rows.outcome, "label": self.rows.queries})
        group = pl.Series("group", [labels.get(system) for system in self.rows.systems], pl.String)
        return rows.with_columns(group).filter(pl.col("x").is_not_nan()).drop_nulls("group")


def evaluation_case(case: Case) -> Case:
    """An evaluation's systems as contexts of one size, with their utility."""
    results = case.results
    frame = results.outcomes_of(UTILITY).filter(pl.col("system") != NO_CONTEXT_SYSTEM)
    if not frame.height:
        remedy = "have answers written without a context (without = true under [answers]) and graded by utility"
        raise InputError(f"{case.name}: there are no outcomes {UTILITY!r}", remedy=remedy)
    size = results.manifest.get("settings", {}).get("k") or max(results.contexts.frame["rank"].to_list(), default=1)
    design = [
        (system, ORACLE, ORACLE, system, size) if system == ORACLE_SYSTEM else (system, system, SYSTEM, system, size)
        for system in frame["system"].unique(maintain_order=True)
    ]
    made = case.with_tables(outcomes=Outcomes.trusted(frame.select(list(Outcomes.schema))))
    return replace(made, design=pl.DataFrame(design, schema=DESIGN, orient="row"))
