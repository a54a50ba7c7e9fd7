"""``ragworth study judges``: agreement is what a textbook makes of it, wherever the judges come from."""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.simulated_reader import collection
from sklearn.metrics import cohen_kappa_score, precision_score, recall_score

import ragworth
from ragworth.core.errors import FormatError, InputError
from ragworth.llm.contract import Choose, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.report.study.findings import left_out_words
from ragworth.studies.run import plan_study
from tests.studies.conftest import Opened
from tests.studies.planted import alike

QUICK: dict[str, Any] = {"resamples": 100, "keep": False}


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def panel(seed: int = 1, things: int = 60, flip: float = 0.2) -> dict[str, list[int]]:
    """Three judges of the same things: the truth, and two that are wrong now and then."""
    draw = random.Random(seed)
    truth = [draw.randint(0, 1) for _ in range(things)]
    others = [[1 - each if draw.random() < flip else each for each in truth] for _ in range(2)]
    return {"truth": truth, "a": others[0], "b": others[1]}


def rows_of(judges: dict[str, list[int]], **more: Any) -> list[dict[str, Any]]:
    return [
        {"judge": judge, "query": f"q{at // 4}", "passage": f"p{at}", "value": value, **more}
        for judge, values in judges.items()
        for at, value in enumerate(values)
    ]


def test_one_table_with_a_column_of_judges(tmp_path: Path, opened: Opened) -> None:
    judges = panel()
    place = table(tmp_path / "panel.csv", rows_of(judges))
    found = ragworth.study("judges", place, reference="truth", **QUICK).findings
    frames = {shown.name: shown.frame for shown in found.tables}
    assert list(frames) == ["judges", "together", "pairs", "reference", "confusions"]
    for row in frames["pairs"].to_dicts():
        x, y = judges[row["first"]], judges[row["second"]]
        assert row["κ"] == pytest.approx(cohen_kappa_score(x, y)) and row["κ low"] < row["κ"] < row["κ high"]
        assert row["κ quadratic"] == pytest.approx(row["κ"])  # with two labels the weights do nothing
        assert row["Spearman ρ"] == pytest.approx(np.corrcoef(x, y)[0, 1])
        assert row["equal"] == pytest.approx(np.mean(np.array(x) == np.array(y)))
    for row in frames["reference"].to_dicts():
        given, true = np.array(judges[row["judge"]]), np.array(judges["truth"])
        given, true = (given, true) if row["label"] == "yes" else (1 - given, 1 - true)
        assert row["precision"] == pytest.approx(precision_score(true, given)) and row["recall"] == pytest.approx(
            recall_score(true, given)
        )
        assert row["precision low"] <= row["precision"] <= row["precision high"]
    together = {row["measure"]: row["value"] for row in frames["together"].to_dicts()}
    assert together["Fleiss κ"] == pytest.approx(fleiss(np.array(list(judges.values())).T))
    assert together["Krippendorff α, nominal"] == pytest.approx(together["Krippendorff α, interval"])
    confused = frames["confusions"].filter((pl.col("second") == "a") & (pl.col("first says") == "1"))
    assert confused["items"].sum() == sum(judges["truth"]) and confused["share"].sum() == pytest.approx(1)
    assert "Against truth, a has precision" in found.sentences[0]


def fleiss(ratings: np.ndarray[Any, Any]) -> float:
    """Fleiss' κ from its definition."""
    counts = np.stack([(ratings == label).sum(axis=1) for label in np.unique(ratings)], axis=1)
    n = ratings.shape[1]
    seen = ((counts**2).sum(axis=1) - n).mean() / (n * (n - 1))
    chance = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
    return float((seen - chance) / (1 - chance))


def test_a_file_for_each_judge_is_the_same_panel(tmp_path: Path, opened: Opened) -> None:
    judges = panel()
    whole = ragworth.study("judges", table(tmp_path / "panel.csv", rows_of(judges)), **QUICK).findings
    files = []
    for judge, values in judges.items():
        lines = [{name: row[name] for name in ("query", "passage", "value")} for row in rows_of({judge: values})]
        files.append(table(tmp_path / f"{judge}.csv", lines))
    # Qrels are judgments too.
    qrels = "".join(f"q{at // 4} 0 p{at} {value}\n" for at, value in enumerate(judges["truth"]))
    (tmp_path / "truth.qrels").write_text(qrels, encoding="utf-8")
    apart = ragworth.study("judges", [tmp_path / "truth.qrels", *files[1:]], **QUICK).findings
    for name in ("κ", "Spearman ρ"):
        assert apart.tables[2].frame[name].to_list() == pytest.approx(whole.tables[2].frame[name].to_list())
    assert apart.tables[2].frame["first"].to_list() == ["truth", "truth", "a"]


