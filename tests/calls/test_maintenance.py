"""Looking after a store: what is in it, taking it out, and finding what somebody changed."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from ragworth.calls import maintenance
from ragworth.calls.job import Job
from ragworth.calls.maintenance import verify
from ragworth.calls.store import Store
from ragworth.llm.contract import (
    Generate,
    Prompt,
    PromptMessage,
    Request,
    Score,
    Span,
    Usage,
)
from ragworth.llm.scripted import Scripted, ScriptedReply
from tests.calls.samples import YES, question, tampered

PROMPT = Prompt((PromptMessage("system", "Be brief."), PromptMessage("user", "Why? Ω\ud800")), (Span(1, 0, 4),), "v1")
MIXED: list[Request] = [
    question(1),
    question(2),
    Generate(PROMPT, max_tokens=3, detail="entropies"),
    Score(PROMPT, "because it is"),
]


def reply(request: Request) -> ScriptedReply:
    if isinstance(request, Generate):
        return "so \x1b[31m it"
    return -1.5 if isinstance(request, Score) else YES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of two models, with answers of all kinds."""
    found = tmp_path / "c.sqlite"
    with Store(found) as kept:
        list(Job(Scripted(reply), kept).run(MIXED))
        list(Job(Scripted(reply, name="other"), kept).run(MIXED[:2]))
    return found


def test_holdings_by_model_and_kind(path: Path) -> None:
    with Store(path) as kept:
        held = maintenance.stored_calls(kept)
    assert [(one.model, one.kind, one.calls, one.prompt_tokens, one.new_tokens) for one in held] == [
        ("scripted", "choose", 2, 6, 2),
        ("scripted", "generate", 1, 4, 3),
        ("scripted", "score", 1, 4, 3),
        ("other", "choose", 2, 6, 2),
    ]
    for one in held:
        assert one.first is not None
        assert one.last is not None
        assert abs(one.first - time.time()) < 60
        assert one.first <= one.last


def test_an_export_holds_everything(path: Path) -> None:
    with Store(path) as kept:
        found = {call["kind"]: json.loads(json.dumps(call)) for call in maintenance.export_calls(kept)}
    made = found["generate"]
    assert made["model"]["name"] == "scripted"
    assert made["request"]["messages"] == [["system", "Be brief."], ["user", "Why? Ω\ud800"]]
    assert made["request"]["version"] == "v1"
    assert made["response"]["outputs"][0]["text"] == "so \x1b[31m it"
    assert made["response"]["outputs"][0]["trace"]["entropies"] == [0.5] * 3
    assert made["response"]["usage"] == Usage(4, 3, 0.0)._asdict()
    assert found["score"]["response"]["trace"]["logprobs"] == [-1.5] * 3
    assert found["choose"]["response"]["probabilities"] == [0.75, 0.25]
    assert len(made["key"]) == 32
    assert time.strptime(made["made"], "%Y-%m-%dT%H:%M:%SZ").tm_year >= 2026


def test_a_prompt_that_was_changed_is_found(path: Path) -> None:
    # Two prompts that are sound in themselves, at each other's places.
    with closing(sqlite3.connect(path)) as db, db:
        (first, one), (second, other) = db.execute(
            "SELECT key, request FROM requests JOIN answers USING (key) LIMIT 2"
        ).fetchall()
        db.execute("UPDATE requests SET request = ? WHERE key = ?", (other, first))
        db.execute("UPDATE requests SET request = ? WHERE key = ?", (one, second))
    with Store(path) as kept:
        problems = verify(kept).problems
    assert [problem.split()[1] for problem in problems] == [f"{key.hex()}:" for key in sorted([first, second])]
    assert all("not that of its model and request" in problem for problem in problems)


@pytest.mark.parametrize("packed", ["x'00ff'", "x''", "x'789c03000000000100'"], ids=["no-zlib", "nothing", "no-json"])
def test_a_prompt_that_cannot_be_read_is_found_and_the_others_are_checked(packed: str, path: Path) -> None:
    tampered(path, f"UPDATE requests SET request = {packed} WHERE key = (SELECT min(key) FROM answers)")
    with Store(path) as kept:
        found = verify(kept)
    assert found.calls == 6
    assert len(found.problems) == 1
