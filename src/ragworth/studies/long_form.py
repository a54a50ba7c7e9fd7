"""``long-form``: does the coverage of a context predict the coverage of the long answer?

Contexts are scored by coverage, ranked coverage and density of the sub-questions of a request; the model writes a long
answer from each, which is rated for the same sub-questions. Bounds are the required subset, the fewest passages that
answer everything, no retrieval at all, and what people wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ragworth.comparison import value_bounds
from ragworth.config import AnswerConfig, TaskConfig, Workspace
from ragworth.errors import InputError, format_count, format_list
from ragworth.evaluation.session import PlanComplete
from ragworth.formats.judges import read_coverage
from ragworth.generation.writer import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM
from ragworth.graders.rated_coverage import HUMAN, AnswerCoverage, answer_coverage, human_texts, with_human_ratings
from ragworth.metrics import required_passages
from ragworth.metrics.parsing import with_parameter
from ragworth.metrics.required_passages import REDUNDANCY_RULES, REQUIRED, answerable, required_subsets
from ragworth.report.study.charts import curve_chart, dot_chart, point_chart
from ragworth.results import Results
from ragworth.retrieval.context_lists import ContextLists, contexts_from_lists, lists_by_system
from ragworth.scoring import passage_tokens, score, score_to_sizes
from ragworth.stats.estimate import Estimate, mean_estimates
from ragworth.stats.pooled import pooled_correlations
from ragworth.stats.systems import common_grid, rank_systems, spread_of_means
from ragworth.studies.bench import Bench
from ragworth.studies.contract import Case, Published, Study
from ragworth.studies.contrast import Floats
from ragworth.studies.page import StudyPage, TableText, columns, make_table
from ragworth.studies.pool import no_queries_error
from ragworth.studies.wording import between, count_queries, signed
from ragworth.tables import OK, Answers, Contexts, Ratings, Scores
from ragworth.tables.grids import matrix
from ragworth.tasks.answerability import RATED_ANSWERABILITY_NOTE
from ragworth.tasks.options import option, parse_names, parse_numbers
from ragworth.token_counter import WORD_COUNTER, TokenCounter

BOUND = "(required)"
"""The system that shows the required subset."""
TIED = f"@{REQUIRED}"
"""Ends the name of a metric whose cutoff is the size of each query's required subset."""
PEOPLE = pl.DataFrame(schema={"system": pl.String, "query": pl.String, "value": pl.Float64, "judge": pl.String})
NO_SYSTEMS = pl.DataFrame(schema={"system": pl.String})
THRESHOLDS = (1.0, 2.0, 3.0, 4.0, 5.0)
ANSWERS = {"coverage": "coverage of the answer", "density": "density of the answer"}
ROLES = {BOUND: "upper bound", ORACLE_SYSTEM: "upper bound", HUMAN: "human", NO_CONTEXT_SYSTEM: "lower bound"}
BY_RATINGS, BY_LABELS = ("Cov", "alpha_nDCG", "Den"), ("nDCG", "AP", "R", "P")


