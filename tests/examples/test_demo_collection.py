"""The demo collection keeps what its README says: texts, labels, kinds and ratings that fit each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from ragworth.formats import texts
from ragworth.formats.trec import read_qrels, read_ratings
from ragworth.metrics.required_passages import REQUIRED, required
from ragworth.text_match.matching import match_answer, to_matchable

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "demo"

SUPPORTS = ("supporting", "convoluted", "tabular")
HARD = ("convoluted", "tabular")
OVERTAKEN = ("outdated", "contradicted")
MISSES = ("wrong-attribute", "wrong-entity", *OVERTAKEN)
ANSWERS_IT = 3
"""The rating from which a passage answers a sub-question."""

UNANSWERABLE = {("r1", "11"), ("r3", "11")}
"""Sub-questions that no passage answers, on purpose."""

PASSAGES: dict[str, str] = dict(texts.read(FOLDER / "passages.jsonl", "passages").passages.iter_rows())
QUERIES: dict[str, str] = dict(texts.read(FOLDER / "queries.jsonl", "queries").queries.iter_rows())
SUBQUESTIONS = texts.read(FOLDER / "subquestions.jsonl", "subquestions").subquestions
KINDS = pl.read_csv(FOLDER / "kinds.tsv", separator="\t", quote_char=None)
QRELS = read_qrels(FOLDER / "qrels.txt").frame
RATINGS = read_ratings(FOLDER / "ratings.txt")


def _accepted() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for query, text in texts.read(FOLDER / "queries.jsonl", "answers").answers.iter_rows():
        found[query].append(text)
    return dict(found)


def _kinds() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for query, passage, kind in KINDS.iter_rows():
        found[query][passage] = kind
    return dict(found)


def _matrices() -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for query, passage, subquestion, value in RATINGS.frame.select(
        "query", "passage", "subquestion", "value"
    ).iter_rows():
        found[query][passage][subquestion] = value
    return found


ACCEPTED = _accepted()
LABELS = _kinds()
MATRICES = _matrices()
QUESTIONS = sorted(ACCEPTED)
REPORTS = sorted(QUERIES.keys() - ACCEPTED.keys())
RELEVANCE = {(query, passage): value for query, passage, value in QRELS.select("query", "passage", "value").iter_rows()}
READ = {passage: to_matchable(text) for passage, text in PASSAGES.items()}


def gives(passage: str, query: str) -> list[str]:
    """How a passage gives the accepted answers of a question, as the grader without a model sees it."""
    return [f"{how} {answer!r}" for answer in ACCEPTED[query] if (how := match_answer(READ[passage], answer))]


def test_there_is_enough_of_everything() -> None:
    assert len(QUESTIONS) >= 44
    assert len(REPORTS) >= 6
    assert len(PASSAGES) >= 230
    labelled = {passage for _, passage in RELEVANCE}
    assert len(PASSAGES.keys() - labelled) >= 8, "some passages have nothing to do with any question"


def test_passages_are_as_long_as_promised() -> None:
    whole = {passage: len(text.split()) for passage, text in PASSAGES.items()}
    bare = {passage: len(text.partition("\n")[2].split()) for passage, text in PASSAGES.items()}
    assert {passage: n for passage, n in bare.items() if n < 40} == {}
    assert {passage: n for passage, n in whole.items() if n > 120} == {}


def test_no_text_is_there_twice() -> None:
    for every in (PASSAGES, QUERIES):
        again = [
            text for text, n in Counter(" ".join(text.lower().split()) for text in every.values()).items() if n > 1
        ]
        assert again == []


def test_labels_name_what_exists() -> None:
    pairs = [*RELEVANCE, *((query, passage) for query in LABELS for passage in LABELS[query])]
    pairs += [(query, passage) for query in MATRICES for passage in MATRICES[query]]
    assert [pair for pair in pairs if pair[0] not in QUERIES or pair[1] not in PASSAGES] == []
    assert sum(map(len, LABELS.values())) == KINDS.height, "a passage has one kind for a question"
    assert set(KINDS["kind"]) == {*SUPPORTS, *MISSES}


@pytest.mark.parametrize("query", QUESTIONS)
def test_a_question(query: str) -> None:
    assert 1 <= len(ACCEPTED[query]) <= 4
    told = [answer for answer in ACCEPTED[query] if match_answer(to_matchable(QUERIES[query]), answer)]
    assert told == [], "the question tells its answer"
    kinds = Counter(LABELS[query].values())
    assert sum(kinds[kind] for kind in SUPPORTS) >= 2
    assert sum(kinds[kind] for kind in HARD) >= 1
    assert sum(kinds[kind] for kind in MISSES) >= 3
    assert kinds["wrong-attribute"] and kinds["wrong-entity"] and sum(kinds[kind] for kind in OVERTAKEN)


@pytest.mark.parametrize("query", QUESTIONS)
def test_supports_hold_an_answer_and_near_misses_none(query: str) -> None:
    for passage, kind in LABELS[query].items():
        assert bool(gives(passage, query)) == (kind in SUPPORTS), (passage, kind, gives(passage, query))


@pytest.mark.parametrize("query", QUESTIONS)
def test_relevance_of_a_question_follows_its_kinds(query: str) -> None:
    judged = {passage: value for (other, passage), value in RELEVANCE.items() if other == query}
    assert judged == {passage: float(kind in SUPPORTS) for passage, kind in LABELS[query].items()}


def test_tables_are_tables() -> None:
    tables = {passage for labels in LABELS.values() for passage, kind in labels.items() if kind == "tabular"}
    assert {passage for passage in tables if PASSAGES[passage].count("\n") < 4} == set()


@pytest.mark.parametrize("query", REPORTS)
def test_a_report_request(query: str) -> None:
    asked = SUBQUESTIONS.filter(pl.col("query") == query)
    ids = asked["subquestion"].to_list()
    assert 25 <= len(QUERIES[query].split()) <= 50
    assert 8 <= len(ids) <= 12
    assert asked["text"].n_unique() == len(ids)
    rated = MATRICES[query]
    assert 12 <= len(rated) <= 25
    assert [passage for passage, values in rated.items() if sorted(values) != sorted(ids)] == [], "a gap in the matrix"
    assert {value for values in rated.values() for value in values.values()} <= set(range(6))
    best = {id_: max(values[id_] for values in rated.values()) for id_ in ids}
    assert {(query, id_) for id_, value in best.items() if value < ANSWERS_IT} == {
        pair for pair in UNANSWERABLE if pair[0] == query
    }


@pytest.mark.parametrize("query", REPORTS)
def test_relevance_of_a_report_request_follows_its_ratings(query: str) -> None:
    judged = {passage: value for (other, passage), value in RELEVANCE.items() if other == query}
    rated = {passage: float(max(values.values()) >= ANSWERS_IT) for passage, values in MATRICES[query].items()}
    assert judged == rated
    assert 0.0 in judged.values()
    assert any(max(values.values()) == 0 for values in MATRICES[query].values()), (
        "one passage has nothing to do with it"
    )


@pytest.mark.parametrize("query", REPORTS)
def test_some_relevant_passages_are_redundant(query: str) -> None:
    classes = required(RATINGS).filter(pl.col("query") == query)
    needed = classes.filter(pl.col("class") == REQUIRED).height
    assert 1 < needed < sum(value for (other, _), value in RELEVANCE.items() if other == query)


def test_files_are_in_order() -> None:
    """Sorted by query, so that a difference between two versions is easy to read."""
    for queries in (KINDS["query"], QRELS["query"], RATINGS.frame["query"]):
        assert all(a <= b for a, b in pairwise(queries))