def test_missing_values_words_and_things_judged_once(tmp_path: Path, opened: Opened) -> None:
    rows = [
        {"judge": judge, "query": f"q{at}", "system": "s", "label": label}
        for judge, labels in (
            ("a", ["correct", "wrong", "abstained", "correct", ""]),
            ("b", ["correct", "wrong", "wrong", "", ""]),
        )
        for at, label in enumerate(labels)
    ]
    found = ragworth.study("judges", table(tmp_path / "w.csv", rows), **QUICK).findings
    pair = found.tables[2].frame.row(0, named=True)
    assert (pair["items"], pair["one of them missing"]) == (3, 2) and pair["equal"] == pytest.approx(2 / 3)
    assert found.tables[0].frame["without a value"].to_list() == [1, 2]
    assert found.left_out.row(0)[1:] == ("judgments: fewer than two judgments", 2, "items")
    assert left_out_words(found.left_out).startswith("2 items left out; the same item can")
    words = [{**row, "label": {"correct": "red", "wrong": "blue"}.get(row["label"], "green")} for row in rows]
    plain = (
        ragworth.study("judges", table(tmp_path / "x.csv", words), **QUICK).findings.tables[2].frame.row(0, named=True)
    )
    assert plain["κ"] is not None and plain["Spearman ρ"] is None and "words without an order" in plain["why"]


def labelled(path: Path, labels: list[Any]) -> Path:
    """The labels of one judge of the same things."""
    return table(path, [{"query": f"q{at // 3}", "passage": f"p{at}", "label": each} for at, each in enumerate(labels)])


def test_words_mean_the_same_in_every_file(tmp_path: Path, opened: Opened) -> None:
    """A label that one file alone has must not move the numbers of the others."""
    draw = random.Random(1)
    truth = [draw.choice(["no", "yes"]) for _ in range(60)]
    other = ["maybe" if at == 3 else each for at, each in enumerate(truth)]
    files = [labelled(tmp_path / "first.csv", truth), labelled(tmp_path / "second.csv", other)]
    found = ragworth.study("judges", files, **QUICK).findings
    pair = found.tables[2].frame.row(0, named=True)
    assert pair["equal"] == pytest.approx(59 / 60) and pair["κ"] == pytest.approx(cohen_kappa_score(truth, other))
    said = {(row["first says"], row["second says"]): row["items"] for row in found.tables[3].frame.to_dicts()}
    assert said == {
        (a, b): sum(pair == (a, b) for pair in zip(truth, other, strict=True))
        for a, b in set(zip(truth, other, strict=True))
    }
    # Grades keep their worth only while all labels are grades; then numbers may stand beside them.
    grades = [{"no": "wrong", "yes": "correct"}[each] for each in truth]
    worth = [{"no": -1, "yes": 1}[each] for each in truth]
    files = [labelled(tmp_path / "words.csv", grades), labelled(tmp_path / "numbers.csv", worth)]
    assert ragworth.study("judges", files, **QUICK).findings.tables[2].frame["κ"][0] == 1
    files[1] = labelled(tmp_path / "more.csv", ["unsure", *grades[1:]])
    pair = ragworth.study("judges", files, **QUICK).findings.tables[2].frame.row(0, named=True)
    assert pair["equal"] == pytest.approx(59 / 60) and pair["Spearman ρ"] is None


def test_precision_of_words_needs_to_know_which_means_yes(tmp_path: Path, opened: Opened) -> None:
    """By the alphabet, "unsupported" would be the yes."""
    judges = panel(flip=0.3)
    names = {0: "Unsupported", 1: "supported"}
    files = [labelled(tmp_path / f"{name}.csv", [names[each] for each in judges[name]]) for name in ("truth", "a")]
    found = ragworth.study("judges", files, reference="truth", **QUICK).findings
    assert "reference" not in [shown.name for shown in found.tables] and "Against" not in found.sentences[0]
    assert "which of supported, unsupported means yes" in found.notes[-1]
    named = ragworth.study("judges", files, reference="truth", yes="Supported", **QUICK).findings
    assert not named.notes and "Against truth, a has precision" in named.sentences[0]
    rows = {row["label"]: row for row in named.tables[3].frame.to_dicts()}
    assert rows["yes"]["precision"] == pytest.approx(precision_score(judges["truth"], judges["a"]))
    assert rows["yes"]["recall"] == pytest.approx(recall_score(judges["truth"], judges["a"]))
    assert rows["no"]["recall"] == pytest.approx(recall_score(judges["truth"], judges["a"], pos_label=0))
    assert rows["yes"]["yes is"] == "supported"
    with pytest.raises(InputError, match="yes is 'no', and no judge says that"):
        ragworth.study("judges", files, reference="truth", yes="no", **QUICK)
    with pytest.raises(InputError, match="numbers have no labels"):
        numbers = table(tmp_path / "panel.csv", rows_of(judges))
        ragworth.study("judges", numbers, reference="truth", yes="1", **QUICK)


