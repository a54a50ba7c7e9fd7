"""Two topics about an invented harbour, and a writer and judge whose replies are known."""

from __future__ import annotations

from ragworth.build.crux.topics import Topic
from ragworth.calls.job import Job
from ragworth.llm.contract import Choose, Generate, Request
from ragworth.llm.scripted import Scripted, ScriptedReply

STORM = "The storm of 1987 broke the pier of Lindesund."
MONEY = "The county paid nine million crowns for the new pier."
FISH = "After the work, forty boats fished from Lindesund again."
TOPICS = [
    Topic("a", (STORM, f"{MONEY} {FISH}"), "A storm broke the pier, and the county paid for a new one."),
    Topic("b", (FISH,), "Forty boats fish from Lindesund."),
]
QUESTIONS = {
    "a": ("When did the storm come?", "Who paid for the pier?", "Who sang at the opening?"),
    "b": ("How many boats fish?",),
}
ANSWERS = {"When did the storm come?": STORM, "Who paid for the pier?": MONEY, "How many boats fish?": FISH}


def texts(request: Request) -> str:
    return "\n".join(message.content for message in request.prompt.messages)


def tags(tag: str, *some: str) -> str:
    return "\n".join(f"<{tag}>{text}</{tag}>" for text in some)


def reply(request: Request) -> ScriptedReply:
    """Writes each document as one passage, knows the questions, and rates 5 what holds the answer."""
    said = texts(request)
    if isinstance(request, Choose):
        question = said.rpartition("Question: ")[2].strip()
        good = ANSWERS.get(question, "\0") in said
        return {"5": 0.9, "0": 0.05} if good else {"0": 0.9, "5": 0.05}
    assert isinstance(request, Generate)
    topic = "a" if "county paid for a new one" in said else "b"
    if "</question>" in said:
        return tags("question", *QUESTIONS[topic])
    if "</request>" in said:
        return tags("request", f"Write a report about the harbour, topic {topic}.")
    document = said.partition("Document:\n")[2].split("\n")[1]
    return tags("passage", document)


def job(script: object = reply, **more: object) -> Job:
    return Job(Scripted(script, **more))  # type: ignore[arg-type]
