"""Findings about each (system, query), out of the tables alone.

A finding is there only where what it needs is known. What the given tables don't allow is listed in
:attr:`Diagnosis.absent`, and every count says out of how many contexts that could be examined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ragworth.core.errors import format_count, format_list, quote_short
from ragworth.diagnosis.context_facts import ContextFacts, PassageFacts
from ragworth.metrics.utility import READER_REASON

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

CONTRIBUTION_FINDINGS = {
    "misled-by": "wrong, and carried by one passage",
    "redundant-with": "passages that are redundant with each other",
    "unsupported-sentence": "a sentence that the context doesn't support",
    "contradicted-sentence": "a sentence that the context contradicts",
}
"""Findings about single answers, from contributions and support, in words."""


CONTRIBUTION_COLUMNS = dict.fromkeys(("system", "query", "finding", "detail"), pl.String)
CONTRIBUTION_COUNTS = {"system": pl.String, "finding": pl.String, "n": pl.Int64, "of": pl.Int64}


class ContributionDiagnosis(NamedTuple):
    """Findings about single answers; none without contributions and support.

    Attributes
    ----------
    frame: system, query, finding, detail.
    counts: system, finding, n (answers with it), of (answers that could be examined for it).
    """

    frame: pl.DataFrame = pl.DataFrame(schema=CONTRIBUTION_COLUMNS)
    counts: pl.DataFrame = pl.DataFrame(schema=CONTRIBUTION_COUNTS)


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


class ContextFinding(NamedTuple):
    """A finding that holds (detail is a text, maybe empty) or does not (detail is None)."""

    finding: str
    detail: str | None


def diagnose(known: ContextFacts) -> Diagnosis:
    """Look at every context."""
    rows: list[tuple[str, str, str, str]] = []
    counts: Counter[tuple[str, str]] = Counter()
    examined: Counter[tuple[str, str]] = Counter()
    for (system, query), passages in known.shown.items():
        found = list(_examine_context(known, system, query, passages))
        found += _fallback_findings(found, known.grades.get((system, query)), known.correct.get((system, query)))
        for finding, detail in found:
            examined[system, finding] += 1
            if detail is not None:
                counts[system, finding] += 1
                rows.append((system, query, finding, detail))
    columns = ("system", "query", "finding", "detail")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    systems = dict.fromkeys(system for system, _ in known.shown)
    table = [(s, f, counts[s, f], examined[s, f]) for s in systems for f in FINDINGS if examined[s, f]]
    schema = {"system": pl.String, "finding": pl.String, "n": pl.Int64, "of": pl.Int64}
    absent = _unexamined_findings(known, {finding for _, finding in examined})
    return Diagnosis(frame, pl.DataFrame(table, schema=schema, orient="row"), absent)


def _examine_context(
    known: ContextFacts, system: str, query: str, passages: Sequence[PassageFacts]
) -> Iterator[ContextFinding]:
    """Every finding that can be examined in one context."""
    grade = known.grades.get((system, query))
    relevant = [each for each in passages if each.relevant]
    hard = [each for each in passages if each.hard]
    sure = bool(relevant) or (query in known.judged and all(each.relevant is not None for each in passages))
    certain = bool(hard) or (query in known.judged and all(each.hard is not None for each in passages))
    if sure:
        yield ContextFinding("nothing-relevant", None if relevant else _nothing_relevant_detail(passages, grade))
    if grade is not None and sure:
        right = grade in ("correct", "partially-correct")
        words = f"correct, though {_nothing_relevant_detail(passages, None)}"
        yield ContextFinding("unsupported", words if right and not relevant else None)
    if grade is not None and certain:
        yield ContextFinding("misled", _misled_detail(hard) if grade == "wrong" and hard else None)
    if grade is not None and sure and (grade != "wrong" or certain):
        unused = relevant and (grade == "abstained" or (grade == "wrong" and not hard))
        verb = "declined" if grade == "abstained" else "answered wrongly"
        words = f"{format_count(len(relevant), 'relevant passage')} ({_format_ranks(relevant)}), and the model {verb}"
        yield ContextFinding("unused", words if unused else None)
    yield from _coverage_findings(known, query, passages)


def _nothing_relevant_detail(passages: Sequence[PassageFacts], grade: str | None) -> str:
    number = len(passages)
    none = f"none of the {number} passages is relevant" if number > 1 else "the only passage is not relevant"
    words = none if number else "nothing was retrieved"
    return f"{words}; the model rightly declined" if grade == "abstained" else words


def _misled_detail(hard: Sequence[PassageFacts]) -> str:
    worst = min(hard, key=lambda each: each.utility or 0.0)
    return (
        f"{format_count(len(hard), 'hard distractor')} ({_format_ranks(hard)}), the worst "
        f"{quote_short(worst.passage, 40)} "
        f"with a distracting effect of {-(worst.utility or 0.0):.2f}"
    )


def _format_ranks(passages: Sequence[PassageFacts]) -> str:
    return f"rank{'s' if len(passages) > 1 else ''} {format_list([str(each.rank) for each in passages], 8)}"


def _coverage_findings(known: ContextFacts, query: str, passages: Sequence[PassageFacts]) -> Iterator[ContextFinding]:
    """What is missing from a context, and what is there twice."""
    rated = known.ratings.get(query)
    if rated is None:
        if known.words and passages:
            yield ContextFinding("redundant", _duplicates_detail(known, passages))
        return
    yield from _redundancy_findings(known, query, passages)
    answered = set[str]().union(*(known.answered(query, each.passage) for each in passages))
    shown = {each.passage for each in passages}
    names = known.answerable[query]
    can = [name for name, answerable in names.items() if answerable]
    # A rating that failed leaves open whether what is shown answers, or whether something that is not shown would.
    here, elsewhere = (
        set[str]().union(*(known.unrated(query, passage) for passage in rated if (passage in shown) is among))
        for among in (True, False)
    )
    lacking = [name for name in can if name not in answered | here]
    unsure = any(name in (here if name in can else elsewhere) for name in names if name not in answered)
    if can and (lacking or not unsure):
        few = format_list([quote_short(known.questions.get((query, name), name), 60) for name in lacking], 6)
        words = f"{len(lacking)} of {format_count(len(can), 'sub-question')} without an answer: {few}"
        yield ContextFinding("incomplete", words if lacking else None)


def _redundancy_findings(known: ContextFacts, query: str, passages: Sequence[PassageFacts]) -> Iterator[ContextFinding]:
    """Passages that answer nothing that those above them do not; open where a rating that failed decides."""
    answered: set[str] = set()
    perhaps: set[str] = set()
    idle: list[PassageFacts] = []
    unsure = False
    for each in passages:
        mine, failed = known.answered(query, each.passage), known.unrated(query, each.passage)
        if mine and mine | failed <= answered:
            idle.append(each)
        elif mine <= answered | perhaps and (mine | failed) & (answered | perhaps):
            unsure = True
        answered |= mine
        perhaps |= failed
    if passages and (idle or not unsure):
        verb = "answers" if len(idle) == 1 else "answer"
        words = f"{len(idle)} of {format_count(len(passages), 'passage')} {verb} nothing new ({_format_ranks(idle)})"
        yield ContextFinding("redundant", words if idle else None)


def _duplicates_detail(known: ContextFacts, passages: Sequence[PassageFacts]) -> str | None:
    """Passages that say word for word what an earlier one says."""
    first: dict[str, int] = {}
    again = []
    for each in passages:
        words = known.words.get(each.passage)
        if words and words in first:
            again.append(f"rank {each.rank} repeats rank {first[words]}")
        elif words:
            first[words] = each.rank
    return format_list(again, 4) if again else None


def _fallback_findings(
    found: Sequence[ContextFinding], grade: str | None, correct: bool | None
) -> list[ContextFinding]:
    """What is left when nothing was found: all is well, or nobody can say what is not.

    Passages that don't repeat each other say nothing of that.
    """
    holds = any(each.detail is not None for each in found)
    rest = []
    graded = grade is not None or correct is not None
    if graded:
        failed = (grade in ("abstained", "wrong") if grade is not None else not correct) and not any(
            each.detail is not None and each.finding in ("nothing-relevant", "misled", "unused", "incomplete")
            for each in found
        )
        words = "the answer is " + (grade or "not correct")
        rest.append(ContextFinding("unexplained", words if failed else None))
        holds = holds or failed
    if graded or any(each.finding != "redundant" for each in found):
        rest.append(ContextFinding("fine", None if holds else ""))
    return rest


def _unexamined_findings(known: ContextFacts, examined: set[str]) -> dict[str, str]:
    """Findings that nothing could be examined for, with what is lacking."""
    there = {
        "relevance": bool(known.judged),
        "grades": bool(known.grades),
        "utility": any(each.utility is not None for passages in known.shown.values() for each in passages),
        "ratings": bool(known.ratings),
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
        "relevance": "there are no relevance judgments",
        "grades": known.ungraded,
        "utility": f"it {READER_REASON}" if known.reader_judged else "there are no abstention probabilities",
        "ratings": "there are no ratings of sub-questions",
    }
    absent = {}
    for finding in FINDINGS:
        if finding not in examined:
            why = [words[need] for need in needs[finding] if not there[need]]
            absent[finding] = " and ".join(why) if why else "no context has all that it needs"
    if "redundant" in absent and not known.words:
        absent["redundant"] = "there are no ratings of sub-questions and no texts of passages"
    return absent