@pytest.mark.slow
def test_graders_of_an_evaluation_are_judges(tmp_path: Path, opened: Opened) -> None:
    place = collection(tmp_path / "w", queries=12)
    ragworth.evaluate(place)
    outcomes = pl.read_parquet(place / "results/outcomes.parquet")
    draw = random.Random(0)
    rows = outcomes.filter(pl.col("aspect") == "grade").to_dicts()
    people = [
        {
            "system": row["system"],
            "query": row["query"],
            "aspect": f"person-{who}",
            "value": row["value"] if draw.random() < 0.8 else 0.0,
        }
        for who in (1, 2)
        for row in rows
    ]
    table(place / "people.csv", people)
    toml = (place / "ragworth.toml").read_text().replace("[grades]\n", '[grades]\nfiles = "people.csv"\n')
    (place / "ragworth.toml").write_text(toml, encoding="utf-8")
    ragworth.evaluate(place)
    found = ragworth.study("judges", place / "results", aspects="grade,person-1,person-2", **QUICK).findings
    assert set(found.tables[0].frame["judge"]) == {"grade", "person-1", "person-2"}
    mine = {row["query"]: row["value"] for row in people if row["aspect"] == "person-1"}
    graded = {row["query"]: row["value"] for row in rows}
    pair = (
        found.tables[2]
        .frame.filter((pl.col("first") != "person-2") & (pl.col("second") != "person-2"))
        .row(0, named=True)
    )
    order = sorted(graded)
    wanted = cohen_kappa_score([str(graded[q]) for q in order], [str(mine[q]) for q in order])
    assert pair["κ"] == pytest.approx(wanted)
    with pytest.raises(InputError, match=r"there is no .?nobody"):
        ragworth.study("judges", place / "results", aspects="grade,nobody", **QUICK)


@pytest.mark.slow
def test_models_judge_a_workspace_beside_its_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    def judge(name: str) -> Any:
        def reply(request: Request) -> ScriptedReply:
            assert isinstance(request, Choose)
            text = request.prompt.messages[-1].content
            right = " gold " in text
            number = re.search(r"\bq(\d+)", text)  # the careless judge errs on every third question
            slip = name == "careless" and number is not None and int(number[1]) % 3 == 0
            yes = 0.9 if right != slip else 0.1
            return dict(zip(request.labels, (yes, 1 - yes), strict=True))

        return reply

    made: list[Scripted] = []

    def llm(spec: str = "", **options: Any) -> Scripted:
        made.append(Scripted(judge(spec), name=spec))
        return made[-1]

    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", llm)
    place = collection(tmp_path / "w", queries=20)
    settings: dict[str, Any] = {"models": "careful,careless", "reference": "labels"}
    assert [stage.name for stage in plan_study("judges", [place], **settings)] == [
        "judge-1.relevance",
        "judge-2.relevance",
    ]
    found = ragworth.study("judges", place, resamples=100, **settings)
    pairs = {(row["first"], row["second"]): row["κ"] for row in found.findings.tables[2].frame.to_dicts()}
    assert pairs["labels", "careful"] == 1 and pairs["labels", "careless"] < 0.7
    asked = sum(each.calls for each in made)
    again = ragworth.study("judges", place, **QUICK, **settings)
    assert sum(each.calls for each in made) == asked and alike(found.findings, again.findings)
    taken = ragworth.study("judges", place / "results/studies/judges/cases/01", **QUICK, reference="labels")
    assert alike(found.findings, taken.findings)


def test_bad_input(tmp_path: Path, opened: Opened) -> None:
    judges = panel(things=8)
    place = table(tmp_path / "panel.csv", rows_of(judges))
    with pytest.raises(InputError, match="no judge 'nobody'"):
        ragworth.study("judges", place, reference="nobody", **QUICK)
    with pytest.raises(InputError, match="more than once"):
        ragworth.study("judges", table(tmp_path / "twice.csv", rows_of(judges) * 2), **QUICK)
    with pytest.raises(FormatError, match="no judgments among the columns"):
        ragworth.study("judges", table(tmp_path / "other.csv", [{"query": "q", "text": "t"}]), **QUICK)
    one = table(tmp_path / "one.csv", rows_of({"a": judges["a"]}))
    with pytest.raises(InputError, match="nobody judges what another judges"):
        ragworth.study("judges", one, **QUICK)
    with pytest.raises(InputError, match="there is one judge"):
        bare = collection(tmp_path / "w", queries=4)
        toml = (bare / "ragworth.toml").read_text().replace('qrels = "qrels.txt"\n', "")
        (bare / "ragworth.toml").write_text(toml, encoding="utf-8")
        ragworth.study("judges", bare, **QUICK)
    for models in ("embedded,embedded", "embedded, embedded", "embedded,,x"):
        with pytest.raises(InputError, match="each once"):
            ragworth.study("judges", bare, models=models, **QUICK)
    with pytest.raises(InputError, match="is of contexts"):
        ragworth.study("judges", collection(tmp_path / "v", queries=4), judgment="confidence", **QUICK)
    constant = table(tmp_path / "same.csv", rows_of({"a": [1] * 8, "b": [1] * 8}))
    found = ragworth.study("judges", constant, **QUICK).findings
    assert "Agreement has no value" in found.sentences[0] and found.tables[2].frame["κ"][0] is None
