"""Tasks: what every one of them must do, then what is special in each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ragworth.core.errors import InputError
from ragworth.label.tasks import LABEL_TASKS, LabelTask, load_task
from ragworth.label.tasks.fields import MAX_SPANS, make_span, span_text, text_hash
from tests.label.samples import any_value, scale_size, small_source


@pytest.fixture(params=LABEL_TASKS.names())
def task(request: pytest.FixtureRequest) -> LabelTask:
    return load_task(request.param)


def test_every_task_has_valid_items_with_ids_that_stay(task: LabelTask) -> None:
    first, second = (list(task.items(small_source())) for _ in range(2))
    assert first == second and first
    assert len({item.id for item in first}) == len(first)
    assert all(not task.item_problems(item) and item.task == task.kind and item.group for item in first)


def test_no_task_shows_a_system_name_or_an_id(task: LabelTask) -> None:
    for item in task.items(small_source()):
        shown = " ".join(item.parts.values())
        assert not any(name in shown for name in ("bm25", "dense", "p1"))


def test_every_item_is_named_by_its_facts(task: LabelTask) -> None:
    items = list(task.items(small_source()))
    assert len({repr(task.keys(item)) for item in items}) == len(items)
    assert not any(map(task.missing_names, items))
    assert task.missing_names(replace(items[0], meta={}))
    assert not task.missing_names(replace(items[0], meta={}, gold=any_value(task, items[0], 0)))


def test_every_value_of_every_scale_can_be_given_and_has_rows(task: LabelTask) -> None:
    item = next(task.items(small_source()))
    for choice in range(scale_size(task)):
        value = any_value(task, item, choice)
        assert task.validate(value, item) == []
        rows = task.rows(item, value)
        assert rows and all(row.keys["query"] == item.meta["query"] for row in rows)


def test_every_task_refuses_nonsense(task: LabelTask) -> None:
    item = next(task.items(small_source()))
    good = any_value(task, item, scale_size(task) - 1)
    wrong: list[object] = [None, [], "yes", {}, {**good, "other": 1}, {**good, task.main.name: "none of them"}]
    for bad in wrong:
        assert task.validate(bad, item)
    assert task.validate({**good, task.main.name: ["0"]}, item)


def test_keys_are_distinct_and_instructions_have_an_example(task: LabelTask) -> None:
    keys = [option.key for option in task.main.options]
    assert len(set(keys)) == len(keys)
    assert "Example" in task.instructions
    assert json.loads(json.dumps(task.describe()))["kind"] == task.kind


def test_answerable_needs_a_highlight_and_unanswerable_none() -> None:
    task = load_task("answerability")
    item = next(task.items(small_source()))
    span = make_span("report", item.parts["report"], 0, 3)
    assert span_text(span, item.parts) == "The"
    assert task.validate({"answerable": "answerable"}, item) == ["Highlight the words that answer the question."]
    assert task.validate({"answerable": "answerable", "nuggets": [span]}, item) == []
    assert task.validate({"answerable": "unanswerable", "nuggets": [span]}, item)
    assert task.validate({"answerable": "unanswerable", "nuggets": []}, item) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"start": 3, "end": 3}, "from 3 to 3"),
        ({"end": 999}, "to 999"),
        ({"start": -1}, "from -1"),
        ({"start": True}, "from True"),
        ({"start": 0.0}, "from 0.0"),
        ({"part": "question"}, "can't be highlighted"),
        ({"sha256": text_hash("another")}, "another version"),
        ({"start": 2, "end": 3}, "blanks"),
    ],
)
def test_a_span_must_be_in_its_text(change: dict[str, object], problem: str) -> None:
    task = load_task("utility")
    item = task.make_item({"query": "q", "passage": "p"}, {"question": "?", "passage": "It is so"})
    span = make_span("passage", "It is so", 0, 2) | change
    (found,) = task.validate({"utility": "answers", "support": [span]}, item)
    assert problem in found


def test_spans_neither_overlap_nor_come_in_thousands() -> None:
    task = load_task("utility")
    text = "a " * 500
    item = task.make_item({"query": "q", "passage": "p"}, {"question": "?", "passage": text})
    one, two = make_span("passage", text, 0, 5), make_span("passage", text, 4, 9)
    assert "overlap" in task.validate({"utility": "answers", "support": [one, two]}, item)[0]
    many = [make_span("passage", text, 2 * at, 2 * at + 1) for at in range(MAX_SPANS + 1)]
    assert "201 spans" in task.validate({"utility": "answers", "support": many}, item)[0]
    assert task.validate({"utility": "answers", "support": many[:-1]}, item) == []


def test_sides_of_a_preference_are_shuffled_and_rows_undo_it() -> None:
    task = load_task("preference")
    items = [next(task.items(small_source(seed=seed))) for seed in range(20)]
    assert {item.meta["first"] for item in items} == {"bm25", "dense"}
    for item in items:
        side = "first" if item.meta["first"] == "bm25" else "second"
        (row,) = task.rows(item, {"better": side})
        assert (row.keys["system"], row.keys["other"], row.value, row.label) == ("bm25", "dense", 1.0, "bm25")
        assert task.rows(item, {"better": "tie"})[0].value == 0.5


def test_equal_answers_are_not_compared() -> None:
    source = small_source()
    assert [item.meta["query"] for item in load_task("preference").items(source)] == ["q1"]
    assert source.left_out["both sides are the same"] == 1


def test_coverage_opens_one_answerable_and_one_other_question_a_passage() -> None:
    source = small_source()
    earlier, coverage = load_task("answerability"), load_task("coverage")
    first = [item for item in earlier.items(source) if item.group == "q1" and item.meta["system"] == "bm25"]
    marked = [
        (item, {"answerable": "answerable" if item.meta["subquestion"] == "1" else "unanswerable"}) for item in first
    ]
    candidates = [item for item in coverage.items(source) if item.group == "q1"]
    opened = coverage.open_items("anna", candidates, marked, 0)
    by_passage: dict[str, list[str]] = {}
    for item in opened:
        by_passage.setdefault(item.meta["passage"], []).append(item.meta["subquestion"])
    assert len(by_passage) == 2 and all(asked == ["1", "0"] for asked in by_passage.values())
    assert coverage.open_items("anna", candidates, marked, 0) == opened
    none = [(item, {"answerable": "unanswerable"}) for item in first]
    assert len(coverage.open_items("anna", candidates, none, 0)) == 2
    assert coverage.after == earlier.kind


def test_what_lacks_a_text_is_counted() -> None:
    source = small_source()
    passages = source.collection.passages.filter(source.collection.passages["passage"] != "p2")
    fewer = replace(source, collection=replace(source.collection, passages=passages))
    items = list(load_task("relevance").items(fewer))
    assert [item.meta["passage"] for item in items] == ["p1", "p4", "p3", "p1"]
    assert fewer.left_out == {"no-passage-text": 1}


CUSTOM = """\
kind = "tone"
title = "How does the answer sound?"
instructions = "Judge the tone. **Example** …"
about = "answers"