@dataclass(frozen=True)
class LongForm(Study):
    """Whether the coverage of a context predicts the coverage of the long answer written from it.

    Queries with rated sub-questions take part; those without, with a failed rating, or without anything answerable are
    left out and counted. Systems are ranked by the mean of a measure of contexts and of a measure of answers, over the
    queries that have both for every system; the bounds take no part. η is swept from 1 to 5.
    """

    eta: float = option(3.0, "lowest rating that counts as answered", low=1, high=5)
    sizes: str | None = option(
        None,
        "passages of a context, and cutoffs: numbers, or required for as many as the required subset has, with commas "
        "between; by default the workspace's k, without cutoffs",
    )
    tie: bool = option(False, "answers no longer than the required subset, and --sizes required by default")
    prompt: str = option("answer-long", "prompt for answers")
    length: int = option(256, "most tokens of an answer", low=1)
    human: str | None = option(
        None, "what people wrote: a file with a text for each query, or answers for accepted ones"
    )
    human_ratings: str | None = option(None, "file with ratings of what people wrote, so that no model rates it")
    people: str | None = option(None, "file with people's coverage of the answers: system, query, judge, value")
    redundancy: str = option("answered", "rule by which passages are redundant", choices=REDUNDANCY_RULES)

    kind: ClassVar[str] = "long-form"
    title: ClassVar[str] = "whether the coverage of a context predicts that of a long answer"
    question: ClassVar[str] = "Long-form: does the coverage of a context predict the coverage of the answer?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Ju et al., Controlled Retrieval-augmented Context Evaluation for Long-form RAG, Tables 1 to 3, Figure 4",
            {"eta": 3.0, "sizes": "required,10,20", "tie": True, "redundancy": "crux"},
            differences=(
                "the prompts for reports and ratings ask for the same in other words",
                "a rating that can't be read is missing, and its query left out, instead of 0",
                "answers are greedy: the paper doesn't state the temperature of its reports",
                "Kendall's τ-b, which counts ties, has an interval over queries",
            ),
        )
    }
    why_ours: ClassVar[str] = "It takes contexts and answers as long as the workspace has them."
    labels: ClassVar[bool] = False

    def check(self) -> None:
        if numbers := [each for each in self.named_sizes if each != REQUIRED]:
            parse_numbers(",".join(numbers), "sizes")

    @property
    def named_sizes(self) -> list[str]:
        return list(dict.fromkeys(parse_names(self.sizes))) or ([REQUIRED] if self.tie else [])

    def fit(self, space: Workspace) -> Workspace:
        writing = space.answers or AnswerConfig()
        how = {"prompt": self.prompt, "length": self.length, "tie_length": self.tie, "eta": self.eta}
        task = replace(writing.task, settings={**writing.task.settings, **how})
        # Rated from the lowest threshold on, so every η uses the same ratings.
        grader = space.grades.get("coverage", TaskConfig())
        grader = replace(grader, settings={**grader.settings, "eta": THRESHOLDS[0]})
        judgments = {kind: each for kind, each in space.judgments.items() if kind == "ratings"}
        answers = replace(writing, task=task, everything=True, without=True)
        return replace(space, judgments=judgments, answers=answers, grades={"coverage": grader})

    def run(self, bench: Bench) -> Case:
        found = bench.retrieved()
        texts = human_texts(bench.collection.answers, self.human) if self.human else {}
        ratings = self._ratings(bench, found)
        subsets, left = self._subsets(bench, ratings)
        shown = self._contexts(found, subsets, bench.space.k)
        parts = {query: len(names) for query, names in answerable(ratings, THRESHOLDS[0]).items()}
        self._answer(bench, shown, parts)
        mine = [(HUMAN, query, 0, texts[query], None, OK, self.human) for query in subsets if query in texts]
        if mine and not self.human_ratings:
            bench.grade(Answers(pl.DataFrame(mine, schema=Answers.schema, orient="row")), "human")
        arms = self._arms(found.systems)
        rows = [(arm, "system", *arms[arm]) for arm in arms] + [(each, ROLES[each], each, "") for each in ROLES]
        design = pl.DataFrame(rows, schema=["system", "role", "name", "size"], orient="row")
        case = bench.case(contexts_from_lists(shown), design, (), left)
        if not bench.metrics:
            known = case.results.judgments
            names = BY_RATINGS + (BY_LABELS if known is not None and known.of("relevance").height else ())
            ends = [f"@{size}" for size in self.named_sizes] or [""]
            scores = score_contexts(
                case.results, [at_threshold(name + end, self.eta) for end in ends for name in names]
            )
            case = replace(case, results=replace(case.results, scores=Scores.trusted(scores)))
        return self._with_human(case, texts, bench.collection.counter)

    def _ratings(self, bench: Bench, found: Contexts) -> Ratings:
        """The ratings of the collection, or those that the model gives."""
        if bench.collection.ratings is not None:
            return bench.collection.ratings
        if "ratings" not in bench.space.judgments:
            remedy = "name ratings under [collection], or set ratings = true under [judgments]"
            raise InputError("there are no ratings of sub-questions", file=str(bench.space.file), remedy=remedy)
        k = max([bench.space.k, *(int(size) for size in self.named_sizes if size != REQUIRED)])
        bench.judge(["ratings"], found.cut(k))
        if bench.ratings is None:
            # Which passages are required isn't known yet: k of the last found stand for them.
            parts = dict(bench.collection.subquestions.group_by("query").len().iter_rows())
            last = found.frame.sort("rank", descending=True).group_by("query", maintain_order=True)
            some = dict(last.agg(pl.col("passage").unique(maintain_order=True).head(k)).iter_rows())
            subsets = {query: some.get(query, []) for query in bench.material.setting.ids if query in parts}
            self._answer(bench, self._contexts(found, subsets, bench.space.k), parts)
            raise PlanComplete
        bench.material = replace(bench.material, collection=replace(bench.collection, ratings=bench.ratings))
        return bench.ratings

    def _answer(self, bench: Bench, shown: ContextLists, parts: Mapping[str, int]) -> None:
        """Have contexts answered and graded; a plan counts the ratings that this takes, not only the answers."""
        bench.answer(contexts_from_lists(shown), without=True)
        if bench.plan:
            assert bench.space.answers is not None
            most = sum(parts.get(query, 0) for rows in (*shown.values(), shown[BOUND]) for query in rows)
            most *= int(bench.space.answers.task.settings.get("repeats", 1))
            stage = bench.plan.pop()
            words = f"{stage.words}: {format_count(most, 'request')} at most, one for each sub-question of an answer"
            bench.plan.append(stage._replace(words=words))

    def _subsets(self, bench: Bench, ratings: Ratings) -> tuple[dict[str, list[str]], Counter[str]]:
        """The required subset of each query, and queries left out."""
        whole = required_passages.without_failed(ratings)
        chosen = required_subsets(whole, self.eta)
        reasons = {
            "no sub-questions": set(bench.collection.subquestions["query"]),
            "no ratings": set(ratings.frame["query"]),
            "a rating failed": set(whole.frame["query"]),
            f"no sub-question is answered with {self.eta:g} or more": chosen.keys(),
        }
        subsets, left = {}, Counter[str]()
        for query in bench.material.setting.ids:
            if why := next((reason for reason, known in reasons.items() if query not in known), ""):
                left[why] += 1
            else:
                subsets[query] = chosen[query]
        if not subsets:
            raise no_queries_error(left, "give sub-questions and ratings of them")
        return subsets, left

    def _arms(self, systems: list[str]) -> dict[str, tuple[str, str]]:
        """The contexts of each query: by their names, of which system and size."""
        sizes = self.named_sizes or [""]
        return {f"{name} · {size}" if len(sizes) > 1 else name: (name, size) for size in sizes for name in systems}

    def _contexts(self, found: Contexts, subsets: dict[str, list[str]], k: int) -> ContextLists:
        lists, shown = lists_by_system(found), {}
        for arm, (system, size) in self._arms(found.systems).items():
            most = {query: len(subset) if size == REQUIRED else int(size or k) for query, subset in subsets.items()}
            shown[arm] = {query: lists[system].get(query, [])[: most[query]] for query in subsets}
        return {**shown, BOUND: subsets}

    def take(self, case: Case) -> Case:
        if case.results.ratings is None:
            found = f"{case.name}: there are no ratings of sub-questions"
            raise InputError(found, remedy="name ratings, or have them judged")
        if not any(name.startswith(BY_RATINGS) for name in case.results.scores.frame["metric"].unique()):
            raise InputError(f"{case.name}: there are no scores of coverage", remedy="add -m Cov -m alpha_nDCG")
        if not self.human_ratings:
            if self.human and HUMAN not in case.results.said.get("coverage", NO_SYSTEMS)["system"]:
                raise InputError("these results have no ratings of people's texts", remedy="add --human-ratings FILE")
            return case
        if self.human and "counter" in case.results.collection.passages.columns:
            raise InputError("results don't keep the tokenizer that counts people's texts", remedy="leave --human out")
        texts = human_texts(case.results.collection.answers, self.human) if self.human else {}
        return self._with_human(case, texts, WORD_COUNTER)

    def _with_human(self, case: Case, texts: Mapping[str, str], counter: TokenCounter) -> Case:
        """The case with given ratings of what people wrote."""
        if not self.human_ratings:
            return case
        return replace(case, results=with_human_ratings(case.results, self.human_ratings, texts, counter))

    def tables(self) -> Mapping[str, TableText]:
        return {
            "systems": TableText(
                "Coverage of systems and their answers, mean over queries",
                f"answered from a rating of {self.eta:g} on, over the queries that have contexts and answers",
            ),
            "ranking": TableText(
                "Do contexts and answers rank the systems alike?",
                "Kendall τ-b of the systems' means; the bounds take no part; intervals over queries",
            ),
            "sizes": TableText(
                "Kendall τ-b with the answers, by the size of the contexts",
                "with the coverage of the answers; Den with their density",
            ),
            "thresholds": TableText(
                "Coverage by the lowest rating that counts",
                "mean and standard deviation over systems; contexts and answers of the same queries",
            ),
            "people": TableText(
                "Coverage of the answers by people and by the model",
                "Spearman ρ over all answers that both judged, with intervals over queries",
            ),
            "passages": TableText(
                "The passages that systems show",
                "shares of all passages shown: required, redundant beside the required subset, without an answer, "
                f"unrated; rule: {self.redundancy}",
            ),
            "intervals": TableText("Means with intervals", aside=True),
        }

    def examine(self, case: Case, page: StudyPage) -> None:
        parts = list(self._parts(case))
        first, results = parts[0], case.results
        who = f"{format_count(len(first.systems), 'system')} on {count_queries(len(first.queries))}"
        page.lead(case, f"{who} with rated sub-questions, answered from a rating of {self.eta:g} on.")
        for part in parts:
            page.say(case, part.ranking_sentence())
            page.add("systems", case, part.system_rows())
            page.add("ranking", case, part.ranking_rows())
            page.add("intervals", case, part.interval_rows())
            if len(parts) > 1 and part.orders:
                page.add("sizes", case, [part.size_row()])
        page.say(case, first.bounds_sentence())
        thresholds = page.add("thresholds", case, list(first.sweep()))
        known = thresholds.drop_nulls("τ-b").select("τ-b", "η").rows()
        if len(known) > 1:
            said = [f"{signed(tau)} at η = {eta:g}" for tau, eta in known]
            page.say(case, f"by Cov, τ-b is {format_list(said, 5)}.")
        lost = len(first.queries) - len(first.common)
        page.leave_out(case, {"some system has no value of its contexts or answers": lost})
        assert results.ratings is not None
        classes = required_passages.class_shares(results.contexts, results.ratings, self.eta, self.redundancy)  # type: ignore[arg-type]
        shares = classes.filter(pl.col("system").is_in(list(first.systems)))
        page.add("passages", case, shares.with_columns(pl.col("system").replace(first.systems)))
        self._compare_with_people(case, first, page)
        tables = {"passages": results.ratings.frame, "answers": results.said.get("coverage", NO_SYSTEMS)}
        for what, table in tables.items():
            if "source" in table.columns and table["source"].str.contains("answerability").any():
                page.note(case, f"{what}: {RATED_ANSWERABILITY_NOTE}")
        if (lengths := passage_tokens(results.collection)) is not None:
            page.note(case, f"tokens of Den and of densities are counted as {lengths.counter}")
        first.draw(page)

    def _parts(self, case: Case) -> Iterator[CoverageBySystem]:
        """The contexts of each size."""
        results, design = case.results, case.design
        frame = results.scores.frame
        known = frame["metric"].unique(maintain_order=True).to_list()
        wanted = list(dict.fromkeys(at_threshold(name, self.eta) for name in known))
        if lacking := [name for name in wanted if name not in known]:
            frame = pl.concat([frame, score_contexts(results, lacking).select(frame.columns)])
        rows = frame.filter(pl.col("metric").is_in(wanted) & (pl.col("status") == OK))
        scores = {str(name): part for (name,), part in rows.group_by("metric", maintain_order=True)}
        if not case.is_designed:
            names = [*results.contexts.systems, *ROLES]
            listed = [(each, ROLES.get(each, "system"), each, "") for each in dict.fromkeys(names)]
            design = pl.DataFrame(listed, schema=["system", "role", "name", "size"], orient="row")
        answers = answer_coverage(results, self.eta)
        there = {system for each in (rows, *answers) for system in each["system"]}
        bounds = {arm: role for arm, role, *_ in design.rows() if role != "system" and arm in there}
        for size in design.filter(pl.col("role") == "system")["size"].unique(maintain_order=True):
            mine = design.filter((pl.col("role") == "system") & (pl.col("size") == size))
            cut = {name.removesuffix(f"@{size}"): part for name, part in scores.items() if name.endswith(f"@{size}")}
            systems = {arm: name for arm, name in mine.select("system", "name").iter_rows() if arm in there}
            yield CoverageBySystem(self, case, size, systems, bounds, cut if size and cut else scores, answers)
            bounds = {}

    def _compare_with_people(self, case: Case, first: CoverageBySystem, page: StudyPage) -> None:
        """Coverage of the same answers by people and by the model: a line for each, and their correlation."""
        results, frames = case.results, [PEOPLE]
        if results.outcomes is not None:
            named = results.outcomes.frame.filter(pl.col("aspect").str.ends_with("-coverage"))
            judge = pl.col("aspect").str.strip_suffix("-coverage").alias("judge")
            frames.append(named.select("system", "query", "value", judge))
        if self.people:
            assert results.ratings is not None
            frames.append(read_coverage(self.people, answerable(results.ratings, self.eta), list(first.roles)))
        model = first.answers.coverage.rename({"value": "model"})
        both = pl.concat([model.join(each.drop_nulls("value"), on=["system", "query"]) for each in frames])
        for (judge,), part in both.group_by("judge", maintain_order=True):
            x, y = part["model"].to_numpy()[:, None], part["value"].to_numpy()
            turns = case.clusters(part["query"])
            found = pooled_correlations(x, y, part["query"].to_numpy(), **self.plan.options, clusters=turns)[0]
            one = columns(Estimate.of(found, unit="n"), "Spearman ρ", unit="answers")
            page.add("people", case, [{"judge": judge, **one, "why": found.reason}])
        for number, ((arm,), part) in enumerate(both.group_by("system", maintain_order=True), 1):
            mine = part.select(line=pl.lit("model"), place="query", value="model").unique()
            lines = pl.concat([mine, part.select(line="judge", place="query", value="value")]).sort("place")
            spec = curve_chart(lines, "query", "coverage", band=False)
            title = f"Coverage by people and by the model: {arm}"
            page.draw(f"people-{number}", title, "Of the answer to each query.", spec, case)


