"""Judging from the command line: every kind, every file it writes read back by its own readers, and what goes wrong."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from ragworth import Outcomes, formats
from ragworth.cli import main
from ragworth.formats.tables import read_table
from ragworth.llm import prompts

PASSAGES = {"p1": "Ann Lee built the mill.", "p2": "The mill was sold.", "p3": "Bread is baked."}
QUERIES = {"q1": "Who built it?", "007": "Who sold it?", "q3": "Who baked?"}
SHOWN = {"q1": ["p1", "p2"], "007": ["p2", "p1", "p3"], "q3": ["p3"]}


def context(query: str, system: str = "run") -> dict[str, Any]:
    passages = [{"doc_id": name, "text": PASSAGES[name]} for name in SHOWN[query]]
    return {
        "system": system,
        "query_id": query,
        "query": QUERIES[query],
        "answers": ["Ann Lee"],
        "retrieved_context": passages,
    }


class Desk:
    """A folder with contexts, a script and a store in it, and the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "calls.sqlite"
        self.jsonl("run.jsonl", [context(query) for query in QUERIES])
        self.jsonl("questions.jsonl", [{"query_id": q, "subquestions": ["Who?", "When?"]} for q in QUERIES])

    def save(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        return str(path)

    def jsonl(self, name: str, rows: list[Any]) -> str:
        return self.save(name, "".join(json.dumps(row) + "\n" for row in rows))

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, list(arguments))

    def annotate(self, kind: str, *more: str, script: Any = None, run: str = "run.jsonl", quiet: bool = True) -> Result:
        self.save("script.json", json.dumps(SCRIPTS[kind] if script is None else script))
        runs = [self.path(run)] if run else []
        asked = ["-M", f"scripted:{self.path('script.json')}", "-s", str(self.store), *(["--quiet"] if quiet else [])]
        return self("annotate", kind, *runs, *asked, *ALWAYS.get(kind, ()), *self._paths(kind), *more)

    def _paths(self, kind: str) -> list[str]:
        return ["--subquestions", self.path("questions.jsonl")] if kind == "ratings" else []

    def count(self, name: str = "answers") -> int:
        with closing(sqlite3.connect(self.store)) as db:
            return int(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0])


def alone(query: str) -> str:
    """What is asked of a model that is shown no passage."""
    return prompts.load_prompt("reply-alone").render({"query": QUERIES[query]}).messages[-1].content


SCRIPTS: dict[str, Any] = {
    "abstention": {"*": {"NO-RESPONSE": 0.25, "I": 0.125}},
    "relevance": {"*": {"YES": 0.625, "NO": 0.125}},
    "downstream": {"*": "Ann Lee"},
    "likelihood": {"*": -0.5},
    "confidence": {**{alone(query): -1.5 for query in QUERIES}, "*": "Ann Lee did"},
    "ratings": {"*": {"4": 0.5, "2": 0.25}},
}
ALWAYS: dict[str, tuple[str, ...]] = {"confidence": ("--no-relative",)}
# Six different pairs of query and passage; two sub-questions each; three contexts with four measures.
ROWS = {"ratings": 12, "confidence": 12}
VALUES = {"abstention": 0.25, "relevance": 1.0, "downstream": 1.0, "likelihood": -0.5, "ratings": 4.0}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def fine(result: Result) -> Result:
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    return result


def refused(result: Result, *words: str, code: int = 2) -> None:
    """An error of one screen, in words."""
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    assert 0 < len(result.stderr.splitlines()) <= 12
    for word in words:
        assert word in result.stderr


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def back(path: str, kind: str) -> pl.DataFrame:
    """A file of results as the table it is for."""
    if kind == "ratings":
        return formats.read_ratings(path).frame
    if kind == "confidence":
        return Outcomes(read_table(path)[0], source=path).frame
    return formats.read_judgments(path).frame


