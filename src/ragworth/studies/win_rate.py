"""``win-rate``: is the model surer with the passage that has the answer than with one that only looks like it?

For each query a relevant passage is compared with the highest-ranked passage without the answer, and with a random one,
each shown alone. A useful confidence is higher with the relevant passage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl

from ragworth.core.errors import InputError
from ragworth.data import OK
from ragworth.judging.annotators.confidence import MEASURES
from ragworth.judging.contract import option
from ragworth.report.study.charts import dot_chart
from ragworth.report.study.page import StudyPage, TableText, estimate_rows
from ragworth.report.wording import count_queries, p_words, percent_interval
from ragworth.results import Results
from ragworth.stats.auc import pair_wins, win_rate
from ragworth.stats.estimate import Estimate
from ragworth.stats.paired import difference
from ragworth.studies import confidences
from ragworth.studies.bench import Bench
from ragworth.studies.candidates import (
    SPARE,
    Candidates,
    DrawnContexts,
    Unusable,
    candidates_of_results,
    retriever_of,
)
from ragworth.studies.cases import matrix
from ragworth.studies.confidences import KIND, RELEVANCE
from ragworth.studies.contract import Case, Published, Study
from ragworth.studies.contrast import SHARE
from ragworth.studies.passage_scores import with_scores
from ragworth.workspace.config import Workspace

GOLD, DISTRACTOR, RANDOM = "gold", "distractor", "random"
NOUNS = {DISTRACTOR: "a distractor", RANDOM: "a random passage"}
NAMES = {**{name: name for name in MEASURES}, "abstention": "1 − abstention", "likelihood": "likelihood"}
"""Judgments that say how sure the model is with a passage, and what they are called."""
KEYED = {"KeyPPL": "PPL", "KeyEntropy": "Entropy"}
"""Measures over the key tokens, with those over all tokens."""
REMEDY = "retrieve more passages, or give accepted answers and more labels"


@dataclass(frozen=True)
class WinRate(Study):
    """How often the model is surer with a relevant passage than with a distractor or a random passage.

    The relevant passage is the one with the highest label; the distractor is the first passage found that isn't
    relevant and contains no accepted answer; the random one was neither found nor labelled. Each is a context of its
    own. Abstention (1 − p) and likelihood take part if the workspace has them judged. Queries without accepted answers
    or a relevant passage are left out and counted.
    """

    depth: int = option(25, "passages from the top among which the distractor is looked for", low=1)
    retriever: str | None = option(None, "system whose passages are used; by default the first that isn't a control")
    ties: str = option("half", "what equal confidence counts as: half a win, or a loss", choices=("half", "lose"))

    kind: ClassVar[str] = "win-rate"
    title: ClassVar[str] = "whether the model is surer with the passage that has the answer"
    question: ClassVar[str] = "Win rate: is the model surer with the passage that has the answer?"
    published: ClassVar[Mapping[str, Published]] = {
        "paper": Published(
            f"{confidences.PAPER}, Tables 1 and 9",
            {"ties": "lose"},
            tasks={KIND: confidences.TASKS[KIND]},
            differences=("the paper doesn't say how deep it looks for the distractor; here, to --depth passages",),
        )
    }
    design_column: ClassVar[str] = "skipped"
    why_ours: ClassVar[str] = "Ties count half, so that chance is 50 %; the paper counts only wins."
    judges: ClassVar[tuple[str, ...]] = (KIND,)
    answers: ClassVar[bool] = False
    needs_answers: ClassVar[bool] = True

    def fit(self, space: Workspace) -> Workspace:
        return confidences.with_confidence(space, each=True)

    def run(self, bench: Bench) -> Case:
        pool = bench.pool(self.depth, self.retriever)
        drawn = choose_passages(pool, [DISTRACTOR, RANDOM])
        more = [kind for kind in ("abstention", "likelihood") if kind in bench.space.judgments]
        bench.judge([KIND, *more], drawn.contexts)
        return bench.case(bench.with_scores(drawn.contexts, self.retriever), _design(pool, drawn), (), drawn.left)

    def take(self, case: Case) -> Case:
        """Of an evaluation: the passages of one system that were judged."""
        if case.is_designed:
            return super().take(case)
        results = case.results
        judged = [part.select("query", "passage") for name, part in _values(results).items() if name != RELEVANCE]
        if not judged:
            remedy = "name the workspace; or have passages judged: confidence = { each = true } under [judgments]"
            expected = f"judgments of {', '.join(NAMES)}"
            raise InputError(f"{case.name}: no passage has a confidence", expected=expected, remedy=remedy)
        system = retriever_of(results, self.retriever)
        pool = candidates_of_results(results, system, pl.concat(judged))
        drawn = choose_passages(pool, [DISTRACTOR])
        contexts = with_scores(drawn.contexts, results.contexts, system)
        made = replace(case, left_out=dict(drawn.left), design=_design(pool, drawn))
        return made.with_tables(contexts=contexts)

    def tables(self) -> Mapping[str, TableText]:
        note = (
            f"ties count {'half' if self.ties == 'half' else 'as losses'}; p by a sign test over queries without ties, "
            "p_holm corrected by Holm for the measures of confidence of a case; missing: queries in which one of the "
            "two passages has no value; key gain: win rate minus that of the same measure over all tokens, p_gain by a "
            f"sign test over queries; {RELEVANCE}: the retriever's own score"
        )
        return {"win-rate": TableText("How often each confidence is higher with the relevant passage", note)}

    def examine(self, case: Case, page: StudyPage) -> None:
        frame, values, strict = case.results.contexts.frame, _values(case.results), self.ties == "lose"
        queries = {n: frame.filter(pl.col("system") == n)["query"].to_list() for n in NOUNS}
        against = [n for n in NOUNS if queries[n]]
        sides = {(name, n): matrix(part, [GOLD, n], queries[n]) for name, part in values.items() for n in against}
        turns = {n: case.clusters(queries[n]) for n in against}
        how = {"strict": strict, **self.plan.options}
        found = {(name, n): win_rate(both, **how, clusters=turns[n]) for (name, n), both in sides.items()}
        found = confidences.correct_rivals(found)
        wins = {at: pair_wins(both, strict=strict) for at, both in sides.items()}
        words, main = [], against[0]
        rows = estimate_rows(("confidence", "against"), found, "win rate", "p", "p_holm", "counts", "missing")
        for row, (name, n) in zip(rows, found, strict=True):
            if KEYED.get(name) in values:
                gain = difference(wins[name, n], wins[KEYED[name], n], "sign", self.plan, SHARE, turns[n])
                row |= {"key gain": gain.value, "gain low": gain.low, "gain high": gain.high, "p_gain": gain.p}
                words += [_gain_words(name, gain)] if n == main and gain.value is not None else []
        page.add("win-rate", case, rows)
        sizes = [f"{NOUNS[n]} ({count_queries(len(queries[n]))})" for n in against]
        page.lead(case, f"a relevant passage of each query against {' and '.join(sizes)}, each shown alone.")
        mine = {name: one for (name, n), one in found.items() if n == main}
        counts, alpha = ("wins", "losses"), self.plan.alpha
        if (best := confidences.best_measure(mine, counts, alpha, "recognise", "the relevant passage")) is None:
            page.say(case, "no confidence has a value for both passages of a query.")
        else:
            parts = " and ".join(f"than with {NOUNS[n]} {_share(found[best[1], n])}" for n in against)
            base = f"; the retriever's score {_share(mine[RELEVANCE])}" if RELEVANCE in mine else ""
            page.say(case, f"{best[0]}: higher with it {parts}{base}.")
        page.say(case, f"over {NOUNS[main]}, {'; '.join(words)}." if words else "")
        page.note(case, confidences.skipped_words(case))

    def finish(self, page: StudyPage) -> None:
        over = pl.format("over {}", pl.col("against").replace_strict(NOUNS, return_dtype=pl.String))
        group = (pl.format("{}: {}", "case", over) if page.several else over).alias("group")
        spec = dot_chart(page.dots("win-rate", "confidence", "win rate", group), "win rate")
        ties = "ties count half; 0.5 is chance" if self.ties == "half" else "ties count as losses"
        caption = f"Share of the queries, with {self.level:.0%} intervals; {ties}."
        page.draw("win-rate", "How often the model is surer with the relevant passage", caption, spec)


def choose_passages(pool: Candidates, against: Sequence[str]) -> DrawnContexts:
    """The relevant passage of each query and those to compare it with, each as a context."""
    left: Counter[str] = Counter()

    def build(query: str) -> dict[str, list[str]]:
        made = {GOLD: [pool.gold(query)], DISTRACTOR: pool.without_answer(DISTRACTOR, query, pool.others(query), 1)}
        if RANDOM in against:
            made[RANDOM] = pool.random(RANDOM, query, 1, pool.rng("win-rate", query), SPARE)
        if not any(made[name] for name in against):
            raise Unusable("nothing to compare the relevant passage with")
        left.update(f"not compared with {NOUNS[name]}: there is none" for name in against if not made[name])
        return {name: some for name, some in made.items() if some}

    drawn = pool.draw([GOLD, *against], build, REMEDY, left)
    return drawn._replace(shown={name: rows for name, rows in drawn.shown.items() if rows})


def _design(pool: Candidates, drawn: DrawnContexts) -> pl.DataFrame:
    return pl.DataFrame({"system": list(drawn.shown), "skipped": [pool.held[name] for name in drawn.shown]})


def _values(results: Results) -> dict[str, pl.DataFrame]:
    """By name each confidence in the passages shown, higher is surer; and the retriever's scores."""
    shown, made = results.contexts.frame, {}
    if results.judgments is not None:
        good = results.judgments.frame.filter(pl.col("status") == OK).select("query", "passage", "aspect", "value")
        for aspect, name in NAMES.items():
            value = (1 - pl.col("value") if aspect == "abstention" else pl.col("value")).alias("value")
            made[name] = shown.join(good.filter(aspect=aspect).with_columns(value), on=["query", "passage"])
    made[RELEVANCE] = shown.with_columns(value=pl.col("score")).drop_nulls("value")
    return {name: part for name, part in made.items() if part.height}


def _share(one: Estimate) -> str:
    if one.value is None:
        return f"in no query ({one.reason})"
    span = f" {percent_interval(one.interval)}" if one.interval is not None else ""
    p = p_words(one.p) if one.p_holm is None else f"{p_words(one.p_holm)} after Holm"
    return f"in {100 * one.value:.1f} %{span} of {count_queries(one.n)} ({p})"


def _gain_words(name: str, gain: Estimate) -> str:
    value = 100 * (gain.value or 0.0)
    how = f"{abs(value):.1f} points {'more' if value > 0 else 'less'} often than" if value else "as often as"
    return f"{name} wins {how} {KEYED[name]} ({p_words(gain.p)})"
