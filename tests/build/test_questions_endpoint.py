"""``ragworth build questions`` with models behind an OpenAI-compatible endpoint, with faults, and killed for real."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragworth.build.drafts import Drafts
from ragworth.cli import main
from ragworth.judging.annotators.abstention import CONTROL_QUESTIONS
from tests.build.samples import write_corpus
from tests.llm.openai.endpoint import TRUNCATED, Act, Endpoint, Seen, status

WRITES = "You write questions"
PLAN = "[types]\nfact = 2\nunanswerable = 1\n[styles]\nquestion = 1\n"
ANSWERED = {each.answered for each in CONTROL_QUESTIONS}


def said(seen: Seen) -> str:
    body: dict[str, Any] = seen.body or {}
    return "\n".join(str(message["content"]) for message in body.get("messages") or [])


def written(prompt: str) -> str:
    """A question on the first sentence of the passage; what it quotes is copied from there."""
    if "does not say" in prompt:
        return json.dumps({"question": f"Which colour has it? {len(prompt)}", "answers": [], "evidence": []})
    quote = prompt.split(">\n", 1)[1].split(". ")[0]
    question = f"Which year is meant by {' '.join(quote.split()[-3:])}?"
    return json.dumps({"question": question, "answers": ["1820"], "evidence": [{"passage": 1, "quote": quote}]})


def read(prompt: str) -> str:
    """The year, if a passage is shown and the question asks for it."""
    asked = prompt.rpartition("Question: ")[2].split("\n")[0]
    shown = "</passage" in prompt or "</document" in prompt
    return "1820" if asked in ANSWERED or (shown and "Which year" in asked) else "NO-RESPONSE"


def answer(seen: Seen, faults: int = 0) -> Act:
    prompt = said(seen)
    if not prompt:
        return Act()
    text = written(prompt) if WRITES in prompt else read(prompt)
    if WRITES in prompt and faults and seen.number % faults == 0:
        text = "Sure! Here is a question: who?"
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}
    body = {"id": "1", "object": "chat.completion", "model": "toy", "choices": [choice], "usage": usage}
    return Act(body=json.dumps(body).encode())


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "plan.toml").write_text(PLAN)
    return write_corpus(tmp_path / "docs")


def arguments(docs: Path, url: str, *more: str) -> list[str]:
    place = docs.parent
    models = ["-M", f"openai:writer@{url}", "-M", f"openai:reader@{url}", "--encoder", "none"]
    paths = ["-o", str(place / "out"), "-s", str(place / "calls.sqlite"), "--plan", str(place / "plan.toml")]
    return ["build", "questions", str(docs), "-n", "6", *models, *paths, *more]


def build(docs: Path, url: str, *more: str) -> Result:
    return CliRunner().invoke(main, arguments(docs, url, *more))


def drafts_of(docs: Path) -> Drafts:
    return Drafts.read(docs.parent / "out" / "drafts.jsonl")


@pytest.mark.slow
def test_faults_of_the_server_are_retried_and_those_of_the_writer_are_drafts(docs: Path) -> None:
    with Endpoint(lambda seen: answer(seen, faults=3)) as server:
        server.script(status(500), TRUNCATED)
        done = build(docs, server.url)
    assert done.exit_code == 0, done.output
    drafts = drafts_of(docs)
    assert len(drafts) == 9
    counts = Counter(draft.status for draft in drafts)
    assert counts["unparsable"] >= 1 and counts["kept"] >= 1
    assert all("Here is a question" in draft.fields["raw"] for draft in drafts if draft.status == "unparsable")
    card = json.loads((docs.parent / "out" / "card.json").read_text())
    assert (card["models"]["writer"]["name"], card["models"]["reader"]["name"]) == ("writer", "reader")
    assert card["drafts"] == 9 and card["kept"] == counts["kept"]
    (row,) = [row for row in card["checks"] if row["check"] == "answerable"]
    assert row["pass"] >= 1 and row["unknown"] == 0
