"""``ragworth build crux`` with a writer behind an OpenAI-compatible endpoint that fails now and then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragworth.build.drafts import Drafts
from ragworth.cli import main
from ragworth.llm.contract import Generate, Prompt
from tests.build.crux_samples import TOPICS, reply
from tests.conftest import Save
from tests.llm.openai.endpoint import TRUNCATED, Act, Endpoint, Seen, status


def answer(seen: Seen, faults: dict[str, str]) -> Act:
    """What the sample writer says, put into the endpoint's reply; a prompt with one of the words gets another text."""
    messages = seen.body.get("messages") or []
    said = "\n".join(message["content"] for message in messages)
    if not any(tag in said for tag in ("</passage>", "</question>", "</request>")):
        return Act()
    text = next((text for word, text in faults.items() if word in said), None) or reply(Generate(Prompt.text(said)))
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}
    body = {"id": "1", "object": "chat.completion", "model": "toy", "choices": [choice], "usage": usage}
    return Act(body=json.dumps(body).encode())


@pytest.fixture
def topics(save: Save) -> Path:
    rows = [{"id": each.id, "documents": each.documents, "summary": each.summary} for each in TOPICS]
    return save("topics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def build(topics: Path, url: str, *more: str) -> Result:
    script = topics.parent / "judge.json"
    script.write_text(json.dumps({"*": {"5": 0.9, "0": 0.05}}))
    models = ["-M", f"openai:toy@{url}", "-J", f"scripted:{script}", "-s", str(topics.parent / "calls.sqlite")]
    out = str(topics.parent / "out")
    return CliRunner().invoke(main, ["build", "crux", str(topics), "-o", out, "-n", "3", *models, *more])


@pytest.mark.slow
def test_faults_of_the_server_and_of_the_writer(topics: Path) -> None:
    """Two transient faults are tried again; a reply without tags is a status, and its topic has no request."""
    faults = {"Write the request": "I would rather not use tags."}
    with Endpoint(lambda seen: answer(seen, faults if "Forty boats fish" in str(seen.body) else {})) as server:
        server.script(status(500), TRUNCATED)
        done = build(topics, server.url, "--attempts", "1")
    assert done.exit_code == 0, done.output
    drafts = Drafts.read(topics.parent / "out" / "drafts.jsonl")
    assert drafts["b!"].status == "unparsable" and drafts["b!"].fields["raw"] == faults["Write the request"]
    assert {draft.status for draft in drafts if draft.stratum == "b"} == {"unparsable", "topic-dropped"}
    assert {draft.status for draft in drafts if draft.stratum == "a"} == {"kept"}
    assert "unparsable" in done.output
    assert not (topics.parent / "out" / "queries.jsonl").read_text().count('"b"')


def test_a_budget_ends_it_and_the_next_run_goes_on(topics: Path) -> None:
    with Endpoint(lambda seen: answer(seen, {})) as server:
        first = build(topics, server.url, "--quiet", "--max-calls", "4")
        assert first.exit_code != 0 and "budget" in first.output
        assert not (topics.parent / "out" / "ragworth.toml").exists()
        second = build(topics, server.url, "--quiet")
    assert second.exit_code == 0, second.output
    assert (topics.parent / "out" / "ragworth.toml").exists()


def test_the_commands_on_a_built_collection(topics: Path) -> None:
    with Endpoint(lambda seen: answer(seen, {})) as server:
        assert build(topics, server.url, "--quiet").exit_code == 0
    out = topics.parent / "out"
    stats = CliRunner().invoke(main, ["build", "stats", str(out)])
    assert stats.exit_code == 0, stats.output
    assert "coverage of the summary" in stats.output and "mean tokens of a summary" in stats.output
    wrong = CliRunner().invoke(main, ["build", "stats"])
    assert wrong.exit_code != 0 and "one of COLLECTION and --ratings" in wrong.output
