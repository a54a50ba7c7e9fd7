"""Every finding on contexts made for it, and what is said where it cannot be had."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ragworth.data import Contexts, Judgments, Outcomes, Ratings
from ragworth.diagnosis import FINDINGS, Diagnosis, diagnose, gather_facts, nearest_grade, passage_kind

# One query; r is relevant, h a hard distractor (0.9), s a weak one (0.1), m in between (0.5).
LABELS = {"r": 1.0, "r2": 1.0, "h": 0.0, "s": 0.0, "m": 0.0}
DECLINES = {"r": 0.1, "r2": 0.3, "h": 0.1, "s": 0.9, "m": 0.5}


def judgments(**failed: str) -> Judgments:
    rows: list[dict[str, Any]] = []
    for aspect, values in (("relevance", LABELS), ("abstention", DECLINES)):
        for passage, value in values.items():
            status = failed.get(f"{aspect}_{passage}", "ok")
            known = {"query": "q", "passage": passage, "aspect": aspect, "status": status}
            rows.append({**known, "value": value if status == "ok" else None})
    return Judgments(pl.DataFrame(rows, schema_overrides={"value": pl.Float64}))


def shown(*passages: str) -> Contexts:
    rows = [{"system": "s", "query": "q", "passage": passage, "rank": i + 1} for i, passage in enumerate(passages)]
    return Contexts(rows) if rows else Contexts({"q": {}}, system="s")


def graded(value: float) -> Outcomes:
    return Outcomes([{"system": "s", "query": "q", "aspect": "grade", "value": value}])


def found(result: Diagnosis) -> dict[str, str]:
    return dict(result.frame.select("finding", "detail").iter_rows())


def diagnosed(*passages: str, grade: float | None = None, **tables: Any) -> Diagnosis:
    tables = {"judgments": judgments(), **tables}
    return diagnose(gather_facts(shown(*passages), outcomes=None if grade is None else graded(grade), **tables))


@pytest.mark.parametrize(
    ("passages", "grade", "expected"),
    [
        (("r", "s"), 1.0, {"fine"}),
        (("r", "s"), None, {"fine"}),
        (("s", "m"), 0.0, {"nothing-relevant"}),
        (("s", "m"), -1.0, {"nothing-relevant"}),
        (("s", "h"), -1.0, {"nothing-relevant", "misled"}),
        (("r", "h"), -1.0, {"misled"}),
        (("r", "h"), 1.0, {"fine"}),
        (("r", "h"), 0.0, {"unused"}),
        (("r", "m"), -1.0, {"unused"}),
        (("r",), 0.0, {"unused"}),
        (("s",), 1.0, {"nothing-relevant", "unsupported"}),
        (("s",), 0.5, {"nothing-relevant", "unsupported"}),
        ((), None, {"nothing-relevant"}),
        ((), 1.0, {"nothing-relevant", "unsupported"}),
        (("unjudged",), None, {"nothing-relevant"}),
    ],
)
def test_findings(passages: tuple[str, ...], grade: float | None, expected: set[str]) -> None:
    assert set(found(diagnosed(*passages, grade=grade))) == expected


def test_details_say_what_and_where() -> None:
    assert found(diagnosed("s", "m", grade=0.0))["nothing-relevant"] == (
        "none of the 2 passages is relevant; the model rightly declined"
    )
    assert found(diagnosed())["nothing-relevant"] == "nothing was retrieved"
    assert found(diagnosed("r", "h", grade=-1.0))["misled"] == (
        "1 hard distractor (rank 2), the worst 'h' with a distracting effect of 0.90"
    )
    assert found(diagnosed("m", "r", "r2", grade=0.0))["unused"] == (
        "2 relevant passages (ranks 2, 3), and the model declined"
    )
    assert found(diagnosed("s", grade=1.0))["unsupported"] == "correct, though the only passage is not relevant"


def test_a_judgment_that_failed_leaves_open_what_hangs_on_it() -> None:
    unsure = diagnosed("s", "m", grade=-1.0, judgments=judgments(relevance_m="timed-out"))
    assert set(found(unsure)) == {"unexplained"}
    assert set(unsure.counts["finding"]) == {"unexplained", "fine"}
    # Whether m misleads is not known: a wrong answer may be of its doing, so it is not said to be unused.
    half = diagnosed("r", "m", grade=-1.0, judgments=judgments(abstention_m="refused"))
    assert set(found(half)) == {"unexplained"}
    # A hard distractor that is known is enough.
    assert set(found(diagnosed("h", "r", "m", grade=-1.0, judgments=judgments(abstention_m="refused")))) == {"misled"}


def ratings(values: dict[str, list[float | None]]) -> Ratings:
    rows = [
        {
            "query": "q",
            "passage": p,
            "subquestion": f"s{i}",
            "value": v,
            "status": "ok" if v is not None else "unparsable",
        }
        for p, many in values.items()
        for i, v in enumerate(many)
    ]
    return Ratings(pl.DataFrame(rows, schema_overrides={"value": pl.Float64}))


def test_sub_questions_that_stay_open_and_passages_that_add_nothing() -> None:
    rated = ratings({"a": [5, 0, 0, 0], "b": [3, 4, 0, 0], "c": [3, 3, 2, 0], "d": [0, 0, 3, 0]})
    names = pl.DataFrame({"query": ["q"], "subquestion": ["s2"], "text": ["When?"]})
    result = diagnosed("a", "b", "c", judgments=None, ratings=rated, subquestions=names)
    # s3 is answered by no passage at all, so it cannot be missed; c adds nothing to a and b.
    assert found(result) == {
        "incomplete": "1 of 3 sub-questions without an answer: 'When?'",
        "redundant": "1 of 3 passages answers nothing new (rank 3)",
    }
    # Relevant is what answers anything, where there are no labels.
    assert set(found(diagnosed("d", judgments=None, ratings=rated))) == {"incomplete"}
    assert set(found(diagnosed("a", "b", "d", judgments=None, ratings=rated))) == {"fine"}
    assert "nothing-relevant" in found(diagnosed("x", judgments=None, ratings=rated))


def test_a_rating_that_failed_leaves_coverage_open() -> None:
    rated = ratings({"a": [5, None], "b": [0, 3]})
    assert "incomplete" not in set(diagnosed("a", judgments=None, ratings=rated).counts["finding"])
    assert set(found(diagnosed("a", "b", judgments=None, ratings=rated))) == {"fine"}


def test_a_rating_that_failed_leaves_open_only_what_it_decides() -> None:
    # Of a, s0 failed; that s2 is lacking is sure all the same.
    rated = ratings({"a": [None, 3, 0], "b": [3, 0, 3]})
    assert found(diagnosed("a", judgments=None, ratings=rated))["incomplete"] == (
        "1 of 3 sub-questions without an answer: 's2'"
    )
    # Nothing shown answers s1; whether anything would is not known, since the rating of b failed.
    rated = ratings({"a": [3, 0], "b": [0, None]})
    assert "incomplete" not in set(diagnosed("a", judgments=None, ratings=rated).counts["finding"])
    # Where it is the rating of what is shown that failed, it either answers s1, or nothing does.
    assert set(found(diagnosed("a", "b", judgments=None, ratings=rated))) == {"fine"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"a": [3, 0], "b": [3, 0]}, True),
        ({"a": [3, 0], "b": [3, None]}, None),  # b may answer s1, which a does not
        ({"a": [3, 3], "b": [3, None]}, True),  # whatever b answers, a does
        ({"a": [3, None], "b": [0, 3]}, None),  # a may answer s1 as well
        ({"a": [3, None], "b": [0, 0]}, False),
        ({"a": [3, 0], "b": [0, None]}, False),  # b answers s1, which is new, or nothing
        ({"a": [3, 0], "b": [None, 0]}, None),
        ({"a": [3, 3], "b": [3, None], "c": [0, 3]}, True),
    ],
)
def test_redundancy_where_ratings_failed(values: dict[str, list[float | None]], expected: bool | None) -> None:
    result = diagnosed(*values, judgments=None, ratings=ratings(values))
    examined = "redundant" in set(result.counts["finding"])
    assert examined is (expected is not None)
    assert ("redundant" in found(result)) is bool(expected)


def test_repeated_words_are_redundant() -> None:
    texts = pl.DataFrame({"passage": ["r", "r2", "s"], "text": ["The Mill, of 1790.", "the mill of 1790", "Other"]})
    assert found(diagnosed("r", "s", "r2", passages=texts)) == {"redundant": "rank 3 repeats rank 1"}
    assert set(found(diagnosed("r", "s", passages=texts))) == {"fine"}


def test_counts_say_out_of_how_many() -> None:
    contexts = Contexts.concat([shown("r").renamed("a"), shown("s").renamed("b")])
    result = diagnose(gather_facts(contexts, judgments=judgments()))
    rows = {(s, f): (n, of) for s, f, n, of in result.counts.iter_rows()}
    assert rows == {
        ("a", "nothing-relevant"): (0, 1),
        ("a", "fine"): (1, 1),
        ("b", "nothing-relevant"): (1, 1),
        ("b", "fine"): (0, 1),
    }
    assert "graded answers" in result.absent["misled"]
    assert result.absent["incomplete"] == "there are no ratings of sub-questions"


def test_without_any_judgment_nothing_is_found_and_all_is_said() -> None:
    result = diagnosed("r", judgments=None)
    assert result.frame.height == 0
    assert result.counts.height == 0
    assert set(result.absent) == set(FINDINGS)


def test_only_grades_leave_failures_unexplained() -> None:
    assert set(found(diagnosed("r", grade=-1.0, judgments=None))) == {"unexplained"}
    assert set(found(diagnosed("r", grade=1.0, judgments=None))) == {"fine"}


def test_answers_that_are_not_correct_are_not_fine() -> None:
    texts = pl.DataFrame({"passage": ["r", "s"], "text": ["The mill of 1790.", "Other"]})
    right, wrong = (
        Outcomes([{"system": "s", "query": "q", "aspect": "correct", "value": value}]) for value in (1.0, 0.0)
    )
    result = diagnose(gather_facts(shown("r", "s"), outcomes=wrong, passages=texts))
    assert found(result) == {"unexplained": "the answer is not correct"}
    assert result.absent["misled"].startswith("no grade tells wrong answers from those that decline")
    assert set(found(diagnose(gather_facts(shown("r", "s"), outcomes=right, passages=texts)))) == {"fine"}
    unsupported = diagnose(gather_facts(shown("s"), outcomes=wrong, judgments=judgments()))
    assert set(found(unsupported)) == {"nothing-relevant"}
    other = Outcomes([{"system": "s", "query": "q", "aspect": "correct", "value": 4.0}])
    assert not found(diagnose(gather_facts(shown("r", "s"), outcomes=other, passages=texts)))


def test_passages_that_differ_are_not_fine_for_that_alone() -> None:
    texts = pl.DataFrame({"passage": ["r", "s"], "text": ["The mill of 1790.", "Other"]})
    result = diagnosed("r", "s", judgments=None, passages=texts)
    assert not found(result)
    assert set(result.counts["finding"]) == {"redundant"}
    assert result.absent["fine"] == "there are no relevance judgments"


def test_an_empty_context_counts_and_a_query_that_was_not_asked_does_not() -> None:
    contexts = Contexts([{"system": "a", "query": "q", "passage": "r", "rank": 1}], empty=[("b", "other")])
    known = gather_facts(contexts, judgments=judgments())
    assert known.shown == {("a", "q"): known.shown["a", "q"], ("b", "other"): []}
    assert [each.passage for each in known.shown["a", "q"]] == ["r"]


@pytest.mark.parametrize(
    ("utility", "kind"),
    [(1, "helpful"), (0.2, "helpful"), (0.19, "harmless"), (-0.19, "harmless"), (-0.2, "distracting"),
     (-0.8, "distracting"), (-0.81, "misleading"), (-(1 - 0.2), "distracting")],
)  # fmt: skip
def test_kinds_part_where_the_methods_say(utility: float, kind: str) -> None:
    assert passage_kind(utility) == kind


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (1, "correct"),
        (0.5, "partially-correct"),
        (0, "abstained"),
        (-1, "wrong"),
        (2 / 3, "partially-correct"),
        (-0.6, "wrong"),
    ],
)
def test_grades_by_their_means(value: float, word: str) -> None:
    assert nearest_grade(value) == word
