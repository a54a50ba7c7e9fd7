"""``ragworth build questions`` with models behind an OpenAI-compatible endpoint, with faults, and killed for real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragworth.annotators.control_questions import CONTROL_QUESTIONS
from ragworth.build.drafts import Drafts
from ragworth.cli import main
from tests.build.samples import write_corpus
from tests.llm.openai.endpoint import HANG, TRUNCATED, Act, Endpoint, Seen, status

WRITES = "You write questions"
PLAN = "[types]\nfact = 2\nunanswerable = 1\n[styles]\nquestion = 1\n"
UNANSWERED = {each.unanswered for each in CONTROL_QUESTIONS}
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
    return ["build", "questions", str(docs), "-n", "6", "--drafts", "1.5", *models, *paths, *more]


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


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize(("stage", "replies"), [("writing", 4), ("reading", 6)])
def test_killed_in_a_stage_it_goes_on_and_pays_for_nothing_twice(docs: Path, stage: str, replies: int) -> None:
    """SIGKILL comes while the process waits for a reply of the stage. The next run makes only the calls left over."""
    answered: list[str] = []
    waiting: list[str] = []
    dead = False

    def behave(seen: Seen) -> Act:
        prompt, request = said(seen), json.dumps(seen.body, sort_keys=True)
        in_stage = (WRITES in prompt) == (stage == "writing") and (WRITES in prompt or "Question: " in prompt)
        if not dead and in_stage and sum((WRITES in each) == (WRITES in prompt) for each in answered) >= replies:
            waiting.append(request)
            return HANG
        answered.append(request)
        return answer(seen)

    with Endpoint(behave) as server:
        command = [sys.executable, "-m", "ragworth", *arguments(docs, server.url, "--quiet")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while not waiting and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)  # replies that have come are being stored
        assert waiting and process.poll() is None
        process.kill()
        assert process.wait(30) == -signal.SIGKILL
        assert not (docs.parent / "out" / "card.json").exists()
        dead, before = True, [each for each in answered if WRITES in each or "Question: " in each]
        answered.clear()
        done = build(docs, server.url)
        assert done.exit_code == 0, done.output
        assert before and not set(before) & set(answered)
        assert set(waiting) <= set(answered)
    resumed = drafts_of(docs)
    shutil.rmtree(docs.parent / "out")
    (docs.parent / "calls.sqlite").unlink()
    with Endpoint(answer) as server:
        assert build(docs, server.url).exit_code == 0
    assert list(resumed) == list(drafts_of(docs))