# Every kind


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_kind_prints_how_many_have_a_value_and_what_the_values_are_like(desk: Desk, kind: str) -> None:
    shown = fine(desk.annotate(kind)).stdout
    number = ROWS.get(kind, 6) if kind != "confidence" else 3
    assert f"{number} of {number}" in shown
    if kind in VALUES:
        assert f"{VALUES[kind]:.4f}" in shown


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("kind", [kind for kind in SCRIPTS if kind != "confidence"])
def test_what_is_written_can_be_read_and_scored(desk: Desk, kind: str, ending: str) -> None:
    output = desk.path(f"out.{ending}")
    fine(desk.annotate(kind, "-o", output))
    found = back(output, kind)
    assert found.height == ROWS.get(kind, 6)
    assert set(found["value"]) == {VALUES[kind]}
    assert set(found["query"]) == set(QUERIES), "ids stay what they are, zeros in front and all"
    metric = {
        "abstention": "UDCG@2",
        "relevance": "P@1",
        "downstream": "eRAG@1",
        "likelihood": "Likelihood@1",
        "ratings": "Cov@1",
    }[kind]
    given = ["--ratings" if kind == "ratings" else "--judgments", output]
    if kind == "abstention":
        given += ["--qrels", desk.save("qrels.txt", "q1 0 p1 1\n007 0 p1 1\nq3 0 p3 1\n")]
    scored = fine(desk("score", desk.path("run.jsonl"), *given, "-m", metric, "--quiet"))
    assert "3 of 3" in scored.stdout


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_confidence_can_be_read_as_outcomes(desk: Desk, ending: str) -> None:
    output = desk.path(f"out.{ending}")
    fine(desk.annotate("confidence", "-o", output))
    found = back(output, "confidence")
    assert found.height == 12
    # Three tokens of surprisal and entropy 0.5, and of surprisal 1.5 and the same entropy without the passages.
    values = {row[0]: row[1] for row in found.select("aspect", "value").rows()}
    expected = {"PPL": -1.6487212707, "KeyPPL": -1.6487212707, "Entropy": -0.5, "KeyEntropy": -0.5}
    assert values == pytest.approx(expected)


def test_parquet_keeps_lists_and_the_others_write_them_as_json(desk: Desk) -> None:
    for ending in ("parquet", "csv", "jsonl"):
        fine(desk.annotate("confidence", "-o", desk.path(f"out.{ending}")))
    first = pl.read_parquet(desk.path("out.parquet")).row(0, named=True)
    assert (first["answer_tokens"], first["entropies"]) == (["Ann", "Lee", "did"], [0.5] * 3)
    assert lines(Path(desk.path("out.jsonl")).read_text())[0]["surprisals_alone"] == [1.5] * 3
    text = pl.read_csv(desk.path("out.csv"), infer_schema=False).row(0, named=True)
    assert json.loads(text["answer_tokens"]) == ["Ann", "Lee", "did"]


RAW = 'said "so"\n, and\t\r more; \x1b[31m \x85\u2028\x7f\x9b ü 🙂'


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_whatever_a_model_wrote_survives_the_file(desk: Desk, ending: str) -> None:
    output = desk.path(f"out.{ending}")
    fine(desk.annotate("downstream", "-o", output, script={"*": RAW}))
    assert formats.read_judgments(output).frame.height == 6
    assert set(read_table(output)[0]["raw"]) == {RAW}


# What is printed


@pytest.mark.parametrize("look", ["summary", "csv", "jsonl"])
def test_no_control_characters_reach_the_terminal(desk: Desk, look: str) -> None:
    result = fine(desk.annotate("downstream", "-f", look, script={"*": "a\x1b[31m\x07\x9b\u202e b"}, quiet=False))
    for sign in "\x1b\x07\x9b\u202e":
        assert sign not in result.stdout
        assert sign not in result.stderr


def test_control_characters_of_ids_do_not_either(desk: Desk) -> None:
    desk.jsonl("odd.jsonl", [context("q1", "s\x1b[31m") | {"query_id": "q\x1b[0m"}])
    for look in ("summary", "csv", "jsonl"):
        result = fine(desk.annotate("confidence", "--measures", "PPL", "-f", look, run="odd.jsonl", quiet=False))
        assert "\x1b" not in result.stdout + result.stderr


@pytest.mark.parametrize("raw", ["plain", "a\u2028b\x85c\x0bd", "\x7f \x9b", "\u200b\U000e0001", 'q"uo\\te'], ids=ascii)
def test_rows_as_json_are_json(desk: Desk, raw: str) -> None:
    """A program reads this: a line is a row, and what a model wrote comes out as it was."""
    found = lines_of(fine(desk.annotate("downstream", "-f", "jsonl", script={"*": raw})).stdout)
    assert [row["raw"] for row in found] == [raw] * 6


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.strip("\n").split("\n")]


def test_what_has_no_value_is_counted_in_the_summary_and_in_a_note(desk: Desk) -> None:
    prompt = prompts.load_prompt("relevance").render(
        {"query": QUERIES["q3"], "passage": PASSAGES["p3"], "answers": ["Ann Lee"]}
    )
    script = {prompt.messages[-1].content: {"MAYBE": 1.0}, "*": {"YES": 1.0}}
    result = fine(desk.annotate("relevance", script=script, quiet=False))
    assert "5 of 6" in result.stdout
    assert "note: 5 of 6 judgments have a value; without one: no-label 1" in result.stderr