@dataclass(frozen=True, eq=False)
class CoverageBySystem:
    """Contexts of one size: measures of contexts and of answers, by system and query.

    Attributes
    ----------
    systems: names of the systems by those of their contexts.
    bounds: roles of the other rows.
    contexts: scores by metric.
    """

    study: LongForm
    case: Case
    size: str
    systems: dict[str, str]
    bounds: dict[str, str]
    contexts: dict[str, pl.DataFrame]
    answers: AnswerCoverage

    @cached_property
    def roles(self) -> dict[str, str]:
        return {**dict.fromkeys(self.systems, "system"), **self.bounds}

    @cached_property
    def metrics(self) -> list[str]:
        """Those of sub-questions first."""
        return sorted(self.contexts, key=lambda name: not name.startswith(BY_RATINGS))

    @cached_property
    def queries(self) -> list[str]:
        ratings, known = self.case.results.ratings, {q for each in self.contexts.values() for q in each["query"]}
        assert ratings is not None
        rated = known & set(ratings.frame["query"])
        return [query for query in self.case.results.collection.queries["query"] if query in rated] or sorted(rated)

    def grids(self, context: pl.DataFrame, answer: pl.DataFrame) -> tuple[Floats, Floats]:
        """A measure of contexts and one of answers, queries × systems."""
        first, second = (matrix(values, list(self.systems), self.queries) for values in (context, answer))
        return first, second

    @cached_property
    def common(self) -> list[str]:
        """The queries of all means: if answers have values, those that contexts and answers both have."""
        if not self.answers.coverage.height:
            return self.queries
        both = common_grid(*self.grids(self.contexts[self.metrics[0]], self.answers.coverage))
        return [query for query, there in zip(self.queries, both.queries, strict=True) if there]

    @cached_property
    def means(self) -> dict[str, dict[str, Estimate]]:
        """The mean of every measure for every system."""
        answers = {name: one for name, one in zip(ANSWERS.values(), self.answers, strict=True) if one.height}
        found = {}
        for name, values in ({name: self.contexts[name] for name in self.metrics} | answers).items():
            grid = matrix(values, list(self.roles), self.common)
            means = mean_estimates(grid, self.study.plan, value_bounds(name), self.case.clusters(self.common))
            found[name] = dict(zip(self.roles, means, strict=True))
        return found

    @cached_property
    def orders(self) -> list[tuple[str, str, Estimate]]:
        """Each measure of contexts against the coverage of answers; density against density too."""
        if not self.answers:
            return []
        pairs = [(name, "coverage") for name in self.metrics]
        pairs += [(name, "density") for name in self.metrics if name.startswith("Den")]
        sides = [self.grids(self.contexts[name], getattr(self.answers, of)) for name, of in pairs]
        turns = self.case.clusters(self.queries)
        found = [rank_systems(*both, self.study.plan, turns) for both in sides]
        return [(*pair, one) for pair, one in zip(pairs, found, strict=True)]

    @property
    def k(self) -> dict[str, str]:
        return {"k": self.size} if self.size else {}

    def system_rows(self) -> Iterator[dict[str, Any]]:
        counts = {"queries of contexts": self.metrics[0], "queries of answers": ANSWERS["coverage"]}
        for arm, role in self.roles.items():
            values = {name: each[arm].value for name, each in self.means.items()}
            n = {what: self.means[name][arm].n if name in self.means else 0 for what, name in counts.items()}
            yield {**self.k, "system": self.systems.get(arm, arm), "role": role, **values, **n}

    def interval_rows(self) -> list[dict[str, Any]]:
        return [
            {**self.k, "system": self.systems.get(arm, arm), "measure": name, **columns(one, "mean")}
            for name, each in self.means.items()
            for arm, one in each.items()
            if one.value is not None
        ]

    def ranking_rows(self) -> Iterator[dict[str, Any]]:
        for name, of, one in self.orders:
            yield {**self.k, "context": name, "answer": of} | columns(one, "τ-b", "counts") | {"why": one.reason}

    def size_row(self) -> dict[str, Any]:
        """τ of each measure, as the paper has it: Den with density, the others with coverage."""
        taus = {name: one for name, of, one in self.orders if (of == "density") == name.startswith("Den")}
        first, values = next(iter(taus.values())), {name: one.value for name, one in taus.items()}
        return {**self.k, **values, "systems": first.counts["systems"], "queries": first.n}

    def sweep(self) -> Iterator[dict[str, Any]]:
        """Coverage of contexts and answers, and how they rank the systems, at each threshold."""
        results = self.case.results
        most = results.manifest.get("settings", {}).get("k")
        shown = results.contexts if self.case.is_designed or not isinstance(most, int) else results.contexts.cut(most)
        names = {eta: with_parameter("Cov", "eta", eta) for eta in THRESHOLDS}
        scores = score(shown, None, list(names.values()), ratings=results.ratings, complete=False).frame
        for eta, name in names.items():
            rows = scores.filter((pl.col("metric") == name) & (pl.col("status") == OK))
            answers = answer_coverage(results, eta).coverage
            contexts, answered = self.grids(rows, answers)
            one = Estimate(reason="no answers rated")
            if answers.height:
                one = rank_systems(contexts, answered, self.study.plan, self.case.clusters(self.queries))
            both = common_grid(contexts, answered)
            if both.of(contexts).size:
                contexts, answered = both.of(contexts), both.of(answered)
            else:  # contexts alone
                answered = answered[:, :0]
            parts = ("contexts", "contexts ±", "answers", "answers ±")
            spread = dict(zip(parts, (*spread_of_means(contexts), *spread_of_means(answered)), strict=True))
            queries = int((~np.isnan(contexts)).sum(axis=0).max(initial=0))
            yield {"η": eta, **spread, **columns(one, "τ-b"), "queries": queries, "why": one.reason}

    def ranking_sentence(self) -> str:
        number = "as many passages as the required subset" if self.size == REQUIRED else f"{self.size} passages"
        where = f"with {number}, " if self.size else ""
        known = [row for row in self.orders if row[2].value is not None]
        if not self.answers:
            outcomes, why = self.case.results.outcomes, "they were not graded for coverage"
            if outcomes is not None and (outcomes.frame["aspect"] == "coverage").any():
                why = f"they were graded for coverage at another threshold than {self.study.eta:g}"
            return f"nothing is said about the answers: {why}."
        if not known:
            return f"{where}systems can't be ranked by the coverage of their answers: {self.orders[0][2].reason}."
        first = [row for row in known if row[1] == "coverage"] or known
        metric, of, one = max(first, key=lambda row: round(row[2].value or 0.0, 12))
        verdict = f"{metric} ranks the systems most like the {of} of their answers does"
        if one.low is None or one.low <= 0:
            verdict = f"no measure reliably ranks the systems as the {of} of their answers does; {metric} comes closest"
        over = f"{format_count(one.counts['systems'], 'system')} and {count_queries(one.n)}"
        return f"{where}{verdict}, Kendall τ-b {signed(one.value or 0.0)} {between(one.interval)} over {over}."

    def bounds_sentence(self) -> str:
        words = ANSWERS["coverage"] if self.answers.coverage.height else self.metrics[0]
        means = {arm: one for arm, one in self.means[words].items() if one.value is not None}
        mine = {arm: one.value or 0.0 for arm, one in means.items() if arm in self.systems}
        if not mine:
            return ""
        best = max(mine, key=lambda arm: mine[arm])
        same = len(mine) > 1 and max(mine.values()) == min(mine.values())
        first = f"all systems have the same {words}," if same else f"{self.systems[best]} has the highest {words},"
        there = {arm: role for arm, role in self.bounds.items() if arm in means}
        bounds = format_list([f"the {role} {arm} {signed(means[arm].value or 0.0)}" for arm, role in there.items()])
        return f"{first} {signed(mine[best])} {between(means[best].interval)}{f'; {bounds}' if bounds else ''}."

    def draw(self, page: StudyPage) -> None:
        main = next((name for name in self.means if name.startswith("Cov")), "")
        answers = ANSWERS["coverage"]
        drawn = [name for name in (main, *ANSWERS.values()) if name in self.means]
        rows = make_table(row for row in self.interval_rows() if row["measure"] in drawn)
        if rows.height:
            frame = rows.select("low", "high", label="system", value="mean", group="measure", n="queries")
            title, caption = (
                "Coverage of contexts and answers",
                f"Means with {self.study.level:.0%} intervals over queries.",
            )
            page.draw("systems", title, caption, dot_chart(frame, "mean", zero=True), self.case)
        if main and answers in self.means:
            of = self.means[main], self.means[answers]
            points = [{"x": of[0][a].value, "y": of[1][a].value, "label": name} for a, name in self.systems.items()]
            if (frame := make_table(points).drop_nulls()).height:
                title = "Systems by the coverage of contexts and answers"
                caption = "A point for each system, with the line of least squares; bounds are left out."
                page.draw("scatter", title, caption, point_chart(frame, "coverage of the context", answers), self.case)
        sweep = page.table("thresholds").filter(pl.col("case") == self.case.name)
        sides = (sweep.select(line=pl.lit(what), place="η", value=what) for what in ("contexts", "answers"))
        spec = curve_chart(pl.concat(sides).drop_nulls(), "η", "coverage", band=False)
        caption = "Mean over systems and queries, by the lowest rating η that counts as answered."
        page.draw("thresholds", "Coverage by threshold", caption, spec, self.case)


def at_threshold(name: str, eta: float) -> str:
    """A metric of sub-questions with this threshold; any other as it is."""
    return with_parameter(name.removesuffix(TIED), "eta", eta) + (TIED if name.endswith(TIED) else "")


def score_contexts(results: Results, names: list[str]) -> pl.DataFrame:
    """Scores of contexts, some of them cut at the size of each query's required subset."""
    sizes = dict(results.contexts.frame.filter(pl.col("system") == BOUND).group_by("query").len().iter_rows())
    more: dict[str, Any] = {"ratings": results.ratings, "tokens": passage_tokens(results.collection), "complete": False}
    return score_to_sizes(results.contexts, results.judgments, names, sizes, TIED, **more)
