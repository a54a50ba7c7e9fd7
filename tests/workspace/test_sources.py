"""Files and folders as users have them: labels that are found, and errors that say what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import ragworth
from ragworth.cli import main
from ragworth.core.errors import FormatError, InputError
from ragworth.evaluation.inputs import load_inputs
from ragworth.formats.detection import recognise
from ragworth.formats.grades import GradeError
from ragworth.formats.heads import read_head
from ragworth.workspace.files import USES, FileReader, recognise_file
from ragworth.workspace.problems import Problems
from ragworth.workspace.read import read, read_folder

QUESTIONS = {"q0": "Who built the mill?", "q1": "Who built the dam?"}


def write_logs(folder: Path, labels: str) -> Path:
    for system in ("rag", "closed"):
        rows = [{"query_id": q, "question": text, "answer": "Ann", "reference": "Ann"} for q, text in QUESTIONS.items()]
        (folder / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "human.csv").write_text(labels)
    return folder


def check(path: Path, *options: str) -> str:
    found = CliRunner().invoke(main, ["check", str(path), "--model", "none", *options])
    assert found.exit_code == 0, found.output
    return found.output


def test_labels_are_joined_by_the_text_of_the_question(tmp_path: Path) -> None:
    rows = "".join(f"{text} ,rag,correct\n" for text in QUESTIONS.values())
    said = check(write_logs(tmp_path, f"question,system,label\n{rows}"))
    assert "2 given grades" in said and "All is well" in said


def test_a_folder_with_labels_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    folder = write_logs(tmp_path, "system,query,human_label\nrag,q0,correct\nrag,q1,splendid\n")
    with pytest.raises(GradeError, match=r"human.csv, line 3: 'human_label' has 'splendid'"):
        read([folder])


def test_all_is_not_well_if_a_file_is_not_used(tmp_path: Path) -> None:
    said = check(write_logs(tmp_path, "system,query,label\nother,q0,correct\n"))
    assert "All is well" not in said and "1 file not used" in said


def test_results_are_no_data(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="results of an evaluation") as caught:
        read([tmp_path])
    assert "ragworth report" in caught.value.remedy


def test_a_json_list_of_unknown_records_is_to_be_mapped(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"Frage": "Wer?", "Antwort": "Ann", "Gold": "Ann"}] * 2))
    with pytest.raises(FormatError, match="Frage, Antwort, Gold") as caught:
        read([path])
    assert "--map question=COLUMN --map answer=COLUMN" in caught.value.hint.command


def test_all_bad_lines_are_in_one_error_with_the_column_of_the_systems(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [f"{text},a,{answer}" for text in QUESTIONS.values() for answer in ("Ann", "Bob")]
    path.write_text("\n".join(["question,model,response", *rows]) + "\n")
    with pytest.raises(FormatError, match=r"line 3: .*occurs twice") as caught:
        read([path])
    assert "line 5" in caught.value.more[0] and "system=model" in caught.value.hint.command
    path = tmp_path / "log.jsonl"
    path.write_text('{"question": "a?", "response": "x"}\n{"question": "b?" "response"}\n{"question": "c?"\n')
    with pytest.raises(FormatError, match="line 2: this is not JSON") as caught:
        read([path])
    assert "line 3" in caught.value.more[0]


def test_a_log_with_mistakes_is_never_taken_for_accepted_answers(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    row = {"id": "q0", "question": "Who?", "answer": "Bob", "contexts": ["Ann did."], "ground_truths": ["Ann"]}
    path.write_text("".join(json.dumps({**row, "model": "a", "n": n}) + "\n" for n in range(2)))
    with pytest.raises(FormatError, match=r"line 2: query 'q0' occurs twice") as caught:
        read([path])
    assert "system=model" in caught.value.hint.command


def test_mapped_passages_inside_objects_with_scores_as_text(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    hits = [{"chunk": {"content": "Ann did."}, "score": "0.5"}]
    path.write_text(json.dumps({"in": {"text": "Who?"}, "found": {"hits": hits}, "out": "Ann"}) + "\n")
    contexts = ragworth.load(path, {"question": "in.text", "passages": "found.hits", "answer": "out"}).contexts
    assert contexts is not None and contexts.frame["score"].to_list() == [0.5]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("queries.dev.tsv", "queries"),
        ("topics2019.tsv", "queries"),
        ("docs.tsv", "passages"),
        ("query_answers.tsv", ""),
        ("query_passages.tsv", ""),
        ("relevant_docs.tsv", ""),
        ("docking.tsv", ""),
    ],
)
def test_only_whole_words_in_the_name_of_a_file_say_what_its_texts_are(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("q1\tAnn built it.\nq2\tBob built it.\n")
    head = read_head(tmp_path / name)
    assert [each.kind for each in recognise(head).contents] == ([kind] if kind else [])


def test_files_named_twice_and_parts_of_one_log(tmp_path: Path) -> None:
    first, second = tmp_path / "monday.jsonl", tmp_path / "tuesday.jsonl"
    for path in (first, second):
        path.write_text(json.dumps({"question": f"Who on {path.stem}?", "response": "Ann", "reference": "Ann"}) + "\n")
    with pytest.raises(InputError, match="named twice"):
        read([first, tmp_path / "." / "monday.jsonl"])
    with pytest.raises(InputError, match="parts of one log, join them"):
        read([first, second])


@pytest.mark.parametrize("ids", [("q0", "q1"), ("7", "8")])
@pytest.mark.parametrize("texts", [True, False])
def test_accepted_answers_in_a_file_of_their_own(ids: tuple[str, str], texts: bool, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = [f"{name},{text},Ann" if texts else f"{name},Ann" for name, text in QUESTIONS.items()]
    log.write_text("\n".join(["id,question,prediction" if texts else "id,prediction", *rows]) + "\n")
    gold = tmp_path / "gold.csv"
    rows = [
        f"{name},{text},{answer}" for name, text, answer in zip(ids, QUESTIONS.values(), ("Ann", "Bob"), strict=True)
    ]
    gold.write_text("\n".join(["id,question,expected", *rows, "9,Who sang?,Eve"]) + "\n")
    if not texts and ids[0] not in QUESTIONS:
        with pytest.raises(InputError, match="not every file can be used"):
            read([log, gold])
        return
    inputs = load_inputs(read([log, gold]).workspace, problems := Problems())
    assert inputs is not None and not problems.found
    assert inputs.collection.answers.rows() == [("q0", "Ann"), ("q1", "Bob")]
    assert "1 question with accepted answers left out: no log has them" in inputs.notes


def test_accepted_answers_whose_ids_are_of_other_questions(tmp_path: Path) -> None:
    log, gold = tmp_path / "log.csv", tmp_path / "gold.csv"
    log.write_text("id,question,prediction\n1,Who built it?,Ann\n2,Who burnt it?,Bob\n3,Who built it?,Eve\n")
    gold.write_text("id,question,expected\n1,Who burnt it?,Bob\n2,Who built it?,Ann\n")
    inputs = load_inputs(read([log, gold]).workspace, Problems())
    assert inputs is not None
    assert sorted(inputs.collection.answers.rows()) == [("1", "Ann"), ("2", "Bob"), ("3", "Ann")]


def test_accepted_answers_under_a_mapped_name(tmp_path: Path) -> None:
    log, gold = tmp_path / "log.csv", tmp_path / "gold.csv"
    log.write_text("question,response\nWho?,Ann\n")
    gold.write_text("question,answer\nWho?,Bob\n")
    inputs = load_inputs(read([log, gold], {"accepted": "answer"}).workspace, Problems())
    assert inputs is not None and inputs.collection.answers["text"].to_list() == ["Bob"]
    with pytest.raises(InputError, match="there is nothing to evaluate here"):
        read([gold], {"accepted": "answer"})


def test_questions_with_accepted_answers_beside_passages(tmp_path: Path) -> None:
    (tmp_path / "qa.csv").write_text("question,expected\nWho?,Ann\n")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "Ann built the mill."}\n')
    plan = read([tmp_path]).plan
    assert plan is not None and {"bm25", "reversed"} <= plan.tables["systems"].keys() and not plan.unused


def test_columns_that_no_log_has_come_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"question": "Who?", "relevant_ids": ["d1"]}\n' * 2)
    with pytest.raises(InputError, match="no log has any of the columns that are mapped") as caught:
        read_folder(tmp_path, {"relevant_ids": "relevant_ids"})
    assert caught.value.more == ("questions.jsonl: it has no contexts and no answers",)


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.json", "indented.json"])
def test_a_first_record_of_more_than_a_megabyte(name: str, tmp_path: Path) -> None:
    """Its question stands behind passages of many lines."""
    rows = [
        {"contexts": [passage], "question": question, "answer": "Ann", "ground_truth": "Ann"}
        for passage, question in zip(("Ann built it.\n" * 90_000, "Bob built it."), QUESTIONS.values(), strict=True)
    ]
    path = tmp_path / name
    if name.endswith(".csv"):
        pl.DataFrame(rows).with_columns(pl.col("contexts").list.first()).write_csv(path)
    elif name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text(json.dumps(rows, indent=1 if name == "indented.json" else None))
    assert "2 queries, 2 passages" in check(path)


def test_a_first_record_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps({"contexts": ["Ann " * 70_000], "question": "Who?"}) + "\n{}\n")
    monkeypatch.setenv("RAGWORTH_MAX_LINE", "100K")
    with pytest.raises(FormatError, match="line 1: the first record is longer than 102,400 bytes") as caught:
        read([tmp_path / "log.jsonl"])
    assert "RAGWORTH_MAX_LINE" in caught.value.remedy


def test_a_long_table_whose_cells_have_several_lines(tmp_path: Path) -> None:
    rows = {
        "question": [f"Who built mill {n}?" for n in range(1200)],
        "answer": ["Ann,\n\nwith Bob's 5\" nails"] * 1200,
        "contexts": ["Ann built it.\nBob helped.\n" * 40] * 1200,
    }
    pl.DataFrame(rows).write_csv(tmp_path / "log.csv")
    assert (tmp_path / "log.csv").stat().st_size > 1 << 20
    assert "a log, called 'log', with contexts, answers" in check(tmp_path / "log.csv")


def test_a_long_file_of_few_queries_is_not_said_to_have_many(tmp_path: Path) -> None:
    rows = [
        {"question": f"Who built mill {n}?", "contexts": ["Ann built it. " * 9000], "response": "Ann", "gold": "Ann"}
        for n in range(12)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = check(tmp_path / "log.jsonl")
    assert "12 queries" in output and "many queries" not in output


def test_files_of_one_name_give_results_the_names_of_their_folders(tmp_path: Path) -> None:
    files = []
    for system in ("v1.0", "v1.1", "v2.0"):
        (tmp_path / system).mkdir()
        row = {"question": "Who?", "model": system, "response": "Ann", "expected": "Ann"}
        files.append(tmp_path / system / "eval_results.json")
        files[-1].write_text(json.dumps([row]))
    space = read(files).workspace
    assert space.path(space.results) == tmp_path / "v1.0" / "v1.0-v1.1-v2.0-results"
    alone = read(files[:1]).workspace
    assert alone.path(alone.results) == tmp_path / "v1.0" / "eval_results-results"


@pytest.mark.parametrize("inner", ["", "eval_results"])
def test_files_of_one_name_give_systems_the_names_of_their_folders(inner: str, tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 p 1\n")
    files = [tmp_path / system / inner / "eval_results.jsonl" for system in ("r1", "r2", "r3")]
    for file in files:
        file.parent.mkdir(parents=True)
        row = {"id": "q1", "question": "Who?", "contexts": [{"id": "p", "text": "Ann built it."}], "response": "Ann"}
        file.write_text(json.dumps(row))
    space = read([*files, tmp_path / "qrels.txt"]).workspace
    assert list(space.systems) == ["r1", "r2", "r3"]
    assert space.path(space.results).name == "r1-r2-r3-etc-results"
    assert space.path(read(files).workspace.results).name == "r1-r2-r3-results"
    if not inner:  # a folder is searched two levels deep
        assert list(read([tmp_path]).workspace.systems) == ["r1", "r2", "r3"]


@pytest.mark.parametrize("form", ["native", "log", "list"])
@pytest.mark.parametrize("passage", ["Ann built it.", "Ann built it. " * 900])  # of more than a megabyte in all
def test_a_column_that_only_later_records_have_is_mapped(form: str, passage: str, tmp_path: Path) -> None:
    shown = "retrieved_context" if form == "native" else "contexts"
    row: dict[str, Any] = {shown: [passage], "response": "Ann"}
    rows = [row | {"query": f"Who built mill {n}?"} for n in range(100)]
    rows += [{**row, "query": f"{row['query']} When?", "stars": n} for n, row in enumerate(rows[:10])]
    path = tmp_path / ("log.json" if form == "list" else "log.jsonl")
    path.write_text(json.dumps(rows) if form == "list" else "".join(json.dumps(row) + "\n" for row in rows))
    assert "10 given grades" in check(path, "--map", "higher_stars=stars")
    with pytest.raises(InputError, match="no log has any of the columns"):
        read([path], {"points": "points"})


@pytest.mark.parametrize("prefix", ["", "ragas:"])
def test_a_prefix_works_wherever_a_path_does(prefix: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    row = {"user_input": "Who?", "retrieved_contexts": ["Ann built it."], "response": "Ann", "reference": "Ann"}
    path.write_text(json.dumps(row) + "\n")
    space = read(f"{prefix}{path}").workspace
    assert dict(space.systems) == {"log": f'run("{prefix}log.jsonl")'}
    inputs = load_inputs(space, Problems())
    assert inputs is not None and inputs.answers is not None


@pytest.mark.parametrize(
    ("prefix", "content", "kind"),
    [
        ("table", "query,text\nq1,Who?\n", "queries"),
        ("table", "query,passage,score\nq1,p1,1\n", "run"),
        ("jsonl", '{"query_id": "q1", "text": "Who?"}\n', "queries"),
        ("jsonl", '{"query": "q1", "passage": "p1", "value": 1}\n', "qrels"),
    ],
)
def test_a_prefix_decides_whatever_the_name_of_a_file(prefix: str, content: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text(content)
    (file,) = recognise_file(f"{prefix}:{path}", "data.txt")
    assert (file.kind, file.spec) == (kind, f"{prefix}:data.txt")
    reading = FileReader(problems := Problems())
    reading.read(USES.get(file.kind, file.kind), f"{prefix}:{path}")
    assert not problems.found


def test_a_table_without_rows_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("question,answer,contexts\n")
    with pytest.raises(FormatError, match="no row"):
        read([tmp_path / "log.csv"])


@pytest.mark.parametrize("name", ["beir:nq", "trec:labels.csv"])
def test_prefixes_of_folders_and_of_files_with_another_ending(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nq" / "qrels").mkdir(parents=True)
    (tmp_path / "nq" / "corpus.jsonl").write_text('{"_id": "p1", "text": "Ann built it."}\n')
    (tmp_path / "nq" / "queries.jsonl").write_text('{"_id": "q1", "text": "Who?"}\n')
    (tmp_path / "nq" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tp1\t1\n")
    (tmp_path / "labels.csv").write_text("q1 0 p1 1\n")
    (tmp_path / "bm25.run").write_text("q1 Q0 p1 1 2.5 t\n")
    given = read([name, "bm25.run"]).workspace.collection
    assert (given.whole, given.qrels) == (("beir:nq", ()) if name == "beir:nq" else (None, ("trec:labels.csv",)))


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"question": "Who?", "response": "Ann", "reference": "Ann"}) + "\n")
    inputs = read(path)
    path.unlink()
    found = load_inputs(inputs.workspace, problems := Problems())
    assert found is not None and not problems.found and found.queries


def test_a_file_that_is_named_as_trec_gets_the_error_of_its_line(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("1 Q0 d1 1 3,5 t\n")
    with pytest.raises(FormatError, match="line 1: the score is not a number"):
        recognise_file(f"trec:{path}", "run.txt")


def test_advice_on_a_file_of_a_known_kind_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("system,query_id,quality\nA,q0,4\nB,q0,2\n")
    with pytest.raises(FormatError) as caught:
        recognise_file(str(path), "grades.csv")
    assert caught.value.remedy == "call it higher_quality or lower_quality"


def test_columns_of_a_json_table_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "eval.json"
    path.write_text(json.dumps({"columns": ["inputs", "outputs"], "data": [["Who?", "Ann"], ["When?", "1820"]]}))
    (file,) = recognise_file(str(path), "eval.json", {"question": "inputs", "answer": "outputs"})
    assert file.log is not None and file.log.answers is not None and len(file.log.answers) == 2


def test_texts_in_a_table_of_a_run_are_said_to_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("query_id,question,doc_id,text,rank\n0,Who?,d0,Ann did.,1\n")
    (file,) = recognise_file(str(path), "run.csv")
    assert (file.kind, file.doubt) == ("run", "question, text not read: a run has the ids of passages")