# The store


def test_nothing_is_asked_twice(desk: Desk) -> None:
    first = fine(desk.annotate("abstention", "-f", "jsonl"))
    asked = desk.count()
    assert asked == 6 + 12  # the pairs, and the controls
    again = fine(desk.annotate("abstention", "-f", "jsonl", quiet=False))
    assert again.stdout == first.stdout
    assert desk.count() == asked
    assert "0 calls" in again.stderr


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_dry_run_asks_nothing_and_leaves_nothing(desk: Desk, kind: str) -> None:
    result = fine(desk.annotate(kind, "--dry-run", "-o", desk.path("out.csv")))
    # Abstention asks its controls too. A rating does not hang on the query: three passages, two questions.
    calls = {"abstention": 18, "confidence": 3}.get(kind, 6)
    assert f"{calls} calls to make" in result.stdout
    assert ("lead to more calls" in result.stdout) == (kind == "confidence")
    assert not desk.store.exists()
    assert not Path(desk.path("out.csv")).exists()


def test_a_budget_ends_a_run_which_goes_on_later(desk: Desk) -> None:
    output = desk.path("out.csv")
    result = desk.annotate("relevance", "--max-calls", "4", "-o", output)
    refused(result, "budget of 4 calls is spent", "run the same again", code=4)
    assert back(output, "relevance")["status"].to_list().count("not-asked") == 2
    assert "6 of 6" in fine(desk.annotate("relevance", "-o", output)).stdout
    assert desk.count() == 6


# How much


def asked(result: Result) -> list[tuple[str, str]]:
    return [(row["query"], row["passage"]) for row in lines(fine(result).stdout)]


def test_some_queries_drawn_at_random_and_again(desk: Desk) -> None:
    first, again = (asked(desk.annotate("relevance", "-f", "jsonl", "--sample", "2")) for _ in range(2))
    assert len({query for query, _ in first}) == 2
    assert first == again
    assert len(asked(desk.annotate("relevance", "-f", "jsonl", "--sample", "99"))) == 6


def test_the_first_passages(desk: Desk) -> None:
    found = asked(desk.annotate("relevance", "-f", "jsonl", "-k", "1"))
    assert found == [("q1", "p1"), ("007", "p2"), ("q3", "p3")]


def test_passages_that_several_systems_show_are_judged_once(desk: Desk) -> None:
    desk.jsonl("other.jsonl", [context("q1", "other")])
    assert len(asked(desk.annotate("relevance", desk.path("other.jsonl"), "-f", "jsonl"))) == 6
    both = fine(desk.annotate("confidence", desk.path("other.jsonl"), "-f", "jsonl"))
    assert {(row["system"], row["query"]) for row in lines(both.stdout)} >= {("other", "q1"), ("run", "q1")}


# Where texts come from


def test_a_trec_run_with_texts_from_files(desk: Desk) -> None:
    run = desk.save("bm25.run", "q1 Q0 p2 1 3.0 bm25\nq1 Q0 p1 2 2.0 bm25\n")
    queries = desk.jsonl("queries.jsonl", [{"_id": query, "text": text} for query, text in QUERIES.items()])
    passages = desk.save("passages.tsv", "passage\ttext\n" + "".join(f"{p}\t{text}\n" for p, text in PASSAGES.items()))
    answers = desk.save("answers.csv", "query,text\nq1,Ann Lee\n")
    given = [run, "--queries", queries, "-p", passages, "-a", answers, "-f", "jsonl"]
    assert asked(desk.annotate("downstream", *given, run="")) == [("q1", "p2"), ("q1", "p1")]


def test_judged_passages_where_there_is_no_run(desk: Desk) -> None:
    queries = desk.jsonl("queries.jsonl", [{"_id": query, "text": text} for query, text in QUERIES.items()])
    passages = desk.jsonl("passages.jsonl", [{"_id": name, "text": text} for name, text in PASSAGES.items()])
    qrels = desk.save("qrels.txt", "q1 0 p3 0\nq1 0 p1 1\n")
    given = ["--queries", queries, "-p", passages, "-q", qrels, "-f", "jsonl"]
    assert asked(desk.annotate("abstention", *given, run="")) == [("q1", "p3"), ("q1", "p1")]


