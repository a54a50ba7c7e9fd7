"""Topics from every kind of input, pieces, the consistency filter, labels and statistics."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from ragworth import Ratings
from ragworth.build.crux.consistency import (
    answered_subquestions,
    document_relevance,
    filter_consistent,
    graded_relevance,
)
from ragworth.build.crux.drafting import pieces
from ragworth.build.crux.statistics import rating_statistics, summary_coverage
from ragworth.build.crux.topics import Topic, read_topics
from ragworth.core.errors import FormatError, RagworthError
from tests.conftest import Save

MULTI_NEWS = {"document": "First story. NEWLINE_CHAR More. ||||| Second story. |||||", "summary": "– Two stories."}


def test_multi_news_rows(save: Save) -> None:
    (topic,) = read_topics(save("test.jsonl", json.dumps(MULTI_NEWS))).topics
    assert topic == Topic("test-0", ("First story. \n More.", "Second story."), "Two stories.")


def test_a_duc_folder(save: Save, tmp_path: Path) -> None:
    story = "<DOC>\n<DOCNO> APW1 </DOCNO>\n<TEXT>\n<P>A story</P> about 1 < 2.\n</TEXT>\n</DOC>"
    save("docs/d30001t/APW1", story)
    save("docs/d30001t/APW2", b"Plain caf\xe9")
    for letter, text in (("A", "One."), ("B", "Two.")):
        save(f"models/D30001.M.100.T.{letter}", text)
    (topic,) = read_topics(tmp_path).topics
    assert (topic.id, topic.summary) == ("d30001t", "One.\n\nTwo.")
    assert [" ".join(text.split()) for text in topic.documents] == ["A story about 1 < 2.", "Plain café"]


def test_a_duc_folder_gives_each_cluster_its_own_summary(save: Save, tmp_path: Path) -> None:
    """The name of the first cluster begins that of the second."""
    for name in ("energy1", "energy10"):
        save(f"docs/{name}/a", f"Text of {name}.")
        save(f"models/{name}.txt", f"\ufeffSummary of {name}.")
    save("docs/energy1/.DS_Store", b"\0\0Bud1")
    save("models/water.txt", "Nobody's.")
    found = read_topics(tmp_path)
    assert found.topics == [Topic(n, (f"Text of {n}.",), f"Summary of {n}.") for n in ("energy1", "energy10")]
    assert "1 file left out, without a folder of that name in docs/ ('water.txt')" in found.notes[0]
    save("docs/energy1/b", b"%PDF-1.4 \xff")
    with pytest.raises(FormatError, match="isn't a text file"):
        read_topics(tmp_path)


def test_a_folder_for_each_topic(save: Save, tmp_path: Path) -> None:
    save("harbour/one.txt", "The storm.")
    save("harbour/two.md", "# Money\n\nThe county paid.")
    save("harbour/summary.txt", "A summary.")
    (topic,) = read_topics(tmp_path).topics
    assert topic.id == "harbour" and topic.summary == "A summary."
    assert len(topic.documents) == 2 and "The storm." in topic.documents


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"document": "a"}, "summary"),
        ({"summary": "a"}, "document"),
        ({"document": "a", "summary": " "}, "without a summary"),
        ({"documents": "a", "summary": "b"}, "list"),
        ({"documents": [], "summary": "b"}, "without a document"),
    ],
)
def test_a_row_that_is_no_topic(save: Save, row: dict[str, object], words: str) -> None:
    with pytest.raises(RagworthError, match=words):
        read_topics(save("x.jsonl", json.dumps(row)))


def test_long_documents_are_cut_into_pieces_at_sentences() -> None:
    sentence = "One two three four five six seven eight nine ten. "
    assert pieces(sentence * 102) == [(sentence * 102).strip()]  # 1,020 words
    parts = pieces(sentence * 120)
    assert [len(part.split()) for part in parts] == [510, 510, 180]
    assert all(part.endswith("ten.") for part in parts)
    assert " ".join(parts).split() == (sentence * 120).split()


MATRIX = {
    ("q", "p1"): {"1": 5, "2": 4, "3": 0},
    ("q", "p2"): {"1": 5, "2": 0, "3": 2},
    ("q", "p3"): {"1": 0, "2": 5, "3": 0},
    ("q", "p4"): {"1": 1, "2": 0, "3": 0},
}


def ratings(**failed: str) -> Ratings:
    """The matrix above; ``p1_3="refused"`` makes that rating fail."""
    rows = []
    for (query, passage), values in MATRIX.items():
        for name, value in values.items():
            status = failed.get(f"{passage}_{name}", "ok")
            rows.append((query, passage, name, float(value) if status == "ok" else None, status))
    return Ratings(pl.DataFrame(rows, schema=["query", "passage", "subquestion", "value", "status"], orient="row"))


def test_the_filter_drops_what_nothing_answers() -> None:
    found = filter_consistent(ratings())
    assert {name: why[0] for (_, name), why in found.subquestions.items()} == {"3": "unanswerable"}
    assert set(found.ratings.frame["subquestion"]) == {"1", "2"}
    assert filter_consistent(ratings(), eta=2).subquestions == {}


def test_a_failed_rating_leaves_its_sub_question_open() -> None:
    found = filter_consistent(ratings(p4_1="refused"))
    assert found.subquestions[("q", "1")] == ("unrated", "1 of its ratings failed, the first with refused")
    assert found.counts == {"unrated": 1, "unanswerable": 1}
    assert filter_consistent(ratings(p4_1="refused"), failed="zero").counts == {"unanswerable": 1}


def test_a_passage_without_any_rating_is_dropped_rather_than_all_sub_questions() -> None:
    found = filter_consistent(ratings(p4_1="cut", p4_2="cut", p4_3="cut"))
    assert found.passages == {("q", "p4"): "all its ratings failed (cut)"}
    assert found.counts == {"unanswerable": 1}


def test_grades_by_redundancy() -> None:
    """p1 answers both and is required; p2 repeats 1 as well; p3 answers 2 better than p1; p4 answers nothing."""
    grades = graded_relevance(filter_consistent(ratings()).ratings)
    assert dict(grades.frame.select("passage", "value").rows()) == {"p1": 3, "p2": 1, "p3": 2, "p4": 0}
    documents = document_relevance(grades, {"p1": "d1", "p2": "d2", "p3": "d2", "p4": "d3"})
    assert dict(documents.frame.select("passage", "value").rows()) == {"d1": 3, "d2": 2, "d3": 0}
    answered = answered_subquestions(ratings()).frame
    assert answered.select("passage", "subquestion", "value").rows() == [
        ("p1", "1", 1),
        ("p1", "2", 1),
        ("p2", "1", 1),
        ("p3", "2", 1),
    ]


def test_statistics_are_counted() -> None:
    found = rating_statistics(ratings())
    expected = {
        "queries": 1,
        "sub-questions": 3,
        "answerable sub-questions": 2,
        "sub-questions dropped: unanswerable": 1,
        "rated passages": 4,
        "required passages": 1,
        "redundant passages": 3,
        "partially redundant": 1,
        "fully redundant": 1,
        "answering nothing": 1,
        "required passages per query": 1,
    }
    assert {row.name: row.value for row in found.rows if row.name in expected} == expected
    assert found.histogram == {"0": 6, "1": 1, "2": 1, "3": 0, "4": 1, "5": 3}
    failed = rating_statistics(ratings(p4_1="refused")).histogram
    assert failed["refused"] == 1 and failed["1"] == 0


def test_coverage_of_a_summary_needs_all_its_ratings() -> None:
    kept = filter_consistent(ratings()).ratings
    rows = [("q", "s", "1", 5.0), ("q", "s", "2", 2.0), ("q", "s", "3", 5.0)]
    own = Ratings(pl.DataFrame(rows, schema=["query", "passage", "subquestion", "value"], orient="row"))
    assert summary_coverage(kept, own, 3.0) == [("q", 0.5)]
    assert summary_coverage(kept, Ratings.trusted(own.frame.head(1)), 3.0) == []


@pytest.mark.real
def test_the_required_subsets_of_the_released_log(data: Path) -> None:
    """1,542 topics of Multi-News with their required passages: as many as the log lists, none of them redundant."""
    from ragworth.formats import read_ratings

    path = data / "crux_case" / "case.log.gz"
    with gzip.open(path, "rt") as stream:
        listed = sum(line.count("'") // 2 for line in stream if line.startswith("['"))
    found = rating_statistics(read_ratings(f"crux:{path}"))
    assert found["queries"] == 1542
    assert found["required passages"] == found["rated passages"] == listed == 4938
    assert found["redundant passages"] == 0


@pytest.mark.real
def test_statistics_of_the_released_duc_ratings(data: Path) -> None:
    """The ratings are of BM25's top 100, not of all relevant passages, so Table 4's 274 and 1,657 can't come out."""
    from ragworth.formats import load

    collection = load(f"crux:{data / 'crux_duc04'}").collection
    assert collection.ratings is not None
    found = rating_statistics(collection.ratings, collection)
    assert (found["queries"], found["sub-questions"], found["rated passages"]) == (50, 750, 5000)
    assert found["required passages"] + found["redundant passages"] == 5000
    assert found["required passages per query"] == pytest.approx(found["required passages"] / 50)
    assert sum(found.histogram.values()) == 75_000
    assert found["required passages"] / 50 < 274 / 50 == pytest.approx(5.48)
