"""Outcomes out of tables, long and wide."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ragworth.answer_outcomes import outcome_scores
from ragworth.core.errors import FormatError, TableError
from ragworth.formats import outcomes
from ragworth.formats.grades import GradeError


def rows(path: Path) -> list[tuple[object, ...]]:
    return outcomes.read(path).frame.select("system", "query", "aspect", "value").rows()


def test_a_column_of_numbers_is_an_aspect(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("system,query,higher_helpful,comment,faithfulness\na,1,4,good,0.5\na,2,5,,1\n")
    assert rows(path) == [
        ("a", "1", "higher_helpful", 4.0),
        ("a", "2", "higher_helpful", 5.0),
        ("a", "1", "faithfulness", 0.5),
        ("a", "2", "faithfulness", 1.0),
    ]
    pl.read_csv(path).write_parquet(tmp_path / "wide.parquet")
    assert rows(tmp_path / "wide.parquet") == rows(path)


def test_an_empty_cell_is_no_outcome_and_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("system,query,higher_helpful\na,1,4\na,2,\nb,1,\n")
    found = outcomes.read(path)
    assert found.frame.select("system", "query", "value").rows() == [("a", "1", 4.0)]
    assert found.notes == (f"{path}: 2 records (line 3, 4) without a grade 'higher_helpful'; missing, not wrong",)


@pytest.mark.parametrize("name", ["grade", "aspect,value"])
def test_a_table_without_any_grade_is_an_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text(f"system,query,{name}\na,1{',' * (name.count(',') + 1)}\n")
    with pytest.raises(FormatError, match="no grades: every cell is empty"):
        outcomes.read(path)


def test_a_column_says_which_way_it_is_better_or_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("system,query,stars\na,1,4\na,2,5\n")
    with pytest.raises(FormatError, match="nothing says which way stars is better") as caught:
        outcomes.read(path)
    assert caught.value.remedy == "call it higher_stars or lower_stars"
    path.write_text("system,query,stars,grade\na,1,4,1\na,2,5,0\n")
    assert rows(path) == [("a", "1", "grade", 1.0), ("a", "2", "grade", 0.0)]
    assert "nothing says which way stars is better, so it is not used" in outcomes.read(path).notes[0]


def test_systems_with_grades_for_other_questions_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("system,query,grade\na,1,1\na,2,0\nb,1,1\n")
    assert outcomes.read(path).notes == (f"{path}: not all systems have grades for the same questions: a 2, b 1",)


def test_long_tables_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "long.tsv"
    path.write_text("system\tquery\taspect\tvalue\na\t1\tgrade\t-1\n")
    assert rows(path) == [("a", "1", "grade", -1.0)]


def test_a_row_without_an_aspect_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("system,query,aspect,value\na,1,,0.5\na,2,f1,1\n")
    with pytest.raises(TableError, match="aspect"):
        outcomes.read(path)


def test_a_table_without_its_header_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("a,q1,correct\na,q2,wrong\n")
    with pytest.raises(TableError, match="system"):
        outcomes.read(path)


def test_the_labels_of_financebench_are_grades(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("system,query,label\na,1,Correct Answer\na,2,Incorrect Answer\na,3,Failed to Answer\n")
    assert [value for *_, value in rows(path)] == [1.0, -1.0, 0.0]


def test_a_table_without_numbers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("system,query,remark\na,1,good\n")
    with pytest.raises(FormatError, match=r"no column of grades among .*remark"):
        outcomes.read(path)


def test_grades_in_words_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("system,query,label,comment\na,1,Correct,good\na,2,refused,\nb,1,wrong,bad\nb,2,,\n")
    assert rows(path) == [("a", "1", "human", 1.0), ("a", "2", "human", 0.0), ("b", "1", "human", -1.0)]
    path.write_text("system,query,aspect,value\na,1,grade,correct\na,2,grade,wrong\n")
    assert rows(path) == [("a", "1", "grade", 1.0), ("a", "2", "grade", -1.0)]
    path.write_text("system,query,correct\na,1,Yes\na,2,No\na,3,0\n")  # beside a question's no, 0 is clear
    assert [value for *_, value in rows(path)] == [1.0, 0.0, 0.0]
    path.write_text("system,query,label\na,1,80%\na,2,0.5\n")
    assert rows(path) == [("a", "1", "human", 0.8), ("a", "2", "human", 0.5)]


def test_a_label_that_is_no_grade_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("system,query,label,score\na,1,correct,1\na,2,splendid,2\na,3,splendid,2\n")
    with pytest.raises(GradeError, match=r"labels.csv, line 3: 'label' has 'splendid'") as caught:
        outcomes.read(path)
    assert "2 records (line 3, 4)" in str(caught.value) and "'wrong'" in str(caught.value)


def test_a_label_that_says_nothing_is_missing_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "system,query,human_label,confidence,version\na,1,correct,3,1\na,2,unsure,1,2\nb,1,n/a,1,1\nb,2,,1,2\n"
    )
    assert rows(path) == [("a", "1", "human", 1.0)]
    notes = "\n".join(outcomes.read(path).notes)
    says = "it says 'unsure', 'n/a'; missing, not wrong"
    assert f"3 records (line 3, 4, 5) without a grade 'human_label': {says}" in notes
    assert "nothing says which way confidence, version is better, so it is not used" in notes


def test_the_simplest_table_of_labels_has_people_s(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("system,query,value,annotator\na,1,1,7\na,2,0,8\n")
    assert rows(path) == [("a", "1", "human", 1.0), ("a", "2", "human", 0.0)]


def test_numbers_of_repeats_are_no_outcome(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("system,query,seed,correct\na,1,17,1\na,2,17,0\n")
    assert rows(path) == [("a", "1", "correct", 1.0), ("a", "2", "correct", 0.0)]


def test_several_grades_by_people_are_averaged_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("system,query,label\na,1,correct\na,1,wrong\na,2,wrong\na,2,wrong\nb,1,correct\n")
    found = outcomes.read(path)
    assert rows(path) == [("a", "1", "human", 0.0), ("a", "2", "human", -1.0), ("b", "1", "human", 1.0)]
    assert any(
        "2 answers have several grades by people, which are averaged; they differ for 1" in n for n in found.notes
    )
    shares = outcome_scores(found).having("metric", ["human-wrong"]).frame
    assert shares.select("value", "status").rows() == [(None, "several-answers"), (1.0, "ok"), (0.0, "ok")]