def test_own_prompts(desk: Desk) -> None:
    (desk.folder / "mine").mkdir()
    desk.save("mine/relevance.txt", "Mine.\n\n[user]\nQ={{query}} P={{passage*}} A={{#answers?}}{{.}}{{/answers}}\n")
    script = {f"Q={QUERIES['q1']} P={PASSAGES['p1']} A=Ann Lee": {"YES": 1.0}, "*": {"NO": 1.0}}
    given = ["--prompts", desk.path("mine"), "-f", "jsonl"]
    found = lines(fine(desk.annotate("relevance", *given, script=script)).stdout)
    assert [row["value"] for row in found] == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    ours = lines(fine(desk.annotate("relevance", "-f", "jsonl")).stdout)
    assert found[0]["source"] != ours[0]["source"], "another prompt is another source"


# What is wrong


def test_commands_and_options_that_are_not_there(desk: Desk) -> None:
    refused(desk("annotate", "sentiment", desk.path("run.jsonl")), "sentiment")
    refused(desk.annotate("relevance", "--compare", "em"), "--compare")
    refused(desk.annotate("downstream", "--compare", "bleu"), "bleu", "rouge-l")
    refused(desk.annotate("abstention", "--floor", "2"), "floor")
    refused(desk.annotate("confidence", "--measures", "Joy"), "Joy", "KeyEntropy")
    refused(desk.annotate("relevance", "--limit", "0"), "limit")
    assert not desk.store.exists() or desk.count() == 0


@pytest.mark.parametrize("name", ["out.txt", "out", "out.xlsx", "csv"])
def test_a_file_whose_ending_tells_no_format(desk: Desk, name: str) -> None:
    refused(desk.annotate("relevance", "-o", desk.path(name)), ".parquet", ".jsonl")
    assert not desk.store.exists()


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_asked(desk: Desk) -> None:
    refused(desk.annotate("relevance", "-o", desk.path("nowhere/out.csv")), "nowhere")
    assert not desk.store.exists() or desk.count() == 0


def test_all_files_that_cannot_be_read_are_reported_together(desk: Desk) -> None:
    bad = desk.save("bad.jsonl", '{"query_id": "q1", "retrieved_context": []}\nnot json\n')
    result = desk.annotate("relevance", bad, "--queries", desk.path("none.jsonl"))
    refused(result, "bad.jsonl", "line 2", "none.jsonl")
    assert not desk.store.exists()


@pytest.mark.parametrize("kind", ["relevance", "abstention", "downstream", "confidence"])
def test_a_run_without_any_texts_is_an_error(desk: Desk, kind: str) -> None:
    """There is nothing to show the model: better said before than as a table without a single value."""
    run = desk.save("bm25.run", "q1 Q0 p2 1 3.0 bm25\n")
    result = desk.annotate(kind, run, run="")
    assert result.exit_code != 0, result.stdout
    assert "text" in result.stderr
    assert not desk.store.exists() or desk.count() == 0


def test_nothing_to_judge(desk: Desk) -> None:
    refused(desk.annotate("relevance", run=""), "nothing to judge")
    refused(desk.annotate("confidence", run=""), "whole contexts")


# Utility


def judged(desk: Desk) -> list[str]:
    """A file of abstention and one of relevance: p1 is relevant, of the others one is weak and one hard."""
    rows = [("q1", "p1", 0.25), ("q1", "p2", 0.875), ("q1", "p3", 0.125)]
    table = "query,passage,abstention\n" + "".join(f"{q},{p},{value}\n" for q, p, value in rows)
    return [desk.save("abstention.csv", table), desk.save("qrels.txt", "q1 0 p1 1\nq1 0 p2 0\n")]


def test_utility_of_judgments(desk: Desk) -> None:
    files = judged(desk)
    output = desk.path("utility.csv")
    shown = fine(desk("utility", *files, "-o", output)).stdout
    for words in ("relevant", "weak-distractor", "hard-distractor", "0.3333"):
        assert words in shown
    assert pl.read_csv(output).select("passage", "utility", "class").rows() == [
        ("p1", 0.75, "relevant"),
        ("p2", -0.125, "weak-distractor"),
        ("p3", -0.875, "hard-distractor"),
    ]
    rows = lines(fine(desk("utility", *files, "--rel", "2", "-f", "jsonl")).stdout)
    assert [row["utility"] for row in rows] == [-0.75, -0.125, -0.875]


