"""Damaged stores: what no model can have answered is asked again, and nothing ends in a traceback or without end."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragworth.calls import maintenance
from ragworth.calls.checks import read_stored_response
from ragworth.calls.job import Job
from ragworth.calls.serialization import REQUEST_KINDS, call_key, model_digest
from ragworth.calls.store import Store
from ragworth.cli import main
from ragworth.core.errors import StoreError
from ragworth.llm.contract import Failure, Generate, Prompt, Request, Score
from ragworth.llm.scripted import Scripted
from tests.calls.samples import filled, fresh, question, questions, share, tampered

ASKED = questions(30)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store of 30 answers."""
    path = tmp_path_factory.mktemp("store") / "c.sqlite"
    filled(path, ASKED)
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
    "no usage": "replace(response, '[[3,', '[5,[3,')",
    "text for a share": "replace(response, '[0.029', '[\"0.029\"')",
    "a share too few": "replace(response, '0.029,', '')",
    "an object": "'{}'",
    "not JSON": "'garbage'",
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
    "labels that sum to 2": (question(1), '[USAGE,"first-token",[1.0,1.0]]'),
    "a truth value for a probability": (question(1), '[USAGE,"first-token",[true,0.0]]'),
    "a truth value for a log-probability": (SCORED, '[USAGE,["b"],[false],null,null,null]'),
    "no bounds": (question(1), '[USAGE,"first-token",[0.5,0.5],[0.5,0.5]]'),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_no_model_can_have_answered_is_no_answer(name: str) -> None:
    request, text = ANSWERS[name]
    found = read_stored_response(REQUEST_KINDS[type(request)], text.replace("USAGE", '[3,1,0.5,0,0,0,""]'), request)
    assert isinstance(found, Failure)
    assert found.reason == "malformed"


def test_a_damaged_prompt_does_not_cost_its_answer(path: Path) -> None:
    tampered(path, "UPDATE requests SET request = x'00' WHERE key = (SELECT min(key) FROM answers)")
    with Store(path) as kept:
        assert len(maintenance.verify(kept).problems) == 1
        assert len(list(maintenance.export_calls(kept))) == 30
        model, noted = fresh()
        list(Job(model, kept).run(ASKED))
    assert noted.seen == []


CARDS = [
    "UPDATE models SET card = replace(card, 'scripted', 'other')",
    "UPDATE models SET card = 'garbage'",
    "UPDATE models SET card = '[1]'",
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
        model, noted = fresh()
        assert len(list(Job(model, kept).run([*ASKED, question(31)]))) == 31
        assert len(noted.seen) == 1  # answers are found by their keys
        assert kept.card_of(card) is not None


def called(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["calls", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


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
    "another table": ["DROP TABLE requests", "CREATE TABLE requests (request TEXT)"],
    "no table": ["DROP TABLE requests"],
    "a generated column": ["ALTER TABLE answers ADD COLUMN more TEXT AS (zeroblob(1000000000))"],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_store_with_foreign_tables_views_or_triggers_is_refused(name: str, path: Path) -> None:
    tampered(path, *FOREIGN[name])
    with pytest.raises(StoreError, match="its tables are not those"):
        Store(path)


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
        assert maintenance.verify(kept) == maintenance.VerificationResult(29, [])
        assert list(Job(model, kept).run(ASKED)) == right
    assert noted.seen == [ASKED[29]]
