"""``long-form``: does the coverage of a context predict the coverage of the long answer?

Contexts are scored by coverage, ranked coverage and density of the sub-questions of a request; the model writes a long
answer from each, which is rated for the same sub-questions. Bounds are the required subset, the fewest passages that
answer everything, no retrieval at all, and what people wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.data import OK, Answers, Contexts, Ratings, Scores
from ragworth.data.tokens import WORD_COUNTER, TokenCounter
from ragworth.evaluation.session import PlanComplete
from ragworth.judging.answers import NO_CONTEXT_SYSTEM, ORACLE_SYSTEM
from ragworth.judging.contract import option
from ragworth.judging.labels import RATED_ANSWERABILITY_NOTE
from ragworth.metrics.cutoffs import TIED, at_threshold
from ragworth.metrics.required_passages import REQUIRED, answerable, subsets_of_queries
from ragworth.report.study.charts import curve_chart
from ragworth.report.study.page import StudyPage, TableText, columns
from ragworth.report.wording import count_queries, signed
from ragworth.results import Results
from ragworth.scoring import passage_tokens, score_to_sizes
from ragworth.stats.pooled import pooled_correlations
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import ContextLists, contexts_from_lists, lists_by_system, no_queries_error
from ragworth.studies.contract import Case, Published, Study, parse_names, parse_numbers
from ragworth.studies.coverage_by_system import THRESHOLDS, CoverageBySystem
from ragworth.studies.rated_coverage import HUMAN, answer_coverage, coverage_by_people, human_texts, with_human_ratings
from ragworth.workspace.config import AnswerConfig, TaskConfig, Workspace

BOUND = "(required)"
"""The system that shows the required subset."""
NO_SYSTEMS = pl.DataFrame(schema={"system": pl.String})
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
    length: int = option(256, "maximum tokens of an answer", low=1)
    human: str | None = option(
        None, "what people wrote: a file with a text for each query, or answers for accepted ones"
    )
    human_ratings: str | None = option(None, "file with ratings of what people wrote, so that no model rates it")
    people: str | None = option(None, "file with people's coverage of the answers: system, query, judge, value")

    kind: ClassVar[str] = "long-form"
    title: ClassVar[str] = "whether the coverage of a context predicts that of a long answer"
    question: ClassVar[str] = "Long-form: does the coverage of a context predict the coverage of the answer?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            "Ju et al., Controlled Retrieval-augmented Context Evaluation for Long-form RAG, Tables 1 to 3, Figure 4",
            {"eta": 3.0, "sizes": "required,10,20", "tie": True},
            differences=(
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
        answers = replace(space.answers or AnswerConfig(), everything=True, without=True)
        grades = {"coverage": space.grades.get("coverage", TaskConfig())}
        judgments = {kind: each for kind, each in space.judgments.items() if kind == "ratings"}
        how = {"prompt": self.prompt, "length": self.length, "tie_length": self.tie, "eta": self.eta}
        made = replace(space, judgments=judgments, answers=answers, grades=grades)
        # Rated from the lowest threshold on, so every η uses the same ratings.
        return made.with_settings({"answers": how, "coverage": {"eta": THRESHOLDS[0]}})

    def run(self, bench: Bench) -> Case:
        found = bench.retrieve()
        texts = human_texts(bench.collection.answers, self.human) if self.human else {}
        ratings = self._ratings(bench, found)
        subquestions = set(bench.collection.subquestions["query"])
        subsets, left = subsets_of_queries(ratings, self.eta, bench.material.step_context.ids, subquestions)
        if not subsets:
            raise no_queries_error(left, "give sub-questions and ratings of them")
        shown = self._contexts(found, subsets, bench.space.k)
        parts = {query: len(names) for query, names in answerable(ratings, THRESHOLDS[0]).items()}
        self._answer(bench, shown, parts)
        mine = [(HUMAN, query, 0, texts[query], None, OK, self.human) for query in subsets if query in texts]
        if mine and not self.human_ratings:
            bench.grade(Answers(pl.DataFrame(mine, schema=Answers.schema, orient="row")), "human")
        case = bench.case(contexts_from_lists(shown), _design(self._arms(found.systems)), (), left)
        if not bench.metrics:
            known = case.results.judgments
            names = BY_RATINGS + (BY_LABELS if known is not None and known.of("relevance").height else ())
            ends = [f"@{size}" for size in self.named_sizes] or [""]
            wanted = [at_threshold(name + end, self.eta) for end in ends for name in names]
            case = case.with_tables(scores=Scores.trusted(score_contexts(case.results, wanted)))
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
            subsets = {query: some.get(query, []) for query in bench.material.step_context.ids if query in parts}
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
            "thresholds": TableText(
                "Coverage by the lowest rating that counts",
                "mean and standard deviation over systems; contexts and answers of the same queries",
            ),
            "people": TableText(
                "Coverage of the answers by people and by the model",
                "Spearman ρ over all answers that both judged, with intervals over queries",
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
            part.write(page)
        page.say(case, first.bounds_sentence())
        thresholds = page.add("thresholds", case, list(first.sweep()))
        known = thresholds.drop_nulls("τ-b").select("τ-b", "η").rows()
        if len(known) > 1:
            said = [f"{signed(tau)} at η = {eta:g}" for tau, eta in known]
            page.say(case, f"by Cov, τ-b is {format_list(said, 5)}.")
        lost = len(first.queries) - len(first.common)
        page.leave_out(case, {"some system has no value of its contexts or answers": lost})
        assert results.ratings is not None
        self._compare_with_people(case, first, page)
        tables = {"passages": results.ratings.frame, "answers": results.said.get("coverage", NO_SYSTEMS)}
        for what, table in tables.items():
            if "source" in table.columns and table["source"].str.contains("answerability").any():
                page.note(case, f"{what}: {RATED_ANSWERABILITY_NOTE}")
        if (lengths := passage_tokens(results.collection)) is not None:
            page.note(case, f"tokens of Den and of densities are counted as {lengths.counter}")
        first.draw(page, thresholds)

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
        scores = dict(sorted(scores.items(), key=lambda item: not item[0].startswith(BY_RATINGS)))
        if not case.is_designed:
            design = _design({name: (name, "") for name in results.contexts.systems if name not in ROLES})
        answers = answer_coverage(results, self.eta)
        there = {system for each in (rows, *answers) for system in each["system"]}
        bounds = {arm: role for arm, role, *_ in design.rows() if role != "system" and arm in there}
        for size in design.filter(pl.col("role") == "system")["size"].unique(maintain_order=True):
            mine = design.filter((pl.col("role") == "system") & (pl.col("size") == size))
            systems = {arm: name for arm, name in mine.select("system", "name").iter_rows() if arm in there}
            cut = {name.removesuffix(f"@{size}"): part for name, part in scores.items() if name.endswith(f"@{size}")}
            measures = cut if size and cut else scores
            yield CoverageBySystem(case, self.eta, self.plan, size, systems, bounds, measures, answers)
            bounds = {}

    def _compare_with_people(self, case: Case, first: CoverageBySystem, page: StudyPage) -> None:
        """Coverage of the same answers by people and by the model: a line for each, and their correlation."""
        others = coverage_by_people(case.results, self.eta, self.people, list(first.roles))
        model = first.answers.coverage.rename({"value": "model"})
        both = others.join(model, on=["system", "query"], maintain_order="left")
        for (judge,), part in both.group_by("judge", maintain_order=True):
            x, y = part["model"].to_numpy()[:, None], part["value"].to_numpy()
            of = part["query"].to_numpy()
            (one,) = pooled_correlations(x, y, of, **self.plan.options, clusters=case.clusters(part["query"]))
            page.add("people", case, [{"judge": judge} | columns(one, "Spearman ρ", "why", unit="answers")])
        for number, ((arm,), part) in enumerate(both.group_by("system", maintain_order=True), 1):
            mine = part.select(line=pl.lit("model"), place="query", value="model").unique()
            lines = pl.concat([mine, part.select(line="judge", place="query", value="value")]).sort("place")
            spec = curve_chart(lines, "query", "coverage", band=False)
            title = f"Coverage by people and by the model: {arm}"
            page.draw(f"people-{number}", title, "Of the answer to each query.", spec, case)


def _design(arms: Mapping[str, tuple[str, str]]) -> pl.DataFrame:
    """What each context is: of which system and size, or a bound."""
    rows = [(arm, "system", *of) for arm, of in arms.items()] + [(each, ROLES[each], each, "") for each in ROLES]
    return pl.DataFrame(rows, schema=["system", "role", "name", "size"], orient="row")


def score_contexts(results: Results, names: list[str]) -> pl.DataFrame:
    """Scores of contexts, some of them cut at the size of each query's required subset."""
    sizes = dict(results.contexts.frame.filter(pl.col("system") == BOUND).group_by("query").len().iter_rows())
    more: dict[str, Any] = {"ratings": results.ratings, "tokens": passage_tokens(results.collection), "complete": False}
    return score_to_sizes(results.contexts, results.judgments, names, sizes, TIED, **more)
