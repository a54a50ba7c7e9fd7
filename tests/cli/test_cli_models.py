"""The commands that ask models, as somebody at a terminal meets them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from ragworth.calls.store import Store
from ragworth.cli import main
from ragworth.llm.scripted import Scripted

PROMPT = "A prompt for tests.\n\n[system]\nBe brief.\n\n[user]\n{{passage*}}\n\n{{query}}\n"
ROWS = [
    {"id": 1, "passage": "Paris is a city.", "query": "What is Paris?"},
    {"id": 2, "passage": "Rome is a city.", "query": "What is Rome?"},
    {"id": 3, "passage": "Paris is a city.", "query": "What is Paris?"},
]


def strict(text: str) -> Any:
    """JSON by the book: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def table(text: str) -> list[Any]:
    return [strict(line) for line in text.splitlines()]


class Desk:
    """A folder with rows, a prompt, a script and a store in it, and the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "calls.sqlite"
        self.save("prompt.txt", PROMPT)
        self.rows(ROWS)
        self.script({"*": {"yes": 0.75, "no": 0.25}})

    def save(self, name: str, text: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    def rows(self, rows: list[dict[str, Any]]) -> None:
        self.save("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def script(self, script: Any) -> None:
        self.save("script.json", json.dumps(script))

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, list(arguments))

    def arguments(self, *more: str, rows: str = "rows.jsonl") -> list[str]:
        files = [str(self.folder / "prompt.txt"), str(self.folder / rows)]
        model = f"scripted:{self.folder / 'script.json'}"
        return ["ask", *files, "-M", model, "-s", str(self.store), "--quiet", *more]

    def ask(self, *more: str, rows: str = "rows.jsonl") -> Result:
        return self(*self.arguments(*more, rows=rows))

    def count(self, name: str = "answers") -> int:
        with closing(sqlite3.connect(self.store)) as db:
            return int(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0])


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def refused(result: Result, *words: str, code: int = 2) -> None:
    """An error of one screen, in words."""
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    assert 0 < len(result.stderr.splitlines()) <= 12
    for word in words:
        assert word in result.stderr


# ask


def test_labels_get_probabilities(desk: Desk) -> None:
    result = desk.ask("--choose", "yes,no")
    assert result.exit_code == 0, result.stderr
    found = table(result.stdout)
    assert found[0] == ROWS[0] | {
        "status": "ok",
        "probabilities": {"yes": 0.75, "no": 0.25},
        "mass": 1.0,
        "estimator": "first-token",
    }
    assert [row["id"] for row in found] == [1, 2, 3]
    assert desk.count() == 2  # the third row asks what the first did


def test_texts_and_several_of_them(desk: Desk) -> None:
    desk.script({"*": "a city in Europe"})
    (first, *_) = table(desk.ask("--length", "2").stdout)
    assert (first["text"], first["finish"], first["status"]) == ("a city", "length", "truncated")
    (first, *_) = table(desk.ask("--length", "9", "--n", "2", "--temperature", "1").stdout)
    assert (first["texts"], first["finishes"]) == (["a city in Europe"] * 2, ["stop"] * 2)


def test_scores_of_a_column(desk: Desk) -> None:
    desk.script({"*": -0.5})
    (first, *_) = table(desk.ask("--score", "query").stdout)
    assert (first["logprob"], first["mean_logprob"], first["tokens"]) == (-1.5, -0.5, 3)


def test_samples_come_with_bounds(desk: Desk) -> None:
    desk.script({"*": "yes"})
    model = f"sampled:scripted:{desk.folder / 'script.json'}"
    result = desk.ask("--choose", "yes,no", "-M", model, "-O", "samples=4")
    (first, *_) = table(result.stdout)
    assert first["probabilities"] == {"yes": 1.0, "no": 0.0}
    assert first["bounds"]["yes"] == [pytest.approx(0.5101, abs=1e-4), 1.0]
    assert first["estimator"] == "sampled(4)"


def test_the_same_again_asks_nothing_and_says_the_same(desk: Desk) -> None:
    first = desk.ask("--choose", "yes,no")
    before = desk.count()
    assert desk.ask("--choose", "yes,no").stdout == first.stdout
    assert "answered already; 0 calls to make" in desk.ask("--choose", "yes,no", "--dry-run").stdout
    assert desk.count() == before


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "jsonl.gz"])
def test_rows_out_of_every_kind_of_file(kind: str, desk: Desk) -> None:
    frame = pl.DataFrame(ROWS)
    path = desk.folder / f"rows.{kind}"
    if kind == "parquet":
        frame.write_parquet(path)
    elif kind == "jsonl.gz":
        import gzip

        path.write_bytes(gzip.compress((desk.folder / "rows.jsonl").read_bytes()))
    else:
        frame.write_csv(path, separator="," if kind == "csv" else "\t")
    result = desk.ask("--choose", "yes,no", rows=path.name)
    assert result.exit_code == 0, result.stderr
    assert [row["query"] for row in table(result.stdout)] == [row["query"] for row in ROWS]


def test_failures_have_their_reason_in_the_row(desk: Desk) -> None:
    result = desk.ask("--choose", "yes,no", "-O", "error=1")
    assert result.exit_code == 4
    assert "all 2 calls failed: server-error 2" in result.stderr
    assert [row["status"] for row in table(result.stdout)] == ["server-error"] * 3
    words = desk.arguments("--choose", "yes,no", "-O", "error=0.5")
    again = desk(*[word for word in words if word != "--quiet"])
    assert again.exit_code == 0
    assert "note: 1 call failed: server-error 1 (scripted fault); what may pass" in again.stderr


def test_a_dry_run_asks_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Scripted, requests: object) -> None:
        raise AssertionError("it was asked")

    monkeypatch.setattr(Scripted, "choose", never)
    result = desk.ask("--choose", "yes,no", "--dry-run", "--price", "1/2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("3 requests, 2 distinct, 0 answered already; 2 calls to make")
    assert "cost at most about" in result.stdout


BUDGETS: dict[str, tuple[list[str], str]] = {
    "calls": (["--max-calls", "1"], "the budget of 1 call is spent"),
    "tokens": (["--max-tokens", "5"], "the budget of 5 tokens is spent; 2 calls left over"),
    "cost": (["--max-cost", "0", "--price", "1"], "the budget of a cost of 0 is spent"),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_spent_budget_gives_exit_code_4_and_the_rows_so_far(name: str, desk: Desk) -> None:
    options, words = BUDGETS[name]
    result = desk.ask("--choose", "yes,no", *options)
    refused(result, words, "run the same again", code=4)
    status = [row["status"] for row in table(result.stdout)]
    assert status == (["ok", "not-asked", "ok"] if name == "calls" else ["not-asked"] * 3)
    assert desk.ask("--choose", "yes,no").exit_code == 0


def test_an_output_is_there_when_it_is_whole(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    output = desk.folder / "out.jsonl"
    result = desk.ask("--choose", "yes,no", "-o", str(output))
    assert (result.exit_code, result.stdout) == (0, "")
    whole = output.read_text()
    assert len(table(whole)) == 3

    def broken(self: Scripted, requests: object) -> None:
        from ragworth.core.errors import ModelError

        raise ModelError("the endpoint is gone")

    monkeypatch.setattr(Scripted, "choose", broken)
    refused(desk.ask("--choose", "yes,maybe", "-o", str(output)), "the endpoint is gone")
    assert output.read_text() == whole
    assert sorted(path.name for path in desk.folder.iterdir() if "out" in path.name) == ["out.jsonl"]


NASTY = 'red \x1b[31m\x07 \x00 \x7f \x9b31m \u202e \u2028 \U0001f600 \\ " end'


def test_what_a_model_says_is_json_a_line(desk: Desk) -> None:
    desk.script({"*": NASTY})
    result = desk.ask()
    assert result.exit_code == 0, result.stderr
    assert [row["text"] for row in table(result.stdout)] == [NASTY] * 3
    assert not any(sign in result.stdout for sign in "\x1b\x07\x00\x7f\x9b\u202e\u2028")


@pytest.mark.parametrize("to", ["terminal", "file"])
def test_half_a_character_is_written_as_json(to: str, desk: Desk) -> None:
    desk.script({"*": "half \ud800"})
    output = desk.folder / "out.jsonl"
    result = desk.ask(*(["-o", str(output)] if to == "file" else []))
    assert result.exit_code == 0, result.exception
    found = table(output.read_text() if to == "file" else result.stdout)
    assert len(found) == 3


def test_numbers_that_are_none_are_json_too(desk: Desk) -> None:
    desk.save("script.json", '{"*": -Infinity}')
    result = desk.ask("--score", "query")
    assert [row["status"] for row in table(result.stdout)] == ["malformed"] * 3


def test_an_empty_text_to_score(desk: Desk) -> None:
    desk.script({"*": -0.5})
    desk.rows([ROWS[0] | {"answer": "a b"}, ROWS[1] | {"answer": ""}])
    result = desk.ask("--score", "answer")
    assert result.exit_code == 0, result.exception
    assert len(table(result.stdout)) == 2


def test_columns_of_the_rows_are_not_lost(desk: Desk) -> None:
    desk.script({"*": "an answer"})
    desk.rows([ROWS[0] | {"text": "mine", "status": "checked"}])
    refused(desk.ask(), "row 1: these columns are reserved for results: status, text", "other column names")


def edited(text: str | bytes, name: str = "rows.jsonl") -> Callable[[Desk], Result]:
    """Ask about rows that are not right."""

    def way(desk: Desk) -> Result:
        desk.save(name, text)
        return desk.ask("--choose", "yes,no", rows=name)

    return way


def test_rows_that_unpack_to_far_more_are_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.formats.files.MIN_UNPACKED_SIZE", 1 << 20)
    bomb = gzip.compress(b"passage,query\n" + b"a,b\n" * (1 << 20))
    refused(edited(bomb, "rows.csv.gz")(desk), "rows.csv.gz", "times its size")


BAD: dict[str, tuple[Callable[[Desk], Result], list[str]]] = {
    "rows-missing": (lambda desk: desk.ask(rows="none.jsonl"), ["none.jsonl"]),
    "csv-missing": (lambda desk: desk.ask(rows="none.csv"), ["none.csv"]),
    "rows-no-json": (edited('{"passage": "a", "query": "b"}\n{"passage":\n'), ["rows.jsonl", "line 2"]),
    "rows-no-object": (edited("[1, 2]\n"), ["rows.jsonl", "line 1", "not a JSON object"]),
    "rows-nan": (edited('{"passage": "a", "query": NaN}\n'), ["rows.jsonl", "row 1", "'query'"]),
    "rows-no-utf8": (edited(b'{"passage": "\xff", "query": "b"}\n'), ["rows.jsonl"]),
    "rows-no-parquet": (edited("nonsense", "rows.parquet"), ["rows.parquet"]),
    "rows-unknown-kind": (edited("nonsense", "rows.xlsx"), ["rows.xlsx", "JSONL, CSV, TSV or Parquet"]),
    "rows-without-a-column": (edited('{"passage": "a", "question": "b"}\n'), ["row 1", "no value for query"]),
    "rows-with-a-wrong-value": (
        edited('{"passage": "a", "query": "b"}\n{"passage": "a", "query": null}\n'),
        ["row 2", "the slot 'query' was given nothing"],
    ),
    "prompt-missing": (
        lambda desk: desk("ask", "abstentoin", *desk.arguments()[2:]),
        ["unknown prompt 'abstentoin'"],
    ),
    "prompt-folder-missing": (lambda desk: desk.ask("--prompts", "none"), ["none"]),
    "model-unknown": (lambda desk: desk.ask("-M", "gpt"), ["unknown kind of model 'gpt'", "openai"]),
    "model-script-missing": (lambda desk: desk.ask("-M", "scripted:none.json"), ["none.json"]),
    "option-unknown": (lambda desk: desk.ask("-O", "device=cuda"), ["no option device", "concurrency"]),
    "option-no-value": (lambda desk: desk.ask("-O", "batch"), ["'batch'", "NAME=VALUE"]),
    "option-wrong": (lambda desk: desk.ask("-O", "error=2"), ["a share from 0 to 1"]),
    "price-no-number": (lambda desk: desk.ask("--price", "cheap"), ["'cheap'", "0.15/0.60"]),
    "price-negative": (lambda desk: desk.ask("--price", "-1/2"), ["not negative"]),
    "price-three": (lambda desk: desk.ask("--price", "1/2/3"), ["'1/2/3'"]),
    "one-label": (lambda desk: desk.ask("--choose", "yes"), ["two or more, each once"]),
    "a-label-twice": (lambda desk: desk.ask("--choose", "yes,no,yes"), ["two or more, each once"]),
    "an-empty-label": (lambda desk: desk.ask("--choose", "yes,,no"), ["two or more, each once"]),
    "labels-and-score": (lambda desk: desk.ask("--choose", "a,b", "--score", "query"), ["choose one of them"]),
    "score-no-column": (lambda desk: desk.ask("--score", "answer"), ["row 1", "'answer'"]),
    "negative-length": (lambda desk: desk.ask("--length", "0"), ["--length"]),
    "budget-no-number": (lambda desk: desk.ask("--max-cost", "nan", "--price", "1"), []),
    "negative-budget": (lambda desk: desk.ask("--max-calls", "-1"), ["--max-calls"]),
    "store-is-no-store": (lambda desk: desk.ask("-s", str(desk.folder / "rows.jsonl")), ["rows.jsonl"]),
    "store-is-a-folder": (lambda desk: desk.ask("-s", str(desk.folder)), ["directory"]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_right_gives_one_screen_and_exit_code_2(name: str, desk: Desk) -> None:
    way, words = BAD[name]
    result = way(desk)
    refused(result, *words)
    assert result.stdout == ""


def test_everything_is_checked_before_anything_is_asked(desk: Desk) -> None:
    desk.rows([*ROWS, {"passage": "a"}])
    refused(desk.ask("--choose", "yes,no"), "row 4")
    assert not desk.store.exists()


def test_store_and_model_are_closed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    really = Store.close

    def close(self: Store) -> None:
        closed.append("store")
        really(self)

    monkeypatch.setattr(Store, "close", close)
    monkeypatch.setattr(Scripted, "close", lambda self: closed.append("model"))
    desk.ask("--choose", "yes,no")
    assert sorted(closed) == ["model", "store"]


def test_an_interrupt_says_how_to_go_on(desk: Desk) -> None:
    desk.rows([{"passage": "p", "query": f"q{i}"} for i in range(400)])
    arguments = desk.arguments(
        "--choose", "yes,no", "-O", "seconds=0.02", "-O", "batch=5", "-o", str(desk.folder / "out")
    )
    with subprocess.Popen([sys.executable, "-m", "ragworth", *arguments], stderr=subprocess.PIPE, text=True) as process:
        for _ in range(200):
            threading.Event().wait(0.05)
            if desk.store.exists() and Path(f"{desk.store}.lock").exists() and desk.count() > 0:
                break
        os.kill(process.pid, signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(20) == 130
    assert "interrupted after" in said
    assert "run the same again to go on" in said
    assert "Traceback" not in said
    assert not (desk.folder / "out").exists()
    kept = desk.count()
    assert 5 <= kept < 400
    assert f"{400 - kept} calls to make" in desk.ask("--choose", "yes,no", "--dry-run").stdout


def test_a_store_in_use_is_refused_and_may_be_waited_for(desk: Desk) -> None:
    desk.ask("--choose", "yes,no")
    with Store(desk.store) as other:
        with other.writing():
            refused(desk.ask("--choose", "yes,no"), "another process is writing", str(os.getpid()))
        assert desk.ask("--choose", "yes,no", "--wait", "5").exit_code == 0


# models


def test_a_model_is_described(desk: Desk) -> None:
    result = desk("models", f"scripted:{desk.folder / 'script.json'}", "-O", "context_length=512")
    assert result.exit_code == 0, result.stderr
    facts = dict(line.split(":", 1) for line in result.stdout.splitlines())
    assert facts["name"].strip() == "script.json"
    assert facts["can"].strip() == "choose, entropies, generate, logprobs, schema, score"
    assert facts["reads"].strip() == "512 tokens"
    assert facts["prompts too long"].strip() == "are refused"


# prompt


def test_prompts_are_listed_and_shown(desk: Desk) -> None:
    listed = desk("prompt").stdout
    first, second = (line for line in listed.splitlines() if line.startswith("rating"))
    assert first.index("How well") == second.index("The scale")
    for name in ("abstention", "answer", "rating", "relevance"):
        assert name in listed
    shown = desk("prompt", "abstention").stdout
    assert "slots: query (text), passage (passage)" in shown
    assert "{{passage*}}" in shown


def test_the_source_of_a_prompt_makes_the_same_prompt(desk: Desk) -> None:
    own = desk.folder / "own"
    own.mkdir()
    (own / "rating.txt").write_text(desk("prompt", "rating", "--source").stdout)
    assert desk("prompt", "rating", "--prompts", str(own)).stdout == desk("prompt", "rating").stdout


# calls


@pytest.fixture
def kept(desk: Desk) -> Desk:
    """A desk whose store has two answers."""
    desk.ask("--choose", "yes,no")
    return desk


def test_a_store_is_shown(kept: Desk) -> None:
    result = kept("calls", "show", str(kept.store))
    assert result.exit_code == 0, result.stderr
    assert "script.json" in result.stdout
    rows = strict(kept("calls", "show", str(kept.store), "-f", "json").stdout)
    assert [row["calls"] for row in rows] == [2]


def test_a_store_is_exported(kept: Desk) -> None:
    result = kept("calls", "export", str(kept.store))
    found = table(result.stdout)
    assert [call["kind"] for call in found] == ["choose"] * 2
    output = kept.folder / "calls.jsonl"
    assert kept("calls", "export", str(kept.store), "-o", str(output)).stdout == ""
    assert output.read_text() == result.stdout


def test_a_sound_store_is_said_to_be_so_and_another_is_not(kept: Desk) -> None:
    assert kept("calls", "verify", str(kept.store)).stdout == "2 calls are sound.\n"
    with closing(sqlite3.connect(kept.store)) as db, db:
        db.execute("UPDATE answers SET response = '[]'")
    result = kept("calls", "verify", str(kept.store))
    refused(result, "2 problems in 2 calls", "it can't be read as an answer of the kind")
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["show", "export", "verify"])
def test_a_store_that_is_not_there_or_none(command: str, desk: Desk) -> None:
    refused(desk("calls", command, str(desk.folder / "none.sqlite")), "no such store")
    assert not (desk.folder / "none.sqlite").exists()
    refused(desk("calls", command, str(desk.folder / "rows.jsonl")), "rows.jsonl")