def test_utility_and_scores_say_which_p_they_read(desk: Desk) -> None:
    table = "query,passage,aspect,value,status,source\n"
    for passage, p in (("p1", "calibrated p (log-odds / 2)"), ("p2", "raw p")):
        table += f'q1,{passage},abstention,0.5,ok,"m · abstention@1 · first-token, {p}"\n'
    files = [desk.save("abstention.csv", table), desk.save("qrels.txt", "q1 0 p1 1\nq1 0 p2 0\n")]
    run = desk.save("run.txt", "q1 Q0 p1 1 2 x\nq1 Q0 p2 2 1 x\n")
    note = "p_abstain is the calibrated p (log-odds / 2) of 1 passage, the raw p of 1 passage"
    for done in (desk("utility", *files), desk("score", run, "--judgments", files[0], "-q", files[1], "-m", "UDCG@2")):
        assert note in " ".join(fine(done).stderr.split())


def test_utility_of_passages_without_a_label_is_told(desk: Desk) -> None:
    abstention, labels = judged(desk)
    assert "1 of 3 passages has no relevance label and counts" in desk("utility", abstention, labels).stderr
    other = desk.save("other.txt", "q01 0 p1 1\n")
    assert "none of the 3 passages with an abstention" in desk("utility", abstention, other).stderr


def test_utility_counts_what_has_no_value(desk: Desk) -> None:
    table = "query,passage,aspect,value,status\nq1,p1,abstention,,timed-out\nq1,p2,abstention,0.5,ok\n"
    result = fine(desk("utility", desk.save("a.csv", table), desk.save("qrels.txt", "q1 0 p1 1\n")))
    assert "no value: timed-out" in result.stdout


def test_utility_needs_both_judgments(desk: Desk) -> None:
    abstention, qrels = judged(desk)
    refused(desk("utility", qrels), "abstention", "ragworth annotate abstention")
    refused(desk("utility", abstention), "relevance")
    refused(desk("utility", desk.path("none.csv")), "none.csv")
    refused(desk("utility"))


# Tune


def confident(desk: Desk, ending: str = "parquet", system: bool = False) -> str:
    """Confidence of two contexts of each of two queries: the first is surer by every setting."""
    key = {"system": ["A", "B"] * 2} if system else {"passage": ["p1", "p2"] * 2}
    sure, unsure = [0.125, 0.25], [0.75, 0.875]
    frame = pl.DataFrame(
        {
            "query": ["q1", "q1", "q2", "q2"],
            **key,
            "answer_tokens": [["x", "y"]] * 4,
            **{name: [sure, unsure] * 2 for name in ("surprisals", "entropies")},
            **{name: [[2.0, 2.0]] * 4 for name in ("surprisals_alone", "entropies_alone")},
        }
    )
    path = desk.path(f"confidence.{ending}")
    if ending == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_ndjson(path)
    return path


QRELS = "q1 0 p1 1\nq1 0 p2 0\nq2 0 p1 2\nq2 0 p2 1\n"


def test_tuning_by_relevance(desk: Desk) -> None:
    output = desk.path("grid.csv")
    result = fine(desk("tune", confident(desk), "-q", desk.save("qrels.txt", QRELS), "-o", output))
    assert "KeyEntropy" in result.stdout
    assert "1.0000" in result.stdout
    grid = pl.read_csv(output)
    assert grid.height == 2 * 11 * 11
    assert set(grid["win_rate"]) == {1.0}


def test_tuning_of_what_was_annotated(desk: Desk) -> None:
    fine(desk.annotate("confidence", "--each", "-o", desk.path("c.parquet")))
    result = fine(desk("tune", desk.path("c.parquet"), "-q", desk.save("qrels.txt", "q1 0 p1 1\nq1 0 p2 0\n")))
    assert "0.5000" in result.stdout  # both passages make the model equally sure


def test_what_cannot_be_tuned(desk: Desk) -> None:
    path, qrels = confident(desk), desk.save("qrels.txt", QRELS)
    refused(desk("tune", path, "-q", desk.save("same.txt", "q1 0 p1 1\nq1 0 p2 1\n")), "different labels")
    refused(desk("tune", desk.path("none.parquet"), "-q", qrels), "none.parquet")
    refused(desk("tune", desk.save("bad.parquet", "x"), "-q", qrels), "bad.parquet")
    fine(desk.annotate("confidence", "--each", "--measures", "PPL", "-o", desk.path("plain.parquet")))
    refused(desk("tune", desk.path("plain.parquet"), "-q", qrels), "no tokens")
    refused(desk("tune", confident(desk, system=True), "-q", qrels), "--each")


# Warnings


def test_a_judge_who_says_the_same_of_everything_is_noticed(desk: Desk) -> None:
    result = fine(desk.annotate("relevance", script={"*": {"YES": 0.02, "NO": 0.01}}, quiet=False))
    assert "the labels hold little probability (median 0.03" in result.stderr
    assert "all 6 judgments are the same: 1" in result.stderr
