"""A model that plays every role in ``ragworth build``, and tells in which stage it is asked."""

from __future__ import annotations

import json
import re

from ragworth.judging.annotators.abstention import CONTROL_QUESTIONS
from ragworth.llm.contract import Choose, Request
from ragworth.llm.scripted import ScriptedReply
from tests.build import crux_samples
from tests.build.crux_samples import texts

STAGES = {
    "You write questions": "write",
    "<answer CODE>": "judge",
    "between <passage> and </passage>": "passages",
    "between <question> and </question>": "sub-questions",
    "between <request> and </request>": "request",
    "Rate how well": "rate",
    "Grade how well": "relevance",
    "between <nugget> and </nugget>": "nuggets",
    "how important the fact": "importance",
    "whether the text supports": "support",
}
"""By words of the prompt; every other prompt is one of the reader."""

ACCEPTED = "the year in which the harbour burned"
UNANSWERED = {each.unanswered for each in CONTROL_QUESTIONS}


def stage_of(request: Request) -> str:
    said = texts(request)
    return next((stage for words, stage in STAGES.items() if words in said), "read")


def reply(request: Request) -> ScriptedReply:
    said, stage = texts(request), stage_of(request)
    match stage:
        case "write":
            return _question(said)
        case "read":
            return _reading(request, said)
        case "nuggets":
            return "".join(re.findall(r"<nugget>[^<]+</nugget>", said.rpartition("so far:")[2])) + (
                f"<nugget>fact {len(said)}</nugget>"
            )
        case "passages" | "sub-questions" | "request" | "rate":
            return crux_samples.reply(request)
    assert isinstance(request, Choose)
    return {label: 0.9 / (place + 1) ** 4 for place, label in enumerate(request.labels)}


def _question(said: str) -> str:
    """A question on the first sentence of the passage, with a span copied from there."""
    if "does not say" in said:
        return json.dumps({"question": f"Which colour has the roof {len(said)}?", "answers": [], "evidence": []})
    quote = said.split(">\n", 1)[1].split(". ")[0]
    question = f"Which year is meant by {' '.join(quote.split()[-3:])}?"
    return json.dumps({"question": question, "answers": [ACCEPTED], "evidence": [{"passage": 1, "quote": quote}]})


def _reading(request: Request, said: str) -> ScriptedReply:
    """Declines without passages, and answers in words that have to be judged."""
    asked = said.rpartition("Question: ")[2].strip()
    shown = "</document" in said or "</passage" in said
    knows = shown and asked not in UNANSWERED and "colour" not in asked
    if isinstance(request, Choose):
        return {label: (0.05 if knows else 0.95) if label == "NO-RESPONSE" else 0.001 for label in request.labels}
    return "after the great fire of the harbour town" if knows else "NO-RESPONSE"
