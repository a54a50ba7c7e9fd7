"""``ragworth compare`` and ``estimate`` on outcomes of answers and on folders of results."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from ragworth.cli import main
from ragworth.core.errors import MetricError
from ragworth.data import Outcomes
from ragworth.results import Results
from ragworth.two_judges import estimate_outcomes
from tests.report.page.small_samples import GRADES, results


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def grades(right: dict[str, int], n: int = 60, undecided: int = 0) -> pl.DataFrame:
    """The first answers of each system are undecided, then so many are right, and the others wrong."""
    rows = [
        (system, f"q{i}", "grade", None if i < undecided else 1.0 if i - undecided < number else -1.0)
        for system, number in right.items()
        for i in range(n)
    ]
    frame = pl.DataFrame(rows, schema=["system", "query", "aspect", "value"], orient="row")
    return frame.with_columns(
        status=pl.when(pl.col("value").is_null()).then(pl.lit("undecided")).otherwise(pl.lit("ok"))
    )


def save(frame: pl.DataFrame, path: Path) -> Path:
    frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_of_outcomes_is_compared_and_gates(tmp_path: Path, ending: str) -> None:
    path = save(grades({"rag": 50, "closed-book": 20, "other": 48}, undecided=2), tmp_path / f"o.{ending}")
    found = call("compare", path, "--fail-if-worse", "correct")
    assert found.exit_code == 3
    assert "worse: closed-book is 0.5172 worse than rag by correct" in found.stderr  # 30 of 58
    assert "other" not in found.stderr.split("note:")[0]
    lines = [line.split() for line in found.stdout.splitlines() if line.startswith("correct")]
    assert [line[1:3] for line in lines[:3]] == [["rag", "a"], ["closed-book", "b"], ["other", "a"]]
    assert "2 undecided" in found.stdout and "58 of 60" in found.stdout
    assert call("compare", path, "-b", "closed-book", "--fail-if-worse", "correct").exit_code == 0


def test_scores_in_csv_with_queries_that_a_system_lacks(tmp_path: Path) -> None:
    def table(rows: list[tuple[str, int, str, float]]) -> Path:
        frame = pl.DataFrame(rows, schema=["system", "query", "metric", "value"], orient="row")
        return save(frame.with_columns(query=pl.format("q{}", "query")), tmp_path / "scores.csv")

    half = [("a", i, "quality", i / 40) for i in range(40)] + [("b", i, "quality", 0.5) for i in range(20)]
    found = call("compare", table(half))
    assert found.exit_code == 0 and "20 of 40  20 not in its data" in found.stdout
    apart = [("ab"[i % 2], i, "quality", i / 40) for i in range(40)]
    assert "no query has a value of quality for both a and b, so they" in call("compare", table(apart)).stderr
    many = [(s, i, f"m{j}", i / 40 + 0.1 * (s == "b")) for s in "ab" for i in range(20) for j in range(5)]
    assert "p isn't corrected for the 5 metrics" in call("compare", table(many)).stderr
    assert "p isn't corrected" not in call("compare", table(many), "--family", "all").stderr


def test_a_gate_on_wrong_answers_goes_the_other_way(tmp_path: Path) -> None:
    path = save(grades({"old": 50, "new": 20}), tmp_path / "o.csv")
    assert call("compare", path, "--fail-if-worse", "wrong").exit_code == 3
    assert call("compare", path, "-b", "new", "--fail-if-worse", "wrong").exit_code == 0
    neither = call("compare", path, "--fail-if-worse", "abstained")
    assert neither.exit_code == 2 and "abstained is neither better nor worse if it changes" in neither.stderr


def test_what_has_no_values_is_named_with_what_has(tmp_path: Path) -> None:
    path = save(grades({"a": 5, "b": 4}, 8), tmp_path / "o.csv")
    for name in ("corect", "nDCG@10"):
        found = call("compare", path, "-m", name)
        assert found.exit_code == 2
        assert f"{name} has no values here" in found.stderr and "correct, wrong, abstained, grade" in found.stderr


def test_a_folder_of_results_has_outcomes_and_metrics(tmp_path: Path) -> None:
    results(["UDCG@3", "nDCG@3"], GRADES).write(tmp_path / "results")
    made = json.loads(call("compare", tmp_path / "results", "-f", "json").stdout)
    assert {row["metric"] for row in made["summary"]} == {"correct", "wrong", "abstained", "grade", "UDCG@3", "nDCG@3"}
    some = json.loads(call("compare", tmp_path, "-m", "nDCG@3", "-m", "correct", "-f", "json").stdout)
    assert [row["metric"] for row in some["differences"]] == ["correct", "nDCG@3"]


def test_two_folders_are_compared_system_by_system(tmp_path: Path) -> None:
    for name, grade in (("main", 1.0), ("branch", -1.0)):
        results(["nDCG@3"], dict.fromkeys(GRADES, grade)).write(tmp_path / name / "results")
    given = [tmp_path / name / "results" for name in ("main", "branch")]
    made = json.loads(call("compare", *given, "-m", "grade", "-f", "json").stdout)
    rows = [(row["baseline"], row["system"], row["difference"]) for row in made["differences"]]
    assert rows == [("main/one", "branch/one", -2.0), ("main/two", "branch/two", -2.0)]


def test_runs_and_outcomes_of_the_same_systems_go_together(tmp_path: Path) -> None:
    given = results(["nDCG@3"], GRADES)
    given.write(tmp_path / "results")
    folder = tmp_path / "results"
    files: list[str | Path] = [
        folder / "contexts.parquet",
        folder / "outcomes.parquet",
        "-j",
        folder / "judgments.parquet",
    ]
    made = call("compare", *files, "-m", "P@3", "-m", "grade", "-f", "json")
    assert made.exit_code == 0, made.stderr
    assert [row["metric"] for row in json.loads(made.stdout)["differences"]] == ["P@3", "grade"]


def test_grades_are_estimated_from_some_labels(tmp_path: Path) -> None:
    cheap = grades({"rag": 50, "other": 30}, undecided=3)
    people = cheap.filter(pl.col("query").str.contains("[02468]$"))
    people = people.with_columns(aspect=pl.lit("human"), value=(pl.col("value") > 0).cast(pl.Float64)).drop("status")
    files = save(cheap, tmp_path / "auto.csv"), save(people.drop_nulls(), tmp_path / "human.csv")
    found = call("estimate", files[0], "--expensive", files[1], "-m", "correct", "-f", "json")
    assert found.exit_code == 0, found.stderr
    rows = {row["system"]: row for row in json.loads(found.stdout)["estimates"]}
    # People agree with the grader, so that the estimate is the cheap mean: 30 of the 57 that have a grade.
    assert rows["other"]["estimate"] == pytest.approx(30 / 57)
    assert rows["other"]["cheap"] == pytest.approx(30 / 57)
    assert (rows["other"]["n"], rows["other"]["total"]) == (28, 57)
    again = estimate_outcomes(Outcomes(cheap), Outcomes(people.drop_nulls()), ["correct"])
    assert again.frame["estimate"].to_list() == [row["estimate"] for row in rows.values()]


def test_people_s_three_way_grades_are_not_compared_with_the_share_of_correct_answers() -> None:
    cheap = Outcomes(grades({"a": 6}, 12))
    people = Outcomes(grades({"a": 6}, 12).head(8).with_columns(aspect=pl.lit("human")))
    found = estimate_outcomes(cheap, people)
    assert found.frame.filter(metric="grade")["estimate"].to_list() == pytest.approx([0.5])  # 6 right, 2 wrong
    with pytest.raises(MetricError, match="correct is not graded twice"):
        estimate_outcomes(cheap, Outcomes(people.frame.with_columns(pl.col("value") / 2)), ["correct"])


def test_an_outcome_that_was_not_graded_twice_is_refused(tmp_path: Path) -> None:
    files = save(grades({"a": 5}, 8), tmp_path / "a.csv"), save(grades({"b": 5}, 8), tmp_path / "b.csv")
    strange = call("estimate", files[0], "--expensive", files[1], "-m", "f1")
    assert strange.exit_code == 2 and "f1 is not graded twice" in strange.stderr
    other = call("estimate", files[0], "--expensive", files[1])
    assert other.exit_code == 2 and "no answer that the expensive grader graded" in other.stderr


# Notebooks


def test_results_show_as_a_table_and_escape_what_they_hold(tmp_path: Path) -> None:
    given = results(["nDCG@3"], GRADES, manifest={"title": "<script>"})
    html = given._repr_html_()
    assert "&lt;script&gt;" in html and "<script" not in html
    assert "correct" in html and "nDCG@3" in html and "1 empty-answer" in html
    given.write(tmp_path / "results")
    assert Results.read(tmp_path / "results")._repr_html_() == html


@pytest.mark.slow
def test_a_report_shows_its_verdict_and_a_picture() -> None:
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    from ragworth.report import page

    made = page.build(results(["nDCG@3"], GRADES, manifest={"title": "<b>"}))
    html = made._repr_html_()
    assert "<h3>&lt;b&gt;</h3>" in html and "<svg" in html and "<script" not in html
    assert made.answers is not None and made.answers.headline in html


def test_a_gate_fails_if_most_answers_are_missing(tmp_path: Path) -> None:
    frame = grades({"old": 20}, n=20)
    crashed = grades({"new": 0}, n=20, undecided=19)
    path = save(pl.concat([frame, crashed]), tmp_path / "o.csv")
    made = call("compare", path, "--fail-if-worse", "correct")
    assert made.exit_code == 3
    assert "new has a value of correct for 1 query, old for 20" in made.stderr


def test_a_gate_fails_if_an_input_has_no_values_of_it(tmp_path: Path) -> None:
    old = save(grades({"old": 20}), tmp_path / "old.csv")
    new = save(grades({"new": 20}).with_columns(aspect=pl.lit("f1")), tmp_path / "new.csv")
    made = call("compare", old, new, "--fail-if-worse", "correct")
    assert made.exit_code == 2
    assert "new has no values of correct" in made.stderr and "f1" in made.stderr


def test_a_gate_that_no_difference_could_fail_says_so(tmp_path: Path) -> None:
    rows = [(f"s{i}", f"q{j}", "f1", 0.9 if i == 0 else 0.1 + j / 100) for i in range(13) for j in range(8)]
    path = save(pl.DataFrame(rows, schema=["system", "query", "aspect", "value"], orient="row"), tmp_path / "o.csv")
    found = call("compare", path, "--fail-if-worse", "f1")
    assert found.exit_code == 0
    assert "no difference by f1 can be significant: for 12 comparisons" in found.stderr  # 12 · 2/2⁸ = 0.094
    assert "more queries, or compare fewer systems" in found.stderr
    assert call("compare", path, "--fail-if-worse", "f1", "--test", "t").exit_code == 3


@pytest.mark.parametrize(("test", "name"), [("sign", "the sign test"), ("wilcoxon", "Wilcoxon's test")])
def test_a_test_of_signs_or_ranks_against_the_means_is_noted(tmp_path: Path, test: str, name: str) -> None:
    rows = [
        (system, f"q{i}", "f1", high if i < 53 else low)
        for system, high, low in (("a", 0.6, 0.6), ("b", 0.65, 0.1))
        for i in range(60)
    ]
    path = save(pl.DataFrame(rows, schema=["system", "query", "aspect", "value"], orient="row"), tmp_path / "o.csv")
    found = call("compare", path, "--fail-if-worse", "f1", "--test", test)
    assert (found.exit_code, "worse:" in found.stderr) == (0, False)
    assert f"{name} points the other way than the means of b and a by f1" in found.stderr
    assert "points the other way" not in call("compare", path, "--test", "t").stderr


@pytest.mark.parametrize(
    ("systems", "first", "words"),
    [
        (["a"], 0, "missing: there is no new/b, so nothing shows that it isn't worse"),
        (["a", "b"], 28, "and 12 of these are the same queries, so it may be worse"),
    ],
)
def test_a_gate_does_not_pass_without_a_comparison(tmp_path: Path, systems: list[str], first: int, words: str) -> None:
    """A system that is gone, or answers to other questions, can't be found worse."""
    for name, mine, start in (("old", ["a", "b"], 0), ("new", systems, first)):
        rows = [(system, f"q{i}", "correct", i % 4 > 0) for system in mine for i in range(start, start + 40)]
        frame = pl.DataFrame(rows, schema=["system", "query", "aspect", "value"], orient="row")
        save(frame.with_columns(pl.col("value").cast(pl.Int64)), tmp_path / f"{name}.csv")
    inputs = [f"{name}={tmp_path / name}.csv" for name in ("old", "new")]
    found = call("compare", *inputs, "--fail-if-worse", "correct")
    assert (found.exit_code, words in found.stderr) == (3, True)
    assert call("compare", *inputs, "--fail-if-worse", "correct", "--incomplete").exit_code == 0
    assert call("compare", *inputs).exit_code == 0
