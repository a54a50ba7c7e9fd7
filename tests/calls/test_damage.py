"""Damaged stores: what no model can have answered is asked again, and nothing ends in a traceback or without end."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragworth.calls import maintenance
from ragworth.calls.job import Job
from ragworth.calls.maintenance import CallFilter
from ragworth.calls.serialization import REQUEST_KINDS, call_key, model_digest
from ragworth.calls.store import Store
from ragworth.calls.stored_answers import read_answer
from ragworth.cli import main
from ragworth.errors import RagworthError, StoreError
from ragworth.llm.contract import Choose, Chosen, Failure, Generate, Prompt, Request, Score, Usage
from ragworth.llm.scripted import Scripted
from tests.calls.samples import count, filled, fresh, question, questions, share, tampered

ASKED = questions(30)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store of 30 answers and 2 errors."""
    path = tmp_path_factory.mktemp("store") / "c.sqlite"
    filled(path, ASKED)
    with Store(path) as kept:
        list(Job(Scripted(lambda _: Failure("server-error", "down")), kept).run([question(98), question(99)]))
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, content: bytes) -> Path:
    """A copy of the store."""
    path = tmp_path / "c.sqlite"
    path.write_bytes(content)
    return path


DAMAGED = {
    "not a number": "replace(response, '0.029', 'NaN')",
    "a share of 7": "replace(response, '0.029', '7.0')",
    "a share below 0": "replace(response, '0.029', '-0.029')",
    "no usage": "replace(response, '[[3,', '[5,[3,')",
    "text for a share": "replace(response, '[0.029', '[\"0.029\"')",
    "a share too few": "replace(response, '0.029,', '')",
    "a number": "5",
    "an object": "'{}'",
    "no list": "'null'",
    "not JSON": "'garbage'",
    "nothing": "''",
    "text that is not UTF-8": "CAST(x'5bff' AS TEXT)",
}
"""What becomes of one of 30 answers, in SQL."""


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_answer_is_named_and_asked_again(damage: str, path: Path) -> None:
    with Store(path) as kept:
        right = list(Job(Scripted(share), kept).run(ASKED))
    tampered(path, f"UPDATE answers SET response = {DAMAGED[damage]} WHERE response LIKE '%[0.029%'")
    key = call_key(model_digest(Scripted(share).card), ASKED[29]).hex()
    with Store(path) as kept:
        (problem,) = maintenance.verify(kept).problems
        assert key in problem
        assert len(list(maintenance.export_calls(kept))) == 29
        model, noted = fresh()
        job = Job(model, kept)
        assert job.plan(ASKED).missing == 1
        assert job.peek(ASKED)[29] is None
        assert list(job.run(ASKED)) == right
        assert noted.seen == [ASKED[29]]
        (note,) = job.notes
        assert str(path) in note and key in note and "1 damaged answer" in note
        assert maintenance.verify(kept).problems == []
        assert Job(model, kept).notes == ()


