"""Nuggets: collected window by window, assigned by label probability, and scored."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ragworth.build.nuggets.assignment import SCORES, NuggetGrader, assigned_answers, nugget_scores
from ragworth.build.nuggets.creation import NuggetCreator, NuggetItem, NuggetResult
from ragworth.build.nuggets.files import (
    Nugget,
    NuggetList,
    read_nuggets,
    write_assignments,
    write_nuggets,
)
from ragworth.calls.job import Job
from ragworth.calls.programs import NoValue
from ragworth.cli import main
from ragworth.core.errors import FormatError
from ragworth.data import Answers
from ragworth.data.collection import Collection
from ragworth.judging.contract import run_task
from ragworth.judging.judge import JudgingResult
from ragworth.judging.text_lookup import AnswerBook, TextLookup
from ragworth.llm.contract import Choose, Failure, Request
from ragworth.llm.prompts import load_prompt
from ragworth.llm.scripted import Scripted, ScriptedReply
from tests.conftest import Save

COLLECTION = Collection.of(
    queries={"query": ["q"], "text": ["Who built the mill?"]},
    passages={"passage": ["a", "b"], "text": ["Ann built it.", "It was built in 1901."]},
)
LIST = NuggetList("q", "Who built the mill?", (Nugget("Ann built it", "vital"), Nugget("in 1901", "okay")))


def text_of(request: Request) -> str:
    return request.prompt.messages[-1].content


def reply(request: Request) -> ScriptedReply:
    said = text_of(request)
    if isinstance(request, Choose):
        return {"vital": 0.8, "okay": 0.1} if "Ann built it" in said else {"vital": 0.1, "okay": 0.8}
    before = [text for text in ("Ann built it", "in 1901") if f"<nugget>{text}</nugget>" in said]
    new = "Ann built it" if "Ann built it." in said else "in 1901"
    return "".join(f"<nugget>{text}</nugget>" for text in (*before, new))


def create(script: object = reply, **settings: int) -> NuggetResult:
    with Job(Scripted(script)) as job:  # type: ignore[arg-type]
        creator = NuggetCreator(job.card, TextLookup(COLLECTION), None, **settings)  # type: ignore[arg-type]
        return run_task(creator, [NuggetItem("q", ("a", "b"))], job)


def test_the_list_grows_window_by_window() -> None:
    result = create(window=1)
    assert result.lists == [LIST]
    assert result.frame["p_vital"].to_list() == pytest.approx([0.8 / 0.9, 0.1 / 0.9])


def test_output_without_nuggets_is_a_status_and_none_is_a_value() -> None:
    broken = create(lambda request: "Ann built the mill.")
    assert broken.lists == []
    assert broken.frame.select("status", "raw").rows() == [("unparsable", "Ann built the mill.")]
    empty = create(lambda request: "<none/>")
    assert empty.lists[0].nuggets == () and "no nugget" in empty.notes[-1]


def test_an_empty_passage_is_left_out_and_not_its_query() -> None:
    texts = TextLookup(
        Collection.of(
            queries={"query": ["q"], "text": ["Who built the mill?"]},
            passages={"passage": ["a", "b", "c"], "text": ["Ann built it.", " ", "It was built in 1901."]},
        )
    )
    with Job(Scripted(reply)) as job:
        creator = NuggetCreator(job.card, texts, window=1, windows=2)
        some = run_task(creator, [NuggetItem("q", ("a", "b", "c"))], job)
        none = run_task(creator, [NuggetItem("q", ("b",))], job)
    assert (some.lists, some.notes) == ([LIST], ("1 empty passage left out",))
    assert (none.lists, none.frame["status"].to_list()) == ([], ["empty-passage"])


def test_an_importance_that_fails_is_unknown_and_not_okay() -> None:
    result = create(lambda r: Failure("refused", "x", retry=False) if isinstance(r, Choose) else reply(r))
    assert [nugget.importance for nugget in result.lists[0].nuggets] == [""]
    assert result.frame["status"].to_list() == ["refused"]


VITAL, OKAY = "vital", "okay"


def test_scores_by_hand() -> None:
    """Vital: support, partial. Okay: support, none."""
    nuggets = [Nugget(str(n), kind) for n, kind in enumerate((VITAL, VITAL, OKAY, OKAY))]
    scores = nugget_scores(nuggets, ["support", "partial_support", "support", "not_support"])
    assert {name: pytest.approx(value) for name, value in scores.items()} == {
        "strict_vital_score": 1 / 2,
        "vital_score": 1.5 / 2,
        "strict_all_score": 2 / 4,
        "all_score": 2.5 / 4,
        "strict_weighted_score": (1 + 0.5) / 3,
        "weighted_score": (1.5 + 0.5) / 3,
    }


def status(score: float | NoValue) -> str:
    return score.status if isinstance(score, NoValue) else "ok"


def test_what_is_unknown_leaves_only_the_scores_that_need_it() -> None:
    failed = nugget_scores([Nugget("a", VITAL), Nugget("b", OKAY)], ["support", ""])
    assert {name: status(value) for name, value in failed.items()} == {
        name: "ok" if "vital" in name else "unassigned" for name in SCORES
    }
    unknown = nugget_scores([Nugget("a", VITAL), Nugget("b", "")], ["support", "support"])
    assert {name: status(value) for name, value in unknown.items() if status(value) == "ok"} == {
        "strict_all_score": "ok",
        "all_score": "ok",
    }
    assert status(nugget_scores([Nugget("a", OKAY)], ["support"])["vital_score"]) == "no-vital-nuggets"
    assert status(nugget_scores([], [])["all_score"]) == "no-nuggets"


def judge(request: Request) -> ScriptedReply:
    said = text_of(request)
    fact = said.rpartition("Fact:")[2]
    if "1901" in fact:
        return {"support": 0.2, "partial": 0.5, "none": 0.2}
    return {"support": 0.9, "none": 0.05} if "Ann" in said.partition("Fact:")[0] else {"none": 0.9}


def grade(script: object = judge) -> tuple[NuggetGrader, JudgingResult]:
    answers = Answers({"system": ["s", "t"], "query": ["q", "q"], "text": ["Ann did, in 1901.", "Nobody knows."]})
    with Job(Scripted(script)) as job:  # type: ignore[arg-type]
        grader = NuggetGrader(job.card, TextLookup(COLLECTION), book=AnswerBook(answers), lists=[LIST])
        return grader, run_task(grader, grader.items(grader.book.answers), job)


def test_answers_are_graded_by_the_likeliest_label() -> None:
    _, result = grade()
    values = {(s, a): v for s, a, v in result.frame.select("system", "aspect", "value").iter_rows()}
    assert values["s", "strict_vital_score"] == 1.0 and values["t", "vital_score"] == 0.0
    assert values["s", "all_score"] == pytest.approx(0.75) and values["s", "strict_all_score"] == pytest.approx(0.5)
    assert result.answers["p_support"][0].to_list() == pytest.approx([0.9 / 0.95, 0.2 / 0.9])


def test_a_failed_assignment_is_missing_and_never_no_support() -> None:
    def script(request: Request) -> ScriptedReply:
        return (
            Failure("refused", "x", retry=False)
            if "1901\n" in text_of(request).rpartition("Fact:")[2]
            else judge(request)
        )

    grader, result = grade(script)
    rows = result.frame.filter(pl.col("system") == "s")
    assert dict(rows.select("aspect", "status").iter_rows())["all_score"] == "unassigned"
    assert dict(rows.select("aspect", "value").iter_rows())["vital_score"] == 1.0
    assert assigned_answers(grader, result)[0].assignments == ("support", "")


def test_files_are_read_back(tmp_path: Path) -> None:
    write_nuggets([LIST], tmp_path / "n.jsonl")
    assert read_nuggets(tmp_path / "n.jsonl") == [LIST]
    assigned = assigned_answers(*grade())
    write_assignments(assigned, tmp_path / "a.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [(row["run_id"], row["qid"], row["query"], row["answer_text"]) for row in rows] == [
        (each.system, each.query, each.text, each.answer) for each in assigned
    ]
    assert [[nugget["assignment"] for nugget in row["nuggets"]] for row in rows] == [
        list(each.assignments) for each in assigned
    ]
    assert rows[0]["run_id"] == "s" and rows[0]["nuggets"][0]["assignment"] == "support"


TWICE = '{"qid": "q", "nuggets": []}\n{"qid": "q", "nuggets": []}'


@pytest.mark.parametrize(
    "line",
    [
        '{"nuggets": []}',
        '{"qid": "q", "nuggets": [{"text": "a", "importance": "great"}]}',
        '{"qid": "q"}',
        "[]",
        "",
        TWICE,
    ],
)
def test_other_lines_are_refused_with_file_and_line(save: Save, line: str) -> None:
    with pytest.raises(FormatError, match=r"n\.jsonl"):
        read_nuggets(save("n.jsonl", line))


def test_the_commands(save: Save, tmp_path: Path) -> None:
    context = {"query_id": "q", "query": "Who?", "retrieved_context": [{"doc_id": "a", "text": "Ann built it."}]}
    run = save("run.jsonl", json.dumps(context))
    importance = load_prompt("nugget-importance").render({"query": "Who?", "nugget": "Ann built it"})
    replies = {"*": "<nugget>Ann built it</nugget>", importance.messages[-1].content: {"vital": 0.7, "okay": 0.2}}
    script = save("script.json", json.dumps(replies))
    nuggets, store = tmp_path / "n.jsonl", str(tmp_path / "s.sqlite")
    asked = ["-M", f"scripted:{script}", "-s", store, "--quiet"]
    done = CliRunner().invoke(main, ["build", "nuggets", str(run), "-o", str(nuggets), *asked])
    assert done.exit_code == 0 and "1 nuggets, 1 of them vital, for 1 of 1 queries" in done.output
    labels = save("labels.json", json.dumps({"*": {"support": 0.9}}))
    answers = save("answers.jsonl", json.dumps({"system": "s", "query": "q", "text": "Ann did."}))
    asked = ["-M", f"scripted:{labels}", "-s", store, "--quiet"]
    out = tmp_path / "a.jsonl"
    done = CliRunner().invoke(
        main, ["build", "assign", str(answers), "--nuggets", str(nuggets), "-o", str(out), *asked]
    )
    assert done.exit_code == 0, done.output
    assert "strict_vital_score" in done.output and len(out.read_text().splitlines()) == 1
