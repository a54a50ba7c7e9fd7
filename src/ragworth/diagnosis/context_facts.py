"""What is known of each context: its passages with their worth, the grades of its answers, ratings and texts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import polars as pl

from ragworth.data import OK, Contexts, Judgments, Outcomes, Ratings
from ragworth.formats.grades import THREE_WAY
from ragworth.metrics.utility import HARD, WEAK, reader_judged, utilities

KEYS = ["query", "passage"]


class Worth(NamedTuple):
    """The rows of contexts with what is known of them.

    Attributes
    ----------
    rows: system, query, rank, passage, relevant, utility; null where it is not known; and own: whether the reader
        judged its relevance itself, so that it can't be known whether the passage misleads.
    judged: queries of which it is known what is relevant.
    """

    rows: pl.DataFrame
    judged: pl.Series


def worth(contexts: Contexts, judgments: Judgments | None, ratings: Ratings | None, rel: float, eta: float) -> Worth:
    """Relevance by labels, for queries without labels by ratings; a passage without either is not relevant.

    Nothing is known of queries without labels and ratings.
    """
    known = _relevance(judgments, ratings, rel, eta)
    judged = known["query"].unique()
    rows = contexts.frame.select("system", "query", "rank", "passage")
    rows = rows.join(known, on=KEYS, how="left", maintain_order="left")
    rows = rows.join(_utility(judgments, rel), on=KEYS, how="left", maintain_order="left")
    own = reader_judged(judgments).unique().with_columns(own=pl.lit(True))
    rows = rows.join(own, on=KEYS, how="left", maintain_order="left").with_columns(pl.col("own").fill_null(False))
    in_judged = rows.select(pl.col("query").is_in(judged.implode())).to_series()
    unlisted = pl.col("listed").is_null()
    rows = rows.with_columns(
        relevant=pl.when(in_judged).then(pl.when(unlisted).then(False).otherwise(pl.col("relevant"))),
        utility=pl.when(in_judged).then(pl.col("utility")),
    )
    return Worth(rows.drop("listed"), judged)


def _relevance(judgments: Judgments | None, ratings: Ratings | None, rel: float, eta: float) -> pl.DataFrame:
    """query, passage, relevant (null where the judgment failed), listed (true)."""
    schema = {"query": pl.String, "passage": pl.String, "relevant": pl.Boolean}
    found = [pl.DataFrame(schema=schema)]
    if judgments is not None:
        found.append(judgments.of("relevance").select(*KEYS, relevant=pl.col("value") >= rel))
    if ratings is not None:
        others = ratings.frame.join(pl.concat(found), on="query", how="anti")
        best, failed = (pl.col("value") >= eta).any(), pl.col("value").is_null().any()
        found.append(
            others.group_by(KEYS).agg(relevant=pl.when(best).then(True).when(failed).then(None).otherwise(False))
        )
    return pl.concat(found).with_columns(listed=pl.lit(True))


def _utility(judgments: Judgments | None, rel: float) -> pl.DataFrame:
    if judgments is None or not judgments.of("relevance").height or not judgments.of("abstention").height:
        return pl.DataFrame(schema={"query": pl.String, "passage": pl.String, "utility": pl.Float64})
    return utilities(judgments, rel).filter(pl.col("status") == OK).select(*KEYS, "utility")


ETA = 3.0
"""Lowest rating that counts as an answer to a sub-question."""

PASSAGE_KINDS = ("helpful", "harmless", "distracting", "misleading")
"""What a passage does to the model, by its utility u: u ≥ 0.2; |u| < 0.2; −0.8 ≤ u ≤ −0.2; u < −0.8."""

WORDS = re.compile(r"\w+")
SPACES = {code: " " for code in range(128) if not WORDS.match(chr(code))}
"""Blanks for the ASCII characters that are not part of words."""


class PassageFacts(NamedTuple):
    """One passage of a context; None where it is not known."""

    passage: str
    rank: int
    relevant: bool | None
    utility: float | None
    own: bool = False
    """Whether the reader judged its relevance itself."""

    @property
    def hard(self) -> bool | None:
        """Whether it is a hard distractor."""
        if self.relevant and not self.own:
            return False
        return None if self.utility is None else passage_kind(self.utility) == "misleading"


def passage_kind(utility: float) -> str:
    """One of `KINDS`."""
    u = round(utility, 12)
    if u >= WEAK:
        return "helpful"
    return "harmless" if u > -WEAK else "misleading" if u < -HARD else "distracting"


def nearest_grade(value: float) -> str:
    """The word for a grade; for the mean of several, the word whose value is nearest (the better one of two)."""
    if value >= 0.25:
        return "correct" if value >= 0.75 else "partially-correct"
    return "abstained" if value >= -0.5 else "wrong"


@dataclass(frozen=True)
class ContextFacts:
    """The tables as look-ups."""

    shown: Mapping[tuple[str, str], Sequence[PassageFacts]]
    judged: frozenset[str]
    """Queries of which it is known what is relevant."""
    answers: Mapping[tuple[str, str], Sequence[str | None]]
    """The grade of every single answer, in words; None where it could not be graded."""
    grades: Mapping[tuple[str, str], str]
    """The grade of the answers together: the most frequent one."""
    correct: Mapping[tuple[str, str], bool]
    """Whether the answers are correct, where an outcome of that name says so."""
    ungraded: str
    """Why there are no grades; nothing where there are."""
    ratings: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    """By query and passage, the rating of each sub-question; None where it failed."""
    words: Mapping[str, str]
    """Texts of passages without case and punctuation."""
    questions: Mapping[tuple[str, str], str]
    """Texts of sub-questions, by query and id."""
    eta: float
    reader_judged: bool = False
    """Whether the reader judged the relevance of a passage shown itself, so that it can't be caught being misled."""

    def answered(self, query: str, passage: str) -> Set[str]:
        """Sub-questions that a passage answers."""
        return self._answered.get(query, {}).get(passage, frozenset())

    def unrated(self, query: str, passage: str) -> Set[str]:
        """Sub-questions of which it is not known whether a passage answers them, because the rating failed."""
        return self._unrated.get(query, {}).get(passage, frozenset())

    @cached_property
    def answerable(self) -> Mapping[str, Mapping[str, bool]]:
        """By query, whether some rated passage answers each sub-question."""
        found: dict[str, dict[str, bool]] = {}
        for query, rated in self.ratings.items():
            names = dict.fromkeys(name for values in rated.values() for name in values)
            some = frozenset[str]().union(*self._answered[query].values())
            found[query] = {name: name in some for name in names}
        return found

    @cached_property
    def _answered(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        return self._rated(lambda value: value is not None and value >= self.eta)

    @cached_property
    def _unrated(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        return self._rated(lambda value: value is None)

    def _rated(self, holds: Callable[[float | None], bool]) -> dict[str, dict[str, frozenset[str]]]:
        """By query and passage, the sub-questions whose rating fulfils a condition."""
        return {
            query: {
                passage: frozenset(n for n, value in each.items() if holds(value)) for passage, each in rated.items()
            }
            for query, rated in self.ratings.items()
        }


def gather_facts(
    contexts: Contexts,
    *,
    judgments: Judgments | None = None,
    ratings: Ratings | None = None,
    outcomes: Outcomes | None = None,
    graded: pl.DataFrame | None = None,
    passages: pl.DataFrame | None = None,
    subquestions: pl.DataFrame | None = None,
    rel: float = 1.0,
    eta: float = ETA,
) -> ContextFacts:
    """What is known of each context, also of empty ones. A query that a system was not asked has no context.

    ``graded``: what graders said, with the value of ``each`` answer where a query has several; without it their mean
    counts as one answer.
    """
    rated: dict[str, dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    if ratings is not None:
        for query, passage, name, value in ratings.frame.select("query", "passage", "subquestion", "value").iter_rows():
            rated[query][passage][name] = value
    known = worth(contexts, judgments, ratings, rel, eta)
    pairs = {*contexts.empty, *known.rows.select("system", "query").unique().iter_rows()}
    queries = all_queries(contexts)
    shown: dict[tuple[str, str], list[PassageFacts]] = {
        (system, query): [] for system in contexts.systems for query in queries if (system, query) in pairs
    }
    columns = ["system", "query", "passage", "rank", "relevant", "utility", "own"]
    for system, query, *facts in known.rows.select(columns).iter_rows():
        shown[system, query].append(PassageFacts(*facts))
    answers, ungraded = graded_answers(outcomes, graded)
    texts = passages.select("passage", "text").iter_rows() if passages is not None else ()
    words = {passage: plain_words(text) for passage, text in texts}
    named = subquestions.select("query", "subquestion", "text").iter_rows() if subquestions is not None else ()
    questions = {(query, name): text for query, name, text in named}
    judged = frozenset(known.judged)
    own = bool(known.rows["own"].any())
    grades, correct = grades_together(answers), correct_answers(outcomes)
    return ContextFacts(shown, judged, answers, grades, correct, ungraded, rated, words, questions, eta, own)


def all_queries(contexts: Contexts) -> list[str]:
    """Every query of any system: those with passages as they appear, then the others."""
    return list(dict.fromkeys([*contexts.distinct("query"), *sorted({query for _, query in contexts.empty})]))


class AnswerGrades(NamedTuple):
    """Grades of single answers by system and query, or why there are none."""

    answers: dict[tuple[str, str], list[str | None]]
    why: str = ""


def graded_answers(outcomes: Outcomes | None, graded: pl.DataFrame | None) -> AnswerGrades:
    """Every answer that has an outcome called ``grade``."""
    rows = grade_values(outcomes, graded)
    if isinstance(rows, str):
        return AnswerGrades({}, rows)
    return AnswerGrades({(system, query): _words(values) for system, query, values in rows.iter_rows()})


def _words(values: Sequence[float | None]) -> list[str | None]:
    return [None if value is None else nearest_grade(value) for value in values]


def grade_values(outcomes: Outcomes | None, graded: pl.DataFrame | None) -> pl.DataFrame | str:
    """system, query and the values of its answers by the outcome ``grade``, or why there are none."""
    rows = _grade_rows(outcomes)
    if isinstance(rows, str):
        return rows
    keys = ["system", "query", "aspect"]
    values = pl.concat_list("value")
    if graded is not None and {*keys, "each"} <= set(graded.columns):
        rows = rows.join(graded.select(*keys, "each"), on=keys, how="left", maintain_order="left")
        values = pl.when(pl.col("each").list.len() > 0).then(pl.col("each")).otherwise(values)
    return rows.select("system", "query", values=values)


def correct_answers(outcomes: Outcomes | None) -> dict[tuple[str, str], bool]:
    """Whether each answer is correct by the outcome ``correct``, which doesn't tell wrong answers from abstentions."""
    if outcomes is None:
        return {}
    rows = outcomes.frame.filter((pl.col("aspect") == "correct") & pl.col("value").is_not_null())
    if not rows["value"].is_between(0, 1).all():
        return {}
    return {(system, query): value >= 0.5 for system, query, value in rows.select("system", "query", "value").rows()}


def _grade_rows(outcomes: Outcomes | None) -> pl.DataFrame | str:
    """The outcomes called ``grade``, or why there are none."""
    rows = outcomes.frame.filter(pl.col("aspect") == "grade") if outcomes is not None else pl.DataFrame()
    if not rows.height or not (rows["status"] == OK).any():
        told = "no grade tells wrong answers from those that decline"
        return told if correct_answers(outcomes) else "there are no graded answers"
    if not rows["value"].drop_nulls().is_between(-1, 1).all():
        return "outcomes called grade are no grades: they lie outside −1 (wrong) to 1 (correct)"
    return rows


def grades_together(answers: Mapping[tuple[str, str], Sequence[str | None]]) -> dict[tuple[str, str], str]:
    """The grade of the answers together, where any has one."""
    return {pair: word for pair, words in answers.items() if (word := _combined_grade(words)) is not None}


def plain_words(text: str) -> str:
    """A text without case and punctuation."""
    text = text.casefold()
    if not text.isascii():
        return " ".join(WORDS.findall(text))
    text = text.translate(SPACES)  # several times as fast as looking for words
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip()


def _combined_grade(words: Sequence[str | None]) -> str | None:
    """The most frequent of several grades; of equally frequent ones that nearest to their mean, then the worse."""
    if len(words) == 1:
        return words[0]
    known = Counter(word for word in words if word is not None)
    if not known:
        return None
    mean = sum(THREE_WAY[word] * number for word, number in known.items()) / known.total()
    return min(known, key=lambda word: (-known[word], abs(THREE_WAY[word] - mean), THREE_WAY[word]))