TEXT, TRACED, SCORED = (
    Generate(Prompt.text("a")),
    Generate(Prompt.text("a"), detail="logprobs"),
    Score(Prompt.text("a"), "b"),
)
ANSWERS: dict[str, tuple[Request, str]] = {
    "no text": (TEXT, "[USAGE]"),
    "two texts for one": (TEXT, '[USAGE,["a","stop",null],["b","stop",null]]'),
    "a number for a text": (TEXT, '[USAGE,[5,"stop",null]]'),
    "no trace": (TRACED, '[USAGE,["a","stop",null]]'),
    "a short trace": (SCORED, '[USAGE,["b"],[],null,null,null]'),
    "an empty trace": (SCORED, "[USAGE,[],[],null,null,null]"),
    "an infinite trace": (SCORED, '[USAGE,["b"],[-Infinity],null,null,null]'),
    "numbers for tokens": (SCORED, "[USAGE,[5],[-1.0],null,null,null]"),
    "labels that sum to 2": (question(1), '[USAGE,"first-token",[1.0,1.0]]'),
    "a number for the estimator": (question(1), "[USAGE,5,[0.5,0.5]]"),
    "a truth value for a probability": (question(1), '[USAGE,"first-token",[true,0.0]]'),
    "truth values for bounds": (question(1), '[USAGE,"first-token",[1.0,0.0],[true,false],[1.0,0.0]]'),
    "a truth value for a log-probability": (SCORED, '[USAGE,["b"],[false],null,null,null]'),
    "no bounds": (question(1), '[USAGE,"first-token",[0.5,0.5],[0.5,0.5]]'),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_no_model_can_have_answered_is_no_answer(name: str) -> None:
    request, text = ANSWERS[name]
    found = read_answer(REQUEST_KINDS[type(request)], text.replace("USAGE", '[3,1,0.5,0,0,0,""]'), request)
    assert isinstance(found, Failure)
    assert found.reason == "malformed"


def test_a_damaged_prompt_does_not_cost_its_answer(path: Path) -> None:
    tampered(path, "UPDATE requests SET request = x'00' WHERE key = (SELECT min(key) FROM answers)")
    with Store(path) as kept:
        assert maintenance.verify(kept).worst == "prompt"
        assert len(list(maintenance.export_calls(kept))) == 30
        model, noted = fresh()
        list(Job(model, kept).run(ASKED))
    assert noted.seen == []


def test_a_request_that_unpacks_to_too_much_is_damaged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.calls.stored_answers.MAX_REQUEST_SIZE", 40)
    with Store(path) as kept:
        problems = maintenance.verify(kept).problems
    assert len(problems) == 30
    assert "too large" in problems[0]


CARDS = [
    "UPDATE models SET card = replace(card, 'scripted', 'other')",
    "UPDATE models SET card = replace(card, 'generate', 'degenerate')",
    "UPDATE models SET card = 'garbage'",
    "UPDATE models SET card = '[1]'",
    "UPDATE models SET card = 5",
    "UPDATE models SET card = CAST(x'ff' AS TEXT)",
    "UPDATE models SET digest = x'00'",
    "DELETE FROM models",
]


@pytest.mark.parametrize("statement", CARDS)
def test_an_altered_card_is_not_used_and_is_written_again(statement: str, path: Path) -> None:
    card = Scripted(share).card
    with Store(path) as kept:
        assert kept.card_of(card) is not None
    tampered(path, statement)
    with Store(path) as kept:
        assert kept.card_of(card) is None
        assert maintenance.verify(kept).problems != []
        assert maintenance.verify(kept).worst == "card"  # which prune can't mend
        model, noted = fresh()
        assert len(list(Job(model, kept).run([*ASKED, question(31)]))) == 31
        assert len(noted.seen) == 1  # answers are found by their keys
        assert kept.card_of(card) is not None


HUGE = [10**30, 2**63, 2**63 - 1, 2**32, -1]


@pytest.mark.parametrize("number", HUGE)
def test_an_impossible_usage_is_bounded_and_the_answer_kept(number: int, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"

    class Odd(Scripted):
        """Says something impossible about what its calls took."""

        def choose(self, requests: Sequence[Choose]) -> list[Chosen | Failure]:
            usage = Usage(number, number, float("nan"))
            return [
                found if isinstance(found, Failure) else found._replace(usage=usage)
                for found in super().choose(requests)
            ]

    with Store(path) as kept:
        job = Job(Odd(share), kept)
        first = list(job.run(ASKED))
        assert all(0 <= found.usage.prompt_tokens < 2**32 for found in first)
        assert job.tally.done == 30
        model, noted = fresh()
        assert list(Job(model, kept).run(ASKED)) == first
        assert noted.seen == []
        (held,) = maintenance.stored_calls(kept)
        assert held.calls == 30
        assert held.uncounted == 0


def called(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["calls", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def test_show_leaves_impossible_numbers_out_and_says_so(path: Path) -> None:
    tampered(
        path,
        f"UPDATE answers SET prompt_tokens = {2**63 - 1}, made = 1e30 WHERE response LIKE '%0.001%'",
        "UPDATE answers SET new_tokens = 'many', made = 9e999 WHERE response LIKE '%0.002%'",
        "UPDATE answers SET seconds = x'00' WHERE response LIKE '%0.003%'",
    )
    shown = called("show", str(path), "-f", "csv")
    assert shown.exit_code == 0
    assert "3 calls with impossible" in shown.stderr
    row = dict(zip(*(line.split(",") for line in shown.stdout.splitlines()[:2]), strict=True))
    assert (row["calls"], row["prompt_tokens"], row["new_tokens"]) == ("30", str(29 * 3), "29")


def test_show_says_unknown_where_no_date_is_possible(path: Path) -> None:
    tampered(path, "UPDATE answers SET made = 9e999")
    shown = called("show", str(path))
    assert shown.exit_code == 0
    assert "unknown" in shown.stdout


def test_the_command_says_what_is_damaged_and_what_to_do(path: Path) -> None:
    tampered(path, "UPDATE answers SET response = '[]' WHERE response LIKE '%0.00%'")
    refused = called("verify", str(path))
    assert refused.exit_code == 2
    assert "9 problems in 30 calls" in refused.stderr
    assert "asks again" in refused.stderr
    assert len(called("export", str(path)).stdout.splitlines()) == 21


FOREIGN = {
    "trigger": ["CREATE TRIGGER t AFTER INSERT ON answers BEGIN UPDATE answers SET response = '[]'; END"],
    "view": [
        "ALTER TABLE answers RENAME TO real",
        "CREATE VIEW answers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT real.* FROM real, n",
    ],
    "another table": ["DROP TABLE errors", "CREATE TABLE errors (reason TEXT)"],
    "no table": ["DROP TABLE requests"],
    "a generated column": ["ALTER TABLE answers ADD COLUMN more TEXT AS (zeroblob(1000000000))"],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_store_with_foreign_tables_views_or_triggers_is_refused(name: str, path: Path) -> None:
    tampered(path, *FOREIGN[name])
    with pytest.raises(StoreError, match="changed by another program"):
        Store(path)


def test_an_index_of_somebody_else_is_no_harm(path: Path) -> None:
    tampered(path, "CREATE INDEX mine ON answers (kind)", "CREATE TABLE notes (text)", "ANALYZE")
    with Store(path) as kept:
        assert maintenance.verify(kept).problems == []


VALUES = ["NULL", "''", "5", "-1", "1e308", "9e999", "-9e999", "9223372036854775807", "x''", "x'ff00ff'", "zeroblob(9)"]
VALUES += ["'a'", "CAST(x'80ff' AS TEXT)", "'[[[[[[[['", "CAST(zeroblob(100000) AS TEXT)", "'\x1b[31m'"]
COLUMNS = {
    "answers": ("key", "model", "kind", "response", "prompt_tokens", "new_tokens", "seconds", "made"),
    "errors": ("key", "model", "kind", "reason", "detail", "attempts", "made"),
    "requests": ("key", "request"),
    "models": ("number", "digest", "card"),
    "writer": ("process", "host", "since"),
}


def used(path: Path, folder: Path) -> None:
    """Do everything with a store that a user can do; errors are in words."""
    for arguments in (
        ["show", str(path)],
        ["show", str(path), "-f", "json"],
        ["verify", str(path)],
        ["export", str(path), "-o", str(folder / "out.jsonl")],
        ["prune", str(path), "--older-than", "1", "--yes"],
        ["prune", str(path), "--model", "scripted", "--dry-run"],
        ["prune", str(path), "--errors", "--dry-run"],
        ["merge", str(folder / "other.sqlite"), str(path)],
        ["show", str(path)],
    ):
        result = called(*arguments)
        assert result.exit_code in (0, 2), (arguments, result.output)
    try:
        with Store(path) as kept:
            assert len(list(Job(Scripted(share), kept).run(ASKED))) == 30
    except RagworthError as error:
        assert path.name in str(error)


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), [(table, column) for table in COLUMNS for column in COLUMNS[table]])
def test_any_value_in_any_cell(table: str, column: str, path: Path, tmp_path: Path) -> None:
    tampered(path, "INSERT INTO writer VALUES (1, 'here', 1.0)")
    content = path.read_bytes()
    every_second = VALUES[COLUMNS[table].index(column) % 2 :: 2]  # the next column has the others
    for number, value in enumerate(every_second):
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as db:
            rows = "" if table == "writer" else f" WHERE {'number' if table == 'models' else 'key'} = (SELECT max("
            rows += "" if table == "writer" else f"{'number' if table == 'models' else 'key'}) FROM {table})"
            db.execute("PRAGMA foreign_keys = OFF")
            db.execute("PRAGMA ignore_check_constraints = ON")
            try:
                db.execute(f"UPDATE {table} SET {column} = {value}{rows}")
                db.commit()
            except sqlite3.Error:  # the schema forbids it
                continue
        used(path, tmp_path)


@pytest.mark.slow
def test_a_store_of_flipped_bytes(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = path.read_bytes()
    draw = random.Random(3)
    for number in range(40):
        damaged = bytearray(content)
        for _ in range(draw.choice([1, 1, 4, 50])):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        other = tmp_path / f"{number}.sqlite"
        other.write_bytes(damaged)
        used(other, tmp_path)


def test_a_clock_that_was_ahead_does_not_decide_which_model_was_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.sqlite"
    models = [Scripted(share), Scripted(share)]
    for model, template in zip(models, "ab", strict=True):
        model.card = replace(model.card, template=template)
    clock = 4e9  # the year 2096
    monkeypatch.setattr("ragworth.calls.store.time.time", lambda: clock)
    monkeypatch.setattr("ragworth.calls.maintenance.time.time", lambda: clock)
    with Store(path) as kept:
        list(Job(models[0], kept).run(ASKED[:3]))
        clock = 1.8e9
        list(Job(models[1], kept).run(ASKED))
        found = kept.card_of(models[1].card)
        assert found is not None
        assert found.template == "b"
        assert maintenance.count_future_dates(kept) == 3
        assert maintenance.prune(kept, CallFilter(older_than_days=30), dry=True) == 0
        clock = 1e9  # set back: everything is in the future, and nothing is lost or asked again
        silent, noted = fresh()
        silent.card = models[1].card
        assert len(list(Job(silent, kept).run(ASKED))) == 30
        assert noted.seen == []
        assert maintenance.prune(kept, CallFilter(older_than_days=0), dry=True) == 0
        assert maintenance.verify(kept).problems == []


def test_everything_readable_in_a_damaged_file_goes_to_a_new_store(tmp_path: Path) -> None:
    path, new = tmp_path / "c.sqlite", tmp_path / "new.sqlite"
    asked = questions(1000, words=20)
    right = filled(path, asked)
    content = bytearray(path.read_bytes())
    for page in (len(content) // 8192, len(content) // 4096 - 3):
        content[4096 * page : 4096 * (page + 1)] = random.Random(page).randbytes(4096)
    path.write_bytes(content)
    with Store(path) as kept, pytest.raises(StoreError, match="malformed") as caught:
        list(maintenance.export_calls(kept))
    assert "ragworth calls merge NEW.sqlite" in str(caught.value)
    assert "ragworth calls merge NEW.sqlite" in called("verify", str(path)).stderr
    assert "unreadable parts are missing" in called("merge", str(new), str(path)).stderr
    assert path.read_bytes() == content
    model, noted = fresh()
    with Store(new) as kept:
        assert maintenance.verify(kept).problems == []
        assert list(Job(model, kept).run(asked)) == right
    assert 0 < len(noted.seen) < 100  # those of the damaged pages, and no others


# Stores that are joined


def test_stores_of_two_machines_become_one(tmp_path: Path) -> None:
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    right = [*filled(one, ASKED[:20]), *filled(other, ASKED[10:])[10:]]
    with Store(one) as kept:
        list(Job(Scripted(lambda _: Failure("server-error", "down")), kept).run([ASKED[25]]))
    tampered(other, "UPDATE answers SET response = replace(response, '0.029', 'NaN')")
    done = called("merge", str(one), str(other))
    assert done.stdout == f"{other}: 9 added, 10 already there, 1 damaged and left out\n"
    model, noted = fresh()
    with Store(one) as kept:
        assert maintenance.verify(kept) == maintenance.VerificationResult(29, 0, [])
        assert list(Job(model, kept).run(ASKED)) == right
    assert noted.seen == [ASKED[29]]
    assert count(one, "errors") == 0
