"""Exports: read back by our own readers, by the imports, and by other commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ragworth import formats, summarise
from ragworth.cli import main
from ragworth.core.errors import FormatError, InputError
from ragworth.formats import outcomes as outcome_files
from ragworth.formats.grades import THREE_WAY
from ragworth.label import judge_tables
from ragworth.label.dataset import LabelledData
from ragworth.label.exports import export_labels
from ragworth.label.exports.contract import safe_file_name
from ragworth.label.exports.notes import export_notes
from ragworth.label.imports import import_labels
from ragworth.label.items import read_items, write_items
from ragworth.label.labels import Label, Labels
from ragworth.label.selection import Selection, select_items
from ragworth.label.tasks import LABEL_TASKS, load_task
from ragworth.label.tasks.custom import parse_custom_task
from ragworth.label.utf16 import from_utf16, to_utf16
from ragworth.studies.rated_coverage import read_coverage
from tests.label.samples import any_value, labels_of, scale_size, small_source


def labelled(kind: str, people: int = 3) -> LabelledData:
    """Everybody labels every item; the people differ here and there."""
    task = load_task(kind)
    items = select_items(task, list(task.items(small_source())), Selection())
    size = scale_size(task)
    choices = {f"person{who}": [(at + who * (at % 2)) % size for at in range(len(items))] for who in range(people)}
    return LabelledData.of(task, items, labels_of(task, items, choices))


@pytest.mark.parametrize("kind", LABEL_TASKS.names())
@pytest.mark.parametrize("form", ["labels", "label-studio"])
def test_what_is_exported_can_be_imported(tmp_path: Path, kind: str, form: str) -> None:
    data = labelled(kind)
    files = export_labels(data, form, tmp_path)
    path = next(file for file in files if file.name != "items.jsonl" and file.suffix in (".jsonl", ".json"))
    for known in (data.items, None):
        found = import_labels(path, form, data.task, known)
        assert {item.id: item.parts for item in found.items} == {item.id: item.parts for item in data.items.values()}
        assert {(one.annotator, one.item): one.value for one in found.labels} == {
            (one.annotator, one.item): one.value for one in data.labels
        }


@pytest.mark.parametrize("kind", ["answerability", "coverage"])
def test_crux_exports_come_back_with_their_highlights(tmp_path: Path, kind: str) -> None:
    data = labelled(kind)
    export_labels(data, "crux", tmp_path)
    found = import_labels(tmp_path, "crux", data.task, data.items)
    back = {(one.annotator, one.item): one.value for one in found.labels}
    for label in data.labels.answers:
        want = {name: value for name, value in (label.value or {}).items() if name != "support"}
        assert back[label.annotator, label.item] == want
    frame = judge_tables.read(tmp_path)
    assert frame.height == len(data.labels.answers)
    assert sorted(frame["judge"].unique()) == data.labels.annotators


def test_crux_without_the_texts_keeps_the_highlight_as_a_comment(tmp_path: Path) -> None:
    row = {"id": "r1", "question_based_nugget": {"Who?": "a man", "Why?": ""}, "answerability": [1, -2]}
    (tmp_path / "anna_qlabels.jsonl").write_text(json.dumps(row) + "\n")
    found = import_labels(tmp_path, "crux", load_task("answerability"))
    (label,) = found.labels
    assert (label.annotator, label.value, label.comment) == ("anna", {"answerable": "answerable"}, "a man")
    assert found.items[0].parts["subquestion"] == "Who?" and "1 label without a highlight" in found.notes[0]
    (tmp_path / "anna_qlabels.jsonl").write_text(json.dumps({**row, "answerability": [1, 7]}) + "\n")
    with pytest.raises(FormatError, match="line 1: the answerability is 7"):
        import_labels(tmp_path, "crux", load_task("answerability"))


@pytest.mark.parametrize("kind", [name for name in LABEL_TASKS.names() if name != "preference"])
def test_tables_with_judges_are_read_by_the_study_of_judges(tmp_path: Path, kind: str) -> None:
    data = labelled(kind)
    files = {file.name: file for file in export_labels(data, "tables", tmp_path)}
    name = next(iter(data.tables))
    frame = judge_tables.read(files[f"{name}.csv"])
    assert sorted(frame["judge"].unique()) == data.labels.annotators
    assert judge_tables.combine_judges({"people": frame})
    for _, part in judge_tables.number_labels(frame).group_by("aspect"):
        assert part["value"].count() == len(data.labels.answers)


def test_pairs_of_systems_are_told_apart_by_the_study_of_judges(tmp_path: Path) -> None:
    task = load_task("preference")
    texts = {"question": "?", "first": "one", "second": "two"}
    pairs = [("a", "b"), ("c", "a"), ("b", "c")]
    items = [task.make_item({"query": "q", "first": first, "second": second}, texts) for first, second in pairs]
    data = LabelledData.of(task, items, labels_of(task, items, {"anna": [0, 0, 1], "ben": [0, 1, 2]}))
    export_labels(data, "tables", tmp_path)
    frame = judge_tables.read(tmp_path / "preferences.csv").filter(pl.col("judge") == "anna")
    assert dict(frame.select("item", "label").iter_rows()) == {"a · b": "a", "a · c": "c", "b · c": "c"}


def test_labels_after_a_suggestion_are_apart_and_decisions_do_not_count_as_a_judge(tmp_path: Path) -> None:
    data = labelled("answerability")
    rows = [replace(label, seen_suggestion=label.annotator == "person2") for label in data.labels]
    rows += [Label("adjudicated", label.item, label.value) for label in rows if label.annotator == "person0"]
    export_labels(LabelledData.of(data.task, data.items.values(), Labels(rows)), "tables", tmp_path)
    assert set(judge_tables.read(tmp_path / "subquestions.csv")["judge"]) == {"person0", "person1", "adjudicated"}
    assert set(judge_tables.read(tmp_path / "suggested-subquestions.csv")["judge"]) == {"person2"}
    assert set(pl.read_csv(tmp_path / "people.csv")["judge"]) == {"person0", "person1", "person2"}


def test_the_majority_is_read_as_judgments_and_a_tie_has_no_value(tmp_path: Path) -> None:
    task = load_task("relevance")
    items = list(task.items(small_source()))
    choices = {"a": [3, 1, 0, 2, 0], "b": [3, 0, 0, 2, 1], "c": [0, 2, 0, 2, 1]}
    data = LabelledData.of(task, items, labels_of(task, items, choices))
    export_labels(data, "tables", tmp_path)
    table = formats.read_judgments(tmp_path / "consensus-judgments.csv")
    assert table.frame["value"].to_list() == [3.0, None, 0.0, 2.0, 1.0]
    assert table.frame["status"].to_list() == ["ok", "no-majority", "ok", "ok", "ok"]
    settled = Labels([*data.labels, Label("adjudicated", items[1].id, any_value(task, items[1], 2))])
    agreed = LabelledData.of(task, items, settled).consensus()["judgments"]
    assert agreed["value"].to_list() == [3.0, 2.0, 0.0, 2.0, 1.0]
    assert agreed["source"][1] == "adjudicated"
    assert not (tmp_path / "estimate-judgments.csv").exists()  # nothing was drawn at random


def test_controls_never_reach_the_tables_and_estimates_get_the_random_share_and_corrections(tmp_path: Path) -> None:
    task = load_task("relevance")
    items = list(task.items(small_source()))
    gold = replace(items[0], id="gold", gold=any_value(task, items[0], 3))
    disagreement = {item.id: 1.0 for item in items}
    drawn = select_items(task, items, Selection(queries=1, disputed=9, repeats=1), disagreement, [gold])
    data = LabelledData.of(task, drawn, labels_of(task, drawn, {"anna": [1] * len(drawn)}))
    assert data.tables["judgments"].height == len(items)
    export_labels(data, "tables", tmp_path)
    random = formats.read_judgments(tmp_path / "estimate-judgments.csv").frame
    assert random["query"].n_unique() == 1
    corrections = formats.read_judgments(tmp_path / "corrections-judgments.csv").frame
    assert corrections.height == len(items)  # every item is disputed, those of the random query too
    judged = pl.read_csv(tmp_path / "judgments.csv")
    assert set(judged["stratum"]) == {"random+disputed", "disputed"} and judged["probability"].null_count() == 0


def test_corrections_wait_until_every_disputed_item_has_a_label(tmp_path: Path) -> None:
    task = load_task("relevance")
    items = list(task.items(small_source()))
    drawn = select_items(task, items, Selection(queries=1, disputed=9), {item.id: 1.0 for item in items})
    labels = labels_of(task, drawn[:-1], {"anna": [1] * (len(drawn) - 1)})
    data = LabelledData.of(task, drawn, labels)
    assert data.unfinished_disputed == 1
    names = {file.name for file in export_labels(data, "tables", tmp_path)}
    assert "estimate-judgments.csv" in names and "corrections-judgments.csv" not in names


def test_the_notes_of_an_export_name_what_its_files_lack(tmp_path: Path) -> None:
    task = load_task("relevance")
    items = list(task.items(small_source()))
    rows = [*labels_of(task, items[:3], {"a": [3, 1, 0], "b": [3, 0, 0]}), Label("a", items[3].id, None, skipped="?")]
    data = LabelledData.of(task, items, Labels(rows))
    assert export_notes(data, "tables") == ("2 of 5 items without a label",)
    first, second = export_notes(data, "qrels")
    assert first.startswith("2 of 5 items without a label; most metrics count")
    assert second.startswith("qrels.txt leaves out 1 of 3 labelled passages: 1 without a majority;")
    drawn = select_items(task, items, Selection())
    (_, unfinished) = export_notes(LabelledData.of(task, drawn, Labels(rows)), "tables")
    assert unfinished.startswith("estimate-….csv lacks 2 items drawn at random; estimates may be biased")
    assert export_notes(data, "labels") == export_notes(labelled("relevance", 1), "qrels") == ()


@pytest.mark.parametrize("form", ["tables", "qrels", "crux"])
def test_an_export_of_no_labels_is_refused(tmp_path: Path, form: str) -> None:
    data = labelled("coverage" if form == "crux" else "relevance", people=0)
    with pytest.raises(InputError, match="there are no labels to export"):
        export_labels(data, form, tmp_path)
    assert len(export_labels(data, "labels", tmp_path)) == 3


def test_a_majority_without_a_score_has_no_value(tmp_path: Path) -> None:
    lines = 'title = "?"\ninstructions = "?"\nabout = "answers"\n[[fields]]\nname = "tone"\ntype = "choice"\n'
    task = parse_custom_task(f'kind = "tone"\n{lines}options = [{{value = "rude"}}, {{value = "polite"}}]')
    items = list(task.items(small_source()))
    data = LabelledData.of(task, items, labels_of(task, items, {"a": [0, 1, 1, 0], "b": [0, 1, 1, 1]}))
    export_labels(data, "tables", tmp_path)
    found = outcome_files.read(tmp_path / "consensus-outcomes.csv").frame
    assert found["status"].to_list() == ["no-score"] * 3 + ["no-majority"] and not found["value"].count()
    judged = judge_tables.read(tmp_path / "consensus-outcomes.csv")
    assert judged["label"].to_list() == ["rude", "polite", "polite", None]


def test_agreed_grades_are_a_judge_beside_a_grader(tmp_path: Path) -> None:
    export_labels(labelled("answer-grade"), "tables", tmp_path)
    people = judge_tables.read(tmp_path / "consensus-outcomes.csv")
    assert set(people["label"].drop_nulls()) <= set(THREE_WAY) and people["label"].count()
    rows = "".join(f"{system},{query},correct\n" for system in ("bm25", "dense") for query in ("q1", "q2"))
    (tmp_path / "grader.csv").write_text(f"system,query,label\n{rows}")
    both = {"people": people, "grader": judge_tables.read(tmp_path / "grader.csv")}
    (joined,) = judge_tables.combine_judges(both).values()
    assert set(joined["judge"]) == {"people", "grader"}
    (tmp_path / "typo.csv").write_text("system,query,value\ns,q1,1\ns,q2,1x\n")
    with pytest.raises(FormatError, match="line 3: the value is not a number"):
        judge_tables.read(tmp_path / "typo.csv")


def test_answers_without_a_number_are_those_of_the_first_repeat(tmp_path: Path) -> None:
    """Labels of answers name the repeat; a grader's file mostly doesn't."""
    (tmp_path / "people.csv").write_text("system,query,repeat,label\nbm25,q1,0,correct\nbm25,q1,1,wrong\n")
    (tmp_path / "grader.csv").write_text("system,query,label\nbm25,q1,correct\n")
    people, grader = (judge_tables.read(tmp_path / f"{name}.csv") for name in ("people", "grader"))
    assert (people["item"].to_list(), grader["item"].to_list()) == (["bm25", "bm25 · 1"], ["bm25"])


def test_qrels_have_a_file_for_everybody(tmp_path: Path) -> None:
    files = export_labels(labelled("relevance"), "qrels", tmp_path)
    assert [file.name for file in files] == ["qrels.txt", *(f"person{at}.qrels.txt" for at in range(3))]
    assert formats.read_judgments(files[1]).frame.height == 5
    with pytest.raises(InputError, match="are no relevance"):
        export_labels(labelled("preference"), "qrels", tmp_path)


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "Zoë", "", ".", "con\n"])
def test_names_of_people_are_no_paths(name: str) -> None:
    made = safe_file_name(name)
    assert made.isascii() and made.replace("-", "").replace("_", "").isalnum()
    assert safe_file_name("anna") == "anna" != safe_file_name("anna ")


def test_items_survive_a_file(tmp_path: Path) -> None:
    data = labelled("utility")
    items = [replace(item, suggestion=any_value(data.task, item, 0)) for item in data.items.values()]
    assert write_items(items, tmp_path / "items.jsonl.gz") == len(items)
    assert read_items(tmp_path / "items.jsonl.gz", data.task) == items


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"parts": {"question": "?"}}, "no text 'passage'"),
        ({"parts": {"question": "?", "passage": "!", "more": ""}}, "a text 'more'"),
        ({"parts": {"question": "?", "passage": 3}}, "parts.passage is '3'"),
        ({"parts": {"question": "?", "passage": "!"}, "probability": 0}, "probability is 0"),
        ({"parts": {"question": "?", "passage": "!"}, "gold": {"relevance": "9"}}, "gold: Relevance"),
        ({"parts": {"question": "?", "passage": "!"}, "system": "bm25"}, "system is 'bm25': unexpected"),
        ({"parts": {"question": "?", "passage": "!"}, "task": "utility"}, "not relevance"),
        ({"parts": {"question": "?", "passage": "!"}, "repeat_of": "x"}, "isn't there"),
    ],
)
def test_a_wrong_item_is_named_with_its_line(tmp_path: Path, row: dict[str, object], problem: str) -> None:
    good = {"parts": {"question": "?", "passage": "one"}}
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (good, row)))
    with pytest.raises(FormatError, match=problem):
        read_items(tmp_path / "items.jsonl", load_task("relevance"))


def test_labels_survive_files_and_are_checked(tmp_path: Path) -> None:
    when = "2026-01-02T03:04:05+00:00"
    rows = [Label("anna", "i1", {"relevance": "2"}, when, when, 2.5, "", "hm 🙂", True)]
    rows += [Label("adjudicated", "i1", {"relevance": "1"}), Label("ben", "i1", None, skipped="unclear")]
    for name in ("labels.jsonl", "labels.parquet", "labels.jsonl.zst"):
        Labels(rows).write(tmp_path / name)
        assert list(Labels.read(tmp_path / name)) == rows
    for bad, problem in [
        ({"item": "i"}, "annotator: field required"),
        ({"annotator": "a", "item": "i"}, "neither a value nor a reason"),
        ({"annotator": "a", "item": "i", "value": 3}, "value is '3'"),
        ({"annotator": "a", "item": "i", "value": {}, "seconds": -1}, "not a duration"),
        ({"annotator": "a", "item": "i", "value": {}, "shown_at": "yesterday"}, "not a time"),
        ({"annotator": "a", "item": "i", "value": {}, "colour": 1}, "colour is '1': unexpected"),
        ({"annotator": "a", "item": "i", "value": {}, "adjudicated": True}, "adjudicated is True"),
    ]:
        (tmp_path / "bad.jsonl").write_text(json.dumps(bad) + "\n")
        with pytest.raises(FormatError, match=problem):
            Labels.read(tmp_path / "bad.jsonl")
    with pytest.raises(FormatError, match="labels the item 'i1' twice"):
        Labels([rows[0], rows[0]])


def test_label_studio_counts_utf16_units() -> None:
    text = "🙂 e\u0301 שלום 川 🏴"
    for at in range(len(text) + 1):
        assert to_utf16(text, at) == len(text[:at].encode("utf-16-le")) // 2
        assert from_utf16(text, to_utf16(text, at)) == at
    assert from_utf16(text, 1) is None and from_utf16(text, 99) is None


def test_a_highlight_of_another_text_is_refused(tmp_path: Path) -> None:
    data = labelled("utility", 1)
    (path, _) = export_labels(data, "label-studio", tmp_path)
    tasks = json.loads(path.read_text())
    result = next(r for task in tasks for one in task["annotations"] for r in one["result"] if r["type"] == "labels")
    result["value"]["text"] = "something else"
    path.write_text(json.dumps(tasks))
    with pytest.raises(FormatError, match="a highlight of 'something else'"):
        import_labels(path, "label-studio", data.task)
    tasks[0]["data"]["passage"] = "changed"
    path.write_text(json.dumps(tasks))
    with pytest.raises(FormatError, match="is another text"):
        import_labels(path, "label-studio", data.task, data.items)


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", "[{}]", '[{"data": 1}]', '[{"fields": {}}]'])
def test_other_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError):
        import_labels(tmp_path / "a.json", "label-studio", load_task("relevance"))


def test_grades_are_written_as_words_so_that_nobody_takes_minus_one_for_a_share(tmp_path: Path) -> None:
    data = labelled("answer-grade")
    export_labels(data, "tables", tmp_path)
    by_judge, agreed = (pl.read_csv(tmp_path / f"{name}outcomes.csv") for name in ("", "consensus-"))
    assert "value" not in by_judge.columns and set(by_judge["label"]) <= set(THREE_WAY)
    assert set(agreed["value"].drop_nulls()) <= set(THREE_WAY)
    means = summarise(outcome_files.read(tmp_path / "consensus-outcomes.csv"))
    assert {"human-correct", "human-wrong"} <= set(means["metric"])


def test_estimate_refuses_disputed_items_in_the_sample_and_takes_them_as_corrections(tmp_path: Path) -> None:
    task = load_task("answer-grade")
    items = list(task.items(small_source()))
    drawn = select_items(task, items, Selection(queries=1, disputed=9), {item.id: 1.0 for item in items})
    data = LabelledData.of(task, drawn, labels_of(task, drawn, {"anna": [0] * len(drawn)}))
    export_labels(data, "tables", tmp_path)
    rows = "".join(f"{s},{q},grade,1\n" for s in ("bm25", "dense") for q in ("q1", "q2"))
    (tmp_path / "cheap.csv").write_text("system,query,aspect,value\n" + rows)
    files = [str(tmp_path / f"{name}.csv") for name in ("cheap", "consensus-outcomes", "estimate-outcomes")]
    refused = CliRunner().invoke(main, ["estimate", files[0], "--expensive", files[1], "-m", "correct"])
    assert refused.exit_code == 2 and "2 rows of 4 are not of a random share" in refused.output
    arguments = ["estimate", files[0], "--expensive", files[2], "-m", "correct"]
    done = CliRunner().invoke(main, [*arguments, "--corrections", str(tmp_path / "corrections-outcomes.csv")])
    assert done.exit_code == 0, done.output
    assert "4 values of the cheap judge corrected" in done.output
    missing = CliRunner().invoke(main, [*arguments, "--corrections", str(tmp_path / "none.csv")])
    assert missing.exit_code == 2 and "none.csv" in missing.output and "selected" not in missing.output
    for file, problem in ((files[0], "nothing says how these labels were selected"), (files[2], "not drawn for dis")):
        (tmp_path / "plain.csv").write_text(Path(file).read_text().replace("random+disputed", "random"))
        refused = CliRunner().invoke(main, [*arguments, "--corrections", str(tmp_path / "plain.csv")])
        assert refused.exit_code == 2 and problem in refused.output


def test_people_s_coverage_is_read_by_the_long_form_study(tmp_path: Path) -> None:
    data = labelled("answerability")
    export_labels(data, "tables", tmp_path)
    both = {query: frozenset({"0", "1"}) for query in ("q1", "q2")}
    found = read_coverage(tmp_path / "people.csv", both, ["bm25", "dense"])
    assert found.height == 2 * 2 * 3 and found["value"].is_between(0, 1).all()
    marks = data.tables["subquestions"].filter(system="bm25", query="q1", judge="person0")["value"]
    mine = found.filter(system="bm25", query="q1", judge="person0")["value"]
    assert mine.to_list() == pytest.approx([marks.mean()])


def test_coverage_by_a_judge_who_saw_a_part_of_the_sub_questions_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("system,query,subquestion,judge,value\ns,q,1,ana,1\ns,q,2,ana,0\ns,q,1,ben,1\ns,q,3,ben,1\n")
    found = read_coverage(path, {"q": frozenset("12")}, ["s"])
    assert dict(found.select("judge", "value").iter_rows()) == {"ana": 0.5, "ben": None}
    with pytest.raises(InputError, match="no judge labelled all answerable"):
        read_coverage(path, {"q": frozenset("123")}, ["s"])
