"""Stores that were altered or damaged: no wrong answer is used, and nothing ends in a traceback or without end."""

from __future__ import annotations

import random
import sqlite3
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from click.testing import CliRunner, Result

from ragworth.calls import maintenance
from ragworth.calls.job import Job
from ragworth.calls.maintenance import CallFilter
from ragworth.calls.salvage import rebuild
from ragworth.calls.store import Store
from ragworth.cli import main
from ragworth.errors import RagworthError, StoreError
from ragworth.llm.contract import Choose, Chosen, Failure, Generate, Prompt, Usage
from ragworth.llm.scripted import Scripted
from tests.calls.samples import count, filled, fresh, question, questions, share, tampered

ASKED = questions(30)
T = TypeVar("T")


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


ALTERATIONS = {
    "a response": ["UPDATE answers SET response = replace(response, '0.00', '0.99') WHERE response LIKE '%0.00%'"],
    "a kind": ["UPDATE answers SET kind = 'score' WHERE key = (SELECT min(key) FROM answers)"],
    "a seal": ["UPDATE answers SET seal = x'0011223344556677' WHERE key = (SELECT max(key) FROM answers)"],
    "no seal": ["UPDATE answers SET seal = '' WHERE key = (SELECT max(key) FROM answers)"],
    "a key": [
        "CREATE TEMP TABLE two AS SELECT min(key) AS a, max(key) AS b FROM answers",
        "DELETE FROM answers WHERE key = (SELECT b FROM two)",
        "UPDATE answers SET key = (SELECT b FROM two) WHERE key = (SELECT a FROM two)",
    ],
    "two answers swapped": [
        "CREATE TEMP TABLE two AS SELECT min(key) AS a, max(key) AS b FROM answers",
        "CREATE TEMP TABLE old AS SELECT * FROM answers WHERE key IN (SELECT a FROM two UNION SELECT b FROM two)",
        "UPDATE answers SET (response, seal) = (SELECT response, seal FROM old WHERE key <> answers.key) "
        "WHERE key IN (SELECT key FROM old)",
    ],
    "text that is not UTF-8": [
        "UPDATE answers SET response = CAST(x'5bff' AS TEXT) WHERE key = (SELECT min(key) FROM answers)"
    ],
    "a number as a response": ["UPDATE answers SET response = 5 WHERE key = (SELECT min(key) FROM answers)"],
    "a long kind": ["UPDATE answers SET kind = 'choose-choose-choose' WHERE key = (SELECT min(key) FROM answers)"],
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_answers_are_refused_taken_out_and_asked_again(name: str, path: Path) -> None:
    with Store(path) as kept:
        right = list(Job(Scripted(share), kept).run(ASKED))
    tampered(path, *ALTERATIONS[name])
    with Store(path) as kept:
        bad = len([entry for entry in kept.entries() if not entry.intact])
        assert bad > 0
        model, noted = fresh()
        for use in (lambda job: list(job.run(ASKED)), lambda job: job.plan(ASKED), lambda job: job.peek(ASKED)):
            with pytest.raises(StoreError, match=rf"^\S*c.sqlite: {bad} answers? of \d+ changed") as caught:
                use(Job(model, kept))
            assert f"ragworth calls prune {path} --damaged" in str(caught.value)
        with pytest.raises(StoreError, match=f"{bad} answer"):
            list(maintenance.export_calls(kept))
        assert noted.seen == []
        assert maintenance.prune(kept, CallFilter(damaged=True), dry=True) == bad
        before = count(path, "answers")
        assert maintenance.prune(kept, CallFilter(damaged=True), dry=False) == bad
        assert count(path, "answers") == before - bad
        assert count(path, "errors") == 2
        assert list(Job(model, kept).run(ASKED)) == right
        assert len(noted.seen) == len(ASKED) - (before - bad)  # these, and nothing else, were asked again
        assert maintenance.verify(kept).problems == []


def test_an_alteration_that_is_not_used_does_not_stop_a_job(path: Path) -> None:
    tampered(path, "UPDATE answers SET response = '[]' WHERE response LIKE '%0.029%'")
    with Store(path) as kept:
        assert len(list(Job(Scripted(share), kept).run(ASKED[:20]))) == 20
        with pytest.raises(StoreError, match="1 answer of 30"):
            list(Job(Scripted(share), kept).run(ASKED))


def test_a_damaged_prompt_goes_and_its_answer_stays(path: Path) -> None:
    tampered(path, "UPDATE requests SET request = x'00' WHERE key = (SELECT min(key) FROM answers)")
    with Store(path) as kept:
        assert maintenance.prune(kept, CallFilter(damaged=True), dry=False) == 1
        assert maintenance.verify(kept) == maintenance.VerificationResult(30, 1, [])
        model, noted = fresh()
        list(Job(model, kept).run(ASKED))
    assert noted.seen == []


def test_damaged_is_chosen_alone(path: Path) -> None:
    with Store(path) as kept, pytest.raises(RagworthError, match="--damaged can't be combined"):
        maintenance.prune(kept, CallFilter(damaged=True, kind="score"), dry=True)


def test_a_request_that_unpacks_to_too_much_is_damaged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.calls.store_entry.MAX_REQUEST_SIZE", 40)
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


def test_a_card_of_an_earlier_version_has_no_seal_and_is_used(path: Path) -> None:
    tampered(path, "UPDATE models SET card = json_remove(card, '$.seal')")
    with Store(path) as kept:
        assert kept.card_of(Scripted(share).card) is not None
        assert maintenance.verify(kept).problems == []


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


def test_the_command_repairs_a_store(path: Path) -> None:
    tampered(path, "UPDATE answers SET response = '[]' WHERE response LIKE '%0.00%'")
    refused = called("verify", str(path))
    assert refused.exit_code == 2
    assert "--damaged" in refused.stderr
    assert called("prune", str(path), "--damaged", "--dry-run").stdout == "9 damaged calls fit.\n"
    assert called("prune", str(path), "--damaged", "--yes").stdout == "9 damaged calls taken out.\n"
    assert called("verify", str(path)).stdout == "21 calls are sound.\n"


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
    "answers": ("key", "model", "kind", "response", "prompt_tokens", "new_tokens", "seconds", "made", "seal"),
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
        ["prune", str(path), "--damaged", "--yes"],
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


def test_no_flipped_byte_gives_a_wrong_answer(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with Store(path) as kept:
        right = list(Job(Scripted(share), kept).run(ASKED))
    content = path.read_bytes()
    start = content.index(b"first-token")
    draw = random.Random(5)
    refused = 0
    for number in range(60):
        at = start + draw.randrange(-500, 500)
        other = tmp_path / f"{number}.sqlite"
        other.write_bytes(content[:at] + bytes([content[at] ^ (1 << draw.randrange(7))]) + content[at + 1 :])
        try:
            with Store(other) as kept:
                assert list(Job(Scripted(share), kept).run(ASKED)) == right
        except StoreError:
            refused += 1
    assert refused > 10


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


def pages_overwritten(path: Path, *numbers: int) -> None:
    content = bytearray(path.read_bytes())
    for number in numbers:
        content[4096 * number : 4096 * (number + 1)] = random.Random(number).randbytes(4096)
    path.write_bytes(content)


def test_a_damaged_file_is_rebuilt_from_all_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    asked = questions(1000, words=20)
    right = filled(path, asked)
    with Store(path) as kept:
        list(Job(Scripted(lambda _: Failure("server-error", "down")), kept).run([question(2001), question(2002)]))
    pages_overwritten(path, path.stat().st_size // 4096 // 2, path.stat().st_size // 4096 - 3)
    before = path.read_bytes()
    with Store(path) as kept, pytest.raises(StoreError, match="malformed") as caught:
        list(maintenance.export_calls(kept))
    assert "--damaged" in str(caught.value)
    assert called("verify", str(path)).exit_code == 2
    assert "would go into a new one" in called("prune", str(path), "--damaged", "--dry-run").stdout
    assert path.read_bytes() == before
    done = called("prune", str(path), "--damaged", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "2 errors are in the new file" in done.stdout
    assert Path(f"{path}.damaged").read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} <= {"c.sqlite", "c.sqlite.lock", "c.sqlite.damaged"}
    assert called("verify", str(path)).exit_code == 0
    model, noted = fresh()
    with Store(path) as kept:
        assert list(Job(model, kept).run(asked)) == right
    assert 0 < len(noted.seen) < 100  # those of the damaged pages, and no others
    assert called("prune", str(path), "--damaged", "--yes").stdout == "0 damaged calls fit.\n"


def test_a_store_in_use_is_not_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    filled(path, questions(1000, words=20))
    pages_overwritten(path, path.stat().st_size // 4096 // 2)
    before = path.read_bytes()
    with Store(path) as other, other.locked():
        refused = called("prune", str(path), "--damaged", "--yes")
    assert refused.exit_code == 2
    assert "another process is writing" in refused.stderr
    assert path.read_bytes() == before


@pytest.mark.slow
def test_a_store_is_repaired_without_holding_it_in_memory(tmp_path: Path) -> None:
    """100 answers of 100 kB: first every second one is altered, then a page is damaged and the file is rebuilt."""
    path = tmp_path / "c.sqlite"
    text = "word " * 20_000
    with Store(path) as kept:
        asked = [Generate(Prompt.text(f"{i}"), max_tokens=20_000) for i in range(100)]
        list(Job(Scripted(lambda _: text), kept).run(asked))
    tampered(path, "UPDATE answers SET kind = 'score' WHERE unicode(hex(key)) % 2")
    with Store(path) as kept:
        altered, peak = measured(lambda: maintenance.prune(kept, CallFilter(damaged=True), dry=False))
        assert 0 < altered < 100
        assert peak < 2e6
        assert maintenance.verify(kept).problems == []
    with Store(path) as kept:
        rebuilt, peak = measured(lambda: rebuild(kept))
    assert rebuilt.answers == 100 - altered
    assert peak < 2e6


def measured(work: Callable[[], T]) -> tuple[T, int]:
    """What work gives, and the most bytes that Python's objects took meanwhile."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_prompt_without_an_answer_is_not_rebuilt(path: Path) -> None:
    tampered(path, "DELETE FROM answers WHERE key = (SELECT min(key) FROM answers)")
    with Store(path) as kept:
        made = rebuild(kept)
    assert (made.answers, made.errors, count(path, "requests")) == (29, 2, 31)
