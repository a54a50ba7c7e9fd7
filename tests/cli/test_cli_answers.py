"""``ragworth answer`` and ``ragworth grade``: from files to files, with what is said on the way."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from ragworth import Answers, Outcomes, score
from ragworth.cli import main
from ragworth.formats import read_contexts, read_judgments
from ragworth.formats.tables import read_answer_table

CONTEXTS = [
    {
        "query_id": "q1",
        "query": "Who built the mill?",
        "answers": ["Ann"],
        "retrieved_context": [
            {"doc_id": "b", "text": "The mill is old."},
            {"doc_id": "a", "text": "Ann built the mill."},
        ],
    },
    {
        "query_id": "q2",
        "query": "Who swims?",
        "answers": ["ducks"],
        "retrieved_context": [{"doc_id": "c", "text": "Ducks swim."}],
    },
    {"query_id": "q3", "query": "Who sings?", "answers": ["larks"], "retrieved_context": []},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Contexts, qrels, sub-questions, ratings and a model that says Ann, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    Path("run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in CONTEXTS))
    Path("qrels.txt").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 c 1\n")
    Path("subs.jsonl").write_text('{"query_id": "q1", "subquestions": ["Who?", "When?"]}\n')
    Path("ratings.txt").write_text("q1 1 a 5\nq1 2 a 0\nq1 1 b 0\nq1 2 b 3\n")
    Path("says.json").write_text('{"*": "Ann"}')
    Path("grades.json").write_text('{"*": {"CORRECT": 0.75, "WRONG": 0.25}}')
    return tmp_path


def ragworth(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, result.output
    return result


def answered(*more: str) -> pl.DataFrame:
    ragworth("answer", "run.jsonl", "-M", "scripted:says.json", "-o", "answers.parquet", *more)
    return pl.read_parquet("answers.parquet")


def test_from_contexts_to_outcomes(folder: Path) -> None:
    result = ragworth(
        "answer", "run.jsonl", "-q", "qrels.txt", "-M", "scripted:says.json", "-k", "1", "--without", "--oracle",
        "-o", "answers.parquet", "--contexts", "shown.parquet",
    )  # fmt: skip
    assert "run" in result.output
    assert "8 of 9 answers have a text; without one: no-relevant 1" in result.output
    made = Answers.read("answers.parquet")
    assert made.frame["text"].drop_nulls().to_list() == ["Ann"] * 8
    shown = read_contexts("shown.parquet")
    assert shown.only("run").frame["passage"].to_list() == ["b", "c"]
    assert len(score(shown, read_judgments("qrels.txt"), "P@1").frame)

    result = ragworth("grade", "deterministic", "answers.parquet", "run.jsonl", "-q", "qrels.txt", "-o", "out.parquet")
    outcomes = Outcomes.read("out.parquet").frame
    assert outcomes.filter(pl.col("system") == "run")["value"].to_list() == [1.0, -1.0, -1.0]
    assert outcomes.filter(pl.col("system") == "(oracle)")["status"].to_list() == ["ok", "ok", "no-relevant"]
    assert "2 of 3" in result.output


def test_judging_is_resumed_for_free(folder: Path) -> None:
    answered()
    grade = ("grade", "judge", "answers.parquet", "run.jsonl", "-M", "scripted:grades.json")
    assert "3 calls to make" in ragworth(*grade, "--dry-run").output
    ragworth(*grade, "-o", "out.jsonl", "--each", "each.csv")
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["value"] for row in rows] == [1.0, 1.0, 1.0]
    assert rows[0]["expected"] == 0.5
    assert rows[0]["label"] == "correct"
    assert Path("each.csv").read_text().count("first-token") == 3
    assert "3 answered already; 0 calls to make" in ragworth(*grade, "--dry-run").output


def test_some_of_the_queries(folder: Path) -> None:
    assert answered("--limit", "2")["query"].to_list() == ["q1", "q2"]
    assert len(answered("--sample", "1")) == 1
    answered()
    ragworth("grade", "text", "answers.parquet", "run.jsonl", "--limit", "1", "-o", "out.csv")
    assert Path("out.csv").read_text().count("q1") == 4
    assert "q2" not in Path("out.csv").read_text()


def test_reports_tied_to_the_required_subset(folder: Path) -> None:
    result = ragworth(
        "answer", "run.jsonl", "-r", "ratings.txt", "--oracle", "--tie-k", "--tie-length", "--prompt", "answer-long",
        "-M", "scripted:says.json", "-o", "answers.jsonl", "--limit", "1",
    )  # fmt: skip
    assert "counted in tokens of says.json" in result.output
    rows = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    # Each of the two passages answers one sub-question; the required subset is both, in the order of the ratings.
    assert [(row["system"], row["shown"]) for row in rows] == [("run", ["b", "a"]), ("(oracle)", ["a", "b"])]
    Path("rates.json").write_text('{"*": {"4": 1.0}}')
    ragworth(
        "grade", "coverage", "answers.jsonl", "run.jsonl", "--subquestions", "subs.jsonl", "-r", "ratings.txt",
        "-M", "scripted:rates.json", "-o", "out.parquet",
    )  # fmt: skip
    # Both sub-questions are answered by one word, against 5 + 5 tokens: (1/1 / (1/10))^0.5.
    assert pl.read_parquet("out.parquet")["value"].to_list() == pytest.approx([1.0, 10**0.5] * 2)


def test_ideal_and_utility(folder: Path) -> None:
    answered("-q", "qrels.txt", "--oracle", "--without")
    Path("ideal.json").write_text('{"*": {"5": 0.5, "4": 0.25}}')
    result = ragworth("grade", "ideal", "answers.parquet", "run.jsonl", "-M", "scripted:ideal.json", "-f", "csv")
    assert "no-ideal" in result.output
    result = ragworth("grade", "utility", "answers.parquet", "run.jsonl", "-q", "qrels.txt", "--similarity", "f1")
    assert "zero-shot-worthless" in result.output


def test_answers_of_others(folder: Path) -> None:
    Path("theirs.csv").write_text("system,query_id,text,extra\nx,q1,Ann,1\nx,q2,,2\n")
    result = ragworth("grade", "deterministic", "theirs.csv", "run.jsonl", "-f", "jsonl", "--quiet")
    rows = [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]
    assert [(row["query"], row.get("label"), row["status"]) for row in rows] == [
        ("q1", "correct", "ok"),
        ("q2", None, "empty-answer"),
    ]
    Path("theirs.jsonl").write_text('{"system": "run", "qid": "q1", "text": "Ann"}\n')
    result = ragworth("grade", "deterministic", "theirs.jsonl", "run.jsonl", "-q", "qrels.txt", "-f", "jsonl")
    assert '"label": "correct"' in result.output


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("answer", "-M", "scripted:says.json"), "nothing to answer from"),
        (
            ("answer", "run.jsonl", "-M", "scripted:says.json", "--repeats", "3"),
            "greedy answers to a question are all the same",
        ),
        (("answer", "run.jsonl", "-M", "scripted:says.json", "--oracle"), "but there is none"),
        (("answer", "run.jsonl", "-M", "scripted:says.json", "--prompt", "nonsense"), "unknown prompt 'nonsense'"),
        (("answer", "run.jsonl", "-M", "scripted:says.json", "-o", "x.doc"), "unknown file extension"),
        (("answer", "run.jsonl", "-M", "scripted:says.json", "--order", "odd"), "is not one of"),
        (("grade", "jugde", "run.jsonl"), "did you mean judge?"),
        (("grade", "text", "absent.parquet"), "absent.parquet"),
        (("grade", "text", "qrels.txt"), "needs a 'system' column"),
        (("grade", "coverage", "theirs.csv", "-M", "scripted:says.json"), "coverage needs sub-questions"),
        (("grade", "utility", "theirs.csv", "-q", "qrels.txt"), "no answers of the system '(none)'"),
        (("grade", "text", "broken.csv"), "'shown' holds"),
        (("grade", "text", "theirs.csv"), "text needs accepted answers"),
        (("grade", "judge", "theirs.csv", "-M", "scripted:grades.json"), "judge needs texts of queries"),
        (
            ("grade", "judge", "theirs.csv", "--queries", "queries.csv", "-M", "scripted:grades.json"),
            "judge needs accepted answers",
        ),
        (
            ("grade", "judge", "theirs.csv", "run.jsonl", "-M", "scripted:grades.json", "--each", "x.doc"),
            "unknown file",
        ),
        (("grade", "text", "theirs.csv", "run.jsonl", "--each", "nowhere/x.csv"), "no folder 'nowhere'"),
        (("answer", "run.jsonl", "-M", "scripted:says.json", "--contexts", "nowhere/x.parquet"), "no folder 'nowhere'"),
        (("grade", "ideal", "theirs.csv", "run.jsonl", "-M", "scripted:says.json"), "of the system '(oracle)'"),
    ],
)
def test_what_is_refused(folder: Path, arguments: tuple[str, ...], found: str) -> None:
    Path("theirs.csv").write_text("system,query,text\nx,q1,Ann\n")
    Path("broken.csv").write_text("system,query,text,shown\nx,q1,Ann,[1\n")
    Path("queries.csv").write_text("query,text\nq1,Who?\n")
    assert found in ragworth(*arguments, code=2).output


def test_answers_read_back_from_every_format(folder: Path) -> None:
    made = answered("--without")
    for ending in ("parquet", "csv", "tsv", "jsonl"):
        answered("--without")
        ragworth("answer", "run.jsonl", "--without", "-M", "scripted:says.json", "-o", f"again.{ending}")
        table, frame = read_answer_table(f"again.{ending}")
        assert table.frame.equals(Answers(made).frame)
        assert frame["shown"].to_list() == made["shown"].to_list()


def test_not_one_outcome(folder: Path) -> None:
    """All is written and said, and the command still does not end well."""
    Path("theirs.csv").write_text("system,query,text,status\nx,q1,,refused\nx,q2,,timed-out\n")
    result = ragworth("grade", "deterministic", "theirs.csv", "run.jsonl", "-o", "out.csv", code=4)
    assert "not one outcome has a value: refused 1, timed-out 1" in result.output
    assert "0 of 2 outcomes have a value" in result.output
    assert Path("out.csv").read_text().count("refused") == 1
    # No share of nothing.
    assert "nan" not in result.output.casefold()
    row = next(line for line in result.output.splitlines() if line.startswith("x "))
    assert row.split() == ["x", "0", "of", "2", "–", "–", "–", "–"]
    Path("silent.json").write_text('{"*": "Hm."}')
    answered()
    result = ragworth(
        "grade", "judge", "answers.parquet", "run.jsonl", "--how", "parsed", "-M", "scripted:silent.json",
        "-o", "judged.parquet", code=4,
    )  # fmt: skip
    assert "not one outcome has a value: unparsable 3" in result.output
    assert pl.read_parquet("judged.parquet")["raw"].to_list() == ["Hm."] * 3


def test_not_one_answer(folder: Path) -> None:
    Path("blank.json").write_text('{"*": " "}')
    result = ragworth("answer", "run.jsonl", "-M", "scripted:blank.json", "-o", "blank.parquet", code=4)
    assert "not one answer has a text: empty-answer 3" in result.output
    assert pl.read_parquet("blank.parquet").height == 3


@pytest.mark.parametrize("kind", ["deterministic", "text", "utility"])
def test_dry_run_of_graders_that_ask_nobody(folder: Path, kind: str) -> None:
    answered("-q", "qrels.txt", "--without")
    more = ("--similarity", "f1") if kind == "utility" else ()
    result = ragworth(
        "grade", kind, "answers.parquet", "run.jsonl", "-q", "qrels.txt", "--dry-run", "-o", "out.csv", *more
    )
    # Without a context, answers are only what others are held against, as to utility.
    assert result.output == f"{3 if kind == 'utility' else 6} answers would be graded; no model is asked\n"
    assert not Path("out.csv").exists()
