"""Why a context did not do what it should: findings about each (system, query), out of the tables alone.

A finding is there only where what it needs is known. What cannot be had from the tables at hand is told in
:attr:`Diagnosis.absent`, and every count says out of how many contexts that could be examined.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from ragworth.errors import counted, listed, quoted
from ragworth.metrics.derived import HARD, WEAK, utilities
from ragworth.tables import OK, Contexts, Judgments, Outcomes, Ratings

ETA = 3.0
"""Lowest rating that counts as an answer to a sub-question."""

FINDINGS = {
    "nothing-relevant": "nothing relevant retrieved",
    "misled": "misled by a distractor",
    "unused": "relevant, but unused by the model",
    "unsupported": "correct without support",
    "incomplete": "incomplete",
    "redundant": "redundant",
    "unexplained": "not correct, and nothing says why",
    "fine": "fine",
}
"""Every finding with its name in words, the most telling first."""

KINDS = ("helpful", "harmless", "distracting", "misleading")
"""What a passage does to the model, by its utility u: u ≥ 0.2; |u| < 0.2; −0.8 ≤ u ≤ −0.2; u < −0.8."""


class Diagnosis(NamedTuple):
    """What was found.

    Attributes
    ----------
    frame: system, query, finding, detail; several rows where several things are wrong.
    counts: system, finding, n (contexts with it), of (contexts that could be examined for it).
    absent: findings that the tables cannot give, each with the reason.
    """

    frame: pl.DataFrame
    counts: pl.DataFrame
    absent: Mapping[str, str]


class Shown(NamedTuple):
    """One passage of a context; None where it is not known."""

    passage: str
    rank: int
    relevant: bool | None
    utility: float | None

    @property
    def hard(self) -> bool | None:
        """Whether it is a hard distractor."""
        if self.relevant:
            return False
        return None if self.utility is None else kind_of(self.utility) == "misleading"


def kind_of(utility: float) -> str:
    """One of `KINDS`."""
    u = round(utility, 12)
    if u >= WEAK:
        return "helpful"
    return "harmless" if u > -WEAK else "misleading" if u < -HARD else "distracting"


def grade_of(value: float) -> str:
    """The word for a grade; for the mean of several, the word whose value is nearest (the better one of two)."""
    if value >= 0.25:
        return "correct" if value >= 0.75 else "partially-correct"
    return "abstained" if value >= -0.5 else "wrong"


@dataclass(frozen=True)
class Facts:
    """The tables as look-ups."""

    shown: Mapping[tuple[str, str], Sequence[Shown]]
    judged: frozenset[str]
    """Queries of which it is known what is relevant."""
    grades: Mapping[tuple[str, str], str]
    ratings: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    """By query and passage, the rating of each sub-question; None where it failed."""
    words: Mapping[str, str]
    """Texts of passages without case and punctuation."""
    questions: Mapping[tuple[str, str], str]
    """Texts of sub-questions, by query and id."""
    eta: float

    def answered(self, query: str, passage: str) -> set[str]:
        """Sub-questions that a passage answers."""
        rated = self.ratings.get(query, {}).get(passage, {})
        return {name for name, value in rated.items() if value is not None and value >= self.eta}


def facts(
    contexts: Contexts,
    *,
    judgments: Judgments | None = None,
    ratings: Ratings | None = None,
    outcomes: Outcomes | None = None,
    passages: pl.DataFrame | None = None,
    subquestions: pl.DataFrame | None = None,
    rel: float = 1.0,
    eta: float = ETA,
) -> Facts:
    """What is known of each context. Every query of any system counts for each of them."""
    rated: dict[str, dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    if ratings is not None:
        for query, passage, name, value in ratings.frame.select("query", "passage", "subquestion", "value").iter_rows():
            rated[query][passage][name] = value
    relevant, judged = _relevance(judgments, rated, rel, eta)
    utility = _utility(judgments, rel)
    shown: dict[tuple[str, str], list[Shown]] = {}
    queries = [*contexts.frame["query"].unique(maintain_order=True), *sorted({query for _, query in contexts.empty})]
    for system in contexts.systems:
        shown |= {(system, query): [] for query in dict.fromkeys(queries)}
    for system, query, rank, passage in contexts.frame.select("system", "query", "rank", "passage").iter_rows():
        key = (query, passage)
        known = relevant.get(key, False) if query in judged else None
        shown[system, query].append(Shown(passage, rank, known, utility.get(key) if query in judged else None))
    grades = {}
    if outcomes is not None:
        good = outcomes.frame.filter((pl.col("aspect") == "grade") & (pl.col("status") == OK))
        grades = {(s, q): grade_of(value) for s, q, value in good.select("system", "query", "value").iter_rows()}
    texts = passages.select("passage", "text").iter_rows() if passages is not None else ()
    words = {passage: " ".join(re.findall(r"\w+", text.casefold())) for passage, text in texts}
    named = subquestions.select("query", "subquestion", "text").iter_rows() if subquestions is not None else ()
    questions = {(query, name): text for query, name, text in named}
    return Facts(shown, judged, grades, rated, words, questions, eta)


def _relevance(
    judgments: Judgments | None, rated: Mapping[str, Mapping[str, Mapping[str, float | None]]], rel: float, eta: float
) -> tuple[dict[tuple[str, str], bool | None], frozenset[str]]:
    """Which passages are relevant, and for which queries that is known: by labels, else by ratings."""
    relevant: dict[tuple[str, str], bool | None] = {}
    if judgments is not None:
        for query, passage, value in judgments.of("relevance").select("query", "passage", "value").iter_rows():
            relevant[query, passage] = None if value is None else value >= rel
    labelled = {query for query, _ in relevant}
    for query, passages in rated.items():
        if query in labelled:
            continue
        for passage, values in passages.items():
            best = any(value is not None and value >= eta for value in values.values())
            relevant[query, passage] = best or (None if None in values.values() else False)
    return relevant, frozenset(query for query, _ in relevant)


def _utility(judgments: Judgments | None, rel: float) -> dict[tuple[str, str], float]:
    if judgments is None or not judgments.of("relevance").height or not judgments.of("abstention").height:
        return {}
    known = utilities(judgments, rel).filter(pl.col("status") == OK)
    return {(query, passage): u for query, passage, u in known.select("query", "passage", "utility").iter_rows()}


class Found(NamedTuple):
    """A finding that holds (detail is a text, maybe empty) or does not (detail is None)."""

    finding: str
    detail: str | None


def diagnose(known: Facts) -> Diagnosis:
    """Look at every context."""
    rows: list[tuple[str, str, str, str]] = []
    counts: Counter[tuple[str, str]] = Counter()
    examined: Counter[tuple[str, str]] = Counter()
    for (system, query), passages in known.shown.items():
        found = list(_examined(known, system, query, passages))
        found += _rest(found, known.grades.get((system, query)))
        examined.update((system, each.finding) for each in found)
        for each in found:
            if each.detail is not None:
                counts[system, each.finding] += 1
                rows.append((system, query, each.finding, each.detail))
    systems = list(dict.fromkeys(system for system, _ in known.shown))
    table = [(s, f, counts[s, f], examined[s, f]) for s in systems for f in FINDINGS if examined[s, f]]
    texts = dict.fromkeys(("system", "query", "finding", "detail"), pl.String)
    count_schema = {"system": pl.String, "finding": pl.String, "n": pl.Int64, "of": pl.Int64}
    return Diagnosis(
        pl.DataFrame(rows, schema=texts, orient="row"),
        pl.DataFrame(table, schema=count_schema, orient="row"),
        _absent(known, {finding for _, finding in examined}),
    )


def _examined(known: Facts, system: str, query: str, passages: Sequence[Shown]) -> Iterator[Found]:
    """Every finding that can be examined in one context."""
    grade = known.grades.get((system, query))
    relevant = [each for each in passages if each.relevant]
    hard = [each for each in passages if each.hard]
    sure = bool(relevant) or (query in known.judged and all(each.relevant is not None for each in passages))
    certain = bool(hard) or (query in known.judged and all(each.hard is not None for each in passages))
    if sure:
        yield Found("nothing-relevant", None if relevant else _nothing(passages, grade))
    if grade is not None and sure:
        right = grade in ("correct", "partially-correct")
        words = f"correct, though {_nothing(passages, None)}"
        yield Found("unsupported", words if right and not relevant else None)
    if grade is not None and certain:
        yield Found("misled", _misled(hard) if grade == "wrong" and hard else None)
    if grade is not None and sure and (grade != "wrong" or certain):
        unused = relevant and (grade == "abstained" or (grade == "wrong" and not hard))
        verb = "declined" if grade == "abstained" else "answered wrongly"
        words = f"{counted(len(relevant), 'relevant passage')} ({_ranks(relevant)}), and the model {verb}"
        yield Found("unused", words if unused else None)
    yield from _coverage(known, query, passages)


def _nothing(passages: Sequence[Shown], grade: str | None) -> str:
    number = len(passages)
    none = f"none of the {number} passages is relevant" if number > 1 else "the only passage is not relevant"
    words = none if number else "nothing was retrieved"
    return f"{words}; the model rightly declined" if grade == "abstained" else words


def _misled(hard: Sequence[Shown]) -> str:
    worst = min(hard, key=lambda each: each.utility or 0.0)
    return (
        f"{counted(len(hard), 'hard distractor')} ({_ranks(hard)}), the worst {quoted(worst.passage, 40)} "
        f"with a distracting effect of {-(worst.utility or 0.0):.2f}"
    )


def _ranks(passages: Sequence[Shown]) -> str:
    return f"rank{'s' if len(passages) > 1 else ''} {listed([str(each.rank) for each in passages], 8)}"


def _coverage(known: Facts, query: str, passages: Sequence[Shown]) -> Iterator[Found]:
    """What is missing from a context, and what is there twice."""
    rated = known.ratings.get(query)
    if rated is None:
        if known.words and passages:
            yield Found("redundant", _repeated(known, passages))
        return
    answered: set[str] = set()
    idle: list[Shown] = []
    for each in passages:
        mine = known.answered(query, each.passage)
        if mine and mine <= answered:
            idle.append(each)
        answered |= mine
    if passages:
        verb = "answers" if len(idle) == 1 else "answer"
        words = f"{len(idle)} of {counted(len(passages), 'passage')} {verb} nothing new ({_ranks(idle)})"
        yield Found("redundant", words if idle else None)
    names = list(dict.fromkeys(name for values in rated.values() for name in values))
    can = [name for name in names if any(name in known.answered(query, passage) for passage in rated)]
    unsure = any(
        rated.get(each.passage, {}).get(name, 0.0) is None
        for each in passages
        for name in names
        if name not in answered
    )
    if can and not unsure:
        lacking = [name for name in can if name not in answered]
        few = listed([quoted(known.questions.get((query, name), name), 60) for name in lacking], 6)
        words = f"{len(lacking)} of {counted(len(can), 'sub-question')} without an answer: {few}"
        yield Found("incomplete", words if lacking else None)


def _repeated(known: Facts, passages: Sequence[Shown]) -> str | None:
    """Passages that say word for word what an earlier one says."""
    first: dict[str, int] = {}
    again = []
    for each in passages:
        words = known.words.get(each.passage)
        if words and words in first:
            again.append(f"rank {each.rank} repeats rank {first[words]}")
        elif words:
            first[words] = each.rank
    return listed(again, 4) if again else None


def _rest(found: Sequence[Found], grade: str | None) -> list[Found]:
    """What is left when nothing was found: all is well, or nobody can say what is not."""
    holds = any(each.detail is not None for each in found)
    rest = []
    if grade is not None:
        failed = grade in ("abstained", "wrong") and not any(
            each.detail is not None and each.finding in ("nothing-relevant", "misled", "unused", "incomplete")
            for each in found
        )
        rest.append(Found("unexplained", f"the answer is {grade}" if failed else None))
        holds = holds or failed
    if found or grade is not None:
        rest.append(Found("fine", None if holds else ""))
    return rest


def _absent(known: Facts, examined: set[str]) -> dict[str, str]:
    """Findings that nothing could be examined for, with what is lacking."""
    lacking = {
        "relevance": not known.judged,
        "grades": not known.grades,
        "utility": not any(each.utility is not None for passages in known.shown.values() for each in passages),
        "ratings": not known.ratings,
    }
    needs = {
        "nothing-relevant": ("relevance",),
        "misled": ("grades", "relevance", "utility"),
        "unused": ("grades", "relevance"),
        "unsupported": ("grades", "relevance"),
        "incomplete": ("ratings",),
        "redundant": (),
        "unexplained": ("grades",),
        "fine": ("relevance",),
    }
    words = {
        "relevance": "relevance judgments",
        "grades": "graded answers",
        "utility": "abstention probabilities",
        "ratings": "ratings of sub-questions",
    }
    absent = {}
    for finding in FINDINGS:
        if finding not in examined:
            why = [words[need] for need in needs[finding] if lacking[need]]
            absent[finding] = f"there are no {' and no '.join(why)}" if why else "no context has all that it needs"
    if "redundant" in absent and not known.words:
        absent["redundant"] = "there are no ratings of sub-questions and no texts of passages"
    return absent