[[fields]]
name = "tone"
type = "choice"
options = [
  {value = "polite", score = 1.0},
  {value = "rude", key = "z", anchor = "mocks the reader", score = 0.0},
]

[[fields]]
name = "where"
type = "spans"
parts = ["answer"]

[[rules]]
field = "tone"
values = ["rude"]
requires = "where"
message = "Highlight the rude words."
"""


def test_a_custom_task_works_like_the_others(tmp_path: Path) -> None:
    (tmp_path / "tone.toml").write_text(CUSTOM)
    task = load_task(str(tmp_path / "tone.toml"))
    item = next(task.items(small_source()))
    assert item.parts["answer"] == "The Ilm."
    assert [option.key for option in task.main.options] == ["1", "z"]
    assert task.validate({"tone": "rude"}, item) == ["Highlight the rude words."]
    (row,) = task.rows(item, {"tone": "polite"})
    assert (row.table, row.aspect, row.value, row.label) == ("outcomes", "tone", 1.0, "polite")


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ('type = "choice"', 'type = "chioce"', 8, "fields.0.type is 'chioce', not one of 'choice'"),
        ('about = "answers"', 'about = "tables"', 4, "about is 'tables'"),
        ('kind = "tone"', 'kind = "Tone!"', 1, "kind is 'Tone!'"),
        ('parts = ["answer"]', 'parts = ["reply"]', 17, "parts is"),
        ('values = ["rude"]', 'values = ["ruder"]', 21, "values is"),
        ('requires = "where"', 'requires = "there"', 22, "requires is 'there'"),
        ('key = "z"', 'key = "1"', 9, "the key of 'rude' is '1'"),
        ('key = "z"', 'key = "u"', 9, "the key of 'rude' is 'u'"),
        ("score = 1.0", "score = true", 9, "options.0.score is True, not a valid number"),
        (", score = 0.0", "", 9, "some options have a score"),
        ('title = "How does the answer sound?"\n', "", None, "title is missing"),
        ('name = "where"', 'nmae = "where"', 14, "no 'nmae'; did you mean 'name'"),
        ('kind = "tone"', "kind = ", 1, "not valid TOML"),
    ],
)
def test_a_mistake_in_a_custom_task_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, line: int | None, problem: str
) -> None:
    file = tmp_path / "tone.toml"
    file.write_text(CUSTOM.replace(old, new))
    with pytest.raises(InputError, match=problem) as caught:
        load_task(str(file))
    assert (caught.value.file, caught.value.line) == (str(file), line)
